"""`import --preview`: how files are understood, and what they would change, before anything of them is recorded."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.output.appended import note_homeless, note_leagues, note_voided
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.projections.admission.previews import Understanding
from ratings_ledger.projections.admission.proposals import Proposal


def preview(
    how: WriteContext, files: tuple[str, ...], options: TableOptions, propose: Callable[..., Proposal],
    save: Callable[[Proposal, TableOptions], None],
) -> int:  # fmt: skip
    """Show all of that, and save how it was read; whose name is close to another is only told."""
    how = replace(how, policy=how.policy._replace(close_told=True))
    understanding = Understanding()
    plan = propose(how, options, understood=understanding.take)
    unknown = [name for table in plan.result.tables.values() for name in table.unknown]
    if unknown and len(files) == 1 and Path(files[0]).is_file() and not how.policy.keep_going:
        understanding = Understanding()
        plan = _without(unknown, plan, how, options, lambda *told: propose(*told, understood=understanding.take))
    save(plan, options)
    found = None if plan.is_refused else plan.impact()
    told = understanding.preview(files, plan.result, options.zone, asking=how.policy.refusing == "tables")
    code = how.report(plan.result, found, preview=told)
    note_homeless(plan.result)
    note_leagues(plan.result)
    note_voided(plan.result)
    return code


def _without(
    unknown: list[str], before: Proposal, how: WriteContext, options: TableOptions,
    propose: Callable[[WriteContext, TableOptions], Proposal],
) -> Proposal:  # fmt: skip
    """Return the file as if unknown columns were dropped, so that one sees what else is in it; they are refused as
    before.
    """
    before.close()
    plan = propose(how, options._replace(columns={**options.columns, **dict.fromkeys(unknown, "")}, profile=None))
    for one in before.result.rejected:
        if one.code in ("unknown-column", "bad-profile") and one not in plan.result.rejected:
            plan.refuse(Refused(one.code, one.message), one.file or "", one.line or 0)
    plan.result.rejected.sort(key=lambda one: one.line or 0)
    for file, read in plan.result.tables.items():
        dropped = tuple(name for name in read.dropped if name not in unknown)
        plan.result.tables[file] = read._replace(dropped=dropped, unknown=(*unknown,))
    return plan
