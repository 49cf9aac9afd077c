"""What one event did to everybody, and which events have that to tell."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import (
    Log,
    read_known_event,
    read_records_at,
)
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.projections.diff.affected import affected_between
from ratings_ledger.projections.diff.comparison import (
    DifferingList,
    Effect,
)
from ratings_ledger.projections.diff.impact import impact_between, recorded_up_to
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.event_texts import (
    what_was_decided,
    words_of,
)
from ratings_ledger.projections.queries.games_log import RecordedEvent
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import (
    HIDDEN,
    Answer,
    Result,
    RowSequence,
)
from ratings_ledger.projections.replay.ladders import parse_name


def event_impact(connection: Connection, before: Ladders, after: Ladders, times: Times) -> EventImpact:
    """Return what the last event that `after` knows, and `before` does not, did to everybody. Raises `StoreDamaged`."""
    position = after.facts.position
    record = read_records_at(connection, [position])[position]
    try:
        event = read_known_event(position, record)
    except Refused as problem:
        raise Unknown("event-unreadable", f"what is at position {position} does not count: {problem.message}") from None
    written = json.loads(record)
    recorded = recorded_up_to(connection, before.facts.position)
    affected = affected_between(connection, before.facts, after.facts, event)
    impact = impact_between(recorded, before, after, affected)
    by_ladder = defaultdict[str, list[Effect]](list)
    for effect in impact.changes:
        by_ladder[effect.ladder].append(effect)
    radii = {summary.ladder: summary.ranks for summary in impact.ladders}
    return EventImpact(
        position,
        event.type,
        written["recorded_at"],
        written["by"],
        event.data.get("reason"),
        event.data.get("game_id"),
        tuple(_on(name, effects, radii.get(name, 0), _players(after, name)) for name, effects in by_ladder.items()),
        impact.changes,
        impact.published,
        told=what_was_decided(Log(connection, position - 1), event, times, identities(connection, position))
        if TYPES[event.type].decided
        else words_of(RecordedEvent(written), times),
        failed=impact.failed,
        times=times,
    )


def _players(ladders: Ladders, ladder: str) -> int:
    """Return how many players are on a ladder; nobody is on one that is no more."""
    versions = ladders.facts.rulesets.get(parse_name(ladder).ruleset_id)
    stream = ladders.streams(parse_name(ladder).ruleset_id).get(ladder) if versions else None
    return 0 if stream is None else len(ladders.rank_stream(stream).rows)


def _on(ladder: str, effects: Sequence[Effect], ranks: int, players: int) -> LadderImpact:
    gains = tuple(effect for effect in effects if effect.gain > 0)
    losses = tuple(effect for effect in reversed(effects) if effect.gain < 0)
    others = tuple(effect for effect in effects if effect.change is None)
    joined = sum(effect.before is None for effect in others)
    sizes = sorted(abs(effect.gain) for effect in (*gains, *losses))
    largest, median, most = (sizes[-1], _median(sizes), sizes[-(-99 * len(sizes) // 100) - 1]) if sizes else [None] * 3
    return LadderImpact(
        ladder,
        len(gains),
        players - len(gains) - len(losses) - joined,
        len(losses),
        joined,
        len(others) - joined,
        ranks,
        largest,
        median,
        most,
        gains,
        losses,
        others,
    )


def _median(sizes: Sequence[Fraction]) -> Fraction:
    """Return the middle one, or the mean of the two in the middle."""
    return (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2


@dataclass(frozen=True, slots=True)
class LadderImpact(Result):
    """What an event did on a ladder: to how many players it gave more points, the same, and fewer, how many it brought
    and took away, and how many have another rank.

    Of the sizes of the changes, in points, the largest, the median and the 99th percentile, which is the least size
    that 99% of them do not exceed; None where nobody's points changed. `gains` and `losses` come largest first.
    """

    ladder: str
    up: int
    stayed: int
    down: int
    joined: int
    left: int
    ranks: int
    largest: Fraction | None
    median: Fraction | None
    percentile_99: Fraction | None
    gains: tuple[Effect, ...] = field(metadata=HIDDEN)
    losses: tuple[Effect, ...] = field(metadata=HIDDEN)
    others: tuple[Effect, ...] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class EventImpact(Answer, RowSequence[Effect]):
    """What the event at a position did to everybody's points, and which lists published before it came out differently
    from then on; `failed` tells which ladders cannot be replayed, and why. `told` is what the event says.
    """

    position: int
    type: str
    recorded_at: str
    by: str
    reason: str | None
    game_id: str | None
    ladders: tuple[LadderImpact, ...]
    rows: tuple[Effect, ...]
    published: tuple[DifferingList, ...]
    told: str = field(metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
