"""What was decided between two positions of the log, and what each decision did to everybody's points.

The log is walked from decision to decision; each accounts for the difference between the ladders before and after it,
and the games recorded in between for the rest. So a player's amounts sum exactly to the difference between their points
at both ends, as those of `projections.diff.attribution` do for one player.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import partial
from itertools import groupby

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.store.exports import place_at
from ratings_ledger.ledger.store.log import (
    Log,
    known_events,
    read_records,
    recorded_at,
)
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.projections.diff.affected import (
    affected_by,
    affected_streams,
    find_first_version,
    have_same_points,
)
from ratings_ledger.projections.diff.comparison import (
    RankedPoints,
    had,
)
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import apply_event, decode, settle_facts
from ratings_ledger.projections.queries.coordinates import Times, moment
from ratings_ledger.projections.queries.event_texts import (
    what_was_decided,
)
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import (
    FROM,
    HIDDEN,
    Answer,
    Result,
)
from ratings_ledger.projections.replay.containment import RuleFailure, told_with_game
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.rulesets.versions import Version, newest


@dataclass(frozen=True, slots=True)
class Decision(Result):
    """Events of one type that somebody recorded in a row for one reason, and since when; `did` is that in words.

    `told` is what each of them says, of the first ones of many.
    """

    type: str
    by: str
    reason: str | None
    recorded_at: datetime
    positions: tuple[int, ...]
    did: str = field(metadata=HIDDEN)
    told: tuple[str, ...] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Share(Result):
    """What a player has on a ladder at both ends, and what made the difference: by the index of a decision, or None for
    games that were recorded. `start` stands in for the points of somebody who is not on it.
    """

    ladder: str
    player: str
    start: Fraction
    before: Fraction | None
    after: Fraction | None
    rank: tuple[int | None, int | None]
    amounts: dict[int | None, Fraction]

    @property
    def change(self) -> Fraction:
        """Return the points at the end minus those at the beginning."""
        before, after = (self.start if points is None else points for points in (self.before, self.after))
        return after - before

    @property
    def is_decided(self) -> bool:
        """Tell whether a decision has a part in the difference."""
        return any(cause is not None for cause in self.amounts)


@dataclass(frozen=True, slots=True)
class Decisions(Answer):
    """What was decided between two positions, how many games were recorded besides, and the shares of everybody whose
    points differ.

    `head` is that at the later position. `failures` tells why a ladder cannot be replayed, `failed` where; `recorded`
    when the first and the last event was recorded; `left_out` which events do not count, by position, with the reason.
    """

    before: int = field(metadata=FROM)
    to: int
    head: str
    games: int
    decisions: tuple[Decision, ...]
    shares: tuple[Share, ...]
    failures: dict[str, str]
    recorded: tuple[datetime, datetime]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


# of how many events of one decision is told what they say
TOLD = 100
LogEntry = tuple[int, str, KnownEvent | None]


def decided(
    connection: Connection, before: int, after: int, times: Times, as_of: int | None = None, ladder: str | None = None
) -> Decisions:
    """Return what was decided after a position, up to another one, and what it did to all ladders, or to one as of an
    instant.

    Raises `StoreDamaged`.
    """
    facts, end = decode(connection, before, ahead=after), decode(connection, after)
    people = identities(connection, after)
    failures: dict[str, RuleFailure] = {}
    shares = _Shares(facts.snapshot(), end, failures, partial(find_first_version, connection, after), as_of, ladder)
    decisions, games = list[Decision](), 0
    for key, run in groupby(_entries(connection, before, after), _decision):
        entries, affected = list(run), set[str]()
        for position, record, event in entries:
            if event is not None:
                affected |= affected_by(facts, event.type, event.data)
            apply_event(facts, position, record)
        settle_facts(facts)
        if key is None:
            games += sum(event is not None and event.type == "game.recorded" for _, _, event in entries)
        else:
            told = tuple(
                what_was_decided(Log(connection, position - 1), event, times, people)
                for position, _, event in entries[:TOLD]
                if event is not None
            )
            positions = tuple(position for position, _, _ in entries)
            at = moment(recorded_at(connection, positions[0]))
            decisions.append(Decision(*key, at, positions, TYPES[key[0]].decided, told))
        shares.go_on(facts.snapshot(), affected, None if key is None else len(decisions) - 1)
    return Decisions(
        before,
        after,
        str(place_at(connection, after)),
        games,
        tuple(decisions),
        shares.ended(),
        {ladder: str(problem) for ladder, problem in sorted(failures.items())},
        (moment(recorded_at(connection, before + 1)), moment(recorded_at(connection, after))),
        failed=tuple(told_with_game(problem, end, connection) for problem in failures.values()),
        left_out=facts.left_out,
        times=times,
    )


def _entries(connection: Connection, before: int, after: int) -> Iterator[LogEntry]:
    for page in read_records(connection, before, after):
        for position, record in page:
            yield position, record, next(known_events([(position, record)]), None)


def _decision(entry: LogEntry) -> tuple[str, str, str | None] | None:
    """Return the type of a decision, who recorded it, and the reason; None for what is no decision."""
    _, record, event = entry
    if event is None or not TYPES[event.type].decided:
        return None
    return event.type, json.loads(record)["by"], event.data.get("reason")


class _Shares:
    """Follows everybody's points on all ladders from one step to the next."""

    def __init__(
        self,
        begin: Facts,
        end: Facts,
        failures: dict[str, RuleFailure],
        first_version: Callable[[str], Version | None],
        as_of: int | None,
        ladder: str | None,
    ) -> None:
        self._as_of, self._ladder = as_of, ladder
        self._ladders = Ladders(begin, as_of)
        self._begin_facts = begin
        self._end = end
        self._failures = failures
        self._first_version = first_version
        # for ladders that changed on the way: what everybody had at the beginning, and has now, by their last id
        self._first: dict[str, dict[str, RankedPoints]] = {}
        self._now: dict[str, dict[str, RankedPoints]] = {}
        self._start: dict[str, Fraction] = {}
        self._amounts: dict[tuple[str, str], dict[int | None, Fraction]] = {}

    def go_on(self, facts: Facts, affected: set[str], cause: int | None) -> None:
        """Attribute the difference between the ladders before and with these facts to a cause."""
        before, self._ladders = self._ladders, Ladders(facts, self._as_of)
        old, new = (affected_streams(ladders, affected) for ladders in (before, self._ladders))
        # who is who may change even if no game does
        others = self._others(before.facts) != self._others(facts)
        names = {name for name in (*old, *new) if self._ladder in (None, name)}
        for name in sorted(names - self._failures.keys()):
            if not others and have_same_points(old.get(name), new.get(name)):
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

    def _rows(self, ladders: Ladders, stream: Stream | None) -> dict[str, RankedPoints]:
        """Return what everybody has, by the id they have in the end. Raises `RuleFailure`."""
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
        """Return the ids under which somebody may appear in these facts, for those who end up with a different one or
        had one.

        Their last id comes first, as `attribution.attribute` expects.
        """
        if not (facts.renamed or self._end.renamed):
            return {}
        ids: dict[str, list[str]] = {}
        for name in sorted(self._end.players):
            ids.setdefault(self._end.current(name), []).append(name)
        found = {player: [facts.current(name) for name in [player, *own]] for player, own in ids.items()}
        return {player: names for player, names in found.items() if {*names} != {player}}

    def _points(self, ladder: str, row: RankedPoints | None) -> Fraction:
        return self._start[ladder] if row is None else row.points

    def ended(self) -> tuple[Share, ...]:
        """Return the shares of everybody who has any, on ladders that could be replayed."""
        found = []
        for (name, player), amounts in sorted(self._amounts.items()):
            if name not in self._failures:
                kept = {cause: amount for cause, amount in amounts.items() if amount}
                old, new = self._first[name].get(player), self._now[name].get(player)
                points, rank = (old and old.points, new and new.points), (old and old.rank, new and new.rank)
                found.append(Share(name, player, self._start[name], *points, rank, kept))
        return tuple(found)
