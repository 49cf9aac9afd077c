"""Follow standard input: read lines of events from a program that waits for an answer to each line.

    {"type":"game.recorded","id":"m-7", ...}     {"line":1,"result":"appended","id":"m-7","position":217}
    the same again                               {"line":2,"result":"existing","id":"m-7","position":217}
    {"type":"game.recorded", ...}                {"line":3,"result":"rejected","code":"player-twice","message":"..."}

All lines that have arrived form a group. It is appended as an import, while the lines of the next group arrive. Answers
are read back from the log, so only stored events are acknowledged.
"""

import os
import select
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ratings_ledger.ledger.intake.files import STDIN, Item
from ratings_ledger.ledger.intake.intake import OnRejected, OnStored
from ratings_ledger.ledger.intake.json_lines import LINE_BYTES_MAX
from ratings_ledger.ledger.rejections import Refused, Rejection
from ratings_ledger.ledger.store.log import find_positions
from ratings_ledger.ledger.store.opening import Ledger

# the limits of a group: the number of lines, and of reads in which they arrive
GROUP_LINES = 1_000
GROUP_READS = 64
READ_BYTES = 1 << 16

Line = tuple[int, bytes | Refused]
# imports the items of a group, given (items, reject, on_stored), and continues after refusals
ImportItems = Callable[[Sequence[Item], OnRejected, OnStored], object]


def gather_groups(descriptor: int, stop_descriptor: int) -> Iterator[list[Line]]:
    """Yield groups of numbered lines from a descriptor, until it ends or `stop_descriptor` becomes readable.

    Blank lines are left out. A refusal replaces a line that is too long. Whole lines read before the stop are yielded.
    """
    lines = _LineSplitter()
    pending: list[Line] = []
    ended = False
    while pending or not ended:
        reads = 0
        while not ended and len(pending) < GROUP_LINES and (reads < GROUP_READS or not pending):
            # wait only if no lines are pending
            ready, _, _ = select.select([descriptor, stop_descriptor], [], [], 0 if pending else None)
            if stop_descriptor in ready:
                ended = True
            elif not ready:
                break
            elif chunk := os.read(descriptor, READ_BYTES):
                reads += 1
                pending += lines.split(chunk)
            else:
                ended = True
                pending += lines.split(b"\n")  # the last line may lack a line feed
        if pending:
            yield pending[:GROUP_LINES]
        pending = pending[GROUP_LINES:]


class _LineSplitter:
    """A splitter of arriving bytes into numbered lines."""

    def __init__(self) -> None:
        self._number = 1
        self._partial_line = b""
        self._too_long = False

    def split(self, chunk: bytes) -> Iterator[Line]:
        """Yield the lines that end in a chunk."""
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            line, too_long = self._partial_line + part, self._too_long
            self._partial_line, self._too_long = b"", False
            if self._number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if too_long or len(line) > LINE_BYTES_MAX:
                message = f"the line has more than {LINE_BYTES_MAX:,} bytes; write one event per line"
                yield self._number, Refused("line-too-long", message, self._number)
            elif line.strip():
                yield self._number, line.rstrip(b"\r")
            self._number += 1
        self._partial_line += rest
        if len(self._partial_line) > LINE_BYTES_MAX:
            self._partial_line, self._too_long = b"", True


def import_and_answer(ledger: Ledger, group: Sequence[Line], import_items: ImportItems) -> list[dict[str, Any]]:
    """Import a group of lines; return the answer to each, in order. Raises the errors of `import_items`."""
    rejected: dict[int, Rejection] = {}
    stored: dict[int, tuple[str, bool]] = {}

    def reject(rejection: Rejection, source: Any) -> None:
        rejected[rejection.line or 0] = rejection

    def note_stored(line: int, event_id: str, appended: bool) -> None:
        stored[line] = event_id, appended

    import_items([Item(STDIN, number, line, None) for number, line in group], reject, note_stored)
    with ledger.reading() as connection:
        positions = find_positions(connection, {event_id for event_id, _ in stored.values()})
    # a line that repeated an earlier line must be validated by itself if the earlier line was refused on append
    to_repeat = [line for line in group if line[0] in stored and stored[line[0]][0] not in positions]
    answer_by_line = (
        {answer["line"]: answer for answer in import_and_answer(ledger, to_repeat, import_items)} if to_repeat else {}
    )
    for number, (event_id, appended) in stored.items():
        if event_id in positions:
            result = "appended" if appended else "existing"
            answer_by_line[number] = {"line": number, "result": result, "id": event_id, "position": positions[event_id]}
    for number, refusal in rejected.items():
        answer_by_line[number] = {
            "line": number,
            "result": "rejected",
            "code": refusal.code,
            "message": refusal.message,
        }
    return [answer_by_line[number] for number, _ in group]
