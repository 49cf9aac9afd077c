"""Formula 1 seasons as games and rulesets: the races from the published results, and the scoring rules of each season.

The results are not part of this project; tests read them where they are, and are skipped without them.
"""

import csv
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "formula-1"
FIRST, LAST = 1950, 2018

Row = dict[str, str]
Participant = dict[str, Any]

# from a first season on: the points by place
POINTS = {
    1950: [8, 6, 4, 3, 2],
    1960: [8, 6, 4, 3, 2, 1],
    1961: [9, 6, 4, 3, 2, 1],
    1991: [10, 6, 4, 3, 2, 1],
    2003: [10, 8, 6, 5, 4, 3, 2, 1],
    2010: [25, 18, 15, 12, 10, 8, 6, 4, 2, 1],
}
FASTEST_LAP_UNTIL, SHARED_UNTIL = 1959, 1957
# how many best results of a season counted
BEST = {
    **dict.fromkeys(range(1950, 1954), 4), **dict.fromkeys(range(1954, 1958), 5), 1958: 6, 1959: 5, 1960: 6, 1961: 5,
    1962: 5, 1963: 6, 1964: 6, 1965: 6, 1966: 5, **dict.fromkeys(range(1981, 1991), 11),
}  # fmt: skip
# for each of the two parts of a season: (rounds, how many best results counted)
HALVES = {
    1967: ((6, 5), (5, 4)), 1968: ((6, 5), (6, 5)), 1969: ((6, 5), (5, 4)), 1970: ((7, 6), (6, 5)),
    1971: ((6, 5), (5, 4)), 1972: ((6, 5), (6, 5)), 1973: ((8, 7), (7, 6)), 1974: ((8, 7), (7, 6)),
    1975: ((7, 6), (7, 6)), 1976: ((8, 7), (8, 7)), 1977: ((9, 8), (8, 7)), 1978: ((8, 7), (8, 7)),
    1979: ((7, 4), (8, 4)), 1980: ((7, 5), (7, 5)),
}  # fmt: skip
# the source breaks ties by the places that score, since 2000 by all places; in some seasons, remaining ties are broken
# by the earlier result
COUNTED_UNTIL, FIRST_DECIDES = 1999, (1998, 1999, 2003, 2004, 2006)
# fractions of a point as the results round them: the exact fraction
EXACT_FRACTIONS = {".14": Fraction(1, 7), ".33": Fraction(1, 3)}


def find_points_by_place(season: int) -> list[int]:
    """Return the points for each place in a season."""
    return POINTS[max(begin for begin in POINTS if begin <= season)]


def write_ruleset(season: int, version: str = "", begins: str = "") -> str:
    """Return the ruleset file of a season."""
    parts = ""
    if season in HALVES:
        halves = ", ".join(f"{{rounds = {rounds}, best = {best}}}" for rounds, best in HALVES[season])
        parts = f"parts = [{halves}]\n"
    elif season in BEST:
        parts = f"parts = [{{best = {BEST[season]}}}]\n"
    counted = f"places_counted = {len(find_points_by_place(season))}\n" if season <= COUNTED_UNTIL else ""
    first = ', "first"' if season in FIRST_DECIDES else ""
    shared = '"divide"' if season <= SHARED_UNTIL else '"none"'
    bonus = "\n[params.bonus]\nfastest_lap = 1\n" if season <= FASTEST_LAP_UNTIL else ""
    unranked = '\n[params.unranked]\nmichael-schumacher = "excluded by the federation"\n' if version == "1997b" else ""
    return f"""id = "formula-1"
version = "{version or season}"
rule = "placement-points/2"
effective_from = {begins or f"{season}-01-01"}
time_zone = "UTC"

[scope]
game = ["formula-1"]

[partition]
by = ["season"]

[params]
points = {find_points_by_place(season)}
{parts}tie_breaks = ["places"{first}]
{counted}shared = {shared}
{bonus}{unranked}"""


def write_rulesets() -> dict[str, str]:
    """Return the ruleset files of all seasons, by version; one driver was excluded from the final table of 1997."""
    files = {str(season): write_ruleset(season) for season in range(FIRST, LAST + 1)}
    return files | {"1997b": write_ruleset(1997, "1997b", "1997-10-26")}


def parse_points(text: str) -> Fraction:
    """Return the exact points of a result; the results round fractions of a point to two places."""
    whole, dot, decimals = (text or "0").partition(".")
    return int(whole) + EXACT_FRACTIONS[dot + decimals] if dot + decimals in EXACT_FRACTIONS else Fraction(text or 0)


def read_csv(name: str) -> list[Row]:
    """Return the rows of a file of the data."""
    with open(FOLDER / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_races() -> dict[tuple[int, int], list[Row]]:
    """Return the rows of the results by season and round."""
    races: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in read_csv("results.csv"):
        races[int(row["season"]), int(row["round"])].append(row)
    return dict(sorted(races.items()))


def read_tables() -> dict[tuple[int, int], list[Row]]:
    """Return the rows of the tables by season and round."""
    tables: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in read_csv("standings.csv"):
        tables[int(row["season"]), int(row["round"])].append(row)
    return dict(sorted(tables.items()))


class Race:
    """A race as its results describe it: the points for each car, and the car with which each driver is recorded.

    By index of the row: `value` is the driver's points, `part` the share of the points for the place, and `bonus` the
    points for the fastest lap. `worth` is the points by place, and `cars` the indexes of the rows by place.
    """

    def __init__(self, season: int, rows: list[Row]) -> None:
        self.season, self.rows, self.worth = season, rows, find_points_by_place(season)
        self.cars: dict[int, list[int]] = defaultdict(list)
        for index, row in enumerate(rows):
            if row["position"]:
                self.cars[int(row["position"])].append(index)
        self.value = [parse_points(row["points"]) for row in rows]
        winner = self.value[self.cars[1][0]]
        # in earlier seasons the winner may have shared a car, or have points for the fastest lap
        self.percent = int(winner * 100 / self.worth[0]) if season > FASTEST_LAP_UNTIL else 100
        self.part = [self._split_points(index) for index in range(len(rows))]
        lap = season <= FASTEST_LAP_UNTIL
        self.bonus = [value - part if lap else 0 for value, part in zip(self.value, self.part, strict=True)]

    def find_place(self, index: int) -> int:
        """Return the place of a row, or 0 for a driver who was not classified."""
        return int(self.rows[index]["position"] or 0)

    def _split_points(self, index: int) -> Fraction:
        place, value = self.find_place(index), self.value[index]
        if self.season > FASTEST_LAP_UNTIL or not value or not 1 <= place <= len(self.worth):
            return value if self.season > FASTEST_LAP_UNTIL else Fraction(0)
        # usually all drivers of a car share its points; a driver who scored in another car may get no share
        scorers = [self.value[car_index] for car_index in self.cars[place] if self.value[car_index]]
        drivers = len(scorers) if min(scorers) * len(scorers) >= self.worth[place - 1] else len(self.cars[place])
        return Fraction(self.worth[place - 1], drivers)

    def choose_main_rows(self) -> dict[str, int]:
        """Return each driver's main row: the best place that gave the driver points, else the best place.

        A driver whose car gave points only to the other driver is recorded with another car.
        """

        def rank_row(index: int) -> tuple[int, int]:
            place = self.find_place(index)
            if self.part[index]:
                return 0, place
            has_scorer = any(self.part[car_index] for car_index in self.cars.get(place, ()))
            return (1, place) if place and not has_scorer else (2, int(place > 0))

        indexes_by_driver: dict[str, list[int]] = defaultdict(list)
        for index, row in enumerate(self.rows):
            indexes_by_driver[row["driver"]].append(index)
        return {driver: min(indexes, key=rank_row) for driver, indexes in indexes_by_driver.items()}

    def find_guest_places(self) -> set[int]:
        """Return the places of drivers outside the championship; the drivers behind them moved up."""
        moved_up = [
            place
            for place, (index, *_) in self.cars.items()
            if self.season > FASTEST_LAP_UNTIL and self.value[index] > self._compute_place_points(place)
        ]
        return {place for place in self._find_pointless_places(max(moved_up, default=0)) if place < max(moved_up)}

    def find_removed_places(self) -> set[int]:
        """Return the places that gave no points although the drivers behind did not move up."""
        return self._find_pointless_places(len(self.worth)) - self.find_guest_places()

    def _compute_place_points(self, place: int) -> Fraction:
        return Fraction(self.worth[place - 1] * self.percent, 100) if place <= len(self.worth) else Fraction(0)

    def _find_pointless_places(self, last: int) -> set[int]:
        return {
            place
            for place, indexes in self.cars.items()
            if place <= last and len(indexes) == 1 and not self.value[indexes[0]]
        }

    def build_participants(self) -> list[Participant]:
        """Return the participants of the game, each driver once; unclassified drivers come last.

        Two drivers of one car are a leaver and a substitute. If more drivers shared it, or one of them is recorded with
        another car, `drivers` is their number; points from another car are `other_points`.
        """
        main = self.choose_main_rows()
        seats: dict[int, list[str]] = defaultdict(list)
        for driver, index in main.items():
            if place := self.find_place(index):
                seats[place].append(driver)
        # a place that is empty after a disqualification
        for gap in {*range(1, len(self.worth) + 1)} - {*self.cars} if len(self.cars) > len(self.worth) else ():
            seats[gap] = [next(row["driver"] for row in self.rows if row["status"] == "DSQ")]
        guests, removed = self.find_guest_places(), self.find_removed_places()
        participants: dict[str, Participant] = {}
        for number, place in enumerate(sorted(seats), 1):
            assert number == place or place > len(self.worth), "a place with points must have a driver"
            first, *other_drivers = seats[place]
            participants[first] = {"player": first, "place": number}
            if other_drivers:
                participants[first]["status"] = "abandoned"
                participants[other_drivers[0]] = {
                    "player": other_drivers[0],
                    "place": number,
                    "status": "substitute",
                    "replaces": first,
                }
            elif place in removed or place not in self.cars:
                participants[first]["status"] = "removed"
            indexes = self.cars.get(place, [0])
            drivers = len(indexes)
            if part := max(self.part[index] for index in indexes):
                drivers = int(Fraction(self.worth[place - 1], part)) if self.season <= SHARED_UNTIL else 1
            for driver in (first, *other_drivers[:1]):
                numbers = {"guest": 1} if place in guests else {}
                if drivers != 1 + bool(other_drivers):
                    numbers["drivers"] = drivers
                participants[driver]["numbers"] = numbers
        for driver in main.keys() - participants.keys():
            participants[driver] = {"player": driver, "place": len(seats) + 1, "status": "abandoned", "numbers": {}}
        for index, row in enumerate(self.rows):
            numbers = participants[row["driver"]]["numbers"]
            if self.bonus[index]:
                numbers["fastest_lap"] = 1
            at_seat = row["driver"] in seats.get(self.find_place(index), [])[:2] and index == main[row["driver"]]
            if self.season <= SHARED_UNTIL and self.part[index] and not at_seat:
                numbers["other_points"] = numbers.get("other_points", 0) + int(self.part[index] * 840)
        return [{key: value for key, value in row.items() if value != {}} for row in participants.values()]

    def build_event(self, round_: int) -> dict[str, Any]:
        """Return the race as an event."""
        data: dict[str, Any] = {
            "game_id": self.rows[0]["race"],
            "game": "formula-1",
            "season": str(self.season),
            "participants": self.build_participants(),
        }
        if self.percent != 100:
            data["numbers"] = {"percent": self.percent}
        return {
            "type": "game.recorded",
            "occurred_at": f"{self.rows[0]['date']}T12:00:{round_:02d}Z",
            "data": data,
        }
