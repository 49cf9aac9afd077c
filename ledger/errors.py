"""Errors that stop a command, each with a reason for scripts and an exit code.

Bad input of an import and damage that `verify` finds do not stop a command: they are reported as values, a `Rejection`
or a `Finding` each.
"""

import copyreg
from typing import Any

CLOCK_AHEAD = (
    "the event would be recorded more than a day ahead of the database's clock; correct the wrong clock, then run the "
    "command again"
)
NOT_STORED = (
    "the database did not store the appended events, so nothing was recorded: a foreign trigger, rule or table in the "
    "database interferes; run: ratings verify"
)


# the reasons why a command stopped, as reported in JSON, with the exit code and a description; a reason is never
# renamed or reused
REASONS = {
    "usage": (2, "the command, its options or its arguments are wrong"),
    "not-a-ledger": (
        2,
        "`--db` does not name a ledger: the URL is bad, the file is not a database, or the encoding is unsupported",
    ),
    "old-schema": (2, "an older program made the ledger; `upgrade` brings it to the newest schema"),
    "new-schema": (2, "a newer program made the ledger"),
    "ruleset-unusable": (
        2,
        "a published ruleset names a rule that is not installed here, or has parameters that its rule does not accept",
    ),
    "bad-backup-list": (2, "the list of backups in a folder is not valid"),
    "no-ledger": (3, "no ledger exists at the location"),
    "unreachable": (3, "the store cannot be reached"),
    "busy": (3, "the store was locked for longer than the program waits"),
    "no-space": (3, "the disk of the ledger or of an output file is full"),
    "server-limit": (3, "the server has reached one of its limits, such as connections or memory"),
    "read-only": (3, "the store accepts no changes"),
    "no-right": (3, "the user or the account lacks a right on the store"),
    "unsafe-settings": (3, "the server's settings can lose acknowledged commits"),
    "clock-ahead": (3, "the event would be recorded more than a day ahead of the database's clock"),
    "lock-lost": (3, "a rebuild lost its lock, so it promoted nothing"),
    "worker-lost": (3, "a process that did part of the work ended unexpectedly"),
    "out-of-memory": (3, "there is not enough memory"),
    "file": (3, "a file or folder cannot be read, written or trusted"),
    "already-running": (4, "another run of the same job is in progress"),
    "unknown": (1, "no such player, game or published list is recorded; the rejection code says which"),
    "ruleset-refused": (1, "the candidate ruleset is invalid; the rejection code says why"),
    "rule-failed": (1, "the rule of a ladder failed, so it cannot be replayed"),
    "cannot-predict": (1, "the rule of the ladder gives no probabilities, or cannot score this kind of game"),
    "damaged": (1, "stored data is corrupt; `ratings verify` locates it"),
    "clock-behind": (1, "the last event is dated more than five minutes ahead of this machine's clock"),
    "not-empty": (1, "a restore needs a ledger without events"),
    "ledger-exists": (1, "a ledger already exists at the target"),
    "no-earlier-generation": (1, "there are no earlier standings to go back to"),
    "bug": (1, "an internal error, unless the ledger is damaged"),
    "interrupted": (130, "Ctrl-C"),
}


class LedgerError(Exception):
    """The base class of all errors; its text is a message for the user.

    `reason` is a key of `REASONS`, or the more precise code of a rejection; `exit_code` is the command's exit code.
    """

    exit_code = 2
    reason = "not-a-ledger"

    def __init_subclass__(cls) -> None:
        cls.exit_code = REASONS[cls.reason][0]

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        # a worker process sends errors to its parent, so pickling must not depend on the constructor's parameters
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class NotALedger(LedgerError):
    """The store answers, but holds no ledger that this program can use (exit code 2)."""


class OldSchema(NotALedger):
    """The ledger has the schema of an older program; upgrade the ledger with `ratings upgrade` (exit code 2)."""

    reason = "old-schema"


class StoreUnavailable(LedgerError):
    """The store is missing, unreachable, locked, read-only or full (exit code 3)."""

    reason = "unreachable"


class NoLedger(StoreUnavailable, NotALedger):
    """No ledger exists at the location, though a database may exist there (exit code 3)."""

    reason = "no-ledger"


class CannotPredict(LedgerError):
    """The rule of a ladder gives no probabilities, or cannot score this kind of game (exit code 1)."""

    reason = "cannot-predict"


class StoreDamaged(LedgerError):
    """Stored data is corrupt; `ratings verify` locates it (exit code 1)."""

    reason = "damaged"


class ClockBehind(LedgerError):
    """The last event is dated more than five minutes ahead of this machine's clock (exit code 1)."""

    reason = "clock-behind"


class LedgerExists(LedgerError):
    """A ledger already exists where a new one would be created (exit code 1)."""

    reason = "ledger-exists"


class NotEmpty(LedgerError):
    """A restore needs a ledger without events (exit code 1)."""

    reason = "not-empty"


class RulesetUnusable(LedgerError):
    """A published ruleset names a rule that is not installed, or has parameters that its rule refuses (exit code 2)."""

    reason = "ruleset-unusable"


class BadArgument(LedgerError):
    """An argument is invalid, or a closed object was used (exit code 2). `argument` is the argument's name, or None."""

    reason = "usage"

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class Unknown(LedgerError):
    """No such player, game or published list is recorded (exit code 1).

    `reason` is the code of a rejection, such as player-unknown, or `unknown` if the code is None. As for `Refused`, the
    code is the first argument.
    """

    reason = "unknown"

    def __init__(self, code: str | None, message: str) -> None:
        super().__init__(message, code)


class RuleFailed(LedgerError):
    """A rule failed, so a ladder cannot be replayed (exit code 1).

    `ladder` is the name of the ladder; the message also names the game and the error.
    """

    reason = "rule-failed"

    def __init__(self, message: str, ladder: str) -> None:
        super().__init__(message)
        self.ladder = ladder


class RulesetRefused(LedgerError):
    """A candidate ruleset is invalid, so it cannot be tried (exit code 1). `reason` is the code of a rejection."""

    reason = "ruleset-refused"


class AlreadyRunning(LedgerError):
    """Another run of the same job is in progress (exit code 4)."""

    reason = "already-running"


class LockLost(LedgerError):
    """A rebuild lost its lock and promoted nothing; another rebuild may have begun (exit code 3)."""

    reason = "lock-lost"


class NoEarlierGeneration(LedgerError):
    """There is no stored generation to go back to (exit code 1)."""

    reason = "no-earlier-generation"


class WorkerLost(LedgerError):
    """A process that did part of the work ended unexpectedly, perhaps because memory ran out (exit code 3)."""

    reason = "worker-lost"


class BadBackupList(LedgerError):
    """The list of backups in a folder is not valid (exit code 2)."""

    reason = "bad-backup-list"
