"""Migrations create the declared tables in every store, up, down and up again, and never drop events."""

import ast
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from ratings_ledger import NotALedger, StoreUnavailable
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.migrations import build_config
from ratings_ledger.ledger.store.opening import connect, open_ledger, read_schema_revision
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION, metadata
from ratings_ledger.ledger.store.upgrading import upgrade


def migrate(url: str, revision: str) -> None:
    with connect(url, create=True).writing() as connection:
        config = build_config()
        config.attributes["connection"] = connection
        (command.downgrade if revision == "base" else command.upgrade)(config, revision)


def list_tables_and_views(url: str) -> set[str]:
    with connect(url).reading() as connection:
        inspector = inspect(connection)
        return {*inspector.get_table_names(), *inspector.get_view_names()} - {"alembic_version"}


def append_one_event(url: str) -> None:
    draft = Draft("player:1", "player.registered", 1, "player:anna", 0, '{"player":"anna"}')
    append(open_ledger(url), [draft], by="referee", clock=lambda: 0)


def test_migrated_store_matches_declared_tables(
    ledger_url: str,
) -> None:
    """A migrated store has exactly the tables that the code declares."""
    with connect(ledger_url).reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})

        assert compare_metadata(context, metadata) == []


def test_migrations_depend_on_no_code_that_may_change() -> None:
    """Migrations import only SQLAlchemy, Alembic and frozen code, so that later programs create the same schemas."""
    allowed = {"sqlalchemy", "alembic", "uuid", "pathlib"}
    folder = Path(__file__).parents[2] / "migrations"
    for path in (folder / "frozen.py", *(folder / "versions").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            else:
                modules = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            assert {*modules} <= allowed | {"ratings_ledger.migrations.frozen"}, path.name


def test_migrated_store_has_all_guards(ledger_url: str) -> None:
    """A migrated store has all of its guards and the current schema revision."""
    ledger = open_ledger(ledger_url)
    with ledger.reading() as connection:
        assert ledger.dialect.find_altered_guards(connection) == []
        assert read_schema_revision(connection) == SCHEMA_REVISION


def test_empty_ledger_survives_down_and_up(store: str) -> None:
    """An empty ledger that is migrated down and up again has the same tables and guards, and accepts events."""
    upgrade(store)
    objects_before = list_tables_and_views(store)
    migrate(store, "base")
    assert list_tables_and_views(store) == set()
    migrate(store, "head")

    assert list_tables_and_views(store) == objects_before
    append_one_event(store)
    ledger = open_ledger(store)
    with ledger.reading() as connection:
        assert head(connection).position == 1
        assert ledger.dialect.find_altered_guards(connection) == []


def test_downgrade_with_events_is_refused(ledger_url: str) -> None:
    """A downgrade of a ledger with events is refused, and the ledger is unchanged."""
    append_one_event(ledger_url)
    objects_before = list_tables_and_views(ledger_url)
    with pytest.raises(RuntimeError, match="the ledger holds events"):
        migrate(ledger_url, "base")

    assert list_tables_and_views(ledger_url) == objects_before
    with open_ledger(ledger_url).reading() as connection:
        assert head(connection).position == 1


def test_second_upgrade_changes_nothing(ledger_url: str) -> None:
    """Upgrading an up-to-date ledger changes nothing."""
    append_one_event(ledger_url)
    objects_before = list_tables_and_views(ledger_url)
    upgrade(ledger_url)

    assert list_tables_and_views(ledger_url) == objects_before
    with open_ledger(ledger_url).reading() as connection:
        assert head(connection).position == 1


@pytest.mark.slow_cases
def test_older_schema_can_be_upgraded(
    store: str,
) -> None:
    """Opening a ledger with an older schema fails with the command to upgrade it, and the upgrade keeps its events."""
    upgrade(store)
    append_one_event(store)
    with connect(store).writing() as connection:
        config = build_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")

    with pytest.raises(NotALedger, match=f"needs {SCHEMA_REVISION}.* upgrade$"):
        open_ledger(store)
    upgrade(store)
    with open_ledger(store).reading() as connection:
        assert head(connection).position == 1


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_upgrade_replaces_an_older_guard(ledger_url: str) -> None:
    """In PostgreSQL, an upgrade replaces the guard of an earlier schema."""
    with connect(ledger_url).writing() as connection:
        older_guard = "FUNCTION events_guard_insert() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
        connection.execute(text(f"CREATE OR REPLACE {older_guard}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0004'"))
    upgrade(ledger_url)

    ledger = open_ledger(ledger_url)
    with ledger.reading() as connection:
        assert ledger.dialect.find_altered_guards(connection) == []


def test_newer_schema_is_left_alone(ledger_url: str) -> None:
    """A schema of a newer program can be neither opened nor upgraded."""
    with connect(ledger_url).writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    for open_or_upgrade in (open_ledger, upgrade):
        with pytest.raises(NotALedger, match="newer ratings-ledger"):
            open_or_upgrade(ledger_url)


def test_store_of_another_program_is_refused(store: str) -> None:
    """Creating or opening a ledger in a store with another program's tables is refused."""
    with connect(store, create=True).writing() as connection:
        connection.execute(text("CREATE TABLE events (theirs integer)"))

    with pytest.raises(NotALedger, match="another program"):
        upgrade(store)
    with pytest.raises(NotALedger, match="holds no ledger"):
        open_ledger(store)
    assert list_tables_and_views(store) == {"events"}


def test_another_alembic_store_is_refused(store: str) -> None:
    """A store that another program manages with Alembic is neither opened nor upgraded."""
    with connect(store, create=True).writing() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num varchar(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('0001')"))

    for open_or_upgrade in (open_ledger, upgrade):
        with pytest.raises(NotALedger):
            open_or_upgrade(store)


def test_opening_a_missing_file_creates_none(tmp_path: Path) -> None:
    """Opening a ledger file that does not exist fails and creates no file."""
    with pytest.raises(StoreUnavailable, match="there is no ledger"):
        open_ledger(f"{tmp_path}/missing.db")
    assert list(tmp_path.iterdir()) == []


def test_odd_file_name_is_kept(tmp_path: Path) -> None:
    """A ledger whose file name has special characters is created and opened under exactly that name."""
    name = f"{tmp_path}/50% off? #1 über.db"
    upgrade(name)
    append_one_event(name)

    assert Path(name).is_file()
    with open_ledger(name).reading() as connection:
        assert head(connection).position == 1
