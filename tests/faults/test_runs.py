"""Every run of a job is recorded in the ledger or in the state folder, whoever runs it and however it ends."""

import json
import os
import signal
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from fault_helpers import fork_child, wait_for_exits, wait_until
from sqlalchemy import make_url, text
from stores import make_empty_ledger
from thresholds import set_thresholds

from ratings_ledger import AlreadyRunning, StoreUnavailable
from ratings_ledger.ledger.processes.identity import is_process_running, name_this_process
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.runs import Run, find_latest_runs, find_runs_ahead, list_runs, record_run

MINUTE_US, HOUR_US = 60 * 1_000_000, 3_600 * 1_000_000


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the empty folder in which accounts keep state."""
    folder = tmp_path / "state_folder"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


def list_known_runs(ledger: Ledger, now: int = 10**15) -> list[Run]:
    with ledger.reading() as connection:
        return list_runs(ledger, connection, now)


def build_ticking_clock(start: int = 1_000_000) -> Callable[[], int]:
    """Return a clock that advances by one second at each call."""
    now = [start]

    def tick() -> int:
        now[0] += 1_000_000
        return now[0]

    return tick


def count_run_rows(ledger: Ledger) -> int:
    with ledger.reading() as connection:
        return int(connection.execute(text("SELECT count(*) FROM runs")).scalar_one())


def test_successful_run_is_recorded(ledger_url: str) -> None:
    """A run shows as running, and afterwards with its times, result, position, author and details."""
    ledger = open_ledger(ledger_url)
    with record_run(ledger, "backup", build_ticking_clock(), by="mira") as run:
        (running_run,) = list_known_runs(ledger)
        run.position, run.details = 7, {"file": "a.jsonl"}
    (ended_run,) = list_known_runs(ledger)

    assert (running_run.result, running_run.finished_at) == ("running", None)
    assert ended_run[1:8] == ("backup", 2_000_000, 3_000_000, "done", None, 7, "mira")
    assert ended_run.details == {"file": "a.jsonl"}
    assert count_run_rows(ledger) == 1


def test_failed_run_records_its_reason(ledger_url: str) -> None:
    """A failed run records its reason, and the error is passed on.

    An error, an interruption and a run that reports its own failure all count as failures.
    """
    ledger, clock = open_ledger(ledger_url), build_ticking_clock()
    with pytest.raises(StoreUnavailable), record_run(ledger, "backup", clock):
        raise StoreUnavailable("no space left", "no-space")
    with pytest.raises(KeyboardInterrupt), record_run(ledger, "rebuild", clock):
        raise KeyboardInterrupt
    with record_run(ledger, "verify", clock) as run:
        run.fail("2 findings")

    assert [(run.kind, run.result, run.message) for run in list_known_runs(ledger)] == [
        ("verify", "failed", "2 findings"),
        ("rebuild", "failed", "it was interrupted"),
        ("backup", "failed", "no space left"),
    ]


def test_refused_run_is_not_recorded(ledger_url: str) -> None:
    """A run is not recorded if it is refused because another one is running, or if it asks for no trace."""
    ledger = open_ledger(ledger_url)
    with pytest.raises(AlreadyRunning), record_run(ledger, "backup"):
        raise AlreadyRunning("another one runs")
    with record_run(ledger, "rebuild") as run:
        run.no_trace = True
    assert list_known_runs(ledger) == []


def run_without_end(url: str) -> None:
    with record_run(open_ledger(url), "backup"):
        time.sleep(600)


@contextmanager
def start_endless_run(url: str) -> Iterator[int]:
    """Record a run that does not end by itself in another process, and kill it at the end of the block."""
    ledger = open_ledger(url)
    child = fork_child(run_without_end, url)
    try:
        wait_until(lambda: any(run.result == "running" for run in list_known_runs(ledger)))
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        assert wait_for_exits([child]) == [-signal.SIGKILL]


def test_killed_run_is_lost(ledger_url: str) -> None:
    """A killed run is listed as lost, and the next run of its kind records that."""
    ledger = open_ledger(ledger_url)
    with start_endless_run(ledger_url):
        assert [run.result for run in list_known_runs(ledger)] == ["running"]
    wait_until(lambda: [run.result for run in list_known_runs(ledger)] == ["lost"])
    (lost_run,) = list_known_runs(ledger)
    assert lost_run.has_failed
    assert lost_run.finished_at is None
    assert "no exit status" in str(lost_run.message)
    with record_run(ledger, "backup"):
        pass
    with ledger.reading() as connection:
        results = connection.execute(text("SELECT result FROM runs ORDER BY started_at")).scalars().all()
    assert results == ["lost", "done"]


def test_running_run_is_not_lost(ledger_url: str) -> None:
    """A run that is still running is not marked as lost when another one begins."""
    ledger = open_ledger(ledger_url)
    with start_endless_run(ledger_url):
        with record_run(ledger, "backup"):
            assert [run.result for run in list_known_runs(ledger)] == ["running", "running"]
        assert [run.result for run in list_known_runs(ledger)] == ["done", "running"]


@pytest.mark.slow_cases
def test_old_runs_are_swept(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeping keeps the newest runs of a kind, its last success and its last failure."""
    set_thresholds(monkeypatch, runs_kept=3)
    ledger, clock = open_ledger(ledger_url), build_ticking_clock()
    with record_run(ledger, "verify", clock) as run:
        run.fail("long ago")
    for _ in range(10):
        with record_run(ledger, "verify", clock):
            pass
    with record_run(ledger, "backup", clock):
        pass
    runs = list_known_runs(ledger)
    (last, done, failed) = find_latest_runs(runs)["verify"]

    assert [run.started_at // 1_000_000 for run in runs if run.kind == "verify"] == [22, 20, 18, 2]
    assert (last, failed and failed.message) == (done, "long ago")
    assert runs[-1] == failed
    assert find_latest_runs(runs)["backup"].failed is None


# roles without the right to write


@pytest.fixture
def reader_url(ledger_url: str) -> Iterator[str]:
    """Yield the URL of the ledger for a user who can only read it: a role, or a file that takes no runs."""
    if ledger_url.startswith("sqlite"):
        with closing(sqlite3.connect(str(make_url(ledger_url).database))) as connection:
            # the program does not write a table with a foreign trigger; file permissions would not stop root
            connection.execute("CREATE TRIGGER no BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'no'); END")
            connection.commit()
        yield ledger_url
        return
    name = f"reader_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(ledger_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
        owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
        yield make_url(ledger_url).set(username=name, password="x").render_as_string(hide_password=False)
        owner.execute(f"DROP OWNED BY {name}")
        owner.execute(f"DROP ROLE {name}")


def test_readers_run_is_kept_in_state_folder(reader_url: str, ledger_url: str, state_folder: Path) -> None:
    """A run of a user who can only read the ledger is kept in their account's state folder."""
    ledger = open_ledger(reader_url)
    with record_run(ledger, "verify", build_ticking_clock()) as run:
        run.fail("1 finding")
    (run_of_reader,) = list_known_runs(ledger)

    assert count_run_rows(ledger) == 0
    assert (run_of_reader.result, run_of_reader.message) == ("failed", "1 finding")
    # the same account sees it as another role, too
    assert list_known_runs(open_ledger(ledger_url)) == [run_of_reader]
    (file,) = [path for path in state_folder.rglob("*") if path.is_file()]
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_readers_killed_run_is_lost(reader_url: str, state_folder: Path) -> None:
    """A killed run of a user who can only read the ledger is listed as lost."""
    ledger = open_ledger(reader_url)
    with start_endless_run(reader_url):
        assert [run.result for run in list_known_runs(ledger)] == ["running"]
    wait_until(lambda: [run.result for run in list_known_runs(ledger)] == ["lost"])


@pytest.mark.slow_cases
def test_readers_old_run_files_are_swept(reader_url: str, state_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old run files of a user who can only read are removed, except for the newest and the last failure."""
    set_thresholds(monkeypatch, runs_kept=3)
    ledger, clock = open_ledger(reader_url), build_ticking_clock()
    for number in range(8):
        with record_run(ledger, "verify", clock) as run:
            if number == 0:
                run.fail("long ago")

    assert [run.started_at // 1_000_000 for run in list_known_runs(ledger)] == [16, 14, 12, 2]
    assert list_known_runs(ledger)[-1].message == "long ago"


def test_copied_ledger_has_its_own_runs(tmp_path: Path, copy_ledger_file: Callable[..., str]) -> None:
    """Two read-only files with the same ledger id each have their own runs."""
    ledgers = [open_ledger(copy_ledger_file(make_empty_ledger, name=name)) for name in ("live.db", "staging.db")]
    for ledger in ledgers:
        with ledger.writing() as connection:
            connection.execute(text("CREATE TRIGGER no BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'no'); END"))
    with record_run(ledgers[1], "verify"):
        pass

    assert [len(list_known_runs(ledger)) for ledger in ledgers] == [0, 1]


# hostile files


def test_foreign_trigger_does_not_fire(tmp_path: Path, copy_ledger_file: Callable[..., str]) -> None:
    """A foreign trigger on the table of runs does not fire when a run is recorded."""
    ledger = open_ledger(copy_ledger_file(make_empty_ledger))
    with ledger.writing() as connection:
        connection.execute(text("CREATE TABLE fired (x)"))
        connection.execute(text("CREATE TRIGGER fires AFTER INSERT ON runs BEGIN INSERT INTO fired VALUES (1); END"))
    with record_run(ledger, "verify"):
        pass
    with ledger.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM fired")).scalar_one() == 0


MALFORMED_FILES = {
    "no JSON": b"\xff\xfe{",
    "nested without end": b"[" * 100_000,
    "another type": b"[1, 2]",
    "numbers out of range": json.dumps(
        {"run": 1, "kind": "verify", "started_at": 2**70, "run_by": "x", "process": "x"}
    ).encode(),
    "a kind that is a path": json.dumps(
        {"run": 1, "kind": "../x", "started_at": 1, "run_by": "x", "process": "x"}
    ).encode(),
    "nothing": b"",
}


@pytest.mark.parametrize("content", MALFORMED_FILES.values(), ids=MALFORMED_FILES)
def test_malformed_state_file_is_ignored(content: bytes, reader_url: str, state_folder: Path) -> None:
    """A malformed file in the state folder is ignored."""
    ledger = open_ledger(reader_url)
    with record_run(ledger, "verify", build_ticking_clock()):
        pass
    before = list_known_runs(ledger)
    (file,) = [path for path in state_folder.rglob("*.json") if path.is_file()]
    (file.parent / "verify-1.json").write_bytes(content)

    assert list_known_runs(ledger) == before


def test_links_and_pipes_are_not_followed(reader_url: str, state_folder: Path, tmp_path: Path) -> None:
    """A pipe or a link among the state files is not read, and nothing is written through a link to their folder."""
    ledger = open_ledger(reader_url)
    with record_run(ledger, "verify", build_ticking_clock()):
        pass
    (file,) = [path for path in state_folder.rglob("*.json") if path.is_file()]
    os.mkfifo(file.parent / "verify-2.json")
    (file.parent / "verify-3.json").symlink_to(file)
    assert len(list_known_runs(ledger)) == 1
    # a link in place of the folder
    elsewhere = tmp_path / "elsewhere"
    file.parent.rename(elsewhere)
    file.parent.symlink_to(elsewhere)
    assert list_known_runs(ledger) == []
    with record_run(ledger, "verify", build_ticking_clock()):
        pass
    assert len(list(elsewhere.glob("verify-*"))) == 3


def test_malformed_run_rows_are_ignored(tmp_path: Path, copy_ledger_file: Callable[..., str]) -> None:
    """Malformed rows in the table of runs are ignored, and the others are listed."""
    path = copy_ledger_file(make_empty_ledger)
    ledger = open_ledger(path)
    with record_run(ledger, "verify", build_ticking_clock()):
        pass
    columns = "run, kind, started_at, finished_at, result, message, position, run_by, process, details"
    with closing(sqlite3.connect(path)) as connection:
        for values in (
            "1, 'verify', 'soon', NULL, NULL, NULL, NULL, 'x', 'x', NULL",
            "2, x'ff', 5, NULL, NULL, NULL, NULL, 'x', 'x', NULL",
            "3, 'verify', 5, NULL, 'splendid', NULL, NULL, 'x', 'x', NULL",
            "4, 'verify', -9223372036854775808, 7, 'done', NULL, NULL, 'x', 'x', '[[['",
        ):
            connection.execute(f"INSERT INTO runs ({columns}) VALUES ({values})")
        connection.commit()

    assert [run.result for run in list_known_runs(ledger)] == ["done"]


# identity of a process


def test_process_is_identified_by_its_start() -> None:
    """A local process counts as running only if its number and start time match.

    A process on another machine cannot be seen and counts as running for a day.
    """
    mine = name_this_process()
    host, number, started = mine.split(" ")
    child = fork_child(time.sleep, 600)
    child_is_running = is_process_running(f"{host} {child} ", 0, HOUR_US)
    os.kill(child, signal.SIGKILL)
    assert wait_for_exits([child]) == [-signal.SIGKILL]

    assert (is_process_running(mine, 0, HOUR_US), child_is_running) == (True, True)
    assert not is_process_running(f"{host} {child} ", 0, HOUR_US)
    if started:
        assert not is_process_running(f"{host} {number} 1", 0, HOUR_US)
    # a process on another machine cannot be seen
    assert is_process_running(f"elsewhere {number} 1", 0, HOUR_US)
    assert not is_process_running(f"elsewhere {number} 1", 0, 25 * HOUR_US)
    for invalid_name in ("", "x", "a b c", f"{host} 99999999999999999999 "):
        assert not is_process_running(invalid_name, 0, HOUR_US)


# dates in the future

YEAR_US = 365 * 24 * HOUR_US


def test_runs_are_ordered_as_they_began(ledger_url: str) -> None:
    """A run dated in the future is not the last of its kind once another one has begun."""
    ledger = open_ledger(ledger_url)
    with record_run(ledger, "verify", lambda: 2 * YEAR_US):
        pass
    with record_run(ledger, "verify", lambda: YEAR_US) as run:
        run.fail("2 findings")
    latest = find_latest_runs(list_known_runs(ledger, YEAR_US))["verify"]

    assert [run.started_at for run in list_known_runs(ledger, YEAR_US)] == [YEAR_US, 2 * YEAR_US]
    assert latest.ended is not None
    assert (latest.last, latest.ended, latest.ended.message) == (latest.failed, latest.failed, "2 findings")


def test_readers_runs_are_ordered_as_they_began(reader_url: str, ledger_url: str) -> None:
    """A run in the state folder is the last of its kind even if an earlier one there is dated in the future."""
    reader = open_ledger(reader_url)
    for message, date in (("first", 2 * YEAR_US), ("second", YEAR_US)):
        with record_run(reader, "verify", lambda date=date: date) as run:  # type: ignore[misc]
            run.fail(message)

    assert [run.message for run in list_known_runs(open_ledger(ledger_url), YEAR_US)] == ["second", "first"]


def test_runs_with_random_numbers_come_first(ledger_url: str) -> None:
    """Runs that an earlier program numbered at random precede all others, in the order of their dates."""
    ledger = open_ledger(ledger_url)
    with ledger.writing() as connection:
        for number, date in ((2**61, 3 * YEAR_US), (2**40, 5 * YEAR_US), (2**62 - 1, 4 * YEAR_US)):
            connection.execute(
                text(
                    "INSERT INTO runs (run, kind, started_at, finished_at, result, run_by, process) "
                    f"VALUES ({number}, 'verify', {date}, {date}, 'done', 'x', 'x')"
                )
            )
    with record_run(ledger, "verify", lambda: YEAR_US):
        pass

    assert [run.started_at // YEAR_US for run in list_known_runs(ledger, YEAR_US)] == [1, 5, 4, 3]


def test_runs_dated_ahead_are_reported_until_a_success(ledger_url: str) -> None:
    """Every run dated in the future is reported until a run of its kind with a credible date succeeds."""
    ledger = open_ledger(ledger_url)
    for date, has_failed in ((2 * YEAR_US, False), (3 * YEAR_US, True), (YEAR_US, True)):
        with record_run(ledger, "verify", lambda date=date: date) as run:  # type: ignore[misc]
            if has_failed:
                run.fail("1 finding")

    assert [run.latest_instant for run in find_runs_ahead(list_known_runs(ledger, YEAR_US), YEAR_US)] == [
        3 * YEAR_US,
        2 * YEAR_US,
    ]
    assert find_runs_ahead(list_known_runs(ledger, YEAR_US), 3 * YEAR_US - MINUTE_US) == []
    with record_run(ledger, "verify", lambda: YEAR_US):
        pass
    assert find_runs_ahead(list_known_runs(ledger, YEAR_US), YEAR_US) == []


def test_foreign_process_dated_ahead_is_not_running() -> None:
    """A process of another machine does not count as running if its date is more than a day ahead."""
    assert is_process_running("elsewhere 1 1", HOUR_US, 0)
    assert not is_process_running("elsewhere 1 1", YEAR_US, 0)
