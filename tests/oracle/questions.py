"""Questions about a ladder, and answers. The three axes are simple here: `known_at` drops the events after a position,
`as_of` drops what happened after an instant, and `rules` replaces the timeline by one version.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from oracle.times import find_last_instant


class Question(NamedTuple):
    """A ladder at coordinates; `as_of` is a text such as 2010-03, `rules` is ID@VERSION; None means no limit."""

    ladder: str
    known_at: int
    as_of: str | None = None
    rules: str | None = None

    @property
    def upto(self) -> datetime | None:
        """The last instant that `as_of` includes."""
        return None if self.as_of is None else find_last_instant(self.as_of)


class Row(NamedTuple):
    """A row of the standings."""

    rank: int | None
    player: str
    points: Fraction
    games: int
    qualified: bool
    gold: int | None = None
    places: tuple[int, ...] | None = None


class Answer(NamedTuple):
    """The standings of a ladder: the version that names them, the number of counted games, and the rows."""

    ruleset: str
    games: int
    rows: list[Row]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the rows in the form of the contract: exact numbers as strings, gold and places only if they exist."""
        rows = [
            row._asdict() | {"points": str(row.points), "places": None if row.places is None else list(row.places)}
            for row in self.rows
        ]
        return [
            {name: value for name, value in row.items() if name not in ("gold", "places") or value is not None}
            for row in rows
        ]

    @property
    def digest(self) -> str:
        """The hash of the ruleset and the rows."""
        content = {"ruleset": self.ruleset, "rows": self.to_json()}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def compute_ranks(points: dict[str, Fraction], qualified: Iterable[str], best: int = 1) -> dict[str, int]:
    """Return the ranks of qualified players, shared by ties; with `best` -1, the fewest points are the best."""
    ranked = {player: points[player] * best for player in qualified}
    return {
        player: 1 + sum(other_points > own_points for other_points in ranked.values())
        for player, own_points in ranked.items()
    }


def sort_rows(rows: Iterable[Row], best: int = 1) -> list[Row]:
    """Sort rows by points, then by id, with all qualified players before the others."""
    return sorted(rows, key=lambda row: (not row.qualified, -row.points * best, row.player))
