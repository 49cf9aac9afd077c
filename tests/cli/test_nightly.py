"""`nightly`: each part runs whether or not the others fail, one line reports all of them, and one exit code results."""

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
from rebuilds import act_before_promotion, keep_rebuilds_out
from roles import Roles, create_documented_roles
from sqlalchemy import make_url
from stores import create_postgres_database, start_own_server
from thresholds import set_thresholds

from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.runs import list_runs, record_run

from ratings_ledger.ledger import clock  # isort: skip


PART = re.compile(r"(?:^|; )(rebuild|verify|backup) (done|FAILED): ")
Ratings = Callable[..., Any]
LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (.*); head (\d+:[0-9a-f]{64}), in \d+\.\d s\n")


@pytest.fixture
def db(ledger_url: str, ratings: Ratings) -> str:
    """Return the URL of a ledger with a game, in each kind of store in turn."""
    recorded = ratings("record", "--game", "catan", "--game-id", "g-1", "anna", "ben", "--by", "mira", db=ledger_url)
    assert recorded.exit_code == 0
    return ledger_url


def parse_parts(result: Any) -> dict[str, str]:
    """Return the text of each part in the printed line, by the part and its outcome, such as `rebuild done`."""
    match = LINE.fullmatch(result.stdout)
    assert match is not None, result
    parts, texts = re.findall(PART, match.group(2)), re.split(PART, match.group(2))
    return dict(zip((f"{name} {outcome}" for name, outcome in parts), texts[3::3], strict=True))


def read_run_results(ratings: Ratings, db: str) -> dict[str, str]:
    """Return the result of the last run of each kind."""
    runs_by_kind = json.loads(ratings("status", "--format", "json", db=db).stdout)["runs"]
    return {kind: run["last"]["result"] for kind, run in runs_by_kind.items()}


def publish_missing_rule(db: str) -> None:
    """Publish a ruleset whose rule belongs to a package that is not installed."""
    data = {
        "id": "darts",
        "version": "1",
        "rule": "gone/1",
        "effective_from": "2000-01-01",
        "scope": {"game": ["darts"]},
        "params": {},
    }
    append_drafts(db, build_draft(build_event("ruleset.published", "1970-01-01T00:00:00Z", "darts", **data)))


@pytest.mark.slow_cases
def test_night_prints_one_line(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A successful nightly run prints one line with the head, and each part leaves a run."""
    result = ratings("nightly", "--backup", tmp_path / "backups", "--keep", "2d", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    parts = parse_parts(result)
    assert list(parts) == ["rebuild done", "verify done", "backup done"]
    assert parts["rebuild done"].endswith("generation 1")
    assert Path(parts["backup done"]).is_file()
    head = json.loads(ratings("status", "--format", "json", db=db).stdout)["head"]
    assert f"head {head}," in result.stdout
    assert read_run_results(ratings, db) == dict.fromkeys(("backup", "nightly", "rebuild", "verify"), "done")
    assert ratings("status", "--max-age", "1h", "--max-behind", "0", "--no-failures", db=db).exit_code == 0
    metrics = ratings("status", "--format", "prometheus", db=db).stdout
    for kind in ("backup", "nightly", "rebuild", "verify"):
        assert re.search(rf'ratings_run_result{{.*kind="{kind}".*result="done".*}} 1', metrics), metrics


@pytest.mark.slow_cases
def test_no_folder_means_no_backup(db: str, ratings: Ratings) -> None:
    """Without a backup folder, a nightly run makes no backup, and --keep is a usage error."""
    result = ratings("nightly", db=db)
    assert (result.exit_code, list(parse_parts(result))) == (0, ["rebuild done", "verify done"])
    assert "backup" not in read_run_results(ratings, db)
    assert ratings("nightly", "--keep", "2d", db=db).exit_code == 2


@pytest.mark.slow_cases
def test_missing_rule_does_not_prevent_the_backup(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """With a rule that is not installed, rebuild and verify fail, and the backup is made."""
    publish_missing_rule(db)
    result = ratings("nightly", "--backup", tmp_path / "backups", db=db)
    assert (result.exit_code, list(parse_parts(result))) == (1, ["rebuild FAILED", "verify FAILED", "backup done"])
    assert "gone/1" in result.stderr
    assert read_run_results(ratings, db) == {
        "backup": "done",
        "nightly": "failed",
        "rebuild": "failed",
        "verify": "failed",
    }
    problem = ratings("status", "--no-failures", db=db)
    assert (problem.exit_code, "rebuild" in problem.stderr) == (1, True)


@pytest.mark.slow_cases
def test_impossible_row_is_named(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """An impossible stored row is named by verify, and the other parts succeed."""
    position = append_named_forgery("no participant", db)
    result = ratings("nightly", "--backup", tmp_path / "backups", "--format", "json", db=db)
    parts = {part["part"]: part for part in json.loads(result.stdout)["parts"]}
    assert [(name, part["exit_code"]) for name, part in parts.items()] == [("rebuild", 0), ("verify", 1), ("backup", 0)]
    assert result.exit_code == json.loads(result.stdout)["exit_code"] == 1
    assert f"ratings: verify: meaning: position {position}: " in result.stderr


@pytest.mark.slow_cases
def test_unusable_folder_is_named_first(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A backup folder that cannot be made is named first, and the other parts run."""
    folder = tmp_path / "nowhere" / "backups"
    result = ratings("nightly", "--backup", folder, db=db)
    assert result.stderr == f"ratings: backup: {folder}: No such file or directory\n"
    assert (result.exit_code, list(parse_parts(result))) == (3, ["rebuild done", "verify done", "backup FAILED"])
    assert read_run_results(ratings, db)["backup"] == "failed"
    assert not folder.parent.exists()
    publish_missing_rule(db)
    result = ratings("nightly", "--backup", folder, db=db)
    assert result.stderr.startswith("ratings: backup: ")
    assert (result.exit_code, list(parse_parts(result))) == (1, ["rebuild FAILED", "verify FAILED", "backup FAILED"])


@pytest.mark.slow_cases
def test_running_rebuild_does_not_prevent_verify(db: str, ratings: Ratings) -> None:
    """While another rebuild is running, the nightly rebuild fails and verify runs."""
    with keep_rebuilds_out(db):
        result = ratings("nightly", db=db)
    assert (result.exit_code, list(parse_parts(result))) == (4, ["rebuild FAILED", "verify done"])
    assert "another rebuild" in result.stderr


@pytest.mark.slow_cases
def test_second_concurrent_night_does_nothing(db: str, ratings: Ratings) -> None:
    """A nightly run that finds another one running does nothing and says so."""
    with record_run(open_ledger(db), "nightly", by="cron"):
        result = ratings("nightly", "--format", "json", db=db)
        assert (result.exit_code, result.stdout) == (4, "")
        assert "begun by cron at " in result.stderr
        assert "is still in progress, so this one did nothing" in result.stderr
        assert json.loads(result.stderr.splitlines()[-1])["reason"] == "already-running"
        assert read_run_results(ratings, db) == {"nightly": "running"}
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
    assert read_run_results(ratings, db) == {"nightly": "lost"}
    problem = ratings("status", "--no-failures", db=db)
    assert (problem.exit_code, "nightly" in problem.stderr) == (1, True)
    assert ratings("nightly", db=db).exit_code == 0
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        results = [run.result for run in list_runs(ledger, connection, clock.now()) if run.kind == "nightly"]
    assert results == ["done", "lost"]
    assert ratings("status", "--no-failures", db=db).exit_code == 0


# nights that cannot begin


@contextmanager
def make_unreachable(db: str) -> Iterator[None]:
    """Make the ledger unreachable: another process locks its file, or its database has another name."""
    url = make_url(db).difference_update_query(["timeout"])
    if db.startswith("sqlite"):
        with closing(sqlite3.connect(str(url.database), isolation_level=None)) as owner:
            owner.execute("BEGIN EXCLUSIVE")
            yield
        return
    with psycopg.connect(url.set(database="postgres").render_as_string(hide_password=False), autocommit=True) as owner:
        owner.execute(f"ALTER DATABASE {url.database} RENAME TO {url.database}_away")
        try:
            yield
        finally:
            owner.execute(f"ALTER DATABASE {url.database}_away RENAME TO {url.database}")


@contextmanager
def block_for_a_second(blocked: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Hold a blocking context for one second in a thread."""
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
def impatient_url(db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the ledger's URL with a short lock timeout, and provide an empty state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    set_thresholds(monkeypatch, retry_seconds=0.2)
    url = make_url(f"sqlite:///{db}" if "://" not in db else db)
    return url.update_query_dict({"timeout": "0.2"}).render_as_string(hide_password=False)


def list_state_files(tmp_path: Path) -> list[str]:
    return sorted(path.name.partition("-")[0] for path in (tmp_path / "state").rglob("*.json"))


@pytest.mark.slow
def test_night_without_ledger_leaves_failed_runs(impatient_url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A nightly run that cannot reach its ledger reports it in one line and leaves failed runs in the state folder.

    The next run that reaches the ledger stores the failed runs in it.
    """
    with make_unreachable(impatient_url):
        for _ in range(2):
            result = ratings("nightly", "--backup", tmp_path / "backups", db=impatient_url)
            assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)
    assert list_state_files(tmp_path) == sorted(["backup", "nightly", "rebuild", "verify"] * 2)
    assert read_run_results(ratings, impatient_url) == dict.fromkeys(
        ("backup", "nightly", "rebuild", "verify"), "failed"
    )
    problem = ratings("status", "--no-failures", db=impatient_url)
    assert (problem.exit_code, [line.split()[3] for line in problem.stderr.splitlines()]) == (
        1,
        ["backup", "rebuild", "verify"],
    )
    assert result.stderr.removeprefix("ratings: ").strip() in problem.stderr

    result = ratings("nightly", "--backup", tmp_path / "backups", db=impatient_url)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list_state_files(tmp_path) == []
    assert ratings("status", "--no-failures", db=impatient_url).exit_code == 0
    ledger = open_ledger(impatient_url)
    with ledger.reading() as connection:
        results = [run.result for run in list_runs(ledger, connection, clock.now()) if run.kind == "nightly"]
    assert results == ["done", "failed", "failed"]


@pytest.mark.slow
def test_night_waits_for_its_ledger_with_retry(impatient_url: str, ratings: Ratings, tmp_path: Path) -> None:
    """With --retry, a nightly run waits for its ledger, and leaves no failure if it becomes reachable in time."""
    with block_for_a_second(lambda: make_unreachable(impatient_url)):
        result = ratings("nightly", "--backup", tmp_path / "backups", "--retry", "1m", db=impatient_url)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list(parse_parts(result)) == ["rebuild done", "verify done", "backup done"]
    assert list_state_files(tmp_path) == []


@pytest.mark.slow
def test_retry_ends_at_its_limit(impatient_url: str, ratings: Ratings, tmp_path: Path) -> None:
    """A nightly run that cannot begin within --retry fails, and a malformed limit is a usage error."""
    with make_unreachable(impatient_url):
        began = time.monotonic()
        result = ratings("nightly", "--retry", "1s", db=impatient_url)
        assert 1 <= time.monotonic() - began < 30
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)
    assert list_state_files(tmp_path) == ["nightly", "rebuild", "verify"]
    assert ratings("nightly", "--retry", "soon", db=impatient_url).exit_code == 2


@pytest.mark.slow
def test_locked_rebuild_is_retried(impatient_url: str, ratings: Ratings, tmp_path: Path) -> None:
    """While another rebuild is running, the other parts run at once, and with --retry the rebuild runs after it."""
    with keep_rebuilds_out(impatient_url):
        result = ratings("nightly", "--backup", tmp_path / "backups", "--retry", "1s", db=impatient_url)
    assert (result.exit_code, list(parse_parts(result))) == (4, ["rebuild FAILED", "verify done", "backup done"])
    assert result.stderr.count("\n") == 1
    assert len(list((tmp_path / "backups").glob("*.gz"))) == 1
    with block_for_a_second(lambda: keep_rebuilds_out(impatient_url)):
        result = ratings("nightly", "--backup", tmp_path / "backups", "--retry", "1m", db=impatient_url)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list(parse_parts(result)) == ["rebuild done", "verify done", "backup done"]
    assert len(list((tmp_path / "backups").glob("*.gz"))) == 2


@pytest.mark.slow_cases
def test_unknown_engine_does_not_prevent_the_backup(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """If --on names an unknown engine, rebuild and verify fail, and the backup is made."""
    assert ratings("rebuild", db=db).exit_code == 0
    result = ratings("nightly", "--backup", tmp_path / "backups", "--on", "carts:4", db=db)
    assert list(parse_parts(result)) == ["rebuild FAILED", "verify FAILED", "backup done"]


@pytest.mark.slow
def test_crash_of_the_server_is_one_line(ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash of the server is reported in one line, and every part leaves a failed run."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with start_own_server() as server, create_postgres_database(server.url) as url:
        assert ratings("init", "--for", "catan", db=url).exit_code == 0
        with monkeypatch.context() as patch:
            act_before_promotion(patch, server.kill)
            result = ratings("nightly", "--backup", tmp_path / "backups", db=url)
        assert (result.exit_code, result.stderr.count("\n")) == (3, 1), result
        assert result.stderr.startswith("ratings: rebuild: postgresql:")
        assert [result.stdout.count(f"{part} FAILED") for part in ("rebuild", "verify", "backup")] == [1, 1, 1]
        server.start()
        assert read_run_results(ratings, url) == dict.fromkeys(("backup", "nightly", "rebuild", "verify"), "failed")
        assert ratings("nightly", "--backup", tmp_path / "backups", db=url).exit_code == 0
        assert ratings("status", "--no-failures", db=url).exit_code == 0


@pytest.fixture
def documented_roles(postgres_url: str, ratings: Ratings) -> Iterator[Roles]:
    with create_documented_roles(ratings, postgres_url) as created:
        yield created


@pytest.mark.slow
def test_missing_rights_are_named_before_the_rebuild(
    documented_roles: Roles, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A nightly run as the reader or the writer names the missing rights before the rebuild; the rebuilder has them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    result = ratings("nightly", "--backup", tmp_path / "backups", db=documented_roles.rebuilder)
    assert (result.exit_code, result.stderr) == (0, "")
    for url in (documented_roles.reader, documented_roles.writer):
        result = ratings("nightly", "--backup", tmp_path / "backups", db=url)
        assert (result.exit_code, list(parse_parts(result))) == (3, ["rebuild FAILED", "verify done", "backup done"])
        assert result.stderr.startswith(
            "ratings: rebuild: nothing can be stored: this user lacks INSERT, UPDATE, DELETE"
        )
        assert "generation_standings" in result.stderr
        assert "which the role ratings_rebuilder has" in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.slow_cases
def test_read_only_file_is_named(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database file that may not be written is named, and verify runs."""
    if not db.startswith("sqlite"):
        pytest.skip("only SQLite has a file")
    path = str(make_url(db).database)
    # the tests may run as root, which may write every file
    monkeypatch.setattr("ratings_ledger.ledger.store.sqlite.os.access", lambda file, mode: str(file) != path)
    result = ratings("nightly", db=db)
    assert (result.exit_code, list(parse_parts(result))) == (3, ["rebuild FAILED", "verify done"])
    assert f"this account may not write to {path}" in result.stderr


@pytest.mark.slow
def test_night_reports_the_last_comparison_without_the_cache(
    db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night reports when all stored results were last compared without the cache: by a complete verify or by
    `rebuild --check`."""
    set_thresholds(monkeypatch, segment_events=1)  # workers do nothing for a log without a whole segment

    def read_last_comparison(*arguments: str) -> str | None:
        result = ratings("nightly", "--format", "json", *arguments, db=db)
        assert result.exit_code == 0, result
        compared_without_cache: str | None = json.loads(result.stdout)["compared_without_cache"]
        return compared_without_cache

    def read_last_start(kind: str) -> str:
        started: str = json.loads(ratings("status", "--format", "json", db=db).stdout)["runs"][kind]["last"]["started"]
        return started

    assert read_last_comparison("--on", "processes:1") is None
    line = ratings("nightly", "--on", "processes:1", db=db).stdout
    assert "(last compared without the cache: never; see: ratings verify)" in line
    assert ratings("rebuild", "--check", db=db).exit_code == 0
    checked = read_last_start("rebuild")
    assert read_last_comparison("--on", "processes:1") == checked
    assert ratings("verify", db=db).exit_code == 0
    verified = read_last_start("verify")
    assert read_last_comparison() == verified
    assert read_last_comparison("--on", "processes:1") == verified
    assert f"(last compared without the cache: {verified})" in ratings("nightly", "--on", "processes:1", db=db).stdout
