"""Implement `import --preview`: show how files are understood and what they would change; record nothing."""

from collections.abc import Callable
from dataclasses import replace

from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output.proposals import note_games
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.projections.admission.previews import PreviewBuilder
from ratings_ledger.projections.admission.proposals import Proposal


def preview(
    how: WriteContext,
    files: tuple[str, ...],
    options: TableOptions,
    propose: Callable[..., Proposal],
    save: Callable[[Proposal, TableOptions], None],
) -> tuple[int, IntakeResult]:
    """Show the preview, and save how the files were read; close names are only reported.

    Returns the exit code, and what an import would come to.
    """
    how = replace(how, policy=how.policy._replace(report_close=True))
    builder = PreviewBuilder()
    plan = propose(how, options, understood=builder.add)
    save(plan, options)
    impact = None if plan.is_refused else plan.impact()
    file_previews = builder.build(files, plan.result, options.zone, asks=how.policy.refusing == "tables")
    code = how.report(plan.result, impact, preview=file_previews)
    note_games(plan.result)
    return code, plan.result
