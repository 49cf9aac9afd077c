"""List the columns that rules can read for each game type, and derive the columns that only ratings need."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.game_types import GAME_TYPES, column_values
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.projections.contract import NUMBERS

SCORES = frozenset({"score", "side_score"})

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
_DERIVED: dict[str, dict[str, tuple[str, Callable[[Columns], list[int]]]]] = {
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
    name: {**game_type.columns, **{column: meaning for column, (meaning, _) in _DERIVED.get(name, {}).items()}}
    for name, game_type in GAME_TYPES.items()
}


def derive_numbers(game: dict[str, Any]) -> dict[str, Sequence[int]]:
    """Return the numbers of a validated game that are specific to its type, by column."""
    own = column_values(game)
    derived = _DERIVED.get(game.get("kind", "placing"), {})
    return {**own, **{column: derive(own) for column, (_, derive) in derived.items()}}


class Reading(NamedTuple):
    """The columns that a ruleset's rule reads, and their units; equal for rulesets that read the same numbers.

    score_unit: the number of units in a point of the score
    score_sign: 1, or -1 if the lowest score is best
    absent:     (column, number) pairs: the number to use if a game has no such custom number
    zone:       the time zone in which the rule reads the year of a game
    """

    columns: tuple[str, ...]
    score_unit: int = 1
    score_sign: int = 1
    absent: tuple[tuple[str, int], ...] = ()
    zone: str = "UTC"


def find_reading(columns: tuple[str, ...], ruleset: Ruleset) -> Reading:
    """Return the reading of a ruleset whose rule reads these columns."""
    reads_scores = not SCORES.isdisjoint(columns)
    absent = (
        (f"{NUMBERS}{name}", limits.absent)
        for name, limits in sorted(ruleset.numbers.items())
        if isinstance(limits.absent, int) and f"{NUMBERS}{name}" in columns
    )
    return Reading(
        columns,
        10**ruleset.score_decimals if reads_scores else 1,
        -1 if reads_scores and ruleset.score_order == "low" else 1,
        tuple(absent),
        ruleset.time_zone if "year" in columns else "UTC",
    )
