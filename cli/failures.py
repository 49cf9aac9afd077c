"""What a failure looks like: a reason for scripts, a message for people, and an exit code."""

import errno
from typing import NamedTuple

from ledger.errors import LedgerError
from ledger.rejections import Refused


class CommandFailure(NamedTuple):
    """Why something stopped; `reason` is one of `ledger.errors.REASONS` or the code of a refusal."""

    reason: str
    message: str
    exit_code: int


def failure_of(error: Exception) -> CommandFailure:
    """What an error means to the caller."""
    if isinstance(error, Refused):
        return CommandFailure(error.code, f"{error.code}: {error.message}", 2)
    if isinstance(error, LedgerError):
        return CommandFailure(error.reason, str(error), error.exit_code)
    if isinstance(error, OSError):
        reason = "no-space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "file"
        return CommandFailure(reason, f"{error.filename or 'input or output'}: {error.strerror or error}", 3)
    if isinstance(error, MemoryError):
        message = "there is not enough memory for this; nothing was changed by what was under way"
        return CommandFailure("out-of-memory", message, 3)
    cause = f"{_place(error)}: {type(error).__name__}: {error}"
    return CommandFailure(
        "bug", f"this is a bug in ratings-ledger, unless `ratings verify` finds the ledger damaged: {cause}", 1
    )


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
