"""What the fault tests share: ledgers with some games in them, forked processes, what a plain reader sees."""

import fcntl
import os
import signal
import sqlite3
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from fractions import Fraction
from typing import Any, NoReturn

import psycopg
from builders import draft, event, game, game_data
from sqlalchemy import make_url

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.published_lists import compute_digest
from ratings_ledger.ledger.events.records import EventRow, build_record, chain_hash, leaf_hash
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.store import postgres, sqlite
from ratings_ledger.ledger.store.appending import AppendResult, append
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.verification import Finding, verify_log

COLUMNS = ", ".join(EventRow._fields)
# those of games of 3 to 8 players: all, 3-4, 5-6, 7-8
LADDERS = 4
PLAYERS = ("anna", "ben", "cleo", "dora", "emil", "frida", "gero", "hanna")


def game_event(number: int | str, size: int = 4) -> dict[str, Any]:
    """A game `g-NUMBER` as an event that can be imported."""
    return game(f"g-{number}", *PLAYERS[:size], at="2010-03-05T19:30:00Z", game="club-catan", group="basic")


def numbered(number: int | str, size: int = 4) -> Draft:
    """The draft of a game `g-NUMBER`."""
    return draft(game_event(number, size))


def decision(type_name: str, event_id: str | None = None, at: str = "2010-03-06T12:00:00Z", **data: Any) -> Draft:
    """The draft of an event that puts something right, with a reason where one is needed."""
    if type_name.startswith(("game.", "event.", "points.")):
        data = {"reason": "as the referee says", **data}
    return draft(event(type_name, at, event_id, **data))


def corrected(number: int | str, *players: str, reason: str = "wrong way round") -> Draft:
    """The draft of a correction of a game `g-NUMBER`: these players in the order of their places."""
    given = game_data(f"g-{number}", *players, game="club-catan", group="basic")
    return decision("game.corrected", game_id=f"g-{number}", reason=reason, game=given)


def append_games(url: str, drafts: Sequence[Draft]) -> AppendResult:
    """Append to the ledger as one batch."""
    return append(open_ledger(url), drafts, by="test", clock=clock.now)


def findings(url: str) -> list[Finding]:
    """What `verify` says about the log."""
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        return list(verify_log(ledger, connection))


def plain_connection(url: str) -> sqlite3.Connection | psycopg.Connection:
    """A connection as another program would open it: without our settings, the protective ones switched off."""
    if url.startswith("postgresql"):
        return psycopg.connect(url, autocommit=True)
    connection = sqlite3.connect(str(make_url(url).database), isolation_level=None)
    for pragma in ("foreign_keys = OFF", "recursive_triggers = OFF", "trusted_schema = ON", "synchronous = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def forged(url: str, event: int | str | Draft = "new", supersedes: str | None = None, **changes: Any) -> dict[str, Any]:
    """The columns of an event that would continue the log honestly, apart from the `changes`."""
    with open_ledger(url).reading() as connection:
        before = head(connection)
    position = changes.get("position", before.position + 1)
    written = event if isinstance(event, Draft) else numbered(event)
    record = build_record(written, position, before.recorded_at, "mallory", supersedes)
    leaf = leaf_hash(record)
    row = EventRow(
        position, written.event_id, written.type, written.schema_version, written.subject, written.occurred_at,
        before.recorded_at, "mallory", supersedes, record, leaf, chain_hash(before.chain_hash, leaf),
    )  # fmt: skip
    return {**row._asdict(), **changes}


def execute(url: str, statement: str, row: dict[str, Any] | None = None) -> int:
    """Run a statement on a plain connection; `VALUES` stands for the row. Gives the number of rows that it touched."""
    mark = "%s" if url.startswith("postgresql") else "?"
    statement = statement.replace("VALUES", f"({COLUMNS}) VALUES ({', '.join([mark] * len(EventRow._fields))})")
    with closing(plain_connection(url)) as connection:
        return connection.execute(statement, tuple(row.values()) if row else ()).rowcount


def fork(work: Callable[..., object], *arguments: object) -> int:
    """Run a function in a child process that shares nothing with this one but the files; gives its process id."""
    with warnings.catch_warnings():
        # newer Pythons warn of threads; those of the test runner take no lock that a child needs
        warnings.simplefilter("ignore", DeprecationWarning)
        # a child that is interrupted at once must not go on as a second test runner
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        child = os.fork()
    if child == 0:
        _run_and_exit(work, arguments, before)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child


def _run_and_exit(
    work: Callable[..., object], arguments: tuple[object, ...], heard: set[signal.Signals | int]
) -> NoReturn:  # fmt: skip
    status = 70
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)
        result = work(*arguments)
        status = result if type(result) is int else 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def wait_for(children: Sequence[int]) -> list[int]:
    """The exit codes of these children, minus the signal for those that one ended."""
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def wait_until(happened: Callable[[], bool], seconds: float = 30) -> None:
    """Return when something has happened. Fails after so many seconds."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)


# the stored standings as another program sees them
SEEN = """SELECT l.ladder, l.ruleset, l.position, l.digest, s.rank, s.player, s.points_units, s.scale, s.games,
  s.qualified, s.gold, s.places
FROM live_ladders l LEFT JOIN live_standings s ON s.ladder = l.ladder ORDER BY l.ladder, s.ordinal"""


def assert_whole(rows: list[tuple[Any, ...]]) -> int | None:
    """That what somebody sees by `SEEN` is one generation: ladders of one position, rows of which each has its digest.

    Gives the position.
    """
    ladders: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for *ladder, rank, player, units, scale, games, qualified, gold, places in rows:
        points = str(Fraction(units, scale))
        row = {"rank": rank, "player": player, "points": points, "games": games, "qualified": bool(qualified)}
        row |= {} if gold is None else {"gold": gold}
        row |= {} if places is None else {"places": [int(place) for place in places.split(",")]}
        ladders.setdefault(tuple(ladder), []).append(row)
    assert [compute_digest(ruleset, found) for (_, ruleset, _, _), found in ladders.items()] == [
        key[3] for key in ladders
    ]
    assert len(ladders) in (0, LADDERS)
    positions = {position for _, _, position, _ in ladders}
    assert len(positions) == min(1, len(ladders))
    return max(positions, default=None)


def lose(url: str) -> int:
    """Take the lock of rebuilds from whoever holds it, as a failover, a pooler or a neighbour would; a lock on a file
    from this process. Gives how many held it."""
    if url.startswith("sqlite"):
        held = list(sqlite._locked_files)
        for key in held:
            fcntl.flock(sqlite._descriptors[key], fcntl.LOCK_UN)
            sqlite._locked_files.discard(key)
        return len(held)
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND ((classid::bigint << 32) | objid::bigint) = %s",
            (postgres.POSTGRES_REBUILD_LOCK,),
        ).fetchone()
    return int(ended[0]) if ended else 0
