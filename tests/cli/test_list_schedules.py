"""`publish LADDER --every month` records a schedule, and `publish --due` publishes every month that was missed."""

import pytest
from correction_helpers import Ratings, event, placing, read, refusal, take_in


def chess(ratings: Ratings, url: str) -> None:
    """Make a ledger with games of two months, with one between them that has none."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for month, players in ((3, ("anna", "ben")), (5, ("ben", "anna"))):
        game = placing(f"g-{month}", *players, game="chess")
        take_in(ratings, url, event("game.recorded", f"2024-0{month}-15T12:00:00Z", **game))


pytestmark = pytest.mark.ledger(make=chess)


def published(ratings: Ratings, db: str) -> list[str]:
    """Up to when lists of the ladder were published, in the order of the log."""
    rows = read(ratings, db, "log", "--type", "list.published", "--limit", "0")["rows"]
    return [row["data"]["as_of"] for row in rows]


def test_missed_months_are_published_once(db: str, ratings: Ratings) -> None:
    """All months since the first game are published by their ends, oldest first; then nothing is due."""
    before = read(ratings, db, "standings", "elo-chess")["digest"]
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
    assert ratings("publish", "--due", "--dry-run", db=db).exit_code == 0
    assert published(ratings, db) == []
    assert ratings("publish", "--due", db=db).exit_code == 0
    ends = published(ratings, db)
    assert ends[:3] == ["2024-03-31T23:59:59.999999Z", "2024-04-30T23:59:59.999999Z", "2024-05-31T23:59:59.999999Z"]
    assert ends == sorted({*ends})
    again = ratings("publish", "--due", db=db)
    assert (again.exit_code, again.stdout) == (0, "No list is due.\n")
    assert published(ratings, db) == ends
    assert read(ratings, db, "standings", "elo-chess")["digest"] == before
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.ledger(make=chess, store="sqlite")
def test_schedule_is_withdrawn(db: str, ratings: Ratings) -> None:
    """A second schedule of a ladder is refused; once the first is undone, nothing is due."""
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
    assert refusal(ratings, db, "publish", "elo-chess", "--every", "month") == "schedule-exists"
    assert ratings("undo", "--yes", db=db).exit_code == 0
    assert ratings("publish", "--due", db=db).stdout.startswith("No list is due.")
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
