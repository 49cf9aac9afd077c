"""Explain a change in a player's points: its causes between two sets of coordinates, with details of their events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import ClassVar

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RuleFailed
from ratings_ledger.ledger.events.canonical import parse_record_instant
from ratings_ledger.ledger.events.revisions import KnownEvent, find_root
from ratings_ledger.ledger.store.log import Log, head, read_known_event, read_records_at
from ratings_ledger.ledger.validation.published_lists import read_published_lists
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.diff.attribution import Attribution, Cause, attribute_difference
from ratings_ledger.projections.diff.differences import SideLoader, build_no_list_error
from ratings_ledger.projections.exact_numbers import as_exact
from ratings_ledger.projections.facts.lookups import require_player
from ratings_ledger.projections.queries.coordinates import Coordinates, CoordinateSpec, load_times, to_datetime
from ratings_ledger.projections.queries.published_lists import load_published_points
from ratings_ledger.projections.queries.results import HIDDEN, NAMED_FROM, Answer, Result, RowSequence
from ratings_ledger.projections.replay.rule_calls import RuleFailure


@dataclass(frozen=True, slots=True)
class AttributedEnd(Result):
    """A player's points at one set of coordinates, None if the player is not on the ladder."""

    at: Coordinates
    points: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributedCause(Result):
    """A cause of the difference, with its event; `own` and `ripple` sum to the `amount`.

    The closing of rating periods, a change of the version, and a change of the time up to which lists are computed have
    no event.
    """

    cause: str
    position: int | None
    event_id: str | None = None
    game_id: str | None = None
    occurred_at: datetime | None = None
    recorded_at: datetime | None = None
    by: str | None = None
    reason: str | None = None
    own: Fraction
    ripple: Fraction
    amount: Fraction
    what: str = field(default="", metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class PointsAttributed(Answer, RowSequence[AttributedCause]):
    """The causes of the change in a player's points between two sets of coordinates; they add up exactly.

    `start` replaces the points where the player is not on the ladder. `contradictions` describes published lists that
    show other points than a replay. `left_out` has the reason for each ignored event, by position.
    """

    _rows_member: ClassVar[str] = "causes"
    player: str
    ladder: str
    before: AttributedEnd = field(metadata=NAMED_FROM)
    to: AttributedEnd
    start: Fraction
    change: Fraction
    causes: tuple[AttributedCause, ...]
    contradictions: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


def attribute_points(
    loader: SideLoader, ladder: str, player: str, before: CoordinateSpec, after: CoordinateSpec
) -> PointsAttributed:
    """Return the causes of the change in a player's points between two sets of coordinates.

    Raises `BadArgument`, `Unknown` for an unrecorded player or an unpublished list, `RulesetUnusable`, `RuleFailed`.
    """
    connection = loader.connection
    try:
        coordinates = _resolve_ends(loader, ladder, before, after)
        attribution = attribute_difference(connection, ladder, player, *coordinates)
    except RuleFailure as problem:
        message = f"{problem.ladder}: the rule failed between the two sets of coordinates: {problem}"
        raise RuleFailed(message, problem.ladder) from None
    if attribution.before is None and attribution.after is None:
        latest = loader.ladders(Coordinates(None, head(connection).position, None)).for_ladder(ladder)
        require_player(latest.facts, player)
    ends = [
        AttributedEnd(
            at._replace(left_out=tuple(position for position in attribution.left_out if position <= at.known_at)),
            None if points is None else as_exact(points),
        )
        for at, points in zip(coordinates, (attribution.before, attribution.after), strict=True)
    ]
    contradictions = (
        message
        for spec, end in zip((before, after), ends, strict=True)
        if spec.published
        for message in _find_contradictions(loader, ladder, player, end)
    )
    before_end, after_end = ends
    return PointsAttributed(
        player=player,
        ladder=ladder,
        before=before_end,
        to=after_end,
        start=as_exact(attribution.start),
        change=as_exact(attribution.change),
        causes=describe_causes(connection, attribution),
        contradictions=tuple(contradictions),
        left_out=attribution.left_out,
        times=load_times(connection),
    )


def _resolve_ends(loader: SideLoader, ladder: str, before: CoordinateSpec, after: CoordinateSpec) -> list[Coordinates]:
    """Resolve both sets of coordinates. If only one is a published list, the other gets its `as_of` by default."""
    coordinates = []
    for spec in (before, after):
        if not spec.published:
            coordinates.append(loader.resolve(spec, ladder))
            continue
        lists = spec.load_lists(loader.connection, loader.note, ladder)
        if not lists:
            raise build_no_list_error(f"no list of {ladder} is published", spec)
        newest_list = max(lists, key=lambda entry: entry.position)
        coordinates.append(Coordinates(loader.find_as_of(newest_list), newest_list.known_at, None))
    for published, computed in ((0, 1), (1, 0)):
        specs = before, after
        if specs[published].published and not specs[computed].published and specs[computed].as_of is None:
            coordinates[computed] = coordinates[computed]._replace(as_of=coordinates[published].as_of)
    return coordinates


def _find_contradictions(loader: SideLoader, ladder: str, player: str, end: AttributedEnd) -> Iterator[str]:
    """Describe each published list whose points differ from a replay of its coordinates; `verify` reports it, too."""
    connection, until = loader.connection, loader.latest_facts.position
    entrant = next((version.ruleset.entrant for version in loader.latest_facts.versions_of(ladder)), "player")
    for entry in read_published_lists(connection, until, ladder):
        if (loader.find_as_of(entry), entry.known_at) == (end.at.as_of, end.at.known_at):
            points = load_published_points(connection, entry, player, entrant, until)
            if points != end.points:
                listed, replayed = map(_describe_points, (points, end.points))
                yield (
                    f"the list published at position {entry.position} has {listed} for {player}, but a replay gives "
                    f"{replayed}; run: ratings verify"
                )


def _describe_points(points: Fraction | None) -> str:
    return "no points" if points is None else decimal(points.numerator, points.denominator)


def describe_causes(connection: Connection, attribution: Attribution) -> tuple[AttributedCause, ...]:
    """Return the causes with the details of their events. A withdrawal has the subject of the withdrawn event."""
    records = read_records_at(
        connection, [cause.position for cause in attribution.causes if cause.position is not None]
    )
    return tuple(
        _describe_cause(Log(connection), cause, records.get(cause.position or 0)) for cause in attribution.causes
    )


def _describe_cause(log: Log, cause: Cause, record: str | None) -> AttributedCause:
    details = AttributedCause(
        cause=cause.kind,
        position=cause.position,
        own=as_exact(cause.own),
        ripple=as_exact(cause.ripple),
        amount=as_exact(cause.amount),
    )
    if record is None:
        return details
    event, known_event = json.loads(record), read_known_event(cause.position or 0, record)
    return replace(
        details,
        event_id=event["id"],
        game_id=event["data"].get("game_id"),
        occurred_at=to_datetime(parse_record_instant(event["occurred_at"])),
        recorded_at=to_datetime(parse_record_instant(event["recorded_at"])),
        by=event["by"],
        reason=event["data"].get("reason"),
        what=_describe_subject(find_root(log, known_event) or known_event),
    )


def _describe_subject(event: KnownEvent) -> str:
    """Describe the subject of an event in a few words."""
    data = event.data
    if "game_id" in data:
        return str(data["game_id"])
    if event.type == "player.renamed":
        return f"{data['player']} is {data['new_player']}"
    if event.type == "ruleset.published":
        return f"{data['id']}@{data['version']}"
    if event.type == "points.adjusted":
        return f"{data['points']} to {data['player']}"
    if event.type == "player.seeded":
        return f"the start of {data['player']}"
    if event.type == "club.renamed":
        return f"{data['club']} is {data['new_club']}"
    return str(data.get("id") or data.get("player") or data.get("league") or event.event_id)
