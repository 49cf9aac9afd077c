"""A change that makes published lists outdated names each list, and the command that publishes it anew."""

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

Ratings = Callable[..., Any]
HEADING = "To publish the new lists:"


@pytest.fixture
def db(store: str, ratings: Ratings) -> str:
    """Return a ledger with a home zone, two games, and lists as of the ends of two months."""
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", db=store).exit_code == 0
    for number, players in enumerate((["anna", "ben"], ["ben", "cleo"]), 1):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-0{number}-05")
        assert ratings("record", "-q", *game, *players, db=store).exit_code == 0
    for day in ("2024-01-31", "2024-02-29"):
        assert ratings("publish", "elo-chess", "--as-of", day, db=store).exit_code == 0
    return store


def list_offered_commands(text: str) -> list[str]:
    """Return the commands that an output offers to publish lists anew."""
    return [line.strip() for line in text.partition(HEADING)[2].splitlines() if line.startswith("  ratings publish")]


def test_rename_names_the_lists_with_the_old_name(db: str, ratings: Ratings) -> None:
    """A rename moves no points, but names the lists with the old id; a list published anew replaces the one before."""
    result = ratings("player", "rename", "cleo", "Cleo", "--dry-run", "--format", "json", db=db)
    (outdated,) = json.loads(result.stdout)["renamed"]
    assert (outdated["as_of"], outdated["already"]) == ("2024-02-29T22:59:59.999999Z", False)
    result = ratings("player", "rename", "cleo", "Cleo", db=db)
    assert result.stdout.endswith(
        "No points change.\n\nPublished, and would come out with different player ids:\n"
        f"  elo-chess as of 2024-02-29 23:59 Europe/Berlin, published at position {outdated['position']}\n\n"
        f"{HEADING}\n  ratings publish elo-chess --as-of 2024-02-29\n"
    )
    (command,) = list_offered_commands(result.stdout)
    assert ratings(*shlex.split(command)[1:], db=db).exit_code == 0
    assert "Cleo" in ratings("standings", "elo-chess", "--as-published", db=db).stdout
    result = ratings("player", "rename", "Cleo", "Clea", "--dry-run", "--format", "json", db=db)
    (latest,) = json.loads(result.stdout)["renamed"]
    assert (latest["as_of"], latest["position"] > outdated["position"]) == (outdated["as_of"], True)


def test_commands_of_many_lists_are_counted(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many outdated lists, the commands of the first are offered, and the others are counted."""
    monkeypatch.setattr("ratings_ledger.cli.output.impact.CHANGES_SHOWN_MAX", 1)
    stdout = ratings("void", "g-1", "--reason", "wrong", db=db).stdout
    assert (len(list_offered_commands(stdout)), stdout.rstrip().splitlines()[-1]) == (1, "  ... and 1 more")


def test_void_offers_every_changed_list_once(db: str, ratings: Ratings) -> None:
    """A voided game changes both lists; the comparison with today offers the same commands until they are run."""
    commands = [f"ratings publish elo-chess --as-of {day}" for day in ("2024-01-31", "2024-02-29")]
    assert "ratings diff published now" in ratings("lists", db=db).stdout
    assert list_offered_commands(ratings("diff", "published", "now", db=db).stdout) == []
    assert list_offered_commands(ratings("void", "g-1", "--reason", "wrong", db=db).stdout) == commands
    assert list_offered_commands(ratings("diff", "published", "now", db=db).stdout) == commands
    assert ratings(*shlex.split(commands[1])[1:], db=db).exit_code == 0
    assert list_offered_commands(ratings("diff", "published", "now", db=db).stdout) == commands[:1]
    assert list_offered_commands(ratings("diff", "published", "2", db=db).stdout) == []
