"""How sealed segments are listed."""

from dataclasses import fields

from cli.output import render
from projections.cluster.inventory import MISSING, AllSegments, SegmentState

COLUMNS = [member.name for member in fields(SegmentState)]


def print_segments(found: AllSegments) -> None:
    """A line for each, and how far the log is sealed."""
    told = [(f"{row.first + 1:,}", f"{row.last:,}", row.state, f"{row.games:,}", f"{row.bytes / 1e6:,.1f}")
            for row in found.rows]  # fmt: skip
    if told:
        render.print_table(["from", "to", "state", "games", "MB"], told, right=["from", "to", "games", "MB"])
    render.hanging(
        f"{found.sealed:,} of {render.count(found.position, 'event')} sealed in {render.plain(found.segments)}", 2
    )
    if any(row.state == MISSING for row in found.rows):
        render.hanging("the next rebuild with --on seals the rest, or: ratings segments seal", 2)


def print_segments_csv(found: AllSegments) -> None:
    """A line for each."""
    render.print_csv(COLUMNS, [[*row.values()] for row in (one.model_dump() for one in found.rows)])
