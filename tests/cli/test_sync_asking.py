"""`import --sync`: its questions, output and refusals, and what it leaves when it is killed."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from correction_helpers import Ratings, build_galactic_line, read_digests
from fault_helpers import fork_child
from sheet_files import xlsx
from sync_helpers import ROWS, SET, Club, count_differences, create_catan_ledger
from terminals import CTRL_D, type_answers

from ratings_ledger.ledger.store import appending

EDITED = (ROWS[0], "2024-11-22,Ben,Cleo,Anna")
QUESTION = "Record this? [yes, no] "


@pytest.fixture
def club(copy_ledger: Callable[..., str], ratings: Ratings, tmp_path: Path) -> Club:
    """Return a club with three games from its sheet, in each kind of store in turn."""
    club_with_games = Club(ratings, copy_ledger(create_catan_ledger), tmp_path / "sheets")
    club_with_games.import_sheet(*ROWS)
    return club_with_games


@pytest.fixture
def one_club(copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path) -> Club:
    """Return a club with three games from its sheet, in SQLite."""
    club_with_games = Club(ratings, copy_ledger_file(create_catan_ledger), tmp_path / "sheets")
    club_with_games.import_sheet(*ROWS)
    return club_with_games


def test_decisions_without_terminal_need_yes(one_club: Club) -> None:
    """Without a terminal, decisions about recorded games need --yes; new games alone do not."""
    before = one_club.head
    report = one_club.sync(*EDITED, options=[], code=1)
    assert report["rejected"] == [
        {
            "file": str(one_club.folder / "club.csv"),
            "line": None,
            "code": "not-confirmed",
            "message": "2 recorded games would be changed; pass --yes to confirm, or --dry-run to see how",
        }
    ]
    assert (count_differences(report), one_club.head) == ({"changed": 1, "vanished": 1}, before)
    assert count_differences(one_club.sync(*ROWS, "2024-11-30,Anna,Ben,", options=[])) == {"new": 1}


def test_dry_run_shows_and_records_nothing(one_club: Club) -> None:
    """A dry run shows the differences and the changes of points, and records nothing."""
    before = one_club.head
    report = one_club.sync(*EDITED, options=["--dry-run"])
    assert (count_differences(report), report["would_append"], one_club.head) == (
        {"changed": 1, "vanished": 1},
        2,
        before,
    )
    assert {change["player"] for change in report["changes"]} == {"Anna", "Cleo", "Dora"}


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code", "events"), [("y\r", 0, 2), ("n\r", 1, 0), (CTRL_D, 130, 0)])
def test_terminal_confirms_before_recording(one_club: Club, answer: str, code: int, events: int) -> None:
    """At a terminal the differences are shown first and recorded after a yes."""
    file, before = one_club.write(*EDITED), one_club.head
    command = ["--db", one_club.db, "import", str(file), *SET, "--sync"]
    exit_code, stdout, terminal_text = type_answers(command, [(QUESTION, answer)])
    assert exit_code == code
    assert "changed 2024-11-22-2 3 1 Ben, 2 Anna, 3 Cleo 1 Ben, 2 Cleo, 3 Anna" in " ".join(stdout.split())
    assert stdout.index("2 would be appended") > stdout.index("1 changed, 1 vanished")
    assert ("2 appended" in stdout) == (code == 0) != ("nothing was recorded" in terminal_text)
    assert len(one_club.list_events(before)) == events


@pytest.mark.slow
def test_large_removal_can_be_confirmed(one_club: Club) -> None:
    """At a terminal the removal of most of a sheet's games is explained and can be confirmed."""
    rows = [f"2024-10-{day:02},Anna,Ben,Cleo" for day in range(1, 13)]
    one_club.import_sheet(*rows)
    file = one_club.write(*rows[:2])
    _, stdout, _ = type_answers(["--db", one_club.db, "import", str(file), *SET, "--sync"], [(QUESTION, "y\r")])
    assert "13 of 15 games recorded by imports of club.csv are no longer in the sheet" in " ".join(stdout.split())
    assert len(one_club.list_games()) == 2


def test_many_differences_are_counted(one_club: Club) -> None:
    """The table lists the first differences in lines of 80 columns and counts the rest."""
    file = one_club.write(*ROWS, *(f"2024-10-{day:02},Anna,Ben,Cleo" for day in range(1, 26)))
    result = one_club.ratings("import", file, *SET, "--sync", db=one_club.db)
    lines = result.stdout.splitlines()
    assert lines[:5] == [
        "club.csv: 25 new",
        "",
        "what  game          line  was  is",
        "new   2024-10-01-1     5       1 Anna, 2 Ben, 3 Cleo",
        "new   2024-10-02-1     6       1 Anna, 2 Ben, 3 Cleo",
    ]
    assert lines[23:26] == [
        "... and 5 more (--format json lists them)",
        "",
        "25 appended, 3 already there; the head is 32.",
    ]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    "arguments",
    [("--keep-going",), ("again.csv",), ("-",), ("--restore",)],
    ids=["keep going", "two files", "stdin", "restore"],
)
def test_sync_takes_one_whole_file(one_club: Club, arguments: tuple[str, ...]) -> None:
    """--sync refuses several files, standard input, --restore and --keep-going."""
    one_club.write(*ROWS, name="again.csv")
    extra_arguments = [one_club.folder / argument if argument.endswith(".csv") else argument for argument in arguments]
    result = one_club.ratings("import", one_club.write(*ROWS), *extra_arguments, "--sync", db=one_club.db)
    assert (result.exit_code, "--sync compares one file with its earlier imports" in result.stderr) == (2, True)


@pytest.mark.parametrize("option", [("--yes",), ("--reason", "checked")])
def test_options_of_sync_need_it(one_club: Club, option: tuple[str, ...]) -> None:
    """--yes and --reason are refused without --sync."""
    result = one_club.ratings("import", one_club.write(*ROWS), *option, db=one_club.db)
    assert (result.exit_code, "--reason and --yes work only with --sync" in result.stderr) == (2, True)


def test_json_lines_are_refused(one_club: Club) -> None:
    """--sync refuses JSON Lines, because their events have ids."""
    file = one_club.folder / "games.jsonl"
    file.write_text(
        build_galactic_line("g-1", "anna", "ben") + build_galactic_line("g-2", "anna", "ben"), encoding="utf-8"
    )
    result = one_club.ratings("import", file, "--sync", db=one_club.db)
    assert result.exit_code == 1
    assert result.stderr == (
        f"{file}:1: not-a-table: --sync compares only tables; import other files without --sync, because their events "
        "have ids\n"
    )


def test_sheets_of_a_workbook_are_separate(one_club: Club) -> None:
    """Syncing one sheet of a spreadsheet file leaves the games of its other sheets alone."""
    header = ["Date", "Winner", "2nd"]
    years = {year: [header, *([f"{year}-05-{day:02}", "Anna", "Ben"] for day in range(1, 5))] for year in (2023, 2024)}
    file = one_club.folder / "club.xlsx"

    def write_workbook() -> None:
        file.write_bytes(xlsx(years[2023], ("2024", "visible", years[2024]), name="2023"))

    write_workbook()
    for year in years:
        assert one_club.ratings("import", file, *SET, "--sheet", year, db=one_club.db).exit_code == 0
    years[2024][1] = ["2024-05-01", "Ben", "Anna"]
    del years[2024][4]
    write_workbook()
    result = one_club.ratings("import", file, *SET, "--sheet", "2024", "--sync", "--yes", db=one_club.db)
    assert result.stdout.splitlines()[0] == "club.xlsx: 1 changed, 1 vanished"
    assert sorted(one_club.list_games().items())[:4] == [(f"2023-05-0{day}-1", "Anna Ben") for day in range(1, 5)]


def test_renamed_sheet_lists_known_sheets(one_club: Club) -> None:
    """For a sheet with a new name, the message lists the known sheets of the file."""
    rows = [["Date", "Winner", "2nd"], *([f"2024-05-{day:02}", "Anna", "Ben"] for day in range(1, 5))]
    file = one_club.folder / "club.xlsx"
    file.write_bytes(xlsx(rows, name="Games"))
    assert one_club.ratings("import", file, *SET, db=one_club.db).exit_code == 0
    file.write_bytes(xlsx(rows, name="Games 2024"))
    result = one_club.ratings("import", file, *SET, "--sync", "--yes", db=one_club.db)
    assert "under this name from the sheet 'Games 2024' before" in result.stderr
    assert "club.xlsx was imported from 'Games'; if you renamed the sheet, rename it back" in result.stderr


@pytest.mark.slow_cases
@pytest.mark.parametrize("committed", [False, True], ids=["before the commit", "after the commit"])
def test_killed_sync_is_completed(club: Club, committed: bool) -> None:
    """A sync killed before or after its commit has recorded nothing or everything, and the next sync completes it."""
    before, file = club.head, club.write(*EDITED)

    def run_killed_sync() -> None:
        insert, append = appending.insert_event_rows, appending.append

        def insert_and_die(*arguments: object) -> object:
            insert(*arguments)  # type: ignore[arg-type]
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        def append_and_die(*arguments: object, **options: object) -> object:
            append(*arguments, **options)  # type: ignore[arg-type]
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        from ratings_ledger.ledger.intake import intake

        if committed:
            intake.append = append_and_die  # type: ignore[assignment]
        else:
            appending.insert_event_rows = insert_and_die  # type: ignore[assignment]
        club.ratings("import", file, *SET, "--sync", "--yes", db=club.db)

    _, status = os.waitpid(fork_child(run_killed_sync), 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert len(club.list_events(before)) == (2 if committed else 0)
    report = club.sync(*EDITED)
    assert count_differences(report) == ({} if committed else {"changed": 1, "vanished": 1})
    sync_events, digests = club.list_events(before), read_digests(club.ratings, club.db)
    assert sync_events == [("game.voided", "2024-11-23-1"), ("game.corrected", "2024-11-22-2")]
    # the recorded events belong to the sheet, so the next edit builds on them
    assert count_differences(club.sync(*ROWS)) == {"changed": 1, "returned": 1}
    assert read_digests(club.ratings, club.db) != digests
