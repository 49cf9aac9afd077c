"""Readers of other packages: the example in the documentation, and faulty ones."""

import json
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from ledgers import read_head

from ratings_ledger.ledger.intake import readers

Ratings = Callable[..., Any]

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-reader.md"
SCOREBOOK = "2024-11-22 anna ben\n2024-11-23 ben anna\n"


class DocumentedReader(EntryPoint):
    """An entry point of the reader in the documentation."""

    def load(self) -> Any:
        (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        namespace: dict[str, Any] = {}
        exec(code, namespace)
        return namespace["READER"]


class FailingReader(DocumentedReader):
    """An entry point of a reader that fails."""

    def load(self) -> Any:
        return super().load()._replace(read=lambda opened, options: iter([1 / 0]) if opened else iter([]))


class UnloadableReader(DocumentedReader):
    """An entry point that cannot be loaded."""

    def load(self) -> Any:
        raise ImportError("no module named scorebook_reader")


def register(monkeypatch: pytest.MonkeyPatch, kind: type[EntryPoint]) -> None:
    monkeypatch.setattr(readers, "entry_points", lambda group: [kind("scorebook", "scorebook_reader:READER", group)])


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Return a file that no other reader recognises."""
    path = tmp_path / "club.book"
    path.write_text(SCOREBOOK)
    return path


def test_documented_reader_works(
    ledger_url: str, book: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented reader records the games of its file, bad lines are refused, and players' names are checked."""
    register(monkeypatch, DocumentedReader)
    assert ratings("import", book, db=ledger_url).exit_code == 0
    answer = json.loads(ratings("games", "--format", "json", db=ledger_url).stdout)
    rows = answer if isinstance(answer, list) else answer["rows"]
    assert [(row["game_id"], row["game"]) for row in rows] == [
        ("2024-11-22-1", "scorebook"),
        ("2024-11-23-2", "scorebook"),
    ]
    book.write_text(f"{SCOREBOOK}anna\n2024-11-24 anna Ben\n")
    rejected = json.loads(ratings("import", book, "--format", "json", db=ledger_url).stdout)["rejected"]
    assert [(rejection["line"], rejection["code"]) for rejection in rejected] == [(3, "bad-value"), (4, "close-name")]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (FailingReader, "the reader scorebook failed: ZeroDivisionError"),
        (UnloadableReader, "cannot be loaded: no module named"),
    ],
)
def test_faulty_reader_is_named(
    kind: type[EntryPoint], message: str, ledger_url: str, book: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that fails or cannot be loaded is named, nothing is recorded, and there is no traceback."""
    register(monkeypatch, kind)
    head_before = read_head(ledger_url)
    result = ratings("import", book, db=ledger_url)
    assert (result.exit_code, read_head(ledger_url)) == (1, head_before)
    assert "bad-reader: the reader scorebook" in result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    # a file that another reader recognises does not need it
    line = {"type": "player.registered", "occurred_at": "2024-11-22T12:00:00Z", "data": {"player": "anna"}}
    assert ratings("import", "-", db=ledger_url, input=json.dumps(line)).exit_code == 0


def exit_process(*arguments: Any) -> Any:
    sys.exit(0)


def fail(*arguments: Any) -> Any:
    raise ZeroDivisionError


REGISTRATION = {"type": "player.registered", "occurred_at": "2024-11-22T12:00:00Z", "data": {"player": "anna"}}


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("read", exit_process, "the reader scorebook failed: SystemExit: 0"),
        ("read", lambda opened, options: iter([(1, REGISTRATION)]), "yielded (1, {"),
        (
            "read",
            lambda opened, options: iter([(-3, REGISTRATION, None, None)]),
            "yielded the line -3; it must be",
        ),
        (
            "read",
            lambda opened, options: iter([(0, REGISTRATION, None, None)]),
            "yielded the line 0; it must be",
        ),
        (
            "read",
            lambda opened, options: iter([("3", REGISTRATION, None, None)]),
            "yielded the line '3'; it must be",
        ),
        (
            "read",
            lambda opened, options: iter([(1, "anna", None, None)]),
            "yielded the event 'anna' in line 1; it must",
        ),
        (
            "read",
            lambda opened, options: iter([(1, REGISTRATION, None, 7)]),
            "yielded the game id 7 in line 1; it must be",
        ),
        (
            "read",
            lambda opened, options: iter([(1, REGISTRATION, {1}, None)]),
            "yielded the source {1} in line 1; it must be None, a string",
        ),
        ("read", None, "the reader scorebook (scorebook_reader:READER): `read` is None but must be a function"),
        ("is_of", exit_process, "the reader scorebook failed: SystemExit: 0"),
        ("is_of", fail, "the reader scorebook failed: ZeroDivisionError"),
        ("name", 5, "the reader scorebook (scorebook_reader:READER): `name` is 5 but must be a string"),
    ],
)
def test_reader_errors_are_reported(
    member: str,
    value: Any,
    message: str,
    ledger_url: str,
    book: Path,
    ratings: Ratings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any error of a reader, even one that ends the process, is reported with its name, and the file is refused.

    A table is still read, with a note about a reader that cannot recognise files.
    """

    class FaultyReader(DocumentedReader):
        def load(self) -> Any:
            return super().load()._replace(**{member: value})

    register(monkeypatch, FaultyReader)
    for options in ((), ("--dry-run",), ("--keep-going",)):
        result = ratings("import", book, *options, db=ledger_url)
        assert result.exit_code == 1
        assert "bad-reader: the reader scorebook" in result.stderr
        assert message in result.stderr
        assert "a bug" not in result.stderr
    table = book.with_name("games.csv")
    table.write_text("date,game,winner,loser\n2024-11-22,chess,anna,ben\n")
    table_result = ratings("import", table, "--zone", "UTC", db=ledger_url)
    assert (table_result.exit_code, "1 appended" in table_result.stdout) == (0, True)
    assert (f"{message}; it is ignored" in " ".join(table_result.stderr.split())) == (member != "read" or value is None)


@pytest.mark.parametrize("member", ["read", "is_of"])
def test_interrupt_in_a_reader_ends_the_import(
    member: str, ledger_url: str, book: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while a reader works ends the import with the exit code 130."""

    def raise_interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    class InterruptedReader(DocumentedReader):
        def load(self) -> Any:
            return super().load()._replace(**{member: raise_interrupt})

    register(monkeypatch, InterruptedReader)
    assert ratings("import", book, db=ledger_url).exit_code == 130
