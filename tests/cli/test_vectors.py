"""The shared worked examples (`../shared/rules/vectors.json`, where they are at hand) through the command line."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, append_lines, build_event_line, read_json, read_points
from own_rules import find_shipped_texts, read_ruleset

FILE = Path(__file__).parents[3] / "shared" / "rules" / "vectors.json"
VECTORS = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []
STARTS = {
    ruleset.id: Fraction(int(str(ruleset.params.get("start", 0))))
    for ruleset in map(read_ruleset, find_shipped_texts())
}


@pytest.fixture(scope="module")
def db(shared_url: str, ratings: Ratings) -> str:
    """Return a ledger with the shipped rulesets, shared by all vectors: each has players of its own."""
    assert ratings("init", db=shared_url).exit_code == 0
    return shared_url


def rename_players(number: int, data: Any) -> Any:
    """Prefix every player id with the vector's number, so that vectors share no players; the ids keep their order.

    In vector 0, `a` becomes `0-a`.
    """
    if isinstance(data, list):
        return [rename_players(number, part) for part in data]
    if isinstance(data, dict):
        return {
            name: f"{number}-{value}" if name in ("player", "replaces") else rename_players(number, value)
            for name, value in data.items()
        }
    return data


@pytest.mark.skipif(not VECTORS, reason="the shared examples are not at hand")
@pytest.mark.parametrize("number", range(len(VECTORS)), ids=[vector["name"] for vector in VECTORS])
def test_worked_example_changes_points(number: int, db: str, ratings: Ratings) -> None:
    """Importing a worked example changes points exactly as the example says."""
    vector = VECTORS[number]
    ladder = vector["ladder"]
    if (ruleset_id := ladder.partition("/")[0]) not in STARTS:
        pytest.skip(f"{ruleset_id} is not shipped yet")
    start = STARTS[ruleset_id]
    balances = {f"{number}-{player}": Fraction(points) for player, points in vector.get("start", {}).items()}
    append_lines(
        ratings,
        db,
        *(
            build_event_line(
                "points.adjusted",
                "2010-03-05T18:30:00Z",
                ladder=ladder,
                player=player,
                points=str(points - start),
                reason="had so many",
            )
            for player, points in balances.items()
        ),
        *(
            build_event_line(
                "game.recorded",
                f"2010-03-05T19:3{index}:00Z",
                game_id=f"{number}-{index}",
                **rename_players(number, data),
            )
            for index, data in enumerate(vector["games"])
        ),
    )
    steps: dict[str, list[tuple[str, str, str]]] = {}
    for index, changes in enumerate(vector["changes"]):
        explanation = read_json(ratings, db, "explain", f"{number}-{index}", ladder)
        expected = {f"{number}-{player}": change for player, change in changes.items()}
        assert {player["player"]: player["change"] for player in explanation["players"]} == expected
        changes_total = sum(map(Fraction, expected.values()))
        assert changes_total + sum(Fraction(account["amount"]) for account in explanation["accounts"]) == 0
        for player in explanation["players"]:
            before = balances.get(player["player"], start)
            balances[player["player"]] = before + Fraction(player["change"])
            step = (str(before), player["change"], str(balances[player["player"]]))
            assert (player["before"], player["change"], player["after"]) == step
            if player["terms"] or not player.get("why_not"):
                steps.setdefault(player["player"], []).append(step)
    for player, expected_steps in steps.items():
        rows = [row for row in read_json(ratings, db, "history", player, ladder)["rows"] if row["game_id"] is not None]
        assert [(row["before"], row["change"], row["after"]) for row in rows] == expected_steps
    standings = read_points(ratings, db, ladder)
    points_of_vector = {player: points for player, points in standings.items() if player.startswith(f"{number}-")}
    assert points_of_vector == {player: str(balances[player]) for player in steps}


def test_worked_examples_verify(db: str, ratings: Ratings) -> None:
    """`verify` finds nothing wrong after all worked examples."""
    assert ratings("verify", db=db) == (0, "", "")
