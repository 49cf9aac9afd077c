"""Compare an edited sheet with its earlier imports, and build events for new, changed, vanished and returned games.

    last import      the sheet now    the ledger now   result
    1 anna, 2 ben    1 ben, 2 anna    1 anna, 2 ben    game.corrected
    1 anna, 2 ben    1 anna, 2 ben    1 ben, 2 anna    no event: only the ledger was corrected
    1 anna, 2 ben    1 ben, 2 anna    1 ben, 2 anna    no event: both were corrected in the same way
    1 anna, 2 ben    1 ben, 2 anna    1 anna, 2 cleo   refused: both were changed differently

The comparison covers the games that imports under the sheet's name appended. Other games are not changed or voided.
After these events, a replay has the games in the order of the sheet (`order_play_times`), as after a new import.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.batches import make_batch_name
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.revisions import RevisedGame
from ratings_ledger.ledger.intake.corrections import restore_recorded_ids
from ratings_ledger.ledger.intake.files import Entry, FileNote, Item, Progress, read_items
from ratings_ledger.ledger.intake.importing import build_rows_apart_rejection
from ratings_ledger.ledger.intake.matching import (
    EDITED_KEYS,
    OTHER_SOURCE_KEYS,
    ImportedGame,
    ImportedRanges,
    SheetGame,
    describe_likeness,
    find_day_numbers,
    match_rows,
    order_play_times,
    read_decisions,
    read_games_at,
    read_imported_games,
    read_imported_ranges,
)
from ratings_ledger.ledger.intake.parsing import read_draft
from ratings_ledger.ledger.intake.tables.columns import CsvColumns, TableOptions
from ratings_ledger.ledger.rejections import ChangedMeanwhile, Refused, Rejection, count, csv_item, quote
from ratings_ledger.ledger.store.log import find_first_positions
from ratings_ledger.ledger.validation.batches import find_imported_name, read_batches
from ratings_ledger.ledger.validation.identities import Identities, read_identities
from ratings_ledger.ledger.validation.repeated_games import describe_both

# if most of at least 10 imported games have vanished, the file may be another sheet
DOUBT_GAMES_MIN = 10
# at most 3 names are suggested for a table with an unknown name
SUGGESTED_NAMES_MAX = 3

# what happened to a game of a sheet since the last import
DifferenceKind = Literal["new", "changed", "vanished", "returned", "reordered"]


class SheetDifference(NamedTuple):
    """A game that differs between the ledger and the sheet.

    what:     the kind of difference
    line:     the line in the sheet, or None
    recorded: the game in the ledger, or None
    row:      the game in the sheet, or None
    """

    what: DifferenceKind
    game_id: str
    line: int | None
    recorded: RevisedGame | None
    row: SheetGame | None


@dataclass
class Sync:
    """The result of a comparison.

    name:         the name under which the sheet was imported
    precondition: refuses the result if the sheet was imported meanwhile
    is_first:     whether nothing was imported from the sheet before
    doubt:        a refusal of the changes unless a person confirms that this is the right sheet
    entries:      events to record, refusals and notes
    differences:  the games that differ
    seen_events:  the id of the last event of each changed game, by subject, for optimistic locking
    same:         the number of equal games
    changed_in_ledger: the ids of games that changed only in the ledger
    """

    name: str
    precondition: Callable[[Connection], None]
    is_first: bool
    doubt: Refused | None = None
    entries: list[Entry] = field(default_factory=list)
    differences: list[SheetDifference] = field(default_factory=list)
    seen_events: dict[str, str] = field(default_factory=dict)
    same: int = 0
    changed_in_ledger: list[str] = field(default_factory=list)

    @property
    def is_decision(self) -> bool:
        """Tell whether the events would change, void or reinstate recorded games."""
        return any(difference.what != "new" for difference in self.differences)


def build_unconfirmed_refusal(sync: Sync) -> Refused:
    """Build the refusal of changes that a user has to confirm."""
    if sync.doubt is not None:
        remedy = "to void these games, run the command at a terminal without --yes"
        return Refused(sync.doubt.code, f"{sync.doubt.message}; {remedy}")
    number = sum(difference.what != "new" for difference in sync.differences)
    message = f"{count(number, 'recorded game')} would be changed; pass --yes to confirm, or --dry-run to see how"
    return Refused("not-confirmed", message)


class _Sheet(NamedTuple):
    """The content of a sheet.

    rows:     the games, by index
    columns:  the columns of the table
    entries:  the notes, refusals and invalid games of the file
    repeated: the number of games that equal an earlier one with the same id
    is_whole: whether every row could be read
    """

    rows: dict[int, SheetGame]
    columns: CsvColumns
    entries: list[Entry]
    repeated: int
    is_whole: bool


class _Pairs(NamedTuple):
    """The recorded games and ids of a sheet's rows, by index.

    imported:    the games that were imported from the sheet
    other_games: the games that were recorded from other sources
    new_ids:     the ids of new games
    times:       the times of play of all games
    """

    imported: dict[int, ImportedGame]
    other_games: dict[int, ImportedGame]
    new_ids: dict[int, str]
    times: dict[int, int]


def compare_sheet(
    connection: Connection, file: str, options: TableOptions, *, reason: str | None, decided_at: int
) -> Sync:
    """Compare a sheet with the games of all imports under its name.

    Args:
        connection: A connection to the ledger.
        file: The path of the sheet.
        options: How to read the sheet.
        reason: The reason to record with each change; by default it names the sheet.
        decided_at: The time of the decisions, in microseconds.
    """
    name, people = find_imported_name(connection, make_batch_name(file)), read_identities(connection)
    sheet = _read_sheet(file, options, people)
    ranges = read_imported_ranges(connection, name, sheet.columns.sheet)
    decisions = read_decisions(connection)
    imported = read_imported_games(connection, ranges, decisions, people)

    def read_other_games(positions: set[int]) -> list[ImportedGame]:
        own_positions = {game.position for game in imported}
        return read_games_at(connection, positions - own_positions, decisions, people)

    pairs = _pair_rows(connection, sheet, imported, read_other_games)

    def refuse_new_imports(connection: Connection) -> None:
        if read_imported_ranges(connection, name, sheet.columns.sheet).ranges != ranges.ranges:
            raise ChangedMeanwhile("changed-meanwhile", f"{name} was imported meanwhile; run the same command again")

    sync = Sync(name, refuse_new_imports, not imported, entries=[*sheet.entries], same=sheet.repeated)
    if sync.is_first and sheet.rows:
        sync.entries.append(FileNote(file, _describe_unknown_table(connection, name, sheet.columns.sheet)))
    elif name != make_batch_name(file):
        because = "because the names differ only by the marks of a copy, such as (1)"
        sync.entries.append(FileNote(file, f"compared with the imports of {quote(name)}, {because}"))
    collector = _ChangeCollector(
        sync=sync,
        file=file,
        people=people,
        reason=f"edited in {name}" if reason is None else reason,
        decided_at=format_instant(decided_at),
    )
    paired = {game.position for game in pairs.imported.values()}
    vanished = [game for game in imported if game.position not in paired and not game.base.voided]
    # an unreadable row may contain a game that seems to have vanished
    for game in vanished if sheet.is_whole else ():
        collector.void(game)
    sync.doubt = _find_doubt(name, imported, vanished, ranges)
    for index, row in sheet.rows.items():
        if index in pairs.imported:
            collector.change(row, pairs.imported[index], pairs.times[index])
        elif index in pairs.other_games:
            collector.compare_other(row, pairs.other_games[index])
    for index in sorted(pairs.new_ids, key=pairs.times.__getitem__):
        collector.record(sheet.rows[index], pairs.new_ids[index], pairs.times[index])
    return sync


def _describe_unknown_table(connection: Connection, name: str, sheet: str | None) -> str:
    """Describe the problem of a table that was never imported under its name, and the remedy."""
    source = "this name" if sheet is None else f"this name from the sheet {quote(sheet)}"
    message = f"nothing was imported under {source} before, so nothing can be compared"
    batches = read_batches(connection)
    sheets = dict.fromkeys(quote(batch.sheet) for batch in batches if batch.name == name and batch.sheet is not None)
    if sheet is not None and sheets:
        earlier = " and ".join(sheets)
        return f"{message}; {csv_item(name)} was imported from {earlier}; if you renamed the sheet, rename it back"
    names = list(dict.fromkeys(batch.name for batch in reversed(batches)))[:SUGGESTED_NAMES_MAX]
    if not names:
        return message
    listed = ", ".join(map(quote, names))
    return f"{message}; imported last: {listed}; if the file is one of these, rename it back"


def _read_sheet(file: str, options: TableOptions, people: Identities) -> _Sheet:
    """Read the games of a sheet."""
    columns = [CsvColumns((), (), {})]
    rows, by_id = dict[int, SheetGame](), dict[str, SheetGame]()
    entries, repeated, is_whole = list[Entry](), 0, True
    for entry in read_items(file, options._replace(on_columns=columns.append)):
        if not isinstance(entry, Item):
            entries += [] if isinstance(entry, Progress) else [entry]
            is_whole &= not isinstance(entry, Rejection)
            continue
        if not entry.table:
            message = "--sync compares only tables; import other files without --sync, because their events have ids"
            entries.append(Rejection("not-a-table", message, file, entry.line))
            return _Sheet({}, columns[-1], entries, repeated=0, is_whole=False)
        row = _build_sheet_game(entry, people)
        earlier = None if row is None else by_id.setdefault(row.game_id, row)
        if row is None:
            entries.append(entry)
            is_whole = False
        elif earlier is row:
            rows[len(rows)] = row
        elif earlier is not None and earlier.likeness == row.likeness:
            repeated += 1
        else:
            entries.append(_build_repeated_id_rejection(row))
            is_whole = False
    return _Sheet(rows, columns[-1], entries, repeated=repeated, is_whole=is_whole)


def _build_sheet_game(item: Item, people: Identities) -> SheetGame | None:
    """Build a game of a sheet; return None for an invalid game. The import will report its errors."""
    try:
        if isinstance(item.event, Refused):
            return None
        draft, data = read_draft(item.event)
    except Refused:
        return None
    if draft.type != "game.recorded":
        return None
    # the comparison decides the id, so the import must not number the game
    return SheetGame(item._replace(is_numbered=False), data, describe_likeness(data, draft.occurred_at, people))


def _build_repeated_id_rejection(row: SheetGame) -> Rejection:
    """Build the refusal of a game whose id occurs earlier in the sheet with different content."""
    if row.item.rows_of is not None:
        return build_rows_apart_rejection(row.game_id)._replace(file=row.item.file, line=row.item.line)
    message = f"the sheet has another game with the id {quote(row.game_id)}; give the games different ids"
    return Rejection("id-conflict", message, row.item.file, row.item.line)


def _pair_rows(
    connection: Connection,
    sheet: _Sheet,
    imported: list[ImportedGame],
    read_other_games: Callable[[set[int]], list[ImportedGame]],
) -> _Pairs:
    """Pair the rows of a sheet with games; `read_other_games` reads games from other sources by their positions."""
    rows, is_numbered = sheet.rows, sheet.columns.is_numbered
    own_games = match_rows(rows, imported, EDITED_KEYS) if is_numbered else _pair_by_id(rows, imported)
    unpaired = {index: row for index, row in rows.items() if index not in own_games}
    if is_numbered:
        games_per_day = Counter(row.day for row in rows.values())
        needed = Counter(row.day for row in unpaired.values())
        positions_by_id, free_ids = find_day_numbers(connection, games_per_day, needed)
        live_games = [game for game in read_other_games({*positions_by_id.values()}) if not game.now.voided]
        other_games = match_rows(unpaired, live_games, OTHER_SOURCE_KEYS)
        ids = {index: next(free_ids[row.day]) for index, row in unpaired.items() if index not in other_games}
    else:
        positions = find_first_positions(connection, [row.game_id for row in unpaired.values()])
        other_games = _pair_by_id(unpaired, read_other_games({*positions.values()}))
        ids = {index: row.game_id for index, row in unpaired.items() if index not in other_games}
    return _Pairs(own_games, other_games, ids, order_play_times(rows, own_games, other_games))


def _pair_by_id(rows: Mapping[int, SheetGame], games: Iterable[ImportedGame]) -> dict[int, ImportedGame]:
    """Pair rows with games by their ids."""
    by_id = {game.game_id: game for game in games}
    return {index: by_id[row.game_id] for index, row in rows.items() if row.game_id in by_id}


def _find_doubt(
    name: str, imported: list[ImportedGame], vanished: list[ImportedGame], ranges: ImportedRanges
) -> Refused | None:
    """Return a refusal if most games of an import, or of all imports, have vanished from the sheet; else None."""
    # by number of the import; the key None counts the games of all imports
    totals, lost = (Counter[int | None](), Counter[int | None]())
    for games, counts in ((imported, totals), (vanished, lost)):
        for game in games:
            counts.update(() if game.base.voided else (None, ranges.find_import(game.position)))
    for number, total in totals.items():
        if total >= DOUBT_GAMES_MIN and lost[number] * 2 > total:
            source = f"{'imports' if number is None else 'an import'} of {name}"
            return Refused(
                "another-sheet",
                f"{lost[number]:,} of {total:,} games recorded by {source} are no longer in the sheet; if it is "
                "another sheet, rename the file",
            )
    return None


@dataclass(frozen=True)
class _ChangeCollector:
    """A collector of the entries and differences that result from each game of a sheet."""

    sync: Sync
    file: str
    people: Identities
    reason: str
    decided_at: str

    def void(self, game: ImportedGame) -> None:
        """Void a live game that is no longer in the sheet, or refuse that if the ledger has changed the game."""
        if game.now.voided:
            return
        if game.is_changed_in_ledger:
            self._refuse_conflict(game, None)
            return
        item = Item(self.file, line=0, event={}, source=None)
        self._add_decision("game.voided", game, item, {})
        self.sync.differences.append(SheetDifference("vanished", game.game_id, None, game.now, None))

    def change(self, row: SheetGame, game: ImportedGame, played_at: int) -> None:
        """Correct or reinstate an imported game, so that it equals its row and has this time of play.

        If the ledger has changed the game differently, refuse an edited row, and leave the game as it is otherwise.
        """
        now, current = game.now, game.current
        is_edited = game.base.voided or not row.likeness.equals(game.likeness)
        is_equal = not now.voided and row.likeness.equals(current)
        if game.is_changed_in_ledger and not is_equal:
            if is_edited:
                self._refuse_conflict(game, row)
            else:
                self.sync.changed_in_ledger.append(game.game_id)
            return
        if now.voided:
            self._add_decision("game.reinstated", game, row.item, {})
        differs, is_moved = not row.likeness.equals(current), played_at != now.occurred_at
        if differs or is_moved:
            new = restore_recorded_ids({**row.data, "game_id": game.game_id}, now, self.people) if differs else now.data
            new_time = {"occurred_at": format_instant(played_at)} if is_moved else {}
            self._add_decision("game.corrected", game, row.item, {"game": {**new, **new_time}})
        what: DifferenceKind = "returned" if now.voided else "changed" if differs else "reordered"
        if now.voided or differs or is_moved:
            self.sync.differences.append(SheetDifference(what, game.game_id, row.item.line, now, row))
        else:
            self.sync.same += 1

    def compare_other(self, row: SheetGame, game: ImportedGame) -> None:
        """Count a row that equals a game from another source; else add it as an event, which the import will refuse."""
        if not game.now.voided and row.likeness.equals(game.current):
            self.sync.same += 1
        else:
            self._add_recording(row, game.game_id, row.likeness.occurred_at)

    def record(self, row: SheetGame, game_id: str, played_at: int) -> None:
        """Record a new game."""
        self._add_recording(row, game_id, played_at)
        self.sync.differences.append(SheetDifference("new", game_id, row.item.line, None, row))

    def _add_recording(self, row: SheetGame, game_id: str, played_at: int) -> None:
        data = {**row.data, "game_id": game_id}
        event = {"type": "game.recorded", "occurred_at": format_instant(played_at), "data": data}
        rows_of = None if row.item.rows_of is None else game_id
        self.sync.entries.append(row.item._replace(event=event, rows_of=rows_of))

    def _refuse_conflict(self, game: ImportedGame, row: SheetGame | None) -> None:
        """Refuse a game that was changed differently in ledger and sheet; `row` is None if the sheet lacks the game."""
        recorded = self.people.use_current_ids(game.now.data)
        in_ledger, in_sheet = describe_both(
            recorded, recorded if row is None else self.people.use_current_ids(row.data)
        )
        in_ledger = "voided" if game.now.voided else in_ledger
        in_sheet = "removed" if row is None else in_sheet
        message = (
            f"{quote(game.game_id)} was changed in the ledger at position {game.now.last.position} ({in_ledger}), but "
            f"differently in the sheet ({in_sheet}); edit the sheet, or run ratings correct, ratings void "
            "or ratings reinstate, so that both agree"
        )
        line = None if row is None else row.item.line
        self.sync.entries.append(Rejection("changed-in-both", message, self.file, line))

    def _add_decision(self, type_name: str, game: ImportedGame, item: Item, members: Mapping[str, Any]) -> None:
        """Add an event that changes a recorded game; `members` are added to its data."""
        data = {"game_id": game.game_id, "reason": self.reason, **members}
        event = {"type": type_name, "occurred_at": self.decided_at, "data": data}
        self.sync.entries.append(item._replace(event=event, rows_of=None))
        self.sync.seen_events[f"game:{game.game_id}"] = game.now.last.event_id
