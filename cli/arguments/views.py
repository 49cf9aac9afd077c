"""A view of the ledger for a command, and a note of events that do not count: somebody put them in by SQL."""

from collections.abc import Mapping

import click
from sqlalchemy import Connection

from cli.arguments.command import print_note
from cli.output import render
from ledger.store.opening import Ledger
from projections.facts.columns import Facts
from projections.facts.decoding import decode
from projections.queries.kept_ladders import KeptLadders
from projections.queries.standings import Ladders
from projections.queries.view import View

SHOWN_EVENTS = 3


def decoded(connection: Connection, known_at: int | None = None, lazily: bool = False) -> Facts:
    """The facts known at a position (default: the head), as `decode` makes them; a note says which events do not
    count."""
    facts = decode(connection, known_at, lazily=lazily)
    note_left_out(facts.left_out)
    return facts


def newest_ladders(connection: Connection) -> Ladders:
    """The ladders at the head of the log; a note says which events do not count."""
    return Ladders(decoded(connection))


def note_left_out(left_out: Mapping[int, str]) -> None:
    """Say which events do not count, and why: once per command."""
    told = click.get_current_context().meta.setdefault(f"{__name__}.told", set())
    new = {position: why for position, why in left_out.items() if position not in told}
    told.update(new)
    for position, why in list(new.items())[:SHOWN_EVENTS]:
        render.note(f"ratings: the event at position {position:,} does not count: {render.plain(why)}")
    if len(new) > SHOWN_EVENTS:
        render.note(f"ratings: {len(new) - SHOWN_EVENTS:,} more events do not count")
    if new:
        render.note("ratings: no event can say that; see: ratings verify")


def view_of(ledger: Ledger, as_of: str | None, known_at: str | None, rules: str | None) -> View:
    """A ledger at the coordinates that were typed; what is odd is printed."""
    return View(ledger, as_of, known_at, rules, note=print_note, kept=KeptLadders(decoded))
