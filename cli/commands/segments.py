"""Implement `segments`: manage the sealed parts of the log that the workers of an engine read."""

import click

from ratings_ledger.cli.arguments.command import group
from ratings_ledger.cli.arguments.engines import on_option, segments_option
from ratings_ledger.cli.arguments.options import format_option
from ratings_ledger.cli.output.progress import show_progress
from ratings_ledger.cli.output.render import emit
from ratings_ledger.cli.output.segments import print_pruned, print_pruned_csv, print_segments, print_segments_csv
from ratings_ledger.ledger.store.opening import open_ledger


@group()
def segments() -> None:
    """Seal old events for workers; list, check and prune segments."""


@segments.command()
@on_option
@segments_option
@format_option
@click.pass_obj
def seal(db: str, on: str | None, segments: str | None, output_format: str) -> int:
    """Seal the events that are not sealed yet, a million at a time.

    A rebuild with --on seals them, too. Sealed segments never change.
    """
    from ratings_ledger.projections.cluster.inventory import seal_all

    with show_progress(None) as report_progress:
        inventory = seal_all(open_ledger(db), on or "processes", segments, report_progress)
    return emit(inventory, output_format, print_segments, print_segments_csv)


@segments.command(name="list")
@segments_option
@format_option
@click.pass_obj
def list_(db: str, segments: str | None, output_format: str) -> int:
    """List the segments: sealed or not, damaged, or of another history."""
    from ratings_ledger.projections.cluster.inventory import list_segments

    return emit(list_segments(open_ledger(db), segments), output_format, print_segments, print_segments_csv)


@segments.command()
@segments_option
@format_option
@click.pass_obj
def check(db: str, segments: str | None, output_format: str) -> int:
    """Check all segments against the log. Segments that differ are named and deleted.

    The next `segments seal` or `rebuild --on` writes them again. Exit 1 if a segment differs.
    """
    from ratings_ledger.projections.cluster.inventory import check_segments

    return emit(check_segments(open_ledger(db), segments), output_format, print_segments, print_segments_csv)


@segments.command()
@click.option("--dry-run", is_flag=True, help="Show the segments to delete, and delete nothing.")
@segments_option
@format_option
@click.pass_obj
def prune(db: str, dry_run: bool, segments: str | None, output_format: str) -> int:
    """Delete segments that no computation can use.

    These are segments of another history, such as the one before a restore of an older backup, segments in the format
    of another version, and remains of killed computations.

    Segments younger than a day are kept. If a computation of the ledger is in progress, delete nothing and exit 4.
    """
    from ratings_ledger.projections.cluster.inventory import prune_segments

    return emit(prune_segments(open_ledger(db), segments, dry_run), output_format, print_pruned, print_pruned_csv)
