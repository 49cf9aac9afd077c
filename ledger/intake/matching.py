"""Matching of a sheet's rows with games of the ledger, their times of play, and the numbers of games without ids.

If the sheet has ids, these match games. Otherwise games are numbered by day, and an inserted row shifts the numbers, so
games are matched by content: first equal ones, then similar ones.

Games of a table without ids get the first free number of their day:

    the ledger has          the table has                  the row gets
    2024-09-17-1  catan     the first chess of that day    2024-09-17-2
    2024-09-17-2  nothing   the second                     2024-09-17-3

A number is skipped if another table uses it for another game, such as catan beside chess, or if it is that of a voided
game with different content. Neither depends on which rows are recorded already, so a repeated import gives each row the
same number. A game from the same table keeps its number even if its row has changed, so an edited row is a conflict.
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
    recorded_subjects,
)
from ratings_ledger.ledger.validation.batches import Batch, find_imported_name, recorded_batches
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.repeated_games import SECOND, is_same_time, normalise_game

DAY = 86_400_000_000  # microseconds
NEW = 2**62  # beyond all positions


class Likeness(NamedTuple):
    """The content by which games are compared: all but their ids, the time they ended, and the players."""

    says: str
    occurred_at: int
    players: frozenset[str]

    def equals(self, recorded: Likeness) -> bool:
        """Tell whether a game of a sheet equals one of the ledger."""
        return self.says == recorded.says and is_same_time(self.occurred_at, recorded.occurred_at)


class SheetGame(NamedTuple):
    """A game in a sheet."""

    item: Item
    data: dict[str, Any]
    likeness: Likeness

    @property
    def game_id(self) -> str:
        """Return the id of the game in the sheet."""
        return str(self.data["game_id"])

    @property
    def day(self) -> str:
        """Return the day in an id that consists of a day and a number."""
        return self.game_id.rpartition("-")[0]


class ImportedGame(NamedTuple):
    """A recorded game: position, state after the last import of a sheet with its likeness, and current state."""

    position: int
    base: RevisedGame
    likeness: Likeness
    now: RevisedGame

    @property
    def game_id(self) -> str:
        """Return the id of the game."""
        return str(self.base.data["game_id"])


def describe_likeness(data: dict[str, Any], occurred_at: int, people: Identities) -> Likeness:
    """Return the content by which a game is compared, with its players under their current ids."""
    game = {**people.present(data), "game_id": "-"}
    players = frozenset(participant["player"] for participant in game["participants"])
    return Likeness(normalise_game(game), occurred_at, players)


Keys = Callable[[Likeness], Iterable[object]]


def _key_by_content(game: Likeness) -> Iterator[object]:
    yield game.says, game.occurred_at // SECOND


def _key_without_time(game: Likeness) -> Iterator[object]:
    yield game.says


def _key_by_players(game: Likeness) -> Iterator[object]:
    yield game.occurred_at // DAY, game.players


def _keys_without_a_player(game: Likeness) -> Iterator[object]:
    day = game.occurred_at // DAY
    yield day, game.players
    yield from ((day, game.players - {player}) for player in sorted(game.players))


def _key_without_participants(game: Likeness) -> Iterator[object]:
    data = parse_object(game.says.encode())["data"]
    yield game.occurred_at // DAY, game.players, dump({**data, "participants": None})


EDITED: tuple[Keys, ...] = (_key_by_content, _key_without_time, _key_by_players, _keys_without_a_player)
# games from elsewhere are only reported, so fewer kinds of keys are enough
ELSEWHERE: tuple[Keys, ...] = (_key_by_content, _key_without_participants)


def match_rows(
    rows: Mapping[int, SheetGame], games: Iterable[ImportedGame], kinds: Sequence[Keys]
) -> dict[int, ImportedGame]:
    """Match rows with games by one kind of key after the other.

    Of several similar games, the one with the row's number comes first, then the first unmatched one. Games that were
    voided before are matched only by equal content.
    """
    matched: dict[int, ImportedGame] = {}
    unmatched = sorted(games, key=lambda game: (game.base.voided, game.likeness.occurred_at, game.position))
    for number, keys in enumerate(kinds):
        if number:
            unmatched = [game for game in unmatched if not game.base.voided]
        by_id = {game.game_id: game for game in unmatched} if number else {}
        used = set[int]()
        for index, row in rows.items():
            game = by_id.get(row.game_id) if index not in matched else None
            if game is not None and not {*keys(game.likeness)}.isdisjoint(keys(row.likeness)):
                matched[index] = game
                used.add(game.position)
        queues: dict[object, deque[ImportedGame]] = defaultdict(deque)
        for game in unmatched:
            for key in keys(game.likeness):
                queues[key].append(game)
        for index, row in rows.items():
            if index not in matched and (first := _take_first(map(queues.get, keys(row.likeness)), used)) is not None:
                matched[index] = first
                used.add(first.position)
        unmatched = [game for game in unmatched if game.position not in used]
    return matched


def _take_first(queues: Iterable[deque[ImportedGame] | None], used: Collection[int]) -> ImportedGame | None:
    """Take the first unused game of the queues, and drop the used ones before it."""
    for queue in queues:
        while queue:
            game = queue.popleft()
            if game.position not in used:
                return game
    return None


def order_play_times(
    rows: Mapping[int, SheetGame], imported: Mapping[int, ImportedGame], others: Mapping[int, ImportedGame]
) -> dict[int, int]:
    """Return the time of play of each game of a sheet, in the order in which the sheet alone would be replayed.

    Of games at one time the first recorded one counts first; a game that the sheet has later moves by a microsecond,
    and new games come last. Games from elsewhere keep their times.
    """
    times: dict[int, int] = {}
    last, last_position = -NEW, 0
    for number, index in enumerate(sorted(rows, key=lambda index: rows[index].likeness.occurred_at)):
        if index in others:
            at, position = others[index].now.occurred_at, others[index].position
        else:
            at, position = (
                rows[index].likeness.occurred_at,
                imported[index].position if index in imported else NEW + number,
            )
            if (at, position) <= (last, last_position):
                at = last if position > last_position else last + 1
        times[index] = at
        last, last_position = max((last, last_position), (at, position))
    return times


DECIDING = ("game.corrected", "game.voided", "game.reinstated")


class Ranges:
    """The positions that imports of a sheet appended, import by import."""

    def __init__(self, imports: Iterable[Iterable[Iterable[int]]]) -> None:
        self.each = sorted((first, last, number) for number, ranges in enumerate(imports) for first, last in ranges)
        self._firsts = [first for first, _, _ in self.each]

    def import_of(self, position: int) -> int | None:
        """Return the number of the import that appended the event at a position, or None."""
        index = bisect_right(self._firsts, position) - 1
        return self.each[index][2] if index >= 0 and position <= self.each[index][1] else None


def imported_ranges(connection: Connection, name: str, sheet: str | None) -> Ranges:
    """Return the ranges that the imports of a name appended from one of its sheets."""
    return Ranges(batch.ranges for batch in recorded_batches(connection, name) if batch.sheet == sheet)


def decisions_by_game(connection: Connection) -> dict[str, list[KnownEvent]]:
    """Return the corrections, voids and reinstatements of each game, in order."""
    until, decisions = head(connection).position, list[KnownEvent]()
    for type_name in DECIDING:
        decisions += read_events_of_type(type_name, read_where(connection, until=until, type_name=type_name))
    by_game: dict[str, list[KnownEvent]] = defaultdict(list)
    for event in sorted(decisions, key=lambda event: event.position or 0):
        by_game[event.data["game_id"]].append(event)
    return by_game


def imported_games(
    connection: Connection, ranges: Ranges, decisions: Mapping[str, list[KnownEvent]], people: Identities
) -> list[ImportedGame]:
    """Return the games that these imports recorded."""
    pages = (page for first, last, _ in ranges.each for page in read_records(connection, first - 1, last))
    recorded = (event for page in pages for event in read_known_events(page) if event.type == "game.recorded")
    return [_build_game(event, decisions, people, ranges) for event in recorded]


def recorded_games(
    connection: Connection, positions: Iterable[int], decisions: Mapping[str, list[KnownEvent]], people: Identities
) -> list[ImportedGame]:
    """Return the games recorded at these positions, in their current state."""
    rows = sorted(read_records_at(connection, [*positions]).items())
    return [_build_game(event, decisions, people) for event in read_known_events(rows)]


def _build_game(
    event: KnownEvent, decisions: Mapping[str, list[KnownEvent]], people: Identities, ranges: Ranges | None = None
) -> ImportedGame:
    """Build a game from its events; with `ranges`, its base includes only the decisions in these."""
    later = decisions.get(event.data["game_id"], [])
    now = base = live_game([event, *later])
    if ranges is not None and any(ranges.import_of(decision.position or 0) is None for decision in later):
        base = live_game(
            [event, *(decision for decision in later if ranges.import_of(decision.position or 0) is not None)]
        )
    assert now is not None
    assert base is not None
    return ImportedGame(event.position or 0, base, describe_likeness(base.data, base.occurred_at, people), now)


def find_numbers(
    connection: Connection, days: Mapping[str, int], wanted: Counter[str]
) -> tuple[dict[str, int], dict[str, Iterator[str]]]:
    """Return the positions of games numbered by day, by id, and for each day an iterator of free ids.

    `days` has the number of a sheet's games on each day, `wanted` the number of ids that are needed.
    """
    taken: dict[str, int] = {}
    free: dict[str, list[str]] = {day: [] for day in wanted}
    searched = dict.fromkeys(wanted, 0)
    while short := [day for day in wanted if len(free[day]) < wanted[day]]:
        ids = {
            day: [f"{day}-{number}" for number in range(searched[day] + 1, searched[day] + days[day] + 1)]
            for day in short
        }
        positions = first_positions(connection, [game_id for game_ids in ids.values() for game_id in game_ids])
        taken |= positions
        for day, game_ids in ids.items():
            searched[day] += days[day]
            free[day] += [game_id for game_id in game_ids if game_id not in positions]
    return taken, {day: iter(game_ids) for day, game_ids in free.items()}


AHEAD = 64  # how many further numbers are looked up at a time
_BY_DAY = re.compile(r"(\d{4}-\d\d-\d\d)-([1-9]\d{0,8})", re.ASCII)


def is_by_day(game_id: str) -> bool:
    """Tell whether a game may have been numbered by its day.

    >>> is_by_day("2024-09-17-1"), is_by_day("g-1")
    (True, False)
    """
    return _BY_DAY.fullmatch(game_id) is not None


class _Day:
    """The numbers of a day in one table: those of its rows, in order, and the skipped ones by the game they fit."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.next = 1
        self.passed: dict[object, deque[str]] = defaultdict(deque)


class DayNumbers:
    """The numbering of the games of tables, block by block."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._days: dict[tuple[str, str], _Day] = defaultdict(_Day)
        # the games that got numbers here, and the log's events by number, as far as they were read
        self._assigned: dict[str, str] = {}
        self._recorded: dict[str, KnownEvent | None] = {}
        self._ranges: dict[str, Ranges] = {}
        self._sheets: dict[str, str | None] = {}
        self._last_game: dict[str, str] = {}
        self._skipped: dict[str, tuple[int, str]] = {}

    def assign_numbers(self, block: Block) -> Block:
        """Return the items with the ids of their games."""
        counted = [entry for entry in block if isinstance(entry, ParsedItem) and entry.item.is_numbered]
        if not counted:
            return block
        self._load_events([game_id for entry in counted if (game_id := _counted_id(entry)) is not None])
        return [
            self._assign_number(entry) if isinstance(entry, ParsedItem) and entry.item.is_numbered else entry
            for entry in block
        ]

    def set_sheet(self, file: str, sheet: str | None) -> None:
        """Set the sheet of a file that is read."""
        self._sheets[file] = sheet

    def has_imported(self, file: str, game_id: str) -> bool:
        """Tell whether imports of a table of this name recorded a game."""
        position = first_positions(self._connection, [game_id]).get(game_id)
        return position is not None and self._is_own(file, position)

    def find_giver(self, game_id: str) -> str | None:
        """Find the name of the file that recorded a game, if an import did."""
        position = first_positions(self._connection, [game_id]).get(game_id)
        if position is None:
            return None
        return next((batch.name for batch in self._batches if batch.has(position)), None)

    @cached_property
    def _batches(self) -> list[Batch]:
        return recorded_batches(self._connection)

    def notes(self) -> Iterator[str]:
        """Yield a sentence about the skipped numbers of each file that is imported for the first time."""
        for file, (number, example) in self._skipped.items():
            if not self._load_ranges(file).each:
                more = f" and {number - 1:,} more" if number > 1 else ""
                yield f"{file}: skipped, as other games have them: {example}{more}"

    def _assign_number(self, entry: ParsedItem) -> ParsedItem:
        game_id = _counted_id(entry)
        match = None if game_id is None else _BY_DAY.fullmatch(game_id)
        if match is None:
            return entry
        item, day = entry.item, self._days[entry.item.file, match[1]]
        if not isinstance(entry.outcome, Refused):
            self._last_game[item.file] = entry.outcome[1]["game"]
        # unreadable rows have numbers, too
        while len(day.ids) < int(match[2]):
            day.ids.append(self._find_free_number(entry, match[1], day))
        own = day.ids[int(match[2]) - 1]
        if own == game_id:
            return entry
        moved = item if item.rows_of is None else item._replace(rows_of=own)
        outcome = entry.outcome if isinstance(entry.outcome, Refused) else _with_id(own, *entry.outcome)
        return entry._replace(item=moved, outcome=outcome)

    def _find_free_number(self, entry: ParsedItem, date: str, day: _Day) -> str:
        """Find the first number of a day that fits a row; skipped numbers wait for rows that they fit."""
        # an unreadable row probably has the same game as those before it
        game = self._last_game.get(entry.item.file, "")
        free_id = self._take_skipped(entry, game, day)
        while free_id is None:
            game_id = f"{date}-{day.next}"
            day.next += 1
            owners = self._find_owners(entry, game, game_id)
            if not owners:
                free_id = game_id
            for key in owners:
                day.passed[key].append(game_id)
        self._assigned.setdefault(free_id, game)
        self._recorded.pop(free_id, None)
        return free_id

    def _take_skipped(self, entry: ParsedItem, game: str, day: _Day) -> str | None:
        """Take the first skipped number that fits a row."""
        for key in (game, self._entry_key(entry)) if day.passed else ():
            skipped = day.passed.get(key, deque())
            while skipped:
                if (game_id := skipped.popleft()) not in day.ids:
                    return game_id
        return None

    def _find_owners(self, entry: ParsedItem, game: str, game_id: str) -> list[object]:
        """Return the keys that a number fits, a game or a voided game's content; empty if it fits this row."""
        file = entry.item.file
        if (assigned := self._assigned.get(game_id)) is not None:
            return [] if assigned == game else self._skip(file, game_id, f"of {assigned}", [assigned])
        if (first := self._find_event(game_id)) is None:
            return []
        current = self._current_game(first)
        if current.voided:
            keys = [
                self._content_key(first.data, first.occurred_at),
                self._content_key(current.data, current.occurred_at),
            ]
            return [] if self._entry_key(entry) in keys else self._skip(file, game_id, "voided", keys)
        recorded_game = current.data["game"]
        if recorded_game == game or self._is_own(file, first.position or 0):
            return []
        return self._skip(file, game_id, f"of {recorded_game}", [recorded_game])

    def _skip(self, file: str, game_id: str, reason: str, owners: list[object]) -> list[object]:
        number, example = self._skipped.get(file, (0, f"{game_id} ({reason})"))
        self._skipped[file] = number + 1, example
        return owners

    def _find_event(self, game_id: str) -> KnownEvent | None:
        """Find the event in the log that recorded a game."""
        if game_id not in self._recorded:
            date, _, number = game_id.rpartition("-")
            self._load_events([f"{date}-{more}" for more in range(int(number), int(number) + AHEAD)])
        return self._recorded[game_id]

    def _load_events(self, game_ids: Iterable[str]) -> None:
        """Load the log's events of these games."""
        unknown_ids = [game_id for game_id in game_ids if game_id not in self._recorded]
        # most games of a table are new, and what is not there is found out in a fraction of the time
        recorded = recorded_subjects(self._connection, [f"game:{game_id}" for game_id in unknown_ids])
        positions = first_positions(self._connection, [subject.removeprefix("game:") for subject in recorded])
        records = read_records_at(self._connection, [*positions.values()])
        event_by_id = {event.data["game_id"]: event for event in read_known_events(sorted(records.items()))}
        self._recorded |= {game_id: event_by_id.get(game_id) for game_id in unknown_ids}

    def _current_game(self, first: KnownEvent) -> RevisedGame:
        """Return the current state of a game."""
        subject = f"game:{first.data['game_id']}"
        game = live_game(Log(self._connection).about(subject) if subject in self._changed else [first])
        assert game is not None
        return game

    def _is_own(self, file: str, position: int) -> bool:
        """Tell whether an import of a table of this name appended the event at a position."""
        return self._load_ranges(file).import_of(position) is not None

    def _load_ranges(self, file: str) -> Ranges:
        """Return what earlier imports of a table of this name appended."""
        if file not in self._ranges:
            name = find_imported_name(self._connection, batch_name(file))
            self._ranges[file] = imported_ranges(self._connection, name, self._sheets.get(file))
        return self._ranges[file]

    def _entry_key(self, entry: ParsedItem) -> object:
        if isinstance(entry.outcome, Refused):
            return None
        draft, data = entry.outcome
        return self._content_key(data, draft.occurred_at)

    def _content_key(self, data: dict[str, Any], occurred_at: int) -> object:
        likeness = describe_likeness(data, occurred_at, self._people)
        return likeness.says, likeness.occurred_at // SECOND

    @cached_property
    def _people(self) -> Identities:
        return identities(self._connection)

    @cached_property
    def _changed(self) -> set[str]:
        return changed_games(self._connection, 0)


def _counted_id(entry: ParsedItem) -> str | None:
    """Return the id from the table's own count, or None for a row without a game."""
    if not isinstance(entry.outcome, Refused):
        return str(entry.outcome[1]["game_id"])
    return entry.item.rows_of


def _with_id(game_id: str, draft: Draft, data: dict[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """Return a game with another id."""
    occurred_at = format_instant(draft.occurred_at)
    return read_event({"type": draft.type, "occurred_at": occurred_at, "data": {**data, "game_id": game_id}})
