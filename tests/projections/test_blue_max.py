"""Blue Max: the source's examples, every rule at its boundary, and a comparison with a naive computation."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from histories import build_ruleset_event, build_stream, fill, load_facts, rank_stream
from kind_games import build_battle, draw_battle, list_columns, list_players
from own_rules import find_shipped_text, load_built_in_rule

from ratings_ledger.rules import PLAYERS_MAX

RULE = load_built_in_rule("blue-max/1")


def score_event(event, counted=None, **params):
    """Return the change of every counted player."""
    columns = list_columns(event, RULE.columns, counted)
    names = [name for name in list_players(event) if counted is None or name in counted]
    change = [-1] * len(names)
    minted = RULE.score(len(names), [0] * len(names), columns, RULE.prepare(RULE.params(**params)), (), change)
    assert minted == sum(points for points in change if points > 0)
    return dict(zip(names, change, strict=True))


def explain_event(event, counted=None, **params):
    """Return ({player: [(term, amount, detail)]}, the remark), and check that the terms add up."""
    columns, bound = list_columns(event, RULE.columns, counted), RULE.params(**params)
    change = score_event(event, counted, **params)
    names, n = list(change), len(change)
    terms = RULE.explain(n, names, [0] * n, columns, bound, list(change.values()))
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == list(change.values())
    assert not any(term.note for player_terms in terms for term in player_terms)
    terms_by_player = {
        name: [tuple(term)[:3] for term in player_terms] for name, player_terms in zip(names, terms, strict=True)
    }
    return terms_by_player, RULE.remark(n, names, columns, bound)


# units, losses, kills and game points, if the page states them
EXAMPLES = {
    "1: strategic, W1 shot down two": (
        ["W1 1 0 2 60, W2 1 0 1 30, W3 1 0 0 10", "D1 1 1 0 10, D2 1 1 0 10, D3 1 1 0 10"],
        {"W1": 7, "W2": 5, "W3": 4, "D1": -1, "D2": -1, "D3": -1},
    ),
    "2: tactical, D2 is the best of the side": (
        ["W1 1 0 1 60, W2 1 0 1 30, W3 1 1 0 10", "D1 1 1 0 10, D2 1 0 1 40, D3 1 1 0 10"],
        {"W1": 5, "W2": 4, "W3": 2, "D1": -1, "D2": 2, "D3": -1},
    ),
    "3: one against one": (["W1 1 0 1 50", "D1 1 1 0 20"], {"W1": 5, "D1": -1}),
    "4: both shot down, 20 % more points": (["W1 1 1 1 120", "D1 1 1 1 100"], {"W1": 1, "D1": 0}),
}


@pytest.mark.parametrize(("sides", "points"), EXAMPLES.values(), ids=EXAMPLES)
def test_page_examples_score_as_stated(sides, points):
    """The examples of the page give each player the points that the page states."""
    assert score_event(build_battle(*sides)) == points


# (sides, kind of result, winning side); all points except those for the result are switched off
RESULTS = {
    "one side has units left": (["A 3 2 0 0", "B 1 1 0 999"], "strategic", 1),
    "the other side has units left": (["A 1 1 0 999", "B 9 8 0 0"], "strategic", 2),
    "1 of 4 lost against 1 of 3": (["A 4 1", "B 3 1"], "tactical", 1),
    "3 of 4 lost against 2 of 3": (["A 4 3 0 99", "B 3 2"], "tactical", 2),
    "nothing lost against 1 of 10,000": (["A 1 0", "B 10000 1 0 99"], "tactical", 1),
    "9,998 of 9,999 against 9,999 of 10,000": (["A 9999 9998", "B 10000 9999"], "tactical", 1),
    "2 of 4 against 1 of 2: points more than 15 % above": (["A 4 2 0 116", "B 2 1 0 100"], "marginal", 1),
    "exactly 15 %": (["A 1 0 0 115", "B 1 0 0 100"], "draw", 0),
    "one more than 15 %": (["A 1 0 0 100", "B 1 0 0 116"], "marginal", 2),
    "exactly 15 % more than 20": (["A 1 0 0 23", "B 1 0 0 20"], "draw", 0),
    "15 % more than 7 lies between 8 and 9": (["A 1 0 0 8", "B 1 0 0 7"], "draw", 0),
    "9 against 7": (["A 1 0 0 9", "B 1 0 0 7"], "marginal", 1),
    "equal points": (["A 1 0 0 50", "B 1 0 0 50"], "draw", 0),
    "no points at all": (["A 1 0 0 0", "B 1 0 0 0"], "draw", 0),
    "1 against 0": (["A 1 0 0 1", "B 1 0 0 0"], "marginal", 1),
    "20 against 0": (["A 1 0 0 20", "B 1 0 0 0"], "marginal", 1),
    "the points of the whole sides": (["A 1 0 0 60, A2 1 0 0 56", "B 1 0 0 50, B2 1 0 0 50"], "marginal", 1),
    "the losses of the whole sides": (["A 1 1, A2 3 0", "B 2 1, B2 1 0"], "tactical", 1),
    "no units left: the same tests": (["A 2 2 0 100", "B 5 5 0 116"], "marginal", 2),
    "no units left and 15 %": (["A 2 2 0 100", "B 5 5 0 115"], "draw", 0),
    "units without losses on both sides": (["A 9 0", "B 1 0"], "draw", 0),
    "a player without units": (["A 0 0 0 5, A2 2 1", "B 2 2"], "strategic", 1),
}
ONLY_RESULTS = {"best": 0, "kill_points": 0, "unit_lost": 0}


@pytest.mark.parametrize(("sides", "kind", "winner"), RESULTS.values(), ids=RESULTS)
def test_losses_and_points_decide_the_result(sides, kind, winner):
    """Units left, losses and game points decide the kind of result and the winner."""
    points_by_player = score_event(build_battle(*sides), **ONLY_RESULTS)
    winner_points = {"strategic": 4, "tactical": 3, "marginal": 1, "draw": 0}[kind]

    assert {name: amount for name, amount in points_by_player.items() if name[0] == "A"} == dict.fromkeys(
        [name for name in points_by_player if name[0] == "A"], winner_points * (winner == 1)
    )
    assert {amount for name, amount in points_by_player.items() if name[0] == "B"} == {winner_points * (winner == 2)}
    remark = explain_event(build_battle(*sides), **ONLY_RESULTS)[1]
    assert remark.startswith(kind)


@pytest.mark.parametrize(("sides", "kind", "winner"), RESULTS.values(), ids=RESULTS)
def test_agreed_draw_overrides_the_result(sides, kind, winner):
    """An agreed draw counts as a draw, regardless of the units left."""
    points = score_event(build_battle(*sides, ended="draw"), **ONLY_RESULTS, draw=7)

    assert set(points.values()) == {7}


def test_agreed_draw_keeps_personal_points():
    """In an agreed draw, players keep the points for their own kills and losses."""
    event = build_battle("A 2 1 2 100, A2 1 1 0 10", "B 3 2 1 20, B2 1 0 1 20", ended="draw")

    assert score_event(event) == {"A": 1 + 2 - 1, "A2": -1, "B": 1 - 2, "B2": 1}


@pytest.mark.parametrize("status", ["surrendered", "removed", "abandoned"])
def test_leavers_score_like_other_players(status):
    """Players who surrendered, left or were removed score like other players."""
    assert score_event(build_battle(f"A 1 0 1 60 {status}, A2 1 0 0 20", "B 1 1 0 5")) == {"A": 6, "A2": 4, "B": -1}


# (the side of player A, whether A is its best player); no mate has more points than A
BEST = {
    "alone on the side": ("A 1 0 0 60", False),
    "exactly 15 % more": ("A 1 0 0 115, A2 1 0 0 100", True),
    "a bit less": ("A 1 0 0 114, A2 1 0 0 100", False),
    "exactly 15 % more than the better of two mates": ("A 1 0 0 23, A2 1 0 0 20, A3 1 0 0 1", True),
    "above each mate, not above their sum": ("A 1 0 0 50, A2 1 0 0 49, A3 1 0 0 1", False),
    "tied": ("A 1 0 0 50, A2 1 0 0 50", False),
    "the only mate with points": ("A 1 0 0 1, A2 1 0 0 0", True),
    "no mate has points": ("A 1 0 0 0, A2 1 0 0 0", False),
}


@pytest.mark.parametrize(("side", "best"), BEST.values(), ids=BEST)
@pytest.mark.parametrize("enemy", ["X 1 1 0 0", "X 9 0 0 9999"])
def test_best_needs_15_percent_more(side, best, enemy):
    """The best player of a side, winning or losing, needs at least 15 % more points than each mate."""
    points = score_event(build_battle(side, enemy), kill_points=0, unit_lost=0, strategic=0, tactical=0, marginal=0)

    assert points == {name: int(best and name == "A") for name in points}


def test_strict_comparison_excludes_15_percent():
    """With the comparison `>`, exactly 15 % more is not enough to be the best."""
    for points, best in ((115, 0), (116, 1)):
        event = build_battle(f"A 1 0 0 {points}, A2 1 0 0 100", "B 1 0 0 9999")
        assert score_event(event, best_comparison=">")["A"] == best


def test_both_sides_can_have_a_best():
    """If both sides have a best player, both players get the bonus."""
    points = score_event(build_battle("A 1 0 0 60, A2 1 0 0 0", "B 1 0 0 60, B2 1 0 0 0"))

    assert points == {"A": 1, "A2": 0, "B": 1, "B2": 0}


def test_shared_kill_counts_for_both():
    """Both players who share a kill get its points, but only one unit is lost.

    The loser has several units and loses a point for the lost one.
    """
    points = score_event(build_battle("A 1 0 1 10, A2 1 0 1 10", "B 3 1 0 0"))

    assert points == {"A": 3 + 1, "A2": 3 + 1, "B": -1}


def test_every_unit_counts():
    """Each lost unit and each destroyed unit changes the points."""
    assert score_event(build_battle("A 5 3 2 0", "B 4 2 3 0, B2 1 0 0 0")) == {"A": 2 - 3, "B": 3 + 3 - 2, "B2": 3}


def test_old_wooden_ships_ignores_kills():
    """With the parameters of the old Wooden Ships rule, ships destroyed do not count."""
    event = build_battle(*EXAMPLES["1: strategic, W1 shot down two"][0])

    assert score_event(event, kill_points=0) == {"W1": 5, "W2": 4, "W3": 4, "D1": -1, "D2": -1, "D3": -1}


def build_battle_with_substitute(*sides, leaver, substitute):
    """Return a battle in which one player takes over the seat of another."""
    event = build_battle(*sides)
    by_name = {participant["player"]: participant for participant in event["data"]["participants"]}
    by_name[leaver]["status"] = "abandoned"
    by_name[substitute] |= {"status": "substitute", "replaces": leaver}
    return event


def test_shared_seat_counts_units_once():
    """The players of a shared seat score their own kills and losses, but the units of the seat count once.

    A has two units, loses one and leaves; S loses the other. So the side loses 2 of 3 units and the enemy 1 of 2, and
    the result is tactical.
    """
    event = build_battle_with_substitute("A 2 1 1 50, S 2 1 0 60, A2 1 0 0 20", "B 2 1 2 0", leaver="A", substitute="S")

    assert score_event(event) == {"A": 1 - 1, "S": 1 - 1, "A2": 0, "B": 3 + 2 - 1}


def test_shared_only_seat_has_no_best():
    """A side's only seat has no best player, even if two players shared it."""
    event = build_battle_with_substitute("A 1 0 0 10, S 1 0 0 60", "B 1 0 0 70", leaver="A", substitute="S")

    assert score_event(event) == {"A": 0, "S": 0, "B": 0}


def test_uncounted_players_change_nothing():
    """Uncounted players do not change the points of the counted players."""
    chance = random.Random(41)
    for _ in range(500):
        event = draw_battle(chance, chance.randint(2, 7))
        all_points = score_event(event)
        counted = chance.sample(sorted(all_points), chance.randint(1, len(all_points)))
        assert score_event(event, counted) == {name: all_points[name] for name in sorted(counted)}


def test_order_and_names_do_not_matter():
    """The order of participants and the names of players and sides do not change any points."""
    chance = random.Random(42)
    for _ in range(500):
        event = draw_battle(chance, chance.randint(2, 7))
        expected = score_event(event)
        chance.shuffle(event["data"]["participants"])
        assert score_event(event) == expected
        # the new names reverse the order of players and of sides
        for participant in event["data"]["participants"]:
            participant["side"] = {"a": "z", "b": "c"}[participant["side"]]
            participant["player"] = f"q{9 - int(participant['player'][1:])}"
            if "replaces" in participant:
                participant["replaces"] = f"q{9 - int(participant['replaces'][1:])}"
        assert score_event(event) == {
            f"q{9 - int(name[1:])}": expected[name] for name in sorted(expected, reverse=True)
        }


PARAMS_AND_REASONS = {
    "a margin of 0": ({"best_margin": 0}, 'params.best_margin: with best_comparison = ">=" a margin of 0'),
    "a margin of 0, strictly": ({"best_margin": 0, "best_comparison": ">"}, None),
    "those of the page": ({}, None),
    "the largest": (
        {"strategic": 1_000, "kill_points": 1_000, "unit_lost": -1_000, "best_margin": 1_000, "marginal_margin": 1_000},
        None,
    ),
}


@pytest.mark.parametrize(("params", "reason"), PARAMS_AND_REASONS.values(), ids=PARAMS_AND_REASONS)
def test_params_with_two_best_players_are_rejected(params, reason):
    """Parameters that would allow two best players on a side are rejected."""
    refusal = RULE.refuse_params(RULE.params(**params), PLAYERS_MAX)

    assert refusal is None if reason is None else reason in (refusal or "")


@pytest.mark.parametrize(
    "params",
    [
        {"strategic": -1},
        {"strategic": 1_001},
        {"unit_lost": 1},
        {"unit_lost": -1_001},
        {"kill_points": "1"},
        {"best_margin": -1},
        {"best_margin": "15"},
        {"best_comparison": "="},
        {"marginal_margin": 1_001},
        {"best_of": 0},
    ],
)
def test_wrong_params_are_rejected(params):
    """Parameters of the wrong type or out of range are rejected."""
    with pytest.raises(ValueError):
        RULE.params(**params)


def test_strategic_victory_is_explained():
    """A strategic victory is explained by the result, the best player, the kills and the losses."""
    terms, remark = explain_event(build_battle("W1 1 0 2 60, W2 1 1 1 30, W3 1 0 0 60", "D1 3 3 1 10, D2 1 1 0 100"))

    units_left = "2 of 3 units are left, and 0 of the enemy's 4"
    assert terms["W1"] == [
        ("strategic victory", 4, units_left),
        ("best of the side", 0, "60 game points are not at least 15 % above the next, 60"),
        ("destroyed", 2, "2 enemy units"),
    ]
    assert terms["W2"] == [
        ("strategic victory", 4, units_left),
        ("destroyed", 1, "1 enemy unit"),
        ("lost", -1, "1 own unit"),
    ]
    assert terms["D2"] == [
        ("defeat", 0, "strategic victory of the enemy: 0 of 4 units are left, and 2 of the enemy's 3"),
        ("best of the side", 1, "100 game points are at least 15 % above the next, 10"),
        ("lost", -1, "1 own unit"),
    ]
    assert remark == "strategic victory of W1, W2 and W3; winner of the game: W1 and W3 with 60 game points"


def test_other_results_are_explained():
    """Tactical and marginal victories and draws are explained by the numbers of both sides and a remark."""
    terms, remark = explain_event(build_battle("A 4 1", "B 3 1"))
    assert terms["A"] == [
        ("tactical victory", 3, "lost 1 of 4 units, the enemy 1 of 3"),
        ("lost", -1, "1 own unit"),
    ]
    assert terms["B"][0] == ("defeat", 0, "tactical victory of the enemy: lost 1 of 3 units, the enemy 1 of 4")
    assert remark == "tactical victory of A"

    terms, remark = explain_event(build_battle("A 1 0 0 116", "B 2 0 0 100, C 1 0 0 0"), best=0)
    same_share = "lost 0 of 1 units, the enemy 0 of 3, the same share; 116 game points are more than 15 % above 100"
    assert terms["A"] == [("marginal victory", 1, same_share)]
    assert remark == "marginal victory of A"

    terms, remark = explain_event(build_battle("A 1 0 0 115", "B 1 0 0 100"))
    even_result = (
        "lost 0 of 1 units, the enemy 0 of 1, the same share; 115 game points are not more than 15 % above 100"
    )
    assert terms == {"A": [("draw", 0, even_result)], "B": [("draw", 0, even_result)]}
    assert remark == "draw"

    terms, remark = explain_event(build_battle("A 1 0 0 500", "B 1 1 0 0", ended="draw"))
    assert terms["A"] == [("draw", 0, "agreed by the players")]
    assert remark == "draw by agreement"


def test_remark_names_the_beaten_side():
    """If players of the winning side are uncounted, the remark names the beaten side."""
    event = build_battle("A 1 0 1 5", "B 1 1 0 3, C 1 1 0 9")

    assert explain_event(event, ["B", "C"])[1] == "strategic victory of the side against B and C"
    assert explain_event(event, ["A", "C"])[1] == "strategic victory of A; winner of the game: A with 5 game points"


def score_naively(event, draw_by_agreement):
    """Return (points by player, kind of result) by the wording of the page, in exact fractions."""
    participants = event["data"]["participants"]
    substitutes = {p["replaces"]: p for p in participants if "replaces" in p}
    seats = [p for p in participants if p["player"] not in substitutes]
    sides = {side: [p for p in participants if p["side"] == side] for side in "ab"}
    units = {side: sum(p["units"] for p in seats if p["side"] == side) for side in "ab"}
    lost = {side: sum(p["units_lost"] for p in sides[side]) for side in "ab"}
    total = {side: sum(p["score"] for p in sides[side]) for side in "ab"}
    left = [side for side in "ab" if units[side] > lost[side]]
    share = {side: Fraction(lost[side], units[side]) for side in "ab"}
    kind, winner = "draw", None
    if draw_by_agreement:
        pass
    elif len(left) == 1:
        kind, winner = "strategic", left[0]
    elif share["a"] != share["b"]:
        kind, winner = "tactical", min("ab", key=lambda side: share[side])
    else:
        for side, enemy in ("ab", "ba"):
            if total[side] > total[enemy] * Fraction(115, 100):
                kind, winner = "marginal", side
    points = {p["player"]: p["kills"] - p["units_lost"] for p in participants}
    for side, members in sides.items():
        for p in members:
            mates = [mate["score"] for mate in members if mate is not p]
            if winner == side:
                points[p["player"]] += {"strategic": 4, "tactical": 3, "marginal": 1}[kind]
            is_alone = sum(seat["side"] == side for seat in seats) == 1
            if not is_alone and p["score"] > 0 and all(p["score"] >= mate * Fraction(115, 100) for mate in mates):
                points[p["player"]] += 1
    return points, kind


def lost_all_units(event):
    """Tell whether both sides lost all their units."""
    units, lost = list_columns(event, ("side_units", "side_units_lost"))
    return units == lost


@pytest.mark.slow
def test_random_battles_match_naive_scores():
    """Scores and explanations of random battles agree with a naive computation."""
    chance, cases = random.Random(43), Counter[str]()
    for _ in range(4_000):
        event = draw_battle(chance, chance.randint(2, 8))
        is_agreed = event["data"]["ended"] == "draw"
        points, kind = score_naively(event, is_agreed)
        assert score_event(event) == points
        terms, remark = explain_event(event)
        assert remark.startswith(kind)
        names = [term[0] for player_terms in terms.values() for term in player_terms]
        cases["agreed draw" if is_agreed else kind] += 1
        cases["best"] += any(
            term[:2] == ("best of the side", 1) for player_terms in terms.values() for term in player_terms
        )
        cases["not quite best"] += any(
            term[:2] == ("best of the side", 0) for player_terms in terms.values() for term in player_terms
        )
        cases["negative"] += min(points.values()) < 0
        cases["a substitute"] += any("replaces" in p for p in event["data"]["participants"])
        cases["no units left"] += not is_agreed and lost_all_units(event)
        cases["destroyed and lost"] += "destroyed" in names and "lost" in names
    assert min(cases.values()) > 100, cases


def build_league_game(game_id, day, *sides, **members):
    """Return a league game of Blue Max."""
    event = build_battle(*sides, league="L1", **members)
    event["data"]["game_id"] = game_id
    return event | {"occurred_at": f"2010-02-{day:02d}T20:00:00Z"}


def test_league_table_sums_points(ledger_url):
    """Under the shipped ruleset, the table of a league sums the points of its games.

    The league has two examples of the page and an aborted game, which does not count.
    """
    examples = [EXAMPLES["1: strategic, W1 shot down two"][0], EXAMPLES["4: both shot down, 20 % more points"][0]]
    events = [build_ruleset_event(find_shipped_text("youplay-bluemax"))]
    events += [build_league_game(f"g{day}", day, *sides) for day, sides in enumerate(examples, 1)]
    events.append(build_league_game("g3", 3, "D2 1 0 1 5", "W2 1 1 0 5", aborted=True))

    ranking = rank_stream(build_stream(load_facts(fill(ledger_url, events)), "youplay-bluemax/L1"))
    assert [(row.rank, row.player, row.points) for row in ranking.rows] == [
        (1, "W1", 8),
        (2, "W2", 5),
        (3, "W3", 4),
        (4, "D1", -1),
        (4, "D2", -1),
        (4, "D3", -1),
    ]
    assert (ranking.games, ranking.minted, ranking.burned) == (2, 17, 3)
