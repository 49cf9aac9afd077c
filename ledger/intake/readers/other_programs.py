"""Shared code of the readers of other programs' files: options for all games, and counts of games left out."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from ratings_ledger.ledger.intake.tables.columns import CsvColumns, TableOptions, normalise_instant, read_members
from ratings_ledger.ledger.rejections import count

# the members of a game that these files have, as columns of a table
COLUMNS = CsvColumns(("game_id", "occurred_at", "game", "rated"), ("player", "place", "score", "team"), {})


class Shared(NamedTuple):
    """The members that --set gives to all games of a file, and their time if it gives one."""

    members: dict[str, Any]
    occurred_at: str | None

    @classmethod
    def of(cls, options: TableOptions) -> "Shared":
        """Read the options. Raises `Refused`."""
        members = dict(options.fixed)
        at = members.pop("occurred_at", None)
        members.pop("game_id", None)
        return cls(read_members(members), None if at is None else normalise_instant(at, options.zone))


class LeftOut:
    """A counter of games that are left out or not rated, for one report at the end."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, reason: str, outcome: str = "left out") -> None:
        """Count one more game."""
        self._counts[reason, outcome] += 1

    def notes(self) -> Iterator[str]:
        """Yield the sentences about the games.

        >>> counted = LeftOut()
        >>> counted.add("without a result")
        >>> [*counted.notes()]
        ['1 game without a result, left out']
        """
        for (reason, outcome), number in self._counts.items():
            yield f"{count(number, 'game')} {reason}, {outcome}"
