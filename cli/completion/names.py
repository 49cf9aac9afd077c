"""Keep the names of a ledger in a file, for a shell that waits for them.

    ~/.cache/ratings-ledger/names/PLACE

    1 CHAINHASH CRC-32

    players
    anna
    María José

    ladders
    ...

A command that decodes the log writes the file, so it belongs to a location, as the cache of columns does. The chain
hash tells whether it is up to date. A damaged file means no names, and the next command writes it again.
"""

from __future__ import annotations

import os
import zlib

from ratings_ledger.ledger.own_files import cache_folder, is_own_folder, open_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORM = b"1"
NAMES_MAX, CHARACTERS_MAX = 20_000, 200  # the last names of a kind; the length of a name
BYTES_MAX, HEAD_BYTES_MAX = 16_000_000, 200
# characters that affect a terminal or end a line: no event has such names
UNSEEN = {*map(chr, [*range(32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])}


def default_ledger() -> str:
    """Return the ledger to use without --db."""
    return os.environ.get("RATINGS_DB") or "sqlite:///ratings.db"


def is_up_to_date(db: str, chain_hash: bytes) -> bool:
    """Tell whether the file has the names of a ledger with this history, or no names can be kept."""
    path = _path(db)
    return path is None or _read(path, HEAD_BYTES_MAX).startswith(_file_head(chain_hash))


def write_names(db: str, chain_hash: bytes, names: Mapping[str, Iterable[str]]) -> None:
    """Write the file of a ledger, given its names by kind. Raises `OSError`."""
    path = _path(db)
    if path is None:
        return
    sections = [
        "\n".join([kind, *[name for name in names_of_kind if _is_name(name)][-NAMES_MAX:]])
        for kind, names_of_kind in names.items()
    ]
    body = "\n\n".join(sections).encode()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part = f"{path}.{os.getpid()}.part"
    if not is_own_folder(os.path.dirname(path)) or len(body) > BYTES_MAX:
        return
    try:
        with open_own(part, "wb") as file:
            file.write(b"%s%s\n\n%s" % (head := _file_head(chain_hash), _checksum(head, body), body))
        os.replace(part, path)
    except BaseException:
        if os.path.lexists(part):
            os.unlink(part)
        raise


def read_names(db: str) -> dict[str, list[str]]:
    """Return the names of a ledger by kind, none if they are not known."""
    head, _, body = _read(_path(db) or "", BYTES_MAX + HEAD_BYTES_MAX).partition(b"\n\n")
    if not head.startswith(FORM + b" ") or head[-8:] != _checksum(head[:-8], body):
        return {}
    names_by_kind = {}
    for section in body.decode(errors="replace").split("\n\n"):
        kind, *names = section.split("\n")
        names_by_kind[kind] = [name for name in names if _is_name(name)]
    return names_by_kind


def match_prefix(words: Iterable[str], start: str) -> list[str]:
    """Return the words with this prefix, or without any, those that have it in another case.

    >>> match_prefix(["mira", "Max", "ben"], "m"), match_prefix(["Max", "ben"], "m")
    (['mira'], ['Max'])
    """
    folded, length = start.casefold(), len(start)
    all_words = [*words]
    exact = [word for word in all_words if word.startswith(start)]
    return exact or [word for word in all_words if word[:length].casefold() == folded]


def _is_name(name: str) -> bool:
    return 0 < len(name) <= CHARACTERS_MAX and (name.isprintable() or UNSEEN.isdisjoint(name))


def _file_head(chain_hash: bytes) -> bytes:
    """Return the beginning of a file, without its CRC-32."""
    return b"%s %s " % (FORM, chain_hash.hex().encode())


def _checksum(head: bytes, body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body, zlib.crc32(head))


def _read(path: str, most: int) -> bytes:
    try:
        with open_own(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""


def _path(db: str) -> str | None:
    """Return the file for the names of a ledger: by its file with all links resolved, or by its URL without secrets."""
    import hashlib

    folder = cache_folder()
    if folder is None:
        return None
    scheme, url, rest = db.partition("://")
    if not url or scheme.startswith("sqlite"):
        location = os.path.realpath(rest.partition("?")[0].removeprefix("/") if url else db)
    else:
        address, _, query = rest.partition("?")
        user, at, server = address.rpartition("@")
        safe_query = "&".join(part for part in query.split("&") if "pass" not in part.partition("=")[0].lower())
        location = f"{user.partition(':')[0]}{at}{server}?{safe_query}"
    return os.path.join(folder, "names", hashlib.sha256(location.encode(errors="surrogateescape")).hexdigest()[:16])
