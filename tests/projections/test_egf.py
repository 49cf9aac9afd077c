"""The European Go Federation's rating: a published example, and an oracle in `decimal` with 40 digits."""

from decimal import Decimal, localcontext
from random import Random

import pytest
from kernel_calls import (
    check_compiled_game,
    check_compiled_period,
    record_rounding,
    score_game,
    score_period_of_games,
)
from lengths import mark_many_cases
from own_rules import load_built_in_rule

from ratings_ledger.rules import MISSING, ONE

RULE = load_built_in_rule("egf-gor/1")
SCALE = RULE.scale
PARAMS = RULE.params()


def build_columns(places: list[int], stones: list[int] | None = None, weight: int = MISSING) -> list[list[int]]:
    """Return the columns of a game."""
    return [places, stones or [MISSING, MISSING], [weight, weight]]


def compute_ratings(ratings: list[int], columns: list[list[int]]) -> list[Decimal]:
    """Return the ratings after a game, in points."""
    _, after = score_game(RULE, PARAMS, [[rating * SCALE for rating in ratings]], columns)
    return [Decimal(rating) / SCALE for rating in after[0]]


def test_published_example() -> None:
    """A win of 2100 over 2100 gives 2109.306, and the loser gets the bonus, too."""
    assert compute_ratings([2100, 2100], build_columns([1, 2])) == [Decimal("2109.306246"), Decimal("2091.725310")]


def test_handicap_raises_only_the_expected_score() -> None:
    """Two stones are worth 150 points: 1950 with two stones against 2100 has the expected score 1/2."""
    assert RULE.chance is not None
    before, constants = [[1950 * SCALE, 2100 * SCALE]], RULE.prepare(PARAMS)
    assert RULE.chance(0, 1, before, build_columns([1, 2], [2, 0]), constants, ()) == ONE // 2
    assert compute_ratings([1950, 2100], build_columns([1, 1], [2, 0])) == [
        Decimal("1950.877502"),
        Decimal("2100.515778"),
    ]


def test_weight_applies_to_the_whole_change() -> None:
    """A weight of one half halves the change of 9.306246 points."""
    assert compute_ratings([2100, 2100], build_columns([1, 2], weight=50))[0] == Decimal("2104.653123")


def test_tournament_uses_ratings_of_its_start() -> None:
    """Two wins of 2100 against 2100 at one event give twice the change of one."""
    _, after = score_period_of_games(
        RULE, PARAMS, [[2100 * SCALE] * 3], [([0, 1], build_columns([1, 2])), ([0, 2], build_columns([1, 2]))]
    )
    assert after[0] == [2118_612_492, 2091_725_310, 2091_725_310]


def compute_change(own: int, opponent: int, columns: list[list[int]], i: int) -> Decimal:
    """Return a player's change in points by the formulas, in 40 digits."""
    place, stones, weight = columns
    r = Decimal(own) / SCALE

    def compute_beta(rating: int, stones_taken: int) -> Decimal:
        return (
            -7
            * (3300 - Decimal(rating) / SCALE - (100 * (stones_taken - Decimal("0.5")) if stones_taken > 0 else 0)).ln()
        )

    con = ((3300 - r) / 200) ** Decimal("1.6")
    bonus = (1 + ((2300 - r) / 80).exp()).ln() / 5
    expected = 1 / (1 + (compute_beta(opponent, stones[1 - i]) - compute_beta(own, stones[i])).exp())
    result = Decimal(1 + (place[i] < place[1 - i]) - (place[i] > place[1 - i])) / 2
    share = Decimal(1) if weight[i] == MISSING else Decimal(weight[i]) / 100
    return share * (con * (result - expected) + bonus)


def draw_game(random: Random) -> tuple[list[int], list[list[int]]]:
    """Draw two ratings, and the columns of a game between them."""
    assert RULE.sample is not None
    ratings = [int(random.uniform(-900, 2300) * SCALE) for _ in range(2)]
    return ratings, [list(column) for column in RULE.sample(2, random, PARAMS)]


@pytest.mark.parametrize("count", mark_many_cases(200, 2_000))
def test_ratings_are_within_half_a_unit_of_the_oracle(count: int) -> None:
    """In random games and 50 tournaments, every rating is within half a unit of the formulas."""
    random, largest = Random(1), Decimal(0)
    with localcontext(prec=40):
        for _ in range(count):
            ratings, columns = draw_game(random)
            _, after = score_game(RULE, PARAMS, [ratings], columns)
            for i in range(2):
                change = compute_change(ratings[i], ratings[1 - i], columns, i)
                largest = max(largest, abs(after[0][i] - ratings[i] - change * SCALE))
        for _ in range(50):
            before, games = draw_tournament(random)
            _, after = score_period_of_games(RULE, PARAMS, before, games)
            for p, own in enumerate(before[0]):
                own_games = [(pair, columns, pair.index(p)) for pair, columns in games if p in pair]
                change = sum(
                    (compute_change(own, before[0][pair[1 - i]], columns, i) for pair, columns, i in own_games),
                    Decimal(0),
                )
                largest = max(largest, abs(after[0][p] - own - change * SCALE))
    assert 0 < largest < Decimal("0.50001"), largest


@pytest.mark.parametrize("count", mark_many_cases(200, 2_000))
def test_unrounded_points_are_within_1e_10_of_the_oracle(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In random games of full weight, a player's gain before rounding is within 1e-10 points of the exact one."""
    random, largest, unrounded = Random(3), Decimal(0), record_rounding(monkeypatch, RULE)
    constants = RULE.prepare(PARAMS)
    with localcontext(prec=40):
        for _ in range(count):
            (own, opponent), (places, stones, _) = draw_game(random)
            columns = build_columns(places, stones)
            unrounded.clear()
            RULE.score(2, [[own, opponent]], columns, constants, (), [[own, opponent]])
            points, _ = unrounded
            largest = max(largest, abs(Decimal(points) - compute_change(own, opponent, columns, 0)))
    assert 0 < largest < Decimal("1e-10"), largest


def draw_tournament(random: Random) -> tuple[list[list[int]], list[tuple[list[int], list[list[int]]]]]:
    """Draw the ratings of eight players, and twelve games between them."""
    games = [(sorted(random.sample(range(8), 2)), draw_game(random)[1]) for _ in range(12)]
    return [[int(random.uniform(-900, 2300) * SCALE) for _ in range(8)]], games


@pytest.mark.slow
def test_compiled_games_and_tournaments_equal_interpreted_ones() -> None:
    """200 random games and 20 tournaments, compiled, equal the interpreted ones."""
    random = Random(2)
    for _ in range(200):
        ratings, columns = draw_game(random)
        check_compiled_game(RULE, PARAMS, [ratings], columns)
    for _ in range(20):
        check_compiled_period(RULE, PARAMS, *draw_tournament(random))


def test_extreme_ratings_can_be_rated() -> None:
    """Extreme ratings can be scored, and leave each player a unit of a chance."""
    assert RULE.chance is not None
    huge, constants = [[10**16, -(10**16)]], RULE.prepare(PARAMS)
    for places in ([1, 2], [2, 1], [1, 1]):
        score_game(RULE, PARAMS, huge, build_columns(places, [9, 0]))
    chances = [RULE.chance(i, 1 - i, huge, build_columns([1, 2]), constants, ()) for i in range(2)]
    assert chances == [ONE - 1, 1]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([[1, 2, 3], [0] * 3, [MISSING] * 3], "the game has 3 players; the rule scores games of 2"),
        (build_columns([0, 0]), "the game has no places"),
        (build_columns([1, 2], [10, 0]), "numbers.handicap is 10; it must be from 0 to 9"),
        (
            build_columns([1, 2], [2, 2]),
            "both players have a handicap; record it only for the player who took the stones",
        ),
        ([[1, 2], [0, 0], [50, 100]], "the players of a game have different weights"),
        (build_columns([1, 2], weight=-1), "numbers.weight is -1; it must be from 0 to 1000"),
    ],
)
def test_games_that_cannot_be_scored_are_rejected(columns: list[list[int]], reason: str) -> None:
    """A game that the rule cannot score is rejected with the reason."""
    assert RULE.check is not None
    assert RULE.check(len(columns[0]), columns, PARAMS) == reason


def test_few_games_are_provisional() -> None:
    """Ratings are provisional below the number of games in the parameters."""
    assert RULE.provisional is not None
    params = RULE.params(provisional_games=10)
    assert [RULE.provisional((0,), games, params) for games in (9, 10)] == [True, False]
