"""The pages of the log: the events, newest first, and who recorded what and why."""

from typing import Any

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.events.revisions import UNREADABLE
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.projections.queries.event_texts import words_of
from ratings_ledger.projections.queries.games_log import RecordedEvents
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import LOG, Path
from ratings_ledger.web.page import Page, many
from ratings_ledger.web.visits import Visit

PAGE_EVENTS = 200
FILTERS = "about", "type", "by"  # what a part of the log can be asked for by
# where older events are, and with which members behind the ?
Older = tuple[Path, dict[str, Any]] | None


def log_page(visit: Visit) -> Page:
    """Return the newest events, or those about something, of a type, by somebody. Raises as `Snapshot.events` does."""
    filters = {name: value for name in FILTERS if (value := visit.one(name)) is not None}
    about, type_name = filters.get("about"), filters.get("type")
    found = visit.view.events(
        None if about is None else to_nfc(about), by=filters.get("by"), types=[type_name] if type_name else (),
        limit=PAGE_EVENTS,
    )  # fmt: skip
    older: Older = None
    if found.older and (filters or visit.query):
        older = (LOG, {**filters, "known_at": found.rows[0].event["position"] - 1})
    elif found.older:
        older = (addresses.log_page(complete_pages(found.rows[-1].event["position"])), {})
    return _page(visit, found, LOG, filters, older, None)


def part_page(visit: Visit, part: int) -> Page:
    """Return a complete part of the log, as known at its end. Raises `Unknown` where there is none."""
    most = complete_pages(visit.head)
    if part > most:
        raise Unknown("page-unknown", f"the log has {many(most, 'complete page')}, and no page {part:,}")
    end = part * PAGE_EVENTS
    found = visit.ledger.at(known_at=end).events(since=str(end - PAGE_EVENTS + 1))
    older: Older = (addresses.log_page(part - 1), {}) if part > 1 else None
    newer = LOG if part == most else addresses.log_page(part + 1)
    return _page(visit, found, addresses.log_page(part), {}, older, newer)


def complete_pages(head: int) -> int:
    """Return how many pages the log has besides the newest one, which always ends at its head."""
    return max(0, head - 1) // PAGE_EVENTS


def _page(
    visit: Visit, found: RecordedEvents, path: Path, filters: dict[str, str],
    older: Older, newer: Path | None,
) -> Page:  # fmt: skip
    rows = [
        (row, words_of(row, found.times), UNREADABLE not in row.event and row.event["data"].get("game_id"))
        for row in reversed(found.rows)
    ]  # fmt: skip
    shown = {
        "rows": rows, "telling": visit.telling, "filters": filters, "older": older, "newer": newer,
        "types": sorted(TYPES),
    }  # fmt: skip
    return Page(path, "log", "Log", found, found.times, shown, "rows", visit.query, visit.asked)
