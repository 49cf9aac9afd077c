"""Formula 1 seasons as games and rulesets: what was raced, by the results, and what counted, by season.

The results are not part of this project: tests read them where they are, and skip if they are absent.
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

# from which season on: the points by place
POINTS = {
    1950: [8, 6, 4, 3, 2],
    1960: [8, 6, 4, 3, 2, 1],
    1961: [9, 6, 4, 3, 2, 1],
    1991: [10, 6, 4, 3, 2, 1],
    2003: [10, 8, 6, 5, 4, 3, 2, 1],
    2010: [25, 18, 15, 12, 10, 8, 6, 4, 2, 1],
}
FASTEST_LAP_UNTIL, SHARED_UNTIL = 1959, 1957
# the best results of a whole season that counted
BEST = {
    **dict.fromkeys(range(1950, 1954), 4), **dict.fromkeys(range(1954, 1958), 5), 1958: 6, 1959: 5, 1960: 6, 1961: 5,
    1962: 5, 1963: 6, 1964: 6, 1965: 6, 1966: 5, **dict.fromkeys(range(1981, 1991), 11),
}  # fmt: skip
# the best results of the two parts of a season: of so many rounds so many
HALVES = {
    1967: ((6, 5), (5, 4)), 1968: ((6, 5), (6, 5)), 1969: ((6, 5), (5, 4)), 1970: ((7, 6), (6, 5)),
    1971: ((6, 5), (5, 4)), 1972: ((6, 5), (6, 5)), 1973: ((8, 7), (7, 6)), 1974: ((8, 7), (7, 6)),
    1975: ((7, 6), (7, 6)), 1976: ((8, 7), (8, 7)), 1977: ((9, 8), (8, 7)), 1978: ((8, 7), (8, 7)),
    1979: ((7, 4), (8, 4)), 1980: ((7, 5), (7, 5)),
}  # fmt: skip
# the source parts equal points by the places that give points, since 2000 by all; in some seasons then by who was first
COUNTED_UNTIL, FIRST_DECIDES = 1999, (1998, 1999, 2003, 2004, 2006)
# shares of a point as the results have them
ROUNDED = {".14": Fraction(1, 7), ".33": Fraction(1, 3)}


def points_by_place(season: int) -> list[int]:
    """Return what the places of a season are worth."""
    return POINTS[max(begin for begin in POINTS if begin <= season)]


def ruleset_of(season: int, version: str = "", begins: str = "") -> str:
    """Return the ruleset file of a season."""
    parts = ""
    if season in HALVES:
        halves = ", ".join(f"{{rounds = {rounds}, best = {best}}}" for rounds, best in HALVES[season])
        parts = f"parts = [{halves}]\n"
    elif season in BEST:
        parts = f"parts = [{{best = {BEST[season]}}}]\n"
    counted = f"places_counted = {len(points_by_place(season))}\n" if season <= COUNTED_UNTIL else ""
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
points = {points_by_place(season)}
{parts}tie_breaks = ["places"{first}]
{counted}shared = {shared}
{bonus}{unranked}"""


def rulesets() -> dict[str, str]:
    """Return the ruleset files of all seasons, by version; one driver was excluded from the final table of 1997."""
    files = {str(season): ruleset_of(season) for season in range(FIRST, LAST + 1)}
    return files | {"1997b": ruleset_of(1997, "1997b", "1997-10-26")}


def exact_points(text: str) -> Fraction:
    """Return points as they were given: the results round shares of a point to two places."""
    whole, dot, decimals = (text or "0").partition(".")
    return int(whole) + ROUNDED[dot + decimals] if dot + decimals in ROUNDED else Fraction(text or 0)


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
    """A race by its results: what every car gave, and with which car everybody is recorded.

    `part` is what the place gave a driver of a row, `bonus` what the fastest lap gave besides, by index of the row.
    """

    def __init__(self, season: int, rows: list[Row]) -> None:
        self.season, self.rows, self.worth = season, rows, points_by_place(season)
        self.cars: dict[int, list[int]] = defaultdict(list)
        for index, row in enumerate(rows):
            if row["position"]:
                self.cars[int(row["position"])].append(index)
        self.value = [exact_points(row["points"]) for row in rows]
        winner = self.value[self.cars[1][0]]
        # before, the winner may have shared a car, or have more than the place is worth
        self.percent = int(winner * 100 / self.worth[0]) if season > FASTEST_LAP_UNTIL else 100
        self.part = [self._part_of(index) for index in range(len(rows))]
        lap = season <= FASTEST_LAP_UNTIL
        self.bonus = [value - part if lap else 0 for value, part in zip(self.value, self.part, strict=True)]

    def place(self, index: int) -> int:
        """Return the place of a row, 0 for who was not classified."""
        return int(self.rows[index]["position"] or 0)

    def _part_of(self, index: int) -> Fraction:
        place, value = self.place(index), self.value[index]
        if self.season > FASTEST_LAP_UNTIL or not value or not 1 <= place <= len(self.worth):
            return value if self.season > FASTEST_LAP_UNTIL else Fraction(0)
        # usually all who drove the car got their share; one who had points from another car may have got none for it
        scorers = [self.value[other] for other in self.cars[place] if self.value[other]]
        drivers = len(scorers) if min(scorers) * len(scorers) >= self.worth[place - 1] else len(self.cars[place])
        return Fraction(self.worth[place - 1], drivers)

    def main_rows(self) -> dict[str, int]:
        """Return the row with which everybody is recorded: the best place that gave points, else the best place.

        Who shared a car that gave points to the other driver alone is recorded with another.
        """

        def merit(index: int) -> tuple[int, int]:
            place = self.place(index)
            if self.part[index]:
                return 0, place
            others = any(self.part[other] for other in self.cars.get(place, ()))
            return (1, place) if place and not others else (2, int(place > 0))

        mine: dict[str, list[int]] = defaultdict(list)
        for index, row in enumerate(self.rows):
            mine[row["driver"]].append(index)
        return {driver: min(indexes, key=merit) for driver, indexes in mine.items()}

    def guests(self) -> set[int]:
        """Return the places whose holders were no part of the championship, so that those behind moved up."""
        moved_up = [
            place
            for place, (index, *_) in self.cars.items()
            if self.season > FASTEST_LAP_UNTIL and self.value[index] > self._worth_of(place)
        ]
        return {place for place in self._without_points(max(moved_up, default=0)) if place < max(moved_up)}

    def removed(self) -> set[int]:
        """Return the places that gave no points, and nobody moved up."""
        return self._without_points(len(self.worth)) - self.guests()

    def _worth_of(self, place: int) -> Fraction:
        return Fraction(self.worth[place - 1] * self.percent, 100) if place <= len(self.worth) else Fraction(0)

    def _without_points(self, last: int) -> set[int]:
        return {
            place
            for place, indexes in self.cars.items()
            if place <= last and len(indexes) == 1 and not self.value[indexes[0]]
        }

    def participants(self) -> list[Participant]:
        """Return the participants of the game: everybody once, those who were not classified last.

        Two who shared a car are a leaver and the substitute. Where more drove it, or one of them is recorded with
        another car, `drivers` says how many they were; what another car gave is `other_points`.
        """
        main = self.main_rows()
        seats: dict[int, list[str]] = defaultdict(list)
        for driver, index in main.items():
            if place := self.place(index):
                seats[place].append(driver)
        # a place that nobody holds after a disqualification
        for gap in {*range(1, len(self.worth) + 1)} - {*self.cars} if len(self.cars) > len(self.worth) else ():
            seats[gap] = [next(row["driver"] for row in self.rows if row["status"] == "DSQ")]
        guests, removed = self.guests(), self.removed()
        recorded: dict[str, Participant] = {}
        for number, place in enumerate(sorted(seats), 1):
            assert number == place or place > len(self.worth), "a place with points has to have a holder"
            first, *others = seats[place]
            recorded[first] = {"player": first, "place": number}
            if others:
                recorded[first]["status"] = "abandoned"
                recorded[others[0]] = {
                    "player": others[0], "place": number, "status": "substitute", "replaces": first,
                }  # fmt: skip
            elif place in removed or place not in self.cars:
                recorded[first]["status"] = "removed"
            indexes = self.cars.get(place, [0])
            drivers = len(indexes)
            if part := max(self.part[index] for index in indexes):
                drivers = int(Fraction(self.worth[place - 1], part)) if self.season <= SHARED_UNTIL else 1
            for driver in (first, *others[:1]):
                numbers = {"guest": 1} if place in guests else {}
                if drivers != 1 + bool(others):
                    numbers["drivers"] = drivers
                recorded[driver]["numbers"] = numbers
        for driver in main.keys() - recorded.keys():
            recorded[driver] = {"player": driver, "place": len(seats) + 1, "status": "abandoned", "numbers": {}}
        for index, row in enumerate(self.rows):
            numbers = recorded[row["driver"]]["numbers"]
            if self.bonus[index]:
                numbers["fastest_lap"] = 1
            at_seat = row["driver"] in seats.get(self.place(index), [])[:2] and index == main[row["driver"]]
            if self.season <= SHARED_UNTIL and self.part[index] and not at_seat:
                numbers["other_points"] = numbers.get("other_points", 0) + int(self.part[index] * 840)
        return [{key: value for key, value in row.items() if value != {}} for row in recorded.values()]

    def event(self, round_: int) -> dict[str, Any]:
        """Return the race as an event."""
        data: dict[str, Any] = {
            "game_id": self.rows[0]["race"],
            "game": "formula-1",
            "season": str(self.season),
            "participants": self.participants(),
        }
        if self.percent != 100:
            data["numbers"] = {"percent": self.percent}
        return {
            "type": "game.recorded", "occurred_at": f"{self.rows[0]['date']}T12:00:{round_:02d}Z", "data": data,
        }  # fmt: skip
