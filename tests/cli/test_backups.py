"""`export events` into a file, increments, `backup make` and `backup check`: contents, permissions and refusals."""

import gzip
import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from builders import format_game_line
from ledgers import create_ledger
from own_rules import load_built_in_rule, substitute_rule
from stores import make_empty_ledger, make_ruled_ledger, record_lines

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.backups import backup_folder
from ratings_ledger.ledger.events.canonical import EPOCH, MICROSECOND
from ratings_ledger.ledger.rejections import CODES
from ratings_ledger.ledger.store.exports import parse_end

Ratings = Callable[..., Any]
FIRST, SECOND, THIRD = 11, 14, 18  # the positions at which a backup and its two increments end


def build_game_line(number: int, *players: str) -> str:
    """Return a game as a line of JSON, the players in the order of their places."""
    return format_game_line(f"g-{number}", *players, at=f"2024-01-{number:02d}T12:00:00Z", game="club-catan")


GAMES = [build_game_line(number, *("anna", "ben", "cleo", "dora")[: 2 + number % 3]) for number in range(1, THIRD + 1)]


def read_head(ratings: Ratings, db: str) -> str:
    return str(json.loads(ratings("status", "--format", "json", db=db).stdout)["head"])


def append_lines(ratings: Ratings, db: str, *lines: str) -> None:
    assert record_lines(db, "".join(lines), by="referee").rejected == []


@pytest.fixture
def full(ledger_url: str, ratings: Ratings) -> str:
    """Return the URL of a ledger with games, in each kind of store in turn."""
    append_lines(ratings, ledger_url, *GAMES[:THIRD])
    return ledger_url


@pytest.fixture
def create_empty(copy_ledger_file: Callable[..., str]) -> Callable[[], str]:
    """Return a function that creates another SQLite ledger without events and returns its path."""
    numbers = iter(range(1_000))
    return lambda: copy_ledger_file(make_empty_ledger, name=f"empty-{next(numbers)}.db")


def export_events(ratings: Ratings, db: str, file: Path, *options: object) -> Path:
    assert ratings("export", "events", "-o", file, *options, db=db).exit_code == 0
    return file


def assert_refused(result: Any, code: str, *words: str) -> None:
    """Assert that a command was refused with this code and that its output contains these words."""
    assert result.exit_code == 1, result
    assert f"{code}: " in result.stdout + result.stderr, result
    assert code in CODES
    for word in words:
        assert word in result.stdout + result.stderr, result


def test_events_file_is_private_with_head(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """An export to a file holds every event, ends with the head, and only its owner can read it."""
    file = export_events(ratings, full, tmp_path / "all.jsonl")
    *records, last = file.read_text(encoding="utf-8").splitlines(keepends=True)
    assert "".join(records) == ratings("export", "events", db=full).stdout
    assert json.loads(last) == {"end": THIRD, "head": read_head(ratings, full)}
    assert file.stat().st_mode & 0o777 == 0o600
    assert [name for name in os.listdir(tmp_path) if not name.startswith("ratings.db")] == ["all.jsonl"]


def test_gz_export_is_compressed_and_reproducible(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """An export to a name ending in .gz is compressed and byte for byte the same each time."""
    plain = export_events(ratings, full, tmp_path / "all.jsonl").read_bytes()
    first_export, second_export = (
        export_events(ratings, full, tmp_path / name).read_bytes() for name in ("one.jsonl.gz", "two.jsonl.gz")
    )
    assert gzip.decompress(first_export) == plain
    assert first_export == second_export


def test_results_file_has_no_end_line(ruled_url: str, tmp_path: Path, ratings: Ratings) -> None:
    """Exported results have no end line, and their files have ordinary permissions."""
    append_lines(ratings, ruled_url, *GAMES)
    for name, command in {
        "s.csv.gz": ("standings", "--format", "csv"),
        "c.jsonl": ("changes", "club-catan-elo/all"),
    }.items():
        assert ratings("export", *command, "-o", tmp_path / name, db=ruled_url).exit_code == 0
        content = (tmp_path / name).read_bytes()
        text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
        assert text == ratings("export", *command, db=ruled_url).stdout
        mask = os.umask(0)
        os.umask(mask)
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o666 & ~mask


def test_restored_increments_give_same_ledger(
    full: str, tmp_path: Path, ratings: Ratings, create_empty: Callable[[], str]
) -> None:
    """A backup and its increments restore to the same ledger, and import into another ledger, too."""
    first = export_events(ratings, full, tmp_path / "first.jsonl.gz", "--known-at", FIRST)
    second = export_events(ratings, full, tmp_path / "second.jsonl", "--since", FIRST, "--known-at", SECOND)
    third = export_events(ratings, full, tmp_path / "third.jsonl.gz", "--since", SECOND)
    nothing = export_events(ratings, full, tmp_path / "nothing.jsonl", "--since", read_head(ratings, full))
    files = (first, second, third, nothing)

    copy = create_empty()
    restored = ratings("import", "--restore", *files, "--format", "json", db=copy)
    assert (restored.exit_code, json.loads(restored.stdout)["appended"]) == (0, THIRD)
    assert ratings("export", "events", db=copy).stdout == ratings("export", "events", db=full).stdout
    assert read_head(ratings, copy) == read_head(ratings, full)
    checked = json.loads(ratings("backup", "check", *files, "--format", "json").stdout)
    assert (checked["whole"], checked["head"], checked["findings"]) == (True, read_head(ratings, full), [])
    assert [file["events"] for file in checked["files"]] == [FIRST, SECOND - FIRST, THIRD - SECOND, 0]
    # another ledger imports them, too, as several files or as one
    other_ledger = create_empty()
    assert ratings("import", *files, db=other_ledger).exit_code == 0
    together = b"".join((gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes()) for f in files)
    second_import = json.loads(ratings("import", "-", "--format", "json", db=other_ledger, input=together).stdout)
    assert (second_import["appended"], second_import["existing"], second_import["rejected"]) == (0, THIRD, [])


def test_increment_holds_lines_after_position(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """An increment holds exactly the lines after its position."""
    whole = ratings("export", "events", db=full).stdout.splitlines(keepends=True)
    assert ratings("export", "events", "--since", FIRST, db=full).stdout == "".join(whole[FIRST:])
    *records, last = (
        export_events(ratings, full, tmp_path / "i", "--since", FIRST, "--known-at", SECOND).read_bytes().splitlines()
    )
    assert records == [line.rstrip("\n").encode() for line in whole[FIRST:SECOND]]
    end = parse_end(last)
    assert end is not None
    assert (end.head.position, end.since.position) == (SECOND, FIRST)
    assert json.loads(last)["end"] == SECOND


@pytest.mark.parametrize("since", [str(THIRD + 1), "-1", "x", "", "１", f"5:{'a' * 64}", "5:abc", "9" * 17])
def test_unknown_since_position_is_refused(since: str, full: str, tmp_path: Path, ratings: Ratings) -> None:
    """An export since a position that the ledger does not have is refused and writes nothing."""
    result = ratings("export", "events", "--since", since, "-o", tmp_path / "i.jsonl", db=full)
    assert (result.exit_code, "--since" in result.stderr, os.listdir(tmp_path)) == (
        2,
        True,
        [name for name in os.listdir(tmp_path) if name == "ratings.db" or name.startswith("ratings.db-")],
    ), result


def test_since_position_after_known_at_is_refused(full: str, ratings: Ratings) -> None:
    """An export of what was known at a position cannot begin after it; the message names the last possible position."""
    result = ratings("export", "events", "--since", SECOND, "--known-at", FIRST, db=full)
    assert (result.exit_code, f"pass a position from 0 to {FIRST}" in result.stderr) == (2, True), result


@pytest.mark.slow_cases
def test_files_out_of_sequence_are_refused(
    full: str, tmp_path: Path, ratings: Ratings, create_empty: Callable[[], str], copy_ledger_file: Callable[..., str]
) -> None:
    """Restoring files that do not follow each other is refused with a reason and stores nothing."""
    first = export_events(ratings, full, tmp_path / "first.jsonl", "--known-at", FIRST)
    second = export_events(ratings, full, tmp_path / "second.jsonl", "--since", FIRST, "--known-at", SECOND)
    third = export_events(ratings, full, tmp_path / "third.jsonl", "--since", SECOND)
    overlapping = export_events(ratings, full, tmp_path / "overlapping.jsonl", "--since", FIRST - 1)
    other_ledger = copy_ledger_file(make_empty_ledger, name="other.db")
    append_lines(ratings, other_ledger, *reversed(GAMES))
    theirs = export_events(ratings, other_ledger, tmp_path / "theirs.jsonl", "--since", FIRST)
    their_nothing = export_events(
        ratings, other_ledger, tmp_path / "their-nothing.jsonl", "--since", FIRST, "--known-at", FIRST
    )
    cases: list[tuple[tuple[Path, ...], str]] = [
        ((first, third), f"begins at position {SECOND + 1}, but the files before it end at {FIRST}"),
        ((first, overlapping), "they overlap"),
        ((first, first.with_name("copy.jsonl")), "they overlap"),
        ((first, third, second), "export the missing events"),
        ((second, first), "name the files that it continues before it"),
        ((second,), "name the files that it continues before it"),
        ((their_nothing,), "name the files that it continues before it"),
        ((first, theirs), "an increment of another ledger"),
        ((first, their_nothing), "an increment of another ledger"),
    ]
    shutil.copyfile(first, tmp_path / "copy.jsonl")
    copy = create_empty()
    for files, sentence in cases:
        for command in (("import", "--restore"), ("import", "--restore", "--incomplete"), ("backup", "check")):
            assert_refused(ratings(*command, *files, db=copy), "restore-mismatch", sentence)
        assert read_head(ratings, copy).startswith("0:")
    twice = ratings("import", "--restore", first, first, db=copy)
    assert (twice.exit_code, "is named twice" in twice.stderr) == (2, True)
    assert ratings("import", "--restore", first, second, third, db=copy).exit_code == 0


def test_restore_without_end_line_needs_head(
    full: str, tmp_path: Path, ratings: Ratings, create_empty: Callable[[], str]
) -> None:
    """Restoring or checking an export from standard output, which has no end line, needs its head."""
    lines = ratings("export", "events", db=full).stdout.splitlines(keepends=True)
    (tmp_path / "all.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "one.jsonl").write_text("".join(lines[:FIRST]), encoding="utf-8")
    (tmp_path / "two.jsonl").write_text("".join(lines[FIRST:]), encoding="utf-8")
    whole, copy = read_head(ratings, full), create_empty()
    for files in (["all.jsonl"], ["one.jsonl"], ["one.jsonl", "two.jsonl"]):
        assert_refused(
            ratings("import", "--restore", *(tmp_path / f for f in files), db=copy), "end-missing", "--incomplete"
        )
        assert_refused(
            ratings("backup", "check", *(tmp_path / f for f in files)),
            "end-missing",
            "--head POSITION:CHAINHASH",
            "; or restore the readable events: ratings import --restore --incomplete FILES",
        )
    for command in (("import", "--restore"), ("backup", "check")):
        assert_refused(ratings(*command, "--head", whole, tmp_path / "one.jsonl", db=copy), "end-mismatch", "cut off")
    assert read_head(ratings, copy).startswith("0:")
    assert ratings("backup", "check", "--head", whole, tmp_path / "one.jsonl", tmp_path / "two.jsonl").exit_code == 0
    assert ratings("import", "--restore", "--head", whole, tmp_path / "all.jsonl", db=copy).exit_code == 0
    assert read_head(ratings, copy) == whole


@pytest.mark.parametrize("compressed", [False, True])
def test_incomplete_restores_cut_off_backup(
    compressed: bool, full: str, tmp_path: Path, ratings: Ratings, create_empty: Callable[[], str]
) -> None:
    """`--incomplete` restores what is left of a backup that was cut off, and says so."""
    whole = export_events(ratings, full, tmp_path / "all.jsonl").read_bytes()
    cut = tmp_path / "cut.jsonl"
    half = len(whole) // 2
    cut.write_bytes(gzip.compress(whole)[:-200] if compressed else whole[:half])
    copy = create_empty()
    code = "bad-gzip" if compressed else "bad-json"
    for command in (("import", "--restore"), ("backup", "check")):
        assert_refused(ratings(*command, cut, db=copy), code)
    result = ratings("import", "--restore", "--incomplete", "--format", "json", cut, db=copy)
    output = json.loads(result.stdout)
    assert (result.exit_code, THIRD // 4 < output["appended"] < THIRD) == (0, True)
    assert "is cut off" in "".join(output["incomplete"])
    assert "without the last line" in "".join(output["incomplete"])
    readable_result = ratings("import", "--restore", "--incomplete", cut, db=create_empty())
    assert "is cut off" in readable_result.stderr
    whole_lines = ratings("export", "events", db=full).stdout
    assert whole_lines.startswith(ratings("export", "events", db=copy).stdout)


def test_misplaced_restore_options_are_refused(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """Restore options without `--restore`, malformed, or in conflict are a usage error."""
    file, whole = export_events(ratings, full, tmp_path / "all.jsonl"), read_head(ratings, full)
    for options in (
        ("--head", whole),
        ("--incomplete",),
        ("--restore", "--head", whole, "--incomplete"),
        ("--restore", "--head", "5"),
        ("--restore", "--dry-run"),
        ("--restore", "--keep-going"),
    ):
        assert ratings("import", file, *options, db=full).exit_code == 2


def test_changed_export_is_refused(
    full: str, tmp_path: Path, ratings: Ratings, create_empty: Callable[[], str]
) -> None:
    """Importing a changed export as new events is refused unless its end line has been removed."""
    full_lines = (
        export_events(ratings, full, tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    )
    increment_lines = (
        export_events(ratings, full, tmp_path / "inc.jsonl", "--since", FIRST)
        .read_text(encoding="utf-8")
        .splitlines(True)
    )
    copy = create_empty()
    for lines in (full_lines, increment_lines):
        for changed in (
            lines[1:],
            lines[:2] + lines[3:],
            [line.replace("anna", "emil") for line in lines],
            [lines[1], lines[0], *lines[2:]],
            [*lines[:-1], GAMES[0], lines[-1]],
        ):
            result = ratings("import", "-", "--format", "json", db=copy, input="".join(changed))
            assert result.exit_code == 1
            (rejection,) = json.loads(result.stdout)["rejected"]
            assert (rejection["code"], rejection["line"]) == ("end-mismatch", len(changed))
    assert read_head(ratings, copy).startswith("0:")
    without_end_line = [line.replace("anna", "emil") for line in full_lines[:-1]]
    assert ratings("import", "-", db=copy, input="".join(without_end_line)).exit_code == 0
    assert json.loads(ratings("log", "--format", "json", db=copy).stdout)["rows"][0]["by"] == "referee"


def test_increment_beyond_memory_limit_is_imported(
    full: str, tmp_path: Path, ratings: Ratings, create_empty: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An increment is imported although its hashes exceed the memory limit for hashes."""
    monkeypatch.setattr("ratings_ledger.ledger.store.exports._MEMORY_BYTES", 64)
    file = export_events(ratings, full, tmp_path / "inc.jsonl", "--since", 3)
    assert ratings("import", file, db=create_empty()).exit_code == 0


def test_empty_ledger_can_be_backed_up(
    ledger_url: str, tmp_path: Path, ratings: Ratings, create_empty: Callable[[], str]
) -> None:
    """A backup of an empty ledger is a valid backup that can be checked, imported and restored."""
    file = export_events(ratings, ledger_url, tmp_path / "all.jsonl")
    assert json.loads(file.read_text()) == {"end": 0, "head": f"0:{'0' * 64}"}
    assert ratings("backup", "check", file).exit_code == 0
    for options in ((), ("--restore",)):
        assert ratings("import", file, *options, db=create_empty()).exit_code == 0


def test_damaged_ledger_makes_no_backup(copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings) -> None:
    """Backing up a damaged ledger leaves no file and points to `ratings verify`; an export to standard output works."""
    import sqlite3
    from contextlib import closing

    for number, change in enumerate(
        (
            "DELETE FROM events WHERE position = 3",
            "UPDATE events SET record = replace(record, 'anna', 'emil') WHERE position = 3",
            "UPDATE events SET record = CAST(record AS BLOB) WHERE position = 3",
            "UPDATE events SET chain_hash = zeroblob(32) WHERE position = 18",
        )
    ):
        db = copy_ledger_file(make_empty_ledger, name=f"damaged-{number}.db")
        append_lines(ratings, db, *GAMES)
        with closing(sqlite3.connect(db, isolation_level=None)) as connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute(change)
        result = ratings("export", "events", "-o", tmp_path / "all.jsonl", db=db)
        assert (result.exit_code, "ratings verify" in result.stderr) == (1, True), result
        assert not (tmp_path / "all.jsonl").exists()
        backup = ratings("backup", "make", tmp_path / "backups", db=db)
        assert (backup.exit_code, "ratings verify" in backup.stderr) == (1, True), backup
        assert os.listdir(tmp_path / "backups") == [backup_folder.LOCK_NAME]
        assert ratings("export", "events", db=db).exit_code == 0


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that sets the clock."""

    def set_time(time: str) -> None:
        since = (datetime.fromisoformat(time).replace(tzinfo=UTC) - EPOCH) // MICROSECOND
        monkeypatch.setattr(clock, "now", lambda: since)

    return set_time


def make_backup(ratings: Ratings, db: str, folder: Path, *options: str, code: int = 0) -> dict[str, Any]:
    result = ratings("backup", "make", folder, *options, "--format", "json", db=db)
    assert result.exit_code == code, result
    output: dict[str, Any] = json.loads(result.stdout)
    return output


def list_backup_names(folder: Path) -> list[str]:
    """Return the names in a backup folder, without the list, the lock and the heads."""
    own = {backup_folder.LIST_NAME, backup_folder.LOCK_NAME}
    return sorted(
        name for name in os.listdir(folder) if name not in own and not name.endswith(backup_folder.HEAD_SUFFIX)
    )


@pytest.mark.slow_cases
def test_backup_is_complete_and_private(
    full: str, tmp_path: Path, ratings: Ratings, create_empty: Callable[[], str], set_clock: Callable[[str], None]
) -> None:
    """A backup in a folder is complete and private, with its head in a file beside it."""
    set_clock("2026-11-22T03:17:00")
    folder, whole = tmp_path / "backups", read_head(ratings, full)
    backup = make_backup(ratings, full, folder)
    file = folder / "ratings-2026-11-22T031700Z-18.jsonl.gz"
    assert backup["file"] == str(file)
    assert (backup["head"], backup["position"], backup["bytes"]) == (whole, THIRD, file.stat().st_size)
    assert (backup["dropped"], backup["kept"], backup["lost"]) == ([], 1, [])
    assert Path(f"{file}.head").read_text() == f"{whole}\n"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert gzip.decompress(file.read_bytes()) == export_events(ratings, full, tmp_path / "all.jsonl").read_bytes()
    copy = create_empty()
    assert ratings("import", "--restore", "--head", whole, file, db=copy).exit_code == 0
    assert read_head(ratings, copy) == whole
    # two backups in one second get different names
    assert make_backup(ratings, full, folder)["file"] == str(folder / "ratings-2026-11-22T031700Z-18-2.jsonl.gz")
    assert ratings("backup", "make", folder, db=full).stdout.startswith(f"{THIRD} events in {folder}")


@pytest.mark.slow
def test_only_expired_backups_are_dropped(
    full: str, tmp_path: Path, ratings: Ratings, set_clock: Callable[[str], None]
) -> None:
    """Nightly backups drop the expired ones and leave everything else in the folder alone."""
    folder = tmp_path / "backups"
    folder.mkdir()
    foreign_files = {
        "ratings-2020-01-01T000000Z-18.jsonl.gz": b"somebody's",
        "notes.txt": b"mine",
        "ratings-2020-01-01T000000Z-18.jsonl.gz.head": b"also somebody's",
    }
    for name, content in foreign_files.items():
        (folder / name).write_bytes(content)
    day = datetime(2026, 1, 1, 3)
    for _ in range(40):
        set_clock(day.isoformat())
        backup = make_backup(ratings, full, folder, "--keep", "3d,3w,2m")
        day += timedelta(days=1)
    backup_names = [name for name in list_backup_names(folder) if name not in foreign_files]
    assert [name[8:18] for name in backup_names] == [
        "2026-01-31",
        "2026-02-01",
        "2026-02-07",
        "2026-02-08",
        "2026-02-09",
    ]
    assert backup["kept"] == len(backup_names)
    assert [entry.file for entry in backup_folder.read_list(folder)] == backup_names
    assert {name: (folder / name).read_bytes() for name in foreign_files} == foreign_files
    heads = {name for name in os.listdir(folder) if name.endswith(".head")} - foreign_files.keys()
    assert heads == {f"{name}.head" for name in backup_names}


@pytest.mark.slow_cases
def test_each_ledger_drops_its_own_backups(
    full: str, tmp_path: Path, ratings: Ratings, set_clock: Callable[[str], None]
) -> None:
    """When two ledgers share a folder, each backup run drops only backups of its own ledger."""
    other_ledger = create_ledger(str(tmp_path / "other.db"))
    folder = tmp_path / "backups"
    for day in ("2026-01-01", "2026-01-02"):
        set_clock(f"{day}T03:00:00")
        make_backup(ratings, other_ledger, folder, "--keep", "2d")
        make_backup(ratings, full, folder, "--keep", "1d")
    assert [name.removesuffix(".jsonl.gz")[8:] for name in list_backup_names(folder)] == [
        "2026-01-01T030000Z-0",
        "2026-01-02T030000Z-0",
        "2026-01-02T030000Z-18",
    ]


@pytest.mark.slow_cases
def test_altered_backups_do_not_count(
    full: str, tmp_path: Path, ratings: Ratings, set_clock: Callable[[str], None]
) -> None:
    """Altered or missing backups are noted and count for nothing when old ones are dropped."""
    folder = tmp_path / "backups"
    files = []
    for day in range(1, 7):
        set_clock(f"2026-01-{day:02d}T03:00:00")
        files.append(Path(make_backup(ratings, full, folder)["file"]))
    files[1].write_bytes(b"something else")
    files[2].unlink()
    files[2].symlink_to(files[0])
    files[3].unlink()
    files[4].unlink()
    files[4].mkdir()
    Path(f"{files[0]}.head").write_text("not ours any more")
    set_clock("2026-01-07T03:00:00")
    result = ratings("backup", "make", folder, "--keep", "2d", db=full)
    assert result.exit_code == 0
    for file in files[1:5]:
        assert f"note: {file} " in result.stderr
    # the two latest days with a valid backup are those of files[5] and of the new backup
    assert [os.path.lexists(file) for file in files] == [False, True, True, False, True, True]
    assert files[1].read_bytes() == b"something else"
    assert Path(f"{files[0]}.head").exists()
    second_result = ratings("backup", "make", folder, "--keep", "2d", db=full)
    assert f"note: {files[3]} " not in second_result.stderr


def test_rewritten_history_drops_no_backups(
    tmp_path: Path, ratings: Ratings, copy_ledger_file: Callable[..., str], set_clock: Callable[[str], None]
) -> None:
    """A backup of a ledger whose history was changed fails and drops nothing.

    Rewriting history must not make the nightly runs drop the backups of the true one.
    """
    db = Path(copy_ledger_file(make_empty_ledger, name="own.db"))
    before = db.read_bytes()
    folder = tmp_path / "backups"
    append_lines(ratings, str(db), *GAMES)
    good = Path(make_backup(ratings, str(db), folder, "--keep", "1d")["file"])
    # the same ledger by its id, with other games
    db.write_bytes(before)
    append_lines(ratings, str(db), *reversed(GAMES))
    set_clock("2030-01-02T03:00:00")
    failed_backup = make_backup(ratings, str(db), folder, "--keep", "1d", code=1)
    assert good.exists()
    assert [entry["file"] for entry in failed_backup["lost"]] == [good.name]
    set_clock("2030-01-03T03:00:00")
    # an older copy of the ledger counts as rewritten, too
    db.write_bytes(before)
    result = ratings("backup", "make", folder, "--keep", "1d", db=str(db))
    assert (result.exit_code, result.stderr.count("no backup was deleted"), len(list_backup_names(folder))) == (1, 2, 3)


@pytest.mark.slow_cases
def test_backup_dated_ahead_drops_nothing(
    full: str, tmp_path: Path, ratings: Ratings, set_clock: Callable[[str], None]
) -> None:
    """While a backup is dated in the future, each run makes its backup, drops none, names that one and exits with 1."""
    folder = tmp_path / "backups"
    set_clock("2027-12-30T03:00:00")
    ahead = Path(make_backup(ratings, full, folder, "--keep", "2d")["file"])
    for day in range(1, 5):
        set_clock(f"2026-11-{day:02d}T03:00:00")
        output = make_backup(ratings, full, folder, "--keep", "2d", code=1)
        assert (output["dropped"], output["kept"], [entry["file"] for entry in output["ahead"]]) == (
            [],
            1 + day,
            [ahead.name],
        )
    result = ratings("backup", "make", folder, "--keep", "2d", db=full)
    assert (result.exit_code, result.stdout.startswith(f"{THIRD} events in ")) == (1, True)
    assert result.stderr == (
        f"ratings: {ahead} is dated 2027-12-30T03:00:00Z, which is in the future on this machine; no backup was "
        "deleted: correct the clock, or move the file to another folder if the clock is right\n"
    )
    checked = ratings("status", "--no-failures", db=full)
    assert checked.exit_code == 1
    assert f"the last backup failed (2026-11-04 03:00:00 UTC): {ahead} is dated" in checked.stderr
    night = ratings("nightly", "--backup", folder, "--keep", "2d", db=full)
    assert (night.exit_code, f"backup FAILED: {ahead} is dated" in night.stdout) == (1, True)
    assert len(list_backup_names(folder)) == 7
    ahead.rename(tmp_path / ahead.name)
    output = make_backup(ratings, full, folder, "--keep", "2d")
    assert (output["kept"], output["ahead"]) == (2, [])
    assert ratings("status", "--no-failures", db=full).exit_code == 0


def test_concurrent_backup_does_nothing(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """A backup does nothing while another one is running in the same folder."""
    folder = tmp_path / "backups"
    folder.mkdir()
    with backup_folder._lock_folder(folder):
        result = ratings("backup", "make", folder, db=full)
    assert ("is running" in result.stderr, list_backup_names(folder)) == (True, [])
    assert result.exit_code not in (0, 2, 3)
    assert ratings("backup", "make", folder, db=full).exit_code == 0


def test_wrong_head_file_is_refused(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """Checking a backup is refused if the head in the file beside it differs from its own."""
    file = make_backup(ratings, full, tmp_path / "backups")["file"]
    assert ratings("backup", "check", file) == ratings("backup", "check", file, "--head", read_head(ratings, full))
    for content in (f"{THIRD}:{'a' * 64}\n", "no head", ""):
        Path(f"{file}.head").write_text(content)
        assert_refused(ratings("backup", "check", file), "end-mismatch", ".head")
    Path(f"{file}.head").unlink()
    assert ratings("backup", "check", file).exit_code == 0


def test_check_needs_no_ledger(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """Checking a backup without a replay neither needs nor creates a ledger."""
    file, absent = export_events(ratings, full, tmp_path / "all.jsonl"), tmp_path / "absent.db"
    result = ratings("backup", "check", file, db=str(absent))
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            f"{file}: {THIRD} events up to position {THIRD}",
            f"The backup is complete. The head: {read_head(ratings, full)}",
        ],
    )
    assert not absent.exists()
    assert ratings("backup", "check", "--replay", file, db=str(absent)).exit_code == 3


@pytest.mark.slow
def test_replay_check_matches_ledger_at_position(
    ruled_url: str, tmp_path: Path, ratings: Ratings, copy_ledger_file: Callable[..., str]
) -> None:
    """`backup check --replay` counts as many ladders as the ledger at the backup's position; another ledger fails."""
    append_lines(ratings, ruled_url, *GAMES[:FIRST])
    file = make_backup(ratings, ruled_url, tmp_path / "backups")["file"]
    # the ledger grows after the backup
    append_lines(ratings, ruled_url, *GAMES[FIRST:])
    output = json.loads(ratings("backup", "check", "--replay", file, "--format", "json", db=ruled_url).stdout)
    ladders = json.loads(
        ratings("ladders", "--known-at", output["head"].split(":")[0], "--format", "json", db=ruled_url).stdout
    )
    assert (output["whole"], output["findings"], output["ladders"]) == (True, [], len(ladders["rows"]))
    assert output["ladders"] >= 2
    assert ratings("backup", "check", "--replay", file, db=ruled_url).stdout.endswith(f"The head: {output['head']}\n")

    other_ledger = copy_ledger_file(make_ruled_ledger, name="other.db")
    theirs = ratings("backup", "check", "--replay", file, db=other_ledger)
    assert (theirs.exit_code, "head: position" in theirs.stdout, "The backup is complete" in theirs.stdout) == (
        1,
        True,
        False,
    )


def test_replay_check_names_differing_ladder(
    ruled_url: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`backup check --replay` fails and names each ladder whose replayed standings differ."""
    append_lines(ratings, ruled_url, *GAMES)
    file = export_events(ratings, ruled_url, tmp_path / "all.jsonl")
    rule, calls = load_built_in_rule("pairwise-elo/1"), count(1)

    def score_differently_each_time(n: int, points: Any, columns: Any, constants: Any, table: Any, change: Any) -> int:
        change[0], change[1] = next(calls), 0
        return int(change[0])

    substitute_rule(monkeypatch, rule._replace(score=score_differently_each_time))
    result = ratings("backup", "check", "--replay", file, db=ruled_url)
    assert result.exit_code == 1
    assert "standings: position" in result.stdout
    assert "club-catan-elo/all: the standings of the backup differ" in result.stdout
