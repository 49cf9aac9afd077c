"""Read files of events, compressed or not, one event at a time; the content decides which reader reads a file.

An item is one event or its refusal. Memory does not grow with the file.
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
from ratings_ledger.ledger.intake.json_lines import LINE_BYTES_MAX, number_lines
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

# a compressed file may expand to this many bytes, or this many times its size; events compress to a tenth, rarely to a
# fiftieth. SILENT_BYTES limits the compressed bytes that expand to nothing
EXPANDED_BYTES, EXPANDED_TIMES, SILENT_BYTES = 100_000_000, 200, 1_000_000
STDIN = "-"
TOO_LARGE = (
    "it needs more memory than there is; import it in parts, or as a table with the columns game_id, occurred_at, "
    "player and place, which is read row by row"
)
# a note lists at most so many names
NOTED_NAMES_MAX = 20


class Progress(NamedTuple):
    """The progress of reading a file, in bytes."""

    file: str
    read: int


class FileDigest(NamedTuple):
    """The SHA-256 of a file's bytes, and the sheet that was read if it is a spreadsheet."""

    file: str
    sha256: str
    sheet: str | None = None


class FileNote(NamedTuple):
    """A note about a file: a sentence, the interpretation of its table, or options for the next file.

    A sentence about answered names comes with all `answers`.
    """

    file: str
    sentence: str
    options: TableOptions | None = None
    read: TableRead | None = None
    answers: Mapping[str, str] = {}


class Item(NamedTuple):
    """An event of a file.

    line:        the line of the event; for a game of several rows the line of the first row
    event:       a line of JSON, an event that a reader composed, or a refusal
    source:      the text or the rows from which the event was read
    rows_of:     the game id, if a reader composed the event from rows of a table
    table:       whether the file is a table
    is_numbered: whether the game's id consists of its day and a number
    accounts:    whether the players are online accounts, whose names contain no slips
    form:        where the table has the players' names
    """

    file: str
    line: int
    event: bytes | dict[str, Any] | Refused
    source: Any
    rows_of: str | None = None
    table: bool = False
    is_numbered: bool = False
    accounts: bool = False
    form: TableForm = ""


# the entries of a file, in order
Entry = Item | Rejection | Progress | FileDigest | FileNote


def read_items(name: str, options: TableOptions) -> Iterator[Entry]:
    """Yield the entries of a file: items or a `Rejection` of the file, notes, progress, and finally its digest."""
    if name != STDIN and Path(name).is_dir():
        yield _build_directory_refusal(name).rejection(name)
        return
    count, digest, tables = 0, hashlib.sha256(), list[CsvColumns]()
    is_too_large = False

    def add_columns(columns: CsvColumns) -> None:
        tables.append(columns)
        if options.on_columns is not None:
            options.on_columns(columns)

    try:
        with _open_content(name, digest.update) as (file, count_bytes_read, is_plain):
            for item in _read_entries(name, file, is_plain, options._replace(on_columns=add_columns)):
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
        is_too_large = True  # reported below, when the memory is released
    else:
        if not count:
            yield Rejection("empty-file", f"{name} holds no event", name)
    if is_too_large:
        yield Rejection("file-too-large", TOO_LARGE, name)
    yield FileDigest(name, digest.hexdigest(), tables[-1].sheet if tables else None)


def read_lines(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a file without line ends, leaving out blank lines. Raises `Refused`.

    The refusal of a truncated compressed file comes after the readable lines; its cause is an `EOFError`.
    """
    if Path(name).is_dir():
        raise _build_directory_refusal(name)
    try:
        with _open_content(name) as (file, *_):
            for number, line in number_lines(file):
                if isinstance(line, Refused):
                    raise line
                yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refused("bad-gzip", f"{name} is cut off or damaged: {error}") from error


def read_simple_table(name: str) -> SimpleTable | None:
    """Read a table that contains no games, such as aliases; return None if it has no header. Raises `Refused`."""
    try:
        with _open_content(name) as (file, *_):
            if file.peek(len(ZIP_MAGIC)).startswith(ZIP_MAGIC):  # type: ignore[attr-defined]
                raise Refused("is-a-spreadsheet", "it is a spreadsheet; save the table as CSV")
            return parse_simple_table(file, LINE_BYTES_MAX)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refused("bad-gzip", f"it is cut off or damaged: {error}") from error


@contextmanager
def open_simple_table(name: str, known: Sequence[str]) -> Iterator[SimpleTable]:
    """Provide a table that contains no games and has only known columns, each once.

    A `Refused` that the block raises gets the file and the line. Raises `Refused` (empty-file, unknown-column).
    """
    try:
        if (table := read_simple_table(name)) is None:
            raise Refused("empty-file", "it holds no row")
        for column in table.header:
            if column not in known:
                problem = f"{quote(column)} is not one of {', '.join(known)}"
                raise Refused("unknown-column", f"{problem}{did_you_mean(column, known)}", table.line)
        if duplicates := [column for column in table.header if table.header.count(column) > 1]:
            raise Refused("unknown-column", f"the column {duplicates[0]} occurs twice", table.line)
        yield table
    except Refused as problem:
        place = name if problem.line is None else f"line {problem.line} of {name}"
        raise Refused(problem.code, f"{place}: {problem.message}") from None


def _build_directory_refusal(name: str) -> Refused:
    return Refused("is-a-directory", f"{name} is a folder; name the files in it")


def size(name: str) -> int | None:
    """Return the size of a file in bytes for a progress bar, or None if it has none."""
    return os.path.getsize(name) if name != STDIN and Path(name).is_file() else None


@contextmanager
def _open_content(
    name: str, on_bytes: Callable[[bytes], object] = lambda data: None
) -> Iterator[tuple[IO[bytes], Callable[[], int], bool]]:
    """Provide a file's content, a function that counts the bytes read, and whether the path holds this content.

    A path does not hold the content if the file is compressed or standard input. `on_bytes` gets the bytes of the file,
    and all of them if no error occurs.
    """
    raw: IO[bytes] = sys.stdin.buffer if name == STDIN else open(name, "rb")  # noqa: SIM115
    bytes_read = silent_bytes = expanded_bytes = 0
    is_compressed = False

    def read_raw(size: int) -> bytes:
        nonlocal bytes_read, silent_bytes
        data = raw.read(size)
        on_bytes(data)
        bytes_read += len(data)
        silent_bytes += len(data)
        if is_compressed and silent_bytes > SILENT_BYTES:
            message = f"more than {SILENT_BYTES:,} bytes of {name} expand to nothing, so it is not a compressed log"
            raise Refused("bad-gzip", message)
        return data

    def read_expanded(size: int) -> bytes:
        nonlocal expanded_bytes, silent_bytes
        # `read1` returns all available bytes, so a truncated file yields everything before its end
        data = zipped.read1(size)
        expanded_bytes, silent_bytes = expanded_bytes + len(data), 0
        if expanded_bytes > max(EXPANDED_BYTES, EXPANDED_TIMES * bytes_read):
            message = f"{name} expands to more than {EXPANDED_TIMES} times its size, so it is not a compressed log"
            raise Refused("bad-gzip", message)
        return data

    try:
        buffered = io.BufferedReader(PieceReader(read_raw), 1 << 16)
        is_compressed = buffered.peek(2)[:2] == b"\x1f\x8b"
        if is_compressed:
            zipped = gzip.GzipFile(fileobj=buffered)
            buffered = io.BufferedReader(PieceReader(read_expanded), 1 << 16)
        is_file = Path(name).is_file()
        yield buffered, lambda: bytes_read, not is_compressed and is_file
        # a reader may have opened the path, or stopped early; a pipe is not drained, because it may have no end
        while is_file and (data := raw.read(1 << 20)):
            on_bytes(data)
    finally:
        if name != STDIN:
            raw.close()


def _read_entries(
    name: str, file: IO[bytes], is_plain: bool, options: TableOptions
) -> Iterator[Item | FileNote | None]:
    """Yield the items and notes of a file, and None for the last line of an export, which may have no events."""
    start = file.peek(4_096)[:4_096]  # type: ignore[attr-defined]
    reader, problems = find_reader(name.removesuffix(".gz"), start)
    yield from (FileNote(name, f"{problem}; it is ignored") for problem in problems)
    aliases, games, is_numbered, forfeits = dict[str, str](), dict[str, str](), False, list[int]()
    missing_sets, unusual_results = MissingSets(), UnusualResults()
    form: TableForm = ""
    has_scores = True
    for entry in reader.read(Opened(name, file, name if is_plain else None), options):
        if isinstance(entry, str):
            yield FileNote(name, entry)
        elif isinstance(entry, TableRead):
            is_numbered, form = entry.is_numbered and not entry.missing_members, LAYOUTS[entry.layout].form
            has_scores = not LAYOUTS[entry.layout].is_usual or "score" in entry.columns.values()
            yield FileNote(name, "", read=entry)
            yield from (FileNote(name, sentence) for sentence in entry.sentences)
        elif isinstance(entry, ReadAs):
            is_numbered = entry.is_numbered
            yield FileNote(name, entry.sentence)
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
    answers = {typed: aliases.pop(typed) for typed in [*aliases] if typed in options.answered_names}
    if games:
        yield FileNote(name, _describe_pairs("games", games))
    if aliases:
        yield FileNote(name, _describe_pairs("aliases", aliases))
    if answers:
        sentence = f"{_describe_pairs('names as answered', answers)}; change them with --aliases"
        yield FileNote(name, sentence, answers=answers)


def _describe_pairs(title: str, pairs: Mapping[str, str]) -> str:
    """Describe which texts of a file stand for which names: `games: Catan = catan, Schach = chess`."""
    texts = [f"{csv_item(typed)} = {csv_item(meant)}" for typed, meant in pairs.items()]
    more = f" and {len(texts) - NOTED_NAMES_MAX:,} more" if len(texts) > NOTED_NAMES_MAX else ""
    return f"{title}: {', '.join(texts[:NOTED_NAMES_MAX])}{more}"
