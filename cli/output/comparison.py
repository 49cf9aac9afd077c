"""How ladders at two coordinates look beside each other, as tables and as CSV."""

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.impact import print_effects
from ratings_ledger.projections.diff.comparison import Difference, Differences, Effect
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladders import distinct_ladders, short_name

# of so many ladders without a difference, the names are shown
NAMED_MAX = 5
HEADER = ("ladder", "as_of", "player", "before", "change", "after", "rank_before", "rank_after")


def print_differences_csv(found: Differences) -> None:
    """One line per row that differs."""
    cells = [
        [one.ladder, one.a.model_dump().get("as_of"), row.player,
         *map(render.spreadsheet, (row.before, row.change, row.after)), *row.rank]
        for one in found.ladders for row in one.rows
    ]  # fmt: skip
    render.print_csv(HEADER, cells)


def print_differences(found: Differences) -> None:
    """Ladder after ladder: both coordinates, who differs, and how many do. Of several, those without are counted."""
    if not found.ladders:
        render.echo(f"No ladder differs between {found.asked[0]} and {found.asked[1]}.")
    same = [short_name(one.ladder) for one in found.ladders if not one.rows] if len(found.ladders) > 1 else []
    seen = distinct_ladders(row for one in found.ladders for row in one.rows)
    shown = [one for one in found.ladders if one.ladder in seen or not (one.rows or same)]
    for number, one in enumerate(shown):
        render.echo("\n" * bool(number), nl=False)
        render.echo(short_name(one.ladder))
        for name, side in (("A", one.a), ("B", one.b)):
            render.hanging(f"{name}  {side.told(found.times.stated)}", 3)
        if one.rows:
            render.echo()
            print_effects(sorted(one.rows, key=_by_rank))
        render.echo(f"\n{_summary(one)}")
    if same:
        published = any(side.published is not ABSENT for one in found.ladders for side in (one.a, one.b))
        what = render.count(len(same), f"{'other ' * bool(shown)}{'list' if published else 'ladder'}")
        ladders = dict.fromkeys(same)
        names = f": {', '.join(map(render.csv_item, ladders))}" if len(ladders) <= NAMED_MAX else "."
        render.echo("\n" * bool(shown), nl=False)
        render.hanging(f"No row differs on {what}{names}", 2)


def _by_rank(row: Effect) -> tuple[int, int, str]:
    old, new = (2**31 if rank is None else rank for rank in row.rank)
    return new, old, row.player


def _summary(one: Difference) -> str:
    if not one.rows:
        return "No row differs."
    moved, added, removed = (sum(row.kind == kind for row in one.rows) for kind in ("moved", "added", "removed"))
    swapped = f"; {render.count(one.radius.swapped, 'pair')} swapped" if one.radius.swapped else ""
    return f"{moved:,} moved, {added:,} added, {removed:,} removed{swapped}."
