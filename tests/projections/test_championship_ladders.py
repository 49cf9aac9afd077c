"""Championships on the ladders of a ledger: classified and unranked drivers, and the effects of corrections."""

import pytest
from histories import build_ruleset_event, fill, load_ranking
from own_rules import find_ruleset_problems, load_built_in_rule, substitute_rule

import ratings_ledger as rl

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


def build_race(number, *players, **numbers):
    """Return a race on a day of April 2024, players in the order of their places; `numbers` are those of the game."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    data = {"game_id": f"r{number}", "game": "dinghy", "season": "2024", "participants": participants}
    data |= {"numbers": numbers} if numbers else {}
    return {"type": "game.recorded", "occurred_at": f"2024-04-{number:02d}T12:00:00Z", "data": data}


def list_standings(url, *events):
    """Return (rank, player, points) for every row of the cup."""
    ranking = load_ranking(fill(url, events), "cup/2024")
    return [(row.rank, row.player, str(row.exact_points(ranking.scale))) for row in ranking.rows]


RACES = [
    build_race(1, "anna", "ben", "cleo"),
    build_race(2, "anna", "cleo", "ben"),
    build_race(3, "cleo", "ben", "anna", percent=200),
]


def test_parts_count_rounds_in_order_of_time(ledger_url):
    """The rounds of a season are its games in order of time, not in order of recording."""
    assert list_standings(ledger_url, build_ruleset_event(CUP), *reversed(RACES)) == [
        (1, "cleo", "21"), (2, "ben", "15"), (3, "anna", "14"),
    ]  # fmt: skip


def test_voided_race_moves_later_races_between_parts(ledger_url):
    """After a void of the second race, the first part has the first and the third race."""
    voided = {"type": "game.voided", "occurred_at": "2024-05-01T12:00:00Z", "data": {"game_id": "r2", "reason": "x"}}

    assert list_standings(ledger_url, build_ruleset_event(CUP), *RACES, voided) == [
        (1, "cleo", "16"), (2, "ben", "10"), (3, "anna", "8"),
    ]  # fmt: skip


@pytest.mark.parametrize("excluded", ["cleo", "cleopatra"])
def test_unranked_player_is_found_by_any_id(ledger_url, excluded):
    """A ruleset can exclude a player by any id; the player keeps the points, and the players below move up."""
    text = CUP + f'\n[params.unranked]\n{excluded} = "excluded by the stewards"\n'
    renamed = {
        "type": "player.renamed", "occurred_at": "2024-05-01T12:00:00Z",
        "data": {"player": "cleo", "new_player": "cleopatra"},
    }  # fmt: skip

    assert list_standings(ledger_url, build_ruleset_event(text), *RACES, renamed) == [
        (1, "ben", "15"), (2, "anna", "14"), (None, "cleopatra", "21"),
    ]  # fmt: skip


LAST_GAME_DECIDES = CUP.replace("[8, 5, 3, 1]", "[8]").replace('["places", "last game"]', '["last game"]')
GUEST, NO_GUEST = {"numbers": {"guest": 1}}, {"numbers": {"guest": 0}}
# by case: (place and members of anna, ben, cleo and dora; their places among the classified, or 0)
CLASSIFIED_PLACES = {
    "all four players": ([(1, {}), (2, {}), (2, {}), (4, {})], [1, 2, 2, 4]),
    "leavers are not classified": (
        [(1, NO_GUEST), (2, {"status": "abandoned"} | NO_GUEST), (3, {"status": "removed"} | NO_GUEST)],
        [1, 0, 0],
    ),
    "both players of a seat are classified": (
        [
            (1, NO_GUEST),
            (2, {"status": "abandoned"} | NO_GUEST),
            (2, {"status": "substitute", "replaces": "ben"} | NO_GUEST),
            (3, NO_GUEST),
        ],
        [1, 2, 2, 3],
    ),
    "guests are not classified, and later players move up": (
        [(1, NO_GUEST), (2, GUEST), (3, {}), (4, NO_GUEST)],
        [1, 0, 2, 3],
    ),
    "two guests in one seat move later players up by one": (
        [
            (1, {"status": "surrendered"} | GUEST),
            (1, {"status": "substitute", "replaces": "anna"} | GUEST),
            (2, NO_GUEST),
        ],
        [0, 0, 1],
    ),
}


@pytest.mark.parametrize(("results", "places"), CLASSIFIED_PLACES.values(), ids=CLASSIFIED_PLACES)
def test_lists_count_places_of_classified_players(results, places):
    """Lists count places among the classified players, without guests and leavers."""
    race = build_race(1)
    race["data"]["participants"] = [
        {"player": player, "place": place, **members}
        for player, (place, members) in zip(("anna", "ben", "cleo", "dora"), results, strict=False)
    ]
    with rl.create(":memory:", rulesets=[LAST_GAME_DECIDES], by="test") as ledger:
        ledger.propose([race], by="test").commit()
        adjustments = [
            {"ladder": "cup/2024", "player": row.player, "points": str(-row.points), "reason": "only places decide"}
            for row in ledger.at().standings("cup/2024")
            if row.points
        ]
        events = [
            {"type": "points.adjusted", "occurred_at": "2024-05-01T12:00:00Z", "data": data} for data in adjustments
        ]
        ledger.propose(events, by="test").commit()
        tie_break = ledger.at().account("cup/2024", "anna").terms[-1].detail

    descriptions = [f"place {place}" if place else "not classified" for place in places]
    rivals = [f"; {player} {text}" for player, text in zip(("ben", "cleo", "dora"), descriptions[1:], strict=False)]
    assert tie_break == f"last game: {descriptions[0]}" + "".join(rivals)


def test_tie_breaks_by_place_need_a_rule_that_reads_places(monkeypatch):
    """A ruleset with tie-breaks by place is rejected if its rule does not read places."""
    rule = load_built_in_rule("placement-points/2")
    substitute_rule(monkeypatch, rule._replace(columns=tuple(name for name in rule.columns if name != "place")))

    (problem,) = find_ruleset_problems(CUP)
    assert problem.key == "params.tie_breaks"
    assert problem.message == (
        "places, first and last game need the column place, which placement-points/2 does not read; leave them out"
    )
