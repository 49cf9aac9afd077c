"""Upgrade a ledger to the schema of this program."""

from dataclasses import dataclass, field

import ratings_ledger.projections.stored.schema  # noqa: F401  # declares the views that differ between stores
from ratings_ledger.ledger.store.dialect import ROLE_PREFIX
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION
from ratings_ledger.projections.queries.results import HIDDEN, NAMED_FROM, Result
from ratings_ledger.projections.stored.rebuild_lock import hold_rebuild_lock


@dataclass(frozen=True, slots=True)
class UpgradeStep(Result):
    """A migration that an upgrade runs; `does` describes it."""

    revision: str
    does: str


@dataclass(frozen=True, slots=True)
class LedgerUpgrade(Result):
    """An upgrade of a ledger: the steps, the missing views, the current user, and the owner of the tables.

    `may` tells whether the user may change the tables, `upgraded` whether the upgrade was carried out,
    `has_roles` whether the ledger's store is of the kind that has database roles (PostgreSQL).
    """

    ledger: str
    from_: str = field(metadata=NAMED_FROM)
    to: str
    steps: tuple[UpgradeStep, ...]
    views: tuple[str, ...]
    user: str
    owner: str
    may: bool
    dry_run: bool
    upgraded: bool
    has_roles: bool = field(metadata=HIDDEN)

    @property
    def is_needed(self) -> bool:
        """Tell whether the ledger needs an upgrade."""
        return bool(self.steps or self.views)


def upgrade_ledger(name: str, *, dry_run: bool = False) -> LedgerUpgrade:
    """Upgrade a ledger to the newest schema if the ledger needs it and the user may change its tables.

    Raises `AlreadyRunning` while a rebuild, a rollback or another upgrade is running, `NotALedger`, `StoreUnavailable`.
    """
    from ratings_ledger.ledger.store.upgrading import plan_upgrade, recreate_views, upgrade  # loads alembic

    plan = plan_upgrade(name)
    should_upgrade = bool(plan.steps or plan.views) and plan.can_change_tables and not dry_run
    if should_upgrade:
        with hold_rebuild_lock(plan.ledger):
            upgrade(name)
            recreate_views(plan.ledger)
    return LedgerUpgrade(
        ledger=plan.ledger.location,
        from_=plan.revision,
        to=SCHEMA_REVISION,
        steps=tuple(UpgradeStep(revision, does) for revision, does in plan.steps),
        views=tuple(plan.views),
        user=plan.user,
        owner=plan.owner,
        may=plan.can_change_tables,
        dry_run=dry_run,
        upgraded=should_upgrade,
        has_roles=plan.ledger.dialect.build_grant_statements("", ROLE_PREFIX) is not None,
    )
