"""What can be asked about a ladder, and what is answered. The three axes are simple here: `known_at` drops the events
behind a position, `as_of` what happened after an instant, and `rules` puts one version in the place of the timeline.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from oracle.times import end_of


class Question(NamedTuple):
    """A ladder at coordinates; `as_of` as people write it, `rules` as ID@VERSION, None: no limit, the timeline."""

    ladder: str
    known_at: int
    as_of: str | None = None
    rules: str | None = None

    @property
    def upto(self) -> datetime | None:
        """The last instant that `as_of` admits."""
        return None if self.as_of is None else end_of(self.as_of)


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
    """The standings of a ladder: the version that they are named after, how many games count, the rows."""

    ruleset: str
    games: int
    rows: list[Row]

    def as_json(self) -> list[dict[str, Any]]:
        """The rows in the form of the contract: exact numbers as strings, gold and places only where there are."""
        told = [
            row._asdict() | {"points": str(row.points), "places": None if row.places is None else list(row.places)}
            for row in self.rows
        ]
        return [
            {name: value for name, value in row.items() if name not in ("gold", "places") or value is not None}
            for row in told
        ]

    @property
    def digest(self) -> str:
        """The hash of ruleset and rows."""
        content = {"ruleset": self.ruleset, "rows": self.as_json()}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def ranks(points: dict[str, Fraction], qualified: Iterable[str], best: int = 1) -> dict[str, int]:
    """The ranks of those who qualify, ties sharing one; with `best` -1 the fewest points are the best."""
    ranked = {player: points[player] * best for player in qualified}
    return {player: 1 + sum(other > mine for other in ranked.values()) for player, mine in ranked.items()}


def in_order(rows: Iterable[Row], best: int = 1) -> list[Row]:
    """Who qualifies stands by points and ties by id; the others stand behind in the same way."""
    return sorted(rows, key=lambda row: (not row.qualified, -row.points * best, row.player))
