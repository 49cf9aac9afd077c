"""Forfeits: games that were decided without play, because one side or both did not come.

The readers of all formats store a forfeit in the game's `extra.forfeit`, in the order of the participants: the first
came (+:-), the second came (-:+), or neither did (-:-). Such games are recorded and shown, but no ladder counts them
unless the import has `--forfeits rated`. A game to which neither side came has no winner and is never rated.
"""

from typing import Any

FORFEIT = "forfeit"
UNRATED, RATED = "unrated", "rated"
FORFEITS = (UNRATED, RATED)
FIRST_CAME, SECOND_CAME, NOBODY_CAME = "+:-", "-:+", "-:-"
# the places of both sides, by the kind of forfeit
PLACES = {FIRST_CAME: (1, 2), SECOND_CAME: (2, 1), NOBODY_CAME: (1, 1)}


def settle_forfeit(event: Any, forfeits: str | None) -> bool:
    """Mark a forfeit as unrated, unless forfeits are rated; return whether the game is a forfeit.

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
    """Describe the forfeits of an import.

    >>> describe_forfeits(2, None)
    '2 forfeits, recorded but not rated; --forfeits rated rates those that somebody won'
    """
    number_text = f"{count:,} forfeit{'s' * (count > 1)}"
    if forfeits == RATED:
        return f"{number_text}, rated where somebody won"
    return f"{number_text}, recorded but not rated; --forfeits rated rates those that somebody won"
