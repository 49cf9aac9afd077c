"""The readers of files by what they recognise: this program's own, and those that other packages register.

A reader takes an opened file and yields what is in it, one event at a time, with where it comes from. A package
registers one as an entry point in the group `ratings.readers`. What a game is, and whether it can be, is checked behind
all of them alike.
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
from ratings_ledger.ledger.intake.tables.csv_files import table_events
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.intake.tables.sheets import PROTECTED, SAVE
from ratings_ledger.ledger.own_files import name_file_in_errors
from ratings_ledger.ledger.rejections import Refused, quote

ENTRY_POINT_GROUP = "ratings.readers"
ARCHIVE, OLD_OFFICE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
LOOKED_BYTES = 100_000_000
# what is neither, though people have tables in it, by how it begins
OTHERS = {b"<": "XML or HTML", b"%PDF": "a PDF"}
_HTML = re.compile(rb"<!doctype html|<html|<table|<meta|<head", re.IGNORECASE)

# names of files that are tables of text, whoever else may read such files
TABLES = (".csv", ".tsv")
# what a package may raise to end more than its reader
INTERRUPTIONS = (KeyboardInterrupt, GeneratorExit)
NEEDED = {"name": "a text", "is_of": "a function", "read": "a function", "tables": "True or False"}


def reader_of(name: str, start: bytes) -> tuple[Reader, list[str]]:
    """Return the reader for a file of that name that begins so, and what is wrong with those of packages that were
    asked.

    Raises `Refused` (bad-reader) if one of these cannot be asked, so that the file may be its, unless another
    recognises it, or its name says that it is a table.
    """
    broken = list[str]()
    for reader in READERS:
        if reader.is_of(name, start):
            return reader, broken
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            reader = _loaded(entry)
            with _told_of(reader.name):
                if reader.is_of(name, start):
                    return reader._replace(read=partial(_contained, reader)), broken
        except Refused as problem:
            broken.append(problem.message)
    if broken and not name.lower().endswith(TABLES):
        raise Refused("bad-reader", f"{'; '.join(broken)}; mend or uninstall its package")
    return CSV, broken


def _loaded(entry: EntryPoint) -> Reader:
    """Return a package's reader. Raises `Refused` (bad-reader)."""
    try:
        found = entry.load()
    except BaseException as error:
        if isinstance(error, INTERRUPTIONS):
            raise
        why = error if isinstance(error, ImportError) else _in_words(error)
        told = f"the reader {entry.name} of {entry.value} cannot be loaded: {why}"
        raise Refused("bad-reader", told) from None
    if not isinstance(found, Reader):
        raise Refused("bad-reader", f"the entry point {entry.name} ({entry.value}) does not lead to a Reader")
    for member, fits in (("name", isinstance(found.name, str)), ("is_of", callable(found.is_of)),
                         ("read", callable(found.read)), ("tables", isinstance(found.tables, bool))):  # fmt: skip
        if not fits:
            told = f"the reader {entry.name} of {entry.value} has the {member} {getattr(found, member)!r}"
            raise Refused("bad-reader", f"{told}; {NEEDED[member]} is needed")
    return found


@contextmanager
def _told_of(name: str, *passed: type[Exception]) -> Iterator[None]:
    """Makes whatever a package's reader raises a `Refused` with its name, also where it tries to end the program.

    What is `passed` stays as it is.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, (*INTERRUPTIONS, MemoryError, *passed)):
            raise
        raise Refused("bad-reader", f"the reader {name} failed: {_in_words(error)}") from None


def _in_words(error: BaseException) -> str:
    """Return an error of a package, in words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _contained(reader: Reader, opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Yield what a package's reader yields. Raises `Refused` also where it fails, or yields other things."""
    with _told_of(reader.name, LedgerError, OSError):
        for found in reader.read(opened, options):
            if found is not None and not isinstance(found, str | TableRead | ReadAs | TableOptions):
                for wrong in _misfits(found):
                    raise Refused("bad-reader", f"the reader {reader.name} yielded {wrong}")
            yield found


def _misfits(found: Any) -> Iterator[str]:
    """Yield what keeps something from being an event as readers yield them, and what would be right."""
    if not isinstance(found, tuple | list) or len(found) != 4:
        yield f"{quote(found)}; a tuple of line, event, source and game id is needed"
        return
    line, event, source, rows_of = found
    if not isinstance(line, int) or line < 1:
        yield f"the line {quote(line)}; a number from 1 is needed"
    where = f"in line {quote(line)}"
    if not isinstance(event, bytes | dict | Refused):
        yield f"the event {quote(event)} {where}; a dict, the bytes of a JSON object or a Refused is needed"
    if rows_of is not None and not isinstance(rows_of, str):
        yield f"the game id {quote(rows_of)} {where}; a text or None is needed"
    if source is not None and not isinstance(source, str) and not callable(source):
        try:
            json.dumps(source)
        except (TypeError, ValueError):
            yield f"the source {quote(source)} {where}; None, a text or what JSON can hold is needed"


def _looks_like_json(name: str, start: bytes) -> bool:
    by_content = _without_mark(start)[:1] in (b"{", b"[")
    return by_content or Path(name).suffix in (".jsonl", ".ndjson", ".json")


def _is_other_json(name: str, start: bytes) -> bool:
    """Tell whether a file is JSON, but with one value over several lines, or a list of objects."""
    text = _without_mark(start)
    first = text.partition(b"\n")[0].rstrip()
    return (b"\n" in text and first in (b"{", b"[")) or (
        first.startswith((b"[{", b"[ {")) and Path(name).suffix != ".jsonl"
    )


def _refuse_json(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Refuse JSON that is not JSON Lines, with what it is, as far as its beginning says."""
    start = _without_mark(opened.content.read(4_096))
    if b'"pgn"' in start and b"chess.com" in start:
        what = "games of Chess.com's API as JSON"
        right = "fetch the same address with /pgn at its end, and import that"
    elif start.startswith(b"["):
        what, right = "a list in JSON, not JSON Lines", "write each event in a line of its own: jq -c '.[]' FILE"
    else:
        what, right = "one JSON object over several lines, not JSON Lines", "write each event in one line: jq -c . FILE"
    raise Refused("bad-json", f"it is {what}; {right}")
    yield


def _read_sheet(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Those of spreadsheets, whose reader needs more than others and is loaded when there is one."""
    from tempfile import NamedTemporaryFile

    from ratings_ledger.ledger.intake.tables.sheets import sheet_events

    if opened.path is not None:
        yield from sheet_events(opened.path, options)
        return
    with NamedTemporaryFile() as file:
        # what is wrong with the content is said of the file that has it, not of this one
        while piece := opened.content.read(1 << 20):
            with name_file_in_errors(file.name):
                file.write(piece)
        with name_file_in_errors(file.name):
            file.flush()
        yield from sheet_events(file.name, options)


def _refuse_old(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Files of old Office programs; those with a password look the same from outside."""
    if ENCRYPTED in opened.content.read(LOOKED_BYTES):
        raise Refused("bad-spreadsheet", PROTECTED)
    raise Refused("is-a-spreadsheet", "it has the old format of Excel; save it as .xlsx")
    yield


def _without_mark(start: bytes) -> bytes:
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()


def _refuse_other(opened: Opened, options: TableOptions) -> Iterator[Read]:
    """Files that hold a table for people to look at."""
    start = _without_mark(opened.content.read(4_096))
    told = next(told for begin, told in OTHERS.items() if start.startswith(begin))
    if _HTML.search(start):
        told = "an HTML page, which sites and programs save under names such as .xls and .csv"
    raise Refused("is-a-spreadsheet", f"it is {told}; {SAVE}")
    yield


OTHER_JSON = Reader("other JSON", _is_other_json, _refuse_json, tables=False)
JSON = Reader("json", _looks_like_json, lambda opened, options: json_events(opened.content), tables=False)
SHEETS = Reader("spreadsheet", lambda name, start: start.startswith(ARCHIVE), _read_sheet, tables=True)
OLD = Reader("old spreadsheet", lambda name, start: start.startswith(OLD_OFFICE), _refuse_old, tables=True)
OTHER = Reader("other", lambda name, start: _without_mark(start).startswith((*OTHERS,)), _refuse_other, tables=True)
READERS = (SHEETS, OLD, PGN_OF_SITE, PGN, TRF, BG_STATS, LICHESS, OTHER_JSON, JSON, OTHER)
# whatever else it is, it may be a table
CSV = Reader(
    "csv", lambda name, start: True, lambda opened, options: table_events(opened.content, options, LINE_BYTES_MAX),
    tables=True,
)  # fmt: skip
