"""Every answer can be repeated with `--known-at`, and is the same in every kind of store.

The history is random, of the kind that `test_time_machine` compares with the oracle.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from histories import build_ticking_clock, enter
from ledgers import create_ledger
from oracle.log import Event, Log, derive_games
from oracle.questions import Question
from oracle.rulesets import find_ladder_name, list_versions
from time_histories import LADDERS, PLAYERS, World, draw_history, draw_question
from time_ledgers import compute_answers

from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

EVENTS = 500
RULESETS = ("galactic-points", "catan-elo", "catan-monthly", "catan-annual")


def list_touched_ladders(log: Log) -> list[str]:
    """Return the ladders that the last event is about: those of its game or its adjustment, or any."""
    event = log[-1]
    if event["type"] == "points.adjusted":
        return [event["data"]["ladder"]]
    game = derive_games(log).get(event["data"].get("game_id", ""))
    versions = [version for ruleset_id in RULESETS for version in list_versions(log, ruleset_id)[-1:]] if game else []
    names = {
        find_ladder_name(version, game)
        for version in versions
        if game and game.data["game"] in version.data["scope"]["game"]
    }
    return sorted(name for name in names if name) or LADDERS


def choose_commands(chance: Random, log: Log, several: bool) -> list[tuple[str, ...]]:
    """Choose a question about a ladder that the last event touches; with `several`, more questions about this
    ladder and a random one.
    """
    ladders = list_touched_ladders(log)
    ladder, player = chance.choice(ladders), chance.choice(PLAYERS)
    game = log[-1]["data"].get("game_id") or chance.choice([*sorted(derive_games(log)), "g-unknown"])
    other_commands = ("history", player, ladder), ("explain", game, ladder)
    if not several:
        return [chance.choice([("standings", ladder), *other_commands])]
    random_ladder = chance.choice(LADDERS)
    names = [*(ladders if len(ladders) < len(LADDERS) else [ladder]), random_ladder]
    return [
        *(("standings", name) for name in dict.fromkeys(names)),
        *other_commands,
        ("history", player, random_ladder),
    ]


def test_known_at_repeats_every_answer(tmp_path: Path, ratings: Callable[..., Any], at_length: bool) -> None:
    """In a growing ledger, `--known-at` repeats every earlier answer byte for byte.

    At every position a question is asked, and at the end again with that position in `--known-at`.
    """
    chance, path = Random(1), str(tmp_path / "ratings.db")
    printed: dict[tuple[tuple[str, ...], int], Any] = {}
    create_ledger(path)
    events = EVENTS if at_length else EVENTS // 5
    ledger, log = open_ledger(path), draw_history(1, events)
    position = 0
    for number, event in enumerate(log, 1):
        result = enter(ledger, [event])
        assert result.appended == 1, (event, result.rejected)
        assert result.head is not None
        position = result.head.position
        if number % 25 == 0:
            ladder = chance.choice(LADDERS)
            ratings("publish", ladder, db=path)
            with ledger.reading() as connection:
                position = head(connection).position
            published = ("standings", ladder, "--as-published")
            printed[published, position] = ratings(*published, "--format", "json", db=path)
        for command in choose_commands(chance, log[:number], at_length):
            printed[command, position] = ratings(*command, "--format", "json", db=path)
    for (command, known_at), before in printed.items():
        repeated = ratings(*command, "--known-at", known_at, "--format", "json", db=path)
        assert (repeated.exit_code, repeated.stdout) == (before.exit_code, before.stdout), (command, known_at)
    assert len({known_at for _, known_at in printed}) >= events
    successes = [result for result in printed.values() if result.exit_code == 0]
    assert len(successes) > len(printed) * 3 // 4


def test_stores_of_both_kinds_agree(tmp_path: Path, postgres_url: str, at_length: bool) -> None:
    """One history has equal heads, digests and rows in SQLite and PostgreSQL.

    Both stores get the same events in pieces of the same random sizes.
    """
    chance, log = Random(2), draw_history(2, EVENTS if at_length else 150)
    urls = str(tmp_path / "ratings.db"), postgres_url
    for url in urls:
        create_ledger(url)
    ledgers, clocks = [open_ledger(url) for url in urls], [build_ticking_clock(), build_ticking_clock()]
    rest: list[Event] = log
    while rest:
        size = chance.randint(1, 30)
        part, rest = rest[:size], rest[size:]
        heads = [enter(ledger, part, now).head for ledger, now in zip(ledgers, clocks, strict=True)]
        assert heads[0] == heads[1]
        known_at = len(log) - len(rest)
        assert heads[0] is not None
        assert heads[0].position == known_at
        world = World(chance, log)
        questions = [draw_question(world, known_at) for _ in range(4)]
        questions += [Question(ladder, known_at) for ladder in dict.fromkeys(LADDERS)]
        sqlite_answers, postgres_answers = (compute_answers(ledger, questions) for ledger in ledgers)
        assert sqlite_answers == postgres_answers
        assert [answer and answer.digest for answer in sqlite_answers] == [
            answer and answer.digest for answer in postgres_answers
        ]
    # earlier positions, seen from the end
    for _ in range(40 if at_length else 10):
        questions = [draw_question(World(chance, log), chance.randint(1, len(log)))]
        assert compute_answers(ledgers[0], questions) == compute_answers(ledgers[1], questions)
