"""Renames of clubs: recorded by a command, refused if they are impossible, and undone."""

import json
from collections.abc import Callable
from typing import Any

from tests.projections.histories import load_facts

Ratings = Callable[..., Any]
PARTICIPANTS = [{"player": "anna", "place": 1, "club": "north"}, {"player": "ben", "place": 2, "club": "south"}]
GAME = {
    "type": "game.recorded",
    "occurred_at": "2024-01-01T12:00:00Z",
    "data": {"game_id": "g-1", "game": "chess", "participants": PARTICIPANTS},
}


def test_club_is_renamed_merged_and_named_as_before(ratings: Ratings, store: str) -> None:
    """Old names lead to the newest one; clubs that met may be merged; undo gives the old name back."""

    def rename(*names: str) -> str:
        """Rename a club, and return the code of the refusal, or an empty text."""
        result = ratings("club", "rename", *names, "--by", "tester", db=store)
        assert result.exit_code == 0 or not result.stdout.startswith("club.renamed"), result
        return "" if result.exit_code == 0 else str(result.stderr.partition(":")[0])

    def find_current_names(*clubs: str) -> list[str]:
        facts = load_facts(store)
        return [facts.current_club(club) for club in clubs]

    assert ratings("init", "--for", "chess", "--zone", "UTC", db=store).exit_code == 0
    assert ratings("import", "-", "--new-names", "accept", db=store, input=json.dumps(GAME)).exit_code == 0
    assert rename("nort", "North") == "club-unknown"
    assert rename("anna", "North") == "club-unknown"
    itself = ratings("club", "rename", "north", "north", "--by", "tester", db=store)
    assert "'north' cannot be renamed to itself; choose a different new name" in itself.stderr
    assert rename("north", "North") == ""
    assert rename("North", "north") == "rename-loop"
    assert rename("north", "x") == "renamed-already"
    assert rename("North", "south") == ""
    assert find_current_names("north", "North", "south", "west") == ["south", "south", "south", "west"]
    assert "the club North is renamed south" in ratings("log", "--type", "club.renamed", db=store).stdout
    assert ratings("undo", "--yes", "--by", "tester", db=store).exit_code == 0
    assert find_current_names("north", "North", "south") == ["North", "North", "south"]
    assert ratings("verify", db=store).exit_code == 0
