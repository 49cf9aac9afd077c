"""Connections of a ledger that is kept open: they are reused, and a forked process inherits none."""

import os
from pathlib import Path

import pytest
from ledgers import create_ledger
from sqlalchemy import event

from ratings_ledger import NoLedger
from ratings_ledger.ledger.processes.forking import run_forked
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger


def count_open_files(path: Path) -> int:
    """Return how many descriptors of a file this process has open."""
    names = (os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd"))
    return sum(os.path.realpath(name) == str(path) for name in names)


def test_reads_and_appends_share_a_connection(tmp_path: Path) -> None:
    """A ledger that is kept open reads and appends through one connection, which is closed with the ledger."""
    create_ledger(url := f"sqlite:///{tmp_path / 'ratings.db'}")
    ledger, new_connections = open_ledger(url, keep_open=True), []
    event.listen(ledger.engine, "connect", lambda *_: new_connections.append(1))
    for _ in range(3):
        with ledger.reading() as connection:
            head(connection)
        with ledger.writing():
            pass
    assert (new_connections, count_open_files(tmp_path / "ratings.db")) == ([], 1)
    ledger.close()
    assert count_open_files(tmp_path / "ratings.db") == 0


def test_forked_process_inherits_no_connection(tmp_path: Path) -> None:
    """A process that is forked while a ledger is kept open inherits none of its connections."""
    create_ledger(url := f"sqlite:///{tmp_path / 'ratings.db'}")
    ledger = open_ledger(url, keep_open=True)
    with ledger.driving():
        pass
    with ledger.reading() as connection:
        head(connection)
    assert count_open_files(tmp_path / "ratings.db") == 2
    (inherited,) = run_forked(
        lambda _: str(count_open_files(tmp_path / "ratings.db")).encode(), 1, 1, closes_files=False
    )
    assert inherited == b"0"
    with ledger.reading() as connection:
        assert head(connection).position == 0
    ledger.close()


def test_connection_returned_after_close_is_closed(tmp_path: Path) -> None:
    """A connection that is in use while its ledger is closed is closed when it is returned to the pool."""
    create_ledger(url := f"sqlite:///{tmp_path / 'ratings.db'}")
    ledger = open_ledger(url, keep_open=True)
    with ledger.reading() as connection:
        ledger.close()
        assert (head(connection).position, count_open_files(tmp_path / "ratings.db")) == (0, 1)
    assert count_open_files(tmp_path / "ratings.db") == 0


def test_connection_returned_after_release_is_closed(tmp_path: Path) -> None:
    """A connection that is in use while the others are released stays open until it is returned to the pool."""
    create_ledger(url := f"sqlite:///{tmp_path / 'ratings.db'}")
    ledger = open_ledger(url, keep_open=True)
    with ledger.reading() as connection:
        ledger.release()
        assert (head(connection).position, count_open_files(tmp_path / "ratings.db")) == (0, 1)
    assert count_open_files(tmp_path / "ratings.db") == 0
    with ledger.reading() as connection:
        assert head(connection).position == 0
    ledger.close()


def test_refused_ledger_leaves_no_connection(tmp_path: Path) -> None:
    """A file without a ledger is refused and closed."""
    (tmp_path / "ratings.db").touch()
    with pytest.raises(NoLedger):
        open_ledger(f"sqlite:///{tmp_path / 'ratings.db'}", keep_open=True)
    assert count_open_files(tmp_path / "ratings.db") == 0
