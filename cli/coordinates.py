"""The three coordinates that a result was computed at, and how every output states them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from cli import render
from ledger.canonical import format_instant


class Coordinates(NamedTuple):
    """Where on the axes a result was computed: `rules` is ID@VERSION; None is no limit, and the timelines."""

    as_of: int | None
    known_at: int
    rules: str | None

    def stated(self) -> dict[str, Any]:
        """The coordinates as JSON states them."""
        as_of = None if self.as_of is None else format_instant(self.as_of)
        return {"as_of": as_of, "known_at": self.known_at, "rules": self.rules}

    def after(self, row: Sequence[render.Cell]) -> list[render.Cell]:
        """A row of CSV with the coordinates in its last cells."""
        return [*row, *self.stated().values()]


def print_csv(
    header: Sequence[str], rows: Sequence[Sequence[render.Cell]], at: Coordinates | Sequence[Coordinates]
) -> None:
    """Rows for a spreadsheet, each ending in the coordinates, which are the same for all or one for each."""
    everywhere = [at] * len(rows) if isinstance(at, Coordinates) else at
    stated = [place.after(row) for row, place in zip(rows, everywhere, strict=True)]
    render.print_csv((*header, *Coordinates._fields), stated)


def heading(subject: str, more: str, at: Coordinates, played: str | None = None) -> None:
    """What a table is about, and in words where on the axes it was computed; `played` replaces the words of --as-of."""
    known = f"known at position {at.known_at:,}"
    if len(f"{more}, {known}".lstrip(", ")) > 80:
        render.title(subject, more)
        click.echo(known)
    else:
        render.title(subject, f"{more}, {known}")
    if played or at.as_of is not None:
        render.hanging(played or f"played up to {render.second(at.as_of or 0)}", 2)
    if at.rules is not None:
        ruleset_id, _, _ = at.rules.partition("@")
        render.hanging(f"all games of {ruleset_id} under {at.rules} (--rules)", 2)
