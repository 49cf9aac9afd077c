"""What changed a player's points between two coordinates, as an answer: each cause with its event."""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import RuleFailed, Unknown
from ratings_ledger.ledger.events.canonical import record_instant
from ratings_ledger.ledger.events.revisions import KnownEvent, root_of
from ratings_ledger.ledger.store.log import Log, head, known_event, read_records_at
from ratings_ledger.ledger.validation.identities import identities
from ratings_ledger.ledger.validation.published_lists import PublishedList, published_lists
from ratings_ledger.projections.contract import decimal
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.answers_compared import AttributedCause, AttributedEnd, PointsAttributed
from ratings_ledger.projections.queries.asked import Asked
from ratings_ledger.projections.queries.asking import refuse_unknown
from ratings_ledger.projections.queries.attribution import Attribution, Cause, attribute
from ratings_ledger.projections.queries.coordinates import Coordinates, Note, moment, times_of
from ratings_ledger.projections.queries.publication import as_published, compared_at
from ratings_ledger.projections.queries.standings import versions_of
from ratings_ledger.projections.replay.containment import RuleFailure

Decode = Callable[[Connection, int], Facts]


def attributed(
    connection: Connection, ladder: str, player: str, before: Asked, after: Asked, note: Note, decode: Decode
) -> PointsAttributed:
    """What changed a player's points on a ladder between two coordinates.

    Raises `BadArgument`, `Unknown` for somebody who is not recorded and what is not published, `RuleFailed`.
    """
    try:
        places = _places(connection, ladder, before, after, note, decode)
        found = attribute(connection, ladder, player, *places)
    except RuleFailure as problem:
        told = f"{problem.ladder}: the rule failed on the way: {problem}"
        raise RuleFailed(told, problem.ladder) from None
    ends = zip((before, after), places, (found.before, found.after), strict=True)
    contradicted = [
        told
        for asked, at, points in ends if asked.published
        for told in _contradicted(connection, ladder, player, at, points, decode)
    ]  # fmt: skip
    if found.before is None and found.after is None:
        refuse_unknown(decode(connection, head(connection).position), player)
    one, other = (
        AttributedEnd(at._replace(left_out=tuple(p for p in found.left_out if p <= at.known_at)), points)
        for at, points in zip(places, (found.before, found.after), strict=True)
    )
    had, has = (found.start if end.points is None else end.points for end in (one, other))
    causes = _with_events(connection, found)
    return PointsAttributed(
        player, ladder, one, other, found.start, has - had, causes, contradicted=tuple(contradicted),
        left_out=found.left_out, times=times_of(connection),
    )  # fmt: skip


def _places(
    connection: Connection, ladder: str, before: Asked, after: Asked, note: Note, decode: Decode
) -> list[Coordinates]:
    """Both coordinates; a published list lends its `as_of` to the other side if that has none."""
    places = []
    for asked in (before, after):
        if not asked.published:
            places.append(asked.resolve(connection, ladder, note))
            continue
        lists = asked.lists(connection, note, ladder)
        if not lists:
            raise Unknown(None, f"{ladder} was not published ({asked.text})")
        one = max(lists, key=lambda one: one.position)
        places.append(Coordinates(_compared_at(connection, one, decode), one.known_at, None))
    if before.published and not after.published and after.as_of is None:
        places[1] = places[1]._replace(as_of=places[0].as_of)
    if after.published and not before.published and before.as_of is None:
        places[0] = places[0]._replace(as_of=places[1].as_of)
    return places


def _compared_at(connection: Connection, one: PublishedList, decode: Decode) -> int | None:
    """Up to when a list is compared with what would come out today. Raises `RulesetUnusable`."""
    versions = versions_of(decode(connection, one.known_at), one.ladder, None)
    return compared_at(one, versions[0].ruleset)


def _contradicted(
    connection: Connection, ladder: str, player: str, at: Coordinates, points: Fraction | None, decode: Decode
) -> Iterator[str]:
    """Which lists showed points that differ from a replay of their coordinates; `verify` reports them."""
    for one in published_lists(connection, head(connection).position, ladder):
        if (_compared_at(connection, one, decode), one.known_at) == (at.as_of, at.known_at):
            listed, ids = as_published(connection, one), identities(connection).ids(player)
            then = next((row.value(listed.scale) for row in listed.rows if row.player in ids), None)
            if then != points:
                told = "nothing" if then is None else decimal(then.numerator, then.denominator)
                yield f"the list at position {one.position} shows {told}; see: ratings verify"


def causes_between(
    connection: Connection, ladder: str, player: str, before: Coordinates, after: Coordinates
) -> tuple[Fraction, tuple[AttributedCause, ...]]:
    """What a player had at a place, their start if they were not on the ladder; and what changed that until another
    one, with the events. Raises `UnknownLadder`, `RuleFailure`."""
    found = attribute(connection, ladder, player, before, after)
    return found.start if found.before is None else found.before, _with_events(connection, found)


def _with_events(connection: Connection, found: Attribution) -> tuple[AttributedCause, ...]:
    """Return the causes with what their events say; a withdrawal is named like the event that it withdraws."""
    records = read_records_at(connection, [cause.position for cause in found.causes if cause.position is not None])
    log = Log(connection)
    named = []
    for cause in found.causes:
        record = records.get(cause.position or 0)
        event = None if record is None else known_event(cause.position or 0, record)
        root = None if event is None else root_of(log, event) or event
        named.append(_with_event(cause, None if record is None else json.loads(record), root))
    return tuple(named)


def _with_event(cause: Cause, event: dict[str, Any] | None, root: KnownEvent | None) -> AttributedCause:
    """Return a cause with what its event says, named after the event that it is ultimately about."""
    if event is None or root is None:
        return AttributedCause(
            cause.what, cause.position, None, None, None, None, None, None, cause.own, cause.ripple, cause.amount, ""
        )  # fmt: skip
    occurred_at, recorded_at = (moment(record_instant(event[name])) for name in ("occurred_at", "recorded_at"))
    return AttributedCause(
        cause.what, cause.position, event["id"], event["data"].get("game_id"), occurred_at, recorded_at, event["by"],
        event["data"].get("reason"), cause.own, cause.ripple, cause.amount, _what(root),
    )  # fmt: skip


def _what(event: KnownEvent) -> str:
    """Return what an event is about, in a few words."""
    data = event.data
    if "game_id" in data:
        return str(data["game_id"])
    if event.type == "player.renamed":
        return f"{data['player']} is {data['new_player']}"
    if event.type == "ruleset.published":
        return f"{data['id']}@{data['version']}"
    if event.type == "points.adjusted":
        return f"{data['points']} to {data['player']}"
    return str(data.get("id") or data.get("player") or data.get("league") or event.event_id)
