"""An edited sheet beside what it gave before: its new, changed, vanished and returned games, as events that say so.

    what the sheet gave   the sheet now     the ledger now    so
    1 anna, 2 ben         1 ben, 2 anna     1 anna, 2 ben     game.corrected
    1 anna, 2 ben         1 anna, 2 ben     1 ben, 2 anna     nothing: somebody corrected it, and the sheet says no more
    1 anna, 2 ben         1 ben, 2 anna     1 ben, 2 anna     nothing: it is corrected in both
    1 anna, 2 ben         1 ben, 2 anna     1 anna, 2 cleo    refused: it is changed in both

What a sheet gave is what the imports under its name appended; games from elsewhere it neither changes nor voids. Then
its games count in its order, as if it were imported afresh: those of one time follow each other by position, so that an
older one behind a new one is moved by a microsecond.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.batches import batch_name, name_of_original
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
from ratings_ledger.ledger.validation.batches import recorded_batches
from ratings_ledger.ledger.validation.identities import Identities, identities
from ratings_ledger.ledger.validation.repeated_games import describe_result

# an import of so many games, most of which have vanished, may have been of another sheet
IMPORT_GAMES = 10
# how many names are told to somebody whose table has another
LAST_NAMES = 3

What = Literal["new", "changed", "vanished", "returned", "reordered"]


class SheetDifference(NamedTuple):
    """A game that is otherwise in a sheet: as the ledger has it and as the sheet does, each unless it has it not."""

    what: What
    game_id: str
    line: int | None
    there: RevisedGame | None
    here: SheetGame | None


@dataclass
class Sync:
    """What a sheet asks for: entries to take, what differs, and by subject the event that a decision was based on.

    `same` counts the games of which nothing differs; `otherwise` are those that were changed in the ledger alone;
    `doubt` is why a person has to look, and `still` refuses what was imported meanwhile.
    """

    name: str
    precondition: Callable[[Connection], None]
    is_first: bool
    doubt: Refused | None = None
    entries: list[Entry] = field(default_factory=list)
    differences: list[SheetDifference] = field(default_factory=list)
    looked_at: dict[str, str] = field(default_factory=dict)
    same: int = 0
    otherwise: list[str] = field(default_factory=list)

    @property
    def is_decision(self) -> bool:
        """Tell whether games that are recorded would be changed, voided or reinstated."""
        return any(one.what != "new" for one in self.differences)


def unconfirmed_refusal(found: Sync) -> Refused:
    """Return the refusal of what somebody has to agree to first."""
    number = sum(one.what != "new" for one in found.differences)
    told = f"{count(number, 'recorded game')} would be changed: --yes records it, --dry-run shows it"
    return Refused("not-confirmed", told)


class _Sheet(NamedTuple):
    """What is in a sheet: its games, its columns, what else is to be taken or told, and how many rows repeat a game.

    It is whole unless something of it cannot be read.
    """

    rows: dict[int, SheetGame]
    columns: CsvColumns
    entries: list[Entry]
    again: int
    is_whole: bool


class _Pairs(NamedTuple):
    """Which games the rows of a sheet are: those that it gave, others, and what the ids of new ones will be."""

    given: dict[int, ImportedGame]
    others: dict[int, ImportedGame]
    new: dict[int, str]
    times: dict[int, int]


def compare_sheet(
    connection: Connection, file: str, options: TableOptions, reason: str | None, decided_at: int
) -> Sync:
    """Return what a sheet asks for, beside what all imports under its name gave."""
    name, people = _imported_name(connection, batch_name(file)), identities(connection)
    sheet = _read(file, options, people)
    ranges = imported_ranges(connection, name, sheet.columns.sheet)
    decisions = decisions_by_game(connection)
    given = imported_games(connection, ranges, decisions, people)

    def recorded(positions: set[int]) -> list[ImportedGame]:
        known = {one.position for one in given}
        return recorded_games(connection, positions - known, decisions, people)

    pairs = _paired(connection, sheet, given, recorded)

    def still(connection: Connection) -> None:
        if imported_ranges(connection, name, sheet.columns.sheet).each != ranges.each:
            raise ChangedMeanwhile("changed-meanwhile", f"{name} was imported meanwhile; compare it again")

    found = Sync(name, still, not given, entries=[*sheet.entries], same=sheet.again)
    if found.is_first and sheet.rows:
        found.entries.append(FileNote(file, _nothing_told(connection, name, sheet.columns.sheet)))
    elif name != batch_name(file):
        found.entries.append(FileNote(file, f"compared with what was imported as {quote(name)}, of which it is a copy"))
    asking = _Asking(found, file, people, f"edited in {name}" if reason is None else reason, format_instant(decided_at))
    kept = {one.position for one in pairs.given.values()}
    gone = [one for one in given if one.position not in kept and not one.base.voided]
    # what cannot be read may be one of them
    for one in gone if sheet.is_whole else ():
        asking.void(one)
    found.doubt = _doubt(name, given, gone, ranges)
    for index, row in sheet.rows.items():
        if index in pairs.given:
            asking.change(row, pairs.given[index], pairs.times[index])
        elif index in pairs.others:
            asking.leave(row, pairs.others[index])
    for index in sorted(pairs.new, key=pairs.times.__getitem__):
        asking.record(sheet.rows[index], pairs.new[index], pairs.times[index])
    return found


def _imported_name(connection: Connection, name: str) -> str:
    """Under which name a file was imported: its own, or else that of the file of which it is a copy."""
    names = [one.name for one in reversed(recorded_batches(connection))]
    if name in names:
        return name
    return next((one for one in names if name_of_original(one) == name_of_original(name)), name)


def _nothing_told(connection: Connection, name: str, sheet: str | None) -> str:
    """Return what to do about a table of which nothing is known."""
    what = "this name" if sheet is None else f"this name from the sheet {quote(sheet)}"
    told = f"nothing was imported under {what} before, so there is nothing to compare"
    batches = recorded_batches(connection)
    sheets = dict.fromkeys(quote(one.sheet) for one in batches if one.name == name and one.sheet is not None)
    if sheet is not None and sheets:
        places = " and ".join(sheets)
        return f"{told}; {csv_item(name)} was imported from {places}; if that is this sheet, name it so again"
    names = list(dict.fromkeys(one.name for one in reversed(batches)))[:LAST_NAMES]
    if not names:
        return told
    listed = ", ".join(map(quote, names))
    return f"{told}; imported last: {listed}; if it is one of these, give the file that name"


def _read(file: str, options: TableOptions, people: Identities) -> _Sheet:
    """Return what is in a sheet."""
    columns = [CsvColumns((), (), {})]
    rows, by_id = dict[int, SheetGame](), dict[str, SheetGame]()
    entries, again, is_whole = list[Entry](), 0, True
    for entry in read_items(file, options._replace(found=columns.append)):
        if not isinstance(entry, Item):
            entries += [] if isinstance(entry, Progress) else [entry]
            is_whole &= not isinstance(entry, Rejection)
            continue
        if not entry.table:
            told = "--sync compares tables; events of JSON Lines have ids, and say themselves what they change"
            entries.append(Rejection("not-a-table", told, file, entry.line))
            return _Sheet({}, columns[-1], entries, 0, False)
        row = _sheet_game(entry, people)
        first = None if row is None else by_id.setdefault(row.game_id, row)
        if row is None:
            entries.append(entry)
            is_whole = False
        elif first is row:
            rows[len(rows)] = row
        elif first is not None and first.likeness == row.likeness:
            again += 1
        else:
            entries.append(_twice(row))
            is_whole = False
    return _Sheet(rows, columns[-1], entries, again, is_whole)


def _sheet_game(item: Item, people: Identities) -> SheetGame | None:
    """Return a game of a sheet; None if it cannot be one, which is told when it is taken."""
    try:
        if isinstance(item.event, Refused):
            return None
        draft, data = read_draft(item.event)
    except Refused:
        return None
    if draft.type != "game.recorded":
        return None
    # which id it gets is decided here
    return SheetGame(item._replace(is_numbered=False), data, describe_likeness(data, draft.occurred_at, people))


def _twice(row: SheetGame) -> Rejection:
    """Return the refusal of a game that a sheet has with another content already."""
    if row.item.rows_of is not None:
        return rows_apart_rejection(row.game_id)._replace(file=row.item.file, line=row.item.line)
    told = f"the sheet has another game with the id {quote(row.game_id)}; each needs an id of its own"
    return Rejection("id-conflict", told, row.item.file, row.item.line)


def _paired(
    connection: Connection, sheet: _Sheet, given: list[ImportedGame], recorded: Callable[[set[int]], list[ImportedGame]]
) -> _Pairs:
    """Return which games the rows of a sheet are; `recorded` reads those at positions that the sheet did not give."""
    rows, is_numbered = sheet.rows, sheet.columns.is_numbered
    own = match_rows(rows, given, EDITED) if is_numbered else _with_ids(rows, given)
    left = {index: row for index, row in rows.items() if index not in own}
    if is_numbered:
        days = Counter(row.day for row in rows.values())
        taken, free = find_numbers(connection, days, Counter(row.day for row in left.values()))
        others = match_rows(left, (one for one in recorded({*taken.values()}) if not one.now.voided), ELSEWHERE)
        ids = {index: next(free[row.day]) for index, row in left.items() if index not in others}
    else:
        others = _with_ids(
            left, recorded({*first_positions(connection, [row.game_id for row in left.values()]).values()})
        )
        ids = {index: row.game_id for index, row in left.items() if index not in others}
    return _Pairs(own, others, ids, order_play_times(rows, own, others))


def _with_ids(rows: Mapping[int, SheetGame], games: Iterable[ImportedGame]) -> dict[int, ImportedGame]:
    """Return the games that rows are, by their ids."""
    by_id = {one.game_id: one for one in games}
    return {index: by_id[row.game_id] for index, row in rows.items() if row.game_id in by_id}


def _doubt(name: str, given: list[ImportedGame], gone: list[ImportedGame], ranges: Ranges) -> Refused | None:
    """Return why a sheet may be another than before: most of an import, or of all that it gave, is no longer there."""
    had, lost = (Counter[int | None](), Counter[int | None]())
    for games, counted in ((given, had), (gone, lost)):
        for one in games:
            counted.update(() if one.base.voided else (None, ranges.import_of(one.position)))
    for key, number in had.items():
        if number >= IMPORT_GAMES and lost[key] * 2 > number:
            told = f"{lost[key]:,} of {number:,} games that {'imports' if key is None else 'an import'} of {name}"
            return Refused(
                "another-sheet",
                f"{told} recorded are not in it now: is it another sheet, or was it cleared? Another sheet needs "
                "another name; if they are to be voided, answer at a terminal, without --yes",
            )
    return None


@dataclass(frozen=True)
class _Asking:
    """Adds what follows from a game to what a sheet asks for."""

    found: Sync
    file: str
    people: Identities
    reason: str
    decided_at: str

    def void(self, one: ImportedGame) -> None:
        """A game is no longer in the sheet."""
        if one.now.voided:
            return
        if self._is_touched(one):
            self._refuse(one, None)
            return
        item = Item(self.file, 0, Refused("bad-value", ""), None)
        self._decide("game.voided", one, item, {})
        self.found.differences.append(SheetDifference("vanished", one.game_id, None, one.now, None))

    def change(self, row: SheetGame, one: ImportedGame, played_at: int) -> None:
        """A game that the sheet gave is in it, to be played at a time."""
        now, there = one.now, self._as_it_is(one)
        is_edited = one.base.voided or not row.likeness.says_as(one.likeness)
        agrees = not now.voided and row.likeness.says_as(there)
        if self._is_touched(one) and not agrees:
            if is_edited:
                self._refuse(one, row)
            else:
                self.found.otherwise.append(one.game_id)
            return
        if now.voided:
            self._decide("game.reinstated", one, row.item, {})
        differs, is_moved = not row.likeness.says_as(there), played_at != now.occurred_at
        if differs or is_moved:
            new = restore_recorded_ids({**row.data, "game_id": one.game_id}, now, self.people) if differs else now.data
            dated = {"occurred_at": format_instant(played_at)} if is_moved else {}
            self._decide("game.corrected", one, row.item, {"game": {**new, **dated}})
        what: What = "returned" if now.voided else "changed" if differs else "reordered"
        if now.voided or differs or is_moved:
            self.found.differences.append(SheetDifference(what, one.game_id, row.item.line, now, row))
        else:
            self.found.same += 1

    def leave(self, row: SheetGame, other: ImportedGame) -> None:
        """A game of the sheet is recorded, but not from there: it is refused unless it is the same."""
        if not other.now.voided and row.likeness.says_as(self._as_it_is(other)):
            self.found.same += 1
        else:
            self._take(row, other.game_id, row.likeness.occurred_at)

    def record(self, row: SheetGame, game_id: str, played_at: int) -> None:
        """A game is new."""
        self._take(row, game_id, played_at)
        self.found.differences.append(SheetDifference("new", game_id, row.item.line, None, row))

    def _take(self, row: SheetGame, game_id: str, played_at: int) -> None:
        event = {
            "type": "game.recorded", "occurred_at": format_instant(played_at), "data": {**row.data, "game_id": game_id}
        }  # fmt: skip
        rows_of = None if row.item.rows_of is None else game_id
        self.found.entries.append(row.item._replace(event=event, rows_of=rows_of))

    def _as_it_is(self, one: ImportedGame) -> Likeness:
        """Return what the ledger tells of a game."""
        return (
            one.likeness if one.now is one.base else describe_likeness(one.now.data, one.now.occurred_at, self.people)
        )

    def _is_touched(self, one: ImportedGame) -> bool:
        """Tell whether somebody has changed a game since its sheet last gave it."""
        if one.now is one.base:
            return False
        now = self._as_it_is(one)
        return (one.now.voided, one.now.occurred_at, now.says) != (
            one.base.voided,
            one.base.occurred_at,
            one.likeness.says,
        )

    def _refuse(self, one: ImportedGame, row: SheetGame | None) -> None:
        """Refuse a game of which ledger and sheet have become two different things."""
        there = "voided" if one.now.voided else describe_result(self.people.present(one.now.data))
        here = "not there any more" if row is None else describe_result(self.people.present(row.data))
        told = (
            f"{quote(one.game_id)} was changed in the ledger at position {one.now.last.position} ({there}), and "
            f"since in the sheet ({here}); make one say what the other does: ratings correct, void, reinstate, or edit "
            "it"
        )
        line = None if row is None else row.item.line
        self.found.entries.append(Rejection("changed-in-both", told, self.file, line))

    def _decide(self, type_name: str, one: ImportedGame, item: Item, more: Mapping[str, Any]) -> None:
        """Add a decision about a game."""
        data = {"game_id": one.game_id, "reason": self.reason, **more}
        event = {"type": type_name, "occurred_at": self.decided_at, "data": data}
        self.found.entries.append(item._replace(event=event, rows_of=None))
        self.found.looked_at[f"game:{one.game_id}"] = one.now.last.event_id
