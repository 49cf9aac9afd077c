"""The three coordinates a result was computed at, and how every output states them."""

from collections.abc import Sequence

from ratings_ledger.cli.output import render
from ratings_ledger.projections.queries.coordinates import Coordinates, Times

AXES = ("as_of", "known_at", "rules")


def print_csv_at(
    header: Sequence[str], rows: Sequence[Sequence[render.Cell]], at: Coordinates | Sequence[Coordinates]
) -> None:
    """Rows for a spreadsheet, each ending with its coordinates, which are either the same for all or one per row."""
    everywhere = [at] * len(rows) if isinstance(at, Coordinates) else at
    stated = [[*row, *place.axes().values()] for row, place in zip(rows, everywhere, strict=True)]
    render.print_csv((*header, *AXES), stated)


def heading(subject: str, more: str, at: Coordinates, times: Times, played: str | None = None) -> None:
    """What a table is about, and in words where on the axes it was computed; `played` replaces the words of --as-of."""
    known = f"known at position {at.known_at}"
    if len(f"{more}, {known}".lstrip(", ")) > 80:
        render.title(subject, more)
        render.echo(known)
    else:
        render.title(subject, f"{more}, {known}")
    if played or at.as_of is not None:
        render.hanging(played or f"played up to {times.second(at.as_of or 0)}", 2)
    if at.rules is not None:
        ruleset_id, _, _ = at.rules.partition("@")
        render.hanging(f"all games of {ruleset_id} under {at.rules} (--rules)", 2)
