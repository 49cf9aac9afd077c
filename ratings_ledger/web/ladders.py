"""The pages of ladders: who stands where, and what has moved."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from math import ceil
from statistics import median_high

from markupsafe import Markup

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.forecast import Prediction
from ratings_ledger.projections.queries.standings import Overview
from ratings_ledger.projections.replay.ladders import short_name
from ratings_ledger.web import addresses
from ratings_ledger.web.charts import distribution, spark
from ratings_ledger.web.page import Page, known_at_last, local, many, points, written
from ratings_ledger.web.visits import Visit

# so many rows are on a page; to pages so near there are links
ROWS, NEAR = 200, 3
# of so many players a distribution is shown
SPREAD_MIN = 8

# so many players are beside the next one
NEIGHBOURS = 10

Moment = tuple[str, dict[str, str | None], bool]


def ladder_page(visit: Visit, ladder: str, page: int = 1) -> Page:
    """Return the standings of a ladder, with what has moved: of a long one a page of its rows.

    Asked for `active_since`, it has those who played from then on; the digest is that of all rows. Raises as
    `Snapshot.overview` does, `Unknown` for a page behind the last.
    """
    active_since = visit.one("active_since")
    last = visit.last_event(ladder)
    first = (page - 1) * ROWS
    found = visit.view.overview(ladder, limit=ROWS, after=first, active_since=active_since)
    if page > 1 and not found.rows:
        raise Unknown("page-unknown", f"{short_name(ladder)} has no page {page:,}; it has {many(found.players, 'row')}")
    found = known_at_last(found, last)
    path = addresses.ladder(ladder, page)
    shown = {
        "published": ladder in visit.published,
        "found": found, "last": last, "moments": _moments(found, found.times, visit), "number": page,
        "sparks": [Markup(spark(row.last_units.units)) for row in found.rows], "active_since": active_since,
        "pages": _pages(ladder, page, found.players), "shown": f"{first + 1:,}–{first + len(found.rows):,}",
        "distribution": Markup(_distribution(found) if page == 1 else ""),
        "predictions": _predict_neighbours(visit, found) if page == 1 else (),
    }  # fmt: skip
    return Page(path, "ladder", short_name(ladder), found, found.times, shown, "rows", visit.query, visit.asked)


def pages_of(players: int) -> range:
    """Return the numbers of the pages of a ladder with so many players."""
    return range(1, max(1, ceil(players / ROWS)) + 1)


def _pages(ladder: str, number: int, players: int) -> list[tuple[str, addresses.Path | None]]:
    """Return the first, last and next pages, by the numbers of their rows; the one that is shown has no path."""
    every = pages_of(players)
    near = [one for one in every if one in (1, every[-1]) or abs(one - number) <= NEAR]
    told = {one: f"{(one - 1) * ROWS + 1:,}–{min(one * ROWS, players):,}" for one in near}
    return [(text, None if one == number else addresses.ladder(ladder, one)) for one, text in told.items()]


def _predict_neighbours(visit: Visit, found: Overview) -> Sequence[Prediction]:
    """Return what a game of each of the first players with the next one would give."""
    players = [row.player for row in found.rows if row.rank is not None][: NEIGHBOURS + 1]
    return visit.view.predict_pairs(found.ladder, [*pairwise(players)])


def _distribution(found: Overview) -> str:
    """Return how the points of everybody on the ladder are spread; nothing for a handful."""
    values = [row.value(found.ranking.scale) for row in found.ranking.rows]
    if len(values) < SPREAD_MIN:
        return ""
    return distribution(
        values,
        title=f"How the points on {short_name(found.ladder)} are spread",
        description=f"{many(len(values), 'player')} have from {points(min(values))} to {points(max(values))}; "
        f"half of them have {points(median_high(values))} or more.",
        prefix="spread",
    )


def _moments(found: Overview, times: Times, visit: Visit) -> list[Moment]:
    """Other moments that somebody may want to see: what is written, the coordinates, and whether it is shown now."""
    there: list[Moment] = [("Now", {"as_of": None, "known_at": None, "rules": None}, not visit.query)]
    if found.since is not None:
        end = local(times, found.since)
        there.append((f"end of {written(end)}", {"as_of": f"{end:%Y-%m-%d}"}, False))
        before = end.replace(day=1) - timedelta(days=1)
        there.append((f"end of {written(before)}", {"as_of": f"{before:%Y-%m-%d}"}, False))
    return there
