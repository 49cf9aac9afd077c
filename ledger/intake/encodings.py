"""Texts in other encodings than UTF-8, given on as UTF-8.

Excel saves CSV as Windows-1252 in Western Europe. A file is taken for that only if it is not UTF-8 and all of its other
characters are letters and marks that people there use; anything else has to be named.
"""

import io
import re
from collections.abc import Callable
from itertools import islice
from typing import IO, Any

from ratings_ledger.ledger.rejections import Refused

# so much of a file is looked at; what is longer is UTF-8, or has its encoding named
LOOKED_BYTES, RECODED_BYTES_MAX = 4 << 20, 100_000_000
MARKS = (b"\xff\xfe", b"\xfe\xff")  # how UTF-16 begins
UTF8, WESTERN = "utf-8", "cp1252"

_WESTERN = re.compile(r"[\x00-\x7fÀ-ÖØ-öø-þŒœŠšŽžŸ€‚„“”‘’‹›«»–—…·°ºª½¼¾²³§´`\xa0¡¿]*")
_UTF8 = re.compile(rb"[\xc3-\xf4][\x80-\xbf]")
_ODD_WORD = re.compile(r"[^\W\d_]{0,30}[^\x00-\x7f][^\W\d_]{0,30}")


def as_utf8(file: IO[bytes], encoding: str | None) -> tuple[IO[bytes], str, str]:
    """A file as UTF-8, with line feeds; its encoding, and a sentence that says so if it was taken for another one.

    What is UTF-8 but for some bytes stays as it is, so that the lines with those can be named. Raises `Refused`.
    """
    head = file.read(LOOKED_BYTES)
    if encoding is None and head.startswith(MARKS):
        encoding = "utf-16"
    if encoding is not None:
        return _lines(_decoded(head + file.read(RECODED_BYTES_MAX), encoding).encode()), encoding, ""
    if len(head) == LOOKED_BYTES:
        start = io.BytesIO(head)
        return io.BufferedReader(Pieces(lambda size: start.read(size) or file.read(size)), 1 << 18), UTF8, ""
    try:
        head.decode()
    except UnicodeDecodeError:
        if (text := _western(head)) is not None:
            odd = ", ".join(dict.fromkeys(one[0] for one in islice(_ODD_WORD.finditer(text), 3)))
            told = f"read as {WESTERN} (Western Europe), such as {odd}; --encoding names another"
            return _lines(text.encode()), WESTERN, told
    return _lines(head), UTF8, ""


def _lines(content: bytes) -> IO[bytes]:
    """A content whose lines end with line feeds, not with carriage returns alone, as old Macs write them."""
    if b"\r" in content.replace(b"\r\n", b""):
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return io.BytesIO(content)


def _decoded(raw: bytes, encoding: str) -> str:
    """Raises `Refused` (bad-utf8)."""
    if len(raw) > RECODED_BYTES_MAX:
        raise Refused("bad-utf8", f"a file of more than {RECODED_BYTES_MAX:,} bytes has to be UTF-8")
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        told = f"byte {error.start + 1:,} is not {encoding}; name another encoding with --encoding"
        raise Refused("bad-utf8", told, line) from None


def _western(raw: bytes) -> str | None:
    """The text, if all of it is as people in Western Europe write, and no character of it was UTF-8."""
    if _UTF8.search(raw):
        return None
    try:
        text = raw.decode(WESTERN)
    except UnicodeDecodeError:
        return None
    return text if _WESTERN.fullmatch(text) else None


class Pieces(io.RawIOBase):
    """A file whose pieces are given by a function of their size at the most."""

    def __init__(self, piece: Callable[[int], bytes]) -> None:
        self._piece = piece

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the next piece does; the number of bytes, 0 at the end."""
        found = self._piece(len(buffer))
        buffer[: len(found)] = found
        return len(found)
