"""Making a ledger, and upgrading one to the schema of this program."""

from dataclasses import replace
from typing import NamedTuple

from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from ratings_ledger.ledger.errors import NotALedger
from ratings_ledger.ledger.store.catalogue import missing_views
from ratings_ledger.ledger.store.migrations import build_config, make_tables
from ratings_ledger.ledger.store.opening import (
    IN_MEMORY,
    Ledger,
    connect,
    connect_in_memory,
    ledger_exists_error,
    open_ledger,
    schema_revision,
)
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION


def _other_program(connection: Connection) -> str | None:
    """Return a sign that a store without a ledger belongs to another program, or None."""
    if inspect(connection).has_table("events"):
        return "a table 'events'"
    return "migrations" if MigrationContext.configure(connection).get_current_heads() else None


def upgrade(name: str) -> Ledger:
    """Return the ledger of that name at the newest schema, made if need be. Raises `NotALedger`, `StoreUnavailable`."""
    _bring_up(connect(name, create=True))
    return open_ledger(name)


def create_store(name: str) -> Ledger:
    """Return a new ledger of that name, or one in memory for `:memory:`.

    Raises `LedgerExists`, `NotALedger`, `StoreUnavailable`.
    """
    if name != IN_MEMORY:
        _bring_up(connect(name, create=True), refuses_ledger=True)
        return open_ledger(name)
    ledger = connect_in_memory()
    _bring_up(ledger)
    return replace(ledger, compares=True)


def _bring_up(ledger: Ledger, *, refuses_ledger: bool = False) -> None:
    """Bring a store to the newest schema. Raises `LedgerExists` if a ledger is there and is not wanted."""
    with ledger.reading() as connection:
        found = schema_revision(connection)
    if found is not None and refuses_ledger:
        raise ledger_exists_error(ledger)
    if found != SCHEMA_REVISION:
        with ledger.writing() as connection:
            ledger.dialect.lock_schema(connection)
            # asked again under the lock, as others may have made it in the meantime
            found = schema_revision(connection)
            if found is not None and refuses_ledger:
                raise ledger_exists_error(ledger)
            if found is None and (theirs := _other_program(connection)):
                raise NotALedger(f"{ledger.location} has {theirs} of another program; choose another database")
            known = {script.revision for script in ScriptDirectory.from_config(build_config()).walk_revisions()}
            if found is not None and found not in known:
                raise NotALedger(
                    f"{ledger.location} has schema {found}; a newer ratings-ledger made it: upgrade the program",
                    "new-schema",
                )
            if found != SCHEMA_REVISION:
                make_tables(connection)


class UpgradePlan(NamedTuple):
    """What an upgrade would do: the current schema, (revision, what it does) of each step from it to the newest, the
    views that are gone; who asks, who may, and whether these are the same."""

    ledger: Ledger
    found: str
    steps: list[tuple[str, str]]
    views: list[str]
    user: str
    owner: str
    may: bool


def plan_upgrade(name: str) -> UpgradePlan:
    """Return what an upgrade of a ledger would do, without doing it. Raises `NotALedger`, `StoreUnavailable`."""
    ledger = connect(name)
    scripts = ScriptDirectory.from_config(build_config())
    with ledger.reading() as connection:
        found = schema_revision(connection)
        revisions = [script.revision for script in scripts.walk_revisions()]
        if found not in revisions:
            open_ledger(name)  # says what is there instead
        steps = list(scripts.iterate_revisions("head", found))[::-1]
        views = [] if steps else sorted(missing_views(connection))
        asking = ledger.dialect.read_change_rights(connection)
    return UpgradePlan(ledger, str(found), [(step.revision, step.doc) for step in steps], views, *asking)


def recreate_views(ledger: Ledger) -> None:
    """Recreate the views that are gone."""
    with ledger.writing() as connection:
        ledger.dialect.lock_schema(connection)
        for statement in missing_views(connection).values():
            connection.exec_driver_sql(statement)
