"""Print sealed segments, and the deleted objects of the segment store."""

from collections import Counter

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.render import print_records_csv
from ratings_ledger.projections.cluster.inventory import (
    MISSING,
    OTHER_HISTORY,
    AllSegments,
    PruneResult,
    SegmentState,
    UnusedObject,
)
from ratings_ledger.projections.cluster.object_store import LASTING
from ratings_ledger.projections.cluster.resources import SHORT_LIVED
from ratings_ledger.projections.cluster.segments import parse_segment_name, to_segment_name


def print_segments(segments: AllSegments) -> None:
    """Print a line for each segment, and how much of the log is sealed."""
    rows = [
        (f"{row.first + 1:,}", f"{row.last:,}", row.state, f"{row.games:,}", f"{row.bytes / 1e6:,.1f}")
        for row in segments.rows
    ]
    if rows:
        render.print_table(["from", "to", "state", "games", "MB"], rows, right=["from", "to", "games", "MB"])
    render.print_hanging(
        f"{segments.sealed:,} of {render.count(segments.position, 'event')} sealed in "
        f"{render.plain(segments.segments)}",
        2,
    )
    if any(row.state == MISSING for row in segments.rows):
        render.print_hanging("to seal the rest: ratings segments seal, or the next rebuild with --on", 2)
    if any(row.state == OTHER_HISTORY for row in segments.rows):
        render.print_hanging("to delete segments of another history once they are a day old: ratings segments prune", 2)


def print_segments_csv(segments: AllSegments) -> None:
    """Print a line for each segment."""
    print_records_csv(SegmentState, segments.rows)


def print_pruned(pruned: PruneResult) -> None:
    """Print a line for each range of events and each kind of leftover, and then the number of objects."""
    objects, size = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for row in pruned.rows:
        name = parse_segment_name(to_segment_name(row.name))
        span = (f"{name.first + 1:,}", f"{name.last:,}") if name else ("", "")
        kind = next(prefix for prefix in (*SHORT_LIVED, *LASTING) if row.name.startswith(prefix)).removesuffix("-")
        objects[(kind, *span, row.why)] += 1
        size[(kind, *span, row.why)] += row.bytes
    if objects:
        rows = [(*line, f"{number:,}", f"{size[line] / 1e6:,.1f}") for line, number in objects.items()]
        right = ["from", "to", "objects", "MB"]
        render.print_table(["what", "from", "to", "why", "objects", "MB"], rows, right=right)
    deleted_text = "would be deleted" if pruned.dry_run else "deleted"
    summary = f"{render.count(len(pruned.rows), 'object')} {deleted_text}" if pruned.rows else "nothing to delete"
    young = f"; kept because younger than a day: {pruned.young:,}" if pruned.young else ""
    render.print_hanging(f"{summary} in {render.plain(pruned.segments)}{young}", 2)


def print_pruned_csv(pruned: PruneResult) -> None:
    """Print a line for each object."""
    print_records_csv(UnusedObject, pruned.rows)
