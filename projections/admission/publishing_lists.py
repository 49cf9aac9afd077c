"""Publishing lists: the events that do it, once the period of the list is over."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.published_lists import split_rows
from ratings_ledger.ledger.rejections import Refused, count
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.validation.published_lists import published_lists
from ratings_ledger.projections.queries.coordinates import Times, format_end
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.replay.ladders import ClosedPeriods, parse_name
from ratings_ledger.projections.rulesets.versions import find_period, is_running


def publication(
    ladders: Ladders, found: Ranking, now: int, times: Times, *, asked: bool = True
) -> list[tuple[str, dict[str, Any]]]:
    """Return the events (type, data) that publish these standings: rows in parts, then the head that names them.

    `asked`: their `as_of` was asked for explicitly, and must then be in the past. `times` knows the home zone.

    Raises `Refused` (list-running, period-open, list-empty).
    """
    as_of, ladder = ladders.as_of, found.ladder
    period = find_period(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values)
    if period is not None and is_running(period, now, as_of):
        end = f"{format_instant(period.end)[:19]}Z"
        if now <= period.end:
            raise Refused("list-running", f"{ladder} runs until {end}; publish it after that")
        raise Refused("list-running", f"{ladder} ran until {end}; publish the whole of it, without --as-of")
    if as_of is not None and asked and now <= as_of:
        raise Refused("list-running", f"{format_instant(as_of)[:19]}Z is still to come; publish {ladder} after that")
    if found.closed is not None and found.closed.closes_at is not None:
        zone = times.home or ladders.versions(ladder)[0].ruleset.time_zone
        raise Refused("period-open", _say_open(ladder, found.closed, now, Times(zone), is_whole=period is not None))
    if not found.rows:
        raise Refused("list-empty", f"nobody is on {ladder}, so there is nothing to publish")
    digest, parts = found.digest, split_rows(found.json_rows())
    rows = [
        ("list.rows", {"ladder": ladder, "digest": digest, "part": part, "parts": len(parts), "rows": rows})
        for part, rows in enumerate(parts, 1)
    ]
    listed = {
        "ladder": ladder,
        "known_at": ladders.facts.position,
        "ruleset": found.ruleset,
        "digest": digest,
        "row_count": len(found.rows),
        "parts": len(parts),
        "games": found.games,
    }
    if as_of is not None:
        listed["as_of"] = format_instant(as_of)
    return [*rows, ("list.published", listed)]


def refuse_published(connection: Connection, ladder: str, end: int) -> None:
    """Raises `Refused` (list-exists) if somebody has published a ladder up to an instant in the meantime."""
    if any(one.of == (ladder, end) for one in published_lists(connection, head(connection).position, ladder)):
        raise Refused("list-exists", f"{ladder} was published up to {format_instant(end)[:19]}Z in the meantime")


def _say_open(ladder: str, closed: ClosedPeriods, now: int, times: Times, is_whole: bool) -> str:
    """Return that games of a ladder are in open rating periods, and how to publish it without them, or with them.

    Args:
        is_whole: a list of a month or a year, of which all games are published or none.
    """
    assert closed.closes_at is not None
    over = closed.closes_at < now
    told = (
        f"{count(closed.open_games, 'game')} of {ladder} in rating periods that are not closed; the first "
        f"{'ended' if over else 'ends'} {times.stated(closed.closes_at)}"
    )
    ways = []
    if closed.until is not None and not is_whole:
        ways.append(f"without them: ratings publish {ladder} --as-of {format_end(closed.until, times.zone)}")
    if over:
        until = now if is_whole else closed.closes_at
        ways.append(f"with that period: ratings publish {ladder} --as-of {format_end(until, times.zone)}")
    return "; ".join([told, *(ways or ["publish it after that"])])
