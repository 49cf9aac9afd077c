"""The pages of leagues: who plays, the schedule, and the table."""

from ratings_ledger.ledger.errors import LedgerError, Unknown
from ratings_ledger.web import addresses
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit


def league_page(visit: Visit, league: str) -> Page:
    """Return a league's schedule with what is played and what is open, and its table. Raises `Unknown`."""
    try:
        found = visit.view.league(league)
    except LedgerError as problem:
        if problem.reason != "league-unknown":
            raise
        raise Unknown("league-unknown", str(problem)) from None
    last = None if found.ladder is None else visit.last_event(found.ladder)
    on_ladder = {player for player, ladder in visit.standing if ladder == found.ladder}
    shown = {
        "found": found, "last": last, "on_ladder": on_ladder,
        "has_ladder": any(row.ladder == found.ladder for row in visit.ladders.rows),
    }  # fmt: skip
    return Page(addresses.league(league), "league", f"League {league}", found, found.times, shown, "table", visit.query)
