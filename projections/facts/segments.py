"""Segments: folders of column files that are written once and never changed, all of which may be deleted at any time.

    FOLDER/NAME/manifest.json     what the columns are about, and the type, length and CRC-32s of each
    FOLDER/NAME/*                 one file per column

A segment is made beside its place and renamed, so that it is there whole or not at all. What is read from it is checked
first: that it is in a regular file of this account, its length, its checksum, and the range of its numbers.

A name is OF-POSITION-REST: of what, up to which position, and everything else that decides what is in it.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.own_files import is_own_folder, open_own
from ratings_ledger.projections import arrays
from ratings_ledger.projections.facts.checked_columns import (
    ITS_FAULT,
    Checked,
    Damaged,
    Unreadable,
    add_crcs,
    check_all,
    opened,
)
from ratings_ledger.projections.facts.columns import Column

TRACES = "traces"  # the folder of those that keep traces
MANIFEST = "manifest.json"
MANIFEST_BYTES_MAX = 1 << 24
UNFINISHED = ".unfinished-"
UNFINISHED_S = 3600  # after so long, whoever made it is gone
POSITION_DIGITS = 19  # too many for the numbers of a database


class Segment(NamedTuple):
    """Its name, the columns, and what they are about."""

    name: str
    columns: dict[str, Checked]
    about: dict[str, Any]

    def check(self) -> None:
        """Read everything in it. Raises `Damaged`."""
        check_all(self.columns.values())


def write_segment(
    folder: Path, name: str, columns: Mapping[str, Iterable[Column]], codes: Mapping[str, str], about: Mapping[str, Any]
) -> None:
    """Write a segment of columns of some types, each in one or more parts, unless it is there, or too much is to be
    said about it.

    Raises `OSError`; `Damaged` if a part that is read from a file is.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_own_folder(folder):
        raise PermissionError(f"{folder} is not a folder of this account")
    _sweep(folder)
    beside = folder / f"{UNFINISHED}{secrets.token_hex(8)}"
    beside.mkdir(mode=0o700)
    try:
        files = {column: _written(beside / column, codes[column], parts) for column, parts in columns.items()}
        body = json.dumps({"name": name, "order": sys.byteorder, "files": files, "about": about}).encode()
        told = f"{zlib.crc32(body):08x}\n".encode() + body
        if len(told) > MANIFEST_BYTES_MAX:
            return
        with open_own(beside / MANIFEST, "wb") as file:
            file.write(told)
        try:
            beside.rename(folder / name)
        except OSError:
            if not is_own_folder(folder / name):  # otherwise somebody else was faster, with the same
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _written(path: Path, code: str, parts: Iterable[Column]) -> tuple[str, int, list[int]]:
    """Write a column, and say what the manifest has about it."""
    length, crcs = 0, list[int]()
    with open_own(path, "wb") as file:
        for data in (data for part in parts if len(part) for data in _blocks(part)):
            file.write(data)
            add_crcs(crcs, length, data)
            length += len(data)
    return code, length // array(code).itemsize, crcs


def _blocks(part: Column) -> Iterable[bytes | memoryview]:
    return part.blocks() if isinstance(part, Checked) else [memoryview(arrays.in_memory(part)).cast("B")]


def _sweep(folder: Path) -> None:
    """Delete what processes that were killed left unfinished."""
    for path in folder.glob(f"{UNFINISHED}*"):
        with suppress(OSError):
            if is_own_folder(path) and path.lstat().st_mtime < clock.now() / 1_000_000 - UNFINISHED_S:
                shutil.rmtree(path)


def read_segment(folder: Path, name: str, codes: Mapping[str, str]) -> Segment | None:
    """Return a segment with exactly the columns and types `codes`; None if it is not there.

    Its columns are checked when they are read. Raises `Damaged` if it is not as it was written, `Unreadable`.
    """
    path = folder / name
    if not (is_own_folder(folder) and is_own_folder(path)):
        return None
    try:
        files, about = _manifest(path)
        if {column: code for column, (code, _, _) in files.items()} != codes:
            raise Damaged(f"{name} has other columns than those expected", path)
        columns = {column: opened(path / column, *told) for column, told in files.items()}
        return Segment(name, columns, about)
    except FileNotFoundError:
        return None  # somebody may just have deleted it
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as problem:
        if isinstance(problem, OSError) and problem.errno not in ITS_FAULT:
            raise Unreadable(f"{name}/{MANIFEST} cannot be read: {problem.strerror}") from None
        raise Damaged(f"{name} cannot be read: {problem}", path) from None


def _manifest(path: Path) -> tuple[dict[str, tuple[str, int, list[int]]], dict[str, Any]]:
    with open_own(path / MANIFEST, "rb") as file:
        crc, _, body = file.read(MANIFEST_BYTES_MAX).partition(b"\n")
    if f"{zlib.crc32(body):08x}".encode() != crc:
        raise Damaged(f"{path.name}/{MANIFEST} is damaged", path)
    told = json.loads(body)
    if told["name"] != path.name:
        raise Damaged(f"{path.name} holds {told['name']}", path)
    if told["order"] != sys.byteorder:
        raise Damaged(f"{path.name} was written by a machine with another order of bytes", path)
    if not all(isinstance(items, int) for _, items, _ in told["files"].values()):
        raise Damaged(f"{path.name} has lengths that are no numbers", path)
    return told["files"], {**told["about"]}


def segments_of(folder: Path, of: str = "") -> Iterator[tuple[int, Path]]:
    """Yield the positions and paths of all segments, or of those whose names begin with OF."""
    for path in folder.glob(f"{of or '*'}-*-*") if is_own_folder(folder) else ():
        position = path.name.split("-")[1]
        if position.isdecimal() and len(position) < POSITION_DIGITS and is_own_folder(path):
            yield int(position), path


def about_segment(path: Path) -> dict[str, Any]:
    """Return what the columns of a segment are about; empty if its manifest cannot be read."""
    try:
        return _manifest(path)[1]
    except (Damaged, OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def delete_segment(path: Path) -> None:
    """Delete a segment."""
    shutil.rmtree(path, ignore_errors=True)
