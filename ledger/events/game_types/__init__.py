"""Define the game types, the values of the member `kind` of a game.

To add one, write a module with the models, `check`, `places` and `generate`, and add it to `GAME_TYPES`.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.game_types import b5, battle, diplomacy, placing
from ratings_ledger.ledger.events.games import Game, Seats


class GameType(NamedTuple):
    """A game type.

    model          the pydantic model of the game's data
    check          raises `Refused` if the data is not consistent
    places         competition places (1, 2, 2, 4) of a checked game, in the order of its participants; 0 if it has none
    generate       generates the type-specific data of a random game for these seats, to test rules
    columns        the names and descriptions of the numbers that participants of this type have in addition to those of
                   every type
    column_values  the values of `columns` for a checked game: one list per column, in the order of the participants
    seats          the least and the greatest number of seats of a random game
    has_places     whether its games have places, so that predictions can be scored
    team_fields    members that are equal for all players of a team, in addition to the place
    """

    model: type[Game]
    check: Callable[[dict[str, Any]], None]
    places: Callable[[dict[str, Any]], list[int]]
    generate: Callable[[Seats, Random], dict[str, Any]]
    columns: Mapping[str, str] = MappingProxyType({})
    column_values: Callable[[dict[str, Any]], Sequence[Sequence[int]]] = lambda game: ()
    seats: tuple[int, int] = (2, 10_000)
    has_places: bool = True
    team_fields: tuple[str, ...] = ()


GAME_TYPES = {
    "placing": GameType(placing.PlacingGame, placing.check, placing.places, placing.generate, team_fields=("score",)),
    "b5": GameType(
        b5.B5Game,
        b5.check,
        b5.places,
        b5.generate,
        columns=b5.COLUMNS,
        column_values=b5.column_values,
        seats=(b5.PLAYERS_MIN, 10_000),
    ),
    "battle": GameType(
        battle.BattleGame,
        battle.check,
        battle.places,
        battle.generate,
        columns=battle.COLUMNS,
        column_values=battle.column_values,
        has_places=False,
        team_fields=("side",),
    ),
    "diplomacy": GameType(
        diplomacy.DiplomacyGame,
        diplomacy.check,
        diplomacy.places,
        diplomacy.generate,
        columns=diplomacy.COLUMNS,
        column_values=diplomacy.column_values,
        seats=(len(diplomacy.POWERS), len(diplomacy.POWERS)),
    ),
}


def has_partners(game: dict[str, Any]) -> bool:
    """Tell whether players of a game may be partners, that is, whether any participant has a team."""
    return "team" in set().union(*game["participants"])


def places(game: dict[str, Any]) -> list[int]:
    """Return the competition places of a checked game of any type, in the order of its participants."""
    return GAME_TYPES[game.get("kind", "placing")].places(game)


def column_values(game: dict[str, Any]) -> dict[str, Sequence[int]]:
    """Return the type-specific numbers of a checked game: by column name, a list in the order of its participants."""
    game_type = GAME_TYPES[game.get("kind", "placing")]
    return dict(zip(game_type.columns, game_type.column_values(game), strict=True))
