"""Compare two states of a ladder: whose points, rank or gold differ, and how far that reaches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from math import gcd
from typing import Any, ClassVar, NamedTuple, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RulesetUnusable, Unknown
from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.diff.predictions import Predicted, Quality
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.lists.contract import RankedColumns, RankedRow
from ratings_ledger.projections.queries.coordinates import (
    Coordinates,
    CoordinateSpec,
    Note,
    load_times,
    ruleset_ids,
)
from ratings_ledger.projections.queries.ladders_at import LadderCache, Ladders, Ranking, check_version, suggest_ladder
from ratings_ledger.projections.queries.published import as_published, compared_at
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, SPREAD, Absent, Answer, Result, RowSequence
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure
from ratings_ledger.projections.replay.trace import Trace


@dataclass(frozen=True, slots=True)
class Effect(Result):
    """What a player has on a ladder before and after something, None where they are not on it; ranks and gold, too.

    `kind` is moved, added or removed. Somebody who joins or leaves has no `change`.
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
        """Return the change of somebody who stays on the ladder; 0 for who joins or leaves."""
        return self.change or ExactNumber(0)

    @property
    def difference(self) -> Fraction:
        """Return the points after minus those before; somebody not on the ladder has 0."""
        if self.change is not None:
            return self.change
        return (self.after or ExactNumber(0)) - (self.before or ExactNumber(0))


@dataclass(frozen=True, slots=True)
class DifferingRow(Effect):
    """The same as a row of one ladder."""

    kind: str
    ladder: str = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Gain(Result):
    """By how much the points of a player change."""

    player: str
    change: Fraction


@dataclass(frozen=True, slots=True)
class ImpactSummary(Result):
    """The size of the impact on a ladder: players whose points differ, players whose rank does, the largest gain and
    loss, how many pairs of players swap order, and who enters and leaves the top ten. `up` and `down` only consider
    those who stay on it.
    """

    ladder: str
    players: int
    ranks: int
    up: Gain | None
    down: Gain | None
    swapped: int
    entering: tuple[str, ...]
    leaving: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DifferingList(Result):
    """A published list that would come out differently today: its ladder, its `as_of`, its position in the log.

    `already` is whether it differed from what was published before this change, too.
    """

    ladder: str
    as_of: datetime | None
    position: int
    already: bool


@dataclass(frozen=True, slots=True)
class ComparedSide(Result):
    """Where on the axes one of two sides is, and which version ranks it; of a published list also its position.

    Nothing is known of a list that was not published.
    """

    at: Coordinates | Absent = ABSENT
    ruleset: str | Absent | None = ABSENT
    published: int | Absent = ABSENT

    def told(self, minute: Callable[[int], str]) -> str:
        """Return where the side is, in words; `minute` writes an instant."""
        at = self.at
        if at is ABSENT:
            return "not published"
        published = "" if self.published is ABSENT else f"published at position {self.published}, "
        played = "" if at.as_of is None else f", played up to {minute(at.as_of)}"
        rules = f", all games by {at.rules}" if at.rules else ""
        under = "" if rules or self.ruleset is ABSENT else f", under {self.ruleset or 'no ruleset'}"
        return f"{published}known at position {at.known_at}{played}{rules}{under}"


@dataclass(frozen=True, slots=True)
class Difference(RowSequence[DifferingRow]):
    """A ladder at two coordinates: the rows that differ, largest gain first, and how far that reaches.

    `quality`, where it was asked for, is how well the points at A, `before`, and those at B predicted places.
    """

    ladder: str
    a: ComparedSide
    b: ComparedSide
    rows: tuple[DifferingRow, ...]
    radius: ImpactSummary = field(metadata=SPREAD)
    quality: Predicted | Absent = field(default=ABSENT, kw_only=True)


@dataclass(frozen=True, slots=True)
class Differences(Answer, RowSequence[Difference]):
    """The ladders that were asked for, or all that differ; `failed` tells which cannot be replayed, and why.

    `asked` are both coordinates as they were asked for.
    """

    _rows_member: ClassVar[str] = "ladders"
    ladders: tuple[Difference, ...]
    asked: tuple[str, str] = field(default=("", ""), metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


E = TypeVar("E", bound=Effect)
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
        return ExactNumber(self.numerator, self.denominator)


class RankedState(NamedTuple):
    """A ladder at coordinates: its standings, and the facts that say who is who. Without standings nobody is on it."""

    facts: Facts
    ranking: Ranking | None

    def had(self) -> dict[str, RankedPoints]:
        """Return the points and rank of every player."""
        return {} if self.ranking is None else points_of_rows(self.ranking.rows, self.ranking.scale)


def points_of_rows(rows: Iterable[RankedRow], scale: int) -> dict[str, RankedPoints]:
    """Return the points and rank of the player in every row."""
    ranked = {}
    for rank, player, points, _, _, divisor, gold, *_ in rows:
        common = gcd(points, scale * divisor)
        ranked[player] = RankedPoints(points // common, scale * divisor // common, rank, gold)
    return ranked


@dataclass
class ReplayedLadder:
    """A ladder of a snapshot, replayed once for all questions about it; without a stream nobody is on it.

    Without `keep` only the end is asked for, so that the points before games may be left out.
    """

    ladders: Ladders
    stream: Stream | None
    keep: bool = True

    @cached_property
    def _trace(self) -> Trace | None:
        stream = self.stream
        return None if stream is None else replay(stream, keep=self.keep or not stream.ranking.running)

    @property
    def facts(self) -> Facts:
        """Return the facts about those who are on the ladder."""
        return (self.ladders if self.stream is None else self.ladders.for_ladder(self.stream.ladder)).facts

    def at(self, as_of: int | None = None) -> RankedState:
        """Return the ladder at the end, or at an earlier time. Raises `RuleFailure`."""
        ranking = None if self._trace is None else self.ladders.rank_at(self._trace, as_of)
        return RankedState(self.facts, ranking)


def under_present_ids(old: Mapping[str, T], new: Mapping[str, T], before: Facts, after: Facts) -> dict[str, T]:
    """Move entries to the ids that the same people have in `new`, after renames or withdrawn renames."""
    renamed = dict(old)
    if not (before.renamed or after.renamed):
        return renamed
    departed, arrived = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    since = [(was, after.current(was)) for was in departed if after.current(was) in new]
    for was, now in since + [(before.current(now), now) for now in arrived if before.current(now) in departed]:
        if was in renamed and now not in renamed:
            renamed[now] = renamed.pop(was)
    return renamed


# a published list, a computed one, or None where nothing was published
Meant = PublishedList | Coordinates | None


class Side(NamedTuple):
    """One of two sides: where it is, and the ladder there."""

    told: ComparedSide
    state: RankedState


class Sides:
    """The ladders at any coordinates asked for; the log is decoded once per position."""

    def __init__(self, connection: Connection, note: Note, cache: LadderCache) -> None:
        self.connection = connection
        self.note = note
        self._cache = cache
        self._known: dict[tuple[int, str | None], Ladders] = {}

    def ladders(self, at: Coordinates) -> Ladders:
        """Return the ladders at coordinates."""
        key = at.known_at, at.rules
        if key not in self._known:
            self._known[key] = self._cache.load_checked(self.connection, *key)
        return self._known[key].at(at.as_of)

    def facts(self, position: int) -> Facts:
        """Return the facts known at a position."""
        return self.ladders(Coordinates(None, position, None)).facts

    @property
    def latest(self) -> Facts:
        """Return the facts asked for so far that know most."""
        return max((ladders.facts for ladders in self._known.values()), key=lambda facts: facts.position)

    @property
    def left_out(self) -> dict[int, str]:
        """Return the events that do not count at some of the coordinates, by position, with the reason."""
        return {position: why for ladders in self._known.values() for position, why in ladders.facts.left_out.items()}

    def resolve(self, spec: CoordinateSpec, ladder: str, is_named: bool = True) -> Coordinates:
        """Return what coordinates mean for a ladder: one that is named, or one of all. Raises `BadArgument`."""
        return (spec.resolve if is_named else spec.resolve_among)(self.connection, ladder, self.note)

    def computed(self, ladder: str, at: Coordinates) -> Side:
        """Return a ladder at coordinates; it is empty if its ruleset was not in force there.

        Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
        """
        facts, ruleset_id = self.facts(at.known_at), parse_name(ladder).ruleset_id
        if ruleset_id not in facts.rulesets and ruleset_id not in facts.unusable:
            return Side(ComparedSide(at.of(facts), None), RankedState(facts, None))
        # published lists for many times are prefixes of one replay
        ladders = self.ladders(at._replace(as_of=None)).for_ladder(ladder)
        ranking = ladders.rank_at(ladders.trace(ladder), at.as_of)
        return Side(ComparedSide(at.of(facts), ranking.ruleset), RankedState(ladders.facts, ranking))

    def compared_at(self, published: PublishedList) -> int | None:
        """Return the time up to which a published list is compared with what would come out today."""
        ruleset_id = parse_name(published.ladder).ruleset_id
        versions = self.facts(published.known_at).rulesets.get(ruleset_id) or self.latest.rulesets.get(ruleset_id)
        # without its rule here nothing comes out today
        return published.as_of if versions is None else compared_at(published, versions[0].ruleset)

    def published(self, published: PublishedList) -> Side:
        """Return a list as it was published."""
        place = ComparedSide(
            Coordinates(published.as_of, published.known_at, None), published.ruleset, published.position
        )
        ladders = self.ladders(Coordinates(None, published.known_at, None)).for_ladder(published.ladder)
        return Side(place, RankedState(ladders.facts, as_published(self.connection, published)))

    def side(self, ladder: str, what: Meant) -> Side:
        """Return a ladder as one of both sides means it. Raises as `computed` does."""
        if what is None:
            return Side(ComparedSide(), RankedState(self.facts(0), None))
        return self.published(what) if isinstance(what, PublishedList) else self.computed(ladder, what)

    def quality(self, ladder: str, what: Meant) -> Quality | None:
        """Return how well the points of a side predicted places; None of what was published, and where no rule
        predicts.

        Raises as `computed` does.
        """
        if not isinstance(what, Coordinates) or parse_name(ladder).ruleset_id not in self.facts(what.known_at).rulesets:
            return None
        from ratings_ledger.projections.diff.predictions import quality

        ladders = self.ladders(what)
        return quality(ladders.facts, ladders.load_stream(ladder))


def compared(
    sides: Sides, a: CoordinateSpec, b: CoordinateSpec, ladders: Collection[str], predictions: bool = False
) -> Differences:
    """Return how the named ladders differ, or all that do; those that cannot be replayed are told in `failed`.

    With `predictions` each has how well its points predicted places at both.

    Raises `BadArgument`, `Unknown` if nothing is published that is asked for, `RulesetUnusable` for a named ladder.
    """
    differences, failures = list[Difference](), list[RuleFailure | RulesetUnusable]()
    for name, *both in _pairs(sides, a, b, ladders):
        try:
            left, right = (sides.side(name, what) for what in both)
            predicted = Predicted(*(sides.quality(name, what) for what in both)) if predictions else ABSENT
        except (RuleFailure, RulesetUnusable) as problem:
            if ladders and isinstance(problem, RulesetUnusable):
                raise
            failures.append(problem)
            continue
        rows, reach = compare(DifferingRow, name, left.state, right.state)
        if rows or ladders or a.published or b.published:
            differences.append(Difference(name, left.told, right.told, tuple(rows), reach, quality=predicted))
        is_empty = not any(side.state.ranking and side.state.ranking.rows for side in (left, right))
        if ladders and is_empty and (message := suggest_ladder(right.state.facts, name)):
            sides.note(message)
    failed = dict.fromkeys(
        describe_failure(problem, sides.latest, sides.connection) if isinstance(problem, RuleFailure) else str(problem)
        for problem in failures
    )
    return Differences(
        tuple(differences), asked=(a.text, b.text), failed=(*failed,), times=load_times(sides.connection)
    )


def _pairs(
    sides: Sides, a: CoordinateSpec, b: CoordinateSpec, ladders: Collection[str]
) -> Iterator[tuple[str, Meant, Meant]]:
    """Yield what to compare: (ladder, at A, at B).

    Raises `BadArgument`, `Unknown`, `UnknownLadder` or `RulesetUnusable` if a requested version is not published.
    """
    for spec in () if ladders else (a, b):
        if spec.rules is not None:
            at = sides.resolve(spec, spec.rules.partition("@")[0])
            check_version(sides.facts(at.known_at), spec.rules)
    if a.published or b.published:
        yield from _published_pairs(sides, a, b, ladders)
        return
    for name in ladders:
        yield name, sides.resolve(a, name), sides.resolve(b, name)
    for ruleset_id in () if ladders else sorted(ruleset_ids(sides.connection)):
        places = [sides.resolve(spec, ruleset_id, is_named=False) for spec in (a, b)]
        names: set[str] = set()
        for ladders_there in map(sides.ladders, places):
            if ruleset_id in ladders_there.facts.rulesets.keys() - ladders_there.facts.unusable.keys():
                names |= ladders_there.streams(ruleset_id).keys()
        for name in sorted(names):
            yield name, places[0], places[1]


def _published_pairs(
    sides: Sides, a: CoordinateSpec, b: CoordinateSpec, ladders: Collection[str]
) -> Iterator[tuple[str, Meant, Meant]]:
    """Yield published lists beside what is computed for the same time, or what was published for it later."""
    names: list[str | None] = [*ladders] or [None]
    listed = [
        {published.of: published for name in names for published in spec.lists(sides.connection, sides.note, name)}
        for spec in (a, b)
        if spec.published
    ]
    keys = sorted({key for lists in listed for key in lists}, key=lambda key: (key[0], key[1] or 2**63))
    if missing := [name for name in ladders if name not in {ladder for ladder, _ in keys}]:
        raise Unknown(None, f"{missing[0]} was not published; see: ratings publish --help")
    if not keys:
        raise Unknown(None, "no list was published; see: ratings publish --help")
    for key in keys:
        if len(listed) == 2:
            yield key[0], listed[0].get(key), listed[1].get(key)
            continue
        published, spec = listed[0][key], b if a.published else a
        at = sides.resolve(spec, key[0], is_named=bool(ladders))
        if spec.as_of is None:
            at = at._replace(as_of=sides.compared_at(published))
        yield (key[0], published, at) if a.published else (key[0], at, published)


# how many of the first places are the top
TOP = 10


def compare(
    kind: type[E], ladder: str, old: RankedState, new: RankedState, ranks: bool = True
) -> tuple[list[E], ImpactSummary]:
    """Return the players for whom something differs, or without `ranks` their points, largest gain first; how far it
    reaches.

    The facts say who is who: a new id alone is not a difference. Two players becoming one person is. Nobody is on a
    ladder that is None.
    """
    was, now, moved, pairs = _beside(old, new, ranks)
    aligned = under_present_ids(was, now, old.facts, new.facts)
    differing = [
        (player, earlier, later)
        for player in aligned.keys() | now.keys()
        if (earlier := aligned.get(player)) != (later := now.get(player))
    ]
    effects = [
        _effect(kind, ladder, player, earlier, later)
        for player, earlier, later in differing
        if ranks or earlier is None or later is None or earlier[:2] != later[:2]
    ]
    effects.sort(key=_largest_first)
    gains = [Gain(effect.player, effect.change) for effect in effects if effect.change]
    least = gains[-1].change if gains else ExactNumber(0)
    return effects, ImpactSummary(
        ladder,
        sum(effect.change is None or bool(effect.change) for effect in effects),
        moved + sum((earlier and earlier.rank) != (later and later.rank) for _, earlier, later in differing),
        gains[0] if gains and gains[0].change > 0 else None,
        next(gain for gain in gains if gain.change == least) if least < 0 else None,
        pairs,
        tuple(sorted(_top(now) - _top(was))),
        tuple(sorted(_top(was) - _top(now))),
    )


def _largest_first(effect: Effect) -> tuple[float, Fraction, str]:
    """Return the sort key of an effect; its first number, a float, decides most comparisons quickly."""
    lost = Fraction.__neg__(effect.difference)  # a plain fraction suffices for sorting
    return float(lost), lost, effect.player


Beside = tuple[dict[str, RankedPoints], dict[str, RankedPoints], int, int]


def _beside(before: RankedState, after: RankedState, ranks: bool) -> Beside:
    """Return what everybody has in both states or, of long ladders, those who come, go, differ in points or `ranks`, or
    enter or leave the first places; how many of the others have another rank, and how many pairs swap order.
    """
    old, new = before.ranking, after.ranking
    if (
        old
        and isinstance(old.rows, RankedColumns)
        and new
        and isinstance(new.rows, RankedColumns)
        and old.scale == new.scale
    ):
        return _columns_beside(old.rows, new.rows, old.scale, ranks)
    was, now = before.had(), after.had()
    return was, now, 0, swapped(was, now)


def _columns_beside(old: RankedColumns, new: RankedColumns, scale: int, ranks: bool) -> Beside:
    numbers = dict(zip(new.names, range(len(new.names)), strict=True))
    new_indices = np.array([*map(numbers.get, old.names, repeat(NONE))])
    # indices of the players who are in both states
    here = np.flatnonzero(new_indices != NONE)
    new_indices = new_indices[here]
    rank, rank_then = old.ranks[here], new.ranks[new_indices]
    moved, ranked = rank != rank_then, (rank > 0) & (rank_then > 0)
    first = ((rank > 0) & (rank <= TOP)) | ((rank_then > 0) & (rank_then <= TOP))
    differs = (old.points[here] != new.points[new_indices]) | (moved & (first | ranks))
    departed, arrived = (np.delete(np.arange(len(rows)), both) for rows, both in ((old, here), (new, new_indices)))
    was, now = old.of(np.append(here[differs], departed)), new.of(np.append(new_indices[differs], arrived))
    pairs = _swapped(rank[ranked], rank_then[ranked])
    return points_of_rows(was, scale), points_of_rows(now, scale), int((moved & ~differs).sum()), pairs


def _inversions(numbers: Any) -> int:
    """Return how many pairs of numbers of a column, not below 0, descend."""
    inversions = 0
    # numbers with the same higher bits are side by side: those that differ in this bit are in order or not
    for bit in reversed(range(int(numbers.max(initial=0)).bit_length())):
        bits = numbers >> bit & 1
        before = np.cumsum(bits) - bits
        begins = np.diff(numbers >> bit + 1, prepend=-1) != 0
        inversions += int((before - np.maximum.accumulate(before * begins))[bits == 0].sum())
        numbers = np.concatenate([numbers[bits == 0], numbers[bits == 1]])
    return inversions


def _effect(kind: type[E], ladder: str, player: str, old: RankedPoints | None, new: RankedPoints | None) -> E:
    rank, gold = (old and old.rank, new and new.rank), (old and old.gold, new and new.gold)
    if old is None or new is None:
        what = "added" if old is None else "removed"
        return kind(what, ladder, player, old and old.points, None, new and new.points, rank, gold)
    gained = new.numerator * old.denominator - old.numerator * new.denominator
    gain = ExactNumber(gained, old.denominator * new.denominator)  # several times as fast as a difference of fractions
    return kind("moved", ladder, player, old.points, gain, new.points, rank, gold)


def _top(rows: Mapping[str, RankedPoints]) -> set[str]:
    return {player for player, row in rows.items() if row.rank is not None and row.rank <= TOP}


def swapped(old: Mapping[str, RankedPoints], new: Mapping[str, RankedPoints]) -> int:
    """Return how many pairs of players ranked in both swap order: one is ahead in `old`, the other in `new`.

    Players who share a rank in either are not swapped.
    """
    both = [(old[player].rank or 0, new[player].rank or 0) for player in old.keys() & new.keys()]
    return _swapped(*np.array([ranks for ranks in both if all(ranks)], dtype=np.int64).reshape(-1, 2).T)


def _swapped(old: Any, new: Any) -> int:
    """Count the pairs that swap order between two columns of ranks."""
    return _inversions(new[np.lexsort((new, old))])  # those who were equal ascend, and do not count against each other
