"""A ladder of a snapshot, replayed once, and what everybody has on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import gcd
from typing import NamedTuple, TypeVar

from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.replay.ladders import Stream
from ratings_ledger.projections.replay.replay import replay

T = TypeVar("T")


class RankedPoints(NamedTuple):
    """What somebody has on a ladder: exact points in lowest terms, rank, and gold if the list pays any."""

    numerator: int
    denominator: int
    rank: int | None
    gold: int | None

    @property
    def points(self) -> Fraction:
        """Return the points; made only when asked for, since most are only compared."""
        return Fraction(self.numerator, self.denominator)


class RankedState(NamedTuple):
    """A ladder at coordinates: its standings, and the facts that say who is who. Without standings nobody is on it."""

    facts: Facts
    ranking: Ranking | None

    def had(self) -> dict[str, RankedPoints]:
        """Return what everybody has, by player."""
        return {} if self.ranking is None else points_of_rows(self.ranking.rows, self.ranking.scale)


def points_of_rows(rows: Iterable[RankedRow], scale: int) -> dict[str, RankedPoints]:
    """Return what the players of some rows have."""
    found = {}
    for rank, player, points, _, _, divisor, gold, _ in rows:
        common = gcd(points, scale * divisor)
        found[player] = RankedPoints(points // common, scale * divisor // common, rank, gold)
    return found


class ReplayedLadder:
    """A ladder of a snapshot, replayed once for all questions about it; without a stream nobody is on it."""

    def __init__(self, ladders: Ladders, stream: Stream | None, keep: bool = True) -> None:
        """Replay a stream; without `keep` the points before games may be left out. Raises `RuleFailure`."""
        self.ladders = ladders
        self.stream = stream
        self._trace = None if stream is None else replay(stream, keep=keep or not stream.ranking.running)

    def at(self, as_of: int | None = None) -> RankedState:
        """Return the ladder at the end, or at an earlier time. Raises `RuleFailure`."""
        ranking = None if self._trace is None else self.ladders.ranked_at(self._trace, as_of)
        return RankedState(self.ladders.facts, ranking)


def under_present_ids(old: Mapping[str, T], new: Mapping[str, T], before: Facts, after: Facts) -> dict[str, T]:
    """Return what was known by player, under the ids the same people have in `new`: renamed since, or no longer
    renamed.
    """
    found = dict(old)
    if not (before.renamed or after.renamed):
        return found
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    since = [(was, after.current(was)) for was in gone if after.current(was) in new]
    for was, now in since + [(before.current(now), now) for now in come if before.current(now) in gone]:
        if was in found and now not in found:
            found[now] = found.pop(was)
    return found
