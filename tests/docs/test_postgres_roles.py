"""The statements of docs/postgresql.md, run on a real server: every role can do its work and nothing more."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from sqlalchemy import make_url

from cli.main import invoke

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8")
ROLES = ("owner", "writer", "rebuilder", "reader")
FORBIDDEN = (
    "UPDATE events SET recorded_by = 'somebody else'",
    "DELETE FROM events",
    "TRUNCATE events CASCADE",
    "TRUNCATE ledger_identity",
    "UPDATE ledger_identity SET ledger_id = 'another'",
    "INSERT INTO ledger_identity VALUES (2, 'another')",
    "ALTER TABLE events DISABLE TRIGGER ALL",
    "ALTER TABLE events DISABLE TRIGGER events_guard_insert",
    "DROP TRIGGER events_guard_insert ON events",
    "DROP TABLE events CASCADE",
    "CREATE OR REPLACE FUNCTION events_guard_insert() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE TABLE mine (n int)",
    "CREATE TEMPORARY TABLE events (n int)",
    "SET session_replication_role = replica",
)


class Roles(NamedTuple):
    """The URLs of one database for each of its roles."""

    owner: str
    writer: str
    rebuilder: str
    reader: str


@pytest.fixture
def roles(postgres_url: str) -> Iterator[Roles]:
    """The roles of the page under names of their own, with a ledger that their owner made."""
    mark = uuid.uuid4().hex[:8]
    url = make_url(postgres_url)

    def renamed(sql: str) -> str:
        sql = re.sub(r"\bratings_(owner|writer|rebuilder|reader)\b", rf"ratings_\1_{mark}", sql)
        return re.sub(r"\bDATABASE ratings\b", f"DATABASE {url.database}", sql)

    made, granted, _ = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    urls = [
        url.set(username=f"ratings_{role}_{mark}", password=f"change-me-{number}").render_as_string(hide_password=False)
        for number, role in enumerate(ROLES, 1)
    ]
    with psycopg.connect(postgres_url, autocommit=True) as administrator:
        for statement in filter(None, map(str.strip, renamed(made).split(";"))):
            # the fixture made the database already
            owned = f"ALTER DATABASE {url.database} OWNER TO ratings_owner_{mark}"
            administrator.execute(owned if statement.startswith("CREATE DATABASE") else statement)
        administrator.execute(f"ALTER SCHEMA public OWNER TO ratings_owner_{mark}")
        assert invoke(["--db", urls[0], "init"]) == 0
        with psycopg.connect(urls[0], autocommit=True) as owner:
            owner.execute(renamed(granted))
        yield Roles(*urls)
        for role in ROLES:
            administrator.execute(f"REASSIGN OWNED BY ratings_{role}_{mark} TO CURRENT_USER")
            administrator.execute(f"DROP OWNED BY ratings_{role}_{mark}")
            administrator.execute(f"DROP ROLE ratings_{role}_{mark}")


@pytest.fixture
def filled(roles: Roles) -> Roles:
    """The same after the writer imported a season."""
    season = str(ROOT / "examples" / "winter-league.csv")
    options = ["--set", "game=club-catan", "--zone", "Europe/Berlin"]
    assert invoke(["--db", roles.writer, "import", season, *options]) == 0
    return roles


def test_every_role_does_its_work(filled: Roles, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    publish = ["rules", "publish", str(ROOT / "examples" / "club-catan-elo-2.toml")]
    record = ["record", "--game", "club-catan", "--game-id", "one-more", "mira", "yusuf"]
    correct = ["correct", "one-more", "yusuf", "mira", "--reason", "the other way round"]
    work = {
        filled.writer: [publish, record, correct, ["void", "one-more", "--reason", "a friendly"]],
        filled.rebuilder: [["rebuild"], ["rebuild", "--history"], ["rebuild"]],
        filled.reader: [["verify"], ["standings", "club-catan-elo/all"], ["log"], ["status"], ["doctor"]],
        filled.owner: [["init"]],
    }
    codes = {url: [invoke(["--db", url, *command]) for command in commands] for url, commands in work.items()}
    assert codes == {url: [0] * len(commands) for url, commands in work.items()}
    with psycopg.connect(filled.reader) as reader:
        assert reader.execute("SELECT player FROM live_standings WHERE ladder = 'club-catan-elo/all'").rowcount == 8
        changes = reader.execute("SELECT player FROM live_changes WHERE ladder = 'club-catan-elo/all'")
        assert changes.rowcount > 8
        assert reader.execute("SELECT game_id FROM live_games").rowcount == 90


@pytest.mark.parametrize("role", ["writer", "rebuilder", "reader"])
def test_nobody_but_the_owner_can_change_events(filled: Roles, role: str) -> None:
    done = []
    with psycopg.connect(getattr(filled, role), autocommit=True) as connection:
        for statement in FORBIDDEN:
            try:
                connection.execute(statement)
            except psycopg.errors.InsufficientPrivilege:
                continue
            done.append(statement)
    assert done == []


def test_only_the_writer_appends(filled: Roles, capsys: pytest.CaptureFixture[str]) -> None:
    game = ["record", "--game", "club-catan", "--game-id", "one-more", "mira", "yusuf"]
    assert [invoke(["--db", url, *game]) for url in (filled.rebuilder, filled.reader, filled.writer)] == [3, 3, 0]
    assert "this database user may not do that" in capsys.readouterr().err
    assert [invoke(["--db", url, "rebuild"]) for url in (filled.writer, filled.reader)] == [3, 3]


def test_the_guard_checks_what_another_program_of_the_writer_appends(filled: Roles) -> None:
    columns = "event_id, type, schema_version, subject, occurred_at, recorded_at, recorded_by, supersedes, record"
    forged = f"INSERT INTO events (position, {columns}, leaf_hash, chain_hash) SELECT %s, 'forged' || event_id, type, "
    forged += "schema_version, 'forged', occurred_at, recorded_at + %s, recorded_by, supersedes, record, leaf_hash, "
    forged += "chain_hash FROM events ORDER BY position DESC LIMIT 1"
    with psycopg.connect(filled.writer, autocommit=True) as connection:
        ((head,),) = connection.execute("SELECT max(position) FROM events").fetchall()
        for position, later, message in (
            (head + 2, 0, "the head's plus one"),
            (head + 1, -1, "never decreases"),
            (head + 1, 0, "hashes"),
        ):
            with pytest.raises(psycopg.errors.RestrictViolation, match=message):
                connection.execute(forged, (position, later))


def test_what_the_owner_is_kept_from(filled: Roles) -> None:
    with psycopg.connect(filled.owner, autocommit=True) as connection:
        for statement in FORBIDDEN[:5]:
            with pytest.raises(psycopg.errors.RestrictViolation, match="immutable"):
                connection.execute(statement)
