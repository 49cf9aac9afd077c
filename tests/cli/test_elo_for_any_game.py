"""Textbook Elo for any game, as `init --for` and `rules publish --shipped elo` publish it, and renames of players."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from correction_helpers import (
    Ratings,
    append_lines,
    build_event_line,
    build_game_data,
    read_all_points,
    read_json,
    run_json_command,
)

BANDS = ("all", "2", "3-4", "5-6", "7-8")


def create_chess_and_go(ratings: Ratings, url: str) -> None:
    """Create a ledger for chess and go, in which chess is named twice."""
    assert ratings("init", "--for", "chess", "--for", "go", "--for", "chess", db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=create_chess_and_go, store="sqlite")


def format_chess(game_id: str, *players: str, day: int = 5) -> str:
    """Return a game of chess as a line of JSON."""
    return build_event_line(
        "game.recorded", f"2024-03-{day:02d}T12:00:00Z", **build_game_data(game_id, *players, game="chess")
    )


def list_versions(ratings: Ratings, db: str) -> list[str]:
    """Return the names of all published versions, in log order."""
    return [row["version"] for row in read_json(ratings, db, "rules", "list")]


def test_init_for_games_publishes_only_elo(db: str, ratings: Ratings) -> None:
    """`init --for` publishes Elo for each named game, in capitals or not, and no other ruleset."""
    assert list_versions(ratings, db) == ["elo-chess@1", "elo-go@1"]
    assert read_json(ratings, db, "rules", "show", "elo-go")["scope"]["game"] == ["go"]
    result = ratings("init", "--for", "Go", "--for", "Catan", db=db)
    assert "Rulesets published: elo-catan@1." in result.stdout
    assert list_versions(ratings, db) == ["elo-chess@1", "elo-go@1", "elo-catan@1"]


def test_plain_init_publishes_all_rulesets(ratings: Ratings, tmp_path: Path) -> None:
    """`init` without `--for` publishes all 18 shipped rulesets."""
    path = str(tmp_path / "all.db")
    ratings("init", db=path)
    names = list_versions(ratings, path)
    assert (len(names), names[0], names[-1]) == (18, "galactic-points@1", "youplay-bluemax@2")


def test_game_counts_overall_and_by_size(db: str, ratings: Ratings) -> None:
    """Each game is on the ladder of all games; one of up to 8 players is also on the ladder for its size."""
    append_lines(ratings, db, *(format_chess(f"g-{n}", *(f"p{i}" for i in range(n))) for n in range(2, 10)))
    games = {row["ladder"]: row["games"] for row in read_json(ratings, db, "ladders")["rows"]}
    assert games == {f"elo-chess/{band}": count for band, count in zip(BANDS, (8, 1, 2, 2, 2), strict=True)}


def test_ratings_match_textbook_elo(db: str, ratings: Ratings) -> None:
    """After games of two and of three, each replayed rating is that of the Elo formula in floats."""
    games = [("anna", "ben"), ("ben", "anna"), ("anna", "cleo", "ben"), ("cleo", "ben"), ("ben", "cleo", "anna")]
    append_lines(ratings, db, *(format_chess(f"g-{day}", *players, day=day) for day, players in enumerate(games, 1)))
    rating: dict[str, float] = {}
    for players in games:
        before = {name: rating.get(name, 1000.0) for name in players}
        for i, name in enumerate(players):
            for j, opponent in enumerate(players):
                if i != j:
                    expected = 1 / (1 + 10 ** ((before[opponent] - before[name]) / 400))
                    rating[name] = rating.get(name, 1000.0) + 32 / (len(players) - 1) * ((i < j) - expected)
    rows = read_json(ratings, db, "standings", "elo-chess/all")["rows"]
    assert [row["player"] for row in rows] == sorted(rating, key=lambda name: -rating[name])
    assert all(math.isclose(Fraction(row["points"]), rating[row["player"]], abs_tol=1e-4) for row in rows)
    assert sum(Fraction(row["points"]) for row in rows) == 3000


def test_elo_rename_moves_no_points(db: str, ratings: Ratings) -> None:
    """Renaming a player changes no Elo points."""
    append_lines(
        ratings, db, format_chess("g-1", "anna", "ben", "cleo"), format_chess("g-2", "cleo", "anna=ben", day=6)
    )
    before = read_all_points(ratings, db)
    report = run_json_command(ratings, db, "player", "rename", "anna", "zoe")
    assert (report["changes"], report.get("reasons")) == ({}, None)
    after = {
        (ladder, player.replace("zoe", "anna")): points
        for (ladder, player), points in read_all_points(ratings, db).items()
    }
    assert after == before


CLUB_GAMES = ("c-1", "anna", "ben", "cleo"), ("c-2", "cleo", "anna", "ben")


def format_club_game(game_id: str, *players: str) -> str:
    """Return a game of the club, whose rule takes opponents in the order of their ids, as a line of JSON."""
    return build_event_line("game.recorded", **build_game_data(game_id, *players, game="club-catan"))


@pytest.fixture
def club_db(copy_ledger_file: Callable[..., str]) -> str:
    """Return the path of a ledger with `club-catan-elo@1` and games of the club."""
    return copy_ledger_file(create_club)


def create_club(ratings: Ratings, url: str) -> None:
    """Create a ledger with two games of anna, ben and cleo, and one of dora and emil."""
    ratings("init", db=url)
    append_lines(
        ratings, url, *(format_club_game(*game) for game in CLUB_GAMES), format_club_game("c-3", "dora", "emil")
    )


@pytest.mark.parametrize("options", [["--dry-run"], []], ids=["dry run", "recorded"])
def test_rename_that_changes_points_says_why(options: list[str], club_db: str, ratings: Ratings) -> None:
    """A rename that changes points reports the ruleset and the reason, in a dry run and when recorded."""
    report = run_json_command(ratings, club_db, "player", "rename", "anna", "zoe", *options)
    assert ("club-catan-elo/all", "ben") in report["changes"]
    (reason,) = report["reasons"]
    assert "club-catan-elo" in reason
    assert "in the order of their ids" in reason


def test_reason_is_printed_below_changes(club_db: str, ratings: Ratings) -> None:
    """`player rename` prints the reason for changed points below the changes."""
    stdout = ratings("player", "rename", "anna", "zoe", "--dry-run", db=club_db).stdout
    assert stdout.rstrip().endswith("in the order of their ids, and the new id changes this order.")


def test_merge_says_two_became_one(club_db: str, ratings: Ratings) -> None:
    """A rename to an id in use reports that the two become one person with the games of both."""
    (reason,) = run_json_command(ratings, club_db, "player", "rename", "anna", "dora")["reasons"]
    assert reason.startswith("anna and dora become one person with the games of both")


def test_more_rulesets_are_published_later(db: str, ratings: Ratings) -> None:
    """`rules publish --shipped` adds Elo for a game, one shipped ruleset, or all of them, each version once."""
    result = ratings("rules", "publish", "--shipped", "elo", "--game", "catan", "--game", "chess", db=db)
    assert (result.exit_code, result.stdout) == (0, "elo-catan@1 published at position 3\nNo points change.\n")
    result = ratings("rules", "publish", "--shipped", "youplay-wsim", db=db)
    assert result.stdout.startswith(
        "youplay-wsim@v0, youplay-wsim@v1, youplay-wsim@v2: 3 published, 0 already published"
    )
    assert ratings("rules", "publish", "--shipped", db=db).stdout.startswith("galactic-points@1, b5-league")
    assert ratings("rules", "publish", "--shipped", db=db).stdout.startswith("Nothing to publish: the ledger has")


WRONG_CALLS = {
    "no game for elo": (["rules", "publish", "--shipped", "elo"], "name it, as in --shipped elo --game chess"),
    "a game for something else": (["rules", "publish", "--shipped", "--game", "go"], "--game works only"),
    "no such ruleset": (["rules", "publish", "--shipped", "eol"], "no shipped ruleset is called 'eol'"),
    "neither": (["rules", "publish"], "pass FILES, or --shipped for shipped rulesets"),
    "both": (["rules", "publish", __file__, "--shipped", "elo"], "pass either FILES or --shipped, not both"),
    "letters of another script": (["init", "--for", "囲碁"], "blue-max; write one with letters a to z"),
    "too long": (["init", "--for", "x" * 61], "is not a name like"),
    "nothing": (["init", "--for", ""], "is not a name like"),
    "with --no-rules": (["init", "--for", "go", "--no-rules"], "leave out one"),
}


@pytest.mark.parametrize(("command", "message"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_call_names_the_right_one(command: list[str], message: str, db: str, ratings: Ratings) -> None:
    """A wrong call is a usage error whose message names the right call, and publishes nothing."""
    before = json.dumps(list_versions(ratings, db))
    result = ratings(*command, db=db)
    assert result.exit_code == 2
    assert message in result.stderr
    assert json.dumps(list_versions(ratings, db)) == before
