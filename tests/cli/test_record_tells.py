"""`record` reports whose points it changed, as corrections do, unless it is quiet or the ledger is long."""

import json

import pytest
from correction_helpers import (
    REASON_OPTION,
    Ratings,
    build_catan_line,
    build_galactic_line,
    compare_points,
    create_small_ledger,
    read_all_points,
    read_head,
    read_json,
)
from output_filters import strip_decimals
from thresholds import set_thresholds

COMMAND = ("record", "--game", "galactic-magnate", "--game-id", "g-9", "--at", "2010-03-05T10:00Z", "cleo", "anna")


pytestmark = pytest.mark.ledger(make=create_small_ledger)


@pytest.mark.slow_cases
def test_late_game_reports_all_changes(db: str, ratings: Ratings) -> None:
    """Recording a late game reports how the standings before and after it differ."""
    before = read_all_points(ratings, db)
    output = strip_decimals(json.loads(ratings(*COMMAND, "--format", "json", db=db).stdout))
    changes = {(c["ladder"], c["player"]): (c["before"], c["change"], c["after"]) for c in output["changes"]}
    assert changes == compare_points(before, read_all_points(ratings, db), str, str)
    assert len(changes) == 3
    assert (output["appended"], [ladder["ladder"] for ladder in output["ladders"]], output["published"]) == (
        1,
        ["galactic-points"],
        [],
    )


def test_table_is_like_that_of_a_correction(db: str, ratings: Ratings) -> None:
    """`record` and its dry run show the same table of changes, with the columns of a correction's table."""
    dry = ratings(*COMMAND, "--dry-run", db=db)
    result = ratings(*COMMAND, db=db)
    assert result.stdout.splitlines()[0] == "1 appended; the head is 6."
    assert dry.stdout.splitlines()[1:] == result.stdout.splitlines()[1:]
    void_result = ratings("void", "g-9", *REASON_OPTION, "--dry-run", db=db)
    for stdout in (result.stdout, void_result.stdout):
        assert ["player", "before", "change", "after", "rank"] in [line.split() for line in stdout.splitlines()]
    assert "cleo " in result.stdout


def test_repeated_record_changes_nothing(db: str, ratings: Ratings) -> None:
    """Recording a game that is already there changes nothing."""
    ratings(*COMMAND, db=db)
    result = ratings(*COMMAND, db=db)
    assert result.stdout == "0 appended, 1 already there; the head is 6.\n"
    assert json.loads(ratings(*COMMAND, "--format", "json", db=db).stdout)["changes"] == []


def test_quiet_prints_only_what_is_wrong(db: str, ratings: Ratings) -> None:
    """`--quiet` prints nothing except what is wrong."""
    assert ratings(*COMMAND, "--quiet", db=db) == (0, "", "")
    new = ("record", "--game", "galactic-magnate", "--game-id", "g-10", "dora", "emil")
    assert ratings(*new, "-q", db=db) == (0, "", "")
    refused = ratings("record", "--game", "galactic-magnate", "--game-id", "g-11", "anna", "anna", "-q", db=db)
    assert (refused.exit_code, refused.stderr.split(":")[0]) == (1, "player-twice")
    assert refused.stdout.startswith("0 appended, 1 refused")


def test_long_ledger_is_not_replayed(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long ledger is not replayed to report changes, and the game is still recorded."""
    set_thresholds(monkeypatch, previewed_games=3)
    before = read_head(ratings, db)
    output = json.loads(ratings(*COMMAND, "--format", "json", db=db).stdout)
    assert "changes" not in output
    assert read_head(ratings, db) != before
    stdout = ratings("record", "--game", "galactic-magnate", "--game-id", "g-10", "anna", "ben", db=db).stdout
    assert stdout == "1 appended; the head is 7.\n"


def test_json_input_reports_the_same(db: str, ratings: Ratings) -> None:
    """A game given as JSON reports the same changes in a dry run and when recorded."""
    line = build_galactic_line("g-9", "cleo", "anna", at="2010-03-05T10:00:00Z")
    dry = json.loads(ratings("record", "--dry-run", "--format", "json", db=db, input=line).stdout)
    report = json.loads(ratings("record", "--format", "json", db=db, input=line).stdout)
    assert dry["changes"] == report["changes"] != []
    assert ratings("record", db=db, input=build_catan_line("c-9", "anna", "ben", group=None)).stdout.endswith(
        "No points change.\n"
    )
    assert len(read_json(ratings, db, "games")["rows"]) == 5


SCORES = {
    "plain": (("anna:3", "ben:1"), [("anna", 1, 3), ("ben", 2, 1)]),
    "fractions": (("anna: 2,5", "ben:0.5"), [("anna", 1, "2.5"), ("ben", 2, "0.5")]),
    "a tie": (("anna:2=ben:2", "cleo:0"), [("anna", 1, 2), ("ben", 1, 2), ("cleo", 3, 0)]),
    "a known id that ends in a number": (("cleo:7:3", "ben:1"), [("cleo:7", 1, 3), ("ben", 2, 1)]),
    "a known id without a score": (("cleo:7", "ben"), [("cleo:7", 1, None), ("ben", 2, None)]),
    "teams": (
        ("--partners", "+", "anna+ben:3", "cleo+cleo:7:1"),
        [("anna", 1, 3), ("ben", 1, 3), ("cleo", 3, 1), ("cleo:7", 3, 1)],
    ),
}


@pytest.mark.ledger(make=create_small_ledger, store="sqlite")
@pytest.mark.parametrize(("typed", "expected"), SCORES.values(), ids=SCORES)
def test_scores_are_typed_after_players(
    typed: tuple[str, ...], expected: list[tuple[str, int, int | str | None]], db: str, ratings: Ratings
) -> None:
    """A number after the last colon is the score of that side, unless the text is a known id."""
    participants = [{"player": "cleo:7", "place": 1}, {"player": "ben", "place": 2}]
    known = {"game_id": "g-8", "game": "tennis", "participants": participants}
    assert ratings("record", "--new-names", "accept", db=db, input=json.dumps(known)).exit_code == 0
    result = ratings("record", "--game", "tennis", "--game-id", "g-9", *typed, db=db)
    assert result.exit_code == 0, result
    (row,) = read_json(ratings, db, "games", "g-9")["rows"]
    assert [
        (participant["player"], participant["place"], participant.get("score")) for participant in row["participants"]
    ] == expected


WRONG_SCORES = {
    "one score missing": (("anna:3", "ben"), "score-missing", "'ben' has no score"),
    "the lower score first": (("anna:1", "ben:3"), "score-contradicts-place", "'ben:3' comes after 'anna:1'"),
    "equal scores without a tie": (("anna:2", "ben:2"), "score-contradicts-place", "anna:2=ben:2"),
    "a tie of unequal scores": (("anna:2=ben:1",), "score-contradicts-place", "'anna:2=ben:1' ties"),
    "two scores": (("nina:2:1", "ben:1"), "bad-identifier", "'nina:2:1' has two scores"),
}


@pytest.mark.ledger(make=create_small_ledger, store="sqlite")
@pytest.mark.parametrize(("typed", "code", "message"), WRONG_SCORES.values(), ids=WRONG_SCORES)
def test_wrong_scores_name_the_argument(
    typed: tuple[str, ...], code: str, message: str, db: str, ratings: Ratings
) -> None:
    """Missing, contradictory and repeated scores are refused with the argument, and nothing is recorded."""
    before = read_head(ratings, db)
    result = ratings("record", "--game", "tennis", "--game-id", "g-9", *typed, "--format", "json", db=db)
    (rejected,) = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, rejected["code"], message in rejected["message"]) == (1, code, True), rejected
    assert read_head(ratings, db) == before
