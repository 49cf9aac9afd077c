"""Ladders at two coordinates side by side: computed, or as they were published."""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RulesetUnusable, Unknown
from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.answers_compared import (
    ComparedSide,
    Difference,
    Differences,
    DifferingRow,
    Predicted,
    Quality,
)
from ratings_ledger.projections.queries.asked import Asked
from ratings_ledger.projections.queries.coordinates import Coordinates, Note, times_of
from ratings_ledger.projections.queries.impact import compare
from ratings_ledger.projections.queries.ladder_names import other_ladder
from ratings_ledger.projections.queries.publication import as_published, compared_at
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.queries.standings import Ladders, Ranking, check_version, ruleset_ids
from ratings_ledger.projections.replay.containment import RuleFailure, told_with_game
from ratings_ledger.projections.replay.ladders import parse_name

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
        """The facts known at a position."""
        if position not in self._facts:
            self._facts[position] = self._decode(self.connection, position)
        return self._facts[position]

    @property
    def latest(self) -> Facts:
        """The facts asked for so far that know most."""
        return self._facts[max(self._facts)]

    def ladders(self, at: Coordinates) -> Ladders:
        """The ladders at coordinates."""
        if at not in self._ladders:
            self._ladders[at] = Ladders(self.facts(at.known_at), at.as_of, at.rules)
        return self._ladders[at]

    def computed(self, ladder: str, at: Coordinates) -> Side:
        """A ladder at coordinates; nobody is on one whose ruleset was not in force there.

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
        """The time up to which a published list is compared with what would come out today."""
        ruleset_id = parse_name(one.ladder).ruleset_id
        versions = self.facts(one.known_at).rulesets.get(ruleset_id) or self.latest.rulesets.get(ruleset_id)
        # without its rule here nothing comes out today
        return one.as_of if versions is None else compared_at(one, versions[0].ruleset)

    def published(self, one: PublishedList) -> Side:
        """A list as it was published."""
        told = ComparedSide(Coordinates(one.as_of, one.known_at, None), one.ruleset, one.position)
        return Side(told, as_published(self.connection, one), self.facts(one.known_at))

    def side(self, ladder: str, what: Meant) -> Side:
        """A ladder as one of both sides means it. Raises as `computed` does."""
        if what is None:
            return Side(ComparedSide(), None, self.facts(0))
        return self.published(what) if isinstance(what, PublishedList) else self.computed(ladder, what)

    def quality(self, ladder: str, what: Meant) -> Quality | None:
        """How well the points of a side predicted places; None of what was published, and where no rule predicts.

        Raises as `computed` does.
        """
        if not isinstance(what, Coordinates) or parse_name(ladder).ruleset_id not in self.facts(what.known_at).rulesets:
            return None
        from ratings_ledger.projections.queries.predictions import quality

        ladders = self.ladders(what)
        return quality(ladders.facts, ladders.replayed_stream(ladder))


def compared(
    connection: Connection, a: Asked, b: Asked, ladders: Collection[str], note: Note,
    decode: Callable[[Connection, int], Facts], predictions: bool = False,
) -> Differences:  # fmt: skip
    """How the named ladders differ, or all that do; those that cannot be replayed are told in `failed`.

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


def _pairs(worlds: Sides, a: Asked, b: Asked, ladders: Collection[str]) -> Iterator[tuple[str, Meant, Meant]]:
    """What to compare: (ladder, at A, at B). Raises `BadArgument`, `Unknown`."""
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


def _check_versions(worlds: Sides, *several: Asked) -> None:
    """Raises `UnknownLadder`, `RulesetUnusable` if a requested version is not published."""
    for asked in several:
        if asked.rules is not None:
            at = asked.among(worlds.connection, asked.rules.partition("@")[0], worlds.note)
            check_version(worlds.facts(at.known_at), asked.rules)


def _published_pairs(
    worlds: Sides, a: Asked, b: Asked, ladders: Collection[str]
) -> Iterator[tuple[str, Meant, Meant]]:  # fmt: skip
    """Published lists beside what is computed for the same time, or what was published for it later."""
    names: list[str | None] = [*ladders] or [None]
    listed = {
        side: {
            one.of: one
            for name in names
            for one in asked.lists(worlds.connection, worlds.note, name)
        }
        for side, asked in (("a", a), ("b", b)) if asked.published
    }  # fmt: skip
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
