"""The JSON of the reading commands matches the contract, with all three axes."""

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from builders import format_game_line
from output_filters import strip_decimals
from stores import record_lines

CLUB_LADDER = "club-catan-elo/all"
ROOT = Path(__file__).parents[2]
SHIPPED_CLUB = ROOT / "projections" / "shipped" / "club-catan-elo-1.toml"


def build_club_line(game_id: str, *players: str, day: int) -> str:
    return format_game_line(game_id, *players, at=f"2024-01-{day:02d}T12:00:00Z", game="club-catan")


GAMES = (
    build_club_line("g-1", "anna", "ben", "cleo", day=1)
    + build_club_line("g-2", "ben", "anna", day=3)
    + build_club_line("g-0", "cleo", "anna", day=2)
)
ADJUSTMENT = (
    json.dumps(
        {
            "type": "points.adjusted",
            "occurred_at": "2024-01-04T12:00:00Z",
            "data": {"ladder": CLUB_LADDER, "player": "dora", "points": "-0.5", "reason": "late arrival"},
        }
    )
    + "\n"
)


def make_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Create a ledger: the ruleset at position 1, three games at 2, 3 and 4, and an adjustment at 5."""
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    assert ratings("rules", "publish", SHIPPED_CLUB, db=url).exit_code == 0
    assert not record_lines(url, GAMES + ADJUSTMENT).rejected


pytestmark = pytest.mark.ledger(make=make_ledger, store="sqlite")


def read_json(ratings: Callable[..., Any], db: str, *arguments: str) -> Any:
    result = ratings(*arguments, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    return strip_decimals(json.loads(result.stdout))


def list_types(value: dict[str, Any]) -> dict[str, str]:
    return {name: type(member).__name__ for name, member in value.items()}


def test_standings_match_the_contract(db: str, ratings: Callable[..., Any]) -> None:
    """The members, types and order of standings as JSON are those of the contract."""
    standings = read_json(ratings, db, "standings", CLUB_LADDER)

    assert list_types(standings) == {
        "ladder": "str",
        "ruleset": "str",
        "as_of": "NoneType",
        "known_at": "int",
        "rules": "NoneType",
        "games": "int",
        "digest": "str",
        "rows": "list",
    }
    assert list(standings) == ["ladder", "ruleset", "as_of", "known_at", "rules", "games", "digest", "rows"]
    assert (standings["ladder"], standings["ruleset"], standings["known_at"], standings["games"]) == (
        CLUB_LADDER,
        "club-catan-elo@1",
        5,
        3,
    )
    for row in standings["rows"]:
        assert list_types(row) == {"rank": "int", "player": "str", "points": "str", "games": "int", "qualified": "bool"}
    assert [(row["rank"], row["player"], row["games"]) for row in standings["rows"]] == [
        (1, "ben", 2),
        (2, "cleo", 2),
        (3, "dora", 0),
        (4, "anna", 3),
    ]
    assert {row["player"]: row["points"] for row in standings["rows"]}["dora"] == "1999/2"


def test_digest_hashes_ruleset_and_rows(db: str, ratings: Callable[..., Any]) -> None:
    """The digest is the SHA-256 of the canonical JSON of ruleset and rows."""
    standings = read_json(ratings, db, "standings", CLUB_LADDER)
    content = rfc8785.dumps({"ruleset": standings["ruleset"], "rows": standings["rows"]})

    assert standings["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_history_matches_the_contract(db: str, ratings: Callable[..., Any]) -> None:
    """A player's history has the rows of the contract, in replay order and with unbroken sums."""
    history = read_json(ratings, db, "history", "anna", CLUB_LADDER)

    assert {"player", "ladder", "rows"} <= history.keys()
    assert [
        (row["position"], row["event_id"], row["game_id"], row["occurred_at"], row["place"]) for row in history["rows"]
    ] == [
        (2, "game:g-1", "g-1", "2024-01-01T12:00:00.000000Z", 1),
        (4, "game:g-0", "g-0", "2024-01-02T12:00:00.000000Z", 2),
        (3, "game:g-2", "g-2", "2024-01-03T12:00:00.000000Z", 2),
    ]
    for row in history["rows"]:
        assert list_types(row) == {
            "position": "int",
            "event_id": "str",
            "game_id": "str",
            "occurred_at": "str",
            "place": "int",
            "before": "str",
            "change": "str",
            "after": "str",
            "ruleset": "str",
        }
        assert Fraction(row["before"]) + Fraction(row["change"]) == Fraction(row["after"])
    for row, following in pairwise(history["rows"]):
        assert row["after"] == following["before"]


def test_adjustment_row_gives_its_reason(db: str, ratings: Callable[..., Any]) -> None:
    """An adjustment appears in the history without a game and with its reason."""
    (row,) = read_json(ratings, db, "history", "dora", CLUB_LADDER)["rows"]

    assert (row["game_id"], row["place"], row["before"], row["change"], row["after"], row["reason"]) == (
        None,
        None,
        "1000",
        "-1/2",
        "1999/2",
        "late arrival",
    )


def test_explained_game_matches_the_contract(db: str, ratings: Callable[..., Any]) -> None:
    """An explained game has the members of the contract, and its books balance."""
    explanation = read_json(ratings, db, "explain", "g-1", CLUB_LADDER)

    contract = {
        "game_id": "str",
        "ladder": "str",
        "ruleset": "str",
        "counted": "bool",
        "why_not": "NoneType",
        "players": "list",
        "accounts": "list",
    }
    assert {name: kind for name, kind in list_types(explanation).items() if name in contract} == contract
    assert [player["player"] for player in explanation["players"]] == ["anna", "ben", "cleo"]
    for player in explanation["players"]:
        assert {"player", "before", "change", "after", "terms"} <= player.keys()
        assert sum(Fraction(term["amount"]) for term in player["terms"]) == Fraction(player["change"])
        assert all(list_types(term).keys() >= {"term", "amount", "detail"} for term in player["terms"])
    assert [account["account"] for account in explanation["accounts"]] == ["minted", "burned"]
    assert (
        sum(Fraction(entry["change"]) for entry in explanation["players"])
        + sum(Fraction(account["amount"]) for account in explanation["accounts"])
        == 0
    )


def test_game_off_the_ladder_has_a_reason(db: str, ratings: Callable[..., Any]) -> None:
    """Explaining a game off the ladder states that it is not counted, and the reason."""
    explanation = read_json(ratings, db, "explain", "g-2", "club-catan-elo/3-4")

    assert (explanation["counted"], bool(explanation["why_not"])) == (False, True)
    assert [(player["change"], player["terms"]) for player in explanation["players"]] == [("0", []), ("0", [])]


@pytest.mark.parametrize(
    ("axes", "games", "as_of", "known_at"),
    [
        ([], 3, None, 5),
        (["--as-of", "2024-01-01"], 1, "2024-01-01T23:59:59.999999Z", 5),
        (["--as-of", "2023-12-31"], 0, "2023-12-31T23:59:59.999999Z", 5),
        (["--as-of", "2024-01-02T12:00:00Z"], 2, "2024-01-02T12:00:00.000000Z", 5),
        (["--as-of", "2024-01-02T11:59:59.999999Z"], 1, "2024-01-02T11:59:59.999999Z", 5),
        (["--as-of", "9999-12-31"], 3, "9999-12-31T23:59:59.999999Z", 5),
        (["--known-at", "1"], 0, None, 1),
        (["--known-at", "3"], 2, None, 3),
        (["--known-at", "3", "--as-of", "2024-01-02"], 1, "2024-01-02T23:59:59.999999Z", 3),
        (["--known-at", "9999-12-31"], 3, None, 5),
        (["--rules", "club-catan-elo@1"], 3, None, 5),
    ],
)
def test_axes_select_the_games(
    axes: list[str], games: int, as_of: str | None, known_at: int, db: str, ratings: Callable[..., Any]
) -> None:
    """With any of the three axes, standings state their coordinates and count the games there."""
    result = ratings("standings", CLUB_LADDER, "--format", "json", *axes, db=db)

    output = json.loads(result.stdout)
    assert (result.exit_code, output["games"], output["as_of"], output["known_at"]) == (0, games, as_of, known_at)


def test_rules_option_rescores_everything(db: str, ratings: Callable[..., Any]) -> None:
    """Naming another version with --rules scores the whole replay by it."""
    assert ratings("rules", "publish", ROOT / "examples" / "club-catan-elo-2.toml", db=db).exit_code == 0
    first = read_json(ratings, db, "standings", CLUB_LADDER, "--rules", "club-catan-elo@1")
    second = read_json(ratings, db, "standings", CLUB_LADDER, "--rules", "club-catan-elo@2")
    before = read_json(ratings, db, "standings", CLUB_LADDER, "--known-at", "5")

    assert (first["ruleset"], second["ruleset"]) == ("club-catan-elo@1", "club-catan-elo@2")
    assert first["rows"] == before["rows"] != second["rows"]
    assert read_json(ratings, db, "standings", CLUB_LADDER)["rows"] == second["rows"]


def test_ladder_without_games_is_empty(db: str, ratings: Callable[..., Any]) -> None:
    """Reading a ladder without games succeeds with no rows; the history of an unknown player is refused."""
    assert read_json(ratings, db, "standings", "club-catan-elo/7-8")["rows"] == []
    assert read_json(ratings, db, "history", "anna", "club-catan-elo/7-8")["rows"] == []
    assert ratings("history", "nobody", CLUB_LADDER, db=db).exit_code == 1
    assert (
        ratings("standings", "club-catan-elo/7-8", "--format", "csv", db=db).stdout
        == "rank,player,points,games,qualified,as_of,known_at,rules\n"
    )


@pytest.mark.parametrize(
    "name", ["chess", "chess/all", "club-catan-elo/", "club-catan-elo/9", f"{CLUB_LADDER}/x", "", "/"]
)
@pytest.mark.parametrize("command", [["standings"], ["history", "anna"], ["explain", "g-1"]])
def test_bad_ladder_is_usage_error(name: str, command: list[str], db: str, ratings: Callable[..., Any]) -> None:
    """Reading an unknown or malformed ladder is a usage error."""
    result = ratings(*command, name, "--format", "json", db=db)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr


def test_unknown_game_is_refused(db: str, ratings: Callable[..., Any]) -> None:
    """Explaining an unknown game is refused."""
    result = ratings("explain", "g-99", CLUB_LADDER, db=db)

    assert (result.exit_code, result.stdout) == (1, "")


def test_games_are_in_played_order(db: str, ratings: Callable[..., Any]) -> None:
    """Games are listed in the order they were played, with their positions."""
    rows = read_json(ratings, db, "games")["rows"]

    assert [(row["position"], row["game_id"]) for row in rows] == [(2, "g-1"), (4, "g-0"), (3, "g-2")]
    assert [row["game_id"] for row in read_json(ratings, db, "games", "--limit", "1")["rows"]] == ["g-2"]
    assert [row["game_id"] for row in read_json(ratings, db, "games", "--player", "cleo")["rows"]] == ["g-1", "g-0"]
    assert read_json(ratings, db, "games", "--game", "catan")["rows"] == []


def test_log_rows_can_be_selected(db: str, ratings: Callable[..., Any]) -> None:
    """The log's rows are the stored records, and a subject selects the rows about it."""
    exported = [json.loads(line) for line in ratings("export", "events", db=db).stdout.splitlines()]

    assert read_json(ratings, db, "log")["rows"] == exported
    assert [row["position"] for row in read_json(ratings, db, "log", "anna")["rows"]] == [2, 3, 4]
    assert [row["position"] for row in read_json(ratings, db, "log", "dora")["rows"]] == [5]
    assert [row["position"] for row in read_json(ratings, db, "log", "g-0")["rows"]] == [4]
    assert [row["position"] for row in read_json(ratings, db, "log", "--limit", "2")["rows"]] == [4, 5]


def test_ladders_show_their_counts(db: str, ratings: Callable[..., Any]) -> None:
    """Each ladder is listed with its ruleset and its numbers of players and games."""
    rows = read_json(ratings, db, "ladders")["rows"]

    assert [(row["ladder"], row["ruleset"], row["players"], row["games"]) for row in rows] == [
        ("club-catan-elo/3-4", "club-catan-elo@1", 3, 1),
        (CLUB_LADDER, "club-catan-elo@1", 4, 3),
    ]


def test_decimals_accompany_exact_numbers(db: str, ratings: Callable[..., Any]) -> None:
    """In JSON, a decimal that `float` reads follows each exact number, but is never hashed or stored."""
    rows = json.loads(ratings("standings", CLUB_LADDER, "--format", "json", db=db).stdout)["rows"]
    dora = next(row for row in rows if row["player"] == "dora")
    assert list(dora)[:4] == ["rank", "player", "points", "points_decimal"]
    assert (dora["points"], dora["points_decimal"]) == ("1999/2", "999.5")
    raw = json.loads(ratings("standings", CLUB_LADDER, "--format", "json", db=db).stdout)
    named = [{name: row[name] for name in ("rank", "player", "points", "games", "qualified")} for row in raw["rows"]]
    content = rfc8785.dumps({"ruleset": raw["ruleset"], "rows": named})
    assert raw["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    history = json.loads(ratings("history", "anna", CLUB_LADDER, "--format", "json", db=db).stdout)["rows"]
    assert {"before_decimal", "change_decimal", "after_decimal"} <= history[0].keys()
    explanation = json.loads(ratings("explain", "g-1", CLUB_LADDER, "--format", "json", db=db).stdout)
    assert explanation["accounts"][0]["amount_decimal"] == "-0.736307"
    assert "amount_decimal" in explanation["players"][0]["terms"][0]
    assert json.loads(ratings("books", CLUB_LADDER, "--format", "json", db=db).stdout)["sum_decimal"] == "0"
    line = json.loads(ratings("export", "standings", CLUB_LADDER, db=db).stdout)
    assert line["rows"] == raw["rows"]
    result = ratings("void", "g-1", "--reason", "x", "--dry-run", "--format", "json", db=db)
    assert {"before_decimal", "change_decimal", "after_decimal"} <= json.loads(result.stdout)["changes"][0].keys()
    assert ratings("publish", CLUB_LADDER, db=db).exit_code == 0
    assert "_decimal" not in ratings("export", "events", db=db).stdout
    assert "_decimal" not in ratings("log", "--format", "json", db=db).stdout
