"""Games that were not played are noted by readers of any format and settled in one place."""

from typing import Any

import pytest

from ratings_ledger import Refused
from ratings_ledger.ledger.intake.forfeits import FIRST_CAME, NEITHER_CAME, describe_forfeits, mark_forfeit
from ratings_ledger.ledger.intake.tables.layouts.result_cells import parse_result


@pytest.mark.parametrize(
    ("noted", "forfeits", "rated"),
    [(FIRST_CAME, None, False), (FIRST_CAME, "unrated", False), (FIRST_CAME, "rated", None),
     (NEITHER_CAME, "rated", False)],
)  # fmt: skip
def test_forfeit_is_rated_only_if_somebody_won_and_that_is_wanted(
    noted: str, forfeits: str | None, rated: bool | None
) -> None:
    """Forfeits are unrated, but for those with a winner where the import rates them."""
    event: dict[str, Any] = {"data": {"extra": {"forfeit": noted}}}
    assert mark_forfeit(event, forfeits)
    assert event["data"].get("rated") is rated


def test_dashes_alone_are_no_forfeit() -> None:
    """Dashes stand in empty cells, so a game to which nobody came is written with a colon or slash."""
    for text in ("---", "- - -", "--"):
        with pytest.raises(Refused):
            parse_result(text)
    assert parse_result("-:-").forfeit == parse_result("- / -").forfeit == NEITHER_CAME
    assert parse_result("+--").forfeit == parse_result("+:-").forfeit == FIRST_CAME


@pytest.mark.parametrize("event", [b"{}", {}, {"data": 3}, {"data": {"extra": {"note": "x"}}}, {"data": {"extra": 1}}])
def test_other_games_are_left_alone(event: Any) -> None:
    """What notes no forfeit is none, whatever it is."""
    assert not mark_forfeit(event, "rated")


def test_forfeits_are_counted_in_words() -> None:
    """An import says how many there were, and which option rates them."""
    told = "2 forfeits, recorded but not rated; --forfeits rated rates those with a winner"
    assert describe_forfeits(2, None) == told
    assert describe_forfeits(1, "rated") == "1 forfeit, rated if they have a winner"
