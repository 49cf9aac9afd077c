"""The worked year of examples/catan-year: what the command line makes of it is what its plain arithmetic says."""

import csv
import io
import json
import runpy
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledgers import create_ledger

FOLDER = Path(__file__).parent.parent.parent / "examples" / "catan-year"
YEAR = runpy.run_path(str(FOLDER / "make_year.py"))

CoordinateSpec = Callable[..., Any]


@pytest.fixture
def year_in(ratings: Callable[..., Any]) -> Callable[[str], CoordinateSpec]:
    """A function that puts the year into a ledger, and returns one that asks it and gives the JSON of the answer."""

    def fill(url: str) -> CoordinateSpec:
        def ask(*arguments: object) -> Any:
            done = ratings(*arguments, "--format", "json", db=url)
            assert done.exit_code == 0, done
            return json.loads(done.stdout)

        assert ratings("init", db=url).exit_code == 0
        ask("import", FOLDER / "events.jsonl", FOLDER / "games.csv")
        return ask

    return fill


def golden(name: str) -> str:
    return (FOLDER / "expected" / name).read_text(encoding="utf-8")


def test_files_match_the_script() -> None:
    """The files of the worked year are what its script writes."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(YEAR["wide_rows"]())
    assert (FOLDER / "games.csv").read_text(encoding="utf-8") == out.getvalue(), "python make_year.py"
    events = (FOLDER / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in events] == [*YEAR["events"]()]
    assert {name: golden(name) for name in YEAR["expected"]()} == YEAR["expected"]()


@pytest.mark.slow
def test_standings_match_the_arithmetic(year_in: Callable[[str], CoordinateSpec], ledger_url: str) -> None:
    """On each store, every row of every list is what the plain arithmetic gives."""
    asked = year_in(ledger_url)
    months, years = YEAR["months"](), YEAR["years"]()
    assert {row["list"] for row in asked("lists")["rows"]} == {*months, *years}
    for name, (played, rows) in months.items():
        found = asked("standings", name)
        assert found["games"] == len(played)
        assert month_text(name, [], found["rows"]) == YEAR["month_text"](name, [], rows)
    for name, rows in years.items():
        found = asked("standings", name)["rows"]
        assert [(row["rank"], row["player"], row["places"]) for row in found] == [(r[0], r[1], r[3]) for r in rows]
        assert [row["points"] for row in found] == [str(sum(row[3])) for row in rows]


@pytest.mark.slow
def test_explanations_match_golden_files(year_in: Callable[[str], CoordinateSpec], tmp_path: Path) -> None:
    """The explanations of every game and month, and the statistics of players, match the golden files."""
    create_ledger(str(tmp_path / "ratings.db"))
    asked = year_in(str(tmp_path / "ratings.db"))
    names = [row["list"] for row in asked("lists")["rows"]]
    for kind in ("monthly", "open", "annual"):
        explained = explained_year if kind == "annual" else explained_month
        parts = [explained(asked, name) for name in names if name.startswith(f"catan-{kind}/")]
        assert "\n\n\n".join(parts) + "\n" == golden(f"{kind}.txt")
    people = [line.split()[0] for line in golden("people.txt").splitlines()[1:]]
    assert YEAR["people_text"]([person_row(asked, player) for player in people]) + "\n" == golden("people.txt")


def month_text(ladder: str, played: list[Any], rows: list[Any]) -> Any:
    """The table of a month from the games and rows that the program gives."""
    read = [(row["rank"], row["player"], Fraction(row["points"]), row["games"], row.get("gold")) for row in rows]
    return YEAR["month_text"](ladder, played, read)


def explained_month(asked: CoordinateSpec, ladder: str) -> Any:
    """The table of a month, with a column for each game, city by city."""
    rows = asked("standings", ladder)["rows"]
    games: dict[tuple[str, str, str], dict[str, Fraction]] = {}
    for row in rows:
        for game in asked("explain", row["player"], ladder)["games"]:
            if game["change"] is None:
                continue
            key = (game["game_id"].partition("-")[0], game["occurred_at"], game["game_id"])
            games.setdefault(key, {})[row["player"]] = Fraction(game["change"])
    return month_text(ladder, [(game_id, points) for (_, _, game_id), points in sorted(games.items())], rows)


def explained_year(asked: CoordinateSpec, ladder: str) -> Any:
    """The table of a year, with the months that `explain` names."""
    rows = []
    for row in asked("standings", ladder)["rows"]:
        places = {}
        for term in asked("explain", row["player"], ladder)["terms"]:
            if term["term"].startswith("2010-"):
                left_out = term["detail"].removeprefix("place ").removesuffix(", not among the best")
                places[term["term"][5:]] = int(term["amount"] or left_out)
        rows.append((row["rank"], row["player"], places, row["places"]))
    return YEAR["year_text"](ladder, rows)


def person_row(asked: CoordinateSpec, player: str) -> tuple[Any, ...]:
    """What somebody did, as `statistics` says."""
    found = asked("statistics", player)
    stars = "-" if found["stars"] is None else f"{found['stars']}{' golden' * found['golden']}"
    return player, found["started"], found["finished"], found["substituted"], stars, found["gold"]
