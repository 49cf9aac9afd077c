"""Game type `diplomacy`: the seven powers of the standard map are placed by the supply centres they held.

The member `centres` has the centres of each power at the end of each year; an omitted power has 0:

    {"1901": {"Austria": 5, "France": 5, ...}, ...}

Places are strict: more centres at the end of the last year is better; if equal, more centres one year earlier, and so
on back to 1901; if equal in all years, the powers are placed in the order of `POWERS` (Italia 2010).
"""

import re
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field, SerializationInfo, field_serializer

from ratings_ledger.ledger.events.games import (
    Game,
    Participant,
    Seats,
    check_seats,
    competition_places,
    list_participants,
    seat_values,
)
from ratings_ledger.ledger.rejections import Refused, quote

Power = Literal["Austria", "Germany", "Italy", "Turkey", "England", "Russia", "France"]
POWERS: tuple[Power, ...] = ("Austria", "Germany", "Italy", "Turkey", "England", "Russia", "France")
CENTRES = 34  # of the standard map
FIRST_YEAR = 1901
COLUMNS = {
    "centres": "the supply centres of the player's power at the end of the last year; 0 if the power was eliminated",
    **{
        f"centres_{place}": f"the centres of the power placed {place}; the same for all players of a game"
        for place in range(1, len(POWERS) + 1)
    },
}

Centres = dict[str, dict[Power, Annotated[int, Field(ge=0, le=CENTRES)]]]


class DiplomacyParticipant(Participant):
    """A participant with their power; a replaced player may omit it, because the substitute gives it."""

    power: Power | None = None


class DiplomacyGame(Game):
    """A game with each power's centres at the end of each year from 1901."""

    centres: Centres
    participants: list[DiplomacyParticipant]

    @field_serializer("centres")
    def _omit_powers_without_centres(self, centres: Centres, info: SerializationInfo) -> Centres:
        # omitting a power with 0 centres does not change the game
        return {
            year: {power: count for power, count in by_power.items() if count or not info.exclude_defaults}
            for year, by_power in centres.items()
        }


def check(game: dict[str, Any]) -> None:
    """Check that seats, powers, years and centres are consistent. Raises `Refused`."""
    check_seats(game["participants"], ("power",))
    _check_powers(game)
    _check_years(list(game["centres"]))
    for year, centres_by_power in game["centres"].items():
        if (total := sum(centres_by_power.values())) > CENTRES:
            raise Refused(
                "too-many-centres",
                f"the powers hold {total} centres at the end of {year}, but the map has only {CENTRES}; correct them",
            )


def places(game: dict[str, Any]) -> list[int]:
    """Return places 1 to 7 in the order of the participants; players of one seat share its place."""
    years = [game["centres"][year] for year in sorted(game["centres"], reverse=True)]
    keys = {
        seat: (*(-centres_by_power.get(power, 0) for centres_by_power in years), POWERS.index(power))
        for seat, power in _get_power_by_seat(game).items()
    }
    return competition_places(game, keys)


def column_values(game: dict[str, Any]) -> list[list[int]]:
    """Return the values of `COLUMNS`: one list per column, in the order of the participants."""
    last = game["centres"][max(game["centres"])]
    powers = _get_power_by_seat(game)
    centres = [last.get(powers[p.get("replaces", p["player"])], 0) for p in game["participants"]]
    by_place = dict(zip(places(game), centres, strict=True))
    return [centres, *([by_place[place]] * len(centres) for place in sorted(by_place))]


def generate(seats: Seats, rng: Random) -> dict[str, Any]:
    """Generate the data of a random game with seven seats, over a few years."""
    for seat, power in zip(seats, rng.sample(POWERS, len(POWERS)), strict=True):
        for participant in seat:
            participant["power"] = power
    centres = {}
    for year in range(FIRST_YEAR, FIRST_YEAR + rng.randint(1, 4)):
        owners = [rng.choice(POWERS) for _ in range(rng.randint(len(POWERS), CENTRES))]
        centres[str(year)] = {power: owners.count(power) for power in POWERS}
    return {"centres": centres, "participants": list_participants(seats)}


def _get_power_by_seat(game: dict[str, Any]) -> dict[str, Any]:
    """Return the power of each seat."""
    return seat_values(game, lambda participant: participant.get("power"))


def _check_powers(game: dict[str, Any]) -> None:
    seat_by_power: dict[str, str] = {}
    for seat, power in _get_power_by_seat(game).items():
        if power is None:
            raise Refused("missing-member", f"{quote(seat)} has no power; add one of {', '.join(POWERS)}")
        if power in seat_by_power:
            raise Refused(
                "power-twice",
                f"{quote(seat_by_power[power])} and {quote(seat)} both play {power}; give each a different power",
            )
        seat_by_power[power] = seat
    if missing := [power for power in POWERS if power not in seat_by_power]:
        raise Refused("power-missing", f"no seat plays {', '.join(missing)}; a game needs all seven powers")


def _check_years(years: list[str]) -> None:
    expected = [str(FIRST_YEAR + index) for index in range(max(len(years), 1))]
    if missing := sorted({*expected} - {*years}):
        unexpected = sorted({*years} - {*expected})
        problem = f"{missing[0]} is missing" + (f", but there is {quote(unexpected[0])}" if unexpected else "")
        if odd := [year for year in unexpected if not (re.fullmatch("[0-9]{4}", year) and int(year) >= FIRST_YEAR)]:
            problem = f"{quote(odd[0])} is not a year from {FIRST_YEAR} on"
        raise Refused("years-not-gapless", f"{problem}; give every year from {FIRST_YEAR} without gaps")
