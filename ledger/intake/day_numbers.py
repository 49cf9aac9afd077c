"""Which games of a table without numbers have which number of their day: the first that nothing else has.

    the ledger has             the table has                 so it is
    2024-09-17-1  catan        the first chess of that day   2024-09-17-2
    2024-09-17-2  nothing      the second                    2024-09-17-3

A number is passed over if another table gave it to another game, such as chess beside catan, or if it is that of a
voided game which says something else. Neither depends on what of the table is recorded already: imported again, each
row has the number that it had. A game that the same table gave keeps its number whatever the row says now, so that an
edited row is a conflict.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.batches import batch_name
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.revisions import KnownEvent, RevisedGame, live_game
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.intake.given_games import Ranges, ranges_of
from ratings_ledger.ledger.intake.matching import likeness_of
from ratings_ledger.ledger.intake.parsing import Block, ParsedItem
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import Log, changed_games, first_positions, known_events, read_records_at
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.repeated_games import SECOND

AHEAD = 64  # how many numbers behind those that the table counts are looked up at a time

_BY_DAY = re.compile(r"(\d{4}-\d\d-\d\d)-([1-9]\d{0,8})", re.ASCII)


def is_by_day(game_id: str) -> bool:
    """Whether a game may have been numbered by its day.

    >>> is_by_day("2024-09-17-1"), is_by_day("g-1")
    (True, False)
    """
    return _BY_DAY.fullmatch(game_id) is not None


class _Day:
    """The numbers of a day in one table: those of its rows, in order, and the others, by what could have them."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.next = 1
        self.passed: dict[object, deque[str]] = defaultdict(deque)


class DayNumbers:
    """Gives the games of tables their numbers, block by block."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._days: dict[tuple[str, str], _Day] = defaultdict(_Day)
        # the games to which numbers were given here; and by number what the log has, as far as it was read
        self._given: dict[str, str] = {}
        self._there: dict[str, KnownEvent | None] = {}
        self._ranges: dict[str, Ranges] = {}
        self._sheets: dict[str, str | None] = {}
        self._last_game: dict[str, str] = {}
        self._told: dict[str, tuple[int, str]] = {}

    def numbered(self, block: Block) -> Block:
        """The items with the ids that their games have."""
        counted = [entry for entry in block if isinstance(entry, ParsedItem) and entry.item.is_numbered]
        if not counted:
            return block
        self._look([found for entry in counted if (found := _counted(entry)) is not None])
        return [self._numbered(entry) if isinstance(entry, ParsedItem) and entry.item.is_numbered else entry
                for entry in block]  # fmt: skip

    def read_from(self, file: str, sheet: str | None) -> None:
        """Note which sheet of a file is read."""
        self._sheets[file] = sheet

    def gave(self, file: str, game_id: str) -> bool:
        """Whether imports of a table of this name recorded a game."""
        position = first_positions(self._connection, [game_id]).get(game_id)
        return position is not None and self._is_own(file, position)

    def notes(self) -> Iterator[str]:
        """Which numbers were passed over, file by file."""
        for file, (number, told) in self._told.items():
            others = f" and {number - 1:,} more" if number > 1 else ""
            yield f"{file}: numbers that others have are passed over: {told}{others}"

    def _numbered(self, entry: ParsedItem) -> ParsedItem:
        game_id = _counted(entry)
        match = None if game_id is None else _BY_DAY.fullmatch(game_id)
        if match is None:
            return entry
        item, day = entry.item, self._days[entry.item.file, match[1]]
        if not isinstance(entry.outcome, Refused):
            self._last_game[item.file] = entry.outcome[1]["game"]
        # rows that could not be read have numbers, too
        while len(day.ids) < int(match[2]):
            day.ids.append(self._first_free(entry, match[1], day))
        own = day.ids[int(match[2]) - 1]
        if own == game_id:
            return entry
        moved = item if item.rows_of is None else item._replace(rows_of=own)
        outcome = entry.outcome if isinstance(entry.outcome, Refused) else _under(own, *entry.outcome)
        return entry._replace(item=moved, outcome=outcome)

    def _first_free(self, entry: ParsedItem, date: str, day: _Day) -> str:
        """The first number of a day that a row can have; what is passed over waits for rows that can have it."""
        # of a row that cannot be read, a game like those before it is expected
        game = self._last_game.get(entry.item.file, "")
        found = self._waiting(entry, game, day)
        while found is None:
            game_id = f"{date}-{day.next}"
            day.next += 1
            others = self._others(entry, game, game_id)
            if not others:
                found = game_id
            for key in others:
                day.passed[key].append(game_id)
        self._given.setdefault(found, game)
        self._there.pop(found, None)
        return found

    def _waiting(self, entry: ParsedItem, game: str, day: _Day) -> str | None:
        """The first number that was passed over and that a row can have."""
        for key in (game, self._says_of(entry)) if day.passed else ():
            waiting = day.passed.get(key, deque())
            while waiting:
                if (game_id := waiting.popleft()) not in day.ids:
                    return game_id
        return None

    def _others(self, entry: ParsedItem, game: str, game_id: str) -> list[object]:
        """What could have a number, if a row cannot: a game, or what a voided one says. Empty if it can."""
        file = entry.item.file
        if (given := self._given.get(game_id)) is not None:
            return [] if given == game else self._pass(file, game_id, f"of {given}", [given])
        if (first := self._event(game_id)) is None:
            return []
        now = self._now(first)
        if now.voided:
            says = [self._says(first.data, first.occurred_at), self._says(now.data, now.occurred_at)]
            return [] if self._says_of(entry) in says else self._pass(file, game_id, "voided", says)
        there = now.data["game"]
        if there == game or self._is_own(file, first.position or 0):
            return []
        return self._pass(file, game_id, f"of {there}", [there])

    def _pass(self, file: str, game_id: str, what: str, others: list[object]) -> list[object]:
        number, told = self._told.get(file, (0, f"{game_id} ({what})"))
        self._told[file] = number + 1, told
        return others

    def _event(self, game_id: str) -> KnownEvent | None:
        """The event in the log that recorded a game."""
        if game_id not in self._there:
            date, _, number = game_id.rpartition("-")
            self._look([f"{date}-{more}" for more in range(int(number), int(number) + AHEAD)])
        return self._there[game_id]

    def _look(self, game_ids: Iterable[str]) -> None:
        """Read what the log has under these ids."""
        wanted = [game_id for game_id in game_ids if game_id not in self._there]
        positions = first_positions(self._connection, wanted)
        records = read_records_at(self._connection, [*positions.values()])
        found = {event.data["game_id"]: event for event in known_events(sorted(records.items()))}
        self._there |= {game_id: found.get(game_id) for game_id in wanted}

    def _now(self, first: KnownEvent) -> RevisedGame:
        """A game as it is now."""
        subject = f"game:{first.data['game_id']}"
        found = live_game(Log(self._connection).about(subject) if subject in self._changed else [first])
        assert found is not None
        return found

    def _is_own(self, file: str, position: int) -> bool:
        """Whether an import of a table of this name appended what is at a position."""
        if file not in self._ranges:
            self._ranges[file] = ranges_of(self._connection, batch_name(file), self._sheets.get(file))
        return self._ranges[file].import_of(position) is not None

    def _says_of(self, entry: ParsedItem) -> object:
        if isinstance(entry.outcome, Refused):
            return None
        draft, data = entry.outcome
        return self._says(data, draft.occurred_at)

    def _says(self, data: dict[str, Any], occurred_at: int) -> object:
        found = likeness_of(data, occurred_at, self._people)
        return found.says, found.occurred_at // SECOND

    @cached_property
    def _people(self) -> Identities:
        return identities(self._connection)

    @cached_property
    def _changed(self) -> set[str]:
        return changed_games(self._connection, 0)


def _counted(entry: ParsedItem) -> str | None:
    """The id that a table counted for a game, unless the row cannot be read at all."""
    if not isinstance(entry.outcome, Refused):
        return str(entry.outcome[1]["game_id"])
    return entry.item.rows_of


def _under(game_id: str, draft: Draft, data: dict[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """A game under another id."""
    when = format_instant(draft.occurred_at)
    return read_event({"type": draft.type, "occurred_at": when, "data": {**data, "game_id": game_id}})
