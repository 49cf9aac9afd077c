"""`export events` into a file, increments, `backup make` and `backup check`: what they write, and what they refuse."""

import gzip
import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from builders import format_game_line
from ledgers import create_ledger
from stores import make_empty_ledger, make_ruled_ledger, record_lines

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.backups import backup_folder
from ratings_ledger.ledger.events.canonical import EPOCH, MICROSECOND
from ratings_ledger.ledger.rejections import CODES
from ratings_ledger.ledger.store.exports import parse_end

Ratings = Callable[..., Any]
FIRST, SECOND, THIRD = 11, 14, 18


def club_game(number: int, *players: str) -> str:
    """A game as a line of JSON; the players in the order of their places."""
    return format_game_line(f"g-{number}", *players, at=f"2024-01-{number:02d}T12:00:00Z", game="club-catan")


GAMES = [club_game(number, *("anna", "ben", "cleo", "dora")[: 2 + number % 3]) for number in range(1, THIRD + 1)]


def head(ratings: Ratings, db: str) -> str:
    return str(json.loads(ratings("status", "--format", "json", db=db).stdout)["head"])


def take_in(ratings: Ratings, db: str, *lines: str) -> None:
    assert record_lines(db, "".join(lines), by="referee").rejected == []


@pytest.fixture
def full(ledger_url: str, ratings: Ratings) -> str:
    """A ledger of some games, on each kind of store."""
    take_in(ratings, ledger_url, *GAMES[:THIRD])
    return ledger_url


@pytest.fixture
def empty(copied_file: Callable[..., str]) -> Callable[[], str]:
    """A function that gives another ledger in SQLite without events."""
    numbers = iter(range(1_000))
    return lambda: copied_file(make_empty_ledger, name=f"empty-{next(numbers)}.db")


def export(ratings: Ratings, db: str, file: Path, *options: object) -> Path:
    assert ratings("export", "events", "-o", file, *options, db=db).exit_code == 0
    return file


def refused(result: Any, code: str, *words: str) -> None:
    """That a command ended with this refusal, which says these words."""
    assert result.exit_code == 1, result
    assert f"{code}: " in result.stdout + result.stderr, result
    assert code in CODES
    for word in words:
        assert word in result.stdout + result.stderr, result


def test_events_file_is_private_with_head(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """An export to a file holds every event, ends with the head, and only its owner can read it."""
    file = export(ratings, full, tmp_path / "all.jsonl")
    *records, last = file.read_text(encoding="utf-8").splitlines(keepends=True)
    assert "".join(records) == ratings("export", "events", db=full).stdout
    assert json.loads(last) == {"end": THIRD, "head": head(ratings, full)}
    assert file.stat().st_mode & 0o777 == 0o600
    assert [name for name in os.listdir(tmp_path) if not name.startswith("ratings.db")] == ["all.jsonl"]


def test_gz_export_is_compressed_and_reproducible(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """An export to a name ending in .gz is compressed and byte for byte the same each time."""
    plain = export(ratings, full, tmp_path / "all.jsonl").read_bytes()
    one, two = (export(ratings, full, tmp_path / name).read_bytes() for name in ("one.jsonl.gz", "two.jsonl.gz"))
    assert gzip.decompress(one) == plain
    assert one == two


def test_results_file_has_no_end_line(ruled_url: str, tmp_path: Path, ratings: Ratings) -> None:
    """Exported results have no end line, and their files have ordinary permissions."""
    take_in(ratings, ruled_url, *GAMES)
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
    full: str, tmp_path: Path, ratings: Ratings, empty: Callable[[], str]
) -> None:
    """A backup and its increments restore to the same ledger, and import into another one, too."""
    first = export(ratings, full, tmp_path / "first.jsonl.gz", "--known-at", FIRST)
    second = export(ratings, full, tmp_path / "second.jsonl", "--since", FIRST, "--known-at", SECOND)
    third = export(ratings, full, tmp_path / "third.jsonl.gz", "--since", SECOND)
    nothing = export(ratings, full, tmp_path / "nothing.jsonl", "--since", head(ratings, full))
    files = (first, second, third, nothing)

    copy = empty()
    restored = ratings("import", "--restore", *files, "--format", "json", db=copy)
    assert (restored.exit_code, json.loads(restored.stdout)["appended"]) == (0, THIRD)
    assert ratings("export", "events", db=copy).stdout == ratings("export", "events", db=full).stdout
    assert head(ratings, copy) == head(ratings, full)
    checked = json.loads(ratings("backup", "check", *files, "--format", "json").stdout)
    assert (checked["whole"], checked["head"], checked["findings"]) == (True, head(ratings, full), [])
    assert [one["events"] for one in checked["files"]] == [FIRST, SECOND - FIRST, THIRD - SECOND, 0]
    # and they go into a ledger of other events, too, one after the other, or in one
    other = empty()
    assert ratings("import", *files, db=other).exit_code == 0
    together = b"".join((gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes()) for f in files)
    again = json.loads(ratings("import", "-", "--format", "json", db=other, input=together).stdout)
    assert (again["appended"], again["existing"], again["rejected"]) == (0, THIRD, [])


def test_increment_holds_lines_after_position(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """An increment holds exactly the lines after its position."""
    whole = ratings("export", "events", db=full).stdout.splitlines(keepends=True)
    assert ratings("export", "events", "--since", FIRST, db=full).stdout == "".join(whole[FIRST:])
    *records, last = (
        export(ratings, full, tmp_path / "i", "--since", FIRST, "--known-at", SECOND).read_bytes().splitlines()
    )
    assert records == [line.rstrip("\n").encode() for line in whole[FIRST:SECOND]]
    end = parse_end(last)
    assert end is not None
    assert (end.head.position, end.since.position) == (SECOND, FIRST)
    assert json.loads(last)["end"] == SECOND


@pytest.mark.parametrize("since", [str(THIRD + 1), "-1", "x", "", "１", f"5:{'a' * 64}", "5:abc", "9" * 17])
def test_unknown_since_position_is_refused(since: str, full: str, tmp_path: Path, ratings: Ratings) -> None:
    """An export since a position that the ledger does not have is refused and writes nothing."""
    told = ratings("export", "events", "--since", since, "-o", tmp_path / "i.jsonl", db=full)
    assert (told.exit_code, "--since" in told.stderr, os.listdir(tmp_path)) == (2, True, [
        name for name in os.listdir(tmp_path) if name == "ratings.db" or name.startswith("ratings.db-")
    ]), told  # fmt: skip


@pytest.mark.slow_cases
def test_files_out_of_sequence_are_refused(
    full: str, tmp_path: Path, ratings: Ratings, empty: Callable[[], str], copied_file: Callable[..., str]
) -> None:
    """Restoring files that do not follow each other is refused with a reason and stores nothing."""
    first = export(ratings, full, tmp_path / "first.jsonl", "--known-at", FIRST)
    second = export(ratings, full, tmp_path / "second.jsonl", "--since", FIRST, "--known-at", SECOND)
    third = export(ratings, full, tmp_path / "third.jsonl", "--since", SECOND)
    overlapping = export(ratings, full, tmp_path / "overlapping.jsonl", "--since", FIRST - 1)
    other = copied_file(make_empty_ledger, name="other.db")
    take_in(ratings, other, *reversed(GAMES))
    theirs = export(ratings, other, tmp_path / "theirs.jsonl", "--since", FIRST)
    their_nothing = export(ratings, other, tmp_path / "their-nothing.jsonl", "--since", FIRST, "--known-at", FIRST)
    cases: list[tuple[tuple[Path, ...], str]] = [
        ((first, third), f"begins at position {SECOND + 1}, but the files before it end at {FIRST}"),
        ((first, overlapping), "they overlap"),
        ((first, first.with_name("copy.jsonl")), "they overlap"),
        ((first, third, second), "export the events between"),
        ((second, first), "name first the backup that it continues"),
        ((second,), "name first the backup that it continues"),
        ((first, theirs), "an increment of another ledger"),
        ((first, their_nothing), "an increment of another ledger"),
    ]
    shutil.copyfile(first, tmp_path / "copy.jsonl")
    copy = empty()
    for files, sentence in cases:
        for command in (("import", "--restore"), ("import", "--restore", "--incomplete"), ("backup", "check")):
            refused(ratings(*command, *files, db=copy), "restore-mismatch", sentence)
        assert head(ratings, copy).startswith("0:")
    twice = ratings("import", "--restore", first, first, db=copy)
    assert (twice.exit_code, "is named twice" in twice.stderr) == (2, True)
    assert ratings("import", "--restore", first, second, third, db=copy).exit_code == 0


def test_restore_without_end_line_needs_head(
    full: str, tmp_path: Path, ratings: Ratings, empty: Callable[[], str]
) -> None:
    """Restoring or checking an export from standard output, which has no end line, needs its head."""
    lines = ratings("export", "events", db=full).stdout.splitlines(keepends=True)
    (tmp_path / "all.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "one.jsonl").write_text("".join(lines[:FIRST]), encoding="utf-8")
    (tmp_path / "two.jsonl").write_text("".join(lines[FIRST:]), encoding="utf-8")
    whole, copy = head(ratings, full), empty()
    for files in (["all.jsonl"], ["one.jsonl"], ["one.jsonl", "two.jsonl"]):
        refused(ratings("import", "--restore", *(tmp_path / f for f in files), db=copy), "end-missing", "--incomplete")
        refused(ratings("backup", "check", *(tmp_path / f for f in files)), "end-missing", "--head POSITION:CHAINHASH")
    for command in (("import", "--restore"), ("backup", "check")):
        refused(ratings(*command, "--head", whole, tmp_path / "one.jsonl", db=copy), "end-mismatch", "cut off")
    assert head(ratings, copy).startswith("0:")
    assert ratings("backup", "check", "--head", whole, tmp_path / "one.jsonl", tmp_path / "two.jsonl").exit_code == 0
    assert ratings("import", "--restore", "--head", whole, tmp_path / "all.jsonl", db=copy).exit_code == 0
    assert head(ratings, copy) == whole


@pytest.mark.parametrize("compressed", [False, True])
def test_incomplete_restores_cut_off_backup(
    compressed: bool, full: str, tmp_path: Path, ratings: Ratings, empty: Callable[[], str]
) -> None:
    """`--incomplete` restores what is left of a backup that was cut off, and says so."""
    whole = export(ratings, full, tmp_path / "all.jsonl").read_bytes()
    cut = tmp_path / "cut.jsonl"
    half = len(whole) // 2
    cut.write_bytes(gzip.compress(whole)[:-200] if compressed else whole[:half])
    copy = empty()
    code = "bad-gzip" if compressed else "bad-json"
    for command in (("import", "--restore"), ("backup", "check")):
        refused(ratings(*command, cut, db=copy), code)
    taken = ratings("import", "--restore", "--incomplete", "--format", "json", cut, db=copy)
    told = json.loads(taken.stdout)
    assert (taken.exit_code, THIRD // 4 < told["appended"] < THIRD) == (0, True)
    assert "is cut off" in "".join(told["incomplete"])
    assert "without the last line" in "".join(told["incomplete"])
    told_to_people = ratings("import", "--restore", "--incomplete", cut, db=empty())
    assert "is cut off" in told_to_people.stderr
    whole_lines = ratings("export", "events", db=full).stdout
    assert whole_lines.startswith(ratings("export", "events", db=copy).stdout)


def test_misplaced_restore_options_are_refused(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """Restore options without `--restore`, malformed, or in conflict are a usage error."""
    file, whole = export(ratings, full, tmp_path / "all.jsonl"), head(ratings, full)
    for options in (
        ("--head", whole), ("--incomplete",), ("--restore", "--head", whole, "--incomplete"),
        ("--restore", "--head", "5"), ("--restore", "--dry-run"), ("--restore", "--keep-going"),
    ):  # fmt: skip
        assert ratings("import", file, *options, db=full).exit_code == 2


def test_changed_export_is_refused(full: str, tmp_path: Path, ratings: Ratings, empty: Callable[[], str]) -> None:
    """A changed export is refused on import as new events unless its end line has been removed."""
    full_lines = export(ratings, full, tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    later = export(ratings, full, tmp_path / "inc.jsonl", "--since", FIRST).read_text(encoding="utf-8").splitlines(True)
    copy = empty()
    for lines in (full_lines, later):
        for changed in (lines[1:], lines[:2] + lines[3:], [line.replace("anna", "emil") for line in lines],
                        [lines[1], lines[0], *lines[2:]], [*lines[:-1], GAMES[0], lines[-1]]):  # fmt: skip
            told = ratings("import", "-", "--format", "json", db=copy, input="".join(changed))
            assert told.exit_code == 1
            (rejection,) = json.loads(told.stdout)["rejected"]
            assert (rejection["code"], rejection["line"]) == ("end-mismatch", len(changed))
    assert head(ratings, copy).startswith("0:")
    without = [line.replace("anna", "emil") for line in full_lines[:-1]]
    assert ratings("import", "-", db=copy, input="".join(without)).exit_code == 0
    assert json.loads(ratings("log", "--format", "json", db=copy).stdout)["rows"][0]["by"] == "referee"


def test_long_increment_needs_little_memory(
    full: str, tmp_path: Path, ratings: Ratings, empty: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An increment can be imported even if its hashes exceed what is held in memory."""
    monkeypatch.setattr("ratings_ledger.ledger.store.exports._MEMORY_BYTES", 64)
    file = export(ratings, full, tmp_path / "inc.jsonl", "--since", 3)
    assert ratings("import", file, db=empty()).exit_code == 0


def test_empty_ledger_can_be_backed_up(
    ledger_url: str, tmp_path: Path, ratings: Ratings, empty: Callable[[], str]
) -> None:
    """A backup of an empty ledger is a valid backup that can be checked, imported and restored."""
    file = export(ratings, ledger_url, tmp_path / "all.jsonl")
    assert json.loads(file.read_text()) == {"end": 0, "head": f"0:{'0' * 64}"}
    assert ratings("backup", "check", file).exit_code == 0
    for options in ((), ("--restore",)):
        assert ratings("import", file, *options, db=empty()).exit_code == 0


def test_damaged_ledger_makes_no_backup(copied_file: Callable[..., str], tmp_path: Path, ratings: Ratings) -> None:
    """Backing up a damaged ledger fails, leaves no file, and points to `ratings verify`."""
    import sqlite3
    from contextlib import closing

    for number, change in enumerate(("DELETE FROM events WHERE position = 3",
                                     "UPDATE events SET record = replace(record, 'anna', 'emil') WHERE position = 3",
                                     "UPDATE events SET record = CAST(record AS BLOB) WHERE position = 3",
                                     "UPDATE events SET chain_hash = zeroblob(32) WHERE position = 18")):  # fmt: skip
        db = copied_file(make_empty_ledger, name=f"damaged-{number}.db")
        take_in(ratings, db, *GAMES)
        with closing(sqlite3.connect(db, isolation_level=None)) as connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute(change)
        told = ratings("export", "events", "-o", tmp_path / "all.jsonl", db=db)
        assert (told.exit_code, "ratings verify" in told.stderr) == (1, True), told
        assert not (tmp_path / "all.jsonl").exists()
        assert ratings("backup", "make", tmp_path / "backups", db=db).exit_code == 1
        assert os.listdir(tmp_path / "backups") == [backup_folder.LOCK_NAME]
        assert ratings("export", "events", db=db).exit_code == 0


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that sets the clock."""

    def set_to(time: str) -> None:
        since = (datetime.fromisoformat(time).replace(tzinfo=UTC) - EPOCH) // MICROSECOND
        monkeypatch.setattr(clock, "now", lambda: since)

    return set_to


def make(ratings: Ratings, db: str, folder: Path, *options: str, code: int = 0) -> dict[str, Any]:
    told = ratings("backup", "make", folder, *options, "--format", "json", db=db)
    assert told.exit_code == code, told
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def names(folder: Path) -> list[str]:
    """The backups in a folder, and whatever else is there that is not theirs."""
    own = {backup_folder.LIST_NAME, backup_folder.LOCK_NAME}
    return sorted(
        name for name in os.listdir(folder) if name not in own and not name.endswith(backup_folder.HEAD_SUFFIX)
    )


@pytest.mark.slow_cases
def test_backup_is_complete_and_private(
    full: str, tmp_path: Path, ratings: Ratings, empty: Callable[[], str], at: Callable[[str], None]
) -> None:
    """A backup in a folder is complete and private, with its head in a file beside it."""
    at("2026-11-22T03:17:00")
    folder, whole = tmp_path / "backups", head(ratings, full)
    told = make(ratings, full, folder)
    file = folder / "ratings-2026-11-22T031700Z-18.jsonl.gz"
    assert told["file"] == str(file)
    assert (told["head"], told["position"], told["bytes"]) == (whole, THIRD, file.stat().st_size)
    assert (told["dropped"], told["kept"], told["lost"]) == ([], 1, [])
    assert Path(f"{file}.head").read_text() == f"{whole}\n"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert gzip.decompress(file.read_bytes()) == export(ratings, full, tmp_path / "all.jsonl").read_bytes()
    copy = empty()
    assert ratings("import", "--restore", "--head", whole, file, db=copy).exit_code == 0
    assert head(ratings, copy) == whole
    # two in one second are two
    assert make(ratings, full, folder)["file"] == str(folder / "ratings-2026-11-22T031700Z-18-2.jsonl.gz")
    assert ratings("backup", "make", folder, db=full).stdout.startswith(f"{THIRD} events in {folder}")


@pytest.mark.slow
def test_only_expired_backups_are_dropped(
    full: str, tmp_path: Path, ratings: Ratings, at: Callable[[str], None]
) -> None:
    """Nightly backups drop the expired ones and leave everything else in the folder alone."""
    folder = tmp_path / "backups"
    folder.mkdir()
    strange = {
        "ratings-2020-01-01T000000Z-18.jsonl.gz": b"somebody's", "notes.txt": b"mine",
        "ratings-2020-01-01T000000Z-18.jsonl.gz.head": b"also somebody's",
    }  # fmt: skip
    for name, content in strange.items():
        (folder / name).write_bytes(content)
    day = datetime(2026, 1, 1, 3)
    for _ in range(40):
        at(day.isoformat())
        told = make(ratings, full, folder, "--keep", "3d,3w,2m")
        day += timedelta(days=1)
    made = [name for name in names(folder) if name not in strange]
    assert [name[8:18] for name in made] == ["2026-01-31", "2026-02-01", "2026-02-07", "2026-02-08", "2026-02-09"]
    assert told["kept"] == len(made)
    assert [one.file for one in backup_folder.read_list(folder)] == made
    assert {name: (folder / name).read_bytes() for name in strange} == strange
    heads = {name for name in os.listdir(folder) if name.endswith(".head")} - strange.keys()
    assert heads == {f"{name}.head" for name in made}


@pytest.mark.slow_cases
def test_each_ledger_drops_its_own_backups(
    full: str, tmp_path: Path, ratings: Ratings, copied_file: Callable[..., str], at: Callable[[str], None]
) -> None:
    """Of two ledgers that share a folder, each backup run drops only backups of its own ledger."""

    other = create_ledger(str(tmp_path / "other.db"))
    folder = tmp_path / "backups"
    for day in ("2026-01-01", "2026-01-02"):
        at(f"{day}T03:00:00")
        make(ratings, other, folder, "--keep", "2d")
        make(ratings, full, folder, "--keep", "1d")
    assert [name.removesuffix(".jsonl.gz")[8:] for name in names(folder)] == [
        "2026-01-01T030000Z-0", "2026-01-02T030000Z-0", "2026-01-02T030000Z-18",
    ]  # fmt: skip


@pytest.mark.slow_cases
def test_altered_backups_do_not_count(full: str, tmp_path: Path, ratings: Ratings, at: Callable[[str], None]) -> None:
    """Altered or missing backups are noted and count for nothing when old ones are dropped."""
    folder = tmp_path / "backups"
    files = []
    for day in range(1, 7):
        at(f"2026-01-{day:02d}T03:00:00")
        files.append(Path(make(ratings, full, folder)["file"]))
    files[1].write_bytes(b"something else")
    files[2].unlink()
    files[2].symlink_to(files[0])
    files[3].unlink()
    files[4].unlink()
    files[4].mkdir()
    Path(f"{files[0]}.head").write_text("not ours any more")
    at("2026-01-07T03:00:00")
    told = ratings("backup", "make", folder, "--keep", "2d", db=full)
    assert told.exit_code == 0
    for file in files[1:5]:
        assert f"note: {file} " in told.stderr
    # the two latest days that have a backup are the last one and the one before these
    assert [os.path.lexists(file) for file in files] == [False, True, True, False, True, True]
    assert files[1].read_bytes() == b"something else"
    assert Path(f"{files[0]}.head").exists()
    again = ratings("backup", "make", folder, "--keep", "2d", db=full)
    assert f"note: {files[3]} " not in again.stderr


def test_rewritten_history_drops_no_backups(
    tmp_path: Path, ratings: Ratings, copied_file: Callable[..., str], at: Callable[[str], None]
) -> None:
    """A backup of a ledger whose history was changed fails and drops nothing.

    Rewriting history must not make the nightly runs drop the backups of the true one.
    """
    db = Path(copied_file(make_empty_ledger, name="own.db"))
    before = db.read_bytes()
    folder = tmp_path / "backups"
    take_in(ratings, str(db), *GAMES)
    good = Path(make(ratings, str(db), folder, "--keep", "1d")["file"])
    # the same ledger by its id, with other games
    db.write_bytes(before)
    take_in(ratings, str(db), *reversed(GAMES))
    at("2030-01-02T03:00:00")
    told = make(ratings, str(db), folder, "--keep", "1d", code=1)
    assert good.exists()
    assert [one["file"] for one in told["lost"]] == [good.name]
    at("2030-01-03T03:00:00")
    # and an older copy, too
    db.write_bytes(before)
    shown = ratings("backup", "make", folder, "--keep", "1d", db=str(db))
    assert (shown.exit_code, shown.stderr.count("no backup was deleted"), len(names(folder))) == (1, 2, 3)


@pytest.mark.slow_cases
def test_backup_dated_ahead_drops_nothing(
    full: str, tmp_path: Path, ratings: Ratings, at: Callable[[str], None]
) -> None:
    """While a backup is dated after now, each run makes its backup, drops none, names that one and ends with 1."""
    folder = tmp_path / "backups"
    at("2027-12-30T03:00:00")
    ahead = Path(make(ratings, full, folder, "--keep", "2d")["file"])
    for day in range(1, 5):
        at(f"2026-11-{day:02d}T03:00:00")
        told = make(ratings, full, folder, "--keep", "2d", code=1)
        assert (told["dropped"], told["kept"], [one["file"] for one in told["ahead"]]) == ([], 1 + day, [ahead.name])
    told = ratings("backup", "make", folder, "--keep", "2d", db=full)
    assert (told.exit_code, told.stdout.startswith(f"{THIRD} events in ")) == (1, True)
    assert told.stderr == (
        f"ratings: {ahead} is dated 2027-12-30T03:00:00Z, which is in the future on this machine; no backup was "
        "deleted: correct the clock, or move the file to another folder if the clock is right\n"
    )
    checked = ratings("status", "--no-failures", db=full)
    assert checked.exit_code == 1
    assert f"the last backup failed (2026-11-04 03:00:00 UTC): {ahead} is dated" in checked.stderr
    night = ratings("nightly", "--backup", folder, "--keep", "2d", db=full)
    assert (night.exit_code, f"backup FAILED: {ahead} is dated" in night.stdout) == (1, True)
    assert len(names(folder)) == 7
    ahead.rename(tmp_path / ahead.name)
    told = make(ratings, full, folder, "--keep", "2d")
    assert (told["kept"], told["ahead"]) == (2, [])
    assert ratings("status", "--no-failures", db=full).exit_code == 0


def test_concurrent_backup_does_nothing(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """A backup does nothing while another one is running in the same folder."""
    folder = tmp_path / "backups"
    folder.mkdir()
    with backup_folder._lock_folder(folder):
        told = ratings("backup", "make", folder, db=full)
    assert ("is running" in told.stderr, names(folder)) == (True, [])
    assert told.exit_code not in (0, 2, 3)
    assert ratings("backup", "make", folder, db=full).exit_code == 0


def test_wrong_head_file_is_refused(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """Checking a backup is refused if the head in the file beside it differs from its own."""
    file = make(ratings, full, tmp_path / "backups")["file"]
    assert ratings("backup", "check", file) == ratings("backup", "check", file, "--head", head(ratings, full))
    for content in (f"{THIRD}:{'a' * 64}\n", "no head", ""):
        Path(f"{file}.head").write_text(content)
        refused(ratings("backup", "check", file), "end-mismatch", ".head")
    Path(f"{file}.head").unlink()
    assert ratings("backup", "check", file).exit_code == 0


def test_check_needs_no_ledger(full: str, tmp_path: Path, ratings: Ratings) -> None:
    """Checking a backup without a replay neither needs nor creates a ledger."""
    file, absent = export(ratings, full, tmp_path / "all.jsonl"), tmp_path / "absent.db"
    told = ratings("backup", "check", file, db=str(absent))
    assert (told.exit_code, told.stdout.splitlines()) == (
        0, [f"{file}: {THIRD} events up to position {THIRD}", f"It is complete. The head: {head(ratings, full)}"],
    )  # fmt: skip
    assert not absent.exists()
    assert ratings("backup", "check", "--replay", file, db=str(absent)).exit_code == 3


@pytest.mark.slow
def test_rehearsal_matches_ledger_at_position(
    ruled_url: str, tmp_path: Path, ratings: Ratings, copied_file: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rehearsed backup has its ledger's ladders at that position, and not those of another ledger."""
    take_in(ratings, ruled_url, *GAMES[:FIRST])
    file = make(ratings, ruled_url, tmp_path / "backups")["file"]
    # the ledger goes on
    take_in(ratings, ruled_url, *GAMES[FIRST:])
    told = json.loads(ratings("backup", "check", "--replay", file, "--format", "json", db=ruled_url).stdout)
    ladders = json.loads(
        ratings("ladders", "--known-at", told["head"].split(":")[0], "--format", "json", db=ruled_url).stdout
    )
    assert (told["whole"], told["findings"], told["ladders"]) == (True, [], len(ladders["rows"]))
    assert told["ladders"] >= 2
    assert ratings("backup", "check", "--replay", file, db=ruled_url).stdout.endswith(f"The head: {told['head']}\n")

    other = copied_file(make_ruled_ledger, name="other.db")
    theirs = ratings("backup", "check", "--replay", file, db=other)
    assert (theirs.exit_code, "head: position" in theirs.stdout, "It is complete" in theirs.stdout) == (1, True, False)


def test_rehearsal_names_differing_ladder(
    ruled_url: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rehearsal fails and names each ladder whose standings come out differently."""
    from ratings_ledger.projections.stored import backup_checks

    take_in(ratings, ruled_url, *GAMES)
    file = export(ratings, ruled_url, tmp_path / "all.jsonl")
    true_digests, calls = backup_checks._compute_digests, []

    def otherwise(ledger: Any, position: int) -> Any:
        calls.append(ledger)
        found = true_digests(ledger, position)
        return {**found, "club-catan-elo/all": "sha256:other"} if len(calls) == 1 else found

    monkeypatch.setattr(backup_checks, "_compute_digests", otherwise)
    told = ratings("backup", "check", "--replay", file, db=ruled_url)
    assert told.exit_code == 1
    assert "standings: position" in told.stdout
    assert "club-catan-elo/all: the backup gives other standings" in told.stdout
