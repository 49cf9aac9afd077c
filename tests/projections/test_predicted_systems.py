"""Predictions of shipped systems: by month, by week, of partners, at home, with draws; against formulas in decimals.

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
# two months and three weeks with games; dora plays in the first ones alone
GAMES = ("anna ben 09-01", "ben cleo 09-05", "dora anna 09-05", "cleo=anna 10-07", "anna ben 10-08", "ben cleo 10-16",
         "anna+cleo ben+dora 10-17")  # fmt: skip
PLAYERS = ("anna", "ben", "cleo", "dora")


def played(ratings: Ratings, url: str) -> None:
    """Make a ledger with all these rulesets and games; partners are rated by Weng-Lin and Elo alone."""
    assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0
    for name, text in RULESETS.items():
        publish(ratings, url, name, text)
    for number, game in enumerate(GAMES):
        *sides, day = game.split()
        record(ratings, url, f"g-{number}", day, *sides)


def publish(ratings: Ratings, url: str, name: str, text: str) -> None:
    """Publish a ruleset, from a file beside the test's ledger or in a folder of its own."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.toml"
        top, _, params = text.partition("[params]\n")
        file.write_text(HEAD.replace("ID", name) + top + (f"[params]\n{params}" if params else ""))
        told = ratings("rules", "publish", file, db=url)
    assert told.exit_code == 0, told


def record(ratings: Ratings, url: str, game_id: str, day: str, *sides: str) -> None:
    """Record a game of a day in 2025."""
    options = ("--game-id", game_id, "--at", f"2025-{day}T12:00Z", "--partners", "+", "--new-names", "accept")
    options += ("--allow-uncounted",)
    told = ratings("record", "--game", "chess", *options, *sides, db=url)
    assert told.exit_code == 0, told


def predict(ratings: Ratings, db: str, ladder: str, *arguments: str) -> dict[str, Any]:
    """Return a prediction as JSON, whose probabilities sum to one, exactly."""
    told = ratings("predict", ladder, *arguments, "--format", "json", db=db)
    assert told.exit_code == 0, told
    found: dict[str, Any] = json.loads(told.stdout)
    assert sum((Fraction(side["chance"]) for side in found["sides"]), Fraction(found["draw"])) == 1
    return found


def stored_states(db: str, ladder: str, as_of: str | None = None) -> dict[str, tuple[Decimal, ...]]:
    """Return what is stored about everybody, in points."""
    with open_ledger(db) as ledger:
        ranking = ledger.at(as_of).standings(ladder).ranking
    scales = [column.scale for column in ranking.columns]
    return {row.player: tuple(Decimal(value) / scale for value, scale in zip(row.state, scales, strict=True))
            for row in ranking.rows}  # fmt: skip


def weaken(deviation: Decimal, scale: Decimal) -> Decimal:
    """Return g of a deviation in units of 1 / `scale`."""
    return 1 / (1 + 3 * (scale * deviation) ** 2 / PI**2).sqrt()


def expect(lead: Decimal) -> Decimal:
    """Return the logistic function of a lead in natural units."""
    return 1 / (1 + (-lead).exp())


def is_close(found: str, exact: Decimal, most: Fraction) -> bool:
    """Tell whether a number in JSON is the exact one, up to a few units."""
    return abs(Fraction(found) - Fraction(exact)) <= most


def glicko_gain(own: tuple[Decimal, Decimal], other: tuple[Decimal, Decimal], score: Decimal) -> Decimal:
    """Return what a single game gives under Glicko, from ratings and deviations at the period's start."""
    weight = weaken(other[1], Q)
    expected = expect(Q * weight * (own[0] - other[0]))
    return Q / (1 / own[1] ** 2 + Q**2 * weight**2 * expected * (1 - expected)) * weight * (score - expected)


@pytest.mark.ledger(make=played)
@pytest.mark.parametrize(("as_of", "months"), [("2025-10-31", 0), ("2025-11-20", 1), ("2026-03-01", 5)])
def test_glicko_by_month(as_of: str, months: int, ratings: Ratings, db: str) -> None:
    """Deviations grow by whole months, both count in the chance; the points are those of a month with this game."""
    states, last = stored_states(db, "glicko-month", as_of), {"dora": 9}
    aged = {}
    for player, (rating, deviation) in states.items():
        passed = months + 10 - last.get(player, 10)
        aged[player] = rating, min((deviation**2 + 45**2 * passed).sqrt(), Decimal(350))
    for left, right in (("anna", "ben"), ("ben", "anna"), ("cleo", "dora")):
        own, other = aged[left], aged[right]
        found = predict(ratings, db, "glicko-month", left, right, "--as-of", as_of)
        both = weaken((own[1] ** 2 + other[1] ** 2).sqrt(), Q)
        assert is_close(found["sides"][0]["chance"], expect(Q * both * (own[0] - other[0])), 4 * UNIT)
        assert found["draw"] == "0"
        for side, first, second in ((found["sides"][0], own, other), (found["sides"][1], other, own)):
            for outcome, score in (("win", Decimal(1)), ("draw", Decimal("0.5")), ("loss", Decimal(0))):
                assert is_close(side["if"][outcome], glicko_gain(first, second, score), 2 * MILLIONTH)


@pytest.mark.ledger(make=played)
def test_points_at_stake_are_those_of_the_next_period(ratings: Ratings, db: str) -> None:
    """For every result the game, once it is recorded and its month or week closed, gives exactly what was said."""
    for ladder, closes in (("glicko-month", "2025-11-30"), ("glicko-2-week", "2025-11-09")):
        said = predict(ratings, db, ladder, "dora", "ben", "--as-of", "2025-11-05")
        for number, (outcome, sides) in enumerate({"win": ("dora", "ben"), "draw": ("dora=ben",),
                                                   "loss": ("ben", "dora")}.items()):  # fmt: skip
            game_id = f"{ladder}-{number}"
            record(ratings, db, game_id, "11-05", *sides)
            told = ratings("explain", game_id, ladder, "--as-of", closes, "--format", "json", db=db)
            gave = {one["player"]: one["change"] for one in json.loads(told.stdout)["players"]}
            opposite = {"win": "loss", "draw": "draw", "loss": "win"}[outcome]
            assert gave == {"dora": said["sides"][0]["if"][outcome], "ben": said["sides"][1]["if"][opposite]}
            assert ratings("void", game_id, "--reason", "tried", db=db).exit_code == 0


@pytest.mark.ledger(make=played)
@pytest.mark.parametrize(("as_of", "weeks"), [("2025-10-19", 0), ("2025-10-26", 1), ("2025-12-01", 7)])
def test_glicko_2_by_week(as_of: str, weeks: int, ratings: Ratings, db: str) -> None:
    """Every further week adds the square of the volatility; a chance has the deviations of both."""
    scale = 1 / Decimal("173.7178")
    aged = {}
    for player, (rating, deviation, volatility) in stored_states(db, "glicko-2-week", as_of).items():
        passed = weeks + {"anna": 1, "ben": 0, "cleo": 0, "dora": 6}[player]
        grown = (deviation**2 + max(passed - 1, 0) * (volatility / scale) ** 2).sqrt()
        aged[player] = rating, min(grown, max(deviation, Decimal(350)))
    for left, right in (("anna", "ben"), ("ben", "dora"), ("dora", "cleo")):
        own, other = aged[left], aged[right]
        found = predict(ratings, db, "glicko-2-week", left, right, "--as-of", as_of)
        lead = scale * weaken((own[1] ** 2 + other[1] ** 2).sqrt(), scale) * (own[0] - other[0])
        assert is_close(found["sides"][0]["chance"], expect(lead), 4 * UNIT)


@pytest.mark.ledger(make=played)
@pytest.mark.parametrize("sides", [("anna+ben", "cleo+dora"), ("dora", "anna+ben+cleo"), ("cleo", "dora")])
def test_weng_lin_with_partners(sides: Sequence[str], ratings: Ratings, db: str) -> None:
    """A side has the sum of its partners' means and variances; beta counts once for each side."""
    beta, tau = Decimal(25) / 6, Decimal(25) / 300
    states = stored_states(db, "weng-lin")
    found = predict(ratings, db, "weng-lin", "--partners", "+", *sides)
    assert [side["players"] for side in found["sides"]] == [side.split("+") for side in sides]
    means = [sum((states[name][0] for name in side.split("+")), Decimal(0)) for side in sides]
    both = sum((states[name][1] ** 2 + tau**2 for side in sides for name in side.split("+")), 2 * beta**2)
    assert is_close(found["sides"][0]["chance"], expect((means[0] - means[1]) / both.sqrt()), 4 * UNIT)
    for side in found["sides"]:
        for outcome in ("win", "draw", "loss"):
            each = [Fraction(one["if"][outcome]) for one in side.get("partners", [side])]
            assert sum(each) == Fraction(side["if"][outcome])


@pytest.mark.ledger(make=played)
def test_davidson_draws_at_home_and_by_weight(ratings: Ratings, db: str) -> None:
    """Win u, draw kappa, loss 1/u, u of the lead with home; half a weight gives half the points."""
    kappa = Decimal("0.6")
    states = stored_states(db, "club-elo")
    for sides, home in ((("anna", "ben"), None), (("anna", "ben"), "anna"), (("ben", "cleo"), "cleo"),
                        (("anna+ben", "cleo+dora"), "cleo+dora")):  # fmt: skip
        means = [sum((states[name][0] for name in side.split("+")), Decimal(0)) / len(side.split("+"))
                 for side in sides]  # fmt: skip
        lead = means[0] - means[1] + (0 if home is None else 65 if home == sides[0] else -65)
        u = (lead / 800 * Decimal(10).ln()).exp()
        total = u + kappa + 1 / u
        more = () if home is None else ("--home", home)
        found = predict(ratings, db, "club-elo", "--partners", "+", *sides, *more)
        chances = [found["sides"][0]["chance"], found["draw"], found["sides"][1]["chance"]]
        for chance, exact in zip(chances, (u / total, kappa / total, 1 / u / total), strict=True):
            assert is_close(chance, exact, 4 * UNIT)
        gain = 20 * (1 - u / total - kappa / total / 2)
        if len(sides[0]) == len("anna"):
            assert is_close(found["sides"][0]["if"]["win"], gain, 2 * MILLIONTH)
            half = predict(ratings, db, "club-elo", *sides, *more, "--set", "numbers.weight=50")
            assert is_close(half["sides"][0]["if"]["win"], gain / 2, 2 * MILLIONTH)


@pytest.mark.ledger(make=played, store="sqlite")
def test_what_a_system_cannot_predict(ratings: Ratings, db: str) -> None:
    """A rule without chance, and partners where the rule knows none: exit 1 and the reason; nothing on stdout."""
    for arguments, message in (
        (
            ("points", "anna", "ben"),
            "points has no predictions, because its rule placement-points/2 gives no probabilities",
        ),
        (("glicko-month", "--partners", "+", "anna+ben", "cleo"), "glicko-month: "),
    ):
        told = ratings("predict", *arguments, "--format", "json", db=db)
        problem = json.loads(told.stderr.splitlines()[-1])
        assert (told.exit_code, told.stdout, problem["reason"]) == (1, "", "cannot-predict")
        assert problem["message"].startswith(message)


@pytest.mark.ledger(make=played, store="sqlite")
def test_text_says_what_the_points_of_a_period_are(ratings: Ratings, db: str) -> None:
    """Under a rule by periods they are those of a period with this game alone."""
    told = ratings("predict", "glicko-month", "anna", "ben", db=db).stdout
    assert "Points assume that this is the only game of a month." in told.splitlines()
    assert "alone" not in ratings("predict", "club-elo", "anna", "ben", db=db).stdout
