"""Seasons of a championship with clubs, drawn from a seed, and the tables of clubs reckoned by hand: an oracle that
shares no code with the product.

Drivers change clubs, some have none, two share a car now and then, some retire, some tie, a race may count half or
double, and clubs are renamed or merge. One club is called like a driver.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

POINTS = [10, 6, 4, 3, 2, 1]
DRIVERS = [f"d{number:02d}" for number in range(14)]
CLUBS = ["Alpha", "Beta Racing", "Gamma", "Delta", "d03"]
# old and new names: Delta merges into Gamma, and Beta Racing gets another name twice
RENAMES = [("Beta Racing", "Beta"), ("Delta", "Gamma"), ("Beta", "Beta & Sons")]
PARTS = [(4, 3), (5, 4)]

RULESET = """
id = "NAME"
version = "1"
rule = "placement-points/2"
effective_from = 2000-01-01
time_zone = "UTC"
MEMBERS

[scope]
game = ["formula-0"]

[partition]
by = ["season"]

[params]
points = [10, 6, 4, 3, 2, 1]
parts = [{rounds = 4, best = 3}, {rounds = 5, best = 4}]
tie_breaks = ["places", "last game"]

[params.bonus]
fastest_lap = 1
"""


def write_ruleset(name: str, members: str = "") -> str:
    """Return the ruleset of drivers, or with more members that of clubs."""
    return RULESET.replace("NAME", name).replace("MEMBERS", members)


@dataclass
class Seat:
    """A driver in a race."""

    driver: str
    place: int
    club: str | None
    status: str = "finished"
    replaces: str | None = None
    fastest: bool = False

    def write(self) -> dict[str, Any]:
        """Return it as a participant of an event."""
        optional = {
            "club": self.club,
            "status": None if self.status == "finished" else self.status,
            "replaces": self.replaces,
            "numbers": {"fastest_lap": 1} if self.fastest else None,
        }
        told = {name: value for name, value in optional.items() if value is not None}
        return {"player": self.driver, "place": self.place, **told}


@dataclass
class Race:
    """A race of a season: the percentage that its points count, and who drove."""

    season: str
    round: int
    percent: int
    seats: list[Seat] = field(default_factory=list)

    @property
    def game_id(self) -> str:
        """Return its id."""
        return f"{self.season}-{self.round}"

    @property
    def day(self) -> str:
        """Return when it was over."""
        return f"{self.season}-{self.round + 2:02d}-15T15:00:00Z"

    def write(self) -> dict[str, Any]:
        """Return it as an event."""
        data: dict[str, Any] = {
            "game_id": self.game_id,
            "game": "formula-0",
            "season": self.season,
            "participants": [seat.write() for seat in self.seats],
        }
        if self.percent != 100:
            data["numbers"] = {"percent": self.percent}
        return {"type": "game.recorded", "occurred_at": self.day, "data": data}


def draw_seasons(seed: int, seasons: int = 2, rounds: int = 9) -> list[Race]:
    """Draw the races of some seasons."""
    chance = random.Random(seed)
    races = []
    club_of: dict[str, str | None] = {driver: chance.choice([*CLUBS, None]) for driver in DRIVERS}
    for season in range(2001, 2001 + seasons):
        for number in range(1, rounds + 1):
            for driver in chance.sample(DRIVERS, 2):
                club_of[driver] = chance.choice([*CLUBS, None])
            race = Race(str(season), number, chance.choice([100, 100, 100, 50, 200]))
            race.seats = _draw_seats(chance, club_of)
            races.append(race)
    return races


def _draw_seats(chance: random.Random, club_of: dict[str, str | None]) -> list[Seat]:
    drivers = chance.sample(DRIVERS, chance.randint(6, len(DRIVERS)))
    seats = [Seat(driver, place, club_of[driver]) for place, driver in enumerate(drivers, 1)]
    for seat in seats:
        if chance.random() < 0.15:
            seat.status = chance.choice(["abandoned", "removed"])
    low = chance.randrange(len(seats) - 1)
    if chance.random() < 0.3:  # a dead heat
        seats[low + 1].place = seats[low].place
    elif chance.random() < 0.5:  # a car that two drove, mostly of one club
        seats[low].status, seats[low + 1].status, seats[low + 1].place = "abandoned", "substitute", seats[low].place
        seats[low + 1].replaces = seats[low].driver
        if chance.random() < 0.7:
            seats[low + 1].club = seats[low].club
        for seat in seats[low + 2 :]:
            seat.place -= 1
    chance.choice(seats).fastest = True
    return seats


# ------------------------------------------------------------------------------------------------ the oracle


def current(club: str, renames: list[tuple[str, str]]) -> str:
    """Return the last name of a club."""
    following = dict(renames)
    while club in following:
        club = following[club]
    return club


def results_of(race: Race) -> dict[str, tuple[Fraction, int]]:
    """Return the points of every driver of a race, and the place that counts when ties are parted, 0 for none."""
    shared = {seat.place for seat in race.seats if seat.status == "substitute"}
    cars = Counter(seat.place for seat in race.seats if seat.status != "substitute")
    results = {}
    for seat in race.seats:
        classified = seat.status in ("finished", "substitute") or seat.place in shared
        points = Fraction(0)
        if classified:
            tied = 1 if seat.place in shared else cars[seat.place]
            worth = sum((POINTS + [0] * 99)[seat.place - 1 : seat.place - 1 + tied])
            drivers = 2 if seat.place in shared else 1
            points = Fraction(worth * race.percent, 100 * tied * drivers)
        if seat.fastest:
            points += Fraction(race.percent, 100)
        results[seat.driver] = points, seat.place if classified else 0
    return results


@dataclass
class ClubResult:
    """What a club got in a race, and the places of those whose points it got."""

    points: Fraction
    places: list[int]


def club_results(race: Race, takes: str, renames: list[tuple[str, str]]) -> dict[str, ClubResult]:
    """Return what every club got in a race."""
    drivers = results_of(race)
    of_club: dict[str, list[tuple[Fraction, int]]] = {}
    for seat in race.seats:
        if seat.club is not None:
            of_club.setdefault(current(seat.club, renames), []).append(drivers[seat.driver])
    if takes == "sum":
        return {
            club: ClubResult(sum((points for points, _ in own), Fraction(0)), [place for _, place in own if place])
            for club, own in of_club.items()
        }
    results = {}
    for club, own in of_club.items():
        points, place = min(own, key=lambda result: (-result[0], result[1] or 99))
        results[club] = ClubResult(points, [place] if place else [])
    return results


Row = tuple[int, str, Fraction, int]


def table_of(races: list[Race], takes: str, renames: list[tuple[str, str]]) -> list[Row]:
    """Return the table of clubs after some races of one season: rank, club, points, races."""
    rounds = [found for race in races if (found := club_results(race, takes, renames))]
    totals: dict[str, Fraction] = {}
    played = Counter[str](club for one in rounds for club in one)
    for club in played:
        first = PARTS[0][0]
        parts = (rounds[:first], PARTS[0][1]), (rounds[first:], PARTS[1][1])
        totals[club] = Fraction(0)
        for part, best in parts:
            own = sorted((one[club].points for one in part if club in one), reverse=True)
            totals[club] += sum(own[:best], Fraction(0))

    def key(club: str) -> Any:
        counts = Counter(place for one in rounds if club in one for place in one[club].places)
        last = min(rounds[-1][club].places, default=99) if club in rounds[-1] else 99
        return -totals[club], [-counts[place] for place in range(1, 30)], last

    rows: list[Row] = []
    ordered = sorted(totals, key=lambda club: (key(club), club))
    for index, club in enumerate(ordered, 1):
        is_tied = rows and key(rows[-1][1]) == key(club)
        rows.append((rows[-1][0] if is_tied else index, club, totals[club], played[club]))
    return rows
