"""What was decided between two positions of the log, and what each decision did to everybody's points.

The path leads from decision to decision; each accounts for the difference between the ladders before and after it, and
the games recorded in between for the rest. So a player's amounts sum exactly to the difference between their points at
both ends, as those of `projections.diff.path` do for one player.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from itertools import groupby
from typing import ClassVar

from sqlalchemy import Connection

from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.store.exports import place_at
from ratings_ledger.ledger.store.log import Log, recorded_at
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.projections.diff.affected import (
    LogEntry,
    affected_by,
    find_first_version,
    have_same_points,
    read_entries,
    streams_beside,
)
from ratings_ledger.projections.diff.comparison import RankedPoints, ReplayedLadder
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import apply_event, decode, note_time, settle_facts
from ratings_ledger.projections.queries.coordinates import Times, moment
from ratings_ledger.projections.queries.event_texts import what_was_decided
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import FROM, HIDDEN, Answer, Result, RowSequence
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure
from ratings_ledger.projections.rulesets.versions import newest


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
class Decisions(Answer, RowSequence[Decision]):
    """What was decided between two positions, how many games were recorded besides, and the shares of everybody whose
    points differ.

    `head` is that at the later position. `failures` tells why a ladder cannot be replayed, `failed` where; `recorded`
    when the first and the last event was recorded; `left_out` which events do not count, by position, with the reason.
    """

    _rows_member: ClassVar[str] = "decisions"
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
DecisionKey = tuple[str, str, str | None]


def decided(
    connection: Connection, before: int, after: int, times: Times, as_of: int | None = None, ladder: str | None = None
) -> Decisions:
    """Return what was decided after a position, up to another one, and what it did to all ladders, or to one as of an
    instant.

    Raises `StoreDamaged`.
    """
    facts, end = decode(connection, before, ahead=after), decode(connection, after)
    path = _Path(connection, Ladders(facts.snapshot(), as_of), end, ladder)
    decisions, games = list[Decision](), 0
    for key, run in groupby(read_entries(connection, before, after), _decision_key):
        entries, affected = list(run), set[str]()
        for position, record, event in entries:
            if event is not None:
                affected |= affected_by(facts, event.type, event.data)
            apply_event(facts, position, record)
        settle_facts(facts)
        if key is None:
            games += sum(event is not None and event.type == "game.recorded" for _, _, event in entries)
        else:
            decisions.append(_decision(connection, key, entries, end, times))
        path.go_on(facts.snapshot(), affected, None if key is None else len(decisions) - 1)
    if by_period := {name for name, known in facts.rulesets.items() if known[0].ruleset.period != "game"}:
        # what closed since is the work of games, not of a decision
        facts.position = after
        note_time(facts, connection)
        path.go_on(facts.snapshot(), {f"ruleset:{name}" for name in by_period}, None)
    return Decisions(
        before,
        after,
        str(place_at(connection, after)),
        games,
        tuple(decisions),
        tuple(path.shares()),
        {ladder: str(problem) for ladder, problem in sorted(path.failures.items())},
        (moment(recorded_at(connection, before + 1)), moment(recorded_at(connection, after))),
        failed=tuple(describe_failure(problem, end, connection) for problem in path.failures.values()),
        left_out=facts.left_out,
        times=times,
    )


def _decision_key(entry: LogEntry) -> DecisionKey | None:
    """Return the type of a decision, who recorded it, and the reason; None for what is no decision."""
    _, record, event = entry
    if event is None or not TYPES[event.type].decided:
        return None
    return event.type, json.loads(record)["by"], event.data.get("reason")


def _decision(connection: Connection, key: DecisionKey, entries: list[LogEntry], end: Facts, times: Times) -> Decision:
    people = identities(connection, end.position)
    told = tuple(
        what_was_decided(Log(connection, position - 1), event, times, people)
        for position, _, event in entries[:TOLD]
        if event is not None
    )
    positions = tuple(position for position, _, _ in entries)
    at = moment(recorded_at(connection, positions[0]))
    return Decision(*key, at, positions, TYPES[key[0]].decided, told)


Had = dict[str, RankedPoints]


@dataclass
class _Tally:
    """What everybody on a ladder had at the beginning and has now, by their last ids, and what made the difference."""

    start: Fraction
    first: Had
    now: Had
    amounts: dict[str, dict[int | None, Fraction]] = field(default_factory=lambda: defaultdict(dict))

    def go_on(self, now: Had, cause: int | None) -> None:
        """Attribute the difference between the points so far and these to a cause."""
        for player in self.now.keys() | now.keys():
            was, has = (self.start if row is None else row.points for row in (self.now.get(player), now.get(player)))
            if was != has:
                amounts = self.amounts[player]
                amounts[cause] = amounts.get(cause, Fraction(0)) + has - was
        self.now = now

    def shares(self, ladder: str) -> Iterator[Share]:
        """Yield the shares of everybody who has any."""
        for player, amounts in sorted(self.amounts.items()):
            ends = self.first.get(player), self.now.get(player)
            before, after = (row and row.points for row in ends)
            ranks = (ends[0] and ends[0].rank, ends[1] and ends[1].rank)
            nonzero = {cause: amount for cause, amount in amounts.items() if amount}
            yield Share(ladder, player, self.start, before, after, ranks, nonzero)


class _Path:
    """The way of all ladders, or of one, from one step to the next. Ladders that did not change are not replayed."""

    def __init__(self, connection: Connection, ladders: Ladders, end: Facts, ladder: str | None) -> None:
        self.failures: dict[str, RuleFailure] = {}
        self._connection = connection
        self._begin, self._end = ladders.facts, Ladders(end)
        self._ladders = ladders
        self._only = () if ladder is None else (ladder,)
        self._tallies: dict[str, _Tally] = {}

    def go_on(self, facts: Facts, affected: set[str], cause: int | None) -> None:
        """Attribute the difference between the ladders before and with these facts to a cause."""
        before, self._ladders = self._ladders, Ladders(facts, self._ladders.as_of)
        end = self._end.facts
        # who is who may change even if no game does
        is_renamed = before.facts.clubs != facts.clubs
        is_renamed |= _ids_on_the_way(before.facts, end) != _ids_on_the_way(facts, end)
        for name, (old, new) in streams_beside(before, self._ladders, affected, self._only).items():
            if name in self.failures or (have_same_points(old, new) and not is_renamed):
                continue
            try:
                if name not in self._tallies:
                    self._tallies[name] = self._begun(name, before, old, new)
                self._tallies[name].go_on(self._had(self._ladders, new), cause)
            except RuleFailure as problem:
                self.failures[name] = problem

    def _begun(self, name: str, ladders: Ladders, old: Stream | None, new: Stream | None) -> _Tally:
        """Return what everybody had before anything changed on a ladder. Raises `RuleFailure`."""
        ruleset_id = parse_name(name).ruleset_id
        if versions := self._begin.rulesets.get(ruleset_id):
            version = newest(versions)
        else:
            stream = old or new
            assert stream is not None
            version = find_first_version(self._connection, self._end.facts.position, ruleset_id) or stream.versions[0]
        first = self._had(ladders, old)
        return _Tally(version.start_points, first, first)

    def _had(self, ladders: Ladders, stream: Stream | None) -> Had:
        """Return what everybody has, by the id they have in the end. Raises `RuleFailure`."""
        replayed = ReplayedLadder(ladders, stream, keep=False)
        rows, end = (
            replayed.at().points_by_player(),
            (self._end if stream is None else self._end.for_ladder(stream.ladder)).facts,
        )
        others = _ids_on_the_way(replayed.facts, end)
        found = {name: row for name, row in rows.items() if name not in others and end.current(name) == name}
        for player, names in others.items():
            if known := [name for name in names if name in rows]:
                found[player] = rows[known[0]]
        return found

    def shares(self) -> Iterator[Share]:
        """Yield the shares on all ladders that could be replayed."""
        for name, tally in sorted(self._tallies.items()):
            if name not in self.failures:
                yield from tally.shares(name)


def _ids_on_the_way(facts: Facts, end: Facts) -> dict[str, list[str]]:
    """Return the ids under which somebody may appear in some facts, for those who end up with a different one or had
    one.

    Their last id comes first, as `path.attribute` expects.
    """
    if not (facts.renamed or end.renamed):
        return {}
    ids: dict[str, list[str]] = defaultdict(list)
    for name in sorted(end.players):
        ids[end.current(name)].append(name)
    names = {player: [facts.current(name) for name in [player, *own]] for player, own in ids.items()}
    return {player: own for player, own in names.items() if {*own} != {player}}
