"""Helpers for the fault tests: drafts of games, forked processes, and connections that bypass the program."""

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
from builders import build_draft, build_event, build_game, build_game_data
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
# the ladders of games of 3 to 8 players: all, 3-4, 5-6, 7-8
LADDER_COUNT = 4
PLAYERS = ("anna", "ben", "cleo", "dora", "emil", "frida", "gero", "hanna")


def build_game_event(number: int | str, size: int = 4) -> dict[str, Any]:
    """Return a game `g-NUMBER` as an event that can be imported."""
    return build_game(f"g-{number}", *PLAYERS[:size], at="2010-03-05T19:30:00Z", game="club-catan", group="basic")


def build_numbered_game(number: int | str, size: int = 4) -> Draft:
    """Return the draft of a game `g-NUMBER`."""
    return build_draft(build_game_event(number, size))


def build_decision(type_name: str, event_id: str | None = None, at: str = "2010-03-06T12:00:00Z", **data: Any) -> Draft:
    """Return the draft of a decision, with a reason if its type needs one."""
    if type_name.startswith(("game.", "event.", "points.")):
        data = {"reason": "as the referee says", **data}
    return build_draft(build_event(type_name, at, event_id, **data))


def build_correction(number: int | str, *players: str, reason: str = "wrong way round") -> Draft:
    """Return the draft of a correction of game `g-NUMBER`, with these players in the order of their places."""
    game = build_game_data(f"g-{number}", *players, game="club-catan", group="basic")
    return build_decision("game.corrected", game_id=f"g-{number}", reason=reason, game=game)


def append_games(url: str, drafts: Sequence[Draft]) -> AppendResult:
    """Append drafts to the ledger in one transaction, without the checks of an import."""
    return append(open_ledger(url), drafts, by="test", clock=clock.now)


def list_findings(url: str) -> list[Finding]:
    """Return the findings of `verify` about the log."""
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        return list(verify_log(ledger, connection))


def open_plain_connection(url: str) -> sqlite3.Connection | psycopg.Connection:
    """Open a connection as another program would: without our settings, and with the protective ones off."""
    if url.startswith("postgresql"):
        return psycopg.connect(url, autocommit=True)
    connection = sqlite3.connect(str(make_url(url).database), isolation_level=None)
    for pragma in ("foreign_keys = OFF", "recursive_triggers = OFF", "trusted_schema = ON", "synchronous = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def build_next_row(
    url: str, event: int | str | Draft = "new", supersedes: str | None = None, **changes: Any
) -> dict[str, Any]:
    """Return the columns of an event that would continue the log correctly, apart from the `changes`."""
    with open_ledger(url).reading() as connection:
        last_head = head(connection)
    position = changes.get("position", last_head.position + 1)
    draft = event if isinstance(event, Draft) else build_numbered_game(event)
    record = build_record(draft, position, last_head.recorded_at, "mallory", supersedes)
    leaf = leaf_hash(record)
    row = EventRow(
        position, draft.event_id, draft.type, draft.schema_version, draft.subject, draft.occurred_at,
        last_head.recorded_at, "mallory", supersedes, record, leaf, chain_hash(last_head.chain_hash, leaf),
    )  # fmt: skip
    return {**row._asdict(), **changes}


def execute_plainly(url: str, statement: str, row: dict[str, Any] | None = None) -> int:
    """Run a statement on a plain connection and return the number of affected rows; `VALUES` stands for the row."""
    mark = "%s" if url.startswith("postgresql") else "?"
    statement = statement.replace("VALUES", f"({COLUMNS}) VALUES ({', '.join([mark] * len(EventRow._fields))})")
    with closing(open_plain_connection(url)) as connection:
        return connection.execute(statement, tuple(row.values()) if row else ()).rowcount


def fork_child(work: Callable[..., object], *arguments: object) -> int:
    """Run a function in a child process that shares only files with this one; return its process id."""
    with warnings.catch_warnings():
        # newer Pythons warn about threads; the test runner's threads take no lock that a child needs
        warnings.simplefilter("ignore", DeprecationWarning)
        # a child that is interrupted at once must not continue as a second test runner
        earlier_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        child = os.fork()
    if child == 0:
        _run_and_exit(work, arguments, earlier_mask)
    signal.pthread_sigmask(signal.SIG_SETMASK, earlier_mask)
    return child


def _run_and_exit(
    work: Callable[..., object], arguments: tuple[object, ...], signal_mask: set[signal.Signals | int]
) -> NoReturn:
    status = 70
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, signal_mask)
        result = work(*arguments)
        status = result if type(result) is int else 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def wait_for_exits(children: Sequence[int]) -> list[int]:
    """Wait for these children and return their exit codes; minus the signal if one ended the child."""
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def wait_until(is_done: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until a condition is true; fail after this many seconds."""
    end = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < end, f"not done within {seconds} seconds"
        time.sleep(0.002)


# the stored standings as another program sees them
STANDINGS_QUERY = """
SELECT l.ladder, l.ruleset, l.position, l.digest, s.rank, s.player, s.points_units, s.scale, s.games,
  s.qualified, s.gold, s.places
FROM live_ladders l LEFT JOIN live_standings s ON s.ladder = l.ladder ORDER BY l.ladder, s.ordinal"""


def read_stored_rows(url: str) -> list[tuple[Any, ...]]:
    """Return the stored standings as another program sees them."""
    with closing(open_plain_connection(url)) as connection:
        return list(connection.execute(STANDINGS_QUERY).fetchall())


def check_generation(rows: list[tuple[Any, ...]]) -> int | None:
    """Check that rows of `STANDINGS_QUERY` belong to one generation, and return its position.

    The ladders of a generation have the same position, and the rows of each ladder have its digest.
    """
    ladders: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for *ladder, rank, player, units, scale, games, qualified, gold, places in rows:
        points = str(Fraction(units, scale))
        row = {"rank": rank, "player": player, "points": points, "games": games, "qualified": bool(qualified)}
        row |= {} if gold is None else {"gold": gold}
        row |= {} if places is None else {"places": [int(place) for place in places.split(",")]}
        ladders.setdefault(tuple(ladder), []).append(row)
    for (_, ruleset, _, digest), ladder_rows in ladders.items():
        assert compute_digest(ruleset, ladder_rows) == digest
    assert len(ladders) in (0, LADDER_COUNT)
    positions = {position for _, _, position, _ in ladders}
    assert len(positions) == min(1, len(ladders))
    return max(positions, default=None)


def take_rebuild_lock(url: str) -> int:
    """Take the lock of rebuilds away from its holder, as a failover, a pooler or another client would.

    In SQLite, this releases the locks of this process. Return the number of locks that were held.
    """
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
