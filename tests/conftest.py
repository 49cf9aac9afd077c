"""Fixtures for all tests: fresh stores of both kinds, the command line in this process, and the test selection."""

import gc
import io
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import make_url
from stores import (
    cache_ledgers,
    create_postgres_database,
    find_memory_folder,
    make_empty_ledger,
    make_ruled_ledger,
    provide_postgres_server,
    share_compiled_statements,
)

from ratings_ledger.cli.main import invoke
from ratings_ledger.ledger.store.upgrading import upgrade

BROWSER = Path(__file__).parent / "browser"

# the tests start hundreds of processes, which share the compiled bytecode of the program
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# no test measures the speed of the machine
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("tests"), max_examples=10)
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--length", choices=["short", "long"], default="short", help="how many fault cases run (default: short)"
    )
    parser.addoption("--quick", action="store_true", help="run only fast tests in SQLite and in one process")
    parser.addoption("--write-golden", action="store_true", help="write the golden files instead of comparing them")


def pytest_configure(config: pytest.Config) -> None:
    """Put temporary folders in memory, and draw few examples in a quick run."""
    if config.getoption("quick"):
        settings.load_profile("quick")
    if folder := find_memory_folder():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the browser tests unless an argument names their folder."""
    return True if collection_path == BROWSER and not _asks_for_browser(config) else None


def pytest_report_header(config: pytest.Config) -> str | None:
    """Report that the browser tests are left out."""
    return None if _asks_for_browser(config) else "left out: tests/browser, which needs Chromium; make browser"


def _asks_for_browser(config: pytest.Config) -> bool:
    return any(Path(argument.partition("::")[0]).resolve().is_relative_to(BROWSER) for argument in config.args)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip and deselect tests as the options say; run slow ones first, so that no worker starts one near the end."""
    _mark_slow_cases(items)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    for item in items:
        if item.get_closest_marker("at_length") and item.config.getoption("length") == "short":
            item.add_marker(pytest.mark.skip(reason="at length"))
    if items and items[0].config.getoption("length") == "short":
        _skip_repeated_postgres_cases(items)
    if items and items[0].config.getoption("quick"):
        quick = [item for item in items if _is_quick(item)]
        items[0].config.hook.pytest_deselected(items=[item for item in items if item not in {*quick}])
        items[:] = quick


def pytest_collection_finish() -> None:
    """Exclude the many collected tests from later garbage collections: they live until the end anyway."""
    gc.collect()
    gc.freeze()


SERVER_FIXTURES = {"server", "postgres_url", "original_databases"}
# names in a test module that start processes; a rebuild forks workers
PROCESS_STARTERS = {"subprocess", "fork_child", "run_on_terminal", "Popen", "rebuild"}


def _is_quick(item: pytest.Item) -> bool:
    """Tell whether a test is fast, needs no server, and starts no process."""
    assert isinstance(item, pytest.Function)
    if any(item.get_closest_marker(name) for name in ("slow", "slow_cases", "at_length", "skip")):
        return False
    if _is_in_postgres(item):
        return False
    return not (SERVER_FIXTURES & {*item.fixturenames} or PROCESS_STARTERS & {*vars(item.module)})


def _mark_slow_cases(items: list[pytest.Item]) -> None:
    """Mark all cases but one of a test with `slow_cases` as slow, preferably all but a short case in SQLite."""
    tests: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow_cases"):
            tests.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    for cases in tests.values():
        best = min(cases, key=lambda item: (item.get_closest_marker("at_length") is not None, _is_in_postgres(item)))
        for item in cases:
            if item is not best:
                item.add_marker("slow")


def _is_in_postgres(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and "postgres" in (
        value for value in callspec.params.values() if isinstance(value, str)
    )


def _skip_repeated_postgres_cases(items: list[pytest.Item]) -> None:
    """Skip all PostgreSQL cases but the first of each test; the contracts in tests/ledger keep all."""
    tests_in_postgres: set[tuple[Path, str]] = set()
    for item in items:
        callspec = getattr(item, "callspec", None)
        params = {} if callspec is None else callspec.params
        kinds = {params.get("store_kind"), params.get("shared_url"), params.get("db")}
        if "postgres" not in kinds or "tests/ledger" in str(item.path):
            continue
        test = (item.path, getattr(item, "originalname", item.name))
        if test in tests_in_postgres:
            item.add_marker(pytest.mark.skip(reason="at length"))
        elif item.get_closest_marker("skip") is None:
            tests_in_postgres.add(test)


@pytest.fixture(scope="session")
def at_length(request: pytest.FixtureRequest) -> bool:
    """Return whether the tests run with `--length long`."""
    return bool(request.config.getoption("length") == "long")


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the caches and the state of this session apart from those of the account."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("caches"))
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session", autouse=True)
def _interrupts_enabled() -> None:
    """Enable Ctrl-C in the processes of the tests: a shell makes its background processes ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _shared_compiled_statements() -> Iterator[None]:
    with share_compiled_statements():
        yield


class Result(NamedTuple):
    """The exit code of a command, and its output."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def ratings() -> Callable[..., Result]:
    """Return a function that runs the command line in this process: `ratings("status", db=url)`."""

    def run(*arguments: object, db: str | None = None, input: str | bytes | None = None) -> Result:  # noqa: A002
        content = input.encode() if isinstance(input, str) else input or b""
        streams = {"stdin": _open_stream(content), "stdout": _open_stream(), "stderr": _open_stream()}
        with pytest.MonkeyPatch.context() as patch:
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            database = [] if db is None else ["--db", db]
            exit_code = invoke([*database, *(str(argument) for argument in arguments)])
        return Result(exit_code, _read_stream(streams["stdout"]), _read_stream(streams["stderr"]))

    return run


def _open_stream(content: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="\n")


def _read_stream(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Yield the URL of a PostgreSQL server that the tests of this process share."""
    with provide_postgres_server() as url:
        yield url


@pytest.fixture
def postgres_url(server: str) -> Iterator[str]:
    """Yield the URL of an empty database that is dropped after the test."""
    with create_postgres_database(server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def store_kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of store in turn."""
    return str(request.param)


@pytest.fixture
def store(store_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a store without tables, of each kind in turn."""
    if store_kind == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'ratings.db'}"


@pytest.fixture(scope="session")
def original_files(ratings: Callable[..., Result], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return a function that returns the URL of the original in SQLite that `copy_ledger_file` copies."""
    return cache_ledgers(ratings, lambda: f"sqlite:///{tmp_path_factory.mktemp('original') / 'ratings.db'}")


@pytest.fixture(scope="session")
def original_databases(ratings: Callable[..., Result], server: str) -> Iterator[Callable[..., str]]:
    """Yield a function that returns the URL of the original in PostgreSQL that `copy_ledger` copies."""
    with ExitStack() as stack:
        yield cache_ledgers(ratings, lambda: stack.enter_context(create_postgres_database(server)))


@pytest.fixture
def copy_ledger_file(original_files: Callable[..., str], tmp_path: Path) -> Callable[..., str]:
    """Return a function that returns the path of a copy, in the test's folder, of a ledger that all tests share.

    `copy_ledger_file(make, *arguments)` copies the ledger that `make(ratings, url, *arguments)` makes when it is first
    needed. A copy has the id of its original.
    """

    def copy(make: Callable[..., object], *arguments: object, name: str = "ratings.db") -> str:
        path = tmp_path / name
        assert not path.exists(), "there is a ledger of this name"
        return str(shutil.copyfile(str(make_url(original_files(make, *arguments)).database), path))

    return copy


@pytest.fixture
def copy_ledger(
    store_kind: str, copy_ledger_file: Callable[..., str], request: pytest.FixtureRequest
) -> Iterator[Callable[..., str]]:
    """Do the same as `copy_ledger_file` in each kind of store in turn, but return the URL of the copy."""
    if store_kind == "sqlite":
        yield lambda make, *arguments: f"sqlite:///{copy_ledger_file(make, *arguments)}"
        return
    server, originals = request.getfixturevalue("server"), request.getfixturevalue("original_databases")
    with ExitStack() as stack:
        yield lambda make, *arguments: stack.enter_context(
            create_postgres_database(server, originals(make, *arguments))
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with `db` in each kind of store, unless its mark `ledger` names one."""
    mark = metafunc.definition.get_closest_marker("ledger")
    names = metafunc.fixturenames
    if mark and "store" not in mark.kwargs and "db" in names and "store_kind" not in names:
        metafunc.parametrize("db", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def db(request: pytest.FixtureRequest, copy_ledger_file: Callable[..., str]) -> Iterator[str]:
    """Yield a copy of the ledger that the mark `ledger(make=...)` names: its URL, of each kind of store in turn.

    With the mark's `store="sqlite"` it is the path of a copy in SQLite alone.
    """
    make = _get_ledger_maker(request)
    kind = request.getfixturevalue("store_kind") if "store_kind" in request.fixturenames else None
    kind = getattr(request, "param", kind)
    if kind == "postgres":
        server, originals = request.getfixturevalue("server"), request.getfixturevalue("original_databases")
        with create_postgres_database(server, originals(make)) as url:
            yield url
    else:
        yield copy_ledger_file(make) if kind is None else f"sqlite:///{copy_ledger_file(make)}"


@pytest.fixture
def one_db(request: pytest.FixtureRequest, copy_ledger_file: Callable[..., str]) -> str:
    """Return the path of a copy in SQLite of the ledger that the mark `ledger(make=...)` names."""
    return copy_ledger_file(_get_ledger_maker(request))


@pytest.fixture
def postgres_db(request: pytest.FixtureRequest, server: str, original_databases: Callable[..., str]) -> Iterator[str]:
    """Yield the URL of a copy in PostgreSQL of the ledger that the mark `ledger(make=...)` names."""
    with create_postgres_database(server, original_databases(_get_ledger_maker(request))) as url:
        yield url


def _get_ledger_maker(request: pytest.FixtureRequest) -> Callable[..., object]:
    mark = request.node.get_closest_marker("ledger")
    assert mark, "name the ledger: pytestmark = pytest.mark.ledger(make=...)"
    make: Callable[..., object] = mark.kwargs["make"]
    return make


@pytest.fixture
def ledger_url(copy_ledger: Callable[..., str]) -> str:
    """Return the URL of a ledger without events, of each kind in turn."""
    return copy_ledger(make_empty_ledger)


@pytest.fixture
def ruled_url(copy_ledger: Callable[..., str]) -> str:
    """Return the URL of a ledger with the shipped rulesets, of each kind in turn."""
    return copy_ledger(make_ruled_ledger)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a ledger without events that the tests of a module share, of each kind in turn."""
    if request.param == "postgres":
        with create_postgres_database(request.getfixturevalue("server")) as url:
            upgrade(url)
            yield url
    else:
        url = f"sqlite:///{tmp_path_factory.mktemp('shared') / 'ratings.db'}"
        upgrade(url)
        yield url
