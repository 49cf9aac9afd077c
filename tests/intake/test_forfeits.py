"""Forfeits: readers note them, and one function decides whether they are rated."""

from copy import deepcopy
from typing import Any

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.intake.forfeits import FIRST_PRESENT, NEITHER_PRESENT, describe_forfeits, mark_forfeit
from ratings_ledger.ledger.intake.tables.layouts.result_cells import parse_result


@pytest.mark.parametrize(
    ("forfeit", "forfeits", "rated"),
    [
        (FIRST_PRESENT, None, False),
        (FIRST_PRESENT, "unrated", False),
        (FIRST_PRESENT, "rated", None),
        (NEITHER_PRESENT, "rated", False),
    ],
)
def test_forfeit_with_a_winner_is_rated_on_request(forfeit: str, forfeits: str | None, rated: bool | None) -> None:
    """A forfeit is rated only if it has a winner and the import rates forfeits."""
    event: dict[str, Any] = {"data": {"extra": {"forfeit": forfeit}}}
    assert mark_forfeit(event, forfeits)
    assert event["data"].get("rated") is rated


def test_dashes_alone_are_no_forfeit() -> None:
    """Dashes alone, which stand for empty cells, are refused; a forfeit of both sides has a colon or a slash."""
    for text in ("---", "- - -", "--"):
        with pytest.raises(Refused):
            parse_result(text)
    assert parse_result("-:-").forfeit == parse_result("- / -").forfeit == NEITHER_PRESENT
    assert parse_result("+--").forfeit == parse_result("+:-").forfeit == FIRST_PRESENT


@pytest.mark.parametrize("event", [b"{}", {}, {"data": 3}, {"data": {"extra": {"note": "x"}}}, {"data": {"extra": 1}}])
def test_other_games_are_left_alone(event: Any) -> None:
    """An event without a note of a forfeit is left unchanged, even if it is malformed."""
    event_before = deepcopy(event)
    for forfeits in (None, "unrated", "rated"):
        assert not mark_forfeit(event, forfeits)
        assert event == event_before


def test_note_about_forfeits_counts_them() -> None:
    """The note about forfeits has their number and the option that rates them."""
    note = "2 forfeits, recorded but not rated; to rate forfeits with a winner, pass --forfeits rated"
    assert describe_forfeits(2, None) == note
    assert describe_forfeits(1, "rated") == "1 forfeit, rated if one side won"
