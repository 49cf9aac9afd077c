"""An open ledger answers from cached columns and traces.

Its answers equal those of a replay of the log, even if files are damaged, if a rename changes which games count, if a
clock changes points, or if several threads query it at once.
"""

import errno
import gc
import logging
import os
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any
from weakref import ReferenceType

import pytest
from cache_files import find_column_span
from histories import enter, load_ranking
from ledgers import create_ledger
from own_rules import find_shipped_text
from paths import NEVER, count_work, set_paths
from thresholds import set_thresholds

import ratings_ledger
from ratings_ledger import Snapshot
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, open_ledger

GAMES = 30
LADDERS = ("elo", "elo-2", "elo-3")
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
    "last positions": lambda ledger: ledger.at().last_positions("elo", ["anna"]),
    "kinds": lambda ledger: ledger.at().kinds_of("anna"),
    "with ladder": lambda ledger: ledger.at().resolve_ladder("anna", "elo"),
}  # fmt: skip


def build_instant(hour: int) -> str:
    """Return the instant of an hour, counted from the start of February 2010."""
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
    """Return the cache folder; columns and traces of even the shortest history are cached and continued."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, traced_games=1, games_per_replayed_game=0)
    set_paths(monkeypatch, scanned=False, compiled=False)
    return tmp_path / "caches"


def make_ledger(store: str, *events: dict[str, Any]) -> Ledger:
    """Return a ledger with these events."""
    create_ledger(store)
    ledger = open_ledger(store)
    assert enter(ledger, [*events]).rejected == []
    return ledger


@pytest.fixture
def traced_url(store: str) -> str:
    """Return the URL of a ledger whose three ladders have cached traces."""
    make_ledger(store, *map(build_elo, LADDERS), *(build_game(number, "anna", "ben") for number in range(GAMES)))
    cache_traces(store)
    return store


def cache_traces(url: str) -> None:
    """Cache the traces of the three ladders by querying them."""
    with ratings_ledger.open(url) as ledger:
        for ladder in LADDERS:
            ledger.at().history(ladder, "anna")


def flip_columns(*columns: tuple[Path, str]) -> None:
    """Flip a bit in columns of files, even of mapped ones."""
    gc.collect()  # close the files of earlier queries, because a block of an open file is checked only once
    gc.freeze()  # spare the next collection the objects that exist now
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
    return load_ranking(ledger, ladder, cached=False).rows


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
    set_thresholds(monkeypatch, cached_events=NEVER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    assert answer_all(traced_url) == cached_answers
    assert not (tmp_path / "none").exists()


def refuse_to_delete(path: Path, missing_ok: bool = False) -> None:
    """Raise the error that deleting a file in a read-only folder raises."""
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


@pytest.mark.slow
@pytest.mark.parametrize("can_delete", [True, False])
def test_damaged_trace_and_column_are_both_detected(
    traced_url: str, can_delete: bool, monkeypatch: pytest.MonkeyPatch, caches: Path, store_kind: str, at_length: bool
) -> None:
    """With damaged traces and columns, the query is retried and answered correctly, even if no file can be deleted."""
    # the cache does not depend on the store, so a sample of the queries is enough for the others
    queries = [*QUERIES] if at_length or store_kind == "sqlite" else [*QUERIES][::4]
    expected = {query: answer_query(traced_url, query) for query in queries}
    if not can_delete:
        monkeypatch.setattr(Path, "unlink", refuse_to_delete)
        monkeypatch.setattr(shutil, "rmtree", lambda path, **options: None)
    results, is_damaged = {}, False
    for query in queries:
        if can_delete or not is_damaged:
            cache_traces(traced_url)
            flip_columns(
                *((path, name) for path in list_files(caches, "traces") for name in ("before", "points")),
                *((path, "place") for path in list_files(caches, "columns")),
            )
            is_damaged = True
        results[query] = answer_query(traced_url, query)
    assert results == expected


def test_damaged_cells_are_detected_when_a_ladder_is_named(store: str, caches: Path) -> None:
    """A ladder is named in full by the only group that has games, even if the column of cells is damaged."""
    ruleset, game = build_elo(), build_game(1, "anna", "ben")
    ruleset["data"]["partition"], game["data"]["group"] = {"by": ["group"]}, "all"
    make_ledger(store, ruleset, *(build_game(number, "anna", "ben") for number in range(2, GAMES)), game)
    with ratings_ledger.open(store) as ledger:
        ledger.at().history("elo", "anna")
    flip_columns(*((path, "cell") for path in list_files(caches, "columns")))
    with ratings_ledger.open(store) as ledger:
        assert ledger.at().full_name("elo") == "elo/all"


@pytest.mark.parametrize("column", ["player", "place", "occurred_at"])
def test_column_cut_while_open_is_reported(
    traced_url: str, column: str, caches: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that is cut off under an open ledger is reported in one warning, and the answers are correct."""
    queries = QUERIES["statistics"], QUERIES["standings"]
    with ratings_ledger.open(traced_url) as ledger:
        expected = [repr(query(ledger)) for query in queries]
    with ratings_ledger.open(traced_url) as ledger:
        ledger.at().resolve_ladder("anna", "elo")  # the columns are open, and not yet read
        for path in list_files(caches, "columns"):
            os.truncate(path, find_column_span(path, column)[0] + 8)
        with caplog.at_level(logging.WARNING):
            assert [repr(query(ledger)) for query in queries] == expected
    assert ["is not used" in line for line in caplog.messages] == [True]


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
    """A clock that is recorded after its game was counted changes the points, as a replay of the log does.

    So does a later void.
    """
    galactic = tomllib.loads(find_shipped_text("galactic-points"))
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


def test_restored_ledger_replaces_the_longer_trace(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    (trace,) = list_files(caches, "traces")
    with restored.reading() as connection:
        assert trace.name.split("-")[1] == str(head(connection).position)
    counts = count_work(monkeypatch)
    Snapshot(restored).history("elo", "anna")
    assert counts["unchanged"] == 1


def build_standings_query(ladder: str) -> Callable[[ratings_ledger.Ledger], Any]:
    """Return a query for the standings of a ladder."""
    return lambda ledger: ledger.at().standings(ladder)


@pytest.mark.slow
def test_threads_can_query_an_open_ledger(traced_url: str) -> None:
    """Threads can query one open ledger at once, and each gets the answer that it gets alone."""

    def run(number: int, ledger: ratings_ledger.Ledger, answers: dict[int, str]) -> None:
        try:
            answers[number] = repr(queries[number](ledger))
        except BaseException as problem:
            answers[number] = repr(problem)

    queries = [QUERIES["statistics"], QUERIES["history"], *map(build_standings_query, LADDERS)]
    with ratings_ledger.open(traced_url) as ledger:
        expected = {number: repr(query(ledger)) for number, query in enumerate(queries)}
    for _ in range(20):
        answers: dict[int, str] = {}
        with ratings_ledger.open(traced_url) as ledger:
            threads = [Thread(target=run, args=(number, ledger, answers)) for number in range(len(queries))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert answers == expected


@pytest.mark.slow
def test_open_ledger_keeps_a_bounded_number_of_answers(traced_url: str) -> None:
    """After queries at many instants and positions, only the latest answers are in memory, and few files are open."""
    with ratings_ledger.open(traced_url) as ledger:
        handle_counts, object_counts = [], []
        for number in range(3):
            for hour in range(20):
                ledger.at(as_of=build_instant(20 * number + hour)).standings("elo")
            for position in range(5, GAMES, 2):
                ledger.compare(ledger.at(known_at=position), ledger.at())
            gc.collect()
            handle_counts.append(len(os.listdir("/proc/self/fd")))
            object_counts.append(sum(type(item) is not ReferenceType for item in gc.get_objects()))
    assert handle_counts[2] <= handle_counts[1]
    assert object_counts[2] <= object_counts[1] + 10  # an object kept for each new instant would add 20
