"""Read, change and damage column files, with valid checksums or byte by byte.

    COLUMN ... FOOTER LENGTH CRC MAGIC

This module knows the format of the files and imports nothing from the program.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

MAGIC = b"ratings2"
TRAILER = struct.Struct("<QI8s")
BLOCK_BYTES = 1 << 15  # every block of a column has a checksum
ALIGNMENT = 8  # every column starts at a multiple of this


def read_file(path: Path) -> tuple[dict[str, array[int]], dict[str, Any]]:
    """Return the columns of a file by name, and the description in its footer. The columns must be one-dimensional."""
    content, footer = path.read_bytes(), read_footer(path)
    columns = {}
    for name, (code, (items,), begin, _) in footer["columns"].items():
        columns[name] = array(code, content[begin : begin + items * array(code).itemsize])
    return columns, footer["about"]


def rewrite_file(path: Path, columns: dict[str, array[int]], about: dict[str, Any]) -> None:
    """Replace a file with one that has other columns and valid checksums."""
    content, entries = bytearray(), {}
    for name, column in columns.items():
        data = column.tobytes()
        checksums = [zlib.crc32(data[begin : begin + BLOCK_BYTES]) for begin in range(0, len(data), BLOCK_BYTES)]
        entries[name] = column.typecode, [len(column)], len(content), checksums
        content += data + bytes(-len(data) % ALIGNMENT)
    path.unlink()  # a mapping of the old file keeps its length
    path.write_bytes(content + _encode_footer({"about": about, "columns": entries, "order": sys.byteorder}))


def _encode_footer(footer: Any) -> bytes:
    text = json.dumps(footer).encode()
    return text + TRAILER.pack(len(text), zlib.crc32(text), MAGIC)


def read_footer(path: Path) -> Any:
    """Return the decoded footer of a file."""
    content = path.read_bytes()
    length, _, _ = TRAILER.unpack(content[-TRAILER.size :])
    return json.loads(content[-TRAILER.size - length : -TRAILER.size])


def rewrite_footer(path: Path, change: Callable[[Any], Any]) -> None:
    """Change the footer of a file and give it a valid checksum."""
    content = path.read_bytes()
    length, _, _ = TRAILER.unpack(content[-TRAILER.size :])
    footer = _encode_footer(change(read_footer(path)))
    path.unlink()
    path.write_bytes(content[: -TRAILER.size - length] + footer)


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
