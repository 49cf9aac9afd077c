"""A table imported again: its games match those already recorded, also after a correction or a rename."""

import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, read_position

HEADER = "game_id,occurred_at,game,1st,2nd,3rd,city\n"
ROWS = {
    "g-1": "g-1,2024-03-01T12:00:00Z,chess,anna,ben,cara,Ulm\n",
    "g-2": "g-2,2024-03-02T12:00:00Z,chess,ben,clara,anna,Ulm\n",
}
SHEET = HEADER + "".join(ROWS.values())


def create_chess_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger for chess with two games; one has a misspelt name."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    assert ratings("import", "-", db=url, input=SHEET).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_chess_ledger)


def run_import(ratings: Ratings, db: str, content: str) -> dict[str, Any]:
    """Return the JSON report of an import of a table."""
    return dict(json.loads(ratings("import", "-", "--format", "json", db=db, input=content).stdout))


def list_conflicts(ratings: Ratings, db: str, content: str) -> list[str]:
    """Return the messages of refusals, which must all be id-conflicts."""
    report = run_import(ratings, db, content)
    assert {rejection["code"] for rejection in report["rejected"]} == {"id-conflict"}
    return [rejection["message"] for rejection in report["rejected"]]


@pytest.mark.slow_cases
def test_sheet_fixed_after_correction_matches(db: str, ratings: Ratings) -> None:
    """A sheet that agrees with a corrected game finds it already there, and so does the original sheet."""
    fixed_sheet = SHEET.replace("cara", "clara")
    conflicts = list_conflicts(ratings, db, fixed_sheet)
    ratings("correct", "g-1", "anna", "ben", "clara", "--reason", "a slip", db=db)
    before = read_position(ratings, db)
    extended_sheet = fixed_sheet + "g-3,2024-03-03T12:00:00Z,chess,anna,clara,ben,Ulm\n"

    assert conflicts == [
        "the game 'g-1' is already recorded with different content: recorded as 1 anna, 2 ben, 3 cara; now 1 anna, "
        "2 ben, 3 clara; use ratings correct to correct it, or another game_id for another game"
    ]
    report = run_import(ratings, db, extended_sheet)
    assert (report["existing"], report["appended"], report["rejected"], report["head"]) == (2, 1, [], before + 2)
    # the original sheet does not conflict either
    assert run_import(ratings, db, SHEET)["existing"] == 2


def test_sheet_with_new_name_matches(db: str, ratings: Ratings) -> None:
    """After a rename, a sheet finds its games already there under the new name and the old."""
    ratings("player", "rename", "ben", "benjamin", db=db)

    assert run_import(ratings, db, SHEET.replace("ben", "benjamin"))["existing"] == 2
    assert run_import(ratings, db, SHEET)["existing"] == 2


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("anna,ben", "ben,anna", "recorded as 1 anna, 2 ben, 3 cara; now 1 ben, 2 anna, 3 cara"),
        (
            "2024-03-01T12",
            "2024-03-01T13",
            "recorded as played 2024-03-01T12:00:00.000000Z, now played 2024-03-01T13:00:00.000000Z",
        ),
        (
            "12:00:00Z,chess,anna,ben",
            "13:00:00Z,chess,ben,anna",
            "recorded as 1 anna, 2 ben, 3 cara, played 2024-03-01T12:00:00.000000Z; "
            "now 1 ben, 2 anna, 3 cara, played 2024-03-01T13:00:00.000000Z",
        ),
        ("cara,Ulm", "cara,Bonn", "it differs in city"),
    ],
)
def test_differing_sheet_is_refused(old: str, new: str, why: str, db: str, ratings: Ratings) -> None:
    """A sheet with another result, time or column is refused with the difference."""
    (message,) = list_conflicts(ratings, db, SHEET.replace(old, new))
    assert f"with different content: {why}; use ratings correct" in message


def test_time_moved_by_a_sync_is_no_difference(db: str, ratings: Ratings) -> None:
    """A refusal does not name the part of a second by which a recorded game is later, as after `--sync`."""
    later = HEADER + "g-3,2024-03-03T12:00:00.000001Z,chess,anna,ben,,Ulm\n"
    assert run_import(ratings, db, later)["appended"] == 1
    (message,) = list_conflicts(ratings, db, later.replace(".000001", "").replace("Ulm", "Bonn"))
    assert "with different content: it differs in city; use ratings correct" in message


def test_sheet_whose_numbers_restart_has_new_games(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Numbers that restart in a new season are refused with the days, and with the option that drops the column.

    With that option, both seasons are recorded.
    """
    seasons = {year: tmp_path / f"{year}.csv" for year in (2025, 2026)}
    for year, sheet in seasons.items():
        sheet.write_text(f"Match no;Fecha;1st;2nd\n1;13/01/{year};anna;{year}\n", encoding="utf-8")
    result = ratings("import", seasons[2025], "--set", "game=chess", "--zone", "UTC", db=db)
    assert result.exit_code == 0, result.stderr

    command = ("import", seasons[2026], "--set", "game=chess", "--zone", "UTC")
    assert (
        "the game '1' is already recorded with different content: "
        "recorded as 1 anna, 2 2025, played 2025-01-13; now 1 anna, 2 2026, played 2026-01-13; "
        "give it another game_id if it is another game (--map 'Match no=' drops the column and numbers games by day); "
        "use ratings correct if this game moved to another day\n"
    ) in ratings(*command, db=db).stderr
    result = ratings(*command, "--map", "Match no=", db=db)
    assert result.exit_code == 0, result.stderr
    assert "2026-01-13-1" in ratings("games", db=db).stdout


def test_new_season_in_old_file_gets_advice_before_sync(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A file of the same name with games of other days is refused with advice for new games, before --sync is named."""
    sheet = tmp_path / "club.csv"
    for day, code in (("2025-01-13T12:00:00Z", 0), ("2026-01-13T12:00:00Z", 1)):
        sheet.write_text(f"game_id,occurred_at,game,1st,2nd\n1,{day},chess,anna,ben\n", encoding="utf-8")
        result = ratings("import", sheet, db=db)
        assert result.exit_code == code
    assert "recorded as played 2025-01-13, now played 2026-01-13; give it another game_id" in result.stderr
    assert "(--map game_id= drops the column and numbers games by day); use --sync if this game moved" in result.stderr
    assert ratings("import", sheet, "--map", "game_id=", db=db).exit_code == 0


def test_edited_table_is_referred_to_sync(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Rows that differ from an earlier table of the same name are refused; only the first refusal advises --sync."""
    sheet = tmp_path / "club.csv"
    sheet.write_text(HEADER + "".join(ROWS.values()).replace("g-", "h-"), encoding="utf-8")
    assert ratings("import", sheet, db=db).exit_code == 0
    sheet.write_text(sheet.read_text(encoding="utf-8").replace("anna", "dora"), encoding="utf-8")
    result = ratings("import", sheet, db=db)
    first, second = result.stderr.splitlines()[:2]
    advice = "; use --sync if the table was edited, or another game_id for another game"
    assert first.endswith(f"now 1 dora, 2 ben, 3 cara{advice}")
    assert second.endswith("now 1 ben, 2 clara, 3 dora")


@pytest.mark.slow_cases
def test_voided_game_conflicts_with_sheet(db: str, ratings: Ratings) -> None:
    """A changed sheet row for a voided game is refused, while the original row is already there."""
    ratings("void", "g-1", "--reason", "never played", db=db)

    assert list_conflicts(ratings, db, SHEET.replace("cara", "clara")) == [
        "the game 'g-1' was recorded, and voided at position 5; take that back with ratings undo 5 (for this game "
        "only: ratings reinstate g-1 --reason TEXT); then run ratings correct"
    ]
    assert run_import(ratings, db, SHEET)["existing"] == 2


def test_resent_json_must_match_first_record(db: str, ratings: Ratings) -> None:
    """JSON Lines sent again are compared with a game's first record only, not with its correction."""
    ratings("correct", "g-1", "anna", "ben", "clara", "--reason", "a slip", db=db)
    game = json.loads(ratings("games", "g-1", "--format", "json", db=db).stdout)["rows"][0]
    del game["position"]
    line = {"type": "game.recorded", "occurred_at": game.pop("occurred_at"), "data": game}

    assert len(list_conflicts(ratings, db, json.dumps(line))) == 1


@pytest.mark.parametrize("together", [False, True], ids=["one after another", "in one import"])
def test_tables_of_one_day_need_different_ids(together: bool, db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Two tables whose games are numbered by the same day are refused with two solutions; the first one records both
    tables."""
    blitz, rapid = tmp_path / "blitz.csv", tmp_path / "rapid.csv"
    blitz.write_text("Date,1st,2nd\n2024-11-22,anna,ben\n", encoding="utf-8")
    rapid.write_text("Date,1st,2nd\n2024-11-22,ben,anna\n", encoding="utf-8")
    options = ("--set", "game=chess", "--zone", "UTC")
    if not together:
        assert ratings("import", blitz, *options, db=db).exit_code == 0
    result = ratings("import", *([blitz] if together else []), rapid, *options, db=db)
    assert (result.exit_code, "id-conflict" in result.stderr) == (1, True)
    advice = (
        "number the games in a column of each table (--map THEIRS=game_id), or keep all games of a day in one table"
    )
    assert advice in result.stderr
    rapid.write_text("Date,Code,1st,2nd\n2024-11-22,r-1,ben,anna\n", encoding="utf-8")
    assert ratings("import", blitz, *options, db=db).exit_code == 0
    assert ratings("import", rapid, *options, "--map", "Code=game_id", db=db).exit_code == 0
