"""Open a view of the ledger for a command, and note invalid events, which only SQL can have inserted."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import click
from sqlalchemy import Connection

from ratings_ledger.cli.arguments.command import print_note
from ratings_ledger.cli.completion.names import is_up_to_date, write_names
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.store.log import Head, head, newest_games
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.facts.column_files import Damaged, Unreadable
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import catch_up, decode
from ratings_ledger.projections.queries.ladders_at import LadderCache, Ladders
from ratings_ledger.projections.snapshot import Snapshot

SHOWN_EVENTS = 3


def decode_for_command(
    connection: Connection, known_at: int | None = None, lazily: bool = False, cached: bool = True
) -> Facts:
    """Return the facts known at a position (default: the head), and note events that do not count. At the end of the
    command its shell learns the names.
    """
    facts = decode(connection, known_at, cached=cached, lazily=lazily)
    note_left_out(facts.left_out)
    db = click.get_current_context().find_root().obj
    if not is_up_to_date(db, facts.chain_hash) and (known_at is None or facts.position == head(connection).position):
        games = newest_games(connection, facts.position)
        _keep_names_at_end(partial(_keep_names, db, facts, games))
    return facts


def _keep_names(db: str, facts: Facts, newest: list[str]) -> None:
    """Save the names in the newest facts for the shell. A failure does not matter, because the command is done."""
    from ratings_ledger.projections.queries.ledger_names import list_names  # needed once after each change of the log

    with suppress(OSError, Damaged, Unreadable):
        write_names(db, facts.chain_hash, list_names(facts, newest))


def open_for_command(db: str) -> Ledger:
    """Open a ledger whose connections stay open until the command ends."""
    ledger = open_ledger(db, keep_open=True)
    click.get_current_context().find_root().call_on_close(ledger.close)
    return ledger


def keep_new_names(db: str, ledger: Ledger, known: Facts | None, last: Head) -> None:
    """Save a ledger's names for the shell at the end of a command that appended to the known facts.

    `last` is the head of the log since.
    """

    def read_and_keep() -> None:
        with ledger.reading() as connection:
            if known is None or known.cache is not None:
                facts = decode(connection, lazily=True)
            else:
                facts = known
                catch_up(facts, connection, last.position, last.chain_hash)
            _keep_names(db, facts, newest_games(connection, facts.position))

    _keep_names_at_end(read_and_keep)


def _keep_names_at_end(keep: Callable[[], None]) -> None:
    """Have the names saved at the end of the command, instead of those scheduled before."""
    context = click.get_current_context()
    key = f"{__name__}.last"
    if key not in context.meta:
        context.call_on_close(lambda: context.meta[key]())
    context.meta[key] = keep


def newest_ladders(connection: Connection) -> Ladders:
    """Return the ladders at the head of the log, and note events that do not count."""
    return Ladders(decode_for_command(connection))


def note_left_out(left_out: Mapping[int, str]) -> None:
    """Note which events do not count, and why, once per command."""
    noted = click.get_current_context().meta.setdefault(f"{__name__}.noted", set())
    new = {position: why for position, why in left_out.items() if position not in noted}
    noted.update(new)
    for position, why in list(new.items())[:SHOWN_EVENTS]:
        render.note(f"ratings: the event at position {position} does not count: {render.plain(why)}")
    if len(new) > SHOWN_EVENTS:
        render.note(f"ratings: {len(new) - SHOWN_EVENTS:,} more events do not count")
    if new:
        render.note("ratings: no command can have recorded such an event; run: ratings verify")


def open_view(
    ledger: Ledger,
    as_of: str | None,
    known_at: str | None,
    rules: str | None,
    *,
    close_now: bool = False,
    cached: bool = True,
) -> Snapshot:
    """Return a ledger at the coordinates that were typed; print warnings about them.

    With `close_now`, games in open rating periods are scored as if these closed now. Pass `cached=False` for what is
    written to the log: it is computed from the records alone.
    """
    cache = LadderCache(partial(decode_for_command, cached=cached))
    return Snapshot(ledger, as_of, known_at, rules, close_now=close_now, note=print_note, cache=cache)
