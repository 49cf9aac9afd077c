"""Italia 2010: the source's examples, every sentence at its boundary, and a naive computation beside it."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from histories import facts_of, fill, ruleset, standings_of, stream_of
from kind_games import POWERS, columns_of, diplomacy, players_of, random_diplomacy
from own_rules import find_shipped_text, load_built_in_rule

from ratings_ledger.rules import PLAYERS_MAX, decimal, exact

RULE = load_built_in_rule("italia/1")

VARIANTS = ("flat10_pre_tss", "pct_add", "pct_mult", "flat10_second_only", "flat10_post_tss")


def scored(event, counted=None, **params):
    """The points of every counted player as exact fractions."""
    columns = columns_of(event, RULE.columns, counted)
    names = [name for name in players_of(event) if counted is None or name in counted]
    change = [-1] * len(names)
    minted = RULE.score(len(names), [0] * len(names), columns, RULE.prepare(RULE.params(**params)), (), change)
    assert minted == sum(change)
    return {name: Fraction(units, RULE.scale) for name, units in zip(names, change, strict=True)}


def points_of(*years, **params):
    """The points of the seven as decimals, in the order of POWERS."""
    found = scored(diplomacy(*years), **params)
    return [decimal(int(found[power.lower()] * RULE.scale), RULE.scale) for power in POWERS]


def explained(event, counted=None, **params):
    """(for every player (term, amount, detail), the remark)."""
    columns, bound = columns_of(event, RULE.columns, counted), RULE.params(**params)
    found = scored(event, counted, **params)
    names, n, change = list(found), len(found), [int(points * RULE.scale) for points in found.values()]
    terms = RULE.explain(n, names, [0] * n, columns, bound, change)
    assert [sum(term.amount for term in mine) for mine in terms] == change
    told = {
        name: [(term.term, exact(term.amount, RULE.scale), term.detail) for term in mine]
        for name, mine in zip(names, terms, strict=True)
    }
    return told, RULE.remark(n, names, columns, bound)


NO_BREAK = {
    "flat10_pre_tss": ["149.8", "113.4", "77", "43.4", "32.2", "21", "1"],
    "pct_add": ["149.8", "106.5", "67.5", "31.5", "19.5", "7.5", "1"],
    "pct_mult": ["149.8", "109.34", "69.3", "32.34", "20.02", "7.7", "1"],
    "flat10_second_only": ["149.8", "113.4", "63", "29.4", "18.2", "7", "1"],
    "flat10_post_tss": ["149.8", "109.4", "73", "39.4", "28.2", "17", "1"],
}


@pytest.mark.parametrize(("variant", "expected"), NO_BREAK.items())
def test_no_break_variants_score_as_computed(variant, expected):
    """Without a break, each variant gives the points that were worked out by hand."""
    assert points_of("9 9 7 5 3 1 0", no_break=variant) == expected


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_agree_on_break_or_solo(variant):
    """With a break or a solo, all variants give the same points."""
    assert points_of("13 8 6 4 2 1 0", no_break=variant) == ["198.9", "87.1", "53.3", "22.1", "11.7", "6.5", "1"]
    assert points_of("18 6 5 3 2 0 0", no_break=variant) == ["445.9", "1", "1", "1", "1", "1", "1"]


def test_default_is_the_documented_variant():
    """The default variant is the one in the documented example."""
    assert points_of("9 9 7 5 3 1 0") == NO_BREAK["flat10_pre_tss"]


def test_documented_1907_example_matches():
    """In the 1907 example, B gets the second placement and the no-break bonus.

    A (Germany) had 9 in 1906 and B (Austria) 8: A takes all of the first placement; TSS is 60 %.
    """
    told, _ = explained(diplomacy(*["5 5 5 5 5 5 4"] * 5, "8 9 4 4 3 3 3", "9 9 4 3 3 3 3"))

    assert [term[:2] for term in told["germany"]] == [
        ("centres", "36"), ("place 1", "70"), ("break", "0"), ("participation", "1"), ("TSS", "321/5"),
    ]  # fmt: skip
    assert [term[:2] for term in told["austria"]] == [
        ("centres", "36"), ("place 2", "34"), ("participation", "1"), ("no break", "10"), ("TSS", "243/5"),
    ]  # fmt: skip


# points of the first and of the second, TSS switched off
BREAKS = {
    "three more": ("12 9 7 3 2 1 0", 48 + 70 + 30 + 1, 36 + 34 + 1),
    "two more": ("11 9 7 3 2 1 1", 44 + 70 + 1, 36 + 34 + 10 + 1),
    "four more": ("12 8 7 3 2 1 1", 48 + 70 + 30 + 1, 32 + 34 + 1),
    "as many": ("9 9 7 3 3 2 1", 36 + 70 + 1, 36 + 34 + 10 + 1),
    "nobody else has any": ("3 0 0 0 0 0 0", 12 + 70 + 30 + 1, 1),
    "one more than nobody": ("1 0 0 0 0 0 0", 4 + 70 + 1, 1),
}


@pytest.mark.parametrize(("centres", "first", "second"), BREAKS.values(), ids=BREAKS)
def test_lead_of_three_is_a_break(centres, first, second):
    """A lead of at least three centres is a break and earns its bonus."""
    assert points_of(centres, tss=0)[:2] == [str(first), str(second)]


# the share that TSS adds, in percent
SURVIVORS = {
    "all seven": ("6 5 5 5 5 5 3", 60),
    "one with two": ("6 6 5 5 5 5 2", 50),
    "one with two, one with none": ("8 7 6 6 5 2 0", 40),
    "one alone": ("12 2 2 2 2 2 2", 0),
    "nobody": ("2 2 2 2 2 2 2", 0),
    "two": ("17 17 0 0 0 0 0", 10),
}


@pytest.mark.parametrize(("centres", "percentage"), SURVIVORS.values(), ids=SURVIVORS)
def test_survivors_raise_points_by_tenths(centres, percentage):
    """Each survivor with three centres, except one, adds ten per cent to the points."""
    without = scored(diplomacy(centres), tss=0)
    assert scored(diplomacy(centres)) == {
        name: points * (1 + Fraction(percentage, 100)) if points != 1 else 1 for name, points in without.items()
    }


def test_small_survivors_get_the_tss_bonus():
    # 4 + 10 + 1 and 60 % - 20 %
    """Survivors with one or two centres get the TSS bonus as well."""
    assert points_of("10 9 6 5 2 1 1")[5] == decimal(15 * 130, 100)


def test_eliminated_powers_get_exactly_one_point():
    """Eliminated powers get exactly one point, even if a placement is left for them."""
    assert points_of("17 17 0 0 0 0 0")[2:] == ["1"] * 5


SOLOS = {
    "17 are none": ("17 12 5 0 0 0 0", ["202.8", "99.6", "44.4", "1", "1", "1", "1"]),
    "18": ("18 6 5 3 2 0 0", ["445.9", "1", "1", "1", "1", "1", "1"]),
    "18 without a lead of three": ("18 16 0 0 0 0 0", ["377.3", "1", "1", "1", "1", "1", "1"]),
    "34": ("34 0 0 0 0 0 0", ["407", "1", "1", "1", "1", "1", "1"]),
    "of another power": ("1 5 5 5 0 18 0", ["1", "1", "1", "1", "1", "445.9", "1"]),
}


@pytest.mark.parametrize(("centres", "expected"), SOLOS.values(), ids=SOLOS)
def test_18_centres_are_a_solo(centres, expected):
    """From 18 centres on, a game is a solo, and all others get exactly one point."""
    assert points_of(centres) == expected


def test_power_order_breaks_complete_ties():
    """If powers are equal in all years, the order of the powers decides the placements."""
    found = points_of("4 4 4 4 4 4 4", tss=0)

    assert found == [str(16 + extra + 1) for extra in (70, 34 + 10, 16 + 10, 10, 10, 10, 10)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_participant_order_is_irrelevant(variant):
    """Neither the order nor the names of the participants change what anybody gets."""
    chance = random.Random(61)
    for _ in range(100):
        event = random_diplomacy(chance, substituted=False)
        straight = scored(event, no_break=variant)
        chance.shuffle(event["data"]["participants"])
        assert scored(event, no_break=variant) == straight
        for participant in event["data"]["participants"]:
            participant["player"] = participant["player"][::-1]
        assert scored(event, no_break=variant) == {name[::-1]: points for name, points in sorted(
            straight.items(), key=lambda entry: entry[0][::-1]
        )}  # fmt: skip


def test_uncounted_players_do_not_affect_others():
    """Leaving out players who do not count does not change the points of the others."""
    chance = random.Random(62)
    for _ in range(500):
        event = random_diplomacy(chance, substituted=chance.random() < 0.5)
        everybody = scored(event)
        counted = chance.sample(sorted(everybody), chance.randint(1, len(everybody)))
        assert scored(event, counted) == {name: everybody[name] for name in sorted(counted)}


def test_both_players_get_seat_points():
    """Both players of a seat that changed hands get its points, and the power counts once."""
    found = scored(diplomacy("9 9 7 5 3 1 0", substitute="Germany"))

    assert found["germany"] == found["zoe"] == Fraction("113.4")
    assert found["austria"] == Fraction("149.8")


def test_params_set_every_number():
    """Every number in the scoring comes from the ruleset's params."""
    params = {
        "placement": [50, 20], "per_centre": 2, "participation": 3, "break_bonus": 5, "break_margin": 1, "tss": 7,
        "tss_centres": 5, "solo": 20, "solo_bonus": 100, "eliminated": 2,
    }  # fmt: skip

    # a lead of one is a break; two powers with five centres: 7 %
    assert points_of("19 8 4 2 1 0 0", **params) == ["102.72", "41.73", "11.77", "7.49", "5.35", "2", "2"]
    assert points_of("20 8 4 2 0 0 0", **params) == ["211.86", "2", "2", "2", "2", "2", "2"]
    # no break: as many as the second
    assert points_of("9 9 4 2 1 0 0", **params, no_break_bonus=100)[1] == decimal((18 + 20 + 100 + 3) * 107, 100)


BAD = {
    "the page's": ({}, None),
    "10 % of 10 %": ({"no_break": "pct_mult"}, None),
    "4 % of 25 %": ({"no_break": "pct_mult", "no_break_bonus": 4, "tss": 25}, None),
    "7 % of 10 %": (
        {"no_break": "pct_mult", "no_break_bonus": 7},
        "params.no_break_bonus: 7 % of 10 % is finer than a hundredth of a point",
    ),
    "7 % in addition": ({"no_break": "pct_add", "no_break_bonus": 7}, None),
    "5 % of 10 %": ({"no_break": "pct_mult", "no_break_bonus": 5}, "5 % of 10 % is finer"),
}


@pytest.mark.parametrize(("params", "reason"), BAD.values(), ids=BAD)
def test_params_finer_than_hundredths_are_refused(params, reason):
    """Params that would need more than hundredths of a point are refused."""
    found = RULE.refuse_params(RULE.params(**params), PLAYERS_MAX)

    assert found is None if reason is None else reason in (found or "")


@pytest.mark.parametrize("variant", VARIANTS)
def test_accepted_percentages_are_exact(variant):
    """With any percentages that are accepted, nothing is rounded."""
    chance, tried = random.Random(63), 0
    while tried < 200:
        params = {
            "no_break": variant, "no_break_bonus": chance.choice([0, 1, 4, 5, 10, 20, 25, 50, 100]), "solo": 34,
            "tss": chance.choice([0, 1, 2, 4, 5, 10, 20, 25, 100]), "tss_centres": chance.randint(1, 5),
        }  # fmt: skip
        if RULE.refuse_params(RULE.params(**params), PLAYERS_MAX):
            continue
        event = random_diplomacy(chance, substituted=False)
        assert scored(event, **params) == naive(event, **params)
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
def test_invalid_params_are_refused(params):
    """Params of the wrong type or outside their range are refused."""
    with pytest.raises(ValueError):
        RULE.params(**params)


def test_terms_follow_the_formula_order():
    """Without a break, the explanation lists every bonus in the order of the formula."""
    told, said = explained(diplomacy("9 9 7 5 3 1 0"))

    tied = "centres of several powers are equal: the years before decide, then the power"
    alive = "5 powers have at least 3 centres: 4 times 10 %"
    assert told["austria"] == [
        ("centres", "36", "4 for each of 9"),
        ("place 1", "70", tied),
        ("break", "0", "9 centres, the second has 9; 3 more are needed"),
        ("participation", "1", "for every player with a centre"),
        ("TSS", "214/5", f"{alive} of 107"),
    ]
    assert told["italy"] == [
        ("centres", "28", "4 for each of 7"),
        ("place 3", "16", "by centres"),
        ("participation", "1", "for every player with a centre"),
        ("no break", "10", "the first has 9 centres, the second 9"),
        ("TSS", "22", f"{alive} of 55"),
    ]
    assert told["france"] == [("eliminated", "1", "no centre left")]
    assert said == "won by austria, no break: 9 centres against 9 of the second"


ORDER = {
    "pct_add": (["no break", "TSS"], "71/10", "of 71"),
    "pct_mult": (["no break", "TSS"], "71/10", "of 78.1"),
    "flat10_second_only": (["no break", "TSS"], "10", "of 81"),
    "flat10_post_tss": (["TSS", "no break"], "10", "of 71"),
}


@pytest.mark.parametrize(("variant", "order", "amount", "of"), [(name, *row) for name, row in ORDER.items()])
def test_no_break_term_follows_the_formula(variant, order, amount, of):
    """In each variant, the explanation lists the no-break bonus where the formula applies it."""
    told, _ = explained(diplomacy("9 9 7 5 3 1 0"), no_break=variant)

    by_name = {name: (points, detail) for name, points, detail in told["germany"]}
    assert [name for name, _, _ in told["germany"]][3:] == order
    assert by_name["no break"][0] == amount
    assert by_name["TSS"][1].endswith(of)


def test_explanation_gives_the_lead():
    """The explanation of a break or a solo gives the winner and the lead."""
    told, said = explained(diplomacy("13 8 6 4 2 1 0"))
    assert told["austria"][2] == ("break", "30", "13 centres, the second has 8; 3 more are needed")
    assert said == "won by austria, break: 13 centres against 8 of the second"

    told, said = explained(diplomacy("18 16 0 0 0 0 0"))
    assert told["austria"][2:5] == [
        ("break", "30", "part of a solo"),
        ("solo", "170", "18 centres, 18 are needed"),
        ("participation", "1", "for every player with a centre"),
    ]
    assert told["germany"] == [("solo of another", "1", "with 18 centres")]
    assert told["italy"] == [("eliminated", "1", "no centre left")]
    assert said == "won by austria, solo: 18 centres against 16 of the second"

    assert explained(diplomacy("13 8 6 4 2 1 0"), ["italy"])[1] == "break: 13 centres against 8 of the second"
    both = explained(diplomacy("13 8 6 4 2 1 0", substitute="Austria"))[1]
    assert both.startswith("won by austria and zoe, break")


def naive(event, no_break="flat10_pre_tss", no_break_bonus=10, tss=10, tss_centres=3, solo=18):
    """The points of everybody by the page's words, in exact fractions."""
    centres = event["data"]["centres"]
    years = sorted(centres, reverse=True)
    order = sorted(POWERS, key=lambda power: ([-centres[year][power] for year in years], POWERS.index(power)))
    final = centres[years[0]]
    lead = final[order[0]] - final[order[1]]
    survivors = sum(count >= tss_centres for count in final.values())
    factor = 1 + Fraction(tss * max(survivors - 1, 0), 100)
    tenth, points = Fraction(no_break_bonus, 100), {}
    for place, power in enumerate(order, 1):
        m = Fraction(4 * final[power] + {1: 70, 2: 34, 3: 16}.get(place, 0) + 1)
        lost = lead < 3 and place > 1
        if final[power] == 0 or (final[order[0]] >= solo and place > 1):
            points[power] = Fraction(1)
        elif final[order[0]] >= solo:
            points[power] = (m + 30 + 170) * factor
        elif place == 1:
            points[power] = (m + (30 if lead >= 3 else 0)) * factor
        elif lost and no_break == "pct_add":
            points[power] = m * (factor + tenth)
        elif lost and no_break == "pct_mult":
            points[power] = m * (1 + tenth) * factor
        elif lost and no_break == "flat10_post_tss":
            points[power] = m * factor + no_break_bonus
        elif lost and (no_break == "flat10_pre_tss" or place == 2):
            points[power] = (m + no_break_bonus) * factor
        else:
            points[power] = m * factor
    return {p["player"]: points[p["power"]] for p in sorted(event["data"]["participants"], key=lambda p: p["player"])}


@pytest.mark.slow
def test_random_games_match_a_naive_computation():
    """In random games, the scores and their explanations match a naive computation."""
    chance, seen = random.Random(64), Counter[str]()
    for _ in range(3_000):
        event = random_diplomacy(chance, substituted=chance.random() < 0.2)
        variant = chance.choice(VARIANTS)
        expected = naive(event, variant)
        assert scored(event, no_break=variant) == expected
        told, said = explained(event, no_break=variant)
        final = list(event["data"]["centres"][max(event["data"]["centres"])].values())
        kind = "solo" if "solo:" in said else "no break" if "no break" in said else "break"
        seen[kind] += 1
        seen[f"no break {variant}"] += kind == "no break"
        seen["tied first"] += sorted(final)[-1] == sorted(final)[-2]
        seen["eliminated"] += 0 in final
        seen["a substitute"] += "zoe" in told
        seen["no TSS"] += not any(term[0] == "TSS" for mine in told.values() for term in mine)
    assert min(seen.values()) > 50, seen


def recorded(game_id, day, centres):
    """A game of a tournament."""
    event = diplomacy(centres)
    event["data"] |= {"game_id": game_id, "league": "T1"}
    return event | {"occurred_at": f"2010-02-{day:02d}T20:00:00Z"}


def test_table_sums_the_rounds_exactly(ledger_url):
    """The shipped ruleset's table sums the rounds of a tournament exactly, and all points are minted.

    One game has a break and one has none.
    """
    events = [
        ruleset(find_shipped_text("italia-2010")),
        recorded("r1", 1, "9 9 7 5 3 1 0"),
        recorded("r2", 2, "1 0 2 4 6 8 13"),
    ]

    found = standings_of(stream_of(facts_of(fill(ledger_url, events)), "italia-2010/T1"))
    assert [(row.rank, row.player, decimal(row.points, RULE.scale)) for row in found.rows] == [
        (1, "france", "199.9"), (2, "austria", "156.3"), (3, "germany", "114.4"), (4, "russia", "108.1"),
        (5, "italy", "88.7"), (6, "england", "85.5"), (7, "turkey", "65.5"),
    ]  # fmt: skip
    assert (found.minted, found.burned) == (sum(row.points for row in found.rows), 0)
