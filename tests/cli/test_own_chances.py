"""`whatif` and `explain` of rules of one's own: what they predict is checked, and so are their books."""

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


def unbalanced(n, points, columns, constants, table, change):
    for i in range(n):
        change[i] = 1
    return n - 1


def explain(n, names, points, columns, params, change):
    return [[Term("seat", change[i], "")] for i in range(n)]


def of_players(i, j, points, columns, constants, table):
    """Whoever sits on the first seat is more likely to be ahead."""
    seat = columns[0]
    return HALF + HALF // 2 * ((seat[i] == 1) - (seat[j] == 1))


OWN = Rule(
    name="own", number=1, scale=1, params=Params, columns=("seat",), prepare=lambda params: (), table=no_table,
    refuse_params=lambda params, players_max: None, check=None, score=score, explain=explain, chance=of_players,
)  # fmt: skip


def known_as_own(patch: pytest.MonkeyPatch, rule: Rule) -> None:
    """Let the program find a rule under the name own/1."""
    substitute_rule(patch, rule, "own/1")


def ruleset_of(kind: str) -> str:
    """A ruleset of a rule of one's own, for games of a kind."""
    return (
        f'id = "own"\nversion = "1"\nrule = "own/1"\neffective_from = 2000-01-01\n[scope]\ngame = ["duel"]\n'
        f'kind = ["{kind}"]\n'
    )


def two_games(ratings: Ratings, url: str, kind: str) -> None:
    """Make a ledger with two games of a kind."""
    told = [{"place": 1}, {"place": 2}] if kind == "placing" else [{"side": "a"}, {"side": "b"}]
    games = []
    for number, names in enumerate((("anna", "ben"), ("ben", "anna"))):
        seats = [{"player": name, "seat": 1 + (name == "ben"), **more} for name, more in zip(names, told, strict=True)]
        data = {"game_id": f"d-{number}", "game": "duel", "kind": kind, "participants": seats}
        games.append(
            json.dumps({"type": "game.recorded", "occurred_at": f"2024-01-0{number + 1}T20:00:00Z", "data": data})
        )
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    assert ratings("import", "-", db=url, input="\n".join(games)).exit_code == 0


def published_own(ratings: Ratings, url: str) -> None:
    """The same with the ruleset of `OWN`, published."""
    two_games(ratings, url, "placing")
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        known_as_own(patch, OWN)
        file = Path(folder) / "own.toml"
        file.write_text(ruleset_of("placing"), encoding="utf-8")
        assert ratings("rules", "publish", file, db=url).exit_code == 0


@pytest.fixture
def use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, copied_file: Callable[..., str]
) -> Callable[..., tuple[str, Path]]:
    """A function that makes a ledger with two games of some kind, and a ruleset of a rule of one's own."""

    def make(rule: Rule, kind: str = "placing") -> tuple[str, Path]:
        known_as_own(monkeypatch, rule)
        file = tmp_path / "own.toml"
        file.write_text(ruleset_of(kind), encoding="utf-8")
        return copied_file(two_games, kind), file

    return make


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, copied_file: Callable[..., str]) -> str:
    """A ledger with two games under a published ruleset of `OWN`."""
    known_as_own(monkeypatch, OWN)
    return copied_file(published_own)


def predicted(ratings: Ratings, db: str, file: Path) -> dict[str, Any]:
    told = ratings("whatif", file, "--format", "json", db=db)
    assert told.exit_code == 0, told
    return dict(json.loads(told.stdout)["variants"][0]["ladders"][0]["quality"])


def test_prediction_sees_what_scoring_sees(ratings: Ratings, use: Callable[..., tuple[str, Path]]) -> None:
    """A rule that asks for no place sees the same columns when it predicts as when it scores.

    With 3/4 for the first seat, whose player wins once and loses once, the Brier score is
    (1/16 + 9/16) / 2.
    """
    assert predicted(ratings, *use(OWN))["after"] == {
        "pairs": 2, "decided": 2, "log_loss": "0.836988", "brier": "0.312500", "accuracy": "0.250000",
    }  # fmt: skip


def test_four_argument_chance_gets_both_points(ratings: Ratings, use: Callable[..., tuple[str, Path]]) -> None:
    """A chance function of four arguments gets the points of both players."""
    seen = []

    def chance(points: int, others: int, constants: Any, table: Any) -> int:
        seen.append((points, others))
        return HALF

    assert predicted(ratings, *use(OWN._replace(chance=chance)))["after"]["brier"] == "0.250000"
    assert seen == [(0, 0), (2, 0)]


@pytest.mark.slow
def test_chances_must_sum_to_one(ratings: Ratings, use: Callable[..., tuple[str, Path]]) -> None:
    """`rules check` refuses a rule whose chances do not sum to one."""
    db, file = use(OWN._replace(chance=lambda i, j, points, columns, constants, table: HALF - 100))
    told = ratings("rules", "check", file, db=db)
    assert (told.exit_code, "they must sum to 2^32 = 4294967296" in told.stdout) == (1, True)


@pytest.mark.parametrize(
    ("extra", "said"),
    [(lambda calls: calls, "score gave ("), (lambda calls: calls == 1, "score minted ")],
)
def test_what_is_minted_is_compared(
    extra: Callable[[int], int], said: str, ratings: Ratings, use: Callable[..., tuple[str, Path]]
) -> None:
    """`rules check` refuses a rule that mints differently from call to call, or than when it is replayed."""
    calls = []

    def minting(n, points, columns, constants, table, change):
        calls.append(n)
        return score(n, points, columns, constants, table, change) + extra(len(calls))

    db, file = use(OWN._replace(score=minting))
    told = ratings("rules", "check", file, db=db)
    assert (told.exit_code, said in told.stdout, "for the same game" in told.stdout) == (1, True, True), told


@pytest.mark.parametrize("member", ["check", "refuse_params"])
def test_reasons_say_something(member: str, ratings: Ratings, use: Callable[..., tuple[str, Path]]) -> None:
    """`rules check` refuses a rule whose reasons are empty."""
    db, file = use(OWN._replace(**{member: lambda *given: ""}))
    told = ratings("rules", "check", file, db=db)
    assert told.exit_code == 1
    assert f"{member} returned ''; it must return a message or None" in " ".join(told.stdout.split())


@pytest.mark.slow
def test_check_notes_unmeasurable_predictions(ratings: Ratings, use: Callable[..., tuple[str, Path]]) -> None:
    """`rules check` notes that predictions cannot be measured for games without places."""
    db, file = use(OWN, "battle")
    told = ratings("rules", "check", file, db=db)
    assert told.exit_code == 0
    assert "games of this type have no places: whatif cannot measure it" in told.stdout.replace("\n    ", " ")


@pytest.mark.parametrize("chance", [0, 1 << 32, -5, 0.5, None])
def test_invalid_chance_is_reported(chance: Any, ratings: Ratings, use: Callable[..., tuple[str, Path]]) -> None:
    """`whatif` reports that the rule failed if its chance function returns an invalid chance."""
    db, file = use(OWN._replace(chance=lambda i, j, points, columns, constants, table: chance))
    told = ratings("whatif", file, db=db)
    assert told.exit_code == 0
    assert "own: the rule failed at position 2 (game d-0): chance returned" in told.stderr
    assert "math domain" not in told.stderr


def test_games_without_places_have_no_measures(ratings: Ratings, use: Callable[..., tuple[str, Path]]) -> None:
    """For games without places, `whatif` says so and gives no measures of prediction quality."""
    db, file = use(OWN, "battle")
    assert predicted(ratings, db, file)["after"] == {
        "pairs": 0, "decided": 0, "log_loss": None, "brier": None, "accuracy": None, "unplaced": 2,
    }  # fmt: skip
    told = ratings("whatif", file, db=db)
    assert "own: 2 games without places, which cannot be predicted." in told.stdout
    assert "log loss" not in told.stdout


@pytest.mark.slow
def test_nothing_is_said_of_what_cannot_be_replayed(
    ratings: Ratings, published: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command claims that no points change on a ladder whose rule fails; `whatif` then ends with 1."""

    def fails(*given: Any) -> int:
        raise ZeroDivisionError

    assert ratings("whatif", "own", "--set", "params.start=5", db=published).exit_code == 0
    known_as_own(monkeypatch, OWN._replace(score=fails))
    for more in (("params.start=5",), ("params.start=5,6",)):
        told = ratings("whatif", "own", "--set", *more, db=published)
        assert (told.exit_code, "No points change.\n" in told.stdout) == (1, False)
        assert "own cannot be replayed: the rule failed at position" in told.stderr
        assert told.stdout.endswith("No points change on the ladders that can be replayed.\n") == (more[0][-1:] == "5")
        asked = json.loads(ratings("whatif", "own", "--set", *more, "--format", "json", db=published).stdout)
        assert [one["ladders"] for one in asked["variants"]] == [[]] * len(asked["variants"])
    for command in (("void", "d-0"), ("player", "rename", "anna", "zoe")):
        told = ratings(*command, "--reason", "a slip", "--dry-run", db=published)
        assert told.stdout.endswith("\nNo points change on the ladders that can be replayed.\n")
        assert "own cannot be replayed: the rule failed at position" in told.stderr


def test_unbalanced_books_are_not_explained(ratings: Ratings, published: str) -> None:
    """`explain` does not show a game as sound if its books do not balance."""
    assert ratings("explain", "d-1", "own", db=published).exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        known_as_own(patch, OWN._replace(score=unbalanced))
        told = ratings("explain", "d-0", "own", db=published)
    assert (told.exit_code, told.stdout) == (1, "")
    assert (
        "the books do not balance: score minted 1, but the changes sum to 2 (test_own_chances.py, line" in told.stderr
    )


class Unprintable(Exception):
    """An error that cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Deeper(BaseException):
    """What most programs do not catch."""


def raising(error: BaseException) -> Any:
    def score(n, points, columns, constants, table, change):
        raise error

    return score


def minting(n, points, columns, constants, table, change):
    return 10**5000


SHORT = [("standings", "own"), ("rebuild",)]
ODD = {
    "no text": (raising(Unprintable()), "Unprintable: a Unprintable that cannot be read"),
    "no usual error": (raising(Deeper("far down")), "Deeper: far down"),
    "several lines": (
        raising(ValueError("one\nverify: all well\x1b[31m\u202e")), "ValueError: one\\u000averify: all well",
    ),
    "more than there is": (minting, "the points grow out of bounds"),
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("command", mark_long_values(SHORT, [*SHORT, ("export", "standings"), ("books", "own")]))
def test_odd_rule_error_takes_one_line(what: str, command: tuple[str, ...], ratings: Ratings, published: str) -> None:
    """An odd error of a rule is told in one line, not called a bug, whatever is asked; `rebuild` adds what to do."""
    score, message = ODD[what]
    with pytest.MonkeyPatch.context() as patch:
        known_as_own(patch, OWN._replace(score=score))
        told = ratings(*command, db=published)
    first, *rest = told.stderr.splitlines()
    assert (told.exit_code, message in first, len(rest)) == (1, True, int(command[0] == "rebuild")), told
    assert "bug" not in told.stderr
