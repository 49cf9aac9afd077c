"""The migrations make what the tables declare, on every store, up and down and up; events are never dropped."""

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

import projections.stored.schema  # noqa: F401  (declares its tables in the same metadata)
from ledger.errors import NotALedger, StoreUnavailable
from ledger.events.types import Draft
from ledger.store.appending import append
from ledger.store.log import head
from ledger.store.migrations import configuration
from ledger.store.opening import connect, open_ledger, schema_revision
from ledger.store.schema import SCHEMA_REVISION, metadata
from ledger.store.upgrading import upgrade


def move(url: str, to: str) -> None:
    with connect(url, create=True).writing() as connection:
        config = configuration()
        config.attributes["connection"] = connection
        (command.downgrade if to == "base" else command.upgrade)(config, to)


def objects(url: str) -> set[str]:
    with connect(url).reading() as connection:
        inspector = inspect(connection)
        return {*inspector.get_table_names(), *inspector.get_view_names()} - {"alembic_version"}


def put_one_event(url: str) -> None:
    draft = Draft("player:1", "player.registered", 1, "player:anna", 0, '{"player":"anna"}')
    append(open_ledger(url), [draft], by="referee", clock=lambda: 0)


def test_given_a_migrated_store_when_compared_with_the_declared_tables_then_there_is_no_difference(
    ledger_url: str,
) -> None:
    with connect(ledger_url).reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})

        assert compare_metadata(context, metadata) == []


def test_given_a_migrated_store_when_its_guards_are_read_back_then_all_are_in_place(ledger_url: str) -> None:
    ledger = open_ledger(ledger_url)
    with ledger.reading() as connection:
        assert ledger.dialect.guards_missing(connection) == []
        assert schema_revision(connection) == SCHEMA_REVISION


def test_given_an_empty_ledger_when_migrated_down_and_up_then_it_is_as_before_and_works(store: str) -> None:
    upgrade(store)
    made = objects(store)
    move(store, "base")
    assert objects(store) == set()
    move(store, "head")

    assert objects(store) == made
    put_one_event(store)
    ledger = open_ledger(store)
    with ledger.reading() as connection:
        assert head(connection).position == 1
        assert ledger.dialect.guards_missing(connection) == []


def test_given_a_ledger_with_events_when_downgraded_then_it_is_refused_and_nothing_is_lost(ledger_url: str) -> None:
    put_one_event(ledger_url)
    made = objects(ledger_url)
    with pytest.raises(RuntimeError, match="the ledger holds events"):
        move(ledger_url, "base")

    assert objects(ledger_url) == made
    with open_ledger(ledger_url).reading() as connection:
        assert head(connection).position == 1


def test_given_a_ledger_when_upgraded_again_then_nothing_changes(ledger_url: str) -> None:
    put_one_event(ledger_url)
    made = objects(ledger_url)
    upgrade(ledger_url)

    assert objects(ledger_url) == made
    with open_ledger(ledger_url).reading() as connection:
        assert head(connection).position == 1


def test_given_an_older_schema_when_opened_then_it_says_how_to_upgrade_and_the_upgrade_keeps_the_events(
    store: str,
) -> None:
    upgrade(store)
    put_one_event(store)
    with connect(store).writing() as connection:
        config = configuration()
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")

    with pytest.raises(NotALedger, match=f"needs {SCHEMA_REVISION}.* upgrade$"):
        open_ledger(store)
    upgrade(store)
    with open_ledger(store).reading() as connection:
        assert head(connection).position == 1


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
def test_given_the_guard_of_an_earlier_schema_when_upgraded_then_it_is_replaced(ledger_url: str) -> None:
    with connect(ledger_url).writing() as connection:
        old = "FUNCTION events_guard_insert() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'"
        connection.execute(text(f"CREATE OR REPLACE {old}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0004'"))
    upgrade(ledger_url)

    ledger = open_ledger(ledger_url)
    with ledger.reading() as connection:
        assert ledger.dialect.guards_missing(connection) == []


def test_given_a_schema_of_a_newer_program_when_opened_or_upgraded_then_it_is_left_alone(ledger_url: str) -> None:
    with connect(ledger_url).writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    for use in (open_ledger, upgrade):
        with pytest.raises(NotALedger, match="newer ratings-ledger"):
            use(ledger_url)


def test_given_a_store_of_another_program_when_a_ledger_is_made_there_then_it_is_refused(store: str) -> None:
    with connect(store, create=True).writing() as connection:
        connection.execute(text("CREATE TABLE events (theirs integer)"))

    with pytest.raises(NotALedger, match="another program"):
        upgrade(store)
    with pytest.raises(NotALedger, match="holds no ledger"):
        open_ledger(store)
    assert objects(store) == {"events"}


def test_given_a_store_of_another_alembic_program_when_a_ledger_is_made_there_then_it_is_refused(store: str) -> None:
    with connect(store, create=True).writing() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num varchar(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('0001')"))

    for use in (open_ledger, upgrade):
        with pytest.raises(NotALedger):
            use(store)


def test_given_no_file_when_opened_then_none_is_made(tmp_path: object) -> None:
    with pytest.raises(StoreUnavailable, match="there is no ledger"):
        open_ledger(f"{tmp_path}/missing.db")


def test_given_a_file_name_with_odd_characters_when_a_ledger_is_made_then_it_is_that_file(tmp_path: object) -> None:
    name = f"{tmp_path}/50% off? #1 über.db"
    upgrade(name)
    put_one_event(name)

    with open_ledger(name).reading() as connection:
        assert head(connection).position == 1
