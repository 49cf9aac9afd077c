"""Connections of a ledger that is kept open: they are reused, and a forked process inherits none."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from ledgers import create_ledger
from sqlalchemy import event

import ratings_ledger as rl
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
    with ledger.borrow_driver():
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


@pytest.mark.parametrize("appends", [False, True], ids=["read", "append"])
def test_replaced_file_is_opened_anew(appends: bool, tmp_path: Path) -> None:
    """An open ledger whose file has been replaced by a backup reads and appends in the new file."""
    path, backup = tmp_path / "ratings.db", tmp_path / "backup.db"
    for file in (path, backup):
        rl.create(file, rulesets=["elo-chess"]).close()
    with rl.open(path) as ledger:
        participants = [{"player": "anna", "place": 1}, {"player": "ben", "place": 2}]
        game = {"game_id": "g-1", "game": "chess", "participants": participants}
        assert ledger.propose(game, by="mira", new_names="accept").commit().position == 2
        assert count_open_files(path) > 0
        backup.replace(path)
        if appends:
            assert ledger.propose(game, by="mira", new_names="accept").commit().position == 2
        assert ledger.head.position == 1 + appends
        assert max((row.games for row in ledger.at().ladders().rows), default=0) == appends
    with rl.open(path) as reopened:
        assert reopened.head.position == 1 + appends


def test_appends_go_to_the_new_file(tmp_path: Path) -> None:
    """The connection that single appends keep outside the pool is opened anew, too, after its file is replaced."""
    for name in ("ratings.db", "backup.db"):
        rl.create(tmp_path / name).close()
    ledger = open_ledger(str(tmp_path / "ratings.db"), keep_open=True)
    with ledger.borrow_driver() as first:
        pass
    with ledger.borrow_driver() as second:
        assert second is first
    (tmp_path / "backup.db").replace(tmp_path / "ratings.db")
    with ledger.borrow_driver() as third:
        assert third is not first
        assert third.execute("SELECT count(*) FROM events").fetchone() == (0,)
    ledger.close()


def test_deleted_file_is_noticed(tmp_path: Path) -> None:
    """A ledger whose file has been deleted answers with an error, not from the deleted file."""
    rl.create(tmp_path / "ratings.db").close()
    with rl.open(tmp_path / "ratings.db") as ledger:
        assert ledger.head.position == 0
        (tmp_path / "ratings.db").unlink()
        with pytest.raises(rl.StoreUnavailable):
            _ = ledger.head


def test_many_threads_read_at_once(tmp_path: Path) -> None:
    """No thread waits for the connection of another one; afterwards only a few connections stay open."""
    rl.create(tmp_path / "ratings.db").close()
    barrier = Barrier(40, timeout=60)
    with rl.open(tmp_path / "ratings.db") as ledger, ThreadPoolExecutor(40) as threads:

        def read_while_all_read() -> int:
            with ledger.at().hold_connection():
                barrier.wait()
                return ledger.head.position

        assert {future.result() for future in [threads.submit(read_while_all_read) for _ in range(40)]} == {0}
        assert 0 < count_open_files(tmp_path / "ratings.db") <= 6
