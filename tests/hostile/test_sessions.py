"""Settings of a server, a database, a role or the environment do not change the program's sessions."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ledgers import open_for_reading, open_for_writing
from lengths import mark_long_values
from psycopg.conninfo import timeout_from_conninfo
from sqlalchemy import make_url, text
from stores import create_postgres_database, make_chess_ledger

from ratings_ledger import StoreUnavailable
from ratings_ledger.ledger.store.locations import redact_password
from ratings_ledger.ledger.store.opening import connect, open_ledger
from ratings_ledger.ledger.store.postgres_connection import AnsweringConnection

Ratings = Callable[..., Any]
SETTINGS = [
    "standard_conforming_strings = off", "client_encoding = 'SQL_ASCII'", "client_encoding = 'LATIN1'",
    "quote_all_identifiers = on", "default_transaction_isolation = 'serializable'",
    "default_transaction_isolation = 'repeatable read'", "default_transaction_read_only = on", "row_security = on",
    "bytea_output = 'escape'", "lock_timeout = 0", "DateStyle = 'German'", "IntervalStyle = 'sql_standard'",
    "extra_float_digits = 0", "enable_indexscan = off",
]  # fmt: skip

# characters that settings of a session may treat differently
NAME = "Zoë \\ ' 陳美"


@pytest.fixture
def db(server: str, original_databases: Callable[..., str]) -> Iterator[str]:
    """Yield the URL of a ledger without games in PostgreSQL."""
    with create_postgres_database(server, original_databases(make_chess_ledger)) as url:
        yield url


def record_game(ratings: Ratings, db: str, number: int, name: str = NAME) -> Any:
    """Record a numbered game of chess and return the result of the command."""
    game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-{number + 1:02d}T20:00Z")
    return ratings("record", "-q", *game, name, "ben", db=db)


def execute(db: str, statement: str) -> None:
    """Run a statement; `ALTER DATABASE` gets the name of the ledger's database."""
    with open_for_reading(db) as connection:
        connection.execute(text(statement.replace("ALTER DATABASE", f"ALTER DATABASE {make_url(db).database}")))


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("holder", mark_long_values(["ROLE"], ["DATABASE", "ROLE"]))
def test_foreign_settings_change_nothing(setting: str, holder: str, ratings: Ratings, db: str) -> None:
    """Under any setting of the database or role, commands work as usual and names are stored unchanged.

    The names contain the characters that such a setting may treat differently.
    """
    execute(db, f"ALTER {holder}{' CURRENT_USER' if holder == 'ROLE' else ''} SET {setting}")
    try:
        for number in range(3):
            assert record_game(ratings, db, number).exit_code == 0
        assert ratings("rebuild", db=db).exit_code == 0
        assert ratings("verify", db=db) == (0, "", "")
        rows = json.loads(ratings("standings", "elo-chess/all", "--format", "json", db=db).stdout)["rows"]
        assert [row["player"] for row in rows] == [NAME, "ben"]
    finally:
        execute(db, f"ALTER {holder}{' CURRENT_USER' if holder == 'ROLE' else ''} RESET {setting.split()[0]}")


@pytest.mark.slow
def test_serializable_writers_all_succeed(ratings: Ratings, db: str) -> None:
    """Under serializable isolation by default, many concurrent appends all succeed."""
    execute(db, "ALTER DATABASE SET default_transaction_isolation = 'serializable'")
    with ThreadPoolExecutor(8) as threads:
        codes = list(threads.map(lambda number: record_in_a_process(db, number), range(12)))
    assert codes == [0] * 12
    assert ratings("verify", db=db) == (0, "", "")


def record_in_a_process(db: str, number: int) -> int:
    """Record a numbered game in a process of its own and return its exit code."""
    game = ("--game", "chess", "--game-id", f"p-{number}", "--at", "2024-01-01T20:00Z")
    return run_in_a_process(db, "record", "-q", *game, "anna", "ben").returncode


def run_in_a_process(db: str, *command: str, **environment: str) -> Any:
    """Run a command in a process with additional environment variables."""
    return subprocess.run(
        [sys.executable, "-m", "ratings_ledger", "--db", db, *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.slow
def test_client_environment_is_overruled(ratings: Ratings, db: str) -> None:
    """PGOPTIONS is respected, but a setting in it or in PGCLIENTENCODING that would corrupt texts is overruled."""
    environment = {"PGOPTIONS": "-c search_path=elsewhere", "PGCLIENTENCODING": "LATIN1"}
    result = run_in_a_process(db, "status", **environment)
    assert (result.returncode, "holds no ledger" in result.stderr) == (3, True), result
    environment = {"PGOPTIONS": "-c standard_conforming_strings=off", "PGCLIENTENCODING": "LATIN1"}
    game = ("--game", "chess", "--game-id", "g-1", "--at", "2024-01-01T20:00Z")
    assert run_in_a_process(db, "record", "-q", *game, NAME, "ben", **environment).returncode == 0
    (row,) = json.loads(ratings("games", "--format", "json", db=db).stdout)["rows"]
    assert [participant["player"] for participant in row["participants"]] == [NAME, "ben"]


def test_temporary_table_hides_nothing(db: str) -> None:
    """A temporary table with the name of a ledger's table does not hide it."""
    with open_ledger(db).reading() as connection:
        connection.execute(text("CREATE TEMPORARY TABLE events AS SELECT * FROM events LIMIT 0"))
        assert connection.execute(text("SELECT count(*) FROM events")).scalar_one() == 1


@pytest.mark.parametrize("table", ["events", "generation_standings", "ledger_identity", "alembic_version", "runs"])
@pytest.mark.parametrize("source", ["database", "url"])
def test_foreign_search_path_is_refused(table: str, source: str, ratings: Ratings, db: str) -> None:
    """A foreign table that precedes the ledger's in the search path is refused, and the message names it.

    With the option that the message suggests, commands read the ledger's tables.
    """
    expected = ratings("standings", "elo-chess/all", "--format", "json", db=db)
    execute(db, "CREATE SCHEMA evil")
    execute(db, f"CREATE TABLE evil.{table} AS SELECT * FROM public.{table} LIMIT 0")
    if source == "database":
        execute(db, "ALTER DATABASE SET search_path = evil, public")
        url = db
    else:
        url = add_options(db, "-csearch_path=evil,public")
    for command in (("standings", "elo-chess/all"), ("status",), ("verify",), ("rebuild",)):
        result = ratings(*command, db=url)
        assert (result.exit_code, result.stdout) == (2, ""), result
        assert f"leads to the ledger in the schema 'public', but to {table} in the schema 'evil'" in result.stderr
        assert result.stderr.endswith("names only the ledger's schema: options=-csearch_path%3Dpublic\n")
    by_option = ratings("standings", "elo-chess/all", "--format", "json", db=add_options(db, "-csearch_path=public"))
    assert by_option == expected


def add_options(db: str, options: str) -> str:
    """Return the URL with options for the server."""
    return make_url(db).update_query_dict({"options": options}).render_as_string(hide_password=False)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_other_encoding_is_refused(encoding: str, ratings: Ratings, postgres_url: str) -> None:
    """`init` refuses a database that is not in UTF-8 before it creates anything."""
    name = f"other_{os.getpid()}_{encoding.lower()}"
    execute(
        postgres_url, f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    url = make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
    try:
        result = ratings("init", db=url)
        assert result.exit_code == 2
        assert f"has the encoding {encoding}; create another with ENCODING 'UTF8'" in result.stderr
        with psycopg.connect(url) as connection:
            tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            assert connection.execute(tables).fetchone() == (0,)
    finally:
        execute(postgres_url, f"DROP DATABASE {name}")


def test_read_only_database_is_reported(ratings: Ratings, db: str) -> None:
    """A read-only default is overruled, and a read-only server is reported as a standby."""
    execute(db, "ALTER DATABASE SET default_transaction_read_only = on")
    assert record_game(ratings, db, 1).exit_code == 0
    error = DriverError("25006", "cannot execute INSERT in a read-only transaction")
    failure = connect(db).dialect.translate_error(error, "there")
    assert failure.exit_code == 3
    assert "standby" in str(failure)


class DriverError(Exception):
    """An error as a driver raises it, with the SQLSTATE of the server."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    "state", ["08006", "28P01", "3D000", "40001", "40P01", "53300", "55P03", "57P01", "57P05", "58030"]
)
def test_server_error_is_an_unavailable_store(state: str, db: str) -> None:
    """An error of the server is reported as an unavailable store, not as damage."""
    dialect = connect(db).dialect
    assert dialect.translate_error(DriverError(state, "of the server"), "there").exit_code == 3
    assert not dialect.is_damage(DriverError(state, "of the server"))


def test_zero_timeout_does_not_wait_forever(ratings: Ratings, db: str) -> None:
    """With a timeout of zero, a command reports that the store is busy instead of waiting for a lock."""
    with open_for_writing(db) as connection:
        connection.execute(text("LOCK TABLE events IN ACCESS EXCLUSIVE MODE"))
        result = ratings("status", db=f"{db}{'&' if '?' in db else '?'}timeout=0")
    assert (result.exit_code, "is busy" in result.stderr) == (3, True)


@pytest.mark.slow
def test_concurrent_inits_are_sound(ratings: Ratings, postgres_url: str) -> None:
    """Several concurrent `init` runs all succeed and leave a sound ledger."""
    with ThreadPoolExecutor(6) as threads:
        processes = list(threads.map(lambda _: run_in_a_process(postgres_url, "init", "--for", "chess"), range(6)))
    assert [process.stderr for process in processes if "bug" in process.stderr or "Traceback" in process.stderr] == []
    assert [process.returncode for process in processes] == [0] * 6, [process.stderr for process in processes]
    assert ratings("verify", db=postgres_url) == (0, "", "")


@pytest.mark.parametrize("name", [
    "postgresql://anna:s3cret@localhost/none", "postgresql://anna:s3@cret@localhost:1/none",
    "postgresql:/anna:s3cret@localhost/none", "postgresql://anna@localhost:1/none?password=s3cret",
    "postgresql://anna@localhost:1/none?sslpassword=s3cret&sslmode=disable", "postgres://anna:s3cret@[::1/none",
    "postgresql://anna:s3cret@localhost:port/none", "mysql://anna:s3cret@localhost/none",
    "postgresql://anna:s3cret@localhost:1/none?nonsense=1", "postgresql//anna:s3cret@localhost/none",
    "postgresql/anna:s3cret@localhost", "anna:s3cret@localhost", "anna:s3:cret@localhost",
    "postgresql:anna:s3cret@localhost", "postgresql://localhost:1/none?options=-c password=s3cret",
    "postgresql://localhost:1/none?options=-c%20password%3Ds3cret", "postgresql://localhost:1/?options=-cpassword=s3cret",
    "postgresql://localhost:1/none?options=-c+password%3D's3+cret'",
])  # fmt: skip
def test_password_in_url_is_hidden(name: str, ratings: Ratings) -> None:
    """No message shows a password in the name of a ledger."""
    result = ratings("status", db=name)
    assert result.exit_code in (2, 3)
    assert "bug" not in result.stderr
    for part in ("s3cret", "s3@cret", "cret"):
        assert part not in result.stderr.replace("secret", ""), result.stderr
        assert part not in redact_password(name)


def read_session_name(db: str) -> str:
    """Return the name of a session as the server shows it."""
    with open_ledger(db).reading() as connection:
        statement = "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        return str(connection.execute(text(statement)).scalar_one())


@pytest.fixture
def service(db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a PostgreSQL service that leads to the ledger."""
    url = make_url(db)
    host = url.host or url.query["host"]
    service_file = tmp_path / "services.conf"
    service_file.write_text(
        f"[club_a]\nhost={host}\nport={url.port or 5432}\ndbname={url.database}\nuser={url.username}\n"
        f"password={url.password or ''}\napplication_name=nights\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(service_file))
    return "club_a"


def test_session_has_a_name(db: str, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server shows the session as `ratings`, or with the name from the URL, the environment or the service."""
    named_url = make_url(db).update_query_dict({"application_name": "by-url"}).render_as_string(hide_password=False)
    assert read_session_name(db) == "ratings"
    assert read_session_name(f"postgresql://?service={service}") == "nights"
    monkeypatch.setenv("PGAPPNAME", "by-environment")
    assert read_session_name(db) == "by-environment"
    assert read_session_name(named_url) == "by-url"


@pytest.mark.slow
def test_service_leads_to_the_ledger(service: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service named in the URL or the environment leads to the ledger."""
    by_url = f"postgresql://?service={service}"
    assert record_game(ratings, by_url, 1).exit_code == 0
    assert ratings("rebuild", db=by_url).exit_code == 0
    assert ratings("verify", db=by_url) == (0, "", "")
    monkeypatch.setenv("PGSERVICE", service)
    assert json.loads(ratings("status", "--format", "json", db="postgresql://").stdout)["position"] == 2
    result = ratings("status", db="postgresql://?service=club_b")
    assert (result.exit_code, "club_b" in result.stderr, result.stdout) == (3, True, "")


@pytest.mark.parametrize(
    ("query", "environment", "seconds"),
    [("", None, "10"), ("?connect_timeout=3", None, "3"), ("", "4", None), ("?connect_timeout=3", "4", "3")],
)
def test_connect_timeout_is_respected(
    query: str, environment: str | None, seconds: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timeout of a connection comes from the URL, else from the environment, else it is ten seconds.

    If only the environment variable is set, the driver is left to read it.
    """
    connect_options: dict[str, Any] = {}

    def refuse(*arguments: Any, **options: Any) -> Any:
        connect_options.update(options)
        raise psycopg.OperationalError("connection timeout expired")

    monkeypatch.setattr(AnsweringConnection, "connect", refuse)
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    if environment is not None:
        monkeypatch.setenv("PGCONNECT_TIMEOUT", environment)
    with pytest.raises(StoreUnavailable, match="cannot be reached: connection timeout expired"):
        open_ledger(f"postgresql://anna@localhost:1/none{query}")
    assert connect_options.get("connect_timeout") in (seconds, None if seconds is None else int(seconds))
    assert timeout_from_conninfo(connect_options) == int(seconds or environment or 0)
