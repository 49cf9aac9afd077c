"""Implement `import --preview`: show how files are read and the changes that they would make; record nothing."""

from collections.abc import Callable
from dataclasses import replace

from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output.proposals import note_games
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.projections.admission.previews import PreviewBuilder
from ratings_ledger.projections.admission.proposals import Proposal


def preview(
    context: WriteContext,
    files: tuple[str, ...],
    options: TableOptions,
    *,
    propose: Callable[..., Proposal],
    save: Callable[[Proposal, TableOptions], None],
) -> tuple[int, IntakeResult]:
    """Show the preview, and save the options with which the files were read. Close names are only reported.

    Returns the exit code, and the result that an import would have.
    """
    context = replace(context, policy=context.policy._replace(report_close=True))
    builder = PreviewBuilder()
    proposal = propose(context, options, on_parsed=builder.add)
    save(proposal, options)
    impact = None if proposal.is_refused else proposal.impact()
    file_previews = builder.build(files, proposal.result, options.zone, asks=context.policy.refusal_scope == "tables")
    code = context.report(proposal.result, impact, preview=file_previews)
    note_games(proposal.result)
    return code, proposal.result
