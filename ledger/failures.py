"""What a failure looks like: a reason for scripts, a message for people, and an exit code."""

import errno
from collections.abc import Iterator
from typing import NamedTuple

from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.processes.memory import is_memory_limited
from ratings_ledger.ledger.rejections import Refused

# what the libraries say that start threads, make locks and compute hashes
NO_MEMORY: dict[type | None, tuple[str, ...]] = {
    RuntimeError: ("can't start new thread", "can't allocate lock"),
    ValueError: ("no reason supplied",),
}


class CommandFailure(NamedTuple):
    """Why something stopped; `reason` is one of `ledger.errors.REASONS` or the code of a refusal."""

    reason: str
    message: str
    exit_code: int


def describe_failure(error: Exception) -> CommandFailure:
    """Return what an error means to the caller."""
    if isinstance(error, Refused):
        return CommandFailure(error.code, f"{error.code}: {error.message}", 2)
    if isinstance(error, LedgerError):
        return CommandFailure(error.reason, str(error), error.exit_code)
    if is_out_of_memory(error):
        what = str(error) if isinstance(error, MemoryError) and error.args else "there is not enough memory for this"
        return CommandFailure("out-of-memory", f"{what}; nothing was changed by what was under way", 3)
    if isinstance(error, OSError):
        told = f"{error.filename or 'input or output'}: {error.strerror or error}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return CommandFailure("no-space", f"{told}; free some space and run the same command again", 3)
        return CommandFailure("file", told, 3)
    if damaged := _damaged_package(error):
        return CommandFailure("file", damaged, 3)
    cause = f"{_place(error)}: {type(error).__name__}: {error}"
    return CommandFailure(
        "bug", f"this is a bug in ratings-ledger, unless `ratings verify` finds the ledger damaged: {cause}", 1
    )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Tell whether an error says that there is no memory: for an object, a process, a thread, or a library."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError):
        return "failed to map segment" in str(error) or "cannot allocate memory" in str(error)
    if isinstance(error, SystemError):
        # what the interpreter says for want of memory for an error, and what a faulty library comes to
        return is_memory_limited()
    return isinstance(error, MemoryError) or any(said in str(error) for said in NO_MEMORY.get(type(error), ()))


def _damaged_package(error: Exception) -> str | None:
    """Return which file of an installed package is damaged, if an error came from looking through what packages
    register.

    Python reads that of all packages at once, so a single one stops whatever asks, such as pydantic when it is loaded.
    """
    if not any(name.startswith("importlib.metadata") for name, _ in _places(error)):
        return None
    from importlib.metadata import distributions

    for package in distributions():
        try:
            _ = package.entry_points
        except Exception as why:
            file = f"{getattr(package, '_path', package.locate_file(''))}/entry_points.txt"
            told = f"{file}: this file of an installed package is damaged ({type(why).__name__}: {why})"
            return f"{told}; install the package again, or uninstall it"
    return None


def _place(error: Exception) -> str:
    *_, (name, line) = ("?", 0), *_places(error)
    return f"{name}:{line}" if line else name


def _places(error: Exception) -> Iterator[tuple[str, int]]:
    """Yield the modules and lines on the way to an error, the innermost last."""
    trace = error.__traceback__
    while trace is not None:
        yield str(trace.tb_frame.f_globals.get("__name__")), trace.tb_lineno
        trace = trace.tb_next
