"""Seasons of a championship with clubs, drawn from a seed, and an oracle for the tables of clubs that shares no code
with the product.

Drivers change clubs, and some have none. Now and then two drivers share a car, some retire, some tie, and a race counts
half or double. Clubs are renamed or merged. One club has the name of a driver.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

POINTS = [10, 6, 4, 3, 2, 1]
DRIVERS = [f"d{number:02d}" for number in range(14)]
CLUBS = ["Alpha", "Beta Racing", "Gamma", "Delta", "d03"]
# (old name, new name): Delta merges into Gamma, and Beta Racing is renamed twice
RENAMES = [("Beta Racing", "Beta"), ("Delta", "Gamma"), ("Beta", "Beta & Sons")]
# (rounds, how many best results count)
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
    """Return a ruleset that ranks drivers, or clubs if `members` has the members for that."""
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
        """Return the seat as a participant of an event."""
        optional = {
            "club": self.club,
            "status": None if self.status == "finished" else self.status,
            "replaces": self.replaces,
            "numbers": {"fastest_lap": 1} if self.fastest else None,
        }
        stated = {name: value for name, value in optional.items() if value is not None}
        return {"player": self.driver, "place": self.place, **stated}


@dataclass
class Race:
    """A race of a season: its seats, and the percentage of the points that it counts."""

    season: str
    round: int
    percent: int
    seats: list[Seat] = field(default_factory=list)

    @property
    def game_id(self) -> str:
        """Return the id of the race."""
        return f"{self.season}-{self.round}"

    @property
    def day(self) -> str:
        """Return the time at which the race ended."""
        return f"{self.season}-{self.round + 2:02d}-15T15:00:00Z"

    def write(self) -> dict[str, Any]:
        """Return the race as an event."""
        data: dict[str, Any] = {
            "game_id": self.game_id,
            "game": "formula-0",
            "season": self.season,
            "participants": [seat.write() for seat in self.seats],
        }
        if self.percent != 100:
            data["numbers"] = {"percent": self.percent}
        return {"type": "game.recorded", "occurred_at": self.day, "data": data}


def draw_races(seed: int, seasons: int = 2, rounds: int = 9) -> list[Race]:
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
    index = chance.randrange(len(seats) - 1)
    first, second = seats[index : index + 2]
    if chance.random() < 0.3:  # two drivers tie
        second.place = first.place
    elif chance.random() < 0.5:  # two drivers, mostly of one club, share a car
        first.status, second.status, second.place = "abandoned", "substitute", first.place
        second.replaces = first.driver
        if chance.random() < 0.7:
            second.club = first.club
        for seat in seats[index + 2 :]:
            seat.place -= 1
    chance.choice(seats).fastest = True
    return seats


# ------------------------------------------------------------------------------------------------ the oracle


def find_current_name(club: str, renames: list[tuple[str, str]]) -> str:
    """Return the newest name of a club."""
    next_names = dict(renames)
    while club in next_names:
        club = next_names[club]
    return club


def score_race(race: Race) -> dict[str, tuple[Fraction, int]]:
    """Return each driver's points, and the place that breaks ties; 0 for none."""
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
    """The points of a club in a race, and the places in which its drivers scored them."""

    points: Fraction
    places: list[int]


def score_clubs(race: Race, takes: str, renames: list[tuple[str, str]]) -> dict[str, ClubResult]:
    """Return the result of every club in a race."""
    drivers = score_race(race)
    results_by_club: dict[str, list[tuple[Fraction, int]]] = {}
    for seat in race.seats:
        if seat.club is not None:
            results_by_club.setdefault(find_current_name(seat.club, renames), []).append(drivers[seat.driver])
    if takes == "sum":
        return {
            club: ClubResult(
                sum((points for points, _ in own_results), Fraction(0)), [place for _, place in own_results if place]
            )
            for club, own_results in results_by_club.items()
        }
    results = {}
    for club, own_results in results_by_club.items():
        points, place = min(own_results, key=lambda result: (-result[0], result[1] or 99))
        results[club] = ClubResult(points, [place] if place else [])
    return results


Row = tuple[int, str, Fraction, int]


def rank_clubs(races: list[Race], takes: str, renames: list[tuple[str, str]]) -> list[Row]:
    """Return the table of clubs after some races of one season: rank, club, points, races."""
    rounds = [clubs for race in races if (clubs := score_clubs(race, takes, renames))]
    totals: dict[str, Fraction] = {}
    played = Counter[str](club for by_club in rounds for club in by_club)
    for club in played:
        first = PARTS[0][0]
        parts = (rounds[:first], PARTS[0][1]), (rounds[first:], PARTS[1][1])
        totals[club] = Fraction(0)
        for part, best in parts:
            own = sorted((by_club[club].points for by_club in part if club in by_club), reverse=True)
            totals[club] += sum(own[:best], Fraction(0))

    def rank_key(club: str) -> Any:
        counts = Counter(place for by_club in rounds if club in by_club for place in by_club[club].places)
        last = min(rounds[-1][club].places, default=99) if club in rounds[-1] else 99
        return -totals[club], [-counts[place] for place in range(1, 30)], last

    rows: list[Row] = []
    ordered = sorted(totals, key=lambda club: (rank_key(club), club))
    for index, club in enumerate(ordered, 1):
        is_tied = rows and rank_key(rows[-1][1]) == rank_key(club)
        rows.append((rows[-1][0] if is_tied else index, club, totals[club], played[club]))
    return rows
