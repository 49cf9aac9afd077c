"""Runs of the jobs: each leaves a row, whoever runs it and however it ends, in the ledger or in the state folder."""

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

MINUTE, HOUR = 60 * 1_000_000, 3_600 * 1_000_000


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which accounts keep state, empty."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


def known(ledger: Ledger, now: int = 10**15) -> list[Run]:
    with ledger.reading() as connection:
        return list_runs(ledger, connection, now)


def ticking(start: int = 1_000_000) -> Callable[[], int]:
    """A clock that goes on by a second whenever it is asked."""
    now = [start]

    def tick() -> int:
        now[0] += 1_000_000
        return now[0]

    return tick


def in_table(ledger: Ledger) -> int:
    with ledger.reading() as connection:
        return int(connection.execute(text("SELECT count(*) FROM runs")).scalar_one())


def test_successful_run_is_recorded(ledger_url: str) -> None:
    """A run shows as running, and afterwards with its times, result, position, author and details."""
    ledger = open_ledger(ledger_url)
    with record_run(ledger, "backup", ticking(), by="mira") as run:
        (open_one,) = known(ledger)
        run.position, run.details = 7, {"file": "a.jsonl"}
    (found,) = known(ledger)

    assert (open_one.result, open_one.finished_at) == ("running", None)
    assert found[1:8] == ("backup", 2_000_000, 3_000_000, "done", None, 7, "mira")
    assert found.details == {"file": "a.jsonl"}
    assert in_table(ledger) == 1


def test_failed_run_keeps_its_reason(ledger_url: str) -> None:
    """A failed run records its reason, and the error is passed on.

    An error, an interruption and a run that reports its own failure all count as failures.
    """
    ledger, clock = open_ledger(ledger_url), ticking()
    with pytest.raises(StoreUnavailable), record_run(ledger, "backup", clock):
        raise StoreUnavailable("no space left", "no-space")
    with pytest.raises(KeyboardInterrupt), record_run(ledger, "rebuild", clock):
        raise KeyboardInterrupt
    with record_run(ledger, "verify", clock) as run:
        run.fail("2 findings")

    assert [(one.kind, one.result, one.message) for one in known(ledger)] == [
        ("verify", "failed", "2 findings"), ("rebuild", "failed", "it was interrupted"),
        ("backup", "failed", "no space left"),
    ]  # fmt: skip


def test_refused_run_leaves_no_trace(ledger_url: str) -> None:
    """A run that is refused because another is under way leaves no trace."""
    ledger = open_ledger(ledger_url)
    with pytest.raises(AlreadyRunning), record_run(ledger, "backup"):
        raise AlreadyRunning("another one runs")
    with record_run(ledger, "rebuild") as run:
        run.no_trace = True
    assert known(ledger) == []


def run_for_ever(url: str) -> None:
    with record_run(open_ledger(url), "backup"):
        time.sleep(600)


@contextmanager
def under_way(url: str) -> Iterator[int]:
    """Another process is in the middle of a run; it is killed in the end."""
    ledger = open_ledger(url)
    child = fork_child(run_for_ever, url)
    try:
        wait_until(lambda: any(one.result == "running" for one in known(ledger)))
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        assert wait_for_exits([child]) == [-signal.SIGKILL]


def test_killed_run_is_lost(ledger_url: str) -> None:
    """A killed run is seen as lost by anybody who looks, and the next run of its kind records that."""
    ledger = open_ledger(ledger_url)
    with under_way(ledger_url):
        assert [one.result for one in known(ledger)] == ["running"]
    wait_until(lambda: [one.result for one in known(ledger)] == ["lost"])
    (lost,) = known(ledger)
    assert lost.has_failed
    assert lost.finished_at is None
    assert "no exit status" in str(lost.message)
    with record_run(ledger, "backup"):
        pass
    with ledger.reading() as connection:
        results = connection.execute(text("SELECT result FROM runs ORDER BY started_at")).scalars().all()
    assert results == ["lost", "done"]


def test_concurrent_run_is_not_lost(ledger_url: str) -> None:
    """A run still under way is not taken for lost when another one begins."""
    ledger = open_ledger(ledger_url)
    with under_way(ledger_url):
        with record_run(ledger, "backup"):
            assert [one.result for one in known(ledger)] == ["running", "running"]
        assert [one.result for one in known(ledger)] == ["done", "running"]


@pytest.mark.slow_cases
def test_old_runs_are_swept(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeping keeps the newest runs of a kind, its last success and its last failure."""
    set_thresholds(monkeypatch, runs_kept=3)
    ledger, clock = open_ledger(ledger_url), ticking()
    with record_run(ledger, "verify", clock) as run:
        run.fail("long ago")
    for _ in range(10):
        with record_run(ledger, "verify", clock):
            pass
    with record_run(ledger, "backup", clock):
        pass
    found = known(ledger)
    (last, done, failed) = find_latest_runs(found)["verify"]

    assert [one.kind for one in found].count("verify") <= 5
    assert (last, failed and failed.message) == (done, "long ago")
    assert found[-1] == failed
    assert find_latest_runs(found)["backup"].failed is None


# who may not write the ledger


@pytest.fixture
def reader_url(ledger_url: str) -> Iterator[str]:
    """The same ledger for somebody who can only read it: a role, or a file that takes no change."""
    if ledger_url.startswith("sqlite"):
        with closing(sqlite3.connect(str(make_url(ledger_url).database))) as connection:
            # nobody can write a table that has another program's triggers; permissions do not stop root
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


def test_readers_run_goes_to_state_folder(reader_url: str, ledger_url: str, state: Path) -> None:
    """A run by someone who can only read the ledger is kept in their account's state folder."""
    ledger = open_ledger(reader_url)
    with record_run(ledger, "verify", ticking()) as run:
        run.fail("1 finding")
    (found,) = known(ledger)

    assert in_table(ledger) == 0
    assert (found.result, found.message) == ("failed", "1 finding")
    # whoever of the same account asks as another role sees it, too
    assert known(open_ledger(ledger_url)) == [found]
    (file,) = [path for path in state.rglob("*") if path.is_file()]
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_readers_killed_run_is_lost(reader_url: str, state: Path) -> None:
    """A killed run of someone who can only read the ledger is seen as lost."""
    ledger = open_ledger(reader_url)
    with under_way(reader_url):
        assert [one.result for one in known(ledger)] == ["running"]
    wait_until(lambda: [one.result for one in known(ledger)] == ["lost"])


@pytest.mark.slow_cases
def test_readers_old_run_files_are_swept(reader_url: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old run files of someone who can only read are removed, except for the last failure."""
    set_thresholds(monkeypatch, runs_kept=3)
    ledger, clock = open_ledger(reader_url), ticking()
    for number in range(8):
        with record_run(ledger, "verify", clock) as run:
            if number == 0:
                run.fail("long ago")

    assert len(known(ledger)) <= 5
    assert known(ledger)[-1].message == "long ago"


def test_copied_ledger_has_its_own_runs(tmp_path: Path, copied_file: Callable[..., str]) -> None:
    """Two files of the same ledger id that take no rows each have their own runs."""
    ledgers = [open_ledger(copied_file(make_empty_ledger, name=name)) for name in ("live.db", "staging.db")]
    for ledger in ledgers:
        with ledger.writing() as connection:
            connection.execute(text("CREATE TRIGGER no BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'no'); END"))
    with record_run(ledgers[1], "verify"):
        pass

    assert [len(known(ledger)) for ledger in ledgers] == [0, 1]


# hostile hands


def test_foreign_trigger_does_not_fire(tmp_path: Path, copied_file: Callable[..., str]) -> None:
    """A trigger in a stranger's file does not fire when a run is recorded."""
    ledger = open_ledger(copied_file(make_empty_ledger))
    with ledger.writing() as connection:
        connection.execute(text("CREATE TABLE fired (x)"))
        connection.execute(text("CREATE TRIGGER fires AFTER INSERT ON runs BEGIN INSERT INTO fired VALUES (1); END"))
    with record_run(ledger, "verify"):
        pass
    with ledger.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM fired")).scalar_one() == 0


STRANGE = {
    "no JSON": b"\xff\xfe{",
    "nested without end": b"[" * 100_000,
    "another type": b'[1, 2]',
    "numbers out of range": json.dumps({"run": 1, "kind": "verify", "started_at": 2**70, "run_by": "x",
                                        "process": "x"}).encode(),
    "a kind that is a path": json.dumps({"run": 1, "kind": "../x", "started_at": 1, "run_by": "x",
                                         "process": "x"}).encode(),
    "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("content", STRANGE.values(), ids=STRANGE)
def test_strange_state_file_is_ignored(content: bytes, reader_url: str, state: Path) -> None:
    """A malformed file in the state folder is ignored."""
    ledger = open_ledger(reader_url)
    with record_run(ledger, "verify", ticking()):
        pass
    before = known(ledger)
    (file,) = [path for path in state.rglob("*.json") if path.is_file()]
    (file.parent / "verify-1.json").write_bytes(content)

    assert known(ledger) == before


def test_links_and_pipes_are_not_followed(reader_url: str, state: Path, tmp_path: Path) -> None:
    """Links and pipes in the state folder are neither followed nor waited for."""
    ledger = open_ledger(reader_url)
    with record_run(ledger, "verify", ticking()):
        pass
    (file,) = [path for path in state.rglob("*.json") if path.is_file()]
    os.mkfifo(file.parent / "verify-2.json")
    (file.parent / "verify-3.json").symlink_to(file)
    assert len(known(ledger)) == 1
    # a link in place of the folder
    elsewhere = tmp_path / "elsewhere"
    file.parent.rename(elsewhere)
    file.parent.symlink_to(elsewhere)
    assert known(ledger) == []
    with record_run(ledger, "verify", ticking()):
        pass
    assert len(list(elsewhere.glob("verify-*"))) == 3


def test_malformed_run_rows_are_ignored(tmp_path: Path, copied_file: Callable[..., str]) -> None:
    """Malformed rows in the table of runs are ignored, and the others are still shown."""
    path = copied_file(make_empty_ledger)
    ledger = open_ledger(path)
    with record_run(ledger, "verify", ticking()):
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

    assert [one.result for one in known(ledger)] == ["done"]


# which process it is


def test_process_is_known_by_its_start() -> None:
    """A local process counts as running only if its number and start time fit.

    A process on another machine cannot be seen and counts as running for a day.
    """
    mine = name_this_process()
    host, number, started = mine.split(" ")
    child = fork_child(time.sleep, 600)
    there = is_process_running(f"{host} {child} ", 0, HOUR)
    os.kill(child, signal.SIGKILL)
    assert wait_for_exits([child]) == [-signal.SIGKILL]

    assert (is_process_running(mine, 0, HOUR), there) == (True, True)
    assert not is_process_running(f"{host} {child} ", 0, HOUR)
    if started:
        assert not is_process_running(f"{host} {number} 1", 0, HOUR)
    # what runs on another machine cannot be seen
    assert is_process_running(f"elsewhere {number} 1", 0, HOUR)
    assert not is_process_running(f"elsewhere {number} 1", 0, 25 * HOUR)
    for strange in ("", "x", "a b c", f"{host} 99999999999999999999 "):
        assert not is_process_running(strange, 0, HOUR)


# a wrong clock

YEAR = 400 * 24 * HOUR


def test_runs_are_ordered_by_their_start(ledger_url: str) -> None:
    """A run dated far ahead does not stay the last of its kind once another one has begun."""
    ledger = open_ledger(ledger_url)
    with record_run(ledger, "verify", lambda: 2 * YEAR):
        pass
    with record_run(ledger, "verify", lambda: YEAR) as run:
        run.fail("2 findings")
    latest = find_latest_runs(known(ledger, YEAR))["verify"]

    assert [run.started_at for run in known(ledger, YEAR)] == [YEAR, 2 * YEAR]
    assert latest.ended is not None
    assert (latest.last, latest.ended, latest.ended.message) == (latest.failed, latest.failed, "2 findings")


def test_readers_runs_are_ordered_among_all(reader_url: str, ledger_url: str) -> None:
    """A run that is kept in the state folder is the last one of its kind although a run in it is dated ahead."""
    reader = open_ledger(reader_url)
    for message, date in (("first", 2 * YEAR), ("second", YEAR)):
        with record_run(reader, "verify", lambda date=date: date) as run:  # type: ignore[misc]
            run.fail(message)

    assert [run.message for run in known(open_ledger(ledger_url), YEAR)] == ["second", "first"]


def test_numbers_of_earlier_programs_come_first(ledger_url: str) -> None:
    """Runs that an earlier program numbered at random precede all others, in the order of their dates."""
    ledger = open_ledger(ledger_url)
    with ledger.writing() as connection:
        for number, date in ((2**61, 3 * YEAR), (2**40, 5 * YEAR), (2**62 - 1, 4 * YEAR)):
            connection.execute(
                text(
                    "INSERT INTO runs (run, kind, started_at, finished_at, result, run_by, process) "
                    f"VALUES ({number}, 'verify', {date}, {date}, 'done', 'x', 'x')"
                )
            )
    with record_run(ledger, "verify", lambda: YEAR):
        pass

    assert [run.started_at // YEAR for run in known(ledger, YEAR)] == [1, 5, 4, 3]


def test_dates_ahead_end_with_a_good_run(ledger_url: str) -> None:
    """Every run dated ahead is reported, until a run of its kind with a credible date ends well."""
    ledger = open_ledger(ledger_url)
    for date, fails in ((2 * YEAR, False), (3 * YEAR, True), (YEAR, True)):
        with record_run(ledger, "verify", lambda date=date: date) as run:  # type: ignore[misc]
            if fails:
                run.fail("1 finding")

    assert [run.latest_instant for run in find_runs_ahead(known(ledger, YEAR), YEAR)] == [3 * YEAR, 2 * YEAR]
    assert find_runs_ahead(known(ledger, YEAR), 3 * YEAR - MINUTE) == []
    with record_run(ledger, "verify", lambda: YEAR):
        pass
    assert find_runs_ahead(known(ledger, YEAR), YEAR) == []


def test_process_of_another_machine_dated_ahead_is_gone() -> None:
    """A process that cannot be seen does not count as running for as long as its date is ahead."""
    assert is_process_running("elsewhere 1 1", HOUR, 0)
    assert not is_process_running("elsewhere 1 1", YEAR, 0)
