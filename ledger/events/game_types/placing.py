"""Game type `placing`: a game that orders its participants by place, by score, or by both."""

from decimal import Decimal
from itertools import pairwise
from operator import methodcaller
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from ratings_ledger.ledger.events.fields import Score
from ratings_ledger.ledger.events.games import (
    Game,
    Participant,
    Seats,
    check_seats,
    competition_places,
    has_teams_or_substitutes,
    list_participants,
    rank_keys,
    seat_values,
)
from ratings_ledger.ledger.rejections import Refused, quote

_GET_PLACE = methodcaller("get", "place")


class PlacingParticipant(Participant):
    """A participant with a place (1 is best), a score, or both."""

    place: Annotated[int, Field(ge=1, le=10_000)] | None = None
    score: Score | None = None


class PlacingGame(Game):
    """A game that orders its participants by place or score."""

    score_order: Literal["high", "low"] = "high"
    participants: list[PlacingParticipant]


def check(game: dict[str, Any]) -> None:
    """Check that participants, seats, places and scores are consistent. Raises `Refused`."""
    participants = game["participants"]
    # most games have only players and places, or only players and scores, and so need few checks
    if len({p["player"] for p in participants if len(p) == 2}) == len(participants) > 1:
        only_places = [p["place"] for p in participants if "place" in p]
        if len(only_places) == len(participants):
            _check_gaps(sorted(only_places))
            return
        if not only_places and len([p for p in participants if "score" in p]) == len(participants):
            return
    check_seats(participants, ("place", "score"))
    unscored_places = [p["place"] for p in participants if "place" in p and "score" not in p and "replaces" not in p]
    if len(unscored_places) == len(participants):
        _check_gaps(sorted(unscored_places), _list_side_places(game, _get_values_by_seat(game, "place")))
        return
    place_by_seat = _get_values_by_seat(game, "place")
    score_by_seat = _get_values_by_seat(game, "score")
    if None in place_by_seat.values() and (any(place_by_seat.values()) or None in score_by_seat.values()):
        missing = next(player for player, place in place_by_seat.items() if place is None)
        raise Refused(
            "place-missing",
            f"{quote(missing)} has no place; give all participants a place, or give none a place and all a score",
        )
    if None in place_by_seat.values():
        return
    _check_gaps(sorted(place_by_seat.values()), _list_side_places(game, place_by_seat))
    scored_players = [player for player in place_by_seat if score_by_seat[player] is not None]
    ranked = sorted(
        (place_by_seat[player], _sign_score(game, score_by_seat[player]), player) for player in scored_players
    )
    for (place, signed, player), (worse_place, worse_signed, worse_player) in pairwise(ranked):
        if worse_place > place and worse_signed < signed:
            order, amount = ("high", "more") if game.get("score_order") == "low" else ("low", "fewer")
            raise Refused(
                "score-contradicts-place",
                f"{quote(worse_player)} at place {worse_place} has a better score than {quote(player)} at place "
                f"{place}; correct a place or a score, or set score_order to {order} if {amount} points win",
            )


def places(game: dict[str, Any]) -> list[int]:
    """Return competition places (1, 2, 2, 4) in the order of the participants; players of one seat share its place.

    The recorded places of a checked game may be dense, or absent if scores decide.
    """
    participants = game["participants"]
    if not has_teams_or_substitutes(participants):
        keys = list(map(_GET_PLACE, participants))
        if None in keys:
            keys = [_sign_score(game, p["score"]) for p in participants]
        return rank_keys(keys)
    keys_by_seat = _get_values_by_seat(game, "place")
    if None in keys_by_seat.values():
        keys_by_seat = {seat: _sign_score(game, score) for seat, score in _get_values_by_seat(game, "score").items()}
    return competition_places(game, keys_by_seat)


def generate(seats: Seats, rng: Random) -> dict[str, Any]:
    """Generate a random game with these seats. Ties are frequent, and scores may be recorded."""
    score_limit = rng.choice((1, len(seats), 3 * len(seats)))
    scores = [rng.randrange(score_limit) for _ in seats]
    has_scores = rng.random() < 0.3
    for seat, score in zip(seats, scores, strict=True):
        for participant in seat:
            participant |= {"place": 1 + sum(better > score for better in scores)} | (
                {"score": score} if has_scores else {}
            )
    return {"participants": list_participants(seats)}


def _get_values_by_seat(game: dict[str, Any], member: str) -> dict[str, Any]:
    return seat_values(game, methodcaller("get", member))


def _list_side_places(game: dict[str, Any], places: dict[str, Any]) -> list[int]:
    """Return the places of the sides of a game, in ascending order, given the place of each seat."""
    teams = _get_values_by_seat(game, "team")
    return sorted({(team if team is not None else seat): places[seat] for seat, team in teams.items()}.values())


def _sign_score(game: dict[str, Any], score: int | str) -> int | Decimal:
    """Return the score with its sign set so that a lower value is better."""
    exact = score if isinstance(score, int) else Decimal(score)
    return exact if game.get("score_order") == "low" else -exact


def _check_gaps(player_places: list[int], side_places: list[int] | None = None) -> None:
    """Raise `Refused` if the places have a gap both by player and by side. Both lists are in ascending order."""
    if not (_have_no_gaps(player_places) or (side_places is not None and _have_no_gaps(side_places))):
        raise Refused(
            "place-gap",
            f"the places {', '.join(map(str, player_places))} have a gap; add the missing player, or write ties as "
            "1, 2, 2, 4 or 1, 2, 2, 3",
        )


def _have_no_gaps(places: list[int]) -> bool:
    """Tell whether ascending places have no gap, with ties as in 1, 2, 2, 4 or as in 1, 2, 2, 3."""
    if places == list(range(1, len(places) + 1)):
        return True
    competition = dense = True
    previous = distinct = 0
    for count, place in enumerate(places, 1):
        if place != previous:
            previous, distinct = place, distinct + 1
            competition, dense = competition and place == count, dense and place == distinct
    return competition or dense
