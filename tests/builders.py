"""Build events, drafts and lines of JSON for tests from short arguments."""

import json
from typing import Any

from ratings_ledger.ledger.events.types import Draft, read_event

Event = dict[str, Any]
NOON = "2010-03-05T12:00:00Z"


def build_event(type_name: str, at: str = NOON, event_id: str | None = None, **data: Any) -> Event:
    """Return an event of any type."""
    event = {"type": type_name, "occurred_at": at, "data": data}
    return event if event_id is None else {"id": event_id, **event}


def build_participants(*players: str) -> list[dict[str, Any]]:
    """Return participants in the order of their places, tied ones joined by `=`, such as "ben=cleo"."""
    participants: list[dict[str, Any]] = []
    for tied_players in players:
        place = len(participants) + 1
        participants += [{"player": player, "place": place} for player in tied_players.split("=")]
    return participants


def build_game_data(game_id: str, *players: str, **members: Any) -> dict[str, Any]:
    """Return the data of a game event. The game is Catan, unless `members` name another."""
    return {"game_id": game_id, "game": "catan", "participants": build_participants(*players), **members}


def build_game(game_id: str, *players: str, at: str = NOON, event_id: str | None = None, **members: Any) -> Event:
    """Return the event of a game, the players in the order of their places."""
    return build_event("game.recorded", at, event_id, **build_game_data(game_id, *players, **members))


def format_line(event: Event) -> str:
    """Return an event as a line of JSON."""
    return json.dumps(event) + "\n"


def format_game_line(game_id: str, *players: str, **members: Any) -> str:
    """Return a game as a line of JSON; the arguments are those of `build_game`."""
    return format_line(build_game(game_id, *players, **members))


def build_draft(event: Event) -> Draft:
    """Return an event as a draft, which can be appended without the checks of an import."""
    return read_event(event)[0]


def build_game_draft(game_id: str, *players: str, **members: Any) -> Draft:
    """Return a game as a draft; the arguments are those of `build_game`."""
    return build_draft(build_game(game_id, *players, **members))
