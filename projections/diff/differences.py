"""Find the differences of ladders and published lists between two sets of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RulesetUnusable, Unknown
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.projections.diff.comparison import (
    DifferingRow,
    ImpactSummary,
    RankedState,
    ReplayedLadder,
    compare_states,
)
from ratings_ledger.projections.diff.predictions import Quality, QualityPair
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.coordinates import (
    Coordinates,
    CoordinateSpec,
    Note,
    check_version,
    list_ruleset_ids,
    load_times,
)
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.ledger_names import suggest_ladder
from ratings_ledger.projections.queries.published_lists import find_comparison_time, load_published_list
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, INLINE, Absent, Answer, Result, RowSequence
from ratings_ledger.projections.queries.snapshot_reader import LadderCache
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure


@dataclass(frozen=True, slots=True)
class ComparedSide(Result):
    """One side of a comparison: its coordinates, its ruleset version and, for a published list, its position.

    All are absent for a list that was not published.
    """

    at: Coordinates | Absent = ABSENT
    ruleset: str | Absent | None = ABSENT
    published: int | Absent = ABSENT

    def describe(self, format_instant: Callable[[int], str]) -> str:
        """Describe the side in words; `format_instant` formats an instant."""
        at = self.at
        if at is ABSENT:
            return "not published"
        published = "" if self.published is ABSENT else f"published at position {self.published}, "
        played = "" if at.as_of is None else f", played up to {format_instant(at.as_of)}"
        rules = f", all games under {at.rules}" if at.rules else ""
        ruleset = "" if rules or self.ruleset is ABSENT else f", under {self.ruleset or 'no ruleset'}"
        return f"{published}known at position {at.known_at}{played}{rules}{ruleset}"


@dataclass(frozen=True, slots=True)
class Difference(RowSequence[DifferingRow]):
    """A ladder at two sets of coordinates: the rows that differ, largest gain first, and the impact summary.

    `quality`, if requested, is the quality of predictions from the points at A (`before`) and at B (`after`).
    """

    ladder: str
    a: ComparedSide
    b: ComparedSide
    rows: tuple[DifferingRow, ...]
    summary: ImpactSummary = field(metadata=INLINE)
    quality: QualityPair | Absent = field(default=ABSENT, kw_only=True)


@dataclass(frozen=True, slots=True)
class Differences(Answer, RowSequence[Difference]):
    """The requested ladders or published lists, or all ladders that differ.

    `failed` has a message for each ladder that cannot be replayed. `requested` has both sets of coordinates as the user
    wrote them.
    """

    _rows_member: ClassVar[str] = "ladders"
    ladders: tuple[Difference, ...]
    requested: tuple[str, str] = field(default=("", ""), metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


# the source of a side: a published list, the coordinates of a computed list, or None if no list was published
SideSource = PublishedList | Coordinates | None


class Side(NamedTuple):
    """One side of a comparison: its description, and the ladder's state."""

    description: ComparedSide
    state: RankedState


class SideLoader:
    """A loader of ladders at any coordinates. It decodes the log once for each position and version."""

    def __init__(self, connection: Connection, note: Note, cache: LadderCache) -> None:
        self.connection = connection
        self.note = note
        self._cache = cache
        self._loaded: dict[tuple[int, str | None], Ladders] = {}

    def ladders(self, at: Coordinates) -> Ladders:
        """Return the ladders at coordinates."""
        key = at.known_at, at.rules
        if key not in self._loaded:
            self._loaded[key] = self._cache.load_checked(self.connection, *key)
        return self._loaded[key].at(at.as_of)

    def facts(self, position: int) -> Facts:
        """Return the facts known at a position."""
        return self.ladders(Coordinates(None, position, None)).facts

    @property
    def latest_facts(self) -> Facts:
        """Return the loaded facts with the highest position."""
        return max((ladders.facts for ladders in self._loaded.values()), key=lambda facts: facts.position)

    @property
    def left_out(self) -> dict[int, str]:
        """Return the reason for each event that is ignored at any loaded coordinates, by position."""
        return {
            position: reason for ladders in self._loaded.values() for position, reason in ladders.facts.left_out.items()
        }

    def resolve(self, spec: CoordinateSpec, ladder: str, is_named: bool = True) -> Coordinates:
        """Resolve coordinates for a ladder. Raises `BadArgument`.

        If the user named the ladder (`is_named`), a version of another ruleset is an error.
        """
        return (spec.resolve if is_named else spec.resolve_among)(self.connection, ladder, self.note)

    def load_computed(self, ladder: str, at: Coordinates) -> Side:
        """Compute a ladder at coordinates; it is empty if its ruleset is not published at these coordinates.

        Raises `UnknownLadder`, `RulesetUnusable`, `RuleFailure`.
        """
        facts = self.facts(at.known_at)
        if not facts.is_published(ladder):
            return Side(ComparedSide(at.with_left_out(facts), None), RankedState(facts, None))
        # without `as_of`, one replay serves all published lists of the ladder, because each is a prefix of this replay
        ladders = self.ladders(at._replace(as_of=None)).for_ladder(ladder)
        ranking = ladders.rank_at(ladders.trace(ladder), at.as_of)
        return Side(ComparedSide(at.with_left_out(facts), ranking.ruleset), RankedState(ladders.facts, ranking))

    def find_as_of(self, published: PublishedList) -> int | None:
        """Return the `as_of` at which to recompute a published list for comparison."""
        ladder = published.ladder
        versions = self.facts(published.known_at).versions_of(ladder) or self.latest_facts.versions_of(ladder)
        # if no version is usable, the list cannot be recomputed
        return find_comparison_time(published, versions[0].ruleset) if versions else published.as_of

    def load_published(self, published: PublishedList) -> Side:
        """Load a list as it was published."""
        description = ComparedSide(
            at=Coordinates(published.as_of, published.known_at, rules=None),
            ruleset=published.ruleset,
            published=published.position,
        )
        ladders = self.ladders(Coordinates(None, published.known_at, None)).for_ladder(published.ladder)
        return Side(description, RankedState(ladders.facts, load_published_list(self.connection, published)))

    def load_side(self, ladder: str, source: SideSource) -> Side:
        """Load one side of a comparison. Raises the errors of `load_computed`."""
        if source is None:
            return Side(ComparedSide(), RankedState(self.facts(0), None))
        return self.load_published(source) if isinstance(source, PublishedList) else self.load_computed(ladder, source)

    def measure_quality(self, ladder: str, source: SideSource) -> Quality | None:
        """Return the quality of predictions from the points of a side.

        It is None for a published list, and for a rule that cannot predict. Raises the errors of `load_computed`.
        """
        if not isinstance(source, Coordinates) or not self.facts(source.known_at).versions_of(ladder):
            return None
        ladders = self.ladders(source)
        return ReplayedLadder(ladders, ladders.load_stream(ladder)).measure_quality()


def compare_ladders(
    loader: SideLoader, a: CoordinateSpec, b: CoordinateSpec, ladders: Collection[str], predictions: bool = False
) -> Differences:
    """Return the differences of the named ladders or published lists, or of all ladders that differ.

    With `predictions`, include the prediction quality of both sides. Raises `BadArgument`; `Unknown` if a requested
    list is not published; and `RulesetUnusable` if the ruleset of a named ladder is unusable.
    """
    differences, failures = list[Difference](), list[RuleFailure | RulesetUnusable]()
    for name, *sources in _pair_ladders(loader, a, b, ladders):
        try:
            left, right = (loader.load_side(name, source) for source in sources)
            qualities = (loader.measure_quality(name, source) for source in sources)
            quality = QualityPair(*qualities) if predictions else ABSENT
        except (RuleFailure, RulesetUnusable) as problem:
            if ladders and isinstance(problem, RulesetUnusable):
                raise
            failures.append(problem)
            continue
        rows, summary = compare_states(DifferingRow, name, left.state, right.state)
        if rows or ladders or a.published or b.published:
            differences.append(
                Difference(
                    ladder=name,
                    a=left.description,
                    b=right.description,
                    rows=tuple(rows),
                    summary=summary,
                    quality=quality,
                )
            )
        is_empty = not any(side.state.ranking and side.state.ranking.rows for side in (left, right))
        if ladders and is_empty and (message := suggest_ladder(right.state.facts, name)):
            loader.note(message)
    failed = dict.fromkeys(
        describe_failure(problem, loader.latest_facts, loader.connection)
        if isinstance(problem, RuleFailure)
        else str(problem)
        for problem in failures
    )
    return Differences(
        tuple(differences), requested=(a.text, b.text), failed=(*failed,), times=load_times(loader.connection)
    )


def _pair_ladders(
    loader: SideLoader, a: CoordinateSpec, b: CoordinateSpec, ladders: Collection[str]
) -> Iterator[tuple[str, SideSource, SideSource]]:
    """Yield what to compare: (ladder, source of A, source of B).

    Raises `BadArgument`, `Unknown`; and `UnknownLadder` or `RulesetUnusable` for a version that cannot be used.
    """
    for spec in () if ladders else (a, b):
        if spec.rules is not None:
            at = loader.resolve(spec, spec.rules.partition("@")[0])
            check_version(loader.facts(at.known_at), spec.rules)
    if a.published or b.published:
        yield from _pair_published_lists(loader, a, b, ladders)
        return
    for name in ladders:
        yield name, loader.resolve(a, name), loader.resolve(b, name)
    for ruleset_id in () if ladders else sorted(list_ruleset_ids(loader.connection)):
        before, after = (loader.resolve(spec, ruleset_id, is_named=False) for spec in (a, b))
        names: set[str] = set()
        for side in (loader.ladders(before), loader.ladders(after)):
            if ruleset_id in side.facts.rulesets.keys() - side.facts.unusable.keys():
                names |= side.streams(ruleset_id).keys()
        for name in sorted(names):
            yield name, before, after


def _pair_published_lists(
    loader: SideLoader, a: CoordinateSpec, b: CoordinateSpec, ladders: Collection[str]
) -> Iterator[tuple[str, SideSource, SideSource]]:
    """Yield each published list with the list on the other side for the same time, computed or published."""
    names: list[str | None] = [*ladders] or [None]
    lists_by_side = [
        {
            published.key: published
            for name in names
            for published in spec.load_lists(loader.connection, loader.note, name)
        }
        for spec in (a, b)
        if spec.published
    ]
    keys = sorted({key for lists in lists_by_side for key in lists}, key=lambda key: (key[0], key[1] or 2**63))
    if missing := [name for name in ladders if name not in {ladder for ladder, _ in keys}]:
        raise build_no_list_error(f"no list of {missing[0]} is published", a, b)
    if not keys:
        raise build_no_list_error("no list is published", a, b)
    for key in keys:
        if len(lists_by_side) == 2:
            yield key[0], lists_by_side[0].get(key), lists_by_side[1].get(key)
            continue
        published, spec = lists_by_side[0][key], b if a.published else a
        at = loader.resolve(spec, key[0], is_named=bool(ladders))
        if spec.as_of is None:
            at = at._replace(as_of=loader.find_as_of(published))
        yield (key[0], published, at) if a.published else (key[0], at, published)


def build_no_list_error(problem: str, *specs: CoordinateSpec) -> Unknown:
    """Build the error for a missing list; the message has the coordinates if these allow only some of the lists."""
    limited = [spec for spec in specs if spec.published and (spec.as_of is not None or spec.known_at is not None)]
    texts = " or ".join(dict.fromkeys(quote(spec.text) for spec in limited))
    limits = f" for {texts}" if limited else ""
    return Unknown(None, f"{problem}{limits}; to publish one, see: ratings publish --help")
