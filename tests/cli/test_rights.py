"""`doctor` says who may do more than the documented roles, or less than he needs; `grants` says how they are made."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ledgers import open_for_reading
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
    """Return what the doctor finds wrong: (role or number, note, remedy); the exit code must be 1 then."""
    result = ratings("doctor", "--format", "json", db=url)
    rows = json.loads(result.stdout)
    assert result.exit_code == int(any(row["state"] == "WRONG" for row in rows)), result
    return [
        (row["value"], row["note"], row["remedy"]) for row in rows if (row["state"], row["what"]) == ("WRONG", what)
    ]


def test_every_table_has_decided_rights(ledger_url: str) -> None:
    """Every table and view is listed exactly once, with who may write it and who may see it."""
    written = {table for tables in WRITE_RIGHTS.values() for table in tables}
    named = [*written, *OWNER_ONLY, *DASHBOARD_VIEWS]
    assert len(named) == len(set(named))
    with open_for_reading(ledger_url) as connection:
        inspector = inspect(connection)
        assert set(named) == {*inspector.get_table_names(), *inspector.get_view_names()}


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
    named = who if who == "PUBLIC" else f"{roles.prefix}{who}"
    remedies = {(value, note): remedy for value, note, remedy in list_findings(ratings, roles.writer)}
    assert (named, what.replace("ROLE_", roles.prefix)) in remedies
    for remedy in remedies.values():
        if remedy.startswith("inherited: "):
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
    """`doctor` reports it when the role that runs it is a superuser."""
    ((who, what, _),) = list_findings(ratings, roles.administrator)
    assert (who, what.split(",")[0]) == ("postgres", "is a superuser")


def test_doctor_names_a_missing_view(ledger_url: str, ratings: Ratings) -> None:
    """`doctor` names a view that is missing."""
    with open_for_reading(ledger_url) as connection:
        connection.execute(text("DROP VIEW live_ladders"))
    assert list_findings(ratings, ledger_url, "objects") == [
        ("1 difference", "the view live_ladders is missing", list_findings(ratings, ledger_url, "objects")[0][2])
    ]


def test_doctor_reports_world_writable_file(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """`doctor` reports a ledger file or folder that every account may write to, with the remedy."""
    db = Path(copy_ledger_file(make_empty_ledger))
    assert list_findings(ratings, str(db)) == []
    for place, mode in ((db, 0o666), (db.parent, 0o777)):
        before = place.stat().st_mode
        os.chmod(place, mode)
        ((who, what, remedy),) = list_findings(ratings, str(db))
        assert (who, str(place) in what, remedy) == ("every account", True, f"chmod o-w {place}")
        os.chmod(place, before)


def test_grants_match_the_documentation(
    ratings: Ratings,
) -> None:
    """`grants` prints the documented statements, and quotes an odd name or refuses it."""
    statements = build_grant_statements("ratings")
    whole, first, second = (
        ratings("grants", "--sql", *who, db="postgresql://db.example/ratings").stdout
        for who in ([], ["--as", "administrator"], ["--as", "owner"])
    )
    assert whole == first + second
    documented_statements = " ".join(line for line in whole.splitlines() if not line.startswith("--")).split(";")
    assert [" ".join(statement.split()) for statement in documented_statements if statement] == [
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
