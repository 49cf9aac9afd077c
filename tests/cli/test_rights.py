"""`doctor` reports roles with more or fewer rights than documented; `grants` prints how to create the roles."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ledgers import open_for_reading, open_for_writing
from rebuilds import keep_rebuilds_out
from roles import Roles, create_documented_roles
from sqlalchemy import inspect, make_url, text
from stores import make_empty_ledger

from ratings_ledger.ledger.store.postgres_roles import DASHBOARD_VIEWS, OWNER_ONLY, WRITE_RIGHTS, build_grant_statements

Ratings = Callable[..., Any]


@pytest.fixture
def roles(postgres_url: str, ratings: Ratings) -> Iterator[Roles]:
    with create_documented_roles(ratings, postgres_url) as new_roles:
        yield new_roles


def list_findings(ratings: Ratings, url: str, what: str = "rights") -> list[tuple[str, str, str]]:
    """Return what `doctor` finds wrong: (role or number, note, remedy); if that is anything, it must exit with 1."""
    result = ratings("doctor", "--format", "json", db=url)
    rows = json.loads(result.stdout)
    assert result.exit_code == int(any(row["state"] == "WRONG" for row in rows)), result
    return [
        (row["value"], row["note"], row["remedy"]) for row in rows if (row["state"], row["what"]) == ("WRONG", what)
    ]


def test_every_table_has_decided_rights(ledger_url: str) -> None:
    """The lists of rights name every table and view exactly once."""
    writable_tables = {table for tables in WRITE_RIGHTS.values() for table in tables}
    listed_tables = [*writable_tables, *OWNER_ONLY, *DASHBOARD_VIEWS]
    assert len(listed_tables) == len(set(listed_tables))
    with open_for_reading(ledger_url) as connection:
        inspector = inspect(connection)
        assert set(listed_tables) == {*inspector.get_table_names(), *inspector.get_view_names()}


@pytest.mark.slow
def test_doctor_accepts_documented_roles(roles: Roles, ratings: Ratings) -> None:
    """`doctor` finds nothing wrong with the documented roles, whichever of them runs it."""
    for url in (roles.owner, roles.writer, roles.rebuilder, roles.reader):
        assert ratings("doctor", db=url).exit_code == 0
        assert list_findings(ratings, url) == []


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("statement", "who", "what"),
    [
        ("GRANT UPDATE ON events TO ROLE_writer", "writer", "may UPDATE on events"),
        ("GRANT UPDATE (record) ON events TO ROLE_writer", "writer", "may UPDATE on events"),
        ("GRANT ALL ON events TO ROLE_writer", "writer", "may UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER on events"),
        ("GRANT INSERT ON ledger_identity TO ROLE_writer", "writer", "may INSERT on ledger_identity"),
        ("GRANT UPDATE ON alembic_version TO ROLE_reader", "reader", "may UPDATE on alembic_version"),
        ("GRANT INSERT ON events_readable TO ROLE_dashboard", "dashboard", "may INSERT on events_readable"),
        ("GRANT TRUNCATE ON generations TO ROLE_rebuilder", "rebuilder", "may TRUNCATE on generations"),
        ("GRANT pg_write_all_data TO ROLE_reader", "reader", "may UPDATE, DELETE on events"),
        ("GRANT ROLE_owner TO ROLE_rebuilder", "rebuilder", "may become ROLE_owner, who owns the ledger"),
        ("ALTER ROLE ROLE_writer CREATEROLE", "writer", "may create roles, and so grant itself rights"),
        ("GRANT CREATE ON SCHEMA public TO ROLE_writer", "writer", "may create objects in the schema public"),
        ("GRANT UPDATE ON events TO PUBLIC", "PUBLIC", "may UPDATE on events"),
        ("GRANT CREATE ON SCHEMA public TO PUBLIC", "PUBLIC", "may create objects in the schema public"),
        (
            "ALTER TABLE ledger_identity OWNER TO ROLE_writer",
            "writer",
            "owns ledger_identity, but ROLE_owner owns the other tables",
        ),
        ("REVOKE DELETE ON generations FROM ROLE_rebuilder", "rebuilder", "lacks DELETE on generations"),
        ("REVOKE SELECT ON live_ladders FROM ROLE_writer", "writer", "lacks SELECT on live_ladders"),
        ("REVOKE CONNECT ON DATABASE DATABASE_ FROM ROLE_dashboard", "dashboard", "lacks CONNECT on the database"),
    ],
)
def test_doctor_remedy_fixes_each_right(statement: str, who: str, what: str, roles: Roles, ratings: Ratings) -> None:
    """`doctor` names each excess or missing right, and its remedy puts the rights in order."""
    roles.execute(statement)
    role = who if who == "PUBLIC" else f"{roles.prefix}{who}"
    remedies = {(value, note): remedy for value, note, remedy in list_findings(ratings, roles.writer)}
    assert (role, what.replace("ROLE_", roles.prefix)) in remedies
    for remedy in remedies.values():
        if remedy.startswith("inherited: "):  # this remedy does not name the role to revoke
            remedy = "REVOKE pg_write_all_data FROM ROLE_reader"
        roles.execute(remedy)
    assert list_findings(ratings, roles.writer) == []


def test_doctor_finds_restored_public_rights(roles: Roles, ratings: Ratings) -> None:
    """`doctor` finds the rights that PUBLIC has again after a database was restored.

    A dump of a database does not include what was revoked from PUBLIC on it.
    """
    roles.execute("GRANT CONNECT, TEMPORARY ON DATABASE DATABASE_ TO PUBLIC")
    findings = [(who, what) for who, what, _ in list_findings(ratings, roles.writer)]
    assert findings == [
        ("PUBLIC", "may connect to the database"),
        ("PUBLIC", "may create temporary tables, which can shadow the ledger's tables"),
    ]


def test_doctor_finds_single_role_for_all(roles: Roles, ratings: Ratings) -> None:
    """`doctor` reports a single role that both owns the ledger and writes to it."""
    roles.execute("REASSIGN OWNED BY ROLE_owner TO ROLE_writer", "DROP OWNED BY ROLE_rebuilder")
    findings = [(who, what) for who, what, _ in list_findings(ratings, roles.writer)]
    who = f"{roles.prefix}writer"
    assert (who, "owns the ledger and can switch its guards off, and no other role may append") in findings
    assert (who, "owns the ledger and can switch its guards off, and no other role may store standings") in findings


def test_doctor_reports_a_superuser(roles: Roles, ratings: Ratings) -> None:
    """`doctor` reports that the role that runs it is a superuser."""
    ((who, what, _),) = list_findings(ratings, roles.administrator)
    assert (who, what.split(",")[0]) == ("postgres", "is a superuser")


def test_doctor_names_a_missing_view(ledger_url: str, ratings: Ratings) -> None:
    """`doctor` names a view that is missing."""
    with open_for_writing(ledger_url) as connection:
        connection.execute(text("DROP VIEW live_ladders"))
    ((value, note, _),) = list_findings(ratings, ledger_url, "objects")
    assert (value, note) == ("1 difference", "the view live_ladders is missing")


def test_doctor_reports_world_writable_file(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """`doctor` reports a ledger file or folder that every account may write to, with the remedy."""
    db = Path(copy_ledger_file(make_empty_ledger))
    assert list_findings(ratings, str(db)) == []
    for path, mode in ((db, 0o666), (db.parent, 0o777)):
        before = path.stat().st_mode
        os.chmod(path, mode)
        ((who, what, remedy),) = list_findings(ratings, str(db))
        assert (who, str(path) in what, remedy) == ("every account", True, f"chmod o-w {path}")
        os.chmod(path, before)


def test_grants_are_printed_by_role_or_together(ratings: Ratings) -> None:
    """`grants` prints the statements of the administrator, of the owner, or of both; it quotes or refuses odd names."""
    statements = build_grant_statements("ratings")
    whole, first, second = (
        ratings("grants", "--sql", *who, db="postgresql://db.example/ratings").stdout
        for who in ([], ["--as", "administrator"], ["--as", "owner"])
    )
    assert whole == first + second
    printed_statements = " ".join(line for line in whole.splitlines() if not line.startswith("--")).split(";")
    assert [" ".join(statement.split()) for statement in printed_statements if statement] == [
        *statements.administrator,
        *statements.owner,
    ]

    odd = ratings("grants", "--sql", db='postgresql://db.example/the club"s').stdout
    assert 'CREATE DATABASE "the club""s" OWNER' in odd
    for arguments, db in (
        (["--prefix", "club a"], "postgresql://h/ratings"),
        (["--prefix", 'a"; DROP ROLE b; --'], "postgresql://h/ratings"),
        ([], "postgresql://h/"),
        ([], "postgresql://h/a%0aDROP"),
        ([], "ratings.db"),
    ):
        result = ratings("grants", "--sql", *arguments, db=db)
        assert (result.exit_code, result.stdout) == (2, ""), result
    assert ratings("grants", "--as", "owner").exit_code == 2
    assert json.loads(ratings("grants", "--format", "json").stdout)[0]["role"] == "ratings_owner"


@pytest.mark.slow
def test_schemas_keep_clubs_apart(postgres_url: str, ratings: Ratings) -> None:
    """Ledgers in schemas of one database, named in their URLs, do not see each other.

    They share only the locks, which belong to the database.
    """
    clubs = {"club_a": 1, "club_b": 2}
    urls = {
        club: make_url(postgres_url).update_query_dict({"options": f"-csearch_path={club}"}).render_as_string(False)
        for club in clubs
    }
    for club, games in clubs.items():
        with psycopg.connect(postgres_url) as connection:
            connection.execute(f"CREATE SCHEMA {club}")
        assert ratings("init", "--no-rules", db=urls[club]).exit_code == 0
        assert ratings("rules", "publish", "--shipped", "elo", "--game", "chess", db=urls[club]).exit_code == 0
        for game in range(games):
            record = ["record", "-q", "--game", "chess", "--game-id", f"g-{game}", "anna", "ben"]
            assert ratings(*record, db=urls[club]).exit_code == 0
    for club, games in clubs.items():
        assert ratings("rebuild", db=urls[club]).exit_code == 0
        assert ratings("verify", db=urls[club]) == (0, "", "")
        assert json.loads(ratings("status", "--format", "json", db=urls[club]).stdout)["position"] == 1 + games
    with keep_rebuilds_out(urls["club_a"]):
        assert ratings("rebuild", db=urls["club_b"]).exit_code != 0
