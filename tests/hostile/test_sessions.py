"""What a server, a database, a role or the environment is set to: the session is the program's all the same."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from lengths import at_length_but
from psycopg.conninfo import timeout_from_conninfo
from sqlalchemy import make_url, text

from ledger.errors import StoreUnavailable
from ledger.store.locations import hidden
from ledger.store.opening import connect, open_ledger
from ledger.store.postgres_connection import AnsweringConnection

Ratings = Callable[..., Any]
SETTINGS = [
    "standard_conforming_strings = off", "client_encoding = 'SQL_ASCII'", "client_encoding = 'LATIN1'",
    "quote_all_identifiers = on", "default_transaction_isolation = 'serializable'",
    "default_transaction_isolation = 'repeatable read'", "default_transaction_read_only = on", "row_security = on",
    "bytea_output = 'escape'", "lock_timeout = 0", "DateStyle = 'German'", "IntervalStyle = 'sql_standard'",
    "extra_float_digits = 0", "enable_indexscan = off",
]  # fmt: skip


@pytest.fixture
def db(postgres_url: str, ratings: Ratings) -> str:
    assert ratings("init", "--for", "chess", db=postgres_url).exit_code == 0
    return postgres_url


def play(ratings: Ratings, db: str, number: int, name: str = "Zoë \\ ' 陳美") -> Any:
    game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-{number + 1:02d}T20:00Z")
    return ratings("record", "-q", *game, name, "ben", db=db)


def execute(db: str, statement: str) -> None:
    with connect(db).reading() as connection:
        connection.execute(text(statement.replace("ALTER DATABASE", f"ALTER DATABASE {make_url(db).database}")))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("where", at_length_but(["ROLE"], ["DATABASE", "ROLE"]))
def test_given_another_setting_of_a_database_or_a_role_when_used_then_all_is_as_ever(
    setting: str, where: str, ratings: Ratings, db: str
) -> None:
    """Given names with everything that such a setting might read otherwise, then they are stored as they are."""
    execute(db, f"ALTER {where}{' CURRENT_USER' if where == 'ROLE' else ''} SET {setting}")
    try:
        for number in range(3):
            assert play(ratings, db, number).exit_code == 0
        assert ratings("rebuild", db=db).exit_code == 0
        assert ratings("verify", db=db) == (0, "", "")
        rows = json.loads(ratings("standings", "elo-chess/all", "--format", "json", db=db).stdout)["rows"]
        assert [row["player"] for row in rows] == ["Zoë \\ ' 陳美", "ben"]
    finally:
        execute(db, f"ALTER {where}{' CURRENT_USER' if where == 'ROLE' else ''} RESET {setting.split()[0]}")


def test_given_many_writers_under_serializable_by_default_when_they_append_then_none_fails(
    ratings: Ratings, db: str
) -> None:
    execute(db, "ALTER DATABASE SET default_transaction_isolation = 'serializable'")
    with ThreadPoolExecutor(8) as threads:
        codes = list(threads.map(lambda number: record_in_a_process(db, number), range(12)))
    assert codes == [0] * 12
    assert ratings("verify", db=db) == (0, "", "")


def record_in_a_process(db: str, number: int, **environment: str) -> int:
    command = [
        "record",
        "-q",
        "--game",
        "chess",
        "--game-id",
        f"p-{number}",
        "--at",
        "2024-01-01T20:00Z",
        "anna",
        "ben",
    ]
    return ratings_in_a_process(db, *command, **environment).returncode


def ratings_in_a_process(db: str, *command: str, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-c", "from cli.main import run; run()", "--db", db, *command],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def test_given_pgoptions_and_pgclientencoding_when_used_then_they_are_heard_and_overruled(db: str) -> None:
    environment = {"PGOPTIONS": "-c search_path=elsewhere", "PGCLIENTENCODING": "LATIN1"}
    found = ratings_in_a_process(db, "status", **environment)
    assert (found.returncode, "holds no ledger" in found.stderr) == (3, True), found
    assert record_in_a_process(db, 1, PGCLIENTENCODING="LATIN1", PGOPTIONS="-c standard_conforming_strings=off") == 0


def test_given_a_temporary_table_of_our_name_when_searched_first_then_ours_is_read_all_the_same(db: str) -> None:
    with open_ledger(db).reading() as connection:
        connection.execute(text("CREATE TEMPORARY TABLE events AS SELECT * FROM events LIMIT 0"))
        assert connection.execute(text("SELECT count(*) FROM events")).scalar_one() == 1


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_given_a_database_in_another_encoding_when_made_a_ledger_then_it_is_refused_before_anything_is_made(
    encoding: str, ratings: Ratings, postgres_url: str
) -> None:
    name = f"other_{os.getpid()}_{encoding.lower()}"
    execute(
        postgres_url, f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    other = make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
    try:
        told = ratings("init", db=other)
        assert (told.exit_code, f"is in {encoding}; a ledger needs one made with ENCODING 'UTF8'" in told.stderr) == (
            2,
            True,
        )
    finally:
        execute(postgres_url, f"DROP DATABASE {name}")


def test_given_a_database_that_is_read_only_when_appended_then_it_says_so(ratings: Ratings, db: str) -> None:
    execute(db, "ALTER DATABASE SET default_transaction_read_only = on")
    assert play(ratings, db, 1).exit_code == 0  # a default is overruled
    with connect(db).reading() as connection:
        failure = connect(db).dialect.failure(
            Failed("25006", "cannot execute INSERT in a read-only transaction"), "there"
        )
    assert failure.exit_code == 3
    assert "standby" in str(failure)
    assert connection is not None


class Failed(Exception):
    """What a driver raises."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    "state", ["08006", "28P01", "3D000", "40001", "40P01", "53300", "55P03", "57P01", "57P05", "58030"]
)
def test_given_an_error_of_the_server_when_translated_then_it_is_no_bug_and_no_damage(state: str, db: str) -> None:
    dialect = connect(db).dialect
    assert dialect.failure(Failed(state, "of the server"), "there").exit_code == 3
    assert not dialect.is_damage(Failed(state, "of the server"))


def test_given_a_timeout_of_zero_when_a_lock_is_held_then_nobody_waits_for_ever(ratings: Ratings, db: str) -> None:
    with connect(db).writing() as connection:
        connection.execute(text("LOCK TABLE events IN ACCESS EXCLUSIVE MODE"))
        told = ratings("status", db=f"{db}{'&' if '?' in db else '?'}timeout=0")
    assert (told.exit_code, "is busy" in told.stderr) == (3, True)


def test_given_several_inits_at_once_when_made_then_no_bug_is_told_and_the_ledger_is_sound(
    ratings: Ratings, postgres_url: str
) -> None:
    with ThreadPoolExecutor(6) as threads:
        done = list(threads.map(lambda _: ratings_in_a_process(postgres_url, "init", "--for", "chess"), range(6)))
    assert [one.stderr for one in done if "bug" in one.stderr or "Traceback" in one.stderr] == []
    assert [one.returncode for one in done] == [0] * 6, [one.stderr for one in done]
    assert ratings("verify", db=postgres_url) == (0, "", "")


@pytest.mark.parametrize("name", [
    "postgresql://anna:s3cret@localhost/none", "postgresql://anna:s3@cret@localhost:1/none",
    "postgresql:/anna:s3cret@localhost/none", "postgresql://anna@localhost:1/none?password=s3cret",
    "postgresql://anna@localhost:1/none?sslpassword=s3cret&sslmode=disable", "postgres://anna:s3cret@[::1/none",
    "postgresql://anna:s3cret@localhost:port/none", "mysql://anna:s3cret@localhost/none",
    "postgresql://anna:s3cret@localhost:1/none?nonsense=1",
])  # fmt: skip
def test_given_a_password_in_a_name_when_anything_is_said_of_it_then_it_is_hidden(name: str, ratings: Ratings) -> None:
    told = ratings("status", db=name)
    assert told.exit_code in (2, 3)
    assert "bug" not in told.stderr
    for part in ("s3cret", "s3@cret", "cret"):
        assert part not in told.stderr.replace("secret", ""), told.stderr
        assert part not in hidden(name)


def name_of_the_session(db: str) -> str:
    with open_ledger(db).reading() as connection:
        asked = "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        return str(connection.execute(text(asked)).scalar_one())


@pytest.fixture
def service(db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a service that leads to the ledger."""
    url = make_url(db)
    host = url.host or url.query["host"]
    file = tmp_path / "services.conf"
    file.write_text(
        f"[club_a]\nhost={host}\nport={url.port or 5432}\ndbname={url.database}\nuser={url.username}\n"
        f"password={url.password or ''}\napplication_name=nights\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    return "club_a"


def test_given_a_session_when_the_server_is_asked_for_its_name_then_it_is_ratings_or_what_somebody_called_it(
    db: str, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = make_url(db).update_query_dict({"application_name": "by-url"}).render_as_string(hide_password=False)
    assert name_of_the_session(db) == "ratings"
    assert name_of_the_session(f"postgresql://?service={service}") == "nights"
    monkeypatch.setenv("PGAPPNAME", "by-environment")
    assert name_of_the_session(db) == "by-environment"
    assert name_of_the_session(named) == "by-url"


def test_given_a_service_when_named_by_the_url_or_the_environment_then_the_ledger_is_found(
    service: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_url = f"postgresql://?service={service}"
    assert play(ratings, by_url, 1).exit_code == 0
    assert ratings("rebuild", db=by_url).exit_code == 0
    assert ratings("verify", db=by_url) == (0, "", "")
    monkeypatch.setenv("PGSERVICE", service)
    assert json.loads(ratings("status", "--format", "json", db="postgresql://").stdout)["position"] == 2
    told = ratings("status", db="postgresql://?service=club_b")
    assert (told.exit_code, "club_b" in told.stderr, told.stdout) == (3, True, "")


@pytest.mark.parametrize(
    ("query", "environment", "seconds"),
    [("", None, "10"), ("?connect_timeout=3", None, "3"), ("", "4", None), ("?connect_timeout=3", "4", "3")],
)
def test_given_a_server_that_does_not_answer_when_connected_then_it_waits_as_long_as_the_url_or_the_environment_says(
    query: str, environment: str | None, seconds: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given nothing in the URL but a variable, then the driver is left to read it."""
    given: dict[str, Any] = {}

    def refuse(*arguments: Any, **options: Any) -> Any:
        given.update(options)
        raise psycopg.OperationalError("connection timeout expired")

    monkeypatch.setattr(AnsweringConnection, "connect", refuse)
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    if environment is not None:
        monkeypatch.setenv("PGCONNECT_TIMEOUT", environment)
    with pytest.raises(StoreUnavailable, match="cannot be reached: connection timeout expired"):
        open_ledger(f"postgresql://anna@localhost:1/none{query}")
    assert given.get("connect_timeout") in (seconds, None if seconds is None else int(seconds))
    assert timeout_from_conninfo(given) == int(seconds or environment or 0)
