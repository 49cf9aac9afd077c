"""Glicko and Glicko-2: compared with 40-digit vectors, with an oracle in decimals, and with their pages."""

import json
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import make_glicko_vectors as oracle
import pytest
from kernel_calls import call_compiled, check_compiled_game, score_game
from lengths import mark_many_cases
from own_rules import load_built_in_rule
from pydantic import ValidationError

from ratings_ledger.projections.rules import glicko_1, glicko_2
from ratings_ledger.rules import LEAVERS, MISSING, ONE, SUBSTITUTE, Rule, results_of_game

VECTORS = Path(__file__).parents[1] / "golden" / "glicko.json"
RULES = ["glicko-1/1", "glicko-2/1"]
MODULES: dict[str, Any] = {"glicko-1/1": glicko_1, "glicko-2/1": glicko_2}
# the error of rounding, and of the doubles
ROUNDING_ERROR_MAX = Decimal("0.5001")

Columns = list[list[int]]


def build_params(rule: Rule, **params: Any) -> Any:
    """Return parameters of a rule without a floor for deviations, because the oracle has none."""
    floor = {"deviation_floor": 0} if rule.name == "glicko-1" else {}
    return rule.params.model_validate(floor | params)


def to_units(rule: Rule, state: oracle.State) -> tuple[Decimal, ...]:
    """Return a state of the oracle in units."""
    return tuple(number * column.scale for number, column in zip(state, rule.state, strict=True))


def lay_out_period(
    rule: Rule, own_state: oracle.State, results: list[oracle.Result]
) -> tuple[Columns, list[int], Columns]:
    """Return states, offsets and rows of a period in which the first player has these results, each against a new
    player.
    """
    states = [own_state, *((rating, spread, Decimal("0.06"))[: rule.width] for rating, spread, _ in results)]
    before = [[int(to_units(rule, state)[column]) for state in states] for column in range(rule.width)]
    count = len(results)
    places = [{Decimal(0): (2, 1), Decimal(1): (1, 2)}.get(scored, (1, 1)) for _, _, scored in results]
    rows = [
        [*range(1, count + 1), *[0] * count],
        [*range(count), *range(count)],
        [place for place, _ in places] + [other_place for _, other_place in places],
        [MISSING] * (2 * count),
        [0] * (2 * count),
        [other_place for _, other_place in places] + [place for place, _ in places],
        [MISSING] * (2 * count),
        [0] * (2 * count),
    ]
    return before, [0, *range(count, 2 * count + 1)], rows


def score_period(rule: Rule, params: Any, before: Columns, offsets: list[int], rows: Columns) -> tuple[int, Columns]:
    """Score a period without compiling it; check its books and its explanation. Return the minted points and the
    states.
    """
    assert rule.score_period is not None
    assert rule.explain_period is not None
    players, after = len(before[0]), [list(column) for column in before]
    minted = rule.score_period(players, before, offsets, rows, rule.prepare(params), rule.table(), after)
    changes = [new - old for new, old in zip(after[0], before[0], strict=True)]
    assert minted == max(sum(changes), 0)
    for p in range(players):
        names = [f"p{j}" for j in range(players)]
        terms = rule.explain_period(p, names, before, offsets, rows, params, after)
        assert sum(term.amount for _, term in terms) == changes[p]
        assert [row for row, _ in terms if row >= 0] == [*range(offsets[p], offsets[p + 1])]
        assert [term.term for row, term in terms if row < 0] in ([], ["rounding"])
    return minted, after


def draw_game(random: Random, rule: Rule) -> tuple[Columns, Columns]:
    """Return states and columns of a game of two to six players, with ties."""
    assert rule.sample is not None
    n = random.choice([2, 2, 2, 3, 4, 6])
    states = [to_units(rule, oracle.draw_state(random, rule.id)) for _ in range(n)]
    before = [[int(state[column]) for state in states] for column in range(rule.width)]
    return before, [list(column) for column in rule.sample(n, random, rule.params())]


def list_results(rule: Rule, before: Columns, place: list[int], i: int) -> tuple[oracle.State, list[oracle.Result]]:
    """Return a player's state and results in a game as the oracle takes them."""
    exact = [
        tuple(Decimal(before[c][j]) / column.scale for c, column in enumerate(rule.state)) for j in range(len(place))
    ]
    scores = [Decimal((place[i] < place[j]) - (place[i] > place[j]) + 1) / 2 for j in range(len(place))]
    opponents = [j for j in range(len(place)) if j != i]
    return exact[i], [(exact[j][0], exact[j][1], scores[j]) for j in opponents]


def test_stored_vectors_equal_those_of_their_script() -> None:
    """The stored vectors equal those that the script generates."""
    assert json.loads(VECTORS.read_text("utf-8")) == oracle.build_vectors()


@pytest.mark.parametrize(
    ("number", "state"),
    [
        (0, ("1464.106462756911591", "151.398902447968735")),
        (1, ("1464.0506705390892", "151.5165241243043", ".05999598440067783")),
        (2, ("1640.0819498932657", "109.18380161942891", ".0600019406331984923")),
        (3, ("2167.0210016481133", "60.58099224919897", ".0600311079122397")),
        (4, ("1383.0185845858164", "301.5252876943279", ".06001724209575562")),
    ],
)
def test_published_examples_are_reproduced(number: int, state: tuple[str, ...]) -> None:
    """The papers' examples are within a unit of the stored states, and within 1e-10 of the kernel's doubles."""
    vector = json.loads(VECTORS.read_text("utf-8"))[number]
    rule, own, results = read_vector(vector)
    _, after = score_period(rule, build_params(rule), *lay_out_period(rule, own, results))
    stored = [column[0] for column in after]
    assert all(
        abs(unit - exact) <= 1 for unit, exact in zip(stored, to_units(rule, tuple(map(Decimal, state))), strict=True)
    )
    kernel = run_kernel(rule, own, results)
    assert all(
        abs(Decimal(double) - Decimal(text)) < Decimal("1e-10") for double, text in zip(kernel, state, strict=True)
    )


def read_vector(vector: dict[str, Any]) -> tuple[Rule, oracle.State, list[oracle.Result]]:
    """Return the rule of a vector, the player's state and the results."""
    results = [tuple(map(Decimal, result)) for result in vector["results"]]
    return load_built_in_rule(vector["rule"]), tuple(map(Decimal, vector["before"])), results  # type: ignore[return-value]


def run_kernel(rule: Rule, own: oracle.State, results: list[oracle.Result]) -> tuple[float, ...]:
    """Return the doubles that the kernel rounds: the new rating, and the rest of the state."""
    module, before = MODULES[rule.id], [int(number) for number in to_units(rule, own)]
    surprise = information = 0.0
    for rating, spread, scored in results:
        gap, deviation = before[0] - int(rating * 10**6), int(spread * 10**6)
        surprise_of_game, information_of_game = module.compare(
            gap, deviation, *{0: (2, 1), 1: (1, 2)}.get(scored, (1, 1))
        )
        surprise, information = surprise + surprise_of_game, information + information_of_game
    tau = (0.5,) if rule.name == "glicko-2" else ()
    step, *rest = module.update(*before[1:], surprise, information, *tau)
    doubles = (before[0] + step * surprise, *rest)
    return tuple(double / column.scale for double, column in zip(doubles, rule.state, strict=True))


@pytest.mark.parametrize("name", RULES)
def test_states_equal_rounded_vectors(name: str) -> None:
    """Every stored vector is reproduced, rounded to the unit."""
    worst = Decimal(0)
    for vector in json.loads(VECTORS.read_text("utf-8")):
        if vector["rule"] == name:
            rule, own, results = read_vector(vector)
            _, after = score_period(rule, build_params(rule), *lay_out_period(rule, own, results))
            exact = to_units(rule, tuple(map(Decimal, vector["after"])))
            worst = max(worst, *(abs(column[0] - unit) for column, unit in zip(after, exact, strict=True)))
    assert Decimal("0.45") < worst < ROUNDING_ERROR_MAX


@pytest.mark.parametrize("count", mark_many_cases(60, 300))
@pytest.mark.parametrize("name", RULES)
def test_random_games_agree_with_the_oracle(name: str, record_property: Callable[..., None], count: int) -> None:
    """In random games, every state is the rounded exact one; the kernel's doubles are within 1e-10 of it."""
    rule, random, worst, worst_double = load_built_in_rule(name), Random(7), Decimal(0), Decimal(0)
    params = build_params(rule)
    for _ in range(count):
        before, columns = draw_game(random, rule)
        _, after = score_game(rule, params, before, columns)
        for i in range(len(before[0])):
            own, results = list_results(rule, before, columns[0], i)
            exact = oracle.rate(name, own, results)
            units = to_units(rule, exact)
            worst = max(worst, *(abs(column[i] - unit) for column, unit in zip(after, units, strict=True)))
            doubles = run_kernel(rule, own, results)
            worst_double = max(worst_double, *(abs(Decimal(a) - b) for a, b in zip(doubles, exact, strict=True)))
    record_property("largest error in units", str(worst))
    record_property("largest error of the kernel", str(worst_double))
    assert Decimal("0.45") < worst < ROUNDING_ERROR_MAX
    assert 0 < worst_double < Decimal("1e-10")


@pytest.mark.parametrize("name", RULES)
def test_a_game_is_a_period_of_its_own(name: str) -> None:
    """A single game has the states of a period with only this game."""
    rule, random = load_built_in_rule(name), Random(8)
    for _ in range(50):
        before, columns = draw_game(random, rule)
        offsets, rows = results_of_game(len(before[0]), columns)
        assert score_game(rule, rule.params(), before, columns) == score_period(
            rule, rule.params(), before, offsets, rows
        )


@pytest.mark.parametrize("name", RULES)
def test_order_of_players_does_not_matter(name: str) -> None:
    """In another order of the players, the states of a game differ by at most one unit."""
    rule, random = load_built_in_rule(name), Random(9)
    for _ in range(50):
        before, columns = draw_game(random, rule)
        n = len(before[0])
        order = random.sample(range(n), n)
        _, after = score_game(rule, rule.params(), before, columns)
        mixed = [[[column[i] for i in order] for column in table] for table in (before, columns)]
        _, mixed_after = score_game(rule, rule.params(), *mixed)
        assert all(
            abs(column[i] - mixed_column[at]) <= 1
            for column, mixed_column in zip(after, mixed_after, strict=True)
            for at, i in enumerate(order)
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_compiled_kernels_equal_interpreted_kernels(name: str) -> None:
    """Compiled games, periods and aging equal the interpreted ones."""
    rule, random = load_built_in_rule(name), Random(11)
    assert rule.age is not None
    params, constants = rule.params(), rule.prepare(rule.params())
    for _ in range(300):
        check_compiled_game(rule, params, *draw_game(random, rule))
    for _ in range(200):
        # many improbable results, so that the volatility is bisected as well
        results = [(rating, spread, Decimal(0)) for rating, spread, _ in oracle.draw_results(random) * 6]
        period = lay_out_period(rule, (Decimal(2600), *oracle.draw_state(random, name)[1:]), results)
        expected = score_period(rule, params, *period)
        result = call_compiled(rule, "score_period", len(period[0][0]), *period, constants, (), period[0])
        assert result == expected
    for _ in range(200):
        state = tuple(int(number) for number in to_units(rule, oracle.draw_state(random, name)))
        elapsed = random.randint(0, 2_000)
        before = [[number] for number in state]
        assert call_compiled(rule, "age", elapsed, before, constants, before)[1] == [
            [number] for number in rule.age(state, elapsed, constants)
        ]


def find_nearest_zero(variance: float, square: float, surprise: float, information: float, tau: float) -> Decimal:
    """Return the logarithm of the ratio of variances by stepping away from zero and then halving with 40 digits."""

    def evaluate(y: Any, exp: Callable[[Any], Any], number: Callable[[float], Any]) -> Any:
        u, s, v = number(variance) * exp(y), number(surprise), number(information)
        m = 1 + (number(square) + u) * v
        return y - number(tau) ** 2 * u * (s * s - v * m) / (2 * m * m)

    at_zero = evaluate(0.0, math.exp, float)
    step = 0.001 if at_zero < 0 else -0.001
    near, far = 0.0, step
    while (evaluate(far, math.exp, float) < 0) == (at_zero < 0):
        near, far = far, far + step
    with localcontext(prec=45):
        low, high = Decimal(near), Decimal(far)
        for _ in range(140):
            middle = (low + high) / 2
            if (evaluate(middle, Decimal.exp, Decimal) < 0) == (at_zero < 0):
                low = middle
            else:
                high = middle
        return low


def draw_equation(random: Random) -> tuple[float, float, float, float, float]:
    """Draw an equation for the volatility, usual or far beyond any league."""
    sigma = 10 ** random.uniform(-3, 0.3)
    phi = 10 ** random.uniform(-2, 1)
    information = 10 ** random.uniform(-6, 2)
    surprise = random.choice([-1, 1]) * 10 ** random.uniform(-3, 2.5)
    return sigma * sigma, phi * phi, surprise, information, random.choice([0.2, 0.5, 1.2, 2.0])


def is_near_a_fold(variance: float, square: float, surprise: float, information: float, tau: float, y: float) -> bool:
    """Tell whether two solutions nearly meet, so that the last digits of the equation decide between them."""
    _, slope = glicko_2.pull(variance * math.exp(y), square, surprise, information)
    return abs(1 - tau * tau * slope) < 0.01


@pytest.mark.parametrize("count", mark_many_cases(200, 2_000))
def test_volatility_is_the_nearest_solution(record_property: Callable[..., None], count: int) -> None:
    """For random equations, Newton's method and halving find the solution nearest to the old volatility."""
    random, worst, method_counts = Random(12), Decimal(0), [0, 0]
    for _ in range(count):
        equation = draw_equation(random)
        variance, square, surprise, information, tau = equation
        y = glicko_2.solve_volatility(*equation)
        if variance * math.exp(y) > 9_999:  # beyond the largest volatility
            continue
        exact = find_nearest_zero(*equation)
        if is_near_a_fold(*equation, float(exact)) or is_near_a_fold(*equation, y):
            continue
        halved = glicko_2.bisect_volatility(variance, square, surprise, information, tau * tau)
        _, slope = glicko_2.pull(variance * math.exp(y), square, surprise, information)
        scale = Decimal(max(1.0, abs(y))) * Decimal(max(1.0, 1 / abs(1 - tau * tau * slope)))
        worst = max(worst, abs(Decimal(y) - exact) / scale, abs(Decimal(halved) - exact) / scale)
        method_counts[y != halved] += 1
    record_property("largest error", str(worst))
    assert worst < Decimal("1e-13")
    assert min(method_counts) > count * 0.15


@pytest.mark.parametrize("count", mark_many_cases(100, 500))
def test_steps_of_newton_are_as_exact_as_proven(count: int) -> None:
    """Where three steps are taken, the first two leave errors within the proven bounds."""
    random, tried = Random(13), 0
    while tried < count:
        variance, square, surprise, information, tau = draw_equation(random)
        bound = variance * (information + surprise**2 / (1 + square * information))
        bound /= 1 + (square + variance) * information
        if not tau * tau * bound <= 1 / 16:
            continue
        tried += 1
        exact = float(find_nearest_zero(variance, square, surprise, information, tau))
        few = tau * tau * bound <= 1 / 256
        assert abs(exact) <= (1 / 510 if few else 1 / 30)
        y = 0.0
        for limit in (8e-9, 1e-15) if few else (3.8e-5, 5e-11):
            w, slope = glicko_2.pull(variance * math.exp(y), square, surprise, information)
            y -= (y - tau * tau * w) / (1 - tau * tau * slope)
            assert abs(y - exact) < limit


@pytest.mark.parametrize("name", RULES)
def test_impossible_results_can_be_scored(name: str) -> None:
    """Any gap between players, and any number of improbable losses, can be scored."""
    rule = load_built_in_rule(name)
    far = [[9 * 10**15, -9 * 10**15, 0], [350_000_000, 30_000_000, 0], [60_000_000_000, 0, 10**12]][: rule.width]
    for places in ([1, 2, 3], [3, 2, 1], [1, 1, 1]):
        _, after = score_game(rule, rule.params(), far, [places, [MISSING] * 3, [0] * 3])
        assert all(0 <= deviation < 2**53 for deviation in after[1])
    favourite = (Decimal(9_000), Decimal(350), Decimal("0.06"))[: rule.width]
    losses = [(Decimal(0), Decimal(30), Decimal(0))] * 200
    _, after = score_period(rule, rule.params(), *lay_out_period(rule, favourite, losses))
    assert after[0][0] < 9_000_000_000
    if name == "glicko-2/1":
        assert after[2][0] == 100 * 10**12


@pytest.mark.parametrize("name", RULES)
def test_expected_scores_of_a_pair_sum_to_one(name: str) -> None:
    """Both chances sum to exactly one, lie between 0 and 1, and follow the formula with both deviations."""
    rule, random = load_built_in_rule(name), Random(14)
    assert rule.chance is not None
    for _ in range(200):
        before, columns = draw_game(random, rule)
        ahead, behind = (
            rule.chance(*pair, before, columns, rule.prepare(rule.params()), ()) for pair in ((0, 1), (1, 0))
        )
        assert ahead + behind == ONE
        q = math.log(10) / 400
        spread = math.hypot(before[1][0], before[1][1]) / 10**6
        g = 1 / math.sqrt(1 + 3 * (q * spread / math.pi) ** 2)
        assert abs(ahead / ONE - 1 / (1 + math.exp(-q * g * (before[0][0] - before[0][1]) / 10**6))) < 1e-6
    far = [[9 * 10**15, -9 * 10**15], [0, 0], [0, 0]][: rule.width]
    assert [rule.chance(i, 1 - i, far, [], rule.prepare(rule.params()), ()) for i in (0, 1)] == [ONE - 1, 1]
    equal = [[1_500_000_000] * 2, [350_000_000, 30_000_000], [0, 0]][: rule.width]
    assert [rule.chance(i, 1 - i, equal, [], rule.prepare(rule.params()), ()) for i in (0, 1)] == [ONE // 2] * 2


def test_glicko_deviation_grows_up_to_that_of_a_new_player() -> None:
    """In Glicko a deviation of 50 grows to 350 in five years and not beyond; the rating never changes."""
    rule = load_built_in_rule("glicko-1/1")
    assert rule.age is not None
    constants = rule.prepare(rule.params())
    assert rule.age((7, 50_000_000), 0, constants) == (7, 50_000_000)
    assert rule.age((7, 50_000_000), 1, constants) == (7, 50_651_851)  # the root of 2500 + 8.1^2
    assert rule.age((7, 50_000_000), 1_829, constants) == (7, 350_000_000)
    assert rule.age((7, 50_000_000), 1_825, constants)[1] < 350_000_000
    assert rule.age((7, 400_000_000), 0, constants) == (7, 350_000_000)
    constants_without_growth = rule.prepare(rule.params.model_validate({"c": 0}))
    assert rule.age((7, 50_000_000), 10_000, constants_without_growth) == (7, 50_000_000)
    deviations = [rule.age((7, 50_000_000), days, constants)[1] for days in range(3_000)]
    assert all(now >= before for before, now in pairwise(deviations))


def test_glicko_2_deviation_grows_by_volatility() -> None:
    """In Glicko-2 each day after the first adds the squared volatility, up to the deviation of a new player."""
    rule = load_built_in_rule("glicko-2/1")
    assert rule.age is not None
    constants = rule.prepare(rule.params())
    state = (7, 50_000_000, 60_000_000_000)
    assert rule.age(state, 0, constants) == rule.age(state, 1, constants) == state
    variance = Decimal(50) ** 2 + (Decimal("173.7178") * Decimal("0.06")) ** 2
    assert rule.age(state, 2, constants) == (7, round(variance.sqrt() * 10**6), 60_000_000_000)
    assert rule.age(state, 2_000, constants) == (7, 350_000_000, 60_000_000_000)
    assert rule.age((7, 400_000_000, 60_000_000_000), 9, constants) == (7, 400_000_000, 60_000_000_000)
    half_aging = rule.prepare(rule.params.model_validate({"aging": "0.5"}))
    assert rule.age(state, 3, half_aging) == rule.age(state, 2, constants)


def test_deviation_does_not_fall_below_the_floor() -> None:
    """In Glicko the deviation does not fall below 30."""
    rule = load_built_in_rule("glicko-1/1")
    state = [[1_500_000_000] * 2, [30_000_000] * 2]
    _, after = score_game(rule, rule.params(), state, [[1, 2], [MISSING] * 2, [0] * 2])
    assert after[1] == [30_000_000] * 2
    _, after = score_game(rule, build_params(rule), state, [[1, 2], [MISSING] * 2, [0] * 2])
    assert all(29_000_000 < deviation < 30_000_000 for deviation in after[1])


@pytest.mark.parametrize("name", RULES)
def test_new_players_are_provisional(name: str) -> None:
    """New players begin with 1500 ± 350, and are provisional while their deviation is above 110."""
    rule = load_built_in_rule(name)
    assert rule.start is not None
    assert rule.provisional is not None
    assert rule.start(rule.params()) == (1_500_000_000, 350_000_000, 60_000_000_000)[: rule.width]
    assert [rule.provisional((0, spread, 0), 50, rule.params()) for spread in (110_000_000, 110_000_001)] == [
        False,
        True,
    ]


REJECTED_GAMES: list[tuple[Columns, str]] = [
    ([[0, 0], [MISSING] * 2, [0, 0]], "the game has no places; the rule needs them to compare the players"),
    (
        [[1, 1, 3], [0, 0, 1], [0, 0, 0]],
        "two players are on one team; the rule rates individuals who each play against all others",
    ),
    (
        [[1, 2, 2], [MISSING] * 3, [0, LEAVERS[0], SUBSTITUTE]],
        "a seat changed hands and both its players would count; the rule takes one player per seat",
    ),
]


@pytest.mark.parametrize("name", RULES)
def test_games_that_cannot_be_scored_are_rejected(name: str) -> None:
    """Each unfit game is rejected with its reason; a team of one player is allowed."""
    rule = load_built_in_rule(name)
    assert rule.check is not None
    assert [rule.check(len(columns[0]), columns, rule.params()) for columns, _ in REJECTED_GAMES] == [
        reason for _, reason in REJECTED_GAMES
    ]
    assert rule.check(2, [[1, 2], [0, 1], [0, 0]], rule.params()) is None


REJECTED_PARAMS: list[tuple[str, dict[str, Any], str]] = [
    (
        "glicko-1/1",
        {"start_deviation": 10_001},
        "params.start_deviation: must be at most 10,000, with at most six decimals, not 10001",
    ),
    ("glicko-1/1", {"c": "1/3"}, "params.c: must be at most 10,000, with at most six decimals, not 1/3"),
    (
        "glicko-1/1",
        {"deviation_floor": 351},
        "params.deviation_floor: must not exceed start_deviation, 350, but it is 351",
    ),
    ("glicko-2/1", {"tau": "2.1"}, "params.tau: must be at most 2, with at most six decimals, not 2.1"),
    (
        "glicko-2/1",
        {"start_volatility": "0.0000001"},
        "params.start_volatility: must be at most 1, with at most six decimals, not 0.0000001",
    ),
    ("glicko-2/1", {"aging": "100000"}, "params.aging: must be at most 10,000, with at most six decimals, not 100000"),
]


@pytest.mark.parametrize(("name", "params", "reason"), REJECTED_PARAMS)
def test_parameters_out_of_range_are_rejected(name: str, params: dict[str, Any], reason: str) -> None:
    """Parameters that are too large, or no whole number of units, are rejected."""
    rule = load_built_in_rule(name)
    refusal = rule.refuse_params(rule.params.model_validate(params), 8)
    assert refusal is not None
    assert refusal.startswith(reason)
    assert rule.refuse_params(rule.params(), 8) is None


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    "params", [{"start_deviation": 0}, {"start": 1.5}, {"provisional_deviation": -1}, {"period": "day"}]
)
def test_invalid_parameters_are_rejected(name: str, params: dict[str, Any]) -> None:
    """Zero deviations, floats, negative numbers and unknown names are rejected."""
    with pytest.raises(ValidationError):
        load_built_in_rule(name).params.model_validate(params)


@pytest.mark.parametrize("name", RULES)
def test_explanations_name_opponents_and_expectations(name: str) -> None:
    """A term per opponent has both states, the weight, the expected score and the score; the rounding comes last."""
    rule = load_built_in_rule(name)
    own = (Decimal(1500), Decimal(200), Decimal("0.06"))[: rule.width]
    results = [(Decimal(1400), Decimal(30), Decimal(1)), (Decimal(1550), Decimal(100), oracle.HALF)]
    before, offsets, rows = lay_out_period(rule, own, results)
    assert rule.explain_period is not None
    _, after = score_period(rule, rule.params(), before, offsets, rows)
    after[0][0] += 1
    (row, won), (_, tied), last = rule.explain_period(
        0, ["anna", "ben", "cleo"], before, offsets, rows, rule.params(), after
    )
    assert (row, won.term, won.note) == (0, "vs ben", "1500 ± 200 against 1400 ± 30")
    assert won.detail == "weight 0.995498, expected 0.639468, scored 1"
    assert (tied.term, tied.detail) == ("vs cleo", "weight 0.953149, expected 0.431842, scored 0.5")
    assert (last[0], last[1].term) == (-1, "rounding")
    assert abs(last[1].amount) < 3


@pytest.mark.parametrize(
    ("name", "text"),
    [("glicko-1/1", "1464.106463 ± 151.398902"), ("glicko-2/1", "1464.050671 ± 151.516524, 0.059995984401")],
)
def test_docstring_and_page_show_the_published_example(name: str, text: str) -> None:
    """The rule's docstring and page have the papers' example as the rule stores it."""
    rule, own, results = read_vector(json.loads(VECTORS.read_text("utf-8"))[RULES.index(name)])
    _, after = score_period(rule, rule.params(), *lay_out_period(rule, own, results))
    assert f"{text}\n" in (MODULES[name].__doc__ or "")
    page = Path(__file__).parents[2] / "docs" / "systems" / f"{name.partition('/')[0].replace('-1', '')}.md"
    assert f"{text}." in page.read_text(encoding="utf-8")
    assert [
        str(Decimal(column[0]) / state.scale) for column, state in zip(after, rule.state, strict=True)
    ] == text.replace(" ±", ",").split(", ")
