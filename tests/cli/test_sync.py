"""`import --sync`: an edited sheet corrects and voids what it gave before, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, digests, read
from interleaving import act_before_next
from sheets_synced import ROWS, SET, Club, a_club_of_catan, counts


@pytest.fixture
def club(copied: Callable[..., str], ratings: Ratings, tmp_path: Path) -> Club:
    """A club without games, in each kind of store."""
    return Club(ratings, copied(a_club_of_catan), tmp_path / "sheets")


@pytest.fixture
def one_club(copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path) -> Club:
    """The same in SQLite."""
    return Club(ratings, copied_file(a_club_of_catan), tmp_path / "sheets")


def rejected(told: dict[str, Any]) -> list[tuple[str, int | None]]:
    """The codes of refusals with their lines; nothing was appended."""
    assert told["appended"] == 0
    return [(one["code"], one["line"]) for one in told["rejected"]]


@pytest.mark.slow_cases
def test_edits_become_decisions(club: Club) -> None:
    """A changed row is a correction, a deleted one a void, a new one a game, each told with its reason."""
    club.take(*ROWS)
    before = club.head

    told = club.sync(
        ROWS[0], "2024-11-22,Ben,Cleo,Anna", "2024-11-30,Dora,Anna,", more=["--yes", "--reason", "checked"]
    )
    again = club.sync(ROWS[0], "2024-11-22,Ben,Cleo,Anna", "2024-11-30,Dora,Anna,", more=[])

    assert counts(told) == {"new": 1, "changed": 1, "vanished": 1}
    assert told["sync"]["games"] == [
        {"what": "vanished", "game_id": "2024-11-23-1", "line": None, "occurred_at": "2024-11-23T11:00:00.000000Z",
         "was": "1 Cleo, 2 Anna, 3 Dora", "is": None},
        {"what": "changed", "game_id": "2024-11-22-2", "line": 3, "occurred_at": "2024-11-22T11:00:00.000000Z",
         "was": "1 Ben, 2 Anna, 3 Cleo", "is": "1 Ben, 2 Cleo, 3 Anna"},
        {"what": "new", "game_id": "2024-11-30-1", "line": 4, "occurred_at": "2024-11-30T11:00:00.000000Z",
         "was": None, "is": "1 Dora, 2 Anna"},
    ]  # fmt: skip
    assert club.events(before) == [
        ("game.voided", "2024-11-23-1"), ("game.corrected", "2024-11-22-2"), ("game.recorded", "2024-11-30-1"),
    ]  # fmt: skip
    decided = read(club.ratings, club.db, "log", "--type", "game.voided", "--type", "game.corrected")["rows"]
    assert {row["data"]["reason"] for row in decided} == {"checked"}
    assert (told["appended"], told["existing"]) == (3, 1)
    assert (counts(again), again["appended"], again["existing"]) == ({}, 0, 3)


def test_without_reason_the_file_is_named(one_club: Club) -> None:
    """A reason is recorded in any case: by default that the file was edited."""
    one_club.take(*ROWS)
    one_club.sync(*ROWS[:2])
    (row,) = read(one_club.ratings, one_club.db, "log", "--type", "game.voided")["rows"]
    assert row["data"]["reason"] == "edited in club.csv"


@pytest.mark.slow_cases
def test_inserted_row_changes_no_other_id(club: Club, ratings: Ratings, tmp_path: Path) -> None:
    """A row put in between gets a number of its own; later games of its day move, so that the order is the sheet's."""
    club.take(*ROWS)
    rows = ("2024-11-22,Dora,Anna,Ben", *ROWS)

    told = club.sync(*rows)

    assert counts(told) == {"new": 1, "reordered": 2}
    assert club.games() == {
        "2024-11-22-3": "Dora Anna Ben", "2024-11-22-1": "Anna Ben Cleo", "2024-11-22-2": "Ben Anna Cleo",
        "2024-11-23-1": "Cleo Anna Dora",
    }  # fmt: skip
    fresh = Club(ratings, str(tmp_path / "fresh.db"), tmp_path / "fresh")
    a_club_of_catan(ratings, fresh.db)
    fresh.take(*rows)
    assert digests(ratings, club.db) == digests(ratings, fresh.db)
    # and back again
    assert counts(club.sync(*ROWS)) == {"vanished": 1, "reordered": 2}
    assert counts(club.sync(*rows)) == {"returned": 1, "reordered": 2}
    assert digests(ratings, club.db) == digests(ratings, fresh.db)


def test_row_that_comes_back_is_reinstated(one_club: Club) -> None:
    """A game that vanished and comes back is the same game again; with ids of its own also if it was changed."""
    header = "game_id,occurred_at,1st,2nd\n"
    rows = ("g-1,2024-11-22,Anna,Ben", "g-2,2024-11-22,Ben,Anna")
    one_club.take(*rows, header=header)
    one_club.sync(rows[0], header=header)
    before = one_club.head

    told = one_club.sync(rows[0], "g-2,2024-11-25,Anna,Cleo", header=header)

    assert counts(told) == {"returned": 1}
    assert one_club.events(before) == [("game.reinstated", "g-2"), ("game.corrected", "g-2")]
    assert one_club.games() == {"g-1": "Anna Ben", "g-2": "Anna Cleo"}


@pytest.mark.parametrize(
    ("row", "was", "now"),
    [
        ("2024-11-22,Ben,Anna,", "1 Ben, 2 Anna, 3 Cleo", "1 Ben, 2 Anna"),
        ("2024-11-22,Ben=Anna,,Cleo", "1 Ben, 2 Anna, 3 Cleo", "1 Anna, 1 Ben, 3 Cleo"),
        ("2024-11-22,Dora,Anna,Cleo", "1 Ben, 2 Anna, 3 Cleo", "1 Dora, 2 Anna, 3 Cleo"),
        ("2024-11-25,Ben,Anna,Cleo", "played 2024-11-22", "played 2024-11-25"),
    ],
    ids=["one fewer", "a tie", "another player", "another day"],
)
def test_changed_row_stays_its_game(one_club: Club, row: str, was: str, now: str) -> None:
    """Another result, another player or another day makes no other game; what was changed is told."""
    one_club.take(*ROWS)
    told = one_club.sync(ROWS[0], row, ROWS[2])
    assert counts(told) == {"changed": 1}
    (one,) = told["sync"]["games"]
    assert (one["game_id"], one["line"], one["was"], one["is"]) == ("2024-11-22-2", 3, was, now)


def test_equal_rows_are_games_of_their_own(one_club: Club) -> None:
    """The same row twice is two games; one of them less is one void."""
    one_club.take(ROWS[0], ROWS[0], *ROWS)
    assert len(one_club.games()) == 5
    assert counts(one_club.sync(ROWS[0], *ROWS)) == {"vanished": 1}
    assert counts(one_club.sync(ROWS[0], ROWS[0], ROWS[0], *ROWS)) == {"new": 1, "returned": 1, "reordered": 1}


def test_corrected_by_hand_stays(one_club: Club) -> None:
    """What somebody corrected or voided stays so, as long as the sheet says nothing new of it."""
    one_club.take(*ROWS)
    one_club.ratings("correct", "2024-11-22-1", "Cleo", "Ben", "Anna", "--reason", "a slip", db=one_club.db)
    one_club.ratings("void", "2024-11-22-2", "--reason", "a friendly", db=one_club.db)

    told = one_club.sync(*ROWS, "2024-11-30,Anna,Ben,Dora")

    assert (counts(told), told["sync"]["otherwise"]) == ({"new": 1}, ["2024-11-22-1", "2024-11-22-2"])
    assert one_club.games()["2024-11-22-1"] == "Cleo Ben Anna"
    assert "2024-11-22-2" not in one_club.games()


@pytest.mark.slow_cases
def test_changed_in_both_is_refused(club: Club) -> None:
    """A game that was changed in the ledger and, otherwise, in the sheet is refused, and so is all else."""
    club.take(*ROWS)
    club.ratings("correct", "2024-11-22-1", "Cleo", "Ben", "Anna", "--reason", "a slip", db=club.db)
    club.ratings("correct", "2024-11-23-1", "Dora", "Cleo", "--reason", "a slip", db=club.db)
    rows = ("2024-11-22,Ben,Anna,", "2024-11-22,Ben,Cleo,Anna")

    told = club.sync(*rows, code=1)

    assert rejected(told) == [("changed-in-both", None), ("changed-in-both", 2)]
    assert told["rejected"][1]["message"] == (
        "'2024-11-22-1' was changed in the ledger at position 7 (1 Cleo, 2 Ben, 3 Anna), but differently in the "
        "sheet (1 Ben, 2 Anna); edit the sheet, or use ratings correct, void or reinstate, so that both agree"
    )
    # once the ledger says what the sheet says, or the sheet what it said before, nothing stands against it
    club.ratings("correct", "2024-11-22-1", "Ben", "Anna", "--reason", "so it is", db=club.db)
    assert counts(club.sync(*rows, ROWS[2])) == {"changed": 1}


def test_corrected_in_both_is_there_already(one_club: Club) -> None:
    """A mistake that was put right in the ledger and in the sheet needs nothing more."""
    one_club.take(*ROWS)
    one_club.ratings("correct", "2024-11-22-1", "Cleo", "Ben", "Anna", "--reason", "a slip", db=one_club.db)
    told = one_club.sync("2024-11-22,Cleo,Ben,Anna", *ROWS[1:])
    assert (counts(told), told["existing"], told["sync"]["otherwise"]) == ({}, 3, [])


def test_games_from_elsewhere_are_left_alone(club: Club) -> None:
    """A sheet neither voids nor changes what did not come from it; games that it also has are there already."""
    club.take(*ROWS, name="old.csv")
    club.ratings("record", "catan", "Anna", "Dora", "--id", "own", "--at", "2024-11-22T20:00Z", db=club.db)
    before = club.head

    told = club.sync(*ROWS[1:], "2024-11-23,Ben,Anna,Dora", name="new.csv")

    assert (counts(told), told["existing"], told["sync"]["is_first"]) == ({"new": 1}, 2, True)
    assert club.events(before) == [("game.recorded", "2024-11-23-2")]
    # another result of the same players on that day may be an edit of the other sheet
    told = club.sync(*ROWS[1:], "2024-11-23,Ben,Anna,Dora", "2024-11-22,Cleo,Ben,Anna", name="new.csv", code=1)
    assert rejected(told) == [("id-conflict", 5)]
    # a row less in this sheet is none of its own
    assert counts(club.sync("2024-11-23,Ben,Anna,Dora", name="new.csv")) == {}


@pytest.mark.parametrize(
    "name", ["club (1).csv", "club - Copy.csv", "Copy of club.csv", "club Kopie.csv", "Kopie von club (2).csv"]
)
def test_copy_of_a_sheet_is_that_sheet(one_club: Club, name: str) -> None:
    """A copy of a sheet changes what the original gave, and is recorded under its name; so the original goes on."""
    one_club.take(*ROWS)
    told = one_club.sync(*ROWS[:2], "2024-11-30,Anna,Ben,Dora", name=name)
    assert (counts(told), told["sync"]["name"]) == ({"new": 1, "vanished": 1}, "club.csv")
    assert counts(one_club.sync(*ROWS[:2])) == {"vanished": 1}
    # a sheet that was imported under the name of a copy is known by it
    one_club.take("2024-12-01,Anna,Ben,Dora", name=name)
    assert counts(one_club.sync("2024-12-01,Ben,Anna,Dora", name=name)) == {"changed": 1}


def test_unknown_name_is_told_the_last_ones(one_club: Club) -> None:
    """Under a name that nobody imported, the last three names are told, and what to do; --sync is not advised again."""
    for day, name in enumerate(("old.csv", "club.csv", "chess.csv", "last.csv"), 1):
        one_club.take(f"2024-12-0{day},Anna,Ben,Cleo", name=name)
    file = one_club.write("2024-12-04,Ben,Anna,Cleo", name="renamed.csv")
    done = one_club.ratings("import", file, *SET, "--sync", db=one_club.db)
    assert "imported last: 'last.csv', 'chess.csv', 'club.csv'; if the file is one of these, rename it back" in (
        done.stderr
    )
    assert ("id-conflict: the game '2024-12-04-1'" in done.stderr, "--sync" in done.stderr) == (True, False)


@pytest.mark.slow_cases
def test_renamed_player_is_the_same(club: Club) -> None:
    """A sheet may have the former or the current name of somebody; corrections keep the ids of their games."""
    club.take(*ROWS)
    club.ratings("player", "rename", "Dora", "Dorothea", db=club.db)
    assert counts(club.sync(*ROWS)) == {}
    assert counts(club.sync(*ROWS[:2], ROWS[2].replace("Dora", "Dorothea"))) == {}
    told = club.sync(*ROWS[:2], "2024-11-23,Dorothea,Anna,Cleo")
    assert counts(told) == {"changed": 1}
    assert club.games()["2024-11-23-1"] == "Dorothea Anna Cleo"


def test_unreadable_row_voids_nothing(one_club: Club) -> None:
    """What is wrong with rows is told, all of it, and a game whose row cannot be read has not vanished."""
    one_club.take(*ROWS)
    told = one_club.sync(ROWS[0], "2024-11-22,Ben,Ben,Cleo", "2024-11-99,Cleo,Anna,Dora", code=1)
    assert rejected(told) == [("player-twice", 3), ("bad-time", 4)]
    assert counts(told) == {}


def test_own_ids_twice_are_refused(one_club: Club) -> None:
    """Two games of one id are refused, in a row each or in several that are apart; an equal row says nothing more."""
    header = "game_id,occurred_at,1st,2nd\n"
    one_club.take("g-1,2024-11-22,Anna,Ben", header=header)
    told = one_club.sync("g-1,2024-11-22,Anna,Ben", "g-1,2024-11-22,Ben,Anna", header=header, code=1)
    assert rejected(told) == [("id-conflict", 3)]
    told = one_club.sync("g-1,2024-11-22,Ben,Anna", "g-1,2024-11-22,Ben,Anna", header=header)
    assert (counts(told), told["existing"]) == ({"changed": 1}, 1)
    long = "game_id,occurred_at,player,place\n"
    rows = [f"{name},2024-11-23,{player},{place}" for name in ("g-1", "g-2") for place, player in enumerate("ab", 1)]
    told = one_club.sync(*rows, rows[0], rows[1].replace("b,2", "c,2"), header=long, code=1)
    assert rejected(told) == [("rows-apart", 6)]


def test_cleared_sheet_voids_nothing(one_club: Club) -> None:
    """Where most of what a sheet gave is gone, a person has to look; and a sheet without games is refused."""
    many = [f"2024-10-{day:02},Anna,Ben,Cleo" for day in range(1, 13)]
    one_club.take(*many)
    told = one_club.sync(*many[:5], code=1)
    assert rejected(told) == [("another-sheet", None)]
    assert rejected(one_club.sync(*ROWS, code=1)) == [("another-sheet", None)]
    assert rejected(one_club.sync(code=1)) == [("empty-file", None)]
    assert counts(one_club.sync(*many[:6])) == {"vanished": 6}


@pytest.mark.slow_cases
def test_stranger_changes_meanwhile(club: Club, tmp_path: Path) -> None:
    """What somebody records between the comparison and the append is looked at again, and nothing is lost."""
    club.take(*ROWS)
    act_before_next("committed", lambda: club.ratings("void", "2024-11-23-1", "--reason", "a friendly", db=club.db))
    told = club.sync(*ROWS[:2], code=1)
    assert rejected(told) == [("changed-meanwhile", None)]
    club.ratings("reinstate", "2024-11-23-1", "--reason", "it counts", db=club.db)
    file = Club(club.ratings, club.db, tmp_path).write(*ROWS, "2024-11-30,Anna,Ben,Dora")
    act_before_next("committed", lambda: club.ratings("import", file, "--set", "game=catan", db=club.db))
    told = club.sync(*ROWS, "2024-12-01,Anna,Ben,Dora", code=1)
    assert rejected(told) == [("changed-meanwhile", 5)]
    assert len(club.games()) == 4
    assert counts(club.sync(*ROWS)) == {"vanished": 1}


@pytest.mark.slow_cases
def test_plain_import_takes_what_sync_moved(club: Club, ratings: Ratings) -> None:
    """After --sync has moved games by a microsecond to keep the sheet's order, the same file imports as it is.

    Whoever plays at another time, or otherwise, is in conflict as before.
    """
    header, rows = "game_id,Date,Winner,2nd\n", ("g1,2024-11-22,Anna,Ben", "g2,2024-11-22,Ben,Anna")
    club.take(*rows, header=header)
    club.sync("g0,2024-11-22,Cleo,Ben", *rows, header=header)
    sheet = ("g0,2024-11-22,Cleo,Ben", *rows, "g3,2024-11-22,Anna,Cleo")
    club.sync(*sheet, header=header)
    file = club.folder / "club.csv"
    plain = ratings("import", file, *SET, "--format", "json", db=club.db)
    told = json.loads(plain.stdout)
    assert (told["appended"], told["existing"], told["rejected"]) == (0, 4, [])

    for edited in (sheet[3].replace("22", "23"), sheet[3].replace("Anna,Cleo", "Cleo,Anna")):
        club.write(*sheet[:3], edited, header=header)
        told = json.loads(ratings("import", file, *SET, "--format", "json", db=club.db).stdout)
        assert [one["code"] for one in told["rejected"]] == ["id-conflict"]
