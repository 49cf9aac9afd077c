"""Operating failures: the few things that stop a command although nothing in its input was wrong.

Bad data is not here: it is a `Rejection` (see `rejections`), returned as a value. Findings of `verify` are values too.
"""

CLOCK_AHEAD = (
    "the event would be recorded more than a day ahead of the clock that the database goes by: one of them is wrong; "
    "set it right"
)
NOT_STORED = (
    "the database did not store what was appended, so nothing is: a trigger, a rule or a table that is not this "
    "program's stands in the way; see: ratings verify"
)


class LedgerError(Exception):
    """A failure with a message for a person; `exit_code` is what the command line ends with."""

    exit_code = 2


class NotALedger(LedgerError):
    """The store answers, but holds no ledger that this program can use (exit code 2)."""


class StoreUnavailable(LedgerError):
    """The store is missing, unreachable, locked, read-only or full (exit code 3)."""

    exit_code = 3


class StoreDamaged(LedgerError):
    """The store's content cannot be read as it was written; `verify` tells where (exit code 1)."""

    exit_code = 1


class ClockBehind(LedgerError):
    """The last record is dated more than five minutes after the present time (exit code 1)."""

    exit_code = 1


class NotEmpty(LedgerError):
    """A restore needs a ledger without events (exit code 1)."""

    exit_code = 1


class RulesetUnusable(LedgerError):
    """A published ruleset names a rule that is not installed here, or that takes other parameters (exit code 2)."""


class AlreadyRunning(LedgerError):
    """Another rebuild holds the lock (exit code 1)."""

    exit_code = 1


class LockLost(LedgerError):
    """A rebuild lost its lock, so that another one may have begun; it promoted nothing (exit code 3)."""

    exit_code = 3


class NoEarlierGeneration(LedgerError):
    """There is no stored generation to go back to (exit code 1)."""

    exit_code = 1


class WorkerLost(LedgerError):
    """A process that did a part of the work is gone, perhaps for want of memory (exit code 3)."""

    exit_code = 3


class BadBackupList(LedgerError):
    """What stands in a folder of backups in place of their list is none (exit code 2)."""
