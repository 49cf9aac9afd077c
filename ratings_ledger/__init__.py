"""Use the ratings ledger from Python: query it with exact results, and record events.

    import ratings_ledger as rl

    with rl.open("ratings.db") as ledger:
        view = ledger.at(as_of="2024-12-31")
        for row in view.standings("club-catan-elo").rows:
            print(row.rank, row.player, float(row.points))

This package is the public interface; the modules behind it may change. Results are frozen, points are fractions, and
`model_dump()` returns the data that the command prints with `--format json`. Errors have a stable code (`.reason`) and
the exit code of the command (`.exit_code`).

The interface is loaded on first use, because commands import this package, too, and many do not need the interface.
"""

from importlib import import_module

# not imported from typing, which loads slowly; type checkers know the name
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ratings_ledger.library import *  # noqa: F403

_LIBRARY = "ratings_ledger.library"

# hidden from type checkers, which would otherwise accept any name
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a member of the interface by its public name. Raises `AttributeError`."""
        if name == "__all__" or not name.startswith("_"):
            library = import_module(_LIBRARY)
            if name == "__all__" or name in library.__all__:
                return getattr(library, name)
        raise AttributeError(f"module 'ratings_ledger' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names only."""
    names: list[str] = import_module(_LIBRARY).__all__
    return ["__all__", "__doc__", "__file__", "__name__", "__path__", *names]
