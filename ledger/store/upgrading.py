"""Create a ledger, and upgrade one to the schema of this program."""

from dataclasses import replace
from typing import NamedTuple

from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from ratings_ledger.ledger.errors import NotALedger
from ratings_ledger.ledger.store.catalogue import find_missing_views
from ratings_ledger.ledger.store.migrations import build_config, make_tables
from ratings_ledger.ledger.store.opening import (
    IN_MEMORY,
    Ledger,
    build_ledger_exists_error,
    connect,
    connect_in_memory,
    open_ledger,
    read_schema_revision,
)
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION


def _find_other_program(connection: Connection) -> str | None:
    """Return evidence that a store without a ledger belongs to another program, or None if there is none."""
    if inspect(connection).has_table("events"):
        return "a table 'events'"
    return "migrations" if MigrationContext.configure(connection).get_current_heads() else None


def upgrade(name: str) -> Ledger:
    """Create or upgrade the ledger of this name, and open it. Raises `NotALedger`, `StoreUnavailable`."""
    _upgrade_store(connect(name, create=True))
    return open_ledger(name)


def create_store(name: str) -> Ledger:
    """Create a ledger of this name; the name `:memory:` stands for a ledger in memory.

    Raises `LedgerExists`, `NotALedger`, `StoreUnavailable`.
    """
    if name != IN_MEMORY:
        _upgrade_store(connect(name, create=True), refuses_ledger=True)
        return open_ledger(name)
    ledger = connect_in_memory()
    _upgrade_store(ledger)
    return replace(ledger, checks_catalogue=True)


def _upgrade_store(ledger: Ledger, *, refuses_ledger: bool = False) -> None:
    """Bring a store to the newest schema. With `refuses_ledger`, raise `LedgerExists` if it holds a ledger."""
    with ledger.reading() as connection:
        revision = read_schema_revision(connection)
    if revision is not None and refuses_ledger:
        raise build_ledger_exists_error(ledger)
    if revision != SCHEMA_REVISION:
        with ledger.writing() as connection:
            ledger.dialect.lock_schema(connection)
            # read again under the lock, because another process may have created the ledger meanwhile
            revision = read_schema_revision(connection)
            if revision is not None and refuses_ledger:
                raise build_ledger_exists_error(ledger)
            if revision is None and (sign := _find_other_program(connection)):
                raise NotALedger(f"{ledger.location} has {sign} of another program; choose another database")
            known = {script.revision for script in ScriptDirectory.from_config(build_config()).walk_revisions()}
            if revision is not None and revision not in known:
                raise NotALedger(
                    f"{ledger.location} has schema {revision}; a newer ratings-ledger made it: upgrade the program",
                    "new-schema",
                )
            if revision != SCHEMA_REVISION:
                make_tables(connection)


class UpgradePlan(NamedTuple):
    """The plan of an upgrade: the ledger, its schema, (revision, description) of each step, and the missing views.

    The views are listed only if there are no steps. The last three members are those of `ChangeRights`.
    """

    ledger: Ledger
    revision: str
    steps: list[tuple[str, str]]
    views: list[str]
    user: str
    owner: str
    can_change_tables: bool


def plan_upgrade(name: str) -> UpgradePlan:
    """Plan an upgrade of a ledger without doing it. Raises `NotALedger`, `StoreUnavailable`."""
    ledger = connect(name)
    scripts = ScriptDirectory.from_config(build_config())
    with ledger.reading() as connection:
        revision = read_schema_revision(connection)
        revisions = [script.revision for script in scripts.walk_revisions()]
        if revision not in revisions:
            open_ledger(name)  # raises `NoLedger` or `NotALedger`, which name the problem with the store
        steps = list(scripts.iterate_revisions("head", revision))[::-1]
        views = [] if steps else sorted(find_missing_views(connection))
        change_rights = ledger.dialect.read_change_rights(connection)
    return UpgradePlan(ledger, str(revision), [(step.revision, step.doc) for step in steps], views, *change_rights)


def recreate_views(ledger: Ledger) -> None:
    """Recreate the missing views."""
    with ledger.writing() as connection:
        ledger.dialect.lock_schema(connection)
        for statement in find_missing_views(connection).values():
            connection.exec_driver_sql(statement)
