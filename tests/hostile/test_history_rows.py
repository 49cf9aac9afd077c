"""`verify` compares the history that is stored for SQL with a replay: a changed, missing or extra row is a finding."""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from ledgers import create_ledger, downgrade, open_for_writing
from sqlalchemy import make_url
from test_verify import list_findings, run_statements

Ratings = Callable[..., Any]

CHANGES_MESSAGE = ": the stored changes"
# a statement, and a part of the messages of the findings
DAMAGES = {
    "a change": ("UPDATE history_changes SET change = change + 1 WHERE ordinal = 1", CHANGES_MESSAGE),
    "points before": ("UPDATE history_changes SET before = before + 1 WHERE ordinal = 2", CHANGES_MESSAGE),
    "a player": ("UPDATE history_changes SET player = 'eve' WHERE ordinal = 1", CHANGES_MESSAGE),
    "a time": ("UPDATE history_changes SET occurred_at = occurred_at + 1 WHERE ordinal = 3", CHANGES_MESSAGE),
    "an event": ("UPDATE history_changes SET position = 1 WHERE ordinal = 1", CHANGES_MESSAGE),
    "a place": ("UPDATE history_changes SET place = 9 WHERE ordinal = 1", CHANGES_MESSAGE),
    "a ruleset": ("UPDATE history_changes SET ruleset = NULL WHERE ordinal = 1", CHANGES_MESSAGE),
    "a change deleted": ("DELETE FROM history_changes WHERE ordinal = 9", CHANGES_MESSAGE),
    "an extra change": ("INSERT INTO history_changes SELECT part, 10, 'eve', position, occurred_at, place, before, "
                        "change, ruleset FROM history_changes WHERE ordinal = 1", CHANGES_MESSAGE),
    "all changes deleted": ("DELETE FROM history_changes", CHANGES_MESSAGE),
    "a scale": ("UPDATE history_parts SET scale = 7 WHERE ladder <> ''", CHANGES_MESSAGE),
    "a digest": ("UPDATE history_parts SET digest = 'x' WHERE ladder <> ''", CHANGES_MESSAGE),
    "a part deleted": ("DELETE FROM history_parts WHERE ladder <> ''", CHANGES_MESSAGE),
    "an extra part": ("INSERT INTO history_parts SELECT generation, 'elo-chess/none', block, 99, scale, rows, digest "
                      "FROM history_parts WHERE ladder = 'elo-chess/all'", "elo-chess/none: changes are stored that"),
    "a part with other rows": ("UPDATE history_parts SET part = part + 10 WHERE ladder <> ''", CHANGES_MESSAGE),
    "who played": ("UPDATE history_participants SET player = 'eve' WHERE number = 1", "the stored games"),
    "a score": ("UPDATE history_participants SET score = '7' WHERE number = 1", "the stored games"),
    "further members": ("UPDATE history_participants SET more = '{}' WHERE number = 1", "the stored games"),
    "a player deleted": ("DELETE FROM history_participants WHERE player = 'cleo' AND position = 3", "the stored games"),
    "a game deleted": ("DELETE FROM history_games WHERE game_id = 'g-1'", "the stored games"),
    "an extra game": ("INSERT INTO history_games SELECT part, 99, 'forged', occurred_at, game, kind, group_name, city, "
                      "league, season, participants, rated, aborted, more FROM history_games WHERE game_id = 'g-1'",
                      "the stored games"),
    "the time of a game": ("UPDATE history_games SET occurred_at = 0 WHERE game_id = 'g-1'", "the stored games"),
    "what was played": ("UPDATE history_games SET game = 'go' WHERE game_id = 'g-1'", "the stored games"),
    "whether a game is rated": ("UPDATE history_games SET rated = (1 = 0) WHERE game_id = 'g-1'", "the stored games"),
    "the parts of games deleted": ("DELETE FROM history_parts WHERE ladder = ''", "stored games are missing"),
    "an extra part of games": ("INSERT INTO history_parts SELECT generation, ladder, block + 1, 99, scale, rows, "
                               "digest FROM history_parts WHERE ladder = ''",
                               "stored games that the log does not contain"),
}  # fmt: skip


def make_ledger(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number in range(4):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number + 1}T20:00Z")
        assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=url).exit_code == 0
    assert ratings("correct", "g-2", "ben", "anna", "cleo", "--reason", "misread", db=url).exit_code == 0
    assert ratings("void", "g-3", "--reason", "never played", db=url).exit_code == 0
    assert ratings("rebuild", "--history", db=url).exit_code == 0
    assert ratings("verify", db=url) == (0, "", "")


pytestmark = pytest.mark.ledger(make=make_ledger)


@pytest.mark.slow_cases
@pytest.mark.parametrize("damage", DAMAGES)
def test_verify_finds_changed_history(damage: str, db: str, ratings: Ratings) -> None:
    """`verify` reports any changed, missing or extra history row, and `rebuild --check` repairs it."""
    statement, message = DAMAGES[damage]
    run_statements(db, statement)
    findings = list_findings(ratings, db)
    assert findings
    assert all(finding.startswith("standings: ") and message in finding for finding in findings), findings
    assert ratings("rebuild", "--check", db=db).exit_code == 0
    assert list_findings(ratings, db) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE history_games SET rated = 2 WHERE game_id = 'g-1'",
        "UPDATE history_changes SET before = 'abc'",
        "UPDATE history_parts SET rows = 'abc'",
        "UPDATE history_parts SET block = 'abc'",
        "UPDATE history_games SET game_id = x'ff'",
    ],
)
def test_wrongly_typed_history_is_a_finding(statement: str, tmp_path: Any, ratings: Ratings) -> None:
    """History values of the wrong type are findings of `verify`, not program bugs."""
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", db=db).exit_code == 0
    for number in (1, 2):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number}T20:00Z")
        assert ratings("record", "-q", *game, "anna", "ben", db=db).exit_code == 0
    assert ratings("rebuild", "--history", db=db).exit_code == 0
    run_statements(db, statement)
    findings = list_findings(ratings, db)
    assert findings
    assert all(finding.startswith("standings: ") for finding in findings), findings


def test_verify_output_is_safe_for_terminals(db: str, ratings: Ratings) -> None:
    """`verify` prints no control characters from a forged ladder name in the history."""
    escape = "char(27)" if db.startswith("sqlite") else "chr(27)"
    run_statements(
        db,
        f"INSERT INTO history_parts SELECT generation, 'x' || {escape} || '[31m', block, 99, scale, rows, digest "
        "FROM history_parts WHERE ladder = ''",
    )
    result = ratings("verify", db=db)
    assert (result.exit_code, "\x1b" in result.stdout) == (1, False)


def test_stale_history_pointer_is_ignored(db: str, ratings: Ratings) -> None:
    """A live history pointer to another generation is ignored and is no finding."""
    run_statements(db, "UPDATE live_history SET generation = 7")
    assert json.loads(ratings("status", "--format", "json", db=db).stdout)["generation"]["generation"] == 1
    assert list_findings(ratings, db) == []


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_upgrade_extends_rights_to_the_history(store: str) -> None:
    """On upgrade, a role with rights on the standings gets the same rights on the history.

    A role that could write the standings of an older ledger can write its history, and has no further rights.
    """
    create_ledger(store)
    role = f'Night "{make_url(store).database}'
    quoted = '"' + role.replace('"', '""') + '"'
    with open_for_writing(store) as connection:
        downgrade(connection, "0008")
        connection.exec_driver_sql(f"CREATE ROLE {quoted}")
        connection.exec_driver_sql(f"GRANT SELECT, INSERT, DELETE ON generation_standings TO {quoted}")
        connection.exec_driver_sql("GRANT SELECT ON generation_standings TO PUBLIC")
    create_ledger(store)
    with psycopg.connect(store, autocommit=True) as connection:
        query = "SELECT has_table_privilege(%s, %s, %s)"
        tables = ("live_history", "history_parts", "history_changes", "history_games", "history_participants")
        rights = {
            (right, connection.execute(query, (role, table, right)).fetchone())
            for table in tables
            for right in ("SELECT", "INSERT", "DELETE", "UPDATE", "TRUNCATE")
        }
        connection.execute(f"DROP OWNED BY {quoted}")
        connection.execute(f"DROP ROLE {quoted}")
    assert rights == {
        ("SELECT", (True,)),
        ("INSERT", (True,)),
        ("DELETE", (True,)),
        ("UPDATE", (False,)),
        ("TRUNCATE", (False,)),
    }
