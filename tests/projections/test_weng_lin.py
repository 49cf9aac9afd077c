"""Weng and Lin's two rules: compared with 40-digit vectors, an oracle in decimals, and another package."""

import inspect
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import make_weng_lin_vectors as oracle
import numpy as np
import pytest
from kernel_calls import check_compiled_game, record_rounding, score_game
from lengths import mark_many_cases
from own_rules import load_built_in_rule
from pydantic import ValidationError

from ratings_ledger.rules import LEAVERS, MISSING, ONE, SUBSTITUTE, Rule

VECTORS = Path(__file__).parents[1] / "golden" / "weng_lin.json"
BRADLEY_TERRY, PLACKETT_LUCE = load_built_in_rule("weng-lin-btf/1"), load_built_in_rule("weng-lin-pl/1")
RULES = [BRADLEY_TERRY.id, PLACKETT_LUCE.id]
WengLinParams: Any = PLACKETT_LUCE.params
NEW = 25_000_000, 8_333_333

Side = Sequence[tuple[Any, Any]]
Columns = list[list[int]]


def lay_out_game(sides: Sequence[Side], places: Sequence[int], random: Random | None = None) -> tuple[Columns, Columns]:
    """Return states and columns of the players of these sides, shuffled by `random`; no teams if all play alone."""
    players = [
        (int(Decimal(mu) * 10**6), int(Decimal(sigma) * 10**6), places[side], side)
        for side, members in enumerate(sides)
        for mu, sigma in members
    ]
    if random is not None:
        random.shuffle(players)
    mu, sigma, place, team = map(list, zip(*players, strict=True))
    if len(sides) == len(players):
        team = [MISSING] * len(players)
    return [mu, sigma], [place, team, [0] * len(players)]


def read_params(params: dict[str, str]) -> Any:
    """Return the parameters of a vector."""
    return WengLinParams.model_validate(params | ({"tau": 0} if params["tau"] == "0" else {}))


def compute_exact_states(
    rule: Rule, sides: Sequence[Side], places: list[int], params: dict[str, str]
) -> list[list[Decimal]]:
    """Return the states after a game in millionths, from the oracle."""
    rated = oracle.rate(rule.id, sides, places, params)  # type: ignore[arg-type]
    return [[player[column] * 10**6 for side in rated for player in side] for column in (0, 1)]


def find_largest_error(states: Columns, exact: list[list[Decimal]]) -> Decimal:
    """Return the largest difference of any state from the exact one, in millionths."""
    return max(
        abs(state - exact_state)
        for column, exact_column in zip(states, exact, strict=True)
        for state, exact_state in zip(column, exact_column, strict=True)
    )


def test_stored_vectors_equal_those_of_their_script() -> None:
    """The stored vectors equal those that the script generates."""
    assert json.loads(VECTORS.read_text("utf-8")) == json.loads(json.dumps(oracle.build_vectors()))


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text("utf-8")), ids=lambda vector: vector["rule"])
def test_states_are_within_half_a_unit_of_the_vectors(vector: dict[str, Any]) -> None:
    """Every stored vector is reproduced, rounded to a millionth."""
    before, columns = lay_out_game(vector["before"], vector["places"])
    _, after = score_game(load_built_in_rule(vector["rule"]), read_params(vector["params"]), before, columns)
    exact = [[Decimal(player[column]) * 10**6 for side in vector["after"] for player in side] for column in (0, 1)]
    assert find_largest_error(after, exact) < Decimal("0.50001")


@pytest.mark.parametrize("count", mark_many_cases(60, 300))
@pytest.mark.parametrize("name", RULES)
def test_random_games_are_within_half_a_unit_of_the_oracle(
    name: str, record_property: Callable[..., None], count: int
) -> None:
    """In random games with sides and ties, with tau and without, every state is the rounded exact one."""
    rule, random, worst = load_built_in_rule(name), Random(7), Decimal(0)
    for _ in range(count):
        sides, places, params = oracle.draw_game(random)
        before, columns = lay_out_game(sides, places)
        _, after = score_game(rule, read_params(params), before, columns)
        worst = max(worst, find_largest_error(after, compute_exact_states(rule, sides, places, params)))
    record_property("largest error in millionths", str(worst))
    assert Decimal("0.45") < worst < Decimal("0.50001")


@pytest.fixture
def unrounded_values(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list of the doubles that a kernel rounds: for every player the change, then the deviation."""
    return record_rounding(monkeypatch, PLACKETT_LUCE)  # both rules are in one module


@pytest.mark.parametrize("count", mark_many_cases(40, 200))
@pytest.mark.parametrize("name", RULES)
def test_kernels_are_within_a_ten_billionth_of_the_oracle(name: str, unrounded_values: list[float], count: int) -> None:
    """The doubles before rounding are within 1e-10 of the exact numbers."""
    rule, random, worst = load_built_in_rule(name), Random(8), Decimal(0)
    for _ in range(count):
        sides, places, params = oracle.draw_game(random)
        before, columns = lay_out_game(sides, places)
        unrounded_values.clear()
        after = [list(column) for column in before]
        rule.score(len(before[0]), before, columns, rule.prepare(read_params(params)), rule.table(), after)
        rated = oracle.rate(name, sides, places, params)
        # Plackett-Luce takes the sides by place, so the numbers are matched by size
        old = [Decimal(mu) for side in sides for mu, _ in side]
        changes = sorted(mu - old_mu for (mu, _), old_mu in zip([p for side in rated for p in side], old, strict=True))
        deviations = sorted(sigma for side in rated for _, sigma in side)
        for exact, computed in ((changes, unrounded_values[::2]), (deviations, unrounded_values[1::2])):
            worst = max(worst, *(abs(Decimal(a) - b) for a, b in zip(sorted(computed), exact, strict=True)))
    assert 0 < worst < Decimal("1e-10")


@pytest.mark.parametrize("tau", ["25/300", "0"])
@pytest.mark.parametrize(("name", "model"), [("weng-lin-btf/1", "BradleyTerryFull"), ("weng-lin-pl/1", "PlackettLuce")])
def test_kernels_agree_with_another_package(name: str, model: str, tau: str, unrounded_values: list[float]) -> None:
    """The doubles agree with openskill within 1e-9, with ties and sides of different sizes."""
    models = pytest.importorskip("openskill.models", reason="openskill is not installed")
    peer = getattr(models, model)(tau=25 / 300 if tau != "0" else 0.0)
    rule, random, worst = load_built_in_rule(name), Random(9), 0.0
    for _ in range(500):
        sides, places, params = oracle.draw_game(random)
        before, columns = lay_out_game(sides, places)
        unrounded_values.clear()
        after = [list(column) for column in before]
        constants = rule.prepare(read_params(params | {"tau": tau}))
        rule.score(len(before[0]), before, columns, constants, rule.table(), after)
        teams = [[peer.rating(mu=float(mu), sigma=float(sigma)) for mu, sigma in side] for side in sides]
        rated = [player for side in peer.rate(teams, ranks=[float(place) for place in places]) for player in side]
        old = [float(mu) for side in sides for mu, _ in side]
        changes = sorted(player.mu - old_mu for player, old_mu in zip(rated, old, strict=True))
        deviations = sorted(player.sigma for player in rated)
        for expected, computed in ((changes, unrounded_values[::2]), (deviations, unrounded_values[1::2])):
            worst = max(worst, *(abs(a - b) for a, b in zip(sorted(computed), expected, strict=True)))
    assert worst < 1e-9


@pytest.mark.parametrize("name", RULES)
def test_order_of_players_does_not_matter(name: str) -> None:
    """In another order, the players of a game get the same states, up to the last millionth."""
    rule, random, params = load_built_in_rule(name), Random(10), WengLinParams()
    for _ in range(100):
        sides, places, _ = oracle.draw_game(random)
        before, columns = lay_out_game(sides, places)
        mixed_before, mixed_columns = lay_out_game(sides, places, random)
        _, after = score_game(rule, params, before, columns)
        _, mixed_after = score_game(rule, params, mixed_before, mixed_columns)
        by_state = dict(zip(zip(*before, strict=True), zip(*after, strict=True), strict=True))
        for old, new in zip(zip(*mixed_before, strict=True), zip(*mixed_after, strict=True), strict=True):
            # sums of doubles in another order may differ in the last bit, and so in the last millionth
            assert all(abs(a - b) <= 1 for a, b in zip(by_state[old], new, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_compiled_kernels_equal_interpreted_kernels(name: str) -> None:
    """A compiled game has the states and the probabilities of the interpreted one."""
    rule, random = load_built_in_rule(name), Random(11)
    for _ in range(1_000):
        sides, places, params = oracle.draw_game(random)
        check_compiled_game(rule, read_params(params), *lay_out_game(sides, places, random))


@pytest.mark.parametrize("name", RULES)
def test_probabilities_of_a_pair_sum_to_one(name: str) -> None:
    """Both sides' chances sum to exactly one, and follow from the strengths and variances of both sides."""
    rule, random, params = load_built_in_rule(name), Random(12), WengLinParams()
    assert rule.chance is not None
    for _ in range(200):
        sides, places, _ = oracle.draw_game(random)
        before, columns = lay_out_game(sides[:2], places[:2])
        last = len(before[0]) - 1
        ahead, behind = (
            rule.chance(*pair, before, columns, rule.prepare(params), ()) for pair in ((0, last), (last, 0))
        )
        assert ahead + behind == ONE
        mean, variance, beta = [0.0, 0.0], 0.0, 25 / 6
        for number, side in enumerate(sides[:2]):
            mean[number] = sum(float(mu) for mu, _ in side)
            variance += sum(float(sigma) ** 2 + (25 / 300) ** 2 for _, sigma in side) + beta**2
        assert abs(ahead / ONE - 1 / (1 + np.exp((mean[1] - mean[0]) / np.sqrt(variance)))) < 1e-9


def test_extreme_gaps_leave_a_chance() -> None:
    """For any gap between two players, both chances are between 0 and 1, and the game can be scored."""
    before, columns = lay_out_game([[("9000000", "1")], [("-9000000", "1")], [("0", "1")]], [3, 2, 1])
    for name in RULES:
        rule, params = load_built_in_rule(name), WengLinParams()
        assert rule.chance is not None
        assert [rule.chance(*pair, before, columns, rule.prepare(params), ()) for pair in ((0, 1), (1, 0))] == [
            ONE - 1,
            1,
        ]
        _, after = score_game(rule, params, before, columns)
        assert after[0][0] < before[0][0]
        assert after[0][2] > before[0][2]


def test_deviation_is_at_least_one_millionth() -> None:
    """Without tau a deviation of one millionth stays, and a deviation of zero counts as one millionth."""
    for name in RULES:
        _, after = score_game(
            load_built_in_rule(name),
            WengLinParams(tau=0),
            *lay_out_game([[("25", "0")], [("20", "0.000001")]], [1, 2]),
        )
        assert after == [[25_000_000, 20_000_000], [1, 1]]


def test_start_rank_and_provisional() -> None:
    """New players begin with 25 ± 25/3, rank by 25 - 3 * 25/3, and are provisional until the deviation is small."""
    rule, params = load_built_in_rule("weng-lin-pl/1"), WengLinParams(provisional_deviation="7.5")
    assert rule.start is not None
    assert rule.rank_by is not None
    assert rule.provisional is not None
    assert rule.start(params) == NEW
    assert rule.rank_by(NEW, params) == 1
    assert rule.rank_by(NEW, WengLinParams(rank_deviations=0)) == 25_000_000
    assert [rule.provisional((0, sigma), 5, params) for sigma in (7_500_000, 7_500_001)] == [False, True]


def test_parameters_out_of_range_are_rejected() -> None:
    """Parameters out of range, of the wrong kind, unknown, or with too many digits are rejected."""
    too_long = {"tau": "1.0123456789"}
    for params in ({"tau": -1}, {"beta": 0}, {"sigma": "x"}, {"rank_deviations": 11}, {"unknown": 1}, too_long):
        with pytest.raises(ValidationError):
            WengLinParams.model_validate(params)
    refusals = {
        name: PLACKETT_LUCE.refuse_params(WengLinParams.model_validate({name: value}), 8)
        for name, value in {"kappa": 2, "beta": "1000001", "tau": "123456789.123456789", "sigma": "25/3"}.items()
    }
    assert refusals.pop("sigma") is None
    assert refusals == {
        "kappa": "params.kappa: must be at most 1, not 2; it limits how far a game shrinks a variance",
        "beta": "params.beta: must be at most 1,000,000, not 1000001",
        "tau": "params.tau: must be at most 1,000,000, not 123456789123456789/1000000000",
    }
    assert PLACKETT_LUCE.refuse_params(WengLinParams(tau="999999.123456789"), 8) is None


REJECTED_GAMES: list[tuple[Columns, str]] = [
    ([[0, 0], [MISSING] * 2, [0, 0]], "the game has no places"),
    ([[1, 1], [0, 0], [0, 0]], "all counted players are on one side"),
    (
        [[1, 2, 2], [MISSING] * 3, [0, LEAVERS[0], SUBSTITUTE]],
        "a seat changed hands and both its players would count; the rule takes one player per seat",
    ),
]


@pytest.mark.parametrize(("columns", "reason"), REJECTED_GAMES)
def test_games_that_cannot_be_scored_are_rejected(columns: Columns, reason: str) -> None:
    """Each unfit game is rejected with its reason."""
    assert PLACKETT_LUCE.check(len(columns[0]), columns, WengLinParams()) == reason


def test_sample_games_can_be_scored() -> None:
    """All games that the rule draws for its own trials can be scored, with sides and without."""
    random, params = Random(13), WengLinParams()
    games = [PLACKETT_LUCE.sample(n, random, params) for n in range(2, 9) for _ in range(50)]
    assert all(PLACKETT_LUCE.check(len(columns[0]), columns, params) is None for columns in games)
    assert {columns[1][0] == MISSING for columns in games} == {True, False}


def test_explanations_name_sides_and_shares() -> None:
    """Terms have the opposing side, the expected score, and the player's share of the side's change."""
    before, columns = lay_out_game([[("25", "8"), ("30", "2")], [("27", "4")]], [1, 3])
    params, names = WengLinParams(), ["anna", "ben", "cleo"]
    _, after = score_game(load_built_in_rule("weng-lin-btf/1"), params, before, columns)
    ((anna,), _, (cleo,)) = BRADLEY_TERRY.explain(3, names, before, columns, params, after)
    assert (anna.term, anna.detail) == ("vs cleo", "expected 0.928875, scored 1")
    assert anna.note == "55.000000 ± 8.247053 against 27.000000 ± 4.000868; 0.941086 of the side's change"
    assert (cleo.term, cleo.note) == ("vs anna + ben", "27.000000 ± 4.000868 against 55.000000 ± 8.247053")
    _, after = score_game(load_built_in_rule("weng-lin-pl/1"), params, before, columns)
    *_, (lost,) = PLACKETT_LUCE.explain(3, names, before, columns, params, after)
    assert (lost.term, lost.detail) == ("place 1", "expected 0.071125 as first of 2, scored 0")


def test_docstring_has_the_example() -> None:
    """The module's docstring has the example that both rules compute: a new player beats another."""
    before, columns = lay_out_game([[("25", "8.333333")], [("25", "8.333333")]], [1, 2])
    states = [score_game(load_built_in_rule(name), WengLinParams(), before, columns)[1] for name in RULES]
    assert states == [[[27_635_389, 22_364_611], [8_065_901] * 2]] * 2
    docstring = inspect.getdoc(inspect.getmodule(PLACKETT_LUCE.score))
    assert docstring is not None
    assert "25 +- 25/3: 27.635389 and 22.364611, both +- 8.065901" in docstring


PAGE = (Path(__file__).parents[2] / "docs" / "systems" / "weng-lin.md").read_text("utf-8")
A_NEW, KNOWN = ("25", "8.333333"), ("30", "1.5")
MODELS = {"weng-lin-btf/1": "Bradley-Terry", "weng-lin-pl/1": "Plackett-Luce"}


@pytest.mark.parametrize(
    ("game", "sides", "places"),
    [
        ("a new player beats another", [[A_NEW], [A_NEW]], [1, 2]),
        ("the same, tied", [[A_NEW], [A_NEW]], [1, 1]),
        ("three new players", [[A_NEW], [A_NEW], [A_NEW]], [1, 2, 3]),
        ("the last two of three tied", [[A_NEW], [A_NEW], [A_NEW]], [1, 2, 2]),
        ("a known and a new player beat a new one", [[KNOWN, A_NEW], [A_NEW]], [1, 3]),
    ],
)
def test_page_has_the_computed_examples(game: str, sides: list[Side], places: list[int]) -> None:
    """Every example of the page equals the result of each rule, to a millionth."""
    before, columns = lay_out_game(sides, places)
    for name, model in MODELS.items():
        _, after = score_game(load_built_in_rule(name), WengLinParams(), before, columns)
        states = [f"{mu / 10**6:.6f} ± {sigma / 10**6:.6f}" for mu, sigma in zip(*after, strict=True)]
        (row,) = [line for line in PAGE.splitlines() if line.startswith((f"| {game} | {model}", f"| {game} | both"))]
        assert [cell.strip() for cell in row.split("|")[3:] if cell.strip()] == states
