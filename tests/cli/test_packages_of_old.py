"""A rule package built for an earlier version of this program still works: its wheel is installed unchanged.

Such packages depend on `projections.contract` and on the entry point `ratings_ledger.rules`. The wheel is that of
docs/adding-a-rule.md.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from legacy_package import RULESET, WHEEL

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GAME = ("record", "--game", "petanque", "--game-id", "p-1", "--at", "2025-05-01T12:00Z", "--quiet")


def test_package_built_before_still_scores(tmp_path: Path) -> None:
    """The rule in a wheel for an earlier version is found by its entry point, and scores and explains games."""
    installed, ruleset = tmp_path / "installed", tmp_path / "petanque.toml"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", installed, WHEEL]
    subprocess.run(pip, check=True)
    ruleset.write_text(RULESET, encoding="utf-8")

    def run_ratings(*arguments: object) -> str:
        command = [sys.executable, "-m", "ratings_ledger", "--db", tmp_path / "ratings.db", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(installed)}
        return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout

    run_ratings("init", "--no-rules")
    run_ratings("rules", "check", ruleset)
    run_ratings("rules", "publish", ruleset)
    run_ratings(*GAME, "anna", "ben", "cleo")
    standings = json.loads(run_ratings("standings", "petanque-points", "--format", "json"))
    assert [(row["player"], row["points"]) for row in standings["rows"]] == [("anna", "3"), ("ben", "1"), ("cleo", "0")]
    explanation = json.loads(run_ratings("explain", "p-1", "petanque-points", "--format", "json"))
    assert {player["player"]: player["change"] for player in explanation["players"]}["anna"] == "3"
