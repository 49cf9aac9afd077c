"""Events for tests, made of few words: games, corrections, adjustments, rulesets, and the lines that carry them."""

import json
from typing import Any

from ratings_ledger.ledger.events.types import Draft, read_event

Event = dict[str, Any]
NOON = "2010-03-05T12:00:00Z"


def event(type_name: str, at: str = NOON, event_id: str | None = None, **data: Any) -> Event:
    """Return an event of any type."""
    found = {"type": type_name, "occurred_at": at, "data": data}
    return found if event_id is None else {"id": event_id, **found}


def seats(*players: str) -> list[dict[str, Any]]:
    """Return participants in the order of their places, tied ones joined by =: `seats("anna", "ben=cleo")`."""
    found: list[dict[str, Any]] = []
    for seat in players:
        place = len(found) + 1
        found += [{"player": player, "place": place} for player in seat.split("=")]
    return found


def game_data(game_id: str, *players: str, **members: Any) -> dict[str, Any]:
    """Return what the event of a game says: of Catan, unless `members` say otherwise."""
    return {"game_id": game_id, "game": "catan", "participants": seats(*players), **members}


def game(game_id: str, *players: str, at: str = NOON, event_id: str | None = None, **members: Any) -> Event:
    """Return the event of a game, the players in the order of their places."""
    return event("game.recorded", at, event_id, **game_data(game_id, *players, **members))


def line(one: Event) -> str:
    """Return an event as a line of JSON."""
    return json.dumps(one) + "\n"


def game_line(game_id: str, *players: str, **members: Any) -> str:
    """Return a game as a line of JSON; the arguments are those of `game`."""
    return line(game(game_id, *players, **members))


def draft(one: Event) -> Draft:
    """Return an event as a draft, which can be appended without the checks of an import."""
    return read_event(one)[0]


def drafted(game_id: str, *players: str, **members: Any) -> Draft:
    """Return a game as a draft; the arguments are those of `game`."""
    return draft(game(game_id, *players, **members))
