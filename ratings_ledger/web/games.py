"""The pages of games: what became of each, on every ladder why it changed points, and its clock; all as a file."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.projections.diff.other_results import has_other_results
from ratings_ledger.projections.queries.game_timelines import GameTimeline
from ratings_ledger.projections.replay.ladders import drop_duplicate_ladders
from ratings_ledger.web import addresses
from ratings_ledger.web.page import Page, known_at_last
from ratings_ledger.web.visits import Visit

GAMES = "games.jsonl"
LINES_TOGETHER = 1_000
# of a game with more participants no other result is shown
OTHERWISE_MAX = 16


def game_page(visit: Visit, game_id: str) -> Page:
    """Return a game as it stands, its story, and on every ladder why it changed points, term by term.

    Raises `Unknown` (game-unknown).
    """
    return page_of_story(visit, visit.view.story(game_id))


def page_of_story(visit: Visit, found: GameTimeline) -> Page:
    """Return the page of a game whose story is known."""
    found = known_at_last(found, found.last)
    found = replace(found, ladders=tuple(known_at_last(one, found.last) for one in found.ladders))
    title = f"Game {found.game_id}"
    shown = {"found": found, "ladders": drop_duplicate_ladders(found.ladders),
             "telling": visit.telling, "has_clock": found.game_id in visit.clocks,
             "places": not found.voided and len(found.data["participants"]) <= OTHERWISE_MAX
             and has_other_results(found.data)}  # fmt: skip
    return Page(addresses.game(found.game_id), "game", title, found, found.times, shown, None, visit.query)


def otherwise_page(visit: Visit, game_id: str) -> Page:
    """Return what a game would have given with other places, asked for in the order of its participants.

    Raises as `Snapshot.other_result` does.
    """
    asked = visit.asked.get("place", ())
    if len(asked) > OTHERWISE_MAX:
        raise BadArgument(f"other results are shown of games with at most {OTHERWISE_MAX} participants", "place")
    if not all(one.isascii() and one.isdigit() and len(one) < 3 for one in asked):
        raise BadArgument("places are whole numbers from 1 on, one for each participant", "place")
    found = visit.view.other_result(game_id, [int(one) for one in asked])
    found = known_at_last(found, found.last)
    shown = {
        "found": found, "participants": found.data["participants"], "standing": visit.standing,
        "ladders": [
            (ladder, [*rows])
            for ladder, rows in groupby(drop_duplicate_ladders(found.rows), lambda row: row.ladder)
        ],
    }  # fmt: skip
    title = f"Game {game_id} with another result"
    return Page(
        addresses.otherwise(game_id), "otherwise", title, found, found.times, shown, "rows", visit.query, visit.asked
    )


def clock_page(visit: Visit, game_id: str) -> Page:
    """Return the timers of a game at the last event of its clock, and why players were removed."""
    found = visit.view.clock(game_id)
    removed = [
        visit.view.clock_of(game_id, one.player, found.at) for one in found.players if one.removed_at is not None
    ]
    shown = {"found": found, "removed": removed, "has_game": visit.view.has_game(game_id)}
    title = f"The clock of game {game_id}"
    return Page(addresses.clock(game_id), "clock", title, found, found.times, shown, "players", visit.query)


def game_lines(visit: Visit, after: int = 0) -> Iterator[bytes]:
    """Yield all games that are not voided and recorded behind a position, as `import` takes them: many lines at a time.

    Raises as `Snapshot.live_games` does.
    """
    lines: list[str] = []
    for game in visit.view.live_games(after):
        played = game.occurred_at.isoformat(timespec="microseconds").replace("+00:00", "Z")
        event = {"type": "game.recorded", "occurred_at": played, "data": game.data}
        lines.append(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")
        if len(lines) == LINES_TOGETHER:
            yield "".join(lines).encode()
            lines = []
    yield "".join(lines).encode()
