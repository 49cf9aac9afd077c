"""Implement `import --preview`: show how files are understood and what they would change; record nothing."""

from collections.abc import Callable
from dataclasses import replace

from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output.appended import note_games
from ratings_ledger.ledger.intake.intake import Imported
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.projections.admission.previews import Understanding
from ratings_ledger.projections.admission.proposals import Proposal


def preview(
    how: WriteContext,
    files: tuple[str, ...],
    options: TableOptions,
    propose: Callable[..., Proposal],
    save: Callable[[Proposal, TableOptions], None],
) -> int:
    """Show the preview, and save how the files were read; close names are only reported."""
    how = replace(how, policy=how.policy._replace(close_told=True))
    understanding = Understanding()
    plan = propose(how, options, understood=understanding.take)
    unknown = [name for table in plan.result.tables.values() for name in table.unknown]
    if unknown and len(files) == 1 and Path(files[0]).is_file() and not how.policy.keep_going:
        understanding = Understanding()
        plan = _propose_without(
            unknown, plan, how, options, lambda *file_previews: propose(*file_previews, understood=understanding.take)
        )
    save(plan, options)
    impact = None if plan.is_refused else plan.impact()
    file_previews = understanding.preview(files, plan.result, options.zone, asking=how.policy.refusing == "tables")
    code = how.report(plan.result, impact, preview=file_previews)
    note_homeless(plan.result)
    note_leagues(plan.result)
    note_voided(plan.result)
    return code


def _propose_without(
    unknown: list[str],
    before: Proposal,
    how: WriteContext,
    options: TableOptions,
    propose: Callable[[WriteContext, TableOptions], Proposal],
) -> Proposal:
    """Return the proposal without unknown columns, so that the preview shows the rest; the columns stay refused."""
    before.close()
    plan = propose(how, options._replace(columns={**options.columns, **dict.fromkeys(unknown, "")}, profile=None))
    for rejection in before.result.rejected:
        if rejection.code in ("unknown-column", "bad-profile") and rejection not in plan.result.rejected:
            plan.refuse(Refused(rejection.code, rejection.message), rejection.file or "", rejection.line or 0)
    plan.result.rejected.sort(key=lambda rejection: rejection.line or 0)
    for file, read in plan.result.tables.items():
        dropped = tuple(name for name in read.dropped if name not in unknown)
        plan.result.tables[file] = read._replace(dropped=dropped, unknown=(*unknown,))
    return plan
