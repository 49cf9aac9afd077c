"""Damage files as disks, mail programs and editors do.

Each function of `DAMAGES` returns the name of a random damage, and the damaged content.
"""

import gzip
import io
import re
from collections.abc import Callable
from functools import partial
from random import Random
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

PIECES = (
    b"\0", b'"', b'""', b"'", b"\r", b"\n", b"\n\n\n", b",", b";", b"\t", b"|", b"=", b"\xff", b"\xfe\xff", b"\xc3",
    b"\x1a", b"1e999", b"9" * 400, b"-" * 70, b"x" * 200_000, b"y" * 1_100_000, b"00.00.0000", b"31.02.2024", b"=1+1",
    b"#REF!", b"\xef\xbb\xbf", b"," * 20_000, b'"' * 501, "\u202e\u200b".encode(), b"<html>", b"PK\x03\x04",
    b"\x1f\x8b\x08",
)  # fmt: skip
# wrong values for attributes and texts of XML
XML_VALUES = (
    b"", b"-1", b"0", b"1e999", b"NaN", b"99999999999999999999", b"A0", b"XFE1", b"XFD1048577", b"A1:ZZZ9", b"\xff",
    b"\0", b"x" * 10_000, b"2024-13-45", b"PT99999999H", b"&undefined;", b"&#0;", b"&lt;", b"<", b"../../x", b"t",
    b"1048577",
)  # fmt: skip
MARKUP = (
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"<a>" * 3_000, b"</a>", b"<!--", b"<![CDATA[", b"<?xml version='1.0'?>", b"]]>",
    b'<c r="B2" t="s"><v>7777777</v></c>', b"<row/>" * 1_000, b"<table:table-row>", b"\xef\xbb\xbf",
)  # fmt: skip
_TAG, _ATTRIBUTE, _TEXT = (re.compile(text) for text in (rb"<[^>]*>", rb'="[^"]*"', rb">[^<]+<"))

Parts = list[tuple[str, bytes]]


def _draw_span(chance: Random, content: bytes) -> tuple[int, int]:
    begin = chance.randrange(len(content) + 1)
    return begin, min(len(content), begin + chance.choice((1, 2, 16, 300, 5_000)))


def flip_bits(chance: Random, content: bytes) -> bytes:
    """Flip some bits."""
    damaged = bytearray(content)
    for _ in range(chance.choice((1, 1, 3, 40)) if damaged else 0):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def cut_off(chance: Random, content: bytes) -> bytes:
    """Cut off the end."""
    return content[: chance.randrange(len(content) + 1)]


def insert_pieces(chance: Random, content: bytes) -> bytes:
    """Insert one or more pieces."""
    for _ in range(chance.choice((1, 1, 2, 9))):
        at = chance.randrange(len(content) + 1)
        content = content[:at] + chance.choice(PIECES) + content[at:]
    return content


def remove_piece(chance: Random, content: bytes) -> bytes:
    """Remove a piece."""
    begin, end = _draw_span(chance, content)
    return content[:begin] + content[end:]


def blank_piece(chance: Random, content: bytes) -> bytes:
    """Replace a piece by zeros, as on a disk that lost a block."""
    begin, end = _draw_span(chance, content)
    return content[:begin] + bytes(end - begin) + content[end:]


def repeat_piece(chance: Random, content: bytes) -> bytes:
    """Repeat a piece elsewhere."""
    begin, end = _draw_span(chance, content)
    at = chance.randrange(len(content) + 1)
    return content[:at] + content[begin:end] + content[at:]


BYTE_DAMAGES = (flip_bits, cut_off, insert_pieces, remove_piece, blank_piece, repeat_piece)


def _replace_match(pattern: re.Pattern[bytes], chance: Random, content: bytes, template: bytes = b"%s") -> bytes:
    """Replace one match of a pattern by a wrong value, as the template shows it."""
    matches = list(pattern.finditer(content))
    if not matches:
        return content
    match = chance.choice(matches)
    return content[: match.start()] + template % chance.choice(XML_VALUES) + content[match.end() :]


def _remove_tag(chance: Random, content: bytes) -> bytes:
    tags = list(_TAG.finditer(content))
    tag = chance.choice(tags) if tags else None
    return content if tag is None else content[: tag.start()] + content[tag.end() :]


def _add_markup(chance: Random, content: bytes) -> bytes:
    tags = list(_TAG.finditer(content))
    at = chance.choice(tags).end() if tags else 0
    return content[:at] + chance.choice(MARKUP) + content[at:]


def _change_encoding(chance: Random, content: bytes) -> bytes:
    text = content.decode("utf-8", "replace")
    return chance.choice((text.encode("utf-16"), text.replace("UTF-8", "UTF-16").encode(), text.encode("utf-7")))


XML_DAMAGES = {
    "a tag is missing": _remove_tag,
    "an attribute": partial(_replace_match, _ATTRIBUTE, template=b'="%s"'),
    "a text": partial(_replace_match, _TEXT, template=b">%s<"),
    "more tags": _add_markup,
    "another encoding": _change_encoding,
    **{damage.__name__: damage for damage in BYTE_DAMAGES},
}


def read_parts(content: bytes) -> Parts:
    """Return the parts of a zip archive; none of any other file."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            return [(part.filename, archive.read(part)) for part in archive.infolist()]
    except (BadZipFile, RuntimeError):  # an encrypted part raises RuntimeError
        return []


def _write_parts(parts: Parts) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in parts:
            part = ZipInfo(name)
            part.compress_type = ZIP_DEFLATED
            archive.NameToInfo.pop(name, None)  # a name may occur twice, without a warning
            archive.writestr(part, content)
    return buffer.getvalue()


def damage_archive(chance: Random, content: bytes) -> tuple[str, bytes]:
    """Damage one part of a spreadsheet: remove, repeat, rename, empty, replace or garble it.

    If the content is not an archive, damage its bytes.
    """
    parts = read_parts(content)
    if not parts:
        damage = chance.choice(BYTE_DAMAGES)
        return damage.__name__, damage(chance, content)
    index, other_index = chance.randrange(len(parts)), chance.randrange(len(parts))
    name, part_content = parts[index]
    damage_name = chance.choice(("missing", "twice", "renamed", "empty", "in another's place", *["bad XML"] * 12))
    if damage_name == "missing":
        del parts[index]
    elif damage_name == "twice":
        parts.insert(other_index, (name, chance.choice((part_content, b"", flip_bits(chance, part_content)))))
    elif damage_name == "renamed":
        new_names = (name.upper(), name.replace("/", "\\"), f"../{name}", f"/{name}", "x" * 70_000, "\ufffd", "")
        parts[index] = chance.choice(new_names)[:65_000], part_content
    elif damage_name == "empty":
        parts[index] = name, b""
    elif damage_name == "in another's place":
        parts[index] = name, parts[other_index][1]
    else:
        # mostly damage parts that the program reads
        read_indexes = [
            part_index for part_index, (part, _) in enumerate(parts) if part == "content.xml" or part.startswith("xl/")
        ]
        index = chance.choice(read_indexes or [index])
        xml_damage = chance.choice([*XML_DAMAGES])
        damage_name = f"{damage_name}: {xml_damage}"
        parts[index] = parts[index][0], XML_DAMAGES[xml_damage](chance, parts[index][1])
    return f"a part {damage_name}", _write_parts(parts)


def damage_gzip(chance: Random, content: bytes) -> tuple[str, bytes]:
    """Damage the bytes of a gzip file."""
    damage = chance.choice(BYTE_DAMAGES)
    return f"gzip {damage.__name__}", damage(chance, gzip.compress(content))


def damage_bytes(chance: Random, content: bytes) -> tuple[str, bytes]:
    """Damage the bytes of any file."""
    damage = chance.choice(BYTE_DAMAGES)
    return damage.__name__, damage(chance, content)


def _swap_cells(chance: Random, rows: list[list[str]]) -> None:
    """Swap two cells."""
    row, other_row = chance.choice(rows), chance.choice(rows)
    column, other_column = chance.randrange(len(row)), chance.randrange(len(other_row))
    row[column], other_row[other_column] = other_row[other_column], row[column]


def _empty_cell(chance: Random, rows: list[list[str]]) -> None:
    """Empty a cell."""
    row = chance.choice(rows)
    row[chance.randrange(len(row))] = ""


def _retype_cell(chance: Random, rows: list[list[str]]) -> None:
    """Replace the text of a cell."""
    row = chance.choice(rows)
    row[chance.randrange(len(row))] = chance.choice(CELLS)


def _shift_row(chance: Random, rows: list[list[str]]) -> None:
    """Shift the cells of a row by one column."""
    chance.choice(rows).insert(0, "")


def _shuffle_rows(chance: Random, rows: list[list[str]]) -> None:
    """Shuffle the rows, including the header."""
    chance.shuffle(rows)


def _remove_column(chance: Random, rows: list[list[str]]) -> None:
    """Remove a column."""
    at = chance.randrange(len(rows[0]))
    rows[:] = [row[:at] + row[at + 1 :] or [""] for row in rows]


# unusual texts in cells of results, names and dates
CELLS = (
    "", "-", "?", "0", "1", "W", "x:y", "3:", ":1", "11:7 11", "(11:7)", "3:1 (", "3:1 ()", "½", "½:", "1/2:1/2", "+:-",
    "-:-", "+:+", "draw", "2024-11-22", "01:03", "31.02.2024", "9" * 30 + ":1", "3:1:2", "-3:1", "1e3:2", "٣:١", "Anna",
    "=A1", "#NV", "'3-1", "\u200b", "x" * 300, "11:7(", "0:0", "1:1 1:1", "99999:1", "3;1", "a/b", "true",
)  # fmt: skip
TABLE_DAMAGES: dict[str, Callable[[Random, list[list[str]]], None]] = {
    "cells swapped": _swap_cells,
    "a cell emptied": _empty_cell,
    "a cell typed again": _retype_cell,
    "a row shifted": _shift_row,
    "rows mixed": _shuffle_rows,
    "a column missing": _remove_column,
}
ENCODINGS = (
    "utf-16",
    "utf-16-le",
    "utf-32",
    "cp1252",
    "cp1250",
    "mac-roman",
    "utf-7",
    "cp500",
    "shift-jis",
)


def damage_table(chance: Random, content: bytes) -> tuple[str, bytes]:
    """Damage the cells, rows, separators or encoding of a text table; damage the bytes of a spreadsheet."""
    if content.startswith(b"PK") or not content:
        return damage_bytes(chance, content)
    text = content.decode("utf-8", "replace")
    delimiter = max(",;\t", key=text.count)
    rows = [line.split(delimiter) for line in text.splitlines()] or [[""]]
    damage_name = chance.choice((*TABLE_DAMAGES, "other separators", "another encoding", "rows cut off"))
    if damage_name in TABLE_DAMAGES:
        for _ in range(chance.choice((1, 1, 2, 5))):
            TABLE_DAMAGES[damage_name](chance, rows)
    elif damage_name == "rows cut off":
        rows = [row[: chance.randrange(len(row) + 1)] for row in rows[: chance.randrange(1, len(rows) + 1)]]
    separator = chance.choice(",;\t|: ") if damage_name == "other separators" else delimiter
    encoding = chance.choice(ENCODINGS) if damage_name == "another encoding" else "utf-8"
    return f"a table: {damage_name}", chance.choice(("\n", "\r\n", "\r")).join(map(separator.join, rows)).encode(
        encoding, "replace"
    )


DAMAGES: tuple[Callable[[Random, bytes], tuple[str, bytes]], ...] = (
    damage_bytes,
    damage_bytes,
    damage_archive,
    damage_archive,
    damage_gzip,
    damage_table,
)
