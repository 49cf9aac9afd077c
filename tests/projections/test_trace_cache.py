"""Traces that are kept between runs, and continued: whatever was recorded meanwhile and whatever became of their files,
answers are those of a replay from the first game."""

import gc
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from weakref import ref

import pytest
from cache_files import find_column_span, flip_bit, read_file, rewrite_file
from paths import NEVER, set_paths
from time_histories import INSTANTS, LADDERS, history
from time_ledgers import enter

from ratings_ledger import Result
from ratings_ledger.ledger.events.canonical import parse_record_instant
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.store.log import read_records_at
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.facts import column_cache
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import apply_event, decode, settle_facts
from ratings_ledger.projections.queries.explain import explain_game
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import continuation, trace_cache
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.replay.trace_cache import find_trace

Ratings = Callable[..., Any]
RUNNING = [name for name in dict.fromkeys(LADDERS) if not name.startswith(("catan-monthly", "catan-annual"))]


def made(url: str) -> Ledger:
    """A ledger with a history."""
    upgrade(url)
    ledger = open_ledger(url)
    enter(ledger, history(3, 60))
    return ledger


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the caches of this test are; even the shortest ladder has its trace kept, and continued."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(trace_cache, "TRACED_GAMES", 1)
    monkeypatch.setattr(continuation, "GAMES_PER_REPLAYED_GAME", 0)
    return tmp_path / "caches" / "ratings-ledger"


def everything(facts: Facts, ladder: str, as_of: int | None) -> Any:
    """What a ladder says: standings and books, now and then, everybody's steps, and why games gave what they gave."""
    ladders = Ladders(facts)
    try:
        trace = ladders.trace(ladder)
        then = ladders.at(as_of)
        found = [ladders.standings(ladder), then.standings(ladder), then.first_instant_and_kind(ladder)]
        for one in (ladders, then):
            stream = one.streams(ladder.split("/")[0]).get(ladder)
            found += [] if stream is None else [one.rank_stream(stream), plain(stream)]
        for one in (trace, then.trace(ladder)):
            found.append([(one.stream.names[player], *told(step)) for player, step in one.every_step()])
            own = {name: [*map(told, one.steps(player))] for player, name in enumerate(one.stream.names)}
            found.append(dict(sorted(own.items())))
        found += [explained(explain_game(then, ladder, "g", row)) for row in range(0, len(facts.cell), 7)]
    except RuleFailure as failure:
        return failure.describe(facts)
    return found


def plain(stream: Stream) -> Any:
    """What a stream holds."""
    return (
        stream.ladder, stream.names, [*stream.offsets], [*stream.players], [*stream.version_indices],
        [*stream.rows], [[*column] for column in stream.columns], stream.adjustments,
    )  # fmt: skip


def told(step: Any) -> Any:
    return (*step[:4], step.version and step.version.ruleset.name, step.position)


def explained(found: Result) -> Any:
    return json.loads(json.dumps(found.model_dump(mode="json")))


def kept(facts: Facts, ladder: str) -> Trace | None:
    return find_trace(facts, ladder, facts.rulesets.get(ladder.split("/")[0], []))


def harm(place: Path, chance: Random) -> str:
    """Do something to the files of the traces."""
    files = sorted(path for path in place.rglob("traces/*") if path.is_file() and path.stat().st_size)
    what = chance.choice(("flip", "cut", "lose", "link", "swap", "nothing", "nothing", "nothing"))
    if not files or what == "nothing":
        return "nothing"
    path = chance.choice(files)
    if what == "flip":
        flip_bit(path, chance)
    elif what == "cut":
        content = path.read_bytes()[: chance.randrange(path.stat().st_size)]
        path.unlink()  # what is mapped keeps its length
        path.write_bytes(content)
    elif what == "lose":
        path.unlink()
    elif what == "link":
        path.rename(path.with_name(f"{path.name}-elsewhere"))
        path.symlink_to(path.with_name(f"{path.name}-elsewhere"))
    else:  # a trace of another ladder under this one's name
        content = chance.choice(files).read_bytes()
        path.unlink()
        path.write_bytes(content)
    return what


@pytest.mark.slow
def test_kept_traces_answer_as_replays_do(
    tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool, store: str, store_kind: str
) -> None:
    """As a random history grows, what is read from a trace, or continues one, is what a replay from the start says.

    Late games, corrections, voids, renames, adjustments and new versions come in pieces; questions are asked in
    between, also of what was known earlier and of what is only proposed; files are damaged now and then.
    """
    met: Counter[str] = Counter()
    # the first is in each kind of store, and the others are in files
    seeds = 60 if at_length else 2 if store_kind == "sqlite" else 1
    for seed in range(seeds):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        upgrade(url)
        ledger, rest, length = open_ledger(url), history(seed, 90), 0
        while rest:
            size = chance.choice((1, 2, 5, 20))
            part, rest = rest[:size], rest[size:]
            enter(ledger, part)
            length += len(part)
            asked = chance.sample(RUNNING, 3)
            compiled = chance.random() < 0.2
            monkeypatch.setattr(column_cache, "MERGE_RATIO", chance.choice((0, 8)))
            look(ledger, monkeypatch, chance, asked, length, compiled, met)
            if chance.random() < 0.3:
                look(ledger, monkeypatch, chance, asked, chance.randint(1, length), compiled, met)
            met[harm(traces, chance)] += 1
    assert not [*traces.rglob("*.part")]
    wanted = {"continued", "as it was", "replayed", "proposed", "flip", "cut", "lose", "link"}
    assert met.keys() >= wanted or (seeds == 1 and met["continued"]), met


def look(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, chance: Random, asked: list[str], position: int, compiled: bool,
    met: Counter[str],
) -> None:  # fmt: skip
    """Compare all answers at a position, and those at facts that were brought there by one event after another."""
    with ledger.reading() as connection:
        plain = decode(connection, position, cached=False)
        set_paths(monkeypatch, scanned=False, compiled=compiled)
        facts = decode(connection, position)
        behind = decode(connection, chance.randint(max(position - 5, 0), position), ahead=position)
        assert facts.cache is not None
        for at in range(behind.position + 1, position + 1):
            apply_event(behind, at, read_records_at(connection, [at])[at])
    settle_facts(behind)
    behind.position = position
    for ladder in asked:
        if ladder.split("/")[0] not in plain.rulesets:
            continue
        as_of = chance.choice([None, *map(parse_record_instant, INSTANTS)])
        found = kept(facts, ladder)
        met["replayed" if found is None else "continued" if found.earlier else "as it was"] += 1
        met["proposed"] += behind.proposed and (kept(behind, ladder) is not None)
        given = everything(facts, ladder, as_of)
        proposed = everything(behind, ladder, as_of)
        set_paths(monkeypatch, scanned=False, compiled=False)
        assert given == everything(plain, ladder, as_of), (ladder, position, as_of)
        assert proposed == given
        set_paths(monkeypatch, scanned=False, compiled=compiled)


def test_unused_traces_are_told_in_a_line(
    tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged trace is named in one line and deleted, and the answer comes from a replay, which is kept."""
    ledger = made(str(tmp_path / "ratings.db"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    with ledger.reading() as connection:
        facts = decode(connection)
    before = everything(facts, RUNNING[0], None)
    (path,) = traces.rglob("traces/*-*-*")
    flip_bit(path, Random(0), find_column_span(path, "before"))
    with caplog.at_level(logging.WARNING):
        assert everything(facts, RUNNING[0], None) == before
    (line,) = caplog.messages
    assert line.endswith(f"is not used: {path.name}/before is damaged")
    assert kept(facts, RUNNING[0]) is not None


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["points", "mint", "minted"])
@pytest.mark.parametrize("asked", [("verify",), ("rebuild", "--check")])
def test_planted_wrong_trace_is_found(
    tmp_path: Path,
    traces: Path,
    monkeypatch: pytest.MonkeyPatch,
    ratings: Ratings,
    asked: tuple[str, ...],
    planted: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A trace that is sound but wrong answers questions until a command that replays without it finds it.

    That goes for the points, for what each game minted, and for what all of them did.
    """
    url = str(tmp_path / "ratings.db")
    made(url)
    set_paths(monkeypatch, scanned=False, compiled=False)

    def answer() -> str:
        # no command shows what a trace says a game minted
        return "".join(
            ratings(command, "galactic-points", "--format", "json", db=url).stdout for command in ("standings", "books")
        )

    right = answer()
    assert ratings("history", "galactic-points", "anna", db=url).exit_code == 0
    (path,) = traces.rglob("traces/*-*-*")
    columns, about = read_file(path)
    if planted == "minted":
        about["minted"] += 1
    else:
        columns[planted][0] += 1
    rewrite_file(path, columns, about)
    assert (answer() != right) is (planted != "mint")
    found = ratings(*asked, db=url)
    told = f"{path} differs from a replay of galactic-points; it is deleted"
    assert told in found.stdout + caplog.text
    assert found.exit_code == (1 if asked == ("verify",) else 0)
    assert not path.exists()
    assert answer() == right
    caplog.clear()
    again = ratings(*asked, db=url)
    assert (again.exit_code, told in again.stdout + caplog.text) == (0, False)


def test_another_version_does_not_take_the_place_of_a_trace(
    tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one version would make of all games is replayed, and leaves the kept trace of the ladder alone."""
    ledger = made(str(tmp_path / "ratings.db"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    with ledger.reading() as connection:
        facts, plain = decode(connection), decode(connection, cached=False)
    Ladders(facts).trace("galactic-points")
    (path,) = traces.rglob("traces/*-*-*")
    rules = facts.rulesets["galactic-points"][0].ruleset.name
    for as_of in (None, parse_record_instant(INSTANTS[2])):
        asked, wanted = Ladders(facts, as_of, rules), Ladders(plain, as_of, rules)
        assert [*asked.trace("galactic-points").points_before] == [*wanted.trace("galactic-points").points_before]
    assert [*traces.rglob("traces/*-*-*")] == [path]


def test_large_things_do_not_wait_for_the_garbage_collector(
    tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ladders and their traces, new or kept, are given back as soon as nobody holds them."""
    ledger = made(str(tmp_path / "ratings.db"))
    set_paths(monkeypatch, scanned=False, compiled=False)
    with ledger.reading() as connection:
        facts = decode(connection)
    gc.collect()
    gc.disable()
    try:
        for _ in range(2):
            ladders = Ladders(facts)
            ladders.keep_trace_of("galactic-points")
            everything(facts, "galactic-points", None)
            then = ladders.at(parse_record_instant(INSTANTS[2]))
            then.standings("galactic-points")
            held = [ref(one) for one in (ladders, then, ladders.trace("galactic-points"))]
            del ladders, then
            assert [one() for one in held] == [None, None, None]
    finally:
        gc.enable()


def test_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a place for files, everything is replayed."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr(trace_cache, "TRACED_GAMES", 1)
    ledger = made(str(tmp_path / "ratings.db"))
    with ledger.reading() as connection:
        plain = decode(connection, cached=False)
        set_paths(monkeypatch, scanned=False, compiled=False)
        facts = decode(connection)
    assert (facts.cache, facts.chain_hash == ZERO) == (None, False)
    assert everything(facts, RUNNING[0], None) == everything(plain, RUNNING[0], None)
    assert len(facts.cell) < NEVER


@pytest.mark.slow
def test_commands_read_kept_traces_without_numpy(tmp_path: Path) -> None:
    """Given kept columns and a kept trace, a history and an explanation end before numpy would have been imported."""
    url = str(tmp_path / "ratings.db")
    made(url)
    program = f"""
import sys
from ratings_ledger.cli.main import invoke
from ratings_ledger.projections.facts import decoding
from ratings_ledger.projections.replay import trace_cache
decoding.CACHED_EVENTS = decoding.DELTA_EVENTS = trace_cache.TRACED_GAMES = 1
code = invoke(["--db", {url!r}, *sys.argv[1:]])
print(code, "numpy" in sys.modules, file=sys.stderr)
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "caches")}
    commands = [["history", "catan-elo/basic", "anna"], ["explain", "catan-elo/basic", "g17"]]
    lines = [
        subprocess.run(
            [sys.executable, "-c", program, *command], env=environment, capture_output=True, text=True, check=True
        ).stderr
        for command in (commands[0], *commands)  # the first one keeps the trace
    ]
    assert lines == ["0 True\n", "0 False\n", "0 False\n"]
