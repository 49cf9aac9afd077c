"""What is kept for SQL is compared with a replay as well: a changed, missing or additional row is a finding."""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from test_verify import do, verified

Ratings = Callable[..., Any]

CHANGES = ": the stored changes"
# what was done, and what is said of it
DONE = {
    "a change": ("UPDATE history_changes SET change = change + 1 WHERE ordinal = 1", CHANGES),
    "points before": ("UPDATE history_changes SET before = before + 1 WHERE ordinal = 2", CHANGES),
    "a player": ("UPDATE history_changes SET player = 'eve' WHERE ordinal = 1", CHANGES),
    "a time": ("UPDATE history_changes SET occurred_at = occurred_at + 1 WHERE ordinal = 3", CHANGES),
    "an event": ("UPDATE history_changes SET position = 1 WHERE ordinal = 1", CHANGES),
    "a place": ("UPDATE history_changes SET place = 9 WHERE ordinal = 1", CHANGES),
    "a ruleset": ("UPDATE history_changes SET ruleset = NULL WHERE ordinal = 1", CHANGES),
    "a change less": ("DELETE FROM history_changes WHERE ordinal = 9", CHANGES),
    "a change more": ("INSERT INTO history_changes SELECT part, 10, 'eve', position, occurred_at, place, before, "
                      "change, ruleset FROM history_changes WHERE ordinal = 1", CHANGES),
    "no change": ("DELETE FROM history_changes", CHANGES),
    "a scale": ("UPDATE history_parts SET scale = 7 WHERE ladder <> ''", CHANGES),
    "a digest": ("UPDATE history_parts SET digest = 'x' WHERE ladder <> ''", CHANGES),
    "a name less": ("DELETE FROM history_parts WHERE ladder <> ''", CHANGES),
    "a name more": ("INSERT INTO history_parts SELECT generation, 'elo-chess/none', block, 99, scale, rows, digest "
                    "FROM history_parts WHERE ladder = 'elo-chess/all'", "elo-chess/none: there are stored changes"),
    "a name that leads to others": ("UPDATE history_parts SET part = part + 10 WHERE ladder <> ''", CHANGES),
    "who played": ("UPDATE history_participants SET player = 'eve' WHERE number = 1", "the stored games"),
    "a score": ("UPDATE history_participants SET score = '7' WHERE number = 1", "the stored games"),
    "more of it": ("UPDATE history_participants SET more = '{}' WHERE number = 1", "the stored games"),
    "somebody less": ("DELETE FROM history_participants WHERE player = 'cleo' AND position = 3", "the stored games"),
    "a game less": ("DELETE FROM history_games WHERE game_id = 'g-1'", "the stored games"),
    "a game more": ("INSERT INTO history_games SELECT part, 99, 'forged', occurred_at, game, kind, group_name, city, "
                    "league, season, participants, rated, aborted, more FROM history_games WHERE game_id = 'g-1'",
                    "the stored games"),
    "when it was": ("UPDATE history_games SET occurred_at = 0 WHERE game_id = 'g-1'", "the stored games"),
    "what it was": ("UPDATE history_games SET game = 'go' WHERE game_id = 'g-1'", "the stored games"),
    "whether it is rated": ("UPDATE history_games SET rated = (1 = 0) WHERE game_id = 'g-1'", "the stored games"),
    "no name of games": ("DELETE FROM history_parts WHERE ladder = ''", "stored games are missing"),
    "names of games twice": ("INSERT INTO history_parts SELECT generation, ladder, block + 1, 99, scale, rows, digest "
                             "FROM history_parts WHERE ladder = ''", "there are stored games that the log has not"),
}  # fmt: skip


@pytest.fixture
def db(copied: Callable[..., str]) -> str:
    """A ledger with games, of which one is corrected and one voided, and their history; `verify` is silent."""
    return copied(made)


def made(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number in range(4):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number + 1}T20:00Z")
        assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=url).exit_code == 0
    assert ratings("correct", "g-2", "ben", "anna", "cleo", "--reason", "misread", db=url).exit_code == 0
    assert ratings("void", "g-3", "--reason", "never played", db=url).exit_code == 0
    assert ratings("rebuild", "--history", db=url).exit_code == 0
    assert ratings("verify", db=url) == (0, "", "")


@pytest.mark.parametrize("what", DONE)
def test_given_history_that_was_changed_when_verified_then_it_is_named_and_a_checked_rebuild_mends_it(
    what: str, db: str, ratings: Ratings
) -> None:
    statement, told = DONE[what]
    do(db, statement)
    found = verified(ratings, db)
    assert found
    assert all(one.startswith("standings: ") and told in one for one in found), found
    assert ratings("rebuild", "--check", db=db).exit_code == 0
    assert verified(ratings, db) == []


@pytest.mark.parametrize("statement", [
    "UPDATE history_games SET rated = 2 WHERE game_id = 'g-1'", "UPDATE history_changes SET before = 'abc'",
    "UPDATE history_parts SET rows = 'abc'", "UPDATE history_parts SET block = 'abc'",
    "UPDATE history_games SET game_id = x'ff'",
])  # fmt: skip
def test_given_history_with_other_types_when_verified_then_it_is_a_finding_and_no_bug(
    statement: str, tmp_path: Any, ratings: Ratings
) -> None:
    db = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", db=db).exit_code == 0
    for number in (1, 2):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number}T20:00Z")
        assert ratings("record", "-q", *game, "anna", "ben", db=db).exit_code == 0
    assert ratings("rebuild", "--history", db=db).exit_code == 0
    do(db, statement)
    found = verified(ratings, db)
    assert found
    assert all(one.startswith("standings: ") for one in found), found


def test_given_a_ladder_name_with_control_characters_in_parts_when_verified_then_the_terminal_is_safe(
    db: str, ratings: Ratings
) -> None:
    escape = "char(27)" if db.startswith("sqlite") else "chr(27)"
    do(db, f"INSERT INTO history_parts SELECT generation, 'x' || {escape} || '[31m', block, 99, scale, rows, digest "
           "FROM history_parts WHERE ladder = ''")  # fmt: skip
    told = ratings("verify", db=db)
    assert (told.exit_code, "\x1b" in told.stdout) == (1, False)


def test_given_a_live_history_of_another_generation_when_read_then_no_view_shows_it(db: str, ratings: Ratings) -> None:
    do(db, "UPDATE live_history SET generation = 7")
    assert json.loads(ratings("status", "--format", "json", db=db).stdout)["generation"]["generation"] == 1
    assert verified(ratings, db) == []


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_given_a_role_with_rights_on_the_standings_when_upgraded_then_it_has_them_on_the_history(store: str) -> None:
    """Given a ledger of before, then who writes the standings at night can write the history, and no more."""
    from alembic import command

    from ledger.store.migrations import configuration
    from ledger.store.opening import connect
    from ledger.store.upgrading import upgrade

    upgrade(store)
    role = f'Night "{make_url(store).database}'
    quoted = '"' + role.replace('"', '""') + '"'
    with connect(store).writing() as connection:
        config = configuration()
        config.attributes["connection"] = connection
        command.downgrade(config, "0008")
        connection.exec_driver_sql(f"CREATE ROLE {quoted}")
        connection.exec_driver_sql(f"GRANT SELECT, INSERT, DELETE ON generation_standings TO {quoted}")
        connection.exec_driver_sql("GRANT SELECT ON generation_standings TO PUBLIC")
    upgrade(store)
    with psycopg.connect(store, autocommit=True) as connection:
        rights = "SELECT has_table_privilege(%s, %s, %s)"
        tables = ("live_history", "history_parts", "history_changes", "history_games", "history_participants")
        found = {(right, connection.execute(rights, (role, table, right)).fetchone()) for table in tables
                 for right in ("SELECT", "INSERT", "DELETE", "UPDATE", "TRUNCATE")}  # fmt: skip
        connection.execute(f"DROP OWNED BY {quoted}")
        connection.execute(f"DROP ROLE {quoted}")
    assert found == {("SELECT", (True,)), ("INSERT", (True,)), ("DELETE", (True,)), ("UPDATE", (False,)),
                     ("TRUNCATE", (False,))}  # fmt: skip
