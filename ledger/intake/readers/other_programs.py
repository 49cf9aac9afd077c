"""What the readers of other programs' files have in common: what options say of all games, and what is left out."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from ratings_ledger.ledger.intake.tables.columns import CsvColumns, TableOptions, instant_text, read_members
from ratings_ledger.ledger.rejections import count

# what these files say of each game, as a table would with columns
COLUMNS = CsvColumns(("game_id", "occurred_at", "game", "rated"), ("player", "place", "score", "team"), {})


class Shared(NamedTuple):
    """What --set says of all games of a file, and when they were played if it says so."""

    members: dict[str, Any]
    occurred_at: str | None

    @classmethod
    def of(cls, options: TableOptions) -> "Shared":
        """Return what options say. Raises `Refused`."""
        members = dict(options.fixed)
        at = members.pop("occurred_at", None)
        members.pop("game_id", None)
        return cls(read_members(members), None if at is None else instant_text(at, options.zone))


class LeftOut:
    """Counts what of a file is left out or not rated, to say it once at the end."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, what: str, so: str = "left out") -> None:
        """Count one more game."""
        self._counts[what, so] += 1

    def notes(self) -> Iterator[str]:
        """Yield what to say about the games.

        >>> counted = LeftOut()
        >>> counted.add("without a result")
        >>> [*counted.notes()]
        ['1 game without a result, left out']
        """
        for (what, so), number in self._counts.items():
            yield f"{count(number, 'game')} {what}, {so}"
