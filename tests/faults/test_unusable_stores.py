"""With an unusable store each command ends with one clear message and the right exit code, and does no harm."""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from fault_helpers import (
    append_games,
    build_numbered_game,
    fork_child,
    list_findings,
    open_plain_connection,
    wait_for_exits,
)
from ledgers import read_all_records
from sqlalchemy import make_url

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import NotALedger
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.guards import POSTGRES_APPEND_LOCK
from ratings_ledger.ledger.store.opening import open_ledger, parse_url
from ratings_ledger.ledger.store.upgrading import upgrade

Ratings = Callable[..., Any]
HOUR_US = 3_600 * 1_000_000
RECORD = ("record", "--game", "club-catan", "--game-id", "new", "anna", "ben", "cleo")
COMMANDS = [("status",), ("verify",), ("rebuild",), ("standings", "club-catan-elo/all"), ("export", "events"), RECORD]


def assert_commands_fail(
    ratings: Ratings, url: str, exit_code: int, message: str, commands: Sequence[tuple[str, ...]] = COMMANDS
) -> None:
    """Assert that every command prints this message on one line, no result, and exits with this code."""
    for command in commands:
        result = ratings(*command, db=url)
        assert (result.exit_code, result.stdout) == (exit_code, ""), (command, result)
        assert message in result.stderr, (command, result)
        assert result.stderr.count("\n") == 1, (command, result)


# the clock


@pytest.mark.slow_cases
def test_future_head_stops_appends(ledger_url: str, ratings: Ratings) -> None:
    """A head in the future stops appends until --ignore-clock allows them."""
    future = clock.now() + HOUR_US
    append(open_ledger(ledger_url), [build_numbered_game(1)], by="test", clock=lambda: future)
    before = read_all_records(ledger_url)
    result = ratings(*RECORD, db=ledger_url)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--ignore-clock" in result.stderr
    assert read_all_records(ledger_url) == before
    assert ratings("doctor", db=ledger_url).exit_code == 1
    assert ratings(*RECORD, "--ignore-clock", db=ledger_url).exit_code == 0
    assert list_recorded_times(ledger_url) == [future, future]
    assert list_findings(ledger_url) == []


def test_small_clock_step_back_keeps_head_time(ledger_url: str) -> None:
    """If the clock steps back a little, events are recorded at the time of the head."""
    head_time = clock.now() + 4 * 60 * 1_000_000
    append(open_ledger(ledger_url), [build_numbered_game(1)], by="test", clock=lambda: head_time)
    append_games(ledger_url, [build_numbered_game(2)])
    assert list_recorded_times(ledger_url) == [head_time, head_time]


def list_recorded_times(url: str) -> list[int]:
    with closing(open_plain_connection(url)) as connection:
        return [row[0] for row in connection.execute("SELECT recorded_at FROM events ORDER BY position").fetchall()]


# locks of other processes


def create_with_two_games(_: object, url: str) -> None:
    """Create a ledger with two games."""
    upgrade(url)
    append_games(url, [build_numbered_game(1), build_numbered_game(2)])


@pytest.fixture
def file(copy_ledger_file: Callable[..., str]) -> Path:
    """Return the path of a SQLite ledger with two games."""
    return Path(copy_ledger_file(create_with_two_games))


@pytest.mark.slow
def test_locked_file_times_out(file: Path, ratings: Ratings) -> None:
    """A command on a file that another process has locked fails after the timeout."""
    url = f"sqlite:///{file}?timeout=0.2"
    with closing(sqlite3.connect(file, isolation_level=None)) as blocker:
        blocker.execute("BEGIN EXCLUSIVE")
        assert_commands_fail(ratings, url, 3, "locked")
        started = time.monotonic()
        assert ratings(*RECORD, db=f"sqlite:///{file}?timeout=1").exit_code == 3
        assert time.monotonic() - started > 0.9
        blocker.execute("ROLLBACK")
    assert ratings(*RECORD, db=url).exit_code == 0


@pytest.mark.slow
def test_held_append_lock_times_out(postgres_url: str, ratings: Ratings) -> None:
    """An append on a server whose append lock is held elsewhere fails after the timeout."""
    upgrade(postgres_url)
    url_with_timeout = (
        make_url(postgres_url).update_query_dict({"timeout": "0.2"}).render_as_string(hide_password=False)
    )
    with psycopg.connect(postgres_url) as blocker:
        blocker.execute(f"SELECT pg_advisory_xact_lock({POSTGRES_APPEND_LOCK})")
        result = ratings(*RECORD, db=url_with_timeout)
        assert (result.exit_code, "busy" in result.stderr) == (3, True)
        assert ratings("status", db=url_with_timeout).exit_code == 0
        blocker.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
        assert ratings("status", db=url_with_timeout).exit_code == 3
    assert ratings(*RECORD, db=url_with_timeout).exit_code == 0


def test_bad_timeout_is_refused(file: Path, ratings: Ratings) -> None:
    """A timeout that is not a single number within the limit is a usage error."""
    for timeout in ("soon", "100000", "1&timeout=2"):
        assert_commands_fail(ratings, f"sqlite:///{file}?timeout={timeout}", 2, "write a number of seconds below")


@pytest.mark.parametrize(("user", "is_valid"), [("anna%40server", True), ("anna", True), ("anna@server", False)])
def test_at_sign_in_user_name_must_be_encoded(user: str, is_valid: bool) -> None:
    """An @ in a user name must be written as %40."""
    if is_valid:
        assert parse_url(f"postgresql://{user}:s3cret@localhost/none").host == "localhost"
    else:
        with pytest.raises(NotALedger, match=r"has more than one @; in a user name or password, write it as %40"):
            parse_url(f"postgresql://{user}:s3cret@localhost/none")


def test_write_transaction_blocks_only_appends(file: Path, ratings: Ratings) -> None:
    """Another process's write transaction blocks appends but no readers."""
    url = f"sqlite:///{file}?timeout=0.2"
    with closing(sqlite3.connect(file, isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        result = ratings(*RECORD, db=url)
        assert (result.exit_code, result.stdout) == (3, "")
        assert "locked" in result.stderr
        for command in ("status", "verify"):
            assert ratings(command, db=url).exit_code == 0
    assert len(read_all_records(url)) == 2


def test_open_reader_blocks_appends(file: Path, ratings: Ratings) -> None:
    """A reader that keeps its transaction open makes appends fail with a clear message."""
    url = f"sqlite:///{file}?timeout=0.2"
    with closing(sqlite3.connect(file, isolation_level=None)) as blocker:
        blocker.execute("BEGIN")
        blocker.execute("SELECT count(*) FROM events").fetchone()
        result = ratings(*RECORD, db=url)
        assert (result.exit_code, "locked" in result.stderr) == (3, True)
    assert ratings(*RECORD, db=url).exit_code == 0
    assert list_findings(url) == []


# read-only files


@pytest.fixture
def readable_folder() -> Iterator[Path]:
    """Yield a folder that other users may read, unlike pytest's own folders."""
    with TemporaryDirectory(prefix="ratings-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)


@pytest.mark.slow
def test_read_only_ledger_can_be_read(readable_folder: Path, ratings: Ratings) -> None:
    """A read-only ledger gives the same answers and refuses every write."""
    path = readable_folder / "ratings.db"
    assert ratings("init", db=path).exit_code == 0
    assert ratings(*RECORD, db=path).exit_code == 0
    expected = {command: ratings(*command, db=path) for command in COMMANDS if command[0] not in ("record", "rebuild")}
    assert ratings("rebuild", db=path).exit_code == 0
    path.chmod(0o444)
    readable_folder.chmod(0o555)

    def run_commands_as_nobody() -> None:
        if os.geteuid() == 0:
            os.setuid(65_534)  # permissions do not stop root
        for command in (("record", "--game", "catan", "--game-id", "other", "anna", "ben"), ("rebuild",)):
            result = ratings(*command, db=path)
            assert (result.exit_code, result.stdout) == (3, ""), (command, result)
            assert "written" in result.stderr, (command, result)
        for command, before in expected.items():
            result = ratings(*command, db=path)
            assert result.exit_code == before.exit_code == 0, (command, result)
            assert command[0] == "status" or result.stdout == before.stdout, (command, result)

    assert wait_for_exits([fork_child(run_commands_as_nobody)]) == [0]


def test_read_only_ledger_can_be_verified(readable_folder: Path, ratings: Ratings) -> None:
    """A read-only ledger can be verified, and the user's state folder records the results."""
    path, state = readable_folder / "ratings.db", readable_folder / "state"
    assert ratings("init", db=path).exit_code == 0
    state.mkdir()
    state.chmod(0o777)
    path.chmod(0o444)
    readable_folder.chmod(0o555)

    def verify_as_nobody() -> None:
        os.environ["XDG_STATE_HOME"] = str(state)
        if os.geteuid() == 0:
            os.setuid(65_534)
        assert ratings("verify", db=path) == (0, "", "")
        assert ratings("verify", "--head", f"1:{'0' * 64}", db=path).exit_code == 1
        runs = json.loads(ratings("status", "--format", "json", db=path).stdout)["runs"]["verify"]
        assert (runs["last"]["result"], runs["last_success"]["result"]) == ("failed", "done")
        assert ratings("status", "--no-failures", db=path).exit_code == 1

    assert wait_for_exits([fork_child(verify_as_nobody)]) == [0]


# stores that are not ledgers


def test_only_init_creates_a_file(tmp_path: Path, ratings: Ratings) -> None:
    """No command but `init` creates a missing file, and `init` creates no missing folder."""
    assert_commands_fail(ratings, f"sqlite:///{tmp_path / 'ratings.db'}", 3, "init")
    assert_commands_fail(ratings, f"sqlite:///{tmp_path / 'absent' / 'ratings.db'}", 3, "init")
    assert ratings("init", db=tmp_path / "absent" / "ratings.db").exit_code == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"dear diary\n" * 200, bytes(range(256)) * 32, b"SQLite format 3\0" + bytes(4_080)]
)
def test_foreign_file_is_left_alone(tmp_path: Path, ratings: Ratings, content: bytes) -> None:
    """A file that is not a ledger is refused and left as it is."""
    path = tmp_path / "ratings.db"
    path.write_bytes(content)
    assert_commands_fail(ratings, f"sqlite:///{path}", 2, str(path))
    assert ratings("init", db=path).exit_code == 2
    assert path.read_bytes() == content


def test_folder_is_refused(tmp_path: Path, ratings: Ratings) -> None:
    """A folder in place of a ledger is refused."""
    assert_commands_fail(ratings, f"sqlite:///{tmp_path}", 2, "folder")


def test_store_without_tables_is_refused(store: str, ratings: Ratings) -> None:
    """A store without tables is refused because it holds no ledger."""
    if store.startswith("sqlite"):
        Path(store.removeprefix("sqlite:///")).touch()
    assert_commands_fail(ratings, store, 3, "holds no ledger")


def test_other_programs_database_is_left_alone(store: str, ratings: Ratings) -> None:
    """The database of another program is refused and left as it is."""
    with closing(open_plain_connection(store)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.execute("INSERT INTO alembic_version VALUES ('0002')")
        connection.execute("CREATE TABLE events (id INTEGER, name TEXT)")
        connection.execute("INSERT INTO events VALUES (1, 'birthday')")
    assert_commands_fail(ratings, store, 3, "holds no ledger")
    assert ratings("init", db=store).exit_code == 2
    with closing(open_plain_connection(store)) as connection:
        assert connection.execute("SELECT * FROM events").fetchall() == [(1, "birthday")]


def test_newer_ledger_is_refused(ledger_url: str, ratings: Ratings) -> None:
    """A ledger made by a newer version of the program is refused."""
    with closing(open_plain_connection(ledger_url)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert_commands_fail(ratings, ledger_url, 2, "newer")
    result = ratings("init", db=ledger_url)
    assert (result.exit_code, "newer" in result.stderr) == (2, True)


def test_dropped_events_table_is_reported(ledger_url: str, ratings: Ratings) -> None:
    """`verify` and all other commands report a dropped events table."""
    with closing(open_plain_connection(ledger_url)) as connection:
        connection.execute("DROP TABLE events" if ledger_url.startswith("sqlite") else "DROP TABLE events CASCADE")
    result = ratings("verify", db=ledger_url)
    assert (result.exit_code, "schema: the table events is missing" in result.stdout) == (1, True), result
    assert_commands_fail(ratings, ledger_url, 1, "events", [command for command in COMMANDS if command != ("verify",)])


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_absent_server_is_unreachable(store: str, ratings: Ratings) -> None:
    """A server or database that does not exist is reported as unreachable."""
    name = store.partition("?")[0].rpartition("/")[2]
    assert_commands_fail(ratings, store.replace(name, f"{name}_absent"), 3, "cannot be reached")
    assert_commands_fail(ratings, "postgresql://ratings@127.0.0.1:1/ratings", 3, "cannot be reached")
