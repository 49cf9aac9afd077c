"""Pairwise Elo with home advantage, margins, seasons, teams and draws: examples, and an oracle in `decimal`."""

import csv
import gzip
import re
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kernel_calls import call_compiled, check_compiled_game, record_rounding, score_game
from lengths import mark_many_cases
from own_rules import find_ruleset_problems, load_built_in_rule, read_ruleset

from ratings_ledger.rules import MISSING, ONE

RULE = load_built_in_rule("pairwise-elo/2")
NFL = {"k": 20, "home": 65, "margin": "ln", "reversion": "1/3", "reversion_to": 1505}
NBA = {"k": 20, "home": 100, "margin": "power", "start": 1300, "reversion": "1/4", "reversion_to": 1505}
DATA = Path(__file__).parents[3] / "shared" / "data" / "nba"

SCALE = RULE.scale


def build_params(**params: Any) -> Any:
    """Return checked parameters."""
    checked = RULE.params.model_validate(params)
    assert RULE.refuse_params(checked, 100) is None
    return checked


def build_columns(
    places: list[int],
    scores: list[int] | None = None,
    *,
    home: list[int] | None = None,
    team: list[int] | None = None,
    games: list[int] | None = None,
    weight: int = MISSING,
) -> list[list[int]]:
    """Return the columns of a game."""
    n = len(places)
    return [
        places,
        [0] * n,
        team or [MISSING] * n,
        home or [0] * n,
        scores or [MISSING] * n,
        games or [0] * n,
        [weight] * n,
    ]


def rate_game(ratings: list[str | int], columns: list[list[int]], **params: Any) -> tuple[int, list[Decimal]]:
    """Return the minted units of a game, and the changes in points."""
    before = [[int(Decimal(rating) * SCALE) for rating in ratings]]
    minted, after = score_game(RULE, build_params(**params), before, columns)
    return minted, [Decimal(new - old) / SCALE for new, old in zip(after[0], before[0], strict=True)]


@pytest.mark.parametrize(
    ("columns", "params", "changes"),
    [
        # computed with a pocket calculator from the formulas as FiveThirtyEight prints them
        (build_columns([1, 2], [27, 20], home=[1, -1]), NFL, ["16.462462", "-16.462462"]),
        (build_columns([1, 1], [20, 20], home=[1, -1]), NFL, ["-2.820079", "2.820079"]),
        (build_columns([1, 2], home=[1, -1]), {"k": 20, "home": 65}, ["8.150675", "-8.150675"]),
        # a player with few games has a different K from the opponent: 20 points of 40, and 4 of 8
        (build_columns([1, 2], games=[0, 30]), {"k": [{"below": 30, "k": 40}, {"k": 8}]}, ["20", "-4"]),
        # 250 / 5^0.4 / 2, 250 / 105^0.4 / 2
        (
            build_columns([1, 2], games=[0, 100]),
            {"k": {"numerator": 250, "offset": 5, "power": "0.4"}},
            ["65.663195", "-19.428277"],
        ),
        (build_columns([1, 2], [3, 1]), {"margin": "table", "margin_factors": [1, 1, "1.5"]}, ["15", "-15"]),
        (build_columns([1, 2], [9, 1]), {"margin": "table", "margin_factors": [1, 1, "1.5", "7/4"]}, ["17.5", "-17.5"]),
        (build_columns([1, 2], weight=150), {"weight_one": 100}, ["15", "-15"]),
        (build_columns([1, 2, 3]), {"k": 30}, ["15", "0", "-15"]),
        (build_columns([1, 2, 1, 2], team=[0, 1, 0, 1]), {"k": 30}, ["15", "-15", "15", "-15"]),
    ],
)
def test_examples_by_hand(columns: list[list[int]], params: dict[str, Any], changes: list[str]) -> None:
    """Players with 1500 each get the hand-computed changes for margins, home advantage, K, weights, teams and several
    sides.
    """
    minted, computed_changes = rate_game([1500] * len(changes), columns, **params)
    assert computed_changes == [Decimal(change) for change in changes]
    assert minted == max(sum(int(change * SCALE) for change in computed_changes), 0)


def test_doubles_are_rated_by_the_mean_or_the_sum() -> None:
    """A side of 1600 and 1400 equals two players of 1500. A lead of one counts half by the mean, in full by the sum."""
    columns = build_columns([1, 1, 2, 2], team=[1, 1, 0, 0])
    assert rate_game([1600, 1400, 1500, 1500], columns)[1] == [10, 10, -10, -10]
    _, mean = rate_game([1600, 1500, 1500, 1500], columns)
    _, total = rate_game([1600, 1500, 1500, 1500], columns, teams="sum")
    _, single = rate_game([1600, 1500], build_columns([1, 2]))
    _, half = rate_game([1550, 1500], build_columns([1, 2]))
    assert (total[0], mean[0]) == (single[0], half[0])


def test_extreme_gap_leaves_one_unit_of_chance() -> None:
    """For any gap between two players no win is certain, and the chances sum to one."""
    assert RULE.chance is not None
    arguments = [[8_000 * SCALE, 0]], build_columns([1, 2]), RULE.prepare(build_params()), ()
    assert (RULE.chance(0, 1, *arguments), RULE.chance(1, 0, *arguments)) == (ONE - 1, 1)


def test_davidson_expects_draws() -> None:
    """With kappa 1, equal players win, draw and lose in a third of the games each, and a draw changes no points."""
    params = build_params(kappa=1)
    arguments = (0, 1, [[1500 * SCALE] * 2], build_columns([1, 1]), RULE.prepare(params), ())
    assert RULE.chance is not None
    assert RULE.draw is not None
    assert (RULE.chance(*arguments), RULE.draw(*arguments)) == (ONE // 2, ONE // 3)
    assert rate_game([1500, 1500], build_columns([1, 1]), kappa=1)[1] == [0, 0]


def test_new_season_moves_ratings_toward_the_mean() -> None:
    """A new season moves 1605 a third of the way to 1505, or not at all without a reversion."""
    assert RULE.new_season is not None
    assert RULE.new_season((1605 * SCALE,), RULE.prepare(build_params(**NFL))) == (1571_666_667,)
    assert RULE.new_season((1605 * SCALE,), RULE.prepare(build_params())) == (1605 * SCALE,)


def compute_changes(before: Sequence[Decimal | int], columns: list[list[int]], params: Any) -> list[Decimal]:
    """Return the changes in points by the formulas, in 40 digits."""
    place, _, team, home, score, games, weight = columns
    n = len(before)
    side = [i if team[i] == MISSING else -1 - team[i] for i in range(n)]
    exact = {name: to_decimal(getattr(params, name) or 0) for name in ("scale", "home", "kappa", "margin_offset")}
    divisor, slope = (
        (Decimal("7.5"), Decimal("0.006")) if params.margin == "power" else (Decimal("2.2"), Decimal("0.001"))
    )

    def rating(side_number: int) -> Decimal:
        members = [Decimal(before[i]) / SCALE for i in range(n) if side[i] == side_number]
        return sum(members, Decimal(0)) / (1 if params.teams == "sum" else len(members))

    changes = []
    for i in range(n):
        change, opposing_sides = Decimal(0), set()
        for j in range(n):
            if side[j] == side[i] or side[j] in opposing_sides:
                continue
            opposing_sides.add(side[j])
            gap = rating(side[i]) - rating(side[j])
            gap += exact["home"] * ((home[i] == 1) - (home[j] == 1))
            win = 10 ** (gap / (2 * exact["scale"]))
            expected = (win + exact["kappa"] / 2) / (win + 1 / win + exact["kappa"])
            result = (place[i] < place[j]) - (place[i] > place[j])
            margin = Decimal(max(result * (score[i] - score[j]), 0)) / params.margin_unit
            denominator = max(divisor + slope * gap * result, divisor / 10)
            factor = Decimal(1)
            if params.margin == "ln":
                factor = (max(margin, Decimal(1)) + 1).ln() * divisor / (denominator if result else 1)
            elif params.margin == "power":
                factor = (margin + exact["margin_offset"]) ** to_decimal(params.margin_power) / denominator
            elif params.margin == "table":
                row = params.margin_factors
                factor = to_decimal(row[min(int(margin), len(row) - 1)])
            share = Decimal(1) if weight[i] == MISSING else Decimal(weight[i]) / params.weight_one
            change += (Decimal(1 + result) / 2 - expected) * factor * share * compute_k(games[i], params)
        changes.append(change / (len({*side}) - 1))
    return changes


def to_decimal(value: int | str) -> Decimal:
    """Return a parameter in 40 digits."""
    exact = Fraction(value)
    return Decimal(exact.numerator) / exact.denominator


def compute_k(games: int, params: Any) -> Decimal:
    """Return K after this number of games."""
    if isinstance(params.k, list):
        return next(to_decimal(step.k) for step in params.k if step.below is None or games < step.below)
    if isinstance(params.k, (int, str)):
        return to_decimal(params.k)
    return to_decimal(params.k.numerator) / (games + to_decimal(params.k.offset)) ** to_decimal(params.k.power)


PARAMETER_SETS: list[dict[str, Any]] = [
    NFL,
    NBA,
    {"k": "64/3", "kappa": "0.7", "home": "62.5", "scale": 173, "margin_unit": 2, "margin": "ln"},
    {"k": [{"below": 10, "k": 60}, {"below": 30, "k": 40}, {"k": "7.5"}], "teams": "sum", "weight_one": 10},
    {"k": {"numerator": 250, "offset": 5, "power": "0.4"}, "margin": "table", "margin_factors": ["0.5", 1, "11/7", 2]},
]


@pytest.mark.parametrize("count", mark_many_cases(40, 400))
@pytest.mark.parametrize("index", range(len(PARAMETER_SETS)))
def test_changes_are_within_half_a_unit_per_opponent(index: int, count: int) -> None:
    """In random games of two to six players, a change is within half a unit per other player of the exact one."""
    random, params, largest = Random(index), build_params(**PARAMETER_SETS[index]), Decimal(0)
    with localcontext(prec=40):
        for _ in range(count):
            n = random.randint(2, 6)
            assert RULE.sample is not None
            columns = [list(column) for column in RULE.sample(n, random, params)]
            before = [[int(random.gauss(1500, 400) * SCALE) for _ in range(n)]]
            _, after = score_game(RULE, params, before, columns)
            for old, new, change in zip(before[0], after[0], compute_changes(before[0], columns, params), strict=True):
                largest = max(largest, abs(new - old - change * SCALE) / (n - 1))
    assert 0 < largest < Decimal("0.50001"), largest


@pytest.mark.parametrize("count", mark_many_cases(40, 400))
@pytest.mark.parametrize("index", range(len(PARAMETER_SETS)))
def test_unrounded_gain_is_within_1e_10_of_the_exact(index: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In random games of two players, the first side's gain before rounding is within 1e-10 points of the exact one."""
    random, params, largest = Random(index), build_params(**PARAMETER_SETS[index]), Decimal(0)
    constants, unrounded = RULE.prepare(params), record_rounding(monkeypatch, RULE)
    with localcontext(prec=40):
        for _ in range(count):
            assert RULE.sample is not None
            columns = [list(column) for column in RULE.sample(2, random, params)]
            before = [[int(random.gauss(1500, 400) * SCALE) for _ in range(2)]]
            unrounded.clear()
            RULE.score(2, before, columns, constants, RULE.table(), [[*before[0]]])
            gain, _ = unrounded
            largest = max(largest, abs(Decimal(gain) - compute_changes(before[0], columns, params)[0]))
    assert 0 < largest < Decimal("1e-10"), largest


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(PARAMETER_SETS)))
def test_compiled_games_equal_interpreted_ones(index: int) -> None:
    """In 100 random games, compiled states, books, chances and draws equal the interpreted ones."""
    random, params = Random(index), build_params(**PARAMETER_SETS[index])
    assert RULE.sample is not None
    assert RULE.new_season is not None
    for _ in range(100):
        n = random.randint(2, 6)
        before = [[int(random.gauss(1500, 400) * SCALE) for _ in range(n)]]
        check_compiled_game(RULE, params, before, RULE.sample(n, random, params))
        rating, constants = before[0][0], RULE.prepare(params)
        assert call_compiled(RULE, "new_season", rating, constants)[0] == RULE.new_season((rating,), constants)[0]


@pytest.mark.slow
def test_extreme_ratings_can_be_rated() -> None:
    """At extreme ratings nothing is minted, and a change stays within 400 points."""
    huge = [[10**16, -(10**16)]]
    for params in (build_params(**NFL), build_params(**NBA), build_params(kappa=3)):
        for places in ([1, 2], [2, 1]):
            minted, after = score_game(RULE, params, huge, build_columns(places, [7, 7]))
            assert minted == 0
            assert abs(after[0][0] - huge[0][0]) <= 400 * SCALE
            check_compiled_game(RULE, params, huge, build_columns(places, [7, 7]))


@pytest.mark.parametrize(
    ("columns", "params", "reason"),
    [
        (build_columns([0, 0]), {}, "the game has no places"),
        (build_columns([1, 1], team=[3, 3]), {}, "all players are on one side"),
        (build_columns([1, 2], [MISSING, 3]), NFL, 'a score is missing; margin = "ln" needs the scores of all sides'),
        (build_columns([1, 2], weight=-1), {}, "numbers.weight is -1; it must be from 0 to 100"),
        (
            [[1, 1], [1, 2], *build_columns([1, 1])[2:]],
            {},
            "a seat changed hands and both its players would count; the rule takes one player per seat",
        ),
    ],
)
def test_games_that_cannot_be_scored_are_rejected(
    columns: list[list[int]], params: dict[str, Any], reason: str
) -> None:
    """A game without data that the rule reads is rejected with the reason."""
    assert RULE.check is not None
    assert RULE.check(2, columns, build_params(**params)) == reason


@pytest.mark.parametrize(
    ("params", "key"),
    [
        ({"k": []}, "params.k"),
        ({"k": [{"k": 20}, {"below": 3, "k": 10}]}, "params.k"),
        ({"k": [{"below": 3, "k": 20}]}, "params.k"),
        ({"k": [{"below": 9, "k": 30}, {"below": 3, "k": 20}, {"k": 10}]}, "params.k"),
        ({"reversion": "3/2"}, "params.reversion"),
        ({"margin": "table"}, "params.margin_factors"),
        ({"margin_factors": [1]}, "params.margin_factors"),
        ({"home": 100_001}, "params.home"),
        ({"margin": "power", "margin_power": 900}, "params"),
        ({"k": {"numerator": 250, "offset": "0.000000001", "power": 100}}, "params"),
        ({"k": 999_999_999, "margin": "ln"}, "params"),
    ],
)
def test_parameters_out_of_range_are_rejected(params: dict[str, Any], key: str) -> None:
    """Parameters out of range are rejected under their key."""
    reason = RULE.refuse_params(RULE.params.model_validate(params), 100)
    assert reason is not None
    assert reason.partition(":")[0] == key


@pytest.mark.parametrize("k", ['"x"', "-1", "true", "{numerator = 1}", "[{below = 0, k = 3}]"])
def test_invalid_k_is_one_problem(k: str) -> None:
    """A K of no valid form is one problem under its key, not one for each possible form."""
    text = f'id = "a"\nversion = "1"\nrule = "pairwise-elo/2"\nscope.game = ["go"]\nparams.k = {k}\n'
    problems = [problem for problem in find_ruleset_problems(text) if problem.key == "params.k"]
    assert [problem.message.partition(",")[0] for problem in problems] == ["a number such as 20"]


def test_page_has_the_tested_rulesets() -> None:
    """The rulesets on the page can be read, and have the parameters tested here."""
    page = (Path(__file__).parents[2] / "docs" / "systems" / "club-elo.md").read_text(encoding="utf-8")
    texts = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    for text, params in zip(texts, (NFL, NBA), strict=True):
        assert read_ruleset(text).params == {"start": 1300, **params}


def test_few_games_are_provisional() -> None:
    """Ratings are provisional below the number of games in the parameters."""
    assert RULE.provisional is not None
    params = build_params(provisional_games=10)
    assert [RULE.provisional((0,), games, params) for games in (9, 10)] == [True, False]


@pytest.mark.slow_cases
def test_eight_seasons_stay_close_to_forty_digits() -> None:
    """After 2,048 random games in eight seasons, every rating is within a hundred-thousandth of the exact one.

    The games have ties and neutral grounds, and each game starts from rounded ratings.
    """
    random, params = Random(3), build_params(**NFL)
    constants, largest = RULE.prepare(params), Decimal(0)
    assert RULE.new_season is not None
    rounded = [1300 * SCALE + team * 13 * SCALE for team in range(32)]
    with localcontext(prec=40):
        exact = [Decimal(rating) / SCALE for rating in rounded]
        for _ in range(8):
            for team in range(32):
                rounded[team] = RULE.new_season((rounded[team],), constants)[0]
                exact[team] += (1505 - exact[team]) / 3
            for _ in range(256):
                pair = random.sample(range(32), 2)
                scores = [random.randint(0, 30), random.randint(0, 30)]
                places = [1 + (scores[0] < scores[1]), 1 + (scores[1] < scores[0])]
                columns = build_columns(places, scores, home=random.choice([[1, -1], [1, -1], [-1, 1], [0, 0]]))
                _, after = score_game(RULE, params, [[rounded[team] for team in pair]], columns)
                changes = compute_changes([exact[team] * SCALE for team in pair], columns, params)
                for i, team in enumerate(pair):
                    rounded[team], exact[team] = after[0][i], exact[team] + changes[i]
            errors = [
                abs(Decimal(rounded_rating) / SCALE - exact_rating)
                for rounded_rating, exact_rating in zip(rounded, exact, strict=True)
            ]
            largest = max(largest, *errors)
    assert 0 < largest < Decimal("0.00001"), largest


# FiveThirtyEight rated these two games with margins of 8 and 12
OTHER_MARGINS = {("2015-06-14", "GSW", "CLE"): 8, ("2016-04-05", "ATL", "PHO"): 12}


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the games of the NBA (shared/data/nba) are absent")
def test_published_nba_ratings_are_reproduced() -> None:
    """In 69,377 NBA games, FiveThirtyEight's ratings before and after each game are reproduced within 0.001."""
    params = build_params(**NBA)
    constants = RULE.prepare(params)
    ratings: dict[str, int] = {}
    last_season: dict[str, str] = {}
    with (DATA / "succession.csv").open(encoding="utf-8", newline="") as file:
        succession = {(row["season"], row["team"]): row for row in csv.DictReader(file)}
    largest, games = 0.0, 0
    with gzip.open(DATA / "games.csv.gz", "rt") as file, gzip.open(DATA / "elo.csv.gz", "rt") as published:
        for row, rated in zip(csv.DictReader(file), csv.DictReader(published), strict=True):
            teams = [row["home_team"], row["away_team"]]
            for name in teams:
                if last_season.get(name) != row["season"]:
                    enter_season(name, row["season"], ratings, last_season, succession, constants)
            scores = [int(row["home_score"]), int(row["away_score"])]
            winner = 0 if scores[0] > scores[1] else 1
            if margin := OTHER_MARGINS.get((row["date"], *teams)):
                scores[winner] = scores[1 - winner] + margin
            before = [[ratings[name] for name in teams]]
            after = [[*before[0]]]
            home = [0, 0] if row["neutral"] == "1" else [1, -1]
            RULE.score(2, before, build_columns([1 + winner, 2 - winner], scores, home=home), constants, (), after)
            ratings.update(zip(teams, after[0], strict=True))
            games += 1
            for numbers, when in ((before, "pre"), (after, "post")):
                for index, rating in enumerate(numbers[0], 1):
                    largest = max(largest, abs(rating / SCALE - float(rated[f"elo{index}_{when}"])))
    assert games == 69_377
    assert largest < 0.001, largest


def enter_season(
    name: str,
    season: str,
    ratings: dict[str, int],
    last_season: dict[str, str],
    succession: dict[tuple[str, str], dict[str, str]],
    constants: Any,
) -> None:
    """Give a team its rating for a new season: its own, its predecessor's, or a seed."""
    assert RULE.new_season is not None
    origin = succession.get((season, name))
    if origin and origin["start"]:
        ratings[name] = int(origin["start"]) * SCALE
    elif origin or name in last_season:
        before = ratings[origin["from"] if origin else name]
        ratings[name] = RULE.new_season((before,), constants)[0]
    else:
        ratings[name] = 1300 * SCALE
    last_season[name] = season
