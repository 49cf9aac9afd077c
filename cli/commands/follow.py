"""Implement `import --follow -`: import lines from standard input as they arrive, and answer each."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ratings_ledger.cli.arguments.views import load_newest_ladders
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.proposals import note_leagues, note_new, note_unranked
from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.following import Line, gather_groups, import_and_answer
from ratings_ledger.ledger.intake.intake import ImportPolicy, OnRejected, OnStored
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.admission.known_ladders import KnownLadders
from ratings_ledger.projections.admission.league_checks import LeagueNotes
from ratings_ledger.projections.admission.proposals import propose

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def follow(db: str, policy: ImportPolicy) -> int:
    """Append events from standard input and answer each line on standard output.

    Stops when either is closed, and at a SIGTERM or SIGINT.

    Returns the exit code: 1 if a line was rejected, else 0.

    Raises `StoreUnavailable`, `ClockBehind`; unanswered lines can then be sent again.
    """
    ledger, known = open_ledger(db, keep_open=True), KnownLadders(load_newest=load_newest_ladders)
    reported = set[str]()

    def import_items(items: Sequence[Item], reject: OnRejected, on_stored: OnStored) -> None:
        hooks = {"reject": reject, "on_stored": on_stored}
        result = propose(ledger, items, policy, known, league_notes=LeagueNotes(), **hooks).append()
        result.rejected_count = 0  # each rejected line has its own answer, so no note is needed
        note_new(result)
        # report each reason once, with its first game: the total is unknown until the input ends
        result.unranked = {
            reason: games._replace(number=1) for reason, games in result.unranked.items() if reason not in reported
        }
        result.leagues = [note for note in result.leagues if note not in reported]
        reported.update(result.unranked, result.leagues)
        note_unranked(result)
        note_leagues(result)

    has_rejected = False
    with _watch_stop_signals() as stop_descriptor:
        for group in gather_groups(sys.stdin.fileno(), stop_descriptor):
            try:
                replies = import_and_answer(ledger, group, import_items)
            except LedgerError:
                _note_unanswered(group)
                raise
            has_rejected |= any(reply["result"] == "rejected" for reply in replies)
            try:
                sys.stdout.write("".join(f"{render.to_json(reply)}\n" for reply in replies))
                sys.stdout.flush()
            except BrokenPipeError:
                # the interpreter must not try to write the output again at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                render.note("ratings: the answers cannot be written: standard output was closed")
                _note_unanswered(group)
                break
    return int(has_rejected)


def _note_unanswered(group: Sequence[Line]) -> None:
    first_line = group[0][0]
    render.note(
        f"ratings: the lines from {first_line} on are unanswered; send them again; a stored line is not stored twice"
    )


@contextmanager
def _watch_stop_signals() -> Iterator[int]:
    """Yield a descriptor that becomes readable on the first SIGTERM or SIGINT; a second one has its usual effect."""
    read_end, write_end = os.pipe()
    previous_handlers = {signal_number: signal.getsignal(signal_number) for signal_number in STOP_SIGNALS}

    def restore_handlers() -> None:
        for signal_number, handler in previous_handlers.items():
            signal.signal(signal_number, handler)

    def stop(signal_number: int, frame: object) -> None:
        os.write(write_end, b".")
        restore_handlers()

    for signal_number in STOP_SIGNALS:
        signal.signal(signal_number, stop)
    try:
        yield read_end
    finally:
        restore_handlers()
        os.close(read_end)
        os.close(write_end)
