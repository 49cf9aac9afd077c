"""Exports, backups and restores that are interrupted or find no room: all of it is there, or nothing that looks so."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import append_games, build_numbered_game, fork_child, wait_for_exits
from ledgers import read_all_records, run_command
from stores import make_empty_ledger

from ratings_ledger.ledger import own_files
from ratings_ledger.ledger.backups.backup_folder import LIST_NAME, LOCK_NAME, read_list
from ratings_ledger.ledger.backups.restoring import BackupFiles, check_backup
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger

Ratings = Callable[..., Any]
EVENTS = 3_000
FULL = "No space left on device; free some space and run the same command again"


def with_games(_: Ratings, url: str) -> None:
    """Make a ledger with so many games that an export takes a while."""
    make_empty_ledger(_, url)
    append_games(url, [build_numbered_game(number) for number in range(EVENTS)])


@pytest.fixture
def full(copied: Callable[..., str]) -> str:
    """A ledger of some thousand games, on each kind of store."""
    return copied(with_games)


def head_of(url: str) -> str:
    with open_ledger(url).reading() as connection:
        return str(head(connection))


def run(*arguments: object) -> int:
    """A command in a process of its own, which says nothing and can be interrupted."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return run_command(*arguments)


def struck(number: int, seconds: float, *arguments: object) -> int:
    """Strike a command after so many seconds; by turns kill -9 and Ctrl-C."""
    child = fork_child(run, *arguments)
    time.sleep(seconds)
    os.kill(child, signal.SIGINT if number % 2 else signal.SIGKILL)
    return wait_for_exits([child])[0]


def lasting(*arguments: object) -> float:
    """How long a command takes that nobody strikes."""
    begun = time.monotonic()
    assert wait_for_exits([fork_child(run, *arguments)]) == [0]
    return time.monotonic() - begun


@pytest.fixture(params=["without a name", "under another name"])
def beside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a file is written beside: as the system can, and as any can."""
    if request.param == "under another name":
        monkeypatch.setattr(own_files.os, "O_TMPFILE", 0, raising=False)
    elif not getattr(os, "O_TMPFILE", 0):
        pytest.skip("the system has no files without names")
    return str(request.param)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_interrupted_exports_are_whole_or_absent(beside: str, full: str, tmp_path: Path, at_length: bool) -> None:
    """However exports are interrupted, each file is whole or not there."""
    folder, chance = tmp_path / "exports", random.Random(4)
    folder.mkdir()
    length = lasting("--db", full, "export", "events", "-o", folder / "first.jsonl.gz")
    expected, absent = head_of(full), 0
    strikes = 200 if at_length else 10
    for number in range(strikes):
        file = folder / f"{number}.jsonl{'.gz' if number % 4 < 2 else ''}"
        code = struck(number, chance.uniform(0, length), "--db", full, "export", "events", "-o", file)
        assert file.exists() or code != 0
        if file.exists():
            assert str(check_backup(BackupFiles([str(file)])).head) == expected
        absent += not file.exists()
    assert absent >= strikes // 4, "hardly one was struck in time"
    left = [name for name in os.listdir(folder) if ".part" in name]
    # kill -9 alone leaves anything, and only where files need names
    assert len(left) <= (0 if beside == "without a name" else strikes // 2 + 1)


STEPS = ("fsync", "link", "unlink")


@pytest.mark.slow_cases
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_export_stopped_midway_is_atomic(
    how: signal.Signals, step: str, beside: str, copied_file: Callable[..., str], tmp_path: Path
) -> None:
    """An export stopped at a given step is whole or absent, and the next one works.

    It stops before it is on the disk, before it has its name, or before the other name is gone.
    """
    db, folder = copied_file(with_games), tmp_path / "exports"
    folder.mkdir()
    true_step = getattr(os, step)

    def strike(*arguments: Any, **more: Any) -> Any:
        os.kill(os.getpid(), how)
        return true_step(*arguments, **more)

    def command() -> int:
        setattr(own_files.os, step, strike)
        return run("--db", db, "export", "events", "-o", folder / "all.jsonl")

    (code,) = wait_for_exits([fork_child(command)])
    file = folder / "all.jsonl"
    if step == "unlink" and beside == "without a name":
        assert code == 0  # no such step
    if file.exists():
        assert (step, str(check_backup(BackupFiles([str(file)])).head)) == ("unlink", head_of(db))
    else:
        assert code in (-signal.SIGKILL, 130)
    if how == signal.SIGINT and step != "unlink":
        assert os.listdir(folder) in ([], ["all.jsonl"])
    # and the next night is not kept from its work
    assert wait_for_exits([fork_child(run, "--db", db, "export", "events", "-o", folder / "next.jsonl")]) == [0]


@pytest.mark.slow_cases
@pytest.mark.parametrize("links", [0, 1])
def test_killed_backup_leaves_no_head(links: int, copied_file: Callable[..., str], tmp_path: Path) -> None:
    """A backup that is killed before it has its name leaves no head that the next one does not remove.

    It is killed before the first name is given, or between that of the head and its own.
    """
    db, folder = copied_file(with_games), tmp_path / "backups"
    command, true_link, given = ("--db", db, "backup", "make", folder), os.link, list[Any]()

    def strike(*arguments: Any, **more: Any) -> None:
        if len(given) == links:
            os.kill(os.getpid(), signal.SIGKILL)
        given.append(arguments)
        true_link(*arguments, **more)

    def killed() -> int:
        own_files.os.link = strike  # type: ignore[attr-defined]
        return run(*command)

    def heads() -> list[str]:
        return [name for name in os.listdir(folder) if name.endswith(".head")]

    assert wait_for_exits([fork_child(killed)]) == [-signal.SIGKILL]
    assert len(heads()) == links
    (folder / "notes.jsonl.gz.head").write_text("mine")
    assert wait_for_exits([fork_child(run, *command)]) == [0]
    (backup,) = read_list(folder)
    assert sorted(heads()) == ["notes.jsonl.gz.head", f"{backup.file}.head"]


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_interrupted_backups_are_whole(full: str, tmp_path: Path, at_length: bool) -> None:
    """However backups are interrupted, those that are there are whole and old ones are kept."""
    folder, chance = tmp_path / "backups", random.Random(5)
    command = ("--db", full, "backup", "make", folder, "--keep", "1d")
    length = lasting(*command)
    expected = head_of(full)
    for number in range(60 if at_length else 8):
        struck(number, chance.uniform(0, length), *command)
        whole = [path for path in folder.iterdir() if path.suffix == ".gz"]
        assert whole, "the last backup was dropped"
        for path in whole:
            assert str(check_backup(BackupFiles([str(path)])).head) == expected
            assert Path(f"{path}.head").read_text() == f"{expected}\n"
        read_list(folder)
    assert wait_for_exits([fork_child(run, *command)]) == [0]
    listed = [one.file for one in read_list(folder)]
    assert len(listed) == 1
    assert (folder / listed[0]).exists()


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_interrupted_restores_are_all_or_nothing(
    copied_file: Callable[..., str], ledger_url: str, tmp_path: Path, at_length: bool
) -> None:
    """After an interrupted restore, the ledger is empty or whole."""
    full = copied_file(with_games, name="full.db")
    file, chance = tmp_path / "all.jsonl.gz", random.Random(6)
    assert wait_for_exits([fork_child(run, "--db", full, "export", "events", "-o", file)]) == [0]
    begun = time.monotonic()
    check_backup(BackupFiles([str(file)]))
    length = 2 * (time.monotonic() - begun)
    for number in range(30 if at_length else 6):
        # all is checked first, then stored
        struck(number, chance.uniform(length / 4, length), "--db", ledger_url, "import", "--restore", file)
        stored = read_all_records(ledger_url)
        assert len(stored) in (0, EVENTS)
        if stored:
            break
    else:
        assert wait_for_exits([fork_child(run, "--db", ledger_url, "import", "--restore", file)]) == [0]
    assert head_of(ledger_url) == head_of(full)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of a file system that has room for a part of an export."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_full_disk_leaves_no_export(beside: str, small_disk: Path, full: str, ratings: Ratings) -> None:
    """On a full disk an export or backup leaves nothing, and works once there is room."""
    file = small_disk / "all.jsonl"
    told = ratings("export", "events", "-o", file, db=full)
    assert (told.exit_code, told.stdout, told.stderr) == (3, "", f"ratings: {file}: {FULL}\n")
    assert os.listdir(small_disk) == []
    made = ratings("backup", "make", small_disk / "backups", "--keep", "1d", db=full)
    assert (made.exit_code, FULL in made.stderr) == (3, True)
    assert os.listdir(small_disk / "backups") == [LOCK_NAME]
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    assert ratings("export", "events", "-o", file, db=full).exit_code == 0
    assert ratings("backup", "check", file).exit_code == 0
    assert ratings("backup", "make", small_disk / "backups", db=full).exit_code == 0


def test_full_disk_keeps_old_backups(small_disk: Path, copied_file: Callable[..., str], ratings: Ratings) -> None:
    """When the disk fills up during a backup, the old backups stay."""
    db = copied_file(with_games)
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    assert ratings("backup", "make", small_disk, "--keep", "1d", db=db).exit_code == 0
    before = sorted(os.listdir(small_disk))
    stuffing = small_disk / "stuffing"
    with open(stuffing, "wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4_096)):
            pass
    assert ratings("backup", "make", small_disk, "--keep", "1d", db=db).exit_code == 3
    stuffing.unlink()
    assert sorted(os.listdir(small_disk)) == before
    assert LIST_NAME in before
    assert ratings("backup", "make", small_disk, "--keep", "1d", db=db).exit_code == 0


@pytest.mark.slow
def test_full_disk_restore_leaves_ledger_empty(
    small_disk: Path, copied_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """A restore to a full disk leaves the ledger empty; it can be restored later."""
    full, db, file = copied_file(with_games), f"{small_disk}/ratings.db", tmp_path / "all.jsonl"
    assert ratings("export", "events", "-o", file, db=full).exit_code == 0
    subprocess.run(["mount", "-o", "remount,size=600k", str(small_disk)], check=True)
    assert ratings("init", "--no-rules", db=db).exit_code == 0
    told = ratings("import", "--restore", file, db=db)
    assert (told.exit_code, "no space left" in told.stderr) == (3, True), told
    assert read_all_records(db) == {}
    subprocess.run(["mount", "-o", "remount,size=80m", str(small_disk)], check=True)
    assert ratings("import", "--restore", file, db=db).exit_code == 0
    assert head_of(db) == head_of(full)
