"""Comparison of an edited sheet with its earlier imports: events for its new, changed, vanished and returned games.

    last import      the sheet now    the ledger now   result
    1 anna, 2 ben    1 ben, 2 anna    1 anna, 2 ben    game.corrected
    1 anna, 2 ben    1 anna, 2 ben    1 ben, 2 anna    none: only the ledger was corrected
    1 anna, 2 ben    1 ben, 2 anna    1 ben, 2 anna    none: both were corrected alike
    1 anna, 2 ben    1 ben, 2 anna    1 anna, 2 cleo   refused: both were changed differently

The comparison covers the games that imports under the sheet's name appended; it neither changes nor voids other games.
The sheet's games then count in its order, as in a new import. Games of one time are ordered by position, so an older
game that the sheet has after a new one moves by a microsecond.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.batches import batch_name
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.revisions import RevisedGame
from ratings_ledger.ledger.intake.corrections import restore_recorded_ids
from ratings_ledger.ledger.intake.files import Entry, FileNote, Item, Progress, read_items
from ratings_ledger.ledger.intake.importing import rows_apart_rejection
from ratings_ledger.ledger.intake.matching import (
    EDITED,
    ELSEWHERE,
    ImportedGame,
    Likeness,
    Ranges,
    SheetGame,
    decisions_by_game,
    describe_likeness,
    find_numbers,
    imported_games,
    imported_ranges,
    match_rows,
    order_play_times,
    recorded_games,
)
from ratings_ledger.ledger.intake.parsing import read_draft
from ratings_ledger.ledger.intake.tables.columns import CsvColumns, TableOptions
from ratings_ledger.ledger.rejections import ChangedMeanwhile, Refused, Rejection, count, csv_item, quote
from ratings_ledger.ledger.store.log import first_positions
from ratings_ledger.ledger.validation.batches import find_imported_name, recorded_batches
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.repeated_games import describe_both

# if most games of an import of at least this size have vanished, the sheet may be another one
IMPORT_GAMES = 10
# how many names are suggested for a table with an unknown name
LAST_NAMES = 3

What = Literal["new", "changed", "vanished", "returned", "reordered"]


class SheetDifference(NamedTuple):
    """A game that differs between sheet and ledger, with both versions; None for the side without the game."""

    what: What
    game_id: str
    line: int | None
    there: RevisedGame | None
    here: SheetGame | None


@dataclass
class Sync:
    """The result of a comparison: entries to record, differences, and by subject the event behind each decision.

    `same` counts equal games; `otherwise` lists games that changed only in the ledger; `doubt` is a reason for a person
    to check the sheet; `precondition` refuses the result if the sheet was imported meanwhile.
    """

    name: str
    precondition: Callable[[Connection], None]
    is_first: bool
    doubt: Refused | None = None
    entries: list[Entry] = field(default_factory=list)
    differences: list[SheetDifference] = field(default_factory=list)
    seen_events: dict[str, str] = field(default_factory=dict)
    same: int = 0
    otherwise: list[str] = field(default_factory=list)

    @property
    def is_decision(self) -> bool:
        """Tell whether recorded games would be changed, voided or reinstated."""
        return any(difference.what != "new" for difference in self.differences)


def unconfirmed_refusal(sync: Sync) -> Refused:
    """Return the refusal of changes that need a confirmation."""
    number = sum(difference.what != "new" for difference in sync.differences)
    message = f"{count(number, 'recorded game')} would be changed: --yes records it, --dry-run shows it"
    return Refused("not-confirmed", message)


class _Sheet(NamedTuple):
    """The content of a sheet: games, columns, other entries, and the number of rows that repeat a game.

    It is whole if every row could be read.
    """

    rows: dict[int, SheetGame]
    columns: CsvColumns
    entries: list[Entry]
    repeated: int
    is_whole: bool


class _Pairs(NamedTuple):
    """The games of a sheet's rows, by index: imported from it, recorded from elsewhere, and the ids of new ones."""

    imported: dict[int, ImportedGame]
    others: dict[int, ImportedGame]
    new: dict[int, str]
    times: dict[int, int]


def compare_sheet(
    connection: Connection, file: str, options: TableOptions, reason: str | None, decided_at: int
) -> Sync:
    """Compare a sheet with the games of all imports under its name."""
    name, people = find_imported_name(connection, batch_name(file)), identities(connection)
    sheet = _read_sheet(file, options, people)
    ranges = imported_ranges(connection, name, sheet.columns.sheet)
    decisions = decisions_by_game(connection)
    imported = imported_games(connection, ranges, decisions, people)

    def recorded(positions: set[int]) -> list[ImportedGame]:
        known = {game.position for game in imported}
        return recorded_games(connection, positions - known, decisions, people)

    pairs = _pair_rows(connection, sheet, imported, recorded)

    def refuse_new_imports(connection: Connection) -> None:
        if imported_ranges(connection, name, sheet.columns.sheet).each != ranges.each:
            raise ChangedMeanwhile("changed-meanwhile", f"{name} was imported meanwhile; compare it again")

    sync = Sync(name, refuse_new_imports, not imported, entries=[*sheet.entries], same=sheet.repeated)
    if sync.is_first and sheet.rows:
        sync.entries.append(FileNote(file, _describe_unknown_table(connection, name, sheet.columns.sheet)))
    elif name != batch_name(file):
        sync.entries.append(FileNote(file, f"compared with what was imported as {quote(name)}, of which it is a copy"))
    collector = _ChangeCollector(
        sync, file, people, f"edited in {name}" if reason is None else reason, format_instant(decided_at)
    )
    paired = {game.position for game in pairs.imported.values()}
    vanished = [game for game in imported if game.position not in paired and not game.base.voided]
    # an unreadable row may be one of them
    for game in vanished if sheet.is_whole else ():
        collector.void(game)
    sync.doubt = _find_doubt(name, imported, vanished, ranges)
    for index, row in sheet.rows.items():
        if index in pairs.imported:
            collector.change(row, pairs.imported[index], pairs.times[index])
        elif index in pairs.others:
            collector.leave(row, pairs.others[index])
    for index in sorted(pairs.new, key=pairs.times.__getitem__):
        collector.record(sheet.rows[index], pairs.new[index], pairs.times[index])
    return sync


def _describe_unknown_table(connection: Connection, name: str, sheet: str | None) -> str:
    """Describe the remedy for a table under whose name nothing was imported."""
    source = "this name" if sheet is None else f"this name from the sheet {quote(sheet)}"
    message = f"nothing was imported under {source} before, so there is nothing to compare"
    batches = recorded_batches(connection)
    sheets = dict.fromkeys(quote(batch.sheet) for batch in batches if batch.name == name and batch.sheet is not None)
    if sheet is not None and sheets:
        places = " and ".join(sheets)
        return f"{message}; {csv_item(name)} was imported from {places}; if that is this sheet, name it so again"
    names = list(dict.fromkeys(batch.name for batch in reversed(batches)))[:LAST_NAMES]
    if not names:
        return message
    listed = ", ".join(map(quote, names))
    return f"{message}; imported last: {listed}; if it is one of these, give the file that name"


def _read_sheet(file: str, options: TableOptions, people: Identities) -> _Sheet:
    """Read a sheet."""
    columns = [CsvColumns((), (), {})]
    rows, by_id = dict[int, SheetGame](), dict[str, SheetGame]()
    entries, repeated, is_whole = list[Entry](), 0, True
    for entry in read_items(file, options._replace(found=columns.append)):
        if not isinstance(entry, Item):
            entries += [] if isinstance(entry, Progress) else [entry]
            is_whole &= not isinstance(entry, Rejection)
            continue
        if not entry.table:
            message = "--sync compares tables; events of JSON Lines have ids, and say themselves what they change"
            entries.append(Rejection("not-a-table", message, file, entry.line))
            return _Sheet({}, columns[-1], entries, 0, False)
        row = _sheet_game(entry, people)
        earlier = None if row is None else by_id.setdefault(row.game_id, row)
        if row is None:
            entries.append(entry)
            is_whole = False
        elif earlier is row:
            rows[len(rows)] = row
        elif earlier is not None and earlier.likeness == row.likeness:
            repeated += 1
        else:
            entries.append(_refuse_repeated_id(row))
            is_whole = False
    return _Sheet(rows, columns[-1], entries, repeated, is_whole)


def _sheet_game(item: Item, people: Identities) -> SheetGame | None:
    """Return a game of a sheet; None for an invalid game, which is reported later."""
    try:
        if isinstance(item.event, Refused):
            return None
        draft, data = read_draft(item.event)
    except Refused:
        return None
    if draft.type != "game.recorded":
        return None
    # this comparison decides the id of the game
    return SheetGame(item._replace(is_numbered=False), data, describe_likeness(data, draft.occurred_at, people))


def _refuse_repeated_id(row: SheetGame) -> Rejection:
    """Return the refusal of a game whose id the sheet also has with different content."""
    if row.item.rows_of is not None:
        return rows_apart_rejection(row.game_id)._replace(file=row.item.file, line=row.item.line)
    message = f"the sheet has another game with the id {quote(row.game_id)}; each needs an id of its own"
    return Rejection("id-conflict", message, row.item.file, row.item.line)


def _pair_rows(
    connection: Connection,
    sheet: _Sheet,
    imported: list[ImportedGame],
    recorded: Callable[[set[int]], list[ImportedGame]],
) -> _Pairs:
    """Pair the rows of a sheet with games; `recorded` reads the games at positions that are not the sheet's."""
    rows, is_numbered = sheet.rows, sheet.columns.is_numbered
    own = match_rows(rows, imported, EDITED) if is_numbered else _pair_by_id(rows, imported)
    unpaired = {index: row for index, row in rows.items() if index not in own}
    if is_numbered:
        days = Counter(row.day for row in rows.values())
        taken, free = find_numbers(connection, days, Counter(row.day for row in unpaired.values()))
        others = match_rows(unpaired, (game for game in recorded({*taken.values()}) if not game.now.voided), ELSEWHERE)
        ids = {index: next(free[row.day]) for index, row in unpaired.items() if index not in others}
    else:
        others = _pair_by_id(
            unpaired, recorded({*first_positions(connection, [row.game_id for row in unpaired.values()]).values()})
        )
        ids = {index: row.game_id for index, row in unpaired.items() if index not in others}
    return _Pairs(own, others, ids, order_play_times(rows, own, others))


def _pair_by_id(rows: Mapping[int, SheetGame], games: Iterable[ImportedGame]) -> dict[int, ImportedGame]:
    """Pair rows with games by their ids."""
    by_id = {game.game_id: game for game in games}
    return {index: by_id[row.game_id] for index, row in rows.items() if row.game_id in by_id}


def _find_doubt(
    name: str, imported: list[ImportedGame], vanished: list[ImportedGame], ranges: Ranges
) -> Refused | None:
    """Return the reason to doubt a sheet: most games of an import, or of all its imports, have vanished."""
    totals, lost = (Counter[int | None](), Counter[int | None]())
    for games, counted in ((imported, totals), (vanished, lost)):
        for game in games:
            counted.update(() if game.base.voided else (None, ranges.import_of(game.position)))
    for key, number in totals.items():
        if number >= IMPORT_GAMES and lost[key] * 2 > number:
            message = f"{lost[key]:,} of {number:,} games that {'imports' if key is None else 'an import'} of {name}"
            return Refused(
                "another-sheet",
                f"{message} recorded are no longer in it: is it another sheet, or was it cleared? Another sheet needs "
                "another name; if they are to be voided, answer at a terminal, without --yes",
            )
    return None


@dataclass(frozen=True)
class _ChangeCollector:
    """A collector of the entries and differences that follow from each game of a sheet."""

    sync: Sync
    file: str
    people: Identities
    reason: str
    decided_at: str

    def void(self, game: ImportedGame) -> None:
        """Void a game that is no longer in the sheet."""
        if game.now.voided:
            return
        if self._is_touched(game):
            self._refuse(game, None)
            return
        item = Item(self.file, 0, Refused("bad-value", ""), None)
        self._decide("game.voided", game, item, {})
        self.sync.differences.append(SheetDifference("vanished", game.game_id, None, game.now, None))

    def change(self, row: SheetGame, game: ImportedGame, played_at: int) -> None:
        """Correct or reinstate an imported game that the sheet still has, with its time of play."""
        now, there = game.now, self._current_likeness(game)
        is_edited = game.base.voided or not row.likeness.equals(game.likeness)
        agrees = not now.voided and row.likeness.equals(there)
        if self._is_touched(game) and not agrees:
            if is_edited:
                self._refuse(game, row)
            else:
                self.sync.otherwise.append(game.game_id)
            return
        if now.voided:
            self._decide("game.reinstated", game, row.item, {})
        differs, is_moved = not row.likeness.equals(there), played_at != now.occurred_at
        if differs or is_moved:
            new = restore_recorded_ids({**row.data, "game_id": game.game_id}, now, self.people) if differs else now.data
            dated = {"occurred_at": format_instant(played_at)} if is_moved else {}
            self._decide("game.corrected", game, row.item, {"game": {**new, **dated}})
        what: What = "returned" if now.voided else "changed" if differs else "reordered"
        if now.voided or differs or is_moved:
            self.sync.differences.append(SheetDifference(what, game.game_id, row.item.line, now, row))
        else:
            self.sync.same += 1

    def leave(self, row: SheetGame, game: ImportedGame) -> None:
        """Leave a game that is recorded from elsewhere: it is refused later unless it is equal."""
        if not game.now.voided and row.likeness.equals(self._current_likeness(game)):
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

    def _current_likeness(self, game: ImportedGame) -> Likeness:
        """Return the likeness of a game as it now is in the ledger."""
        return (
            game.likeness
            if game.now is game.base
            else describe_likeness(game.now.data, game.now.occurred_at, self.people)
        )

    def _is_touched(self, game: ImportedGame) -> bool:
        """Tell whether a game was changed in the ledger since the last import of its sheet."""
        if game.now is game.base:
            return False
        now = self._current_likeness(game)
        return (game.now.voided, game.now.occurred_at, now.says) != (
            game.base.voided,
            game.base.occurred_at,
            game.likeness.says,
        )

    def _refuse(self, game: ImportedGame, row: SheetGame | None) -> None:
        """Refuse a game that ledger and sheet have changed differently."""
        recorded = self.people.present(game.now.data)
        there, here = describe_both(recorded, recorded if row is None else self.people.present(row.data))
        there = "voided" if game.now.voided else there
        here = "not there any more" if row is None else here
        message = (
            f"{quote(game.game_id)} was changed in the ledger at position {game.now.last.position} ({there}), and "
            f"since in the sheet ({here}); make one say what the other does: ratings correct, void, reinstate, or edit "
            "it"
        )
        line = None if row is None else row.item.line
        self.sync.entries.append(Rejection("changed-in-both", message, self.file, line))

    def _decide(self, type_name: str, game: ImportedGame, item: Item, more: Mapping[str, Any]) -> None:
        """Add a decision about a game."""
        data = {"game_id": game.game_id, "reason": self.reason, **more}
        event = {"type": type_name, "occurred_at": self.decided_at, "data": data}
        self.sync.entries.append(item._replace(event=event, rows_of=None))
        self.sync.seen_events[f"game:{game.game_id}"] = game.now.last.event_id
