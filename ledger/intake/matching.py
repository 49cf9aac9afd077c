"""Which rows of a sheet are which games of the ledger, and when these are played so that they follow the sheet's order.

Games whose ids stand in the sheet are found by these. Others are numbered by day, and a number says nothing once a row
was inserted: they are found by what they say, first those that say the same, then those that say nearly the same.

Games of a table without numbers get the first number of their day that nothing else has:

    the ledger has             the table has                 so it is
    2024-09-17-1  catan        the first chess of that day   2024-09-17-2
    2024-09-17-2  nothing      the second                    2024-09-17-3

A number is passed over if another table gave it to another game, such as chess beside catan, or if it is that of a
voided game which says something else. Neither depends on what of the table is recorded already: imported again, each
row has the number that it had. A game that the same table gave keeps its number whatever the row says now, so that an
edited row is a conflict.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.batches import batch_name
from ratings_ledger.ledger.events.canonical import dump, format_instant, parse_object
from ratings_ledger.ledger.events.revisions import KnownEvent, RevisedGame, live_game
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.parsing import Block, ParsedItem
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import (
    Log,
    changed_games,
    first_positions,
    head,
    read_events_of_type,
    read_known_events,
    read_records,
    read_records_at,
    read_where,
)
from ratings_ledger.ledger.validation.batches import recorded_batches
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.repeated_games import SECOND, is_same_time, normalise_game

DAY = 86_400_000_000  # microseconds
NEW = 2**62  # beyond all positions


class Likeness(NamedTuple):
    """What games are compared by: what they say besides their ids, when they ended, and who played."""

    says: str
    occurred_at: int
    players: frozenset[str]

    def says_as(self, there: Likeness) -> bool:
        """Tell whether a sheet says what the ledger does."""
        return self.says == there.says and is_same_time(self.occurred_at, there.occurred_at)


class SheetGame(NamedTuple):
    """A game as the sheet has it."""

    item: Item
    data: dict[str, Any]
    likeness: Likeness

    @property
    def game_id(self) -> str:
        """Return the id that it has there."""
        return str(self.data["game_id"])

    @property
    def day(self) -> str:
        """Of an id made of a day and a number: the day."""
        return self.game_id.rpartition("-")[0]


class ImportedGame(NamedTuple):
    """A game that was recorded at a position: as a sheet last gave it, what that tells, and as it is now."""

    position: int
    base: RevisedGame
    likeness: Likeness
    now: RevisedGame

    @property
    def game_id(self) -> str:
        """Return the id of the game."""
        return str(self.base.data["game_id"])


def describe_likeness(data: dict[str, Any], occurred_at: int, people: Identities) -> Likeness:
    """Return what a game is compared by, its players under their current ids."""
    game = {**people.present(data), "game_id": "-"}
    players = frozenset(participant["player"] for participant in game["participants"])
    return Likeness(normalise_game(game), occurred_at, players)


Keys = Callable[[Likeness], Iterable[object]]


def _the_same(game: Likeness) -> Iterator[object]:
    yield game.says, game.occurred_at // SECOND


def _another_time(game: Likeness) -> Iterator[object]:
    yield game.says


def _another_result(game: Likeness) -> Iterator[object]:
    yield game.occurred_at // DAY, game.players


def _another_player(game: Likeness) -> Iterator[object]:
    day = game.occurred_at // DAY
    yield day, game.players
    yield from ((day, game.players - {player}) for player in sorted(game.players))


def _recorded_otherwise(game: Likeness) -> Iterator[object]:
    data = parse_object(game.says.encode())["data"]
    yield game.occurred_at // DAY, game.players, dump({**data, "participants": None})


EDITED: tuple[Keys, ...] = (_the_same, _another_time, _another_result, _another_player)
# of games that do not come from the sheet, less is enough to doubt, and nothing to decide
ELSEWHERE: tuple[Keys, ...] = (_the_same, _recorded_otherwise)


def match_rows(
    rows: Mapping[int, SheetGame], given: Iterable[ImportedGame], by: Sequence[Keys]
) -> dict[int, ImportedGame]:
    """Return the games that rows are, found by one kind of key after the other.

    Of several that say nearly the same, the one with the number that the row has now comes first, then the first that
    is left. Games that have vanished before are found only by what says the same.
    """
    found: dict[int, ImportedGame] = {}
    left = sorted(given, key=lambda one: (one.base.voided, one.likeness.occurred_at, one.position))
    for number, keys in enumerate(by):
        if number:
            left = [one for one in left if not one.base.voided]
        numbered = {one.game_id: one for one in left} if number else {}
        taken = set[int]()
        for index, row in rows.items():
            one = numbered.get(row.game_id) if index not in found else None
            if one is not None and not {*keys(one.likeness)}.isdisjoint(keys(row.likeness)):
                found[index] = one
                taken.add(one.position)
        waiting: dict[object, deque[ImportedGame]] = defaultdict(deque)
        for one in left:
            for key in keys(one.likeness):
                waiting[key].append(one)
        for index, row in rows.items():
            if index not in found and (first := _first_left(map(waiting.get, keys(row.likeness)), taken)) is not None:
                found[index] = first
                taken.add(first.position)
        left = [one for one in left if one.position not in taken]
    return found


def _first_left(queues: Iterable[deque[ImportedGame] | None], taken: Collection[int]) -> ImportedGame | None:
    """Return the first game of the first queue that has one which is not taken; those that are leave their queues."""
    for queue in queues:
        while queue:
            one = queue.popleft()
            if one.position not in taken:
                return one
    return None


def order_play_times(
    rows: Mapping[int, SheetGame], given: Mapping[int, ImportedGame], others: Mapping[int, ImportedGame]
) -> dict[int, int]:
    """Return when each game of a sheet is played, in the order in which the sheet alone would be replayed.

    Of games at one time the first recorded comes first; one that the sheet has later is played a microsecond later, and
    what is new comes last. Games from elsewhere stay as they are.
    """
    found: dict[int, int] = {}
    last, before = -NEW, 0
    for number, index in enumerate(sorted(rows, key=lambda index: rows[index].likeness.occurred_at)):
        if index in others:
            at, position = others[index].now.occurred_at, others[index].position
        else:
            at, position = rows[index].likeness.occurred_at, given[index].position if index in given else NEW + number
            if (at, position) <= (last, before):
                at = last if position > before else last + 1
        found[index] = at
        last, before = max((last, before), (at, position))
    return found


DECIDING = ("game.corrected", "game.voided", "game.reinstated")


class Ranges:
    """The positions that imports of a sheet appended, import by import."""

    def __init__(self, imports: Iterable[Iterable[Iterable[int]]]) -> None:
        self.each = sorted((first, last, number) for number, ranges in enumerate(imports) for first, last in ranges)
        self._firsts = [first for first, _, _ in self.each]

    def import_of(self, position: int) -> int | None:
        """Return which import appended what is at a position, or None."""
        at = bisect_right(self._firsts, position) - 1
        return self.each[at][2] if at >= 0 and position <= self.each[at][1] else None


def imported_ranges(connection: Connection, name: str, sheet: str | None) -> Ranges:
    """Return what the imports under a name, from one sheet of it, appended."""
    return Ranges(one.ranges for one in recorded_batches(connection, name) if one.sheet == sheet)


def decisions_by_game(connection: Connection) -> dict[str, list[KnownEvent]]:
    """Return what was decided about games after they were recorded, in order."""
    until, found = head(connection).position, list[KnownEvent]()
    for type_name in DECIDING:
        found += read_events_of_type(type_name, read_where(connection, until=until, type_name=type_name))
    by_game: dict[str, list[KnownEvent]] = defaultdict(list)
    for event in sorted(found, key=lambda event: event.position or 0):
        by_game[event.data["game_id"]].append(event)
    return by_game


def imported_games(
    connection: Connection, ranges: Ranges, decisions: Mapping[str, list[KnownEvent]], people: Identities
) -> list[ImportedGame]:
    """Return the games that these imports recorded."""
    pages = (page for first, last, _ in ranges.each for page in read_records(connection, first - 1, last))
    return [_given(event, decisions, people, ranges) for page in pages for event in read_known_events(page)
            if event.type == "game.recorded"]  # fmt: skip


def recorded_games(
    connection: Connection, positions: Iterable[int], decisions: Mapping[str, list[KnownEvent]], people: Identities
) -> list[ImportedGame]:
    """Return the games that were recorded at these positions, as they are now."""
    rows = sorted(read_records_at(connection, [*positions]).items())
    return [_given(event, decisions, people) for event in read_known_events(rows)]


def _given(
    event: KnownEvent, decisions: Mapping[str, list[KnownEvent]], people: Identities, ranges: Ranges | None = None
) -> ImportedGame:
    """Return a game; with `ranges`, its base is what was decided in these alone."""
    later = decisions.get(event.data["game_id"], [])
    now = base = live_game([event, *later])
    if ranges is not None and any(ranges.import_of(one.position or 0) is None for one in later):
        base = live_game([event, *(one for one in later if ranges.import_of(one.position or 0) is not None)])
    assert now is not None
    assert base is not None
    return ImportedGame(event.position or 0, base, describe_likeness(base.data, base.occurred_at, people), now)


def find_numbers(
    connection: Connection, days: Mapping[str, int], wanted: Counter[str]
) -> tuple[dict[str, int], dict[str, Iterator[str]]]:
    """Return the ids of games that are numbered by day, with their positions, and by day ids that are not taken.

    `days` says how many numbers a sheet has given on each, `wanted` how many new ones are needed.
    """
    taken: dict[str, int] = {}
    free: dict[str, list[str]] = {day: [] for day in wanted}
    asked = dict.fromkeys(wanted, 0)
    while short := [day for day in wanted if len(free[day]) < wanted[day]]:
        ids = {
            day: [f"{day}-{number}" for number in range(asked[day] + 1, asked[day] + days[day] + 1)] for day in short
        }
        found = first_positions(connection, [game_id for some in ids.values() for game_id in some])
        taken |= found
        for day, some in ids.items():
            asked[day] += days[day]
            free[day] += [game_id for game_id in some if game_id not in found]
    return taken, {day: iter(some) for day, some in free.items()}


AHEAD = 64  # how many numbers behind those that the table counts are looked up at a time
_BY_DAY = re.compile(r"(\d{4}-\d\d-\d\d)-([1-9]\d{0,8})", re.ASCII)


def is_by_day(game_id: str) -> bool:
    """Tell whether a game may have been numbered by its day.

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
        """Return the items with the ids that their games have."""
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
        """Tell whether imports of a table of this name recorded a game."""
        position = first_positions(self._connection, [game_id]).get(game_id)
        return position is not None and self._is_own(file, position)

    def notes(self) -> Iterator[str]:
        """Yield which numbers were passed over, file by file."""
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
        """Return the first number of a day that a row can have; what is passed over waits for rows that can have it."""
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
        """Return the first number that was passed over and that a row can have."""
        for key in (game, self._says_of(entry)) if day.passed else ():
            waiting = day.passed.get(key, deque())
            while waiting:
                if (game_id := waiting.popleft()) not in day.ids:
                    return game_id
        return None

    def _others(self, entry: ParsedItem, game: str, game_id: str) -> list[object]:
        """Return what could have a number, if a row cannot: a game, or what a voided one says. Empty if it can."""
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
        """Return the event in the log that recorded a game."""
        if game_id not in self._there:
            date, _, number = game_id.rpartition("-")
            self._look([f"{date}-{more}" for more in range(int(number), int(number) + AHEAD)])
        return self._there[game_id]

    def _look(self, game_ids: Iterable[str]) -> None:
        """Read what the log has under these ids."""
        wanted = [game_id for game_id in game_ids if game_id not in self._there]
        positions = first_positions(self._connection, wanted)
        records = read_records_at(self._connection, [*positions.values()])
        found = {event.data["game_id"]: event for event in read_known_events(sorted(records.items()))}
        self._there |= {game_id: found.get(game_id) for game_id in wanted}

    def _now(self, first: KnownEvent) -> RevisedGame:
        """Return a game as it is now."""
        subject = f"game:{first.data['game_id']}"
        found = live_game(Log(self._connection).about(subject) if subject in self._changed else [first])
        assert found is not None
        return found

    def _is_own(self, file: str, position: int) -> bool:
        """Tell whether an import of a table of this name appended what is at a position."""
        if file not in self._ranges:
            self._ranges[file] = imported_ranges(self._connection, batch_name(file), self._sheets.get(file))
        return self._ranges[file].import_of(position) is not None

    def _says_of(self, entry: ParsedItem) -> object:
        if isinstance(entry.outcome, Refused):
            return None
        draft, data = entry.outcome
        return self._says(data, draft.occurred_at)

    def _says(self, data: dict[str, Any], occurred_at: int) -> object:
        found = describe_likeness(data, occurred_at, self._people)
        return found.says, found.occurred_at // SECOND

    @cached_property
    def _people(self) -> Identities:
        return identities(self._connection)

    @cached_property
    def _changed(self) -> set[str]:
        return changed_games(self._connection, 0)


def _counted(entry: ParsedItem) -> str | None:
    """Return the id that a table counted for a game, unless the row cannot be read at all."""
    if not isinstance(entry.outcome, Refused):
        return str(entry.outcome[1]["game_id"])
    return entry.item.rows_of


def _under(game_id: str, draft: Draft, data: dict[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """Return a game under another id."""
    when = format_instant(draft.occurred_at)
    return read_event({"type": draft.type, "occurred_at": when, "data": {**data, "game_id": game_id}})
