"""Compute the impact of one recorded event: its effect on every player, ladder and published list."""

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
from ratings_ledger.ledger.store.log import Log, read_known_event, read_records_at
from ratings_ledger.ledger.validation.identities import read_identities
from ratings_ledger.projections.diff.affected import find_affected_between
from ratings_ledger.projections.diff.comparison import DifferingList, Effect
from ratings_ledger.projections.diff.impact import build_log_lookups, compute_impact_between
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.queries.event_texts import describe_decision, describe_recorded_event
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.recorded_events import RecordedEvent
from ratings_ledger.projections.queries.results import HIDDEN, Answer, Result, RowSequence
from ratings_ledger.projections.replay.ladder_names import parse_name


def compute_event_impact(connection: Connection, before: Ladders, after: Ladders, times: TimeFormat) -> EventImpact:
    """Return the impact of the last event of `after`; the state `before` lacks this event.

    Raises `StoreDamaged`, and `Unknown` if the event is invalid.
    """
    position = after.facts.position
    record = read_records_at(connection, [position])[position]
    try:
        event = read_known_event(position, record)
    except Refused as problem:
        message = f"the event at position {position} is invalid and is ignored: {problem.message}"
        raise Unknown("event-unreadable", f"{message}; run: ratings verify") from None
    members = json.loads(record)
    lookups = build_log_lookups(connection, before.facts.position)
    affected = find_affected_between(connection, before.facts, after.facts, event)
    impact = compute_impact_between(lookups, before, after, affected)
    effects_by_ladder = defaultdict[str, list[Effect]](list)
    for effect in impact.changes:
        effects_by_ladder[effect.ladder].append(effect)
    ranks_by_ladder = {summary.ladder: summary.ranks for summary in impact.ladders}
    return EventImpact(
        position=position,
        type=event.type,
        recorded_at=members["recorded_at"],
        by=members["by"],
        reason=event.data.get("reason"),
        game_id=event.data.get("game_id"),
        ladders=tuple(
            _summarize_ladder(
                name, effects, rank_changes=ranks_by_ladder.get(name, 0), players=_count_players(after, name)
            )
            for name, effects in effects_by_ladder.items()
        ),
        rows=impact.changes,
        published=impact.published,
        description=describe_decision(
            Log(connection, position - 1), event, times, read_identities(connection, position)
        )
        if TYPES[event.type].decided
        else describe_recorded_event(RecordedEvent(members), times),
        failed=impact.failed,
        times=times,
    )


def _count_players(ladders: Ladders, ladder: str) -> int:
    """Return the number of players on a ladder; 0 if the ladder no longer exists."""
    ruleset_id = parse_name(ladder).ruleset_id
    if ruleset_id not in ladders.facts.rulesets:
        return 0
    stream = ladders.streams(ruleset_id).get(ladder)
    return 0 if stream is None else len(ladders.rank_stream(stream).rows)


def _summarize_ladder(ladder: str, effects: Sequence[Effect], *, rank_changes: int, players: int) -> LadderImpact:
    """Summarize the effects on a ladder.

    `players` is the number of players after the event, and `rank_changes` the number of players whose rank changed.
    """
    gains = tuple(effect for effect in effects if effect.gain > 0)
    losses = tuple(effect for effect in reversed(effects) if effect.gain < 0)
    joined_or_left = tuple(effect for effect in effects if effect.change is None)
    joined = sum(effect.before is None for effect in joined_or_left)
    sizes = sorted(abs(effect.gain) for effect in (*gains, *losses))
    return LadderImpact(
        ladder=ladder,
        up=len(gains),
        stayed=players - len(gains) - len(losses) - joined,
        down=len(losses),
        joined=joined,
        left=len(joined_or_left) - joined,
        ranks=rank_changes,
        largest=sizes[-1] if sizes else None,
        median=_compute_median(sizes) if sizes else None,
        percentile_99=_find_percentile(sizes, 99) if sizes else None,
        gains=gains,
        losses=losses,
        joined_or_left=joined_or_left,
    )


def _compute_median(sizes: Sequence[Fraction]) -> Fraction:
    """Return the median of sorted sizes."""
    return (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2


def _find_percentile(sizes: Sequence[Fraction], percent: int) -> Fraction:
    """Return the nearest-rank percentile of sorted sizes: at least `percent` % of the sizes are at most this."""
    return sizes[-(-percent * len(sizes) // 100) - 1]


@dataclass(frozen=True, slots=True)
class LadderImpact(Result):
    """The impact of an event on one ladder.

    up, stayed, down: the numbers of players whose points rose, stayed and fell
    joined, left:     the numbers of players who joined and who left
    ranks:            the number of players whose rank changed
    largest, median:  sizes of changes, in points; None if no player's points changed
    percentile_99:    99 % of the sizes are at most this; None if no player's points changed
    gains, losses:    the effects on players whose points rose and fell, largest first
    joined_or_left:   the effects on players who joined or left
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
    joined_or_left: tuple[Effect, ...] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class EventImpact(Answer, RowSequence[Effect]):
    """The impact of the event at a position on all players' points and on the lists published before it.

    `description` describes the event. `failed` has a message for each ladder that cannot be replayed.
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
    description: str = field(metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
