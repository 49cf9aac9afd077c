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
from kernel_calls import call_compiled, check_compiled_game, play
from lengths import mark_many_cases
from own_rules import load_built_in_rule

from ratings_ledger.projections.rules.pairwise_elo_2 import k_of, side_lead
from ratings_ledger.projections.rulesets.versions import read_ruleset, read_toml
from ratings_ledger.rules import MISSING, ONE

RULE = load_built_in_rule("pairwise-elo/2")
NFL = {"k": 20, "home": 65, "margin": "ln", "reversion": "1/3", "reversion_to": 1505}
NBA = {"k": 20, "home": 100, "margin": "power", "start": 1300, "reversion": "1/4", "reversion_to": 1505}
DATA = Path(__file__).parents[3] / "shared" / "data" / "nba"

SCALE = RULE.scale
NONE = MISSING


def params_of(**params: Any) -> Any:
    """Return checked parameters."""
    checked = RULE.params.model_validate(params)
    assert RULE.refuse_params(checked, 100) is None
    return checked


def game(
    places: list[int], scores: list[int] | None = None, *, home: list[int] | None = None,
    team: list[int] | None = None, games: list[int] | None = None, weight: int = NONE,
) -> list[list[int]]:  # fmt: skip
    """Return the columns of a game."""
    n = len(places)
    return [places, [0] * n, team or [NONE] * n, home or [0] * n, scores or [NONE] * n, games or [0] * n, [weight] * n]


def rate(ratings: list[str | int], columns: list[list[int]], **params: Any) -> tuple[int, list[Decimal]]:
    """Return what a game minted, in units, and the changes in points."""
    before = [[int(Decimal(rating) * SCALE) for rating in ratings]]
    minted, after = play(RULE, params_of(**params), before, columns)
    return minted, [Decimal(new - old) / SCALE for new, old in zip(after[0], before[0], strict=True)]


@pytest.mark.parametrize(
    ("columns", "params", "changes"),
    [
        # computed with a pocket calculator from the formulas as FiveThirtyEight prints them
        (game([1, 2], [27, 20], home=[1, -1]), NFL, ["16.462462", "-16.462462"]),
        (game([1, 1], [20, 20], home=[1, -1]), NFL, ["-2.820079", "2.820079"]),
        (game([1, 2], home=[1, -1]), {"k": 20, "home": 65}, ["8.150675", "-8.150675"]),
        # the member with few games has another K than the opponent: 32 points of 40, and 4 of 8
        (game([1, 2], games=[0, 30]), {"k": [{"below": 30, "k": 40}, {"k": 8}]}, ["20", "-4"]),
        # 250 / 5^0.4 / 2, 250 / 105^0.4 / 2
        (
            game([1, 2], games=[0, 100]),
            {"k": {"numerator": 250, "offset": 5, "power": "0.4"}},
            ["65.663195", "-19.428277"],
        ),
        (game([1, 2], [3, 1]), {"margin": "table", "margin_factors": [1, 1, "1.5"]}, ["15", "-15"]),
        (game([1, 2], [9, 1]), {"margin": "table", "margin_factors": [1, 1, "1.5", "7/4"]}, ["17.5", "-17.5"]),
        (game([1, 2], weight=150), {"weight_one": 100}, ["15", "-15"]),
        (game([1, 2, 3]), {"k": 30}, ["15", "0", "-15"]),
        (game([1, 2, 1, 2], team=[0, 1, 0, 1]), {"k": 30}, ["15", "-15", "15", "-15"]),
    ],
)  # fmt: skip
def test_examples_by_hand(columns: list[list[int]], params: dict[str, Any], changes: list[str]) -> None:
    """Players with 1500 each: what margins, home advantage, K, weights, teams and several sides give."""
    minted, found = rate([1500] * len(changes), columns, **params)
    assert found == [Decimal(change) for change in changes]
    assert minted == max(sum(int(change * SCALE) for change in found), 0)


def test_doubles_are_rated_by_the_mean_or_the_sum() -> None:
    """Two against two: 1600 and 1400 are worth two of 1500; by the sum, a gap of 100 counts double."""
    columns = game([1, 1, 2, 2], team=[1, 1, 0, 0])
    assert rate([1600, 1400, 1500, 1500], columns)[1] == [10, 10, -10, -10]
    _, mean = rate([1600, 1500, 1500, 1500], columns)
    _, total = rate([1600, 1500, 1500, 1500], columns, teams="sum")
    _, single = rate([1600, 1500], game([1, 2]))
    _, half = rate([1550, 1500], game([1, 2]))
    assert (total[0], mean[0]) == (single[0], half[0])


def test_hopeless_players_keep_one_unit_of_a_chance() -> None:
    """However far apart two players are, nobody is certain to win, and their chances sum to one."""
    assert RULE.chance is not None
    rest = [[8_000 * SCALE, 0]], game([1, 2]), RULE.prepare(params_of()), ()
    assert (RULE.chance(0, 1, *rest), RULE.chance(1, 0, *rest)) == (ONE - 1, 1)


def test_davidson_expects_draws() -> None:
    """With kappa 1 equal players win, draw and lose in a third of the games each, and a draw moves nobody."""
    params = params_of(kappa=1)
    arguments = (0, 1, [[1500 * SCALE] * 2], game([1, 1]), RULE.prepare(params), ())
    assert RULE.chance is not None
    assert RULE.draw is not None
    assert (RULE.chance(*arguments), RULE.draw(*arguments)) == (ONE // 2, ONE // 3)
    assert rate([1500, 1500], game([1, 1]), kappa=1)[1] == [0, 0]


def test_a_season_draws_ratings_to_the_mean() -> None:
    """A third of the way from 1605 to 1505, and nothing without a reversion."""
    assert RULE.new_season is not None
    assert RULE.new_season((1605 * SCALE,), RULE.prepare(params_of(**NFL))) == (1571_666_667,)
    assert RULE.new_season((1605 * SCALE,), RULE.prepare(params_of())) == (1605 * SCALE,)


def oracle(before: Sequence[Decimal | int], columns: list[list[int]], params: Any) -> list[Decimal]:
    """Return the changes in points by the formulas, in 40 digits."""
    place, _, team, home, score, games, weight = columns
    n = len(before)
    side = [i if team[i] == NONE else -1 - team[i] for i in range(n)]
    exact = {name: number(getattr(params, name) or 0) for name in ("scale", "home", "kappa", "margin_offset")}
    divisor, slope = (
        (Decimal("7.5"), Decimal("0.006")) if params.margin == "power" else (Decimal("2.2"), Decimal("0.001"))
    )

    def rating(one: int) -> Decimal:
        members = [Decimal(before[i]) / SCALE for i in range(n) if side[i] == one]
        return sum(members, Decimal(0)) / (1 if params.teams == "sum" else len(members))

    changes = []
    for i in range(n):
        change, met = Decimal(0), set()
        for j in range(n):
            if side[j] == side[i] or side[j] in met:
                continue
            met.add(side[j])
            gap = rating(side[i]) - rating(side[j])
            gap += exact["home"] * ((home[i] == 1) - (home[j] == 1))
            win = 10 ** (gap / (2 * exact["scale"]))
            expected = (win + exact["kappa"] / 2) / (win + 1 / win + exact["kappa"])
            result = (place[i] < place[j]) - (place[i] > place[j])
            margin = Decimal(max(result * (score[i] - score[j]), 0)) / params.margin_unit
            below = max(divisor + slope * gap * result, divisor / 10)
            factor = Decimal(1)
            if params.margin == "ln":
                factor = (max(margin, Decimal(1)) + 1).ln() * divisor / (below if result else 1)
            elif params.margin == "power":
                factor = (margin + exact["margin_offset"]) ** number(params.margin_power) / below
            elif params.margin == "table":
                row = params.margin_factors
                factor = number(row[min(int(margin), len(row) - 1)])
            share = Decimal(1) if weight[i] == NONE else Decimal(weight[i]) / params.weight_one
            change += (Decimal(1 + result) / 2 - expected) * factor * share * k_after(games[i], params)
        changes.append(change / (len({*side}) - 1))
    return changes


def number(value: int | str) -> Decimal:
    """Return a parameter in 40 digits."""
    exact = Fraction(value)
    return Decimal(exact.numerator) / exact.denominator


def k_after(games: int, params: Any) -> Decimal:
    """Return K after so many games."""
    if isinstance(params.k, list):
        return next(number(step.k) for step in params.k if step.below is None or games < step.below)
    if isinstance(params.k, (int, str)):
        return number(params.k)
    return number(params.k.numerator) / (games + number(params.k.offset)) ** number(params.k.power)


FORMS: list[dict[str, Any]] = [
    NFL,
    NBA,
    {"k": "64/3", "kappa": "0.7", "home": "62.5", "scale": 173, "margin_unit": 2, "margin": "ln"},
    {"k": [{"below": 10, "k": 60}, {"below": 30, "k": 40}, {"k": "7.5"}], "teams": "sum", "weight_one": 10},
    {"k": {"numerator": 250, "offset": 5, "power": "0.4"}, "margin": "table", "margin_factors": ["0.5", 1, "11/7", 2]},
]


@pytest.mark.parametrize("count", mark_many_cases(40, 400))
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_every_form_is_within_a_unit_for_each_opponent_of_forty_digits(form: int, count: int) -> None:
    """Drawn games of two to six: a player's change is off by at most half a unit for each opposing side."""
    random, params, largest = Random(form), params_of(**FORMS[form]), Decimal(0)
    with localcontext(prec=40):
        for _ in range(count):
            n = random.randint(2, 6)
            assert RULE.sample is not None
            columns = [list(column) for column in RULE.sample(n, random, params)]
            before = [[int(random.gauss(1500, 400) * SCALE) for _ in range(n)]]
            _, after = play(RULE, params, before, columns)
            for old, new, change in zip(before[0], after[0], oracle(before[0], columns, params), strict=True):
                largest = max(largest, abs(new - old - change * SCALE) / (n - 1))
    assert 0 < largest < Decimal("0.50001"), largest


@pytest.mark.parametrize("count", mark_many_cases(40, 400))
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_the_kernel_before_rounding_is_within_1e_10_of_forty_digits(form: int, count: int) -> None:
    """Drawn games of two: what the first side gains, in points, before it becomes whole units."""
    random, params, largest = Random(form), params_of(**FORMS[form]), Decimal(0)
    constants = RULE.prepare(params)
    with localcontext(prec=40):
        for _ in range(count):
            assert RULE.sample is not None
            columns = [list(column) for column in RULE.sample(2, random, params)]
            before = [[int(random.gauss(1500, 400) * SCALE) for _ in range(2)]]
            lead = side_lead(0, 1, 2, before, columns, constants) * k_of(columns[5][0], constants)
            largest = max(largest, abs(Decimal(lead) - oracle(before[0], columns, params)[0]))
    assert 0 < largest < Decimal("1e-10"), largest


@pytest.mark.slow
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_compiled_games_have_the_same_bits(form: int) -> None:
    """100 drawn games: states, books, expected scores and draws are those of the interpreter."""
    random, params = Random(form), params_of(**FORMS[form])
    assert RULE.sample is not None
    assert RULE.new_season is not None
    for _ in range(100):
        n = random.randint(2, 6)
        before = [[int(random.gauss(1500, 400) * SCALE) for _ in range(n)]]
        check_compiled_game(RULE, params, before, RULE.sample(n, random, params))
        rating, constants = before[0][0], RULE.prepare(params)
        assert call_compiled(RULE, "new_season", rating, constants)[0] == RULE.new_season((rating,), constants)[0]


@pytest.mark.slow
def test_ratings_out_of_all_bounds_are_rated_all_the_same() -> None:
    """Adjustments can put people anywhere: the favourite's win gives nothing, and an upset at most ten times K."""
    huge = [[10**16, -(10**16)]]
    for params in (params_of(**NFL), params_of(**NBA), params_of(kappa=3)):
        for places in ([1, 2], [2, 1]):
            minted, after = play(RULE, params, huge, game(places, [7, 7]))
            assert minted == 0
            assert abs(after[0][0] - huge[0][0]) <= 400 * SCALE
            check_compiled_game(RULE, params, huge, game(places, [7, 7]))


@pytest.mark.parametrize(
    ("columns", "params", "reason"),
    [
        (game([0, 0]), {}, "the game has no places"),
        (game([1, 1], team=[3, 3]), {}, "all players are on one side"),
        (game([1, 2], [NONE, 3]), NFL, 'a score is missing; margin = "ln" needs the scores of all sides'),
        (game([1, 2], weight=-1), {}, "numbers.weight is -1; it must be from 0 to 100"),
        ([[1, 1], [1, 2], *game([1, 1])[2:]], {}, "a seat changed hands and both its players would count; the rule "
         "takes one player per seat"),
    ],
)  # fmt: skip
def test_games_that_cannot_be_scored(columns: list[list[int]], params: dict[str, Any], reason: str) -> None:
    """A game without what the rule reads is refused with the reason."""
    assert RULE.check is not None
    assert RULE.check(2, columns, params_of(**params)) == reason


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
def test_parameters_that_cannot_be_used(params: dict[str, Any], key: str) -> None:
    """Parameters out of range are refused under their key."""
    reason = RULE.refuse_params(RULE.params.model_validate(params), 100)
    assert reason is not None
    assert reason.partition(":")[0] == key


@pytest.mark.parametrize("k", ["x", -1, True, {"numerator": 1}, [{"below": 0, "k": 3}]])
def test_a_k_of_no_form_is_refused_with_all_forms(k: Any) -> None:
    """One problem under the key, not one for each form that it might have had."""
    data = {"id": "a", "version": "1", "rule": "pairwise-elo/2", "scope": {"game": ["go"]}, "params": {"k": k}}
    problems = [problem for problem in read_ruleset(data)[1] if problem.key == "params.k"]
    assert [problem.message.partition(",")[0] for problem in problems] == ["a number such as 20"]


def test_the_page_has_both_well_known_forms() -> None:
    """The rulesets on the page can be read, and have the parameters that are tested here."""
    page = (Path(__file__).parents[2] / "docs" / "systems" / "club-elo.md").read_text(encoding="utf-8")
    texts = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    for text, form in zip(texts, (NFL, NBA), strict=True):
        ruleset, problems = read_toml(text)
        assert ruleset is not None, problems
        assert ruleset.params == {"start": 1300, **form}


def test_few_games_are_provisional() -> None:
    """Below the number of games of the parameters."""
    assert RULE.provisional is not None
    params = params_of(provisional_games=10)
    assert [RULE.provisional((0,), games, params) for games in (9, 10)] == [True, False]


@pytest.mark.slow_cases
def test_an_nfl_like_chain_of_eight_seasons_is_that_of_forty_digits() -> None:
    """2,048 drawn games of 32 teams, with ties and neutral grounds: every rating within a hundred-thousandth of a point
    of a chain in `decimal`, though each goes on from rounded ratings.
    """
    random, params = Random(3), params_of(**NFL)
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
                columns = game(places, scores, home=random.choice([[1, -1], [1, -1], [-1, 1], [0, 0]]))
                _, after = play(RULE, params, [[rounded[team] for team in pair]], columns)
                changes = oracle([exact[team] * SCALE for team in pair], columns, params)
                for i, team in enumerate(pair):
                    rounded[team], exact[team] = after[0][i], exact[team] + changes[i]
            errors = [abs(Decimal(own) / SCALE - right) for own, right in zip(rounded, exact, strict=True)]
            largest = max(largest, *errors)
    assert 0 < largest < Decimal("0.00001"), largest


# FiveThirtyEight rated two games with margins of 8 and 12 instead of 13, and adjustments cover them
OTHER_MARGINS = {("2015-06-14", "GSW", "CLE"): 8, ("2016-04-05", "ATL", "PHO"): 12}


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the games of the NBA (shared/data/nba) are absent")
def test_seventy_four_years_of_published_ratings() -> None:
    """69,377 NBA games: FiveThirtyEight's ratings before and after each, within 0.001."""
    params = params_of(**NBA)
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
            RULE.score(2, before, game([1 + winner, 2 - winner], scores, home=home), constants, (), after)
            ratings.update(zip(teams, after[0], strict=True))
            games += 1
            for numbers, when in ((before, "pre"), (after, "post")):
                for index, rating in enumerate(numbers[0], 1):
                    largest = max(largest, abs(rating / SCALE - float(rated[f"elo{index}_{when}"])))
    assert games == 69_377
    assert largest < 0.001, largest


def enter_season(
    name: str, season: str, ratings: dict[str, int], last_season: dict[str, str],
    succession: dict[tuple[str, str], dict[str, str]], constants: Any,
) -> None:  # fmt: skip
    """Give a team the rating with which it begins a season: its own, its predecessor's, or a seed."""
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
