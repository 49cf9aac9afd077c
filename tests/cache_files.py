"""Files of columns as tests read, change and damage them: with right checksums, or byte by byte."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from ratings_ledger.projections.facts.column_files import MAGIC, TRAILER, encode_columns, open_file


def read_file(path: Path) -> tuple[dict[str, array[int]], dict[str, Any]]:
    """The columns in a file, and what they are about."""
    file = open_file(path)
    assert file is not None
    columns = {name: array(column.typecode, column.load().tolist()) for name, column in file.columns.items()}
    return columns, file.about


def rewrite_file(path: Path, columns: dict[str, array[int]], about: dict[str, Any]) -> None:
    """Put other columns in the place of a file, under right checksums."""
    parts = {name: (column.typecode, [column]) for name, column in columns.items()}
    content = b"".join(map(bytes, encode_columns(parts, about)))
    path.unlink()  # what is mapped keeps its length
    path.write_bytes(content)


def read_footer(path: Path) -> Any:
    """What the footer of a file says."""
    content = path.read_bytes()
    length, _, _ = TRAILER.unpack(content[-TRAILER.size :])
    return json.loads(content[-TRAILER.size - length : -TRAILER.size])


def rewrite_footer(path: Path, change: Callable[[Any], Any]) -> None:
    """Let the footer of a file say something else, under a right checksum."""
    content = path.read_bytes()
    length, _, _ = TRAILER.unpack(content[-TRAILER.size :])
    footer = json.dumps(change(read_footer(path))).encode()
    path.unlink()
    path.write_bytes(content[: -TRAILER.size - length] + footer + TRAILER.pack(len(footer), zlib.crc32(footer), MAGIC))


def place_of(path: Path, column: str) -> tuple[int, int]:
    """Where the bytes of a column are in a file: from and to."""
    code, shape, begin, _ = read_footer(path)["columns"][column]
    return begin, begin + array(code).itemsize * shape[0]


def flip_bit(path: Path, chance: Random, span: tuple[int, int] | None = None) -> None:
    """Change a bit of a file, or of a span of its bytes, in a new file at its place: what is mapped stays."""
    content = bytearray(path.read_bytes())
    content[chance.randrange(*(span or (0, len(content))))] ^= 1 << chance.randrange(8)
    path.unlink()
    path.write_bytes(content)
