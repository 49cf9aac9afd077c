"""Championships on ladders of a ledger: who was classified, who is not ranked, and what corrections do."""

import json

import pytest
from histories import facts_of, fill, ruleset
from own_rules import load_built_in_rule, read_ruleset

from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.classification import _classify
from ratings_ledger.projections.rulesets.versions import bind
from ratings_ledger.rules import LEAVERS, MISSING, SUBSTITUTE

CUP = """
id = "cup"
version = "1"
rule = "placement-points/2"
effective_from = 2000-01-01
time_zone = "UTC"

[scope]
game = ["dinghy"]

[partition]
by = ["season"]

[params]
points = [8, 5, 3, 1]
parts = [{rounds = 2, best = 1}, {best = 1}]
tie_breaks = ["places", "last game"]
"""


def race(number, *players, **numbers):
    """A race in the order of its players, on a day of April 2024; `numbers` are those of the game."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    data = {"game_id": f"r{number}", "game": "dinghy", "season": "2024", "participants": participants}
    data |= {"numbers": numbers} if numbers else {}
    return {"type": "game.recorded", "occurred_at": f"2024-04-{number:02d}T12:00:00Z", "data": data}


def standings(url, *events):
    """(rank, player, points) of every row of the cup."""
    ranking = Ladders(facts_of(fill(url, events))).standings("cup/2024")
    return [(row.rank, row.player, str(row.value(ranking.scale))) for row in ranking.rows]


RACES = [race(1, "anna", "ben", "cleo"), race(2, "anna", "cleo", "ben"), race(3, "cleo", "ben", "anna", percent=200)]


def test_parts_follow_the_order_of_games(ledger_url):
    """Rounds are the games in order of time, whatever the order in which they were recorded."""
    assert standings(ledger_url, ruleset(CUP), *reversed(RACES)) == [
        (1, "cleo", "21"), (2, "ben", "15"), (3, "anna", "14"),
    ]  # fmt: skip


def test_a_void_moves_the_parts(ledger_url):
    """Without its second race, the season's first part consists of the first and the third."""
    voided = {"type": "game.voided", "occurred_at": "2024-05-01T12:00:00Z", "data": {"game_id": "r2", "reason": "x"}}

    assert standings(ledger_url, ruleset(CUP), *RACES, voided) == [
        (1, "cleo", "16"), (2, "ben", "10"), (3, "anna", "8"),
    ]  # fmt: skip


@pytest.mark.parametrize("excluded", ["cleo", "cleopatra"])
def test_unranked_player_may_have_a_new_name(ledger_url, excluded):
    """Whoever is not ranked is meant by any of their ids, keeps the points, and lets the others move up."""
    text = CUP + f'\n[params.unranked]\n{excluded} = "excluded by the stewards"\n'
    renamed = {
        "type": "player.renamed", "occurred_at": "2024-05-01T12:00:00Z",
        "data": {"player": "cleo", "new_player": "cleopatra"},
    }  # fmt: skip

    assert standings(ledger_url, ruleset(text), *RACES, renamed) == [
        (1, "ben", "15"), (2, "anna", "14"), (None, "cleopatra", "21"),
    ]  # fmt: skip


CLASSIFIED = {
    "everybody": ([1, 2, 2, 4], [0] * 4, [MISSING] * 4, [1, 2, 2, 4]),
    "who left is not": ([1, 2, 3], [0, LEAVERS[0], LEAVERS[2]], [0] * 3, [1, 0, 0]),
    "both of a seat are": ([1, 2, 2, 3], [0, LEAVERS[0], SUBSTITUTE, 0], [0] * 4, [1, 2, 2, 3]),
    "guests are not, and the others move up": ([1, 2, 3, 4], [0] * 4, [0, 1, MISSING, 0], [1, 0, 2, 3]),
    "two guests in a seat move others up by one": ([1, 1, 2], [LEAVERS[1], SUBSTITUTE, 0], [1, 1, 0], [0, 0, 1]),
}


@pytest.mark.parametrize(("place", "status", "guest", "places"), CLASSIFIED.values(), ids=CLASSIFIED)
def test_places_are_those_of_the_classified(place, status, guest, places):
    """Lists count the places of those who were classified, without guests."""
    assert _classify(place, status, guest) == places


def test_tie_breaks_by_place_need_a_rule_that_reads_places(monkeypatch):
    """A ruleset whose tie-breaks look at places is refused if its rule does not read them."""
    rule = load_built_in_rule("placement-points/2")
    blind = rule._replace(columns=tuple(name for name in rule.columns if name != "place"))
    ruleset_of_cup = read_ruleset(CUP)
    monkeypatch.setattr("ratings_ledger.projections.rulesets.versions.find_rule", lambda name: blind)

    _, problems = bind(ruleset_of_cup)
    assert [problem.key for problem in problems] == ["params.tie_breaks"], json.dumps(problems)
    assert problems[0].message == "these tie-breaks need the column place, which placement-points/2 does not read"
