"""`import --follow -`: a program keeps standard input open, and every line that it sends is answered."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ratings_ledger.cli.arguments.views import newest_ladders
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.appended import note_homeless, note_leagues, note_new
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
    """Append what comes on standard input until it ends, answer each line on standard output; returns the exit code.

    Raises `StoreUnavailable`, `ClockBehind`: what is not answered then can be sent again.
    """
    ledger, known, told = open_ledger(db, keep_open=True), Known(newest=newest_ladders), set[str]()

    def import_batch(items: Sequence[Item], reject: Reject, on_stored: OnStored) -> None:
        hooks = {"reject": reject, "on_stored": on_stored}
        result = propose(ledger, items, policy, known, league_notes=LeagueNotes(), **hooks).append()
        result.rejected_count = 0  # they are answered, and no reason to say nothing of the others
        note_new(result)
        # once for each reason
        result.homeless = {reason: game_id for reason, game_id in result.homeless.items() if reason not in told}
        result.leagues = [note for note in result.leagues if note not in told]
        told.update(result.homeless, result.leagues)
        note_homeless(result)
        note_leagues(result)

    rejected = False
    with _ended_by_signals() as stopped:
        for batch in batches(sys.stdin.fileno(), stopped):
            try:
                found = import_and_answer(ledger, batch, import_batch)
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


def _note_unanswered(batch: Sequence[Line]) -> None:
    first = batch[0][0]
    render.note(f"ratings: line {first} and those after it have no answer; send them again, nothing counts twice")


@contextmanager
def _ended_by_signals() -> Iterator[int]:
    """Provide a descriptor that becomes readable when the process is asked to end; asked a second time, it ends at
    once.
    """
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
