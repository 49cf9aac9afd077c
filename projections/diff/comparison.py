"""Compare two states of a ladder: list the players who differ in points, rank or gold, and summarize the impact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from math import gcd
from typing import Any, NamedTuple, TypeVar

from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.diff.predictions import Quality, measure_quality
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.lists.contract import RankedColumns, RankedRow
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.results import HIDDEN, Result
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.replay.trace import Trace


@dataclass(frozen=True, slots=True)
class Effect(Result):
    """A player's points, rank and gold before and after a change; None where the player is not on the ladder.

    `kind` is moved, added (the player joins) or removed (the player leaves). `change` is None unless `kind` is moved.
    `rank` and `gold` are (before, after).
    """

    kind: str = field(metadata=HIDDEN)
    ladder: str
    player: str
    before: Fraction | None
    change: Fraction | None
    after: Fraction | None
    rank: tuple[int | None, int | None]
    gold: tuple[int | None, int | None]

    @property
    def gain(self) -> Fraction:
        """Return the change in points, or 0 for a player who joins or leaves."""
        return self.change or ExactNumber(0)

    @property
    def difference(self) -> Fraction:
        """Return the points after minus the points before, where a player who is not on the ladder has 0 points."""
        if self.change is not None:
            return self.change
        return (self.after or ExactNumber(0)) - (self.before or ExactNumber(0))


@dataclass(frozen=True, slots=True)
class DifferingRow(Effect):
    """An effect as a row of the difference of one ladder."""

    kind: str
    ladder: str = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class PointsChange(Result):
    """A player's change in points."""

    player: str
    change: Fraction


@dataclass(frozen=True, slots=True)
class ImpactSummary(Result):
    """The size of the impact on a ladder.

    players:   the number of players whose points differ, or who join or leave
    ranks:     the number of players whose rank differs
    up, down:  the largest gain and the largest loss, except of players who join or leave
    swapped:   the number of pairs of players whose order changes
    entering, leaving: the players who enter and leave the top ten
    """

    ladder: str
    players: int
    ranks: int
    up: PointsChange | None
    down: PointsChange | None
    swapped: int
    entering: tuple[str, ...]
    leaving: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DifferingList(Result):
    """A published list that would come out differently: its ladder, its `as_of`, and its position in the log.

    `already` tells whether it would come out differently even without this change.
    """

    ladder: str
    as_of: datetime | None
    position: int
    already: bool


E = TypeVar("E", bound=Effect)
T = TypeVar("T")


class RankedPoints(NamedTuple):
    """A player's exact points (in lowest terms), rank, and gold (None unless the list pays gold) on a ladder."""

    numerator: int
    denominator: int
    rank: int | None
    gold: int | None

    @property
    def points(self) -> Fraction:
        """Return the points as a fraction, which is built on demand, because most points are only compared."""
        return ExactNumber(self.numerator, self.denominator)


class RankedState(NamedTuple):
    """A ladder's standings, and the facts that resolve player ids. `ranking` is None for an empty ladder."""

    facts: Facts
    ranking: Ranking | None

    def index_points(self) -> dict[str, RankedPoints]:
        """Return every player's points and rank, by player."""
        return {} if self.ranking is None else index_points(self.ranking.rows, self.ranking.scale)


def index_points(rows: Iterable[RankedRow], scale: int) -> dict[str, RankedPoints]:
    """Return the points, rank and gold of every row, by player."""
    points_by_player = {}
    for rank, player, points, _, _, divisor, gold, *_ in rows:
        common = gcd(points, scale * divisor)
        points_by_player[player] = RankedPoints(points // common, scale * divisor // common, rank, gold)
    return points_by_player


@dataclass
class ReplayedLadder:
    """A ladder of a snapshot, replayed once and reused. A ladder without a stream is empty.

    Without `keep_history`, only the final standings are available, and the replay may drop the points before each game.
    """

    ladders: Ladders
    stream: Stream | None
    keep_history: bool = True

    @cached_property
    def _trace(self) -> Trace | None:
        stream = self.stream
        return None if stream is None else replay(stream, keep_history=self.keep_history or not stream.ranking.running)

    @property
    def facts(self) -> Facts:
        """Return the facts about the ladder's entrants."""
        return (self.ladders if self.stream is None else self.ladders.for_ladder(self.stream.ladder)).facts

    @property
    def can_be_replayed(self) -> bool:
        """Tell whether the rule scores all games, even if its predictions fail."""
        try:
            _ = self._trace
        except RuleFailure:
            return False
        return True

    def measure_quality(self) -> Quality | None:
        """Return the quality of predictions from the points; None for an empty ladder or a rule that cannot predict.

        Raises `RuleFailure`.
        """
        return None if self.stream is None else measure_quality(self.facts, self.stream)

    def at(self, as_of: int | None = None) -> RankedState:
        """Return the ladder's final state, or its state at an earlier time. Raises `RuleFailure`."""
        ranking = None if self._trace is None else self.ladders.rank_at(self._trace, as_of)
        return RankedState(self.facts, ranking)


def rekey_by_current_id(old: Mapping[str, T], new: Mapping[str, T], before: Facts, after: Facts) -> dict[str, T]:
    """Return `old`, in the same order, with each key replaced by the id that the same person has in `new`.

    The ids of a person differ if a rename or the withdrawal of a rename lies between the facts `before` and `after`.
    """
    if not (before.renamed or after.renamed):
        return dict(old)
    departed, arrived = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    renames = [(old_id, after.current(old_id)) for old_id in departed if after.current(old_id) in new]
    renames += [(before.current(new_id), new_id) for new_id in arrived if before.current(new_id) in departed]
    new_ids = dict[str, str]()
    for old_id, new_id in renames:
        if old_id not in new_ids and new_id not in old and new_id not in new_ids.values():
            new_ids[old_id] = new_id
    return {new_ids.get(key, key): value for key, value in old.items()}


TOP_RANKS = 10  # the number of ranks at the top whose changes are listed


def compare_states(
    effect_type: type[E], ladder: str, old: RankedState, new: RankedState, *, ranks: bool = True
) -> tuple[list[E], ImpactSummary]:
    """Return the players who differ, largest gain first, and the impact summary.

    Without `ranks`, players who differ only in rank are counted in the summary but not returned. A new id is not a
    difference, because the facts resolve ids. Merging two players is a difference.
    """
    old_points, new_points, moved_count, swapped_count = _pair_points(old, new, ranks)
    old_by_new_id = rekey_by_current_id(old_points, new_points, old.facts, new.facts)
    differing = [
        (player, earlier, later)
        for player in old_by_new_id.keys() | new_points.keys()
        if (earlier := old_by_new_id.get(player)) != (later := new_points.get(player))
    ]
    effects = [
        _build_effect(effect_type, ladder, player, old=earlier, new=later)
        for player, earlier, later in differing
        if ranks or earlier is None or later is None or earlier[:2] != later[:2]
    ]
    effects.sort(key=_build_sort_key)
    changes = [PointsChange(effect.player, effect.change) for effect in effects if effect.change]
    lowest = changes[-1].change if changes else ExactNumber(0)
    old_top, new_top = _list_top_players(old_by_new_id), _list_top_players(new_points)
    return effects, ImpactSummary(
        ladder=ladder,
        players=sum(effect.change is None or bool(effect.change) for effect in effects),
        ranks=moved_count
        + sum((earlier and earlier.rank) != (later and later.rank) for _, earlier, later in differing),
        up=changes[0] if changes and changes[0].change > 0 else None,
        down=next(change for change in changes if change.change == lowest) if lowest < 0 else None,
        swapped=swapped_count,
        entering=tuple(sorted(new_top - old_top)),
        leaving=tuple(sorted(old_top - new_top)),
    )


def _build_sort_key(effect: Effect) -> tuple[float, Fraction, str]:
    """Return a key that sorts the largest gain first. The float decides most comparisons, and is fast."""
    loss = Fraction.__neg__(effect.difference)  # a plain fraction suffices for sorting
    return float(loss), loss, effect.player


class PairedPoints(NamedTuple):
    """The points to compare in two states, by player.

    moved_count:   the number of players whose rank differs, but who are in neither `old` nor `new`
    swapped_count: the number of pairs of players, of the whole ladder, whose order differs
    """

    old: dict[str, RankedPoints]
    new: dict[str, RankedPoints]
    moved_count: int
    swapped_count: int


def _pair_points(before: RankedState, after: RankedState, ranks: bool) -> PairedPoints:
    """Return the points of each player in both states.

    For long ladders, return only players who join or leave, whose points or (with `ranks`) rank differ, or whose rank
    differs and is at the top in either state. Count all other players whose rank differs.
    """
    old, new = before.ranking, after.ranking
    if (
        old
        and isinstance(old.rows, RankedColumns)
        and new
        and isinstance(new.rows, RankedColumns)
        and old.scale == new.scale
    ):
        names = dict.fromkeys(old.rows.names), dict.fromkeys(new.rows.names)
        old_names = [*rekey_by_current_id(*names, before.facts, after.facts)]
        return _pair_columns(old.rows, new.rows, old_names, old.scale, ranks)
    old_points, new_points = before.index_points(), after.index_points()
    old_by_new_id = rekey_by_current_id(old_points, new_points, before.facts, after.facts)
    swapped_count = count_swapped(old_by_new_id, new_points)
    return PairedPoints(old_points, new_points, moved_count=0, swapped_count=swapped_count)


def _pair_columns(
    old: RankedColumns, new: RankedColumns, old_names: Sequence[str], scale: int, ranks: bool
) -> PairedPoints:
    """Pair the players of two long ladders; `old_names` has the ids in `new` of the players in `old`."""
    index_by_name = dict(zip(new.names, range(len(new.names)), strict=True))
    new_indices = np.array([*map(index_by_name.get, old_names, repeat(NONE))])
    # from here on, both arrays hold only the players who are in both states
    old_indices = np.flatnonzero(new_indices != NONE)
    new_indices = new_indices[old_indices]
    old_ranks, new_ranks = old.ranks[old_indices], new.ranks[new_indices]
    is_moved, are_ranked = old_ranks != new_ranks, (old_ranks > 0) & (new_ranks > 0)
    is_top = ((old_ranks > 0) & (old_ranks <= TOP_RANKS)) | ((new_ranks > 0) & (new_ranks <= TOP_RANKS))
    differs = (old.points[old_indices] != new.points[new_indices]) | (is_moved & (is_top | ranks))
    departed = np.delete(np.arange(len(old)), old_indices)
    arrived = np.delete(np.arange(len(new)), new_indices)
    return PairedPoints(
        index_points(old.rows_at(np.append(old_indices[differs], departed)), scale),
        index_points(new.rows_at(np.append(new_indices[differs], arrived)), scale),
        moved_count=int((is_moved & ~differs).sum()),
        swapped_count=_count_swapped_ranks(old_ranks[are_ranked], new_ranks[are_ranked]),
    )


def _count_inversions(numbers: Any) -> int:
    """Count the pairs of a column of non-negative numbers that are in descending order."""
    inversions = 0
    # a radix sort: within each run of equal higher bits, the ones before a zero are inversions
    for bit in reversed(range(int(numbers.max(initial=0)).bit_length())):
        bits = numbers >> bit & 1
        ones_before = np.cumsum(bits) - bits
        starts_run = np.diff(numbers >> bit + 1, prepend=-1) != 0
        inversions += int((ones_before - np.maximum.accumulate(ones_before * starts_run))[bits == 0].sum())
        numbers = np.concatenate([numbers[bits == 0], numbers[bits == 1]])
    return inversions


def _build_effect(
    effect_type: type[E], ladder: str, player: str, *, old: RankedPoints | None, new: RankedPoints | None
) -> E:
    rank, gold = (old and old.rank, new and new.rank), (old and old.gold, new and new.gold)
    if old is None or new is None:
        kind = "added" if old is None else "removed"
        return effect_type(kind, ladder, player, old and old.points, None, new and new.points, rank, gold)
    # several times faster than subtracting fractions
    numerator = new.numerator * old.denominator - old.numerator * new.denominator
    gain = ExactNumber(numerator, old.denominator * new.denominator)
    return effect_type("moved", ladder, player, old.points, gain, new.points, rank, gold)


def _list_top_players(rows: Mapping[str, RankedPoints]) -> set[str]:
    return {player for player, row in rows.items() if row.rank is not None and row.rank <= TOP_RANKS}


def count_swapped(old: Mapping[str, RankedPoints], new: Mapping[str, RankedPoints]) -> int:
    """Count the pairs of players, ranked in both states, of whom one is ahead in `old` and the other in `new`.

    Players who share a rank in either state are not counted.
    """
    ranks = [(old[player].rank or 0, new[player].rank or 0) for player in old.keys() & new.keys()]
    return _count_swapped_ranks(*np.array([pair for pair in ranks if all(pair)], dtype=np.int64).reshape(-1, 2).T)


def _count_swapped_ranks(old: Any, new: Any) -> int:
    """Count the pairs that swap order between two columns of ranks."""
    # ties in `old` are sorted by their ranks in `new`, so they add no inversion
    return _count_inversions(new[np.lexsort((new, old))])
