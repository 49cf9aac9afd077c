"""Import tables as people keep them: each gives the expected games and notes, or the expected rejections."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpus import CASES
from real_files import FILES, FOLDER

Ratings = Callable[..., Any]


def make_berlin_ledger(ratings: Ratings, url: str) -> None:
    """Make an empty ledger with the home zone of Berlin."""
    assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0


@pytest.fixture
def url(copy_ledger: Callable[..., str]) -> str:
    """Return a ledger without games, of each kind of store in turn."""
    return copy_ledger(make_berlin_ledger)


def list_games(ratings: Ratings, url: str) -> list[str]:
    """Return the games of a ledger as the corpus writes them."""
    answer = json.loads(ratings("games", "--limit", 0, "--format", "json", db=url).stdout)
    rows = answer if isinstance(answer, list) else answer["rows"]
    return [_format_game(row) for row in rows]


def _format_game(row: dict[str, Any]) -> str:
    players = (
        f"{seat['player']} {seat['place']}" if "score" not in seat else f"{seat['player']} ={seat['score']}"
        for seat in row["participants"]
    )
    return " ".join((row["game_id"], row["occurred_at"][:16], *players))


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", [*CASES, *FILES])
def test_table_gives_expected_games_or_rejections(name: str, url: str, ratings: Ratings, tmp_path: Path) -> None:
    """Each table of the corpus gives the expected games and notes, or the expected rejections and no game."""
    case = (CASES | FILES)[name]
    path = tmp_path / case.name
    path.write_bytes(case.content)
    result = ratings("import", str(path), *case.options, "--format", "json", db=url)
    rejected = [
        (f"{rejection['line']} {rejection['code']}", rejection["message"])
        for rejection in json.loads(result.stdout)["rejected"]
    ]
    assert [line_and_code for line_and_code, _ in rejected] == [line_and_code for line_and_code, _ in case.refused], (
        rejected
    )
    for (_, message), (_, part) in zip(rejected, case.refused, strict=True):
        assert part in message
    assert list_games(ratings, url) == case.games
    assert result.exit_code == (1 if case.refused else 0)
    stderr = ratings("import", str(path), *case.options, db=url).stderr
    assert [note for note in case.notes if note not in stderr] == [], stderr
    assert "Traceback" not in stderr


def test_every_real_file_has_a_case() -> None:
    """Each file in the folder `files` has a case."""
    assert {case.name for case in FILES.values()} == {path.name for path in FOLDER.iterdir()}
