"""Whole leagues through the command line, from creation to the final table, for every number of players per game."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from lengths import mark_long_values

pytestmark = pytest.mark.slow

Ratings = Callable[..., Any]
PLAYERS = ["anna", "ben", "cleo", "dora", "émile", "ζωή", "美咲", "Łukasz"]
# by the number of players per game
GAMES = {2: 56, 3: 24, 4: 32, 5: 40, 6: 24, 7: 24, 8: 16}


def format_finished_game(player: str, number: int) -> str:
    """Return a game that a player finished in January as a line of JSON; five of them make the player active."""
    participants = [{"player": player, "place": 1}, {"player": f"{player}'s guest", "place": 2}]
    data = {"game_id": f"{player}-{number}", "game": "gonzaga", "participants": participants}
    return json.dumps({"type": "game.recorded", "occurred_at": f"2026-01-{number:02d}T20:00:00Z", "data": data})


def create_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger in which every player has finished five games in January."""
    assert ratings("init", db=url).exit_code == 0
    games = [format_finished_game(player, number) for player in PLAYERS for number in range(1, 6)]
    assert ratings("import", "-", db=url, input="\n".join(games)).exit_code == 0


@pytest.fixture
def db(copy_ledger_file: Callable[..., str]) -> str:
    """Return a ledger in which every player is active."""
    return copy_ledger_file(create_ledger)


def format_league_game(game_id: str, at: str, ranking: Sequence[str]) -> str:
    """Return a game of the league as a line of JSON."""
    participants = [{"player": player, "place": place} for place, player in enumerate(ranking, 1)]
    data = {"game_id": game_id, "game": "cartagena", "league": "L1", "participants": participants}
    return json.dumps({"type": "game.recorded", "occurred_at": at, "data": data})


def compute_points(place: int, size: int) -> int:
    """Return the points of a place, by the formula in docs/systems/league-points.md."""
    return (size - place) * (size - place + 1)


@pytest.mark.parametrize("size", mark_long_values((2, 5, 8), range(2, 9)))
def test_whole_league_gives_table_and_winner(size: int, db: str, ratings: Ratings, at_length: bool) -> None:
    """After eight players have played all games of a league, its table has the formula's points, and the best win.

    Unless the tests run at length, all games but the last eight are imported at once.
    """

    def run(*arguments: object, **options: str) -> str:
        result = ratings(*arguments, db=db, **options)
        assert result.exit_code == 0, result.stderr
        return str(result.stdout)

    def show_league() -> Any:
        return json.loads(run("league", "show", "L1", "--format", "json"))

    run("league", "create", "L1", "--game", "cartagena", "--players-per-game", size, "--at", "2026-02-01T12:00Z")
    for player in PLAYERS:
        assert show_league()["games"] == []
        run("league", "join", "L1", player, "--at", "2026-02-02T12:00Z")
    games = show_league()["games"]
    assert (len(games), show_league()["players"], show_league()["state"]) == (
        GAMES[size],
        PLAYERS,
        f"0 of {GAMES[size]} games",
    )

    expected = dict.fromkeys(PLAYERS, 0)
    rng = random.Random(size)
    lines = []
    for number, game in enumerate(games):
        ranking: Sequence[str] = rng.sample(game["seats"], size)
        for place, player in enumerate(ranking, 1):
            expected[player] += compute_points(place, size)
        at = f"2026-03-{number // 24 + 1:02d}T{number % 24:02d}:00Z"
        if number < len(games) - 8 and not at_length:
            lines.append(format_league_game(game["game_id"], at, ranking))
            continue
        if lines:
            run("import", "-", input="\n".join(lines))
            lines = []
        assert show_league()["winners"] == []
        run("record", "--game", "cartagena", "--league", "L1", "--game-id", game["game_id"], "--at", at, *ranking)

    league = show_league()
    assert {row["player"]: int(row["points"]) for row in league["table"]} == expected
    winners = [player for player in sorted(PLAYERS) if expected[player] == max(expected.values())]
    assert (league["state"], sorted(league["winners"])) == ("finished", winners)
    assert all(game["played"] for game in league["games"])
    assert f"Finished: won by {' and '.join(league['winners'])}." in run("league", "table", "L1")
    assert run("verify") == ""
