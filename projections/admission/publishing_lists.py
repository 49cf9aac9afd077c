"""Build the events that publish a list, once the period of the list is over."""

from __future__ import annotations

import shlex
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.published_lists import split_rows
from ratings_ledger.ledger.rejections import Refused, count
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.validation.published_lists import read_published_lists
from ratings_ledger.projections.queries.coordinates import TimeFormat, format_end
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.replay.streams import PeriodProgress
from ratings_ledger.projections.rulesets.versions import find_period, is_period_open


def build_list_events(
    ladders: Ladders, ranking: Ranking, now: int, times: TimeFormat, *, is_explicit: bool = True
) -> list[tuple[str, dict[str, Any]]]:
    """Return the events (type, data) that publish standings: the rows in parts, then `list.published`.

    Args:
        ladders: the ladders at the coordinates of the list.
        ranking: the standings.
        now: the present time.
        times: the ledger's time format, with its home zone.
        is_explicit: whether the user chose `as_of`, which must then be in the past.

    Raises `Refused` (list-running, period-open, list-empty).
    """
    as_of, ladder = ladders.as_of, ranking.ladder
    period = find_period(ladders.versions(ladder)[0].ruleset, ladder)
    if period is not None and is_period_open(period, now, as_of):
        end = f"{format_instant(period.end)[:19]}Z"
        if now <= period.end:
            raise Refused("list-running", f"{ladder} runs until {end}; publish it after that time")
        raise Refused(
            "list-running",
            f"the period of {ladder} ended at {end}, which is later than --as-of; publish it without --as-of",
        )
    if as_of is not None and is_explicit and now <= as_of:
        time = f"{format_instant(as_of)[:19]}Z"
        raise Refused("list-running", f"{time} is in the future; publish {ladder} then, or pass an earlier --as-of")
    progress = ranking.period_progress
    if progress is not None and progress.closes_at is not None:
        zone = times.home or ladders.versions(ladder)[0].ruleset.time_zone
        message = _describe_open_periods(ladder, progress, now, TimeFormat(zone), is_whole=period is not None)
        raise Refused("period-open", message)
    if not ranking.rows:
        raise Refused("list-empty", f"{ladder} has no players, so its list would be empty")
    digest, parts = ranking.digest, split_rows(ranking.json_rows())
    rows = [
        ("list.rows", {"ladder": ladder, "digest": digest, "part": number, "parts": len(parts), "rows": part})
        for number, part in enumerate(parts, 1)
    ]
    data = {
        "ladder": ladder,
        "known_at": ladders.facts.position,
        "ruleset": ranking.ruleset,
        "digest": digest,
        "row_count": len(ranking.rows),
        "parts": len(parts),
        "games": ranking.games,
    }
    if as_of is not None:
        data["as_of"] = format_instant(as_of)
    return [*rows, ("list.published", data)]


def refuse_published(connection: Connection, ladder: str, end: int) -> None:
    """Raise `Refused` (list-exists) if a ladder has been published up to an instant in the meantime."""
    lists = read_published_lists(connection, head(connection).position, ladder)
    if any(published.key == (ladder, end) for published in lists):
        time = f"{format_instant(end)[:19]}Z"
        raise Refused(
            "list-exists", f"{ladder} was published up to {time} while this command ran; nothing is left to do"
        )


def _describe_open_periods(ladder: str, progress: PeriodProgress, now: int, times: TimeFormat, is_whole: bool) -> str:
    """Return the message for a ladder with games in open rating periods, with the commands that publish it anyway.

    Args:
        ladder: the name of the ladder.
        progress: the state of the ladder's rating periods.
        now: the present time.
        times: the time format.
        is_whole: whether the ladder is a list of a month or year, which is published only with all of its games.
    """
    assert progress.closes_at is not None
    is_over = progress.closes_at < now
    problem = (
        f"{ladder} has {count(progress.open_games, 'game')} in rating periods that are not closed; the first period "
        f"{'ended' if is_over else 'ends'} at {times.format_with_zone(progress.closes_at)}"
    )
    remedies, command = [], f"ratings publish {shlex.quote(ladder)} --as-of"
    if progress.until is not None and not is_whole:
        remedies.append(f"to leave them out: {command} {format_end(progress.until, times.zone)}")
    if is_over:
        until = now if is_whole else progress.closes_at
        remedies.append(f"to include that period: {command} {format_end(until, times.zone)}")
    return "; ".join([problem, *(remedies or ["publish the list when all of these periods are closed"])])
