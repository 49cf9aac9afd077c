"""An open ledger whose questions read kept columns and traces: each answer is that of the log, also when files are
damaged under it, when only a rename or a clock makes a game count otherwise, and when threads ask at once."""

import gc
import logging
import os
import shutil
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cache_files import find_column_span
from paths import NEVER, set_paths
from time_ledgers import enter

import ratings_ledger
import ratings_ledger.projections
from ratings_ledger import Snapshot
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.facts import column_files, decoding
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries import ladders_at
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import continuation, trace, trace_cache
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.replay.trace_cache import find_trace

GAMES = 30
LADDERS = ("elo", "elo-2", "elo-3")
SHIPPED = Path(ratings_ledger.projections.__file__).parent / "shipped"
WHATIF = """id = "elo"
version = "2"
rule = "pairwise-elo/1"
effective_from = 1900-01-01
scope = { game = ["catan"] }
params = { k_per_pair = 9, start = 1000, scale = 400, rounding = "pair", min_games = 0 }
"""
ASKED: dict[str, Callable[[ratings_ledger.Ledger], Any]] = {
    "standings": lambda ledger: ledger.at().standings("elo"),
    "standings then": lambda ledger: ledger.at(as_of=instant(20)).standings("elo"),
    "history": lambda ledger: ledger.at().history("elo", "anna"),
    "account": lambda ledger: ledger.at().account("elo", "anna"),
    "balance": lambda ledger: ledger.at().balance("elo"),
    "explain": lambda ledger: ledger.at().explain("elo", "g3"),
    "explain the last": lambda ledger: ledger.at().explain("elo", "g29"),
    "unmet": lambda ledger: ledger.at().unmet("elo", "anna"),
    "ladders": lambda ledger: ledger.at().ladders(),
    "all standings": lambda ledger: [*ledger.at().every_standings()],
    "changes": lambda ledger: [*ledger.at().changes("elo")],
    "statistics": lambda ledger: ledger.at().statistics("anna"),
    "lists": lambda ledger: ledger.at().lists(),
    "leagues": lambda ledger: ledger.at().leagues(),
    "decisions": lambda ledger: ledger.at().decisions(3),
    "games": lambda ledger: ledger.at().games(player="anna"),
    "differences": lambda ledger: ledger.compare(ledger.at(known_at=20), ledger.at()),
    "attribution": lambda ledger: ledger.attribute("elo", "anna", ledger.at(known_at=20), ledger.at()),
    "whatif": lambda ledger: ledger.simulate(WHATIF, ledger.at()),
    "preview": lambda ledger: ledger.propose(void("g3"), "mira").impact(),
}  # fmt: skip


def instant(hour: int) -> str:
    return f"2010-02-{1 + hour // 24:02d}T{hour % 24:02d}:00:00Z"


def event(kind: str, occurred_at: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "occurred_at": occurred_at, "data": data}


def game(number: int, *players: str, name: str = "catan") -> dict[str, Any]:
    places = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    return event("game.recorded", instant(number), game_id=f"g{number}", game=name, participants=places)


def elo(name: str = "elo", **scope: list[str]) -> dict[str, Any]:
    params = {"k_per_pair": 8, "start": 1000, "scale": 400, "rounding": "pair", "min_games": 0}
    return event(
        "ruleset.published", "2010-01-01T00:00:00Z", id=name, version="1", rule="pairwise-elo/1", params=params,
        scope={"game": ["catan"], **scope}, effective_from="1900-01-01",
    )  # fmt: skip


def void(game_id: str) -> dict[str, Any]:
    return event("game.voided", "2024-01-01T00:00:00Z", game_id=game_id, reason="never played")


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the caches are; columns and traces of even the shortest history are kept, and continued."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(trace_cache, "TRACED_GAMES", 1)
    monkeypatch.setattr(continuation, "GAMES_PER_REPLAYED_GAME", 0)
    set_paths(monkeypatch, scanned=False, compiled=False)
    return tmp_path / "caches"


def written(store: str, *events: dict[str, Any]) -> Ledger:
    """A ledger with these events, whose first ladder has a trace."""
    upgrade(store)
    ledger = open_ledger(store)
    assert enter(ledger, [*events]).rejected == []
    return ledger


@pytest.fixture
def traced(store: str) -> str:
    """A ledger whose three ladders have traces."""
    written(store, *map(elo, LADDERS), *(game(number, "anna", "ben") for number in range(GAMES)))
    keep_traces(store)
    return store


def keep_traces(url: str) -> None:
    with ratings_ledger.open(url) as ledger:
        for ladder in LADDERS:
            ledger.at().history(ladder, "anna")


def flip(*columns: tuple[Path, str]) -> None:
    """Damage columns of files; where they are mapped, too."""
    gc.collect()  # what is open was checked before
    gc.freeze()  # the next time nobody need look at what is there now
    for path, name in columns:
        content, span = bytearray(path.read_bytes()), find_column_span(path, name)
        content[sum(span) // 2] ^= 4
        path.write_bytes(content)


def files(caches: Path, of: str) -> list[Path]:
    """The files with columns, or with traces."""
    paths = sorted(caches.glob(f"ratings-ledger/*/{of}/*-*-*"))
    assert paths
    return paths


def uncached(ledger: Ledger, ladder: str) -> Any:
    """Its standings by a replay of the log from the first event."""
    with ledger.reading() as connection:
        return Ladders(decode(connection, cached=False)).standings(ladder).rows


def micropoints(ledger: ratings_ledger.Ledger) -> list[tuple[str, int]]:
    """Return the players of an open ledger, and their points in millionths, by rank."""
    return [(row.player, int(row.points * 1_000_000)) for row in ledger.at().standings("elo").rows]


def answers(url: str) -> dict[str, str]:
    """What each question is told."""
    return {what: answer(url, what) for what in ASKED}


def answer(url: str, what: str) -> str:
    """What a question is told that has an open ledger of its own."""
    with ratings_ledger.open(url) as ledger:
        return repr(ASKED[what](ledger))


@pytest.mark.slow
def test_every_answer_is_that_without_a_cache(traced: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A question that finds columns and traces in files has the answer that it has where there are none."""
    found = answers(traced)
    monkeypatch.setattr(decoding, "CACHED_EVENTS", NEVER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    assert answers(traced) == found
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
@pytest.mark.parametrize("deletes", [True, False])
def test_two_damaged_places_are_both_found(
    traced: str, deletes: bool, monkeypatch: pytest.MonkeyPatch, caches: Path, store_kind: str, at_length: bool
) -> None:
    """With a trace and a column damaged, the second try has the answer; so it is where nothing can be deleted."""
    # the cache is the same above every store
    asked = [*ASKED] if at_length or store_kind == "sqlite" else [*ASKED][::4]
    wanted = {what: answer(traced, what) for what in asked}
    if not deletes:
        monkeypatch.setattr(column_files, "delete_file", lambda path: None)
    found, damaged = {}, False
    for what in asked:
        if deletes or not damaged:
            keep_traces(traced)
            flip(
                *((path, name) for path in files(caches, "traces") for name in ("before", "points")),
                *((path, "place") for path in files(caches, "columns")),
            )
            damaged = True
        found[what] = answer(traced, what)
    assert found == wanted


@pytest.mark.parametrize("column", ["player", "place", "occurred_at"])
def test_column_cut_while_it_is_open(traced: str, column: str, caches: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that gets shorter under an open ledger is told in a line, and nothing crashes."""
    asks = ASKED["statistics"], ASKED["standings"]
    with ratings_ledger.open(traced) as ledger:
        wanted = [repr(ask(ledger)) for ask in asks]
    with ratings_ledger.open(traced) as ledger:
        ledger.at().with_ladder("anna", "elo")  # the columns are open, and not yet read
        for path in files(caches, "columns"):
            os.truncate(path, find_column_span(path, column)[0] + 8)
        with caplog.at_level(logging.WARNING):
            assert [repr(ask(ledger)) for ask in asks] == wanted
    assert ["is not used" in line for line in caplog.messages] == [True]


def test_writes_copy_nothing_of_the_first_part_of_a_trace(traced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Games and corrections at the end of a kept trace leave its long first part as it is, however many they are."""
    joined = list[bool]()
    join_parts = trace._join_parts

    def join(parts: Sequence[Trace]) -> Trace:
        joined.append(parts[0].earlier is None)
        return join_parts(parts)

    monkeypatch.setattr(trace, "_join_parts", join)
    reversed_places = [{"player": player, "place": place} for place, player in enumerate(("ben", "anna"), 1)]
    writer = open_ledger(traced)
    with ratings_ledger.open(traced) as ledger:
        ledger.at().standings("elo")
        for number in range(GAMES, GAMES + trace.PARTS_MAX + 4):
            enter(writer, [game(number, "anna", f"new {number % 3}")])
            assert micropoints(ledger) == [(row.player, row.points) for row in uncached(writer, "elo")]
        for places in (reversed_places, [*reversed(reversed_places)]):
            data = {"game": "catan", "game_id": "g28", "participants": places}
            enter(writer, [event("game.corrected", instant(60), game_id="g28", game=data, reason="wrong")])
            assert micropoints(ledger) == [(row.player, row.points) for row in uncached(writer, "elo")]
    assert joined
    assert not any(joined)


def test_long_ladder_that_is_read_after_writes_is_replayed_whole_at_most_twice(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long ladder keeps no points before its games at first; once it was read after a write, writes continue it."""
    whole_replays = list[bool]()
    replay = ladders_at.replay

    def replay_whole(stream: Stream, *, keep_history: bool) -> Trace:
        whole_replays.append(keep_history)
        return replay(stream, keep_history=keep_history)

    monkeypatch.setattr(ladders_at, "replay", replay_whole)
    monkeypatch.setattr(ladders_at, "SHORT_GAMES", 0)
    writer = written(store, elo("elo"), *(game(number, "anna", "ben") for number in range(GAMES)))
    with ratings_ledger.open(store) as ledger:
        ledger.at().standings("elo")
        for number in range(GAMES, GAMES + 4):
            enter(writer, [game(number, "anna", f"new {number}")])
            standings = micropoints(ledger)
            assert whole_replays == [False, True]
            assert standings == [(row.player, row.points) for row in uncached(writer, "elo")]
            del whole_replays[2:]  # those of the comparison


def test_rename_lets_a_game_count(store: str) -> None:
    """A game that was left out for a player's account counts once the player has another's, kept trace or not."""
    ledger = written(
        store,
        elo(exclude_accounts=["free"]),
        event("player.registered", "2010-01-01T00:00:00Z", player="yan", account="free"),
        event("player.registered", "2010-01-02T00:00:00Z", player="zoe", account="premium"),
        *(game(number, "anna", "ben") for number in range(GAMES)),
        {**game(10, "yan", "will"), "data": {**game(10, "yan", "will")["data"], "game_id": "left-out"}},
    )
    assert {row.player for row in Snapshot(ledger).standings("elo").rows} == {"anna", "ben"}
    Snapshot(ledger).history("elo", "anna")
    enter(ledger, [event("player.renamed", instant(500), player="yan", new_player="zoe")])
    rows = Snapshot(ledger).standings("elo").rows
    assert {row.player for row in rows} == {"anna", "ben", "zoe", "will"}
    assert [(row.player, row.games) for row in rows] == [(row.player, row.games) for row in uncached(ledger, "elo")]


@pytest.mark.slow_cases
def test_clock_after_a_kept_trace(store: str) -> None:
    """A clock that comes after its game was counted changes what the game gives."""
    galactic = tomllib.loads((SHIPPED / "galactic-points-1.toml").read_text())
    galactic["effective_from"] = str(galactic["effective_from"])
    games = [game(number, "anna", "ben", name="galactic-magnate") for number in range(GAMES)]
    ledger = written(store, event("ruleset.published", "2010-01-01T00:00:00Z", **galactic), *games)
    before = Snapshot(ledger).standings("galactic-points").rows
    Snapshot(ledger).history("galactic-points", "anna")
    late = [
        event("clock.started", instant(28), game_id="g28", at=0, players=["anna", "ben"]),
        event("clock.stopped", instant(28), game_id="g28", at=900_000),
    ]
    for more in (late, [void("g27")]):
        assert enter(ledger, more).rejected == []
        rows = Snapshot(ledger).standings("galactic-points").rows
        points = [(row.player, float(row.points)) for row in rows]
        assert points == [(row.player, float(row.points)) for row in uncached(ledger, "galactic-points")]
        assert points != [(row.player, float(row.points)) for row in before]


def test_restored_ledger_keeps_its_own_trace(tmp_path: Path, caches: Path) -> None:
    """Where a shorter log takes the place of a longer one, as from a backup, the trace of the longer is in nobody's
    way."""
    path = tmp_path / "ledger.db"
    ledger = written(f"sqlite:///{path}", elo(), *(game(number, "anna", "ben") for number in range(10)))
    shutil.copyfile(path, tmp_path / "backup.db")
    enter(ledger, [game(number, "anna", "ben") for number in range(10, GAMES)])
    Snapshot(ledger).history("elo", "anna")
    ledger.close()
    shutil.copyfile(tmp_path / "backup.db", path)
    restored = open_ledger(f"sqlite:///{path}")
    enter(restored, [game(40, "ben", "anna")])
    Snapshot(restored).history("elo", "anna")
    with restored.reading() as connection:
        facts = decode(connection)
    assert find_trace(facts, "elo", facts.rulesets["elo"]) is not None
    assert [name.name.split("-")[1] for name in caches.glob("ratings-ledger/*/traces/*")] == [str(facts.position)]


@pytest.mark.slow
def test_threads_share_an_open_ledger(traced: str) -> None:
    """Threads that ask about ladders, of which only some are read from files, all have their answers."""
    problems: list[BaseException] = []

    def run(ledger: ratings_ledger.Ledger, ask: Callable[[ratings_ledger.Ledger], Any]) -> None:
        try:
            ask(ledger)
        except BaseException as problem:
            problems.append(problem)

    asks = [ASKED["statistics"], ASKED["history"], *(
        lambda ledger, name=name: ledger.at().standings(name) for name in LADDERS
    )]  # fmt: skip
    for _ in range(20):
        with ratings_ledger.open(traced) as ledger:
            threads = [Thread(target=run, args=(ledger, ask)) for ask in asks]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert problems == []


@pytest.mark.slow
def test_open_ledger_keeps_a_bounded_number_of_answers(traced: str) -> None:
    """Questions about many instants leave only the last of them in memory, and few file handles open."""
    with ratings_ledger.open(traced) as ledger:
        handles = []
        for _ in range(2):
            for hour in range(3 * ladders_at.AS_OF_MAX):
                ledger.at(as_of=instant(hour)).standings("elo")
            for position in range(5, GAMES):
                ledger.compare(ledger.at(known_at=position), ledger.at())
            gc.collect()
            handles.append(len(os.listdir("/proc/self/fd")))
        kept = [ladders for there in ledger._cache._by_position.values() for ladders in there.values()]
    assert 0 < max(len(ladders._by_as_of) for ladders in kept) <= ladders_at.AS_OF_MAX
    assert handles[1] <= handles[0]
