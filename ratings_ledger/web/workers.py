"""Compute answers with third-party rules in a separate process, which can be killed if a rule never returns.

The process writes the names of the rules that it is calling to shared memory. Rules that use up their time, or that end
the process, are disabled.
"""

import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import count
from mmap import mmap
from typing import Any

from ratings_ledger.ledger.errors import WorkerLost
from ratings_ledger.ledger.processes.forking import CLOCK_LIMIT_FACTOR as POOL_CLOCK_LIMIT_FACTOR
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded, open_pool
from ratings_ledger.projections.rulesets import rule_errors
from ratings_ledger.projections.rulesets.registry import give_up_rule

# CPU seconds that a third-party rule may use for a page; the server times out after ten
PAGE_RULE_SECONDS = 8
NOTE_BYTES = 4_096
ONE_SECOND_LIMIT = 1 / POOL_CLOCK_LIMIT_FACTOR  # with this CPU limit, the pool waits one second
ALLOW_MORE = "`ratings serve --rule-seconds N` allows more time"
UNIT_SECONDS_MAX = 600  # limit for any unit of work
WAIT_FACTOR = 5  # a call may last this many times its CPU limit, because a sleeping rule uses no CPU time


class RulesLost(Exception):
    """A process ended while it called third-party rules; `reasons` has a reason for each rule."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(", ".join(reasons))
        self.reasons = dict(reasons)


class _TookTooLong(TimeLimitExceeded):
    """A call of a rule or a unit of work took too long; the message says which, with the limit."""


class Worker:
    """A process that computes one unit of work after another, without the disabled rules.

    `seconds` is the CPU time that third-party rules may use per unit of work.
    """

    def __init__(self, work: Callable[..., Any], seconds: float, disabled: Mapping[str, str]) -> None:
        self.disabled, self._seconds, self._note = dict(disabled), seconds, mmap(-1, NOTE_BYTES)
        self._exit_stack = ExitStack()
        limited = _LimitedWork(work, seconds, self.disabled, self._note)
        pool = open_pool(1, limited, closes_files=True, forwarded=())
        self._submit, self._watch = self._exit_stack.enter_context(pool)

    def end(self) -> None:
        """Kill the process."""
        self._exit_stack.close()

    def call(self, *arguments: Any) -> Any:
        """Return the result of a unit of work.

        Raises `RulesLost`, or `WorkerLost` if no rule was called; the process has then ended.
        """
        try:
            with ExitStack() as on_error:
                on_error.push(self._exit_stack)
                (unit,) = self._wait(self._submit(*arguments))
                result = unit.result()
                on_error.pop_all()
        except (TimeLimitExceeded, WorkerLost) as error:
            names = _read_note(self._note)[1]
            if not names:
                raise WorkerLost(str(error)) from None
            reason = str(error) if isinstance(error, _TookTooLong) else f"the rule ended its process: {error}"
            if f"signal {signal.SIGPROF:d};" in str(error):
                reason = f"the rule gave no result in {self._seconds:g} s of processor time; {ALLOW_MORE}"
            raise RulesLost({name: f"{name}: {reason}" for name in names}) from None
        return result

    def _wait(self, unit: Any) -> Any:
        """Wait until a unit is done.

        Raises `WorkerLost`, and `_TookTooLong` if a single call of a rule or the whole unit lasts too long.
        """
        call, waited = _read_note(self._note), 0
        for seconds in count(1):
            try:
                return self._watch({unit}, seconds=ONE_SECOND_LIMIT)
            except TimeLimitExceeded:
                latest = _read_note(self._note)
                waited = waited + 1 if latest == call and latest[1] else 0
                call = latest
                if waited > self._seconds * WAIT_FACTOR:
                    message = f"the rule waited for more than {self._seconds * WAIT_FACTOR:g} s; {ALLOW_MORE}"
                    raise _TookTooLong(message) from None
                if seconds > UNIT_SECONDS_MAX:
                    raise _TookTooLong(f"the page took more than {UNIT_SECONDS_MAX} s") from None
        raise AssertionError


class _LimitedWork(rule_errors.RuleWatch):
    """Work in a process that the system kills, even within compiled code, when rules have used up their time."""

    def __init__(self, work: Callable[..., Any], seconds: float, disabled: Mapping[str, str], note: mmap) -> None:
        self._work, self._seconds, self._disabled, self._note = work, seconds, disabled, note
        self._seconds_left, self._calls = seconds, 0

    def __call__(self, *arguments: Any) -> Any:
        if rule_errors.watch is not self:
            rule_errors.watch = self
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            for name, reason in self._disabled.items():
                give_up_rule(name, reason)
        self._seconds_left = self._seconds
        return self._work(*arguments)

    def begin(self, names: tuple[str, ...]) -> None:
        """Note the rules that are being called, and start their timer."""
        self._calls += 1
        self._write_note(names)
        signal.setitimer(signal.ITIMER_PROF, self._seconds_left)

    def end(self, names: tuple[str, ...]) -> None:
        """Note the rules that are still being called; without such rules, stop the timer."""
        self._seconds_left = signal.setitimer(signal.ITIMER_PROF, 0)[0] or self._seconds_left
        self._write_note(names)
        if names:
            signal.setitimer(signal.ITIMER_PROF, self._seconds_left)

    def _write_note(self, names: tuple[str, ...]) -> None:
        self._note[:NOTE_BYTES] = " ".join((str(self._calls), *names)).encode()[:NOTE_BYTES].ljust(NOTE_BYTES, b"\0")


def _read_note(note: mmap) -> tuple[str, tuple[str, ...]]:
    """Return the number of the last call, and the rules that are being called."""
    number, *names = note[:NOTE_BYTES].rstrip(b"\0").decode("utf-8", "replace").split(" ")
    return number, tuple(names)
