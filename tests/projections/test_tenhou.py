"""Tenhou's rating for riichi: published examples, and a comparison with exact fractions."""

from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from kernel_calls import check_compiled_game, check_compiled_period, score_game, score_period_of_games
from own_rules import load_built_in_rule

RULE = load_built_in_rule("tenhou/1")
SCALE = RULE.scale
PARAMETER_SETS: list[dict[str, Any]] = [
    {},
    {"ties": "best"},
    {
        "base": {"2": [7, -7], "4": [90, 45, 0, -135], "5": [40, 20, 0, -20, -40]},
        "decay": "1/300",
        "least": "0.35",
        "divisor": "64/3",
    },
]


def build_params(**params: Any) -> Any:
    """Return checked parameters."""
    checked = RULE.params.model_validate(params)
    assert RULE.refuse_params(checked, 100) is None
    return checked


def build_columns(places: list[int], games: list[int] | None = None) -> list[list[int]]:
    """Return the columns of a game."""
    n = len(places)
    return [places, [n] * n, [places.count(place) for place in places], games or [0] * n, [0] * n]


def compute_changes(ratings: list[int], columns: list[list[int]], **params: Any) -> list[Decimal]:
    """Return the changes in points."""
    _, after = score_game(RULE, build_params(**params), [[rating * SCALE for rating in ratings]], columns)
    return [Decimal(new) / SCALE - old for new, old in zip(after[0], ratings, strict=True)]


@pytest.mark.parametrize(
    ("ratings", "columns", "change"),
    [
        ([2000] * 4, build_columns([4, 1, 2, 3], [400] * 4), "-6"),
        ([2000, 1400, 1500, 1500], build_columns([4, 1, 2, 3], [400] * 4), "-8"),
        ([1500] * 4, build_columns([1, 2, 3, 4]), "30"),
        ([1500] * 3, build_columns([1, 2, 3], [100] * 3), "24"),
        ([1500] * 4, build_columns([1, 1, 3, 4]), "20"),
    ],
)
def test_published_examples(ratings: list[int], columns: list[list[int]], change: str) -> None:
    """The first player's change is as published: last at 2000 after 400 games, first in a first game, and tied."""
    assert compute_changes(ratings, columns)[0] == Decimal(change)


def test_tied_players_can_all_get_the_larger_base() -> None:
    """With `best`, both players tied for first get 30; the others get their usual points."""
    assert compute_changes([1500] * 4, build_columns([1, 1, 3, 4]), ties="best") == [30, 30, -10, -30]


@pytest.mark.parametrize(
    ("places", "note"),
    [
        ([1, 2, 3, 4], ""),
        ([1, 1, 3, 4], "tied with 1 other: the mean of their bases"),
        ([1, 1, 1, 4], "tied with 2 others: the mean of their bases"),
    ],
)
def test_explanation_counts_the_tied_players(places: list[int], note: str) -> None:
    """The term of a place says with how many players it is tied."""
    params, before, columns = build_params(), [[1500 * SCALE] * 4], build_columns(places)
    _, after = score_game(RULE, params, before, columns)
    terms = RULE.explain(4, ["anna", "ben", "cleo", "dora"], before, columns, params, after)

    assert terms[0][0].note == note


def test_a_day_takes_ratings_and_games_of_its_start() -> None:
    """Two games of one day both use the rating and the number of games at its start: 0.8 * (30 + 30)."""
    games = [
        ([0, 1, 2, 3], build_columns([1, 2, 3, 4], [100, 0, 0, 0])),
        ([0, 1, 2, 3], build_columns([1, 2, 3, 4], [101, 1, 1, 1])),
    ]
    _, after = score_period_of_games(RULE, build_params(), [[1500 * SCALE] * 5], games)
    assert [Decimal(rating) / SCALE - 1500 for rating in after[0]] == [48, 20, -20, -60, 0]


def compute_points(own: int, ratings: list[int], place: int, tied: int, params: Any) -> Fraction:
    """Return the sum of the base and the correction, in exact points."""
    row = params.base[str(len(ratings))][place - 1 : place - 1 + tied]
    base = Fraction(row[0]) if params.ties == "best" else Fraction(sum(row), tied)
    return base + (Fraction(sum(ratings), len(ratings)) - own) / SCALE / Fraction(params.divisor)


def compute_multiplier(games: int, params: Any) -> Fraction:
    """Return the factor of a change after a number of games."""
    return max(1 - Fraction(params.decay) * games, Fraction(params.least))


def draw_game(random: Random, params: Any) -> list[list[int]]:
    """Draw the columns of a game."""
    assert RULE.sample is not None
    columns = RULE.sample(int(random.choice(list(params.base))), random, params)
    assert RULE.check is not None
    assert RULE.check(len(columns[0]), columns, params) is None
    return [list(column) for column in columns]


@pytest.mark.parametrize("parameters", PARAMETER_SETS)
def test_ratings_are_within_half_a_unit_of_fractions(parameters: dict[str, Any]) -> None:
    """In 1,000 random games and 100 days of 12 games, every rating is within half a unit of the formula."""
    random, params, largest = Random(1), build_params(**parameters), Fraction(0)
    for _ in range(1_000):
        columns = draw_game(random, params)
        before = [[int(random.gauss(1700, 300) * SCALE) for _ in columns[0]]]
        _, after = score_game(RULE, params, before, columns)
        for i, own in enumerate(before[0]):
            points = compute_points(own, before[0], columns[0][i], columns[2][i], params)
            error = after[0][i] - own - compute_multiplier(columns[3][i], params) * points * SCALE
            largest = max(largest, abs(error))
    for _ in range(100):
        before, games = draw_day(random, params)
        _, after = score_period_of_games(RULE, params, before, games)
        for p, own in enumerate(before[0]):
            own_games = [(seated, columns, seated.index(p)) for seated, columns in games if p in seated]
            total = sum(
                (
                    compute_points(own, [before[0][player] for player in seated], columns[0][i], columns[2][i], params)
                    for seated, columns, i in own_games
                ),
                Fraction(0),
            )
            multiplier = compute_multiplier(own_games[0][1][3][own_games[0][2]], params) if own_games else Fraction(0)
            largest = max(largest, abs(after[0][p] - own - multiplier * total * SCALE))
    assert 0 < largest <= Fraction("0.50001"), float(largest)


def draw_day(random: Random, params: Any) -> tuple[list[list[int]], list[tuple[list[int], list[list[int]]]]]:
    """Draw the ratings of ten players, and twelve games between them."""
    games = []
    for _ in range(12):
        columns = draw_game(random, params)
        games.append((sorted(random.sample(range(10), len(columns[0]))), columns))
    return [[int(random.gauss(1700, 300) * SCALE) for _ in range(10)]], games


@pytest.mark.slow
@pytest.mark.parametrize("parameters", PARAMETER_SETS)
def test_compiled_games_and_days_equal_interpreted_ones(parameters: dict[str, Any]) -> None:
    """100 random games and 20 days, compiled, equal the interpreted ones."""
    random, params = Random(2), build_params(**parameters)
    for _ in range(100):
        columns = draw_game(random, params)
        check_compiled_game(RULE, params, [[int(random.gauss(1700, 300) * SCALE) for _ in columns[0]]], columns)
    for _ in range(20):
        before, games = draw_day(random, params)
        check_compiled_period(RULE, params, before, games)


def test_extreme_ratings_count_as_a_million_points() -> None:
    """A rating beyond a million points counts as a million."""
    _, after = score_game(RULE, build_params(), [[10**16, -(10**16)] * 2], build_columns([1, 2, 3, 4]))
    assert after[0][0] == 10**16 + (30 - 25_000) * SCALE


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (build_columns([0, 0, 0, 0]), "the game has no places"),
        (build_columns([1, 2]), "there are no bases for 2 players, only for 3 or 4"),
        (
            [[1, 2, 3, 3], [3] * 4, [1, 1, 1, 1], [0] * 4, [0, 0, 1, 2]],
            "a seat changed hands and both its players would count; the rule takes one player per seat",
        ),
    ],
)
def test_games_that_cannot_be_scored_are_rejected(columns: list[list[int]], reason: str) -> None:
    """A game that the rule cannot score is rejected with the reason."""
    assert RULE.check is not None
    assert RULE.check(len(columns[0]), columns, build_params()) == reason


@pytest.mark.parametrize(
    ("params", "key"),
    [
        ({"base": {}}, "params.base"),
        ({"base": {"4": [1, 2, 3]}}, "params.base.4"),
        ({"base": {"3": [0, 30, -30]}}, "params.base.3"),
        ({"base": {"2": [100_001, 0]}}, "params.base.2"),
        ({"least": "1.5"}, "params.least"),
        ({"divisor": "0.5"}, "params.divisor"),
    ],
)
def test_parameters_out_of_range_are_rejected(params: dict[str, Any], key: str) -> None:
    """Parameters out of range are rejected under their key."""
    reason = RULE.refuse_params(RULE.params.model_validate(params), 100)
    assert reason is not None
    assert reason.partition(":")[0] == key
