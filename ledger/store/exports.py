"""Write and check exports of events. An export has one record per line; in a file, a last line names the head.

    {"by":"mira","data":{...},"id":"game:g-1", ... ,"type":"game.recorded"}
    {"end":93,"head":"93:3f513f9a..."}

An increment continues another export; the member `since` of its last line is the head of that export.
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
from ratings_ledger.ledger.store.log import read_chain_hash, read_records

_END = re.compile(rb'\{"end":(\d{1,16}),"head":"\1:([0-9a-f]{64})"(?:,"since":"(\d{1,16}):([0-9a-f]{64})")?\}')
_HEAD = re.compile(r"(\d{1,16}):([0-9a-fA-F]{64})", re.ASCII)
_POSITION = re.compile(rb'"position":(\d{1,16}),"recorded_at":"')
# how many bytes of an increment's leaf hashes to keep in memory; further ones go to a temporary file
_MEMORY_BYTES = 1 << 23


class ChainHead(NamedTuple):
    """The head of a log at some time: a position and its chain hash, which identify the exact history up to there."""

    position: int
    chain_hash: bytes

    def __str__(self) -> str:
        return f"{self.position}:{self.chain_hash.hex()}"


BEGINNING = ChainHead(0, ZERO)


class ExportEnd(NamedTuple):
    """The last line of an export: the head after the last record, and the head before the first one."""

    head: ChainHead
    since: ChainHead


def parse_chain_head(text: str) -> ChainHead | None:
    """Parse a head written as POSITION:CHAINHASH; return None for other texts."""
    match = _HEAD.fullmatch(text)
    return None if match is None else ChainHead(int(match.group(1)), bytes.fromhex(match.group(2)))


def parse_end(line: bytes) -> ExportEnd | None:
    """Parse the last line of an export; return None for other lines."""
    match = _END.fullmatch(line) if line.startswith(b'{"end":') else None
    if match is None:
        return None
    position, chain, since_position, since_chain = match.groups()
    since = BEGINNING if since_position is None else _build_chain_head(since_position, since_chain)
    return ExportEnd(_build_chain_head(position, chain), since)


def _build_chain_head(position: bytes, chain: bytes) -> ChainHead:
    return ChainHead(int(position), bytes.fromhex(chain.decode()))


def read_chain_head(connection: Connection, position: int) -> ChainHead:
    """Return a position of the log with its chain hash. Raises `StoreDamaged` if the event is missing."""
    stored_hash = read_chain_hash(connection, position)
    if stored_hash is None:
        raise StoreDamaged(f"the event at position {position} is missing; run: ratings verify")
    return ChainHead(position, stored_hash)


def export_lines(connection: Connection, since: int, until: int) -> Iterator[bytes]:
    """Yield the lines of an export to a file: the records at `since` < position <= `until`, and the last line.

    Raises `StoreDamaged` instead of yielding the last line if a record is missing, or if the records do not match the
    hashes of the log.
    """
    begin, head = read_chain_head(connection, since), read_chain_head(connection, until)
    position, chain = begin
    for page in read_records(connection, since, until):
        lines = []
        for record_position, record in page:
            position += 1
            if record_position != position:
                raise _build_damage_error(position, "is missing")
            chain = chain_hash(chain, leaf_hash(record))
            lines.append(f"{record}\n")
        yield "".join(lines).encode()
    if (position, chain) != head:
        raise _build_damage_error(until, "has a chain hash that does not match the records up to it")
    # the last line of a full export has no `since`
    since_member = "" if begin == BEGINNING else f',"since":"{begin}"'
    yield f'{{"end":{head.position},"head":"{head}"{since_member}}}\n'.encode()


def open_compressed(file: IO[bytes]) -> IO[bytes]:
    """Open a gzip compressor that writes to a file. It stores no name and time, so equal events give equal bytes."""
    return cast(IO[bytes], gzip.GzipFile("", "wb", 6, file, mtime=0))


def _build_damage_error(position: int, problem: str) -> StoreDamaged:
    return StoreDamaged(
        f"the event at position {position} {problem}, so the export would be invalid; nothing was written; run: "
        "ratings verify; to save the readable events, run: ratings export events > EVENTS.jsonl"
    )


def check_last_lines(lines: Iterator[tuple[int, bytes | Refused]]) -> Iterator[tuple[int, bytes | Refused | None]]:
    """Check the last line of each export in a file; yield the file's numbered lines.

    A last line with the right head becomes None, one with a wrong head a refusal. Another export may follow it.
    """
    exported = _ExportLines()
    for number, line in lines:
        end = None if isinstance(line, Refused) else parse_end(line)
        if end is None:
            exported.add(b"" if isinstance(line, Refused) else line)
            yield number, line
            continue
        actual_head, exported = exported.compute_head(end.since), _ExportLines()
        if actual_head == end.head:
            yield number, None
        elif actual_head is None:
            message = f"the lines before this one are not an export that ends at {end.head}; remove this line"
            yield number, Refused("end-mismatch", message)
        else:
            message = (
                f"this last line of an export names {end.head}, but the lines before it end at {actual_head}: lines "
                "are missing, changed or added; if that is intended, remove this line"
            )
            yield number, Refused("end-mismatch", message)


class _ExportLines:
    """The number of lines read from an export, and the data for their chain hash."""

    def __init__(self) -> None:
        self._count = 0
        # the chain hash of a full export so far
        self._chain: bytes | None = None
        # the leaf hashes of an increment, which names its start only in its last line
        self._leaves: SpooledTemporaryFile[bytes] | None = None

    def add(self, line: bytes) -> None:
        """Add a line. Hash it only if the first line is a record of an export."""
        self._count += 1
        if self._count == 1:
            position = _POSITION.search(line) if line.startswith(b'{"by":') else None
            if position is not None and int(position.group(1)) == 1:
                self._chain = ZERO
            elif position is not None:
                self._leaves = SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115
        if self._chain is not None:
            self._chain = chain_hash(self._chain, leaf_hash(line))
        elif self._leaves is not None:
            self._leaves.write(leaf_hash(line))

    def compute_head(self, since: ChainHead) -> ChainHead | None:
        """Return the head after the lines, as records that follow `since`; None if the first line rules that out."""
        position = since.position + self._count
        if self._count == 0:
            return since
        if self._chain is not None:
            return ChainHead(position, self._chain) if since == BEGINNING else None
        if self._leaves is None:
            return None
        chain = since.chain_hash
        with self._leaves as leaves:
            leaves.seek(0)
            while leaf := leaves.read(len(ZERO)):
                chain = chain_hash(chain, leaf)
        return ChainHead(position, chain)
