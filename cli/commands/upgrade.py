"""`upgrade`: bringing a ledger to a newer schema."""

from typing import TYPE_CHECKING

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import result_format
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.store.dialect import PREFIX
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION
from ratings_ledger.projections.stored.rebuild_lock import only_one

if TYPE_CHECKING:
    from ratings_ledger.ledger.store.upgrading import UpgradePlan


@command()
@click.option("--dry-run", is_flag=True, help="Say what would be done and who must run it, and do nothing.")
@result_format
@click.pass_obj
def upgrade(db: str, dry_run: bool, form: str) -> int:
    """Bring the ledger to the schema that this program needs.

    Nothing is published, and no event changes. It is done in one transaction, while no rebuild is running. First stop
    whatever records, and keep a backup and the head: docs/upgrading.md. Exit 3 if somebody else must run it.
    """
    from ratings_ledger.ledger.store.upgrading import planned, remake_views
    from ratings_ledger.ledger.store.upgrading import upgrade as migrate

    plan = planned(db)
    needed = bool(plan.steps or plan.views)
    if needed and plan.may and not dry_run:
        with only_one(plan.ledger):
            migrate(db)
            remake_views(plan.ledger)
    done = needed and plan.may and not dry_run
    if form == "json":
        steps = [{"revision": revision, "does": does} for revision, does in plan.steps]
        render.print_json(
            {"ledger": plan.ledger.location, "from": plan.found, "to": SCHEMA_REVISION, "steps": steps,
             "views": plan.views, "user": plan.user, "owner": plan.owner, "may": plan.may, "dry_run": dry_run,
             "upgraded": done}
        )  # fmt: skip
    else:
        _tell(plan, done)
    return 3 if needed and not plan.may else 0


def _tell(plan: "UpgradePlan", done: bool) -> None:
    """Print what is done, or would be."""
    where = f"The ledger {plan.ledger.location}"
    if not plan.steps and not plan.views:
        render.echo(f"{where} has schema {plan.found}, which this program needs: there is nothing to do.")
        return
    if plan.steps:
        render.echo(
            f"{where} {'is brought' if done else 'is to be brought'} from schema {plan.found} to {SCHEMA_REVISION}:"
        )
    for revision, does in plan.steps:
        render.hanging(f"  {revision}  {does}", 8)
    for view in plan.views:
        render.echo(f"The view {view} is gone, and {'is' if done else 'is to be'} made anew.")
    if done:
        if plan.ledger.dialect.grant_statements("", PREFIX) is not None:
            prefix = plan.owner.removesuffix("owner")
            named = f" --prefix {prefix}" if prefix not in (PREFIX, plan.owner) else ""
            render.echo(f"First, for the rights of the roles on what is new, the statements that {plan.owner} runs:")
            render.echo(f"  ratings grants --sql --as owner{named}")
        render.echo("Now: ratings doctor, and ratings verify --head with the head from before.")
        return
    render.echo(f"It must be run by {plan.owner}; you are {plan.user}{'' if plan.may else ', who may not'}.")
    render.echo("Nothing was done.")
