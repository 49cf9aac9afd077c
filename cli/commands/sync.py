"""Implement `import --sync`: compare an edited sheet with its recorded games, and record the differences."""

from collections.abc import Callable
from dataclasses import replace

from ratings_ledger.cli.arguments.close_names import propose_with_answers
from ratings_ledger.cli.arguments.prompts import ask, can_ask
from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.proposals import note_leagues, note_unranked, note_voided
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.intake.syncing import Sync, build_unconfirmed_refusal, compare_sheet
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.projections.admission.league_checks import LeagueNotes
from ratings_ledger.projections.admission.proposals import Proposal
from ratings_ledger.projections.admission.sheet_differences import describe_differences


def sync(
    context: WriteContext,
    file: str,
    options: TableOptions,
    *,
    save: Callable[[Proposal, TableOptions], None],
    reason: str | None,
    yes: bool,
) -> int:
    """Update the ledger to match a sheet; change recorded games only if the user agrees or, without doubts, by `yes`.

    `save` stores the profile of the sheet. Returns the exit code.
    """
    comparisons: list[Sync] = []

    def propose(context: WriteContext, options: TableOptions) -> Proposal:
        with context.ledger.reading() as connection:
            comparisons.append(compare_sheet(connection, file, options, reason=reason, decided_at=clock.now()))
        comparison = comparisons[-1]
        return context.propose_files(
            comparison.entries,
            league_notes=LeagueNotes(),
            based_on=comparison.seen_events,
            precondition=comparison.precondition,
            batches=True,
            single_transaction=True,
            synced_name=comparison.name,
        )

    proposal, options = propose_with_answers(context, options, [file], propose)
    comparison = comparisons[-1]
    with context.ledger.reading() as connection:
        differences = describe_differences(connection, comparison)
    save(proposal, options)
    result = proposal.result
    result.existing += comparison.same
    shows_impact = context.dry_run or (result.would_append > 0 and proposal.is_small())
    impact = proposal.impact() if shows_impact and not proposal.is_refused else None
    note_unranked(result)
    note_voided(result)
    needs_consent = comparison.is_decision and not (context.dry_run or proposal.is_refused)
    if needs_consent and not yes and context.output_format == "table" and can_ask():
        replace(context, dry_run=True).report(result, impact, sync=differences)
        if comparison.doubt is not None:
            render.print_hanging(f"\n{comparison.doubt.message}", 0)
        if ask("\nRecord this?", ("yes", "no")) == "no":
            render.note("nothing was recorded")
            return 1
        # the preview has reported new names and how the file was read
        result = context.finish(proposal)
        note_leagues(result)
        return context.report(replace(result, notes=[], new_players=[], new_ladders=[], close={}))
    if needs_consent and (comparison.doubt is not None or not yes):
        proposal.refuse(build_unconfirmed_refusal(comparison), file)
    result = context.finish(proposal)
    note_leagues(result)
    return context.report(result, None if proposal.is_refused else impact, sync=differences)
