"""The pages of changes: what one event did to everybody's points."""

from dataclasses import replace

from ratings_ledger.projections.replay.ladders import distinct_ladders
from ratings_ledger.web import addresses
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit

DID = {
    "game.recorded": "the record", "game.corrected": "the correction", "game.voided": "the voiding",
    "game.reinstated": "the reinstatement", "event.voided": "the withdrawal", "points.adjusted": "the adjustment",
    "player.renamed": "the new id", "player.account_changed": "the new account", "ruleset.published": "the new rules",
    "player.seeded": "the seed", "club.renamed": "the club's new name",
}  # fmt: skip


def change_page(visit: Visit, position: int) -> Page:
    """Return what the event at a position did. Raises as `Snapshot.event_impact` does."""
    found = visit.view.event_impact(position)
    plain = [replace(one, gains=(), losses=(), others=()) for one in found.ladders]
    seen = distinct_ladders(found.rows, plain)
    told = {
        "found": found, "concerned": [one for one in found.ladders if one.ladder in seen],
        "standing": visit.standing, "ladders": {row.ladder for row in visit.ladders.rows},
        "lists": visit.lists, "has_game": found.game_id is not None and visit.view.has_game(found.game_id),
    }  # fmt: skip
    what = DID.get(found.type, f"position {found.position}")
    title = f"What {what}{f' of {found.game_id}' if found.game_id else ''} did"
    return Page(addresses.change(found.position), "change", title, found, found.times, told, "rows", visit.query)
