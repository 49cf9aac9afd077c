"""A ledger with monthly, open and annual lists for the tests of their output."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from builders import build_game
from stores import record_lines

SHIPPED = Path(__file__).parents[2] / "projections" / "shipped"
MARCH, OPEN_MARCH, YEAR = "catan-monthly/7/basic/2010-03", "catan-open/basic/2010-03", "catan-annual/7/basic/2010"
KNIGHTS_MARCH, KNIGHTS_YEAR = "catan-monthly/7/cities-knights/2010-03", "catan-annual/7/cities-knights/2010"


def played(game_id: str, at: str, result: str, **members: Any) -> dict[str, Any]:
    """A game on the ladders of city 7 from text, tied players joined by =: "anna ben=cleo"."""
    return build_game(game_id, *result.split(), at=at, **{"group": "basic", "city": "7", **members})


def events() -> list[dict[str, Any]]:
    """Cleo is first in January; in March anna and ben share the first place, cleo is third, dora has six games.

    In Cities & Knights ben is before anna, but his account is free at the end of the year.
    """
    found = [played(f"jan-{day}", f"2010-01-{day:02d}T20:00:00Z", "cleo emil") for day in range(1, 8)]
    for day in range(1, 7):
        result = "anna ben cleo dora" if day % 2 else "ben anna cleo dora"
        found.append(played(f"mar-{day}", f"2010-03-{day:02d}T20:00:00Z", result))
    found.append(played("mar-7", "2010-03-07T20:00:00Z", "anna=ben cleo"))
    found += [
        played(f"ck-{day}", f"2010-03-{day:02d}T21:00:00Z", "ben anna", group="cities-knights") for day in range(1, 8)
    ]
    left = played("feb-1", "2010-02-01T20:00:00Z", "anna ben cleo")
    left["data"]["participants"][2]["status"] = "abandoned"
    left["data"]["participants"].append({"player": "dora", "place": 3, "status": "substitute", "replaces": "cleo"})
    found += [left, played("unrated", "2010-03-08T20:00:00Z", "anna ben", rated=False)]
    found += [played("card", "2010-03-08T20:00:00Z", "anna ben", group="card-game")]
    found += [
        played("edge", "2010-02-28T22:59:59.999999Z", "fay gus"),
        played("late", "2010-02-28T23:30:00Z", "fay gus"),
    ]
    free = {"player": "ben", "account": "free"}
    return [*found, {"type": "player.account_changed", "occurred_at": "2010-12-01T00:00:00Z", "data": free}]


def list_games(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with the shipped rulesets and these events."""
    assert ratings("init", db=url).exit_code == 0
    lines = "".join(json.dumps(fact) + "\n" for fact in events())
    assert not record_lines(url, lines).rejected
