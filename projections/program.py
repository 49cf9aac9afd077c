"""Identify the program by a digest of everything, apart from the log, that determines results.

Stored rows and workers are trusted only if they have the same digest.
"""

import hashlib
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

# The suffixes of code, rulesets and tables.
SUFFIXES = (".py", ".toml", ".bin")
LIBRARIES = ("tzdata", "numpy", "numba", "llvmlite")


def _find_version(library: str) -> str:
    """Return the installed version of a library, or "none"."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "none"


@cache
def program_digest() -> str:
    """Return a digest of this program, of Python, and of the libraries that determine results."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {sys.byteorder}".encode())
    for library in LIBRARIES:
        digest.update(f"{library} {_find_version(library)}".encode())
    root = Path(__file__).parents[1]
    for layer in ("ledger", "projections"):
        for path in sorted((root / layer).rglob("*")):
            if path.suffix in SUFFIXES:
                digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()
