"""Scores and custom numbers that a ruleset cannot read are rejected when they are recorded, and never scored."""

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


def build_game(number: int, *scores: int | str, length: int | None = 5) -> dict[str, Any]:
    """Return a game between anna and ben."""
    numbers = {} if length is None else {"numbers": {"length": length}}
    players = [{"player": name, "score": score} for name, score in zip(("anna", "ben"), scores, strict=True)]
    data = {"game_id": f"g-{number}", "game": "tennis", **numbers, "participants": players}
    return {"type": "game.recorded", "occurred_at": f"2020-01-0{number}T12:00:00Z", "data": data}


UNREADABLE_GAMES = {
    "score-too-fine": build_game(2, "7.25", 3),
    "integer-too-large": build_game(2, 2**53 - 1, 3),
    "number-out-of-range": build_game(2, 7, 3, length=10),
    "number-missing": build_game(2, 7, 3, length=None),
}


@pytest.fixture
def tennis_url(ledger_url: str, ratings: Ratings, tmp_path: Path) -> str:
    """Return the URL of a ledger with one game, whose ruleset reads scores in tenths and a length."""
    (tmp_path / "tennis.toml").write_text(RULES, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "tennis.toml", db=ledger_url).exit_code == 0
    assert import_events(ratings, ledger_url, build_game(1, "7.5", 3))["appended"] == 1
    return ledger_url


def import_events(ratings: Ratings, url: str, *events: dict[str, Any], allow_uncounted: bool = False) -> Any:
    """Return the output of an import of events."""
    text = "".join(json.dumps(event) + "\n" for event in events)
    options = ("--allow-uncounted",) if allow_uncounted else ()
    return json.loads(ratings("import", "-", *options, "--format", "json", db=url, input=text.encode()).stdout)


@pytest.mark.parametrize("code", sorted(UNREADABLE_GAMES))
def test_unreadable_number_is_rejected_and_never_scored(code: str, tennis_url: str, ratings: Ratings) -> None:
    """An import rejects the game with a code and the ladder; if the game is recorded anyway, it does not count, for the
    same reason.
    """
    result = import_events(ratings, tennis_url, UNREADABLE_GAMES[code])
    assert [rejection["code"] for rejection in result["rejected"]] == [code]
    assert result["rejected"][0]["message"].startswith("tennis cannot count this game: ")
    games = UNREADABLE_GAMES[code], build_game(3, 1, 2)
    assert import_events(ratings, tennis_url, *games, allow_uncounted=True)["appended"] == 2
    standings = json.loads(ratings("standings", "tennis", "--format", "json", db=tennis_url).stdout)
    assert (standings["games"], [row["games"] for row in standings["rows"]]) == (2, [2, 2])
    explanation = json.loads(ratings("explain", "g-2", "tennis", "--format", "json", db=tennis_url).stdout)
    reason = result["rejected"][0]["message"].split(": ", 1)[1].removesuffix(" (--allow-uncounted records it)")
    assert (explanation["counted"], explanation["why_not"]) == (False, reason)


def test_scores_in_tenths_are_scored_exactly(tennis_url: str, ratings: Ratings) -> None:
    """A margin of 4.5 counts as 45 tenths, and one of 4 as 40 tenths, in any spelling."""
    assert import_events(ratings, tennis_url, build_game(2, "12.0", 16))["appended"] == 1
    history = json.loads(ratings("history", "anna", "tennis", "--format", "json", db=tennis_url).stdout)["rows"]
    # K 20 and an expected score of 1/2: the factor is ln(5.5) for 4.5 points
    assert history[0]["change_decimal"].startswith("17.04748")
    # ben's expected score is 0.451090; the factor for 4 points is ln(5) * 2.2 / 2.165905, as anna's rating is higher
    assert history[1]["change_decimal"].startswith("-17.94685")
    explanation = json.loads(ratings("explain", "g-2", "tennis", "--format", "json", db=tennis_url).stdout)
    assert explanation["counted"] is True


SCORES_ALONE = RULES.replace('[numbers.length]\nmin = 1\nmax = 9\nabsent = "refuse"\n', "")
NUMBERS_ALONE = (
    RULES.replace("pairwise-elo/2", "pairwise-elo/1")
    .replace("score_decimals = 1\n", "")
    .replace('margin = "ln"\nmargin_unit = 10\n', "k_per_pair = 8\n")
)


@pytest.mark.parametrize(
    ("rules", "code"),
    [(SCORES_ALONE, "score-too-fine"), (NUMBERS_ALONE, "number-out-of-range")],
    ids=["scores alone", "numbers alone"],
)
def test_rulesets_reject_only_numbers_that_they_read(
    rules: str, code: str, copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path
) -> None:
    """A ruleset that reads only scores rejects only scores, and one that reads only numbers rejects only numbers."""
    db = copy_ledger_file(make_empty_ledger)
    (tmp_path / "tennis.toml").write_text(rules, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "tennis.toml", db=db).exit_code == 0
    events = {"score-too-fine": build_game(2, "7.25", 3), "number-out-of-range": build_game(3, 7, 3, length=10)}
    codes_by_event = {
        name: [rejection["code"] for rejection in import_events(ratings, db, event)["rejected"]]
        for name, event in events.items()
    }
    assert codes_by_event == {name: [name] if name == code else [] for name in events}
    result = import_events(ratings, db, events[code], allow_uncounted=True)
    assert result["appended"] == 1
    standings = json.loads(ratings("standings", "tennis", "--format", "json", db=db).stdout)
    assert standings["games"] == 1
