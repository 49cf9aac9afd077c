"""Create, write and read ledgers below the public interface, and set the program's clock."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from ratings_ledger.cli.main import invoke
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.store import log, opening, upgrading
from ratings_ledger.ledger.store.appending import AppendResult, append
from ratings_ledger.ledger.store.migrations import build_config


def create_ledger(name: str) -> str:
    """Create a ledger without events, and return its location."""
    return upgrading.upgrade(name).location


def create_older_store(name: str, revision: str) -> str:
    """Create a store with the schema of an earlier program, and return its location."""
    with open_for_writing(name) as connection:
        command.upgrade(_migrations(connection), revision)
    return name


def downgrade(connection: Connection, revision: str) -> None:
    """Downgrade a store to the schema of an earlier program."""
    command.downgrade(_migrations(connection), revision)


def _migrations(connection: Connection) -> Config:
    config = build_config()
    config.attributes["connection"] = connection
    return config


def run_command(*arguments: object, db: str | None = None) -> int:
    """Run the command line in this process, which may be a forked one, and return its exit code."""
    return invoke([*([] if db is None else ["--db", db]), *map(str, arguments)])


@contextmanager
def open_for_reading(name: str) -> Iterator[Connection]:
    """Provide a connection that reads a store of any schema."""
    with opening.connect(name).reading() as connection:
        yield connection


@contextmanager
def open_for_writing(name: str) -> Iterator[Connection]:
    """Provide a connection that bypasses the program and writes in one transaction."""
    with opening.connect(name, create=True).writing() as connection:
        yield connection


def append_drafts(name: str, *drafts: Draft, by: str = "test") -> AppendResult:
    """Append drafts in one transaction, without the checks of an import."""
    return append(opening.open_ledger(name), drafts, by=by, clock=clock.now)


def read_head(name: str) -> str:
    """Return the head of the log as `POSITION:CHAINHASH`."""
    with opening.open_ledger(name).reading() as connection:
        return str(log.head(connection))


def read_all_records(name: str) -> dict[int, str]:
    """Return all records by position, as the program reads them."""
    with opening.open_ledger(name).reading() as connection:
        return {position: record for page in log.read_records(connection) for position, record in page}


def set_clock(patch: pytest.MonkeyPatch, instant: str | int) -> None:
    """Stop the program's clock at an instant, given as text or in microseconds since 1970."""
    now = instant if isinstance(instant, int) else parse_instant(instant)
    patch.setattr(clock, "now", lambda: now)


def advance_clock(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Put the program's clock forward by this many seconds."""
    before = clock.now
    patch.setattr(clock, "now", lambda: before() + int(seconds * 1_000_000))
