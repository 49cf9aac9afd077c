"""Placement points of a championship: examples computed by hand, and random games compared with an oracle."""

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from kernel_calls import compile_function
from lengths import mark_many_cases
from own_rules import load_built_in_rule, needs_numba
from pydantic import ValidationError

from ratings_ledger.rules import LEAVERS, MISSING, SUBSTITUTE, decimal

RULE = load_built_in_rule("placement-points/2")
NUMBERS = ("fastest_lap", "pole", "guest", "drivers", "other_points", "percent")
POINTS = {"points": [8, 6, 4, 3, 2]}
LEFT = LEAVERS[0]


def make_board(*participants):
    """Return the columns of a game from (place, status, numbers) of each participant; seats at a place are counted."""
    places = [place for place, *_ in participants]
    status = [kind for _, kind, _ in participants]
    tied = [
        sum(other_place == place and kind != SUBSTITUTE for other_place, kind in zip(places, status, strict=True))
        for place in places
    ]
    return [
        places,
        status,
        tied,
        *([numbers.get(name, MISSING) for *_, numbers in participants] for name in NUMBERS),
    ]


def score_game(columns, values=POINTS):
    """Return all players' points as fractions; check that the explanation sums to them, and that all are minted."""
    params = RULE.params.model_validate(values)
    n = len(columns[0])
    assert RULE.refuse_params(params, n) is None
    assert RULE.check(n, columns, params) is None
    before, after = [[1_000] * n], [[-99] * n]
    minted = RULE.score(n, before, columns, RULE.prepare(params), (), after)
    changes = [new - old for new, old in zip(after[0], before[0], strict=True)]
    assert minted == sum(changes)
    terms = RULE.explain(n, [f"p{i}" for i in range(n)], before, columns, params, after)
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == changes
    return [Fraction(units, RULE.scale) for units in changes]


def describe_terms(columns, values=POINTS):
    """Return the terms of each player: (term, amount, detail)."""
    params = RULE.params.model_validate(values)
    n = len(columns[0])
    terms = RULE.explain(n, ["x"] * n, [[0] * n], columns, params, [[0] * n])
    return [
        [(term.term, decimal(term.amount, RULE.scale), term.detail) for term in player_terms] for player_terms in terms
    ]


FINISH = [(place, 0, {}) for place in range(1, 8)]
EXAMPLES = {
    "by place, nothing beyond the last": (make_board(*FINISH), POINTS, [8, 6, 4, 3, 2, 0, 0]),
    "the place of a leaver gives no points": (make_board(FINISH[0], (2, LEFT, {}), FINISH[2]), POINTS, [8, 0, 4]),
    "a guest holds a place, and the others move up": (
        make_board(FINISH[0], (2, 0, {"guest": 1, "fastest_lap": 1}), FINISH[2]),
        POINTS | {"bonus": {"fastest_lap": 1}},
        [8, 0, 6],
    ),
    "a shared seat": (make_board(FINISH[0], (2, LEFT, {}), (2, SUBSTITUTE, {}), (3, 0, {})), POINTS, [8, 3, 3, 4]),
    "a shared seat gives none": (
        make_board(FINISH[0], (2, LEFT, {}), (2, SUBSTITUTE, {}), (3, 0, {})),
        POINTS | {"shared": "none"}, [8, 0, 0, 4],
    ),
    "three in a car, and another car besides": (
        make_board(FINISH[0], (2, LEFT, {"drivers": 3}), (2, SUBSTITUTE, {"drivers": 3, "other_points": 1120}),
              (3, 0, {"drivers": 3}), (4, LEFT, {"other_points": 2800})),
        POINTS, [8, 2, 2 + Fraction(4, 3), Fraction(4, 3), Fraction(10, 3)],
    ),
    "the fastest lap, shared by seven": (
        make_board(*[(place, 0, {"fastest_lap": 1}) for place in range(1, 8)]), POINTS | {"bonus": {"fastest_lap": 1}},
        [value + Fraction(1, 7) for value in (8, 6, 4, 3, 2, 0, 0)],
    ),
    "the fastest lap of a leaver": (
        make_board(FINISH[0], FINISH[1], (3, LEFT, {"fastest_lap": 1})),
        POINTS | {"bonus": {"fastest_lap": 1}}, [8, 6, 1],
    ),
    "bonuses for two places only": (
        make_board((1, 0, {"pole": 1}), FINISH[1], (3, 0, {"fastest_lap": 1})),
        POINTS | {"bonus": {"fastest_lap": 1, "pole": "1/2"}, "bonus_places": 2}, [Fraction(17, 2), 6, 4],
    ),
    "half points": (make_board(*[(p, 0, {"percent": 50}) for p in (1, 2, 3, 4, 5)]), {"points": [9, 6, 4, 3, 2]},
                    [Fraction(9, 2), 3, 2, Fraction(3, 2), 1]),
    "double points": (make_board((1, 0, {"percent": 200}), (2, 0, {"percent": 200})), POINTS, [16, 12]),
    "tied players share the points of the places": (
        make_board((1, 0, {}), (2, 0, {}), (2, 0, {}), (4, 0, {})), POINTS, [8, 5, 5, 3],
    ),
    "a tie at the end of the points": (make_board(*FINISH[:4], (5, 0, {}), (5, 0, {})), POINTS, [8, 6, 4, 3, 1, 1]),
    "a guest among those tied": (make_board((1, 0, {"guest": 1}), (1, 0, {}), (3, 0, {})), POINTS, [0, 8, 6]),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "values", "points"), EXAMPLES.values(), ids=EXAMPLES)
def test_examples_by_hand(columns, values, points):
    """Every example gives the points computed by hand."""
    assert score_game(columns, values) == points


def test_explanations_give_value_of_place_and_reasons():
    """An explanation gives the value of a place, and every reason that changes it."""
    columns = make_board(
        (1, 0, {"guest": 1, "pole": 1}),
        (2, LEFT, {"percent": 50}),
        (2, SUBSTITUTE, {"percent": 50, "fastest_lap": 1}),
        (3, 0, {"percent": 50, "pole": 1, "other_points": 420}),
        (4, LEFT, {}),
    )
    values = POINTS | {"bonus": {"fastest_lap": 1, "pole": 1}, "bonus_places": 1}

    assert describe_terms(columns, values) == [
        [("place 1", "0", "a guest; those behind move up"), ("pole", "0", "no bonus for a guest")],
        [("place 2", "2", "place 1 without guests; shared by 2; 50 percent")],
        [
            ("place 2", "2", "place 1 without guests; shared by 2; 50 percent"),
            ("fastest lap", "0.5", "worth 1; 50 percent"),
        ],
        [
            ("place 3", "3", "place 2 without guests; 50 percent"),
            ("pole", "0", "no bonus for this place"),
            ("another seat", "0.5", "numbers.other_points"),
        ],
        [("place 4", "0", "left the game; no points")],
    ]
    assert describe_terms(make_board((1, 0, {}), (2, 0, {}), (2, 0, {})))[:2] == [
        [("place 1", "8", "worth 8")],
        [("place 2", "5", "tied: the mean of places 2 to 3")],
    ]
    assert describe_terms(make_board(*FINISH))[5] == [("place 6", "0", "worth nothing")]
    shared = describe_terms(make_board((1, 0, {"pole": 1}), (2, 0, {"pole": 1})), POINTS | {"bonus": {"pole": "1/2"}})
    assert shared[1][1] == ("pole", "0.25", "worth 1/2; shared by 2")
    none = describe_terms(make_board((1, LEFT, {}), (1, SUBSTITUTE, {}), (2, 0, {})), POINTS | {"shared": "none"})
    assert none[0] == [("place 1", "0", "shared by 2, so without points")]


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ({"fastest_lap": 2}, "numbers.fastest_lap is 2; it must be from 0 to 1"),
        ({"pole": -1}, "numbers.pole is -1"),
        ({"guest": 7}, "numbers.guest is 7"),
        ({"drivers": 0}, "numbers.drivers is 0; it must be from 1 to 100"),
        ({"other_points": -1}, "numbers.other_points is -1; it must be from 0 to 840,000,000"),
        ({"percent": 0}, "numbers.percent is 0; it must be from 1 to 1,000"),
    ],
)
def test_numbers_out_of_range_are_rejected(numbers, reason):
    """A game with a number out of range cannot be scored, and the reason names the number."""
    params = RULE.params.model_validate(POINTS)

    assert reason in RULE.check(2, make_board((1, 0, {}), (2, 0, numbers)), params)


def test_tie_of_a_shared_seat_needs_the_drivers():
    """If a shared seat is tied with another, `drivers` must say how many players shared it."""
    seats = [(1, LEFT, {}), (1, SUBSTITUTE, {}), (1, 0, {})]
    params = RULE.params.model_validate(POINTS)

    assert "record the number of its players as numbers.drivers" in RULE.check(3, make_board(*seats), params)
    known = [(place, status, {"drivers": 2 - (status == 0)}) for place, status, _ in seats]
    assert score_game(make_board(*known)) == [Fraction(7, 2), Fraction(7, 2), 7]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"points": ["1/11"]}, "params.points: 1/11 is finer than 1/840 of a point"),
        ({"points": [1_000_001]}, "params.points: must be at most 1,000,000 points, not 1000001"),
        ({"points": [1], "bonus": {"pole": "1/9"}}, "params.bonus.pole: 1/9 is finer"),
        ({"points": [1], "substitution": "leaver"}, "params.substitution"),
    ],
)
def test_inexact_params_are_rejected(values, reason):
    """Inexact parameters, and a substitution that ignores one player of a seat, are rejected with their key."""
    assert reason in (RULE.refuse_params(RULE.params.model_validate(values), 34) or "")


@pytest.mark.parametrize(
    "values", [{}, {"points": []}, {"points": [0]}, {"points": [1.5]}, {"points": [1], "bonus": {"lap": 1}}]
)
def test_params_of_wrong_kind_are_rejected(values):
    """Parameters of the wrong kind are rejected."""
    with pytest.raises(ValidationError):
        RULE.params.model_validate(values)


def score_by_seats(columns, values):
    """Return every player's points, computed from the seats of the game instead of its columns."""
    participants = [
        dict(zip(("place", "status", "tied", *NUMBERS), row, strict=True)) for row in zip(*columns, strict=True)
    ]
    value = [Fraction(amount) for amount in values["points"]]
    cars = []
    for place in sorted({participant["place"] for participant in participants}):
        at_place = [participant for participant in participants if participant["place"] == place]
        seats = [participant for participant in at_place if participant["status"] != SUBSTITUTE]
        cars.append((at_place, [seat for seat in seats if seat["guest"] != 1]))
    points_by_id = {id(participant): Fraction(0) for participant in participants}
    ahead, points_place = 0, {}
    for at_place, rated in cars:
        first = at_place[0]["place"] - ahead
        shares = [value[slot - 1] for slot in range(first, first + len(rated)) if slot <= len(value)]
        is_shared = any(participant["status"] == SUBSTITUTE for participant in at_place)
        for participant in at_place:
            is_in = participant["status"] not in LEAVERS or is_shared
            points_place[id(participant)] = first if is_in else 10**6
            drivers = participant["drivers"]
            if drivers == MISSING:
                drivers = len(at_place) if participant["tied"] == 1 else 1
            if is_in and participant["guest"] != 1 and (drivers == 1 or values.get("shared") != "none"):
                points_by_id[id(participant)] = sum(shares, Fraction(0)) / max(len(rated), 1) / drivers
        ahead += sum(participant["guest"] == 1 for participant in at_place if participant["status"] != SUBSTITUTE)
    for name, worth in values.get("bonus", {}).items():
        winners = [participant for participant in participants if participant[name] == 1 and participant["guest"] != 1]
        for participant in winners:
            if points_place[id(participant)] <= values.get("bonus_places", 10**7):
                points_by_id[id(participant)] += Fraction(worth) / len(winners)
    percent = participants[0]["percent"]
    return [
        points_by_id[id(participant)] * (1 if percent == MISSING else Fraction(percent, 100))
        + (0 if participant["other_points"] == MISSING else Fraction(participant["other_points"], 840))
        for participant in participants
    ]


def draw_columns(chance):
    """Draw a game with shared seats, ties, guests, leavers and flags."""
    participants, place = [], 0
    percent = chance.choice([{}, {}, {"percent": 50}, {"percent": 200}])
    while len(participants) < chance.randint(2, 14):
        tied = chance.choice([1, 1, 1, 1, 2, 3])
        for _ in range(tied):
            numbers = percent | {
                name: chance.choice([0, 1]) for name in ("fastest_lap", "pole", "guest") if chance.random() < 0.2
            }
            numbers |= {"other_points": chance.choice([0, 420, 1120])} if chance.random() < 0.1 else {}
            shares = tied == 1 and chance.random() < 0.3
            status = LEFT if shares or chance.random() < 0.15 else 0
            numbers |= {"drivers": chance.choice([2, 3])} if shares and chance.random() < 0.3 else {}
            participants.append((place + 1, status, numbers))
            if shares:
                substitute_numbers = {
                    name: numbers[name] for name in ("guest", "drivers", "percent") if name in numbers
                }
                participants.append((place + 1, SUBSTITUTE, substitute_numbers))
        place += tied
    chance.shuffle(participants)
    return make_board(*participants)


VARIANTS = [
    POINTS,
    {"points": [25, 18, 15, 12, 10, 8, 6, 4, 2, 1], "bonus": {"fastest_lap": 1}, "bonus_places": 10},
    {"points": [9, 6, 4, 3, 2, 1], "shared": "none", "bonus": {"pole": "1/2", "fastest_lap": "3/7"}},
    {"points": ["7/2", 1]},
]


@pytest.mark.parametrize("count", mark_many_cases(300, 3_000))
def test_random_games_match_the_oracle(count):
    """Random games agree with the oracle exactly."""
    chance, cases = random.Random(1950), Counter()
    for _ in range(count):
        columns, values = draw_columns(chance), chance.choice(VARIANTS)
        for points, expected in zip(score_game(columns, values), score_by_seats(columns, values), strict=True):
            assert points == expected, (columns, values)
            cases["nothing"] += expected == 0
            cases["fraction"] += expected.denominator > 1
        cases["shared"] += SUBSTITUTE in columns[1]
        cases["guest"] += 1 in columns[5]
        cases["half"] += 50 in columns[8]
    assert min(cases.values()) > 50, cases


def test_sample_games_can_be_scored():
    """All sample games of the rule pass its check and can be scored."""
    chance, params = random.Random(3), RULE.params.model_validate(POINTS)
    games = [(n, RULE.sample(n, chance, params)) for n in (2, 3, 8, 20) for _ in range(50)]

    assert all(RULE.check(n, columns, params) is None for n, columns in games)
    for _, columns in games:
        score_game(columns)


@pytest.mark.slow
@needs_numba
def test_compiled_kernel_equals_interpreted_kernel():
    """The compiled kernel has the same results as the interpreted one."""
    kernel = compile_function(RULE.score)
    chance = random.Random(2018)
    for _ in range(300):
        columns, values = draw_columns(chance), chance.choice(VARIANTS)
        n, constants = len(columns[0]), RULE.prepare(RULE.params.model_validate(values))
        before, after = [[chance.randrange(10**6) for _ in range(n)]], [[0] * n]
        minted = RULE.score(n, before, columns, constants, (), after)
        arrays = [np.array(numbers, dtype=np.int64) for numbers in (before, columns, constants, (), after)]
        compiled = arrays[4] * 0
        assert kernel(n, *arrays[:4], compiled) == minted
        assert compiled.tolist() == after
