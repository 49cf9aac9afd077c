"""Wrong words of a command are explained; `player merge` makes two ids one person."""

import pytest
from correction_helpers import Ratings, create_small_ledger, get_refusal_code, read_json

from ratings_ledger.cli.main import COMMANDS, HEADINGS

pytestmark = pytest.mark.ledger(make=create_small_ledger, store="sqlite")

WRONG_WORDS = {
    "a command of a group": (["rules", "lst"], "ratings rules has no command 'lst'; did you mean list?"),
    "no similar command": (["backup", "frob"], "ratings backup has no command 'frob'; its commands are "),
    "--db behind the command": (
        ["standings", "--db", "club 1.db", "elo-chess"],
        "--db must come before the command: ratings --db 'club 1.db' standings elo-chess",
    ),
    "--db behind a group": (["rules", "list", "--db=x.db"], "ratings --db x.db rules list"),
    "--db behind negative points": (
        ["adjust", "elo-chess", "anna", "-7.5", "--reason", "late", "--db", "x.db"],
        "--db must come before the command: ratings --db x.db adjust elo-chess anna -7.5 --reason late",
    ),
    "--db behind the values of a seed": (
        ["seed", "elo-chess", "anna", "rating=1500", "--db=x.db"],
        "--db must come before the command: ratings --db x.db seed elo-chess anna rating=1500",
    ),
    "an option beside negative points": (
        ["adjust", "elo-chess", "anna", "-5", "--resaon", "x"],
        "Did you mean '--reason'?",
    ),
    "an option beside the values of a seed": (
        ["seed", "glicko-chess", "anna", "--gmes", "3"],
        "Did you mean '--games'?",
    ),
    "--db without a value": (["status", "--db"], "ratings --db URL status"),
}


@pytest.mark.parametrize(("words", "message"), WRONG_WORDS.values(), ids=WRONG_WORDS)
def test_wrong_words_are_explained(words: list[str], message: str, ratings: Ratings) -> None:
    """The message names the word that was probably meant, or gives the command or commands that work."""
    result = ratings(*words)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_every_command_has_a_heading() -> None:
    """Each command is under exactly one heading of `ratings --help`."""
    assert sorted(name for names in HEADINGS.values() for name in names) == sorted(COMMANDS)


def test_merge_makes_two_ids_one_person(db: str, ratings: Ratings) -> None:
    """Two known ids that never met become one person until an undo; unknown ids, and two that met, are refused."""
    assert get_refusal_code(ratings, db, "player", "merge", "anna", "nobody-yet") == "player-unknown"
    assert get_refusal_code(ratings, db, "player", "merge", "anna", "ben") == "players-met"
    result = ratings("record", "--game", "galactic-magnate", "--game-id", "g-9", "annette", "ben", db=db)
    assert result.exit_code == 0
    assert ratings("player", "merge", "annette", "anna", db=db).exit_code == 0
    (row,) = read_json(ratings, db, "log", "--limit", "1")["rows"]
    assert (row["type"], row["data"]["new_player"]) == ("player.renamed", "anna")
    assert list_players(ratings, db) == ["anna", "ben"]
    assert ratings("undo", "--yes", db=db).exit_code == 0
    assert list_players(ratings, db) == ["annette", "ben"]


def list_players(ratings: Ratings, db: str) -> list[str]:
    """Return the players of the game g-9 by place."""
    (game,) = read_json(ratings, db, "games", "g-9")["rows"]
    return [participant["player"] for participant in game["participants"]]
