"""`whatif`, `explain` and `rules check` with custom rules: their predictions and their books are checked."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from lengths import mark_long_values
from own_rules import substitute_rule

from ratings_ledger.rules import Params, Rule, Term, no_table

Ratings = Callable[..., Any]
HALF = 1 << 31


def score(n, points, columns, constants, table, change):
    for i in range(n):
        change[i] = n - 2 * i - (n % 2)
    return max(sum(change[i] for i in range(n)), 0)


def score_unbalanced(n, points, columns, constants, table, change):
    for i in range(n):
        change[i] = 1
    return n - 1


def explain(n, names, points, columns, params, change):
    return [[Term("seat", change[i], "")] for i in range(n)]


def predict_first_seat(i, j, points, columns, constants, table):
    """Give the player on the first seat the better chance."""
    seat = columns[0]
    return HALF + HALF // 2 * ((seat[i] == 1) - (seat[j] == 1))


OWN = Rule(
    name="own", number=1, scale=1, params=Params, columns=("seat",), prepare=lambda params: (), table=no_table,
    refuse_params=lambda params, players_max: None, check=None, score=score, explain=explain, chance=predict_first_seat,
)  # fmt: skip


def offer_as_own(patch: pytest.MonkeyPatch, rule: Rule) -> None:
    """Offer a rule to the program under the name own/1."""
    substitute_rule(patch, rule, "own/1")


def build_ruleset(kind: str) -> str:
    """Return a ruleset of the rule own/1 for games of a kind."""
    return (
        f'id = "own"\nversion = "1"\nrule = "own/1"\neffective_from = 2000-01-01\n[scope]\ngame = ["duel"]\n'
        f'kind = ["{kind}"]\n'
    )


def create_two_games(ratings: Ratings, url: str, kind: str) -> None:
    """Create a ledger with two games of a kind."""
    results = [{"place": 1}, {"place": 2}] if kind == "placing" else [{"side": "a"}, {"side": "b"}]
    games = []
    for number, names in enumerate((("anna", "ben"), ("ben", "anna"))):
        participants = [
            {"player": name, "seat": 1 + (name == "ben"), **result} for name, result in zip(names, results, strict=True)
        ]
        data = {"game_id": f"d-{number}", "game": "duel", "kind": kind, "participants": participants}
        games.append(
            json.dumps({"type": "game.recorded", "occurred_at": f"2024-01-0{number + 1}T20:00:00Z", "data": data})
        )
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    assert ratings("import", "-", db=url, input="\n".join(games)).exit_code == 0


def create_published_own(ratings: Ratings, url: str) -> None:
    """Create a ledger with two games and the published ruleset of `OWN`."""
    create_two_games(ratings, url, "placing")
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        offer_as_own(patch, OWN)
        file = Path(folder) / "own.toml"
        file.write_text(build_ruleset("placing"), encoding="utf-8")
        assert ratings("rules", "publish", file, db=url).exit_code == 0


@pytest.fixture
def create_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, copy_ledger_file: Callable[..., str]
) -> Callable[..., tuple[str, Path]]:
    """Return a function that creates a ledger with two games of a kind, and a ruleset file of a custom rule."""

    def create(rule: Rule, kind: str = "placing") -> tuple[str, Path]:
        offer_as_own(monkeypatch, rule)
        file = tmp_path / "own.toml"
        file.write_text(build_ruleset(kind), encoding="utf-8")
        return copy_ledger_file(create_two_games, kind), file

    return create


@pytest.fixture
def published_db(monkeypatch: pytest.MonkeyPatch, copy_ledger_file: Callable[..., str]) -> str:
    """Return a ledger with two games under a published ruleset of `OWN`."""
    offer_as_own(monkeypatch, OWN)
    return copy_ledger_file(create_published_own)


def measure_quality(ratings: Ratings, db: str, file: Path) -> dict[str, Any]:
    result = ratings("whatif", file, "--format", "json", db=db)
    assert result.exit_code == 0, result
    return dict(json.loads(result.stdout)["variants"][0]["ladders"][0]["quality"])


def test_prediction_reads_the_columns_of_scoring(ratings: Ratings, create_own: Callable[..., tuple[str, Path]]) -> None:
    """A rule that does not read places gets the same columns in predictions as in scoring.

    With 3/4 for the first seat, whose player wins once and loses once, the Brier score is (1/16 + 9/16) / 2.
    """
    assert measure_quality(ratings, *create_own(OWN))["after"] == {
        "pairs": 2,
        "decided": 2,
        "log_loss": "0.836988",
        "brier": "0.312500",
        "accuracy": "0.250000",
    }


def test_four_argument_chance_gets_both_points(ratings: Ratings, create_own: Callable[..., tuple[str, Path]]) -> None:
    """A chance function of four arguments gets the points of both players."""
    pairs = []

    def chance(points: int, opponent_points: int, constants: Any, table: Any) -> int:
        pairs.append((points, opponent_points))
        return HALF

    assert measure_quality(ratings, *create_own(OWN._replace(chance=chance)))["after"]["brier"] == "0.250000"
    assert pairs == [(0, 0), (2, 0)]


@pytest.mark.slow
def test_chances_must_sum_to_one(ratings: Ratings, create_own: Callable[..., tuple[str, Path]]) -> None:
    """`rules check` refuses a rule whose chances do not sum to one."""
    db, file = create_own(OWN._replace(chance=lambda i, j, points, columns, constants, table: HALF - 100))
    result = ratings("rules", "check", file, db=db)
    assert (result.exit_code, "they must sum to 2^32 = 4294967296" in result.stdout) == (1, True)


@pytest.mark.parametrize(
    ("extra", "message"),
    [(lambda calls: calls, "score gave ("), (lambda calls: calls == 1, "score minted ")],
)
def test_inconsistent_minting_is_refused(
    extra: Callable[[int], int], message: str, ratings: Ratings, create_own: Callable[..., tuple[str, Path]]
) -> None:
    """`rules check` refuses a rule that mints differently from call to call, or in a replay."""
    calls = []

    def mint(n, points, columns, constants, table, change):
        calls.append(n)
        return score(n, points, columns, constants, table, change) + extra(len(calls))

    db, file = create_own(OWN._replace(score=mint))
    result = ratings("rules", "check", file, db=db)
    assert (result.exit_code, message in result.stdout, "for the same game" in result.stdout) == (1, True, True), result


@pytest.mark.parametrize("member", ["check", "refuse_params"])
def test_empty_reasons_are_refused(member: str, ratings: Ratings, create_own: Callable[..., tuple[str, Path]]) -> None:
    """`rules check` refuses a rule whose reasons are empty."""
    db, file = create_own(OWN._replace(**{member: lambda *arguments: ""}))
    result = ratings("rules", "check", file, db=db)
    assert result.exit_code == 1
    assert f"{member} returned ''; it must return a message or None" in " ".join(result.stdout.split())


@pytest.mark.slow
def test_check_notes_unmeasurable_predictions(ratings: Ratings, create_own: Callable[..., tuple[str, Path]]) -> None:
    """`rules check` notes that predictions cannot be measured for games without places."""
    db, file = create_own(OWN, "battle")
    result = ratings("rules", "check", file, db=db)
    assert result.exit_code == 0
    assert "whatif cannot measure its predictions, because games of this type have no places" in result.stdout.replace(
        "\n    ", " "
    )


@pytest.mark.parametrize("chance", [0, 1 << 32, -5, 0.5, None])
def test_invalid_chance_is_reported(chance: Any, ratings: Ratings, create_own: Callable[..., tuple[str, Path]]) -> None:
    """`whatif` reports that the rule failed if its chance function returns an invalid chance."""
    db, file = create_own(OWN._replace(chance=lambda i, j, points, columns, constants, table: chance))
    result = ratings("whatif", file, db=db)
    assert result.exit_code == 0
    assert "own: the rule failed at position 2 (game d-0): chance returned" in result.stderr
    assert "math domain" not in result.stderr


def test_games_without_places_have_no_measures(ratings: Ratings, create_own: Callable[..., tuple[str, Path]]) -> None:
    """For games without places, `whatif` says so and gives no measures of prediction quality."""
    db, file = create_own(OWN, "battle")
    assert measure_quality(ratings, db, file)["after"] == {
        "pairs": 0,
        "decided": 0,
        "log_loss": None,
        "brier": None,
        "accuracy": None,
        "unplaced": 2,
    }
    result = ratings("whatif", file, db=db)
    assert "own: 2 games without places, which cannot be predicted." in result.stdout
    assert "log loss" not in result.stdout


@pytest.mark.slow
def test_failing_rule_is_excluded_from_no_points_change(
    ratings: Ratings, published_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a failing rule, no command claims that no points change on its ladder, and `whatif` exits with 1."""

    def fail(*arguments: Any) -> int:
        raise ZeroDivisionError

    assert ratings("whatif", "own", "--set", "params.start=5", db=published_db).exit_code == 0
    offer_as_own(monkeypatch, OWN._replace(score=fail))
    for setting, is_one_variant in (("params.start=5", True), ("params.start=5,6", False)):
        result = ratings("whatif", "own", "--set", setting, db=published_db)
        assert (result.exit_code, "No points change.\n" in result.stdout) == (1, False)
        assert "own cannot be replayed: the rule failed at position" in result.stderr
        says_no_change = result.stdout.endswith("No points change on the ladders that can be replayed.\n")
        assert says_no_change == is_one_variant
        output = json.loads(ratings("whatif", "own", "--set", setting, "--format", "json", db=published_db).stdout)
        assert [variant["ladders"] for variant in output["variants"]] == [[]] * len(output["variants"])
    for command in (("void", "d-0"), ("player", "rename", "anna", "zoe")):
        result = ratings(*command, "--reason", "a slip", "--dry-run", db=published_db)
        assert result.stdout.endswith("\nNo points change on the ladders that can be replayed.\n")
        assert "own cannot be replayed: the rule failed at position" in result.stderr


def test_unbalanced_books_are_not_explained(ratings: Ratings, published_db: str) -> None:
    """`explain` refuses a game whose books do not balance."""
    assert ratings("explain", "d-1", "own", db=published_db).exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        offer_as_own(patch, OWN._replace(score=score_unbalanced))
        result = ratings("explain", "d-0", "own", db=published_db)
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        "the books do not balance: score minted 1, and the changes sum to 2; it must mint at least 0 and at least "
        "this sum (test_own_chances.py, line" in result.stderr
    )


class Unprintable(Exception):
    """An error whose text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Deeper(BaseException):
    """An error that most programs do not catch."""


def build_raising_score(error: BaseException) -> Any:
    def score(n, points, columns, constants, table, change):
        raise error

    return score


def mint_too_much(n, points, columns, constants, table, change):
    return 10**5000


SHORT_COMMANDS = [("standings", "own"), ("rebuild",)]
UNUSUAL_ERRORS = {
    "no text": (build_raising_score(Unprintable()), "Unprintable: a Unprintable that cannot be read"),
    "no usual error": (build_raising_score(Deeper("far down")), "Deeper: far down"),
    "several lines": (
        build_raising_score(ValueError("one\nverify: all well\x1b[31m\u202e")),
        "ValueError: one\\u000averify: all well",
    ),
    "more than there is": (mint_too_much, "the points grow out of bounds"),
}


@pytest.mark.parametrize("case", UNUSUAL_ERRORS)
@pytest.mark.parametrize(
    "command", mark_long_values(SHORT_COMMANDS, [*SHORT_COMMANDS, ("export", "standings"), ("books", "own")])
)
def test_unusual_rule_error_takes_one_line(
    case: str, command: tuple[str, ...], ratings: Ratings, published_db: str
) -> None:
    """An unusual error of a rule takes one line and is not called a bug; `rebuild` adds a line with advice."""
    score, message = UNUSUAL_ERRORS[case]
    with pytest.MonkeyPatch.context() as patch:
        offer_as_own(patch, OWN._replace(score=score))
        result = ratings(*command, db=published_db)
    first, *rest = result.stderr.splitlines()
    assert (result.exit_code, message in first, len(rest)) == (1, True, int(command[0] == "rebuild")), result
    assert "bug" not in result.stderr
