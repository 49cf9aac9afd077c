"""Results in a table that differ from nearly all others there, and are perhaps slips of the keyboard.

No rule of any sport is assumed. The table itself shows how its games are won:

3:1, 3:0, 3:2 ...     2:1       is won with 2, where the others are won with 3
11:7, 13:11 ...       111:3     is a set to 111, where sets are won with about 11
                      11:11     is a set that neither side won

A note names them, and they are recorded, because an abandoned game or a long set looks the same.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any

from ratings_ledger.ledger.rejections import count

# fewer results do not show what is usual
RESULTS_MIN = 10
# one in so many results may differ from the usual ones
SHARE = 10
# a set may have so many times as many points as the median
FACTOR = 4
LINES_MAX = 5
# winning scores of more kinds are points, of which none is usual
KINDS_MAX = 100
_SET = re.compile(r"(\d{1,3}):(\d{1,3})(?:\(\d{1,2}\))?", re.ASCII)


class UnusualResults:
    """The results of two sides in one table: how often each winning score occurs, and on which lines first."""

    def __init__(self) -> None:
        self._scores = _Kinds()
        self._sets = _Kinds()
        self._undecided = _Kinds()

    def watch(self, line: int, event: Any) -> None:
        """Count the scores and sets of a game between two."""
        data = event.get("data") if isinstance(event, dict) else None
        if not isinstance(data, dict) or "score_order" in data:
            return
        players = data.get("participants")
        if (
            not isinstance(players, list)
            or len(players) != 2
            or not all(isinstance(player, dict) for player in players)
        ):
            return
        first, second = players[0].get("score"), players[1].get("score")
        if isinstance(first, int) and isinstance(second, int) and first != second:
            self._scores.add(first if first > second else second, line)
        extra = data.get("extra")
        if isinstance(extra, dict) and isinstance(sets := extra.get("scores"), str):
            for best, is_decided in _read_sets(sets):
                self._sets.add(best, line)
                if not is_decided:
                    self._undecided.add(best, line)

    def describe(self) -> str:
        """Describe the unusual results in a sentence, empty without any.

        >>> unusual = UnusualResults()
        >>> for line, won in enumerate([3] * 19 + [2]):
        ...     unusual.watch(line, {"data": {"participants": [{"score": won}, {"score": 1}]}})
        >>> unusual.describe()
        'unusual results, perhaps slips: won with 2, the others with 3 (line 19)'
        """
        parts = [*self._describe_scores(), *self._describe_sets()]
        return f"unusual results, perhaps slips: {'; '.join(parts)}" if parts else ""

    def _describe_scores(self) -> Iterator[str]:
        numbers = self._scores.numbers
        total = sum(numbers.values())
        if total < RESULTS_MIN or len(numbers) > KINDS_MAX:
            return
        usual = max(numbers, key=numbers.__getitem__)
        if (total - numbers[usual]) * SHARE <= total:
            for score in sorted(numbers.keys() - {usual}):
                yield f"won with {score}, the others with {usual} ({self._scores.lines([score])})"

    def _describe_sets(self) -> Iterator[str]:
        numbers = self._sets.numbers
        total = sum(numbers.values())
        if total < RESULTS_MIN:
            return
        cumulated = zip(sorted(numbers), accumulate(numbers[best] for best in sorted(numbers)), strict=True)
        median = next(best for best, number in cumulated if 2 * number >= total)
        for best in sorted(numbers):
            if best > FACTOR * median > 0:
                yield f"a set to {best}, the others to about {median} ({self._sets.lines([best])})"
        undecided = self._undecided.numbers
        if 0 < (number := sum(undecided.values())) * SHARE <= total:
            yield f"{count(number, 'set')} that neither side won ({self._undecided.lines(undecided)})"


class _Kinds:
    """How many results have each number of points, and the first lines with them."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self._lines: dict[int, list[int]] = {}

    def add(self, points: int, line: int) -> None:
        """Count a result."""
        number = self.numbers[points] = self.numbers.get(points, 0) + 1
        if number <= LINES_MAX + 1 and len(self._lines) <= KINDS_MAX:
            self._lines.setdefault(points, []).append(line)

    def lines(self, kinds: Iterable[int]) -> str:
        """Return the lines with results of these kinds in words."""
        lines = sorted({line for points in kinds for line in self._lines.get(points, ())})
        listed = ", ".join(map(str, lines[:LINES_MAX])) + (", ..." if len(lines) > LINES_MAX else "")
        return f"line{'s' * (len(lines) > 1)} {listed}"


@lru_cache(maxsize=10_000)  # the sets of many games are the same
def _read_sets(text: str) -> tuple[tuple[int, bool], ...]:
    """Return the points of the better side in each set, and whether it won the set; empty for other texts.

    >>> _read_sets("7:6(5) 11:11"), _read_sets("20+3")
    (((7, True), (11, False)), ())
    """
    sets = [_SET.fullmatch(part) for part in text.split()]
    points = [(int(match[1]), int(match[2])) for match in sets if match is not None]
    return tuple((max(pair), pair[0] != pair[1]) for pair in points) if all(sets) else ()
