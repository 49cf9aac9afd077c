"""Where validated drafts wait until the whole input has proved good: a temporary database that the system deletes.

An import of any size can thus be checked completely, duplicates included, before the first event is appended, and then
be appended without reading the files again.
"""

import json
import marshal
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count, islice
from operator import itemgetter
from typing import Any

from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.ledger.events.canonical import dump
from ratings_ledger.ledger.events.records import EventRow
from ratings_ledger.ledger.events.revisions import Column, EventLookup, KnownEvent, to_known_event
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.intake.intake import WaitingDraft, WaitingDrafts
from ratings_ledger.ledger.store.log import read_known_event

_UNWRITTEN_MAX = 5_000
# how the numbers of drafts are found; about a subject, of those that are not found by an id made from it
_NUMBERS: dict[Column, str] = {
    "subject": "SELECT number FROM subjects WHERE NOT recorded AND subject = ? ORDER BY number",
    "event_id": "SELECT number FROM ids WHERE event_id = ?",
    "supersedes": "SELECT number FROM successors WHERE supersedes = ?",
}


@contextmanager
def _with_room() -> Iterator[None]:
    """Say what to do if the folder of temporary files is full."""
    try:
        yield
    except sqlite3.OperationalError as error:
        told = f"the temporary folder has no room for the import: {error}; set TMPDIR"
        raise StoreUnavailable(told, "no-space") from error


def _temporary(script: str) -> sqlite3.Connection:
    # an empty name is a private file that SQLite deletes by itself, even after a crash
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {script} BEGIN")
    return database


class Spool(WaitingDrafts):
    """Drafts in order, looked up by id, by game and by what they supersede.

    They are written a hundred per row, and as many rows at a time as have gathered when something is looked up.
    """

    def __init__(self) -> None:
        self._database = _temporary(
            "PRAGMA cache_size = -32768;"
            "CREATE TABLE drafts (first INTEGER PRIMARY KEY, hundred BLOB);"
            "CREATE TABLE ids (event_id PRIMARY KEY, number) WITHOUT ROWID;"
            # games are found by their ids, which saves storing their names
            "CREATE TABLE subjects (subject, recorded, number, PRIMARY KEY (subject, recorded, number)) WITHOUT ROWID;"
            "CREATE TABLE successors (supersedes, number, PRIMARY KEY (supersedes, number)) WITHOUT ROWID;"
        )
        self._count = 0
        self._next = 0
        self._removed: set[int] = set()
        self._unwritten: list[tuple[Any, ...]] = []
        # ids and games: those of the unwritten drafts, and those that nothing in the database has
        self._unwritten_names: set[str] = set()
        self._unused_names: set[str] = set()

    @property
    def count(self) -> int:
        """Return how many drafts wait."""
        return self._count

    def __iter__(self) -> Iterator[WaitingDraft]:
        return self._all(self._ask("SELECT * FROM drafts ORDER BY first"))

    def close(self) -> None:
        """Let the system delete it."""
        self._database.close()

    def add(self, draft: Draft, file: str, line: int, rows: Any) -> None:
        """Append a draft. Raises `StoreUnavailable` when the temporary folder is full."""
        self._unwritten.append((tuple(draft), file, line, rows))
        self._unwritten_names.update(_names(draft))
        self._count += 1
        if len(self._unwritten) >= _UNWRITTEN_MAX:
            self._write()

    def look_ahead(self, drafts: Iterable[Draft]) -> None:
        """Look up in one go which of these drafts' ids and games are new, so that `find` need not do it one by one."""
        names = {name for draft in drafts for name in _names(draft)}
        wanted = json.dumps(list(names))
        for taken in ("event_id FROM ids WHERE event_id", "subject FROM subjects WHERE recorded AND subject"):
            found = self._ask(f"SELECT {taken} IN (SELECT value FROM json_each(?))", wanted)
            names.difference_update(row[0] for row in found)
        self._unused_names = names

    def find_id(self, event_id: str) -> WaitingDraft | None:
        """Return the waiting draft with this id, or None."""
        return next(self._each(_NUMBERS["event_id"], event_id), None)

    def find(self, draft: Draft) -> WaitingDraft | None:
        """Return the waiting draft with the same id, or of the same game, or None."""
        names = _names(draft)
        if self._unused_names.issuperset(names) and self._unwritten_names.isdisjoint(names):
            return None
        found = self.find_id(draft.event_id)
        return self._recorded(draft.subject) if found is None and draft.type == "game.recorded" else found

    def _recorded(self, subject: str) -> WaitingDraft | None:
        """Return the waiting draft that records a game, under whatever id."""
        named_otherwise = self._each("SELECT number FROM subjects WHERE recorded AND subject = ?", subject)
        found = next(named_otherwise, None) or self.find_id(subject)
        of_game = found is not None and (found.draft.type, found.draft.subject) == ("game.recorded", subject)
        return found if of_game else None

    def where(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Return the waiting events with this value in a column, in order."""
        found = self._each(_NUMBERS[column], value)
        if column == "subject" and (recorded := self._recorded(value)) is not None:
            found = chain((recorded,), found)
        return (to_known_event(waiting.draft) for waiting in found)

    def naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the waiting events whose text holds one of these names as a whole string, in order."""
        texts = [dump(name) for name in names]
        holds = " OR ".join(["instr(hundred, ?) > 0"] * len(texts))
        rows = self._ask(f"SELECT * FROM drafts WHERE {holds} ORDER BY first", *(text.encode() for text in texts))
        for waiting in self._all(rows):
            if any(text in waiting.draft.data for text in texts):
                yield to_known_event(waiting.draft)

    def remove(self, event_id: str) -> None:
        """Remove a draft."""
        number = self._ask(_NUMBERS["event_id"], event_id).fetchone()
        if number is not None:
            self._ask("DELETE FROM ids WHERE event_id = ?", event_id)
            self._removed.add(number[0])
            self._count -= 1

    def chunks(self, size: int) -> Iterator[Sequence[WaitingDraft]]:
        """Return the drafts in order, at most `size` at a time."""
        waiting = iter(self)
        return iter(lambda: list(islice(waiting, size)), [])

    def _all(self, hundreds: Iterable[tuple[int, bytes]]) -> Iterator[WaitingDraft]:
        for first, hundred in hundreds:
            found = list(map(_waiting, marshal.loads(hundred)))
            if self._removed:
                found = [waiting for number, waiting in enumerate(found, first) if number not in self._removed]
            yield from found

    def _each(self, statement: str, value: str) -> Iterator[WaitingDraft]:
        """Yield the drafts whose numbers a statement gives."""
        for (number,) in self._ask(statement, value).fetchall():
            if number not in self._removed:
                before = "SELECT * FROM drafts WHERE first <= ? ORDER BY first DESC LIMIT 1"
                first, hundred = self._ask(before, number).fetchone()
                yield _waiting(marshal.loads(hundred)[number - first])

    @_with_room()
    def _ask(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if self._unwritten:
            self._write()
        return self._database.execute(statement, values)

    @_with_room()
    def _write(self) -> None:
        rows, first = self._unwritten, self._next
        hundreds = ((first + at, _packed(rows[at : at + 100])) for at in range(0, len(rows), 100))
        self._database.executemany("INSERT INTO drafts VALUES (?, ?)", hundreds)
        drafts = [row[0] for row in rows]
        self._database.executemany("INSERT INTO ids VALUES (?, ?)", zip(map(itemgetter(0), drafts), count(first)))
        for number, (event_id, type_name, _, subject, _, _, _, supersedes, _) in enumerate(drafts, first):
            recorded = type_name == "game.recorded" and event_id != subject
            # a plain game is found by its id; everything else, of whatever type, by what it is about
            if recorded or type_name != "game.recorded":
                self._database.execute("INSERT INTO subjects VALUES (?, ?, ?)", (subject, recorded, number))
            if supersedes is not None:
                self._database.execute("INSERT INTO successors VALUES (?, ?)", (supersedes, number))
        self._next += len(rows)
        self._unused_names -= self._unwritten_names
        self._unwritten_names.clear()
        rows.clear()


def _packed(rows: list[Any]) -> bytes:
    """Return rows of plain values as bytes. Raises `MemoryError`."""
    try:
        return marshal.dumps(rows)
    except ValueError:  # what `marshal` says of any object where it gets no memory
        raise MemoryError from None


def _names(draft: Draft) -> tuple[str, ...]:
    """Return what no other waiting draft may have: an id, and a recorded game."""
    return (draft.event_id, draft.subject) if draft.type == "game.recorded" else (draft.event_id,)


def _waiting(values: tuple[Any, ...]) -> WaitingDraft:
    draft, file, line, rows = values
    return WaitingDraft(Draft._make(draft), file, line, rows)


class Lines(EventLookup):
    """The events of a restore, as far as later ones may need them; as many as an export of any size has."""

    def __init__(self) -> None:
        self._database = _temporary(
            "CREATE TABLE lines (number INTEGER PRIMARY KEY, event_id, type, subject, occurred_at, supersedes, record);"
            "CREATE UNIQUE INDEX lines_id ON lines (event_id);"
            "CREATE UNIQUE INDEX lines_recorded ON lines (subject) WHERE type = 'game.recorded';"
            "CREATE INDEX lines_later ON lines (subject) WHERE supersedes IS NOT NULL;"
            "CREATE UNIQUE INDEX lines_successor ON lines (supersedes) WHERE supersedes IS NOT NULL;"
        )

    def close(self) -> None:
        """Let the system delete it."""
        self._database.close()

    @_with_room()
    def add(self, row: EventRow) -> bool:
        """Take a row in; False if its id, its game or what it supersedes occurred before."""
        # only events that supersede something are read again for their content
        record = None if row.supersedes is None else row.record
        values = (row.position, row.event_id, row.type, row.subject, row.occurred_at, row.supersedes, record)
        insert = "INSERT OR IGNORE INTO lines VALUES (?,?,?,?,?,?,?)"
        return self._database.execute(insert, values).rowcount == 1

    def where(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Yield the events with this value in a column, in order; about a subject, those of games."""
        for condition in _CONDITIONS[column]:
            query = f"SELECT event_id, type, occurred_at, number, record FROM lines WHERE {condition}"
            with _with_room():
                rows = self._database.execute(query, (value,)).fetchall()
            for event_id, type_name, occurred_at, number, record in rows:
                if record is None:
                    yield KnownEvent(event_id, type_name, occurred_at, {}, number)
                else:
                    yield read_known_event(number, record)


_CONDITIONS: dict[Column, tuple[str, ...]] = {
    "subject": ("type = 'game.recorded' AND subject = ?", "supersedes IS NOT NULL AND subject = ? ORDER BY number"),
    "event_id": ("event_id = ?",),
    "supersedes": ("supersedes = ?",),
}
