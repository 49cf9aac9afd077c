"""The pages of lists: which there are, and each published one beside the same list as known now."""

from dataclasses import replace

from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladders import short_name
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import LISTS
from ratings_ledger.web.page import Page, known_at_last
from ratings_ledger.web.visits import Visit


def lists_page(visit: Visit) -> Page:
    """Return the published lists, and the lists of months and years. Raises as `Snapshot.lists` does."""
    found = visit.view.lists()
    lasts = [visit.last_event(row.list).position for row in found.rows]
    # only a decision can take a list away
    last = max([*lasts, visit.decided, *(row.position for row in found.published)], default=0)
    # pages are kept until the next event, but what is due changes with the time
    found = replace(found, at=found.at._replace(known_at=last), schedules=ABSENT)
    shown = {
        "found": found, "published": [row for row in found.published if row.ladder in visit.published],
        "failed": (*found.unusable, *found.failed), "last": last,
    }  # fmt: skip
    return Page(LISTS, "lists", "Lists", found, found.times, shown, "rows", visit.query)


def list_page(visit: Visit, ladder: str, position: int | None = None) -> Page:
    """Return the list of a ladder published at a position, or that of the latest time or for `as_of`, beside the same
    list as known now.

    Raises as `Snapshot.list_beside` does.
    """
    found = visit.view.list_beside(ladder, position)
    found = known_at_last(found, found.last)
    every = [row for row in visit.view.publications().rows if row.ladder == ladder]
    causes = {cause.decision for row in found.rows for cause in row.causes}
    shown = {"found": found, "others": every, "several": len(causes) > 1, "standing": visit.standing,
             "position": position, "is_last": position is None and "as_of" not in visit.query,
             "has_ladder": any(row.ladder == ladder for row in visit.ladders.rows)}  # fmt: skip
    title = f"{short_name(ladder)} as published"
    return Page(addresses.published(ladder, position), "list", title, found, found.times, shown, "rows", visit.query)
