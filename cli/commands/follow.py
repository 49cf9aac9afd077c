"""Implement `import --follow -`: answer every line from a program that keeps standard input open."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ratings_ledger.cli.arguments.views import newest_ladders
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.proposals import note_leagues, note_new, note_unranked
from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.following import Line, batches, import_and_answer
from ratings_ledger.ledger.intake.intake import ImportPolicy, OnStored, Reject
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.admission.notes import LeagueNotes
from ratings_ledger.projections.admission.proposals import Known, propose

ENDING = (signal.SIGTERM, signal.SIGINT)
STORE_UNAVAILABLE = 3


def follow(db: str, policy: ImportPolicy) -> int:
    """Append events from standard input until it ends, answer each line on standard output; return the exit code.

    Raises `StoreUnavailable`, `ClockBehind`; lines without an answer can then be sent again.
    """
    ledger, known, noted = open_ledger(db, keep_open=True), Known(load_newest=newest_ladders), set[str]()

    def import_batch(items: Sequence[Item], reject: Reject, on_stored: OnStored) -> None:
        hooks = {"reject": reject, "on_stored": on_stored}
        result = propose(ledger, items, policy, known, league_notes=LeagueNotes(), **hooks).append()
        result.rejected_count = 0  # each line gets its own answer; the notes about the other lines still matter
        note_new(result)
        # note each reason once, with its first game: how many there are is known only at the end
        result.unranked = {
            reason: games._replace(number=1) for reason, games in result.unranked.items() if reason not in noted
        }
        result.leagues = [note for note in result.leagues if note not in noted]
        noted.update(result.unranked, result.leagues)
        note_unranked(result)
        note_leagues(result)

    has_rejected = False
    with _stop_signal() as stopped:
        for batch in batches(sys.stdin.fileno(), stopped):
            try:
                replies = import_and_answer(ledger, batch, import_batch)
            except LedgerError:
                _note_unanswered(batch)
                raise
            has_rejected |= any(reply["result"] == "rejected" for reply in replies)
            try:
                sys.stdout.write("".join(f"{render.to_json(reply)}\n" for reply in replies))
                sys.stdout.flush()
            except BrokenPipeError:
                # output that cannot be written must not be tried again when the interpreter exits
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                render.note("ratings: the reader of the answers is gone")
                _note_unanswered(batch)
                return STORE_UNAVAILABLE
    return int(has_rejected)


def _note_unanswered(batch: Sequence[Line]) -> None:
    first = batch[0][0]
    render.note(f"ratings: line {first} and those after it have no answer; send them again, nothing counts twice")


@contextmanager
def _stop_signal() -> Iterator[int]:
    """Provide a descriptor that becomes readable on the first signal to end; a second one ends the process at once."""
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
