"""Publishing lists: the events that do it, once the period of the list is over."""

from __future__ import annotations

from typing import Any

from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.published_lists import parts_of_rows
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.rulesets.versions import is_running, period_of


def publication(ladders: Ladders, found: Ranking, now: int, asked: bool = True) -> list[tuple[str, dict[str, Any]]]:
    """Return the events (type, data) that publish these standings: rows in parts, then the head that names them.

    `asked`: their `as_of` was asked for explicitly, and must then be in the past.

    Raises `Refused` (list-running, list-empty).
    """
    as_of, ladder = ladders.as_of, found.ladder
    period = period_of(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values)
    if period is not None and is_running(period, now, as_of):
        end = f"{format_instant(period.end)[:19]}Z"
        if now <= period.end:
            raise Refused("list-running", f"{ladder} runs until {end}; publish it after that")
        raise Refused("list-running", f"{ladder} ran until {end}; publish the whole of it, without --as-of")
    if as_of is not None and asked and now <= as_of:
        raise Refused("list-running", f"{format_instant(as_of)[:19]}Z is still to come; publish {ladder} after that")
    if not found.rows:
        raise Refused("list-empty", f"nobody is on {ladder}, so there is nothing to publish")
    digest, parts = found.digest, parts_of_rows(found.json_rows())
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
