"""The page for a site: its program runs against a ledger exactly as shown, also when its importer is killed."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_docs import FOLDER
from stores import make_chess_ledger

from ratings_ledger.ledger.events.types import TYPES

pytestmark = pytest.mark.slow

PAGE = (FOLDER / "site.md").read_text(encoding="utf-8")
PROGRAM, USE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def db(copy_ledger: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a ledger for chess, which the environment names, in each kind of store; `ratings` is on the path."""
    url = copy_ledger(make_chess_ledger)
    program = tmp_path / "bin" / "ratings"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ratings_ledger "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("RATINGS_DB", url)
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    return url


def read(ratings: Callable[..., Any], db: str, *arguments: str) -> Any:
    """Return the JSON that a reading command prints."""
    return json.loads(ratings(*arguments, "--format", "json", db=db).stdout)


def build_event(number: int, *players: str) -> dict[str, Any]:
    """Return a game of chess as an event."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    data = {"game_id": f"m-{number}", "game": "chess", "participants": participants}
    return {"type": "game.recorded", "occurred_at": "2026-03-05T19:30:00Z", "data": data}


def list_games(ratings: Callable[..., Any], db: str) -> list[str]:
    """Return the recorded games by position."""
    rows = read(ratings, db, "games", "--limit", "0")["rows"]
    return [row["game_id"] for row in sorted(rows, key=lambda row: int(row["position"]))]


def test_page_program_records_a_match(db: str, ratings: Callable[..., Any], capfd: pytest.CaptureFixture[str]) -> None:
    """The page's program records a match, and prints a refusal of the same match with other content."""
    exec(PROGRAM + USE, {})
    assert list_games(ratings, db) == ["m-1"]
    assert read(ratings, db, "log", "--limit", "1")["rows"][0]["by"] == "site"
    exec(PROGRAM + USE.replace('"user-7", "place": 2', '"user-7", "place": 1'), {})
    assert "m-1 was refused: the game 'm-1' is already recorded with different content" in capfd.readouterr().out


def test_killed_importer_loses_no_match(db: str, ratings: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """If its importer is killed between two batches, the page's program records each match once.

    The batch sent after the kill repeats the first match among its 150.
    """
    names: dict[str, Any] = {}
    exec(PROGRAM, names)
    monkeypatch.setattr(names["time"], "sleep", lambda seconds: None)
    ledger = names["Ledger"]()
    first = ledger.send([build_event(0, "a", "b")])
    assert [answer["result"] for answer in first] == ["appended"]
    ledger.process.kill()
    answers = ledger.send([build_event(number, "a", "b") for number in range(150)])
    ledger.close()
    assert [answer["result"] for answer in answers] == ["existing"] + ["appended"] * 149
    assert list_games(ratings, db) == [f"m-{number}" for number in range(150)]


def test_page_answers_show_each_result() -> None:
    """The answers on the page show one line appended, one existing and one rejected."""
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    lines = [json.loads(line) for line in block.splitlines()]
    assert [(line["line"], line["result"]) for line in lines] == [(1, "appended"), (2, "existing"), (3, "rejected")]


def test_page_table_names_real_events() -> None:
    """The page's table of what to send names only event types that exist, the main ones included."""
    table = PAGE.partition("## What to send")[2].partition("\n\n- ")[0]
    named = set(re.findall(r"`([a-z]+\.[a-z_]+)`", table))
    assert named <= set(TYPES)
    assert {"game.recorded", "game.corrected", "game.voided", "player.renamed", "points.adjusted"} <= named
