"""A ledger with one ladder of every kind and the same games on each, for tests of features that serve all kinds.

Up to position 83, ben wins six games against anna and cleo; Anna G. wins the seventh, and anna the eighth. Then mira
records, for each kind of game, a late game, a correction, a void and a game of the newcomer eve, and at the end some
adjustments, that Anna G. is anna, and that ben is now called benno.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stores import record_lines

Event = dict[str, Any]
# builds the data of a game from its players, the winner first
GameDataBuilder = Callable[[Sequence[str]], dict[str, Any]]

FIRST_GAMES_POSITION = 83  # of the last of these eight games of each kind
POWERS = ("Austria", "England", "France", "Germany", "Italy", "Russia", "Turkey")
CENTRES = dict(zip(POWERS, (10, 8, 6, 5, 3, 2, 0), strict=True))


def _build_placing_data(game: str, **labels: str) -> GameDataBuilder:
    """Return a builder of the data of a game with places."""
    return lambda players: {
        "game": game,
        **labels,
        "participants": [{"player": player, "place": place} for place, player in enumerate(players, 1)],
    }


def _build_battle_data(game: str) -> GameDataBuilder:
    """Return a builder of the data of a battle that the first player wins against all others."""
    return lambda players: {
        "game": game,
        "kind": "battle",
        "league": "L1",
        "participants": [
            {
                "player": player,
                "side": "blue" if place else "red",
                "units": 2,
                "units_lost": min(place, 2),
                "kills": int(not place),
                "score": 60 // (place + 1),
            }
            for place, player in enumerate(players)
        ],
    }


def _build_b5_data(players: Sequence[str]) -> dict[str, Any]:
    participants = [
        {"player": player, "power": 20 - 3 * place, "influence": 14 - 2 * place, "vp": int(place == 1)}
        for place, player in enumerate(players)
    ]
    return {"game": "babylon5", "kind": "b5", "season": "2010-1", "participants": participants}


def _build_diplomacy_data(players: Sequence[str]) -> dict[str, Any]:
    seven = [*players, "dora", "emil", "fay", "gus"]
    participants = [{"player": player, "power": power} for player, power in zip(seven, POWERS, strict=True)]
    return {
        "game": "diplomacy",
        "kind": "diplomacy",
        "league": "L1",
        "participants": participants,
        "centres": {"1901": CENTRES},
    }


GAMES: dict[str, GameDataBuilder] = {
    "chess": _build_placing_data("chess"),
    "catan": _build_placing_data("catan", group="basic", city="7"),
    "magnate": _build_placing_data("galactic-magnate"),
    "b5": _build_b5_data,
    "cartagena": _build_placing_data("cartagena", league="L1"),
    "blue-max": _build_battle_data("blue-max"),
    "ships": _build_battle_data("wooden-ships"),
    "diplomacy": _build_diplomacy_data,
}
# by ladder, the name in GAMES of the games on it
LADDERS = {
    "elo-chess/all": "chess",
    "catan-elo/basic": "catan",
    "catan-monthly/7/basic/2010-03": "catan",
    "catan-open/basic/2010-03": "catan",
    "catan-annual/7/basic/2010": "catan",
    "galactic-points": "magnate",
    "b5-league/2010-1": "b5",
    "youplay-league/L1": "cartagena",
    "youplay-bluemax/L1": "blue-max",
    "youplay-wsim/L1": "ships",
    "italia-2010/L1": "diplomacy",
}
ADJUSTED_LADDERS = ("elo-chess/all", "catan-elo/basic", "galactic-points", "youplay-league/L1")


def create_every_ladder(ratings: Callable[..., Any], url: str) -> None:
    """Create the ledger that this module describes."""
    for rules in (["--for", "chess"], []):
        assert ratings("init", *rules, "--by", "mira", db=url).exit_code == 0
    assert _record_events(url, [event for name in GAMES for event in _list_first_events(name)]) == FIRST_GAMES_POSITION
    adjustments = [
        {"ladder": ladder, "player": "anna", "points": "-7", "reason": "late"} for ladder in ADJUSTED_LADDERS
    ]
    renames = [{"player": "Anna G.", "new_player": "anna"}, {"player": "ben", "new_player": "benno"}]
    later_events = [event for name in GAMES for event in _list_later_events(name)]
    later_events += [_build_event("points.adjusted", 24, adjustment) for adjustment in adjustments]
    _record_events(url, later_events + [_build_event("player.renamed", 24, rename) for rename in renames])


def _list_first_events(name: str) -> Iterable[Event]:
    for number in range(1, 7):
        yield _build_game(name, number, 2 * number, "ben", "anna", "cleo")
    yield _build_game(name, 7, 14, "Anna G.", "cleo", "ben")
    yield _build_game(name, 8, 16, "anna", "cleo", "ben")


def _list_later_events(name: str) -> Iterable[Event]:
    corrected = _build_game(name, 2, 4, "anna", "ben", "cleo")["data"]
    yield _build_game(name, 0, 1, "cleo", "anna", "ben")
    yield _build_event("game.corrected", 20, {"game_id": f"{name}-2", "reason": "swapped", "game": corrected})
    yield _build_event("game.voided", 20, {"game_id": f"{name}-3", "reason": "a friendly"})
    yield _build_game(name, 9, 22, "eve", "anna", "cleo")


def _build_game(name: str, number: int, day: int, *players: str) -> Event:
    return _build_event("game.recorded", day, {"game_id": f"{name}-{number}", **GAMES[name](players)})


def _build_event(type_name: str, day: int, data: dict[str, Any]) -> Event:
    return {"type": type_name, "occurred_at": f"2010-03-{day:02d}T12:00:00Z", "data": data}


def _record_events(url: str, events: Iterable[Event]) -> int | None:
    """Record events by mira and return the position of the last one."""
    result = record_lines(url, "".join(json.dumps(event) + "\n" for event in events), by="mira")
    assert not result.rejected, result.rejected
    return result.head and result.head.position
