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
GAMES = {2: 56, 3: 24, 4: 32, 5: 40, 6: 24, 7: 24, 8: 16}


def evening(player: str, number: int) -> str:
    """A game that somebody finished, so that he is active."""
    participants = [{"player": player, "place": 1}, {"player": f"{player}'s guest", "place": 2}]
    data = {"game_id": f"{player}-{number}", "game": "gonzaga", "participants": participants}
    return json.dumps({"type": "game.recorded", "occurred_at": f"2026-01-{number:02d}T20:00:00Z", "data": data})


def make_ledger(ratings: Ratings, url: str) -> None:
    """Everybody has played five games in January."""
    assert ratings("init", db=url).exit_code == 0
    games = [evening(player, number) for player in PLAYERS for number in range(1, 6)]
    assert ratings("import", "-", db=url, input="\n".join(games)).exit_code == 0


@pytest.fixture
def db(copied_file: Callable[..., str]) -> str:
    """The ledger of `make_ledger`."""
    return copied_file(make_ledger)


def played(game_id: str, at: str, placed: Sequence[str]) -> str:
    """A game of the league as one line."""
    participants = [{"player": player, "place": place} for place, player in enumerate(placed, 1)]
    data = {"game_id": game_id, "game": "cartagena", "league": "L1", "participants": participants}
    return json.dumps({"type": "game.recorded", "occurred_at": at, "data": data})


def points_of(place: int, size: int) -> int:
    """What a place is worth, by the formula of the site."""
    return (size - place) * (size - place + 1)


@pytest.mark.parametrize("size", mark_long_values((2, 5, 8), range(2, 9)))
def test_whole_league_gives_table_and_winner(size: int, db: str, ratings: Ratings, at_length: bool) -> None:
    """When eight players play all games of a league, its table and winners are the expected ones.

    In short all games but the last eight are imported at once.
    """

    def done(*arguments: object, **given: str) -> str:
        result = ratings(*arguments, db=db, **given)
        assert result.exit_code == 0, result.stderr
        return str(result.stdout)

    def seen() -> Any:
        return json.loads(done("league", "show", "L1", "--format", "json"))

    done("league", "create", "L1", "--game", "cartagena", "--players-per-game", size, "--at", "2026-02-01T12:00Z")
    for player in PLAYERS:
        assert seen()["games"] == []
        done("league", "join", "L1", player, "--at", "2026-02-02T12:00Z")
    games = seen()["games"]
    assert (len(games), seen()["players"], seen()["state"]) == (GAMES[size], PLAYERS, f"0 of {GAMES[size]} games")

    expected = dict.fromkeys(PLAYERS, 0)
    chance = random.Random(size)
    lines = []
    for number, game in enumerate(games):
        placed: Sequence[str] = chance.sample(game["seats"], size)
        for place, player in enumerate(placed, 1):
            expected[player] += points_of(place, size)
        at = f"2026-03-{number // 24 + 1:02d}T{number % 24:02d}:00Z"
        if number < len(games) - 8 and not at_length:
            lines.append(played(game["game_id"], at, placed))
            continue
        if lines:
            done("import", "-", input="\n".join(lines))
            lines = []
        assert seen()["winners"] == []
        done("record", "--game", "cartagena", "--league", "L1", "--game-id", game["game_id"], "--at", at, *placed)

    found = seen()
    assert {row["player"]: int(row["points"]) for row in found["table"]} == expected
    best = [player for player in sorted(PLAYERS) if expected[player] == max(expected.values())]
    assert (found["state"], sorted(found["winners"])) == ("finished", best)
    assert all(game["played"] for game in found["games"])
    assert f"Finished: won by {' and '.join(found['winners'])}." in done("league", "table", "L1")
    assert done("verify") == ""
