"""Where caches are: files that may be deleted at any time."""

from __future__ import annotations

import os


def cache_folder() -> str | None:
    """Return the folder of all caches; None if the account has no home."""
    if home := os.environ.get("XDG_CACHE_HOME"):
        return os.path.join(home, "ratings-ledger")
    own = os.path.expanduser("~")
    return None if own == "~" else os.path.join(own, ".cache", "ratings-ledger")
