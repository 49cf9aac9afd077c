"""Ledgers as tests need them: created, written to and read below the public interface, and set to a time."""

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
    """Create a ledger without events, and return where it is."""
    return upgrading.upgrade(name).location


def create_older(name: str, revision: str) -> str:
    """Create a store as an earlier program made it, with the schema of then."""
    with writing(name) as connection:
        command.upgrade(_migrations(connection), revision)
    return name


def downgrade(connection: Connection, revision: str) -> None:
    """Take a store back to the schema of an earlier program."""
    command.downgrade(_migrations(connection), revision)


def _migrations(connection: Connection) -> Config:
    config = build_config()
    config.attributes["connection"] = connection
    return config


def run_command(*arguments: object, db: str | None = None) -> int:
    """Run the command line in this process, which may be a forked one, and return its exit code."""
    return invoke([*([] if db is None else ["--db", db]), *map(str, arguments)])


@contextmanager
def reading(name: str) -> Iterator[Connection]:
    """Provide a connection that reads whatever schema the store has."""
    with opening.connect(name).reading() as connection:
        yield connection


@contextmanager
def writing(name: str) -> Iterator[Connection]:
    """Provide a connection that writes past the program, in one transaction."""
    with opening.connect(name, create=True).writing() as connection:
        yield connection


def append_drafts(name: str, *drafts: Draft, by: str = "test") -> AppendResult:
    """Append drafts in one batch, without the checks of an import."""
    return append(opening.open_ledger(name), drafts, by=by, clock=clock.now)


def head(name: str) -> str:
    """Return the head of the log as `POSITION:CHAINHASH`."""
    with opening.open_ledger(name).reading() as connection:
        return str(log.head(connection))


def records(name: str) -> dict[int, str]:
    """Return all records by position, as the program reads them."""
    with opening.open_ledger(name).reading() as connection:
        return {position: record for page in log.read_records(connection) for position, record in page}


def set_clock(patch: pytest.MonkeyPatch, instant: str | int) -> None:
    """Let the program believe that it is this instant, which is text or in microseconds since 1970."""
    now = instant if isinstance(instant, int) else parse_instant(instant)
    patch.setattr(clock, "now", lambda: now)


def advance_clock(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the program's clock be ahead by so many seconds."""
    before = clock.now
    patch.setattr(clock, "now", lambda: before() + int(seconds * 1_000_000))
