"""Readers of files that packages add: the example of the docs, and ones that are wrong."""

import json
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from ratings_ledger.ledger.intake import readers

Ratings = Callable[..., Any]

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-reader.md"
BOOK = "2024-11-22 anna ben\n2024-11-23 ben anna\n"


class Registered(EntryPoint):
    """An entry point that leads to what the page shows."""

    def load(self) -> Any:
        (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        found: dict[str, Any] = {}
        exec(code, found)
        return found["READER"]


class Broken(Registered):
    """One whose reader fails."""

    def load(self) -> Any:
        return super().load()._replace(read=lambda opened, options: iter([1 / 0]) if opened else iter([]))


class Missing(Registered):
    """One that leads nowhere."""

    def load(self) -> Any:
        raise ImportError("no module named scorebook_reader")


def register(monkeypatch: pytest.MonkeyPatch, kind: type[EntryPoint]) -> None:
    monkeypatch.setattr(readers, "entry_points", lambda group: [kind("scorebook", "scorebook_reader:READER", group)])


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A file that nobody else reads."""
    path = tmp_path / "club.book"
    path.write_text(BOOK)
    return path


def test_example_of_the_docs(ledger_url: str, book: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of the page records what is in its file, names lines that it cannot read, and is asked about names."""
    register(monkeypatch, Registered)
    assert ratings("import", book, db=ledger_url).exit_code == 0
    shown = json.loads(ratings("games", "--format", "json", db=ledger_url).stdout)
    rows = shown if isinstance(shown, list) else shown["rows"]
    assert [(row["game_id"], row["game"]) for row in rows] == [
        ("2024-11-22-1", "scorebook"), ("2024-11-23-2", "scorebook"),
    ]  # fmt: skip
    book.write_text(f"{BOOK}anna\n2024-11-24 anna Ben\n")
    refused = json.loads(ratings("import", book, "--format", "json", db=ledger_url).stdout)["rejected"]
    assert [(one["line"], one["code"]) for one in refused] == [(3, "bad-value"), (4, "close-name")]


@pytest.mark.parametrize(
    ("kind", "told"),
    [(Broken, "the reader scorebook failed: ZeroDivisionError"), (Missing, "cannot be loaded: no module named")],
)
def test_wrong_readers_are_named(
    kind: type[EntryPoint], told: str, ledger_url: str, book: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that fails or cannot be loaded is named, nothing is recorded, and there is no traceback."""
    register(monkeypatch, kind)
    refused = ratings("import", book, db=ledger_url)
    assert refused.exit_code == 1
    assert "bad-reader: the reader scorebook" in refused.stderr
    assert told in refused.stderr
    assert "Traceback" not in refused.stderr
    # it is not even asked about what others recognise
    line = {"type": "player.registered", "occurred_at": "2024-11-22T12:00:00Z", "data": {"player": "anna"}}
    assert ratings("import", "-", db=ledger_url, input=json.dumps(line)).exit_code == 0


def ends(*given: Any) -> Any:
    sys.exit(0)


def divides(*given: Any) -> Any:
    raise ZeroDivisionError


GAME = {"type": "player.registered", "occurred_at": "2024-11-22T12:00:00Z", "data": {"player": "anna"}}


@pytest.mark.parametrize(
    ("member", "value", "told"),
    [
        ("read", ends, "the reader scorebook failed: SystemExit: 0"),
        ("read", lambda opened, options: iter([(1, GAME)]), "yielded (1, {"),
        (
            "read",
            lambda opened, options: iter([(-3, GAME, None, None)]),
            "yielded the line -3; it must be",
        ),
        (
            "read",
            lambda opened, options: iter([(0, GAME, None, None)]),
            "yielded the line 0; it must be",
        ),
        (
            "read",
            lambda opened, options: iter([("3", GAME, None, None)]),
            "yielded the line '3'; it must be",
        ),
        (
            "read",
            lambda opened, options: iter([(1, "anna", None, None)]),
            "yielded the event 'anna' in line 1; it must",
        ),
        (
            "read",
            lambda opened, options: iter([(1, GAME, None, 7)]),
            "yielded the game id 7 in line 1; it must be",
        ),
        (
            "read",
            lambda opened, options: iter([(1, GAME, {1}, None)]),
            "yielded the source {1} in line 1; it must be None, a string",
        ),
        ("read", None, "the reader scorebook (scorebook_reader:READER): `read` is None but must be a function"),
        ("is_of", ends, "the reader scorebook failed: SystemExit: 0"),
        ("is_of", divides, "the reader scorebook failed: ZeroDivisionError"),
        ("name", 5, "the reader scorebook (scorebook_reader:READER): `name` is 5 but must be a string"),
    ],
)
def test_what_readers_do_wrong(
    member: str, value: Any, told: str, ledger_url: str, book: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a reader raises or yields is told with its name and refused, also if it ends the program.

    A table is read all the same, and what is wrong with a reader that cannot be asked is noted.
    """

    class Wrong(Registered):
        def load(self) -> Any:
            return super().load()._replace(**{member: value})

    register(monkeypatch, Wrong)
    for more in ((), ("--dry-run",), ("--keep-going",)):
        refused = ratings("import", book, *more, db=ledger_url)
        assert refused.exit_code == 1
        assert "bad-reader: the reader scorebook" in refused.stderr
        assert told in refused.stderr
        assert "a bug" not in refused.stderr
    table = book.with_name("games.csv")
    table.write_text("date,game,winner,loser\n2024-11-22,chess,anna,ben\n")
    read = ratings("import", table, "--zone", "UTC", db=ledger_url)
    assert (read.exit_code, "1 appended" in read.stdout) == (0, True)
    assert (f"{told}; it is ignored" in " ".join(read.stderr.split())) == (member != "read" or value is None)


@pytest.mark.parametrize("member", ["read", "is_of"])
def test_interrupts_of_readers(
    member: str, ledger_url: str, book: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while a reader works is Ctrl-C."""

    def interrupted(*given: Any) -> Any:
        raise KeyboardInterrupt

    class Interrupted(Registered):
        def load(self) -> Any:
            return super().load()._replace(**{member: interrupted})

    register(monkeypatch, Interrupted)
    assert ratings("import", book, db=ledger_url).exit_code == 130
