"""List the columns that rules can read for each game type, with the functions that derive those that no record has."""

from collections.abc import Callable, Mapping, Sequence

from ratings_ledger.ledger.events.game_types import GAME_TYPES

Columns = Mapping[str, Sequence[int]]


def _find_best_mates(columns: Columns) -> list[int]:
    """Return, by player, the most game points of another player of the same side; -1 without one."""
    pairs = list(zip(columns["side"], columns["game_points"], strict=True))
    rest_by_seat = (pairs[:seat] + pairs[seat + 1 :] for seat in range(len(pairs)))
    return [
        max((points for rest_side, points in rest if rest_side == side), default=-1)
        for (side, _), rest in zip(pairs, rest_by_seat, strict=True)
    ]


def _find_best_enemies(columns: Columns) -> list[int]:
    """Return, by player, the most game points of a player of the other side."""
    best = dict.fromkeys((0, 1), -1)
    for side, points in zip(columns["side"], columns["game_points"], strict=True):
        best[side] = max(best[side], points)
    return [best[1 - side] for side in columns["side"]]


# By game type and name: the description, and a function that derives the column from the type's own columns. All
# players of the game are included, even those who do not count on a ladder.
DERIVED_COLUMNS: dict[str, dict[str, tuple[str, Callable[[Columns], list[int]]]]] = {
    "battle": {
        "mates_best": (
            "the most game points of another player of the same side; -1 if there is none",
            _find_best_mates,
        ),
        "enemies_best": ("the most game points of a player of the other side", _find_best_enemies),
    }
}
# By game type: the names and descriptions of all its columns.
COLUMNS_OF: dict[str, dict[str, str]] = {
    name: {**game_type.columns, **{column: meaning for column, (meaning, _) in DERIVED_COLUMNS.get(name, {}).items()}}
    for name, game_type in GAME_TYPES.items()
}
