"""Describe failures as commands report them: a reason for scripts, a message for people, and an exit code."""

import errno
from collections.abc import Iterator
from typing import NamedTuple

from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.processes.memory import is_memory_limited
from ratings_ledger.ledger.rejections import Refused

# what Python's libraries for threads, locks and hashes report when memory runs out, by the type of their error
NO_MEMORY_MESSAGES: dict[type, tuple[str, ...]] = {
    RuntimeError: ("can't start new thread", "can't allocate lock"),
    ValueError: ("no reason supplied",),
}


class CommandFailure(NamedTuple):
    """The failure of a command; `reason` is one of `ledger.errors.REASONS` or the code of a rejection."""

    reason: str
    message: str
    exit_code: int


def describe_failure(error: Exception) -> CommandFailure:
    """Return the reason, message and exit code for an error."""
    if isinstance(error, Refused):
        return CommandFailure(error.code, f"{error.code}: {error.message}", 2)
    if isinstance(error, LedgerError):
        return CommandFailure(error.reason, str(error), error.exit_code)
    if is_out_of_memory(error):
        message = str(error) if isinstance(error, MemoryError) and error.args else "there is not enough memory"
        # this program's own messages name a remedy; those of subclasses, such as NumPy's, do not
        has_remedy = type(error) is MemoryError and error.args
        remedy = "" if has_remedy else "; free some memory and run the same command again"
        return CommandFailure("out-of-memory", f"{message}; the interrupted operation changed nothing{remedy}", 3)
    if isinstance(error, OSError):
        message = f"{error.filename or 'input or output'}: {error.strerror or error}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return CommandFailure("no-space", f"{message}; free some space and run the same command again", 3)
        return CommandFailure("file", message, 3)
    if package_message := _describe_damaged_package(error):
        return CommandFailure("file", package_message, 3)
    cause = f"{_describe_location(error)}: {type(error).__name__}: {error}"
    remedy = "run `ratings verify`; if it finds no damage, this is a bug in ratings-ledger, so please report it"
    return CommandFailure("bug", f"{cause}; {remedy}", 1)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Tell whether an error reports a lack of memory: for an object, a process, a thread, or a library."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError):
        return "failed to map segment" in str(error) or "cannot allocate memory" in str(error)
    if isinstance(error, SystemError):
        # the interpreter raises it if memory does not suffice to raise another error; a faulty library may, too
        return is_memory_limited()
    return isinstance(error, MemoryError) or any(text in str(error) for text in NO_MEMORY_MESSAGES.get(type(error), ()))


def _describe_damaged_package(error: Exception) -> str | None:
    """Return a message about the damaged file of an installed package if it caused the error, or None.

    Python reads the entry points of all packages at once, so one damaged file stops every library that reads them, such
    as pydantic when it loads.
    """
    if not any(name.startswith("importlib.metadata") for name, _ in _iterate_frames(error)):
        return None
    from importlib.metadata import distributions

    for package in distributions():
        try:
            _ = package.entry_points
        except Exception as problem:
            file = f"{getattr(package, '_path', package.locate_file(''))}/entry_points.txt"
            message = f"{file}: this file of an installed package is damaged ({type(problem).__name__}: {problem})"
            return f"{message}; install the package again, or uninstall it"
    return None


def _describe_location(error: Exception) -> str:
    *_, (name, line) = ("?", 0), *_iterate_frames(error)
    return f"{name}:{line}" if line else name


def _iterate_frames(error: Exception) -> Iterator[tuple[str, int]]:
    """Yield the module and line of each frame of an error's traceback, the innermost last."""
    trace = error.__traceback__
    while trace is not None:
        yield str(trace.tb_frame.f_globals.get("__name__")), trace.tb_lineno
        trace = trace.tb_next
