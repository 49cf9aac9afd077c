"""JSON Lines: one event per line."""

from collections.abc import Iterator
from typing import IO

from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.exports import mark_last_lines

LINE_BYTES_MAX = 1 << 20
# how many blank lines a file may have, and how many bytes to skip in search of the end of a long line
BLANK_LINES_MAX, SKIPPED_BYTES = 100_000, 100_000_000


def json_events(file: IO[bytes]) -> Iterator[tuple[int, bytes | Refused, None, None] | None]:
    """Yield the lines of a file, with None for the last line of an export, which allows a file without events."""
    for number, line in mark_last_lines(numbered_lines(file)):
        yield None if line is None else (number, line, None, None)


def numbered_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | Refused]]:
    """Yield the numbered lines that are not blank, with a refusal in place of a line that is too long."""
    number = blank = 0
    while line := file.readline(LINE_BYTES_MAX + 2):
        number += 1
        if len(line) > LINE_BYTES_MAX and not line.endswith(b"\n"):
            skipped = 0
            while line and not line.endswith(b"\n") and skipped < SKIPPED_BYTES:
                line = file.readline(LINE_BYTES_MAX)
                skipped += len(line)
            unread = "" if skipped < SKIPPED_BYTES else "; the rest was not read"
            message = f"line {number} has more than {LINE_BYTES_MAX:,} bytes; one event per line is needed{unread}"
            yield number, Refused("line-too-long", message, number)
            if unread:
                return
            continue
        line = (line[3:] if number == 1 and line.startswith(b"\xef\xbb\xbf") else line).rstrip(b"\r\n")
        if line.strip():
            yield number, line
            continue
        blank += 1
        if blank > BLANK_LINES_MAX:
            yield number, Refused("too-many-blank-lines", f"more than {BLANK_LINES_MAX:,} lines are blank", number)
            return
