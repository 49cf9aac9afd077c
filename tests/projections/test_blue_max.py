"""Blue Max: the source's examples, every sentence at its boundary, and a naive computation beside it."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from histories import facts_of, fill, ruleset, standings_of, stream_of
from kind_games import battle, columns_of, players_of, random_battle
from own_rules import find_shipped_text, load_built_in_rule

from ratings_ledger.rules import PLAYERS_MAX

RULE = load_built_in_rule("blue-max/1")


def scored(event, counted=None, **params):
    """The change of every counted player."""
    columns = columns_of(event, RULE.columns, counted)
    names = [name for name in players_of(event) if counted is None or name in counted]
    change = [-1] * len(names)
    minted = RULE.score(len(names), [0] * len(names), columns, RULE.prepare(RULE.params(**params)), (), change)
    assert minted == sum(points for points in change if points > 0)
    return dict(zip(names, change, strict=True))


def explained(event, counted=None, **params):
    """(for every player (term, amount, detail), the remark)."""
    columns, bound = columns_of(event, RULE.columns, counted), RULE.params(**params)
    change = scored(event, counted, **params)
    names, n = list(change), len(change)
    terms = RULE.explain(n, names, [0] * n, columns, bound, list(change.values()))
    assert [sum(term.amount for term in mine) for mine in terms] == list(change.values())
    assert not any(term.note for mine in terms for term in mine)
    told = {name: [tuple(term)[:3] for term in mine] for name, mine in zip(names, terms, strict=True)}
    return told, RULE.remark(n, names, columns, bound)


# units, losses, kills and game points as far as the page tells them
EXAMPLES = {
    "1: strategic, W1 shot down two": (
        ["W1 1 0 2 60, W2 1 0 1 30, W3 1 0 0 10", "D1 1 1 0 10, D2 1 1 0 10, D3 1 1 0 10"],
        {"W1": 7, "W2": 5, "W3": 4, "D1": -1, "D2": -1, "D3": -1},
    ),
    "2: tactical, D2 is the best of his side": (
        ["W1 1 0 1 60, W2 1 0 1 30, W3 1 1 0 10", "D1 1 1 0 10, D2 1 0 1 40, D3 1 1 0 10"],
        {"W1": 5, "W2": 4, "W3": 2, "D1": -1, "D2": 2, "D3": -1},
    ),
    "3: one against one": (["W1 1 0 1 50", "D1 1 1 0 20"], {"W1": 5, "D1": -1}),
    "4: both shot down, 20 % more points": (["W1 1 1 1 120", "D1 1 1 1 100"], {"W1": 1, "D1": 0}),
}


@pytest.mark.parametrize(("sides", "points"), EXAMPLES.values(), ids=EXAMPLES)
def test_page_examples_score_as_stated(sides, points):
    """The examples of the page give everybody the points that the page states."""
    assert scored(battle(*sides)) == points


# what the players of the first and of the second side get for the result, all other points switched off
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
    "15 % of 20 exactly": (["A 1 0 0 23", "B 1 0 0 20"], "draw", 0),
    "15 % of 7 lies between 8 and 9": (["A 1 0 0 8", "B 1 0 0 7"], "draw", 0),
    "9 against 7": (["A 1 0 0 9", "B 1 0 0 7"], "marginal", 1),
    "equal points": (["A 1 0 0 50", "B 1 0 0 50"], "draw", 0),
    "no points at all": (["A 1 0 0 0", "B 1 0 0 0"], "draw", 0),
    "1 against 0": (["A 1 0 0 1", "B 1 0 0 0"], "marginal", 1),
    "20 against 0": (["A 1 0 0 20", "B 1 0 0 0"], "marginal", 1),
    "the points of the whole sides": (["A 1 0 0 60, A2 1 0 0 56", "B 1 0 0 50, B2 1 0 0 50"], "marginal", 1),
    "the losses of the whole sides": (["A 1 1, A2 3 0", "B 2 1, B2 1 0"], "tactical", 1),
    "nobody is left: the same tests": (["A 2 2 0 100", "B 5 5 0 116"], "marginal", 2),
    "nobody is left and 15 %": (["A 2 2 0 100", "B 5 5 0 115"], "draw", 0),
    "units without losses on both sides": (["A 9 0", "B 1 0"], "draw", 0),
    "a player without units": (["A 0 0 0 5, A2 2 1", "B 2 2"], "strategic", 1),
}
ONLY_RESULTS = {"best": 0, "kill_points": 0, "unit_lost": 0}


@pytest.mark.parametrize(("sides", "kind", "winner"), RESULTS.values(), ids=RESULTS)
def test_losses_and_points_decide_the_result(sides, kind, winner):
    """Units left, losses and game points decide the kind of result and the winner."""
    found = scored(battle(*sides), **ONLY_RESULTS)
    points = {"strategic": 4, "tactical": 3, "marginal": 1, "draw": 0}[kind]

    assert {name: amount for name, amount in found.items() if name[0] == "A"} == dict.fromkeys(
        [name for name in found if name[0] == "A"], points * (winner == 1)
    )
    assert {amount for name, amount in found.items() if name[0] == "B"} == {points * (winner == 2)}
    told = explained(battle(*sides), **ONLY_RESULTS)[1]
    assert told.startswith(kind)


@pytest.mark.parametrize(("sides", "kind", "winner"), RESULTS.values(), ids=RESULTS)
def test_agreed_draw_overrides_the_result(sides, kind, winner):
    """An agreed draw counts as a draw, whatever units are left."""
    found = scored(battle(*sides, ended="draw"), **ONLY_RESULTS, draw=7)

    assert set(found.values()) == {7}


def test_agreed_draw_keeps_personal_points():
    """In an agreed draw, everybody keeps their personal points."""
    event = battle("A 2 1 2 100, A2 1 1 0 10", "B 3 2 1 20, B2 1 0 1 20", ended="draw")

    assert scored(event) == {"A": 1 + 2 - 1, "A2": -1, "B": 1 - 2, "B2": 1}


@pytest.mark.parametrize("status", ["surrendered", "removed", "abandoned"])
def test_leavers_score_like_everybody(status):
    """Players who surrendered or left score like everybody else."""
    assert scored(battle(f"A 1 0 1 60 {status}, A2 1 0 0 20", "B 1 1 0 5")) == {"A": 6, "A2": 4, "B": -1}


# the first has most points of his side
BEST = {
    "alone on his side": ("A 1 0 0 60", False),
    "exactly 15 % more": ("A 1 0 0 115, A2 1 0 0 100", True),
    "a bit less": ("A 1 0 0 114, A2 1 0 0 100", False),
    "exactly 15 % more than the better of two mates": ("A 1 0 0 23, A2 1 0 0 20, A3 1 0 0 1", True),
    "more than one mate alone": ("A 1 0 0 50, A2 1 0 0 49, A3 1 0 0 1", False),
    "tied": ("A 1 0 0 50, A2 1 0 0 50", False),
    "only he has points": ("A 1 0 0 1, A2 1 0 0 0", True),
    "nobody has points": ("A 1 0 0 0, A2 1 0 0 0", False),
}


@pytest.mark.parametrize(("side", "best"), BEST.values(), ids=BEST)
@pytest.mark.parametrize("foe", ["X 1 1 0 0", "X 9 0 0 9999"])
def test_best_needs_15_percent_more(side, best, foe):
    """The best of a side, won or lost, needs at least 15 % more than each mate."""
    found = scored(battle(side, foe), kill_points=0, unit_lost=0, strategic=0, tactical=0, marginal=0)

    assert found == {name: int(best and name == "A") for name in found}


def test_strict_comparison_excludes_15_percent():
    """With the comparison `>`, exactly 15 % more is not enough to be the best."""
    for points, best in ((115, 0), (116, 1)):
        event = battle(f"A 1 0 0 {points}, A2 1 0 0 100", "B 1 0 0 9999")
        assert scored(event, best_comparison=">")["A"] == best


def test_both_sides_can_have_a_best():
    """If both sides have a best player, both get the point."""
    found = scored(battle("A 1 0 0 60, A2 1 0 0 0", "B 1 0 0 60, B2 1 0 0 0"))

    assert found == {"A": 1, "A2": 0, "B": 1, "B2": 0}


def test_shared_kill_counts_for_both():
    """Both players who share a kill get it, and only one unit is lost.

    The loser has several units and lost one of them, which costs them one point.
    """
    found = scored(battle("A 1 0 1 10, A2 1 0 1 10", "B 3 1 0 0"))

    assert found == {"A": 3 + 1, "A2": 3 + 1, "B": -1}


def test_every_unit_counts():
    """Each unit lost and each unit destroyed counts."""
    assert scored(battle("A 5 3 2 0", "B 4 2 3 0, B2 1 0 0 0")) == {"A": 2 - 3, "B": 3 + 3 - 2, "B2": 3}


def test_old_wooden_ships_ignores_kills():
    """With the parameters of the old Wooden Ships rule, ships destroyed do not count."""
    event = battle(*EXAMPLES["1: strategic, W1 shot down two"][0])

    assert scored(event, kill_points=0) == {"W1": 5, "W2": 4, "W3": 4, "D1": -1, "D2": -1, "D3": -1}


def replaced(*sides, leaver, substitute):
    """A battle in which one took over the seat of another."""
    event = battle(*sides)
    by_name = {participant["player"]: participant for participant in event["data"]["participants"]}
    by_name[leaver]["status"] = "abandoned"
    by_name[substitute] |= {"status": "substitute", "replaces": leaver}
    return event


def test_shared_seat_counts_units_once():
    """On a seat that changed hands, players score what they did, and the units count once.

    A had two units, lost one and left; S lost the other. So the side lost 2 of 3 and the enemy 1 of 2,
    which makes the result tactical.
    """
    event = replaced("A 2 1 1 50, S 2 1 0 60, A2 1 0 0 20", "B 2 1 2 0", leaver="A", substitute="S")

    assert scored(event) == {"A": 1 - 1, "S": 1 - 1, "A2": 0, "B": 3 + 2 - 1}


def test_shared_only_seat_has_no_best():
    """Neither of two players who shared a side's only seat is the best of that side."""
    event = replaced("A 1 0 0 10, S 1 0 0 60", "B 1 0 0 70", leaver="A", substitute="S")

    assert scored(event) == {"A": 0, "S": 0, "B": 0}


def test_uncounted_players_change_nothing():
    """Players who do not count leave the points of the others unchanged."""
    chance = random.Random(41)
    for _ in range(500):
        event = random_battle(chance, chance.randint(2, 7))
        everybody = scored(event)
        counted = chance.sample(sorted(everybody), chance.randint(1, len(everybody)))
        assert scored(event, counted) == {name: everybody[name] for name in sorted(counted)}


def test_order_and_names_do_not_matter():
    """The order of participants and the names of players and sides do not change anybody's points."""
    chance = random.Random(42)
    for _ in range(500):
        event = random_battle(chance, chance.randint(2, 7))
        straight = scored(event)
        chance.shuffle(event["data"]["participants"])
        assert scored(event) == straight
        # sorted the other way round, the sides too
        for participant in event["data"]["participants"]:
            participant["side"] = {"a": "z", "b": "c"}[participant["side"]]
            participant["player"] = f"q{9 - int(participant['player'][1:])}"
            if "replaces" in participant:
                participant["replaces"] = f"q{9 - int(participant['replaces'][1:])}"
        assert scored(event) == {f"q{9 - int(name[1:])}": straight[name] for name in sorted(straight, reverse=True)}


BAD = {
    "a margin of nothing": ({"best_margin": 0}, 'params.best_margin: with best_comparison = ">=" a margin of 0'),
    "a margin of nothing, strictly": ({"best_margin": 0, "best_comparison": ">"}, None),
    "the page's": ({}, None),
    "the largest": (
        {"strategic": 1_000, "kill_points": 1_000, "unit_lost": -1_000, "best_margin": 1_000, "marginal_margin": 1_000},
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("params", "reason"), BAD.values(), ids=BAD)
def test_two_best_players_are_refused(params, reason):
    """Parameters that would allow two best players on a side are refused."""
    found = RULE.refuse_params(RULE.params(**params), PLAYERS_MAX)

    assert found is None if reason is None else reason in (found or "")


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
def test_wrong_params_are_refused(params):
    """Parameters of the wrong type or out of range are refused."""
    with pytest.raises(ValueError):
        RULE.params(**params)


def test_strategic_victory_is_explained():
    """A strategic victory is explained by the result, the best player, the kills and the losses."""
    told, said = explained(battle("W1 1 0 2 60, W2 1 1 1 30, W3 1 0 0 60", "D1 3 3 1 10, D2 1 1 0 100"))

    left = "2 of 3 units are left, of the enemy 0 of 4"
    assert told["W1"] == [
        ("strategic victory", 4, left),
        ("best of the side", 0, "60 game points are not at least 15 % above the next, 60"),
        ("destroyed", 2, "2 enemy units"),
    ]
    assert told["W2"] == [
        ("strategic victory", 4, left), ("destroyed", 1, "1 enemy unit"), ("lost", -1, "1 own unit"),
    ]  # fmt: skip
    assert told["D2"] == [
        ("defeat", 0, "strategic victory of the enemy: 0 of 4 units are left, of the enemy 2 of 3"),
        ("best of the side", 1, "100 game points are at least 15 % above the next, 10"),
        ("lost", -1, "1 own unit"),
    ]
    assert said == "strategic victory of W1, W2 and W3; winner of the game: W1 and W3 with 60 game points"


def test_other_results_are_explained():
    """Other results are explained by the numbers of both sides and a remark."""
    told, said = explained(battle("A 4 1", "B 3 1"))
    assert told["A"] == [
        ("tactical victory", 3, "lost 1 of 4 units, the enemy 1 of 3"),
        ("lost", -1, "1 own unit"),
    ]
    assert told["B"][0] == ("defeat", 0, "tactical victory of the enemy: lost 1 of 3 units, the enemy 1 of 4")
    assert said == "tactical victory of A"

    told, said = explained(battle("A 1 0 0 116", "B 2 0 0 100, C 1 0 0 0"), best=0)
    same = "lost 0 of 1 units, the enemy 0 of 3, the same share; 116 game points are more than 15 % above 100"
    assert told["A"] == [("marginal victory", 1, same)]
    assert said == "marginal victory of A"

    told, said = explained(battle("A 1 0 0 115", "B 1 0 0 100"))
    even = "lost 0 of 1 units, the enemy 0 of 1, the same share; 115 game points are not more than 15 % above 100"
    assert told == {"A": [("draw", 0, even)], "B": [("draw", 0, even)]}
    assert said == "draw"

    told, said = explained(battle("A 1 0 0 500", "B 1 1 0 0", ended="draw"))
    assert told["A"] == [("draw", 0, "agreed by the players")]
    assert said == "draw by agreement"


def test_remark_names_the_beaten_side():
    """If players of the winning side do not count, the remark names those they won against."""
    event = battle("A 1 0 1 5", "B 1 1 0 3, C 1 1 0 9")

    assert explained(event, ["B", "C"])[1] == "strategic victory of the side against B and C"
    assert explained(event, ["A", "C"])[1] == "strategic victory of A; winner of the game: A with 5 game points"


def naive(event, draw_by_agreement):
    """The points of everybody by the page's words, in exact fractions."""
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
        for side, other in ("ab", "ba"):
            if total[side] > total[other] * Fraction(115, 100):
                kind, winner = "marginal", side
    points = {p["player"]: p["kills"] - p["units_lost"] for p in participants}
    for side, mine in sides.items():
        for p in mine:
            mates = [other["score"] for other in mine if other is not p]
            if winner == side:
                points[p["player"]] += {"strategic": 4, "tactical": 3, "marginal": 1}[kind]
            alone = sum(seat["side"] == side for seat in seats) == 1
            if not alone and p["score"] > 0 and all(p["score"] >= mate * Fraction(115, 100) for mate in mates):
                points[p["player"]] += 1
    return points, kind


def nobody_left(event):
    """Whether both sides lost all their units."""
    units, lost = columns_of(event, ("side_units", "side_units_lost"))
    return units == lost


@pytest.mark.slow
def test_random_battles_match_naive_scores():
    """Scores and explanations of random battles agree with a naive computation."""
    chance, seen = random.Random(43), Counter[str]()
    for _ in range(4_000):
        event = random_battle(chance, chance.randint(2, 8))
        agreed = event["data"]["ended"] == "draw"
        points, kind = naive(event, agreed)
        assert scored(event) == points
        told, said = explained(event)
        assert said.startswith(kind)
        names = [term[0] for mine in told.values() for term in mine]
        seen["agreed draw" if agreed else kind] += 1
        seen["best"] += any(term[:2] == ("best of the side", 1) for mine in told.values() for term in mine)
        seen["not quite best"] += any(term[:2] == ("best of the side", 0) for mine in told.values() for term in mine)
        seen["negative"] += min(points.values()) < 0
        seen["a substitute"] += any("replaces" in p for p in event["data"]["participants"])
        seen["nobody left"] += not agreed and nobody_left(event)
        seen["destroyed and lost"] += "destroyed" in names and "lost" in names
    assert min(seen.values()) > 100, seen


def recorded(game_id, day, *sides, **members):
    """A league game of Blue Max."""
    event = battle(*sides, league="L1", **members)
    event["data"]["game_id"] = game_id
    return event | {"occurred_at": f"2010-02-{day:02d}T20:00:00Z"}


def test_league_table_sums_points(ledger_url):
    """The table of a league replayed under the shipped ruleset sums the points of its games.

    The league has two examples of the page and a game that does not count.
    """
    examples = [EXAMPLES["1: strategic, W1 shot down two"][0], EXAMPLES["4: both shot down, 20 % more points"][0]]
    events = [ruleset(find_shipped_text("youplay-bluemax"))]
    events += [recorded(f"g{day}", day, *sides) for day, sides in enumerate(examples, 1)]
    events.append(recorded("g3", 3, "D2 1 0 1 5", "W2 1 1 0 5", aborted=True))

    found = standings_of(stream_of(facts_of(fill(ledger_url, events)), "youplay-bluemax/L1"))
    assert [(row.rank, row.player, row.points) for row in found.rows] == [
        (1, "W1", 8), (2, "W2", 5), (3, "W3", 4), (4, "D1", -1), (4, "D2", -1), (4, "D3", -1),
    ]  # fmt: skip
    assert (found.games, found.minted, found.burned) == (2, 17, 3)
