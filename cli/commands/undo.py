"""Implement `undo`: show the last recorded change, and undo it."""

from dataclasses import replace

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.prompts import ask, can_ask
from ratings_ledger.cli.arguments.writing import WriteContext, write_command
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.proposals import print_undo_result, print_undone
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.projections.admission.changesets import (
    find_newer_event,
    load_last_changeset,
    load_undoable_changeset,
)
from ratings_ledger.projections.admission.undo import describe_undo, plan_undo
from ratings_ledger.projections.diff.impact import Impact


@command()
@click.argument("position", type=click.IntRange(min=1), required=False)
@click.option(
    "--reason", metavar="TEXT", help="The reason, which is recorded.  [default: a description of the undone events]"
)
@click.option("--yes", is_flag=True, help="Undo without asking.")
@write_command
def undo(context: WriteContext, position: int | None, reason: str | None, yes: bool) -> int:
    """Undo the last thing you recorded, or the event at POSITION.

    It takes back an import, a game, a correction, a void, an adjustment, a rename, a list or a step of a league. It
    shows the effect and asks first. Nothing is deleted: the opposite is recorded, so an undo can be undone, too. Undo
    later changes to the same games first. --by NAME takes back the last thing that NAME recorded.
    """
    asks = not yes and not context.dry_run
    if asks and (context.output_format != "table" or not can_ask()):
        cause = "there is no terminal to ask at" if context.output_format == "table" else "--format json cannot ask"
        raise click.UsageError(f"{cause}; pass --yes to undo without asking, or --dry-run to see the effect")
    # the log accepted these games once, so they may count again
    context = replace(context, policy=context.policy._replace(any_date=True, allow_uncounted=True))
    try:
        with context.ledger.reading() as connection:
            changeset = (
                load_last_changeset(connection, context.policy.by)
                if position is None
                else load_undoable_changeset(connection, position)
            )
            undo_plan = plan_undo(connection, changeset, reason, clock.now())
            if position is None:
                undo_plan = undo_plan._replace(newer=find_newer_event(connection, changeset))
    except Refused as problem:
        return context.refuse("undo", problem)
    proposal = context.propose(undo_plan.items, based_on=undo_plan.last_event_ids)
    impact = Impact() if proposal.is_refused else proposal.impact()
    if proposal.is_refused or context.dry_run or not asks:
        return emit(
            describe_undo(undo_plan, context.finish(proposal), impact, context.dry_run),
            context.output_format,
            print_undone,
        )
    emit(describe_undo(undo_plan, proposal.result, impact, dry_run=True), context.output_format, print_undone)
    if ask("\nTake it back?", ["yes", "no"]) == "no":
        render.note("nothing was recorded")
        return 1
    result = describe_undo(undo_plan, proposal.append(), impact, dry_run=False)
    print_undo_result(result)
    return int(result.is_refused)
