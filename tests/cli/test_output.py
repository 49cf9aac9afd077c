"""Names come out as they went in, on every output; tables fit a terminal; a closed pipe is no failure."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from stores import make_empty_ledger
from terminals import run_on_terminal
from test_json_of_results import iterate_commands

from ratings_ledger.cli.main import ratings as program

ALL = "club-catan-elo/all"
ROOT = Path(__file__).parents[2]
NAMES = [
    "anna", "Zoé", "Łukasz Żółć", "Νίκος", "Дмитрий", "名無しさん", "김철수", "محمد", "דוד", "สมชาย",
    "देवनागरी", "😀👩👧",
    "[red]x", "[bold]",
    "[link](x)", "{name}", "%s%n", "\\u0041", "a,b;c", 'the "fox"', "O'Neil", "<b>", "&amp;",
    "-rf", "+49 30 1", "@here", "-5", "None",
    "null", "x" * 64,
]  # fmt: skip


def make_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with a game of all `NAMES` whose id looks like a formula, and a game whose id looks like markup."""
    participants = [{"player": player, "place": place} for place, player in enumerate(NAMES, 1)]
    events = [
        {
            "type": "game.recorded",
            "occurred_at": "2024-01-01T12:00:00Z",
            "data": {"game_id": game_id, "game": "club-catan", "group": "[bold]=2+2", "participants": players},
        }
        for game_id, players in (("=1+1", participants), ("[red]g", participants[:2]))
    ]
    assert ratings("init", db=url).exit_code == 0
    lines = "\n".join(json.dumps(event) for event in events)
    assert ratings("import", "-", db=url, input=lines).exit_code == 0


pytestmark = pytest.mark.ledger(make=make_ledger, store="sqlite")


def test_dry_run_shows_forty_new_ladders(ratings: Callable[..., Any], tmp_path: Path) -> None:
    """A dry run that starts many ladders shows forty of them and counts the rest."""
    path = tmp_path / "many.db"
    assert ratings("init", "--no-rules", db=path).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "catan-elo", db=path).exit_code == 0
    rows = "".join(f"g-{n},2024-03-01T12:00:00Z,catan,group-{n},anna,ben,cleo\n" for n in range(50))
    stdout = ratings(
        "import", "-", "--dry-run", db=path, input=f"game_id,occurred_at,game,group,1st,2nd,3rd\n{rows}"
    ).stdout
    shown, more = stdout.partition("ladder ")[2].split("... and ")
    assert (shown.count("catan-elo/group-"), more) == (
        40,
        "10 more ladders\n\nTo list the affected players, run the same command with --dry-run --format json\n",
    )


def test_command_after_a_decision_lists_all_affected_players(ratings: Callable[..., Any], tmp_path: Path) -> None:
    """A decision that affects more players than are shown prints the command that lists all of them."""
    path = tmp_path / "large.db"
    assert ratings("init", "--no-rules", db=path).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "elo", "--game", "chess", db=path).exit_code == 0
    participants = [{"player": f"p{place}", "place": place} for place in range(1, 46)]
    data = {"game_id": "g", "game": "chess", "participants": participants}
    game = {"type": "game.recorded", "occurred_at": "2024-01-01T12:00:00Z", "data": data}
    assert ratings("import", "-", db=path, input=json.dumps(game)).exit_code == 0
    stdout = ratings("void", "g", "--reason", "a test", db=path).stdout
    command = re.search("To list the affected players: ratings (.+)", stdout)
    assert command is not None, stdout
    (ladder,) = json.loads(ratings(*command[1].split(), db=path).stdout)["ladders"]
    assert len(ladder["rows"]) == 45


def test_json_standings_keep_names_exact(db: str, ratings: Callable[..., Any]) -> None:
    """Names of every kind come out of the JSON standings exactly as they went in."""
    rows = json.loads(ratings("standings", ALL, "--format", "json", db=db).stdout)["rows"]

    assert sorted(row["player"] for row in rows) == sorted(NAMES)


def test_csv_standings_keep_names_exact(db: str, ratings: Callable[..., Any]) -> None:
    """Names of every kind come out of the CSV standings exactly as they went in."""
    rows = list(csv.DictReader(io.StringIO(ratings("standings", ALL, "--format", "csv", db=db).stdout)))

    assert sorted(row["player"] for row in rows) == sorted(NAMES)


def test_table_standings_show_every_name(db: str, ratings: Callable[..., Any]) -> None:
    """The standings table shows names of every kind, with `?` for unprintable characters."""
    table = ratings("standings", ALL, db=db).stdout
    cells = {re.split(r"\s{2,}", line.strip())[1] for line in table.splitlines()[3:]}

    # what a terminal cannot show as it stands, such as the joiner within a family of emoji, is a question mark
    assert cells == {"".join(c if c.isprintable() else "?" for c in name) for name in NAMES}


@pytest.mark.parametrize(
    "command",
    [["games"], ["log"], ["ladders"], ["standings", ALL], ["history", "[red]x", ALL], ["explain", "=1+1", ALL]],
)
@pytest.mark.parametrize("output_format", ["table", "json", "csv"])
def test_markup_in_names_stays_text(
    command: list[str], output_format: str, db: str, ratings: Callable[..., Any]
) -> None:
    """Commands print markup in names as plain text in every format."""
    result = ratings(*command, "--format", output_format, db=db)

    assert (result.exit_code, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    if command[0] in ("games", "standings", "explain"):
        assert "[red]x" in result.stdout


@pytest.mark.parametrize("column", ["game_id", "group"])
def test_csv_keeps_formula_lookalikes_exact(column: str, db: str, ratings: Callable[..., Any]) -> None:
    """Texts that look like formulas come out of the CSV and JSON games exactly as they went in."""
    rows = list(csv.DictReader(io.StringIO(ratings("games", "--format", "csv", db=db).stdout)))

    assert [row[column] for row in rows] == {"game_id": ["=1+1", "[red]g"], "group": ["[bold]=2+2"] * 2}[column]
    assert [row["game_id"] for row in json.loads(ratings("games", "--format", "json", db=db).stdout)["rows"]] == [
        "=1+1",
        "[red]g",
    ]


def read_terminal(*arguments: str, columns: int) -> str:
    """Return the output of a command on a terminal with this many columns, without colours."""
    _, screen = run_on_terminal(*arguments, columns=columns)
    return re.sub(r"\x1b\[[0-9;]*m", "", screen).replace("\r\n", "\n")


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 40])
def test_notes_are_wrapped_between_words(columns: int, db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """At a terminal, a note is broken only between words; elsewhere it is one line."""
    table = tmp_path / "games.csv"
    table.write_text(
        "game_id,occurred_at,game,1st,2nd\n"
        + "".join(f"n-{n},2024-03-01T12:00:00Z,chess,player{n},{'y' * 50}\n" for n in range(15)),
        encoding="utf-8",
    )
    lines = run_on_terminal("--db", db, "import", str(table), "--new-game", "--dry-run", columns=columns, piped=True)[
        1
    ].splitlines()
    first = next(index for index, line in enumerate(lines) if "note: 16 new" in line)
    following_lines = takewhile(re.compile("  [py]").match, lines[first + 1 :])
    note_lines = [lines[first][lines[first].index("note: 16") :], *following_lines]
    note = f"note: 16 new players: player0, {'y' * 50}, " + ", ".join(f"player{n}" for n in range(1, 15))
    assert " ".join("".join(f"{line}\n" for line in note_lines).split()) == note
    assert max(len(line) for line in note_lines if "yyy" not in line) <= columns
    assert len(note_lines) > 2
    assert note in ratings("import", table, "--new-game", "--dry-run", db=db).stderr.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["standings", ALL], ["games", "--limit", "1"], ["history", "anna", ALL], ["log", "--limit", "1"]]
)
def test_tables_fit_80_columns(command: list[str], db: str) -> None:
    """On a terminal of 80 columns, no line of a table is wider than that."""
    lines = read_terminal("--db", db, *command, columns=80).splitlines()

    assert [line for line in lines if cell_len(line) > 80] == []


@pytest.mark.slow
def test_narrow_terminal_folds_long_names(db: str) -> None:
    """On a narrow terminal, long names in the standings are folded and not cut off."""
    text = read_terminal("--db", db, "standings", ALL, columns=50)

    assert text.count("x" * 20) >= 2
    assert sum(line.count("x") for line in text.splitlines() if re.search("x{4}", line)) >= 64
    assert "…" not in text


@pytest.mark.slow
@pytest.mark.ledger(make=make_empty_ledger)
def test_history_folds_opponents_only(db: str, ratings: Callable[..., Any]) -> None:
    """At 80 columns, a history with deviations and published points leaves out the column `before`, breaks the names
    of columns, and folds opponents between words; days, ids and numbers stay whole.
    """
    game = ("record", "-q", "--game", "chess")
    for command in (
        ("init", "--for", "chess", "--system", "glicko", "--zone", "Europe/Berlin"),
        (*game, "--game-id", "2024-01-05-1", "--at", "2024-01-05", "Annabella:3", "Benjamin:1"),
        (*game, "--game-id", "2024-01-06-1", "--at", "2024-01-06", "Benjamin:3", "Annabella:2"),
        ("publish", "glicko-chess", "--as-of", "2024-01-31"),
        ("correct", "2024-01-06-1", "--reason", "typo", "Annabella:3", "Benjamin:2"),
    ):
        result = ratings(*command, db=db)
        assert result.exit_code == 0, (command, result.stderr)
    text = read_terminal("--db", db, "history", "Annabella", "glicko-chess", columns=80)
    rows = [[*map(str.strip, re.split(r"\s{2,}", line.strip()))] for line in text.splitlines()[3:9]]
    assert rows == [
        ["played"],
        ["(Berlin)", "game", "place", "change", "after", "published", "against"],
        ["2024-01-05", "2024-01-05-1", "1 (3)", "+162.21", "1662.21 ± 290?", "Benjamin"],
        ["(1)"],
        ["2024-01-06", "2024-01-06-1", "1 (3)", "+57.99", "1720.20 ± 260?", "1433.24 (6)", "Benjamin"],
        ["(2)"],
    ]
    wide = read_terminal("--db", db, "history", "Annabella", "glicko-chess", columns=100)
    assert "1500.00  +162.21" in wide


HELPS = ["--help", "rules -h", "export -h", *(f"{name} -h" for name, _ in iterate_commands(program))]


@pytest.mark.parametrize("command", HELPS)
def test_help_fits_80_columns(command: str, ratings: Callable[..., Any]) -> None:
    """The help of every command fits into 80 columns, apart from its examples, which are not broken."""
    result = ratings(*command.split())

    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line for line in result.stdout.splitlines() if not line.lstrip().startswith("ratings ")]
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.slow
@pytest.mark.parametrize("command", ["export events", f"standings {ALL}", "games --format json", "log --format csv"])
def test_closed_pipe_ends_the_command_quietly(command: str, db: str) -> None:
    """If the reader of its output goes away, a command ends quietly with exit code 0."""
    reader, writer = os.pipe()
    os.close(reader)
    code = "from ratings_ledger.cli.main import run_program; run_program()"
    process = subprocess.run(
        [sys.executable, "-c", code, "--db", db, *command.split()],
        stdout=writer,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        check=False,
    )
    os.close(writer)

    assert (process.returncode, process.stderr) == (0, b"")


@pytest.mark.slow
def test_terminal_without_unicode_prints_names(db: str) -> None:
    """Names are printed as UTF-8 without failure even if the terminal's encoding is ASCII."""
    code = "from ratings_ledger.cli.main import run_program; run_program()"
    process = subprocess.run(
        [sys.executable, "-c", code, "--db", db, "standings", ALL],
        capture_output=True,
        cwd=ROOT,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )

    assert (process.returncode, process.stderr) == (0, b"")
    assert "Zoé".encode() in process.stdout
