"""Open a view of the ledger for a command, and note invalid events, which only SQL can have inserted."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import click
from sqlalchemy import Connection

from ratings_ledger.cli.arguments.command import print_note
from ratings_ledger.cli.completion.stored_names import is_up_to_date, write_names
from ratings_ledger.cli.output import render
from ratings_ledger.ledger.store.log import Head, head, list_newest_subject_ids
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.facts.column_files import DamagedFile, UnreadableFile
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import catch_up, decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.snapshot_reader import LadderCache
from ratings_ledger.projections.snapshot import Snapshot

EVENTS_SHOWN_MAX = 3


def decode_for_command(
    connection: Connection, known_at: int | None = None, lazily: bool = False, cached: bool = True
) -> Facts:
    """Return the facts known at a position (default: the head), and note events that are ignored.

    If these are the newest facts, save their names for completion in the shell at the end of the command.
    """
    facts = decode(connection, known_at, cached=cached, lazily=lazily)
    report_ignored_events(facts.left_out)
    db = click.get_current_context().find_root().obj
    if not is_up_to_date(db, facts.chain_hash) and (known_at is None or facts.position == head(connection).position):
        games = list_newest_subject_ids(connection, facts.position)
        _save_names_at_exit(partial(_save_names, db, facts, games))
    return facts


def _save_names(db: str, facts: Facts, newest_games: list[str]) -> None:
    """Save the names of the facts for completion in the shell. Ignore failures, because the command is done."""
    # slow to import, and needed only after a change of the log
    from ratings_ledger.projections.queries.ledger_names import list_names

    with suppress(OSError, DamagedFile, UnreadableFile):
        write_names(db, facts.chain_hash, list_names(facts, newest_games))


def open_for_command(db: str) -> Ledger:
    """Open a ledger and keep its connections open until the command ends."""
    ledger = open_ledger(db, keep_open=True)
    click.get_current_context().find_root().call_on_close(ledger.close)
    return ledger


def save_new_names(db: str, ledger: Ledger, known_facts: Facts | None, new_head: Head) -> None:
    """At the end of a command that appended events, save the ledger's names for completion.

    `known_facts` are the facts before the append, and `new_head` is the head of the log after it.
    """

    def read_and_save() -> None:
        with ledger.reading() as connection:
            if known_facts is None or known_facts.cache is not None:
                facts = decode(connection, lazily=True)
            else:
                facts = known_facts
                catch_up(facts, connection, new_head.position, new_head.chain_hash)
            _save_names(db, facts, list_newest_subject_ids(connection, facts.position))

    _save_names_at_exit(read_and_save)


def _save_names_at_exit(save: Callable[[], None]) -> None:
    """Call `save` at the end of the command. It replaces any function registered before."""
    context = click.get_current_context()
    key = f"{__name__}.last"
    if key not in context.meta:
        context.call_on_close(lambda: context.meta[key]())
    context.meta[key] = save


def load_newest_ladders(connection: Connection) -> Ladders:
    """Return the ladders at the head of the log, and note events that are ignored."""
    return Ladders(decode_for_command(connection))


def report_ignored_events(left_out: Mapping[int, str]) -> None:
    """Report which events are ignored and why, each event once per command."""
    reported = click.get_current_context().meta.setdefault(f"{__name__}.reported", set())
    new = {position: reason for position, reason in left_out.items() if position not in reported}
    reported.update(new)
    for position, reason in list(new.items())[:EVENTS_SHOWN_MAX]:
        render.note(f"ratings: the event at position {position} does not count: {render.plain(reason)}")
    if (more := len(new) - EVENTS_SHOWN_MAX) > 0:
        render.note(f"ratings: {render.count(more, 'more event')} {'does' if more == 1 else 'do'} not count")
    if new:
        render.note("ratings: no command can have recorded such an event; run: ratings verify")


def open_view(
    ledger: Ledger,
    *,
    as_of: str | None = None,
    known_at: str | None = None,
    rules: str | None = None,
    close_now: bool = False,
    cached: bool = True,
) -> Snapshot:
    """Return a snapshot of the ledger at the coordinates given on the command line; print warnings about them.

    With `close_now`, games in open rating periods are scored as if these closed now. Pass `cached=False` for values to
    record, so that they are computed from the records alone.
    """
    cache = LadderCache(partial(decode_for_command, cached=cached))
    return Snapshot(ledger, as_of, known_at, rules, close_now=close_now, note=print_note, cache=cache)
