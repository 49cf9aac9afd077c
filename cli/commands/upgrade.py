"""Implement `upgrade`: upgrade a ledger to the schema of this program."""

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import result_format
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger.store.dialect import ROLE_PREFIX
from ratings_ledger.projections.stored.schema_upgrades import LedgerUpgrade, upgrade_ledger


@command()
@click.option("--dry-run", is_flag=True, help="Show the steps and the role that must run them, and do nothing.")
@result_format
@click.pass_obj
def upgrade(db: str, dry_run: bool, output_format: str) -> int:
    """Bring the ledger to the schema that this program needs.

    It publishes nothing and changes no event. It runs in one transaction, while no rebuild is running. First stop all
    programs that record events, and keep a backup and the head, as in docs/upgrading.md. Exit 3 if another role must
    run it.
    """
    result = upgrade_ledger(db, dry_run=dry_run)
    emit(result, output_format, _print_upgrade)
    return 3 if result.is_needed and not result.may else 0


def _print_upgrade(upgrade: LedgerUpgrade) -> None:
    """Print the steps of an upgrade that was run or is pending."""
    ledger, is_done = f"The ledger {upgrade.ledger}", upgrade.upgraded
    if not upgrade.is_needed:
        render.echo(f"{ledger} has schema {upgrade.from_}, which this program needs: there is nothing to do.")
        return
    if upgrade.steps:
        upgraded_text = "is upgraded" if is_done else "must be upgraded"
        render.echo(f"{ledger} {upgraded_text} from schema {upgrade.from_} to {upgrade.to}:")
    for step in upgrade.steps:
        render.print_hanging(f"  {step.revision}  {step.does}", 8)
    for view in upgrade.views:
        view_text = "was missing, and is created again" if is_done else "is missing, and must be created again"
        render.echo(f"The view {view} {view_text}.")
    if is_done:
        if upgrade.has_roles:
            prefix = upgrade.owner.removesuffix("owner")
            prefix_option = f" --prefix {prefix}" if prefix not in (ROLE_PREFIX, upgrade.owner) else ""
            render.echo(
                f"First grant the roles their rights on new tables, with the statements that {upgrade.owner} runs:"
            )
            render.echo(f"  ratings grants --sql --as owner{prefix_option}")
        render.echo("Then run ratings doctor, and ratings verify --head with the head from before the upgrade.")
        return
    refusal_text = "" if upgrade.may else ", who may not run it"
    render.echo(f"The upgrade must be run by {upgrade.owner}; you are {upgrade.user}{refusal_text}.")
    render.echo("Nothing was done.")
