"""`import --follow -`: a program keeps standard input open, and every line that it sends is answered."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from sqlalchemy import Connection

from cli.arguments.facts import decoded
from cli.output import render
from cli.output.appended import note_homeless, note_leagueless, note_new, tell_new_ladders
from ledger import clock
from ledger.errors import LedgerError
from ledger.intake.files import Item
from ledger.intake.following import Line, answers, batches
from ledger.intake.importing import Imported, Reject, Settled, import_items
from ledger.store.log import head, known_events, read_records
from ledger.store.opening import open_ledger
from ledger.validation.new_names import Newcomers, names_of
from projections.admission.events import Admission
from projections.admission.new_ladders import NewLadders
from projections.facts.players import known_players

ENDING = (signal.SIGTERM, signal.SIGINT)
STORE_UNAVAILABLE = 3


def follow(db: str, by: str, allow_uncounted: bool, any_date: bool, ignore_clock: bool) -> int:
    """Append what comes on standard input until it ends, answer each line on standard output; returns the exit code.

    Raises `StoreUnavailable`, `ClockBehind`: what is not answered then can be sent again.
    """
    ledger = open_ledger(db, keep_open=True)
    known = _Known()
    new_ladders = NewLadders(decoded)
    told: set[str] = set()

    def import_batch(items: Sequence[Item], reject: Reject, settled: Settled) -> Imported:
        homeless: dict[str, str] = {}
        leagueless: dict[str, str] = {}
        result = import_items(
            ledger, items, by=by, clock=clock.now, reject=reject, settled=settled, keep_going=True,
            ladders=partial(
                Admission, allow_uncounted=allow_uncounted, homeless=homeless, leagueless=leagueless,
                new_ladders=new_ladders,
            ),
            newcomers=Newcomers(known, ""), any_date=any_date, ignore_clock=ignore_clock,
        )  # fmt: skip
        _note(result, new_ladders, homeless, leagueless, told)
        return result

    rejected = False
    with _ended_by_signals() as stopped:
        for batch in batches(sys.stdin.fileno(), stopped):
            try:
                found = answers(ledger, batch, import_batch)
            except LedgerError:
                _note_unanswered(batch)
                raise
            rejected |= any(one["result"] == "rejected" for one in found)
            try:
                sys.stdout.write("".join(f"{render.json_text(one)}\n" for one in found))
                sys.stdout.flush()
            except BrokenPipeError:
                # output that cannot be written must not be tried again when the interpreter exits
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                render.note("ratings: nobody reads the answers any more")
                _note_unanswered(batch)
                return STORE_UNAVAILABLE
    return int(rejected)


def _note(
    result: Imported, new_ladders: NewLadders, homeless: dict[str, str], leagueless: dict[str, str], told: set[str]
) -> None:
    """Print what an import prints besides its result; about games on no ladder, once for each reason."""
    result.rejected_count = 0
    tell_new_ladders(result, new_ladders)
    new_ladders.found = []
    note_new(result)
    note_homeless(result, {reason: game for reason, game in homeless.items() if reason not in told})
    note_leagueless(result, {league: game for league, game in leagueless.items() if league not in told})
    told |= {*homeless, *leagueless}


def _note_unanswered(batch: Sequence[Line]) -> None:
    first = batch[0][0]
    render.note(f"ratings: line {first} and those after it have no answer; send them again, nothing counts twice")


class _Known:
    """The players that the ledger knows: it is read once, and then only what was recorded since.

    A player whose only game is voided in the meantime is not reported as new a second time.
    """

    def __init__(self) -> None:
        self._names: set[str] | None = None
        self._position = 0

    def __call__(self, connection: Connection) -> set[str]:
        newest = head(connection).position
        if self._names is None:
            self._names = known_players(decoded(connection, newest))
        else:
            for page in read_records(connection, self._position, newest):
                for event in known_events(page):
                    self._names.update(_named(event.type, event.data))
        self._position = newest
        return self._names


def _named(type_name: str, data: dict[str, Any]) -> list[str]:
    return [data["new_player"]] if type_name == "player.renamed" else names_of(type_name, data)


@contextmanager
def _ended_by_signals() -> Iterator[int]:
    """A descriptor that becomes readable when the process is asked to end; asked a second time, it ends at once."""
    reading, writing = os.pipe()
    before = {number: signal.getsignal(number) for number in ENDING}

    def stop(number: int, frame: object) -> None:
        os.write(writing, b".")
        for one, handler in before.items():
            signal.signal(one, handler)

    for number in ENDING:
        signal.signal(number, stop)
    try:
        yield reading
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
