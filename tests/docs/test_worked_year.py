"""The worked year of examples/catan-year: the results of the command line equal those of its plain arithmetic."""

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

ReadJson = Callable[..., Any]


@pytest.fixture
def fill_year(ratings: Callable[..., Any]) -> Callable[[str], ReadJson]:
    """Return a function that records the year in a ledger; it returns a function that runs a command for its JSON."""

    def fill(url: str) -> ReadJson:
        def read_json(*arguments: object) -> Any:
            result = ratings(*arguments, "--format", "json", db=url)
            assert result.exit_code == 0, result
            return json.loads(result.stdout)

        assert ratings("init", db=url).exit_code == 0
        read_json("import", FOLDER / "events.jsonl", FOLDER / "games.csv")
        return read_json

    return fill


def read_expected(name: str) -> str:
    return (FOLDER / "expected" / name).read_text(encoding="utf-8")


def test_files_match_the_script() -> None:
    """The files of the worked year equal the output of its script."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(YEAR["wide_rows"]())
    assert (FOLDER / "games.csv").read_text(encoding="utf-8") == out.getvalue(), "python make_year.py"
    events = (FOLDER / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in events] == [*YEAR["events"]()]
    expected = YEAR["build_expected_files"]()
    assert {name: read_expected(name) for name in expected} == expected


@pytest.mark.slow
def test_standings_match_the_arithmetic(fill_year: Callable[[str], ReadJson], ledger_url: str) -> None:
    """In each store, every row of every list equals the plain arithmetic."""
    read_json = fill_year(ledger_url)
    months, years = YEAR["compute_monthly_lists"](), YEAR["compute_annual_lists"]()
    assert {row["list"] for row in read_json("lists")["rows"]} == {*months, *years}
    for name, (played, rows) in months.items():
        standings = read_json("standings", name)
        assert standings["games"] == len(played)
        assert format_month(name, [], standings["rows"]) == YEAR["month_text"](name, [], rows)
    for name, rows in years.items():
        year_rows = read_json("standings", name)["rows"]
        assert [(row["rank"], row["player"], row["places"]) for row in year_rows] == [(r[0], r[1], r[3]) for r in rows]
        assert [row["points"] for row in year_rows] == [str(sum(row[3])) for row in rows]


@pytest.mark.slow
def test_explanations_match_golden_files(fill_year: Callable[[str], ReadJson], tmp_path: Path) -> None:
    """The explanations of every game and month, and the statistics of players, equal the golden files."""
    create_ledger(str(tmp_path / "ratings.db"))
    read_json = fill_year(str(tmp_path / "ratings.db"))
    names = [row["list"] for row in read_json("lists")["rows"]]
    for kind in ("monthly", "open", "annual"):
        format_explained = format_explained_year if kind == "annual" else format_explained_month
        parts = [format_explained(read_json, name) for name in names if name.startswith(f"catan-{kind}/")]
        assert "\n\n\n".join(parts) + "\n" == read_expected(f"{kind}.txt")
    people = [line.split()[0] for line in read_expected("people.txt").splitlines()[1:]]
    assert YEAR["people_text"]([build_person_row(read_json, player) for player in people]) + "\n" == read_expected(
        "people.txt"
    )


def format_month(ladder: str, played: list[Any], rows: list[Any]) -> Any:
    """Format a month from the games and rows of the program."""
    month_rows = [(row["rank"], row["player"], Fraction(row["points"]), row["games"], row.get("gold")) for row in rows]
    return YEAR["month_text"](ladder, played, month_rows)


def format_explained_month(read_json: ReadJson, ladder: str) -> Any:
    """Format a month with a column for each game, city by city, from `explain`."""
    rows = read_json("standings", ladder)["rows"]
    games: dict[tuple[str, str, str], dict[str, Fraction]] = {}
    for row in rows:
        for game in read_json("explain", row["player"], ladder)["games"]:
            if game["change"] is None:
                continue
            key = (game["game_id"].partition("-")[0], game["occurred_at"], game["game_id"])
            games.setdefault(key, {})[row["player"]] = Fraction(game["change"])
    return format_month(ladder, [(game_id, points) for (_, _, game_id), points in sorted(games.items())], rows)


def format_explained_year(read_json: ReadJson, ladder: str) -> Any:
    """Format a year with the months that `explain` names."""
    rows = []
    for row in read_json("standings", ladder)["rows"]:
        places = {}
        for term in read_json("explain", row["player"], ladder)["terms"]:
            if term["term"].startswith("2010-"):
                place = term["detail"].removeprefix("place ").removesuffix(", not among the best")
                places[term["term"][5:]] = int(term["amount"] or place)
        rows.append((row["rank"], row["player"], places, row["places"]))
    return YEAR["year_text"](ladder, rows)


def build_person_row(read_json: ReadJson, player: str) -> tuple[Any, ...]:
    """Return a player's row from `statistics`."""
    statistics = read_json("statistics", player)
    stars = "-" if statistics["stars"] is None else f"{statistics['stars']}{' golden' * statistics['golden']}"
    return player, statistics["started"], statistics["finished"], statistics["substituted"], stars, statistics["gold"]
