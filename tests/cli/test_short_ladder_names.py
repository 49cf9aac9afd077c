"""The name of a ruleset is the short name of its ladder of all games: elo-chess means elo-chess/all."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from correction_helpers import Ratings, append_lines, build_event_line, build_game_data, read_json

import ratings_ledger
from ratings_ledger import CoordinateSpec


def make_chess_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger with two games of chess between two players."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number, players in enumerate((("anna", "ben"), ("ben", "anna")), 1):
        game = build_game_data(f"g-{number}", *players, game="chess")
        append_lines(ratings, url, build_event_line("game.recorded", f"2024-03-0{number}T12:00:00Z", **game))


pytestmark = pytest.mark.ledger(make=make_chess_ledger, store="sqlite")

COMMANDS = {
    "standings": ["standings", "LADDER"],
    "books": ["books", "LADDER"],
    "history": ["history", "ben", "LADDER"],
    "history, the other way round": ["history", "LADDER", "ben"],
    "explain": ["explain", "g-2", "LADDER"],
    "predict": ["predict", "LADDER", "anna", "ben"],
    "diff": ["diff", "as-of=2024-03-01", "now", "LADDER"],
    "whatif": ["whatif", "elo-chess", "--set", "params.k_total=16", "--ladder", "LADDER"],
    "unmet": ["league", "unmet", "LADDER", "anna"],
    "adjust": ["adjust", "LADDER", "anna", "5", "--reason", "why", "--at", "2024-04-01T12:00:00Z", "--dry-run"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_short_name_means_the_whole_one(command: list[str], one_db: str, ratings: Ratings) -> None:
    """A command answers the same for both names: its JSON has the whole name, its text the short one."""

    def run(ladder: str, output_format: str) -> str:
        arguments = (ladder if part == "LADDER" else part for part in command)
        result = ratings(*arguments, "--format", output_format, db=one_db)
        assert result.exit_code == 0, result
        return result.stdout

    json_text = run("elo-chess", "json")
    assert json_text == run("elo-chess/all", "json")
    assert '"elo-chess/all"' in json_text
    assert '"elo-chess"' not in json_text
    text = run("elo-chess", "table")
    assert text == run("elo-chess/all", "table")
    assert "elo-chess" in text
    assert "/all" not in text


def test_events_have_the_whole_name(db: str, ratings: Ratings) -> None:
    """Adjustments and lists that are given the short name are recorded under the whole one."""
    assert ratings("adjust", "elo-chess", "anna", "5", "--reason", "why", db=db).exit_code == 0
    assert ratings("publish", "elo-chess", db=db).exit_code == 0
    rows = read_json(ratings, db, "log", "--type", "points.adjusted", "--type", "list.published")["rows"]
    assert [row["data"]["ladder"] for row in rows] == ["elo-chess/all"] * 2
    published = ratings("standings", "elo-chess", "--as-published", db=db)
    assert (published.exit_code, published.stdout.startswith("elo-chess: 2 games")) == (0, True), published


def test_ladders_of_sizes_are_listed_once_sizes_differ(db: str, ratings: Ratings) -> None:
    """While all games have two players, the text lists one ladder, which need not be named; JSON lists both."""
    ladders = [row["ladder"] for row in read_json(ratings, db, "ladders")["rows"]]
    assert ladders == ["elo-chess/2", "elo-chess/all"]
    stdout = ratings("ladders", db=db).stdout
    assert stdout.startswith("1 ladder,")
    assert "elo-chess/2" not in stdout
    assert json.loads(ratings("standings", "--format", "json", db=db).stdout)["ladder"] == "elo-chess/all"

    game = build_game_data("g-3", "anna", "ben", "cleo", game="chess")
    append_lines(ratings, db, build_event_line("game.recorded", "2024-03-03T12:00:00Z", **game))
    stdout = ratings("ladders", db=db).stdout
    assert stdout.startswith("3 ladders,")
    assert "elo-chess/2" in stdout
    assert "/all" not in stdout
    assert ratings("standings", db=db).exit_code == 2


def test_changes_are_shown_once_until_ladders_differ(db: str, ratings: Ratings) -> None:
    """Changes and differences are shown for the ladder of one size only if it differs from the ladder of all sizes."""
    game_of_three = build_game_data("g-3", "anna", "ben", "cleo", game="chess")
    commands = {
        "correct": ["correct", "g-1", "ben", "anna", "--reason", "wrong way round", "--dry-run"],
        "diff": ["diff", "2", "now"],
        "whatif": ["whatif", "elo-chess", "--set", "params.k_total=16"],
    }
    outputs = {name: ratings(*command, db=db).stdout for name, command in commands.items()}
    assert ["elo-chess/2" in text for text in outputs.values()] == [False] * 3, outputs
    assert all("elo-chess\n" in text for text in outputs.values()), outputs
    output = json.loads(ratings(*commands["correct"], "--format", "json", db=db).stdout)
    assert {change["ladder"] for change in output["changes"]} == {"elo-chess/2", "elo-chess/all"}

    append_lines(ratings, db, build_event_line("game.recorded", "2024-03-03T12:00:00Z", **game_of_three))
    outputs = {name: ratings(*command, db=db).stdout for name, command in commands.items()}
    assert ["elo-chess/2" in text for text in outputs.values()] == [True] * 3, outputs


def test_group_called_all_has_the_same_short_name(copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """The ladder of a group called `all` has the name of its ruleset as its short name, too."""
    db = copy_ledger(make_chess_ledger)
    assert ratings("rules", "publish", "--shipped", "catan-elo", db=db).exit_code == 0
    assert ratings("standings", "catan-elo", db=db).exit_code == 2
    game = build_game_data("c-1", "anna", "ben", game="catan", group="all")
    append_lines(ratings, db, build_event_line("game.recorded", "2024-03-03T12:00:00Z", **game))
    assert read_json(ratings, db, "standings", "catan-elo")["ladder"] == "catan-elo/all"


def test_library_takes_short_names(one_db: str) -> None:
    """The library answers the same for both names."""
    with ratings_ledger.open(one_db) as ledger:
        view = ledger.at()
        assert view.standings("elo-chess") == view.standings("elo-chess/all")
        assert view.explain("elo-chess", "g-1").ladder == "elo-chess/all"
        before = ledger.at(as_of="2024-03-01")
        (ladder,) = ledger.compare(before, view, ["elo-chess"]).ladders
        assert ladder.ladder == "elo-chess/all"
        assert ledger.attribute("elo-chess", "anna", before, view).ladder == "elo-chess/all"
        (row,) = [*view.every_standings(["elo-chess"])]
        assert row.ladder == "elo-chess/all"
        assert isinstance(ledger.published(), CoordinateSpec)


def test_report_shows_short_names(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A page for a player is the same for both names, and shows the short one."""
    for number, ladder in enumerate(("elo-chess", "elo-chess/all")):
        result = ratings("report", "player", "anna", ladder, "-o", str(tmp_path / f"{number}.html"), db=one_db)
        assert result.exit_code == 0, result
    page = (tmp_path / "0.html").read_text(encoding="utf-8")
    assert page == (tmp_path / "1.html").read_text(encoding="utf-8")
    assert "on elo-chess</h1>" in page
