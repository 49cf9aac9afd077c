"""`import --sync`: an edited sheet is compared with what it gave before, and what differs is recorded."""

from collections.abc import Callable
from dataclasses import replace

from ratings_ledger.cli.arguments.asking import ask, can_ask
from ratings_ledger.cli.arguments.who_is_who import agreed_names
from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.appended import note_homeless, note_leagues, note_voided
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.intake.syncing import Sync, compare_sheet, unconfirmed_refusal
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.projections.admission.notes import LeagueNotes
from ratings_ledger.projections.admission.proposals import Proposal
from ratings_ledger.projections.admission.sheet_differences import sheet_differences


def sync(
    how: WriteContext,
    file: str,
    options: TableOptions,
    save: Callable[[Proposal, TableOptions], None],
    reason: str | None,
    yes: bool,
) -> int:
    """Bring the ledger to what a sheet says now, once somebody agrees; `save` keeps how it is read."""
    compared: list[Sync] = []

    def propose(how: WriteContext, options: TableOptions) -> Proposal:
        with how.ledger.reading() as connection:
            compared.append(compare_sheet(connection, file, options, reason, clock.now()))
        found = compared[-1]
        return how.propose_files(
            found.entries,
            league_notes=LeagueNotes(),
            based_on=found.looked_at,
            precondition=found.precondition,
            batches=True,
            whole=True,
            compared=found.name,
        )

    plan, options = agreed_names(how, options, [file], propose)
    found = compared[-1]
    with how.ledger.reading() as connection:
        differences = sheet_differences(connection, found)
    save(plan, options)
    result = plan.result
    result.existing += found.same
    is_shown = how.dry_run or (result.would_append > 0 and plan.is_small())
    impact = plan.impact() if is_shown and not plan.is_refused else None
    note_homeless(result)
    note_voided(result)
    waits = found.is_decision and not (how.dry_run or plan.is_refused)
    if waits and not yes and how.form == "table" and can_ask():
        replace(how, dry_run=True).report(result, impact, sync=differences)
        if found.doubt is not None:
            render.hanging(f"\n{found.doubt.message}", 0)
        if ask("\nRecord this?", ("yes", "no")) == "no":
            render.note("nothing was recorded")
            return 1
        # who is new, and what was recognised, has been told
        result = how.done(plan)
        note_leagues(result)
        return how.report(replace(result, notes=[], new_players=[], new_ladders=[], close={}))
    if waits and (found.doubt is not None or not yes):
        plan.refuse(found.doubt or unconfirmed_refusal(found), file)
    result = how.done(plan)
    note_leagues(result)
    return how.report(result, None if plan.is_refused else impact, sync=differences)
