"""Exports of events in files: the records, one per line, and a last line with the head after the last record.

    {"by":"mira","data":{...},"id":"game:g-1", ... ,"type":"game.recorded"}
    {"end":93,"head":"93:3f513f9a..."}

In an increment, the last line has `since`, the head of the export that it continues. Standard output gets
only the records.
"""

import gzip
import re
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple, cast

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.records import ZERO, chain_hash, leaf_hash
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import chain_hash_at, read_records

_END = re.compile(rb'\{"end":(\d{1,16}),"head":"\1:([0-9a-f]{64})"(?:,"since":"(\d{1,16}):([0-9a-f]{64})")?\}')
_PLACE = re.compile(r"(\d{1,16}):([0-9a-fA-F]{64})", re.ASCII)
_POSITION = re.compile(rb'"position":(\d{1,16}),"recorded_at":"')
# how many bytes of an increment's leaf hashes stay in memory; more go to a temporary file
_HELD_BYTES = 1 << 23


class Place(NamedTuple):
    """A position and its chain hash, which together identify one exact history."""

    position: int
    chain_hash: bytes

    def __str__(self) -> str:
        return f"{self.position}:{self.chain_hash.hex()}"


BEGINNING = Place(0, ZERO)


class ExportEnd(NamedTuple):
    """The content of the last line of an export: the head, and the head that the first line follows."""

    head: Place
    since: Place


def parse_place(text: str) -> Place | None:
    """Parse a place written as POSITION:CHAINHASH; None if the text has another form."""
    match = _PLACE.fullmatch(text)
    return None if match is None else Place(int(match.group(1)), bytes.fromhex(match.group(2)))


def parse_end(line: bytes) -> ExportEnd | None:
    """Parse the last line of an export; None for any other line."""
    match = _END.fullmatch(line) if line.startswith(b'{"end":') else None
    if match is None:
        return None
    end, head, since, before = match.groups()
    return ExportEnd(_place_of(end, head), BEGINNING if since is None else _place_of(since, before))


def _place_of(position: bytes, chain: bytes) -> Place:
    return Place(int(position), bytes.fromhex(chain.decode()))


def place_at(connection: Connection, position: int) -> Place:
    """Return a position of the log with its chain hash. Raises `StoreDamaged` if there is none."""
    stored_hash = chain_hash_at(connection, position)
    if stored_hash is None:
        raise _damage_error(position, "is missing")
    return Place(position, stored_hash)


def export_lines(connection: Connection, since: int, until: int) -> Iterator[bytes]:
    """Yield the lines of an export in a file: the records after `since` up to `until`, and the last line.

    Raises `StoreDamaged`, before the last line, unless the records match the hashes of the log.
    """
    begin, head = place_at(connection, since), place_at(connection, until)
    position, chain = begin
    for page in read_records(connection, since, until):
        lines = []
        for record_position, record in page:
            position += 1
            if record_position != position or not isinstance(record, str):
                raise _damage_error(position, "is missing" if record_position != position else "is not text")
            chain = chain_hash(chain, leaf_hash(record))
            lines.append(f"{record}\n")
        yield "".join(lines).encode()
    if (position, chain) != head:
        raise _damage_error(until, "has a chain hash that differs from that of the records up to it")
    # the last line of a full export has no `since`
    since_member = "" if begin == BEGINNING else f',"since":"{begin}"'
    yield f'{{"end":{head.position},"head":"{head}"{since_member}}}\n'.encode()


def open_compressed(file: IO[bytes]) -> IO[bytes]:
    """Open a compressor that writes to a file, without name and time: the same events give the same bytes."""
    return cast(IO[bytes], gzip.GzipFile("", "wb", 6, file, mtime=0))


def _damage_error(position: int, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"position {position} {what}, so the export would be incomplete; nothing was written; run: ratings verify; to "
        "save the readable events, export to standard output"
    )


def mark_last_lines(lines: Iterator[tuple[int, bytes | Refused]]) -> Iterator[tuple[int, bytes | Refused | None]]:
    """Yield the lines of a file of events; replace the last line of each export by None if it names the right head.

    For a last line that names another head, yield a refusal. Another export may begin after it.
    """
    exported = _ExportLines()
    for number, line in lines:
        end = None if isinstance(line, Refused) else parse_end(line)
        if end is None:
            exported.add(b"" if isinstance(line, Refused) else line)
            yield number, line
            continue
        actual_head, exported = exported.head(end.since), _ExportLines()
        if actual_head == end.head:
            yield number, None
        elif actual_head is None:
            yield number, Refused("end-mismatch", f"the lines before it are not an export that ends at {end.head}")
        else:
            message = (
                f"this last line of an export names {end.head}, but the lines before it end at {actual_head}: lines "
                "are missing, changed or added; if that is intended, remove the last line"
            )
            yield number, Refused("end-mismatch", message)


class _ExportLines:
    """The lines of one export so far: their number, and the data for their chain hash."""

    def __init__(self) -> None:
        self._count = 0
        self._chain: bytes | None = None  # of a full export, whose chain can be computed while it is read
        self._leaves: SpooledTemporaryFile[bytes] | None = None

    def add(self, line: bytes) -> None:
        """Add a line. The lines of a file that is not an export cost nothing."""
        self._count += 1
        if self._count == 1:
            position = _POSITION.search(line) if line.startswith(b'{"by":') else None
            if position is not None and int(position.group(1)) == 1:
                self._chain = ZERO
            elif position is not None:
                self._leaves = SpooledTemporaryFile(_HELD_BYTES)  # noqa: SIM115
        if self._chain is not None:
            self._chain = chain_hash(self._chain, leaf_hash(line))
        elif self._leaves is not None:
            self._leaves.write(leaf_hash(line))

    def head(self, since: Place) -> Place | None:
        """Return the head after the lines, which continue `since`; None if they do not continue it."""
        position = since.position + self._count
        if self._count == 0:
            return since
        if self._chain is not None:
            return Place(position, self._chain) if since == BEGINNING else None
        if self._leaves is None:
            return None
        chain = since.chain_hash
        with self._leaves as leaves:
            leaves.seek(0)
            while leaf := leaves.read(len(ZERO)):
                chain = chain_hash(chain, leaf)
        return Place(position, chain)
