"""Damaged, cut or mixed backups are neither restored nor called complete, and backups never write through links."""

import gzip
import json
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import append_games, build_correction, build_decision, build_numbered_game
from forging import append_named_forgery
from stores import make_empty_ledger

from ratings_ledger.ledger.backups import backup_folder
from ratings_ledger.ledger.backups.backup_files import BackupFiles, check_backup
from ratings_ledger.ledger.store import sqlite
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger

Ratings = Callable[..., Any]
Lines = list[bytes]
# (random numbers, the lines of a backup, the lines of another ledger's backup) -> the lines of a damaged backup
Damage = Callable[[random.Random, Lines, Lines], Lines | bytes]
EVENTS = 40


def create_with_history(ratings: Ratings, url: str, first: int) -> None:
    """Create a ledger of games with some decisions; `first` is the number of its first game."""
    make_empty_ledger(ratings, url)
    append_games(url, [build_numbered_game(number) for number in range(first, first + EVENTS - 4)])
    append_games(url, [build_correction(first, "ben", "anna", "cleo")])
    append_games(url, [build_decision("game.voided", game_id=f"g-{first + 1}")])
    append_games(url, [build_decision("player.renamed", player="dora", new_player="dorothea")])
    append_games(url, [build_decision("player.registered", player="zoe")])


@pytest.fixture
def backup_lines(copy_ledger: Callable[..., str], tmp_path: Path, ratings: Ratings) -> Lines:
    """Return the lines of a backup, from each kind of store in turn."""
    file = tmp_path / "own.jsonl"
    url = copy_ledger(create_with_history, 0)
    assert ratings("export", "events", "-o", file, db=url).exit_code == 0
    return file.read_bytes().splitlines(keepends=True)


@pytest.fixture
def other_backup(copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings) -> Lines:
    """Return the lines of another ledger's backup with as many events."""
    db, file = copy_ledger_file(create_with_history, 3, name="theirs.db"), tmp_path / "theirs.jsonl"
    assert ratings("export", "events", "-o", file, db=db).exit_code == 0
    return file.read_bytes().splitlines(keepends=True)


def choose_line(chance: random.Random, lines: Lines) -> int:
    """Return the index of a random line with a record."""
    return chance.randrange(len(lines) - 1)


def remove_line(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    number = choose_line(chance, lines)
    return lines[:number] + lines[number + 1 :]


def repeat_line(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    number = choose_line(chance, lines)
    return lines[: number + 1] + lines[number:]


def swap_lines(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    first, second = sorted(chance.sample(range(len(lines)), 2))
    return [*lines[:first], lines[second], *lines[first + 1 : second], lines[first], *lines[second + 1 :]]


def change_name(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    """Replace a player in a line, so that this program could have written it."""
    number = chance.choice([n for n, line in enumerate(lines) if b'"player":"anna"' in line])
    return [*lines[:number], lines[number].replace(b'"player":"anna"', b'"player":"mona"'), *lines[number + 1 :]]


def change_time(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    number = chance.choice([n for n, line in enumerate(lines) if b"2010-03-05" in line])
    return [*lines[:number], lines[number].replace(b"2010-03-05", b"2010-03-04"), *lines[number + 1 :]]


def change_byte(chance: random.Random, lines: Lines, other_lines: Lines) -> bytes:
    content = bytearray(b"".join(lines))
    offset = chance.randrange(len(content) - 1)
    content[offset] ^= 1 << chance.randrange(8)
    return bytes(content)


def cut_at_line(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    return lines[: chance.randrange(1, len(lines))]


def cut_anywhere(chance: random.Random, lines: Lines, other_lines: Lines) -> bytes:
    content = b"".join(lines)
    return content[: chance.randrange(1, len(content) - 1)]


def zero_page(chance: random.Random, lines: Lines, other_lines: Lines) -> bytes:
    """Overwrite a page with zeros, as a file system may after a crash."""
    content = bytearray(b"".join(lines))
    begin = chance.randrange(len(content) - 600)
    content[begin : begin + 512] = bytes(512)
    return bytes(content)


def cut_beginning(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    return lines[chance.randrange(1, len(lines)) :]


def mix_backups(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    """Join the first half of one backup and the second half of another, with the last line of either."""
    number = chance.randrange(1, EVENTS)
    return [*lines[:number], *other_lines[number:-1], chance.choice([lines, other_lines])[-1]]


def append_garbage(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    return [*lines, *chance.choice([other_lines, lines, lines[-1:], [b"garbage\n"], [b"\0\0\0\0"], [b"{}"]])]


def replace_last_line(chance: random.Random, lines: Lines, other_lines: Lines) -> Lines:
    position, chain = lines[-1].split(b'"')[-2].split(b":")
    wrong = chance.choice(
        [
            other_lines[-1],
            lines[-1].replace(chain, chain[::-1]),
            lines[-1].replace(position, b"39"),
            lines[-1].replace(b'"end":40', b'"end":41'),
            b'{"end":0,"head":"0:' + b"0" * 64 + b'"}\n',
        ]
    )
    return [*lines[:-1], wrong]


def compress_and_cut(chance: random.Random, lines: Lines, other_lines: Lines) -> bytes:
    content = gzip.compress(b"".join(lines))
    return content[: chance.randrange(3, len(content) - 1)]


def compress_with_garbage(chance: random.Random, lines: Lines, other_lines: Lines) -> bytes:
    return gzip.compress(b"".join(lines)) + chance.choice(
        [b"garbage", gzip.compress(b"".join(other_lines)), b"\x1f\x8b\x08"]
    )


def compress_and_change(chance: random.Random, lines: Lines, other_lines: Lines) -> bytes:
    content = bytearray(gzip.compress(b"".join(lines)))
    # after the header, because only its beginning is checked
    content[chance.randrange(10, len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


DAMAGES: list[Damage] = [
    remove_line, repeat_line, swap_lines, change_name, change_time, change_byte, cut_at_line, cut_anywhere,
    zero_page, cut_beginning, mix_backups, append_garbage, replace_last_line, compress_and_cut, compress_with_garbage,
    compress_and_change,
]  # fmt: skip


def draw_damaged_backups(count: int, lines: Lines, other_lines: Lines) -> Iterator[tuple[str, bytes]]:
    """Yield `count` damaged backups, of each kind in turn."""
    for number in range(count):
        damage = DAMAGES[number % len(DAMAGES)]
        damaged = damage(random.Random(number), list(lines), list(other_lines))
        content = damaged if isinstance(damaged, bytes) else b"".join(damaged)
        assert content != b"".join(lines)
        yield f"{damage.__name__} {number}", content


@pytest.mark.slow
def test_damaged_backups_are_refused(
    backup_lines: Lines,
    other_backup: Lines,
    copy_ledger_file: Callable[..., str],
    tmp_path: Path,
    ratings: Ratings,
    at_length: bool,
) -> None:
    """Every damaged backup is refused by the restore and by the check, and nothing is stored."""
    db, file = copy_ledger_file(make_empty_ledger, name="copy.db"), tmp_path / "damaged.jsonl"
    head_text = backup_lines[-1].split(b'"')[-2].decode()
    for name, content in draw_damaged_backups(160 if at_length else len(DAMAGES), backup_lines, other_backup):
        file.write_bytes(content)
        for command in (
            ("import", "--restore"),
            ("import", "--restore", "--head", head_text),
            ("backup", "check"),
            ("backup", "check", "--head", head_text),
        ):
            result = ratings(*command, file, "--format", "json", db=db)
            assert result.exit_code == 1, (name, result)
            (rejection,) = json.loads(result.stdout)["rejected" if command[0] == "import" else "findings"]
            assert rejection["file"] == str(file), name
            assert rejection["message"].isprintable(), name
        with open_ledger(db).reading() as connection:
            assert head(connection).position == 0, name


def test_incomplete_backup_yields_first_events(
    backup_lines: Lines, other_backup: Lines, tmp_path: Path, at_length: bool
) -> None:
    """`--incomplete` accepts only the first events of the log from a cut backup."""
    from ratings_ledger.ledger.events.records import ZERO, chain_hash, leaf_hash
    from ratings_ledger.ledger.store.exports import parse_end

    chains = [ZERO]
    for line in backup_lines[:-1]:
        chains.append(chain_hash(chains[-1], leaf_hash(line.rstrip(b"\n"))))
    end = parse_end(backup_lines[-1].rstrip(b"\n"))
    assert end is not None
    assert chains[-1] == end.head.chain_hash
    chance, file = random.Random(7), tmp_path / "cut"
    for damage in (cut_anywhere, cut_at_line, compress_and_cut):
        for _ in range(100 if at_length else 10):
            damaged = damage(chance, backup_lines, other_backup)
            file.write_bytes(damaged if isinstance(damaged, bytes) else b"".join(damaged))
            accepted = check_backup(BackupFiles([str(file)], incomplete=True))
            assert accepted.head.chain_hash == chains[accepted.head.position]
            assert accepted.accepted_defects


@pytest.mark.parametrize("what", ["link", "dangling link", "pipe", "folder", "file", "device"])
def test_obstructed_export_is_refused(
    what: str, copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """An export is refused if anything is in the way of its file, and does not touch the obstacle."""
    db, precious = copy_ledger_file(create_with_history, 0), tmp_path / "precious"
    precious.write_text("precious")
    file = Path("/dev/null") if what == "device" else tmp_path / "all.jsonl"
    if what == "link":
        file.symlink_to(precious)
    elif what == "dangling link":
        file.symlink_to(tmp_path / "nowhere")
    elif what == "pipe":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    elif what == "file":
        os.link(precious, file)
    for command in (("events",), ("standings",), ("changes", "club-catan-elo/all")):
        result = run_without_blocking(lambda command=command: ratings("export", *command, "-o", file, db=db))
        assert result.exit_code == 2, result
    assert precious.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def run_without_blocking(command: Callable[[], Any]) -> Any:
    """Return the result of a command, and fail if the command blocks."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(command()), daemon=True)
    thread.start()
    thread.join(60)
    assert results, "the command blocks"
    return results[0]


@pytest.mark.parametrize("name", [backup_folder.LIST_NAME, backup_folder.LOCK_NAME])
@pytest.mark.parametrize("what", ["link", "pipe", "folder", "dangling link"])
def test_obstructed_backup_folder_is_left_alone(
    name: str, what: str, copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """`backup make` fails if a link, pipe or folder replaces its list or lock, and touches nothing."""
    db, folder, precious = copy_ledger_file(create_with_history, 0), tmp_path / "backups", tmp_path / "precious"
    folder.mkdir()
    precious.write_text("precious")
    obstacle = folder / name
    if what == "link":
        obstacle.symlink_to(precious)
    elif what == "dangling link":
        obstacle.symlink_to(tmp_path / "nowhere")
    elif what == "pipe":
        os.mkfifo(obstacle)
    else:
        obstacle.mkdir()
    result = run_without_blocking(lambda: ratings("backup", "make", folder, "--keep", "1d", db=db))
    assert (result.exit_code, str(obstacle) in result.stderr, "bug" in result.stderr) == (3, True, False), result
    assert precious.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()
    assert [path for path in folder.iterdir() if path.suffix == ".gz"] == []


@pytest.mark.parametrize("what", ["file", "pipe", "dangling link", "below a file"])
def test_backup_into_non_folder_is_refused(
    what: str, copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """`backup make` is refused if its target is not a folder."""
    db, folder = copy_ledger_file(create_with_history, 0), tmp_path / "backups"
    if what == "pipe":
        os.mkfifo(folder)
    elif what == "dangling link":
        folder.symlink_to(tmp_path / "nowhere")
    else:
        folder.write_text("precious")
        folder = folder / "below" if what == "below a file" else folder
    result = run_without_blocking(lambda: ratings("backup", "make", folder, db=db))
    assert (result.exit_code, "bug" in result.stderr) == (3, False), result
    assert not (tmp_path / "nowhere").exists()


ENTRY = {
    "file": "ratings-2026-01-01T030000Z-40.jsonl.gz",
    "ledger_id": "x",
    "head": "40:" + "0" * 64,
    "made_at": "2026-01-01T03:00:00Z",
    "bytes": 8,
}
LISTS = {
    "no JSON": "backups", "another document": "[]", "no list": '{"backups": 5}', "an empty file": "",
    "nested": "[" * 100_000, "a member too many": json.dumps({"backups": [{**ENTRY, "more": 1}]}),
    "a member too few": json.dumps({"backups": [{"file": ENTRY["file"]}]}),
    **{
        f"{member} {value!r}": json.dumps({"backups": [{**ENTRY, member: value}]})
        for member, value in [
            ("file", "../precious"), ("file", "/etc/passwd"), ("file", "notes.txt"), ("file", 5), ("file", ""),
            ("file", "ratings-2026-01-01T030000Z-40.jsonl.gz/../../precious"), ("file", f"{ENTRY['file']}\n"),
            ("head", "40"), ("head", None), ("made_at", "yesterday"), ("made_at", 5), ("bytes", "8"), ("bytes", True),
            ("ledger_id", 5),
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("text", LISTS.values(), ids=[name[:40] for name in LISTS])
def test_invalid_backup_list_is_refused(
    text: str, copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """`backup make` refuses an invalid list of backups and deletes nothing."""
    db, folder, precious = copy_ledger_file(create_with_history, 0), tmp_path / "backups", tmp_path / "precious"
    folder.mkdir()
    precious.write_text("precious")
    (folder / "notes.txt").write_text("precious")
    (folder / backup_folder.LIST_NAME).write_text(text)
    result = ratings("backup", "make", folder, "--keep", "1d", "--format", "json", db=db)
    assert (result.exit_code, "is not a list of backups" in result.stderr) == (2, True), result
    assert json.loads(result.stderr.splitlines()[-1])["reason"] == "bad-backup-list"
    assert not re.search(r"argument|attribute|indices|object|NoneType|Expecting|_parse", result.stderr), result
    assert (precious.read_text(), (folder / "notes.txt").read_text()) == ("precious", "precious")
    assert {path.name for path in folder.iterdir()} == {"notes.txt", backup_folder.LIST_NAME, backup_folder.LOCK_NAME}


def test_check_ignores_pipe_as_head_file(backup_lines: Lines, tmp_path: Path, ratings: Ratings) -> None:
    """`backup check` does not block on a pipe instead of the head file beside a backup."""
    file = tmp_path / "own.jsonl"
    os.mkfifo(f"{file}{backup_folder.HEAD_SUFFIX}")
    assert run_without_blocking(lambda: ratings("backup", "check", file)).exit_code == 0


def test_checking_a_pipe_is_refused(tmp_path: Path, ratings: Ratings) -> None:
    """`backup check` refuses a pipe and does not block on it."""
    os.mkfifo(tmp_path / "pipe")
    result = run_without_blocking(lambda: ratings("backup", "check", tmp_path / "pipe"))
    assert (result.exit_code, "instead of a pipe or device" in result.stderr) == (2, True)


@pytest.mark.slow
def test_memory_is_independent_of_log_length(
    copy_ledger_file: Callable[..., str], tmp_path: Path, at_length: bool
) -> None:
    """Exporting and checking a log at least ten times as long needs about the same memory.

    Peak memory is measured in separate processes.
    """
    peaks = []
    for events in (3_000, 300_000 if at_length else 30_000):
        db = copy_ledger_file(make_empty_ledger, name=f"{events}.db")
        append_games(db, [build_numbered_game(number) for number in range(events)])
        file = tmp_path / f"{events}.jsonl.gz"
        for command in (["export", "events", "-o", str(file)], ["backup", "check", str(file)]):
            peaks.append(measure_peak_kib("--db", db, *command))
    exported, checked, long_exported, long_checked = peaks
    # SQLite caches pages of the file, up to `cache_size` KiB (a negative number)
    assert long_exported < exported - sqlite.PRAGMAS["cache_size"] + 20_000
    assert long_checked < checked + 40_000


def measure_peak_kib(*arguments: str) -> int:
    """Return the peak memory of a command in KiB."""
    script = (
        f"import re, sys; from ratings_ledger.cli.main import invoke; code = invoke({list(arguments)!r}); "
        # getrusage would include the memory of the parent process
        "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]); sys.exit(code)"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return int(process.stdout.splitlines()[-1])


def test_backup_imports_without_impossible_row(
    copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """A backup with an impossible row cannot be restored, but the rest of it can be imported.

    As docs/backups.md says, without that line and the last line the rest is imported as new events.
    """
    db, new, file = (
        copy_ledger_file(create_with_chess),
        copy_ledger_file(make_empty_ledger, name="new.db"),
        tmp_path / "all.jsonl",
    )
    position = append_named_forgery("no participant", f"sqlite:///{db}")
    assert ratings("export", "events", "-o", file, db=db).exit_code == 0
    result = ratings("import", "--restore", file, db=new)
    assert (result.exit_code, f":{position}: too-few-participants" in result.stderr) == (1, True)
    lines = file.read_text().splitlines(keepends=True)
    del lines[position - 1], lines[-1]
    file.write_text("".join(lines))
    assert ratings("import", file, db=new).exit_code == 0
    assert ratings("verify", db=new) == (0, "", "")
    ladders = [ratings("export", "standings", db=path).stdout.splitlines() for path in (db, new)]
    rows = [[json.loads(line)["rows"] for line in lines] for lines in ladders]
    assert rows[0] == rows[1] != []


def create_with_chess(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number in range(3):
        played = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number + 1}T20:00Z")
        assert ratings("record", "-q", *played, "anna", "ben", db=url).exit_code == 0
