"""The ratings ledger for programs: the questions that the command line asks, with exact results.

    import ratings_ledger as rl

    with rl.open("ratings.db") as ledger:
        view = ledger.at(as_of="2024-12-31")
        for row in view.standings("club-catan-elo").rows:
            print(row.rank, row.player, float(row.points))

This package is the public interface; what is behind it may change. A result is frozen, its points are fractions, and
`model_dump()` gives what the command prints with `--format json`. Failures are a few exceptions, each with `.reason`, a
word that is never renamed, and `.exit_code`, that of the command.

The interface is loaded when one of its names is first used: commands come through this package too, and many need none.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ratings_ledger.library import *  # noqa: F403

_LIBRARY = "ratings_ledger.library"

# a type checker knows the names from the library above; with this function, it would take any name for one
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a public name of the interface. Raises `AttributeError`."""
        if name == "__all__" or not name.startswith("_"):
            library = import_module(_LIBRARY)
            if name == "__all__" or name in library.__all__:
                return getattr(library, name)
        raise AttributeError(f"module 'ratings_ledger' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, and nothing that they are made of."""
    names: list[str] = import_module(_LIBRARY).__all__
    return ["__all__", "__doc__", "__file__", "__name__", "__path__", *names]
