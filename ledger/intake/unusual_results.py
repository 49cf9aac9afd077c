"""Find results that differ from nearly all others in a table and may be typing errors.

No rules of any sport are assumed. The table itself shows how its games are won:

usual results         unusual result   why
3:1, 3:0, 3:2 ...     2:1              the game is won with 2, the others with 3
11:7, 13:11 ...       111:3            the set is won with 111, the others with about 11
                      11:11            neither side won the set

Unusual results are recorded all the same, because an abandoned game or a long set may look like one. A note lists them.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any

from ratings_ledger.ledger.intake.forfeits import LISTED_LINES_MAX, format_lines
from ratings_ledger.ledger.rejections import count
from ratings_ledger.ledger.validation.repeated_games import SETS

# fewer results do not show what is usual
RESULTS_MIN = 10
# at most one result in 10 may be unusual; otherwise the table has no usual result
RESULTS_PER_UNUSUAL_MIN = 10
# a set won with more than 4 times the median points is unusual
MEDIAN_FACTOR = 4
# with more distinct winning scores, scores are points, and no score is usual
DISTINCT_SCORES_MAX = 100
_SET = re.compile(r"(\d{1,3}):(\d{1,3})(?:\(\d{1,2}\))?", re.ASCII)


class UnusualResults:
    """The frequencies of the winning scores of games and sets between two players in one table."""

    def __init__(self) -> None:
        self._scores = _PointTally()
        self._sets = _PointTally()
        self._undecided_sets = _PointTally()

    def watch(self, line: int, event: Any) -> None:
        """Count the score and sets of a game between two players; ignore other games."""
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
        if isinstance(extra, dict) and isinstance(sets := extra.get(SETS), str):
            for best, is_decided in _read_sets(sets):
                self._sets.add(best, line)
                if not is_decided:
                    self._undecided_sets.add(best, line)

    def describe(self) -> str:
        """Return a sentence about the unusual results, or an empty text if there are none.

        >>> unusual = UnusualResults()
        >>> for line, won in enumerate([3] * 19 + [2]):
        ...     unusual.watch(line, {"data": {"participants": [{"score": won}, {"score": 1}]}})
        >>> unusual.describe()
        'possible typing errors: 1 game won with 2, most others with 3 (line 19); if wrong, correct the file'
        """
        parts = [*self._describe_scores(), *self._describe_sets()]
        return f"possible typing errors: {'; '.join(parts)}; if wrong, correct the file" if parts else ""

    def _describe_scores(self) -> Iterator[str]:
        frequencies = self._scores.frequencies
        total = sum(frequencies.values())
        if total < RESULTS_MIN or len(frequencies) > DISTINCT_SCORES_MAX:
            return
        usual = max(frequencies, key=frequencies.__getitem__)
        if (total - frequencies[usual]) * RESULTS_PER_UNUSUAL_MIN <= total:
            for score in sorted(frequencies.keys() - {usual}):
                games = count(frequencies[score], "game")
                yield f"{games} won with {score}, most others with {usual} ({self._scores.format_lines([score])})"

    def _describe_sets(self) -> Iterator[str]:
        frequencies = self._sets.frequencies
        total = sum(frequencies.values())
        if total < RESULTS_MIN:
            return
        all_points = sorted(frequencies)
        cumulated = zip(all_points, accumulate(frequencies[points] for points in all_points), strict=True)
        median = next(points for points, frequency in cumulated if 2 * frequency >= total)
        for points in all_points:
            if points > MEDIAN_FACTOR * median > 0:
                sets = count(frequencies[points], "set")
                yield f"{sets} to {points}, most others to about {median} ({self._sets.format_lines([points])})"
        undecided = self._undecided_sets
        if 0 < (undecided_count := sum(undecided.frequencies.values())) * RESULTS_PER_UNUSUAL_MIN <= total:
            lines = undecided.format_lines(undecided.frequencies)
            yield f"{count(undecided_count, 'set')} that neither side won ({lines})"


class _PointTally:
    """The number of games or sets won with each number of points, and the first lines of each."""

    def __init__(self) -> None:
        self.frequencies: dict[int, int] = {}
        self._lines: dict[int, list[int]] = {}

    def add(self, points: int, line: int) -> None:
        """Count a game or set."""
        frequency = self.frequencies[points] = self.frequencies.get(points, 0) + 1
        if frequency <= LISTED_LINES_MAX + 1 and len(self._lines) <= DISTINCT_SCORES_MAX:
            self._lines.setdefault(points, []).append(line)

    def format_lines(self, points: Iterable[int]) -> str:
        """Format the first lines that have these numbers of points."""
        return format_lines(sorted({line for number in points for line in self._lines.get(number, ())}))


@lru_cache(maxsize=10_000)  # the sets of many games are the same
def _read_sets(text: str) -> tuple[tuple[int, bool], ...]:
    """Return for each set the points of the better side and whether it won; empty if the text does not list sets.

    >>> _read_sets("7:6(5) 11:11"), _read_sets("20+3")
    (((7, True), (11, False)), ())
    """
    sets = [_SET.fullmatch(part) for part in text.split()]
    points = [(int(match[1]), int(match[2])) for match in sets if match is not None]
    return tuple((max(pair), pair[0] != pair[1]) for pair in points) if all(sets) else ()
