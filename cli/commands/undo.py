"""`undo`: taking back what somebody recorded last, after showing it."""

from dataclasses import replace

import click

from ratings_ledger.cli.arguments.asking import ask, can_ask
from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.writing import WriteContext, write_command
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.appended import print_taken_back, print_undone
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.projections.admission.acts import act_at, last_act, newer_than
from ratings_ledger.projections.admission.undoing import undoing, undone
from ratings_ledger.projections.diff.impact import Impact


@command()
@click.argument("position", type=click.IntRange(min=1), required=False)
@click.option("--reason", metavar="TEXT", help="Why; it is recorded.  [default: what is taken back]")
@click.option("--yes", is_flag=True, help="Do not ask.")
@write_command
def undo(how: WriteContext, position: int | None, reason: str | None, yes: bool) -> int:
    """Take back what you recorded last, whatever it was; or what stands at POSITION.

    An import, a game, a correction, a void, an adjustment, a rename, a list, a step of a league: it is shown first,
    with what that changes, and asked about. Nothing is deleted: the opposite is recorded, so undo takes that back as
    well. What was changed since is taken back first. --by NAME takes back what NAME recorded last.
    """
    asking = not yes and not how.dry_run
    if asking and (how.form != "table" or not can_ask()):
        raise click.UsageError("nobody can be asked here; --yes takes it back unasked, --dry-run shows it")
    # what was taken once may count again
    how = replace(how, policy=how.policy._replace(any_date=True, allow_uncounted=True))
    try:
        with how.ledger.reading() as connection:
            act = last_act(connection, how.policy.by) if position is None else act_at(connection, position)
            found = undoing(connection, act, reason, clock.now())
            if position is None:
                found = found._replace(newer=newer_than(connection, act))
    except Refused as problem:
        return how.refuse("undo", problem)
    plan = how.propose(found.items, based_on=found.looked_at)
    impact = Impact() if plan.is_refused else plan.impact()
    if plan.is_refused or how.dry_run or not asking:
        return emit(undone(found, how.done(plan), impact, how.dry_run), how.form, print_undone)
    emit(undone(found, plan.result, impact, dry_run=True), how.form, print_undone)
    if ask("\nTake it back?", ["yes", "no"]) == "no":
        render.note("nothing was recorded")
        return 1
    told = undone(found, plan.append(), impact, dry_run=False)
    print_taken_back(told)
    return int(told.is_refused)
