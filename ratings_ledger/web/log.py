"""Build the pages of the log: events, newest first, with who recorded them and why."""

from typing import Any

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.events.revisions import UNREADABLE
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.rejections import count
from ratings_ledger.projections.queries.event_texts import describe_recorded_event
from ratings_ledger.projections.queries.recorded_events import RecordedEvents
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import LOG, PagePath
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit

PAGE_EVENTS = 200
FILTERS = "about", "type", "by"  # query parameters of the log page
# the path and query parameters of the page with older events
OlderLink = tuple[PagePath, dict[str, Any]] | None


def build_log_page(visit: Visit) -> Page:
    """Return the page of the newest events, filtered by subject, type or recorder.

    Raises the errors of `Snapshot.events`.
    """
    filters = {name: value for name in FILTERS if (value := visit.parameter(name)) is not None}
    about, type_name = filters.get("about"), filters.get("type")
    events = visit.view.events(
        None if about is None else to_nfc(about),
        by=filters.get("by"),
        types=[type_name] if type_name else (),
        limit=PAGE_EVENTS,
    )
    older: OlderLink = None
    if events.older and (filters or visit.query):
        older = (LOG, {**filters, "known_at": events.rows[0].event["position"] - 1})
    elif events.older:
        older = (addresses.log_page(count_complete_pages(events.rows[-1].event["position"])), {})
    return _build_page(visit, events, LOG, filters=filters, older=older, newer=None)


def build_part_page(visit: Visit, part: int) -> Page:
    """Return a complete page of the log, as known at its end. Raises `Unknown` if there is no such page."""
    pages = count_complete_pages(visit.head)
    if part > pages:
        message = (
            f"page {part:,} is not in the log, which has {count(pages, 'complete page')}; newer events are on /log"
        )
        raise Unknown("page-unknown", message)
    end = part * PAGE_EVENTS
    events = visit.ledger.at(known_at=end).events(since=str(end - PAGE_EVENTS + 1))
    older: OlderLink = (addresses.log_page(part - 1), {}) if part > 1 else None
    newer = LOG if part == pages else addresses.log_page(part + 1)
    return _build_page(visit, events, addresses.log_page(part), filters={}, older=older, newer=newer)


def count_complete_pages(head: int) -> int:
    """Return the number of full log pages; the newest page, which ends at the head, does not count."""
    return max(0, head - 1) // PAGE_EVENTS


def _build_page(
    visit: Visit,
    events: RecordedEvents,
    path: PagePath,
    *,
    filters: dict[str, str],
    older: OlderLink,
    newer: PagePath | None,
) -> Page:
    rows = [
        (
            row,
            describe_recorded_event(row, events.times),
            UNREADABLE not in row.event and row.event["data"].get("game_id"),
        )
        for row in reversed(events.rows)
    ]
    variables = {
        "rows": rows,
        "impact_positions": visit.impact_positions,
        "filters": filters,
        "older": older,
        "newer": newer,
        "types": sorted(TYPES),
    }
    return Page(
        path=path,
        template="log",
        title="Log",
        answer=events,
        times=events.times,
        variables=variables,
        table="rows",
        query=visit.query,
        parameters=visit.parameters,
    )
