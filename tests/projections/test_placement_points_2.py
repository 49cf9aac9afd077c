"""Placement points of a championship: examples by hand, and random games beside an oracle in fractions."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from lengths import mark_many_cases
from pydantic import ValidationError

from ratings_ledger.projections import compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.rules.placement_points_2 import RULE
from ratings_ledger.rules import LEAVERS, MISSING, SUBSTITUTE, decimal

NUMBERS = ("fastest_lap", "pole", "guest", "drivers", "other_points", "percent")
POINTS = {"points": [8, 6, 4, 3, 2]}
LEFT = LEAVERS[0]


def board(*participants):
    """Columns of a game from (place, status, numbers) of each participant; seats at a place are counted."""
    places = [place for place, *_ in participants]
    status = [kind for _, kind, _ in participants]
    tied = [
        sum(other == place and kind != SUBSTITUTE for other, kind in zip(places, status, strict=True))
        for place in places
    ]
    return [
        places,
        status,
        tied,
        *([numbers.get(name, MISSING) for *_, numbers in participants] for name in NUMBERS),
    ]


def scored(columns, values=POINTS):
    """What everybody got, as fractions; the explanation sums to it, and all of it is minted."""
    params = RULE.params.model_validate(values)
    n = len(columns[0])
    assert RULE.refuse_params(params, n) is None
    assert RULE.check(n, columns, params) is None
    before, after = [[1_000] * n], [[-99] * n]
    minted = RULE.score(n, before, columns, RULE.prepare(params), (), after)
    gained = [new - old for new, old in zip(after[0], before[0], strict=True)]
    assert minted == sum(gained)
    terms = RULE.explain(n, [f"p{i}" for i in range(n)], before, columns, params, after)
    assert [sum(term.amount for term in mine) for mine in terms] == gained
    return [Fraction(units, RULE.scale) for units in gained]


def described(columns, values=POINTS):
    """The terms of everybody: what, how much, and why."""
    params = RULE.params.model_validate(values)
    n = len(columns[0])
    terms = RULE.explain(n, ["x"] * n, [[0] * n], columns, params, [[0] * n])
    return [[(term.term, decimal(term.amount, RULE.scale), term.detail) for term in mine] for mine in terms]


FINISH = [(place, 0, {}) for place in range(1, 8)]
EXAMPLES = {
    "by place, nothing beyond the last": (board(*FINISH), POINTS, [8, 6, 4, 3, 2, 0, 0]),
    "a place whose holder left goes to nobody": (board(FINISH[0], (2, LEFT, {}), FINISH[2]), POINTS, [8, 0, 4]),
    "a guest holds a place, and the others move up": (
        board(FINISH[0], (2, 0, {"guest": 1, "fastest_lap": 1}), FINISH[2]), POINTS | {"bonus": {"fastest_lap": 1}},
        [8, 0, 6],
    ),
    "a shared seat": (board(FINISH[0], (2, LEFT, {}), (2, SUBSTITUTE, {}), (3, 0, {})), POINTS, [8, 3, 3, 4]),
    "a shared seat gives none": (
        board(FINISH[0], (2, LEFT, {}), (2, SUBSTITUTE, {}), (3, 0, {})), POINTS | {"shared": "none"}, [8, 0, 0, 4],
    ),
    "three in a car, and another car besides": (
        board(FINISH[0], (2, LEFT, {"drivers": 3}), (2, SUBSTITUTE, {"drivers": 3, "other_points": 1120}),
              (3, 0, {"drivers": 3}), (4, LEFT, {"other_points": 2800})),
        POINTS, [8, 2, 2 + Fraction(4, 3), Fraction(4, 3), Fraction(10, 3)],
    ),
    "the fastest lap, shared by seven": (
        board(*[(place, 0, {"fastest_lap": 1}) for place in range(1, 8)]), POINTS | {"bonus": {"fastest_lap": 1}},
        [value + Fraction(1, 7) for value in (8, 6, 4, 3, 2, 0, 0)],
    ),
    "the fastest lap of somebody who left": (
        board(FINISH[0], FINISH[1], (3, LEFT, {"fastest_lap": 1})), POINTS | {"bonus": {"fastest_lap": 1}}, [8, 6, 1],
    ),
    "bonuses for two places only": (
        board((1, 0, {"pole": 1}), FINISH[1], (3, 0, {"fastest_lap": 1})),
        POINTS | {"bonus": {"fastest_lap": 1, "pole": "1/2"}, "bonus_places": 2}, [Fraction(17, 2), 6, 4],
    ),
    "half points": (board(*[(p, 0, {"percent": 50}) for p in (1, 2, 3, 4, 5)]), {"points": [9, 6, 4, 3, 2]},
                    [Fraction(9, 2), 3, 2, Fraction(3, 2), 1]),
    "double points": (board((1, 0, {"percent": 200}), (2, 0, {"percent": 200})), POINTS, [16, 12]),
    "tied players share the points of the places": (
        board((1, 0, {}), (2, 0, {}), (2, 0, {}), (4, 0, {})), POINTS, [8, 5, 5, 3],
    ),
    "a tie at the end of the points": (board(*FINISH[:4], (5, 0, {}), (5, 0, {})), POINTS, [8, 6, 4, 3, 1, 1]),
    "a guest among those tied": (board((1, 0, {"guest": 1}), (1, 0, {}), (3, 0, {})), POINTS, [0, 8, 6]),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "values", "points"), EXAMPLES.values(), ids=EXAMPLES)
def test_examples_by_hand(columns, values, points):
    """Every case gives the points computed by hand."""
    assert scored(columns, values) == points


def test_explanations_say_why():
    """An explanation says what a place is worth, and what changed that."""
    columns = board(
        (1, 0, {"guest": 1}), (2, LEFT, {"percent": 50}), (2, SUBSTITUTE, {"percent": 50, "fastest_lap": 1}),
        (3, 0, {"percent": 50, "pole": 1, "other_points": 420}), (4, LEFT, {}),
    )  # fmt: skip
    values = POINTS | {"bonus": {"fastest_lap": 1, "pole": 1}, "bonus_places": 1}

    assert described(columns, values) == [
        [("place 1", "0", "a guest; those behind move up")],
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
    assert described(board((1, 0, {}), (2, 0, {}), (2, 0, {})))[:2] == [
        [("place 1", "8", "worth 8")],
        [("place 2", "5", "tied: the mean of places 2 to 3")],
    ]
    assert described(board(*FINISH))[5] == [("place 6", "0", "worth nothing")]
    shared = described(board((1, 0, {"pole": 1}), (2, 0, {"pole": 1})), POINTS | {"bonus": {"pole": "1/2"}})
    assert shared[1][1] == ("pole", "0.25", "worth 1/2; shared by 2")
    none = described(board((1, LEFT, {}), (1, SUBSTITUTE, {}), (2, 0, {})), POINTS | {"shared": "none"})
    assert none[0] == [("place 1", "0", "shared by 2, so without points")]


@pytest.mark.parametrize(("numbers", "reason"), [
    ({"fastest_lap": 2}, "numbers.fastest_lap is 2; it must be from 0 to 1"),
    ({"pole": -1}, "numbers.pole is -1"),
    ({"guest": 7}, "numbers.guest is 7"),
    ({"drivers": 0}, "numbers.drivers is 0; it must be from 1 to 100"),
    ({"other_points": -1}, "numbers.other_points is -1; it must be from 0 to 840,000,000"),
    ({"percent": 0}, "numbers.percent is 0; it must be from 1 to 1,000"),
])  # fmt: skip
def test_numbers_out_of_range_are_refused(numbers, reason):
    """A game with a number that means nothing cannot be scored, and the reason names it."""
    params = RULE.params.model_validate(POINTS)

    assert reason in RULE.check(2, board((1, 0, {}), (2, 0, numbers)), params)


def test_tie_of_a_shared_seat_needs_the_drivers():
    """Where a shared seat is tied with another, nobody can tell who shared it unless `drivers` says so."""
    seats = [(1, LEFT, {}), (1, SUBSTITUTE, {}), (1, 0, {})]
    params = RULE.params.model_validate(POINTS)

    assert "record the number of its players as numbers.drivers" in RULE.check(3, board(*seats), params)
    known = [(place, status, {"drivers": 2 - (status == 0)}) for place, status, _ in seats]
    assert scored(board(*known)) == [Fraction(7, 2), Fraction(7, 2), 7]


@pytest.mark.parametrize(("values", "reason"), [
    ({"points": ["1/11"]}, "params.points: 1/11 is finer than 1/840 of a point"),
    ({"points": [1_000_001]}, "params.points: must be at most 1,000,000 points, not 1000001"),
    ({"points": [1], "bonus": {"pole": "1/9"}}, "params.bonus.pole: 1/9 is finer"),
    ({"points": [1], "substitution": "leaver"}, "params.substitution"),
])  # fmt: skip
def test_unusable_params_are_refused(values, reason):
    """Parameters that cannot be exact, or give nobody a seat's points, are refused with the key."""
    assert reason in (RULE.refuse_params(RULE.params.model_validate(values), 34) or "")


@pytest.mark.parametrize(
    "values", [{}, {"points": []}, {"points": [0]}, {"points": [1.5]}, {"points": [1], "bonus": {"lap": 1}}]
)
def test_wrong_params_are_refused(values):
    """Parameters of the wrong kind are refused."""
    with pytest.raises(ValidationError):
        RULE.params.model_validate(values)


def oracle(columns, values):
    """What everybody gets, computed from the seats of the game instead of its columns."""
    people = [dict(zip(("place", "status", "tied", *NUMBERS), row, strict=True)) for row in zip(*columns, strict=True)]
    value = [Fraction(points) for points in values["points"]]
    cars = []
    for place in sorted({person["place"] for person in people}):
        here = [person for person in people if person["place"] == place]
        seats = [person for person in here if person["status"] != SUBSTITUTE]
        cars.append((here, [seat for seat in seats if seat["guest"] != 1]))
    gained = {id(person): Fraction(0) for person in people}
    ahead, points_place = 0, {}
    for here, rated in cars:
        first = here[0]["place"] - ahead
        shares = [value[slot - 1] for slot in range(first, first + len(rated)) if slot <= len(value)]
        taken = any(person["status"] == SUBSTITUTE for person in here)
        for person in here:
            is_in = person["status"] not in LEAVERS or taken
            points_place[id(person)] = first if is_in else 10**6
            drivers = person["drivers"]
            if drivers == MISSING:
                drivers = len(here) if person["tied"] == 1 else 1
            if is_in and person["guest"] != 1 and (drivers == 1 or values.get("shared") != "none"):
                gained[id(person)] = sum(shares, Fraction(0)) / max(len(rated), 1) / drivers
        ahead += sum(person["guest"] == 1 for person in here if person["status"] != SUBSTITUTE)
    for name, worth in values.get("bonus", {}).items():
        winners = [person for person in people if person[name] == 1 and person["guest"] != 1]
        for person in winners:
            if points_place[id(person)] <= values.get("bonus_places", 10**7):
                gained[id(person)] += Fraction(worth) / len(winners)
    percent = people[0]["percent"]
    return [
        gained[id(person)] * (1 if percent == MISSING else Fraction(percent, 100))
        + (0 if person["other_points"] == MISSING else Fraction(person["other_points"], 840))
        for person in people
    ]


def random_board(chance):
    """A random game: shared seats, ties, guests, leavers, flags."""
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
                same = {name: numbers[name] for name in ("guest", "drivers", "percent") if name in numbers}
                participants.append((place + 1, SUBSTITUTE, same))
        place += tied
    chance.shuffle(participants)
    return board(*participants)


VARIANTS = [
    POINTS,
    {"points": [25, 18, 15, 12, 10, 8, 6, 4, 2, 1], "bonus": {"fastest_lap": 1}, "bonus_places": 10},
    {"points": [9, 6, 4, 3, 2, 1], "shared": "none", "bonus": {"pole": "1/2", "fastest_lap": "3/7"}},
    {"points": ["7/2", 1]},
]


@pytest.mark.parametrize("count", mark_many_cases(300, 3_000))
def test_random_games_match_the_oracle(count):
    """Random games agree with the oracle exactly."""
    chance, seen = random.Random(1950), Counter()
    for _ in range(count):
        columns, values = random_board(chance), chance.choice(VARIANTS)
        for got, exact in zip(scored(columns, values), oracle(columns, values), strict=True):
            assert got == exact, (columns, values)
            seen["nothing"] += exact == 0
            seen["fraction"] += exact.denominator > 1
        seen["shared"] += SUBSTITUTE in columns[1]
        seen["guest"] += 1 in columns[5]
        seen["half"] += 50 in columns[8]
    assert min(seen.values()) > 50, seen


def test_sample_games_can_be_scored():
    """Most of the rule's own sample games pass its check, so that a trial scores them."""
    chance, params = random.Random(3), RULE.params.model_validate(POINTS)
    games = [(n, RULE.sample(n, chance, params)) for n in (2, 3, 8, 20) for _ in range(50)]

    assert all(RULE.check(n, columns, params) is None for n, columns in games)
    for _, columns in games:
        scored(columns)


@pytest.mark.slow
@pytest.mark.skipif(not compiling.is_available(), reason="the extra fast is not installed")
def test_compiled_kernel_gives_the_same():
    """The compiled kernel gives the same numbers as the interpreted one."""
    from numba import njit

    kernel = njit(compiling.StandaloneCopier({}).copy(RULE.score, {}))
    chance = random.Random(2018)
    for _ in range(300):
        columns, values = random_board(chance), chance.choice(VARIANTS)
        n, constants = len(columns[0]), RULE.prepare(RULE.params.model_validate(values))
        before, after = [[chance.randrange(10**6) for _ in range(n)]], [[0] * n]
        minted = RULE.score(n, before, columns, constants, (), after)
        arrays = [np.array(numbers, dtype=np.int64) for numbers in (before, columns, constants, (), after)]
        compiled = arrays[4] * 0
        assert kernel(n, *arrays[:4], compiled) == minted
        assert compiled.tolist() == after
