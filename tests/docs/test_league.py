"""The season of the first pages is the one that its script draws, and its ratings follow the players' skill."""

import csv
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_docs import ROOT

SEASON = ROOT / "examples" / "winter-league.csv"
LEAGUE = runpy.run_path(str(ROOT / "examples" / "draw_league.py"))


@pytest.mark.slow
def test_season_matches_its_script() -> None:
    """The season of the first pages is the one that its script draws."""
    with SEASON.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file))[1:] == list(LEAGUE["season"]())


@pytest.fixture
def db(ratings: Callable[..., Any], tmp_path: Path) -> str:
    """Return the ledger of the README after the import."""
    path = str(tmp_path / "ratings.db")
    assert ratings("init", "--for", "catan", "--zone", "Europe/Berlin", db=path).exit_code == 0
    assert ratings("import", SEASON, "--set", "game=catan", db=path).exit_code == 0
    return path


@pytest.mark.slow
def test_season_ratings_follow_skill(db: str, ratings: Callable[..., Any]) -> None:
    """After the season, all ratings are within 75 of the skill, and the best four players are in order."""
    rows = json.loads(ratings("standings", "elo-catan/all", "--format", "json", db=db).stdout)["rows"]
    skill = LEAGUE["SKILL"]
    errors = [abs(float(row["points_decimal"]) - skill[row["player"]]) for row in rows]
    assert max(errors) < 75
    by_skill = sorted(skill, key=lambda name: -skill[name])
    assert [row["player"] for row in rows[:4]] == by_skill[:4]


@pytest.mark.slow
def test_season_predictions_beat_a_guess(db: str, ratings: Callable[..., Any]) -> None:
    """The predictions of both versions have a log loss below 0.6; that of a guess is 0.69."""
    result = ratings("whatif", ROOT / "examples" / "elo-catan-2.toml", "--format", "json", db=db)
    (ladder,) = [row for row in json.loads(result.stdout)["variants"][0]["ladders"] if row["ladder"] == "elo-catan/all"]
    assert float(ladder["quality"]["before"]["log_loss"]) < 0.6
    assert float(ladder["quality"]["after"]["log_loss"]) < 0.6


def test_midnight_game_belongs_to_new_year(db: str, ratings: Callable[..., Any]) -> None:
    """A game after midnight on New Year's Day belongs to the new year."""
    games = json.loads(ratings("games", "--as-of", "2024-12-31", "--limit", "1", "--format", "json", db=db).stdout)
    assert games["rows"][0]["game_id"] == "wl-41"
    assert json.loads(ratings("games", "wl-42", "--format", "json", db=db).stdout)["rows"][0]["occurred_at"].startswith(
        "2024-12-31T23:13"
    )
