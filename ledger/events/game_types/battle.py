"""Game type `battle`: a game of two sides, such as Blue Max, where each player commands units, loses some and scores.

    anna of the red side: 2 units, 1 of them lost, 3 kills, 60 game points

Players have no places: each rule decides who won by weighing units against game points. A unit that several shooters
destroy in one turn is a kill for each of them, so kills may exceed losses. A unit may also be lost without a killer.

When a seat changes hands, side and units belong to the seat: the substitute states them, and the leaver may state them
too. Each player has their own losses, kills and scores. In the column `units`, the units that are left on the seat at
the end count for both players. If a leaver lost 1 of 5 units and the substitute lost 2 of the remaining 4, then

    the substitute has 4 units: all that the leaver did not lose
    the leaver has 3 units: the 1 they lost, and the 2 that are left on the seat at the end
"""

from collections.abc import Sequence
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from ratings_ledger.ledger.events.fields import Label
from ratings_ledger.ledger.events.games import Game, Participant, Seats, check_seats, list_participants, seat_values
from ratings_ledger.ledger.rejections import Refused, count, quote

# the totals of both sides are columns too, because a ladder can leave out some of the players
COLUMNS = {
    "side": "0 or 1: the sides in the order of their names",
    "units": "the units that the player commanded; 1 if not stated",
    "units_lost": "how many units the player lost; 0 if not stated",
    "kills": "how many enemy units the player destroyed or helped destroy; 0 if not stated",
    "game_points": "the player's game points, the member `score`; 0 if not stated",
    "side_units": "the units of the player's whole side",
    "side_units_lost": "the units that the player's side lost",
    "side_points": "the game points of the player's whole side",
    "enemy_units": "the units of the other side",
    "enemy_units_lost": "the units that the other side lost",
    "enemy_points": "the game points of the other side",
    "side_seats": "how many seats the player's side has",
    "agreed_draw": "1 if all players agreed on a draw, else 0; the same for all players of a game",
}
# the units of a participant whose units are not stated
DEFAULT_UNITS = 1

Units = Annotated[int, Field(ge=0, le=10_000)]


class BattleParticipant(Participant):
    """A participant with their side, units, losses and kills; `score` is their game points.

    The limits of the members keep sums over all participants of one record below 2^31.
    """

    side: Label | None = None
    units: Units = DEFAULT_UNITS
    units_lost: Units = 0
    kills: Units = 0
    score: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class BattleGame(Game):
    """A game of two sides; with `ended = draw` its players agreed on a draw."""

    ended: Literal["natural", "draw"] = "natural"
    participants: list[BattleParticipant]


def check(game: dict[str, Any]) -> None:
    """Check that seats, sides, units and kills are consistent. Raises `Refused`."""
    check_seats(game["participants"], ("side",))
    _check_units(game)
    _check_sides(game)
    _check_kills(game)


def places(game: dict[str, Any]) -> list[int]:
    """Return 0 for every participant: a battle has no places."""
    return [0] * len(game["participants"])


def column_values(game: dict[str, Any]) -> list[list[int]]:
    """Return the values of `COLUMNS`: one list per column, in the order of the participants."""
    sides, units, points = _number_sides(game), _list_units(game), _list_member_values(game, "score")
    lost, kills = _list_member_values(game, "units_lost"), _list_member_values(game, "kills")
    totals = [[_sum_side(sides, side, values) for side in (0, 1)] for values in (units, lost, points)]
    seat_sides = [
        side for side, participant in zip(sides, game["participants"], strict=True) if "replaces" not in participant
    ]
    return [
        sides,
        _build_units_column(game, units),
        lost,
        kills,
        points,
        *([total[side] for side in sides] for total in totals),
        *([total[1 - side] for side in sides] for total in totals),
        [seat_sides.count(side) for side in sides],
        [int(game.get("ended") == "draw")] * len(sides),
    ]


def generate(seats: Seats, rng: Random) -> dict[str, Any]:
    """Generate a random battle with these seats."""
    for number, seat in enumerate(seats):
        side, units = ("red", "blue")[number % 2], rng.choice((1, 1, 2, 5))
        for participant in seat:
            lost = rng.randint(0, units) if len(seat) == 1 else 0
            participant |= {"side": side, "units": units, "units_lost": lost, "score": rng.randrange(200)}
    participants = list_participants(seats)
    for side, enemy in (("red", "blue"), ("blue", "red")):
        shooters = [participant for participant in participants if participant["side"] == side]
        lost = sum(participant["units_lost"] for participant in participants if participant["side"] == enemy)
        for participant in shooters:
            participant["kills"] = rng.randint(0, lost)
    return {"ended": rng.choice(("natural", "natural", "draw")), "participants": participants}


def _list_member_values(game: dict[str, Any], member: str) -> list[int]:
    return [participant.get(member, 0) for participant in game["participants"]]


def _sum_side(sides: Sequence[int], side: int, values: Sequence[int]) -> int:
    return sum(value for own_side, value in zip(sides, values, strict=True) if own_side == side)


def _number_sides(game: dict[str, Any]) -> list[int]:
    """Return the side of each participant's seat: 0 for the first side by name, 1 for the second."""
    side_of_seat = seat_values(game, lambda participant: participant.get("side"))
    names = sorted(set(side_of_seat.values()))
    return [names.index(side_of_seat[p.get("replaces", p["player"])]) for p in game["participants"]]


def _list_units(game: dict[str, Any]) -> list[int]:
    """Return the units of each participant; on a seat that changed hands, the leaver has only the units they lost."""
    lost = {participant["player"]: participant.get("units_lost", 0) for participant in game["participants"]}
    units = {participant["player"]: participant.get("units", DEFAULT_UNITS) for participant in game["participants"]}
    for substitute in game["participants"]:
        if leaver := substitute.get("replaces"):
            units[leaver] = lost[leaver]
            units[substitute["player"]] -= lost[leaver]
    return list(units.values())


def _build_units_column(game: dict[str, Any], units: list[int]) -> list[int]:
    """Return the column `units`: units that are left on a seat at the end also count for its leaver."""
    index_of = {participant["player"]: index for index, participant in enumerate(game["participants"])}
    column = list(units)
    for substitute in game["participants"]:
        if leaver := substitute.get("replaces"):
            column[index_of[leaver]] += units[index_of[substitute["player"]]] - substitute.get("units_lost", 0)
    return column


def _check_units(game: dict[str, Any]) -> None:
    stated_units = {
        participant["player"]: participant.get("units", DEFAULT_UNITS) for participant in game["participants"]
    }
    for substitute in game["participants"]:
        leaver, name = substitute.get("replaces"), substitute["player"]
        # a leaver's default of 1 counts as not stated
        if leaver is not None and stated_units[leaver] not in (DEFAULT_UNITS, stated_units[name]):
            raise Refused(
                "seat-disagrees",
                f"{quote(leaver)} has {stated_units[leaver]} units and {quote(name)} {stated_units[name]}, but they "
                f"share a seat; state the same number, or leave it out for {quote(leaver)}",
            )
    for participant, units in zip(game["participants"], _list_units(game), strict=True):
        if (lost := participant.get("units_lost", 0)) > units:
            seat_note = " left on the seat" if "replaces" in participant else ""
            raise Refused(
                "units-lost-exceed",
                f"{quote(participant['player'])} lost {count(lost, 'unit')}, but had only {max(units, 0)}{seat_note}; "
                "correct units or units_lost",
            )


def _check_sides(game: dict[str, Any]) -> None:
    side_of_seat = seat_values(game, lambda participant: participant.get("side"))
    for seat, side in side_of_seat.items():
        if side is None:
            raise Refused("missing-member", f'{quote(seat)} has no side; add one, such as "side": "red"')
    names = sorted(set(side_of_seat.values()))
    if len(names) != 2:
        raise Refused(
            "battle-sides", f"this battle has {count(len(names), 'side')} ({', '.join(names)}); it needs exactly two"
        )
    sides, units = _number_sides(game), _list_units(game)
    for side, name in enumerate(names):
        if _sum_side(sides, side, units) == 0:
            raise Refused("battle-sides", f"the side {quote(name)} has no units; correct the units of its players")


def _check_kills(game: dict[str, Any]) -> None:
    sides, lost, kills = (
        _number_sides(game),
        _list_member_values(game, "units_lost"),
        _list_member_values(game, "kills"),
    )
    losses = [_sum_side(sides, side, lost) for side in (0, 1)]
    for participant, side, killed in zip(game["participants"], sides, kills, strict=True):
        if killed and not losses[1 - side]:
            raise Refused(
                "kills-without-losses",
                f"{quote(participant['player'])} has {count(killed, 'kill')}, but the enemy lost no units; correct "
                "kills or units_lost",
            )
