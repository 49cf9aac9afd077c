"""Interrupted exports, backups and restores leave complete files or none, also on a full disk."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import append_games, build_numbered_game, fork_child, wait_for_exits
from ledgers import read_all_records, run_command
from small_disks import mount_small_disk, resize_disk
from stores import make_empty_ledger

from ratings_ledger.ledger import own_files
from ratings_ledger.ledger.backups.backup_files import BackupFiles, check_backup
from ratings_ledger.ledger.backups.backup_folder import LIST_NAME, LOCK_NAME, read_list
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger

Ratings = Callable[..., Any]
EVENTS = 3_000
DISK_FULL = "No space left on device; free some space and run the same command again"


def create_with_games(ratings: Ratings, url: str) -> None:
    """Create a ledger with so many games that an export takes a while."""
    make_empty_ledger(ratings, url)
    append_games(url, [build_numbered_game(number) for number in range(EVENTS)])


@pytest.fixture
def full_url(copy_ledger: Callable[..., str]) -> str:
    """Return the URL of a ledger with some thousand games, in each kind of store in turn."""
    return copy_ledger(create_with_games)


def read_head(url: str) -> str:
    with open_ledger(url).reading() as connection:
        return str(head(connection))


def run_quietly(*arguments: object) -> int:
    """Run a command that Ctrl-C can interrupt, without its output, and return its exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return run_command(*arguments)


def run_and_interrupt(number: int, seconds: float, *arguments: object) -> int:
    """Run a command, interrupt it after some seconds by kill -9 or Ctrl-C in turn, and return its exit code."""
    child = fork_child(run_quietly, *arguments)
    time.sleep(seconds)
    os.kill(child, signal.SIGINT if number % 2 else signal.SIGKILL)
    return wait_for_exits([child])[0]


def measure_seconds(*arguments: object) -> float:
    """Return the duration of a command that is not interrupted."""
    begun = time.monotonic()
    assert wait_for_exits([fork_child(run_quietly, *arguments)]) == [0]
    return time.monotonic() - begun


@pytest.fixture(params=["without a name", "under another name"])
def temporary_file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the kind of temporary file of an export: without a name, or under another name."""
    if request.param == "under another name":
        monkeypatch.setattr(own_files.os, "O_TMPFILE", 0, raising=False)
    elif not getattr(os, "O_TMPFILE", 0):
        pytest.skip("the system has no files without names")
    return str(request.param)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_interrupted_exports_are_complete_or_absent(
    temporary_file: str, full_url: str, tmp_path: Path, at_length: bool
) -> None:
    """Each file of an interrupted export is complete or absent."""
    folder, rng = tmp_path / "exports", random.Random(4)
    folder.mkdir()
    seconds = measure_seconds("--db", full_url, "export", "events", "-o", folder / "first.jsonl.gz")
    expected, absent = read_head(full_url), 0
    strikes = 200 if at_length else 10
    for number in range(strikes):
        file = folder / f"{number}.jsonl{'.gz' if number % 4 < 2 else ''}"
        code = run_and_interrupt(number, rng.uniform(0, seconds), "--db", full_url, "export", "events", "-o", file)
        assert file.exists() or code != 0
        if file.exists():
            assert str(check_backup(BackupFiles([str(file)])).head) == expected
        absent += not file.exists()
    assert absent >= strikes // 4, "too few exports were interrupted in time"
    partial_files = [name for name in os.listdir(folder) if ".part" in name]
    # only kill -9 leaves partial files, and only if temporary files have names
    assert len(partial_files) <= (0 if temporary_file == "without a name" else strikes // 2 + 1)


STEPS = ("fsync", "link", "unlink")


@pytest.mark.slow_cases
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("stop_signal", [signal.SIGKILL, signal.SIGINT])
def test_export_stopped_at_a_step_is_complete_or_absent(
    stop_signal: signal.Signals, step: str, temporary_file: str, copy_ledger_file: Callable[..., str], tmp_path: Path
) -> None:
    """An export stopped at a given step is complete or absent, and the next one works.

    It stops before it is on the disk, before it has its name, or before its other name is removed.
    """
    db, folder = copy_ledger_file(create_with_games), tmp_path / "exports"
    folder.mkdir()
    true_step = getattr(os, step)

    def stop_and_step(*arguments: Any, **options: Any) -> Any:
        os.kill(os.getpid(), stop_signal)
        return true_step(*arguments, **options)

    def run_stopped_export() -> int:
        setattr(own_files.os, step, stop_and_step)
        return run_quietly("--db", db, "export", "events", "-o", folder / "all.jsonl")

    (code,) = wait_for_exits([fork_child(run_stopped_export)])
    file = folder / "all.jsonl"
    if step == "unlink" and temporary_file == "without a name":
        assert code == 0  # no such step
    if file.exists():
        assert (step, str(check_backup(BackupFiles([str(file)])).head)) == ("unlink", read_head(db))
    else:
        assert code in (-signal.SIGKILL, 130)
    if stop_signal == signal.SIGINT and step != "unlink":
        assert os.listdir(folder) in ([], ["all.jsonl"])
    # the next export succeeds
    assert wait_for_exits([fork_child(run_quietly, "--db", db, "export", "events", "-o", folder / "next.jsonl")]) == [0]


@pytest.mark.slow_cases
@pytest.mark.parametrize("links", [0, 1])
def test_killed_backup_leaves_no_head_behind(links: int, copy_ledger_file: Callable[..., str], tmp_path: Path) -> None:
    """The head of a backup that was killed before it had its name is removed by the next backup.

    The backup is killed before its head has its name, or afterwards, before the backup itself has its name.
    """
    db, folder = copy_ledger_file(create_with_games), tmp_path / "backups"
    command, true_link, links_made = ("--db", db, "backup", "make", folder), os.link, list[Any]()

    def link_or_die(*arguments: Any, **options: Any) -> None:
        if len(links_made) == links:
            os.kill(os.getpid(), signal.SIGKILL)
        links_made.append(arguments)
        true_link(*arguments, **options)

    def run_killed_backup() -> int:
        own_files.os.link = link_or_die  # type: ignore[attr-defined]
        return run_quietly(*command)

    def list_heads() -> list[str]:
        return [name for name in os.listdir(folder) if name.endswith(".head")]

    assert wait_for_exits([fork_child(run_killed_backup)]) == [-signal.SIGKILL]
    assert len(list_heads()) == links
    (folder / "notes.jsonl.gz.head").write_text("mine")
    assert wait_for_exits([fork_child(run_quietly, *command)]) == [0]
    (backup,) = read_list(folder)
    assert sorted(list_heads()) == ["notes.jsonl.gz.head", f"{backup.file}.head"]


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_interrupted_backups_are_complete(full_url: str, tmp_path: Path, at_length: bool) -> None:
    """After interrupted backups, all existing ones are complete, and at least one is kept."""
    folder, rng = tmp_path / "backups", random.Random(5)
    command = ("--db", full_url, "backup", "make", folder, "--keep", "1d")
    seconds = measure_seconds(*command)
    expected = read_head(full_url)
    for number in range(60 if at_length else 8):
        run_and_interrupt(number, rng.uniform(0, seconds), *command)
        backups = [path for path in folder.iterdir() if path.suffix == ".gz"]
        assert backups, "the last backup was dropped"
        for path in backups:
            assert str(check_backup(BackupFiles([str(path)])).head) == expected
            assert Path(f"{path}.head").read_text() == f"{expected}\n"
        read_list(folder)
    assert wait_for_exits([fork_child(run_quietly, *command)]) == [0]
    listed = [entry.file for entry in read_list(folder)]
    assert len(listed) == 1
    assert (folder / listed[0]).exists()


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_interrupted_restore_is_all_or_nothing(
    copy_ledger_file: Callable[..., str], ledger_url: str, tmp_path: Path, at_length: bool
) -> None:
    """After an interrupted restore, the ledger is empty or complete."""
    full_url = copy_ledger_file(create_with_games, name="full.db")
    file, rng = tmp_path / "all.jsonl.gz", random.Random(6)
    assert wait_for_exits([fork_child(run_quietly, "--db", full_url, "export", "events", "-o", file)]) == [0]
    begun = time.monotonic()
    check_backup(BackupFiles([str(file)]))
    seconds = 2 * (time.monotonic() - begun)
    for number in range(30 if at_length else 6):
        # a restore first checks all events, then stores them
        run_and_interrupt(number, rng.uniform(seconds / 4, seconds), "--db", ledger_url, "import", "--restore", file)
        stored = read_all_records(ledger_url)
        assert len(stored) in (0, EVENTS)
        if stored:
            break
    else:
        assert wait_for_exits([fork_child(run_quietly, "--db", ledger_url, "import", "--restore", file)]) == [0]
    assert read_head(ledger_url) == read_head(full_url)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of a file system that has room for a part of an export."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with mount_small_disk(folder, "24k"):
        yield folder


@pytest.mark.slow
def test_full_disk_leaves_no_export(temporary_file: str, small_disk: Path, full_url: str, ratings: Ratings) -> None:
    """On a full disk an export or backup leaves nothing, and succeeds once there is room."""
    file = small_disk / "all.jsonl"
    result = ratings("export", "events", "-o", file, db=full_url)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "", f"ratings: {file}: {DISK_FULL}\n")
    assert os.listdir(small_disk) == []
    backup_result = ratings("backup", "make", small_disk / "backups", "--keep", "1d", db=full_url)
    assert (backup_result.exit_code, DISK_FULL in backup_result.stderr) == (3, True)
    assert os.listdir(small_disk / "backups") == [LOCK_NAME]
    resize_disk(small_disk, "8m")
    assert ratings("export", "events", "-o", file, db=full_url).exit_code == 0
    assert ratings("backup", "check", file).exit_code == 0
    assert ratings("backup", "make", small_disk / "backups", db=full_url).exit_code == 0


def test_full_disk_keeps_old_backups(small_disk: Path, copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """If the disk fills up during a backup, the old backups stay."""
    db = copy_ledger_file(create_with_games)
    resize_disk(small_disk, "8m")
    assert ratings("backup", "make", small_disk, "--keep", "1d", db=db).exit_code == 0
    before = sorted(os.listdir(small_disk))
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4_096)):
            pass
    assert ratings("backup", "make", small_disk, "--keep", "1d", db=db).exit_code == 3
    filler.unlink()
    assert sorted(os.listdir(small_disk)) == before
    assert LIST_NAME in before
    assert ratings("backup", "make", small_disk, "--keep", "1d", db=db).exit_code == 0


@pytest.mark.slow
def test_restore_on_full_disk_leaves_ledger_empty(
    small_disk: Path, copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """A restore on a full disk leaves the ledger empty, and succeeds once there is room."""
    full_url, db, file = copy_ledger_file(create_with_games), f"{small_disk}/ratings.db", tmp_path / "all.jsonl"
    assert ratings("export", "events", "-o", file, db=full_url).exit_code == 0
    resize_disk(small_disk, "600k")
    assert ratings("init", "--no-rules", db=db).exit_code == 0
    result = ratings("import", "--restore", file, db=db)
    assert (result.exit_code, "no space left" in result.stderr) == (3, True), result
    assert read_all_records(db) == {}
    resize_disk(small_disk, "80m")
    assert ratings("import", "--restore", file, db=db).exit_code == 0
    assert read_head(db) == read_head(full_url)
