"""A small club's ledger for the tests of pages: three ladders, a correction, a published list, unusual names."""

from collections.abc import Callable
from typing import Any

Ratings = Callable[..., Any]

HOSTILE = "<img src> \"x\" 'y' &amp; علي"
GAMES = (
    ("g-1", "2025-01-10T20:00Z", "anna", "ben", "Łukasz"),
    ("g-2", "2025-01-17T20:00Z", "ben=Łukasz", "anna"),
    ("g-3", "2025-02-07T20:00Z", "Łukasz", "anna", "ben", "美咲"),
    ("g-4", "2025-02-21T20:00Z", "美咲", "anna"),
    ("g-5", "2025-03-07T20:00Z", "ben", HOSTILE),
)
LADDER = "elo-catan/all"
SHORT = "elo-catan"  # the short name that commands accept
LATE = ("record", "-q", "--game", "catan", "--game-id", "g-6", "--at", "2025-03-14T20:00Z", "anna", "ben")


def create_club(ratings: Ratings, url: str) -> None:
    """Create the ledger: five games, a published list of February, and then a correction of a January game."""
    run_ok(ratings, "init", "--for", "catan", "--zone", "Europe/Berlin", "--by", "mira", db=url)
    for game_id, at, *players in GAMES:
        record_game(ratings, url, game_id, at, *players)
    run_ok(ratings, "publish", LADDER, "--as-of", "2025-02-28", "--by", "mira", db=url)
    run_ok(
        ratings, "correct", "g-1", "ben", "anna", "Łukasz", "--reason", "scores <read> wrong", "--by", "mira", db=url
    )


def record_game(ratings: Ratings, url: str, game_id: str, at: str, *players: str) -> None:
    """Record a game of Catan by mira, in which players may be new."""
    options = ("--game", "catan", "--game-id", game_id, "--at", at, "--by", "mira", "--new-names", "accept")
    run_ok(ratings, "record", "-q", *options, "--", *players, db=url)


def run_ok(ratings: Ratings, *arguments: str, db: str) -> Any:
    """Run a command, which must succeed, and return its result."""
    result = ratings(*arguments, db=db)
    assert result.exit_code == 0, result
    return result
