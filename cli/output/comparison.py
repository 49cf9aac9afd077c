"""Print ladders at two sets of coordinates side by side, as tables and as CSV."""

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.impact import print_effects, print_publish_commands
from ratings_ledger.projections.diff.comparison import Effect
from ratings_ledger.projections.diff.differences import Difference, Differences
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladder_names import distinct_ladders, short_name

# the maximum number of ladders without a difference that are listed by name
NAMED_MAX = 5
HEADER = ("ladder", "as_of", "player", "before", "change", "after", "rank_before", "rank_after")


def print_differences_csv(comparison: Differences) -> None:
    """Print one line per row that differs."""
    cells = [
        [
            difference.ladder,
            difference.a.model_dump().get("as_of"),
            row.player,
            *map(render.format_exact, (row.before, row.change, row.after)),
            *row.rank,
        ]
        for difference in comparison.ladders
        for row in difference.rows
    ]
    render.print_csv(HEADER, cells)


def print_differences(comparison: Differences) -> None:
    """Print the coordinates and the differing rows of each ladder; among several ladders, count the equal ones."""
    if not comparison.ladders:
        render.echo(f"No ladder differs between {comparison.requested[0]} and {comparison.requested[1]}.")
    unchanged = (
        [short_name(difference.ladder) for difference in comparison.ladders if not difference.rows]
        if len(comparison.ladders) > 1
        else []
    )
    distinct = distinct_ladders(row for difference in comparison.ladders for row in difference.rows)
    printed = [
        difference
        for difference in comparison.ladders
        if (difference.rows and difference.ladder in distinct) or not (difference.rows or unchanged)
    ]
    for number, difference in enumerate(printed):
        render.echo("\n" * bool(number), nl=False)
        render.echo(short_name(difference.ladder))
        for name, side in (("A", difference.a), ("B", difference.b)):
            render.print_hanging(f"{name}  {side.describe(comparison.times.format_with_zone)}", 3)
        if difference.rows:
            render.echo()
            print_effects(sorted(difference.rows, key=_build_sort_key))
        render.echo(f"\n{_summarize(difference)}")
    if unchanged:
        has_published_lists = any(
            side.published is not ABSENT for difference in comparison.ladders for side in (difference.a, difference.b)
        )
        unchanged_count = render.count(
            len(unchanged), f"{'other ' * bool(printed)}{'list' if has_published_lists else 'ladder'}"
        )
        ladders = dict.fromkeys(unchanged)
        names = f": {', '.join(map(render.csv_item, ladders))}" if len(ladders) <= NAMED_MAX else "."
        render.echo("\n" * bool(printed), nl=False)
        render.print_hanging(f"No row differs on {unchanged_count}{names}", 2)
    if comparison.requested[1] == "now":
        compared_lists = [(side.ladder, side.a.at) for side in printed if side.rows and side.a.published is not ABSENT]
        lists = [(ladder, at.as_of_datetime) for ladder, at in compared_lists if at is not ABSENT]
        print_publish_commands(lists, comparison.times)


def _build_sort_key(row: Effect) -> tuple[int, int, str]:
    old, new = (2**31 if rank is None else rank for rank in row.rank)
    return new, old, row.player


def _summarize(difference: Difference) -> str:
    if not difference.rows:
        return "No row differs."
    moved, added, removed = (sum(row.kind == kind for row in difference.rows) for kind in ("moved", "added", "removed"))
    swapped = f"; {render.count(difference.summary.swapped, 'pair')} swapped" if difference.summary.swapped else ""
    return f"{moved:,} moved, {added:,} added, {removed:,} removed{swapped}."
