"""The statements of docs/postgresql.md, run on a real server: every role can do its work and nothing more."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ledgers import run_command
from roles import Roles, create_documented_roles

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8")
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


@pytest.fixture
def roles(postgres_url: str, ratings: Callable[..., Any]) -> Iterator[Roles]:
    """The roles of the page under names of their own, with a ledger that their owner made."""
    with create_documented_roles(ratings, postgres_url) as made:
        assert ratings("init", db=made.owner).exit_code == 0
        yield made


def test_page_has_every_printed_grant(ratings: Callable[..., Any]) -> None:
    """Every grant statement that the program prints is on the PostgreSQL page."""
    result = ratings("grants", "--sql", db="postgresql:///ratings")
    text = " ".join(line.strip() for line in result.stdout.splitlines() if not line.startswith("--"))
    statements = [f"{statement.strip()};" for statement in text.split(";") if statement.strip()]
    page = " ".join(PAGE.split())
    assert len(statements) > 10
    assert [one for one in statements if one not in page] == []


@pytest.fixture
def filled(roles: Roles) -> Roles:
    """The same after the writer imported a season."""
    season = str(ROOT / "examples" / "winter-league.csv")
    options = ["--set", "game=club-catan", "--zone", "Europe/Berlin"]
    assert run_command("import", season, *options, db=roles.writer) == 0
    return roles


def test_every_role_can_do_its_work(filled: Roles, capsys: pytest.CaptureFixture[str]) -> None:
    """Every documented database role can run the commands that are its job."""
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
    codes = {url: [run_command(*command, db=url) for command in commands] for url, commands in work.items()}
    assert codes == {url: [0] * len(commands) for url, commands in work.items()}
    with psycopg.connect(filled.reader) as reader:
        assert reader.execute("SELECT player FROM live_standings WHERE ladder = 'club-catan-elo/all'").rowcount == 8
        changes = reader.execute("SELECT player FROM live_changes WHERE ladder = 'club-catan-elo/all'")
        assert changes.rowcount > 8
        assert reader.execute("SELECT game_id FROM live_games").rowcount == 90


def test_runs_are_recorded_per_role(
    filled: Roles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs by the rebuilder are recorded in the ledger, those by the reader in their state folder."""

    def seen(url: str) -> list[str]:
        capsys.readouterr()
        assert run_command("status", "--no-failures", "--format", "json", db=url) == 0
        return list(json.loads(capsys.readouterr().out)["runs"])

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "cron"))
    assert run_command("rebuild", db=filled.rebuilder) == 0
    assert run_command("verify", db=filled.reader) == 0
    assert seen(filled.reader) == seen(filled.rebuilder) == ["rebuild", "verify"]
    # another account
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody"))
    assert seen(filled.reader) == ["rebuild"]
    assert run_command("verify", db=filled.rebuilder) == 0
    assert seen(filled.reader) == ["rebuild", "verify"]
    # who may not rebuild has tried all the same
    assert run_command("rebuild", db=filled.reader) == 3
    assert run_command("status", "--no-failures", db=filled.reader) == 1
    assert "the last rebuild failed" in capsys.readouterr().err


@pytest.mark.parametrize("role", ["writer", "rebuilder", "reader"])
def test_only_the_owner_can_change_events(filled: Roles, role: str) -> None:
    """The writer, rebuilder and reader roles may not change events, guards or the schema."""
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
    """Only the writer role can append events, and only the rebuilder can rebuild."""
    game = ["record", "--game", "club-catan", "--game-id", "one-more", "mira", "yusuf"]
    assert [run_command(*game, db=url) for url in (filled.rebuilder, filled.reader, filled.writer)] == [3, 3, 0]
    told = capsys.readouterr().err
    assert "this database user lacks a right" in told
    assert "this user lacks INSERT on events, which the role ratings_writer has" in told
    assert [run_command("rebuild", db=url) for url in (filled.writer, filled.reader)] == [3, 3]
    assert "which the role ratings_rebuilder has" in capsys.readouterr().err


def test_refused_run_keeps_what_the_command_said(
    filled: Roles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a rebuild by the writer `status` says the one sentence that the command said, without any SQL."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert run_command("rebuild", db=filled.writer) == 3
    told = capsys.readouterr().err.removeprefix("ratings: ").strip()
    assert run_command("status", "--format", "json", db=filled.writer) == 0
    assert json.loads(capsys.readouterr().out)["runs"]["rebuild"]["last"]["message"] == told
    assert "SQL" not in told


def test_guard_checks_direct_inserts(filled: Roles) -> None:
    """The guard rejects bad events that another program inserts directly as the writer."""
    columns = "event_id, type, schema_version, subject, occurred_at, recorded_at, recorded_by, supersedes, record"
    forged = f"INSERT INTO events (position, {columns}, leaf_hash, chain_hash) SELECT %s, 'forged' || event_id, type, "
    forged += "schema_version, 'forged', occurred_at, recorded_at + %s, recorded_by, supersedes, record, leaf_hash, "
    forged += "chain_hash FROM events ORDER BY position DESC LIMIT 1"
    with psycopg.connect(filled.writer, autocommit=True) as connection:
        ((head,),) = connection.execute("SELECT max(position) FROM events").fetchall()
        for position, later, message in (
            (head + 2, 0, "the head's plus one"),
            (head + 1, -1, "never decreases"),
            (head + 1, 0, "the columns do not fit the record"),
        ):
            with pytest.raises(psycopg.errors.RestrictViolation, match=message):
                connection.execute(forged, (position, later))


def test_owner_cannot_change_events_either(filled: Roles) -> None:
    """Even the owner cannot update, delete or truncate events or the ledger's identity."""
    with psycopg.connect(filled.owner, autocommit=True) as connection:
        for statement in FORBIDDEN[:5]:
            with pytest.raises(psycopg.errors.RestrictViolation, match="immutable"):
                connection.execute(statement)


def test_dashboard_reads_standings_but_no_events(filled: Roles, capsys: pytest.CaptureFixture[str]) -> None:
    """The dashboard role can read the live standings but neither events nor internal tables."""
    assert run_command("rebuild", db=filled.rebuilder) == 0
    with psycopg.connect(filled.dashboard, autocommit=True) as dashboard:
        assert dashboard.execute("SELECT player FROM live_standings WHERE ladder = 'club-catan-elo/all'").rowcount == 8
        assert dashboard.execute("SELECT ladder FROM live_ladders").rowcount > 1
        for name in ("events", "events_readable", "ledger_identity", "generation_standings"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                dashboard.execute(f"SELECT * FROM {name}")
    capsys.readouterr()
    # the commands replay events, which it does not see
    assert run_command("standings", "club-catan-elo/all", db=filled.dashboard) == 3
    assert "this database user lacks a right" in capsys.readouterr().err
