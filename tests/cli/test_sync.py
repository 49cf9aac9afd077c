"""`import --sync`: an edited sheet corrects and voids only the games that it gave before."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, read_digests, read_json
from interleaving import act_before_next
from sync_helpers import ROWS, SET, Club, count_differences, create_catan_ledger


@pytest.fixture
def club(copy_ledger: Callable[..., str], ratings: Ratings, tmp_path: Path) -> Club:
    """Return a club without games, in each kind of store in turn."""
    return Club(ratings, copy_ledger(create_catan_ledger), tmp_path / "sheets")


@pytest.fixture
def one_club(copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path) -> Club:
    """Return a club without games, in SQLite."""
    return Club(ratings, copy_ledger_file(create_catan_ledger), tmp_path / "sheets")


def list_rejections(report: dict[str, Any]) -> list[tuple[str, int | None]]:
    """Return the codes and lines of the rejections, and assert that nothing was appended."""
    assert report["appended"] == 0
    return [(rejection["code"], rejection["line"]) for rejection in report["rejected"]]


@pytest.mark.slow_cases
def test_edits_become_decisions(club: Club) -> None:
    """A changed row becomes a correction, a deleted one a void, a new one a game; the reason is recorded."""
    club.import_sheet(*ROWS)
    before = club.head

    report = club.sync(
        ROWS[0], "2024-11-22,Ben,Cleo,Anna", "2024-11-30,Dora,Anna,", options=["--yes", "--reason", "checked"]
    )
    second_report = club.sync(ROWS[0], "2024-11-22,Ben,Cleo,Anna", "2024-11-30,Dora,Anna,", options=[])

    assert count_differences(report) == {"new": 1, "changed": 1, "vanished": 1}
    assert report["sync"]["games"] == [
        {"what": "vanished", "game_id": "2024-11-23-1", "line": None, "occurred_at": "2024-11-23T11:00:00.000000Z",
         "was": "1 Cleo, 2 Anna, 3 Dora", "is": None},
        {"what": "changed", "game_id": "2024-11-22-2", "line": 3, "occurred_at": "2024-11-22T11:00:00.000000Z",
         "was": "1 Ben, 2 Anna, 3 Cleo", "is": "1 Ben, 2 Cleo, 3 Anna"},
        {"what": "new", "game_id": "2024-11-30-1", "line": 4, "occurred_at": "2024-11-30T11:00:00.000000Z",
         "was": None, "is": "1 Dora, 2 Anna"},
    ]  # fmt: skip
    assert club.list_events(before) == [
        ("game.voided", "2024-11-23-1"),
        ("game.corrected", "2024-11-22-2"),
        ("game.recorded", "2024-11-30-1"),
    ]
    decisions = read_json(club.ratings, club.db, "log", "--type", "game.voided", "--type", "game.corrected")["rows"]
    assert {row["data"]["reason"] for row in decisions} == {"checked"}
    assert (report["appended"], report["existing"]) == (3, 1)
    assert (count_differences(second_report), second_report["appended"], second_report["existing"]) == ({}, 0, 3)


def test_default_reason_names_the_file(one_club: Club) -> None:
    """Without --reason, the recorded reason is that the file was edited."""
    one_club.import_sheet(*ROWS)
    one_club.sync(*ROWS[:2])
    (row,) = read_json(one_club.ratings, one_club.db, "log", "--type", "game.voided")["rows"]
    assert row["data"]["reason"] == "edited in club.csv"


@pytest.mark.slow_cases
def test_inserted_row_keeps_other_ids(club: Club, ratings: Ratings, tmp_path: Path) -> None:
    """An inserted row gets a new id, and later games of its day move so that the order is the sheet's."""
    club.import_sheet(*ROWS)
    rows = ("2024-11-22,Dora,Anna,Ben", *ROWS)

    report = club.sync(*rows)

    assert count_differences(report) == {"new": 1, "reordered": 2}
    assert club.list_games() == {
        "2024-11-22-3": "Dora Anna Ben",
        "2024-11-22-1": "Anna Ben Cleo",
        "2024-11-22-2": "Ben Anna Cleo",
        "2024-11-23-1": "Cleo Anna Dora",
    }
    fresh = Club(ratings, str(tmp_path / "fresh.db"), tmp_path / "fresh")
    create_catan_ledger(ratings, fresh.db)
    fresh.import_sheet(*rows)
    assert read_digests(ratings, club.db) == read_digests(ratings, fresh.db)
    # removing and inserting the row again gives the same ladders
    assert count_differences(club.sync(*ROWS)) == {"vanished": 1, "reordered": 2}
    assert count_differences(club.sync(*rows)) == {"returned": 1, "reordered": 2}
    assert read_digests(ratings, club.db) == read_digests(ratings, fresh.db)


def test_row_that_comes_back_is_reinstated(one_club: Club) -> None:
    """A game that vanished and returns is the same game; a game with its own id may also have changed meanwhile."""
    header = "game_id,occurred_at,1st,2nd\n"
    rows = ("g-1,2024-11-22,Anna,Ben", "g-2,2024-11-22,Ben,Anna")
    one_club.import_sheet(*rows, header=header)
    one_club.sync(rows[0], header=header)
    before = one_club.head

    report = one_club.sync(rows[0], "g-2,2024-11-25,Anna,Cleo", header=header)

    assert count_differences(report) == {"returned": 1}
    assert one_club.list_events(before) == [("game.reinstated", "g-2"), ("game.corrected", "g-2")]
    assert one_club.list_games() == {"g-1": "Anna Ben", "g-2": "Anna Cleo"}


@pytest.mark.parametrize(
    ("row", "old", "new"),
    [
        ("2024-11-22,Ben,Anna,", "1 Ben, 2 Anna, 3 Cleo", "1 Ben, 2 Anna"),
        ("2024-11-22,Ben=Anna,,Cleo", "1 Ben, 2 Anna, 3 Cleo", "1 Anna, 1 Ben, 3 Cleo"),
        ("2024-11-22,Dora,Anna,Cleo", "1 Ben, 2 Anna, 3 Cleo", "1 Dora, 2 Anna, 3 Cleo"),
        ("2024-11-25,Ben,Anna,Cleo", "played 2024-11-22", "played 2024-11-25"),
    ],
    ids=["one fewer", "a tie", "another player", "another day"],
)
def test_changed_row_corrects_its_game(one_club: Club, row: str, old: str, new: str) -> None:
    """A row with another result, player or day corrects its game, and the report has the old and the new values."""
    one_club.import_sheet(*ROWS)
    report = one_club.sync(ROWS[0], row, ROWS[2])
    assert count_differences(report) == {"changed": 1}
    (game,) = report["sync"]["games"]
    assert (game["game_id"], game["line"], game["was"], game["is"]) == ("2024-11-22-2", 3, old, new)


def test_equal_rows_are_separate_games(one_club: Club) -> None:
    """Two equal rows are two games; removing one of them voids one game."""
    one_club.import_sheet(ROWS[0], ROWS[0], *ROWS)
    assert len(one_club.list_games()) == 5
    assert count_differences(one_club.sync(ROWS[0], *ROWS)) == {"vanished": 1}
    assert count_differences(one_club.sync(ROWS[0], ROWS[0], ROWS[0], *ROWS)) == {
        "new": 1,
        "returned": 1,
        "reordered": 1,
    }


def test_decisions_by_hand_are_kept(one_club: Club) -> None:
    """A correction or void made by hand is kept while the row in the sheet stays the same."""
    one_club.import_sheet(*ROWS)
    one_club.ratings("correct", "2024-11-22-1", "Cleo", "Ben", "Anna", "--reason", "a slip", db=one_club.db)
    one_club.ratings("void", "2024-11-22-2", "--reason", "a friendly", db=one_club.db)

    report = one_club.sync(*ROWS, "2024-11-30,Anna,Ben,Dora")

    assert (count_differences(report), report["sync"]["otherwise"]) == ({"new": 1}, ["2024-11-22-1", "2024-11-22-2"])
    assert one_club.list_games()["2024-11-22-1"] == "Cleo Ben Anna"
    assert "2024-11-22-2" not in one_club.list_games()


@pytest.mark.slow_cases
def test_game_changed_in_sheet_and_ledger_is_refused(club: Club) -> None:
    """A game changed differently in the ledger and in the sheet is refused, and so is the whole sheet."""
    club.import_sheet(*ROWS)
    club.ratings("correct", "2024-11-22-1", "Cleo", "Ben", "Anna", "--reason", "a slip", db=club.db)
    club.ratings("correct", "2024-11-23-1", "Dora", "Cleo", "--reason", "a slip", db=club.db)
    rows = ("2024-11-22,Ben,Anna,", "2024-11-22,Ben,Cleo,Anna")

    report = club.sync(*rows, code=1)

    assert list_rejections(report) == [("changed-in-both", None), ("changed-in-both", 2)]
    assert report["rejected"][1]["message"] == (
        "'2024-11-22-1' was changed in the ledger at position 7 (1 Cleo, 2 Ben, 3 Anna), but differently in the "
        "sheet (1 Ben, 2 Anna); edit the sheet, or run ratings correct, ratings void or "
        "ratings reinstate, so that both agree"
    )
    # the sheet is accepted once both agree, or the sheet has its former row again
    club.ratings("correct", "2024-11-22-1", "Ben", "Anna", "--reason", "so it is", db=club.db)
    assert count_differences(club.sync(*rows, ROWS[2])) == {"changed": 1}


def test_same_correction_in_sheet_and_ledger_is_accepted(one_club: Club) -> None:
    """A mistake that was corrected equally in the ledger and in the sheet needs no further event."""
    one_club.import_sheet(*ROWS)
    one_club.ratings("correct", "2024-11-22-1", "Cleo", "Ben", "Anna", "--reason", "a slip", db=one_club.db)
    report = one_club.sync("2024-11-22,Cleo,Ben,Anna", *ROWS[1:])
    assert (count_differences(report), report["existing"], report["sync"]["otherwise"]) == ({}, 3, [])


EQUAL_ROW = "2024-11-22,Anna,Ben,"


@pytest.mark.parametrize("voided", ["2024-11-22-1", "2024-11-22-2"])
def test_deleted_row_is_that_of_the_equal_game_voided_by_hand(one_club: Club, voided: str) -> None:
    """Of two equal games, one is voided by hand, and one row is deleted: nothing more is voided."""
    one_club.import_sheet(EQUAL_ROW, EQUAL_ROW)
    assert one_club.ratings("void", voided, "--reason", "entered twice", db=one_club.db).exit_code == 0
    assert count_differences(one_club.sync(EQUAL_ROW)) == {}
    assert one_club.list_games().keys() == {"2024-11-22-1", "2024-11-22-2"} - {voided}


@pytest.mark.parametrize("corrected", ["2024-11-22-1", "2024-11-22-2"])
def test_same_correction_of_one_of_two_equal_games_is_accepted(one_club: Club, corrected: str) -> None:
    """Of two equal games, one was corrected equally in the ledger and in the sheet: the other stays as it is."""
    one_club.import_sheet(EQUAL_ROW, EQUAL_ROW)
    one_club.ratings("correct", corrected, "Ben", "Anna", "--reason", "wrong way round", db=one_club.db)
    games = {"2024-11-22-1": "Anna Ben", "2024-11-22-2": "Anna Ben", corrected: "Ben Anna"}
    for rows in (("2024-11-22,Ben,Anna,", EQUAL_ROW), (EQUAL_ROW, "2024-11-22,Ben,Anna,")):
        report = one_club.sync(*rows)
        assert {*count_differences(report)} <= {"reordered"}
        assert one_club.list_games() == games


def test_equal_game_that_was_put_back_counts_as_unchanged(one_club: Club) -> None:
    """Of two equal games, one was voided and reinstated, the other voided: the deleted row is that of the other."""
    one_club.import_sheet(EQUAL_ROW, EQUAL_ROW)
    for command, game in (("void", "2024-11-22-2"), ("reinstate", "2024-11-22-2"), ("void", "2024-11-22-1")):
        assert one_club.ratings(command, game, "--reason", "a slip", db=one_club.db).exit_code == 0
    assert count_differences(one_club.sync(EQUAL_ROW)) == {}
    assert one_club.list_games().keys() == {"2024-11-22-2"}


def test_game_beside_a_reinstated_one_is_new(one_club: Club) -> None:
    """While the row of a reinstated game is missing, a game of one of its players and another is a new game."""
    one_club.import_sheet(EQUAL_ROW, ROWS[2])
    one_club.sync(ROWS[2])
    assert one_club.ratings("reinstate", "2024-11-22-1", "--reason", "played", db=one_club.db).exit_code == 0
    assert count_differences(one_club.sync(ROWS[2], "2024-11-22,Anna,Cleo,")) == {"new": 1}


def test_same_date_and_result_in_sheet_and_ledger_are_accepted(one_club: Club) -> None:
    """A game whose date and result were corrected equally in the ledger and in the sheet needs no further event."""
    one_club.import_sheet(EQUAL_ROW, ROWS[2])
    correction = ("correct", "2024-11-22-1", "Ben", "Anna", "--at", "2024-11-24", "--reason", "a slip")
    assert one_club.ratings(*correction, db=one_club.db).exit_code == 0
    report = one_club.sync("2024-11-24,Ben,Anna,", ROWS[2])
    assert (count_differences(report), report["existing"]) == ({}, 2)


def test_edited_row_of_a_reinstated_game_is_refused(one_club: Club) -> None:
    """A game that a sync voided and a person reinstated is not recorded a second time when its row is edited."""
    one_club.import_sheet(*ROWS)
    one_club.sync(*ROWS[:2])
    assert one_club.ratings("reinstate", "2024-11-23-1", "--reason", "played", db=one_club.db).exit_code == 0
    assert count_differences(one_club.sync(*ROWS)) == {}
    report = one_club.sync(*ROWS[:2], "2024-11-23,Dora,Anna,Cleo", code=1)
    assert list_rejections(report) == [("changed-in-both", 4)]


def test_games_from_elsewhere_are_left_alone(club: Club) -> None:
    """A sheet neither voids nor changes games from elsewhere; equal games count as already there."""
    club.import_sheet(*ROWS, name="old.csv")
    club.ratings("record", "catan", "Anna", "Dora", "--id", "own", "--at", "2024-11-22T20:00Z", db=club.db)
    before = club.head

    report = club.sync(*ROWS[1:], "2024-11-23,Ben,Anna,Dora", name="new.csv")

    assert (count_differences(report), report["existing"], report["sync"]["is_first"]) == ({"new": 1}, 2, True)
    assert club.list_events(before) == [("game.recorded", "2024-11-23-2")]
    # another result of the same players on that day may be an edit of the other sheet
    report = club.sync(*ROWS[1:], "2024-11-23,Ben,Anna,Dora", "2024-11-22,Cleo,Ben,Anna", name="new.csv", code=1)
    assert list_rejections(report) == [("id-conflict", 5)]
    # rows of games that came from elsewhere can be removed
    assert count_differences(club.sync("2024-11-23,Ben,Anna,Dora", name="new.csv")) == {}


@pytest.mark.parametrize(
    "name", ["club (1).csv", "club - Copy.csv", "Copy of club.csv", "club Kopie.csv", "Kopie von club (2).csv"]
)
def test_copy_of_a_sheet_is_that_sheet(one_club: Club, name: str) -> None:
    """A copy of a sheet changes the original's games and is recorded under the original's name, so that either can be
    edited next."""
    one_club.import_sheet(*ROWS)
    report = one_club.sync(*ROWS[:2], "2024-11-30,Anna,Ben,Dora", name=name)
    assert (count_differences(report), report["sync"]["name"]) == ({"new": 1, "vanished": 1}, "club.csv")
    assert count_differences(one_club.sync(*ROWS[:2])) == {"vanished": 1}
    # a sheet first imported under the name of a copy keeps that name
    one_club.import_sheet("2024-12-01,Anna,Ben,Dora", name=name)
    assert count_differences(one_club.sync("2024-12-01,Ben,Anna,Dora", name=name)) == {"changed": 1}


def test_unknown_name_lists_the_last_names(one_club: Club) -> None:
    """For a name that was never imported, the message lists the last three names and does not suggest --sync again."""
    for day, name in enumerate(("old.csv", "club.csv", "chess.csv", "last.csv"), 1):
        one_club.import_sheet(f"2024-12-0{day},Anna,Ben,Cleo", name=name)
    file = one_club.write("2024-12-04,Ben,Anna,Cleo", name="renamed.csv")
    result = one_club.ratings("import", file, *SET, "--sync", db=one_club.db)
    assert "imported last: 'last.csv', 'chess.csv', 'club.csv'; if the file is one of these, rename it back" in (
        result.stderr
    )
    assert ("id-conflict: the game '2024-12-04-1'" in result.stderr, "--sync" in result.stderr) == (True, False)


@pytest.mark.slow_cases
def test_renamed_player_is_recognised(club: Club) -> None:
    """A sheet may have a player's former or current name; a correction keeps the player ids that the game has."""
    club.import_sheet(*ROWS)
    club.ratings("player", "rename", "Dora", "Dorothea", db=club.db)
    assert count_differences(club.sync(*ROWS)) == {}
    assert count_differences(club.sync(*ROWS[:2], ROWS[2].replace("Dora", "Dorothea"))) == {}
    report = club.sync(*ROWS[:2], "2024-11-23,Dorothea,Anna,Cleo")
    assert count_differences(report) == {"changed": 1}
    assert club.list_games()["2024-11-23-1"] == "Dorothea Anna Cleo"
    (row,) = read_json(club.ratings, club.db, "log", "--type", "game.corrected")["rows"]
    assert [participant["player"] for participant in row["data"]["game"]["participants"]] == ["Dora", "Anna", "Cleo"]


def test_unreadable_row_voids_nothing(one_club: Club) -> None:
    """All errors in rows are reported, and a game whose row cannot be read is not voided."""
    one_club.import_sheet(*ROWS)
    report = one_club.sync(ROWS[0], "2024-11-22,Ben,Ben,Cleo", "2024-11-99,Cleo,Anna,Dora", code=1)
    assert list_rejections(report) == [("player-twice", 3), ("bad-time", 4)]
    assert count_differences(report) == {}


def test_repeated_ids_are_refused(one_club: Club) -> None:
    """Two different games of one id are refused, in one row each or in separated rows; an equal row is accepted."""
    header = "game_id,occurred_at,1st,2nd\n"
    one_club.import_sheet("g-1,2024-11-22,Anna,Ben", header=header)
    report = one_club.sync("g-1,2024-11-22,Anna,Ben", "g-1,2024-11-22,Ben,Anna", header=header, code=1)
    assert list_rejections(report) == [("id-conflict", 3)]
    report = one_club.sync("g-1,2024-11-22,Ben,Anna", "g-1,2024-11-22,Ben,Anna", header=header)
    assert (count_differences(report), report["existing"]) == ({"changed": 1}, 1)
    long_header = "game_id,occurred_at,player,place\n"
    rows = [f"{name},2024-11-23,{player},{place}" for name in ("g-1", "g-2") for place, player in enumerate("ab", 1)]
    report = one_club.sync(*rows, rows[0], rows[1].replace("b,2", "c,2"), header=long_header, code=1)
    assert list_rejections(report) == [("rows-apart", 6)]


def test_cleared_sheet_voids_nothing(one_club: Club) -> None:
    """A sheet without most of its games is refused even with --yes, and a sheet without games is always refused."""
    rows = [f"2024-10-{day:02},Anna,Ben,Cleo" for day in range(1, 13)]
    one_club.import_sheet(*rows)
    report = one_club.sync(*rows[:5], code=1)
    assert list_rejections(report) == [("another-sheet", None)]
    assert list_rejections(one_club.sync(*ROWS, code=1)) == [("another-sheet", None)]
    assert list_rejections(one_club.sync(code=1)) == [("empty-file", None)]
    assert count_differences(one_club.sync(*rows[:6])) == {"vanished": 6}


@pytest.mark.slow_cases
def test_concurrent_changes_are_not_lost(club: Club, tmp_path: Path) -> None:
    """A change recorded between comparison and append makes the sync refuse, and nothing is lost."""
    club.import_sheet(*ROWS)
    act_before_next("committed", lambda: club.ratings("void", "2024-11-23-1", "--reason", "a friendly", db=club.db))
    report = club.sync(*ROWS[:2], code=1)
    assert list_rejections(report) == [("changed-meanwhile", None)]
    club.ratings("reinstate", "2024-11-23-1", "--reason", "it counts", db=club.db)
    file = Club(club.ratings, club.db, tmp_path).write(*ROWS, "2024-11-30,Anna,Ben,Dora")
    act_before_next("committed", lambda: club.ratings("import", file, "--set", "game=catan", db=club.db))
    report = club.sync(*ROWS, "2024-12-01,Anna,Ben,Dora", code=1)
    assert list_rejections(report) == [("changed-meanwhile", 5)]
    assert len(club.list_games()) == 4
    assert count_differences(club.sync(*ROWS)) == {"vanished": 1}


@pytest.mark.slow_cases
def test_plain_import_accepts_games_moved_by_sync(club: Club, ratings: Ratings) -> None:
    """After --sync has moved games by a microsecond to keep the sheet's order, a plain import of the same file
    succeeds.

    A game with another day or result is still a conflict.
    """
    header, rows = "game_id,Date,Winner,2nd\n", ("g1,2024-11-22,Anna,Ben", "g2,2024-11-22,Ben,Anna")
    club.import_sheet(*rows, header=header)
    club.sync("g0,2024-11-22,Cleo,Ben", *rows, header=header)
    sheet = ("g0,2024-11-22,Cleo,Ben", *rows, "g3,2024-11-22,Anna,Cleo")
    club.sync(*sheet, header=header)
    file = club.folder / "club.csv"
    result = ratings("import", file, *SET, "--format", "json", db=club.db)
    report = json.loads(result.stdout)
    assert (report["appended"], report["existing"], report["rejected"]) == (0, 4, [])

    for edited in (sheet[3].replace("22", "23"), sheet[3].replace("Anna,Cleo", "Cleo,Anna")):
        club.write(*sheet[:3], edited, header=header)
        report = json.loads(ratings("import", file, *SET, "--format", "json", db=club.db).stdout)
        assert [rejection["code"] for rejection in report["rejected"]] == ["id-conflict"]
