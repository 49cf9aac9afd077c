"""Connections that stay open: a program that asks again reuses them, and a forked process inherits none."""

import os
from pathlib import Path

import pytest
from ledgers import create_ledger
from sqlalchemy import event

from ratings_ledger import NoLedger
from ratings_ledger.ledger.processes.forking import run_forked
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger


def open_files(path: Path) -> int:
    """How often this process has a file open."""
    names = (os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd"))
    return sum(os.path.realpath(name) == str(path) for name in names)


def test_reads_and_appends_share_a_connection(tmp_path: Path) -> None:
    """One connection serves a ledger that is kept open, and is closed with it."""
    create_ledger(url := f"sqlite:///{tmp_path / 'ratings.db'}")
    ledger, connected = open_ledger(url, keep_open=True), []
    event.listen(ledger.engine, "connect", lambda *_: connected.append(1))
    for _ in range(3):
        with ledger.reading() as connection:
            head(connection)
        with ledger.writing():
            pass
    assert (connected, open_files(tmp_path / "ratings.db")) == ([], 1)
    ledger.close()
    assert open_files(tmp_path / "ratings.db") == 0


def test_forked_process_inherits_no_connection(tmp_path: Path) -> None:
    """A process that is forked while a ledger is kept open has none of its connections."""
    create_ledger(url := f"sqlite:///{tmp_path / 'ratings.db'}")
    ledger = open_ledger(url, keep_open=True)
    with ledger.driving():
        pass
    with ledger.reading() as connection:
        head(connection)
    assert open_files(tmp_path / "ratings.db") == 2
    (inherited,) = run_forked(lambda _: str(open_files(tmp_path / "ratings.db")).encode(), 1, 1, closes_files=False)
    assert inherited == b"0"
    with ledger.reading() as connection:
        assert head(connection).position == 0
    ledger.close()


def test_connection_that_comes_back_late_is_closed(tmp_path: Path) -> None:
    """A connection in use while its ledger is closed, as of an export given up, is closed when it comes back."""
    create_ledger(url := f"sqlite:///{tmp_path / 'ratings.db'}")
    ledger = open_ledger(url, keep_open=True)
    with ledger.reading() as connection:
        ledger.close()
        assert (head(connection).position, open_files(tmp_path / "ratings.db")) == (0, 1)
    assert open_files(tmp_path / "ratings.db") == 0


def test_connection_used_while_others_are_released_is_closed(tmp_path: Path) -> None:
    """A connection in use while a process is forked stays open, and is closed when it comes back: nobody would take it
    from the pool of before."""
    create_ledger(url := f"sqlite:///{tmp_path / 'ratings.db'}")
    ledger = open_ledger(url, keep_open=True)
    with ledger.reading() as connection:
        ledger.release()
        assert (head(connection).position, open_files(tmp_path / "ratings.db")) == (0, 1)
    assert open_files(tmp_path / "ratings.db") == 0
    with ledger.reading() as connection:
        assert head(connection).position == 0
    ledger.close()


def test_refused_ledger_leaves_no_connection(tmp_path: Path) -> None:
    """A file that holds no ledger is refused, and nothing of it stays open."""
    (tmp_path / "ratings.db").touch()
    with pytest.raises(NoLedger):
        open_ledger(f"sqlite:///{tmp_path / 'ratings.db'}", keep_open=True)
    assert open_files(tmp_path / "ratings.db") == 0
