"""Scores and custom numbers that a ruleset cannot read: refused when they are recorded, never scored."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stores import make_empty_ledger

Ratings = Callable[..., Any]
RULES = """
id = "tennis"
version = "1"
rule = "pairwise-elo/2"
effective_from = 1900-01-01
time_zone = "UTC"
score_decimals = 1

[scope]
game = ["tennis"]

[numbers.length]
min = 1
max = 9
absent = "refuse"

[params]
margin = "ln"
margin_unit = 10
"""


def game(number: int, *scores: int | str, length: int | None = 5) -> dict[str, Any]:
    """A game between anna and ben."""
    numbers = {} if length is None else {"numbers": {"length": length}}
    players = [{"player": name, "score": score} for name, score in zip(("anna", "ben"), scores, strict=True)]
    data = {"game_id": f"g-{number}", "game": "tennis", **numbers, "participants": players}
    return {"type": "game.recorded", "occurred_at": f"2020-01-0{number}T12:00:00Z", "data": data}


WRONG = {
    "score-too-fine": game(2, "7.25", 3),
    "integer-too-large": game(2, 2**53 - 1, 3),
    "number-out-of-range": game(2, 7, 3, length=10),
    "number-missing": game(2, 7, 3, length=None),
}


@pytest.fixture
def tennis(ledger_url: str, ratings: Ratings, tmp_path: Path) -> str:
    """A ledger whose ruleset reads scores in tenths and a length, with one game."""
    (tmp_path / "tennis.toml").write_text(RULES, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "tennis.toml", db=ledger_url).exit_code == 0
    assert enter(ratings, ledger_url, game(1, "7.5", 3))["appended"] == 1
    return ledger_url


def enter(ratings: Ratings, url: str, *events: dict[str, Any], **options: bool) -> Any:
    """What an import of events prints."""
    text = "".join(json.dumps(event) + "\n" for event in events)
    allowing = ("--allow-uncounted",) if options.get("allowed") else ()
    return json.loads(ratings("import", "-", *allowing, "--format", "json", db=url, input=text.encode()).stdout)


@pytest.mark.parametrize("code", sorted(WRONG))
def test_unreadable_number_is_refused_and_never_scored(code: str, tennis: str, ratings: Ratings) -> None:
    """An import refuses the game with a code and the ladder; recorded all the same, it does not count, and says why."""
    refused = enter(ratings, tennis, WRONG[code])
    assert [one["code"] for one in refused["rejected"]] == [code]
    assert refused["rejected"][0]["message"].startswith("tennis cannot count this game: ")
    assert enter(ratings, tennis, WRONG[code], game(3, 1, 2), allowed=True)["appended"] == 2
    standings = json.loads(ratings("standings", "tennis", "--format", "json", db=tennis).stdout)
    assert (standings["games"], [row["games"] for row in standings["rows"]]) == (2, [2, 2])
    told = json.loads(ratings("explain", "g-2", "tennis", "--format", "json", db=tennis).stdout)
    why = refused["rejected"][0]["message"].split(": ", 1)[1].removesuffix(" (--allow-uncounted records it)")
    assert (told["counted"], told["why_not"]) == (False, why)


def test_scores_in_tenths_are_scored_exactly(tennis: str, ratings: Ratings) -> None:
    """A margin of 4.5 is one of 45 tenths, whichever way it was written."""
    assert enter(ratings, tennis, game(2, "12.0", 16))["appended"] == 1
    history = json.loads(ratings("history", "anna", "tennis", "--format", "json", db=tennis).stdout)["rows"]
    # K 20 and an expected score of 1/2: the factor is ln(5.5) for 4.5 points, and less than ln(5) for 4 after that
    assert history[0]["change_decimal"].startswith("17.04748")
    told = json.loads(ratings("explain", "g-2", "tennis", "--format", "json", db=tennis).stdout)
    assert told["counted"] is True


SCORES_ALONE = RULES.replace('[numbers.length]\nmin = 1\nmax = 9\nabsent = "refuse"\n', "")
NUMBERS_ALONE = (
    RULES.replace("pairwise-elo/2", "pairwise-elo/1")
    .replace("score_decimals = 1\n", "")
    .replace('margin = "ln"\nmargin_unit = 10\n', "k_per_pair = 8\n")
)


@pytest.mark.parametrize(
    ("rules", "code"), [(SCORES_ALONE, "score-too-fine"), (NUMBERS_ALONE, "number-out-of-range")],
    ids=["scores alone", "numbers alone"],
)  # fmt: skip
def test_rulesets_refuse_the_numbers_that_they_read(
    rules: str, code: str, copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """A ruleset that reads scores alone, or numbers alone, refuses only what is wrong with these."""
    db = copied_file(make_empty_ledger)
    (tmp_path / "tennis.toml").write_text(rules, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "tennis.toml", db=db).exit_code == 0
    wrong = {"score-too-fine": game(2, "7.25", 3), "number-out-of-range": game(3, 7, 3, length=10)}
    refused = {name: [one["code"] for one in enter(ratings, db, event)["rejected"]] for name, event in wrong.items()}
    assert refused == {name: [name] if name == code else [] for name in wrong}
    allowed = enter(ratings, db, wrong[code], allowed=True)
    assert allowed["appended"] == 1
    standings = json.loads(ratings("standings", "tennis", "--format", "json", db=db).stdout)
    assert standings["games"] == 1
