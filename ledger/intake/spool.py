"""Store validated drafts in a temporary database until the whole input is checked.

This lets an import of any size check everything, including duplicates, before it appends the first event, although it
reads its files only once. The database deletes itself.
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

# at most 5,000 drafts gather in memory before they are written
_UNWRITTEN_MAX = 5_000
# queries for the numbers of drafts; the one for a subject leaves out the recording of a game (see `_find_recording`)
_NUMBER_QUERIES: dict[Column, str] = {
    "subject": "SELECT number FROM subjects WHERE NOT recorded AND subject = ? ORDER BY number",
    "event_id": "SELECT number FROM ids WHERE event_id = ?",
    "supersedes": "SELECT number FROM successors WHERE supersedes = ?",
}


@contextmanager
def _report_full_folder() -> Iterator[None]:
    """Raise `StoreUnavailable` with a remedy if the folder for temporary files is full."""
    try:
        yield
    except sqlite3.OperationalError as error:
        message = f"the temporary folder has no room for the input: {error}; set TMPDIR to a folder with more space"
        raise StoreUnavailable(message, "no-space") from error


def _open_temporary(script: str) -> sqlite3.Connection:
    # for an empty name, SQLite creates a private file that disappears even after a crash
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {script} BEGIN")
    return database


class Spool(WaitingDrafts):
    """Waiting drafts in order. They can be looked up by id, by game and by the event that they supersede.

    Drafts gather in memory until a lookup, or until there are `_UNWRITTEN_MAX`. A row of the database holds up to a
    hundred drafts.
    """

    def __init__(self) -> None:
        self._database = _open_temporary(
            "PRAGMA cache_size = -32768;"
            "CREATE TABLE drafts (first INTEGER PRIMARY KEY, hundred BLOB);"
            "CREATE TABLE ids (event_id PRIMARY KEY, number) WITHOUT ROWID;"
            # the subject of a recorded game is usually its event id, too, and then not stored here
            "CREATE TABLE subjects (subject, recorded, number, PRIMARY KEY (subject, recorded, number)) WITHOUT ROWID;"
            "CREATE TABLE successors (supersedes, number, PRIMARY KEY (supersedes, number)) WITHOUT ROWID;"
        )
        self._count = 0
        self._next = 0
        self._has_subjects = False
        self._removed: set[int] = set()
        self._unwritten: list[tuple[Any, ...]] = []
        # the ids and subjects of unwritten drafts; and ids and subjects that no written draft has
        self._unwritten_names: set[str] = set()
        self._unused_names: set[str] = set()

    @property
    def count(self) -> int:
        """Return the number of waiting drafts."""
        return self._count

    def __iter__(self) -> Iterator[WaitingDraft]:
        return self._unpack_all(self._query("SELECT * FROM drafts ORDER BY first"))

    def close(self) -> None:
        """Close the database; this deletes it."""
        self._database.close()

    def add(self, draft: Draft, file: str, line: int, rows: Any) -> None:
        """Append a draft. Raises `StoreUnavailable` if the temporary folder is full."""
        self._unwritten.append((tuple(draft), file, line, rows))
        self._unwritten_names.update(_list_unique_names(draft))
        self._count += 1
        if len(self._unwritten) >= _UNWRITTEN_MAX:
            self._write()

    def look_ahead(self, drafts: Iterable[Draft]) -> None:
        """Look up which ids and games of these drafts are unused, so that `find` needs no queries for them."""
        names = {name for draft in drafts for name in _list_unique_names(draft)}
        names_json = json.dumps(list(names))
        for column, source in (("event_id", "ids WHERE"), ("subject", "subjects WHERE recorded AND")):
            if column == "subject" and not self._has_subjects:
                break
            rows = self._query(
                f"SELECT {column} FROM {source} {column} IN (SELECT value FROM json_each(?))", names_json
            )
            names.difference_update(row[0] for row in rows)
        self._unused_names = names

    def find_id(self, event_id: str) -> WaitingDraft | None:
        """Return the waiting draft with this id, or None."""
        return next(self._read_numbered(_NUMBER_QUERIES["event_id"], event_id), None)

    def find(self, draft: Draft) -> WaitingDraft | None:
        """Return the waiting draft with the same id or game, or None."""
        names = _list_unique_names(draft)
        if self._unused_names.issuperset(names) and self._unwritten_names.isdisjoint(names):
            return None
        waiting = self.find_id(draft.event_id)
        return self._find_recording(draft.subject) if waiting is None and draft.type == "game.recorded" else waiting

    def _find_recording(self, subject: str) -> WaitingDraft | None:
        """Return the waiting draft that records a game, under any event id, or None."""
        by_subject = self._read_numbered("SELECT number FROM subjects WHERE recorded AND subject = ?", subject)
        waiting = next(by_subject, None) or self.find_id(subject)
        is_recording = waiting is not None and (waiting.draft.type, waiting.draft.subject) == ("game.recorded", subject)
        return waiting if is_recording else None

    def find_by_column(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Yield the waiting events with this value in a column, in order."""
        matching = self._read_numbered(_NUMBER_QUERIES[column], value)
        if column == "subject" and (recording := self._find_recording(value)) is not None:
            matching = chain((recording,), matching)
        return (to_known_event(waiting.draft) for waiting in matching)

    def find_events_naming(self, names: Iterable[str]) -> Iterator[KnownEvent]:
        """Yield the waiting events whose data contains one of these names as a string, in order."""
        texts = [dump(name) for name in names]
        condition = " OR ".join(["instr(hundred, ?) > 0"] * len(texts))
        rows = self._query(f"SELECT * FROM drafts WHERE {condition} ORDER BY first", *(text.encode() for text in texts))
        for waiting in self._unpack_all(rows):
            if any(text in waiting.draft.data for text in texts):
                yield to_known_event(waiting.draft)

    def remove(self, event_id: str) -> None:
        """Remove a draft."""
        number = self._query(_NUMBER_QUERIES["event_id"], event_id).fetchone()
        if number is not None:
            self._query("DELETE FROM ids WHERE event_id = ?", event_id)
            self._removed.add(number[0])
            self._count -= 1

    def read_chunks(self, size: int) -> Iterator[Sequence[WaitingDraft]]:
        """Yield the drafts in order, at most `size` at a time."""
        waiting = iter(self)
        return iter(lambda: list(islice(waiting, size)), [])

    def _unpack_all(self, hundreds: Iterable[tuple[int, bytes]]) -> Iterator[WaitingDraft]:
        for first, hundred in hundreds:
            drafts = list(map(_to_waiting_draft, marshal.loads(hundred)))
            if self._removed:
                drafts = [waiting for number, waiting in enumerate(drafts, first) if number not in self._removed]
            yield from drafts

    def _read_numbered(self, statement: str, value: str) -> Iterator[WaitingDraft]:
        """Yield the drafts with the numbers that a query returns."""
        for (number,) in self._query(statement, value).fetchall():
            if number not in self._removed:
                query = "SELECT * FROM drafts WHERE first <= ? ORDER BY first DESC LIMIT 1"
                first, hundred = self._query(query, number).fetchone()
                yield _to_waiting_draft(marshal.loads(hundred)[number - first])

    @_report_full_folder()
    def _query(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if self._unwritten:
            self._write()
        return self._database.execute(statement, values)

    @_report_full_folder()
    def _write(self) -> None:
        rows, first = self._unwritten, self._next
        hundreds = ((first + start, _pack(rows[start : start + 100])) for start in range(0, len(rows), 100))
        self._database.executemany("INSERT INTO drafts VALUES (?, ?)", hundreds)
        drafts = [row[0] for row in rows]
        self._database.executemany("INSERT INTO ids VALUES (?, ?)", zip(map(itemgetter(0), drafts), count(first)))
        for number, (event_id, type_name, _, subject, _, _, _, supersedes, _) in enumerate(drafts, first):
            has_other_id = type_name == "game.recorded" and event_id != subject
            # a recorded game whose event id is its subject is looked up by that id, every other event by its subject
            if has_other_id or type_name != "game.recorded":
                self._has_subjects = True
                self._database.execute("INSERT INTO subjects VALUES (?, ?, ?)", (subject, has_other_id, number))
            if supersedes is not None:
                self._database.execute("INSERT INTO successors VALUES (?, ?)", (supersedes, number))
        self._next += len(rows)
        self._unused_names -= self._unwritten_names
        self._unwritten_names.clear()
        rows.clear()


def _pack(rows: list[Any]) -> bytes:
    """Pack rows of plain values as bytes. Raises `MemoryError`."""
    try:
        return marshal.dumps(rows)
    except ValueError:  # `marshal` raises this if memory runs out
        raise MemoryError from None


def _list_unique_names(draft: Draft) -> tuple[str, ...]:
    """Return the names that only one waiting draft may have: its id, and the subject of a recorded game."""
    return (draft.event_id, draft.subject) if draft.type == "game.recorded" else (draft.event_id,)


def _to_waiting_draft(values: tuple[Any, ...]) -> WaitingDraft:
    draft, file, line, rows = values
    return WaitingDraft(Draft._make(draft), file, line, rows)


class RestoredEvents(EventLookup):
    """The events that a restore has read, from an export of any size; only content that later events need is kept."""

    def __init__(self) -> None:
        self._database = _open_temporary(
            "CREATE TABLE lines (number INTEGER PRIMARY KEY, event_id, type, subject, occurred_at, supersedes, record);"
            "CREATE UNIQUE INDEX lines_id ON lines (event_id);"
            "CREATE UNIQUE INDEX lines_recorded ON lines (subject) WHERE type = 'game.recorded';"
            "CREATE INDEX lines_later ON lines (subject) WHERE supersedes IS NOT NULL;"
            "CREATE UNIQUE INDEX lines_successor ON lines (supersedes) WHERE supersedes IS NOT NULL;"
        )

    def close(self) -> None:
        """Close the database; this deletes it."""
        self._database.close()

    @_report_full_folder()
    def add(self, row: EventRow) -> bool:
        """Add a row; return False if an earlier row has its id, records the same game or supersedes the same event."""
        # later events need the content only of superseding events
        record = None if row.supersedes is None else row.record
        values = (row.position, row.event_id, row.type, row.subject, row.occurred_at, row.supersedes, record)
        insert = "INSERT OR IGNORE INTO lines VALUES (?,?,?,?,?,?,?)"
        return self._database.execute(insert, values).rowcount == 1

    def find_by_column(self, column: Column, value: str) -> Iterator[KnownEvent]:
        """Yield the events with this value in a column, in order.

        For a subject, yield only the recording of a game and the events that supersede others.
        """
        for condition in _CONDITIONS[column]:
            query = f"SELECT event_id, type, occurred_at, number, record FROM lines WHERE {condition}"
            with _report_full_folder():
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
