"""What `record` tells: whose points it changed, as corrections do, unless it is quiet or the ledger is long."""

import json

import pytest
from correction_helpers import Ratings, all_points, catan, difference, galactic, head, read, small_ledger
from thresholds import set_thresholds
from told import exact

COMMAND = ("record", "--game", "galactic-magnate", "--game-id", "g-9", "--at", "2010-03-05T10:00Z", "cleo", "anna")


pytestmark = pytest.mark.ledger(make=small_ledger)


@pytest.mark.slow_cases
def test_late_game_reports_all_changes(db: str, ratings: Ratings) -> None:
    """Recording a late game reports how the standings before and after it differ."""
    before = all_points(ratings, db)
    told = exact(json.loads(ratings(*COMMAND, "--format", "json", db=db).stdout))
    changes = {(c["ladder"], c["player"]): (c["before"], c["change"], c["after"]) for c in told["changes"]}
    assert changes == difference(before, all_points(ratings, db), str, str)
    assert len(changes) == 3
    assert (told["appended"], [one["ladder"] for one in told["ladders"]], told["published"]) == (
        1, ["galactic-points"], [],
    )  # fmt: skip


def test_table_matches_that_of_a_correction(db: str, ratings: Ratings) -> None:
    """`record` and its dry run show the same table of changes as a correction does."""
    dry = ratings(*COMMAND, "--dry-run", db=db)
    done = ratings(*COMMAND, db=db)
    assert done.stdout.splitlines()[0] == "1 appended; the head is 6."
    assert dry.stdout.splitlines()[1:] == done.stdout.splitlines()[1:]
    assert "player  before  change  after   rank" in done.stdout
    assert "cleo " in done.stdout


def test_repeated_record_changes_nothing(db: str, ratings: Ratings) -> None:
    """Recording a game that is already there changes nothing."""
    ratings(*COMMAND, db=db)
    again = ratings(*COMMAND, db=db)
    assert again.stdout == "0 appended, 1 already there; the head is 6.\n"
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
    before = head(ratings, db)
    told = json.loads(ratings(*COMMAND, "--format", "json", db=db).stdout)
    assert "changes" not in told
    assert head(ratings, db) != before
    shown = ratings("record", "--game", "galactic-magnate", "--game-id", "g-10", "anna", "ben", db=db).stdout
    assert shown == "1 appended; the head is 7.\n"


def test_json_input_reports_the_same(db: str, ratings: Ratings) -> None:
    """A game given as JSON reports the same changes in a dry run and when recorded."""
    line = galactic("g-9", "cleo", "anna", at="2010-03-05T10:00:00Z")
    dry = json.loads(ratings("record", "--dry-run", "--format", "json", db=db, input=line).stdout)
    done = json.loads(ratings("record", "--format", "json", db=db, input=line).stdout)
    assert dry["changes"] == done["changes"] != []
    assert ratings("record", db=db, input=catan("c-9", "anna", "ben", group=None)).stdout.endswith(
        "No points change.\n"
    )
    assert len(read(ratings, db, "games")["rows"]) == 5
