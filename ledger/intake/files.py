"""Files of events: opened compressed or not, recognised by content, read one event at a time.

An item is one event as written, or what is wrong with it; memory does not grow with the file.
"""

import gzip
import hashlib
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from ratings_ledger.ledger.intake.forfeits import describe_forfeits, settle_forfeit
from ratings_ledger.ledger.intake.json_lines import LINE_BYTES_MAX, numbered_lines
from ratings_ledger.ledger.intake.readers import ARCHIVE, find_reader
from ratings_ledger.ledger.intake.readers.reader import Opened, ReadAs
from ratings_ledger.ledger.intake.tables.aliases import under_aliases
from ratings_ledger.ledger.intake.tables.columns import CsvColumns, TableOptions
from ratings_ledger.ledger.intake.tables.csv_files import Pieces, SimpleTable, simple_table
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.intake.tables.table_games import under_slug
from ratings_ledger.ledger.rejections import Refused, Rejection, csv_item
from ratings_ledger.ledger.validation.new_names import TableForm

# how far a compressed file may expand: to this many bytes, or this many times its size; events compress to a tenth,
# rarely to a fiftieth; and how much of it may expand to nothing
EXPANDED_BYTES, EXPANDED_TIMES, SILENT_BYTES = 100_000_000, 200, 1_000_000
STDIN = "-"
TOO_LARGE = (
    "it needs more memory than there is; import it in parts, or as a table with the columns game_id, occurred_at, "
    "player and place, which is read row by row"
)
TOLD_MAX = 20


class Progress(NamedTuple):
    """How many bytes of a file have been read."""

    file: str
    read: int


class FileDigest(NamedTuple):
    """The SHA-256 of a file's bytes, once it has been read, and of a spreadsheet the sheet that was read."""

    file: str
    sha256: str
    sheet: str | None = None


class FileNote(NamedTuple):
    """A sentence about a file: what it was taken for, what was left out. Or how a table was read, or the options to
    read the next one alike.
    """

    file: str
    told: str
    options: TableOptions | None = None
    read: TableRead | None = None


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
    is_numbered: bool = False  # whether the game's id is its day and what the table counted
    accounts: bool = False  # whether its players are accounts, whose names are never slips of the pen
    form: TableForm = ""  # what of a table a player's name stands in


# what is read of a file, in its order
Entry = Item | Rejection | Progress | FileDigest | FileNote


def read_items(name: str, options: TableOptions) -> Iterator[Entry]:
    """Yield the events of a file, or a `Rejection` about the file itself; sentences about it; how far it has been read;
    and in the end the hash of what was read.
    """
    if name != STDIN and Path(name).is_dir():
        yield _is_a_directory(name).rejection(name)
        return
    count, digest, found = 0, hashlib.sha256(), list[CsvColumns]()
    is_too_large = False

    def note(columns: CsvColumns) -> None:
        found.append(columns)
        if options.found is not None:
            options.found(columns)

    try:
        with _opened(name, digest.update) as (file, told, is_plain):
            for item in _items(name, file, is_plain, options._replace(found=note)):
                yield Progress(name, told()) if item is None else item
                if isinstance(item, FileNote):
                    continue
                count += 1
                if count % 256 == 0:
                    yield Progress(name, told())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield Rejection("bad-gzip", f"{name} is cut off or damaged: {error}", name)
    except Refused as problem:
        yield problem.rejection(name)
    except MemoryError:
        is_too_large = True  # told when what was read is no longer held
    else:
        if not count:
            yield Rejection("empty-file", f"{name} holds no event", name)
    if is_too_large:
        yield Rejection("file-too-large", TOO_LARGE, name)
    yield FileDigest(name, digest.hexdigest(), found[-1].sheet if found else None)


def read_lines(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a file without their line ends, leaving out blank ones. Raises `Refused`.

    For a compressed file that ends too early it is raised from an `EOFError`, after what could be read.
    """
    if Path(name).is_dir():
        raise _is_a_directory(name)
    try:
        with _opened(name) as (file, *_):
            for number, line in numbered_lines(file):
                if isinstance(line, Refused):
                    raise line
                yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refused("bad-gzip", f"{name} is cut off or damaged: {error}") from error


def read_simple_table(name: str) -> SimpleTable | None:
    """Return the table of anything but games in a file, compressed or not; None for one without a header. Raises
    `Refused`.
    """
    try:
        with _opened(name) as (file, *_):
            if file.peek(len(ARCHIVE)).startswith(ARCHIVE):  # type: ignore[attr-defined]
                raise Refused("is-a-spreadsheet", "it is a spreadsheet; save the table in it as CSV")
            return simple_table(file, LINE_BYTES_MAX)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Refused("bad-gzip", f"it is cut off or damaged: {error}") from error


def _is_a_directory(name: str) -> Refused:
    return Refused("is-a-directory", f"{name} is a folder; name the files in it")


def size(name: str) -> int | None:
    """Return the size of a file in bytes for a progress bar, or None if it has none."""
    return os.path.getsize(name) if name != STDIN and Path(name).is_file() else None


@contextmanager
def _opened(
    name: str, taken: Callable[[bytes], object] = lambda got: None
) -> Iterator[tuple[IO[bytes], Callable[[], int], bool]]:
    """Provide a file's content, a function that says how far the file has been read, and whether the content is the
    file.

    `taken` gets the bytes of the file, all of them if it is read without a fault.
    """
    raw: IO[bytes] = sys.stdin.buffer if name == STDIN else open(name, "rb")  # noqa: SIM115
    read = silent = given = 0
    compressed = False

    def counted(size: int) -> bytes:
        nonlocal read, silent
        got = raw.read(size)
        taken(got)
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
        buffered = io.BufferedReader(Pieces(counted), 1 << 16)
        compressed = buffered.peek(2)[:2] == b"\x1f\x8b"
        if compressed:
            zipped = gzip.GzipFile(fileobj=buffered)
            buffered = io.BufferedReader(Pieces(expanded), 1 << 16)
        is_file = Path(name).is_file()
        yield buffered, lambda: read, not compressed and is_file
        # what is read by its path, or ends before the file does; a pipe may have no end
        while is_file and (rest := raw.read(1 << 20)):
            taken(rest)
    finally:
        if name != STDIN:
            raw.close()


def _items(name: str, file: IO[bytes], is_plain: bool, options: TableOptions) -> Iterator[Item | FileNote | None]:
    """Yield the items; None for the last line of an export, which is not an event but means that there may be none."""
    start = file.peek(4_096)[:4_096]  # type: ignore[attr-defined]
    reader, broken = find_reader(name.removesuffix(".gz"), start)
    yield from (FileNote(name, f"{told}; it is passed over") for told in broken)
    aliases, games, is_numbered, forfeits = dict[str, str](), dict[str, str](), False, 0
    form: TableForm = ""
    for found in reader.read(Opened(name, file, name if is_plain else None), options):
        if isinstance(found, str):
            yield FileNote(name, found)
        elif isinstance(found, TableRead):
            is_numbered, form = found.is_numbered and not found.unsaid, LAYOUTS[found.layout].form
            yield FileNote(name, "", read=found)
            yield from (FileNote(name, told) for told in found.told)
        elif isinstance(found, ReadAs):
            is_numbered = found.is_numbered
            yield FileNote(name, found.told)
        elif isinstance(found, TableOptions):
            yield FileNote(name, "", found)
        elif found is None:
            yield None
        else:
            line, event, source, rows_of = found
            forfeits += settle_forfeit(event, options.forfeits)
            if reader.tables:
                event = under_slug(event, games)
                if options.aliases:
                    event = under_aliases(event, options.aliases, aliases)
                    if isinstance(event, Refused):
                        event.names = tuple(options.aliases.get(player, player) for player in event.names)
            yield Item(name, line, event, source, rows_of, reader.tables, is_numbered, reader.accounts, form)
    if forfeits:
        yield FileNote(name, describe_forfeits(forfeits, options.forfeits))
    for what, used in (("games", games), ("aliases", aliases)):
        if used:
            told = [f"{csv_item(written)} = {csv_item(meant)}" for written, meant in used.items()]
            more = f" and {len(told) - TOLD_MAX:,} more" if len(told) > TOLD_MAX else ""
            yield FileNote(name, f"{what}: {', '.join(told[:TOLD_MAX])}{more}")
