"""Lines of events that come one after another from a program that waits for an answer to each.

    {"type":"game.recorded","id":"m-7", ...}     {"line":1,"result":"appended","id":"m-7","position":217}
    the same again                               {"line":2,"result":"existing","id":"m-7","position":217}
    {"type":"game.recorded", ...}                {"line":3,"result":"rejected","code":"player-twice","message":"..."}

Whatever has arrived is one batch, which is appended like an import; the next batch gathers meanwhile. Answers are read
back from the log, so nothing is acknowledged that is not stored.
"""

import os
import select
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ratings_ledger.ledger.intake.files import STDIN, Item
from ratings_ledger.ledger.intake.intake import OnStored, Reject
from ratings_ledger.ledger.intake.json_lines import LINE_BYTES_MAX
from ratings_ledger.ledger.rejections import Refused, Rejection
from ratings_ledger.ledger.store.log import positions_of
from ratings_ledger.ledger.store.opening import Ledger

# a batch is what has arrived, without waiting for more: at most this many events, from this many reads
BATCH_EVENTS = 1_000
BATCH_READS = 64
READ_BYTES = 1 << 16

Line = tuple[int, bytes | Refused]
# imports the items of a batch, continuing after refusals: (items, reject, on_stored)
Import = Callable[[Sequence[Item], Reject, OnStored], object]


def batches(descriptor: int, stopped: int) -> Iterator[list[Line]]:
    """Yield the numbered lines from one descriptor, in batches, until it ends or the other one can be read.

    Blank lines are left out. A line that is too long gives only a refusal. Whole lines read before the stop are still
    given.
    """
    lines = _Lines()
    waiting: list[Line] = []
    ended = False
    while waiting or not ended:
        reads = 0
        while not ended and len(waiting) < BATCH_EVENTS and (reads < BATCH_READS or not waiting):
            # with nothing waiting, there is nothing else to do
            ready, _, _ = select.select([descriptor, stopped], [], [], 0 if waiting else None)
            if stopped in ready:
                ended = True
            elif not ready:
                break
            elif chunk := os.read(descriptor, READ_BYTES):
                reads += 1
                waiting += lines.of(chunk)
            else:
                ended = True
                waiting += lines.of(b"\n")  # the last line may have no end
        if waiting:
            yield waiting[:BATCH_EVENTS]
        waiting = waiting[BATCH_EVENTS:]


class _Lines:
    """Cuts what arrives into numbered lines."""

    def __init__(self) -> None:
        self._number = 1
        self._begun = b""
        self._too_long = False

    def of(self, chunk: bytes) -> Iterator[Line]:
        """Yield the lines that end in a chunk."""
        *ended, begun = chunk.split(b"\n")
        for part in ended:
            line, too_long = self._begun + part, self._too_long
            self._begun, self._too_long = b"", False
            if self._number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if too_long or len(line) > LINE_BYTES_MAX:
                told = f"the line has more than {LINE_BYTES_MAX:,} bytes; one event per line is needed"
                yield self._number, Refused("line-too-long", told, self._number)
            elif line.strip():
                yield self._number, line.rstrip(b"\r")
            self._number += 1
        self._begun += begun
        if len(self._begun) > LINE_BYTES_MAX:
            self._begun, self._too_long = b"", True


def answers(ledger: Ledger, batch: Sequence[Line], import_batch: Import) -> list[dict[str, Any]]:
    """Import a batch; what became of each of its lines, in order. Raises what `import_batch` raises."""
    rejected: dict[int, Rejection] = {}
    settled: dict[int, tuple[str, bool]] = {}

    def reject(rejection: Rejection, source: Any) -> None:
        rejected[rejection.line or 0] = rejection

    def settle(line: int, event_id: str, appended: bool) -> None:
        settled[line] = event_id, appended

    import_batch([Item(STDIN, number, line, None) for number, line in batch], reject, settle)
    with ledger.reading() as connection:
        positions = positions_of(connection, {event_id for event_id, _ in settled.values()})
    # a line that repeats one which was refused in the end has to be validated by itself
    again = [line for line in batch if line[0] in settled and settled[line[0]][0] not in positions]
    found = {told["line"]: told for told in answers(ledger, again, import_batch)} if again else {}
    for number, (event_id, appended) in settled.items():
        if event_id in positions:
            result = "appended" if appended else "existing"
            found[number] = {"line": number, "result": result, "id": event_id, "position": positions[event_id]}
    for number, why in rejected.items():
        found[number] = {"line": number, "result": "rejected", "code": why.code, "message": why.message}
    return [found[number] for number, _ in batch]
