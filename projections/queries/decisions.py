"""What was decided between two positions of the log, and what each decision did to everybody's points.

The log is walked from decision to decision; each accounts for the difference between the ladders before and after it,
and the games recorded in between for the rest. So a player's amounts sum exactly to the difference between their points
at both ends, as those of `projections.queries.attribution` do for one player.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection

from ledger.events.revisions import GAME_EVENTS, KnownEvent
from ledger.events.types import Ruleset
from ledger.store.log import known_events, known_of, read_records, read_where
from projections.facts.columns import NONE, Facts
from projections.facts.decoding import apply_event, decode, settle_facts
from projections.queries.impact import Had, about, had, matter, same
from projections.queries.standings import Ladders
from projections.replay.containment import RuleFailure
from projections.replay.ladders import Stream, parse_name
from projections.rulesets.versions import Version, bind, newest

# what somebody decided; everything else is play, whose results are recorded
DECIDED = frozenset(
    {"game.corrected", "game.voided", "game.reinstated", "event.voided", "player.renamed", "player.account_changed",
     "points.adjusted", "ruleset.published"}
)  # fmt: skip


class Decision(NamedTuple):
    """Events of one type that somebody recorded in a row for one reason."""

    type: str
    by: str
    reason: str | None
    positions: list[int]


@dataclass
class Share:
    """What a player has on a ladder at both ends, and what made the difference: by the index of a decision, or None for
    games that were recorded. `start` stands in for the points of somebody who is not on it.
    """

    ladder: str
    player: str
    start: Fraction
    before: Had | None = None
    after: Had | None = None
    amounts: dict[int | None, Fraction] = field(default_factory=dict)

    @property
    def change(self) -> Fraction:
        """The points at the end minus those at the beginning."""
        ends = [self.start if one is None else one.points for one in (self.before, self.after)]
        return ends[1] - ends[0]


@dataclass
class Decided:
    """The decisions between two positions, how many games were recorded besides them, the shares of everybody whose
    points differ, and which ladders cannot be replayed.
    """

    decisions: list[Decision] = field(default_factory=list)
    games: int = 0
    shares: list[Share] = field(default_factory=list)
    failures: dict[str, RuleFailure] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)


def decided(connection: Connection, before: int, after: int) -> Decided:
    """What was decided after a position, up to another one, and what it did. Raises `StoreDamaged`."""
    found = Decided()
    facts = decode(connection, before, ahead=after)
    first_version = partial(_first_version, connection, after)
    shares = _Shares(facts.snapshot(), decode(connection, after), found.failures, first_version)
    for decision, events in _steps(connection, before, after):
        matters: set[str] = set()
        for position, record, event in events:
            # a correction may make it a game of another name
            matters |= _matters(facts, event)
            apply_event(facts, position, record)
            matters |= _matters(facts, event)
        settle_facts(facts)
        if decision is None:
            found.games += sum(event is not None and event.type == "game.recorded" for _, _, event in events)
        else:
            found.decisions.append(decision)
        shares.go_on(facts.snapshot(), matters, None if decision is None else len(found.decisions) - 1)
    found.shares, found.left_out = shares.ended(), facts.left_out
    return found


DecisionStep = list[tuple[int, str, KnownEvent | None]]


def _steps(connection: Connection, before: int, after: int) -> Iterator[tuple[Decision | None, DecisionStep]]:
    """The events in runs: those of one decision, or of none."""
    decision: Decision | None = None
    run: DecisionStep = []
    for page in read_records(connection, before, after):
        for position, record in page:
            event = next(known_events([(position, record)]), None)
            own = None if event is None or event.type not in DECIDED else _decision(event, record, position)
            if run and (own and own[:3]) != (decision and decision[:3]):
                yield decision, run
                run, decision = [], None
            if own is not None and decision is not None:
                decision.positions.append(position)
            decision = decision or own
            run.append((position, record, event))
    if run:
        yield decision, run


def _decision(event: KnownEvent, record: str, position: int) -> Decision:
    return Decision(event.type, json.loads(record)["by"], event.data.get("reason"), [position])


def _matters(facts: Facts, event: KnownEvent | None) -> set[str]:
    """What an event may matter to, as far as one can tell at the current facts."""
    if event is None:
        return set()
    slugs = set()
    if event.type == "game.recorded":
        slugs = {event.data["game"]}
    elif event.type in GAME_EVENTS and (row := facts.rows.get(event.data["game_id"], NONE)) != NONE:
        slugs = {str(facts.label("game", row))}
    return about(event.type, event.data, slugs)


def _first_version(connection: Connection, until: int, ruleset_id: str) -> Version | None:
    """The first published version of a ruleset that runs here, withdrawn or not."""
    there = read_where(connection, until=until, subject=f"ruleset:{ruleset_id}")
    published = known_of("ruleset.published", there)
    bound = (bind(Ruleset.model_validate(event.data), event.position or 0)[0] for event in published)
    return next((version for version in bound if version is not None), None)


class _Shares:
    """Follows everybody's points on all ladders from one step to the next."""

    def __init__(
        self, begin: Facts, end: Facts, failures: dict[str, RuleFailure],
        first_version: Callable[[str], Version | None],
    ) -> None:  # fmt: skip
        self._ladders = Ladders(begin)
        self._begin_facts = begin
        self._end = end
        self._failures = failures
        self._first_version = first_version
        # for ladders that changed on the way: what everybody had at the beginning, and has now, by their last id
        self._first: dict[str, dict[str, Had]] = {}
        self._now: dict[str, dict[str, Had]] = {}
        self._start: dict[str, Fraction] = {}
        self._amounts: dict[tuple[str, str], dict[int | None, Fraction]] = {}

    def go_on(self, facts: Facts, matters: set[str], cause: int | None) -> None:
        """Attribute the difference between the ladders before and with these facts to a cause."""
        before, self._ladders = self._ladders, Ladders(facts)
        old, new = _streams(before, matters), _streams(self._ladders, matters)
        # who is who may change even if no game does
        others = self._others(before.facts) != self._others(facts)
        for name in sorted((old.keys() | new.keys()) - self._failures.keys()):
            if not others and same(old.get(name), new.get(name)):
                continue
            try:
                if name not in self._now:
                    self._begin(name, before, old.get(name), new.get(name))
                was = self._now[name]
                now = self._now[name] = self._rows(self._ladders, new.get(name))
            except RuleFailure as problem:
                self._failures[name] = problem
                continue
            for player in was.keys() | now.keys():
                if amount := self._points(name, now.get(player)) - self._points(name, was.get(player)):
                    amounts = self._amounts.setdefault((name, player), {})
                    amounts[cause] = amounts.get(cause, Fraction(0)) + amount

    def _begin(self, name: str, ladders: Ladders, old: Stream | None, new: Stream | None) -> None:
        """Note what everybody had before anything changed on a ladder. Raises `RuleFailure`."""
        stream = old or new
        assert stream is not None
        # if the ruleset was not published then, its first version ever
        ruleset_id = parse_name(name).ruleset_id
        there = self._begin_facts.rulesets.get(ruleset_id)
        version = newest(there) if there else self._first_version(ruleset_id) or stream.versions[0]
        self._start[name] = Fraction(version.start, version.rule.scale)
        self._first[name] = self._now[name] = self._rows(ladders, old)

    def _rows(self, ladders: Ladders, stream: Stream | None) -> dict[str, Had]:
        """What everybody has, by the id they have in the end. Raises `RuleFailure`."""
        if stream is None:
            return {}
        rows = had(ladders.of_stream(stream).rows, stream.rule.scale)
        others = self._others(ladders.facts)
        found = {name: row for name, row in rows.items() if name not in others and self._end.current(name) == name}
        for player, names in others.items():
            if (there := next((name for name in names if name in rows), None)) is not None:
                found[player] = rows[there]
        return found

    def _others(self, facts: Facts) -> dict[str, list[str]]:
        """The ids under which somebody may appear in these facts, for those who end up with a different one or had one.

        Their last id comes first, as `attribution.attribute` expects.
        """
        if not (facts.renamed or self._end.renamed):
            return {}
        ids: dict[str, list[str]] = {}
        for name in sorted(self._end.players):
            ids.setdefault(self._end.current(name), []).append(name)
        found = {player: [facts.current(name) for name in [player, *own]] for player, own in ids.items()}
        return {player: names for player, names in found.items() if {*names} != {player}}

    def _points(self, ladder: str, row: Had | None) -> Fraction:
        return self._start[ladder] if row is None else row.points

    def ended(self) -> list[Share]:
        """The shares of everybody who has any, on ladders that could be replayed."""
        found = []
        for (name, player), amounts in sorted(self._amounts.items()):
            if name not in self._failures:
                kept = {cause: amount for cause, amount in amounts.items() if amount}
                ends = self._first[name].get(player), self._now[name].get(player)
                found.append(Share(name, player, self._start[name], *ends, kept))
        return found


def _streams(ladders: Ladders, matters: set[str]) -> dict[str, Stream]:
    """The streams of all ladders of the rulesets that may be affected."""
    facts = ladders.facts
    found: dict[str, Stream] = {}
    for ruleset_id, versions in facts.rulesets.items():
        if ruleset_id not in facts.unusable and any(matter(matters, version) for version in versions):
            found |= ladders.every(ruleset_id)
    return found
