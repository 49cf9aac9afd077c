"""Wrong invocations end with the documented exit code and a message, never with a traceback."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

LADDER = "club-catan-elo/all"
GAME = (
    '{"type":"game.recorded","occurred_at":"2024-01-01T12:00:00Z","data":{"game_id":"g-1","game":"club-catan",'
    '"participants":[{"player":"anna","place":1},{"player":"ben","place":2}]}}'
)


def make_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger of the shipped rulesets and one game."""
    assert ratings("init", db=url).exit_code == 0
    assert ratings("import", "-", db=url, input=GAME).exit_code == 0


@pytest.fixture
def db(copy_ledger_file: Callable[..., str], tmp_path: Path) -> str:
    """Return a ledger with one game, in a folder with some other files."""
    name = copy_ledger_file(make_ledger)
    (tmp_path / "good.jsonl").write_text(GAME)
    (tmp_path / "text.txt").write_text("this is not a database, but a text of some length\n" * 100)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "folder").mkdir()
    return name


# arguments after --db LEDGER, in a folder with good.jsonl, empty.jsonl, text.txt and folder/
INVOCATIONS = {
    "no command": ([], 2),
    "an unknown command": (["delete"], 2),
    "an unknown option": (["status", "--force"], 2),
    "an unknown format": (["status", "--format", "xml"], 2),
    "a missing argument": (["history"], 2),
    "an argument too many": (["status", "now"], 2),
    "a file that is not there": (["import", "missing.jsonl"], 2),
    "no file": (["import"], 2),
    "a folder": (["import", "folder"], 1),
    "the ledger itself": (["import", "ratings.db"], 1),
    "a folder to restore": (["import", "--restore", "folder"], 1),
    "stdin to restore": (["import", "--restore", "-"], 2),
    "two files to restore": (["import", "--restore", "good.jsonl", "good.jsonl"], 2),
    "a restore that keeps going": (["import", "--restore", "--keep-going", "good.jsonl"], 2),
    "a restore into events": (["import", "--restore", "good.jsonl"], 1),
    "a restore of what no export wrote": (["--db", "new.db", "import", "--restore", "good.jsonl"], 3),
    "an unknown zone": (["import", "good.jsonl", "--zone", "Mars/Base"], 2),
    "a zone that is a path": (["import", "good.jsonl", "--zone", "../../../etc/passwd"], 2),
    "a map without equals sign": (["import", "good.jsonl", "--map", "Nr"], 2),
    "a map of nothing": (["import", "good.jsonl", "--map", "=x"], 2),
    "a set of what no game has": (["import", "good.jsonl", "--set", "player=anna"], 2),
    "recording nobody": (["record"], 1),
    "recording without a game": (["record", "anna", "ben"], 2),
    "recording with a game but nobody": (["record", "--game", "catan", "--game-id", "x"], 2),
    "recording with a city but nobody": (["record", "--city", "7"], 2),
    "recording at no time": (["record", "--game", "catan", "--game-id", "x", "--at", "soon", "anna", "ben"], 2),
    "recording at a local time": (
        ["record", "--game", "catan", "--game-id", "x", "--at", "2024-01-01 12:00", "anna", "ben"],
        2,
    ),
    "recording by nobody": (["record", "--game", "catan", "--game-id", "x", "--by", "", "anna", "ben"], 2),
    "recording by a control character": (
        ["record", "--game", "catan", "--game-id", "x", "--by", "a\x1b[2Jb", "anna", "ben"],
        2,
    ),
    "recording by a novel": (["record", "--game", "catan", "--game-id", "x", "--by", "x" * 70_000, "anna", "ben"], 2),
    "an unknown ladder": (["standings", "chess/all"], 2),
    "a ladder with a line break": (["standings", "a\nb"], 2),
    "as of no time": (["standings", LADDER, "--as-of", "soon"], 2),
    "as of a local time": (["standings", LADDER, "--as-of", "2024-01-01T12:00:00"], 0),
    "as of year 0": (["standings", LADDER, "--as-of", "0000-01-01"], 2),
    "as of the first day": (["standings", LADDER, "--as-of", "0001-01-01"], 0),
    "as of the last day": (["standings", LADDER, "--as-of", "9999-12-31"], 0),
    "known at no time": (["standings", LADDER, "--known-at", "soon"], 2),
    "known before everything": (["standings", LADDER, "--known-at", "0"], 2),
    "known in the future": (["standings", LADDER, "--known-at", "99"], 2),
    "known at a negative position": (["standings", LADDER, "--known-at", "-1"], 2),
    "known at 5,000 digits": (["standings", LADDER, "--known-at", "9" * 5_000], 2),
    "known at other digits": (["standings", LADDER, "--known-at", "１"], 2),
    "an unknown version": (["standings", LADDER, "--rules", "club-catan-elo@99"], 2),
    "rules of another ladder": (["standings", LADDER, "--rules", "chess@1"], 2),
    "an unknown game": (["explain", "g-99", LADDER], 1),
    "an unknown player": (["history", "nobody", LADDER], 1),
    "a negative limit": (["games", "--limit", "-1"], 2),
    "rules of no file": (["rules", "publish"], 2),
    "rules of a folder": (["rules", "publish", "folder"], 2),
    "rules of a text": (["rules", "publish", "text.txt"], 1),
    "rules of a binary file": (["rules", "check", "ratings.db"], 1),
    "an export into no folder": (["export", "events", "-o", "missing/x"], 3),
    "an export into a folder": (["export", "events", "-o", "folder"], 2),
    "an empty database name": (["--db", "", "status"], 2),
    "a database in memory": (["--db", ":memory:", "status"], 2),
    "a database that is missing": (["--db", "missing.db", "status"], 3),
    "a database in no folder": (["--db", "missing/x.db", "init"], 3),
    "a database that is a folder": (["--db", "folder", "init"], 2),
    "a database that is a text": (["--db", "text.txt", "status"], 2),
    "a database that is a text, to initialise": (["--db", "text.txt", "init"], 2),
    "a database that is empty": (["--db", "empty.jsonl", "status"], 3),
    "a database of another kind": (["--db", "mysql://localhost/x", "status"], 2),
    "a database of no kind": (["--db", "xyz://localhost/x", "status"], 2),
    "a database URL that is none": (["--db", "://", "status"], 2),
    "a database at no port": (["--db", "postgresql://localhost:port/x", "status"], 2),
    "a database at a closed port": (["--db", "postgresql://localhost:1/x", "status"], 3),
    "a database with an odd timeout": (["--db", "sqlite:///ratings.db?timeout=soon", "status"], 2),
}


@pytest.mark.parametrize(("arguments", "exit_code"), INVOCATIONS.values(), ids=INVOCATIONS)
def test_wrong_usage_ends_with_exit_code(
    arguments: list[str],
    exit_code: int,
    db: str,
    tmp_path: Path,
    ratings: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong or odd invocation ends with its exit code and no traceback, and changes nothing."""
    monkeypatch.chdir(tmp_path)
    before = ratings("export", "events", db=db).stdout
    result = ratings(*arguments, db=db)

    assert "Traceback" not in result.stderr
    assert "this is a bug" not in result.stderr
    assert result.exit_code == exit_code, result.stderr
    if exit_code:
        assert result.stderr or arguments[:2] == ["rules", "check"]
    assert ratings("export", "events", db=db).stdout == before


NOT_UTF8 = {
    "a player": ["record", "--game", "catan", "--game-id", "x", b"\xff", "ben"],
    "a recorder": ["record", "--game", "catan", "--game-id", "x", "--by", b"\xff", "anna", "ben"],
    "a ladder": ["standings", b"\xff/all"],
    "a game": ["explain", b"\xff", LADDER],
    "a ruleset": ["rules", "show", b"\xff"],
    "an option": [b"--\xff"],
}


@pytest.mark.parametrize("arguments", NOT_UTF8.values(), ids=NOT_UTF8)
def test_non_utf8_argument_is_usage_error(arguments: list[str | bytes], db: str) -> None:
    """An argument that is not UTF-8 is a usage error with one message."""
    command = [sys.executable, "-m", "ratings_ledger", "--db", db, *arguments]
    process = subprocess.run(command, capture_output=True, check=False, cwd=Path(__file__).parents[2])

    assert (process.returncode, process.stdout, process.stderr.count(b"\n")) == (2, b"", 1)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[ratings.readers]\nno equals sign\n"])
def test_damaged_packages_are_named(content: bytes, tmp_path: Path) -> None:
    """If the file in which an installed package registers its parts cannot be read, the error names that file."""
    file = tmp_path / "broken-1.0.dist-info" / "entry_points.txt"
    file.parent.mkdir()
    (file.parent / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    file.write_bytes(content)
    command = [sys.executable, "-m", "ratings_ledger", "--db", tmp_path / "ratings.db", "status"]
    process = subprocess.run(
        command,
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )

    assert (process.returncode, process.stdout, process.stderr.count(b"\n")) == (3, b"", 1)
    assert f"ratings: {file}: this file of an installed package is damaged (" in process.stderr.decode()
    assert process.stderr.endswith(b"); install the package again, or uninstall it\n")


def test_variable_or_folder_names_the_ledger(
    db: str, tmp_path: Path, ratings: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `--db`, RATINGS_DB names the ledger; without that, the working folder holds it."""
    monkeypatch.delenv("RATINGS_DB", raising=False)
    monkeypatch.chdir(tmp_path / "folder")
    assert ratings("status").exit_code == 3
    monkeypatch.setenv("RATINGS_DB", db)
    assert ratings("status").exit_code == 0
    monkeypatch.delenv("RATINGS_DB")
    monkeypatch.chdir(tmp_path)
    assert ratings("status").exit_code == 0


@pytest.mark.slow
def test_password_is_never_shown(postgres_url: str, ratings: Callable[..., Any]) -> None:
    """The password in a database URL is never shown, whether or not there is a ledger."""
    url = make_url(postgres_url).set(password="sesame").render_as_string(hide_password=False)
    without_ledger = ratings("status", db=url)
    ratings("init", db=url)
    results = [
        without_ledger,
        ratings("status", db=url),
        ratings("doctor", db=url),
        ratings("import", "--restore", __file__, db=url),
    ]

    # the doctor says that the user is a superuser
    assert [result.exit_code for result in results] == [3, 0, 1, 1]
    assert "sesame" not in "".join(result.stdout + result.stderr for result in results)


def test_results_and_messages_are_separate(db: str, ratings: Callable[..., Any]) -> None:
    """Results go to standard output and everything else to standard error."""
    refused = ratings("import", "-", db=db, input="nonsense{")
    empty = ratings("games", "--game", "chess", db=db)

    assert (refused.exit_code, refused.stdout[:10]) == (1, "0 appended")
    assert refused.stderr.startswith("-:1: unknown-column: ")
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert empty.stderr
