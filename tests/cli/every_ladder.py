"""A ledger with a ladder of every kind and the same story on each, for tests of what must serve all of them.

Up to position 81 ben wins six games of anna and cleo, and anna the eighth; Anna G. wins the seventh. Since then mira
has recorded a late game, a correction, a void, a game of the newcomer eve, some adjustments, that Anna G. is anna, and
that ben is called benno now.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stores import record_lines

Event = dict[str, Any]
# the data of a game whose players are named from the first to the last
TimelineEntry = Callable[[Sequence[str]], dict[str, Any]]

KNOWN_THEN = 83
POWERS = ("Austria", "England", "France", "Germany", "Italy", "Russia", "Turkey")
CENTRES = dict(zip(POWERS, (10, 8, 6, 5, 3, 2, 0), strict=True))


def _placing(game: str, **labels: str) -> TimelineEntry:
    """Of a game with places."""
    return lambda players: {
        "game": game, **labels,
        "participants": [{"player": player, "place": place} for place, player in enumerate(players, 1)],
    }  # fmt: skip


def _battle(game: str) -> TimelineEntry:
    """Of a battle that the first wins against all others."""
    return lambda players: {
        "game": game, "kind": "battle", "league": "L1",
        "participants": [
            {"player": player, "side": "blue" if place else "red", "units": 2, "units_lost": min(place, 2),
             "kills": int(not place), "score": 60 // (place + 1)}
            for place, player in enumerate(players)
        ],
    }  # fmt: skip


def _b5(players: Sequence[str]) -> dict[str, Any]:
    participants = [
        {"player": player, "power": 20 - 3 * place, "influence": 14 - 2 * place, "vp": int(place == 1)}
        for place, player in enumerate(players)
    ]
    return {"game": "babylon5", "kind": "b5", "season": "2010-1", "participants": participants}


def _diplomacy(players: Sequence[str]) -> dict[str, Any]:
    seven = [*players, "dora", "emil", "fay", "gus"]
    participants = [{"player": player, "power": power} for player, power in zip(seven, POWERS, strict=True)]
    return {"game": "diplomacy", "kind": "diplomacy", "league": "L1", "participants": participants,
            "centres": {"1901": CENTRES}}  # fmt: skip


GAMES: dict[str, TimelineEntry] = {
    "chess": _placing("chess"), "catan": _placing("catan", group="basic", city="7"),
    "magnate": _placing("galactic-magnate"), "b5": _b5, "cartagena": _placing("cartagena", league="L1"),
    "blue-max": _battle("blue-max"), "ships": _battle("wooden-ships"), "diplomacy": _diplomacy,
}  # fmt: skip
# with what their games are called
LADDERS = {
    "elo-chess/all": "chess", "catan-elo/basic": "catan", "catan-monthly/7/basic/2010-03": "catan",
    "catan-open/basic/2010-03": "catan", "catan-annual/7/basic/2010": "catan", "galactic-points": "magnate",
    "b5-league/2010-1": "b5", "youplay-league/L1": "cartagena", "youplay-bluemax/L1": "blue-max",
    "youplay-wsim/L1": "ships", "italia-2010/L1": "diplomacy",
}  # fmt: skip
ADJUSTED = ("elo-chess/all", "catan-elo/basic", "galactic-points", "youplay-league/L1")


def every_ladder(ratings: Callable[..., Any], url: str) -> None:
    """Make it."""
    for rules in (["--for", "chess"], []):
        assert ratings("init", *rules, "--by", "mira", db=url).exit_code == 0
    assert _taken_in(url, [event for name in GAMES for event in _first(name)]) == KNOWN_THEN
    adjusted = [{"ladder": one, "player": "anna", "points": "-7", "reason": "late"} for one in ADJUSTED]
    renamed = [{"player": "Anna G.", "new_player": "anna"}, {"player": "ben", "new_player": "benno"}]
    since = [event for name in GAMES for event in _since(name)]
    since += [_event("points.adjusted", 24, one) for one in adjusted]
    _taken_in(url, since + [_event("player.renamed", 24, one) for one in renamed])


def _first(name: str) -> Iterable[Event]:
    for number in range(1, 7):
        yield _game(name, number, 2 * number, "ben", "anna", "cleo")
    yield _game(name, 7, 14, "Anna G.", "cleo", "ben")
    yield _game(name, 8, 16, "anna", "cleo", "ben")


def _since(name: str) -> Iterable[Event]:
    corrected = _game(name, 2, 4, "anna", "ben", "cleo")["data"]
    yield _game(name, 0, 1, "cleo", "anna", "ben")
    yield _event("game.corrected", 20, {"game_id": f"{name}-2", "reason": "swapped", "game": corrected})
    yield _event("game.voided", 20, {"game_id": f"{name}-3", "reason": "a friendly"})
    yield _game(name, 9, 22, "eve", "anna", "cleo")


def _game(name: str, number: int, day: int, *players: str) -> Event:
    return _event("game.recorded", day, {"game_id": f"{name}-{number}", **GAMES[name](players)})


def _event(type_name: str, day: int, data: dict[str, Any]) -> Event:
    return {"type": type_name, "occurred_at": f"2010-03-{day:02d}T12:00:00Z", "data": data}


def _taken_in(url: str, events: Iterable[Event]) -> int | None:
    """The position of the last of some events, which are recorded by mira."""
    done = record_lines(url, "".join(json.dumps(event) + "\n" for event in events), by="mira")
    assert not done.rejected, done.rejected
    return done.head and done.head.position
