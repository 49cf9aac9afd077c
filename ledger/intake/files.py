"""Read files of events, compressed or not, one event at a time. The name and content of a file determine its reader.

An item is one event or its refusal. The memory needed does not grow with the file, unless its reader reads it whole.
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

from ratings_ledger.ledger.intake.forfeits import MissingSets, describe_forfeits, mark_forfeit
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

# A compressed file may expand to EXPANDED_BYTES_MAX bytes or EXPANSION_MAX times its size, whichever is more; events
# compress to a tenth of their size, rarely to a fiftieth. SILENT_BYTES_MAX limits the bytes that expand to nothing.
EXPANDED_BYTES_MAX, EXPANSION_MAX, SILENT_BYTES_MAX = 100_000_000, 200, 1_000_000
STDIN = "-"
TOO_LARGE = (
    "it needs more memory than is available; import it in parts, or with the columns game, game_id, occurred_at, "
    "player and place, because such a table is read row by row"
)
NOTED_NAMES_MAX = 20  # a note lists at most 20 names


class Progress(NamedTuple):
    """The progress of reading a file: the number of bytes read so far."""

    file: str
    bytes_read: int


class FileDigest(NamedTuple):
    """The SHA-256 of a file's bytes, and the sheet that was read if it is a spreadsheet."""

    file: str
    sha256: str
    sheet: str | None = None


class FileNote(NamedTuple):
    """A note about a file: a sentence for the user, the interpretation of its table, or options for the next file.

    A sentence about names that the user has explained also has the players by name (`answers`).
    """

    file: str
    sentence: str
    options: TableOptions | None = None
    table_read: TableRead | None = None
    answers: Mapping[str, str] = {}


class Item(NamedTuple):
    """An event of a file.

    line:        the line of the event; for a game of several rows the line of the first row
    event:       a line of JSON, an event that a reader composed, or a refusal
    source:      the text or the rows from which the event was read
    rows_of:     the game id, if a reader composed the event from rows of a table
    table:       whether the file is a table, or holds games in the format of another program
    is_numbered: whether the game's id consists of its day and a number
    accounts:    whether the players are online accounts, so that their names are not misspelt
    form:        where the table has the names of players
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


# an entry of a file, as `read_items` yields it
Entry = Item | Rejection | Progress | FileDigest | FileNote


def read_items(name: str, options: TableOptions) -> Iterator[Entry]:
    """Yield the entries of a file: items, notes, progress, and finally its digest.

    A file without events, or one that cannot be read to its end, yields a `Rejection` before the digest; a folder
    yields only a `Rejection`. Raises `OSError`.
    """
    if name != STDIN and Path(name).is_dir():
        yield _build_directory_refusal(name).to_rejection(name)
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
        message = f"{describe_source(name)} is cut off or damaged: {error}; copy or export it again"
        yield Rejection("bad-gzip", message, name)
    except Refused as problem:
        yield problem.to_rejection(name)
    except MemoryError:
        is_too_large = True  # reported below, after the memory is released
    else:
        if not count:
            yield Rejection("empty-file", f"{describe_source(name)} contains no events", name)
    if is_too_large:
        yield Rejection("file-too-large", TOO_LARGE, name)
    yield FileDigest(name, digest.hexdigest(), tables[-1].sheet if tables else None)


def read_lines(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, line) of a file, without line ends and blank lines. Raises `Refused`.

    For a truncated compressed file, the refusal comes after the readable lines; its cause is an `EOFError`.
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
        message = f"{describe_source(name)} is cut off or damaged: {error}; copy or export it again"
        raise Refused("bad-gzip", message) from error


def read_simple_table(name: str) -> SimpleTable | None:
    """Read a table that contains no games, such as aliases; return None if it has no header. Raises `Refused`."""
    try:
        with _open_content(name) as (file, *_):
            if file.peek(len(ZIP_MAGIC)).startswith(ZIP_MAGIC):  # type: ignore[attr-defined]
                raise Refused("is-a-spreadsheet", "it is a spreadsheet; save the table as CSV")
            return parse_simple_table(file, LINE_BYTES_MAX)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refused("bad-gzip", f"it is cut off or damaged: {error}; copy or export it again") from error


@contextmanager
def open_simple_table(name: str, known: Sequence[str]) -> Iterator[SimpleTable]:
    """Provide a table that contains no games and has only known columns, each at most once.

    The file and line are added to a `Refused` that the block raises. Raises `Refused` (empty-file, unknown-column, and
    the codes of `read_simple_table`).
    """
    try:
        if (table := read_simple_table(name)) is None:
            raise Refused("empty-file", f"it is empty; write a header with some of {', '.join(known)}")
        for column in table.header:
            if column not in known:
                problem = f"{quote(column)} is not one of {', '.join(known)}"
                raise Refused("unknown-column", f"{problem}{did_you_mean(column, known)}", table.line)
        if duplicates := [column for column in table.header if table.header.count(column) > 1]:
            message = f"the column {quote(duplicates[0])} occurs more than once; keep only one of them"
            raise Refused("unknown-column", message, table.line)
        yield table
    except Refused as problem:
        location = name if problem.line is None else f"line {problem.line} of {name}"
        raise Refused(problem.code, f"{location}: {problem.message}") from None


def _build_directory_refusal(name: str) -> Refused:
    return Refused("is-a-directory", f"{name} is a folder; name the files in it")


def describe_source(name: str) -> str:
    """Return the name of a file for a message."""
    return "standard input" if name == STDIN else name


def find_size(name: str) -> int | None:
    """Return the size of a file in bytes, or None for standard input and other files without a size."""
    return os.path.getsize(name) if name != STDIN and Path(name).is_file() else None


@contextmanager
def _open_content(
    name: str, on_bytes: Callable[[bytes], object] = lambda data: None
) -> Iterator[tuple[IO[bytes], Callable[[], int], bool]]:
    """Provide a file's content, a function that returns the number of bytes read, and whether the file is plain.

    A plain file can also be opened by its path: it is a regular file without compression. `on_bytes` is called with all
    bytes of a regular file, unless an error occurs, and with the bytes that are read from a pipe.
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
        if is_compressed and silent_bytes > SILENT_BYTES_MAX:
            problem = f"more than {SILENT_BYTES_MAX:,} bytes of {describe_source(name)} expand to nothing"
            raise Refused("bad-gzip", f"{problem}; compress the original file again")
        return data

    def read_expanded(size: int) -> bytes:
        nonlocal expanded_bytes, silent_bytes
        # `read1` returns all available bytes, so the content before the end of a truncated file is read
        data = zipped.read1(size)
        expanded_bytes, silent_bytes = expanded_bytes + len(data), 0
        if expanded_bytes > max(EXPANDED_BYTES_MAX, EXPANSION_MAX * bytes_read):
            problem = f"{describe_source(name)} expands to more than {EXPANSION_MAX} times its size"
            raise Refused("bad-gzip", f"{problem}; if it really contains events, decompress it before you import it")
        return data

    try:
        buffered = io.BufferedReader(PieceReader(read_raw), 1 << 16)
        is_compressed = buffered.peek(2)[:2] == b"\x1f\x8b"
        if is_compressed:
            zipped = gzip.GzipFile(fileobj=buffered)
            buffered = io.BufferedReader(PieceReader(read_expanded), 1 << 16)
        is_file = Path(name).is_file()
        yield buffered, lambda: bytes_read, not is_compressed and is_file
        # read the rest for `on_bytes`, because a reader may open the path itself or stop early; but not of a pipe,
        # because it may have no end
        while is_file and (data := raw.read(1 << 20)):
            on_bytes(data)
    finally:
        if name != STDIN:
            raw.close()


def _read_entries(
    name: str, file: IO[bytes], is_plain: bool, options: TableOptions
) -> Iterator[Item | FileNote | None]:
    """Yield the items and notes of a file, and None for the last line of an export.

    The None counts as an entry, so that an export without events is not reported as empty.
    """
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
            yield FileNote(name, "", table_read=entry)
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
            if mark_forfeit(event, options.forfeits):
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
        sentence = f"{_describe_pairs('your answers', answers)}; change them with --aliases"
        yield FileNote(name, sentence, answers=answers)


def _describe_pairs(title: str, pairs: Mapping[str, str]) -> str:
    """List the texts of a file with the names that they stand for: `games: Catan = catan, Schach = chess`."""
    texts = [f"{csv_item(typed)} = {csv_item(meant)}" for typed, meant in pairs.items()]
    more = f" and {len(texts) - NOTED_NAMES_MAX:,} more" if len(texts) > NOTED_NAMES_MAX else ""
    return f"{title}: {', '.join(texts[:NOTED_NAMES_MAX])}{more}"
