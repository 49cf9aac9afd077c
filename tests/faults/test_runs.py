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
from fault_helpers import fork, wait_for, wait_until
from sqlalchemy import make_url, text
from stores import without_events

from ledger.errors import AlreadyRunning, StoreUnavailable
from ledger.processes.identity import is_there, this_process
from ledger.store import runs
from ledger.store.opening import Ledger, open_ledger
from ledger.store.runs import Run, all_runs, latest_runs, running

HOUR = 3_600 * 1_000_000


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which accounts keep state, empty."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


def known(ledger: Ledger, now: int = 10**15) -> list[Run]:
    with ledger.reading() as connection:
        return all_runs(ledger, connection, now)


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


def test_given_a_run_that_ends_well_when_looked_at_then_all_of_it_is_told(ledger_url: str) -> None:
    ledger = open_ledger(ledger_url)
    with running(ledger, "backup", ticking(), by="mira") as run:
        (open_one,) = known(ledger)
        run.position, run.details = 7, {"file": "a.jsonl"}
    (found,) = known(ledger)

    assert (open_one.result, open_one.finished_at) == ("running", None)
    assert found[1:8] == ("backup", 2_000_000, 3_000_000, "done", None, 7, "mira")
    assert found.details == {"file": "a.jsonl"}
    assert in_table(ledger) == 1


def test_given_a_run_that_fails_when_looked_at_then_the_reason_is_told_and_the_error_goes_on(ledger_url: str) -> None:
    """Given an error, an interruption, or a run that says itself that it failed, then each is a failure."""
    ledger, clock = open_ledger(ledger_url), ticking()
    with pytest.raises(StoreUnavailable), running(ledger, "backup", clock):
        raise StoreUnavailable("no space left", "no-space")
    with pytest.raises(KeyboardInterrupt), running(ledger, "rebuild", clock):
        raise KeyboardInterrupt
    with running(ledger, "verify", clock) as run:
        run.fail("2 findings")

    assert [(one.kind, one.result, one.message) for one in known(ledger)] == [
        ("verify", "failed", "2 findings"), ("rebuild", "failed", "it was interrupted"),
        ("backup", "failed", "no space left"),
    ]  # fmt: skip


def test_given_another_run_of_the_same_job_when_it_is_refused_then_it_leaves_no_trace(ledger_url: str) -> None:
    ledger = open_ledger(ledger_url)
    with pytest.raises(AlreadyRunning), running(ledger, "backup"):
        raise AlreadyRunning("another one runs")
    with running(ledger, "rebuild") as run:
        run.no_trace = True
    assert known(ledger) == []


def run_for_ever(url: str) -> None:
    with running(open_ledger(url), "backup"):
        time.sleep(600)


@contextmanager
def under_way(url: str) -> Iterator[int]:
    """Another process is in the middle of a run; it is killed in the end."""
    ledger = open_ledger(url)
    child = fork(run_for_ever, url)
    try:
        wait_until(lambda: any(one.result == "running" for one in known(ledger)))
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        assert wait_for([child]) == [-signal.SIGKILL]


def test_given_a_run_that_is_killed_when_somebody_looks_then_it_ended_without_a_word(ledger_url: str) -> None:
    """Given kill -9 in the middle, then who only looks sees it, and the next run of the kind writes it down."""
    ledger = open_ledger(ledger_url)
    with under_way(ledger_url):
        assert [one.result for one in known(ledger)] == ["running"]
    wait_until(lambda: [one.result for one in known(ledger)] == ["lost"])
    (lost,) = known(ledger)
    assert lost.has_failed
    assert lost.finished_at is None
    assert "without a word" in str(lost.message)
    with running(ledger, "backup"):
        pass
    with ledger.reading() as connection:
        results = connection.execute(text("SELECT result FROM runs ORDER BY started_at")).scalars().all()
    assert results == ["lost", "done"]


def test_given_two_runs_at_once_when_one_begins_then_the_other_one_is_not_taken_for_lost(ledger_url: str) -> None:
    ledger = open_ledger(ledger_url)
    with under_way(ledger_url):
        with running(ledger, "backup"):
            assert [one.result for one in known(ledger)] == ["running", "running"]
        assert [one.result for one in known(ledger)] == ["done", "running"]


def test_given_many_runs_when_swept_then_the_newest_stay_and_the_last_success_and_the_last_failure(
    ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "KEPT", 3)
    ledger, clock = open_ledger(ledger_url), ticking()
    with running(ledger, "verify", clock) as run:
        run.fail("long ago")
    for _ in range(10):
        with running(ledger, "verify", clock):
            pass
    with running(ledger, "backup", clock):
        pass
    found = known(ledger)
    (last, done, failed) = latest_runs(found)["verify"]

    assert [one.kind for one in found].count("verify") <= 5
    assert (last, failed and failed.message) == (done, "long ago")
    assert found[-1] == failed
    assert latest_runs(found)["backup"].failed is None


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


def test_given_who_can_only_read_when_he_runs_then_the_state_folder_of_his_account_has_it(
    reader_url: str, ledger_url: str, state: Path
) -> None:
    ledger = open_ledger(reader_url)
    with running(ledger, "verify", ticking()) as run:
        run.fail("1 finding")
    (found,) = known(ledger)

    assert in_table(ledger) == 0
    assert (found.result, found.message) == ("failed", "1 finding")
    # whoever of the same account asks as another role sees it, too
    assert known(open_ledger(ledger_url)) == [found]
    (file,) = [path for path in state.rglob("*") if path.is_file()]
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_given_who_can_only_read_when_his_run_is_killed_then_it_ended_without_a_word(
    reader_url: str, state: Path
) -> None:
    ledger = open_ledger(reader_url)
    with under_way(reader_url):
        assert [one.result for one in known(ledger)] == ["running"]
    wait_until(lambda: [one.result for one in known(ledger)] == ["lost"])


def test_given_who_can_only_read_when_he_runs_often_then_old_files_go(
    reader_url: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "KEPT", 3)
    ledger, clock = open_ledger(reader_url), ticking()
    for number in range(8):
        with running(ledger, "verify", clock) as run:
            if number == 0:
                run.fail("long ago")

    assert len(known(ledger)) <= 5
    assert known(ledger)[-1].message == "long ago"


def test_given_a_copy_of_a_ledger_when_it_is_verified_then_the_original_was_not(
    tmp_path: Path, copied_file: Callable[..., str]
) -> None:
    """Given two files of the same id that take no rows, then each has its own runs."""
    ledgers = [open_ledger(copied_file(without_events, name=name)) for name in ("live.db", "staging.db")]
    for ledger in ledgers:
        with ledger.writing() as connection:
            connection.execute(text("CREATE TRIGGER no BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'no'); END"))
    with running(ledgers[1], "verify"):
        pass

    assert [len(known(ledger)) for ledger in ledgers] == [0, 1]


# hostile hands


def test_given_a_trigger_in_a_strangers_file_when_somebody_runs_then_it_does_not_fire(
    tmp_path: Path, copied_file: Callable[..., str]
) -> None:
    ledger = open_ledger(copied_file(without_events))
    with ledger.writing() as connection:
        connection.execute(text("CREATE TABLE fired (x)"))
        connection.execute(text("CREATE TRIGGER fires AFTER INSERT ON runs BEGIN INSERT INTO fired VALUES (1); END"))
    with running(ledger, "verify"):
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
def test_given_a_strange_file_in_the_state_folder_when_looked_at_then_it_counts_for_nothing(
    content: bytes, reader_url: str, state: Path
) -> None:
    ledger = open_ledger(reader_url)
    with running(ledger, "verify", ticking()):
        pass
    before = known(ledger)
    (file,) = [path for path in state.rglob("*.json") if path.is_file()]
    (file.parent / "verify-1.json").write_bytes(content)

    assert known(ledger) == before


def test_given_links_and_pipes_in_the_state_folder_when_looked_at_then_nobody_follows_or_waits(
    reader_url: str, state: Path, tmp_path: Path
) -> None:
    ledger = open_ledger(reader_url)
    with running(ledger, "verify", ticking()):
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
    with running(ledger, "verify", ticking()):
        pass
    assert len(list(elsewhere.glob("verify-*"))) == 3


def test_given_rows_that_nobody_has_written_so_when_looked_at_then_the_others_are_told(
    tmp_path: Path, copied_file: Callable[..., str]
) -> None:
    path = copied_file(without_events)
    ledger = open_ledger(path)
    with running(ledger, "verify", ticking()):
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


def test_given_a_process_when_asked_whether_it_is_there_then_the_time_of_its_start_counts_too() -> None:
    mine = this_process()
    host, number, started = mine.split(" ")
    child = fork(time.sleep, 600)
    there = is_there(f"{host} {child} ", 0, HOUR)
    os.kill(child, signal.SIGKILL)
    assert wait_for([child]) == [-signal.SIGKILL]

    assert (is_there(mine, 0, HOUR), there) == (True, True)
    assert not is_there(f"{host} {child} ", 0, HOUR)
    if started:
        assert not is_there(f"{host} {number} 1", 0, HOUR)
    # what runs on another machine cannot be seen
    assert is_there(f"elsewhere {number} 1", 0, HOUR)
    assert not is_there(f"elsewhere {number} 1", 0, 25 * HOUR)
    for strange in ("", "x", "a b c", f"{host} 99999999999999999999 "):
        assert not is_there(strange, 0, HOUR)
