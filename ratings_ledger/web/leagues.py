"""Build a league's page: players, schedule and table."""

from ratings_ledger.ledger.errors import LedgerError, Unknown
from ratings_ledger.web import addresses
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit


def build_league_page(visit: Visit, league: str) -> Page:
    """Return a league's page: its schedule, with played and open games, and its table. Raises `Unknown`."""
    try:
        state = visit.view.league(league)
    except LedgerError as problem:
        if problem.reason != "league-unknown":
            raise
        raise Unknown("league-unknown", str(problem)) from None
    variables = {
        "league": state,
        "last": None if state.ladder is None else visit.last_event(state.ladder),
        "ranked_players": {player for player, ladder in visit.player_pages if ladder == state.ladder},
        "has_ladder": any(row.ladder == state.ladder for row in visit.ladders.rows),
    }
    path, title = addresses.league(league), f"League {league}"
    return Page(
        path=path,
        template="league",
        title=title,
        answer=state,
        times=state.times,
        variables=variables,
        table="table",
        query=visit.query,
    )
