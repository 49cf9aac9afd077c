"""Build the home page: ladders, leagues, latest published lists and latest corrections."""

from itertools import groupby

from markupsafe import Markup

from ratings_ledger.ledger.events.revisions import GAME_EVENTS
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders
from ratings_ledger.web.addresses import INDEX
from ratings_ledger.web.charts import draw_sparkline
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit

CORRECTION_TYPES = [*sorted(GAME_EVENTS - {"game.recorded"})]
LATEST_ROWS = 5


def build_index_page(visit: Visit) -> Page:
    """Return the home page: ladders by ruleset, leagues, latest lists and corrections.

    Raises the errors of `Snapshot.ladders`.
    """
    ladders = visit.ladders
    groups = [
        (name, list(rows))
        for name, rows in groupby(drop_duplicate_ladders(ladders.rows), lambda row: row.ladder.partition("/")[0])
    ]
    published = visit.view.events(types=["list.published"], limit=LATEST_ROWS)
    corrected = visit.view.events(types=CORRECTION_TYPES, limit=LATEST_ROWS)
    sparklines = {row.ladder: Markup(draw_sparkline([0, *row.months])) for row in ladders.rows if len(row.months) > 1}
    variables = {
        "groups": groups,
        "published": [row.event for row in reversed(published.rows)],
        "corrected": [row.event for row in reversed(corrected.rows)],
        "failed": (*ladders.unusable, *ladders.failed),
        "leagues": visit.view.leagues().rows,
        "list_pages": visit.list_pages,
        "sparklines": sparklines,
    }
    return Page(
        path=INDEX,
        template="index",
        title="Ladders",
        answer=ladders,
        times=ladders.times,
        variables=variables,
        table="rows",
        query=visit.query,
    )
