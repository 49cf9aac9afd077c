"""An import reports all errors of a table in one run, and what to do next."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Ratings = Callable[..., Any]
pytestmark = pytest.mark.ledger(make=lambda ratings, url: ratings("init", "--for", "catan", db=url))
HEADER = "Datum;Spieler 1;Spieler 2;Ergebnis"


def write_table(folder: Path, *rows: str, header: str = HEADER) -> Path:
    """Write a table of these rows and return its path."""
    (path := folder / "club.csv").write_text("\n".join((header, *rows, "")), encoding="utf-8")
    return path


def list_refusals(text: str) -> list[str]:
    """Return the lines and codes of the refusals in an output."""
    refusals = [line.partition("club.csv:")[2].split(": ") for line in text.splitlines() if "club.csv:" in line]
    return [" ".join(parts[:2]) for parts in refusals if parts[0].isdigit()]


def test_errors_of_columns_dates_rows_and_names_are_reported_in_one_run(
    one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """One run reports all errors: those of the whole table, of cells and of names."""
    rows = (
        "05/06/2026;Anna & Cleo;Ben;3:1;",
        "06/06/2026;Johanna;Ben;3:x;gut",
        "07/06/2026;Johana;Ben;3:0;",
        "08/06/2026;Pirya;Priya;3:0;",
    )
    table = write_table(tmp_path, *rows, header=f"{HEADER};Halle")
    result = ratings("import", table, db=one_db)
    assert list_refusals(result.stderr) == [
        "1 unknown-column",
        "1 unclear-dates",
        "2 tied-players",
        "3 bad-value",
        "4 close-name",
        "5 close-name",
    ]
    # the preview does not show the date that stands in for the unclear ones
    previewed = ratings("import", table, "--preview", db=one_db)
    assert list_refusals(previewed.stderr)[:4] == list_refusals(result.stderr)[:4]
    assert "2000-01-01" not in previewed.stdout
    assert ratings("import", table, "--keep-going", db=one_db).stdout.startswith("0 appended, ")


def test_missing_game_is_reported_with_errors_of_rows_and_names(tmp_path: Path, ratings: Ratings) -> None:
    """If no column names the game, the refusal lists the games that rulesets score; other errors are reported, too."""
    url = str(tmp_path / "two.db")
    ratings("init", "--for", "catan", db=url)
    ratings("rules", "publish", "--shipped", "elo", "--game", "tichu", db=url)
    result = ratings("import", write_table(tmp_path, "2026-06-05;Johanna;Ben;x", "2026-06-06;Johana;Ben;3:0"), db=url)
    assert list_refusals(result.stderr) == ["1 missing-column", "2 bad-value", "3 close-name"]
    assert "set the game of all rows: --set game=NAME (the ledger's rulesets score catan, tichu; " in result.stderr


def test_names_of_refused_games_are_checked(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """The names of a game are checked even if a rule refuses the game for its partners."""
    table = write_table(tmp_path, "2026-06-05;Johanna / Ben;Anna / Cleo;3:0", "2026-06-06;Johana / Ben;Anna / Cleo;3:0")
    result = ratings("import", table, "--partners", " / ", db=one_db)
    assert list_refusals(result.stderr) == ["2 no-teams", "3 close-name"]
    assert "to publish a ruleset that does: ratings rules publish --shipped weng-lin --game catan" in result.stderr


def test_valid_games_are_counted_with_the_option_that_records_them(
    one_db: str, ratings: Ratings, tmp_path: Path
) -> None:
    """If only rows are refused, the import counts the valid games and names the option that records them."""
    table = write_table(tmp_path, "2026-06-05;Anna;Ben;3:0", "2026-06-06;Anna;Ben;x")
    result = ratings("import", table, db=one_db)
    assert "note: 1 valid game; --keep-going records it, and writes the rest to " in result.stderr
    assert ratings("import", table, "--keep-going", db=one_db).stdout.startswith("1 appended, 1 refused")
    account = {"type": "player.account_changed", "occurred_at": "2026-06-05T20:00:00Z"}
    lines = tmp_path / "accounts.jsonl"
    line = json.dumps({**account, "data": {"player": "Anna", "account": "free"}})
    lines.write_text(f"{line}\n{{}}\n", encoding="utf-8")
    assert "note: 1 valid event; --keep-going records it" in ratings("import", lines, db=one_db).stderr


def test_option_that_saves_a_profile_is_suggested_once(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """Only the first import with options suggests --save-profile; an import with the profile reports nothing."""
    table = write_table(tmp_path, "05/06/2026;Anna;Ben;3:0;gut", header=f"{HEADER};Bemerkung")
    options = ("--dates", "dmy", "--map", "Bemerkung=")
    first = ratings("import", table, *options, db=one_db)
    assert "note: --save-profile club.toml saves these options" in first.stderr
    rows = ("05/06/2026;Anna;Ben;3:0;gut", "06/06/2026;Anna;Ben;3:1;gut")
    grown = ratings("import", write_table(tmp_path, *rows, header=f"{HEADER};Bemerkung"), *options, db=one_db)
    assert (grown.stdout[:10], "--save-profile" in grown.stderr) == ("1 appended", False)
    result = ratings("import", table, *options, "--save-profile", tmp_path / "club.toml", db=one_db)
    assert "--save-profile" not in result.stderr
    again = ratings("import", table, "--profile", tmp_path / "club.toml", db=one_db)
    assert (again.exit_code, again.stderr) == (0, "")


def test_missing_ruleset_is_reported_with_the_command_that_publishes_one(tmp_path: Path, ratings: Ratings) -> None:
    """Games are recorded without any ruleset, and the import names the command that publishes one."""
    url = str(tmp_path / "none.db")
    ratings("init", "--no-rules", db=url)
    result = ratings("import", write_table(tmp_path, "2026-06-05;Anna;Ben;3:0"), "--set", "game=tichu", db=url)
    assert result.stdout.startswith("1 appended")
    command = "ratings rules publish --shipped elo --game tichu"
    assert f"no ruleset is published, so these games are not rated; to rate them: {command}" in result.stderr
    assert ratings(*command.split()[1:], db=url).exit_code == 0


def test_numbers_that_start_again_each_day_are_reported_once(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A column that numbers the games of each day is reported once, with the option that numbers games by date."""
    (table := tmp_path / "club.csv").write_text(
        "Date,Game,1st,2nd\n2026-06-05,1,Anna,Ben\n2026-06-05,2,Ben,Anna\n2026-06-12,1,Anna,Ben\n2026-06-12,2,Ben,Anna\n"
    )
    result = ratings("import", table, db=one_db)
    assert list_refusals(result.stderr) == ["4 id-conflict"]
    message = (
        "the numbers in column 'Game' start again on other days, so they do not identify games; --map Game= numbers "
        "games by date instead "
    )
    assert f"{message}(1 more like this, the last in line 5)" in result.stderr
    assert "--keep-going" not in result.stderr
    assert ratings("import", table, "--map", "Game=", db=one_db).stdout.startswith("4 appended")


def test_column_that_is_read_as_game_id_is_named(tmp_path: Path, ratings: Ratings) -> None:
    """If nothing names the game, the refusal says that the column Game, which holds numbers, is read as `game_id`."""
    url = str(tmp_path / "two.db")
    ratings("init", "--for", "catan", "--for", "chess", db=url)
    (table := tmp_path / "club.csv").write_text("Date,Game,1st,2nd\n2026-06-05,1,Anna,Ben\n")
    assert "there is no column 'game' ('Game' is read as game_id); " in ratings("import", table, db=url).stderr


def test_two_names_in_a_cell_explain_the_gap_in_places(one_db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A tie in one cell leaves the next place empty; such a row is refused for its tie, but not for the gap."""
    rows = "".join(f"2026-06-0{day},Anna,Ben & Cleo,,Dora\n" for day in (1, 2))
    (table := tmp_path / "club.csv").write_text(f"Date,1st,2nd,3rd,4th\n{rows}2026-06-03,Anna,Ben,,Dora\n")
    result = ratings("import", table, db=one_db)
    assert list_refusals(result.stderr) == ["2 tied-players", "4 place-gap"]
    assert "(1 more like this, the last in line 3)" in result.stderr
    with_ties = ratings("import", table, "--ties", "&", db=one_db)
    assert list_refusals(with_ties.stderr) == ["4 place-gap"]
