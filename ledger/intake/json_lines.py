"""Read JSON Lines: one event per line."""

from collections.abc import Iterator
from typing import IO

from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.exports import check_last_lines

LINE_BYTES_MAX = 1 << 20
# the limits on blank lines in a file, and on bytes that are skipped to find the end of a long line
BLANK_LINES_MAX, SKIPPED_BYTES_MAX = 100_000, 100_000_000


def read_json_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | Refused, None, None] | None]:
    """Yield (number, line or refusal, None, None) for each line that is not blank; None for an export's last line.

    The None counts as an entry, so that an export without events is not reported as empty.
    """
    for number, line in check_last_lines(number_lines(file)):
        yield None if line is None else (number, line, None, None)


def number_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | Refused]]:
    """Yield (line number, line) for each line that is not blank; for a line that is too long, a refusal."""
    number = blank = 0
    while line := file.readline(LINE_BYTES_MAX + 2):
        number += 1
        if len(line) > LINE_BYTES_MAX and not line.endswith(b"\n"):
            skipped = 0
            while line and not line.endswith(b"\n") and skipped < SKIPPED_BYTES_MAX:
                line = file.readline(LINE_BYTES_MAX)
                skipped += len(line)
            unread = "" if skipped < SKIPPED_BYTES_MAX else "; the rest was not read"
            message = f"line {number} has more than {LINE_BYTES_MAX:,} bytes; write each entry on a line of its own"
            yield number, Refused("line-too-long", message + unread, number)
            if unread:
                return
            continue
        line = (line[3:] if number == 1 and line.startswith(b"\xef\xbb\xbf") else line).rstrip(b"\r\n")
        if line.strip():
            yield number, line
            continue
        blank += 1
        if blank > BLANK_LINES_MAX:
            message = f"more than {BLANK_LINES_MAX:,} lines are blank; delete them"
            yield number, Refused("too-many-blank-lines", message, number)
            return
