"""Score one game with a hypothetical result. Nothing is recorded."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.rejections import Refused, count
from ratings_ledger.projections.diff.affected import apply_drafts
from ratings_ledger.projections.facts.lookups import find_game_row
from ratings_ledger.projections.queries.candidate_ladders import list_ladders_of_game
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.game_explanations import GameExplanation, explain_game
from ratings_ledger.projections.queries.game_timelines import load_timeline
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import HIDDEN, Answer, LastEvent, Result, RowSequence
from ratings_ledger.projections.queries.survey import Survey


@dataclass(frozen=True, slots=True)
class HypotheticalResult(Result):
    """A player's actual change for a game (`gave`), None if the game does not count, and the hypothetical change."""

    ladder: str
    player: str
    place: int | None
    gave: Fraction | None
    would_give: Fraction
    difference: Fraction | None


@dataclass(frozen=True, slots=True)
class OtherResult(Answer, RowSequence[HypotheticalResult]):
    """A game with hypothetical `places`, in participant order: each participant's change in points, by ladder.

    `data` is the game as recorded or last corrected; `last` is the last event that the answer depends on.
    """

    game_id: str
    at: Coordinates
    places: tuple[int, ...]
    rows: tuple[HypotheticalResult, ...]
    data: dict[str, Any] = field(metadata=HIDDEN, kw_only=True)
    last: LastEvent = field(metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


def compute_other_result(survey: Survey, game_id: str, places: Sequence[int]) -> OtherResult:
    """Score a game with hypothetical places, in participant order, from the players' points before the game.

    Raises `Unknown` (game-unknown), and `BadArgument` if the game is voided, if its places alone cannot be changed, or
    if no result of the game can have these places.
    """
    timeline = load_timeline(survey, game_id)
    survey.failures = []  # drop the failures of the timeline, which the loop below collects again
    if timeline.voided:
        message = f"{game_id} is voided, so no result changes points; first reinstate it"
        raise BadArgument(f"{message}: ratings reinstate {shlex.quote(game_id)} --reason TEXT", "places")
    correction = _build_correction(timeline.data, places)
    after, *_ = apply_drafts(survey.connection, survey.undated, [correction])
    row = find_game_row(survey.connection, survey.facts, game_id)
    rows = list[HypotheticalResult]()
    for ladder in list_ladders_of_game(after.facts, row):
        with survey.collect_failure():
            rows += _compare_on_ladder(survey, after, ladder, game_id, row)
    return OtherResult(
        game_id,
        survey.coordinates,
        tuple(places),
        tuple(rows),
        data=timeline.data,
        last=timeline.last,
        failed=tuple(dict.fromkeys(survey.failures)),
        times=survey.times,
    )


def has_other_results(data: dict[str, Any]) -> bool:
    """Tell whether a game's participants could have had other places.

    It is False if a participant has a score or no place, or if a substitute took over a seat.
    """
    return all("place" in seat and not seat.keys() & {"score", "replaces"} for seat in data["participants"])


def _build_correction(data: dict[str, Any], places: Sequence[int]) -> Draft:
    """Build the correction that gives a game other places. Raises `BadArgument`."""
    participants = data["participants"]
    if not has_other_results(data):
        members = {name for seat in participants for name in seat}
        obstacle = "scores" if "score" in members else "a substitute" if "replaces" in members else "no places"
        message = f"{data['game_id']} has {obstacle}, so its places alone cannot be changed"
        raise BadArgument(f"{message}; to see the effect of a correction: ratings correct --dry-run", "places")
    if len(places) != len(participants):
        message = f"{data['game_id']} has {count(len(participants), 'participant')}, not {len(places)}"
        raise BadArgument(f"{message}; give each of them a place", "places")
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
        raise BadArgument(f"these places are not a possible result: {problem.message}", "places") from None


def _compare_on_ladder(
    survey: Survey, after: Ladders, ladder: str, game_id: str, row: int
) -> Iterator[HypotheticalResult]:
    """Yield each participant's actual and hypothetical change on a ladder. Raises `RuleFailure`."""
    ruleset_id = ladder.partition("/")[0]
    if ruleset_id not in survey.usable_ids:
        return
    ladders = survey.ladders(ruleset_id)
    # the points before the game do not depend on its result
    points_before = ladders.state_before(ladder, (survey.facts.occurred_at[row], survey.facts.first_position[row]))
    actual, hypothetical = (
        explain_game(state, ladder, game_id, row, before=points_before) for state in (ladders, after.at(ladders.as_of))
    )
    if not hypothetical.counted:
        return
    actual_changes = _list_changes(actual)
    for player in hypothetical.players:
        actual_change = actual_changes.get(player.player)
        yield HypotheticalResult(
            ladder=ladder,
            player=player.player,
            place=player.place,
            gave=actual_change,
            would_give=player.change,
            difference=None if actual_change is None else player.change - actual_change,
        )


def _list_changes(explanation: GameExplanation) -> dict[str, Any]:
    return {player.player: player.change for player in explanation.players} if explanation.counted else {}
