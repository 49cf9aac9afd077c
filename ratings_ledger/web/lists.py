"""Build the list pages: all lists on one page, and each published list compared with its current version."""

from dataclasses import replace

from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladder_names import short_name
from ratings_ledger.web import addresses
from ratings_ledger.web.addresses import LISTS
from ratings_ledger.web.page import Page, pin_known_at
from ratings_ledger.web.visits import Visit


def build_lists_page(visit: Visit) -> Page:
    """Return the page of published, monthly and yearly lists. Raises the errors of `Snapshot.lists`."""
    lists = visit.view.lists()
    positions = [visit.last_event(row.list).position for row in lists.rows]
    # a list that a decision removed has no row here, so the last decision counts, too
    last = max([*positions, visit.last_decision, *(row.position for row in lists.published)], default=0)
    # a page is cached until the next event, but due months depend on the time
    lists = replace(lists, at=lists.at._replace(known_at=last), schedules=ABSENT)
    variables = {
        "lists": lists,
        "published": [row for row in lists.published if row.ladder in visit.published_ladders],
        "failed": (*lists.unusable, *lists.failed),
        "last": last,
    }
    return Page(
        path=LISTS,
        template="lists",
        title="Lists",
        answer=lists,
        times=lists.times,
        variables=variables,
        table="rows",
        query=visit.query,
    )


def build_list_page(visit: Visit, ladder: str, position: int | None = None) -> Page:
    """Return the page that compares a published list with the same list today.

    Select the list published at `position`, else the list for the visit's `as_of`, else the latest list. Raises the
    errors of `Snapshot.compare_published`.
    """
    diff = visit.view.compare_published(ladder, position)
    diff = pin_known_at(diff, diff.last)
    causes = {cause.decision for row in diff.rows for cause in row.causes}
    variables = {
        "diff": diff,
        "publications": [row for row in visit.view.publications().rows if row.ladder == ladder],
        "has_several_causes": len(causes) > 1,
        "player_pages": visit.player_pages,
        "position": position,
        "is_latest": position is None and "as_of" not in visit.query,
        "has_ladder": any(row.ladder == ladder for row in visit.ladders.rows),
    }
    path, title = addresses.published_list(ladder, position), f"{short_name(ladder)} as published"
    return Page(
        path=path,
        template="list",
        title=title,
        answer=diff,
        times=diff.times,
        variables=variables,
        table="rows",
        query=visit.query,
    )
