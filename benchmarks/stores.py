"""Where ledgers are measured: SQLite files, and databases on a PostgreSQL server that runs as long as the benchmarks.

Both also hold the events of the package `eventsourcing`, which finds its store through an environment.
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
from benchmarks.measuring import ROOT, Call, forget_caches, measure

Environment = dict[str, str]


class Store(Protocol):
    """A kind of store."""

    @property
    def name(self) -> str:
        """Return its name in the table."""

    @property
    def raw_inserts(self) -> str:
        """Return the function that inserts rows by hand."""

    def ledger(self, history: History) -> str:
        """Return the URL of a ledger that holds a history."""

    def empty_ledger(self) -> str:
        """Return the URL of a fresh ledger without games."""

    def copied_ledger(self, history: History) -> str:
        """Return the URL of a ledger that holds a history, and may get more games."""

    def domain_events(self, history: History) -> Environment:
        """Return where `eventsourcing` holds a history."""

    def empty_domain_events(self) -> Environment:
        """Return a fresh, empty store for `eventsourcing`."""


class SqliteStore(NamedTuple):
    """Files in a folder; those of histories are kept, the others are recreated each time."""

    folder: Path
    name: str = "SQLite"
    raw_inserts: str = "benchmarks.baselines.raw_inserts:into_sqlite"

    def ledger(self, history: History) -> str:
        return data.ledger(self.folder, history)

    def empty_ledger(self) -> str:
        template = data.ledger(self.folder, History(games=0))
        forget_caches()
        path = self._nothing("scratch.db")
        shutil.copy(template, path)
        return str(path)

    def copied_ledger(self, history: History) -> str:
        path = self._nothing("scratch.db")
        shutil.copy(self.ledger(history), path)
        return str(path)

    def domain_events(self, history: History) -> Environment:
        return sqlite_environment(data.domain_events(self.folder, history))

    def empty_domain_events(self) -> Environment:
        return sqlite_environment(str(self._nothing("scratch.events.db")))

    def _nothing(self, name: str) -> Path:
        """Return the path of a file that does not exist, nor its companions."""
        for left in self.folder.glob(f"{name}*"):
            left.unlink()
        return self.folder / name


def sqlite_environment(path: str) -> Environment:
    """Return an application of `eventsourcing` on a SQLite file, with text ids, since game ids are text."""
    return {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": path, "ORIGINATOR_ID_TYPE": "text"}


class PostgresStore(NamedTuple):
    """Databases on a server that has its data and socket in `folder`; they live as long as it does."""

    folder: Path
    written: set[str]
    name: str = "PostgreSQL"
    raw_inserts: str = "benchmarks.baselines.raw_inserts:into_postgres"

    def ledger(self, history: History) -> str:
        name = f"ledger-{history.name}"
        return self._once(name, "benchmarks.writing:write_ledger", {"path": self._url(name), "history": history})

    def long_ledger(self, history: History) -> str:
        """Return the URL of a ledger written without the guards of its table, which saves hours."""
        name = f"ledger-{history.name}"
        return self._once(name, "benchmarks.writing:write_unguarded", {"url": self._url(name), "history": history})

    def empty_ledger(self) -> str:
        self.ledger(empty := History(games=0))
        forget_caches()
        self._recreate("scratch", f"ledger-{empty.name}")
        return self._url("scratch")

    def copied_ledger(self, history: History) -> str:
        self.ledger(history)
        self._recreate("scratch", f"ledger-{history.name}")
        return self._url("scratch")

    def domain_events(self, history: History) -> Environment:
        environment = self._environment(name := f"events-{history.name}")
        self._once(name, "benchmarks.baselines.event_sourcing:save", {"env": environment, "history": history})
        return environment

    def empty_domain_events(self) -> Environment:
        self._recreate("scratch-events", "template1")
        return self._environment("scratch-events")

    def _once(self, name: str, write: str, arguments: Mapping[str, Any]) -> str:
        """Return the URL of a database, which a function writes unless it has been written; settled as it would be some
        minutes later, since the server would otherwise do that while something is measured."""
        if name not in self.written:
            self._recreate(name, "template1")
            measure(Call(write, arguments))
            measure(Call("benchmarks.server:settle", {"url": self._url(name)}))
            self.written.add(name)
        return self._url(name)

    def _url(self, name: str) -> str:
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def _environment(self, name: str) -> Environment:
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
        measure(Call("benchmarks.server:recreate", {"url": self._url("postgres"), "name": name, "template": template}))


@contextmanager
def postgres_store() -> Iterator[PostgresStore]:
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
