"""The file of names: what a ledger's names are, for a shell that waits for them.

    ~/.cache/ratings-ledger/names/PLACE

    1 CHAINHASH CRC-32

    players
    anna
    María José

    ladders
    ...

A command that decodes the log keeps the file, so it belongs to a place, as the cache of columns does. The chain hash
tells whether it is up to date. Whatever is wrong with it, there are no names then, and the next command makes it anew.
"""

from __future__ import annotations

import os
import zlib

from ratings_ledger.ledger.own_files import cache_folder, is_own_folder, open_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORM = b"1"
NAMES_MAX, CHARACTERS_MAX = 20_000, 200  # of a kind the last names; of a name
BYTES_MAX, HEAD_BYTES_MAX = 16_000_000, 200
# what acts on a terminal, or ends a line: no event has such names
UNSEEN = {*map(chr, [*range(32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])}


def named_ledger() -> str:
    """Return the ledger where none is named."""
    return os.environ.get("RATINGS_DB") or "sqlite:///ratings.db"


def are_kept(db: str, chain_hash: bytes) -> bool:
    """Tell whether the names of a ledger with this history are in its file, or none can be kept."""
    path = _path(db)
    return path is None or _read(path, HEAD_BYTES_MAX).startswith(_head(chain_hash))


def keep_names(db: str, chain_hash: bytes, names: Mapping[str, Iterable[str]]) -> None:
    """Write the file of a ledger, given its names by kind. Raises `OSError`."""
    path = _path(db)
    if path is None:
        return
    sections = [
        "\n".join([kind, *[name for name in every if _is_name(name)][-NAMES_MAX:]]) for kind, every in names.items()
    ]
    body = "\n\n".join(sections).encode()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    beside = f"{path}.{os.getpid()}.part"
    if not is_own_folder(os.path.dirname(path)) or len(body) > BYTES_MAX:
        return
    try:
        with open_own(beside, "wb") as file:
            file.write(b"%s%s\n\n%s" % (head := _head(chain_hash), _crc(head, body), body))
        os.replace(beside, path)
    except BaseException:
        if os.path.lexists(beside):
            os.unlink(beside)
        raise


def kept_names(db: str) -> dict[str, list[str]]:
    """Return the names of a ledger by kind, none if they are not known."""
    head, _, body = _read(_path(db) or "", BYTES_MAX + HEAD_BYTES_MAX).partition(b"\n\n")
    if not head.startswith(FORM + b" ") or head[-8:] != _crc(head[:-8], body):
        return {}
    found = {}
    for section in body.decode(errors="replace").split("\n\n"):
        kind, *names = section.split("\n")
        found[kind] = [name for name in names if _is_name(name)]
    return found


def beginning_so(words: Iterable[str], start: str) -> list[str]:
    """Return the words that begin so, or without any, those that begin so in other capitals.

    >>> beginning_so(["mira", "Max", "ben"], "m"), beginning_so(["Max", "ben"], "m")
    (['mira'], ['Max'])
    """
    folded, length = start.casefold(), len(start)
    every = [*words]
    exact = [word for word in every if word.startswith(start)]
    return exact or [word for word in every if word[:length].casefold() == folded]


def _is_name(name: str) -> bool:
    return 0 < len(name) <= CHARACTERS_MAX and (name.isprintable() or UNSEEN.isdisjoint(name))


def _head(chain_hash: bytes) -> bytes:
    """Return what a file begins with, less its CRC-32."""
    return b"%s %s " % (FORM, chain_hash.hex().encode())


def _crc(head: bytes, body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body, zlib.crc32(head))


def _read(path: str, most: int) -> bytes:
    try:
        with open_own(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""


def _path(db: str) -> str | None:
    """Return where the names of the ledger are that somebody calls so: by its file with all links resolved, or by its
    URL without what is secret in it.
    """
    import hashlib

    folder = cache_folder()
    if folder is None:
        return None
    scheme, url, rest = db.partition("://")
    if not url or scheme.startswith("sqlite"):
        place = os.path.realpath(rest.partition("?")[0].removeprefix("/") if url else db)
    else:
        address, _, query = rest.partition("?")
        user, at, server = address.rpartition("@")
        said = "&".join(part for part in query.split("&") if "pass" not in part.partition("=")[0].lower())
        place = f"{user.partition(':')[0]}{at}{server}?{said}"
    return os.path.join(folder, "names", hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:16])
