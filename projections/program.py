"""The program itself, as far as results depend on it: it takes over only its own rows, and trusts its own workers."""

import hashlib
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

# of the code, tables and rulesets of both layers
SUFFIXES = (".py", ".toml", ".bin")
LIBRARIES = ("tzdata", "numpy", "numba", "llvmlite")


def _version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "none"


@cache
def program_digest() -> str:
    """Return a digest of what a result depends on besides the log: this program, Python and libraries."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {sys.byteorder}".encode())
    for library in LIBRARIES:
        digest.update(f"{library} {_version_of(library)}".encode())
    root = Path(__file__).parents[1]
    for layer in ("ledger", "projections"):
        for path in sorted((root / layer).rglob("*")):
            if path.suffix in SUFFIXES:
                digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()
