"""The game types. A new one is a module with its models, `check`, `places` and `draw`, plus a line in `GAME_TYPES`."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.game_types import b5, battle, diplomacy, placing
from ratings_ledger.ledger.events.games import Game, Seats


class GameType(NamedTuple):
    """A game type.

    model:   the members of such a game
    check:   a function that raises `Refused` unless they are consistent
    places:  competition places (1, 2, 2, 4) of a checked game, in the order of its participants; 0 if the type has none
    draw:    (seats, chance) -> the members of a randomly drawn game besides those of `Game`, for trying out a rule
    columns: the names and descriptions of the numbers that participants have besides those of every type
    numbers: these numbers for a checked game: for each column a list in the order of the participants
    seats:   the least and the greatest number of seats of a randomly drawn game
    placed:  whether its games have places, by which predictions can be measured
    of_side: the members that the participants of a team share, besides their place
    """

    model: type[Game]
    check: Callable[[dict[str, Any]], None]
    places: Callable[[dict[str, Any]], list[int]]
    draw: Callable[[Seats, Random], dict[str, Any]]
    columns: Mapping[str, str] = MappingProxyType({})
    numbers: Callable[[dict[str, Any]], Sequence[Sequence[int]]] = lambda game: ()
    seats: tuple[int, int] = (2, 10_000)
    placed: bool = True
    of_side: tuple[str, ...] = ()


GAME_TYPES = {
    "placing": GameType(placing.PlacingGame, placing.check, placing.places, placing.draw, of_side=("score",)),
    "b5": GameType(
        b5.B5Game, b5.check, b5.places, b5.draw, columns=b5.COLUMNS, numbers=b5.numbers, seats=(b5.PLAYERS_MIN, 10_000)
    ),
    "battle": GameType(
        battle.BattleGame,
        battle.check,
        battle.places,
        battle.draw,
        columns=battle.COLUMNS,
        numbers=battle.numbers,
        placed=False,
        of_side=("side",),
    ),
    "diplomacy": GameType(
        diplomacy.DiplomacyGame,
        diplomacy.check,
        diplomacy.places,
        diplomacy.draw,
        columns=diplomacy.COLUMNS,
        numbers=diplomacy.numbers,
        seats=(len(diplomacy.POWERS), len(diplomacy.POWERS)),
    ),
}


def has_partners(game: dict[str, Any]) -> bool:
    """Tell whether players of a game may be partners on one side."""
    return "team" in set().union(*game["participants"])


def places(game: dict[str, Any]) -> list[int]:
    """Return the competition places of a checked game of any type, in the order of its participants."""
    return GAME_TYPES[game.get("kind", "placing")].places(game)


def numbers(game: dict[str, Any]) -> dict[str, Sequence[int]]:
    """Return the numbers that a game's type gives to its participants, by column. The game is checked."""
    kind = GAME_TYPES[game.get("kind", "placing")]
    return dict(zip(kind.columns, kind.numbers(game), strict=True))
