"""The pages of docs/systems match the shipped rulesets, and the numbers in their text match the rules.

Their commands are run with those of all other pages, by test_page_examples.py.
"""

import json
import re
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from console_blocks import refresh_page
from make_docs import ROOT, list_pages_with_commands
from own_rules import find_shipped_texts, load_built_in_rule, read_elo_text

FOLDER = ROOT / "docs" / "systems"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md") if path.name != "README.md"}
RULESETS = [tomllib.loads(text) for text in [*find_shipped_texts(), read_elo_text("chess")]]
# the worked examples of the sources, as the pages show them
QUOTED_EXAMPLES = {
    "elo": {"ben: 984.00 +17.469502 = 1001.47", "anna: 1000 +16 = 1016", "+8  vs ben: K 16, expected 0.5, scored 1"},
    "glicko": {"1464.106463 ± 151.398902", "weight 0.995498, expected 0.639468, scored 1"},
    "glicko-2": {
        "1464.050671 ± 151.516524, 0.059995984401", "2167.021002 ± 60.580992, 0.060031107912",
        "weight 0.995498, expected 0.639468, scored 1",
    },
    "contribution-pool": {
        "1st of 2    1160", "2nd of 2     840", "1st of 3    1230", "2nd of 3     970", "3rd of 3     800",
        "1st of 4    1275", "2nd of 4    1055", "3rd of 4     910", "4th of 4     760", "1000 +323 = 1323",
        "1000 +123 = 1123", "1000 -17 = 983", "1000 -150 = 850", "1000 -280 = 720", "burned 1.", "601 s, more than 600",
    },
    "ante-pool": {
        "Richie: 95 +7 = 102", "40 % of the pot of 39", "15.6 rounded down", "25 % of the pot of 38",
        "9.5 rounded down",
    },
    "catan-elo": {"A: 1200 +8 = 1208", "B: 1000 +5 = 1005", "C: 1400 -13 = 1387", "gus: 1000 +4", "hal: 1000 -4"},
    "catan-lists": {
        "+1.5", "   1  ben       3.57      7     2", "   3  cleo      2.14      7     1", "304     21  1 3 150 150",
        "played 2010-03-01 00:30 Europe/Berlin", "6 of 7 games", "3 golden",
    },
    "league-points": {"A: 0 +20 = 20", "B: 0 +9 = 9", "D: 0 +2 = 2", "A: 20 +12 = 32", "B: 9 +4 = 13", "20/3"},
    "blue-max": {
        "W1: 0 +7 = 7", "W2: 0 +5 = 5", "W3: 0 +4 = 4", "W1: 0 +5 = 5", "W2: 0 +4 = 4", "W3: 0 +2 = 2", "D2: 0 +2 = 2",
        "D1: 0 -1 = -1", "W1: 0 +1 = 1", "D1: 0 0 = 0", "tactical victory of four", "tactical victory of three",
    },
    "wooden-ships": {
        "+3  victory: 20 game points against 10", "+4  overwhelming victory: 20 game points against 10",
        "+4  overwhelming victory: 21 game points against 10",
    },
    "italia-2010": {"+445.9 = 445.9", "198.9", "87.1", "53.3", "22.1", "11.7", "6.5", "+149.8", "+113.4", "+32.2"},
    "fide": {
        "40 * 0.33 = +13.20", "40 * -0.66 = -26.40", "40 * 0.47 = +18.80", "**1928**", "| 937 | 400 | +1.60 |",
        "anna: 1922 +13",
    },
    "diplomacy": {
        "aldo: 0 +44 = 44", "gina: 0 +44 = 44", "ezio: 0.0 +2.4 = 2.4", "+45.859873  share: 100 * 12 * 12 / 314",
        "7 of places 3 to 7, shared by 5",
    },
    "club-catan-elo": {"minted 0.736307", "anna: 1000 +32 = 1032"},
    "club-elo": {
        "16.462462", "2.820079", "1571.666667", "within\n0.001 points", "1490.799099 + 65 at home", "a new season",
        "vs bo and di: K 40", "if draw",
    },
    "riichi": {
        "0.2 * -30 = -6", "0.2 * (-30 - 400 / 40) = -8", "| all at 1500 | 1 | 30 |", "aki: 1530.00 +19.2115 = 1549.21",
    },
    "egf": {"to 2109.306246", "to 2091.72531", "+4.653123", "+0.877502", "ann: 100.00 +47.724253 = 147.72"},
    "weng-lin": {"27.635389 ± 8.065901", "30.016050 ± 1.501787", "21.413689 ± 8.058224"},
    "championship": {
        "ben: 6.0 +2.5 = 8.5", "cleo: 11 +16 = 27", "   1  cleo      24.0", "   2  anna      24.0",
        "places: 2 at place 1, 1 at place 3; anna 1 at place 1, 2 at place 2, 1 at place 3", "best 1 of 2 results",
        "   1  Belem        14", "+1  cleo, place 4: worth 1", "CNC is Cascais   +3",
    },
}  # fmt: skip


def test_every_ruleset_has_an_indexed_page() -> None:
    """The index names every shipped ruleset and links to every page, and the commands of every page are run."""
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert {name for name in PAGES if f"]({name}.md)" not in index} == set()
    assert {data["id"] for data in RULESETS if f"`{data['id']}`" not in index} == set()
    assert {path.name for path in FOLDER.glob("*.md")} - {"README.md"} == {
        page.name for page in list_pages_with_commands() if page.parent == FOLDER
    }


def find_page(ruleset_id: str) -> str:
    """Return the page that names the ladders of a ruleset."""
    (page,) = [text for text in PAGES.values() if re.search(rf"^\| `{ruleset_id}(/[^`]*)?`", text, re.MULTILINE)]
    return page


@pytest.mark.parametrize("data", RULESETS, ids=lambda data: f"{data['id']}@{data['version']}")
def test_page_names_versions_and_assumptions(data: dict[str, Any]) -> None:
    """A page names its ruleset's version, its rule and its assumed parameters."""
    page = find_page(data["id"])
    assert f"`{data['rule']}`" in page
    assert f"`{data['id']}@{data['version']}`" in page or f"`{data['version']}`" in page
    assert {key for key in data["assumed"] if f"`{key}" not in page} == set()


@pytest.mark.parametrize(
    ("page", "ruleset_id", "table"),
    [
        ("contribution-pool", "galactic-points", "contributions"),
        ("ante-pool", "b5-league", "shares"),
        ("catan-lists", "catan-monthly", "points"),
        ("catan-lists", "catan-open", "points"),
    ],
)
def test_tables_match_shipped_rulesets(page: str, ruleset_id: str, table: str) -> None:
    """The tables on the pages match those of the shipped rulesets."""
    for data in RULESETS:
        if data["id"] == ruleset_id:
            for players, row in data["params"][table].items():
                assert row == (read_row(page, players) or read_column(page, players))[: len(row)]


def read_row(page: str, first_cell: str) -> list[int]:
    """Return the numbers of the first row of a page that begins with this cell, or with it and `or more`."""
    match = re.search(rf"^\| {first_cell}( or more)? \|([\d |]+)\|$", PAGES[page], re.MULTILINE)
    return [int(cell) for cell in match[2].split("|") if cell.strip()] if match else []


def read_column(page: str, header_cell: str) -> list[int]:
    """Return the numbers of the column with this header in the table of a page whose rows are places."""
    header_line, *lines = re.findall(r"^\| (?:place|\d\w\w) \|.*$", PAGES[page], re.MULTILINE)
    number = [cell.split()[0] for cell in header_line.strip("|").split("|")].index(header_cell)
    cells = [line.strip("|").split("|")[number].strip() for line in lines]
    return [int(cell) for cell in cells if cell]


def test_expected_scores_match_the_rule() -> None:
    """The table of expected scores on the page of FIDE's rating matches the rule's."""
    cells = re.findall(r"(\d+)-(\d+) \| 0\.(\d\d)(?= )", PAGES["fide"])
    percentages = [
        int(percentage)
        for low, high, percentage in sorted(cells, key=lambda cell: int(cell[0]))
        for _ in range(int(low), int(high) + 1)
    ]
    assert (*percentages, 100) == load_built_in_rule("fide-elo/1").table()


def test_league_points_follow_the_formula() -> None:
    """The table of league points matches the formula."""
    for n in range(2, 9):
        assert read_column("league-points", str(n)) == [(n - k) * (n - k + 1) for k in range(1, n + 1)]


@pytest.mark.parametrize("page", QUOTED_EXAMPLES)
def test_page_shows_the_source_examples(page: str) -> None:
    """A page shows the worked examples of its source."""
    assert {text for text in QUOTED_EXAMPLES[page] if text not in PAGES[page]} == set()


def test_every_page_has_examples() -> None:
    """`QUOTED_EXAMPLES` has worked examples for every page."""
    assert QUOTED_EXAMPLES.keys() == PAGES.keys()


Ratings = Callable[..., Any]


def run_json(ratings: Ratings, db: str, *arguments: object) -> Any:
    """Run a command, which must succeed, and return its JSON."""
    result = ratings(*arguments, "--format", "json", db=db)
    assert result.exit_code == 0, result
    return json.loads(result.stdout)


def test_constant_loser_falls_as_on_page(ratings: Ratings, tmp_path: Path) -> None:
    """The points of a player who is always last among newcomers fall as the page says."""
    expected_points = next(block.split() for block in re.findall(r"```text\n([\d ]+)\n```", PAGES["ante-pool"]))
    db, games = str(tmp_path / "ratings.db"), tmp_path / "games.jsonl"
    with games.open("w", encoding="utf-8") as file:
        for number in range(30):
            players = [{"player": f"p{number}-{power}", "power": power, "influence": 0} for power in range(1, 5)]
            players[0]["vp"] = 3
            game = {
                "game_id": f"g-{number}",
                "game": "babylon5",
                "kind": "b5",
                "season": "2010-1",
                "participants": [*players, {"player": "loser", "power": 0, "influence": 0}],
            }
            event = {"type": "game.recorded", "occurred_at": f"2010-02-01T12:{number:02d}:00Z", "data": game}
            file.write(json.dumps(event) + "\n")
    assert ratings("init", db=db).exit_code == 0
    run_json(ratings, db, "import", games)
    rows = run_json(ratings, db, "history", "loser", "b5-league/2010-1")["rows"]
    assert ["100", *(row["after"] for row in rows)] == [
        *expected_points,
        *[expected_points[-1]] * (31 - len(expected_points)),
    ]


@pytest.mark.slow
def test_no_break_readings_match_the_page(ratings: Ratings, tmp_path: Path) -> None:
    """Each reading of `no break` gives the players of the page's game the points in its row of the table."""
    reading_rows = re.findall(r"^\| `(\w+)`: .*?\|(.*)\|$", PAGES["italia-2010"], re.MULTILINE)
    assert len(reading_rows) == 5
    (ruleset,) = re.findall(r'^```toml title="[^"]+"\n(.*?)^```$', PAGES["italia-2010"], re.DOTALL | re.MULTILINE)
    (game,) = re.findall(r'^```json title="no-break.json"\n(.*?)^```$', PAGES["italia-2010"], re.DOTALL | re.MULTILINE)
    db = str(tmp_path / "ratings.db")
    assert ratings("init", db=db).exit_code == 0
    assert ratings("record", "--at", "2010-06-03T20:00Z", db=db, input=game).exit_code == 0
    for name, cells in reading_rows:
        (tmp_path / f"{name}.toml").write_text(ruleset.replace("pct_add", name), encoding="utf-8")
        assert ratings("rules", "publish", tmp_path / f"{name}.toml", db=db).exit_code == 0
        rows = run_json(ratings, db, "standings", "italia-2010/open", "--rules", f"italia-2010@{name}")["rows"]
        assert [Fraction(row["points"]) for row in rows] == [Fraction(cell.strip()) for cell in cells.split("|")]


def test_worked_year_commands_run(tmp_path: Path) -> None:
    """The commands of the worked year print what its page shows."""
    page = ROOT / "examples" / "catan-year" / "README.md"
    assert refresh_page(page, tmp_path, ROOT) == page.read_text(encoding="utf-8")
