"""The first page: all ladders, the leagues, the lists that were published last, and the last corrections."""

from itertools import groupby

from markupsafe import Markup

from ratings_ledger.ledger.events.revisions import GAME_EVENTS
from ratings_ledger.projections.replay.ladders import drop_duplicate_ladders
from ratings_ledger.web.addresses import INDEX
from ratings_ledger.web.charts import spark
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit

CORRECTING = [*sorted(GAME_EVENTS - {"game.recorded"})]
LAST = 5


def index_page(visit: Visit) -> Page:
    """Return all ladders by ruleset, what was published last, and what was corrected last. Raises as `Snapshot.ladders`
    does.
    """
    found = visit.ladders
    groups = [
        (name, list(rows))
        for name, rows in groupby(drop_duplicate_ladders(found.rows), lambda row: row.ladder.partition("/")[0])
    ]
    published = visit.view.events(types=["list.published"], limit=LAST)
    corrected = visit.view.events(types=CORRECTING, limit=LAST)
    shown = {
        "groups": groups, "published": [row.event for row in reversed(published.rows)],
        "corrected": [row.event for row in reversed(corrected.rows)], "failed": (*found.unusable, *found.failed),
        "leagues": visit.view.leagues().rows, "lists": visit.lists,
        "sparks": {row.ladder: Markup(spark([0, *row.months])) for row in found.rows
                   if len(row.months) > 1},
    }  # fmt: skip
    return Page(INDEX, "index", "Ladders", found, found.times, shown, "rows", visit.query)
