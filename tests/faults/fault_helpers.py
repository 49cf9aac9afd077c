"""What the fault tests share: ledgers with some games in them, forked processes, what a plain reader sees."""

import os
import sqlite3
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import NoReturn

import psycopg
from sqlalchemy import make_url

from ledger import clock
from ledger.appending import Appended, append
from ledger.events import Draft, read_event
from ledger.integrity import Finding, verify_log
from ledger.store import open_ledger, read_records

PLAYERS = ("anna", "ben", "cleo", "dora", "emil", "frida", "gero", "hanna")


def game(number: int | str, size: int = 4) -> Draft:
    """The draft of a game `g-NUMBER`."""
    event = {
        "type": "game.recorded",
        "occurred_at": "2010-03-05T19:30:00Z",
        "data": {
            "game_id": f"g-{number}",
            "game": "club-catan",
            "group": "basic",
            "participants": [{"player": name, "place": place} for place, name in enumerate(PLAYERS[:size], 1)],
        },
    }
    return read_event(event)[0]


def append_games(url: str, drafts: Sequence[Draft]) -> Appended:
    """Append to the ledger as one batch."""
    return append(open_ledger(url), drafts, by="test", clock=clock.now)


def records(url: str) -> dict[int, str]:
    """All records by position, as the program reads them."""
    with open_ledger(url).reading() as connection:
        return {position: record for page in read_records(connection) for position, record in page}


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


def fork(work: Callable[..., object], *arguments: object) -> int:
    """Run a function in a child process that shares nothing with this one but the files; gives its process id."""
    with warnings.catch_warnings():
        # newer Pythons warn of threads; those of the test runner take no lock that a child needs
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _run_and_exit(work, arguments)
    return child


def _run_and_exit(work: Callable[..., object], arguments: tuple[object, ...]) -> NoReturn:
    status = 70
    try:
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
