"""Printing what differs between a sheet and what it gave before."""

from ratings_ledger.cli.output import render
from ratings_ledger.projections.admission.outcomes import SheetDifferences

SHOWN_GAMES = 20
KINDS = ("new", "changed", "vanished", "returned", "reordered")


def print_sheet_differences(found: SheetDifferences) -> None:
    """How many games differ, and how; those that only follow others later are counted, not listed."""
    if found.otherwise:
        told = f"note: {render.count(len(found.otherwise), 'game')} of which the sheet says nothing new "
        told += "changed in the ledger, and so they stay: "
        render.note(render.plain(told + render.first_of([*map(render.in_list, found.otherwise)], SHOWN_GAMES)))
    counts = [f"{number:,} {kind}" for kind in KINDS if (number := getattr(found, kind))]
    render.echo(render.plain(f"{found.name}: {', '.join(counts) or 'nothing new'}"))
    listed = [one for one in found.games if one.what != "reordered"]
    if listed:
        rows: list[tuple[render.Cell, ...]] = [
            (one.what, one.game_id, one.line, one.was, one.now) for one in listed[:SHOWN_GAMES]
        ]
        render.echo()
        render.print_table(("what", "game", "line", "was", "is"), rows, right=("line",))
    if (more := sum(getattr(found, kind) for kind in KINDS[:-1]) - SHOWN_GAMES) > 0:
        render.echo(f"... and {more:,} more (--format json lists them)")
    render.echo()
