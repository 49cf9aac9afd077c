"""`verify` names every change to a valid ledger, or exits with 3 if it cannot check the ledger."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from forging import GAME, INVALID_GAMES, append_forged
from ledgers import open_for_reading, open_for_writing
from sqlalchemy import make_url, text
from thresholds import set_thresholds

Ratings = Callable[..., Any]


def create_published_ledger(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number in range(3):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number + 1}T20:00Z")
        assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=url).exit_code == 0
    assert ratings("publish", "elo-chess/all", db=url).exit_code == 0
    assert ratings("rebuild", db=url).exit_code == 0
    assert ratings("verify", db=url) == (0, "", "")


pytestmark = pytest.mark.ledger(make=create_published_ledger)


def list_findings(ratings: Ratings, url: str) -> list[str]:
    """Return the codes and messages of all findings."""
    result = ratings("verify", "--format", "json", db=url)
    assert result.stderr == ""
    findings = [f"{finding['code']}: {finding['message']}" for finding in json.loads(result.stdout)["findings"]]
    assert result.exit_code == int(bool(findings))
    return findings


def run_statements(url: str, *statements: str) -> None:
    """Run statements as a superuser."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(str(make_url(url).database), isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with open_for_reading(url) as connection:
        for statement in statements:
            connection.execute(text(statement))


def is_sqlite(url: str) -> bool:
    return url.startswith("sqlite")


STORED_CHANGES = {
    "a scale": "UPDATE generation_ladders SET scale = 1000",
    "games": "UPDATE generation_ladders SET games = games + 1",
    "players": "UPDATE generation_ladders SET players = players + 1",
    "a ruleset": "UPDATE generation_ladders SET ruleset = 'elo-chess@9'",
    "a digest": "UPDATE generation_ladders SET digest = 'x'",
    "points": "UPDATE generation_standings SET points = points + 1 WHERE ordinal = 1",
    "a rank": "UPDATE generation_standings SET rank = 2 WHERE ordinal = 1",
    "a name": "UPDATE generation_standings SET player = 'eve' WHERE ordinal = 1",
    "who is qualified": "UPDATE generation_standings SET qualified = (1 = 0) WHERE ordinal = 1",
    "a divisor": "UPDATE generation_standings SET divisor = 2 WHERE ordinal = 1",
    "a row deleted": "DELETE FROM generation_standings WHERE ordinal = 1",
    "a ladder deleted": "DELETE FROM generation_ladders WHERE ladder = 'elo-chess/all'",
    "a position": "UPDATE generations SET position = position - 1",
    "the end of the rebuild": "UPDATE generations SET finished_at = NULL",
    "no pointer": "DELETE FROM live_generation",
}


@pytest.mark.parametrize("what", STORED_CHANGES)
def test_changed_stored_standings_are_reported(what: str, db: str, ratings: Ratings) -> None:
    """`verify` reports every change to the stored standings."""
    run_statements(db, STORED_CHANGES[what])
    findings = list_findings(ratings, db)
    assert findings
    assert all(finding.startswith("standings: ") for finding in findings), findings


DIFFERENCES = {
    "a row deleted": "the stored standings differ from a replay",
    "games": "games is stored as 4, but a replay has 3",
    "players": "players is stored as 4, but a replay has 3",
    "a scale": "scale is stored as 1000, but a replay has 1000000",
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_stored_difference_is_one_finding_per_ladder(what: str, db: str, ratings: Ratings) -> None:
    """`verify` reports a difference once for each ladder, and compares with the replay, not with the stored rows."""
    run_statements(db, STORED_CHANGES[what])
    assert list_findings(ratings, db) == [
        f"standings: {ladder}: {DIFFERENCES[what]}" for ladder in ("elo-chess/3-4", "elo-chess/all")
    ]


@pytest.mark.slow_cases
def test_wrong_build_of_ladder_is_reported(db: str, ratings: Ratings) -> None:
    """`verify` reports a ladder whose row contradicts the generation that it names as its build."""
    game = ("--game", "chess", "--game-id", "other", "--at", "2024-02-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", db=db).exit_code == 0
    assert ratings("rebuild", db=db).exit_code == 0
    assert list_findings(ratings, db) == []
    run_statements(db, "UPDATE generation_ladders SET build = 1 WHERE generation = 2 AND ladder = 'elo-chess/all'")
    contradiction = (
        "standings: elo-chess/all: the ladder row contradicts an earlier row of its build, or names a later build"
    )
    assert list_findings(ratings, db)[0] == contradiction
    run_statements(db, "UPDATE generation_ladders SET build = 3 WHERE generation = 2 AND ladder = 'elo-chess/all'")
    assert "standings: elo-chess/all: the stored standings differ from a replay" in list_findings(ratings, db)


@pytest.mark.slow_cases
def test_ladder_kept_by_a_partial_rebuild_is_accepted(db: str, ratings: Ratings) -> None:
    """`verify` accepts a ladder that a rebuild of other ladders left unchanged."""
    game = ("--game", "chess", "--game-id", "late", "--at", "2024-02-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", db=db).exit_code == 0
    assert ratings("rebuild", "elo-chess/all", db=db).exit_code == 0
    assert list_findings(ratings, db) == []


def test_broken_live_pointer_is_reported(db: str, ratings: Ratings) -> None:
    """`verify` reports a live pointer to a missing generation and, in PostgreSQL, a second live pointer."""
    if is_sqlite(db):
        with closing(sqlite3.connect(str(make_url(db).database))) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("UPDATE live_generation SET generation = 99")
            connection.commit()
    else:
        run_statements(
            db,
            "ALTER TABLE live_generation DROP CONSTRAINT live_generation_generation_exists",
            "ALTER TABLE live_generation DROP CONSTRAINT live_generation_one_row",
            "UPDATE live_generation SET generation = 99",
            "INSERT INTO live_generation VALUES (2, 1)",
        )
    findings = list_findings(ratings, db)
    assert "standings: the live pointer names generation 99, which does not exist" in findings
    assert is_sqlite(db) or "standings: the table live_generation has a second row" in findings


@pytest.mark.parametrize("statement", ["DELETE FROM ledger_identity", "UPDATE ledger_identity SET ledger_id = 'mine'"])
def test_missing_ledger_id_is_reported(statement: str, db: str, ratings: Ratings) -> None:
    """`verify` reports a ledger id that is missing or invalid."""
    for verb in ("update", "delete"):
        run_statements(
            db, f"DROP TRIGGER ledger_identity_refuse_{verb}" + ("" if is_sqlite(db) else " ON ledger_identity")
        )
    run_statements(db, statement)
    findings = list_findings(ratings, db)
    assert any("table ledger_identity holds" in finding for finding in findings), findings


def test_second_schema_version_is_reported(db: str, ratings: Ratings) -> None:
    """`verify` reports a second schema version."""
    run_statements(db, "INSERT INTO alembic_version VALUES ('0001')")
    findings = list_findings(ratings, db)
    assert any("the table alembic_version holds" in finding for finding in findings), findings


# records appended by SQL, with right hashes and columns


@pytest.mark.parametrize("what", INVALID_GAMES)
def test_impossible_record_is_reported(what: str, db: str, ratings: Ratings) -> None:
    """`verify` reports a record that the program cannot have written.

    Its hashes, columns and guards are valid, so only its content is wrong.
    """
    append_forged(db, INVALID_GAMES[what])
    findings = list_findings(ratings, db)
    assert [finding.partition(":")[0] for finding in findings] in (["meaning"], ["not-a-record"]), findings


def test_league_named_like_a_label_is_reported(db: str, ratings: Ratings) -> None:
    """`verify` reports a league whose name earlier games have as a label."""
    append_forged(db, {**GAME, "league": "L1"})
    assert list_findings(ratings, db) == []
    league = {"league": "L1", "game": "chess", "players_per_game": 2}
    append_forged(db, league, subject="league:L1", type="league.created", id="created")
    (finding,) = list_findings(ratings, db)
    assert "games such as 'forged' are already recorded for the league 'L1'" in finding


@pytest.mark.parametrize("members", [{"type": "player.exiled"}, {"schema_version": 7}, {"by": "x\u0000y"}])
def test_unknown_event_is_reported_and_exported(members: dict[str, Any], db: str, ratings: Ratings) -> None:
    """`verify` reports an event of an unknown type or version, or by an impossible recorder; it can be exported."""
    if "by" in members and not is_sqlite(db):
        pytest.skip("PostgreSQL cannot store a NUL in a text")
    append_forged(db, GAME, **members)
    findings = list_findings(ratings, db)
    assert len(findings) == 1, findings
    exported = ratings("export", "events", db=db)
    assert (exported.exit_code, "forged" in exported.stdout) == (0, True)


@pytest.mark.slow
def test_closed_output_keeps_exit_code(copy_ledger_file: Callable[..., str]) -> None:
    """`verify` of a forged log exits with 1 even if its output is closed early."""
    db = f"sqlite:///{copy_ledger_file(create_published_ledger)}"
    run_statements(db, "DROP TRIGGER events_refuse_update", "UPDATE events SET recorded_by = 'eve'")
    script = "from ratings_ledger.cli.main import run_program; run_program()"
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run([sys.executable, "-c", script, "--db", db, "verify"], stdout=writing, check=False)
    os.close(writing)
    assert process.returncode == 1


@pytest.mark.parametrize("timeout", ["0", "0.2"])
def test_locked_events_are_not_damage(timeout: str, postgres_db: str, ratings: Ratings) -> None:
    """`verify` of locked events exits with 3, reporting neither success nor damage.

    The locked table has a forged record.
    """
    append_forged(postgres_db, INVALID_GAMES["no participant"])
    with open_for_writing(postgres_db) as connection:
        connection.execute(text("LOCK TABLE events IN ACCESS EXCLUSIVE MODE"))
        result = ratings("verify", db=f"{postgres_db}&timeout={timeout}")
    assert (result.exit_code, result.stdout) == (3, ""), result
    assert "busy" in result.stderr


def test_row_security_is_reported(postgres_db: str, ratings: Ratings) -> None:
    """With row-level security, a restricted role gets errors, and the owner's `verify` reports the policy.

    A policy hides rows from the role; no command reads a part of the log as the whole.
    """
    name = f"reader_{make_url(postgres_db).database}"
    run_statements(
        postgres_db,
        f"CREATE ROLE {name} LOGIN",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}",
        "ALTER TABLE events ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON events USING (position < 3)",
    )
    try:
        role_url = make_url(postgres_db).set(username=name).render_as_string(hide_password=False)
        for command in (("verify",), ("standings", "elo-chess/all"), ("export", "events")):
            result = ratings(*command, db=role_url)
            assert result.exit_code == 3, result
            assert command[0] == "verify" or result.stdout == ""
            assert "row-level security" in result.stderr
        findings = list_findings(ratings, postgres_db)
        assert "schema: the table events has row security switched on, which may hide rows" in findings
        assert "schema: the policy few on events may hide rows" in findings
    finally:
        run_statements(postgres_db, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


@pytest.mark.parametrize(
    "statement",
    ["CREATE INDEX mine ON events (recorded_by)", "CREATE TABLE mine (x integer)", "CREATE VIEW mine AS SELECT 1 AS x"],
)
def test_operators_own_objects_are_accepted(statement: str, db: str, ratings: Ratings) -> None:
    """`verify` accepts an operator's own index, table or view."""
    run_statements(db, statement)
    assert list_findings(ratings, db) == []


@pytest.mark.slow
def test_parallel_verify_finds_the_same(tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` finds the same in a long log with one process and with several."""
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", db=db).exit_code == 0
    games = [
        {"type": "game.recorded", "occurred_at": "2024-01-01T20:00:00Z", "data": {**GAME, "game_id": f"i-{number}"}}
        for number in range(200)
    ]
    assert ratings("import", "-", db=db, input="\n".join(map(json.dumps, games))).exit_code == 0
    set_thresholds(monkeypatch, verified_events=7)
    assert ratings("verify", db=db) == (0, "", "")
    run_statements(
        db,
        "DROP TRIGGER events_refuse_update",
        "UPDATE events SET recorded_by = 'eve' WHERE position IN (7, 8, 14, 15, 150, 201)",
    )
    findings_of_processes = list_findings(ratings, db)
    set_thresholds(monkeypatch, verified_events=10**6)
    assert list_findings(ratings, db) == findings_of_processes
    assert sum(finding.startswith("column: ") for finding in findings_of_processes) == 6


@pytest.mark.parametrize("on", ["EVENTS", "GENERATION_STANDINGS", "other"])
def test_foreign_trigger_is_reported(on: str, copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """`verify` reports a foreign trigger, on a table named in capitals or on another table."""
    db = f"sqlite:///{copy_ledger_file(create_published_ledger)}"
    run_statements(
        db,
        "CREATE TABLE other (x)",
        f"CREATE TRIGGER z AFTER INSERT ON {on} BEGIN UPDATE generation_standings SET points = points + 1000000; END",
    )
    assert list_findings(ratings, db) == [f"schema: the trigger z on {on} was not created by this program"]


@pytest.mark.slow_cases
def test_rollback_to_changed_generation_is_refused(db: str, ratings: Ratings) -> None:
    """A rollback to a kept generation whose rows were changed is refused."""
    game = ("--game", "chess", "--game-id", "late", "--at", "2024-02-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", db=db).exit_code == 0
    assert ratings("rebuild", db=db).exit_code == 0
    run_statements(
        db, "UPDATE generation_standings SET points = points + 1 WHERE build = 1 AND ladder = 'elo-chess/all'"
    )
    result = ratings("rebuild", "--rollback", db=db)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing was rolled back" in result.stderr
    assert list_findings(ratings, db) == []


def test_circular_renames_are_reported(db: str, ratings: Ratings) -> None:
    """`verify` reports renames that form a circle."""
    for number, (player, new) in enumerate((("anna", "xa"), ("xa", "anna"))):
        append_rename(db, number, player, new)
    findings = list_findings(ratings, db)
    assert len(findings) == 1, findings
    assert findings[0].startswith("meaning: the event contradicts earlier events: 'anna' is already renamed to 'xa'; ")


def append_rename(url: str, number: int, player: str, new_player: str) -> None:
    """Append a rename by SQL, with right hashes."""
    data = {"player": player, "new_player": new_player}
    append_forged(url, data, f"player:{player}", id=f"r-{number}", type="player.renamed")


@pytest.mark.parametrize("statement", [
    "UPDATE generation_ladders SET position = 'abc'", "UPDATE generation_ladders SET chain_hash = 'abc'",
    "UPDATE generation_ladders SET chain_hash = 500000000000", "UPDATE generation_standings SET places = 'a,b'",
    "UPDATE generation_standings SET qualified = 2", "UPDATE generation_standings SET qualified = 'yes'",
    "UPDATE generation_standings SET points = points + 0.5", "UPDATE generation_standings SET points = 'abc'",
    "UPDATE generation_standings SET points = 9e999", "UPDATE generation_standings SET points = x'00'",
    "UPDATE generation_standings SET rank = -1", "UPDATE generation_standings SET rank = 1.5",
    "UPDATE generation_standings SET player = x'616e6e61' WHERE player = 'anna'",
    "UPDATE generation_standings SET player = CAST(x'ff' AS TEXT) WHERE ordinal = 1",
    "UPDATE generation_standings SET games = '3 '||'x'", "UPDATE generation_standings SET divisor = 0",
    "UPDATE generation_standings SET gold = 0", "UPDATE generation_standings SET places = ''",
    "UPDATE generation_standings SET ordinal = ordinal + 10",
    "UPDATE generation_standings SET ordinal = 0.5 WHERE ordinal = 1",
    "UPDATE generation_ladders SET digest = CAST(x'ff' AS TEXT)", "UPDATE generation_ladders SET ruleset = 5",
    "UPDATE generations SET finished_at = 'abc'", "UPDATE generations SET finished_at = -9223372036854775808",
    "UPDATE generations SET started_at = -1",
])  # fmt: skip
def test_wrong_value_types_are_findings(statement: str, copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """Stored values of wrong types are findings of `verify`, not bugs."""
    db = f"sqlite:///{copy_ledger_file(create_published_ledger)}"
    run_statements(db, statement)
    findings = list_findings(ratings, db)
    assert findings
    assert all(finding.startswith("standings: ") for finding in findings), findings


def test_shadowed_operator_changes_nothing(postgres_db: str, ratings: Ratings) -> None:
    """An operator that shadows a built-in one does not change the appended game."""
    run_statements(
        postgres_db,
        "CREATE FUNCTION public.cc(text, bigint) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN "
        "pg_catalog.replace($1, 'anna', 'eve') OPERATOR(pg_catalog.||) $2::text; END $$",
        "CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = public.cc)",
    )
    game = ("--game", "chess", "--game-id", "late", "--at", "2024-02-01T20:00Z")
    assert ratings("record", "-q", *game, "anna", "ben", db=postgres_db).exit_code == 0
    assert "eve" not in ratings("export", "events", db=postgres_db).stdout
