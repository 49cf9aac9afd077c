"""Where validated drafts wait until the whole input has proved good: a temporary database that the system forgets.

It lets an import of any size be checked completely, duplicates included, before the first event is appended, and then
be appended without reading the files again.
"""

import json
import marshal
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ledger.canonical import dump
from ledger.errors import StoreUnavailable
from ledger.events import Draft
from ledger.lineage import Known, known
from ledger.records import Row
from ledger.store import known_event

_COLUMNS = "event_id, type, schema_version, subject, occurred_at, data, recorded_by, supersedes"
_UNWRITTEN_MAX = 5_000
# games are found by their ids, which saves an index of all of them
_FOUND_BY_SUBJECT = "(supersedes IS NOT NULL OR type LIKE 'league.%' OR type LIKE 'list.%')"


class Waiting(NamedTuple):
    """A draft that waits, with the place it came from."""

    draft: Draft
    file: str
    line: int
    rows: Any  # the rows of a CSV file that it was put together from, else None


class _Temporary(sqlite3.Connection):
    """A private database that says what to do when its folder is full."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        try:
            return super().execute(*arguments)
        except sqlite3.OperationalError as error:
            raise _no_room(error) from error

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        try:
            return super().executemany(*arguments)
        except sqlite3.OperationalError as error:
            raise _no_room(error) from error


def _no_room(error: sqlite3.OperationalError) -> StoreUnavailable:
    return StoreUnavailable(f"the temporary folder has no room for the import: {error}; set TMPDIR")


def _temporary(script: str) -> _Temporary:
    # an empty name is a private file that SQLite deletes by itself, also after a crash
    database = sqlite3.connect("", isolation_level=None, factory=_Temporary)
    database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {script} BEGIN")
    return database


class Spool:
    """Drafts in order, found again by id or by game.

    They are written many at a time, before the first question that needs them in the database.
    """

    def __init__(self) -> None:
        self._database = _temporary(
            "PRAGMA cache_size = -32768;"
            f"CREATE TABLE waiting (number INTEGER PRIMARY KEY, {_COLUMNS}, file, line, rows);"
            "CREATE UNIQUE INDEX waiting_id ON waiting (event_id);"
            "CREATE INDEX waiting_game ON waiting (subject) WHERE type = 'game.recorded' AND event_id <> subject;"
            f"CREATE INDEX waiting_line ON waiting (subject) WHERE {_FOUND_BY_SUBJECT};"
            "CREATE INDEX waiting_successor ON waiting (supersedes) WHERE supersedes IS NOT NULL;"
        )
        self.count = 0
        self._unwritten: list[tuple[Any, ...]] = []
        # ids and games: of the unwritten drafts, and those that nothing in the database has
        self._unwritten_names: set[str] = set()
        self._unused_names: set[str] = set()

    def close(self) -> None:
        """Let the system forget it."""
        self._database.close()

    def add(self, draft: Draft, file: str, line: int, rows: Any) -> None:
        """Put a draft at the end. Raises `StoreUnavailable` when the temporary folder is full."""
        self._unwritten.append((*draft, file, line, None if rows is None else marshal.dumps(rows)))
        self._unwritten_names.update(_names(draft))
        self.count += 1
        if len(self._unwritten) >= _UNWRITTEN_MAX:
            self._write()

    def look_ahead(self, drafts: Iterable[Draft]) -> None:
        """Look up at once which of these drafts' ids and games are new, so that `find` need not do it one by one."""
        names = {name for draft in drafts for name in _names(draft)}
        wanted = json.dumps(list(names))
        for taken in ("event_id", "subject"):
            only = "" if taken == "event_id" else " AND type = 'game.recorded' AND event_id <> subject"
            question = f"SELECT {taken} FROM waiting WHERE {taken} IN (SELECT value FROM json_each(?)){only}"
            names.difference_update(row[0] for row in self._ask(question, wanted))
        self._unused_names = names

    def find_id(self, event_id: str) -> Waiting | None:
        """The waiting draft with this id, or None."""
        return self._one("event_id = ?", event_id)

    def find(self, draft: Draft) -> Waiting | None:
        """The waiting draft with the same id, or of the same game, or None."""
        names = _names(draft)
        if self._unused_names.issuperset(names) and self._unwritten_names.isdisjoint(names):
            return None
        found = self.find_id(draft.event_id)
        return self._recorded(draft.subject) if found is None and draft.type == "game.recorded" else found

    def _recorded(self, subject: str) -> Waiting | None:
        """The waiting draft that records a game, under whatever id."""
        found = self._one("type = 'game.recorded' AND event_id <> subject AND subject = ?", subject)
        return found or self._one("event_id = ? AND subject = event_id AND type = 'game.recorded'", subject)

    def about(self, subject: str) -> list[Known]:
        """The waiting events of a game, a league or a list, in order (of `lineage.Events`)."""
        recorded = self._recorded(subject)
        later = self._ask(
            f"SELECT {_COLUMNS} FROM waiting WHERE {_FOUND_BY_SUBJECT} AND subject = ? ORDER BY number", subject
        )
        return [known(draft) for draft in [*([recorded.draft] if recorded else []), *(Draft(*row) for row in later)]]

    def event(self, event_id: str) -> Known | None:
        """The waiting event with this id."""
        found = self.find_id(event_id)
        return None if found is None else known(found.draft)

    def successor(self, event_id: str) -> Known | None:
        """The waiting event that supersedes the one with this id."""
        found = self._one("supersedes = ?", event_id)
        return None if found is None else known(found.draft)

    def naming(self, names: Iterable[str]) -> Iterator[Known]:
        """The waiting events whose text holds one of these names as a whole string, in order."""
        texts = [dump(name) for name in names]
        holds = " OR ".join(["instr(data, ?) > 0"] * len(texts))
        rows = self._ask(f"SELECT {_COLUMNS} FROM waiting WHERE {holds} ORDER BY number", *texts)
        return (known(Draft(*row)) for row in rows)

    def remove(self, event_id: str) -> None:
        """Take a draft out again."""
        self.count -= self._ask("DELETE FROM waiting WHERE event_id = ?", event_id).rowcount

    def chunks(self, size: int) -> Iterator[Sequence[Waiting]]:
        """The drafts in order, at most `size` at a time."""
        after = 0
        while True:
            rows = self._ask(
                f"SELECT {_COLUMNS}, file, line, rows, number FROM waiting WHERE number > ? ORDER BY number LIMIT ?",
                after, size,
            ).fetchall()  # fmt: skip
            if not rows:
                return
            yield [_waiting(row) for row in rows]
            after = rows[-1][-1]

    def _one(self, condition: str, value: str) -> Waiting | None:
        row = self._ask(f"SELECT {_COLUMNS}, file, line, rows FROM waiting WHERE {condition}", value).fetchone()
        return None if row is None else _waiting(row)

    def _ask(self, statement: str, *values: Any) -> sqlite3.Cursor:
        self._write()
        return self._database.execute(statement, values)

    def _write(self) -> None:
        if self._unwritten:
            marks = ",".join("?" * len(self._unwritten[0]))
            statement = f"INSERT INTO waiting ({_COLUMNS}, file, line, rows) VALUES ({marks})"
            self._database.executemany(statement, self._unwritten)
            self._unused_names -= self._unwritten_names
            self._unwritten.clear()
            self._unwritten_names.clear()


def _names(draft: Draft) -> tuple[str, ...]:
    """What nothing else that waits may have: an id, and the game that is recorded."""
    return (draft.event_id, draft.subject) if draft.type == "game.recorded" else (draft.event_id,)


def _waiting(row: tuple[Any, ...]) -> Waiting:
    return Waiting(Draft(*row[:8]), row[8], row[9], None if row[10] is None else marshal.loads(row[10]))


class Lines:
    """The events of a restore, as far as later ones may supersede them; as many as an export of any size has."""

    def __init__(self) -> None:
        self._database = _temporary(
            "CREATE TABLE lines (number INTEGER PRIMARY KEY, event_id, type, subject, occurred_at, supersedes, record);"
            "CREATE UNIQUE INDEX lines_id ON lines (event_id);"
            "CREATE UNIQUE INDEX lines_recorded ON lines (subject) WHERE type = 'game.recorded';"
            "CREATE INDEX lines_later ON lines (subject) WHERE supersedes IS NOT NULL;"
            "CREATE UNIQUE INDEX lines_successor ON lines (supersedes) WHERE supersedes IS NOT NULL;"
        )

    def close(self) -> None:
        """Let the system forget it."""
        self._database.close()

    def add(self, row: Row) -> bool:
        """Take a row in; False if its id, its game or what it supersedes occurred before."""
        # only what supersedes is read again for what it says
        record = None if row.supersedes is None else row.record
        values = (row.position, row.event_id, row.type, row.subject, row.occurred_at, row.supersedes, record)
        insert = "INSERT OR IGNORE INTO lines VALUES (?,?,?,?,?,?,?)"
        return self._database.execute(insert, values).rowcount == 1

    def about(self, subject: str) -> list[Known]:
        """The events of a game, in order (of `lineage.Events`)."""
        recorded = self._found("type = 'game.recorded' AND subject = ?", subject)
        return [*recorded, *self._found("supersedes IS NOT NULL AND subject = ? ORDER BY number", subject)]

    def event(self, event_id: str) -> Known | None:
        """The event with this id."""
        return next(iter(self._found("event_id = ?", event_id)), None)

    def successor(self, event_id: str) -> Known | None:
        """The event that supersedes the one with this id."""
        return next(iter(self._found("supersedes = ?", event_id)), None)

    def _found(self, condition: str, value: str) -> list[Known]:
        rows = self._database.execute(
            f"SELECT event_id, type, occurred_at, number, record FROM lines WHERE {condition}", (value,)
        )
        return [
            Known(event_id, type_name, occurred_at, {}, number) if record is None else known_event(number, record)
            for event_id, type_name, occurred_at, number, record in rows
        ]
