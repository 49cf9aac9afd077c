"""Build the ladder pages: standings, with the changes since the end of a month."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from math import ceil
from statistics import median_high
from typing import NamedTuple

from markupsafe import Markup

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import count
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.queries.forecast import Prediction
from ratings_ledger.projections.queries.standings import Overview, format_ratings
from ratings_ledger.projections.replay.ladder_names import short_name
from ratings_ledger.web import addresses
from ratings_ledger.web.charts import draw_distribution, draw_sparkline
from ratings_ledger.web.page import Page, format_date, format_points, pin_known_at, to_local
from ratings_ledger.web.visits import Visit

PAGE_ROWS = 200
NEARBY_PAGES = 3  # pages linked on each side of the current one
DISTRIBUTION_MIN = 8  # a ladder with fewer players has no distribution chart
NEIGHBOUR_PAIRS = 10  # pairs of neighbours in the standings for which a game is predicted


class DateLink(NamedTuple):
    """A link to the ladder at another time: its text, its coordinates, and whether it leads to the current page."""

    text: str
    query: dict[str, str | None]
    is_current: bool


def build_ladder_page(visit: Visit, ladder: str, page: int = 1) -> Page:
    """Return a page of a ladder's standings, with recent changes.

    With `active_since`, only players who have played since then are listed; the digest covers all rows. Raises the
    errors of `Snapshot.overview`, and `Unknown` if there is no such page.
    """
    active_since = visit.parameter("active_since")
    last = visit.last_event(ladder)
    offset = (page - 1) * PAGE_ROWS
    overview = visit.view.overview(ladder, limit=PAGE_ROWS, after=offset, active_since=active_since)
    if page > 1 and not overview.rows:
        name = short_name(ladder)
        last_page = max(1, ceil(overview.players / PAGE_ROWS))
        raise Unknown("page-unknown", f"{name} has no page {page:,}; its last page is {last_page:,}")
    overview = pin_known_at(overview, last)
    variables = {
        "overview": overview,
        "last": last,
        "is_published": ladder in visit.published_ladders,
        "date_links": _list_date_links(overview, overview.times, visit),
        "active_since": active_since,
        "number": page,
        "pages": _list_page_links(ladder, page, overview.players),
        "row_range": f"{offset + 1:,}–{offset + len(overview.rows):,}",
        "ratings": format_ratings(overview.rows),
        "sparklines": [Markup(draw_sparkline(row.last_units.units)) for row in overview.rows],
        "distribution": Markup(_draw_distribution(overview) if page == 1 else ""),
        "predictions": _predict_neighbours(visit, overview) if page == 1 else (),
    }
    return Page(
        path=addresses.ladder(ladder, page),
        template="ladder",
        title=short_name(ladder),
        answer=overview,
        times=overview.times,
        variables=variables,
        table="rows",
        query=visit.query,
        parameters=visit.parameters,
    )


def list_page_numbers(players: int) -> range:
    """Return the numbers of the pages of a ladder with this many players."""
    return range(1, max(1, ceil(players / PAGE_ROWS)) + 1)


def _list_page_links(ladder: str, current: int, players: int) -> list[tuple[str, addresses.PagePath | None]]:
    """Return the row range and path of the first, last and nearby pages; the current page has no path."""
    numbers = list_page_numbers(players)
    links: list[tuple[str, addresses.PagePath | None]] = []
    for number in numbers:
        if number in (1, numbers[-1]) or abs(number - current) <= NEARBY_PAGES:
            text = f"{(number - 1) * PAGE_ROWS + 1:,}–{min(number * PAGE_ROWS, players):,}"
            links.append((text, None if number == current else addresses.ladder(ladder, number)))
    return links


def _predict_neighbours(visit: Visit, overview: Overview) -> Sequence[Prediction]:
    """Predict a game of each of the top players against the next player."""
    players = [row.player for row in overview.rows if row.rank is not None][: NEIGHBOUR_PAIRS + 1]
    return visit.view.predict_pairs(overview.ladder, [*pairwise(players)])


def _draw_distribution(overview: Overview) -> str:
    """Return the chart of the rating distribution, or an empty string for a small ladder."""
    values = [row.exact_points(overview.ranking.scale) for row in overview.ranking.rows]
    if len(values) < DISTRIBUTION_MIN:
        return ""
    return draw_distribution(
        values,
        title=f"Rating distribution on {short_name(overview.ladder)}",
        description=f"{count(len(values), 'player')} have {format_points(min(values))} to "
        f"{format_points(max(values))} points; at least half have {format_points(median_high(values))} or more.",
        prefix="spread",
    )


def _list_date_links(overview: Overview, times: TimeFormat, visit: Visit) -> list[DateLink]:
    """Return links to the ladder now and at the ends of the two months before the month of the last game."""
    links = [DateLink("Now", {"as_of": None, "known_at": None, "rules": None}, is_current=not visit.query)]
    if overview.since is not None:
        end = to_local(times, overview.since)
        for day in (end, end.replace(day=1) - timedelta(days=1)):
            links.append(DateLink(f"end of {format_date(day)}", {"as_of": f"{day:%Y-%m-%d}"}, is_current=False))
    return links
