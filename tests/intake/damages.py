"""Ways in which files come to harm, on a disk, in a mail or in somebody's editor; each gives a damaged content."""

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
# what stands in attributes and texts of XML that is wrong
VALUES = (
    b"", b"-1", b"0", b"1e999", b"NaN", b"99999999999999999999", b"A0", b"XFE1", b"XFD1048577", b"A1:ZZZ9", b"\xff",
    b"\0", b"x" * 10_000, b"2024-13-45", b"PT99999999H", b"&undefined;", b"&#0;", b"&lt;", b"<", b"../../x", b"t",
    b"1048577",
)  # fmt: skip
MORE = (
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"<a>" * 3_000, b"</a>", b"<!--", b"<![CDATA[", b"<?xml version='1.0'?>", b"]]>",
    b'<c r="B2" t="s"><v>7777777</v></c>', b"<row/>" * 1_000, b"<table:table-row>", b"\xef\xbb\xbf",
)  # fmt: skip
_TAG, _ATTRIBUTE, _TEXT = (re.compile(text) for text in (rb"<[^>]*>", rb'="[^"]*"', rb">[^<]+<"))

Parts = list[tuple[str, bytes]]


def _span(chance: Random, content: bytes) -> tuple[int, int]:
    begin = chance.randrange(len(content) + 1)
    return begin, min(len(content), begin + chance.choice((1, 2, 16, 300, 5_000)))


def flipped(chance: Random, content: bytes) -> bytes:
    """Some bits turned over."""
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 3, 40)) if found else 0):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def cut(chance: Random, content: bytes) -> bytes:
    """The rest is missing."""
    return content[: chance.randrange(len(content) + 1)]


def inserted(chance: Random, content: bytes) -> bytes:
    """Something else in the midst of it, or several things."""
    for _ in range(chance.choice((1, 1, 2, 9))):
        at = chance.randrange(len(content) + 1)
        content = content[:at] + chance.choice(PIECES) + content[at:]
    return content


def removed(chance: Random, content: bytes) -> bytes:
    """A piece is missing."""
    begin, end = _span(chance, content)
    return content[:begin] + content[end:]


def blanked(chance: Random, content: bytes) -> bytes:
    """Zeros in place of a piece, as on a disk that lost a block."""
    begin, end = _span(chance, content)
    return content[:begin] + bytes(end - begin) + content[end:]


def repeated(chance: Random, content: bytes) -> bytes:
    """A piece of it once more, elsewhere."""
    begin, end = _span(chance, content)
    at = chance.randrange(len(content) + 1)
    return content[:at] + content[begin:end] + content[at:]


RAW = (flipped, cut, inserted, removed, blanked, repeated)


def _replaced(pattern: re.Pattern[bytes], chance: Random, content: bytes, form: bytes = b"%s") -> bytes:
    """One of those that match, with another value."""
    found = list(pattern.finditer(content))
    if not found:
        return content
    one = chance.choice(found)
    return content[: one.start()] + form % chance.choice(VALUES) + content[one.end() :]


def _without_tag(chance: Random, content: bytes) -> bytes:
    tags = list(_TAG.finditer(content))
    one = chance.choice(tags) if tags else None
    return content if one is None else content[: one.start()] + content[one.end() :]


def _with_more(chance: Random, content: bytes) -> bytes:
    tags = list(_TAG.finditer(content))
    at = chance.choice(tags).end() if tags else 0
    return content[:at] + chance.choice(MORE) + content[at:]


def _in_other_encoding(chance: Random, content: bytes) -> bytes:
    text = content.decode("utf-8", "replace")
    return chance.choice((text.encode("utf-16"), text.replace("UTF-8", "UTF-16").encode(), text.encode("utf-7")))


XML = {
    "a tag is missing": _without_tag,
    "an attribute": partial(_replaced, _ATTRIBUTE, form=b'="%s"'),
    "a text": partial(_replaced, _TEXT, form=b">%s<"),
    "more tags": _with_more,
    "another encoding": _in_other_encoding,
    **{made.__name__: made for made in RAW},
}


def parts_of(content: bytes) -> Parts:
    """The parts of an archive; none if it is none."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            return [(part.filename, archive.read(part)) for part in archive.infolist()]
    except (BadZipFile, RuntimeError):  # which is what it raises for an encrypted part
        return []


def _zipped(parts: Parts) -> bytes:
    found = io.BytesIO()
    with ZipFile(found, "w") as archive:
        for name, content in parts:
            part = ZipInfo(name)
            part.compress_type = ZIP_DEFLATED
            archive.NameToInfo.pop(name, None)  # a name may occur twice, without a warning
            archive.writestr(part, content)
    return found.getvalue()


def in_archive(chance: Random, content: bytes) -> tuple[str, bytes]:
    """A part of a spreadsheet is missing, twice, under another name, empty, in another's place, or has bad XML."""
    parts = parts_of(content)
    if not parts:
        made = chance.choice(RAW)
        return made.__name__, made(chance, content)
    at, other = chance.randrange(len(parts)), chance.randrange(len(parts))
    name, text = parts[at]
    what = chance.choice(("missing", "twice", "renamed", "empty", "in another's place", *["bad XML"] * 12))
    if what == "missing":
        del parts[at]
    elif what == "twice":
        parts.insert(other, (name, chance.choice((text, b"", flipped(chance, text)))))
    elif what == "renamed":
        new = (name.upper(), name.replace("/", "\\"), f"../{name}", f"/{name}", "x" * 70_000, "\ufffd", "")
        parts[at] = chance.choice(new)[:65_000], text
    elif what == "empty":
        parts[at] = name, b""
    elif what == "in another's place":
        parts[at] = name, parts[other][1]
    else:
        # those that are read are harmed most often
        sheets = [n for n, (part, _) in enumerate(parts) if part == "content.xml" or part.startswith("xl/")]
        at = chance.choice(sheets or [at])
        how = chance.choice([*XML])
        what = f"{what}: {how}"
        parts[at] = parts[at][0], XML[how](chance, parts[at][1])
    return f"a part {what}", _zipped(parts)


def compressed(chance: Random, content: bytes) -> tuple[str, bytes]:
    """A file of gzip that came to harm."""
    made = chance.choice(RAW)
    return f"gzip {made.__name__}", made(chance, gzip.compress(content))


def raw(chance: Random, content: bytes) -> tuple[str, bytes]:
    """Bytes of a file that came to harm, whatever they are."""
    made = chance.choice(RAW)
    return made.__name__, made(chance, content)


def _swapped(chance: Random, rows: list[list[str]]) -> None:
    """Two cells change places."""
    row, other = chance.choice(rows), chance.choice(rows)
    at, there = chance.randrange(len(row)), chance.randrange(len(other))
    row[at], other[there] = other[there], row[at]


def _emptied(chance: Random, rows: list[list[str]]) -> None:
    """A cell is empty."""
    row = chance.choice(rows)
    row[chance.randrange(len(row))] = ""


def _retyped(chance: Random, rows: list[list[str]]) -> None:
    """A cell has something else."""
    row = chance.choice(rows)
    row[chance.randrange(len(row))] = chance.choice(CELLS)


def _shifted(chance: Random, rows: list[list[str]]) -> None:
    """The cells of a row are one column further."""
    chance.choice(rows).insert(0, "")


def _mixed(chance: Random, rows: list[list[str]]) -> None:
    """The rows are in another order, the header among them."""
    chance.shuffle(rows)


def _without_column(chance: Random, rows: list[list[str]]) -> None:
    """A column is missing."""
    at = chance.randrange(len(rows[0]))
    rows[:] = [row[:at] + row[at + 1 :] or [""] for row in rows]


# what is typed into cells of results, names and dates
CELLS = (
    "", "-", "?", "0", "1", "W", "x:y", "3:", ":1", "11:7 11", "(11:7)", "3:1 (", "3:1 ()", "½", "½:", "1/2:1/2", "+:-",
    "-:-", "+:+", "draw", "2024-11-22", "01:03", "31.02.2024", "9" * 30 + ":1", "3:1:2", "-3:1", "1e3:2", "٣:١", "Anna",
    "=A1", "#NV", "'3-1", "\u200b", "x" * 300, "11:7(", "0:0", "1:1 1:1", "99999:1", "3;1", "a/b", "true",
)  # fmt: skip
TABLES: dict[str, Callable[[Random, list[list[str]]], None]] = {
    "cells swapped": _swapped, "a cell emptied": _emptied, "a cell typed again": _retyped, "a row shifted": _shifted,
    "rows mixed": _mixed, "a column missing": _without_column,
}  # fmt: skip
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


def in_table(chance: Random, content: bytes) -> tuple[str, bytes]:
    """A table of text whose cells, rows, separators or encoding are not what they were; a spreadsheet as in `raw`."""
    if content.startswith(b"PK") or not content:
        return raw(chance, content)
    text = content.decode("utf-8", "replace")
    delimiter = max(",;\t", key=text.count)
    rows = [line.split(delimiter) for line in text.splitlines()] or [[""]]
    what = chance.choice((*TABLES, "other separators", "another encoding", "rows cut off"))
    if what in TABLES:
        for _ in range(chance.choice((1, 1, 2, 5))):
            TABLES[what](chance, rows)
    elif what == "rows cut off":
        rows = [row[: chance.randrange(len(row) + 1)] for row in rows[: chance.randrange(1, len(rows) + 1)]]
    new = chance.choice(",;\t|: ") if what == "other separators" else delimiter
    encoding = chance.choice(ENCODINGS) if what == "another encoding" else "utf-8"
    return f"a table: {what}", chance.choice(("\n", "\r\n", "\r")).join(map(new.join, rows)).encode(encoding, "replace")


DAMAGES: tuple[Callable[[Random, bytes], tuple[str, bytes]], ...] = (
    raw,
    raw,
    in_archive,
    in_archive,
    compressed,
    in_table,
)
