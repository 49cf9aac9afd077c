"""Provide stores for benchmarks: SQLite files, and databases on a PostgreSQL server that runs during the benchmarks.

Both also provide stores for the package `eventsourcing`, which gets its settings from an environment.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from benchmarks import data
from benchmarks.histories import History
from benchmarks.measuring import ROOT, Call, delete_caches, measure

Environment = dict[str, str]


class Store(Protocol):
    """A kind of store."""

    @property
    def name(self) -> str:
        """Return the name of the store in the table."""

    @property
    def raw_inserts(self) -> str:
        """Return the name of the function that inserts rows by hand."""

    def ledger(self, history: History) -> str:
        """Return the URL of a ledger that holds a history."""

    def empty_ledger(self) -> str:
        """Return the URL of a fresh ledger without games."""

    def copied_ledger(self, history: History) -> str:
        """Return the URL of a new copy of a ledger that holds a history; it may be changed."""

    def domain_events(self, history: History) -> Environment:
        """Return the environment of an `eventsourcing` store that holds a history."""

    def empty_domain_events(self) -> Environment:
        """Return the environment of a fresh, empty `eventsourcing` store."""


class SqliteStore(NamedTuple):
    """SQLite files in a folder. Files of histories are kept; scratch files are recreated each time."""

    folder: Path
    name: str = "SQLite"
    raw_inserts: str = "benchmarks.baselines.raw_inserts:into_sqlite"

    def ledger(self, history: History) -> str:
        return data.ledger(self.folder, history)

    def empty_ledger(self) -> str:
        template = data.ledger(self.folder, History(games=0))
        delete_caches()
        path = self._clear("scratch.db")
        shutil.copy(template, path)
        return str(path)

    def copied_ledger(self, history: History) -> str:
        path = self._clear("scratch.db")
        shutil.copy(self.ledger(history), path)
        return str(path)

    def domain_events(self, history: History) -> Environment:
        return build_sqlite_environment(data.domain_events(self.folder, history))

    def empty_domain_events(self) -> Environment:
        return build_sqlite_environment(str(self._clear("scratch.events.db")))

    def _clear(self, name: str) -> Path:
        """Return the path of a file; delete the file and its companions, such as its journal."""
        for leftover in self.folder.glob(f"{name}*"):
            leftover.unlink()
        return self.folder / name


def build_sqlite_environment(path: str) -> Environment:
    """Return the environment of an `eventsourcing` store in a SQLite file. Its ids are text, like game ids."""
    return {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": path, "ORIGINATOR_ID_TYPE": "text"}


class PostgresStore(NamedTuple):
    """Databases on a server with its data and socket in `folder`; they exist as long as the server runs.

    `written` has the names of the databases of histories that exist already.
    """

    folder: Path
    written: set[str]
    name: str = "PostgreSQL"
    raw_inserts: str = "benchmarks.baselines.raw_inserts:into_postgres"

    def ledger(self, history: History) -> str:
        name = f"ledger-{history.name}"
        return self._write_once(
            name, "benchmarks.writing:write_ledger", {"path": self._build_url(name), "history": history}
        )

    def long_ledger(self, history: History) -> str:
        """Return the URL of a ledger that was written without guards, which saves hours."""
        name = f"ledger-{history.name}"
        return self._write_once(
            name, "benchmarks.writing:write_unguarded", {"url": self._build_url(name), "history": history}
        )

    def empty_ledger(self) -> str:
        self.ledger(empty := History(games=0))
        delete_caches()
        self._recreate("scratch", f"ledger-{empty.name}")
        return self._build_url("scratch")

    def copied_ledger(self, history: History) -> str:
        self.ledger(history)
        self._recreate("scratch", f"ledger-{history.name}")
        return self._build_url("scratch")

    def domain_events(self, history: History) -> Environment:
        environment = self._build_environment(name := f"events-{history.name}")
        self._write_once(name, "benchmarks.baselines.event_sourcing:save", {"env": environment, "history": history})
        return environment

    def empty_domain_events(self) -> Environment:
        self._recreate("scratch-events", "template1")
        return self._build_environment("scratch-events")

    def _write_once(self, name: str, write: str, arguments: Mapping[str, Any]) -> str:
        """Return the URL of a database; unless it exists, create it with the function `write`, and vacuum it.

        Otherwise the server would vacuum it some minutes later, during a measurement.
        """
        if name not in self.written:
            self._recreate(name, "template1")
            measure(Call(write, arguments))
            measure(Call("benchmarks.server:settle", {"url": self._build_url(name)}))
            self.written.add(name)
        return self._build_url(name)

    def _build_url(self, name: str) -> str:
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def _build_environment(self, name: str) -> Environment:
        return {
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "POSTGRES_DBNAME": name,
            "POSTGRES_HOST": str(self.folder),
            "POSTGRES_USER": "postgres",
            "POSTGRES_PASSWORD": "",
            "ORIGINATOR_ID_TYPE": "text",
            # quicker for single events; without it, batches of 5,000 wait forever in psycopg's pipeline
            "POSTGRES_ENABLE_DB_FUNCTIONS": "y",
        }

    def _recreate(self, name: str, template: str) -> None:
        measure(
            Call("benchmarks.server:recreate", {"url": self._build_url("postgres"), "name": name, "template": template})
        )


@contextmanager
def run_postgres_store() -> Iterator[PostgresStore]:
    """Run a server during the block, with its data in a temporary folder."""
    with TemporaryDirectory(prefix="ratings-benchmarks-") as folder:
        command = [sys.executable, "-m", "benchmarks.server", folder]
        # it stops when its standard input ends
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            server.stdout.readline()
            yield PostgresStore(Path(folder), set())
        finally:
            server.stdin.close()
            server.wait()
            server.stdout.close()
