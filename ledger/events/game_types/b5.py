"""Game type `b5`: a league game of the Babylon 5 collectible card game, placed by victory, then power, then influence.

    the victory points of a game: players - 2, +1 if the win is a major victory, +1 if it was won within time

The players divide all victory points among themselves; the winner must give away at least one point (Babylon 5 CCG:
League Play). Winners are the players with the best victory or, if time ran out before any player met a victory
condition, the players placed first. Several winners may give the points to each other, so every division is possible.
"""

from operator import methodcaller
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from ratings_ledger.ledger.events.fields import Label, PlayerId, Race
from ratings_ledger.ledger.events.games import (
    Game,
    Participant,
    Seats,
    check_seats,
    competition_places,
    count_seats,
    list_participants,
    seat_values,
)
from ratings_ledger.ledger.rejections import Refused, quote

PLAYERS_MIN = 3
COLUMNS = {
    "vp": "the victory points that the player got; 0 if none",
    "victory": "0 no victory, 1 standard, 2 major",
    "winners_place": "the place when ties in victory are not broken by power or influence",
}
# the best first, so that an index is a sort key; None means no victory
VICTORIES = ("major", "standard", None)

Strength = Annotated[int, Field(ge=-10_000, le=10_000)]


class B5Participant(Participant):
    """A participant with their power and influence at the end, their victory, and the victory points they got."""

    power: Strength | None = None
    influence: Strength | None = None
    victory: Literal["standard", "major"] | None = None
    vp: Annotated[int, Field(ge=0, le=1_000)] = 0
    race: Race | None = None
    agenda: Label | None = None
    lid: Label | None = None  # the player's id in the league


class B5Game(Game):
    """A game with the members that decide its victory points, and other members that the league's director needs."""

    within_time: bool = False
    deck: Literal["sealed", "constructed"] | None = None
    referee: PlayerId | None = None
    tourney: bool = False
    participants: list[B5Participant]


def check(game: dict[str, Any]) -> None:
    """Check that seats, strengths, the referee and the victory points are consistent. Raises `Refused`."""
    participants = game["participants"]
    check_seats(participants, ("power", "influence", "victory"))
    if (players := count_seats(game)) < PLAYERS_MIN:
        raise Refused("b5-too-few-players", f"a b5 game needs at least {PLAYERS_MIN} players; this one has {players}")
    for member in ("power", "influence"):
        for seat, value in seat_values(game, methodcaller("get", member)).items():
            if value is None:
                raise Refused("missing-member", f"{quote(seat)} has no {member}; add it, because it decides places")
    if game.get("referee") in [participant["player"] for participant in participants]:
        raise Refused(
            "referee-plays",
            f"the referee {quote(game['referee'])} is one of the players; name one who does not play, or leave it out",
        )
    _check_victory_points_total(game)
    _check_winner_gave_points(game)


def places(game: dict[str, Any]) -> list[int]:
    """Return competition places (1, 2, 2, 4) in the order of the participants; players of one seat share its place."""
    return competition_places(game, seat_values(game, _build_place_key))


def column_values(game: dict[str, Any]) -> list[list[int]]:
    """Return the values of `COLUMNS`: one list per column, in the order of the participants."""
    by_seat = seat_values(game, lambda participant: VICTORIES.index(participant.get("victory")))
    victories = [by_seat[p.get("replaces", p["player"])] for p in game["participants"]]
    return [_list_victory_points(game), [2 - victory for victory in victories], _list_winners_places(game)]


def generate(seats: Seats, rng: Random) -> dict[str, Any]:
    """Generate the data of a random game with these seats and a random division of its victory points."""
    within_time = rng.random() < 0.5
    for number, seat in enumerate(seats):
        strengths: dict[str, Any] = {"power": rng.randrange(20), "influence": rng.randrange(20)}
        victory = rng.choice(VICTORIES) if number == 0 else None
        for participant in seat:
            participant |= strengths | ({"victory": victory} if victory else {})
    game: dict[str, Any] = {"within_time": within_time, "participants": list_participants(seats)}
    has_major_victory = any(participant.get("victory") == "major" for participant in game["participants"])
    points_left = len(seats) - 2 + has_major_victory + within_time
    all_places = places(game)
    losers = [i for i, place in enumerate(all_places) if place > 1] or [0]
    receivers = [rng.choice(losers), *(rng.randrange(len(all_places)) for _ in range(points_left - 1))]
    for i, participant in enumerate(game["participants"]):
        participant["vp"] = receivers.count(i)
    return game


def _build_place_key(participant: dict[str, Any]) -> tuple[int, int, int]:
    """Return the sort key of a place; lower is better. A missing value counts as 0."""
    victory = VICTORIES.index(participant.get("victory"))
    return victory, -participant.get("power", 0), -participant.get("influence", 0)


def _check_victory_points_total(game: dict[str, Any]) -> None:
    players, total = count_seats(game), sum(_list_victory_points(game))
    reasons = [f"{players - 2} (players - 2)"]
    # a player with a major victory is always a winner, because a major victory is placed above all others
    if any(participant.get("victory") == "major" for participant in game["participants"]):
        reasons.append("+1 for a major victory")
    if game.get("within_time"):
        reasons.append("+1 for a win within time")
    expected = players - 2 + len(reasons) - 1
    if total != expected:
        raise Refused(
            "victory-points-total",
            f"the victory points add up to {total} but must be {expected} for {players} players: {', '.join(reasons)}; "
            "correct vp, victory or within_time",
        )


def _check_winner_gave_points(game: dict[str, Any]) -> None:
    is_winner = [place == 1 for place in _list_winners_places(game)]
    winners = {p.get("replaces", p["player"]) for p, wins in zip(game["participants"], is_winner, strict=True) if wins}
    points_given = sum(points for points, wins in zip(_list_victory_points(game), is_winner, strict=True) if not wins)
    if points_given == 0 and len(winners) == 1:
        raise Refused(
            "victory-points-all-kept",
            f"{quote(*winners)} wins alone and keeps all victory points; give at least one away",
        )


def _list_winners_places(game: dict[str, Any]) -> list[int]:
    """Return the places of the participants, without breaking ties in victory by power or influence."""
    return competition_places(
        game, seat_values(game, lambda p: (_build_place_key(p)[0], 0, 0) if p.get("victory") else _build_place_key(p))
    )


def _list_victory_points(game: dict[str, Any]) -> list[int]:
    return [participant.get("vp", 0) for participant in game["participants"]]
