"""A process that works out answers where rules of packages are called, so that one that never ends can be killed.

The process says in shared memory which rules it calls. Those of them that use up their time, or end the process, are
given up.
"""

import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import count
from mmap import mmap
from typing import Any

from ratings_ledger.ledger.errors import WorkerLost
from ratings_ledger.ledger.processes.forking import WAITING_TIMES as POOL_WAITING_TIMES
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded, open_pool
from ratings_ledger.projections.rulesets import rule_errors
from ratings_ledger.projections.rulesets.registry import give_up_rule

NOTE_BYTES = 4_096
SECOND = 1 / POOL_WAITING_TIMES  # of processor time, for which the pool waits a second
MORE = "`ratings serve --rule-seconds N` allows it more"
LONGEST_SECONDS = 600  # for a piece of work, whatever it does
WAITING_TIMES = 5  # a rule that waits uses no processor time: a single call may last this many times the limit


class RulesLost(Exception):
    """A process that did not come back from calls to rules of packages; `reasons` has why, by the rule."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(", ".join(reasons))
        self.reasons = dict(reasons)


class Worker:
    """A process that does one piece of work after another, with rules that it never calls.

    `seconds` is how much processor time rules of packages may take for a piece of work.
    """

    def __init__(self, work: Callable[..., Any], seconds: float, given_up: Mapping[str, str]) -> None:
        self.given_up, self._seconds, self._note = dict(given_up), seconds, mmap(-1, NOTE_BYTES)
        self._ending = ExitStack()
        limited = _Limited(work, seconds, self.given_up, self._note)
        self._submitted, self._watched = self._ending.enter_context(open_pool(1, limited, closes_files=True, passed=()))

    def end(self) -> None:
        """Kill the process."""
        self._ending.close()

    def do(self, *arguments: Any) -> Any:
        """Return what the work gives. Raises `RulesLost`, or `WorkerLost` if no rule is to blame; it has then ended."""
        try:
            with ExitStack() as failing:
                failing.push(self._ending)
                (unit,) = self._wait(self._submitted(*arguments))
                result = unit.result()
                failing.pop_all()
        except (TimeLimitExceeded, WorkerLost) as error:
            names = _read(self._note)[1]
            if not names:
                raise WorkerLost(str(error)) from None
            why = f"the rule ended its process: {error}"
            if isinstance(error, TimeLimitExceeded):
                why = f"the rule waited for more than {self._seconds * WAITING_TIMES:g} s; {MORE}"
            elif f"signal {signal.SIGPROF:d};" in str(error):
                why = f"the rule gave no result in {self._seconds:g} s of processor time; {MORE}"
            raise RulesLost({name: f"{name}: {why}" for name in names}) from None
        return result

    def _wait(self, unit: Any) -> Any:
        """Wait until a unit is done. Raises `TimeLimitExceeded` if a single call of a rule lasts too long."""
        call, waited = _read(self._note), 0
        for seconds in count(1):
            try:
                return self._watched({unit}, seconds=SECOND)
            except TimeLimitExceeded:
                latest = _read(self._note)
                waited = waited + 1 if latest == call and latest[1] else 0
                call = latest
                if waited > self._seconds * WAITING_TIMES or seconds > LONGEST_SECONDS:
                    raise
        raise AssertionError


class _Limited(rule_errors.RuleWatch):
    """Work in its own process, which the system kills, even within compiled code, once rules took too much time."""

    def __init__(self, work: Callable[..., Any], seconds: float, given_up: Mapping[str, str], note: mmap) -> None:
        self._work, self._seconds, self._given_up, self._note = work, seconds, given_up, note
        self._rest, self._calls = seconds, 0

    def __call__(self, *arguments: Any) -> Any:
        if rule_errors.watch is not self:
            rule_errors.watch = self
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            for name, reason in self._given_up.items():
                give_up_rule(name, reason)
        self._rest = self._seconds
        return self._work(*arguments)

    def begin(self, names: tuple[str, ...]) -> None:
        """Say which rules are called, and count the time."""
        self._calls += 1
        self._write(names)
        signal.setitimer(signal.ITIMER_PROF, self._rest)

    def end(self, names: tuple[str, ...]) -> None:
        """Say which rules are called now."""
        self._rest = signal.setitimer(signal.ITIMER_PROF, 0)[0] or self._rest
        self._write(names)
        if names:
            signal.setitimer(signal.ITIMER_PROF, self._rest)

    def _write(self, names: tuple[str, ...]) -> None:
        self._note[:NOTE_BYTES] = " ".join((str(self._calls), *names)).encode()[:NOTE_BYTES].ljust(NOTE_BYTES, b"\0")


def _read(note: mmap) -> tuple[str, tuple[str, ...]]:
    """Return the number of the last call, and the rules that are called."""
    number, *names = note[:NOTE_BYTES].rstrip(b"\0").decode("utf-8", "replace").split(" ")
    return number, tuple(names)
