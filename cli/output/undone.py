"""Printing what is taken back, and what that changes."""

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.appended import print_refused
from ratings_ledger.cli.output.impact import print_impact
from ratings_ledger.projections.admission.outcomes import Undone


def print_undone(found: Undone) -> None:
    """What is taken back, or why it is not, and what that changes."""
    events = ", ".join(f"{number:,} {name}" for name, number in found.types.items())
    render.echo(f"recorded by {render.plain(found.by)}, {found.times.stated(found.recorded_at)}: {events}")
    render.hanging(f"  {render.plain(found.what)}", 4)
    if found.newer is not None:
        position, by = found.newer
        told = f"newer, and left as it is: position {position}, recorded by {by}"
        render.hanging(render.plain(f"{told}; ratings undo {position} takes that back"), 2)
    if found.is_refused:
        print_refused(found.told)
        return
    print_impact(found.impact)
    if not found.dry_run:
        print_taken_back(found)


def print_taken_back(found: Undone) -> None:
    """Where something is taken back, or why it is not after all."""
    if found.is_refused or found.position is None:
        print_refused(found.told)
        return
    first = found.position - found.appended + 1
    where = f"{first} to {found.position}" if found.appended > 1 else f"{found.position}"
    positions = "positions" if found.appended > 1 else "position"
    render.echo(f"\nUndone at {positions} {where}; ratings undo takes that back.")
