"""Handle forfeits: games that were decided without play, because one or both sides did not show up.

The readers of all formats store a forfeit in the game's `extra.forfeit`, in the order of the participants: only the
first showed up (+:-), only the second showed up (-:+), or neither did (-:-). Such games are recorded and shown, but no
ladder counts them unless the import has `--forfeits rated`. A double forfeit (-:-) has no winner and is never rated.
"""

from collections.abc import Sequence
from typing import Any

from ratings_ledger.ledger.rejections import count
from ratings_ledger.ledger.validation.repeated_games import SETS

FORFEIT = "forfeit"
UNRATED, RATED = "unrated", "rated"
FORFEIT_CHOICES = (UNRATED, RATED)
FIRST_PRESENT, SECOND_PRESENT, NEITHER_PRESENT = "+:-", "-:+", "-:-"
LISTED_LINES_MAX = 5
# the places of both sides, by the kind of forfeit
PLACES = {FIRST_PRESENT: (1, 2), SECOND_PRESENT: (2, 1), NEITHER_PRESENT: (1, 1)}


def mark_forfeit(event: Any, forfeits: str | None) -> bool:
    """Mark a forfeit as unrated, unless forfeits are rated and one side won; return whether the game is a forfeit.

    >>> event = {"data": {"extra": {"forfeit": "+:-"}}}
    >>> mark_forfeit(event, None), event["data"]["rated"]
    (True, False)
    """
    data = event.get("data") if isinstance(event, dict) else None
    extra = data.get("extra") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(extra, dict) or FORFEIT not in extra:
        return False
    if forfeits != RATED or extra[FORFEIT] == NEITHER_PRESENT:
        data["rated"] = False
    return True


def describe_forfeits(number: int, forfeits: str | None, lines: Sequence[int] = ()) -> str:
    """Describe the forfeits of a file, with their lines if it is a table.

    >>> describe_forfeits(2, None, [18, 20])
    '2 forfeits, recorded but not rated (lines 18, 20); to rate forfeits with a winner, pass --forfeits rated'
    """
    in_lines = f" ({format_lines(lines)})" if lines else ""
    subject = count(number, "forfeit")
    if forfeits == RATED:
        return f"{subject}, rated if one side won{in_lines}"
    return f"{subject}, recorded but not rated{in_lines}; to rate forfeits with a winner, pass --forfeits rated"


def format_lines(lines: Sequence[int]) -> str:
    """Format line numbers as text, at most `LISTED_LINES_MAX` of them.

    >>> format_lines([18]), format_lines([*range(2, 9)])
    ('line 18', 'lines 2, 3, 4, 5, 6, ...')
    """
    listed = ", ".join(map(str, lines[:LISTED_LINES_MAX])) + (", ..." if len(lines) > LISTED_LINES_MAX else "")
    return f"line{'s' * (len(lines) > 1)} {listed}"


def lacks_sets(game: dict[str, Any]) -> bool:
    """Tell whether a game has no sets although it is not a forfeit."""
    extra = game.get("extra") or {}
    return SETS not in extra and FORFEIT not in extra


class MissingSets:
    """The results without sets in a table whose other results have sets: they may be unmarked forfeits."""

    def __init__(self) -> None:
        self._number_with_sets, self._lines_without_sets = 0, list[int]()

    def watch(self, line: int, event: Any) -> None:
        """Count one game of the table, with or without sets."""
        data = event.get("data") if isinstance(event, dict) else None
        if not isinstance(data, dict):
            return
        if lacks_sets(data):
            self._lines_without_sets.append(line)
        elif FORFEIT not in data["extra"]:
            self._number_with_sets += 1

    def describe(self) -> str:
        """Describe the results without sets; empty if there are none, or if they are half of all results or more.

        >>> missing = MissingSets()
        >>> for line, extra in ((2, {"scores": "11:7 11:9"}), (3, {"scores": "11:5 11:8"}), (4, {})):
        ...     missing.watch(line, {"data": {"extra": extra}})
        >>> missing.describe()
        '1 result without sets (line 4), unlike the others; if it is a forfeit, write +:- or 3:0 w.o. as the result'
        """
        number = len(self._lines_without_sets)
        if not 0 < number < self._number_with_sets:
            return ""
        in_lines = format_lines(self._lines_without_sets)
        results = f"{count(number, 'result')} without sets ({in_lines}), unlike the others"
        subject = "it is a forfeit" if number == 1 else "they are forfeits"
        return f"{results}; if {subject}, write +:- or 3:0 w.o. as the result"
