"""`nightly`: each part is done whatever becomes of the others, one line tells what came of it, and one exit code."""

import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psycopg
import pytest
from builders import build_draft, build_event
from forging import append_named_forgery
from ledgers import append_drafts
from roles import Roles, create_documented_roles
from sqlalchemy import make_url
from stores import create_postgres_database, start_own_server
from thresholds import set_thresholds

from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.runs import list_runs, record_run
from ratings_ledger.projections.cluster import coordinating
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.rebuild_lock import hold_rebuild_lock

from ratings_ledger.ledger import clock  # isort: skip


PART = re.compile(r"(?:^|; )(rebuild|verify|backup) (done|FAILED): ")
Ratings = Callable[..., Any]
LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (.*); head (\d+:[0-9a-f]{64}), in \d+\.\d s\n")


@pytest.fixture
def db(ledger_url: str, ratings: Ratings) -> str:
    """A ledger with a game."""
    recorded = ratings("record", "--game", "catan", "--game-id", "g-1", "anna", "ben", "--by", "mira", db=ledger_url)
    assert recorded.exit_code == 0
    return ledger_url


def told(result: Any) -> dict[str, str]:
    """What the line says of each part."""
    match = LINE.fullmatch(result.stdout)
    assert match is not None, result
    names, said = re.findall(PART, match.group(2)), re.split(PART, match.group(2))
    return dict(zip((f"{name} {ended}" for name, ended in names), said[3::3], strict=True))


def runs(ratings: Ratings, db: str) -> dict[str, str]:
    """How the last run of each kind ended."""
    found = json.loads(ratings("status", "--format", "json", db=db).stdout)["runs"]
    return {kind: of_kind["last"]["result"] for kind, of_kind in found.items()}


def uninstalled(db: str) -> None:
    """Publish a ruleset whose rule came with a package that is not here."""
    data = {"id": "darts", "version": "1", "rule": "gone/1", "effective_from": "2000-01-01",
            "scope": {"game": ["darts"]}, "params": {}}  # fmt: skip
    append_drafts(db, build_draft(build_event("ruleset.published", "1970-01-01T00:00:00Z", "darts", **data)))


@pytest.mark.slow_cases
def test_night_prints_one_line(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """When all is well, a nightly run prints one line with the head, and each part leaves a run."""
    result = ratings("nightly", "--backup", tmp_path / "backups", "--keep", "2d", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    parts = told(result)
    assert list(parts) == ["rebuild done", "verify done", "backup done"]
    assert parts["rebuild done"].endswith("generation 1")
    assert Path(parts["backup done"]).is_file()
    head = json.loads(ratings("status", "--format", "json", db=db).stdout)["head"]
    assert f"head {head}," in result.stdout
    assert runs(ratings, db) == dict.fromkeys(("backup", "nightly", "rebuild", "verify"), "done")
    assert ratings("status", "--max-age", "1h", "--max-behind", "0", "--no-failures", db=db).exit_code == 0
    metrics = ratings("status", "--format", "prometheus", db=db).stdout
    for kind in ("backup", "nightly", "rebuild", "verify"):
        assert re.search(rf'ratings_run_result{{.*kind="{kind}".*result="done".*}} 1', metrics), metrics


@pytest.mark.slow_cases
def test_no_folder_means_no_backup(db: str, ratings: Ratings) -> None:
    """Without a backup folder, a nightly run makes and reports no backup, and --keep is a usage error."""
    result = ratings("nightly", db=db)
    assert (result.exit_code, list(told(result))) == (0, ["rebuild done", "verify done"])
    assert "backup" not in runs(ratings, db)
    assert ratings("nightly", "--keep", "2d", db=db).exit_code == 2


@pytest.mark.slow_cases
def test_missing_rule_spares_the_backup(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """With a rule that is not installed, rebuild and verify fail but the backup is still made."""
    uninstalled(db)
    result = ratings("nightly", "--backup", tmp_path / "backups", db=db)
    assert (result.exit_code, list(told(result))) == (1, ["rebuild FAILED", "verify FAILED", "backup done"])
    assert "gone/1" in result.stderr
    assert runs(ratings, db) == {"backup": "done", "nightly": "failed", "rebuild": "failed", "verify": "failed"}
    problem = ratings("status", "--no-failures", db=db)
    assert (problem.exit_code, "rebuild" in problem.stderr) == (1, True)


@pytest.mark.slow_cases
def test_impossible_row_is_named(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A stored row that cannot be an event is named by verify, and the other parts are done."""
    position = append_named_forgery("nobody", db)
    result = ratings("nightly", "--backup", tmp_path / "backups", "--format", "json", db=db)
    found = {part["part"]: part for part in json.loads(result.stdout)["parts"]}
    assert [(name, part["exit_code"]) for name, part in found.items()] == [("rebuild", 0), ("verify", 1), ("backup", 0)]
    assert result.exit_code == json.loads(result.stdout)["exit_code"] == 1
    assert f"ratings: verify: meaning: position {position}: " in result.stderr


@pytest.mark.slow_cases
def test_unusable_folder_is_named_first(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A backup folder that cannot be made is named first, and the other parts are done."""
    folder = tmp_path / "nowhere" / "backups"
    result = ratings("nightly", "--backup", folder, db=db)
    assert result.stderr == f"ratings: backup: {folder}: No such file or directory\n"
    assert (result.exit_code, list(told(result))) == (3, ["rebuild done", "verify done", "backup FAILED"])
    assert runs(ratings, db)["backup"] == "failed"
    assert not folder.parent.exists()
    uninstalled(db)
    result = ratings("nightly", "--backup", folder, db=db)
    assert result.stderr.startswith("ratings: backup: ")
    assert (result.exit_code, list(told(result))) == (1, ["rebuild FAILED", "verify FAILED", "backup FAILED"])


@pytest.mark.slow_cases
def test_running_rebuild_spares_verify(db: str, ratings: Ratings) -> None:
    """While another rebuild is running, the nightly rebuild fails and verify is still done."""
    with hold_rebuild_lock(open_ledger(db)):
        result = ratings("nightly", db=db)
    assert (result.exit_code, list(told(result))) == (4, ["rebuild FAILED", "verify done"])
    assert "another rebuild" in result.stderr


@pytest.mark.slow_cases
def test_second_night_does_nothing(db: str, ratings: Ratings) -> None:
    """A nightly run that finds another one still running does nothing and says so."""
    with record_run(open_ledger(db), "nightly", by="cron"):
        result = ratings("nightly", "--format", "json", db=db)
        assert (result.exit_code, result.stdout) == (4, "")
        assert "by cron, is still going on; this one did nothing" in result.stderr
        assert json.loads(result.stderr.splitlines()[-1])["reason"] == "already-running"
        assert runs(ratings, db) == {"nightly": "running"}
    assert ratings("nightly", db=db).exit_code == 0


@pytest.mark.slow
def test_night_follows_a_killed_one(db: str, ratings: Ratings) -> None:
    """After a nightly run was killed, the next one runs, and the first counts as lost."""
    code = f"""
import os, signal
from ratings_ledger.ledger.store.runs import record_run
from ratings_ledger.ledger.store.opening import open_ledger
with record_run(open_ledger({db!r}), "nightly"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0
    assert runs(ratings, db) == {"nightly": "lost"}
    problem = ratings("status", "--no-failures", db=db)
    assert (problem.exit_code, "nightly" in problem.stderr) == (1, True)
    assert ratings("nightly", db=db).exit_code == 0
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        results = [run.result for run in list_runs(ledger, connection, clock.now()) if run.kind == "nightly"]
    assert results == ["done", "lost"]
    assert ratings("status", "--no-failures", db=db).exit_code == 0


# what keeps a night from its work


@contextmanager
def away(db: str) -> Iterator[None]:
    """Meanwhile the ledger cannot be reached: another process has locked its file, or its database has another name."""
    url = make_url(db).difference_update_query(["timeout"])
    if db.startswith("sqlite"):
        with closing(sqlite3.connect(str(url.database), isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            yield
        return
    with psycopg.connect(url.set(database="postgres").render_as_string(hide_password=False), autocommit=True) as other:
        other.execute(f"ALTER DATABASE {url.database} RENAME TO {url.database}_away")
        try:
            yield
        finally:
            other.execute(f"ALTER DATABASE {url.database}_away RENAME TO {url.database}")


@contextmanager
def for_a_second(blocked: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Something is blocked for another second, by a thread."""
    begun = Event()

    def block() -> None:
        with blocked():
            begun.set()
            time.sleep(1)

    thread = Thread(target=block)
    thread.start()
    assert begun.wait(30)
    yield
    thread.join()


@pytest.fixture
def impatient(db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ledger for somebody who does not wait long for its locks, with a state folder that is empty."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    set_thresholds(monkeypatch, retry_seconds=0.2)
    url = make_url(f"sqlite:///{db}" if "://" not in db else db)
    return url.update_query_dict({"timeout": "0.2"}).render_as_string(hide_password=False)


def state_files(tmp_path: Path) -> list[str]:
    return sorted(path.name.partition("-")[0] for path in (tmp_path / "state").rglob("*.json"))


@pytest.mark.slow
def test_night_that_cannot_begin_leaves_runs(impatient: str, ratings: Ratings, tmp_path: Path) -> None:
    """A nightly run without a ledger says so in one line, and leaves failed runs until the next one succeeds.

    The next run that reaches the ledger stores them there.
    """
    with away(impatient):
        for _ in range(2):
            result = ratings("nightly", "--backup", tmp_path / "backups", db=impatient)
            assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)
    assert state_files(tmp_path) == sorted(["backup", "nightly", "rebuild", "verify"] * 2)
    assert runs(ratings, impatient) == dict.fromkeys(("backup", "nightly", "rebuild", "verify"), "failed")
    problem = ratings("status", "--no-failures", db=impatient)
    assert (problem.exit_code, [line.split()[3] for line in problem.stderr.splitlines()]) == (
        1, ["backup", "rebuild", "verify"],
    )  # fmt: skip
    assert result.stderr.removeprefix("ratings: ").strip() in problem.stderr

    result = ratings("nightly", "--backup", tmp_path / "backups", db=impatient)
    assert (result.exit_code, result.stderr) == (0, "")
    assert state_files(tmp_path) == []
    assert ratings("status", "--no-failures", db=impatient).exit_code == 0
    ledger = open_ledger(impatient)
    with ledger.reading() as connection:
        results = [run.result for run in list_runs(ledger, connection, clock.now()) if run.kind == "nightly"]
    assert results == ["done", "failed", "failed"]


@pytest.mark.slow
def test_night_is_retried_until_it_can_begin(impatient: str, ratings: Ratings, tmp_path: Path) -> None:
    """With --retry, a nightly run waits for its ledger, and leaves no failure if it comes back in time."""
    with for_a_second(lambda: away(impatient)):
        result = ratings("nightly", "--backup", tmp_path / "backups", "--retry", "1m", db=impatient)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list(told(result)) == ["rebuild done", "verify done", "backup done"]
    assert state_files(tmp_path) == []


@pytest.mark.slow
def test_retry_ends_at_its_limit(impatient: str, ratings: Ratings, tmp_path: Path) -> None:
    """A nightly run that still cannot begin after --retry fails as without it, and a bad limit is a usage error."""
    with away(impatient):
        began = time.monotonic()
        result = ratings("nightly", "--retry", "1s", db=impatient)
        assert 1 <= time.monotonic() - began < 30
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)
    assert state_files(tmp_path) == ["nightly", "rebuild", "verify"]
    assert ratings("nightly", "--retry", "soon", db=impatient).exit_code == 2


@pytest.mark.slow
def test_locked_rebuild_is_retried(impatient: str, ratings: Ratings, tmp_path: Path) -> None:
    """While another rebuild is running, the other parts are done at once, and with --retry the rebuild after it."""
    with hold_rebuild_lock(open_ledger(impatient)):
        result = ratings("nightly", "--backup", tmp_path / "backups", "--retry", "1s", db=impatient)
    assert (result.exit_code, list(told(result))) == (4, ["rebuild FAILED", "verify done", "backup done"])
    assert result.stderr.count("\n") == 1
    assert len(list((tmp_path / "backups").glob("*.gz"))) == 1
    with for_a_second(lambda: hold_rebuild_lock(open_ledger(impatient))):
        result = ratings("nightly", "--backup", tmp_path / "backups", "--retry", "1m", db=impatient)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list(told(result)) == ["rebuild done", "verify done", "backup done"]
    assert len(list((tmp_path / "backups").glob("*.gz"))) == 2


@pytest.mark.slow_cases
def test_unusable_engine_spares_the_backup(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """If the workers cannot be asked, rebuild and verify fail, and the backup is made."""
    assert ratings("rebuild", db=db).exit_code == 0
    result = ratings("nightly", "--backup", tmp_path / "backups", "--on", "carts:4", db=db)
    assert list(told(result)) == ["rebuild FAILED", "verify FAILED", "backup done"]


@pytest.mark.slow
def test_crash_of_the_server_is_one_line(ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that crashes during the night is told in one line, and all parts leave a failed run."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with start_own_server() as server, create_postgres_database(server.url) as url:
        assert ratings("init", "--for", "catan", db=url).exit_code == 0
        promote = generations.promote

        def crash(*arguments: Any) -> None:
            server.kill()
            promote(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(generations, "promote", crash)
            result = ratings("nightly", "--backup", tmp_path / "backups", db=url)
        assert (result.exit_code, result.stderr.count("\n")) == (3, 1), result
        assert result.stderr.startswith("ratings: rebuild: postgresql:")
        assert [result.stdout.count(f"{part} FAILED") for part in ("rebuild", "verify", "backup")] == [1, 1, 1]
        server.start()
        assert runs(ratings, url) == dict.fromkeys(("backup", "nightly", "rebuild", "verify"), "failed")
        assert ratings("nightly", "--backup", tmp_path / "backups", db=url).exit_code == 0
        assert ratings("status", "--no-failures", db=url).exit_code == 0


@pytest.fixture
def roles(postgres_url: str, ratings: Ratings) -> Iterator[Roles]:
    with create_documented_roles(ratings, postgres_url) as made:
        yield made


@pytest.mark.slow
def test_missing_rights_are_named_first(
    roles: Roles, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each documented role, a nightly run names any missing right before the rebuild starts."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    result = ratings("nightly", "--backup", tmp_path / "backups", db=roles.rebuilder)
    assert (result.exit_code, result.stderr) == (0, "")
    for url in (roles.reader, roles.writer):
        result = ratings("nightly", "--backup", tmp_path / "backups", db=url)
        assert (result.exit_code, list(told(result))) == (3, ["rebuild FAILED", "verify done", "backup done"])
        assert result.stderr.startswith(
            "ratings: rebuild: nothing can be stored: this user lacks INSERT, UPDATE, DELETE"
        )
        assert "generation_standings" in result.stderr
        assert "which the role ratings_rebuilder has" in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.slow_cases
def test_read_only_file_is_named(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database file that may not be written is named, and verify is still done."""
    if not db.startswith("sqlite"):
        pytest.skip("a file")
    path = str(make_url(db).database)
    # whoever runs the tests may be allowed everything
    monkeypatch.setattr("ratings_ledger.ledger.store.sqlite.os.access", lambda place, mode: str(place) != path)
    result = ratings("nightly", db=db)
    assert (result.exit_code, list(told(result))) == (3, ["rebuild FAILED", "verify done"])
    assert f"this account may not write {path}" in result.stderr


@pytest.mark.slow
def test_night_reports_the_last_comparison_without_the_cache(
    db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night says when all that is stored was last compared without the cache: by a whole verify, unless workers do
    that from sealed segments, or by `rebuild --check`."""
    monkeypatch.setattr(coordinating, "SEGMENT_EVENTS", 1)  # workers do nothing for a log without a whole segment

    def compared(*arguments: str) -> str | None:
        done = ratings("nightly", "--format", "json", *arguments, db=db)
        assert done.exit_code == 0, done
        found: str | None = json.loads(done.stdout)["compared_without_cache"]
        return found

    def last(kind: str) -> str:
        started: str = json.loads(ratings("status", "--format", "json", db=db).stdout)["runs"][kind]["last"]["started"]
        return started

    assert compared("--on", "processes:1") is None
    line = ratings("nightly", "--on", "processes:1", db=db).stdout
    assert "(last compared without the cache: never; see: ratings verify)" in line
    assert ratings("rebuild", "--check", db=db).exit_code == 0
    checked = last("rebuild")
    assert compared("--on", "processes:1") == checked
    assert ratings("verify", db=db).exit_code == 0
    by_hand = last("verify")
    assert compared() == by_hand
    assert compared("--on", "processes:1") == by_hand
    assert f"(last compared without the cache: {by_hand})" in ratings("nightly", "--on", "processes:1", db=db).stdout
