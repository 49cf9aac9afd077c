"""What if one game had another result? Nothing is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.rejections import Refused, count
from ratings_ledger.projections.diff.affected import with_drafts
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.explain import GameExplanation, explain_game, row_of_game
from ratings_ledger.projections.queries.game_timelines import game_story, ladders_of_game
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import HIDDEN, Answer, LastEvent, Result, RowSequence
from ratings_ledger.projections.queries.survey import Survey


@dataclass(frozen=True, slots=True)
class HypotheticalResult(Result):
    """What a game gave a player on a ladder, None if nothing, and what it would have given with another place."""

    ladder: str
    player: str
    place: int | None
    gave: Fraction | None
    would_give: Fraction
    difference: Fraction | None


@dataclass(frozen=True, slots=True)
class OtherResult(Answer, RowSequence[HypotheticalResult]):
    """A game with other `places`, in the order of its participants: what everybody would have got, by ladder.

    `data` is the game as it stands; `last` is the last event that it depends on.
    """

    game_id: str
    at: Coordinates
    places: tuple[int, ...]
    rows: tuple[HypotheticalResult, ...]
    data: dict[str, Any] = field(metadata=HIDDEN, kw_only=True)
    last: LastEvent = field(metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


def other_result(survey: Survey, game_id: str, places: Sequence[int]) -> OtherResult:
    """Return what a game would have given with other places, in the order of its participants; its players come with
    the points that they had.

    Raises `Unknown` (game-unknown), and `BadArgument` for places that no result of the game has.
    """
    story = game_story(survey, game_id)
    survey.failures = []  # which are met again
    if story.voided:
        raise BadArgument(f"{game_id} is voided: it gives nothing, whatever its result", "place")
    corrected = _corrected(story.data, places)
    after, *_ = with_drafts(survey.connection, survey.everything, [corrected])
    row = row_of_game(survey.connection, survey.facts, game_id)
    rows = list[HypotheticalResult]()
    for ladder in ladders_of_game(after.facts, row):
        with survey.collect_failure():
            rows += _on_ladder(survey, after, ladder, game_id, row)
    return OtherResult(
        game_id,
        survey.coordinates,
        tuple(places),
        tuple(rows),
        data=story.data,
        last=story.last,
        failed=tuple(dict.fromkeys(survey.failures)),
        times=survey.times,
    )


def has_other_results(data: dict[str, Any]) -> bool:
    """Tell whether the participants of a game could have had other places: not where these follow from scores, or where
    somebody took over a seat.
    """
    return all("place" in seat and not seat.keys() & {"score", "replaces"} for seat in data["participants"])


def _corrected(data: dict[str, Any], places: Sequence[int]) -> Draft:
    """Return the correction that gives a game other places. Raises `BadArgument`."""
    participants = data["participants"]
    if not has_other_results(data):
        raise BadArgument(f"{data['game_id']} has no places that could be others", "place")
    if len(places) != len(participants):
        told = f"{data['game_id']} has {count(len(participants), 'participant')}, and {count(len(places), 'place')}"
        raise BadArgument(f"{told} are given", "place")
    seats = [{**seat, "place": place} for seat, place in zip(participants, places, strict=True)]
    game = {**data, "participants": seats}
    event = {
        "type": "game.corrected",
        "data": {"game_id": data["game_id"], "game": game, "reason": "another result"},
        "occurred_at": "2000-01-01T00:00:00Z",
    }
    try:
        return read_event(event)[0]
    except Refused as problem:
        raise BadArgument(f"no result has these places: {problem.message}", "place") from None


def _on_ladder(survey: Survey, after: Ladders, ladder: str, game_id: str, row: int) -> Iterator[HypotheticalResult]:
    """Yield what everybody would have got there, by their places. Raises `RuleFailure`."""
    ruleset_id = ladder.partition("/")[0]
    if ruleset_id not in survey.usable:
        return
    ladders = survey.ladders(ruleset_id)
    # what everybody came with is the same, whatever its result
    points_before = ladders.state_before(ladder, (survey.facts.occurred_at[row], survey.facts.first_position[row]))
    was, would_be = (
        explain_game(state, ladder, game_id, row, before=points_before) for state in (ladders, after.at(ladders.as_of))
    )
    if not would_be.counted:
        return
    gave = _changes(was)
    for player in would_be.players:
        before = gave.get(player.player)
        yield HypotheticalResult(
            ladder,
            player.player,
            player.place,
            before,
            player.change,
            None if before is None else player.change - before,
        )


def _changes(explanation: GameExplanation) -> dict[str, Any]:
    return {player.player: player.change for player in explanation.players} if explanation.counted else {}
