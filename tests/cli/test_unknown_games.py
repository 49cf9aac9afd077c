"""Tables with games that no published ruleset scores, and refusals that are listed once."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sheet_files import xlsx

TABLE = "Date,White,Black,Result\n2024-11-22,anna,ben,1-0\n2024-11-23,ben,anna,1-0\n"


@pytest.fixture
def db(tmp_path: Path, ratings: Callable[..., Any]) -> str:
    """Return a ledger for chess."""
    url = str(tmp_path / "chess.db")
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    return url


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of two games."""
    path = tmp_path / "games.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


@pytest.fixture
def teams(tmp_path: Path, ratings: Callable[..., Any]) -> tuple[str, str]:
    """Return a ledger for chess, and a table with a game of partners."""
    db, table = str(tmp_path / "club.db"), tmp_path / "teams.csv"
    table.write_text("Date,Winners,Losers\n2026-11-20,Anna & Ben,Cleo & Dora\n", encoding="utf-8")
    assert ratings("init", "--for", "chess", "--zone", "UTC", db=db).exit_code == 0
    return db, str(table)


def test_game_without_ruleset_is_refused_once(db: str, table: Path, ratings: Callable[..., Any]) -> None:
    """A slip in the name of a game is refused, with the name that is meant, in one line for all rows."""
    result = ratings("import", table, "--set", "game=ches", db=db)
    assert (result.exit_code, result.stdout) == (1, "0 appended, 2 refused; nothing was appended; the head is 1.\n")
    (line,) = [line for line in result.stderr.splitlines() if "unknown-game" in line]
    assert "no published ruleset scores games of 'ches'; to record them anyway: --new-game" in line
    assert line.endswith("; did you mean chess? (1 more like this, the last in line 3)")


@pytest.mark.parametrize("options", [("--set", "game=ches", "--new-game"), ("--set", "game=chess")])
def test_advised_option_takes_the_games(
    options: tuple[str, ...], db: str, table: Path, ratings: Callable[..., Any]
) -> None:
    """Both remedies in the refusal work: the option, and the suggested name."""
    result = ratings("import", table, *options, db=db)
    assert (result.exit_code, result.stdout) == (0, "2 appended; the head is 4.\n")


def test_any_game_is_taken_without_rulesets(tmp_path: Path, table: Path, ratings: Callable[..., Any]) -> None:
    """A ledger without rulesets accepts games of any name."""
    url = str(tmp_path / "bare.db")
    ratings("init", "--no-rules", db=url)
    assert ratings("import", table, "--set", "game=ches", db=url).exit_code == 0


def test_json_lines_are_warned_about(db: str, ratings: Callable[..., Any]) -> None:
    """Programs may record games that nothing scores yet; a note names each such game once."""
    events = "".join(
        f'{{"type":"game.recorded","occurred_at":"2024-11-22T12:00:00Z","data":{{"game_id":"g-{number}","game":"ches",'
        '"participants":[{"player":"anna","place":1},{"player":"ben","place":2}]}}\n'
        for number in (1, 2)
    )
    result = ratings("import", "-", db=db, input=events)
    assert result.exit_code == 0
    assert result.stderr.count("no ruleset scores games of ches; did you mean chess?") == 1


def test_cause_in_cells_is_listed_once(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """A spreadsheet with the same mistake in many cells gets one line, with the first cells and how many there are."""
    path = tmp_path / "games.xlsx"
    rows = [[f"2024-11-{day:02d}", "anna", "ben", f"odd {day}"] for day in range(1, 25)]
    path.write_bytes(xlsx([["Date", "White", "Black", "Result"], *rows]))
    result = ratings("import", path, db=db)
    lines = [line for line in result.stderr.splitlines() if "bad-value" in line]
    assert len(lines) == 1
    assert lines[0].endswith("(24 cells: D2, D3, D4 and 21 more)")


def test_advice_drops_no_player(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """The advice never drops a column with a player; it drops a column of remarks, and then the table is read."""
    path = tmp_path / "seven.csv"
    path.write_text("Date,White,Black,Result,Player 7,Mood\n2024-11-22,anna,ben,1-0,cleo,good\n", encoding="utf-8")
    stderr = ratings("import", path, db=db).stderr
    assert "--map 'Player 7='" not in stderr
    assert "drop one without players and results with --map 'Mood='" in stderr
    path.write_text("Date,White,Black,Result,Mood\n2024-11-22,anna,ben,1-0,good\n", encoding="utf-8")
    assert ratings("import", path, "--map", "Mood=", db=db).exit_code == 0


def test_game_of_teams_gets_a_ruleset_that_rates_them(teams: tuple[str, str], ratings: Callable[..., Any]) -> None:
    """The command in the note on games of partners without a ladder puts them on a ladder."""
    db, table = teams
    result = ratings("import", table, "--set", "game=codenames", "--new-game", db=db)
    advice = re.search(r"to publish one: ratings (rules publish --shipped \S+ --game \S+)", result.stderr)

    assert advice is not None
    assert ratings(*advice[1].split(), db=db).exit_code == 0
    rows = json.loads(ratings("standings", "weng-lin-codenames/all", "--format", "json", db=db).stdout)["rows"]
    assert {row["player"] for row in rows} == {"Anna", "Ben", "Cleo", "Dora"}


def test_refused_game_of_teams_gets_a_ruleset_that_rates_them(
    teams: tuple[str, str], ratings: Callable[..., Any]
) -> None:
    """The refusal of an unknown game of partners advises a ruleset that rates teams, and its command works."""
    db, table = teams
    result = ratings("import", table, "--set", "game=codenames", db=db)
    advice = re.search(
        r"unknown-game.*; to rate them: ratings (rules publish --shipped weng-lin --game \w+);", result.stderr
    )
    assert advice is not None, result.stderr
    assert ratings(*advice[1].split(), db=db).exit_code == 0
    assert ratings("import", table, "--set", "game=codenames", db=db).exit_code == 0


def test_refusal_of_partners_names_the_ruleset_that_counts_them(
    teams: tuple[str, str], ratings: Callable[..., Any]
) -> None:
    """Where one ruleset of a game rates teams and another does not, the refusal says which to withdraw, and how."""
    db, table = teams
    for system in ("elo", "weng-lin"):
        assert ratings("rules", "publish", "--shipped", system, "--game", "codenames", db=db).exit_code == 0
    result = ratings("import", table, "--set", "game=codenames", db=db)
    pattern = r"; weng-lin-codenames counts it; to withdraw elo-codenames: ratings (void --event \d+ --reason) TEXT"
    advice = re.search(pattern, result.stderr)
    assert advice is not None, result.stderr
    assert ratings(*advice[1].split(), "no teams", db=db).exit_code == 0
    assert ratings("import", table, "--set", "game=codenames", db=db).exit_code == 0
