"""Read, change and damage column files, with valid checksums or byte by byte."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from ledgers import open_for_reading

from ratings_ledger.projections.facts.column_cache import name_cache_folder
from ratings_ledger.projections.facts.column_files import MAGIC, TRAILER, encode_columns, open_file


def find_cache_folder(location: str) -> str:
    """Return the name of the cache folder of a ledger."""
    with open_for_reading(location) as connection:
        return name_cache_folder(connection)


def read_file(path: Path) -> tuple[dict[str, array[int]], dict[str, Any]]:
    """Return the columns of a file and its metadata."""
    file = open_file(path)
    assert file is not None
    columns = {name: array(column.typecode, column.read_uncached().tolist()) for name, column in file.columns.items()}
    return columns, file.about


def rewrite_file(path: Path, columns: dict[str, array[int]], about: dict[str, Any]) -> None:
    """Replace a file by one with other columns and valid checksums."""
    parts = {name: (column.typecode, [column]) for name, column in columns.items()}
    content = b"".join(map(bytes, encode_columns(parts, about)))
    path.unlink()  # a mapping of the old file keeps its length
    path.write_bytes(content)


def read_footer(path: Path) -> Any:
    """Return the decoded footer of a file."""
    content = path.read_bytes()
    length, _, _ = TRAILER.unpack(content[-TRAILER.size :])
    return json.loads(content[-TRAILER.size - length : -TRAILER.size])


def rewrite_footer(path: Path, change: Callable[[Any], Any]) -> None:
    """Change the footer of a file and give it a valid checksum."""
    content = path.read_bytes()
    length, _, _ = TRAILER.unpack(content[-TRAILER.size :])
    footer = json.dumps(change(read_footer(path))).encode()
    path.unlink()
    path.write_bytes(content[: -TRAILER.size - length] + footer + TRAILER.pack(len(footer), zlib.crc32(footer), MAGIC))


def find_column_span(path: Path, column: str) -> tuple[int, int]:
    """Return the half-open range of a column's bytes in a file."""
    code, shape, begin, _ = read_footer(path)["columns"][column]
    return begin, begin + array(code).itemsize * shape[0]


def flip_bit(path: Path, chance: Random, span: tuple[int, int] | None = None) -> None:
    """Flip one random bit of a file, or of a span of it, in a new file, so that existing mappings stay intact."""
    content = bytearray(path.read_bytes())
    content[chance.randrange(*(span or (0, len(content))))] ^= 1 << chance.randrange(8)
    path.unlink()
    path.write_bytes(content)
