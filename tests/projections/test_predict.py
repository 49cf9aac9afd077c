"""`predict`: probabilities of a game's results sum to one, and the points at stake are those that the game gives."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from own_rules import publish_without_trial, substitute_rule
from state_rules import BY_GAME

from ratings_ledger import CannotPredict
from ratings_ledger import open as open_ledger
from ratings_ledger.rules import MISSING, ONE, Rule, Term

Ratings = Callable[..., Any]
LADDER = "elo-chess/all"
OWN = """
id = "own"
version = "1"
rule = "{rule}"
effective_from = 2000-01-01
time_zone = "UTC"
[scope]
game = ["chess"]
"""


FUTURE = """
id = "elo-chess"
version = "future"
rule = "{rule}"
effective_from = 2999-01-01
time_zone = "UTC"
[scope]
game = ["chess"]
[partition]
by = ["players"]
bands = ["all", "2", "3-4", "5-6", "7-8"]
[params]
{params}
"""


def make_ledger_with_games(ratings: Ratings, url: str) -> None:
    """Make a ledger with three games of chess under Elo."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number, players in enumerate((("anna", "ben"), ("anna", "cleo"), ("cleo=ben",))):
        record(ratings, url, f"c-{number}", *players)


def record(ratings: Ratings, url: str, game_id: str, *players: str) -> None:
    """Record a game, a day after the one before."""
    at = f"2025-01-0{1 + int(game_id[-1])}T20:00Z"
    result = ratings("record", "--game", "chess", "--game-id", game_id, "--at", at, *players, db=url)
    assert result.exit_code == 0, result


def predict(ratings: Ratings, db: str, *arguments: str) -> dict[str, Any]:
    """Return a prediction as JSON."""
    result = ratings("predict", *arguments, "--format", "json", db=db)
    assert result.exit_code == 0, result
    return dict(json.loads(result.stdout))


def load_changes(ratings: Ratings, db: str, game_id: str, ladder: str) -> dict[str, Fraction]:
    """Return every player's change in a game."""
    explanation = json.loads(ratings("explain", game_id, ladder, "--format", "json", db=db).stdout)
    return {player["player"]: Fraction(player["change"]) for player in explanation["players"]}


def sum_chances(prediction: dict[str, Any]) -> Fraction:
    """Return the sum of all probabilities."""
    return sum((Fraction(side["chance"]) for side in prediction["sides"]), Fraction(prediction["draw"]))


@pytest.mark.ledger(make=make_ledger_with_games, store="sqlite")
@pytest.mark.parametrize(
    ("outcome", "result"), [("win", ("dora", "anna")), ("draw", ("anna=dora",)), ("loss", ("anna", "dora"))]
)
def test_points_at_stake_equal_those_of_the_recorded_game(
    outcome: str, result: tuple[str, ...], ratings: Ratings, db: str
) -> None:
    """For each result, the recorded game gives both players the predicted points."""
    record(ratings, db, "c-3", "dora", "eva")
    prediction = predict(ratings, db, LADDER, "dora", "anna")
    assert [side["players"] for side in prediction["sides"]] == [["dora"], ["anna"]]
    assert sum_chances(prediction) == 1
    record(ratings, db, "c-4", *result)
    changes = load_changes(ratings, db, "c-4", LADDER)
    opposite = {"win": "loss", "loss": "win", "draw": "draw"}[outcome]
    first, second = prediction["sides"]
    assert Fraction(first["if"][outcome]) == changes["dora"]
    assert Fraction(second["if"][opposite]) == changes["anna"]


@pytest.mark.parametrize(("rule", "params"), [("pairwise-elo/1", "k_total = 64"), ("glicko-1/1", "")])
def test_version_of_the_future_changes_no_prediction(
    rule: str, params: str, ratings: Ratings, copy_ledger_file: Callable[..., str], tmp_path: Path
) -> None:
    """Without a date, a prediction is for the day of the last game, so a later version does not count."""
    db = copy_ledger_file(make_ledger_with_games)
    before = predict(ratings, db, LADDER, "anna", "ben")
    file = tmp_path / "future.toml"
    file.write_text(FUTURE.format(rule=rule, params=params), encoding="utf-8")
    result = ratings("rules", "publish", file, db=db)
    assert result.exit_code == 0, result
    assert predict(ratings, db, LADDER, "anna", "ben")["sides"] == before["sides"]


def test_adjustment_after_a_version_brings_it_into_force(
    ratings: Ratings, copy_ledger_file: Callable[..., str], tmp_path: Path
) -> None:
    """After an adjustment under a later version, a prediction is by that version, as at the date."""
    db = copy_ledger_file(make_ledger_with_games)
    file = tmp_path / "later.toml"
    file.write_text(FUTURE.format(rule="glicko-1/1", params="").replace("2999", "2025").replace("-01-01", "-06-01"))
    for command in (
        ("rules", "publish", file),
        ("adjust", LADDER, "anna", "5", "--at", "2025-07-01T12:00Z", "--reason", "a bonus"),
    ):
        assert (result := ratings(*command, db=db)).exit_code == 0, result
    prediction = predict(ratings, db, LADDER, "anna", "ben")
    assert prediction["ruleset"] == "elo-chess@future"
    assert prediction["sides"] == predict(ratings, db, LADDER, "anna", "ben", "--as-of", "2025-07-01")["sides"]


@pytest.mark.ledger(make=make_ledger_with_games, store="sqlite")
def test_prediction_as_table_and_csv(ratings: Ratings, db: str) -> None:
    """The table has the sides with ranks, chances and points at stake; CSV has the same values exactly."""
    result = ratings("predict", LADDER, "anna", "ben", db=db)
    assert result.stdout == (
        "elo-chess under elo-chess@1, known at position 4\n"
        "\n"
        "side  rank  chance  if win  if draw  if loss\n"
        "anna     1  56.8 %  +13.84    -2.16   -18.16\n"
        "ben      3  43.2 %  +18.16    +2.16   -13.84\n"
        "\n"
        "The rule predicts no draws: chance is the expected score.\n"
    )
    header, first, _ = ratings("predict", LADDER, "anna", "ben", "--format", "csv", db=db).stdout.splitlines()
    assert header == "side,rank,chance,draw,if_win,if_draw,if_loss,as_of,known_at,rules"
    assert first.startswith("anna,1,0.567")


@pytest.mark.ledger(make=make_ledger_with_games, store="sqlite")
def test_more_than_two_sides_are_predicted_by_pairs(ratings: Ratings, db: str) -> None:
    """With three sides every pair sums to one, and a side's chance is its share of expected wins."""
    prediction = predict(ratings, db, LADDER, "anna", "ben", "cleo")
    assert sum_chances(prediction) == 1
    pairs = prediction["pairs"]
    assert [(pair["players"], pair["others"]) for pair in pairs] == [
        (["anna"], ["ben"]), (["anna"], ["cleo"]), (["ben"], ["cleo"]),
    ]  # fmt: skip
    assert all(Fraction(pair["chance"]) + Fraction(pair["others_chance"]) == 1 for pair in pairs)
    anna = (Fraction(pairs[0]["chance"]) + Fraction(pairs[1]["chance"])) / 3
    assert Fraction(prediction["sides"][0]["chance"]) == anna
    record(ratings, db, "c-3", "ben", "anna=cleo")
    changes = load_changes(ratings, db, "c-3", LADDER)
    assert Fraction(prediction["sides"][1]["if"]["win"]) == changes["ben"]
    stdout = ratings("predict", LADDER, "anna", "ben", "cleo", db=db).stdout
    assert "each pair is predicted separately" in stdout


@pytest.mark.ledger(make=make_ledger_with_games, store="sqlite")
def test_predictions_have_coordinates(ratings: Ratings, db: str) -> None:
    """A prediction as of an earlier time ignores later games, and states its coordinates."""
    prediction = predict(ratings, db, LADDER, "anna", "ben", "--as-of", "2025-01-01T19:00Z", "--known-at", "4")
    assert [side["chance"] for side in prediction["sides"]] == ["1/2", "1/2"]
    assert [side["rank"] for side in prediction["sides"]] == [None, None]
    assert (prediction["as_of"], prediction["known_at"]) == ("2025-01-01T19:00:00.000000Z", 4)


@pytest.mark.ledger(make=make_ledger_with_games, store="sqlite")
@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ((LADDER, "anna"), 2, "a game needs at least two sides, each with at least one player"),
        ((LADDER, "anna", "anna"), 2, "'anna' takes part twice"),
        ((LADDER, "anna", "bem"), 1, "player-unknown: nothing is recorded about 'bem'; did you mean ben?"),
        ((LADDER, "anna", "ben", "--home", "cleo"), 2, "home 'cleo' is not one of the sides"),
        ((LADDER, "anna", "ben", "--set", "numbers.x=1"), 2, "pairwise-elo/1 does not read the number 'x'"),
        ((LADDER, "anna", "ben", "--set", "x=1"), 2, "'x=1' is not numbers.NAME=V, where V is a whole number of"),
        ((LADDER, "anna", "ben", "--set", "numbers.x=1.5"), 2, "'numbers.x=1.5' is not numbers.NAME=V"),
        ((LADDER, "anna", "ben", "--set", "numbers.x=1", "--set", "numbers.x=2"), 2, "numbers.x is set twice"),
        ((LADDER, "--partners", "+", "anna+", "ben"), 2, "'anna+' contains an empty name"),
        ((LADDER, "--partners", "", "anna", "ben"), 2, "--partners '' is empty; choose another text"),
        ((LADDER, "--partners", "+", "anna+ben", "cleo"), 1, "pairwise-elo/1 does not score sides of several players"),
    ],
)  # fmt: skip
def test_unpredictable_games_are_rejected(
    arguments: tuple[str, ...], exit_code: int, message: str, ratings: Ratings, db: str
) -> None:
    """Each bad request is rejected with its reason and exit code."""
    result = ratings("predict", *arguments, db=db)
    assert (result.exit_code, message in result.stderr, result.stdout) == (exit_code, True, ""), result


def make_ledger_with_points(ratings: Ratings, url: str) -> None:
    """Make a ledger with a game of a rule without probabilities."""
    assert ratings("init", db=url).exit_code == 0
    at = ("--game-id", "m-1", "--at", "2025-01-01T20:00Z")
    assert ratings("record", "--game", "galactic-magnate", *at, "anna", "ben", db=url).exit_code == 0


@pytest.mark.ledger(make=make_ledger_with_points, store="sqlite")
def test_rules_without_probabilities_predict_nothing(ratings: Ratings, db: str) -> None:
    """For a rule without probabilities, the command ends with `cannot-predict`, and the library raises."""
    result = ratings("predict", "galactic-points", "anna", "ben", "--format", "json", db=db)
    assert result.exit_code == 1
    problem = json.loads(result.stderr.splitlines()[-1])
    assert (problem["reason"], problem["exit_code"]) == ("cannot-predict", 1)
    reason = "because its rule contribution-pool/1 gives no probabilities"
    assert problem["message"] == f"galactic-points has no predictions, {reason}"
    with open_ledger(db) as ledger, pytest.raises(CannotPredict):
        ledger.at().predict("galactic-points", ["anna", "ben"])


def publish_own(patch: pytest.MonkeyPatch, db: str, rule: Rule) -> None:
    """Publish a ruleset of a test's own rule, without a trial."""
    substitute_rule(patch, rule)
    publish_without_trial(db, OWN.format(rule=rule.id))


@pytest.mark.ledger(make=make_ledger_with_games, store="sqlite")
def test_draws_are_predicted_by_rules_that_can(ratings: Ratings, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a rule predicts draws, the probabilities of all results sum to one, for two sides and for three."""
    publish_own(monkeypatch, db, BY_GAME)
    two = predict(ratings, db, "own", "anna", "ben")
    assert sum_chances(two) == 1
    assert Fraction(two["draw"]) > Fraction(1, 10)
    three = predict(ratings, db, "own", "anna", "ben", "cleo")
    assert sum_chances(three) == 1
    assert [Fraction(three["pairs"][0][name]) for name in ("chance", "draw", "others_chance")] == [
        Fraction(two["sides"][0]["chance"]), Fraction(two["draw"]), Fraction(two["sides"][1]["chance"]),
    ]  # fmt: skip
    lines = ratings("predict", "own", "anna", "ben", db=db).stdout.splitlines()
    assert lines[-1].startswith("(draw)")


@pytest.mark.ledger(make=make_ledger_with_games, store="sqlite")
def test_rules_see_the_planned_game(ratings: Ratings, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule with state gets the sides, the home side, a margin of one, the year of the planned day, the numbers of
    earlier games, and who plays for the first time.
    """
    games: list[list[list[int]]] = []

    def score(n: int, before: Any, columns: Any, constants: Any, table: Any, after: Any) -> int:
        games.append([[*column] for column in columns])
        return 0

    names = ("place", "seats", "tied", "team", "home", "score", "side_score", "league", "year", "games_before",
             "first_of_season")  # fmt: skip
    rule = BY_GAME._replace(
        columns=names, score=score, check=None, age=None, new_season=None, enter=None, draw=None,
        chance=lambda i, j, before, columns, constants, table: ONE // 2,
        explain=lambda n, names, before, columns, params, after: [[Term("none", 0, "")]] * n,
    )  # fmt: skip
    publish_own(monkeypatch, db, rule)
    record(ratings, db, "c-3", "anna", "ben")
    registered = {"type": "player.registered", "occurred_at": "2025-01-01T12:00:00Z", "data": {"player": "dora"}}
    assert ratings("import", "-", db=db, input=json.dumps(registered)).exit_code == 0
    sides = ("--partners", "+", "ben", "anna+dora", "--home", "ben")
    prediction = predict(ratings, db, "own", *sides, "--as-of", "2026-03-01")
    assert [side["if"][outcome] for side in prediction["sides"] for outcome in ("win", "draw", "loss")] == ["0"] * 6
    win_of_second_side = dict(zip(names, games[-3], strict=True))  # the last three are its win, draw and loss
    assert win_of_second_side == {
        "place": [1, 3, 1], "seats": [3, 3, 3], "tied": [2, 1, 2], "team": [1, 0, 1], "home": [-1, 1, -1],
        "score": [1, 0, 0], "side_score": [1, 0, 1], "league": [MISSING] * 3, "year": [2026] * 3,
        "games_before": [3, 3, 0], "first_of_season": [0, 0, 1],
    }  # fmt: skip


def make_ledger_with_teams(ratings: Ratings, url: str) -> None:
    """Make a ledger with three games under Weng-Lin; the last one has sides of different sizes."""
    assert ratings("init", "--for", "chess", "--system", "weng-lin", db=url).exit_code == 0
    record(ratings, url, "c-0", "anna", "ben")
    record(ratings, url, "c-1", "anna=cleo")
    record_teams(ratings, url, "c-2", {"x": ["anna", "ben"], "y": ["cleo"]})


def record_teams(ratings: Ratings, url: str, game_id: str, teams: dict[str, list[str]]) -> None:
    """Record a game of sides, the best side first."""
    seats, place = [], 1
    for team, players in teams.items():
        seats += [{"player": player, "team": team, "place": place} for player in players]
        place += len(players)
    data = {"game_id": game_id, "game": "chess", "kind": "placing", "participants": seats}
    event = {"type": "game.recorded", "occurred_at": f"2025-01-0{1 + int(game_id[-1])}T20:00:00Z", "data": data}
    result = ratings("import", "-", db=url, input=json.dumps(event))
    assert result.exit_code == 0, result


@pytest.mark.ledger(make=make_ledger_with_teams, store="sqlite")
def test_sides_of_several_players_are_predicted(ratings: Ratings, db: str) -> None:
    """The stakes of a side are the sum of its partners' stakes, and equal the changes in the recorded game."""
    prediction = predict(ratings, db, "weng-lin-chess/all", "--partners", "+", "anna + cleo", "ben")
    assert sum_chances(prediction) == 1
    side, alone = prediction["sides"]
    assert (side["players"], side["rank"], alone["players"]) == (["anna", "cleo"], None, ["ben"])
    won = {partner["player"]: Fraction(partner["if"]["win"]) for partner in side["partners"]}
    assert sum(won.values()) == Fraction(side["if"]["win"])
    assert "partners" not in alone
    record_teams(ratings, db, "c-3", {"x": ["anna", "cleo"], "y": ["ben"]})
    assert load_changes(ratings, db, "c-3", "weng-lin-chess/all") == won | {"ben": Fraction(alone["if"]["loss"])}
