"""Tables as people keep them give the games that are in them, or the exact refusal, and say what was recognised."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpus import CASES
from real_files import FILES, FOLDER

Ratings = Callable[..., Any]


def made(ratings: Ratings, url: str) -> None:
    """An empty ledger at home in Berlin."""
    assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0


@pytest.fixture
def url(copied: Callable[..., str]) -> str:
    """A ledger without games, in each kind of store."""
    return copied(made)


def games(ratings: Ratings, url: str) -> list[str]:
    """The games of a ledger, as the corpus writes them."""
    found = json.loads(ratings("games", "--limit", 0, "--format", "json", db=url).stdout)
    rows = found if isinstance(found, list) else found["rows"]
    return [_told(row) for row in rows]


def _told(row: dict[str, Any]) -> str:
    players = (
        f"{one['player']} {one['place']}" if "score" not in one else f"{one['player']} ={one['score']}"
        for one in row["participants"]
    )  # fmt: skip
    return " ".join((row["game_id"], row["occurred_at"][:16], *players))


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", [*CASES, *FILES])
def test_corpus(what: str, url: str, ratings: Ratings, tmp_path: Path) -> None:
    """Each table of the corpus gives the games that it should, or the refusals that it should and no game."""
    case = (CASES | FILES)[what]
    path = tmp_path / case.name
    path.write_bytes(case.content)
    told = ratings("import", str(path), *case.options, "--format", "json", db=url)
    found = json.loads(told.stdout)
    refused = [(f"{one['line']} {one['code']}", one["message"]) for one in found["rejected"]]
    assert [where for where, _ in refused] == [where for where, _ in case.refused], refused
    for (_, message), (_, part) in zip(refused, case.refused, strict=True):
        assert part in message
    assert games(ratings, url) == case.games
    assert told.exit_code == (1 if case.refused else 0)
    shown = ratings("import", str(path), *case.options, db=url).stderr
    assert [part for part in case.notes if part not in shown] == [], shown
    assert "Traceback" not in shown


def test_all_real_files_are_read() -> None:
    """No file that a spreadsheet program saved is without a case that says what comes out of it."""
    assert {case.name for case in FILES.values()} == {path.name for path in FOLDER.iterdir()}
