"""Match the rows of a sheet with games of the ledger, order their times, and number games without ids.

If the sheet has ids, rows are matched with games by id. Otherwise games are numbered by day. Because an inserted row
shifts the numbers, such rows are matched by content: first with equal games, then with similar ones.

Games of a table without ids get the first free number of their day:

    the ledger has          the table has                       id of the row
    2024-09-17-1  catan     the first game of chess that day    2024-09-17-2
    2024-09-17-2  nothing   the second game of chess            2024-09-17-3

A number is skipped if another table uses it for a game of another name (above: catan), or if a voided game with
different content has it. The numbers do not depend on which rows are already recorded, so a repeated import gives each
row the same number. A game from the same table keeps its number even if its row has changed, so an edited row conflicts
with its game.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.batches import make_batch_name
from ratings_ledger.ledger.events.canonical import INSTANT_MIN, dump, format_instant, parse_object
from ratings_ledger.ledger.events.revisions import KnownEvent, RevisedGame, apply_revisions
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.parsing import Block, ParsedItem
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import (
    Log,
    find_changed_games,
    find_first_positions,
    find_recorded_games,
    head,
    read_events_of_type,
    read_known_events,
    read_matching_records,
    read_records,
    read_records_at,
)
from ratings_ledger.ledger.validation.batches import Batch, find_imported_name, read_batches
from ratings_ledger.ledger.validation.identities import Identities, read_identities
from ratings_ledger.ledger.validation.repeated_games import SECOND, is_same_time, normalise_game

DAY_MICROSECONDS = 86_400_000_000
UNRECORDED_POSITION = 2**62  # a position after all recorded games, for new games


class Likeness(NamedTuple):
    """The features that decide whether games are alike: content without the id, end in microseconds, current ids."""

    content: str
    occurred_at: int
    players: frozenset[str]

    def equals(self, recorded: Likeness) -> bool:
        """Tell whether a game of a sheet equals a recorded game."""
        return self.content == recorded.content and is_same_time(self.occurred_at, recorded.occurred_at)


class SheetGame(NamedTuple):
    """A game in a sheet."""

    item: Item
    data: dict[str, Any]
    likeness: Likeness

    @property
    def game_id(self) -> str:
        """Return the game's id in the sheet."""
        return str(self.data["game_id"])

    @property
    def day(self) -> str:
        """Return the day in an id that consists of a day and a number."""
        return self.game_id.rpartition("-")[0]


class ImportedGame(NamedTuple):
    """A recorded game.

    position: the position of the event that recorded it
    base:     the state from the imports of its sheet alone; for a game from another source, the current state
    likeness: the features of `base`
    now:      the current state
    current:  the features of `now`
    """

    position: int
    base: RevisedGame
    likeness: Likeness
    now: RevisedGame
    current: Likeness

    @property
    def game_id(self) -> str:
        """Return the id of the game."""
        return str(self.base.data["game_id"])

    @property
    def is_gone(self) -> bool:
        """Tell whether an import of the sheet voided the game, and it is voided now."""
        return self.base.voided and self.now.voided

    @property
    def is_changed_in_ledger(self) -> bool:
        """Tell whether the current state differs from the state from the imports of the sheet alone."""
        return (self.now.voided, self.now.occurred_at, self.current.content) != (
            self.base.voided,
            self.base.occurred_at,
            self.likeness.content,
        )


def describe_likeness(data: dict[str, Any], occurred_at: int, people: Identities) -> Likeness:
    """Return the features that decide whether a game is like another, with the current ids of its players."""
    game = {**people.use_current_ids(data), "game_id": "-"}
    players = frozenset(participant["player"] for participant in game["participants"])
    return Likeness(normalise_game(game), occurred_at, players)


# a function that returns the keys of a game; a row and a game match if they have a key in common
Keys = Callable[[Likeness], Iterable[object]]


def _list_content_keys(game: Likeness) -> Iterator[object]:
    yield game.content, game.occurred_at // SECOND


def _list_timeless_keys(game: Likeness) -> Iterator[object]:
    yield game.content


def _list_player_keys(game: Likeness) -> Iterator[object]:
    yield game.occurred_at // DAY_MICROSECONDS, game.players


def _list_keys_without_a_player(game: Likeness) -> Iterator[object]:
    day = game.occurred_at // DAY_MICROSECONDS
    yield day, game.players
    yield from ((day, game.players - {player}) for player in sorted(game.players))


def _list_keys_without_participants(game: Likeness) -> Iterator[object]:
    data = parse_object(game.content.encode())["data"]
    yield game.occurred_at // DAY_MICROSECONDS, game.players, dump({**data, "participants": None})


# the keys for rows that may have been edited since the last import of their sheet, the strictest first
EDITED_KEYS: tuple[Keys, ...] = (
    _list_content_keys,
    _list_timeless_keys,
    _list_player_keys,
    _list_keys_without_a_player,
)
# the keys for games from other sources; a sync never changes these, so looser keys would be useless
OTHER_SOURCE_KEYS: tuple[Keys, ...] = (_list_content_keys, _list_keys_without_participants)


# the features of a game by which a row is matched
_LIKENESS, _CURRENT = attrgetter("likeness"), attrgetter("current")


def match_rows(
    rows: Mapping[int, SheetGame], games: Iterable[ImportedGame], kinds: Sequence[Keys]
) -> dict[int, ImportedGame]:
    """Match rows with games, by each kind of keys in turn; return the games by the index of their row.

    After the first kind of keys, rows are matched with games that the ledger has changed alike. If several games match,
    the first unmatched one is chosen; after the first kind of keys, the game with the row's id takes precedence. If
    more games than rows are equal by the first kind, those without a change in the ledger are chosen. Games that an
    import of the sheet voided match only by the first kind of keys.
    """
    steps = [(kinds[0], _LIKENESS), (kinds[0], _CURRENT), *((keys, _LIKENESS) for keys in kinds[1:])]
    matched: dict[int, ImportedGame] = {}
    unmatched = sorted(games, key=lambda game: (game.is_gone, game.likeness.occurred_at, game.position))
    for number, (keys, describe) in enumerate(steps):
        if number:
            unmatched = [game for game in unmatched if not game.is_gone]
        candidates = [game for game in unmatched if not game.now.voided] if describe is _CURRENT else unmatched
        if keys is _list_keys_without_a_player:
            # after a reinstatement by hand the sheet has no row for the game, so another player makes another game
            candidates = [game for game in candidates if not game.base.voided]
        by_id = {game.game_id: game for game in candidates} if number else {}
        used = set[int]()
        for index, row in rows.items():
            game = by_id.get(row.game_id) if index not in matched else None
            if game is not None and not {*keys(describe(game))}.isdisjoint(keys(row.likeness)):
                matched[index] = game
                used.add(game.position)
        queues: dict[object, deque[ImportedGame]] = defaultdict(deque)
        for game in candidates:
            for key in keys(describe(game)):
                queues[key].append(game)
        if not number:
            row_counts = Counter(key for row in rows.values() for key in keys(row.likeness))
            queues = {key: _choose_unchanged(equal_games, row_counts[key]) for key, equal_games in queues.items()}
        for index, row in rows.items():
            if index not in matched and (first := _take_first(map(queues.get, keys(row.likeness)), used)) is not None:
                matched[index] = first
                used.add(first.position)
        unmatched = [game for game in unmatched if game.position not in used]
    return matched


def _choose_unchanged(games: deque[ImportedGame], number: int) -> deque[ImportedGame]:
    """Return this number of equal games, in their order; games without a change in the ledger are chosen first."""
    if len(games) <= number:
        return games
    chosen = sorted(games, key=lambda game: (game.is_gone, game.is_changed_in_ledger))[:number]
    positions = {game.position for game in chosen}
    return deque(game for game in games if game.position in positions)


def _take_first(queues: Iterable[deque[ImportedGame] | None], used: Collection[int]) -> ImportedGame | None:
    """Take the first unused game from the queues, and drop the used games before it."""
    for queue in queues:
        while queue:
            game = queue.popleft()
            if game.position not in used:
                return game
    return None


def order_play_times(
    rows: Mapping[int, SheetGame], imported: Mapping[int, ImportedGame], other_games: Mapping[int, ImportedGame]
) -> dict[int, int]:
    """Return the time of play of each row's game, by index, chosen so that a replay follows the order of the sheet.

    Games with the same time are replayed in the order of their positions. If the sheet has such games in another order,
    a later one gets the time of the game before it, plus a microsecond if its own position is lower. Games from other
    sources (`other_games`) keep their times.
    """
    times: dict[int, int] = {}
    last_time, last_position = INSTANT_MIN, 0
    for number, index in enumerate(sorted(rows, key=lambda index: rows[index].likeness.occurred_at)):
        if index in other_games:
            time, position = other_games[index].now.occurred_at, other_games[index].position
        else:
            time = rows[index].likeness.occurred_at
            position = imported[index].position if index in imported else UNRECORDED_POSITION + number
            if (time, position) <= (last_time, last_position):
                time = last_time if position > last_position else last_time + 1
        times[index] = time
        last_time, last_position = max((last_time, last_position), (time, position))
    return times


DECISION_TYPES = ("game.corrected", "game.voided", "game.reinstated")


class ImportedRanges:
    """The ranges of positions of the events that each import of a sheet appended."""

    def __init__(self, imports: Iterable[Iterable[Iterable[int]]]) -> None:
        # (first position, last position, number of the import)
        self.ranges = sorted((first, last, number) for number, ranges in enumerate(imports) for first, last in ranges)
        self._firsts = [first for first, _, _ in self.ranges]

    def find_import(self, position: int) -> int | None:
        """Return the number of the import that appended the event at a position, or None."""
        index = bisect_right(self._firsts, position) - 1
        return self.ranges[index][2] if index >= 0 and position <= self.ranges[index][1] else None


def read_imported_ranges(connection: Connection, name: str, sheet: str | None) -> ImportedRanges:
    """Return the ranges of positions that imports under this name appended from one sheet."""
    return ImportedRanges(batch.ranges for batch in read_batches(connection, name) if batch.sheet == sheet)


def read_decisions(connection: Connection) -> dict[str, list[KnownEvent]]:
    """Return the corrections, voids and reinstatements of each game by game_id, in order."""
    until, decisions = head(connection).position, list[KnownEvent]()
    for type_name in DECISION_TYPES:
        decisions += read_events_of_type(type_name, read_matching_records(connection, until=until, type_name=type_name))
    by_game: dict[str, list[KnownEvent]] = defaultdict(list)
    for event in sorted(decisions, key=lambda event: event.position or 0):
        by_game[event.data["game_id"]].append(event)
    return by_game


def read_imported_games(
    connection: Connection, ranges: ImportedRanges, decisions: Mapping[str, list[KnownEvent]], people: Identities
) -> list[ImportedGame]:
    """Return the games that were recorded in these ranges."""
    pages = (page for first, last, _ in ranges.ranges for page in read_records(connection, first - 1, last))
    recorded = (event for page in pages for event in read_known_events(page) if event.type == "game.recorded")
    return [_build_game(event, decisions, people, ranges) for event in recorded]


def read_games_at(
    connection: Connection, positions: Iterable[int], decisions: Mapping[str, list[KnownEvent]], people: Identities
) -> list[ImportedGame]:
    """Return the games recorded at these positions; `base` is their current state, too."""
    rows = sorted(read_records_at(connection, [*positions]).items())
    return [_build_game(event, decisions, people) for event in read_known_events(rows)]


def _build_game(
    event: KnownEvent,
    decisions: Mapping[str, list[KnownEvent]],
    people: Identities,
    ranges: ImportedRanges | None = None,
) -> ImportedGame:
    """Build a game from its events; with `ranges`, its base state includes only the decisions in these ranges."""
    later = decisions.get(event.data["game_id"], [])
    now = base = apply_revisions([event, *later])
    if ranges is not None:
        imported = [decision for decision in later if ranges.find_import(decision.position or 0) is not None]
        base = now if len(imported) == len(later) else apply_revisions([event, *imported])
    assert now is not None
    assert base is not None
    likeness = describe_likeness(base.data, base.occurred_at, people)
    current = likeness if now is base else describe_likeness(now.data, now.occurred_at, people)
    return ImportedGame(event.position or 0, base, likeness, now, current)


def find_day_numbers(
    connection: Connection, games_per_day: Mapping[str, int], needed: Counter[str]
) -> tuple[dict[str, int], dict[str, Iterator[str]]]:
    """Look up ids of a day and a number; return the positions of taken ids, and an iterator of free ids per day.

    `games_per_day` counts a sheet's games on each day; `needed` counts those that may need a free id.
    """
    positions_by_id: dict[str, int] = {}
    free: dict[str, list[str]] = {day: [] for day in needed}
    searched = dict.fromkeys(needed, 0)
    while short_days := [day for day in needed if len(free[day]) < needed[day]]:
        ids = {
            day: [f"{day}-{number}" for number in range(searched[day] + 1, searched[day] + games_per_day[day] + 1)]
            for day in short_days
        }
        positions = find_first_positions(connection, [game_id for game_ids in ids.values() for game_id in game_ids])
        positions_by_id |= positions
        for day, game_ids in ids.items():
            searched[day] += games_per_day[day]
            free[day] += [game_id for game_id in game_ids if game_id not in positions]
    return positions_by_id, {day: iter(game_ids) for day, game_ids in free.items()}


LOOKAHEAD_NUMBERS = 64  # one statement looks up 64 numbers of a day
_BY_DAY = re.compile(r"(\d{4}-\d\d-\d\d)-([1-9]\d{0,8})", re.ASCII)


def is_by_day(game_id: str) -> bool:
    """Tell whether an id has the form of a day with a number.

    >>> is_by_day("2024-09-17-1"), is_by_day("g-1")
    (True, False)
    """
    return _BY_DAY.fullmatch(game_id) is not None


class _Day:
    """The ids of a table's games on one day, in row order, and the next number to try.

    `skipped` has the skipped ids, by the keys of the rows that may use them.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.next = 1
        self.skipped: dict[object, deque[str]] = defaultdict(deque)


class DayNumbers:
    """The numbering of games in tables without ids, block by block."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # the days of each file, by the file and the date
        self._days: dict[tuple[str, str], _Day] = defaultdict(_Day)
        # by id: the name of the game in the row that got this id; the event that recorded a game with it, or None
        self._assigned: dict[str, str] = {}
        self._recorded: dict[str, KnownEvent | None] = {}
        # by file: the positions of earlier imports, the sheet, the name of the game in the last readable row, and the
        # number of skipped ids with an example
        self._ranges: dict[str, ImportedRanges] = {}
        self._sheets: dict[str, str | None] = {}
        self._last_game: dict[str, str] = {}
        self._skipped: dict[str, tuple[int, str]] = {}

    def assign_numbers(self, block: Block) -> Block:
        """Return a block in which the games of tables without ids have their ids in the ledger."""
        numbered_entries = [entry for entry in block if isinstance(entry, ParsedItem) and entry.item.is_numbered]
        if not numbered_entries:
            return block
        self._load_events([game_id for entry in numbered_entries if (game_id := _find_numbered_id(entry)) is not None])
        return [
            self._assign_number(entry) if isinstance(entry, ParsedItem) and entry.item.is_numbered else entry
            for entry in block
        ]

    def set_sheet(self, file: str, sheet: str | None) -> None:
        """Set the sheet from which a file is read."""
        self._sheets[file] = sheet

    def has_imported(self, file: str, game_id: str) -> bool:
        """Tell whether an import of a table of this name recorded a game."""
        position = find_first_positions(self._connection, [game_id]).get(game_id)
        return position is not None and self._is_from_table(file, position)

    def find_source(self, game_id: str) -> str | None:
        """Return the name of the file whose import recorded a game, or None."""
        position = find_first_positions(self._connection, [game_id]).get(game_id)
        if position is None:
            return None
        return next((batch.name for batch in self._batches if batch.has_position(position)), None)

    @cached_property
    def _batches(self) -> list[Batch]:
        return read_batches(self._connection)

    def describe(self) -> Iterator[str]:
        """Yield a sentence about the skipped ids of each file that is imported for the first time."""
        for file, (number, example) in self._skipped.items():
            if not self._load_ranges(file).ranges:
                more = f" and {number - 1:,} more" if number > 1 else ""
                yield f"{file}: skipped ids that other games have: {example}{more}"

    def _assign_number(self, entry: ParsedItem) -> ParsedItem:
        game_id = _find_numbered_id(entry)
        match = None if game_id is None else _BY_DAY.fullmatch(game_id)
        if match is None:
            return entry
        item, day = entry.item, self._days[entry.item.file, match[1]]
        if not isinstance(entry.result, Refused):
            self._last_game[item.file] = entry.result[1]["game"]
        # unreadable rows before this one get ids, too
        while len(day.ids) < int(match[2]):
            day.ids.append(self._find_free_id(entry, match[1], day))
        free_id = day.ids[int(match[2]) - 1]
        if free_id == game_id:
            return entry
        numbered_item = item if item.rows_of is None else item._replace(rows_of=free_id)
        result = entry.result if isinstance(entry.result, Refused) else _replace_id(free_id, *entry.result)
        return entry._replace(item=numbered_item, result=result)

    def _find_free_id(self, entry: ParsedItem, date: str, day: _Day) -> str:
        """Return the first id of a day that a row may use; keep skipped ids for other rows."""
        # an unreadable row probably names the same game as the row before it
        game = self._last_game.get(entry.item.file, "")
        free_id = self._take_skipped(entry, game, day)
        while free_id is None:
            game_id = f"{date}-{day.next}"
            day.next += 1
            owners = self._find_owners(entry, game, game_id)
            if not owners:
                free_id = game_id
            for key in owners:
                day.skipped[key].append(game_id)
        self._assigned.setdefault(free_id, game)
        self._recorded.pop(free_id, None)
        return free_id

    def _take_skipped(self, entry: ParsedItem, game: str, day: _Day) -> str | None:
        """Take the first skipped id that a row may use, or return None."""
        for key in (game, self._build_entry_key(entry)) if day.skipped else ():
            skipped = day.skipped.get(key, deque())
            while skipped:
                if (game_id := skipped.popleft()) not in day.ids:
                    return game_id
        return None

    def _find_owners(self, entry: ParsedItem, game: str, game_id: str) -> list[object]:
        """Return the keys of the rows that may use an id, or an empty list if this row may.

        A key is the name of a game, or the content of a voided game.
        """
        file = entry.item.file
        if (assigned := self._assigned.get(game_id)) is not None:
            return [] if assigned == game else self._count_skipped(file, game_id, f"a game of {assigned}", [assigned])
        if (first := self._find_event(game_id)) is None:
            return []
        current = self._find_current_game(first)
        if current.voided:
            keys = [
                self._build_content_key(first.data, first.occurred_at),
                self._build_content_key(current.data, current.occurred_at),
            ]
            is_same = self._build_entry_key(entry) in keys
            return [] if is_same else self._count_skipped(file, game_id, "a voided game", keys)
        recorded_game = current.data["game"]
        if recorded_game == game or self._is_from_table(file, first.position or 0):
            return []
        return self._count_skipped(file, game_id, f"a game of {recorded_game}", [recorded_game])

    def _count_skipped(self, file: str, game_id: str, reason: str, owners: list[object]) -> list[object]:
        """Count a skipped id, keep the first one as an example, and return its owners."""
        number, example = self._skipped.get(file, (0, f"{game_id} ({reason})"))
        self._skipped[file] = number + 1, example
        return owners

    def _find_event(self, game_id: str) -> KnownEvent | None:
        """Return the event that recorded a game, or None."""
        if game_id not in self._recorded:
            date, _, text = game_id.rpartition("-")
            first = int(text)
            self._load_events([f"{date}-{number}" for number in range(first, first + LOOKAHEAD_NUMBERS)])
        return self._recorded[game_id]

    def _load_events(self, game_ids: Iterable[str]) -> None:
        """Look up the events that recorded these games."""
        unknown_ids = [game_id for game_id in game_ids if game_id not in self._recorded]
        # most games of a table are new, and this lookup finds that much faster than the next one
        recorded = find_recorded_games(self._connection, [f"game:{game_id}" for game_id in unknown_ids])
        positions = find_first_positions(self._connection, [subject.removeprefix("game:") for subject in recorded])
        records = read_records_at(self._connection, [*positions.values()])
        event_by_id = {event.data["game_id"]: event for event in read_known_events(sorted(records.items()))}
        self._recorded |= {game_id: event_by_id.get(game_id) for game_id in unknown_ids}

    def _find_current_game(self, first: KnownEvent) -> RevisedGame:
        """Return the current state of a game."""
        subject = f"game:{first.data['game_id']}"
        game = apply_revisions(Log(self._connection).about(subject) if subject in self._changed else [first])
        assert game is not None
        return game

    def _is_from_table(self, file: str, position: int) -> bool:
        """Tell whether an import of a table of this name appended the event at a position."""
        return self._load_ranges(file).find_import(position) is not None

    def _load_ranges(self, file: str) -> ImportedRanges:
        """Return the ranges of positions that earlier imports of a table of this name appended."""
        if file not in self._ranges:
            name = find_imported_name(self._connection, make_batch_name(file))
            self._ranges[file] = read_imported_ranges(self._connection, name, self._sheets.get(file))
        return self._ranges[file]

    def _build_entry_key(self, entry: ParsedItem) -> object:
        if isinstance(entry.result, Refused):
            return None
        draft, data = entry.result
        return self._build_content_key(data, draft.occurred_at)

    def _build_content_key(self, data: dict[str, Any], occurred_at: int) -> object:
        return next(_list_content_keys(describe_likeness(data, occurred_at, self._people)))

    @cached_property
    def _people(self) -> Identities:
        return read_identities(self._connection)

    @cached_property
    def _changed(self) -> set[str]:
        return find_changed_games(self._connection, 0)


def _find_numbered_id(entry: ParsedItem) -> str | None:
    """Return the id that numbers a game among its table's games of the day, or None for a row without a game."""
    if not isinstance(entry.result, Refused):
        return str(entry.result[1]["game_id"])
    return entry.item.rows_of


def _replace_id(game_id: str, draft: Draft, data: dict[str, Any]) -> tuple[Draft, dict[str, Any]]:
    """Return a game's draft and data with another id."""
    occurred_at = format_instant(draft.occurred_at)
    return read_event({"type": draft.type, "occurred_at": occurred_at, "data": {**data, "game_id": game_id}})
