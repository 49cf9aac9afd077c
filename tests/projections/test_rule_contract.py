"""The contract that every built-in rule without state must keep."""

import copy
import hashlib
import itertools
import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from checked_integers import to_checked
from kind_games import draw_battle, draw_diplomacy, list_columns, list_players
from own_rules import list_built_in_rules, load_built_in_rule, reads_kind

from ratings_ledger.rules import INT64_MAX, LEAVERS, PLAYERS_MAX, SUBSTITUTE, UNITS_MAX, Rule

GOLDEN = Path(__file__).parent.parent / "golden" / "rules.json"

CONTRIBUTIONS = {"2": [0, 16], "3": [0, 13, 20], "4": [0, 11, 17, 24], "5": [0, 10, 16, 22, 28]}
SHARES = {"3": [50, 30, 20], "4": [40, 30, 20, 10], "5": [40, 30, 20, 10, 0]}

CATAN = {"2": [3, 1], "3": [4, 2, 1], "4": [5, 3, 2, 1], "5": [6, 4, 3, 2, 1], "6": [7, 5, 4, 3, 2, 1]}

# parameters that show the whole behaviour of a rule; a new rule adds a line
PARAMS: dict[str, list[dict[str, object]]] = {
    "annual-places/1": [{"of": "catan-monthly"}],
    "ante-pool/1": [
        {"shares": SHARES},
        {"shares": SHARES, "winners": "share"},
        {"shares": {"2": [67, 33], "3": [50, 33, 0]}, "ante_divisor": 7, "start": 1500, "min_games": 5},
    ],
    "blue-max/1": [
        {},
        {"kill_points": 0},
        {"impossible_kills": "refuse"},
        {
            "strategic": 50, "tactical": 20, "marginal": 7, "draw": 3, "best": 100, "kill_points": 1_000,
            "unit_lost": -9, "best_margin": 0, "best_comparison": ">", "marginal_margin": 0,
        },
        {"best_margin": 1_000, "marginal_margin": 1_000, "unit_lost": 0, "best_of": 5},
    ],
    "c-diplo/1": [
        {},
        {
            "placement": [50, 31, 17, 11, 7, 3, 1], "participation": 0, "per_centre": 3, "solo": 12,
            "solo_points": 10_000, "best_of": 3,
        },
    ],
    "catan-points/1": [
        {"points": CATAN, "min_games": 7},
        {"points": {"3": [9, 1, 0], "6": [1_000_000, 7, 5, 3, 2, 1]}, "score": "sum", "gold": [2], "gold_ties": "pool"},
    ],
    "contribution-pool/1": [
        {"contributions": CONTRIBUTIONS},
        {"contributions": CONTRIBUTIONS, "dust": "winner", "bonus": 7, "bonus_seconds": 0},
        {"contributions": {"3": [0, 33, 100], "7": [0, 1, 2, 3, 5, 8, 13]}, "bonus": 0, "start": 0},
    ],
    "italia/1": [
        {},
        *({"no_break": variant} for variant in ("pct_add", "pct_mult", "flat10_second_only", "flat10_post_tss")),
        {
            "placement": [38, 14, 7, 5, 3, 2, 1], "per_centre": 1, "participation": 0, "break_bonus": 7,
            "break_margin": 1, "no_break": "pct_mult", "no_break_bonus": 4, "tss": 25, "tss_centres": 1, "solo": 12,
            "solo_bonus": 10_000, "eliminated": 0, "best_of": 2,
        },
    ],
    "pairwise-elo/1": [
        {"k_per_pair": 8, "rounding": "pair"},
        {"k_per_pair": "7.5", "rounding": "total"},
        {"k_total": 64},
        {"k_total": 64, "update": "sequential"},
        {"k_per_pair": 9, "rounding": "pair", "update": "sequential"},
        {"k_total": "64/3", "rounding": "total", "scale": 173, "start": 1500},
    ],
    "placement-points/1": [{}, {"best_of": 3, "tie_break": "head-to-head"}],
    "sum-of-squares/1": [{}, {"points": 10_000, "solo": 34, "best_of": 3}],
    "wooden-ships/1": [
        {},
        {
            "overwhelming_comparison": ">=", "overwhelming_for": "survivors", "top_scorer": 1,
            "sunk_without_points": -1,
        },
        {
            "victory": 5, "overwhelming": 50, "overwhelming_factor": 10, "tie": 2, "draw": 3, "defeat": 1,
            "surrendered": 4, "top_scorer": 100, "sunk_without_points": -1_000,
        },
    ],
}  # fmt: skip
ELO = load_built_in_rule("pairwise-elo/1")
CASES = [(name, params) for name in list_built_in_rules() for params in PARAMS[name]]


GameInput = tuple[int, list[int], list[list[int]]]


def list_game_inputs(rule: Rule, params: dict[str, object], count: int, seed: int = 1) -> list[GameInput]:
    """Return (n, points, columns) of games that the rule can score, with ties and equal points among them."""
    bound, games = rule.params.model_validate(params), iterate_game_inputs(rule.id, seed)
    return list(
        islice((game for game in games if rule.check is None or rule.check(game[0], game[2], bound) is None), count)
    )


def iterate_game_inputs(name: str, seed: int) -> Iterator[GameInput]:
    """Yield an endless series of games for a rule; each game is drawn only once and then cached."""
    cached_inputs, new_inputs = _create_game_inputs_cache(name, seed)
    for number in itertools.count():
        if number == len(cached_inputs):
            cached_inputs.append(next(new_inputs))
        yield cached_inputs[number]


@cache
def _create_game_inputs_cache(name: str, seed: int) -> tuple[list[GameInput], Iterator[GameInput]]:
    return [], _draw_game_inputs(load_built_in_rule(name), random.Random(seed))


def _draw_game_inputs(rule: Rule, rng: random.Random) -> Iterator[GameInput]:
    while True:
        n = rng.randint(2, 8)
        low = rng.choice([0, 900, 1000])
        points = [rng.randint(low, 1000 + 40 * (1000 - low)) * rule.scale for _ in range(n)]
        if rng.random() < 0.5:
            points = [p + rng.randint(0, rule.scale - 1) for p in points]
        if rng.random() < 0.2:
            points[0] = points[1]
        ranks = [rng.randint(1, n) for _ in range(n)]
        yield (
            n,
            points,
            draw_columns_of_kind(rule, n, rng) or [draw_column(name, ranks, rng) for name in rule.columns],
        )


def draw_columns_of_kind(rule: Rule, n: int, rng: random.Random) -> list[list[int]]:
    """Return the columns of n players of a random battle or game of Diplomacy, if the rule reads these; else none."""
    if reads_kind(rule, "battle"):
        event = draw_battle(rng, n + rng.choice([0, 0, 1]))
    elif reads_kind(rule, "diplomacy"):
        event = draw_diplomacy(rng, substituted=n == 8)
    else:
        return []
    return list_columns(event, rule.columns, rng.sample(list_players(event), n))


def draw_column(name: str, ranks: list[int], rng: random.Random) -> list[int]:
    """Return a column by name.

    It has competition places of these ranks, the number of seats, the number of players who tie, victories, or random
    numbers.
    """
    if name == "victory":
        return [int(rank < 4) for rank in ranks]
    if name == "winners_place":  # some different ranks share a place
        ranks = [max(rank, 3) for rank in ranks]
    if name in ("place", "winners_place"):
        return [1 + sum(better < rank for better in ranks) for rank in ranks]
    if name == "seats":
        return [len(ranks)] * len(ranks)
    if name == "tied":
        return [ranks.count(rank) for rank in ranks]
    choices = {"status": [0, 0, 0, LEAVERS[0], SUBSTITUTE], "vp": [0, 0, 1, 3], "seconds_played": [-1, 0, 600, 601]}
    return [rng.choice(choices[name]) if name in choices else rng.randint(-1, 1_200) for _ in ranks]


def bind_score(rule: Rule, params: dict[str, object]) -> Callable[..., tuple[int, list[int]]]:
    """Return a function that returns (minted, change) of a game."""
    prepared, table = rule.prepare(rule.params.model_validate(params)), rule.table()

    def score(n: int, points: list[int], columns: list[list[int]]) -> tuple[int, list[int]]:
        change = [-99] * n
        return rule.score(n, points, columns, prepared, table, change), change

    return score


@pytest.mark.parametrize(("name", "params"), CASES)
def test_score_leaves_its_input_alone(name, params):
    """`score` does not change its input and ignores the previous content of `change`."""
    rule = load_built_in_rule(name)
    bound = rule.params.model_validate(params)
    for n, points, columns in list_game_inputs(rule, params, 50):
        before = copy.deepcopy((points, columns))
        clean, dirty = [0] * n, [12_345] * (n + 3)
        rule.score(n, points, columns, rule.prepare(bound), rule.table(), clean)
        rule.score(n, points, columns, rule.prepare(bound), rule.table(), dirty)
        assert (points, columns) == before
        assert dirty == [*clean, 12_345, 12_345, 12_345]


@pytest.mark.parametrize(("name", "params"), CASES)
def test_books_of_every_game_balance(name, params):
    """The books of every game balance: its minted points are not negative, nor are its burned points.

    The burned points are the minted points less the sum of the changes.
    """
    rule = load_built_in_rule(name)
    score = bind_score(rule, params)
    for game in list_game_inputs(rule, params, 500):
        minted, change = score(*game)
        burned = minted - sum(change)
        assert minted >= 0
        assert burned >= 0


@pytest.mark.parametrize(("name", "params"), CASES)
def test_explained_terms_sum_to_the_change(name, params):
    """The terms of an explanation sum to the change."""
    rule = load_built_in_rule(name)
    bound, score = rule.params.model_validate(params), bind_score(rule, params)
    for n, points, columns in list_game_inputs(rule, params, 200):
        _, change = score(n, points, columns)
        terms = rule.explain(n, [f"p{i}" for i in range(n)], points, columns, bound, change)
        assert [sum(term.amount for term in player_terms) for player_terms in terms] == change


@pytest.mark.parametrize(("name", "params"), CASES)
def test_params_round_trip_and_are_strict(name, params):
    """Parameters survive a JSON round trip, reject unknown keys and are frozen."""
    model = load_built_in_rule(name).params
    bound = model.model_validate(params)
    assert model.model_validate(json.loads(json.dumps(bound.model_dump(exclude_unset=True)))) == bound
    with pytest.raises(ValueError, match="unknown"):
        model.model_validate({**params, "unknown": 1})
    with pytest.raises(ValueError, match="frozen"):
        bound.start = 1


@pytest.mark.parametrize(("name", "params"), CASES)
def test_prepared_params_fit_64_bits(name, params):
    """Prepared parameters and tables fit into 64 bits."""
    rule = load_built_in_rule(name)
    bound = rule.params.model_validate(params)
    assert rule.refuse_params(bound, PLAYERS_MAX) is None
    assert all(abs(number) <= INT64_MAX for number in [*rule.prepare(bound), *rule.table()])


@pytest.mark.parametrize(("name", "params"), CASES)
def test_score_stays_in_64_bits(name, params):
    """No step of `score` overflows 64 bits at the largest points that a replay allows."""
    rule, rng = load_built_in_rule(name), random.Random(2)
    bound, score = rule.params.model_validate(params), bind_score(rule, params)
    for n, _, columns in list_game_inputs(rule, params, 100):
        points = [rng.choice([UNITS_MAX, UNITS_MAX - 1, -UNITS_MAX, 0]) for _ in range(n)]
        change = [0] * n
        rule.score(n, to_checked(points), to_checked(columns), to_checked(rule.prepare(bound)), rule.table(), change)
        assert change == score(n, points, columns)[1]


@pytest.mark.parametrize("name", list_built_in_rules())
def test_rule_is_registered_under_its_name(name):
    """A rule is registered under its own name and number."""
    assert load_built_in_rule(name).id == name
    assert load_built_in_rule(name).scale > 0


@pytest.mark.slow
def test_rule_behaviour_never_changes(pytestconfig):
    """The behaviour of a numbered rule never changes.

    The digests of 2,000 fixed games under each set of parameters equal the golden ones.
    """
    digests = {}
    for name, params in CASES:
        rule = load_built_in_rule(name)
        score = bind_score(rule, params)
        results = [score(*game) for game in list_game_inputs(rule, params, 2_000, seed=7)]
        digests[f"{name} {json.dumps(params, sort_keys=True)}"] = hashlib.sha256(repr(results).encode()).hexdigest()
    if pytestconfig.getoption("write_golden"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert digests == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "either k_per_pair"),
        ({"k_per_pair": 8, "k_total": 64}, "either k_per_pair"),
        ({"k_per_pair": 8, "rounding": "total", "update": "sequential"}, "which rounds each step"),
        ({"k_per_pair": 401}, "at most 400"),
        ({"k_per_pair": "123456789/987654321"}, "exact 64-bit arithmetic"),
    ],
)
def test_pairwise_elo_rejects_unusable_params(params, reason):
    """Pairwise Elo rejects contradictory parameters, and those that it could not keep exact."""
    bound = ELO.params.model_validate(params)
    assert reason in ELO.refuse_params(bound, PLAYERS_MAX)


@pytest.mark.parametrize("k", [0, -8, "x", "1/0", "1e400000", 8.0, True])
def test_k_must_be_positive_and_exact(k):
    """K must be a positive exact number."""
    with pytest.raises(ValueError):
        ELO.params.model_validate({"k_per_pair": k})


def test_k_may_be_a_fraction():
    """K may be a fraction."""
    assert Fraction(ELO.params(k_per_pair="64/3").k_per_pair) == Fraction(64, 3)
