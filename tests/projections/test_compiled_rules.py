"""Compiled rules against the same rules interpreted: equal points, changes, books and failures."""

import logging
import os
import random
import subprocess
import sys
from array import array
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from own_rules import load_built_in_rule, needs_numba
from test_rule_contract import PARAMS, list_game_inputs
from thresholds import set_thresholds

from ratings_ledger.projections import compiling
from ratings_ledger.projections.replay import replay as replaying
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import Stream, StreamAdjustment
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.rulesets.versions import Version
from ratings_ledger.rules import Rule

ROOT = Path(__file__).parents[2]
GAMES = 200
PLAYERS = 14


def draw_stream(rule: Rule, seed: int) -> Stream:
    """Return random games that the rule can score, with random changes of parameters and adjustments in between."""
    chance = random.Random(seed)
    bound = [rule.params.model_validate(params) for params in PARAMS.get(rule.id, [{}])]
    versions: list[Any] = [Version(None, rule, params, rule.prepare(params), None, 1) for params in bound]  # type: ignore[arg-type]
    stream = Stream("a/b", rule, versions, [f"p{n:02}" for n in range(PLAYERS)])
    stream.persons = [*range(PLAYERS)]
    pools = [iter(list_game_inputs(rule, params, GAMES, seed)) for params in PARAMS.get(rule.id, [{}])]
    columns: list[list[int]] = [[] for _ in rule.columns]
    version_index = 0
    for game in range(GAMES):
        version_index = chance.randrange(len(versions)) if chance.random() < 0.1 else version_index
        n, _, own = next(pools[version_index])
        stream.players.extend(sorted(chance.sample(range(PLAYERS), n)))
        for column, numbers in zip(columns, own, strict=True):
            column.extend(numbers)
        stream.offsets.append(len(stream.players))
        stream.version_indices.append(version_index)
        stream.rows.append(game)
        if chance.random() < 0.03:
            units = chance.randint(-5, 5) * rule.scale
            player = chance.randrange(PLAYERS)
            stream.adjustments.append(StreamAdjustment(game, player, units, version_index, 10_000 + game, 0))
    code = "h" if all(-(2**15) <= value < 2**15 for column in columns for value in column) else "q"
    stream.columns = [array(code, column) for column in columns]
    joined = dict.fromkeys(
        [*stream.players, *(adjustment.player for adjustment in stream.adjustments), *range(PLAYERS)]
    )
    number = {player: number for number, player in enumerate(joined)}
    stream.players = array("i", [number[player] for player in stream.players])
    stream.adjustments = [adjustment._replace(player=number[adjustment.player]) for adjustment in stream.adjustments]
    return stream


def replay_both_ways(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the results of a replay interpreted, then compiled: trace, steps and first half, or the failure."""
    results: list[Any] = []
    for games in (10**9, 1):
        set_thresholds(monkeypatch, compiled_games=games)
        try:
            trace = replay(stream)
        except RuleFailure as failure:
            results.append((str(failure), failure.ladder, failure.row, failure.position))
            continue
        steps = [trace.steps(player) for player in range(len(stream.names))]
        half = trace.truncate(len(stream.rows) // 2, len(stream.adjustments) // 2)
        results.append((to_plain_trace(trace), steps, [*trace.changes], [*trace.every_step()], to_plain_trace(half)))
    return results


def to_plain_trace(trace: Trace) -> dict[str, Any]:
    """Return a trace with lists in place of columns, and without the stream."""
    values = {name: value for name, value in vars(trace).items() if name != "stream"}
    values |= {name: [list(column) for column in values[name]] for name in ("states", "states_before")}
    return {name: list(value) if hasattr(value, "tolist") else value for name, value in values.items()}


@pytest.mark.slow
@needs_numba
@pytest.mark.parametrize("name", PARAMS)
def test_compiled_replay_equals_interpreted(name, monkeypatch):
    """A compiled replay of random games equals the interpreted one exactly."""
    stream = draw_stream(load_built_in_rule(name), seed=7)
    assert {*stream.version_indices} == {*range(len(stream.versions))}
    with monkeypatch.context() as patched:
        patched.setattr(replaying, "replay_interpreted", None)  # a rule that cannot be compiled would be interpreted
        set_thresholds(patched, compiled_games=1)
        replay(stream)
    interpreted, compiled = replay_both_ways(stream, monkeypatch)
    assert compiled == interpreted
    assert type(compiled[0]["states"][0][0]) is int
    assert min(map(len, compiled[1])) > 10


def score_dividing(n, points, columns, constants, table, change):
    """Divide by zero if a place is 7."""
    for i in range(n):
        change[i] = 0
    return 1 // (7 - columns[0][0]) * 0


def score_unbalanced(n, points, columns, constants, table, change):
    """Give a point at place 7 without minting it."""
    for i in range(n):
        change[i] = 1 if columns[0][i] == 7 else 0
    return 0


def score_with_fractions(n, points, columns, constants, table, change):
    """Score in a way that numba cannot compile."""
    for i in range(n):
        change[i] = int(Fraction(columns[0][i], 1))
    return n * 10


@pytest.mark.slow
@needs_numba
@pytest.mark.parametrize("score", [score_dividing, score_unbalanced])
@pytest.mark.parametrize("at", [0, 57, 99, None])
def test_compiled_rule_fails_at_same_game(score, at, monkeypatch):
    """A compiled rule fails at the same game as the interpreted one."""
    failing_rule = load_built_in_rule("pairwise-elo/1")._replace(score=score)
    stream = build_stream(failing_rule, 100, at)
    interpreted, compiled = replay_both_ways(stream, monkeypatch)
    assert compiled == interpreted
    assert (compiled[2] == at) if at is not None else isinstance(compiled[0], dict)


def build_stream(rule: Rule, games: int, at: int | None) -> Stream:
    """Return games of two with places 1 and 2; in the game of index `at` a player has place 7."""
    bound = rule.params.model_validate({"k_per_pair": 8})
    stream = Stream("a/b", rule, [Version(None, rule, bound, rule.prepare(bound), None, 1)], ["a", "b"])  # type: ignore[arg-type]
    stream.columns, stream.persons = [array("h"), array("h")], [0, 1]
    for game in range(games):
        stream.players.extend([0, 1])
        stream.columns[0].extend([7 if game == at else 1, 2])
        stream.columns[1].extend([2, 2])
        stream.offsets.append(2 * game + 2)
        stream.version_indices.append(0)
        stream.rows.append(game)
    return stream


@pytest.mark.slow
@needs_numba
def test_uncompilable_rule_is_interpreted(monkeypatch, caplog):
    """A rule that cannot be compiled is interpreted, with one warning."""
    uncompilable_rule = load_built_in_rule("pairwise-elo/1")._replace(score=score_with_fractions)
    with caplog.at_level(logging.WARNING):
        interpreted, compiled = replay_both_ways(build_stream(uncompilable_rule, 50, None), monkeypatch)
    assert compiled == interpreted
    assert [Counter(record.message.split())["interpreted,"] for record in caplog.records] == [1]


@pytest.mark.parametrize(
    ("numba_message", "reason"),
    [
        ("Failed in nopython mode pipeline (step: nopython frontend)\n\x1b[1mUntyped global name 'x': cannot determine "
         'Numba type of <class \'set\'>\x1b[0m\n\nFile "rules/own.py", line 12:\ndef score(n):\n',
         "Untyped global name 'x': cannot determine Numba type of <class 'set'> (own.py, line 12)"),
        ("Failed in nopython mode pipeline (step: x)\n- During: typing of call\n", "no reason given"),
    ],
)  # fmt: skip
def test_reason_for_not_compiling_is_extracted(numba_message: str, reason: str) -> None:
    """The reason and the line are extracted from numba's message."""
    assert compiling.extract_reason(numba_message) == reason


def test_replay_without_numba_is_interpreted(monkeypatch):
    """Without numba, a long history is replayed by the interpreted rule."""
    monkeypatch.setattr(compiling, "is_available", lambda: False)
    monkeypatch.setattr(compiling, "compile_with_rule", None)  # a call would fail
    interpreted, compiled = replay_both_ways(draw_stream(load_built_in_rule("pairwise-elo/1"), seed=4), monkeypatch)
    assert compiled == interpreted


RUN_RULES = """
import sys
from importlib import import_module
import numpy as np
from ratings_ledger.projections import compiling
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.rulesets import registry

def numbers(*values):
    return np.array(values, dtype=np.int64)

for name in sys.argv[1:]:
    begin, states = np.zeros((2, 1, 2), dtype=np.int64)
    rule = registry.find_rule("pairwise-elo/1")._replace(score=import_module(name).score)
    compiling.compile_with_rule(loops.run_ladders, rule, loops.find_rule_parts(rule))(
        numbers(), numbers(), numbers(0, 1), numbers(0, 2), numbers(0, 2), numbers(0, 2), numbers(0, 1),
        np.zeros((1, 2), dtype=np.int64), begin, states, numbers(0, 0), np.zeros(2, dtype=np.int8),
        np.zeros((1, 6), dtype=np.int64), numbers(0), *np.zeros((2, 1, 2), dtype=np.int64),
        np.zeros((1, 0), dtype=np.int64), numbers(), numbers(), np.zeros((1, 0), dtype=np.int64),
    )
    print(name, states[0].tolist())
"""


@pytest.mark.slow
@needs_numba
def test_loaded_rules_score_by_own_code(tmp_path):
    """Rules compiled by other processes each run their own code when one process loads them.

    The compiled code of two rules has loops of the same name, and each process numbers its compiled functions from 1.
    """
    for name, points in (("one", 1), ("two", 2)):
        (tmp_path / f"{name}.py").write_text(
            "def score(n, points, columns, constants, table, change):\n"
            f"    change[0], change[1] = {points}, {-points}\n    return 0\n"
        )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled"), "PYTHONPATH": f"{tmp_path}:{ROOT}"}

    def run_rules(*names: str) -> list[str]:
        command = [sys.executable, "-c", RUN_RULES, *names]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()

    assert run_rules("one") + run_rules("two") == run_rules("one", "two") == ["one [1, -1]", "two [2, -2]"]
