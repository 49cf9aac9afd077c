"""Build the game pages: timeline, explained scores, hypothetical results, clock; and a JSONL export of all games."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.projections.diff.other_results import has_other_results
from ratings_ledger.projections.queries.game_timelines import GameTimeline
from ratings_ledger.projections.replay.ladder_names import drop_duplicate_ladders
from ratings_ledger.web import addresses
from ratings_ledger.web.page import Page, pin_known_at
from ratings_ledger.web.visits import Visit

GAMES_FILE = "games.jsonl"
LINES_PER_CHUNK = 1_000
# hypothetical results are limited to games with at most this many participants
HYPOTHETICAL_PARTICIPANTS_MAX = 16


def build_game_page(visit: Visit, game_id: str) -> Page:
    """Return a game's page: its current state, its timeline, and its score on each ladder, term by term.

    Raises `Unknown` (game-unknown).
    """
    return build_timeline_page(visit, visit.view.timeline(game_id))


def build_timeline_page(visit: Visit, timeline: GameTimeline) -> Page:
    """Build the page from a loaded timeline."""
    timeline = pin_known_at(timeline, timeline.last)
    ladders = tuple(pin_known_at(ladder, timeline.last) for ladder in timeline.ladders)
    timeline = replace(timeline, ladders=ladders)
    has_few_participants = len(timeline.data["participants"]) <= HYPOTHETICAL_PARTICIPANTS_MAX
    variables = {
        "timeline": timeline,
        "ladders": drop_duplicate_ladders(timeline.ladders),
        "impact_positions": visit.impact_positions,
        "has_clock": timeline.game_id in visit.games_with_clock,
        "can_try_other_results": not timeline.voided and has_few_participants and has_other_results(timeline.data),
    }
    path, title = addresses.game(timeline.game_id), f"Game {timeline.game_id}"
    return Page(
        path=path,
        template="game",
        title=title,
        answer=timeline,
        times=timeline.times,
        variables=variables,
        table=None,
        query=visit.query,
    )


def build_hypothetical_result_page(visit: Visit, game_id: str) -> Page:
    """Return the page that scores a game with hypothetical places, given in participant order.

    Raises the errors of `Snapshot.other_result`.
    """
    places = visit.parameters.get("place", ())
    if len(places) > HYPOTHETICAL_PARTICIPANTS_MAX:
        raise BadArgument(
            f"{len(places)} places are too many; hypothetical results are limited to games with at most "
            f"{HYPOTHETICAL_PARTICIPANTS_MAX} participants",
            "place",
        )
    for place in places:
        if not (place.isascii() and place.isdigit() and len(place) < 3):
            raise BadArgument(
                f"{quote(place)} is not a place; give one whole number from 1 to 99 per participant", "place"
            )
    hypothetical = visit.view.other_result(game_id, [int(place) for place in places])
    hypothetical = pin_known_at(hypothetical, hypothetical.last)
    rows = drop_duplicate_ladders(hypothetical.rows)
    variables = {
        "hypothetical": hypothetical,
        "participants": hypothetical.data["participants"],
        "player_pages": visit.player_pages,
        "ladders": [(ladder, [*rows]) for ladder, rows in groupby(rows, lambda row: row.ladder)],
    }
    return Page(
        path=addresses.what_if(game_id),
        template="what_if",
        title=f"Game {game_id} with a hypothetical result",
        answer=hypothetical,
        times=hypothetical.times,
        variables=variables,
        table="rows",
        query=visit.query,
        parameters=visit.parameters,
    )


def build_clock_page(visit: Visit, game_id: str) -> Page:
    """Return a game's clock page: each player's timer at the last clock event, and why players were removed."""
    clock = visit.view.clock(game_id)
    removals = [
        visit.view.clock_of(game_id, player.player, clock.at)
        for player in clock.players
        if player.removed_at is not None
    ]
    variables = {"clock": clock, "removals": removals, "has_game": visit.view.has_game(game_id)}
    path, title = addresses.clock(game_id), f"Clock of game {game_id}"
    return Page(
        path=path,
        template="clock",
        title=title,
        answer=clock,
        times=clock.times,
        variables=variables,
        table="players",
        query=visit.query,
    )


def iterate_game_lines(visit: Visit, after: int = 0) -> Iterator[bytes]:
    """Yield the live games recorded after a position as importable JSON lines, in chunks.

    Raises the errors of `Snapshot.live_games`.
    """
    lines: list[str] = []
    for game in visit.view.live_games(after):
        played = game.occurred_at.isoformat(timespec="microseconds").replace("+00:00", "Z")
        event = {"type": "game.recorded", "occurred_at": played, "data": game.data}
        lines.append(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")
        if len(lines) == LINES_PER_CHUNK:
            yield "".join(lines).encode()
            lines = []
    yield "".join(lines).encode()
