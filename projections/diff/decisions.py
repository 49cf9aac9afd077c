"""List the decisions between two positions of the log, with each decision's effect on every player's points.

Each decision accounts for the difference between the ladders before and after it. The games that were recorded between
decisions account for the rest. So a player's amounts sum exactly to the difference between their points at both ends.
(`projections.diff.attribution` attributes the difference of a single player to every event.)
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
from ratings_ledger.ledger.store.exports import read_chain_head
from ratings_ledger.ledger.store.log import Log, read_recorded_at
from ratings_ledger.ledger.validation.identities import read_identities
from ratings_ledger.projections.diff.affected import (
    LogEntry,
    apply_entries,
    find_first_version,
    have_same_points,
    pair_affected_streams,
    read_entries,
)
from ratings_ledger.projections.diff.comparison import RankedPoints, ReplayedLadder
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, set_recorded_until
from ratings_ledger.projections.queries.coordinates import TimeFormat, to_datetime
from ratings_ledger.projections.queries.event_texts import describe_decision
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import HIDDEN, NAMED_FROM, Answer, Result, RowSequence
from ratings_ledger.projections.replay.rule_calls import RuleFailure, describe_failure
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.rulesets.versions import newest


@dataclass(frozen=True, slots=True)
class Decision(Result):
    """Consecutive events of one type that one person recorded for one reason; `recorded_at` is the time of the first.

    `verb` is a participle, such as corrected. `descriptions` describe the first events.
    """

    type: str
    by: str
    reason: str | None
    recorded_at: datetime
    positions: tuple[int, ...]
    verb: str = field(metadata=HIDDEN)
    descriptions: tuple[str, ...] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Share(Result):
    """A player's points and rank at both ends, and the amounts that make up the difference.

    `amounts` has the amount of each decision, by index, and of all recorded games, by None. `start` replaces the points
    at an end where the player is not on the ladder.
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
        """Return the points at the end minus the points at the beginning."""
        before, after = (self.start if points is None else points for points in (self.before, self.after))
        return after - before

    @property
    def has_decision(self) -> bool:
        """Tell whether any decision contributes to the difference."""
        return any(decision is not None for decision in self.amounts)


@dataclass(frozen=True, slots=True)
class Decisions(Answer, RowSequence[Decision]):
    """The decisions between two positions, the number of games recorded there, and each affected player's share.

    head:     the head at the later position
    recorded: when the first and the last event were recorded
    failures: the reason for each ladder that cannot be replayed, by ladder
    failed:   the messages that say where these replays fail
    left_out: the reason for each ignored event, by position
    """

    _rows_member: ClassVar[str] = "decisions"
    before: int = field(metadata=NAMED_FROM)
    to: int
    head: str
    games: int
    decisions: tuple[Decision, ...]
    shares: tuple[Share, ...]
    failures: dict[str, str]
    recorded: tuple[datetime, datetime]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


# the maximum number of events of a decision that get a description
DESCRIPTIONS_MAX = 100
DecisionKey = tuple[str, str, str | None]


def find_decisions(
    connection: Connection,
    before: int,
    after: int,
    times: TimeFormat,
    as_of: int | None = None,
    ladder: str | None = None,
) -> Decisions:
    """Return the decisions with `before` < position <= `after`, and their effects on all ladders or on a single one.

    Raises `StoreDamaged`.
    """
    facts, end = decode(connection, before, ahead=after), decode(connection, after)
    path = _Path(connection, Ladders(facts.detached_copy(), as_of), end, ladder)
    decisions, games = list[Decision](), 0
    for key, run in groupby(read_entries(connection, before, after), _find_decision_key):
        entries = list(run)
        affected = apply_entries(facts, entries)
        if key is None:
            games += sum(event is not None and event.type == "game.recorded" for _, _, event in entries)
        else:
            decisions.append(_build_decision(connection, key, entries, end, times))
        path.advance(facts.detached_copy(), affected, cause=None if key is None else len(decisions) - 1)
    if period_rulesets := {name for name, versions in facts.rulesets.items() if versions[0].ruleset.period != "game"}:
        # a rating period closes because time passes, so its effect belongs to the games, not to a decision
        facts.position = after
        set_recorded_until(facts, connection)
        path.advance(facts.detached_copy(), {f"ruleset:{name}" for name in period_rulesets}, cause=None)
    return Decisions(
        before=before,
        to=after,
        head=str(read_chain_head(connection, after)),
        games=games,
        decisions=tuple(decisions),
        shares=tuple(path.list_shares()),
        failures={ladder: str(problem) for ladder, problem in sorted(path.failures.items())},
        recorded=(_read_time(connection, before + 1), _read_time(connection, after)),
        failed=tuple(describe_failure(problem, end, connection) for problem in path.failures.values()),
        left_out=facts.left_out,
        times=times,
    )


def _find_decision_key(entry: LogEntry) -> DecisionKey | None:
    """Return the type, author and reason of a decision; None if the entry is not a decision."""
    event = entry.event
    if event is None or not TYPES[event.type].decided:
        return None
    return event.type, json.loads(entry.record)["by"], event.data.get("reason")


def _build_decision(
    connection: Connection, key: DecisionKey, entries: list[LogEntry], end: Facts, times: TimeFormat
) -> Decision:
    people = read_identities(connection, end.position)
    descriptions = tuple(
        describe_decision(Log(connection, position - 1), event, times, people)
        for position, _, event in entries[:DESCRIPTIONS_MAX]
        if event is not None
    )
    positions = tuple(entry.position for entry in entries)
    at = _read_time(connection, positions[0])
    return Decision(*key, at, positions, TYPES[key[0]].decided, descriptions)


def _read_time(connection: Connection, position: int) -> datetime:
    return to_datetime(read_recorded_at(connection, position))


PointsByPlayer = dict[str, RankedPoints]


@dataclass
class _Tally:
    """Every player's points on a ladder at the beginning and now, and the amount of each cause, by latest id.

    `start` replaces the points of a player who is not on the ladder.
    """

    start: Fraction
    first: PointsByPlayer
    current: PointsByPlayer
    amounts: dict[str, dict[int | None, Fraction]] = field(default_factory=lambda: defaultdict(dict))

    def add_difference(self, latest: PointsByPlayer, cause: int | None) -> None:
        """Attribute the difference between the current points and `latest` to a cause."""
        for player in self.current.keys() | latest.keys():
            rows = self.current.get(player), latest.get(player)
            before, after = (self.start if row is None else row.points for row in rows)
            if before != after:
                amounts = self.amounts[player]
                amounts[cause] = amounts.get(cause, Fraction(0)) + after - before
        self.current = latest

    def list_shares(self, ladder: str) -> Iterator[Share]:
        """Yield the share of each player whose points changed."""
        for player, amounts in sorted(self.amounts.items()):
            rows = self.first.get(player), self.current.get(player)
            before, after = (row and row.points for row in rows)
            ranks = (rows[0] and rows[0].rank, rows[1] and rows[1].rank)
            yield Share(
                ladder=ladder,
                player=player,
                start=self.start,
                before=before,
                after=after,
                rank=ranks,
                amounts={cause: amount for cause, amount in amounts.items() if amount},
            )


class _Path:
    """The path of all ladders, or of one, from decision to decision. Ladders that did not change are not replayed."""

    def __init__(self, connection: Connection, ladders: Ladders, end: Facts, ladder: str | None) -> None:
        self.failures: dict[str, RuleFailure] = {}
        self._connection = connection
        self._start, self._end = ladders.facts, Ladders(end)
        self._ladders = ladders
        self._only = () if ladder is None else (ladder,)
        self._tallies: dict[str, _Tally] = {}

    def advance(self, facts: Facts, affected: set[str], cause: int | None) -> None:
        """Advance to these facts, and attribute the difference between the ladders to a cause."""
        before, self._ladders = self._ladders, Ladders(facts, self._ladders.as_of)
        end = self._end.facts
        # a rename can move points to another id although no game changes
        is_renamed = before.facts.clubs != facts.clubs
        is_renamed |= _list_ids(before.facts, end) != _list_ids(facts, end)
        for name, (old, new) in pair_affected_streams(before, self._ladders, affected, self._only).items():
            if name in self.failures or (have_same_points(old, new) and not is_renamed):
                continue
            try:
                if name not in self._tallies:
                    self._tallies[name] = self._start_tally(name, before, old, new)
                self._tallies[name].add_difference(self._load_points(self._ladders, new), cause)
            except RuleFailure as problem:
                self.failures[name] = problem

    def _start_tally(self, name: str, ladders: Ladders, old: Stream | None, new: Stream | None) -> _Tally:
        """Start the tally of a ladder with its points before its first change. Raises `RuleFailure`."""
        if versions := self._start.versions_of(name):
            version = newest(versions)
        else:
            stream = old or new
            assert stream is not None
            version = find_first_version(self._connection, self._end.facts.position, name) or stream.versions[0]
        first = self._load_points(ladders, old)
        return _Tally(version.start_points, first, first)

    def _load_points(self, ladders: Ladders, stream: Stream | None) -> PointsByPlayer:
        """Return every player's points, by the player's id at the end. Raises `RuleFailure`."""
        replayed = ReplayedLadder(ladders, stream, keep_history=False)
        rows = replayed.at().index_points()
        end = (self._end if stream is None else self._end.for_ladder(stream.ladder)).facts
        ids_by_player = _list_ids(replayed.facts, end)
        points = {name: row for name, row in rows.items() if name not in ids_by_player and end.current(name) == name}
        for player, ids in ids_by_player.items():
            if ranked_ids := [name for name in ids if name in rows]:
                points[player] = rows[ranked_ids[0]]
        return points

    def list_shares(self) -> Iterator[Share]:
        """Yield the shares on every ladder that could be replayed."""
        for name, tally in sorted(self._tallies.items()):
            if name not in self.failures:
                yield from tally.list_shares(name)


def _list_ids(facts: Facts, end: Facts) -> dict[str, list[str]]:
    """Return each renamed player's ids in `facts`, by the player's id at `end`; the latest id comes first.

    Players who always had the same id are left out.
    """
    if not (facts.renamed or end.renamed):
        return {}
    all_ids: dict[str, list[str]] = defaultdict(list)
    for name in sorted(end.players):
        all_ids[end.current(name)].append(name)
    ids = {player: [facts.current(name) for name in [player, *names]] for player, names in all_ids.items()}
    return {player: ids_in_facts for player, ids_in_facts in ids.items() if {*ids_in_facts} != {player}}
