"""Find the reader of a file: one of this program's own, or one that another package registers.

A reader takes an open file and yields its events one at a time, each with its line. A package registers a reader as an
entry point in the group `ratings.readers`. The events of all readers pass the same checks afterwards.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.intake.json_lines import LINE_BYTES_MAX, read_json_lines
from ratings_ledger.ledger.intake.readers.bg_stats import BG_STATS
from ratings_ledger.ledger.intake.readers.lichess import LICHESS
from ratings_ledger.ledger.intake.readers.pgn import PGN, PGN_OF_SITE
from ratings_ledger.ledger.intake.readers.reader import Opened, Read, ReadAs, Reader
from ratings_ledger.ledger.intake.readers.trf import TRF
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.csv_files import read_csv_table
from ratings_ledger.ledger.intake.tables.other_tables import TABLE_ADVICE
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.intake.tables.sheet_markup import PROTECTED_MESSAGE, SAVE_REMEDY
from ratings_ledger.ledger.own_files import name_file_in_errors
from ratings_ledger.ledger.rejections import Refused, quote

ENTRY_POINT_GROUP = "ratings.readers"
ZIP_MAGIC, OLE_MAGIC = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
# the name of the part with the content of an encrypted file
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
ENCRYPTION_SCAN_BYTES_MAX = 100_000_000
# other formats of tables, by their first bytes
OTHER_FORMATS = {b"<": "XML or HTML", b"%PDF": "a PDF"}
_HTML = re.compile(rb"<!doctype html|<html|<table|<meta|<head", re.IGNORECASE)
# the beginning of a message in a copied chat: [22.11.24, 20:05:12] Anna: ..., or 22/11/2024, 8:05 pm - Anna: ...
_CHAT = re.compile(
    rb"(?:\xe2\x80\x8e)?\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?\s+\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[ap]\.?m\.?)?(?:\]|\s-)"
    rb"\s[^:\n]{1,100}:\s",
    re.IGNORECASE,
)

# files with these suffixes are read as tables even if the reader of a package is broken
TABLE_SUFFIXES = (".csv", ".tsv")
# exceptions by which the program stops, or stops reading; they are not errors of a reader
INTERRUPTIONS = (KeyboardInterrupt, GeneratorExit)
# by member of a package's reader: a test of its value, and the required type
_MEMBER_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda value: isinstance(value, str), "a string"),
    "is_of": (callable, "a function"),
    "read": (callable, "a function"),
    "tables": (lambda value: isinstance(value, bool), "a bool"),
}


def find_reader(name: str, start: bytes) -> tuple[Reader, list[str]]:
    """Find the reader for a file by its name and first bytes; also return messages about broken readers of packages.

    Raises `Refused` (bad-reader) if a broken reader might be the right one: no other reader recognises the file, and
    its name is not that of a table.
    """
    broken = list[str]()
    for reader in READERS:
        if reader.is_of(name, start):
            return reader, broken
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            reader = _load_reader(entry)
            with _report_failures(reader.name):
                if reader.is_of(name, start):
                    return reader._replace(read=partial(_read_guarded, reader)), broken
        except Refused as problem:
            broken.append(problem.message)
    if broken and not name.lower().endswith(TABLE_SUFFIXES):
        raise Refused("bad-reader", f"{'; '.join(broken)}; fix or uninstall the package that provides it")
    return CSV, broken


def _load_reader(entry: EntryPoint) -> Reader:
    """Load a package's reader. Raises `Refused` (bad-reader)."""
    try:
        reader = entry.load()
    except BaseException as error:
        if isinstance(error, INTERRUPTIONS):
            raise
        reason = error if isinstance(error, ImportError) else _describe_error(error)
        message = f"the reader {entry.name} ({entry.value}) cannot be loaded: {reason}"
        raise Refused("bad-reader", message) from None
    if not isinstance(reader, Reader):
        raise Refused("bad-reader", f"the reader {entry.name} ({entry.value}) is not an instance of Reader")
    for member, (is_valid, required) in _MEMBER_CHECKS.items():
        if not is_valid(value := getattr(reader, member)):
            message = f"the reader {entry.name} ({entry.value}): `{member}` is {value!r} but must be {required}"
            raise Refused("bad-reader", message)
    return reader


@contextmanager
def _report_failures(name: str) -> Iterator[None]:
    """Convert exceptions of a package's reader, including `SystemExit`, to `Refused` with the reader's name."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, (*INTERRUPTIONS, MemoryError)):
            raise
        raise Refused("bad-reader", f"the reader {name} failed: {_describe_error(error)}") from None


def _describe_error(error: BaseException) -> str:
    """Return the type and the message of an exception."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _read_guarded(reader: Reader, opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Yield the entries of a package's reader. Raises `Refused` if it has a bug, or yields invalid entries."""
    last_line = 0
    try:
        for entry in reader.read(opened, options):
            if entry is not None and not isinstance(entry, str | TableRead | ReadAs | TableOptions):
                if (defect := next(_list_defects(entry), None)) is not None:
                    raise Refused("bad-reader", f"the reader {reader.name} yielded {defect}")
                last_line = entry[0]
            yield entry
    except BaseException as error:
        if isinstance(error, (*INTERRUPTIONS, MemoryError, LedgerError, OSError)):
            raise
        after = f" after line {last_line}" if last_line else ""
        message = f"the reader {reader.name} failed{after}: {_describe_error(error)}"
        raise Refused("bad-reader", f"{message}; report it to the author of its package") from None


def _list_defects(entry: Any) -> Iterator[str]:
    """Yield a description of each defect of an entry, with the required form; nothing for a valid entry."""
    if not isinstance(entry, tuple | list) or len(entry) != 4:
        yield f"{quote(entry)}; it must be a tuple of line, event, source and game id"
        return
    line, event, source, game_id = entry
    if not isinstance(line, int) or line < 1:
        yield f"the line {quote(line)}; it must be a whole number from 1"
    location = f"in line {quote(line)}"
    if not isinstance(event, bytes | dict | Refused):
        yield f"the event {quote(event)} {location}; it must be a dict, the bytes of a JSON object or a Refused"
    if game_id is not None and not isinstance(game_id, str):
        yield f"the game id {quote(game_id)} {location}; it must be a string or None"
    if source is not None and not isinstance(source, str) and not callable(source):
        try:
            json.dumps(source)
        except (TypeError, ValueError):
            yield f"the source {quote(source)} {location}; it must be None, a string or JSON-serialisable"


def _looks_like_json(name: str, start: bytes) -> bool:
    has_json_start = _strip_bom_and_blanks(start)[:1] in (b"{", b"[")
    return has_json_start or Path(name).suffix.lower() in (".jsonl", ".ndjson", ".json")


def _is_not_json_lines(name: str, start: bytes) -> bool:
    """Tell whether a file is pretty-printed JSON or a JSON array instead of JSON Lines."""
    text = _strip_bom_and_blanks(start)
    first = text.partition(b"\n")[0].rstrip()
    return (b"\n" in text and first in (b"{", b"[")) or (
        first.startswith((b"[{", b"[ {")) and Path(name).suffix.lower() != ".jsonl"
    )


def _refuse_json(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Refuse JSON that is not JSON Lines; the message says which kind of JSON it is according to its first bytes."""
    file = shlex.quote(opened.path) if opened.path else "FILE"
    target = f"{file.removesuffix('.json')}.jsonl" if file.isprintable() and "'" not in file else "FILE.jsonl"
    start = _strip_bom_and_blanks(opened.content.read(4_096))
    if b'"pgn"' in start and b"chess.com" in start:
        actual_form = "this is JSON from the Chess.com API"
        remedy = "fetch the same address with /pgn at its end, and import that"
    elif start.startswith(b"["):
        actual_form = "this is a JSON array, not JSON Lines"
        remedy = f"write each event on a line of its own: jq -c '.[]' {file} > {target}"
    else:
        actual_form = "this is one JSON object over several lines, not JSON Lines"
        remedy = f"write each event on one line: jq -c . {file} > {target}"
    raise Refused("bad-json", f"{actual_form}; {remedy}")
    yield  # makes this a generator, as `Reader.read` requires


def _read_sheet(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Read a spreadsheet. Its reader is imported only here, because it needs more modules."""
    from tempfile import NamedTemporaryFile

    from ratings_ledger.ledger.intake.tables.sheets import read_spreadsheet

    if opened.path is not None:
        yield from read_spreadsheet(opened.path, options)
        return
    with NamedTemporaryFile() as file:
        # only errors while writing name this copy; errors while reading concern the original file
        while piece := opened.content.read(1 << 20):
            with name_file_in_errors(file.name):
                file.write(piece)
        with name_file_in_errors(file.name):
            file.flush()
        yield from read_spreadsheet(file.name, options)


def _refuse_legacy_office(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Refuse files of old Office programs, and encrypted files of new ones; both kinds have the same container."""
    if ENCRYPTED in opened.content.read(ENCRYPTION_SCAN_BYTES_MAX):
        raise Refused("bad-spreadsheet", PROTECTED_MESSAGE)
    raise Refused("is-a-spreadsheet", "it has the format of old Office programs; save its table as .xlsx")
    yield  # makes this a generator, as `Reader.read` requires


def _strip_bom_and_blanks(start: bytes) -> bytes:
    """Remove a byte order mark, and then leading white space."""
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()


def _refuse_display_format(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Refuse formats that only display tables, such as HTML and PDF."""
    start = _strip_bom_and_blanks(opened.content.read(4_096))
    description = next(description for begin, description in OTHER_FORMATS.items() if start.startswith(begin))
    if _HTML.search(start):
        description = "an HTML page, which sites and programs save under names such as .xls and .csv"
    raise Refused("is-a-spreadsheet", f"it is {description}; {SAVE_REMEDY}")
    yield  # makes this a generator, as `Reader.read` requires


def _refuse_chat(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Refuse a copied chat."""
    raise Refused("missing-column", f"it is a chat, which has no columns; {TABLE_ADVICE}")
    yield  # makes this a generator, as `Reader.read` requires


CHAT = Reader(
    "chat", lambda name, start: _CHAT.match(_strip_bom_and_blanks(start)) is not None, _refuse_chat, tables=True
)
NOT_JSON_LINES = Reader("other JSON", _is_not_json_lines, _refuse_json, tables=False)
JSON = Reader("json", _looks_like_json, lambda opened, options: read_json_lines(opened.content), tables=False)
SHEETS = Reader("spreadsheet", lambda name, start: start.startswith(ZIP_MAGIC), _read_sheet, tables=True)
LEGACY_OFFICE = Reader(
    "old spreadsheet", lambda name, start: start.startswith(OLE_MAGIC), _refuse_legacy_office, tables=True
)
UNSUPPORTED = Reader(
    "other",
    lambda name, start: _strip_bom_and_blanks(start).startswith((*OTHER_FORMATS,)),
    _refuse_display_format,
    tables=True,
)
READERS = (SHEETS, LEGACY_OFFICE, PGN_OF_SITE, PGN, TRF, BG_STATS, LICHESS, CHAT, NOT_JSON_LINES, JSON, UNSUPPORTED)
# the fallback: any other file may be a table
CSV = Reader(
    "csv",
    lambda name, start: True,
    lambda opened, options: read_csv_table(opened.content, options, LINE_BYTES_MAX),
    tables=True,
)
