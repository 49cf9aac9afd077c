"""Sets are kept with their game and shown with it: in lists, alone, in explanations and on its page."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import get, serve

from ratings_ledger.ledger.validation.repeated_games import describe_sets

Ratings = Callable[..., Any]
TABLE = "Datum;Spieler 1;Spieler 2;Ergebnis;S1;S2;S3\n22.11.2024;anna;ben;0:3;7:11;4:11;9:11\n"
WINNERS_SETS = "11:7 11:4 11:9"


def make(ratings: Ratings, url: str) -> None:
    """Make a ledger for table tennis."""
    assert ratings("init", "--for", "tt", "--zone", "Europe/Berlin", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=make)


@pytest.fixture
def db(one_db: str, ratings: Ratings, tmp_path: Path) -> str:
    """Return the ledger with a game of three sets."""
    file = tmp_path / "club.csv"
    file.write_text(TABLE, encoding="utf-8")
    assert ratings("import", file, "--set", "game=tt", db=one_db).exit_code == 0
    return one_db


def test_sets_are_shown_from_the_side_of_the_better_place(db: str, ratings: Ratings) -> None:
    """The winner comes first, also in each set; in the record, sets are in the order of the participants."""
    (game,) = json.loads(ratings("games", "--limit", 1, "--format", "json", db=db).stdout)["rows"]
    assert game["extra"] == {"scores": "7:11 4:11 9:11"}
    assert f"1 ben (3), 2 anna (0), sets {WINNERS_SETS}" in ratings("games", db=db).stdout
    stdout = ratings("games", "2024-11-22-1", db=db).stdout
    assert WINNERS_SETS in stdout
    assert [line.split() for line in stdout.splitlines()[-2:]] == [["ben", "3"], ["anna", "0"]]
    assert WINNERS_SETS in ratings("log", db=db).stdout


def test_explanations_and_pages_show_sets(db: str, ratings: Ratings) -> None:
    """An explanation of the game, also as JSON, and the page of the game show the sets."""
    assert f"Sets {WINNERS_SETS}." in ratings("explain", "2024-11-22-1", "elo-tt/all", db=db).stdout
    explanation = json.loads(ratings("explain", "2024-11-22-1", "elo-tt/all", "--format", "json", db=db).stdout)
    assert explanation["sets"] == WINNERS_SETS
    assert f"Sets {WINNERS_SETS}" in get(serve(db, "The club", hosts=["localhost"]), "/games/2024-11-22-1").text


def test_messages_about_changed_sets_name_both(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """If only the sets in a sheet change, refusals and comparisons name the sets of the ledger and of the sheet."""
    file = tmp_path / "club.csv"
    file.write_text(TABLE.replace("9:11", "8:11"), encoding="utf-8")
    refused = ratings("import", file, "--set", "game=tt", db=db).stderr
    assert (
        "recorded as 1 ben (3), 2 anna (0), sets 11:7 11:4 11:9; now 1 ben (3), 2 anna (0), sets 11:7 11:4 11:8"
        in refused
    )
    stdout = ratings("import", file, "--set", "game=tt", "--sync", "--dry-run", db=db).stdout
    assert [line for line in stdout.splitlines() if line.startswith("changed")] == [
        "changed  2024-11-22-1     2  sets 11:7 11:4 11:9  sets 11:7 11:4 11:8"
    ]
    corrected = ratings("correct", "2024-11-22-1", "--sets", "11:7 11:4 11:1", "--reason", "third set", db=db)
    assert corrected.exit_code == 0
    refused = ratings("import", file, "--set", "game=tt", "--sync", "--dry-run", db=db).stderr
    assert "(1 ben (3), 2 anna (0), sets 11:7 11:4 11:1), but differently in the sheet (1 ben (3), " in refused


def test_forfeits_are_named(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The import and the list of games name a forfeit, and an explanation gives it as the reason for not counting."""
    file = tmp_path / "forfeit.csv"
    file.write_text(TABLE.splitlines()[0] + "\n23.11.2024;anna;ben;3:0 kampflos;;;\n", encoding="utf-8")
    noted = ratings("import", file, "--set", "game=tt", db=db).stderr
    assert "1 forfeit, recorded but not rated (line 2); to rate forfeits with a winner, pass --forfeits rated" in noted
    assert "1 anna, 2 ben (forfeit, not rated)" in ratings("games", db=db).stdout
    stdout = ratings("explain", "2024-11-23-1", "elo-tt", db=db).stdout
    assert "Not counted: the game was not rated, because it was a forfeit (+:-)." in " ".join(stdout.split())


@pytest.mark.parametrize(
    ("scores", "text"), [("7:11 7:6(5)", "11:7 6:7(5)"), ("as played", "as played"), ("", ""), (None, "")]
)
def test_only_sets_are_turned(scores: str | None, text: str) -> None:
    """Sets are shown from the winner's side; any other text is shown as it was recorded."""
    participants = [{"player": "anna", "place": 2}, {"player": "ben", "place": 1}]
    extra = {} if scores is None else {"extra": {"scores": scores}}
    assert describe_sets({"participants": participants, **extra}) == text
