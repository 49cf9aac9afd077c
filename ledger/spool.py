"""Where validated drafts wait until the whole input has proved good: a temporary database that the system forgets.

It lets an import of any size be checked completely, duplicates included, before the first event is appended, and then
be appended without reading the files again.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ledger.errors import StoreUnavailable
from ledger.events import Draft

_COLUMNS = "event_id, type, schema_version, subject, occurred_at, data, recorded_by"


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
            raise StoreUnavailable(f"the temporary folder has no room for the import: {error}; set TMPDIR") from error


def _temporary(script: str) -> _Temporary:
    # an empty name is a private file that SQLite deletes by itself, also after a crash
    database = sqlite3.connect("", isolation_level=None, factory=_Temporary)
    database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {script} BEGIN")
    return database


class Spool:
    """Drafts in order, found again by id or by game."""

    def __init__(self) -> None:
        self._database = _temporary(
            "PRAGMA cache_size = -32768;"
            f"CREATE TABLE waiting (number INTEGER PRIMARY KEY, {_COLUMNS}, file, line, rows);"
            "CREATE UNIQUE INDEX waiting_id ON waiting (event_id);"
            "CREATE INDEX waiting_game ON waiting (subject) WHERE type = 'game.recorded' AND event_id <> subject;"
        )
        self.count = 0

    def close(self) -> None:
        """Let the system forget it."""
        self._database.close()

    def add(self, draft: Draft, file: str, line: int, rows: Any) -> None:
        """Put a draft at the end. Raises `StoreUnavailable` when the temporary folder is full."""
        self._database.execute(
            f"INSERT INTO waiting ({_COLUMNS}, file, line, rows) VALUES (?,?,?,?,?,?,?,?,?,?)",
            (*draft, file, line, None if rows is None else json.dumps(rows)),
        )
        self.count += 1

    def find_id(self, event_id: str) -> Waiting | None:
        """The waiting draft with this id, or None."""
        return self._one("event_id = ?", event_id)

    def find(self, draft: Draft) -> Waiting | None:
        """The waiting draft with the same id, or of the same game, or None."""
        found = self.find_id(draft.event_id)
        if found is None and draft.type == "game.recorded":
            found = self._one("type = 'game.recorded' AND event_id <> subject AND subject = ?", draft.subject)
            if found is None and draft.event_id != draft.subject:
                found = self._one("event_id = ? AND subject = event_id", draft.subject)
        return found

    def remove(self, event_id: str) -> None:
        """Take a draft out again."""
        self.count -= self._database.execute("DELETE FROM waiting WHERE event_id = ?", (event_id,)).rowcount

    def chunks(self, size: int) -> Iterator[Sequence[Waiting]]:
        """The drafts in order, at most `size` at a time."""
        after = 0
        while True:
            rows = self._database.execute(
                f"SELECT number, {_COLUMNS}, file, line, rows FROM waiting WHERE number > ? ORDER BY number LIMIT ?",
                (after, size),
            ).fetchall()
            if not rows:
                return
            yield [_waiting(row[1:]) for row in rows]
            after = rows[-1][0]

    def _one(self, condition: str, value: str) -> Waiting | None:
        row = self._database.execute(
            f"SELECT {_COLUMNS}, file, line, rows FROM waiting WHERE {condition}", (value,)
        ).fetchone()
        return None if row is None else _waiting(row)


def _waiting(row: tuple[Any, ...]) -> Waiting:
    return Waiting(Draft(*row[:7]), row[7], row[8], None if row[9] is None else json.loads(row[9]))


class Names:
    """Names that may occur once each: as many as an import of any size has."""

    def __init__(self) -> None:
        self._database = _temporary("CREATE TABLE names (name TEXT PRIMARY KEY) WITHOUT ROWID;")

    def close(self) -> None:
        """Let the system forget it."""
        self._database.close()

    def __contains__(self, name: str) -> bool:
        return self._database.execute("SELECT 1 FROM names WHERE name = ?", (name,)).fetchone() is not None

    def add(self, name: str) -> bool:
        """Take a name in; whether it is new."""
        return self._database.execute("INSERT OR IGNORE INTO names VALUES (?)", (name,)).rowcount == 1
