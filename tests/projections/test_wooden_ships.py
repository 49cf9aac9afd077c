"""Wooden Ships & Iron Men: the scoring of versions v1 and v2, compared with a naive computation, and the version of a
league.
"""

import random
from collections import Counter

import pytest
from histories import build_ruleset_event, build_stream, fill, load_facts, rank_stream
from kind_games import build_battle, draw_battle, list_columns, list_players
from own_rules import find_shipped_texts, load_built_in_rule, read_ruleset

from ratings_ledger.rules import PLAYERS_MAX

RULE = load_built_in_rule("wooden-ships/1")

RULESETS = {data.version: data for data in map(read_ruleset, find_shipped_texts('"youplay-wsim"'))}
# the shipped parameters of the trial, and of leagues from 7150
TRIAL_PARAMS, CURRENT_PARAMS = RULESETS["v1"].params, RULESETS["v2"].params


def score_event(event, params, counted=None):
    """Return the change of every counted player."""
    columns = list_columns(event, RULE.columns, counted)
    names = [name for name in list_players(event) if counted is None or name in counted]
    change = [-1] * len(names)
    minted = RULE.score(len(names), [0] * len(names), columns, RULE.prepare(RULE.params(**params)), (), change)
    assert minted == sum(points for points in change if points > 0)
    return dict(zip(names, change, strict=True))


def explain_event(event, params, counted=None):
    """Return ({player: [(term, amount, detail)]}, the remark), and check that the terms add up."""
    columns, bound = list_columns(event, RULE.columns, counted), RULE.params(**params)
    change = score_event(event, params, counted)
    names, n = list(change), len(change)
    terms = RULE.explain(n, names, [0] * n, columns, bound, list(change.values()))
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == list(change.values())
    terms_by_player = {
        name: [tuple(term)[:3] for term in player_terms] for name, player_terms in zip(names, terms, strict=True)
    }
    return terms_by_player, RULE.remark(n, names, columns, bound)


def test_default_params_are_those_of_leagues_from_7150():
    """The default parameters are those of leagues from 7150, apart from the active games."""
    assert RULE.params(**CURRENT_PARAMS) == RULE.params(active_games=5)


# a player on each side, as (name, ships, ships lost, kills, game points), then the points of both in the trial and from
# 7150; both sides have ships left unless the case says otherwise
RESULTS = {
    "20 against 10": ("A 2 1 0 20", "B 2 1 0 10", (4, 1), (3, 0)),
    "21 against 10": ("A 2 1 0 21", "B 2 1 0 10", (4, 1), (4, 0)),
    "19 against 10": ("A 2 1 0 19", "B 2 1 0 10", (3, 1), (3, 0)),
    "21 against 11": ("A 2 1 0 21", "B 2 1 0 11", (3, 1), (3, 0)),
    "20 against 0": ("A 2 1 0 20", "B 2 1 0 0", (4, 0), (4, 0)),
    "1 against 0": ("A 2 1 0 1", "B 2 1 0 0", (4, 0), (4, 0)),
    "equal points": ("A 2 1 0 20", "B 2 1 0 20", (1, 1), (1, 1)),
    "no points": ("A 2 1 0 0", "B 2 1 0 0", (1, 1), (1, 1)),
    "one side left, without points": ("A 2 1 0 0", "B 2 2 0 0", (4, 0), (3, 0)),
    "one side left, twice as many": ("A 2 1 0 20", "B 2 2 0 10", (4, 1), (3, 0)),
    "one side left, more than twice": ("A 2 1 0 21", "B 2 2 0 10", (4, 1), (4, 0)),
    "one side left, but fewer points": ("A 2 1 0 5", "B 2 2 0 20", (3, 1), (3, 0)),
    "one side left, equal points": ("A 2 1 0 5", "B 2 2 0 5", (3, 1), (3, 0)),
    "no ships left, more points": ("A 2 2 0 30", "B 2 2 0 10", (3, 1), (4, 0)),
    "no ships left, equal points": ("A 2 2 0 10", "B 2 2 0 10", (1, 1), (1, 1)),
    "losses do not matter while ships are left": ("A 9 8 0 3", "B 9 0 0 2", (3, 1), (3, 0)),
}


@pytest.mark.parametrize(("first", "second", "trial", "since_7150"), RESULTS.values(), ids=RESULTS)
def test_results_are_scored_as_written(first, second, trial, since_7150):
    """Ships left and points decide victories, ties and defeats as each version states, for either order of sides."""
    for sides in ((first, second), (second, first)):
        assert tuple(score_event(build_battle(*sides), TRIAL_PARAMS)[name] for name in "AB") == trial
        assert tuple(score_event(build_battle(*sides), CURRENT_PARAMS)[name] for name in "AB") == since_7150


@pytest.mark.parametrize(("first", "second", "trial", "since_7150"), RESULTS.values(), ids=RESULTS)
def test_agreed_draw_gives_one_point_each(first, second, trial, since_7150):
    """An agreed draw gives each player one point."""
    for params in (TRIAL_PARAMS, CURRENT_PARAMS):
        assert score_event(build_battle(first, second, ended="draw"), params) == {"A": 1, "B": 1}


def test_points_and_ships_of_a_side_are_summed():
    """The points and ships of all players of a side are summed."""
    event = build_battle("A 1 0 0 7, A2 1 1 0 4", "B 1 1 0 3, B2 1 0 0 2")

    assert score_event(event, CURRENT_PARAMS) == {"A": 4, "A2": 4, "B": 0, "B2": 0}
    assert score_event(event, TRIAL_PARAMS) == {"A": 4, "A2": 3, "B": 1, "B2": 0}


# player A of a side with an overwhelming victory: (A, points in the trial, points from 7150)
WINNERS = {
    "in the game": ("A 2 1 0 9", 4, 4),
    "in the game without a score": ("A 2 1 0 0", 4, 4),
    "sunk with a score": ("A 2 2 0 9", 3, 4),
    "sunk without a score": ("A 2 2 0 0", 2, 4),
    "without ships from the start": ("A 0 0 0 0", 3, 4),
    "left the game": ("A 2 0 0 9 abandoned", 3, 4),
    "removed and sunk without a score": ("A 2 2 0 0 removed", 2, 4),
    "surrendered": ("A 2 0 0 9 surrendered", 0, 0),
    "surrendered and sunk without a score": ("A 2 2 0 0 surrendered", 0, 0),
}


@pytest.mark.parametrize(("player", "trial", "since_7150"), WINNERS.values(), ids=WINNERS)
def test_trial_rewards_surviving_winners(player, trial, since_7150):
    """In an overwhelming victory, the trial gives an extra point only to winners who finish with ships left."""
    event = build_battle(f"{player}, M 1 0 0 100", "B 1 1 0 1")

    assert score_event(event, TRIAL_PARAMS)["A"] == trial
    assert score_event(event, CURRENT_PARAMS)["A"] == since_7150


def test_sunk_winner_without_score_loses_a_point():
    """In a plain victory of the trial, a winner who was sunk without a score loses a point."""
    assert score_event(build_battle("A 1 1 0 0, M 1 0 0 12", "B 1 0 0 10"), TRIAL_PARAMS) == {"A": 2, "M": 3, "B": 1}
    assert score_event(build_battle("A 1 1 0 1, M 1 0 0 12", "B 1 0 0 10"), TRIAL_PARAMS)["A"] == 3


def test_sunk_player_without_victory_loses_nothing():
    """In a defeat or a tie, a player who was sunk without a score loses nothing."""
    assert score_event(build_battle("A 1 1 0 0, M 1 0 0 5", "B 1 0 0 9"), TRIAL_PARAMS)["A"] == 0
    assert score_event(build_battle("A 1 1 0 0, M 1 0 0 5", "B 1 0 0 5"), TRIAL_PARAMS)["A"] == 1


# the losing side, and its player who gets the point of the top scorer in the trial
TOP = {
    "alone": (["B 1 0 0 1"], "B"),
    "alone without points": (["B 1 0 0 0"], None),
    "the better of two": (["B 1 0 0 3, C 1 0 0 2"], "B"),
    "two equal": (["B 1 0 0 3, C 1 0 0 3"], None),
    "two equal, a third less": (["B 1 0 0 3, C 1 0 0 3, D 1 0 0 1"], None),
    "the better surrendered": (["B 1 0 0 3 surrendered, C 1 0 0 2"], None),
    "equal to one who surrendered": (["B 1 0 0 3 surrendered, C 1 0 0 3"], None),
    "the other surrendered": (["B 1 0 0 3, C 1 0 0 2 surrendered"], "B"),
    "the better abandoned": (["B 1 0 0 3 abandoned, C 1 0 0 2"], "B"),
    "the better was sunk": (["B 1 1 0 3, C 1 0 0 2"], "B"),
    "winners have more": (["B 1 0 0 1, C 1 0 0 0"], "B"),
}


@pytest.mark.parametrize(("side", "top"), TOP.values(), ids=TOP)
def test_losers_top_scorer_gets_a_point(side, top):
    """In a defeat, the trial gives a point to the single top scorer of the losers."""
    points = score_event(build_battle(*side, "W 1 0 0 1000"), TRIAL_PARAMS)

    assert points == {name: int(name == top) if name != "W" else 4 for name in points}
    assert {
        score_event(build_battle(*side, "W 1 0 0 1000"), CURRENT_PARAMS)[name] for name in points if name != "W"
    } == {0}


TIES = {
    "one player has more than all others": ("A 1 0 0 5, A2 1 0 0 1", "B 1 0 0 3, B2 1 0 0 3", "A"),
    "the best of both sides are equal": ("A 1 0 0 5, A2 1 0 0 1", "B 1 0 0 5, B2 1 0 0 1", None),
    "two equal on one side": ("A 1 0 0 3, A2 1 0 0 3", "B 1 0 0 4, B2 1 0 0 2", "B"),
    "no player scored": ("A 1 0 0 0, A2 1 0 0 0", "B 1 0 0 0, B2 1 0 0 0", None),
    "the top scorer surrendered": ("A 1 0 0 5 surrendered, A2 1 0 0 1", "B 1 0 0 4, B2 1 0 0 2", None),
}


@pytest.mark.parametrize(("first", "second", "top"), TIES.values(), ids=TIES)
def test_top_scorer_of_tie_gets_point(first, second, top):
    """In a tie, the trial gives a point to the single top scorer of both sides; in an agreed draw, to nobody."""
    expected = {
        name: 0 if "surrendered" in first and name == "A" else 1 + (name == top) for name in ("A", "A2", "B", "B2")
    }

    assert score_event(build_battle(first, second), TRIAL_PARAMS) == expected
    assert set(score_event(build_battle(first, second, ended="draw"), TRIAL_PARAMS).values()) <= {0, 1}


@pytest.mark.parametrize("ended", ["natural", "draw"])
def test_game_in_which_all_surrendered_gives_no_points(ended):
    """If all players surrendered, no player gets points."""
    event = build_battle("A 1 0 0 5 surrendered", "B 1 1 0 9 surrendered, C 1 1 0 2 surrendered", ended=ended)

    for params in (TRIAL_PARAMS, CURRENT_PARAMS):
        assert set(score_event(event, params).values()) == {0}


def test_leaver_and_substitute_are_not_survivors():
    """A leaver and the substitute share the result, but only players who finished are survivors."""
    event = build_battle("A 2 1 0 0, S 2 0 0 9, M 1 0 0 9", "B 1 0 0 1")
    leaver, substitute = event["data"]["participants"][:2]
    leaver["status"] = "abandoned"
    substitute |= {"status": "substitute", "replaces": "A"}

    # the leaver scored nothing, but a ship of the seat is left
    assert score_event(event, TRIAL_PARAMS) == {"A": 3, "S": 3, "M": 4, "B": 1}
    assert score_event(event, CURRENT_PARAMS) == {"A": 4, "S": 4, "M": 4, "B": 0}


def test_uncounted_players_change_nothing():
    """Uncounted players do not change the points of the counted players."""
    chance = random.Random(51)
    for _ in range(500):
        event = draw_battle(chance, chance.randint(2, 7))
        for params in (TRIAL_PARAMS, CURRENT_PARAMS):
            all_points = score_event(event, params)
            counted = chance.sample(sorted(all_points), chance.randint(1, len(all_points)))
            assert score_event(event, params, counted) == {name: all_points[name] for name in sorted(counted)}


def test_order_does_not_matter():
    """The order of participants and the names of the sides do not change any points."""
    chance = random.Random(52)
    for _ in range(500):
        event = draw_battle(chance, chance.randint(2, 7))
        expected = [score_event(event, params) for params in (TRIAL_PARAMS, CURRENT_PARAMS)]
        chance.shuffle(event["data"]["participants"])
        for participant in event["data"]["participants"]:
            participant["side"] = {"a": "z", "b": "c"}[participant["side"]]
        assert [score_event(event, params) for params in (TRIAL_PARAMS, CURRENT_PARAMS)] == expected


@pytest.mark.parametrize(
    "params",
    [
        {"victory": -1},
        {"overwhelming": 1_001},
        {"overwhelming_factor": 0},
        {"overwhelming_factor": "2"},
        {"overwhelming_comparison": "="},
        {"overwhelming_for": "winners"},
        {"sunk_without_points": 1},
        {"top_scorer": True},
        {"kill_points": 1},
    ],
)
def test_wrong_params_are_rejected(params):
    """Parameters that are unknown, of the wrong type or out of range are rejected."""
    with pytest.raises(ValueError):
        RULE.params(**params)


def test_largest_params_are_accepted():
    """The largest parameters are accepted, because every product stays small."""
    largest = {"overwhelming_factor": 1_000, "victory": 1_000, "sunk_without_points": -1_000}

    assert RULE.refuse_params(RULE.params(**largest), PLAYERS_MAX) is None


def test_trial_result_is_explained():
    """Explanations of the trial name survivors, top scorers and sunk players."""
    terms, remark = explain_event(
        build_battle("A 2 1 0 20, A2 2 2 0 0, A3 1 0 0 0 surrendered", "B 2 2 0 7, C 1 1 0 3"), TRIAL_PARAMS
    )

    reason = "the only side with ships left; 20 game points against 10, at least 2 times as many"
    assert terms["A"] == [("overwhelming victory", 4, f"{reason}; the player is a survivor with ships left")]
    assert terms["A2"] == [
        ("overwhelming victory", 3, f"{reason}; the player is not a survivor with ships left"),
        ("sunk without points", -1, "no game points, and all 2 ships lost"),
    ]
    assert terms["A3"] == [("surrendered", 0, "whatever the result, here overwhelming victory")]
    assert terms["B"] == [
        ("defeat", 0, "the enemy is the only side with ships left; 10 game points against 20"),
        ("top scorer", 1, "7 game points, more than any other player who did not win"),
    ]
    assert remark == "overwhelming victory of A, A2 and A3"


def test_result_from_7150_is_explained():
    """In leagues from 7150, the result is explained from the view of both sides."""
    terms, remark = explain_event(build_battle("A 2 1 0 20", "B 2 1 0 10"), CURRENT_PARAMS)
    assert terms["A"] == [("victory", 3, "20 game points against 10, not more than 2 times as many")]
    assert terms["B"] == [("defeat", 0, "10 game points against 20")]
    assert remark == "victory of A"

    terms, remark = explain_event(build_battle("A 2 1 0 10", "B 2 1 0 10"), CURRENT_PARAMS)
    assert terms["A"] == [("tie", 1, "10 game points each")]
    assert remark == "tie"

    terms, remark = explain_event(build_battle("A 2 1 0 10", "B 2 2 0 10", ended="draw"), CURRENT_PARAMS)
    assert terms["A"] == [("draw", 1, "agreed by the players")]
    assert remark == "draw by agreement"

    assert explain_event(build_battle("A 2 1 0 30", "B 2 2 0 10, C 1 1"), CURRENT_PARAMS, ["B", "C"])[1] == (
        "overwhelming victory of the side against B and C"
    )


def score_naively(event, version):
    """Return (points by player, kind of result) as the administrator's forum posts word the rules."""
    participants = event["data"]["participants"]
    replaced = {p["replaces"] for p in participants if "replaces" in p}
    lost_by = {p["player"]: p["units_lost"] for p in participants}
    ships = {p["player"]: p["units"] - (lost_by[p["replaces"]] if "replaces" in p else 0) for p in participants}
    ships |= {name: lost_by[name] for name in replaced}
    ships_left = {
        side: sum(ships[p["player"]] - p["units_lost"] for p in participants if p["side"] == side) for side in "ab"
    }
    total = {side: sum(p["score"] for p in participants if p["side"] == side) for side in "ab"}
    afloat = [side for side in "ab" if ships_left[side] > 0]
    is_agreed = event["data"]["ended"] == "draw"
    if is_agreed or (len(afloat) != 1 and total["a"] == total["b"]):
        winner = None
    else:
        winner = afloat[0] if len(afloat) == 1 else max("ab", key=lambda side: total[side])
    loser = {"a": "b", "b": "a"}.get(winner or "")
    is_double = winner is not None and (
        total[winner] >= 2 * total[loser] if version == "v1" else total[winner] > 2 * total[loser]
    )
    losers = [p for p in participants if p["side"] != winner]
    points = {}
    for p in participants:
        name, own_points = p["player"], 1 if winner is None else 3 if p["side"] == winner else 0
        if version == "v2" and is_double and p["side"] == winner:
            own_points = 4
        if version == "v1" and p["side"] == winner:
            own_points += is_double and p["status"] == "finished" and ships[name] > p["units_lost"]
            own_points -= p["score"] == 0 and ships[name] == p["units_lost"] > 0
        if version == "v1" and not is_agreed and p["side"] != winner:
            own_points += p["score"] >= 1 and all(p["score"] > rival["score"] for rival in losers if rival is not p)
        points[name] = 0 if p["status"] == "surrendered" else own_points
    result = "draw" if is_agreed else "tie" if winner is None else "overwhelming" if is_double else "victory"
    return points, result


@pytest.mark.slow
def test_random_battles_match_naive_scores(at_length):
    """Scores and explanations of random battles agree with a naive computation."""
    chance, cases = random.Random(53), Counter[str]()
    for _ in range(4_000 if at_length else 2_000):
        event = draw_battle(chance, chance.randint(2, 8))
        for version, params in (("v1", TRIAL_PARAMS), ("v2", CURRENT_PARAMS)):
            points, result = score_naively(event, version)
            assert score_event(event, params) == points
            terms, remark = explain_event(event, params)
            assert remark.startswith(result)
            cases[f"{version} {result}"] += 1
            for name in ("top scorer", "sunk without points", "surrendered"):
                cases[f"{version} {name}"] += any(
                    term[0] == name for player_terms in terms.values() for term in player_terms
                )
    # only the trial has these terms
    assert (cases.pop("v2 top scorer"), cases.pop("v2 sunk without points")) == (0, 0)
    assert min(cases.values()) > 100, cases


def build_league_game(game_id, instant, league, *sides):
    """Return a league game of Wooden Ships."""
    event = build_battle(*sides, league=league, game="wooden-ships")
    event["data"]["game_id"] = game_id
    return event | {"occurred_at": instant}


def test_league_keeps_its_first_version(ledger_url):
    """Each league is scored by the shipped version in force when it began.

    One league began in 2009 and continues, the other began in 2010; a win of 20 to 10 gives the best winner 4 + 1
    points in the first and 3 in the second.
    """
    sides = ("A 2 0 0 20, M 2 0 0 0", "B 2 2 0 10")
    events = [build_ruleset_event(text) for text in find_shipped_texts('"youplay-wsim"')]
    events += [
        build_league_game("g1", "2009-12-30T20:00:00Z", "L1", *sides),
        build_league_game("g2", "2010-03-01T20:00:00Z", "L1", *sides),
    ]
    events += [build_league_game("g3", "2010-03-01T20:00:00Z", "L2", *sides)]
    facts = load_facts(fill(ledger_url, events))

    def load_table(league, rules=None):
        ranking = rank_stream(build_stream(facts, f"youplay-wsim/{league}", rules=rules))
        return ranking.ruleset, {row.player: row.points for row in ranking.rows}

    # in each of two games, a strategic victory gives 4 points, and the best of its side 1 more; B loses 1 for each of
    # two lost ships
    assert load_table("L1") == ("youplay-wsim@v0", {"A": 10, "M": 8, "B": -4})
    assert load_table("L2") == ("youplay-wsim@v2", {"A": 3, "M": 3, "B": 0})
    assert load_table("L2", "youplay-wsim@v1") == ("youplay-wsim@v1", {"A": 4, "M": 4, "B": 1})
