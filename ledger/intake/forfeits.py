"""Forfeits: games that were decided without being played, because a side or both did not come.

A reader of any format notes one in the game's `extra.forfeit`, from the point of view of the participants in their
order: the first came (+:-), the second came (-:+), or neither did (-:-). Such games are recorded and shown, but no
ladder counts them, unless the import says otherwise. Where nobody came, nobody won, and the game is never rated.
"""

from typing import Any

FORFEIT = "forfeit"
UNRATED, RATED = "unrated", "rated"
FORFEITS = (UNRATED, RATED)
FIRST_CAME, SECOND_CAME, NOBODY_CAME = "+:-", "-:+", "-:-"
# the places of both sides, by what is noted
PLACES = {FIRST_CAME: (1, 2), SECOND_CAME: (2, 1), NOBODY_CAME: (1, 1)}


def settle_forfeit(event: Any, forfeits: str | None) -> bool:
    """Make a game that was not played an unrated one, unless forfeits are rated; return whether it was not played.

    >>> event = {"data": {"extra": {"forfeit": "+:-"}}}
    >>> settle_forfeit(event, None), event["data"]["rated"]
    (True, False)
    """
    data = event.get("data") if isinstance(event, dict) else None
    extra = data.get("extra") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(extra, dict) or FORFEIT not in extra:
        return False
    if forfeits != RATED or extra[FORFEIT] == NOBODY_CAME:
        data["rated"] = False
    return True


def describe_forfeits(count: int, forfeits: str | None) -> str:
    """Return what an import says about the games that were not played.

    >>> describe_forfeits(2, None)
    '2 forfeits, recorded but not rated; --forfeits rated rates those that somebody won'
    """
    counted = f"{count:,} forfeit{'s' * (count > 1)}"
    if forfeits == RATED:
        return f"{counted}, rated where somebody won"
    return f"{counted}, recorded but not rated; --forfeits rated rates those that somebody won"
