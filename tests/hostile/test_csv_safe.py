"""CSV with `--csv-safe` has no cell that a spreadsheet takes for a formula; without the option, CSV is verbatim."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from ratings_ledger.cli.main import ratings as program
from ratings_ledger.ledger.rejections import FORMULA_STARTS, formula_safe

Ratings = Callable[..., Any]

ALL = "elo-chess/all"
FORMULAS = [
    '=HYPERLINK("http:\\\\evil","x")', "=1+1", "+1-1", "-rf", "@SUM(A1)", "+", "-", "-5%", "-1e3", "－1＋1", "＝1",
    '"quoted"=1', "'=1", "anna",
]  # fmt: skip
# ids cannot begin with white space, but texts in old logs and in `extra` can
WHITE_SPACE_FORMULAS = ["\t=1+1", "\r=1+1", "\n=1+1"]


# names that players can have
PLAYERS = ["@1+1", *(name for name in FORMULAS if not {"=", "/"} & set(name))]


def make_ledger(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    participants = [{"player": player, "place": place} for place, player in enumerate(PLAYERS, 1)]
    lines = [
        {
            "type": "game.recorded",
            "occurred_at": f"2024-01-{day:02}T12:00:00Z",
            "data": {"game_id": game_id, "game": "chess", "participants": participants},
        }
        for day, game_id in enumerate(("=1+1", "@game", "g"), 1)
    ]
    result = ratings("import", "-", "--by", "=cmd", db=url, input="\n".join(map(json.dumps, lines)))
    assert result.exit_code == 0, result.stderr
    for number, reason in enumerate(("=cmd|' /C calc'!A0", "@SUM(1)")):
        arguments = (PLAYERS[0], "--reason", reason, "--", str(-number - 1))
        assert ratings("adjust", ALL, *arguments, db=url).exit_code == 0
    assert ratings("void", "g", "--reason", "-1+cmd", db=url).exit_code == 0
    assert ratings("publish", ALL, db=url).exit_code == 0


pytestmark = pytest.mark.ledger(make=make_ledger)


def list_csv_commands(group: click.Group, *path: str) -> list[tuple[str, ...]]:
    """Return every command that writes CSV, by the words that call it."""
    commands = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            commands += list_csv_commands(command, *path, name)
        elif command is not None and any(
            isinstance(option.type, click.Choice) and "csv" in option.type.choices for option in command.params
        ):
            commands.append((*path, name))
    return commands


ARGUMENTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("games",): (), ("log",): (), ("export", "standings"): (), ("export", "changes"): (ALL,), ("ladders",): (),
    ("lists",): (), ("standings",): (ALL,), ("history",): ("@1+1", ALL), ("explain",): ("=1+1", ALL),
    ("statistics",): ("@1+1",), ("diff",): ("4", "now"), ("whatif",): ("elo.toml",), ("league", "list"): (),
    ("books",): (ALL,), ("rules", "list"): (), ("rules", "show"): ("elo-chess",), ("status",): (), ("doctor",): (),
    ("predict",): (ALL, *PLAYERS[:2]),
    ("grants",): (), ("segments", "list"): (), ("segments", "check"): (), ("segments", "seal"): (),
    ("segments", "prune"): (),
}  # fmt: skip
# for leagues and clocks, which this ledger does not have
UNTESTED_COMMANDS = {
    ("league", "show"),
    ("league", "table"),
    ("league", "unmet"),
    ("clock", "show"),
    ("clock", "explain"),
}


def test_every_csv_command_is_covered() -> None:
    """Every command that writes CSV is tested here, except those for leagues and clocks."""
    assert set(list_csv_commands(program)) == {*ARGUMENTS, *UNTESTED_COMMANDS}


@pytest.mark.parametrize("command", ARGUMENTS, ids=" ".join)
def test_safe_csv_has_no_formulas(
    command: tuple[str, ...], db: str, ratings: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--csv-safe`, no cell of any command begins like a formula, and numbers stay."""
    monkeypatch.chdir(tmp_path)
    Path("elo.toml").write_text(ratings("rules", "show", "elo-chess", "--format", "toml", db=db).stdout)
    verbatim = ratings(*command, *ARGUMENTS[command], "--format", "csv", db=db)
    safe = ratings(*command, *ARGUMENTS[command], "--format", "csv", "--csv-safe", db=db)

    assert verbatim.exit_code in (0, 1)
    assert (safe.exit_code, safe.stderr) == (verbatim.exit_code, verbatim.stderr)
    before, after = (
        # `doctor` prints the machine's time, which differs between two calls
        [row for row in csv.reader(io.StringIO(result.stdout)) if row[1:2] != ["clock"]]
        for result in (verbatim, safe)
    )
    assert before
    assert [[formula_safe(cell) for cell in row] for row in before] == after
    for cell in (cell for row in after for cell in row):
        assert not cell.startswith(FORMULA_STARTS) or is_number(cell), cell


def is_number(cell: str) -> bool:
    """Return whether a cell is a number as this program writes it, with digits alone."""
    parts = cell.removeprefix("-").replace("/", ".", 1).split(".")
    return len(parts) <= 2 and all(part.isascii() and part.isdigit() for part in parts)


def test_negative_points_get_no_apostrophe(db: str, ratings: Ratings) -> None:
    """With `--csv-safe`, negative points get no apostrophe."""
    stdout = ratings("export", "changes", ALL, "--format", "csv", "--csv-safe", db=db).stdout
    changes = [row["change"] for row in csv.DictReader(io.StringIO(stdout))]
    assert any(change.startswith("-") for change in changes)
    assert all(is_number(change) for change in changes)


def test_verbatim_csv_reads_back_unchanged(db: str, ratings: Ratings) -> None:
    """Without `--csv-safe`, names that look like formulas read back unchanged."""
    stdout = ratings("standings", ALL, "--format", "csv", db=db).stdout
    assert {row["player"] for row in csv.DictReader(io.StringIO(stdout))} == set(PLAYERS)


@pytest.mark.parametrize("text", [*FORMULAS, *WHITE_SPACE_FORMULAS])
def test_only_formula_like_text_gets_apostrophe(text: str) -> None:
    """Text that begins like a formula gets an apostrophe, and no other text does."""
    assert formula_safe(text) == (f"'{text}" if text[0] in "=+-@\t\r\n＝＋－＠" else text)


@pytest.mark.parametrize("cell", ["-5", "0", "-1.5", "-20/3", "12", None, True, -3])
def test_numbers_stay_unchanged(cell: Any) -> None:
    """Numbers and other values that are not text stay as they are."""
    assert formula_safe(cell) is cell


@pytest.mark.parametrize("options", [(), ("--format", "json"), ("--format", "table")])
def test_csv_safe_needs_csv(options: tuple[str, ...], tmp_path: Path, ratings: Ratings) -> None:
    """`--csv-safe` without `--format csv` is a usage error."""
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    for command in (("log",), ("export", "standings"), ("rules", "show", "elo-chess")):
        if command[0] == "export" and "table" in options:
            continue
        result = ratings(*command, *options, "--csv-safe", db=db)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "works only with --format csv" in result.stderr


def test_exported_file_is_safe_too(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """With `--csv-safe`, an export to a file is safe, too."""
    path = tmp_path / "changes.csv"
    assert ratings("export", "changes", ALL, "--format", "csv", "--csv-safe", "-o", path, db=db).exit_code == 0
    with open(path, encoding="utf-8", newline="") as file:
        assert "'=1+1" in {row["game_id"] for row in csv.DictReader(file)}
