"""Compare two states of a ladder: whose points, rank or gold differ, and how far that reaches."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from itertools import repeat
from math import gcd
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RulesetUnusable, Unknown
from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.diff.predictions import Predicted, Quality
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.lists.contract import RankedColumns, RankedRow
from ratings_ledger.projections.queries.coordinates import (
    Coordinates,
    CoordinateSpec,
    Note,
    ruleset_ids,
    times_of,
)
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking, check_version, other_ladder
from ratings_ledger.projections.queries.published import as_published, compared_at
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, SPREAD, Absent, Answer, Result
from ratings_ledger.projections.replay.containment import RuleFailure, told_with_game
from ratings_ledger.projections.replay.ladders import parse_name


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
    def difference(self) -> Fraction:
        """Return the points after minus those before; somebody not on the ladder has 0."""
        if self.change is not None:
            return self.change
        return (self.after or Fraction(0)) - (self.before or Fraction(0))


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
class Difference(Result):
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
class Differences(Answer):
    """The ladders that were asked for, or all that differ; `failed` tells which cannot be replayed, and why.

    `asked` are both coordinates as they were asked for.
    """

    ladders: tuple[Difference, ...]
    asked: tuple[str, str] = field(default=("", ""), metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


# a published list, a computed one, or None where nothing was published
Meant = PublishedList | Coordinates | None


class Side(NamedTuple):
    """One of two sides: where it is, the standings, None where there are none, and the facts."""

    told: ComparedSide
    found: Ranking | None
    facts: Facts


class Sides:
    """The ladders at any coordinates asked for; the log is decoded once per position."""

    def __init__(self, connection: Connection, note: Note, decode: Callable[[Connection, int], Facts]) -> None:
        self.connection = connection
        self.note = note
        self._decode = decode
        self._facts: dict[int, Facts] = {}
        self._ladders: dict[Coordinates, Ladders] = {}

    def facts(self, position: int) -> Facts:
        """Return the facts known at a position."""
        if position not in self._facts:
            self._facts[position] = self._decode(self.connection, position)
        return self._facts[position]

    @property
    def latest(self) -> Facts:
        """Return the facts asked for so far that know most."""
        return self._facts[max(self._facts)]

    def ladders(self, at: Coordinates) -> Ladders:
        """Return the ladders at coordinates."""
        if at not in self._ladders:
            self._ladders[at] = Ladders(self.facts(at.known_at), at.as_of, at.rules)
        return self._ladders[at]

    def computed(self, ladder: str, at: Coordinates) -> Side:
        """Return a ladder at coordinates; nobody is on one whose ruleset was not in force there.

        Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
        """
        facts, ruleset_id = self.facts(at.known_at), parse_name(ladder).ruleset_id
        if ruleset_id not in facts.rulesets and ruleset_id not in facts.unusable:
            return Side(ComparedSide(at.of(facts), None), None, facts)
        # published lists for many times are prefixes of one replay
        ladders = self.ladders(at._replace(as_of=None))
        found = ladders.ranked_at(ladders.trace(ladder), at.as_of)
        return Side(ComparedSide(at.of(facts), found.ruleset), found, facts)

    def compared_at(self, one: PublishedList) -> int | None:
        """Return the time up to which a published list is compared with what would come out today."""
        ruleset_id = parse_name(one.ladder).ruleset_id
        versions = self.facts(one.known_at).rulesets.get(ruleset_id) or self.latest.rulesets.get(ruleset_id)
        # without its rule here nothing comes out today
        return one.as_of if versions is None else compared_at(one, versions[0].ruleset)

    def published(self, one: PublishedList) -> Side:
        """Return a list as it was published."""
        told = ComparedSide(Coordinates(one.as_of, one.known_at, None), one.ruleset, one.position)
        return Side(told, as_published(self.connection, one), self.facts(one.known_at))

    def side(self, ladder: str, what: Meant) -> Side:
        """Return a ladder as one of both sides means it. Raises as `computed` does."""
        if what is None:
            return Side(ComparedSide(), None, self.facts(0))
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
        return quality(ladders.facts, ladders.replayed_stream(ladder))


def compared(
    connection: Connection,
    a: CoordinateSpec,
    b: CoordinateSpec,
    ladders: Collection[str],
    note: Note,
    decode: Callable[[Connection, int], Facts],
    predictions: bool = False,
) -> Differences:
    """Return how the named ladders differ, or all that do; those that cannot be replayed are told in `failed`.

    With `predictions` each has how well its points predicted places at both.

    Raises `BadArgument`, `Unknown` if nothing is published that is asked for, `RulesetUnusable` for a named ladder.
    """
    worlds, found, failures = Sides(connection, note, decode), list[Difference](), list[RuleFailure | RulesetUnusable]()
    for name, one, other in _pairs(worlds, a, b, ladders):
        try:
            left, right = worlds.side(name, one), worlds.side(name, other)
            both = Predicted(*(worlds.quality(name, what) for what in (one, other))) if predictions else ABSENT
        except (RuleFailure, RulesetUnusable) as problem:
            if ladders and isinstance(problem, RulesetUnusable):
                raise
            failures.append(problem)
            continue
        rows, reach = compare(DifferingRow, name, left.found, right.found, left.facts, right.facts)
        if rows or ladders or a.published or b.published:
            found.append(Difference(name, left.told, right.told, tuple(rows), reach, quality=both))
        if (
            ladders
            and not any(side.found and side.found.rows for side in (left, right))
            and (told := other_ladder(right.facts, name))
        ):
            note(told)
    failed = dict.fromkeys(
        told_with_game(one, worlds.latest, connection) if isinstance(one, RuleFailure) else str(one) for one in failures
    )
    return Differences(tuple(found), asked=(a.text, b.text), failed=(*failed,), times=times_of(connection))


def _pairs(
    worlds: Sides, a: CoordinateSpec, b: CoordinateSpec, ladders: Collection[str]
) -> Iterator[tuple[str, Meant, Meant]]:
    """Yield what to compare: (ladder, at A, at B). Raises `BadArgument`, `Unknown`."""
    if not ladders:
        _check_versions(worlds, a, b)
    if a.published or b.published:
        yield from _published_pairs(worlds, a, b, ladders)
        return
    if ladders:
        for name in ladders:
            yield name, a.resolve(worlds.connection, name, worlds.note), b.resolve(worlds.connection, name, worlds.note)
        return
    for ruleset_id in sorted(ruleset_ids(worlds.connection)):
        places = [asked.among(worlds.connection, ruleset_id, worlds.note) for asked in (a, b)]
        names: set[str] = set()
        for at in places:
            facts = worlds.facts(at.known_at)
            if ruleset_id in facts.rulesets.keys() - facts.unusable.keys():
                names |= worlds.ladders(at).every(ruleset_id).keys()
        for name in sorted(names):
            yield name, places[0], places[1]


def _check_versions(worlds: Sides, *several: CoordinateSpec) -> None:
    """Raises `UnknownLadder`, `RulesetUnusable` if a requested version is not published."""
    for asked in several:
        if asked.rules is not None:
            at = asked.among(worlds.connection, asked.rules.partition("@")[0], worlds.note)
            check_version(worlds.facts(at.known_at), asked.rules)


def _published_pairs(
    worlds: Sides, a: CoordinateSpec, b: CoordinateSpec, ladders: Collection[str]
) -> Iterator[tuple[str, Meant, Meant]]:
    """Published lists beside what is computed for the same time, or what was published for it later."""
    names: list[str | None] = [*ladders] or [None]
    listed = {
        side: {one.of: one for name in names for one in asked.lists(worlds.connection, worlds.note, name)}
        for side, asked in (("a", a), ("b", b))
        if asked.published
    }
    keys = sorted({key for lists in listed.values() for key in lists}, key=lambda key: (key[0], key[1] or 2**63))
    if missing := [name for name in ladders if name not in {ladder for ladder, _ in keys}]:
        raise Unknown(None, f"{missing[0]} was not published; see: ratings publish --help")
    if not keys:
        raise Unknown(None, "no list was published; see: ratings publish --help")
    for key in keys:
        sides: list[Meant] = []
        for side, asked in (("a", a), ("b", b)):
            if asked.published:
                sides.append(listed[side].get(key))
            else:
                at = (asked.resolve if ladders else asked.among)(worlds.connection, key[0], worlds.note)
                # then the other side is what was published
                (one,) = (lists[key] for lists in listed.values())
                sides.append(at._replace(as_of=worlds.compared_at(one)) if asked.as_of is None else at)
        yield key[0], sides[0], sides[1]


T = TypeVar("T")
E = TypeVar("E", bound=Effect)
# how many of the first places are the top
TOP = 10


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


def had(rows: Iterable[RankedRow], scale: int) -> dict[str, RankedPoints]:
    """Return what everybody has, by player."""
    found = {}
    for rank, player, points, _, _, divisor, gold, _ in rows:
        common = gcd(points, scale * divisor)
        found[player] = RankedPoints(points // common, scale * divisor // common, rank, gold)
    return found


def compare(
    kind: type[E],
    ladder: str,
    old: Ranking | None,
    new: Ranking | None,
    before: Facts,
    after: Facts,
    ranks: bool = True,
) -> tuple[list[E], ImpactSummary]:
    """Return the players for whom something differs, or without `ranks` their points, largest gain first; how far it
    reaches.

    The facts say who is who: a new id alone is not a difference. Two players becoming one person is. Nobody is on a
    ladder that is None.
    """
    was, now, moved, pairs = _beside(old, new, ranks)
    aligned = under_present_ids(was, now, before, after)
    differing = [
        (player, one, other)
        for player in aligned.keys() | now.keys()
        if (one := aligned.get(player)) != (other := now.get(player))
    ]
    effects = [
        _effect(kind, ladder, player, one, other)
        for player, one, other in differing
        if ranks or one is None or other is None or one[:2] != other[:2]
    ]
    effects.sort(key=_largest_first)
    gains = [Gain(effect.player, effect.change) for effect in effects if effect.change]
    least = gains[-1].change if gains else Fraction(0)
    return effects, ImpactSummary(
        ladder,
        sum(effect.change is None or bool(effect.change) for effect in effects),
        moved + sum((one and one.rank) != (other and other.rank) for _, one, other in differing),
        gains[0] if gains and gains[0].change > 0 else None,
        next(gain for gain in gains if gain.change == least) if least < 0 else None,
        pairs,
        tuple(sorted(_top(now) - _top(was))),
        tuple(sorted(_top(was) - _top(now))),
    )


def _largest_first(effect: Effect) -> tuple[float, Fraction, str]:
    """Return the place of an effect among others; the first number tells most pairs apart, and much faster."""
    lost = -effect.difference
    return float(lost), lost, effect.player


Beside = tuple[dict[str, RankedPoints], dict[str, RankedPoints], int, int]


def _beside(old: Ranking | None, new: Ranking | None, ranks: bool) -> Beside:
    """Return what everybody has in both states or, of long ladders, those who come, go, differ in points or `ranks`, or
    enter or leave the first places; how many of the others have another rank, and how many pairs swap order.
    """
    if (
        old
        and isinstance(old.rows, RankedColumns)
        and new
        and isinstance(new.rows, RankedColumns)
        and old.scale == new.scale
    ):
        return _columns_beside(old.rows, new.rows, old.scale, ranks)
    was, now = ({} if one is None else had(one.rows, one.scale) for one in (old, new))
    return was, now, 0, swapped(was, now)


def _columns_beside(old: RankedColumns, new: RankedColumns, scale: int, ranks: bool) -> Beside:
    numbers = dict(zip(new.names, range(len(new.names)), strict=True))
    there = np.array([*map(numbers.get, old.names, repeat(NONE))])
    # who is in both states, by their indices in either
    here = np.flatnonzero(there != NONE)
    there = there[here]
    rank, rank_then = old.ranks[here], new.ranks[there]
    moved, ranked = rank != rank_then, (rank > 0) & (rank_then > 0)
    first = ((rank > 0) & (rank <= TOP)) | ((rank_then > 0) & (rank_then <= TOP))
    differs = (old.points[here] != new.points[there]) | (moved & (first | ranks))
    gone, come = (np.delete(np.arange(len(rows)), both) for rows, both in ((old, here), (new, there)))
    was, now = old.of(np.append(here[differs], gone)), new.of(np.append(there[differs], come))
    in_order = np.lexsort((rank_then[ranked], rank[ranked]))
    pairs = _inversions(rank_then[ranked][in_order])
    return had(was, scale), had(now, scale), int((moved & ~differs).sum()), pairs


def _inversions(numbers: Any) -> int:
    """Return how many pairs of numbers of a column, not below 0, descend."""
    found = 0
    # numbers with the same higher bits are side by side: those that differ in this bit are in order or not
    for bit in reversed(range(int(numbers.max(initial=0)).bit_length())):
        ones = numbers >> bit & 1
        before = np.cumsum(ones) - ones
        begins = np.diff(numbers >> bit + 1, prepend=-1) != 0
        found += int((before - np.maximum.accumulate(before * begins))[ones == 0].sum())
        numbers = np.concatenate([numbers[ones == 0], numbers[ones == 1]])
    return found


def _effect(kind: type[E], ladder: str, player: str, old: RankedPoints | None, new: RankedPoints | None) -> E:
    rank, gold = (old and old.rank, new and new.rank), (old and old.gold, new and new.gold)
    if old is None or new is None:
        what = "added" if old is None else "removed"
        return kind(what, ladder, player, old and old.points, None, new and new.points, rank, gold)
    gained = new.numerator * old.denominator - old.numerator * new.denominator
    gain = Fraction(gained, old.denominator * new.denominator)  # several times as fast as a difference of fractions
    return kind("moved", ladder, player, old.points, gain, new.points, rank, gold)


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


def _top(rows: Mapping[str, RankedPoints]) -> set[str]:
    return {player for player, row in rows.items() if row.rank is not None and row.rank <= TOP}


def swapped(old: Mapping[str, RankedPoints], new: Mapping[str, RankedPoints]) -> int:
    """Return how many pairs of players ranked in both swap order: one is ahead in `old`, the other in `new`.

    Players who share a rank in either are not swapped.
    """
    ranks = sorted(
        (was, now)
        for player in old.keys() & new.keys()
        if (was := old[player].rank) is not None and (now := new[player].rank) is not None
    )
    count, seen = 0, list[int]()
    for _, now in ranks:  # those who were equal ascend, and do not count against each other
        count += len(seen) - bisect_right(seen, now)
        insort(seen, now)
    return count
