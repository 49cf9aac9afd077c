"""C-Diplo and sum of squares: the sources' examples, every rule at its boundary, and a comparison with fractions."""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kernel_calls import compile_function
from kind_games import POWERS, build_diplomacy, draw_diplomacy, list_columns, list_players
from lengths import mark_many_cases
from own_rules import SHIPPED, bind_ruleset, load_built_in_rule, needs_numba

from ratings_ledger.rules import Rule, decimal

C_DIPLO = load_built_in_rule("c-diplo/1")
SQUARES = load_built_in_rule("sum-of-squares/1")


def score_event(rule: Rule, event: dict[str, Any], **params: Any) -> dict[str, Fraction]:
    """Return the points of every player as exact fractions; check that the terms of the explanation sum to them."""
    columns, names, bound = list_columns(event, rule.columns), list_players(event), rule.params(**params)
    change, before = [-1] * len(names), [0] * len(names)
    minted = rule.score(len(names), before, columns, rule.prepare(bound), (), change)
    assert minted == sum(change)
    terms = rule.explain(len(names), names, before, columns, bound, change)
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == change
    return {name: Fraction(units, rule.scale) for name, units in zip(names, change, strict=True)}


def list_points(rule: Rule, *years: str, **params: Any) -> list[str]:
    """Return the points of the seven powers as decimals, in the order of POWERS."""
    points = score_event(rule, build_diplomacy(*years), **params)
    return [decimal(int(points[power.lower()] * rule.scale), rule.scale) for power in POWERS]


# (centres, points of C-Diplo)
C_DIPLO_GAMES = {
    "two with 17": ("17 17 0 0 0 0 0", "44 44 2.4 2.4 2.4 2.4 2.4"),
    "the database's first example": ("4 0 9 7 7 3 4", "5 1 48 18.5 18.5 4 5"),
    "the database's second example": ("5 9 4 5 3 1 7", "9.5 48 5 9.5 4 2 22"),
    "the least that tops the board": ("6 5 5 5 5 4 4", "45 11.25 11.25 11.25 11.25 5 5"),
    "the most without a solo": ("17 9 8 0 0 0 0", "56 24 16 1 1 1 1"),
    "all level": ("4 4 4 4 4 4 4", "13.428571 13.428571 13.428571 13.428571 13.428571 13.428571 13.428571"),
    "a solo": ("18 16 0 0 0 0 0", "100 0 0 0 0 0 0"),
    "more than a solo": ("34 0 0 0 0 0 0", "100 0 0 0 0 0 0"),
}


@pytest.mark.parametrize(("centres", "points"), C_DIPLO_GAMES.values(), ids=C_DIPLO_GAMES)
def test_c_diplo_gives_published_points(centres: str, points: str) -> None:
    """C-Diplo gives the points of the sources' examples and rules."""
    assert list_points(C_DIPLO, centres) == points.split()


def test_earlier_years_do_not_break_ties() -> None:
    """Two powers with equal centres share the places, even if one had more centres a year earlier."""
    assert list_points(C_DIPLO, "10 5 5 5 4 3 2", "9 9 5 5 3 2 1")[:2] == ["36", "36"]
    assert list_points(SQUARES, "10 5 5 5 4 3 2", "6 6 6 6 6 2 2")[:2] == ["19.148936", "19.148936"]


# (centres, points of sum of squares)
SQUARES_GAMES = {
    "the blog's example": ("12 9 8 5 0 0 0", "45.859873 25.796178 20.382166 7.961783 0 0 0"),
    "two with 17": ("17 17 0 0 0 0 0", "50 50 0 0 0 0 0"),
    "three level": ("1 1 1 0 0 0 0", "33.333333 33.333333 33.333333 0 0 0 0"),
    "two thirds, rounded up": ("2 1 1 0 0 0 0", "66.666667 16.666667 16.666667 0 0 0 0"),
    "a solo": ("18 16 0 0 0 0 0", "100 0 0 0 0 0 0"),
}


@pytest.mark.parametrize(("centres", "points"), SQUARES_GAMES.values(), ids=SQUARES_GAMES)
def test_sum_of_squares_gives_published_points(centres: str, points: str) -> None:
    """Sum of squares gives the points of the sources' examples, to the millionth."""
    assert list_points(SQUARES, centres) == points.split()


def test_game_without_centres_is_rejected_by_sum_of_squares() -> None:
    """Sum of squares rejects a game without centres; C-Diplo shares the places in it."""
    columns = list_columns(build_diplomacy("0 0 0 0 0 0 0"), SQUARES.columns)
    assert SQUARES.check is not None
    assert SQUARES.check(7, columns, SQUARES.params()) == ("no power holds a centre at the end, so there are no shares")
    assert list_points(C_DIPLO, "0 0 0 0 0 0 0") == ["9.428571"] * 7


def test_both_players_of_a_seat_get_its_points() -> None:
    """A leaver and a substitute both get the points of their power, and other players get no less."""
    event = build_diplomacy("17 17 0 0 0 0 0", substitute="Austria")
    points = score_event(C_DIPLO, event)
    assert points["austria"] == points["zoe"] == points["germany"] == 44
    assert points["france"] == Fraction(12, 5)
    assert score_event(SQUARES, event)["zoe"] == 50


def compute_c_diplo(centres: list[int]) -> list[Fraction]:
    """Return the points of C-Diplo by sorting the powers and averaging the awards of equal ones."""
    if max(centres) >= 18:
        return [Fraction(100 * (own >= 18)) for own in centres]
    order = sorted(centres, reverse=True)
    awards = dict(enumerate((38, 14, 7)))
    shares = {
        own: [Fraction(awards.get(place, 0)) for place, count in enumerate(order) if count == own] for own in centres
    }
    return [1 + own + sum(shares[own]) / len(shares[own]) for own in centres]


@pytest.mark.parametrize("count", mark_many_cases(200, 2_000))
def test_random_games_agree_with_fractions(count: int) -> None:
    """In random games C-Diplo is exact, and sum of squares is within half a millionth of the exact share."""
    chance = random.Random(58)
    for _ in range(count):
        event = draw_diplomacy(chance, substituted=False)
        last = event["data"]["centres"][max(event["data"]["centres"])]
        centres = [last[power] for power in POWERS]
        points = score_event(C_DIPLO, event)
        assert [points[power.lower()] for power in POWERS] == compute_c_diplo(centres)
        if max(centres) >= 18 or not any(centres):
            continue
        squares = sum(own * own for own in centres)
        shares = score_event(SQUARES, event)
        for power, own in zip(POWERS, centres, strict=True):
            assert abs(shares[power.lower()] - Fraction(100 * own * own, squares)) <= Fraction(1, 2_000_000)
        assert abs(sum(shares.values()) - 100) <= Fraction(35, 10_000_000)


@pytest.mark.slow
@needs_numba
@pytest.mark.parametrize("rule", [C_DIPLO, SQUARES], ids=lambda rule: rule.id)
def test_compiled_points_equal_interpreted_ones(rule: Rule) -> None:
    """A rule compiled by numba gives the same points as interpreted."""
    kernel = compile_function(rule.score)
    constants, chance = np.array(rule.prepare(rule.params()), dtype=np.int64), random.Random(7)
    for _ in range(200):
        event = draw_diplomacy(chance, substituted=chance.random() < 0.3)
        columns, n = list_columns(event, rule.columns), len(list_players(event))
        if rule.check is not None and rule.check(n, columns, rule.params()):
            continue
        plain, fast = [0] * n, np.zeros(n, dtype=np.int64)
        minted = rule.score(n, [0] * n, columns, rule.prepare(rule.params()), (), plain)
        table = np.zeros(0, dtype=np.int64)
        assert kernel(n, np.zeros(n, dtype=np.int64), np.array(columns), constants, table, fast) == minted
        assert fast.tolist() == plain


@pytest.mark.parametrize(("name", "rule"), [("diplomacy-1", C_DIPLO), ("sum-of-squares-1", SQUARES)])
def test_shipped_ruleset_names_its_rule(name: str, rule: Rule) -> None:
    """The shipped rulesets can be published, and state every parameter of their rules that a game depends on."""
    version = bind_ruleset((SHIPPED / f"{name}.toml").read_text(encoding="utf-8"))
    assert version.rule == rule
    assert {*rule.params.model_fields} - {*version.ruleset.params} == {
        "start",
        "min_games",
        "carry_over",
        "active_games",
        "active_days",
    }


def explain_game(rule: Rule, *years: str) -> tuple[dict[str, list[tuple[str, str, str]]], str]:
    """Return ({power: [(term, points, detail)]}, the remark)."""
    event = build_diplomacy(*years)
    columns, names, bound = list_columns(event, rule.columns), list_players(event), rule.params()
    change = [0] * len(names)
    rule.score(len(names), change[:], columns, rule.prepare(bound), (), change)
    terms = rule.explain(len(names), names, [0] * len(names), columns, bound, change)
    assert rule.remark is not None
    return {
        name: [(term.term, decimal(term.amount, rule.scale), term.detail) for term in player_terms]
        for name, player_terms in zip(names, terms, strict=True)
    }, rule.remark(len(names), names, columns, bound)


def test_explanations_show_the_formula() -> None:
    """The terms have the summands of the formula, and the remark the end of the game."""
    terms, remark = explain_game(C_DIPLO, "17 17 0 0 0 0 0")
    assert remark == "no solo: 17 centres against the second's 17"
    assert terms["austria"] == [
        ("taking part", "1", "for every player"),
        ("centres", "17", "1 for each of 17"),
        ("place 1", "26", "38 + 14 of places 1 and 2, shared by 2"),
    ]
    assert terms["italy"][-1] == ("place 3", "1.4", "7 of places 3 to 7, shared by 5")
    assert explain_game(C_DIPLO, "9 8 7 5 5 0 0")[0]["england"][-1] == (
        "place 4",
        "0",
        "0 of places 4 and 5, shared by 2",
    )

    terms, remark = explain_game(SQUARES, "12 9 8 5 0 0 0")
    assert remark == "no solo: the sum of the squares is 144 + 81 + 64 + 25 = 314"
    assert terms["germany"] == [("share", "25.796178", "100 * 9 * 9 / 314")]

    for rule in (C_DIPLO, SQUARES):
        terms, remark = explain_game(rule, "18 16 0 0 0 0 0")
        assert remark.startswith("solo: 18 centres")
        assert terms["austria"] == [("solo", "100", "18 centres, 18 are needed")]
        assert terms["germany"] == [("another player's solo", "0", "with 18 centres")]
