"""Predictions of shipped systems by month and week, of partners, at home and with draws, against formulas in decimals.

The oracle shares no code with the rules. It begins with the states that were stored after the last game or period.
"""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ratings_ledger import open as open_ledger

getcontext().prec = 50
Ratings = Callable[..., Any]
PI = Decimal("3.14159265358979323846264338327950288419716939937511")
Q = Decimal(10).ln() / 400
UNIT = Fraction(1, 2**32)  # of probabilities
MILLIONTH = Fraction(1, 10**6)
HEAD = """
id = "ID"
version = "1"
effective_from = 1900-01-01
time_zone = "Europe/Berlin"
scope = {game = ["chess"], kind = ["placing"]}
"""
RULESETS = {
    "glicko-month": 'rule = "glicko-1/1"\nperiod = "month"\n[params]\nc = 45\n',
    "glicko-2-week": 'rule = "glicko-2/1"\nperiod = "week"\n',
    "weng-lin": 'rule = "weng-lin-pl/1"\n',
    "club-elo": 'rule = "pairwise-elo/2"\n[params]\nk = 20\nhome = 65\nkappa = "0.6"\nweight_one = 100\nstart = 1500\n',
    "points": 'rule = "placement-points/2"\n[params]\npoints = [3, 1]\n',
}
# games in two months and three weeks; without a partner, dora plays only in the first month and week
GAMES = (
    "anna ben 09-01",
    "ben cleo 09-05",
    "dora anna 09-05",
    "cleo=anna 10-07",
    "anna ben 10-08",
    "ben cleo 10-16",
    "anna+cleo ben+dora 10-17",
)
PLAYERS = ("anna", "ben", "cleo", "dora")


def make_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger with all these rulesets and games; only Weng-Lin and Elo rate partners."""
    assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0
    for name, text in RULESETS.items():
        publish(ratings, url, name, text)
    for number, game in enumerate(GAMES):
        *sides, day = game.split()
        record(ratings, url, f"g-{number}", day, *sides)


def publish(ratings: Ratings, url: str, name: str, text: str) -> None:
    """Publish a ruleset from a file in a temporary folder."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.toml"
        top, _, params = text.partition("[params]\n")
        file.write_text(HEAD.replace("ID", name) + top + (f"[params]\n{params}" if params else ""))
        result = ratings("rules", "publish", file, db=url)
    assert result.exit_code == 0, result


def record(ratings: Ratings, url: str, game_id: str, day: str, *sides: str) -> None:
    """Record a game of a day in 2025."""
    options = ("--game-id", game_id, "--at", f"2025-{day}T12:00Z", "--partners", "+", "--new-names", "accept")
    options += ("--allow-uncounted",)
    result = ratings("record", "--game", "chess", *options, *sides, db=url)
    assert result.exit_code == 0, result


def predict(ratings: Ratings, db: str, ladder: str, *arguments: str) -> dict[str, Any]:
    """Return a prediction as JSON, and check that its probabilities sum to exactly one."""
    result = ratings("predict", ladder, *arguments, "--format", "json", db=db)
    assert result.exit_code == 0, result
    prediction: dict[str, Any] = json.loads(result.stdout)
    assert sum((Fraction(side["chance"]) for side in prediction["sides"]), Fraction(prediction["draw"])) == 1
    return prediction


def load_states(db: str, ladder: str, as_of: str | None = None) -> dict[str, tuple[Decimal, ...]]:
    """Return the stored state of every player, in points."""
    with open_ledger(db) as ledger:
        ranking = ledger.at(as_of).standings(ladder).ranking
    scales = [column.scale for column in ranking.columns]
    return {
        row.player: tuple(Decimal(value) / scale for value, scale in zip(row.state, scales, strict=True))
        for row in ranking.rows
    }


def compute_weight(deviation: Decimal, scale: Decimal) -> Decimal:
    """Return Glicko's g of a deviation in points; `scale` converts points to natural units."""
    return 1 / (1 + 3 * (scale * deviation) ** 2 / PI**2).sqrt()


def compute_logistic(lead: Decimal) -> Decimal:
    """Return the logistic function of a lead in natural units."""
    return 1 / (1 + (-lead).exp())


def is_close(number: str, exact: Decimal, error_max: Fraction) -> bool:
    """Tell whether a number in JSON is the exact one, up to an error."""
    return abs(Fraction(number) - Fraction(exact)) <= error_max


def compute_glicko_gain(own: tuple[Decimal, Decimal], opponent: tuple[Decimal, Decimal], score: Decimal) -> Decimal:
    """Return the gain of a single game under Glicko, from ratings and deviations at the period's start."""
    weight = compute_weight(opponent[1], Q)
    expected = compute_logistic(Q * weight * (own[0] - opponent[0]))
    return Q / (1 / own[1] ** 2 + Q**2 * weight**2 * expected * (1 - expected)) * weight * (score - expected)


@pytest.mark.ledger(make=make_ledger)
@pytest.mark.parametrize(("as_of", "months"), [("2025-10-31", 0), ("2025-11-20", 1), ("2026-03-01", 5)])
def test_glicko_predicts_by_month(as_of: str, months: int, ratings: Ratings, db: str) -> None:
    """Deviations grow by whole months, and the chance uses both; points are those of a month with only this game."""
    states, last = load_states(db, "glicko-month", as_of), {"dora": 9}
    aged = {}
    for player, (rating, deviation) in states.items():
        passed = months + 10 - last.get(player, 10)
        aged[player] = rating, min((deviation**2 + 45**2 * passed).sqrt(), Decimal(350))
    for left, right in (("anna", "ben"), ("ben", "anna"), ("cleo", "dora")):
        own, opponent = aged[left], aged[right]
        prediction = predict(ratings, db, "glicko-month", left, right, "--as-of", as_of)
        weight = compute_weight((own[1] ** 2 + opponent[1] ** 2).sqrt(), Q)
        assert is_close(
            prediction["sides"][0]["chance"], compute_logistic(Q * weight * (own[0] - opponent[0])), 4 * UNIT
        )
        assert prediction["draw"] == "0"
        for side, first, second in ((prediction["sides"][0], own, opponent), (prediction["sides"][1], opponent, own)):
            for outcome, score in (("win", Decimal(1)), ("draw", Decimal("0.5")), ("loss", Decimal(0))):
                assert is_close(side["if"][outcome], compute_glicko_gain(first, second, score), 2 * MILLIONTH)


@pytest.mark.ledger(make=make_ledger)
def test_points_at_stake_equal_those_of_the_closed_period(ratings: Ratings, db: str) -> None:
    """After its month or week closes, a recorded game has given exactly the predicted points, for every result."""
    for ladder, closes in (("glicko-month", "2025-11-30"), ("glicko-2-week", "2025-11-09")):
        prediction = predict(ratings, db, ladder, "dora", "ben", "--as-of", "2025-11-05")
        for number, (outcome, sides) in enumerate(
            {"win": ("dora", "ben"), "draw": ("dora=ben",), "loss": ("ben", "dora")}.items()
        ):
            game_id = f"{ladder}-{number}"
            record(ratings, db, game_id, "11-05", *sides)
            result = ratings("explain", game_id, ladder, "--as-of", closes, "--format", "json", db=db)
            changes = {player["player"]: player["change"] for player in json.loads(result.stdout)["players"]}
            opposite = {"win": "loss", "draw": "draw", "loss": "win"}[outcome]
            assert changes == {
                "dora": prediction["sides"][0]["if"][outcome],
                "ben": prediction["sides"][1]["if"][opposite],
            }
            assert ratings("void", game_id, "--reason", "tried", db=db).exit_code == 0


@pytest.mark.ledger(make=make_ledger)
@pytest.mark.parametrize(("as_of", "weeks"), [("2025-10-19", 0), ("2025-10-26", 1), ("2025-12-01", 7)])
def test_glicko_2_predicts_by_week(as_of: str, weeks: int, ratings: Ratings, db: str) -> None:
    """Every further week adds the squared volatility; the chance uses the deviations of both players."""
    scale = 1 / Decimal("173.7178")
    aged = {}
    for player, (rating, deviation, volatility) in load_states(db, "glicko-2-week", as_of).items():
        passed = weeks + {"anna": 1, "ben": 0, "cleo": 0, "dora": 6}[player]
        grown = (deviation**2 + max(passed - 1, 0) * (volatility / scale) ** 2).sqrt()
        aged[player] = rating, min(grown, max(deviation, Decimal(350)))
    for left, right in (("anna", "ben"), ("ben", "dora"), ("dora", "cleo")):
        own, opponent = aged[left], aged[right]
        prediction = predict(ratings, db, "glicko-2-week", left, right, "--as-of", as_of)
        lead = scale * compute_weight((own[1] ** 2 + opponent[1] ** 2).sqrt(), scale) * (own[0] - opponent[0])
        assert is_close(prediction["sides"][0]["chance"], compute_logistic(lead), 4 * UNIT)


@pytest.mark.ledger(make=make_ledger)
@pytest.mark.parametrize("sides", [("anna+ben", "cleo+dora"), ("dora", "anna+ben+cleo"), ("cleo", "dora")])
def test_weng_lin_predicts_partners(sides: Sequence[str], ratings: Ratings, db: str) -> None:
    """A side has the sums of its partners' means and variances; beta counts once for each side."""
    beta, tau = Decimal(25) / 6, Decimal(25) / 300
    states = load_states(db, "weng-lin")
    prediction = predict(ratings, db, "weng-lin", "--partners", "+", *sides)
    assert [side["players"] for side in prediction["sides"]] == [side.split("+") for side in sides]
    means = [sum((states[name][0] for name in side.split("+")), Decimal(0)) for side in sides]
    variance = sum((states[name][1] ** 2 + tau**2 for side in sides for name in side.split("+")), 2 * beta**2)
    assert is_close(
        prediction["sides"][0]["chance"], compute_logistic((means[0] - means[1]) / variance.sqrt()), 4 * UNIT
    )
    for side in prediction["sides"]:
        for outcome in ("win", "draw", "loss"):
            each = [Fraction(partner["if"][outcome]) for partner in side.get("partners", [side])]
            assert sum(each) == Fraction(side["if"][outcome])


@pytest.mark.ledger(make=make_ledger)
def test_elo_predicts_draws_home_games_and_weights(ratings: Ratings, db: str) -> None:
    """Win, draw and loss are as u : kappa : 1/u, where u has the home lead; half a weight gives half the points."""
    kappa = Decimal("0.6")
    states = load_states(db, "club-elo")
    for sides, home in (
        (("anna", "ben"), None),
        (("anna", "ben"), "anna"),
        (("ben", "cleo"), "cleo"),
        (("anna+ben", "cleo+dora"), "cleo+dora"),
    ):
        means = [
            sum((states[name][0] for name in side.split("+")), Decimal(0)) / len(side.split("+")) for side in sides
        ]
        lead = means[0] - means[1] + (0 if home is None else 65 if home == sides[0] else -65)
        u = (lead / 800 * Decimal(10).ln()).exp()
        total = u + kappa + 1 / u
        home_option = () if home is None else ("--home", home)
        prediction = predict(ratings, db, "club-elo", "--partners", "+", *sides, *home_option)
        chances = [prediction["sides"][0]["chance"], prediction["draw"], prediction["sides"][1]["chance"]]
        for chance, exact in zip(chances, (u / total, kappa / total, 1 / u / total), strict=True):
            assert is_close(chance, exact, 4 * UNIT)
        gain = 20 * (1 - u / total - kappa / total / 2)
        if "+" not in sides[0]:
            assert is_close(prediction["sides"][0]["if"]["win"], gain, 2 * MILLIONTH)
            half = predict(ratings, db, "club-elo", *sides, *home_option, "--set", "numbers.weight=50")
            assert is_close(half["sides"][0]["if"]["win"], gain / 2, 2 * MILLIONTH)


@pytest.mark.ledger(make=make_ledger, store="sqlite")
def test_unpredictable_games_are_rejected_with_reason(ratings: Ratings, db: str) -> None:
    """A rule without probabilities, and partners under a rule without partners, give exit code 1 and a reason."""
    for arguments, message in (
        (
            ("points", "anna", "ben"),
            "points has no predictions, because its rule placement-points/2 gives no probabilities",
        ),
        (("glicko-month", "--partners", "+", "anna+ben", "cleo"), "glicko-month: "),
    ):
        result = ratings("predict", *arguments, "--format", "json", db=db)
        problem = json.loads(result.stderr.splitlines()[-1])
        assert (result.exit_code, result.stdout, problem["reason"]) == (1, "", "cannot-predict")
        assert problem["message"].startswith(message)


@pytest.mark.ledger(make=make_ledger, store="sqlite")
def test_text_names_the_assumption_of_period_rules(ratings: Ratings, db: str) -> None:
    """Under a rule by period, the output says that points assume no other games; under other rules it does not."""
    stdout = ratings("predict", "glicko-month", "anna", "ben", db=db).stdout
    assert "Points assume that this is the only game of a month." in stdout.splitlines()
    assert "Points assume" not in ratings("predict", "club-elo", "anna", "ben", db=db).stdout
