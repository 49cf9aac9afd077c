"""The readers of files: this program's own, and those that other packages register.

A reader takes an opened file and yields its events one at a time, each with its place. A package registers a reader as
an entry point in the group `ratings.readers`. The events of all readers pass the same checks afterwards.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.intake.json_lines import LINE_BYTES_MAX, json_events
from ratings_ledger.ledger.intake.readers.bg_stats import BG_STATS
from ratings_ledger.ledger.intake.readers.lichess import LICHESS
from ratings_ledger.ledger.intake.readers.pgn import PGN, PGN_OF_SITE
from ratings_ledger.ledger.intake.readers.reader import Opened, Read, ReadAs, Reader
from ratings_ledger.ledger.intake.readers.trf import TRF
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.csv_files import read_csv_table
from ratings_ledger.ledger.intake.tables.other_tables import HOW
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.intake.tables.sheet_markup import PROTECTED, SAVE
from ratings_ledger.ledger.own_files import name_file_in_errors
from ratings_ledger.ledger.rejections import Refused, quote

ENTRY_POINT_GROUP = "ratings.readers"
ARCHIVE, OLD_OFFICE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
SEARCHED_BYTES = 100_000_000
# other formats in which people keep tables, by their first bytes
OTHER_FORMATS = {b"<": "XML or HTML", b"%PDF": "a PDF"}
_HTML = re.compile(rb"<!doctype html|<html|<table|<meta|<head", re.IGNORECASE)
# how a message begins in a copied chat: [22.11.24, 20:05:12] Anna: ..., or 22/11/2024, 8:05 pm - Anna: ...
_CHAT = re.compile(
    rb"(?:\xe2\x80\x8e)?\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?\s+\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[ap]\.?m\.?)?(?:\]|\s-)"
    rb"\s[^:\n]{1,100}:\s",
    re.IGNORECASE,
)

# endings of files that are tables of text, even if a package's reader also claims them
TABLES = (".csv", ".tsv")
# exceptions of a package that end more than its reader
INTERRUPTIONS = (KeyboardInterrupt, GeneratorExit)
NEEDED = {"name": "a text", "is_of": "a function", "read": "a function", "tables": "True or False"}


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
    if broken and not name.lower().endswith(TABLES):
        raise Refused("bad-reader", f"{'; '.join(broken)}; mend or uninstall its package")
    return CSV, broken


def _load_reader(entry: EntryPoint) -> Reader:
    """Load a package's reader. Raises `Refused` (bad-reader)."""
    try:
        reader = entry.load()
    except BaseException as error:
        if isinstance(error, INTERRUPTIONS):
            raise
        reason = error if isinstance(error, ImportError) else _describe_error(error)
        message = f"the reader {entry.name} of {entry.value} cannot be loaded: {reason}"
        raise Refused("bad-reader", message) from None
    if not isinstance(reader, Reader):
        raise Refused("bad-reader", f"the entry point {entry.name} ({entry.value}) does not lead to a Reader")
    validity = {
        "name": isinstance(reader.name, str),
        "is_of": callable(reader.is_of),
        "read": callable(reader.read),
        "tables": isinstance(reader.tables, bool),
    }
    for member, is_valid in validity.items():
        if not is_valid:
            message = f"the reader {entry.name} of {entry.value} has the {member} {getattr(reader, member)!r}"
            raise Refused("bad-reader", f"{message}; {NEEDED[member]} is needed")
    return reader


@contextmanager
def _report_failures(name: str, *passed: type[Exception]) -> Iterator[None]:
    """Convert exceptions of a package's reader to `Refused` with its name, even attempts to end the program.

    Exceptions of the types `passed` pass through.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, (*INTERRUPTIONS, MemoryError, *passed)):
            raise
        raise Refused("bad-reader", f"the reader {name} failed: {_describe_error(error)}") from None


def _describe_error(error: BaseException) -> str:
    """Describe an error of a package."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _read_guarded(reader: Reader, opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Yield the entries of a package's reader. Raises `Refused` if it fails, or yields invalid entries."""
    with _report_failures(reader.name, LedgerError, OSError):
        for entry in reader.read(opened, options):
            if entry is not None and not isinstance(entry, str | TableRead | ReadAs | TableOptions):
                for misfit in _describe_misfits(entry):
                    raise Refused("bad-reader", f"the reader {reader.name} yielded {misfit}")
            yield entry


def _describe_misfits(entry: Any) -> Iterator[str]:
    """Yield the defects of an entry that is no event, each with the required form."""
    if not isinstance(entry, tuple | list) or len(entry) != 4:
        yield f"{quote(entry)}; a tuple of line, event, source and game id is needed"
        return
    line, event, source, rows_of = entry
    if not isinstance(line, int) or line < 1:
        yield f"the line {quote(line)}; a number from 1 is needed"
    place = f"in line {quote(line)}"
    if not isinstance(event, bytes | dict | Refused):
        yield f"the event {quote(event)} {place}; a dict, the bytes of a JSON object or a Refused is needed"
    if rows_of is not None and not isinstance(rows_of, str):
        yield f"the game id {quote(rows_of)} {place}; a text or None is needed"
    if source is not None and not isinstance(source, str) and not callable(source):
        try:
            json.dumps(source)
        except (TypeError, ValueError):
            yield f"the source {quote(source)} {place}; None, a text or what JSON can hold is needed"


def _looks_like_json(name: str, start: bytes) -> bool:
    by_content = _strip_byte_order_mark(start)[:1] in (b"{", b"[")
    return by_content or Path(name).suffix.lower() in (".jsonl", ".ndjson", ".json")


def _is_other_json(name: str, start: bytes) -> bool:
    """Tell whether a file is JSON with one value over several lines, or a list of objects, instead of JSON Lines."""
    text = _strip_byte_order_mark(start)
    first = text.partition(b"\n")[0].rstrip()
    return (b"\n" in text and first in (b"{", b"[")) or (
        first.startswith((b"[{", b"[ {")) and Path(name).suffix.lower() != ".jsonl"
    )


def _refuse_json(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Refuse JSON that is not JSON Lines, and name its form as far as its beginning shows it."""
    start = _strip_byte_order_mark(opened.content.read(4_096))
    if b'"pgn"' in start and b"chess.com" in start:
        actual_form = "games of Chess.com's API as JSON"
        remedy = "fetch the same address with /pgn at its end, and import that"
    elif start.startswith(b"["):
        actual_form, remedy = (
            "a list in JSON, not JSON Lines",
            "write each event in a line of its own: jq -c '.[]' FILE",
        )
    else:
        actual_form, remedy = (
            "one JSON object over several lines, not JSON Lines",
            "write each event in one line: jq -c . FILE",
        )
    raise Refused("bad-json", f"it is {actual_form}; {remedy}")
    yield


def _read_sheet(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Read a spreadsheet; its reader is loaded only here, because it needs more modules."""
    from tempfile import NamedTemporaryFile

    from ratings_ledger.ledger.intake.tables.sheets import read_spreadsheet

    if opened.path is not None:
        yield from read_spreadsheet(opened.path, options)
        return
    with NamedTemporaryFile() as file:
        # errors about the content must name the original file, not this copy
        while piece := opened.content.read(1 << 20):
            with name_file_in_errors(file.name):
                file.write(piece)
        with name_file_in_errors(file.name):
            file.flush()
        yield from read_spreadsheet(file.name, options)


def _refuse_old(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Refuse files of old Office programs; new files with a password have the same container."""
    if ENCRYPTED in opened.content.read(SEARCHED_BYTES):
        raise Refused("bad-spreadsheet", PROTECTED)
    raise Refused("is-a-spreadsheet", "it has the old format of Excel; save it as .xlsx")
    yield


def _strip_byte_order_mark(start: bytes) -> bytes:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()


def _refuse_other(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Refuse files that show a table to people, such as PDF."""
    start = _strip_byte_order_mark(opened.content.read(4_096))
    description = next(description for begin, description in OTHER_FORMATS.items() if start.startswith(begin))
    if _HTML.search(start):
        description = "an HTML page, which sites and programs save under names such as .xls and .csv"
    raise Refused("is-a-spreadsheet", f"it is {description}; {SAVE}")
    yield


def _refuse_chat(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Refuse a copied chat."""
    raise Refused("missing-column", f"it is a chat, which has no columns; {HOW}")
    yield


CHAT = Reader("chat", lambda name, start: _CHAT.match(_strip_byte_order_mark(start)) is not None, _refuse_chat, True)
OTHER_JSON = Reader("other JSON", _is_other_json, _refuse_json, tables=False)
JSON = Reader("json", _looks_like_json, lambda opened, options: json_events(opened.content), tables=False)
SHEETS = Reader("spreadsheet", lambda name, start: start.startswith(ARCHIVE), _read_sheet, tables=True)
OLD = Reader("old spreadsheet", lambda name, start: start.startswith(OLD_OFFICE), _refuse_old, tables=True)
OTHER = Reader(
    "other", lambda name, start: _strip_byte_order_mark(start).startswith((*OTHER_FORMATS,)), _refuse_other, tables=True
)
READERS = (SHEETS, OLD, PGN_OF_SITE, PGN, TRF, BG_STATS, LICHESS, CHAT, OTHER_JSON, JSON, OTHER)
# the fallback: any other file may be a table
CSV = Reader(
    "csv",
    lambda name, start: True,
    lambda opened, options: read_csv_table(opened.content, options, LINE_BYTES_MAX),
    tables=True,
)
