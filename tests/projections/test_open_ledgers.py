"""An open ledger that answers from cached columns and traces: each answer is that of the log, also if files are
damaged, if a rename or a clock changes which games count, and if threads ask at once.
"""

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
QUERIES: dict[str, Callable[[ratings_ledger.Ledger], Any]] = {
    "standings": lambda ledger: ledger.at().standings("elo"),
    "standings as of": lambda ledger: ledger.at(as_of=build_instant(20)).standings("elo"),
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
    "preview": lambda ledger: ledger.propose(build_void("g3"), "mira").impact(),
}  # fmt: skip


def build_instant(hour: int) -> str:
    """Return an instant of February 2010."""
    return f"2010-02-{1 + hour // 24:02d}T{hour % 24:02d}:00:00Z"


def build_event(kind: str, occurred_at: str, **data: Any) -> dict[str, Any]:
    """Return an event."""
    return {"type": kind, "occurred_at": occurred_at, "data": data}


def build_game(number: int, *players: str, name: str = "catan") -> dict[str, Any]:
    """Return a game whose players are in the order of their places."""
    places = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    return build_event("game.recorded", build_instant(number), game_id=f"g{number}", game=name, participants=places)


def build_elo(name: str = "elo", **scope: list[str]) -> dict[str, Any]:
    """Return a ruleset of Elo."""
    params = {"k_per_pair": 8, "start": 1000, "scale": 400, "rounding": "pair", "min_games": 0}
    return build_event(
        "ruleset.published", "2010-01-01T00:00:00Z", id=name, version="1", rule="pairwise-elo/1", params=params,
        scope={"game": ["catan"], **scope}, effective_from="1900-01-01",
    )  # fmt: skip


def build_void(game_id: str) -> dict[str, Any]:
    """Return the void of a game."""
    return build_event("game.voided", "2024-01-01T00:00:00Z", game_id=game_id, reason="never played")


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder; columns and traces of even the shortest history are cached and continued."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(trace_cache, "TRACED_GAMES", 1)
    monkeypatch.setattr(continuation, "GAMES_PER_REPLAYED_GAME", 0)
    set_paths(monkeypatch, scanned=False, compiled=False)
    return tmp_path / "caches"


def make_ledger(store: str, *events: dict[str, Any]) -> Ledger:
    """Return a ledger with these events."""
    upgrade(store)
    ledger = open_ledger(store)
    assert enter(ledger, [*events]).rejected == []
    return ledger


@pytest.fixture
def traced_url(store: str) -> str:
    """The URL of a ledger whose three ladders have cached traces."""
    make_ledger(store, *map(build_elo, LADDERS), *(build_game(number, "anna", "ben") for number in range(GAMES)))
    cache_traces(store)
    return store


def cache_traces(url: str) -> None:
    """Let the three ladders have cached traces."""
    with ratings_ledger.open(url) as ledger:
        for ladder in LADDERS:
            ledger.at().history(ladder, "anna")


def flip_columns(*columns: tuple[Path, str]) -> None:
    """Flip a bit in columns of files, also where they are mapped."""
    gc.collect()  # open files were checked before
    gc.freeze()  # the next collection need not look at present objects
    for path, name in columns:
        content, span = bytearray(path.read_bytes()), find_column_span(path, name)
        content[sum(span) // 2] ^= 4
        path.write_bytes(content)


def list_files(caches: Path, kind: str) -> list[Path]:
    """Return the files with columns, or with traces."""
    paths = sorted(caches.glob(f"ratings-ledger/*/{kind}/*-*-*"))
    assert paths
    return paths


def rank_uncached(ledger: Ledger, ladder: str) -> Any:
    """Return the rows of a ladder by a replay of the log from the first event."""
    with ledger.reading() as connection:
        return Ladders(decode(connection, cached=False)).standings(ladder).rows


def micropoints(ledger: ratings_ledger.Ledger) -> list[tuple[str, int]]:
    """Return the players of an open ledger, and their points in millionths, by rank."""
    return [(row.player, int(row.points * 1_000_000)) for row in ledger.at().standings("elo").rows]


def answer_all(url: str) -> dict[str, str]:
    """Return the answer to each query."""
    return {name: answer_query(url, name) for name in QUERIES}


def answer_query(url: str, name: str) -> str:
    """Return the answer to a query by an open ledger of its own."""
    with ratings_ledger.open(url) as ledger:
        return repr(QUERIES[name](ledger))


@pytest.mark.slow
def test_cached_answers_equal_uncached_answers(
    traced_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every query has the same answer with columns and traces in files as without a cache."""
    cached_answers = answer_all(traced_url)
    monkeypatch.setattr(decoding, "CACHED_EVENTS", NEVER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    assert answer_all(traced_url) == cached_answers
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
@pytest.mark.parametrize("deletes", [True, False])
def test_damaged_trace_and_column_are_both_detected(
    traced_url: str, deletes: bool, monkeypatch: pytest.MonkeyPatch, caches: Path, store_kind: str, at_length: bool
) -> None:
    """With a damaged trace and a damaged column, a second try has the answer, also if no file can be deleted."""
    # the cache is the same above every store
    names = [*QUERIES] if at_length or store_kind == "sqlite" else [*QUERIES][::4]
    expected = {query: answer_query(traced_url, query) for query in names}
    if not deletes:
        monkeypatch.setattr(column_files, "delete_file", lambda path: None)
    results, damaged = {}, False
    for query in names:
        if deletes or not damaged:
            cache_traces(traced_url)
            flip_columns(
                *((path, name) for path in list_files(caches, "traces") for name in ("before", "points")),
                *((path, "place") for path in list_files(caches, "columns")),
            )
            damaged = True
        results[query] = answer_query(traced_url, query)
    assert results == expected


@pytest.mark.parametrize("column", ["player", "place", "occurred_at"])
def test_column_cut_while_open_is_reported(
    traced_url: str, column: str, caches: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that is cut off under an open ledger is reported in one warning, and the answers are correct."""
    queries = QUERIES["statistics"], QUERIES["standings"]
    with ratings_ledger.open(traced_url) as ledger:
        expected = [repr(query(ledger)) for query in queries]
    with ratings_ledger.open(traced_url) as ledger:
        ledger.at().with_ladder("anna", "elo")  # the columns are open, and not yet read
        for path in list_files(caches, "columns"):
            os.truncate(path, find_column_span(path, column)[0] + 8)
        with caplog.at_level(logging.WARNING):
            assert [repr(query(ledger)) for query in queries] == expected
    assert ["is not used" in line for line in caplog.messages] == [True]


def test_writes_do_not_copy_first_part_of_a_trace(traced_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of games and corrections at the end of a cached trace leave its long first part uncopied."""
    first_part_joined = list[bool]()
    join_parts = trace._join_parts

    def join_and_record(parts: Sequence[Trace]) -> Trace:
        first_part_joined.append(parts[0].earlier is None)
        return join_parts(parts)

    monkeypatch.setattr(trace, "_join_parts", join_and_record)
    reversed_places = [{"player": player, "place": place} for place, player in enumerate(("ben", "anna"), 1)]
    writer = open_ledger(traced_url)
    with ratings_ledger.open(traced_url) as ledger:
        ledger.at().standings("elo")
        for number in range(GAMES, GAMES + trace.PARTS_MAX + 4):
            enter(writer, [build_game(number, "anna", f"new {number % 3}")])
            assert micropoints(ledger) == [(row.player, row.points) for row in rank_uncached(writer, "elo")]
        for places in (reversed_places, [*reversed(reversed_places)]):
            data = {"game": "catan", "game_id": "g28", "participants": places}
            enter(writer, [build_event("game.corrected", build_instant(60), game_id="g28", game=data, reason="wrong")])
            assert micropoints(ledger) == [(row.player, row.points) for row in rank_uncached(writer, "elo")]
    assert first_part_joined
    assert not any(first_part_joined)


def test_long_ladder_is_replayed_at_most_twice(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long ladder keeps no points before games at first; after one read that follows a write, writes continue it."""
    whole_replays = list[bool]()
    replay = ladders_at.replay

    def replay_whole(stream: Stream, *, keep_history: bool) -> Trace:
        whole_replays.append(keep_history)
        return replay(stream, keep_history=keep_history)

    monkeypatch.setattr(ladders_at, "replay", replay_whole)
    monkeypatch.setattr(ladders_at, "SHORT_LADDER_GAMES", 0)
    writer = make_ledger(store, build_elo("elo"), *(build_game(number, "anna", "ben") for number in range(GAMES)))
    with ratings_ledger.open(store) as ledger:
        ledger.at().standings("elo")
        for number in range(GAMES, GAMES + 4):
            enter(writer, [build_game(number, "anna", f"new {number}")])
            standings = micropoints(ledger)
            assert whole_replays == [False, True]
            assert standings == [(row.player, row.points) for row in rank_uncached(writer, "elo")]
            del whole_replays[2:]  # the replays of the comparison


def test_rename_lets_a_game_count(store: str) -> None:
    """A game left out for a player's free account counts after a merge with a premium player, with or without a cached
    trace.
    """
    ledger = make_ledger(
        store,
        build_elo(exclude_accounts=["free"]),
        build_event("player.registered", "2010-01-01T00:00:00Z", player="yan", account="free"),
        build_event("player.registered", "2010-01-02T00:00:00Z", player="zoe", account="premium"),
        *(build_game(number, "anna", "ben") for number in range(GAMES)),
        {**build_game(10, "yan", "will"), "data": {**build_game(10, "yan", "will")["data"], "game_id": "left-out"}},
    )
    assert {row.player for row in Snapshot(ledger).standings("elo").rows} == {"anna", "ben"}
    Snapshot(ledger).history("elo", "anna")
    enter(ledger, [build_event("player.renamed", build_instant(500), player="yan", new_player="zoe")])
    rows = Snapshot(ledger).standings("elo").rows
    assert {row.player for row in rows} == {"anna", "ben", "zoe", "will"}
    assert [(row.player, row.games) for row in rows] == [
        (row.player, row.games) for row in rank_uncached(ledger, "elo")
    ]


@pytest.mark.slow_cases
def test_clock_recorded_after_cached_trace_changes_points(store: str) -> None:
    """A clock that is recorded after its game was counted changes the points of the game."""
    galactic = tomllib.loads((SHIPPED / "galactic-points-1.toml").read_text())
    galactic["effective_from"] = str(galactic["effective_from"])
    games = [build_game(number, "anna", "ben", name="galactic-magnate") for number in range(GAMES)]
    ledger = make_ledger(store, build_event("ruleset.published", "2010-01-01T00:00:00Z", **galactic), *games)
    before = Snapshot(ledger).standings("galactic-points").rows
    Snapshot(ledger).history("galactic-points", "anna")
    clock_events = [
        build_event("clock.started", build_instant(28), game_id="g28", at=0, players=["anna", "ben"]),
        build_event("clock.stopped", build_instant(28), game_id="g28", at=900_000),
    ]
    for events in (clock_events, [build_void("g27")]):
        assert enter(ledger, events).rejected == []
        rows = Snapshot(ledger).standings("galactic-points").rows
        points = [(row.player, float(row.points)) for row in rows]
        assert points == [(row.player, float(row.points)) for row in rank_uncached(ledger, "galactic-points")]
        assert points != [(row.player, float(row.points)) for row in before]


def test_restored_ledger_replaces_the_longer_trace(tmp_path: Path, caches: Path) -> None:
    """After a restore of a shorter log, the ledger caches its own trace in place of that of the longer log."""
    path = tmp_path / "ledger.db"
    ledger = make_ledger(f"sqlite:///{path}", build_elo(), *(build_game(number, "anna", "ben") for number in range(10)))
    shutil.copyfile(path, tmp_path / "backup.db")
    enter(ledger, [build_game(number, "anna", "ben") for number in range(10, GAMES)])
    Snapshot(ledger).history("elo", "anna")
    ledger.close()
    shutil.copyfile(tmp_path / "backup.db", path)
    restored = open_ledger(f"sqlite:///{path}")
    enter(restored, [build_game(40, "ben", "anna")])
    Snapshot(restored).history("elo", "anna")
    with restored.reading() as connection:
        facts = decode(connection)
    assert find_trace(facts, "elo", facts.rulesets["elo"]) is not None
    assert [name.name.split("-")[1] for name in caches.glob("ratings-ledger/*/traces/*")] == [str(facts.position)]


@pytest.mark.slow
def test_threads_can_query_an_open_ledger(traced_url: str) -> None:
    """Threads that query the ladders of one open ledger, some of them from files, meet no error."""
    problems: list[BaseException] = []

    def run(ledger: ratings_ledger.Ledger, query: Callable[[ratings_ledger.Ledger], Any]) -> None:
        try:
            query(ledger)
        except BaseException as problem:
            problems.append(problem)

    queries = [QUERIES["statistics"], QUERIES["history"], *(
        lambda ledger, name=name: ledger.at().standings(name) for name in LADDERS
    )]  # fmt: skip
    for _ in range(20):
        with ratings_ledger.open(traced_url) as ledger:
            threads = [Thread(target=run, args=(ledger, query)) for query in queries]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert problems == []


@pytest.mark.slow
def test_open_ledger_keeps_a_bounded_number_of_answers(traced_url: str) -> None:
    """After queries at many instants, only the latest ones are in memory, and no more file handles are open."""
    with ratings_ledger.open(traced_url) as ledger:
        handles = []
        for _ in range(2):
            for hour in range(3 * ladders_at.AS_OF_MAX):
                ledger.at(as_of=build_instant(hour)).standings("elo")
            for position in range(5, GAMES):
                ledger.compare(ledger.at(known_at=position), ledger.at())
            gc.collect()
            handles.append(len(os.listdir("/proc/self/fd")))
        cached = [ladders for by_rules in ledger._cache._by_position.values() for ladders in by_rules.values()]
    assert 0 < max(len(ladders._by_as_of) for ladders in cached) <= ladders_at.AS_OF_MAX
    assert handles[1] <= handles[0]
