"""The roles of docs/postgresql.md on a real server: each can run the commands of its job and nothing more."""

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
FORBIDDEN_STATEMENTS = (
    "UPDATE events SET recorded_by = 'eve'",
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
    """Yield the documented roles under names of this test, with a ledger that their owner created."""
    with create_documented_roles(ratings, postgres_url) as created_roles:
        assert ratings("init", db=created_roles.owner).exit_code == 0
        yield created_roles


def test_page_has_every_printed_grant(ratings: Callable[..., Any]) -> None:
    """Every grant statement that the program prints is on the PostgreSQL page."""
    result = ratings("grants", "--sql", db="postgresql:///ratings")
    text = " ".join(line.strip() for line in result.stdout.splitlines() if not line.startswith("--"))
    statements = [f"{statement.strip()};" for statement in text.split(";") if statement.strip()]
    page = " ".join(PAGE.split())
    assert len(statements) > 10
    assert [statement for statement in statements if statement not in page] == []


@pytest.fixture
def season_roles(roles: Roles) -> Roles:
    """Return the documented roles, with a ledger into which the writer has imported a season."""
    season = str(ROOT / "examples" / "winter-league.csv")
    options = ["--set", "game=club-catan", "--zone", "Europe/Berlin"]
    assert run_command("import", season, *options, db=roles.writer) == 0
    return roles


def test_every_role_can_do_its_work(season_roles: Roles, capsys: pytest.CaptureFixture[str]) -> None:
    """Every documented database role can run the commands of its job."""
    capsys.readouterr()
    publish = ["rules", "publish", str(ROOT / "examples" / "club-catan-elo-2.toml")]
    record = ["record", "--game", "club-catan", "--game-id", "one-more", "mira", "yusuf"]
    correct = ["correct", "one-more", "yusuf", "mira", "--reason", "the other way round"]
    commands_by_role = {
        season_roles.writer: [publish, record, correct, ["void", "one-more", "--reason", "a friendly"]],
        season_roles.rebuilder: [["rebuild"], ["rebuild", "--history"], ["rebuild"]],
        season_roles.reader: [["verify"], ["standings", "club-catan-elo/all"], ["log"], ["status"], ["doctor"]],
        season_roles.owner: [["init"]],
    }
    codes = {url: [run_command(*command, db=url) for command in commands] for url, commands in commands_by_role.items()}
    assert codes == {url: [0] * len(commands) for url, commands in commands_by_role.items()}
    with psycopg.connect(season_roles.reader) as reader:
        assert reader.execute("SELECT player FROM live_standings WHERE ladder = 'club-catan-elo/all'").rowcount == 8
        changes = reader.execute("SELECT player FROM live_changes WHERE ladder = 'club-catan-elo/all'")
        assert changes.rowcount > 8
        assert reader.execute("SELECT game_id FROM live_games").rowcount == 90


def test_runs_are_recorded_per_role(
    season_roles: Roles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs of the rebuilder are recorded in the ledger, and those of the reader in its state folder."""

    def list_runs(url: str) -> list[str]:
        capsys.readouterr()
        assert run_command("status", "--no-failures", "--format", "json", db=url) == 0
        return list(json.loads(capsys.readouterr().out)["runs"])

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "cron"))
    assert run_command("rebuild", db=season_roles.rebuilder) == 0
    assert run_command("verify", db=season_roles.reader) == 0
    assert list_runs(season_roles.reader) == list_runs(season_roles.rebuilder) == ["rebuild", "verify"]
    # another account does not see the run in the first one's state folder
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert list_runs(season_roles.reader) == ["rebuild"]
    assert run_command("verify", db=season_roles.rebuilder) == 0
    assert list_runs(season_roles.reader) == ["rebuild", "verify"]
    # a rebuild without the right to it is recorded as failed
    assert run_command("rebuild", db=season_roles.reader) == 3
    assert run_command("status", "--no-failures", db=season_roles.reader) == 1
    assert "the last rebuild failed" in capsys.readouterr().err


@pytest.mark.parametrize("role", ["writer", "rebuilder", "reader"])
def test_working_roles_cannot_change_events(season_roles: Roles, role: str) -> None:
    """The writer, rebuilder and reader roles may not change events, guards or the schema."""
    executed = []
    with psycopg.connect(getattr(season_roles, role), autocommit=True) as connection:
        for statement in FORBIDDEN_STATEMENTS:
            try:
                connection.execute(statement)
            except psycopg.errors.InsufficientPrivilege:
                continue
            executed.append(statement)
    assert executed == []


def test_only_the_writer_appends(season_roles: Roles, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the writer role can append events; it cannot rebuild, and neither can the reader."""
    game = ["record", "--game", "club-catan", "--game-id", "one-more", "mira", "yusuf"]
    assert [
        run_command(*game, db=url) for url in (season_roles.rebuilder, season_roles.reader, season_roles.writer)
    ] == [3, 3, 0]
    stderr = capsys.readouterr().err
    assert "this database user lacks a right" in stderr
    assert "this user lacks INSERT on events, which the role ratings_writer has" in stderr
    assert [run_command("rebuild", db=url) for url in (season_roles.writer, season_roles.reader)] == [3, 3]
    assert "which the role ratings_rebuilder has" in capsys.readouterr().err


def test_refused_run_keeps_the_message(
    season_roles: Roles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a refused rebuild by the writer, `status` shows the message of the command, which has no SQL."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert run_command("rebuild", db=season_roles.writer) == 3
    message = capsys.readouterr().err.removeprefix("ratings: ").strip()
    assert run_command("status", "--format", "json", db=season_roles.writer) == 0
    assert json.loads(capsys.readouterr().out)["runs"]["rebuild"]["last"]["message"] == message
    assert "SQL" not in message


def test_guard_checks_direct_inserts(season_roles: Roles) -> None:
    """The guard rejects bad events that another program inserts directly as the writer."""
    columns = "event_id, type, schema_version, subject, occurred_at, recorded_at, recorded_by, supersedes, record"
    forged = f"INSERT INTO events (position, {columns}, leaf_hash, chain_hash) SELECT %s, 'forged' || event_id, type, "
    forged += "schema_version, 'forged', occurred_at, recorded_at + %s, recorded_by, supersedes, record, leaf_hash, "
    forged += "chain_hash FROM events ORDER BY position DESC LIMIT 1"
    with psycopg.connect(season_roles.writer, autocommit=True) as connection:
        ((head,),) = connection.execute("SELECT max(position) FROM events").fetchall()
        for position, later, message in (
            (head + 2, 0, "the head's plus one"),
            (head + 1, -1, "never decreases"),
            (head + 1, 0, "the columns do not fit the record"),
        ):
            with pytest.raises(psycopg.errors.RestrictViolation, match=message):
                connection.execute(forged, (position, later))


def test_owner_cannot_change_events_either(season_roles: Roles) -> None:
    """Even the owner cannot update, delete or truncate events or the ledger's identity."""
    with psycopg.connect(season_roles.owner, autocommit=True) as connection:
        for statement in FORBIDDEN_STATEMENTS[:5]:
            with pytest.raises(psycopg.errors.RestrictViolation, match="immutable"):
                connection.execute(statement)


def test_dashboard_reads_standings_but_no_events(season_roles: Roles, capsys: pytest.CaptureFixture[str]) -> None:
    """The dashboard role can read the live standings, but no events and no internal tables."""
    assert run_command("rebuild", db=season_roles.rebuilder) == 0
    with psycopg.connect(season_roles.dashboard, autocommit=True) as dashboard:
        assert dashboard.execute("SELECT player FROM live_standings WHERE ladder = 'club-catan-elo/all'").rowcount == 8
        assert dashboard.execute("SELECT ladder FROM live_ladders").rowcount > 1
        for name in ("events", "events_readable", "ledger_identity", "generation_standings"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                dashboard.execute(f"SELECT * FROM {name}")
    capsys.readouterr()
    # the commands replay events, which the dashboard role cannot read
    assert run_command("standings", "club-catan-elo/all", db=season_roles.dashboard) == 3
    assert "this database user lacks a right" in capsys.readouterr().err
