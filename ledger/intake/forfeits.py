"""Forfeits: games that were decided without play, because one side or both did not come.

The readers of all formats store a forfeit in the game's `extra.forfeit`, in the order of the participants: the first
came (+:-), the second came (-:+), or neither did (-:-). Such games are recorded and shown, but no ladder counts them
unless the import has `--forfeits rated`. A game to which neither side came has no winner and is never rated.
"""

from collections.abc import Sequence
from typing import Any

from ratings_ledger.ledger.validation.repeated_games import SETS

FORFEIT = "forfeit"
UNRATED, RATED = "unrated", "rated"
FORFEITS = (UNRATED, RATED)
FIRST_CAME, SECOND_CAME, NOBODY_CAME = "+:-", "-:+", "-:-"
LINES_MAX = 5
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


def describe_forfeits(count: int, forfeits: str | None, lines: Sequence[int] = ()) -> str:
    """Describe the forfeits of an import, with the lines of a table that have them.

    >>> describe_forfeits(2, None, [18, 20])
    '2 forfeits, recorded but not rated; --forfeits rated rates those that somebody won (lines 18, 20)'
    """
    where = f" ({_list_lines(lines)})" if lines else ""
    number_text = f"{count:,} forfeit{'s' * (count > 1)}"
    if forfeits == RATED:
        return f"{number_text}, rated where somebody won{where}"
    return f"{number_text}, recorded but not rated; --forfeits rated rates those that somebody won{where}"


def _list_lines(lines: Sequence[int]) -> str:
    listed = ", ".join(map(str, lines[:LINES_MAX])) + (", ..." if len(lines) > LINES_MAX else "")
    return f"line{'s' * (len(lines) > 1)} {listed}"


def lacks_sets(game: dict[str, Any]) -> bool:
    """Tell whether a game has no sets although it was played."""
    extra = game.get("extra") or {}
    return SETS not in extra and FORFEIT not in extra


class MissingSets:
    """Results without sets in a table whose other results have sets: they may be forfeits that do not say so."""

    def __init__(self) -> None:
        self._with_sets, self._without = 0, list[int]()

    def watch(self, line: int, event: Any) -> None:
        """Take a game of the table."""
        data = event.get("data") if isinstance(event, dict) else None
        if not isinstance(data, dict):
            return
        if lacks_sets(data):
            self._without.append(line)
        elif FORFEIT not in data["extra"]:
            self._with_sets += 1

    def describe(self) -> str:
        """Describe the results without sets; empty if there are none, or if most results have no sets.

        >>> missing = MissingSets()
        >>> for line, extra in ((2, {"scores": "11:7 11:9"}), (3, {"scores": "11:5 11:8"}), (4, {})):
        ...     missing.watch(line, {"data": {"extra": extra}})
        >>> missing.describe()
        '1 result without sets (line 4), unlike the others; a forfeit is written as +:- or 3:0 w.o. in the result'
        """
        number = len(self._without)
        if not 0 < number < self._with_sets:
            return ""
        results = (
            f"{number:,} result{'s' * (number > 1)} without sets ({_list_lines(self._without)}), unlike the others"
        )
        return f"{results}; a forfeit is written as +:- or 3:0 w.o. in the result"
