"""Build the page that shows the impact of an event on ratings."""

from dataclasses import replace

from ratings_ledger.projections.replay.ladder_names import distinct_ladders
from ratings_ledger.web import addresses
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit

EVENT_NOUNS = {
    "game.recorded": "the record",
    "game.corrected": "the correction",
    "game.voided": "the voiding",
    "game.reinstated": "the reinstatement",
    "event.voided": "the withdrawal",
    "points.adjusted": "the adjustment",
    "player.renamed": "the new id",
    "player.account_changed": "the new account",
    "ruleset.published": "the new rules",
    "player.seeded": "the seed",
    "club.renamed": "the club's new name",
}


def build_change_page(visit: Visit, position: int) -> Page:
    """Return the impact page of the event at `position`. Raises the errors of `Snapshot.event_impact`."""
    impact = visit.view.event_impact(position)
    summaries = [replace(ladder, gains=(), losses=(), joined_or_left=()) for ladder in impact.ladders]
    distinct = distinct_ladders(impact.rows, summaries)
    variables = {
        "impact": impact,
        "affected": [ladder for ladder in impact.ladders if ladder.ladder in distinct],
        "player_pages": visit.player_pages,
        "ladders": {row.ladder for row in visit.ladders.rows},
        "list_pages": visit.list_pages,
        "has_game": impact.game_id is not None and visit.view.has_game(impact.game_id),
    }
    event = EVENT_NOUNS.get(impact.type, f"the event at position {impact.position}")
    title = f"Impact of {event}{f' of {impact.game_id}' if impact.game_id else ''}"
    path = addresses.event_impact(impact.position)
    return Page(
        path=path,
        template="change",
        title=title,
        answer=impact,
        times=impact.times,
        variables=variables,
        table="rows",
        query=visit.query,
    )
