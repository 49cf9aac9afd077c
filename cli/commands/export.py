"""Implement `export`: export the log, the standings and the changes of points for other programs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import IO, TypeVar

import click
from sqlalchemy import Connection

from ratings_ledger.cli.arguments.command import group, print_note
from ratings_ledger.cli.arguments.options import axes_options, format_options, known_at_option
from ratings_ledger.cli.arguments.views import open_for_command, open_view
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.export import CHANGE_COLUMNS, STANDINGS_COLUMNS, format_change, format_standings
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.own_files import create_file
from ratings_ledger.ledger.rejections import quote
from ratings_ledger.ledger.store.exports import export_lines, open_compressed, parse_chain_head, read_chain_head
from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.projections.queries.coordinates import resolve_known_at
from ratings_ledger.projections.queries.results import ReplayFailure

output_option = click.option(
    "--output",
    "-o",
    metavar="FILE",
    default="-",
    help="A new file, compressed if it ends in .gz.  [default: stdout]",
)


table_format_option = format_options("json", "csv", meaning="JSON Lines, or one table.")


@group()
def export() -> None:
    """Export the ledger's contents for other programs."""


@export.command(name="events")
@known_at_option
@click.option("--since", metavar="POSITION", help="Only events after POSITION, as an increment of a backup.")
@output_option
@click.pass_obj
def export_events(db: str, known_at: str | None, since: str | None, output: str) -> None:
    """Export every record verbatim, one per line: a full backup that `import --restore` loads into an empty ledger.

    The last line of a file states the head, and the file appears only once it is complete. Standard output gets only
    the records. --since also accepts a head, POSITION:CHAINHASH, which the ledger must contain. Records are not
    computed, so only --known-at applies.
    """
    with open_for_command(db).reading() as connection:
        until = resolve_known_at(connection, known_at, time_zone=None, note=print_note)
        after = 0 if since is None else _read_since(connection, since, until)
        if output == "-":
            for page in read_records(connection, after, until):
                sys.stdout.buffer.writelines(f"{record}\n".encode() for _, record in page)
            return
        with open_output_file(output, 0o600) as file:
            for lines in export_lines(connection, after, until):
                file.write(lines)
    after_text = "" if since is None else f" after position {after}"
    render.note(f"{render.count(until - after, 'event')}{after_text} in {output}")


def _read_since(connection: Connection, text: str, until: int) -> int:
    """Return the position of --since. Raises `click.BadParameter` unless the log up to `until` contains it."""
    head = parse_chain_head(text)
    if head is None and not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise _build_since_error(
            f"{quote(text)} is not a position; write POSITION, such as 52, or POSITION:CHAINHASH, as `ratings status` "
            "prints it"
        )
    position = int(text) if head is None else head.position
    if position > until:
        raise _build_since_error(
            f"position {position} is after the last event to export; pass a position from 0 to {until}"
        )
    if head is not None and (ledger_head := read_chain_head(connection, position)) != head:
        raise _build_since_error(
            f"the ledger's history does not contain {head}: at position {position}, its head is {ledger_head}; to "
            "export from there anyway, pass that head"
        )
    return position


def _build_since_error(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint=["--since"])


@contextmanager
def open_output_file(output: str, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a new file, compressed if its name ends in .gz, or standard output. The file appears once it is complete."""
    if output == "-":
        yield sys.stdout.buffer
        return
    try:
        with create_file(output, mode) as file:
            if not output.endswith(".gz"):
                yield file
                return
            with open_compressed(file) as lines:
                yield lines
    except FileExistsError:
        raise click.UsageError(f"{output} exists; nothing was written; delete it, or choose another FILE") from None


T = TypeVar("T")


def _start_early(results: Iterator[T]) -> Iterator[T]:
    """Return the results with the first already computed, so that its errors come before a file is created."""
    first = [*islice(results, 1)]
    return chain(first, results)


@export.command(name="standings")
@click.argument("ladders", metavar="[LADDER]...", nargs=-1, type=to_nfc)
@axes_options
@table_format_option
@output_option
@click.pass_obj
def export_standings(
    db: str,
    ladders: tuple[str, ...],
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
    output_format: str,
    output: str,
) -> int:
    """Export the standings of each LADDER; by default, of all ladders that have games or adjustments.

    Each line is a ladder as `standings --format json` prints it. The table has the same columns for all ladders:
    points as a decimal of at most six places, and exact; `state` has the visible numbers of a rule with state, such as
    rating=1650 deviation=80. A ladder that cannot be replayed is reported and left out; the exit code is then 1.
    """
    results = _start_early(
        open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules).every_standings(ladders)
    )
    written, failed = 0, False
    with open_output_file(output) as file:
        if output_format == "csv":
            file.write(render.to_csv([STANDINGS_COLUMNS]).encode())
        for result in results:
            if isinstance(result, ReplayFailure):
                render.note(f"ratings: {result.reason}")
                # a failed ruleset, without a ladder, counts as a failure only if all ladders are exported
                failed = failed or result.ladder is not None or not ladders
            else:
                written += 1
                file.write(format_standings(result, output_format, to_stdout=output == "-").encode())
    if output != "-":
        render.note(f"{render.count(written, 'ladder')} in {output}")
    return int(failed)


@export.command(name="changes")
@click.argument("ladder", type=to_nfc)
@axes_options
@table_format_option
@output_option
@click.pass_obj
def export_changes(
    db: str, ladder: str, as_of: str | None, known_at: str | None, rules: str | None, output_format: str, output: str
) -> None:
    """Export every change of points on LADDER, in the order of the games: `history` of all players in one pass.

    Points are given exactly, and as decimals of at most six places.
    """
    changes = _start_early(open_view(open_for_command(db), as_of=as_of, known_at=known_at, rules=rules).changes(ladder))
    written = 0
    with open_output_file(output) as file:
        if output_format == "csv":
            file.write(render.to_csv([CHANGE_COLUMNS]).encode())
        for change in changes:
            written += 1
            file.write(format_change(change, output_format, to_stdout=output == "-").encode())
    if output != "-":
        render.note(f"{render.count(written, 'change')} in {output}")
