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


DAMAGES: tuple[Callable[[Random, bytes], tuple[str, bytes]], ...] = (raw, raw, in_archive, in_archive, compressed)
