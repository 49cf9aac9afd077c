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


def build_list_game(game_id: str, at: str, result: str, **members: Any) -> dict[str, Any]:
    """Return a game on the ladders of city 7 from text, tied players joined by `=`: "anna ben=cleo"."""
    return build_game(game_id, *result.split(), at=at, **{"group": "basic", "city": "7", **members})


def build_list_events() -> list[dict[str, Any]]:
    """Return the events of the ledger.

    Cleo is first in January; in March anna and ben share first place, cleo is third, and dora has six games. In
    Cities & Knights ben is ahead of anna, but his account is free at the end of the year.
    """
    games = [build_list_game(f"jan-{day}", f"2010-01-{day:02d}T20:00:00Z", "cleo emil") for day in range(1, 8)]
    for day in range(1, 7):
        result = "anna ben cleo dora" if day % 2 else "ben anna cleo dora"
        games.append(build_list_game(f"mar-{day}", f"2010-03-{day:02d}T20:00:00Z", result))
    games.append(build_list_game("mar-7", "2010-03-07T20:00:00Z", "anna=ben cleo"))
    games += [
        build_list_game(f"ck-{day}", f"2010-03-{day:02d}T21:00:00Z", "ben anna", group="cities-knights")
        for day in range(1, 8)
    ]
    game_with_leaver = build_list_game("feb-1", "2010-02-01T20:00:00Z", "anna ben cleo")
    game_with_leaver["data"]["participants"][2]["status"] = "abandoned"
    game_with_leaver["data"]["participants"].append(
        {"player": "dora", "place": 3, "status": "substitute", "replaces": "cleo"}
    )
    games += [game_with_leaver, build_list_game("unrated", "2010-03-08T20:00:00Z", "anna ben", rated=False)]
    games += [build_list_game("card", "2010-03-08T20:00:00Z", "anna ben", group="card-game")]
    games += [  # the last instant of February in Berlin, and half an hour into March
        build_list_game("edge", "2010-02-28T22:59:59.999999Z", "fay gus"),
        build_list_game("late", "2010-02-28T23:30:00Z", "fay gus"),
    ]
    account = {"player": "ben", "account": "free"}
    return [*games, {"type": "player.account_changed", "occurred_at": "2010-12-01T00:00:00Z", "data": account}]


def create_list_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Create a ledger with the shipped rulesets and the events of `build_list_events`."""
    assert ratings("init", db=url).exit_code == 0
    lines = "".join(json.dumps(event) + "\n" for event in build_list_events())
    assert not record_lines(url, lines).rejected
