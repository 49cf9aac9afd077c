"""Columns of ratings: the same number of decimals in each row, and a legend of their marks below the table."""

from collections.abc import Callable
from typing import Any

import pytest

Ratings = Callable[..., Any]
MARKS = "± is the uncertainty of a rating (its deviation); ? marks a provisional rating, not reliable yet."


@pytest.fixture
def db(store: str, ratings: Ratings) -> str:
    """Return the URL of a ledger: go under a system with deviations, and chess under Elo."""
    assert ratings("init", "--for", "go", "--system", "weng-lin", "--zone", "UTC", db=store).exit_code == 0
    assert ratings("rules", "publish", "--shipped", "elo", "--game", "chess", db=store).exit_code == 0
    results = [("anna", "ben"), ("anna", "cleo"), ("cleo", "ben"), ("anna", "ben")]
    for number, (winner, loser) in enumerate(results, 1):
        game = ("--game-id", f"g-{number}", "--at", f"2024-01-{number:02}")
        assert ratings("record", "-q", "--game", "go", *game, winner, loser, db=store).exit_code == 0
    chess = ("--game", "chess", "--game-id", "c-1", "--at", "2024-01-05")
    assert ratings("record", "-q", *chess, "anna", "ben", db=store).exit_code == 0
    return store


def test_standings_explain_their_marks(db: str, ratings: Ratings) -> None:
    """One sentence explains deviations and question marks, another the ranking; plain points have no legend.

    Ratings and deviations have two decimals.
    """
    stdout = ratings("standings", "weng-lin-go", db=db).stdout
    table, _, legend = stdout.partition("\n\n")[2].partition("\n\n")
    assert legend == f"{MARKS} Ranked by the rating minus 3 deviations.\n"
    rating_cells = [line.split()[2:5] for line in table.splitlines()[1:]]
    assert all(len(rating.partition(".")[2]) == 2 for rating, _, _ in rating_cells)
    assert all(len(deviation.strip("?").partition(".")[2]) == 2 for _, _, deviation in rating_cells)
    assert ratings("publish", "weng-lin-go", "--as-of", "2024-01-31", db=db).exit_code == 0
    assert ratings("standings", "weng-lin-go", "--as-published", db=db).stdout.endswith(f"\n\n{legend}")
    assert "±" not in ratings("standings", "elo-chess", db=db).stdout
    assert "the rating minus 3 deviations" in ratings("explain", "anna", "weng-lin-go", db=db).stdout


def test_effects_have_the_same_decimals(db: str, ratings: Ratings) -> None:
    """Points before a change, the change, and the points after it have the same number of decimals."""
    stdout = ratings("adjust", "elo-chess", "anna", "0.5", "--reason", "a fee", "--by", "mira", db=db).stdout
    assert "anna    1016.0    +0.5  1016.5\n" in stdout
