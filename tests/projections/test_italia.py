"""Italia 2010: the source's examples, every rule at its boundary, and a comparison with a naive computation."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from histories import build_ruleset_event, build_stream, fill, load_facts, rank_stream
from kind_games import POWERS, build_diplomacy, draw_diplomacy, list_columns, list_players
from own_rules import find_shipped_text, load_built_in_rule

from ratings_ledger.rules import PLAYERS_MAX, decimal, exact

RULE = load_built_in_rule("italia/1")

VARIANTS = ("flat10_pre_tss", "pct_add", "pct_mult", "flat10_second_only", "flat10_post_tss")


def score_event(event, counted=None, **params):
    """Return the points of every counted player as exact fractions."""
    columns = list_columns(event, RULE.columns, counted)
    names = [name for name in list_players(event) if counted is None or name in counted]
    change = [-1] * len(names)
    minted = RULE.score(len(names), [0] * len(names), columns, RULE.prepare(RULE.params(**params)), (), change)
    assert minted == sum(change)
    return {name: Fraction(units, RULE.scale) for name, units in zip(names, change, strict=True)}


def list_points(*years, **params):
    """Return the points of the seven powers as decimals, in the order of POWERS."""
    points = score_event(build_diplomacy(*years), **params)
    return [decimal(int(points[power.lower()] * RULE.scale), RULE.scale) for power in POWERS]


def explain_event(event, counted=None, **params):
    """Return ({player: [(term, amount, detail)]}, the remark), and check that the terms add up."""
    columns, bound = list_columns(event, RULE.columns, counted), RULE.params(**params)
    points_by_player = score_event(event, counted, **params)
    names, n, change = (
        list(points_by_player),
        len(points_by_player),
        [int(points * RULE.scale) for points in points_by_player.values()],
    )
    terms = RULE.explain(n, names, [0] * n, columns, bound, change)
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == change
    terms_by_player = {
        name: [(term.term, exact(term.amount, RULE.scale), term.detail) for term in player_terms]
        for name, player_terms in zip(names, terms, strict=True)
    }
    return terms_by_player, RULE.remark(n, names, columns, bound)


POINTS_WITHOUT_BREAK = {
    "flat10_pre_tss": ["149.8", "113.4", "77", "43.4", "32.2", "21", "1"],
    "pct_add": ["149.8", "106.5", "67.5", "31.5", "19.5", "7.5", "1"],
    "pct_mult": ["149.8", "109.34", "69.3", "32.34", "20.02", "7.7", "1"],
    "flat10_second_only": ["149.8", "113.4", "63", "29.4", "18.2", "7", "1"],
    "flat10_post_tss": ["149.8", "109.4", "73", "39.4", "28.2", "17", "1"],
}


@pytest.mark.parametrize(("variant", "expected"), POINTS_WITHOUT_BREAK.items())
def test_no_break_variants_score_as_computed(variant, expected):
    """Without a break, each variant gives the points computed by hand."""
    assert list_points("9 9 7 5 3 1 0", no_break=variant) == expected


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_agree_on_break_or_solo(variant):
    """With a break or a solo, all variants give the same points."""
    assert list_points("13 8 6 4 2 1 0", no_break=variant) == ["198.9", "87.1", "53.3", "22.1", "11.7", "6.5", "1"]
    assert list_points("18 6 5 3 2 0 0", no_break=variant) == ["445.9", "1", "1", "1", "1", "1", "1"]


def test_default_is_the_documented_variant():
    """The default variant is the one in the documented example."""
    assert list_points("9 9 7 5 3 1 0") == POINTS_WITHOUT_BREAK["flat10_pre_tss"]


def test_documented_1907_example_matches():
    """In the 1907 example, Austria gets the second placement and the no-break bonus.

    In 1906 Germany had 9 centres and Austria 8, so Germany takes the whole first placement; the TSS is 60 %.
    """
    terms, _ = explain_event(build_diplomacy(*["5 5 5 5 5 5 4"] * 5, "8 9 4 4 3 3 3", "9 9 4 3 3 3 3"))

    assert [term[:2] for term in terms["germany"]] == [
        ("centres", "36"),
        ("place 1", "70"),
        ("break", "0"),
        ("participation", "1"),
        ("TSS", "321/5"),
    ]
    assert [term[:2] for term in terms["austria"]] == [
        ("centres", "36"),
        ("place 2", "34"),
        ("participation", "1"),
        ("no break", "10"),
        ("TSS", "243/5"),
    ]


# (centres, points of the first power, points of the second); TSS is switched off
BREAKS = {
    "three more": ("12 9 7 3 2 1 0", 48 + 70 + 30 + 1, 36 + 34 + 1),
    "two more": ("11 9 7 3 2 1 1", 44 + 70 + 1, 36 + 34 + 10 + 1),
    "four more": ("12 8 7 3 2 1 1", 48 + 70 + 30 + 1, 32 + 34 + 1),
    "as many": ("9 9 7 3 3 2 1", 36 + 70 + 1, 36 + 34 + 10 + 1),
    "no other power has centres": ("3 0 0 0 0 0 0", 12 + 70 + 30 + 1, 1),
    "one more than powers without centres": ("1 0 0 0 0 0 0", 4 + 70 + 1, 1),
}


@pytest.mark.parametrize(("centres", "first", "second"), BREAKS.values(), ids=BREAKS)
def test_lead_of_three_is_a_break(centres, first, second):
    """A lead of at least three centres is a break and earns its bonus."""
    assert list_points(centres, tss=0)[:2] == [str(first), str(second)]


# (centres, percentage that TSS adds)
SURVIVORS = {
    "all seven": ("6 5 5 5 5 5 3", 60),
    "one with two": ("6 6 5 5 5 5 2", 50),
    "one with two, one with none": ("8 7 6 6 5 2 0", 40),
    "one alone": ("12 2 2 2 2 2 2", 0),
    "no survivor with three": ("2 2 2 2 2 2 2", 0),
    "two": ("17 17 0 0 0 0 0", 10),
}


@pytest.mark.parametrize(("centres", "percentage"), SURVIVORS.values(), ids=SURVIVORS)
def test_survivors_raise_points_by_tenths(centres, percentage):
    """Each survivor with three centres, except the first, adds ten per cent to all points."""
    points_without_tss = score_event(build_diplomacy(centres), tss=0)
    assert score_event(build_diplomacy(centres)) == {
        name: points * (1 + Fraction(percentage, 100)) if points != 1 else 1
        for name, points in points_without_tss.items()
    }


def test_small_survivors_get_the_tss_bonus():
    """Survivors with one or two centres get the TSS bonus as well."""
    # 4 + 10 + 1 points; four powers with three centres add 30 %
    assert list_points("10 9 6 5 2 1 1")[5] == decimal(15 * 130, 100)


def test_eliminated_powers_get_exactly_one_point():
    """Eliminated powers get exactly one point, even if they have a placement."""
    assert list_points("17 17 0 0 0 0 0")[2:] == ["1"] * 5


SOLOS = {
    "17 are no solo": ("17 12 5 0 0 0 0", ["202.8", "99.6", "44.4", "1", "1", "1", "1"]),
    "18": ("18 6 5 3 2 0 0", ["445.9", "1", "1", "1", "1", "1", "1"]),
    "18 without a lead of three": ("18 16 0 0 0 0 0", ["377.3", "1", "1", "1", "1", "1", "1"]),
    "34": ("34 0 0 0 0 0 0", ["407", "1", "1", "1", "1", "1", "1"]),
    "of another power": ("1 5 5 5 0 18 0", ["1", "1", "1", "1", "1", "445.9", "1"]),
}


@pytest.mark.parametrize(("centres", "expected"), SOLOS.values(), ids=SOLOS)
def test_solo_begins_at_18_centres(centres, expected):
    """With 18 centres or more, a game is a solo, and all other powers get exactly one point."""
    assert list_points(centres) == expected


def test_power_order_breaks_complete_ties():
    """If powers are equal in all years, the order of the powers decides the placements."""
    points = list_points("4 4 4 4 4 4 4", tss=0)

    assert points == [str(16 + extra + 1) for extra in (70, 34 + 10, 16 + 10, 10, 10, 10, 10)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_participant_order_is_irrelevant(variant):
    """The order and the names of the participants do not change any points."""
    chance = random.Random(61)
    for _ in range(100):
        event = draw_diplomacy(chance, substituted=False)
        expected = score_event(event, no_break=variant)
        chance.shuffle(event["data"]["participants"])
        assert score_event(event, no_break=variant) == expected
        for participant in event["data"]["participants"]:
            participant["player"] = participant["player"][::-1]
        assert score_event(event, no_break=variant) == {
            name[::-1]: points for name, points in sorted(expected.items(), key=lambda entry: entry[0][::-1])
        }


def test_uncounted_players_do_not_affect_others():
    """Uncounted players do not change the points of the counted players."""
    chance = random.Random(62)
    for _ in range(500):
        event = draw_diplomacy(chance, substituted=chance.random() < 0.5)
        all_points = score_event(event)
        counted = chance.sample(sorted(all_points), chance.randint(1, len(all_points)))
        assert score_event(event, counted) == {name: all_points[name] for name in sorted(counted)}


def test_both_players_get_seat_points():
    """Both players of a seat that changed hands get its points, and the power counts once."""
    points = score_event(build_diplomacy("9 9 7 5 3 1 0", substitute="Germany"))

    assert points["germany"] == points["zoe"] == Fraction("113.4")
    assert points["austria"] == Fraction("149.8")


def test_params_set_every_number():
    """Every number in the scoring comes from the ruleset's params."""
    params = {
        "placement": [50, 20],
        "per_centre": 2,
        "participation": 3,
        "break_bonus": 5,
        "break_margin": 1,
        "tss": 7,
        "tss_centres": 5,
        "solo": 20,
        "solo_bonus": 100,
        "eliminated": 2,
    }

    # a lead of one is a break; two powers with five centres: 7 %
    assert list_points("19 8 4 2 1 0 0", **params) == ["102.72", "41.73", "11.77", "7.49", "5.35", "2", "2"]
    assert list_points("20 8 4 2 0 0 0", **params) == ["211.86", "2", "2", "2", "2", "2", "2"]
    # no break: as many as the second
    assert list_points("9 9 4 2 1 0 0", **params, no_break_bonus=100)[1] == decimal((18 + 20 + 100 + 3) * 107, 100)


PARAMS_AND_REASONS = {
    "those of the page": ({}, None),
    "10 % of 10 %": ({"no_break": "pct_mult"}, None),
    "4 % of 25 %": ({"no_break": "pct_mult", "no_break_bonus": 4, "tss": 25}, None),
    "7 % of 10 %": (
        {"no_break": "pct_mult", "no_break_bonus": 7},
        "params.no_break_bonus: 7 % of 10 % is finer than a hundredth of a point; "
        "choose percentages whose product is a multiple of 100",
    ),
    "7 % in addition": ({"no_break": "pct_add", "no_break_bonus": 7}, None),
    "5 % of 10 %": ({"no_break": "pct_mult", "no_break_bonus": 5}, "5 % of 10 % is finer"),
}


@pytest.mark.parametrize(("params", "reason"), PARAMS_AND_REASONS.values(), ids=PARAMS_AND_REASONS)
def test_params_finer_than_hundredths_are_rejected(params, reason):
    """Parameters that need more precision than hundredths of a point are rejected."""
    refusal = RULE.refuse_params(RULE.params(**params), PLAYERS_MAX)

    assert refusal is None if reason is None else reason in (refusal or "")


@pytest.mark.parametrize("variant", VARIANTS)
def test_accepted_percentages_are_exact(variant):
    """Accepted percentages never need rounding."""
    chance, tried = random.Random(63), 0
    while tried < 200:
        params = {
            "no_break": variant,
            "no_break_bonus": chance.choice([0, 1, 4, 5, 10, 20, 25, 50, 100]),
            "solo": 34,
            "tss": chance.choice([0, 1, 2, 4, 5, 10, 20, 25, 100]),
            "tss_centres": chance.randint(1, 5),
        }
        if RULE.refuse_params(RULE.params(**params), PLAYERS_MAX):
            continue
        event = draw_diplomacy(chance, substituted=False)
        assert score_event(event, **params) == score_naively(event, **params)
        tried += 1


@pytest.mark.parametrize(
    "params",
    [
        {"placement": []},
        {"placement": [1] * 8},
        {"placement": [-1]},
        {"placement": "70"},
        {"per_centre": "4"},
        {"break_margin": 0},
        {"no_break": "flat10"},
        {"no_break_bonus": -1},
        {"tss": 1_001},
        {"tss_centres": 0},
        {"solo": 35},
        {"eliminated": 10_001},
        {"best_of": -1},
    ],
)
def test_invalid_params_are_rejected(params):
    """Parameters of the wrong type or out of range are rejected."""
    with pytest.raises(ValueError):
        RULE.params(**params)


def test_terms_follow_the_formula_order():
    """Without a break, the explanation lists the terms in the order of the formula."""
    terms, remark = explain_event(build_diplomacy("9 9 7 5 3 1 0"))

    tied = "tied on centres; decided by the centres of earlier years, then by the order of powers"
    survivors = "5 powers have at least 3 centres: 4 times 10 %"
    assert terms["austria"] == [
        ("centres", "36", "4 for each of 9"),
        ("place 1", "70", tied),
        ("break", "0", "9 centres against the second's 9; a lead of 3 is needed"),
        ("participation", "1", "for every player with a centre"),
        ("TSS", "214/5", f"{survivors} of 107"),
    ]
    assert terms["italy"] == [
        ("centres", "28", "4 for each of 7"),
        ("place 3", "16", "by centres"),
        ("participation", "1", "for every player with a centre"),
        ("no break", "10", "the first has 9 centres, the second 9"),
        ("TSS", "22", f"{survivors} of 55"),
    ]
    assert terms["france"] == [("eliminated", "1", "no centre left")]
    assert remark == "won by austria, no break: 9 centres against the second's 9"


TERMS_BY_VARIANT = {
    "pct_add": (["no break", "TSS"], "71/10", "of 71"),
    "pct_mult": (["no break", "TSS"], "71/10", "of 78.1"),
    "flat10_second_only": (["no break", "TSS"], "10", "of 81"),
    "flat10_post_tss": (["TSS", "no break"], "10", "of 71"),
}


@pytest.mark.parametrize(
    ("variant", "order", "amount", "tss_base"), [(name, *row) for name, row in TERMS_BY_VARIANT.items()]
)
def test_no_break_term_follows_the_formula(variant, order, amount, tss_base):
    """In each variant, the explanation lists the no-break bonus where the formula applies it."""
    terms, _ = explain_event(build_diplomacy("9 9 7 5 3 1 0"), no_break=variant)

    by_name = {name: (points, detail) for name, points, detail in terms["germany"]}
    assert [name for name, _, _ in terms["germany"]][3:] == order
    assert by_name["no break"][0] == amount
    assert by_name["TSS"][1].endswith(tss_base)


def test_explanation_gives_the_lead():
    """The explanation of a break or a solo gives the winner and the lead."""
    terms, remark = explain_event(build_diplomacy("13 8 6 4 2 1 0"))
    assert terms["austria"][2] == ("break", "30", "13 centres against the second's 8; a lead of 3 is needed")
    assert remark == "won by austria, break: 13 centres against the second's 8"

    terms, remark = explain_event(build_diplomacy("18 16 0 0 0 0 0"))
    assert terms["austria"][2:5] == [
        ("break", "30", "part of a solo"),
        ("solo", "170", "18 centres, 18 are needed"),
        ("participation", "1", "for every player with a centre"),
    ]
    assert terms["germany"] == [("another player's solo", "1", "with 18 centres")]
    assert terms["italy"] == [("eliminated", "1", "no centre left")]
    assert remark == "won by austria, solo: 18 centres against the second's 16"

    assert explain_event(build_diplomacy("13 8 6 4 2 1 0"), ["italy"])[1] == "break: 13 centres against the second's 8"
    remark_of_shared_seat = explain_event(build_diplomacy("13 8 6 4 2 1 0", substitute="Austria"))[1]
    assert remark_of_shared_seat.startswith("won by austria and zoe, break")


def score_naively(event, no_break="flat10_pre_tss", no_break_bonus=10, tss=10, tss_centres=3, solo=18):
    """Return every player's points by the wording of the page, in exact fractions."""
    centres = event["data"]["centres"]
    years = sorted(centres, reverse=True)
    order = sorted(POWERS, key=lambda power: ([-centres[year][power] for year in years], POWERS.index(power)))
    final = centres[years[0]]
    lead = final[order[0]] - final[order[1]]
    survivors = sum(count >= tss_centres for count in final.values())
    factor = 1 + Fraction(tss * max(survivors - 1, 0), 100)
    no_break_share, points = Fraction(no_break_bonus, 100), {}
    for place, power in enumerate(order, 1):
        base = Fraction(4 * final[power] + {1: 70, 2: 34, 3: 16}.get(place, 0) + 1)
        is_beaten_without_break = lead < 3 and place > 1
        if final[power] == 0 or (final[order[0]] >= solo and place > 1):
            points[power] = Fraction(1)
        elif final[order[0]] >= solo:
            points[power] = (base + 30 + 170) * factor
        elif place == 1:
            points[power] = (base + (30 if lead >= 3 else 0)) * factor
        elif is_beaten_without_break and no_break == "pct_add":
            points[power] = base * (factor + no_break_share)
        elif is_beaten_without_break and no_break == "pct_mult":
            points[power] = base * (1 + no_break_share) * factor
        elif is_beaten_without_break and no_break == "flat10_post_tss":
            points[power] = base * factor + no_break_bonus
        elif is_beaten_without_break and (no_break == "flat10_pre_tss" or place == 2):
            points[power] = (base + no_break_bonus) * factor
        else:
            points[power] = base * factor
    return {p["player"]: points[p["power"]] for p in sorted(event["data"]["participants"], key=lambda p: p["player"])}


@pytest.mark.slow
def test_random_games_match_a_naive_computation():
    """The points of random games agree with a naive computation, and their explanations add up."""
    chance, cases = random.Random(64), Counter[str]()
    for _ in range(3_000):
        event = draw_diplomacy(chance, substituted=chance.random() < 0.2)
        variant = chance.choice(VARIANTS)
        expected = score_naively(event, variant)
        assert score_event(event, no_break=variant) == expected
        terms, remark = explain_event(event, no_break=variant)
        final = list(event["data"]["centres"][max(event["data"]["centres"])].values())
        kind = "solo" if "solo:" in remark else "no break" if "no break" in remark else "break"
        cases[kind] += 1
        cases[f"no break {variant}"] += kind == "no break"
        cases["tied first"] += sorted(final)[-1] == sorted(final)[-2]
        cases["eliminated"] += 0 in final
        cases["a substitute"] += "zoe" in terms
        cases["no TSS"] += not any(term[0] == "TSS" for player_terms in terms.values() for term in player_terms)
    assert min(cases.values()) > 50, cases


def build_tournament_game(game_id, day, centres):
    """Return a game of a tournament."""
    event = build_diplomacy(centres)
    event["data"] |= {"game_id": game_id, "league": "T1"}
    return event | {"occurred_at": f"2010-02-{day:02d}T20:00:00Z"}


def test_table_sums_the_rounds_exactly(ledger_url):
    """Under the shipped ruleset, a table sums the rounds of a tournament exactly, and all points are minted.

    One game has a break, the other has none.
    """
    events = [
        build_ruleset_event(find_shipped_text("italia-2010")),
        build_tournament_game("r1", 1, "9 9 7 5 3 1 0"),
        build_tournament_game("r2", 2, "1 0 2 4 6 8 13"),
    ]

    ranking = rank_stream(build_stream(load_facts(fill(ledger_url, events)), "italia-2010/T1"))
    assert [(row.rank, row.player, decimal(row.points, RULE.scale)) for row in ranking.rows] == [
        (1, "france", "199.9"),
        (2, "austria", "156.3"),
        (3, "germany", "114.4"),
        (4, "russia", "108.1"),
        (5, "italy", "88.7"),
        (6, "england", "85.5"),
        (7, "turkey", "65.5"),
    ]
    assert (ranking.minted, ranking.burned) == (sum(row.points for row in ranking.rows), 0)
