"""Pairwise Elo, compared with the formula in exact arithmetic, and with published examples."""

import hashlib
import random
import runpy
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import floor
from pathlib import Path

import pytest
from own_rules import load_built_in_rule

from ratings_ledger.rules import ONE, expected, expected_scores, rounded

RULE = load_built_in_rule("pairwise-elo/1")

ROOT = Path(__file__).parent.parent.parent


def compute_changes(points, places, **params):
    """Return the changes of one game in micropoints; the arguments are in points."""
    n = len(points)
    change = [0] * n
    prepared = prepare(tuple(params.items()))
    RULE.score(
        n, [int(Decimal(p) * RULE.scale) for p in points], [places, [n] * n], prepared, expected_scores(), change
    )
    return change


@cache
def prepare(params):
    """Return the prepared constants of these parameters."""
    return RULE.prepare(RULE.params(**dict(params)))


def compute_expected(gap: int, scale: int) -> int:
    """Return the expected score of a gap in micropoints."""
    constants = prepare((("k_per_pair", "8"), ("scale", scale)))
    return expected(gap, constants[3], constants[6], expected_scores())


@cache
def compute_exact_expected(gap_points: Decimal, scale: int) -> Decimal:
    """Return the expected score by the formula itself, to 40 digits."""
    with localcontext(prec=40):
        return 1 / (1 + Decimal(10) ** (-gap_points / scale))


def test_table_matches_its_script():
    """The stored table equals the one that its script generates, and has the known hash."""
    generated = runpy.run_path(str(ROOT / "scripts" / "make_elo_table.py"))["compute_table"]()
    assert list(expected_scores()) == list(generated)
    content = (ROOT / "projections" / "expected_scores.bin").read_bytes()
    assert hashlib.sha256(content).hexdigest() == "4b3af97fdbfc303936ffa5cd0c99148bd501dd8c9e9ad86e47f7a3a6e259134d"


@pytest.mark.parametrize("scale", [400, 1, 173, 100_000])
def test_expected_scores_are_within_bound(scale):
    """Expected scores are within 1.2e-9 of the formula, and those of a pair sum to one."""
    chance = random.Random(scale)
    with localcontext() as context:
        context.prec = 40
        for _ in range(4_000):
            gap = (
                int(chance.gauss(0, 1.5 * scale) * RULE.scale)
                if chance.random() < 0.9
                else chance.randint(-(10**15), 10**15)
            )
            score = compute_expected(gap, scale)
            assert score + compute_expected(-gap, scale) == ONE
            bounded = max(min(Decimal(gap) / RULE.scale, Decimal(100 * scale)), Decimal(-100 * scale))
            assert abs(Decimal(score) / ONE - compute_exact_expected(bounded, scale)) < Decimal("1.2e-9")


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 2, 173, 400, 99_991, 100_000])
def test_expected_scores_interpolate_the_table(scale):
    """Expected scores are entries of the table, or interpolated between two entries and rounded to an integer."""
    chance, unit = random.Random(scale), scale * RULE.scale
    step = Fraction(unit, 8_192)
    for _ in range(20_000):
        at = chance.randrange(81_920)
        near = (0, unit // 8_192, unit // 16_384, chance.randrange(unit // 8_192 + 1))
        gap = max(0, min(int(at * step) + chance.choice(near) + chance.choice((-1, 0, 1)), 10 * unit - 1))
        index = gap * 8_192 // unit
        between = (expected_scores()[index] - expected_scores()[index + 1]) * (gap - index * step) / step
        assert compute_expected(-gap, scale) == expected_scores()[index] - floor(between + Fraction(1, 2)), gap


@pytest.mark.parametrize("k", [8, 64, 400])
def test_changes_are_within_a_micropoint(k):
    """Each pair's change is within a micropoint of the exact formula."""
    chance = random.Random(k)
    with localcontext() as context:
        context.prec = 40
        for _ in range(2_000):
            ratings = [Decimal(chance.randint(0, 3_000 * RULE.scale)) / RULE.scale for _ in range(2)]
            places = chance.choice([[1, 2], [2, 1], [1, 1]])
            scored = {(1, 2): Decimal(1), (2, 1): Decimal(0), (1, 1): Decimal("0.5")}[tuple(places)]
            real = k * (scored - compute_exact_expected(ratings[0] - ratings[1], 400))
            first, second = compute_changes(ratings, places, k_per_pair=k)
            assert first == -second
            assert abs(Decimal(first) / RULE.scale - real) < Decimal("0.000001")


@pytest.mark.slow
@pytest.mark.parametrize("k", [7, 8, 11, 32, 101, "5.5", "16.5", "0.55"])
def test_whole_point_rounding_is_exact(k):
    """For every whole difference, rounding to whole points equals the rounding of the exact value."""
    with localcontext() as context:
        context.prec = 40
        for gap in range(-4_100, 4_101):
            for places, scored in (([1, 2], Decimal(1)), ([1, 1], Decimal("0.5")), ([2, 1], Decimal(0))):
                exact = Decimal(k) * (scored - compute_exact_expected(Decimal(gap), 400))
                # 10^(gap/400) is rational at multiples of 400, where 40 digits may miss an exact half by a little
                nearest = exact.quantize(Decimal("1e-30")).quantize(Decimal(1), rounding=ROUND_HALF_UP)
                assert compute_changes([gap, 0], places, k_per_pair=k, rounding="pair")[0] == nearest * RULE.scale


def test_four_newcomers_match_example():
    """Four newcomers change by 12, 4, -4 and -12 points in the order of their places."""
    assert compute_changes([1000] * 4, [1, 2, 3, 4], k_per_pair=8, rounding="pair") == [
        12_000_000,
        4_000_000,
        -4_000_000,
        -12_000_000,
    ]


def test_unequal_ratings_match_example():
    """Ratings of 1200, 1000 and 1400, in the order of their places, change by 8, 5 and -13."""
    assert compute_changes([1200, 1000, 1400], [1, 2, 3], k_per_pair=8, rounding="pair") == [
        8_000_000,
        5_000_000,
        -13_000_000,
    ]


def test_shared_k_is_divided_by_opponents():
    """A total K is divided by the number of opponents."""
    assert compute_changes([1000, 1000], [1, 2], k_total=64) == [32_000_000, -32_000_000]
    assert compute_changes([1000] * 5, [1, 2, 3, 4, 5], k_total=64)[0] == 32_000_000


def test_sequential_update_mints_or_burns():
    """A sequential update changes only the player's own rating, and mints or burns the difference.

    With three newcomers and K 32 per pair, the winner has 1016 when meeting the second opponent.
    """
    first, second, third = compute_changes([1000, 1000, 1000], [1, 2, 3], k_total=64, update="sequential")
    with localcontext() as context:
        context.prec = 40
        from_1016 = (32 * (1 - compute_exact_expected(Decimal(16), 400))).quantize(Decimal("0.000001"))
        from_984 = (32 * (1 - compute_exact_expected(Decimal(-16), 400))).quantize(Decimal("0.000001"))
    assert Decimal(first) / RULE.scale == 16 + from_1016
    assert Decimal(second) / RULE.scale == -16 + from_984
    assert Decimal(third) / RULE.scale == -16 - from_1016
    assert first + second + third == second != 0


def test_halves_round_away_from_zero():
    """Halves round away from zero."""
    assert [rounded(n, 2, 1) for n in (-5, -3, -1, 0, 1, 3, 5)] == [-3, -2, -1, 0, 1, 2, 3]
    assert [rounded(n, 1, 2) for n in (-5, -3, -1, 0, 1, 3, 5)] == [-3, -2, -1, 0, 1, 2, 3]


def test_seat_order_is_irrelevant():
    """If all pairs are scored simultaneously, the order of the seats does not matter."""
    chance = random.Random(3)
    for _ in range(200):
        n = chance.randint(2, 8)
        seats = [(chance.randint(900, 1_300), chance.randint(1, n)) for _ in range(n)]
        expected_changes = compute_changes([s[0] for s in seats], [s[1] for s in seats], k_total=64)
        mixed = list(range(n))
        chance.shuffle(mixed)
        mixed_changes = compute_changes([seats[i][0] for i in mixed], [seats[i][1] for i in mixed], k_total=64)
        assert [mixed_changes[mixed.index(i)] for i in range(n)] == expected_changes


def test_extreme_ratings_are_clamped():
    """Differences beyond the table are clamped without overflow."""
    assert compute_changes([9_000_000, -9_000_000], [1, 2], k_per_pair=400) == [0, 0]
    assert compute_changes([9_000_000, -9_000_000], [2, 1], k_per_pair=400) == [-400_000_000, 400_000_000]
    assert compute_changes([9_000_000, -9_000_000], [1, 1], k_per_pair=7, rounding="pair") == [-3_000_000, 3_000_000]
    assert RULE.scale == 1_000_000
