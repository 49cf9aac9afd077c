"""Reading files of events: compressed or not, recognised by content, one event at a time.

An item is one event as written, or its refusal; memory does not grow with the file.
"""

import gzip
import hashlib
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from ratings_ledger.ledger.intake.forfeits import MissingSets, describe_forfeits, settle_forfeit
from ratings_ledger.ledger.intake.json_lines import LINE_BYTES_MAX, numbered_lines
from ratings_ledger.ledger.intake.readers import ZIP_MAGIC, find_reader
from ratings_ledger.ledger.intake.readers.reader import Opened, ReadAs
from ratings_ledger.ledger.intake.tables.aliases import apply_aliases
from ratings_ledger.ledger.intake.tables.columns import CsvColumns, TableOptions
from ratings_ledger.ledger.intake.tables.csv_files import PieceReader, SimpleTable, parse_simple_table
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.intake.tables.table_games import apply_slug
from ratings_ledger.ledger.intake.unusual_results import UnusualResults
from ratings_ledger.ledger.rejections import Refused, Rejection, csv_item, did_you_mean, quote
from ratings_ledger.ledger.validation.new_names import TableForm

# limits of the expansion of a compressed file: this many bytes, or this many times its size, as events compress to a
# tenth, rarely to a fiftieth; and the number of compressed bytes that may expand to nothing
EXPANDED_BYTES, EXPANDED_TIMES, SILENT_BYTES = 100_000_000, 200, 1_000_000
STDIN = "-"
TOO_LARGE = (
    "it needs more memory than there is; import it in parts, or as a table with the columns game_id, occurred_at, "
    "player and place, which is read row by row"
)
TOLD_MAX = 20


class Progress(NamedTuple):
    """The number of bytes of a file that were read so far."""

    file: str
    read: int


class FileDigest(NamedTuple):
    """The SHA-256 of a file's bytes, with the sheet that was read of a spreadsheet."""

    file: str
    sha256: str
    sheet: str | None = None


class FileNote(NamedTuple):
    """A sentence about a file, such as its format; or how a table was read; or options for the next file.

    A sentence about names as answered comes with all these answers.
    """

    file: str
    told: str
    options: TableOptions | None = None
    read: TableRead | None = None
    answers: Mapping[str, str] = {}


class Item(NamedTuple):
    """One event of a file: its line (for a game in CSV: that of its first row), the event, and its source.

    The event is a line of JSON, an event that a reader composed, or a refusal.
    """

    file: str
    line: int
    event: bytes | dict[str, Any] | Refused
    source: Any
    rows_of: str | None = None  # the game id, if a reader composed the event from rows of a table
    table: bool = False
    is_numbered: bool = False  # whether the game's id consists of its day and a number
    accounts: bool = False  # whether its players are accounts, whose names have no typing errors
    form: TableForm = ""  # where the table has players' names


# the entries of a file, in order
Entry = Item | Rejection | Progress | FileDigest | FileNote


def read_items(name: str, options: TableOptions) -> Iterator[Entry]:
    """Yield the entries of a file: events or a `Rejection` of the file, notes, progress, and finally its digest."""
    if name != STDIN and Path(name).is_dir():
        yield _directory_refusal(name).rejection(name)
        return
    count, digest, columns_found = 0, hashlib.sha256(), list[CsvColumns]()
    is_too_large = False

    def note(columns: CsvColumns) -> None:
        columns_found.append(columns)
        if options.found is not None:
            options.found(columns)

    try:
        with _open_content(name, digest.update) as (file, count_bytes_read, is_plain):
            for item in _read_entries(name, file, is_plain, options._replace(found=note)):
                yield Progress(name, count_bytes_read()) if item is None else item
                if isinstance(item, FileNote):
                    continue
                count += 1
                if count % 256 == 0:
                    yield Progress(name, count_bytes_read())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield Rejection("bad-gzip", f"{name} is cut off or damaged: {error}", name)
    except Refused as problem:
        yield problem.rejection(name)
    except MemoryError:
        is_too_large = True  # reported below, after the memory is released
    else:
        if not count:
            yield Rejection("empty-file", f"{name} holds no event", name)
    if is_too_large:
        yield Rejection("file-too-large", TOO_LARGE, name)
    yield FileDigest(name, digest.hexdigest(), columns_found[-1].sheet if columns_found else None)


def read_lines(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a file without their line ends, leaving out blank ones. Raises `Refused`.

    For a compressed file that was cut off, it is raised from an `EOFError` after the readable lines.
    """
    if Path(name).is_dir():
        raise _directory_refusal(name)
    try:
        with _open_content(name) as (file, *_):
            for number, line in numbered_lines(file):
                if isinstance(line, Refused):
                    raise line
                yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refused("bad-gzip", f"{name} is cut off or damaged: {error}") from error


def read_simple_table(name: str) -> SimpleTable | None:
    """Read a table that holds no games, such as aliases; None for one without a header. Raises `Refused`."""
    try:
        with _open_content(name) as (file, *_):
            if file.peek(len(ZIP_MAGIC)).startswith(ZIP_MAGIC):  # type: ignore[attr-defined]
                raise Refused("is-a-spreadsheet", "it is a spreadsheet; save the table in it as CSV")
            return parse_simple_table(file, LINE_BYTES_MAX)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refused("bad-gzip", f"it is cut off or damaged: {error}") from error


@contextmanager
def open_simple_table(name: str, known: Sequence[str]) -> Iterator[SimpleTable]:
    """Provide a table that holds no games and has only known columns, each once.

    A `Refused` in the block names the file, and the line if it has one. Raises `Refused` (empty-file, unknown-column).
    """
    try:
        if (table := read_simple_table(name)) is None:
            raise Refused("empty-file", "it holds no row")
        for column in table.header:
            if column not in known:
                problem = f"{quote(column)} is none of {', '.join(known)}"
                raise Refused("unknown-column", f"{problem}{did_you_mean(column, known)}", table.line)
        if duplicates := [column for column in table.header if table.header.count(column) > 1]:
            raise Refused("unknown-column", f"the column {duplicates[0]} occurs twice", table.line)
        yield table
    except Refused as problem:
        place = name if problem.line is None else f"line {problem.line} of {name}"
        raise Refused(problem.code, f"{place}: {problem.message}") from None


def _directory_refusal(name: str) -> Refused:
    return Refused("is-a-directory", f"{name} is a folder; name the files in it")


def size(name: str) -> int | None:
    """Return the size of a file in bytes for a progress bar, or None if it has none."""
    return os.path.getsize(name) if name != STDIN and Path(name).is_file() else None


@contextmanager
def _open_content(
    name: str, take: Callable[[bytes], object] = lambda data: None
) -> Iterator[tuple[IO[bytes], Callable[[], int], bool]]:
    """Provide a file's content, a function that returns the bytes read so far, and whether the file is uncompressed.

    `take` receives the bytes of the file, all of them if no error occurs.
    """
    raw: IO[bytes] = sys.stdin.buffer if name == STDIN else open(name, "rb")  # noqa: SIM115
    read = silent = expanded_bytes = 0
    compressed = False

    def read_raw(size: int) -> bytes:
        nonlocal read, silent
        data = raw.read(size)
        take(data)
        read += len(data)
        silent += len(data)
        if compressed and silent > SILENT_BYTES:
            raise Refused("bad-gzip", f"more than {SILENT_BYTES:,} bytes of {name} expand to nothing; no log does")
        return data

    def read_expanded(size: int) -> bytes:
        nonlocal expanded_bytes, silent
        # `read1` returns all available bytes, so a truncated file yields everything before its end
        data = zipped.read1(size)
        expanded_bytes, silent = expanded_bytes + len(data), 0
        if expanded_bytes > max(EXPANDED_BYTES, EXPANDED_TIMES * read):
            raise Refused("bad-gzip", f"{name} expands to more than {EXPANDED_TIMES} times its size; no log does")
        return data

    try:
        buffered = io.BufferedReader(PieceReader(read_raw), 1 << 16)
        compressed = buffered.peek(2)[:2] == b"\x1f\x8b"
        if compressed:
            zipped = gzip.GzipFile(fileobj=buffered)
            buffered = io.BufferedReader(PieceReader(read_expanded), 1 << 16)
        is_file = Path(name).is_file()
        yield buffered, lambda: read, not compressed and is_file
        # readers may open the path instead, or stop early; a pipe may have no end, so it is not drained
        while is_file and (rest := raw.read(1 << 20)):
            take(rest)
    finally:
        if name != STDIN:
            raw.close()


def _read_entries(
    name: str, file: IO[bytes], is_plain: bool, options: TableOptions
) -> Iterator[Item | FileNote | None]:
    """Yield the items, with None for the last line of an export, which allows a file without events."""
    start = file.peek(4_096)[:4_096]  # type: ignore[attr-defined]
    reader, broken = find_reader(name.removesuffix(".gz"), start)
    yield from (FileNote(name, f"{problem}; it is ignored") for problem in broken)
    aliases, games, is_numbered, forfeits = dict[str, str](), dict[str, str](), False, list[int]()
    missing_sets, unusual_results = MissingSets(), UnusualResults()
    form: TableForm = ""
    has_scores = True
    for entry in reader.read(Opened(name, file, name if is_plain else None), options):
        if isinstance(entry, str):
            yield FileNote(name, entry)
        elif isinstance(entry, TableRead):
            is_numbered, form = entry.is_numbered and not entry.unsaid, LAYOUTS[entry.layout].form
            has_scores = not LAYOUTS[entry.layout].is_usual or "score" in entry.columns.values()
            yield FileNote(name, "", read=entry)
            yield from (FileNote(name, sentence) for sentence in entry.told)
        elif isinstance(entry, ReadAs):
            is_numbered = entry.is_numbered
            yield FileNote(name, entry.told)
        elif isinstance(entry, TableOptions):
            yield FileNote(name, "", entry)
        elif entry is None:
            yield None
        else:
            line, event, source, rows_of = entry
            if settle_forfeit(event, options.forfeits):
                forfeits.append(line)
            if reader.tables:
                if has_scores:
                    missing_sets.watch(line, event)
                    unusual_results.watch(line, event)
                event = apply_slug(event, games)
                if options.aliases:
                    event = apply_aliases(event, options.aliases, aliases)
                    if isinstance(event, Refused):
                        event.names = tuple(options.aliases.get(player, player) for player in event.names)
            yield Item(name, line, event, source, rows_of, reader.tables, is_numbered, reader.accounts, form)
    if forfeits:
        yield FileNote(name, describe_forfeits(len(forfeits), options.forfeits, forfeits if reader.tables else ()))
    for message in filter(None, (missing_sets.describe(), unusual_results.describe())):
        yield FileNote(name, message)
    answers = {typed: aliases.pop(typed) for typed in [*aliases] if typed in options.answered}
    for kind, used, more in (
        ("games", games, ""),
        ("aliases", aliases, ""),
        ("names as answered", answers, "; --aliases changes that"),
    ):
        if used:
            pairs = [f"{csv_item(typed)} = {csv_item(meant)}" for typed, meant in used.items()]
            more = f" and {len(pairs) - TOLD_MAX:,} more{more}" if len(pairs) > TOLD_MAX else more
            sentence = f"{kind}: {', '.join(pairs[:TOLD_MAX])}{more}"
            yield FileNote(name, sentence, answers=used if used is answers else {})
