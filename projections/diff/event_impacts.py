"""What one event did to everybody, and which events have that to tell."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.events.revisions import GAME_EVENTS
from ratings_ledger.ledger.events.types import DECISIONS, TYPES
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import (
    Log,
    known_event,
    known_of,
    read_newest,
    read_records_at,
    read_where,
)
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.projections.diff.affected import describe_affected
from ratings_ledger.projections.diff.comparison import (
    DifferingList,
    Effect,
)
from ratings_ledger.projections.diff.impact import impact_between, recorded_up_to
from ratings_ledger.projections.facts.columns import NONE, Facts
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.event_texts import (
    what_was_decided,
    words_of,
)
from ratings_ledger.projections.queries.explain import row_of_game
from ratings_ledger.projections.queries.games_log import RecordedEvent
from ratings_ledger.projections.queries.ladders_at import Ladders, Memo
from ratings_ledger.projections.queries.results import (
    HIDDEN,
    Answer,
    Result,
)
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.rulesets.versions import games_of


def event_impact(connection: Connection, before: Ladders, after: Ladders, times: Times) -> EventImpact:
    """Return what the last event that `after` knows, and `before` does not, did to everybody. Raises `StoreDamaged`."""
    position = after.facts.position
    record = read_records_at(connection, [position])[position]
    try:
        event = known_event(position, record)
    except Refused as problem:
        raise Unknown("event-unreadable", f"what is at position {position} does not count: {problem.message}") from None
    written = json.loads(record)
    games = set[str]()
    for facts in (before.facts, after.facts) if event.type in GAME_EVENTS else ():
        with suppress(Unknown):  # before its first record
            games.add(str(facts.label("game", row_of_game(connection, facts, event.data["game_id"]))))
    recorded = recorded_up_to(connection, before.facts.position)
    found = impact_between(recorded, before, after, describe_affected(event.type, event.data, games))
    by_ladder = defaultdict[str, list[Effect]](list)
    for effect in found.changes:
        by_ladder[effect.ladder].append(effect)
    radii = {one.ladder: one.ranks for one in found.ladders}
    return EventImpact(
        position,
        event.type,
        written["recorded_at"],
        written["by"],
        event.data.get("reason"),
        event.data.get("game_id"),
        tuple(_on(name, effects, radii.get(name, 0), _players(after, name)) for name, effects in by_ladder.items()),
        found.changes,
        found.published,
        told=what_was_decided(Log(connection, position - 1), event, times, identities(connection, position))
        if TYPES[event.type].decided
        else words_of(RecordedEvent(written), times),
        failed=found.failed,
        times=times,
    )


def _players(ladders: Ladders, ladder: str) -> int:
    """Return how many players are on a ladder; nobody is on one that is no more."""
    there = ladders.facts.rulesets.get(parse_name(ladder).ruleset_id)
    stream = ladders.every(parse_name(ladder).ruleset_id).get(ladder) if there else None
    return 0 if stream is None else len(ladders.of_stream(stream).rows)


def _on(ladder: str, effects: Sequence[Effect], ranks: int, players: int) -> LadderImpact:
    gains = tuple(one for one in effects if one.change is not None and one.change > 0)
    losses = tuple(one for one in reversed(effects) if one.change is not None and one.change < 0)
    others = tuple(one for one in effects if one.change is None)
    joined = sum(one.before is None for one in others)
    sizes = sorted(abs(one.change) for one in (*gains, *losses) if one.change is not None)
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


_TELLING: Memo[str, frozenset[int]] = Memo()


def telling_positions(connection: Connection, ladders: Ladders) -> frozenset[int]:
    """Return the positions of the events that may have moved somebody who did not play: decisions, and games played
    before an instant of which a list of their ruleset had been published when they were recorded.
    """
    return _TELLING.get(ladders, "", lambda: _find_telling_positions(connection, ladders.facts))


def _find_telling_positions(connection: Connection, facts: Facts) -> frozenset[int]:
    decided, _ = read_newest(connection, facts.position, types=DECISIONS)
    return frozenset(position for position, _ in decided) | frozenset(_late_games(connection, facts))


def _late_games(connection: Connection, facts: Facts) -> list[int]:
    """Return the first positions of games that came after a list that they belong on."""
    lists = known_of("list.published", read_where(connection, until=facts.position, type_name="list.published"))
    by_game = defaultdict[int, list[tuple[int, int]]](list)
    for one in lists:
        versions = facts.rulesets.get(parse_name(one.data["ladder"]).ruleset_id, ())
        for slug in games_of(versions):
            until = parse_instant(one.data["as_of"]) if "as_of" in one.data else one.occurred_at
            by_game[facts.text_numbers.get(slug, NONE - 1)].append((one.position or 0, until))
    found = []
    for game, places in by_game.items():
        positions = [position for position, _ in places]
        latest = [*accumulate((instant for _, instant in places), max)]
        for row in range(bisect_left(facts.first_position, positions[0]), len(facts.first_position)):
            if facts.cell_of(row).game == game:
                known = bisect_left(positions, facts.first_position[row])
                if known and facts.occurred_at[row] <= latest[known - 1]:
                    found.append(facts.first_position[row])
    return found


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
class EventImpact(Answer):
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
