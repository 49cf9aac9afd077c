"""Test partners in one cell.

They are split if `--partners` or the layout says so, refused if the rule has no teams, and kept as one player if the
ledger knows the id.
"""

import json
import shlex
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import read_json

TABLE = "Date,Winners,Losers\n2024-11-22,anna & ben,cleo & dora\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of a game of doubles."""
    path = tmp_path / "doubles.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def make_tennis_ledger(ratings: Callable[..., Any], tmp_path: Path, *options: str) -> str:
    """Return a ledger for tennis."""
    url = str(tmp_path / "tennis.db")
    assert ratings("init", "--for", "tennis", *options, db=url).exit_code == 0
    return url


def test_rule_with_teams_rates_partners(table: Path, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """Under a rule with teams, both winners gain the same, and more than both losers."""
    url = make_tennis_ledger(ratings, tmp_path, "--system", "weng-lin")
    result = ratings("import", table, db=url)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "1 appended; the head is 3.")
    rows = read_json(ratings, url, "standings", "weng-lin-tennis/all")["rows"]
    points = {row["player"]: Fraction(row["points"]) for row in rows}
    assert points["anna"] == points["ben"] > points["cleo"] == points["dora"]


@pytest.mark.parametrize("options", [(), ("--ties", "&"), ("--partners", "&"), ("--layout", "places")])
def test_rule_without_teams_refuses_partners(
    options: tuple[str, ...], table: Path, tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """Elo has no teams: no option makes it rate partners as opponents who drew.

    With `--allow-uncounted` the game is recorded, but no player is rated.
    """
    url = make_tennis_ledger(ratings, tmp_path)
    result = ratings("import", table, *options, db=url)
    assert result.exit_code == 1
    assert ("tied-players: 'anna & ben' are partners" if "--ties" in options else "no-teams: ") in result.stderr
    assert ratings("import", table, "--allow-uncounted", db=url).exit_code == 0
    standings = ratings("standings", "elo-tennis/all", "--format", "json", db=url)
    assert (standings.exit_code, json.loads(standings.stdout)["rows"]) == (0, [])


def test_several_partner_separators(tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """`--partners` may be repeated: every separator applies, and a profile stores all of them."""
    url = make_tennis_ledger(ratings, tmp_path, "--system", "weng-lin")
    (table := tmp_path / "pairs.csv").write_text(
        "Date,Player 1,Player 2,Score\n2024-11-22,anna / ben,cleo + dora,3-1\n2024-11-23,anna,cleo + dora,1-3\n",
        "utf-8",
    )
    profile = str(tmp_path / "club.toml")
    result = ratings("import", table, "--partners", " / ", "--partners", "+", "--save-profile", profile, db=url)
    assert result.exit_code == 0, result.stderr
    rows = read_json(ratings, url, "games")["rows"]
    assert [[participant["player"] for participant in game["participants"]] for game in rows] == [
        ["anna", "ben", "cleo", "dora"],
        ["anna", "cleo", "dora"],
    ]
    preview = ratings("import", table, "--profile", profile, "--preview", db=url)
    assert "1 anna & ben (3), 2 cleo & dora (1)\n" in preview.stdout
    assert "2 games of tennis, 2024-11-22 to 2024-11-23, 2 with teams, 4 players\n" in preview.stdout
    assert "0 would be appended, 2 already there" in preview.stdout


def test_advice_for_two_names_in_a_cell_of_a_side(tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """If a cell holds a side, the advice for two names in it is `--partners`, not a row for each player or `--ties`."""
    (table := tmp_path / "pairs.csv").write_text("Date,White,Black,Result\n2024-11-22,anna & ben,cleo,1-0\n", "utf-8")
    result = ratings("import", table, db=make_tennis_ledger(ratings, tmp_path, "--system", "weng-lin"))
    advice = "'anna & ben' looks like more than one player; if they are partners on one side, pass --partners '&'; "
    assert advice in result.stderr
    assert "--ties" not in result.stderr
    assert "a row for each player" not in result.stderr


def test_known_id_is_not_split_and_is_reported(table: Path, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """An id that the ledger knows is one player, even if it contains a separator."""
    url = make_tennis_ledger(ratings, tmp_path, "--system", "weng-lin")
    ratings("record", "--game-id", "g-1", "--new-names", "accept", "anna & ben", "zoe", db=url)
    result = ratings("import", table, "--new-names", "accept", db=url)
    assert "not split, because the ledger knows these ids: anna & ben" in result.stderr
    game_rows = [row for row in read_json(ratings, url, "games")["rows"] if row["game_id"] == "2024-11-22-1"]
    assert [participant["player"] for participant in game_rows[0]["participants"]] == ["anna & ben", "cleo", "dora"]


def test_import_and_correction_read_alike(table: Path, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """Correcting with a table just imported changes nothing, even without a column `game_id`.

    A correction does not split a known id either.
    """
    url = make_tennis_ledger(ratings, tmp_path, "--system", "weng-lin")
    ratings("record", "--game-id", "g-1", "--new-names", "accept", "anna & ben", "zoe", db=url)
    assert ratings("import", table, "--new-names", "accept", db=url).exit_code == 0
    result = ratings("correct", "--file", table, "--reason", "x", db=url)
    assert (result.exit_code, result.stderr) == (0, "note: 1 game already recorded like this: 2024-11-22-1\n")
    swapped = tmp_path / "swapped.csv"
    swapped.write_text("game_id,Winners,Losers\n2024-11-22-1,cleo & dora,anna & ben\n", encoding="utf-8")
    assert ratings("correct", "--file", swapped, "--reason", "x", db=url).exit_code == 0
    (game,) = read_json(ratings, url, "games", "2024-11-22-1")["rows"]
    assert [participant["player"] for participant in game["participants"]] == ["cleo", "dora", "anna & ben"]


def test_correction_keeps_a_game_that_its_table_does_not_name(tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """A correction with a table without the column `game` keeps the recorded game, even if no ruleset scores it."""
    url = make_tennis_ledger(ratings, tmp_path)
    ratings("record", "--game", "darts", "--game-id", "g-1", "anna", "ben", db=url)
    (table := tmp_path / "cities.csv").write_text("game_id,city\ng-1,Ulm\n", encoding="utf-8")
    assert ratings("correct", "--file", table, "--reason", "x", db=url).exit_code == 0
    (game,) = read_json(ratings, url, "games", "g-1")["rows"]
    assert (game["game"], game["city"]) == ("darts", "Ulm")


def test_predictions_split_sides_like_records(tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """`predict` accepts `--partners` several times, and does not split a known id that contains a separator."""
    url = make_tennis_ledger(ratings, tmp_path, "--system", "weng-lin")
    ratings("record", "--game-id", "g-1", "--new-names", "accept", "anna & ben", "zoe", db=url)
    ratings("record", "--game-id", "g-2", "cleo", "dora", db=url)
    sides = ("anna & ben & cleo", "zoe + dora")
    prediction = read_json(ratings, url, "predict", "weng-lin-tennis", *sides, "--partners", "&", "--partners", "+")
    assert [side["players"] for side in prediction["sides"]] == [["anna & ben", "cleo"], ["zoe", "dora"]]


@pytest.mark.parametrize(
    ("typed", "sides"),
    [
        ("cleo+dora anna+ben", "cleo+dora anna+ben"),
        ("cleo dora anna ben", "cleo+dora anna+ben"),
        ("cleo:3 dora:3 anna:1 ben:1", "cleo+dora anna+ben"),
        ("cleo=eve anna=ben", "cleo+eve anna+ben"),
    ],
)
def test_correction_of_teams_names_the_command_that_works(
    typed: str, sides: str, tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """If PLAYERS would split a game's teams, the message shows the correct command, which works exactly as typed."""
    url = make_tennis_ledger(ratings, tmp_path, "--system", "weng-lin")
    assert ratings("record", "--game-id", "g-1", "--partners", "+", "anna+ben", "cleo+dora", db=url).exit_code == 0
    refused = ratings("correct", "g-1", *typed.split(), "--reason", "wrong way round", db=url)
    message = "side-disagrees: 'g-1' is a game of teams; name each side with its partners: "
    command = f"ratings correct g-1 --partners + {sides} --reason 'wrong way round'"
    assert (refused.exit_code, refused.stderr) == (1, f"{message}{command}\n")
    assert ratings(*shlex.split(command)[1:], db=url).exit_code == 0
    (game,) = read_json(ratings, url, "games", "g-1")["rows"]
    winners, losers = (side.split("+") for side in sides.split())
    assert [(participant["player"], participant["place"]) for participant in game["participants"]] == [
        *((player, 1) for player in winners),
        *((player, 3) for player in losers),
    ]


def test_command_for_a_correction_of_teams_keeps_the_other_corrections(
    tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """The command in the message repeats every option that says what to correct."""
    url = make_tennis_ledger(ratings, tmp_path, "--system", "weng-lin")
    assert ratings("record", "--game-id", "g-1", "--partners", "+", "anna+ben", "cleo+dora", db=url).exit_code == 0
    options = ["--city", "", "--at", "2024-05-05T10:00Z", "--expect", "3", "--score", "2:1", "--reason", "wrong day"]
    refused = ratings("correct", "g-1", "cleo", "dora", "anna", "ben", *options, db=url)
    command = shlex.join(["ratings", "correct", "g-1", "--partners", "+", "cleo+dora", "anna+ben", *options])
    assert (refused.exit_code, refused.stderr.endswith(f": {command}\n")) == (1, True)
