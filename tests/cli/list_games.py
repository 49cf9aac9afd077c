"""A ledger with monthly, open and annual lists for the tests of their output."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stores import taken_in

SHIPPED = Path(__file__).parents[2] / "projections" / "shipped"
MARCH, OPEN_MARCH, YEAR = "catan-monthly/7/basic/2010-03", "catan-open/basic/2010-03", "catan-annual/7/basic/2010"
KNIGHTS_MARCH, KNIGHTS_YEAR = "catan-monthly/7/cities-knights/2010-03", "catan-annual/7/cities-knights/2010"


def game(game_id: str, at: str, result: str, **members: Any) -> dict[str, Any]:
    """A game from text, tied players joined by =: `game("g-1", "2010-03-01T20:00:00Z", "anna ben=cleo")`."""
    participants: list[dict[str, Any]] = []
    for seat in result.split():
        place = len(participants) + 1
        participants += [{"player": player, "place": place} for player in seat.split("=")]
    data = {"game": "catan", "group": "basic", "city": "7", "participants": participants, **members}
    return {"type": "game.recorded", "occurred_at": at, "data": {"game_id": game_id, **data}}


def events() -> list[dict[str, Any]]:
    """Cleo is first in January; in March anna and ben share the first place, cleo is third, dora has six games.

    In Cities & Knights ben is before anna, but his account is free at the end of the year.
    """
    found = [game(f"jan-{day}", f"2010-01-{day:02d}T20:00:00Z", "cleo emil") for day in range(1, 8)]
    for day in range(1, 7):
        result = "anna ben cleo dora" if day % 2 else "ben anna cleo dora"
        found.append(game(f"mar-{day}", f"2010-03-{day:02d}T20:00:00Z", result))
    found.append(game("mar-7", "2010-03-07T20:00:00Z", "anna=ben cleo"))
    found += [
        game(f"ck-{day}", f"2010-03-{day:02d}T21:00:00Z", "ben anna", group="cities-knights") for day in range(1, 8)
    ]
    left = game("feb-1", "2010-02-01T20:00:00Z", "anna ben cleo")
    left["data"]["participants"][2]["status"] = "abandoned"
    left["data"]["participants"].append({"player": "dora", "place": 3, "status": "substitute", "replaces": "cleo"})
    found += [left, game("unrated", "2010-03-08T20:00:00Z", "anna ben", rated=False)]
    found += [game("card", "2010-03-08T20:00:00Z", "anna ben", group="card-game")]
    found += [game("edge", "2010-02-28T22:59:59.999999Z", "fay gus"), game("late", "2010-02-28T23:30:00Z", "fay gus")]
    free = {"player": "ben", "account": "free"}
    return [*found, {"type": "player.account_changed", "occurred_at": "2010-12-01T00:00:00Z", "data": free}]


def list_games(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with the shipped rulesets and these events."""
    assert ratings("init", db=url).exit_code == 0
    lines = "".join(json.dumps(fact) + "\n" for fact in events())
    assert not taken_in(url, lines).rejected
