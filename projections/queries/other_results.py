"""What a game would have given its players with another result, on each ladder where it counts."""

from collections.abc import Iterator, Sequence
from typing import Any

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.rejections import Refused, count
from ratings_ledger.projections.queries.answers_explained import GameExplanation
from ratings_ledger.projections.queries.answers_told import OtherResult, WouldGive
from ratings_ledger.projections.queries.explanation import explain_game, row_of_game
from ratings_ledger.projections.queries.impact import with_drafts
from ratings_ledger.projections.queries.standings import Ladders
from ratings_ledger.projections.queries.stories import game_story, ladders_of_game
from ratings_ledger.projections.queries.survey import Survey


def other_result(seen: Survey, game_id: str, places: Sequence[int]) -> OtherResult:
    """What a game would have given with other places, in the order of its participants; its players come with the
    points that they had.

    Raises `Unknown` (game-unknown), and `BadArgument` for places that no result of the game has.
    """
    story = game_story(seen, game_id)
    seen.failures = []  # which are met again
    if story.voided:
        raise BadArgument(f"{game_id} is voided: it gives nothing, whatever its result", "place")
    corrected = _corrected(story.data, places)
    after, *_ = with_drafts(seen.connection, seen.everything, [corrected])
    row = row_of_game(seen.connection, seen.facts, game_id)
    rows = list[WouldGive]()
    for ladder in ladders_of_game(after.facts, row):
        with seen.noting():
            rows += _on_ladder(seen, after, ladder, game_id, row)
    return OtherResult(
        game_id, seen.coordinates, tuple(places), tuple(rows), data=story.data, last=story.last,
        failed=tuple(dict.fromkeys(seen.failures)), times=seen.times,
    )  # fmt: skip


def has_other_results(data: dict[str, Any]) -> bool:
    """Whether the participants of a game could have had other places: not where these follow from scores, or where
    somebody took over a seat.
    """
    return all("place" in one and not one.keys() & {"score", "replaces"} for one in data["participants"])


def _corrected(data: dict[str, Any], places: Sequence[int]) -> Draft:
    """The correction that gives a game other places. Raises `BadArgument`."""
    participants = data["participants"]
    if not has_other_results(data):
        raise BadArgument(f"{data['game_id']} has no places that could be others", "place")
    if len(places) != len(participants):
        told = f"{data['game_id']} has {count(len(participants), 'participant')}, and {count(len(places), 'place')}"
        raise BadArgument(f"{told} are given", "place")
    seats = [{**one, "place": place} for one, place in zip(participants, places, strict=True)]
    game = {**data, "participants": seats}
    event = {
        "type": "game.corrected", "data": {"game_id": data["game_id"], "game": game, "reason": "another result"},
        "occurred_at": "2000-01-01T00:00:00Z",
    }  # fmt: skip
    try:
        return read_event(event)[0]
    except Refused as problem:
        raise BadArgument(f"no result has these places: {problem.message}", "place") from None


def _on_ladder(seen: Survey, after: Ladders, ladder: str, game_id: str, row: int) -> Iterator[WouldGive]:
    """What everybody would have got there, by their places. Raises `RuleFailure`."""
    ruleset_id = ladder.partition("/")[0]
    if ruleset_id not in seen.usable:
        return
    there = seen.ladders(ruleset_id)
    # what everybody came with is the same, whatever its result
    had = there.just_before(ladder, (seen.facts.occurred_at[row], seen.facts.first_position[row]))
    was, would_be = (
        explain_game(ladders, ladder, game_id, row, before=had) for ladders in (there, after.at(there.as_of))
    )
    if not would_be.counted:
        return
    gave = _changes(was)
    for one in would_be.players:
        before = gave.get(one.player)
        yield WouldGive(
            ladder, one.player, one.place, before, one.change, None if before is None else one.change - before
        )


def _changes(found: GameExplanation) -> dict[str, Any]:
    return {one.player: one.change for one in found.players} if found.counted else {}
