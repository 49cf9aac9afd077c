"""Code that the readers of other programs' files share: members set for all games, and counts of special games."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from ratings_ledger.ledger.intake.tables.columns import CsvColumns, TableOptions, normalise_instant, read_members
from ratings_ledger.ledger.rejections import count

# the members of games in these files, as the columns of a table
COLUMNS = CsvColumns(("game_id", "occurred_at", "game", "rated"), ("player", "place", "score", "team"), {})


class CommonMembers(NamedTuple):
    """The members that --set gives to all games of a file, and the time if --set gives one."""

    members: dict[str, Any]
    occurred_at: str | None

    @classmethod
    def read(cls, options: TableOptions) -> "CommonMembers":
        """Read the options. Raises `Refused`."""
        members = dict(options.fixed)
        at = members.pop("occurred_at", None)
        members.pop("game_id", None)
        return cls(read_members(members), None if at is None else normalise_instant(at, options.zone))


class SpecialGames:
    """A counter of games that are left out or otherwise treated specially, for a report at the end of a file."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, reason: str, outcome: str = "left out") -> None:
        """Count a game, given why it is special and what happens to it."""
        self._counts[reason, outcome] += 1

    def describe(self) -> Iterator[str]:
        """Yield a sentence about the games of each reason and outcome.

        >>> games = SpecialGames()
        >>> games.add("without a result")
        >>> [*games.describe()]
        ['1 game without a result, left out']
        """
        for (reason, outcome), number in self._counts.items():
            yield f"{count(number, 'game')} {reason}, {outcome}"
