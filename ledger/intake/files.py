"""Files of events: opened compressed or not, recognised by content, read one event at a time.

An item is one event as written, or what is wrong with it; memory does not grow with the file.
"""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from ledger.intake.csv_cells import TableOptions
from ledger.intake.csv_games import table_events
from ledger.rejections import Refused, Rejection
from ledger.store.exports import without_ends

LINE_BYTES_MAX = 1 << 20
# how many blank lines a file may have, and how far a compressed one may expand: to this many bytes, or this many times
# its size; events compress to a tenth, rarely to a fiftieth
BLANK_LINES_MAX = 100_000
EXPANDED_BYTES, EXPANDED_TIMES = 100_000_000, 200
# how far to look for the end of a line that is too long, and how much of a compressed file may expand to nothing
SKIPPED_BYTES, SILENT_BYTES = 100_000_000, 1_000_000
# how files from Excel, LibreOffice and Numbers begin: archives, and Excel's older format
SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
STDIN = "-"


class Far(NamedTuple):
    """How many bytes of a file have been read."""

    file: str
    read: int


class Item(NamedTuple):
    """One event of a file: its line (for a CSV game: its first row's), what is there, and the rows of a table.

    What is there is a line of JSON, or an event that was put together, or what is wrong with either.
    """

    file: str
    line: int
    event: bytes | dict[str, Any] | Refused
    source: Any
    rows_of: str | None = None  # the game id, if the event was put together from rows of a CSV file
    table: bool = False


def read_items(name: str, options: TableOptions) -> Iterator[Item | Rejection | Far]:
    """The events of a file, or a `Rejection` about the file itself; now and then how far it has been read."""
    if name != STDIN and Path(name).is_dir():
        yield _is_a_directory(name).rejection(name)
        return
    count = 0
    try:
        with _opened(name) as (file, told):
            for item in _items(name, file, options):
                yield Far(name, told()) if item is None else item
                count += 1
                if count % 256 == 0:
                    yield Far(name, told())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield Rejection("bad-gzip", f"{name} is cut off or damaged: {error}", name)
        return
    except Refused as problem:
        yield problem.rejection(name)
        return
    if not count:
        yield Rejection("empty-file", f"{name} holds no event", name)


def read_lines(name: str) -> Iterator[tuple[int, bytes]]:
    """The numbered lines of a file without their line ends, leaving out blank ones. Raises `Refused`.

    For a compressed file that ends too early it is raised from an `EOFError`, after what could be read.
    """
    if Path(name).is_dir():
        raise _is_a_directory(name)
    try:
        with _opened(name) as (file, _):
            for number, line in _lines(file):
                if isinstance(line, Refused):
                    raise line
                yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refused("bad-gzip", f"{name} is cut off or damaged: {error}") from error


def _is_a_directory(name: str) -> Refused:
    return Refused("is-a-directory", f"{name} is a folder; name the files in it")


def size(name: str) -> int | None:
    """The size of a file in bytes for a progress bar, or None if it has none."""
    return os.path.getsize(name) if name != STDIN and Path(name).is_file() else None


@contextmanager
def _opened(name: str) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    raw: IO[bytes] = sys.stdin.buffer if name == STDIN else open(name, "rb")  # noqa: SIM115
    read = silent = given = 0
    compressed = False

    def counted(size: int) -> bytes:
        nonlocal read, silent
        got = raw.read(size)
        read += len(got)
        silent += len(got)
        if compressed and silent > SILENT_BYTES:
            raise Refused("bad-gzip", f"more than {SILENT_BYTES:,} bytes of {name} expand to nothing; no log does")
        return got

    def expanded(size: int) -> bytes:
        nonlocal given, silent
        # whatever is available: for a file that is cut off, everything before the end
        found = zipped.read1(size)
        given, silent = given + len(found), 0
        if given > max(EXPANDED_BYTES, EXPANDED_TIMES * read):
            raise Refused("bad-gzip", f"{name} expands to more than {EXPANDED_TIMES} times its size; no log does")
        return found

    try:
        buffered = io.BufferedReader(_Pieces(counted), 1 << 16)
        compressed = buffered.peek(2)[:2] == b"\x1f\x8b"
        if compressed:
            zipped = gzip.GzipFile(fileobj=buffered)
            buffered = io.BufferedReader(_Pieces(expanded), 1 << 16)
        yield buffered, lambda: read
    finally:
        if name != STDIN:
            raw.close()


class _Pieces(io.RawIOBase):
    """A file whose pieces are given by a function of their size at the most."""

    def __init__(self, piece: Callable[[int], bytes]) -> None:
        self._piece = piece

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._piece(len(buffer))
        buffer[: len(found)] = found
        return len(found)


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | Refused]]:
    """The numbered lines that are not blank; for a line that is too long, only the refusal."""
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


def _items(name: str, file: IO[bytes], options: TableOptions) -> Iterator[Item | Rejection | None]:
    """The items; None for the last line of an export, which is not an event but means that there may be none."""
    start = file.peek(4_096)[:4_096]  # type: ignore[attr-defined]
    if start.startswith(SPREADSHEETS):
        yield Rejection("is-a-spreadsheet", f"{name} is a spreadsheet; save it as CSV UTF-8, and import that", name)
        return
    looks_json = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    if looks_json or Path(name.removesuffix(".gz")).suffix in (".jsonl", ".ndjson", ".json"):
        for number, line in without_ends(_lines(file)):
            yield None if line is None else Item(name, number, line, None)
        return
    for line_number, event, rows, game_id in table_events(file, options, LINE_BYTES_MAX):
        yield Item(name, line_number, event, rows, game_id, table=True)
