"""Save the names of a ledger in a file, from which a shell completes them quickly.

    ~/.cache/ratings-ledger/names/LOCATIONHASH

    1 CHAINHASH CRC-32

    players
    anna
    María José

    ladders
    ...

Commands that decode the log write the file. There is one file for each location of a ledger, as in the cache of
columns. The chain hash tells whether the file is up to date. A damaged file counts as empty; it is written again at
the latest when the log has grown.
"""

from __future__ import annotations

import os
import zlib

from ratings_ledger.ledger.own_files import find_cache_folder, is_own_folder, open_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT_VERSION = b"1"
NAMES_MAX, CHARACTERS_MAX = 20_000, 200  # per kind (of more names, the last are kept), and per name
BYTES_MAX, HEAD_BYTES_MAX = 16_000_000, 200
# control characters and line ends, which no name in an event contains
CONTROL_CHARACTERS = {
    *map(chr, [*range(32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
}


def find_default_ledger() -> str:
    """Return the ledger to use without --db."""
    return os.environ.get("RATINGS_DB") or "sqlite:///ratings.db"


def is_up_to_date(db: str, chain_hash: bytes) -> bool:
    """Tell whether the file of a ledger has this chain hash, or no file can be written."""
    path = _find_path(db)
    return path is None or _read(path, HEAD_BYTES_MAX).startswith(_format_head(chain_hash))


def write_names(db: str, chain_hash: bytes, names: Mapping[str, Iterable[str]]) -> None:
    """Write the names by kind to the file of a ledger. Raises `OSError`."""
    path = _find_path(db)
    if path is None:
        return
    sections = [
        "\n".join([kind, *[name for name in names_of_kind if _is_name(name)][-NAMES_MAX:]])
        for kind, names_of_kind in names.items()
    ]
    body = "\n\n".join(sections).encode()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part_path = f"{path}.{os.getpid()}.part"
    if not is_own_folder(os.path.dirname(path)) or len(body) > BYTES_MAX:
        return
    try:
        with open_own(part_path, "wb") as file:
            file.write(b"%s%s\n\n%s" % (head := _format_head(chain_hash), _compute_checksum(head, body), body))
        os.replace(part_path, path)
    except BaseException:
        if os.path.lexists(part_path):
            os.unlink(part_path)
        raise


def read_names(db: str) -> dict[str, list[str]]:
    """Return the names of a ledger by kind; without a valid file, return an empty dict."""
    head, _, body = _read(_find_path(db) or "", BYTES_MAX + HEAD_BYTES_MAX).partition(b"\n\n")
    if not head.startswith(FORMAT_VERSION + b" ") or head[-8:] != _compute_checksum(head[:-8], body):
        return {}
    names_by_kind = {}
    for section in body.decode(errors="replace").split("\n\n"):
        kind, *names = section.split("\n")
        names_by_kind[kind] = [name for name in names if _is_name(name)]
    return names_by_kind


def _is_name(name: str) -> bool:
    return 0 < len(name) <= CHARACTERS_MAX and (name.isprintable() or CONTROL_CHARACTERS.isdisjoint(name))


def _format_head(chain_hash: bytes) -> bytes:
    """Return the first line of the file, without its CRC-32."""
    return b"%s %s " % (FORMAT_VERSION, chain_hash.hex().encode())


def _compute_checksum(head: bytes, body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body, zlib.crc32(head))


def _read(path: str, bytes_max: int) -> bytes:
    try:
        with open_own(path, "rb") as file:
            return file.read(bytes_max)
    except OSError:
        return b""


def _find_path(db: str) -> str | None:
    """Return the path of the file for a ledger, named by a hash of the resolved path or the URL without secrets.

    Return None if there is no folder for caches.
    """
    import hashlib

    folder = find_cache_folder()
    if folder is None:
        return None
    scheme, separator, address = db.partition("://")
    if not separator or scheme.startswith("sqlite"):
        location = os.path.realpath(address.partition("?")[0].removeprefix("/") if separator else db)
    else:
        server_address, _, query = address.partition("?")
        user, at_sign, server = server_address.rpartition("@")
        parameters = query.split("&")
        safe_query = "&".join(entry for entry in parameters if "pass" not in entry.partition("=")[0].lower())
        location = f"{user.partition(':')[0]}{at_sign}{server}?{safe_query}"
    return os.path.join(folder, "names", hashlib.sha256(location.encode(errors="surrogateescape")).hexdigest()[:16])
