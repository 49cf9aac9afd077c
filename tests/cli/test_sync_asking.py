"""How `import --sync` asks, what it shows and refuses, and what becomes of it when it is killed."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from correction_helpers import Ratings, digests, galactic
from fault_helpers import fork_child
from sheet_files import xlsx
from sheets_synced import ROWS, SET, Club, a_club_of_catan, counts
from terminals import CTRL_D, type_answers

from ratings_ledger.ledger.store import appending

EDITED = (ROWS[0], "2024-11-22,Ben,Cleo,Anna")
QUESTION = "Record this? [yes, no] "


@pytest.fixture
def club(copied: Callable[..., str], ratings: Ratings, tmp_path: Path) -> Club:
    """A club with three games from its sheet, in each kind of store."""
    found = Club(ratings, copied(a_club_of_catan), tmp_path / "sheets")
    found.take(*ROWS)
    return found


@pytest.fixture
def one_club(copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path) -> Club:
    """The same in SQLite."""
    found = Club(ratings, copied_file(a_club_of_catan), tmp_path / "sheets")
    found.take(*ROWS)
    return found


def test_without_a_terminal_yes_is_needed(one_club: Club) -> None:
    """Decisions about recorded games need --yes where nobody can be asked; new games alone need none."""
    before = one_club.head
    told = one_club.sync(*EDITED, more=[], code=1)
    assert told["rejected"] == [
        {"file": str(one_club.folder / "club.csv"), "line": None, "code": "not-confirmed",
         "message": "2 recorded games would be changed; pass --yes to confirm, or --dry-run to see how"}
    ]  # fmt: skip
    assert (counts(told), one_club.head) == ({"changed": 1, "vanished": 1}, before)
    assert counts(one_club.sync(*ROWS, "2024-11-30,Anna,Ben,", more=[])) == {"new": 1}


def test_dry_run_shows_and_records_nothing(one_club: Club) -> None:
    """A dry run shows what differs and whose points it would change, and records nothing."""
    before = one_club.head
    told = one_club.sync(*EDITED, more=["--dry-run"])
    assert (counts(told), told["would_append"], one_club.head) == ({"changed": 1, "vanished": 1}, 2, before)
    assert {one["player"] for one in told["changes"]} == {"Anna", "Cleo", "Dora"}


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code", "events"), [("y\r", 0, 2), ("n\r", 1, 0), (CTRL_D, 130, 0)])
def test_terminal_asks_first(one_club: Club, answer: str, code: int, events: int) -> None:
    """At a terminal what differs is shown before it is recorded, once somebody says yes."""
    file, before = one_club.write(*EDITED), one_club.head
    command = ["--db", one_club.db, "import", str(file), *SET, "--sync"]
    ended, stdout, shown = type_answers(command, [(QUESTION, answer)])
    assert ended == code
    assert "changed 2024-11-22-2 3 1 Ben, 2 Anna, 3 Cleo 1 Ben, 2 Cleo, 3 Anna" in " ".join(stdout.split())
    assert stdout.index("2 would be appended") > stdout.index("1 changed, 1 vanished")
    assert ("2 appended" in stdout) == (code == 0) != ("nothing was recorded" in shown)
    assert len(one_club.events(before)) == events


@pytest.mark.slow
def test_doubt_is_shown_before_it_is_asked(one_club: Club) -> None:
    """Where most of what a sheet gave is gone, a person may say yes."""
    many = [f"2024-10-{day:02},Anna,Ben,Cleo" for day in range(1, 13)]
    one_club.take(*many)
    file = one_club.write(*many[:2])
    _, stdout, _ = type_answers(["--db", one_club.db, "import", str(file), *SET, "--sync"], [(QUESTION, "y\r")])
    assert "13 of 15 games recorded by imports of club.csv are no longer in the sheet" in " ".join(stdout.split())
    assert len(one_club.games()) == 2


def test_many_differences_are_counted(one_club: Club) -> None:
    """A table shows the first games that differ, in lines of 80 columns, and how many more there are."""
    file = one_club.write(*ROWS, *(f"2024-10-{day:02},Anna,Ben,Cleo" for day in range(1, 26)))
    done = one_club.ratings("import", file, *SET, "--sync", db=one_club.db)
    lines = done.stdout.splitlines()
    assert lines[:5] == [
        "club.csv: 25 new", "",
        "what  game          line  was  is",
        "new   2024-10-01-1     5       1 Anna, 2 Ben, 3 Cleo",
        "new   2024-10-02-1     6       1 Anna, 2 Ben, 3 Cleo",
    ]  # fmt: skip
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
def test_only_one_whole_file_is_compared(one_club: Club, arguments: tuple[str, ...]) -> None:
    """What is compared is one whole file, known by its name."""
    one_club.write(*ROWS, name="again.csv")
    given = [one_club.folder / one if one.endswith(".csv") else one for one in arguments]
    done = one_club.ratings("import", one_club.write(*ROWS), *given, "--sync", db=one_club.db)
    assert (done.exit_code, "--sync compares one file with its earlier imports" in done.stderr) == (2, True)


@pytest.mark.parametrize("option", [("--yes",), ("--reason", "checked")])
def test_options_of_sync_need_it(one_club: Club, option: tuple[str, ...]) -> None:
    """--yes and --reason mean nothing without --sync, and are refused."""
    done = one_club.ratings("import", one_club.write(*ROWS), *option, db=one_club.db)
    assert (done.exit_code, "--reason and --yes need --sync" in done.stderr) == (2, True)


def test_json_lines_are_refused(one_club: Club) -> None:
    """Events of JSON Lines are not compared, because they have ids."""
    file = one_club.folder / "games.jsonl"
    file.write_text(galactic("g-1", "anna", "ben") + galactic("g-2", "anna", "ben"), encoding="utf-8")
    done = one_club.ratings("import", file, "--sync", db=one_club.db)
    assert done.exit_code == 1
    assert done.stderr == (
        f"{file}:1: not-a-table: --sync compares only tables; import other files without --sync, because their events "
        "have ids\n"
    )


def test_sheets_of_a_workbook_are_apart(one_club: Club) -> None:
    """Each sheet of a spreadsheet file speaks for its own games alone."""
    header = ["Date", "Winner", "2nd"]
    years = {year: [header, *([f"{year}-05-{day:02}", "Anna", "Ben"] for day in range(1, 5))] for year in (2023, 2024)}
    file = one_club.folder / "club.xlsx"

    def write() -> None:
        file.write_bytes(xlsx(years[2023], ("2024", "visible", years[2024]), name="2023"))

    write()
    for year in years:
        assert one_club.ratings("import", file, *SET, "--sheet", year, db=one_club.db).exit_code == 0
    years[2024][1] = ["2024-05-01", "Ben", "Anna"]
    del years[2024][4]
    write()
    done = one_club.ratings("import", file, *SET, "--sheet", "2024", "--sync", "--yes", db=one_club.db)
    assert done.stdout.splitlines()[0] == "club.xlsx: 1 changed, 1 vanished"
    assert sorted(one_club.games().items())[:4] == [(f"2023-05-0{day}-1", "Anna Ben") for day in range(1, 5)]


def test_renamed_sheet_is_told_its_old_name(one_club: Club) -> None:
    """A sheet with another name than before is told which sheets of the file are known."""
    rows = [["Date", "Winner", "2nd"], *([f"2024-05-{day:02}", "Anna", "Ben"] for day in range(1, 5))]
    file = one_club.folder / "club.xlsx"
    file.write_bytes(xlsx(rows, name="Games"))
    assert one_club.ratings("import", file, *SET, db=one_club.db).exit_code == 0
    file.write_bytes(xlsx(rows, name="Games 2024"))
    told = one_club.ratings("import", file, *SET, "--sync", "--yes", db=one_club.db)
    assert "under this name from the sheet 'Games 2024' before" in told.stderr
    assert "club.xlsx was imported from 'Games'; if you renamed the sheet, rename it back" in told.stderr


@pytest.mark.slow_cases
@pytest.mark.parametrize("committed", [False, True], ids=["before the commit", "after the commit"])
def test_killed_sync_is_completed(club: Club, committed: bool) -> None:
    """Killed at the worst instant, all of a sync is recorded or nothing, and run again it is complete."""
    before, file = club.head, club.write(*EDITED)

    def killed() -> None:
        insert, append = appending.insert_event_rows, appending.append

        def dies(*given: object) -> object:
            insert(*given)  # type: ignore[arg-type]
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        def dies_later(*given: object, **more: object) -> object:
            append(*given, **more)  # type: ignore[arg-type]
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        from ratings_ledger.ledger.intake import intake

        if committed:
            intake.append = dies_later  # type: ignore[assignment]
        else:
            appending.insert_event_rows = dies  # type: ignore[assignment]
        club.ratings("import", file, *SET, "--sync", "--yes", db=club.db)

    _, status = os.waitpid(fork_child(killed), 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert len(club.events(before)) == (2 if committed else 0)
    told = club.sync(*EDITED)
    assert counts(told) == ({} if committed else {"changed": 1, "vanished": 1})
    once, after = club.events(before), digests(club.ratings, club.db)
    assert once == [("game.voided", "2024-11-23-1"), ("game.corrected", "2024-11-22-2")]
    # what it recorded belongs to the sheet: the next edit goes on from there
    assert counts(club.sync(*ROWS)) == {"changed": 1, "returned": 1}
    assert digests(club.ratings, club.db) != after
