"""Runs of the jobs that look after a ledger, such as `rebuild`, `verify` and `backup`: each leaves a row.

    with running(ledger, "backup", clock) as run:
        ...
        run.position = 50_577            # how far it got
        run.fail("two of 14 old backups could not be deleted")    # if it fails without an error

The row is there from the start; a run that is killed leaves it without an end, and whoever looks next says so. Runs are
operational state, not part of the log. A user who may not write them, such as a role that only reads or the user of a
read-only file, leaves them in the account's state folder:

    ~/.local/state/ratings-ledger/LEDGER-ID-DATABASE/verify-4177382.json

A run that cannot reach its ledger is left there, too, under `unreached-DATABASE`, and counts as the last of its kind
until the next run that reaches the ledger stores it there.

A run's number gives the order in which runs began, since a clock may be wrong.
"""

import getpass
import hashlib
import json
import logging
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from ratings_ledger.ledger import clock as own_clock
from ratings_ledger.ledger.errors import AlreadyRunning, LedgerError
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.failures import describe_failure
from ratings_ledger.ledger.own_files import is_own_folder, open_own
from ratings_ledger.ledger.processes.identity import is_process_running, name_this_process
from ratings_ledger.ledger.store.dialect import dialect_of
from ratings_ledger.ledger.store.log import ledger_id
from ratings_ledger.ledger.store.opening import Ledger, busy_seconds
from ratings_ledger.ledger.store.schema import job_runs

# how many of each kind are kept, besides the last that succeeded and the last that failed
KEPT_RUNS = 50
# a number is this bit, then a counter, then a random part for those that begin together; earlier programs gave random
# numbers without the bit
ORDERED, COUNTER_BITS, RANDOM_BITS = 1 << 62, 40, 22
# of a run that could not reach its ledger: it comes last until it gets a number there
UNREACHED = ORDERED | 1 << 61
# the values of `result`: `failed` and `lost` are failures, `running` is never stored
DONE, FAILED, LOST, RUNNING = "done", "failed", "lost", "running"
NO_EXIT_STATUS = "no exit status was recorded: the process was killed or the machine crashed"
# how long a job waits to record that it begins, and how it ended; after Ctrl-C nobody wants to wait
BEGIN_SECONDS, END_SECONDS, INTERRUPTED_SECONDS = 2.0, 30.0, 0.3
TEXT_MAX, READ_MAX, FILE_BYTES_MAX = 4_000, 2_000, 1 << 20
_KIND = re.compile(r"[a-z][a-z-]{0,30}", re.ASCII)
_FILE = re.compile(r"[a-z][a-z-]{0,30}-\d{1,19}\.json", re.ASCII)

logger = logging.getLogger(__name__)


class Run(NamedTuple):
    """A run as it is stored; instants in microseconds. `details` depend on the kind.

    `result` is `done`, `failed`, `lost` (no exit status was recorded, so its end is unknown) or `running`.
    """

    run: int
    kind: str
    started_at: int
    finished_at: int | None
    result: str | None
    message: str | None
    position: int | None
    run_by: str
    process: str
    details: dict[str, Any]

    @property
    def has_failed(self) -> bool:
        """Tell whether it did not end well."""
        return self.result in (FAILED, LOST)

    @property
    def order(self) -> tuple[int, int, int]:
        """Return the place of a run among all: by its number, and before these by date if an earlier program numbered
        it.
        """
        return self.run if self.run >= ORDERED else 0, self.started_at, self.run

    @property
    def dated(self) -> int:
        """Return the latest instant that it names."""
        return max(self.started_at, self.finished_at or 0)


@dataclass
class RunOutcome:
    """The outcome of a run so far, filled in by the job; with `no_trace` it is as if there had been no run."""

    position: int | None = None
    message: str = ""
    failed: bool = False
    no_trace: bool = False
    details: dict[str, Any] = field(default_factory=dict)

    def fail(self, message: str) -> None:
        """Say that it fails, and why."""
        self.failed, self.message = True, message


class LatestRuns(NamedTuple):
    """The last run of a kind, the last that succeeded and the last that failed."""

    last: Run
    done: Run | None
    failed: Run | None

    @property
    def ended(self) -> Run | None:
        """Return the last one that has ended."""
        return max(filter(None, (self.done, self.failed)), key=lambda run: run.order, default=None)


@contextmanager
def record_run(
    ledger: Ledger, kind: str, clock: own_clock.Clock = own_clock.now, by: str | None = None,
    only_if_well: bool = False, only_one: bool = False,
) -> Iterator[RunOutcome]:  # fmt: skip
    """Record that a run of a kind (a word in lower case) begins, and how it ended.

    An exception passes through and makes it a failure; `AlreadyRunning` leaves no trace. No job stops because its run
    cannot be recorded. With `only_if_well` nothing is written to a file until the run has ended well: the file may be
    damaged, and a write may hit what is still whole. With `only_one` it raises `AlreadyRunning` if it can see another
    run of its kind in progress.
    """
    assert _KIND.fullmatch(kind)
    beside = only_if_well and ledger.file is not None
    folder, number = _enter(ledger, beside)
    begun = Run(number, kind, clock(), None, None, None, None, (by or os_account())[:TEXT_MAX], name_this_process(), {})
    outcome, seconds, is_unreached = RunOutcome(), END_SECONDS, number >= UNREACHED
    with ledger.dialect.mark_running(ledger, begun.run):
        in_ledger = not (beside or is_unreached) and _stored(ledger, begun, BEGIN_SECONDS, only_one=only_one)
        if not in_ledger:
            _keep_in_folder(folder, begun)
        try:
            with ledger.translate_errors():
                yield outcome
        except BaseException as error:
            outcome.no_trace |= isinstance(error, AlreadyRunning)
            outcome.fail(_told(error))
            seconds = END_SECONDS if isinstance(error, Exception) else INTERRUPTED_SECONDS
            raise
        finally:
            ended = begun._replace(
                finished_at=clock(), result=FAILED if outcome.failed else DONE,
                message=outcome.message[:TEXT_MAX] or None, position=outcome.position, details=outcome.details,
            )  # fmt: skip
            apart = is_unreached or (beside and outcome.failed)
            if apart or not _stored(ledger, ended, seconds, outcome.no_trace):
                _keep_in_folder(folder, ended, outcome.no_trace)
            elif not in_ledger:
                _keep_in_folder(folder, ended, no_trace=True)


def leave_unreached(ledger: Ledger, kind: str, message: str, clock: own_clock.Clock = own_clock.now) -> None:
    """Leave a failed run of a kind in the state folder, without another try to reach the ledger."""
    folder, now = _unreached_folder(ledger), clock()
    run = Run(
        _next_number(_in_folder(folder), UNREACHED), kind, now, now, FAILED, message[:TEXT_MAX], None, os_account(),
        name_this_process(), {},
    )  # fmt: skip
    _keep_in_folder(folder, run)


def os_account() -> str:
    """Return the operating system's user name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _told(error: BaseException) -> str:
    """Return what the command tells, too."""
    return describe_failure(error).message if isinstance(error, Exception) else "it was interrupted"


def all_runs(ledger: Ledger, connection: Connection, now: int) -> list[Run]:
    """Return the runs known to this account, newest first: those in the ledger and those in its state folder.

    A row that this program cannot have written is left out.
    """
    unreached = _in_folder(_unreached_folder(ledger))
    runs = sorted(unreached, key=lambda run: run.order, reverse=True) + _recorded(ledger, connection)
    return [_seen(connection, run, now) for run in runs]


def _recorded(ledger: Ledger, connection: Connection) -> list[Run]:
    """Return the runs as they are stored, newest first."""
    query = select(job_runs).order_by(job_runs.c.run.desc()).limit(READ_MAX)
    runs = {run.run: run for row in connection.execute(query) if (run := _run(row._mapping))}
    for run in _in_folder(_folder(ledger, connection)):
        if run.run not in runs or runs[run.run].finished_at is None:
            runs[run.run] = run
    return sorted(runs.values(), key=lambda run: run.order, reverse=True)


def _enter(ledger: Ledger, beside: bool) -> tuple[Path | None, int]:
    """Return the state folder and the number of a run that begins now, once those that did not reach the ledger have
    theirs; with `beside` nothing is written to the ledger."""
    unreached = _unreached_folder(ledger)
    try:
        with ledger.reading() as connection:
            folder, recorded = _folder(ledger, connection), _recorded(ledger, connection)
    except _errors(ledger):
        return unreached, _next_number(_in_folder(unreached), UNREACHED)
    number = _next_number(recorded)
    for run in sorted(_in_folder(unreached), key=lambda run: run.order):
        if run.result is None and is_process_running(run.process, run.started_at, own_clock.now()):
            continue
        placed = run._replace(run=number)
        if beside or not _stored(ledger, placed, BEGIN_SECONDS):
            _keep_in_folder(folder, placed)
        _keep_in_folder(unreached, run, no_trace=True)
        number = _next_number([placed])
    return folder, number


def _next_number(runs: Iterable[Run], least: int = ORDERED) -> int:
    """Return a number for a run that begins now: above those of all these runs."""
    counter = max(max((run.run for run in runs), default=0) - least, 0) >> RANDOM_BITS
    return least + (min(counter + 1, (1 << COUNTER_BITS - 1) - 1) << RANDOM_BITS) + secrets.randbits(RANDOM_BITS)


def latest_runs(runs: Iterable[Run]) -> dict[str, LatestRuns]:
    """Return what there is to know about each kind of run; `runs` come newest first."""
    return {
        kind: LatestRuns(
            every[0],
            next((one for one in every if one.result == DONE), None),
            next((one for one in every if one.has_failed), None),
        )
        for kind, every in sorted(_by_kind(runs).items())
    }


def runs_ahead(runs: Iterable[Run], now: int) -> list[Run]:
    """Return the runs dated after now, except those before a run of their kind that ended well at a credible time.

    Args:
        runs: All runs, newest first.
        now: In microseconds.
    """
    return [
        run
        for every in _by_kind(runs).values()
        for run in takewhile(lambda run: run.result != DONE or own_clock.is_ahead(run.dated, now), every)
        if own_clock.is_ahead(run.dated, now)
    ]


def _by_kind(runs: Iterable[Run]) -> dict[str, list[Run]]:
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        kinds.setdefault(run.kind, []).append(run)
    return kinds


def _seen(connection: Connection, one: Run, now: int) -> Run:
    """Return a run as it is now: one without an end is either running or lost."""
    if one.result is not None:
        return one
    if dialect_of(connection).is_running(connection, one.run, one.process, one.started_at, now):
        return one._replace(result=RUNNING)
    return one._replace(result=LOST, message=NO_EXIT_STATUS)


# in the ledger


def _stored(ledger: Ledger, run: Run, seconds: float, no_trace: bool = False, only_one: bool = False) -> bool:
    """Store a run, replacing what was stored of it before, and sweep old ones; whether it is now in the ledger."""
    try:
        milliseconds = max(int(min(seconds, busy_seconds(ledger.url)) * 1_000), 1)
        with ledger.reading() as connection, ledger.dialect.begin_brief(connection, milliseconds, only_one):
            # its own row may have been mistaken for that of a run that is gone
            connection.execute(delete(job_runs).where(job_runs.c.run == run.run))
            if no_trace:
                return True
            same = select(job_runs).where(job_runs.c.kind == run.kind)
            found = [one for row in connection.execute(same) if (one := _run(row._mapping))]
            found.sort(key=lambda one: one.order, reverse=True)
            rows = [_seen(connection, one, run.started_at) for one in found]
            going_on = [one for one in rows if one.result == RUNNING]
            if only_one and going_on:
                other, since = going_on[0], format_instant(going_on[0].started_at)[:19]
                raise AlreadyRunning(
                    f"the {other.kind} run of {ledger.location} that began at {since}Z, by {other.run_by}, is still "
                    "going on; this one did nothing"
                )
            lost = [one.run for one in rows if one.result == LOST]
            settled = update(job_runs).where(job_runs.c.run.in_(lost), job_runs.c.result.is_(None))
            connection.execute(settled.values(result=LOST, message=NO_EXIT_STATUS))
            details = json.dumps(run.details, ensure_ascii=False) if run.details else None
            connection.execute(insert(job_runs), {**run._asdict(), "details": details})
            gone = delete(job_runs).where(
                job_runs.c.kind == run.kind, job_runs.c.run.not_in(bindparam("kept", expanding=True))
            )
            known = sorted([run, *rows], key=lambda one: one.order, reverse=True)
            connection.execute(gone, {"kept": sorted({run.run, *_kept(known)})})
    except AlreadyRunning:
        raise
    except _errors(ledger):
        return False
    return True


def _kept(runs: Iterable[Run]) -> set[int]:
    """Return which of a kind's runs stay, given newest first."""
    every = list(runs)
    ended = (one for latest in latest_runs(every).values() for one in (latest.done, latest.failed))
    return {one.run for one in (*every[:KEPT_RUNS], *ended) if one is not None}


def _errors(ledger: Ledger) -> tuple[type[Exception], ...]:
    """Return what may go wrong with a store, which concerns the job and not its row."""
    return (LedgerError, SQLAlchemyError, ValueError, OSError, ledger.engine.dialect.loaded_dbapi.Error)


def _run(values: Any) -> Run | None:
    """Return a run from its columns or members, or None if they do not have the types that a run has."""
    given = {name: values.get(name) for name in Run._fields}
    details = given.pop("details")
    if isinstance(details, str):
        with suppress(ValueError, RecursionError):
            details = json.loads(details)
    if not all(_fits(name, value) for name, value in given.items()) or not _KIND.fullmatch(given["kind"]):
        return None
    known = given["result"] in (None, DONE, FAILED, LOST) and (given["result"] or given["finished_at"] is None)
    return Run(**given, details=details if isinstance(details, dict) else {}) if known else None


def _fits(name: str, value: Any) -> bool:
    """Tell whether a column or member holds what it does in a run."""
    if value is None:
        return name in ("finished_at", "result", "message", "position")
    if name in ("run", "started_at", "finished_at", "position"):
        return type(value) is int and 0 <= value < 2**63
    return isinstance(value, str) and len(value) <= TEXT_MAX


# in the state folder


def _folder(ledger: Ledger, connection: Connection) -> Path | None:
    """Return where this account keeps the runs of a ledger; None if the account has no home."""
    return _state_folder(ledger, ledger_id(connection))


def _unreached_folder(ledger: Ledger) -> Path | None:
    """Return where this account keeps the runs that could not reach a ledger."""
    return _state_folder(ledger, "unreached")


def _state_folder(ledger: Ledger, name: str) -> Path | None:
    if not (home := os.environ.get("XDG_STATE_HOME")):
        try:
            home = str(Path.home() / ".local" / "state")
        except RuntimeError:
            return None
    # a copy of a ledger has the same id
    mark = hashlib.sha256(_database(ledger).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return Path(home) / "ratings-ledger" / f"{name}-{mark}"


def _database(ledger: Ledger) -> str:
    """Return what identifies the database, whoever asks."""
    if ledger.file is not None:
        return os.path.realpath(ledger.file)
    named = {
        name: ledger.url.query[name] for name in ("host", "port", "service", "options") if name in ledger.url.query
    }
    return json.dumps([ledger.url.host, ledger.url.port, ledger.url.database, sorted(named.items())])


def _keep_in_folder(folder: Path | None, run: Run, no_trace: bool = False) -> None:
    """Write or delete a run's file; files that are too old are deleted, too."""
    try:
        if no_trace:
            if folder is not None:
                (folder / _name(run)).unlink(missing_ok=True)
            return
        if folder is None:
            raise OSError("this account has no home folder; name a place with XDG_STATE_HOME")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not is_own_folder(folder):
            raise OSError(f"{folder} is not a folder of this account")
        written = folder / f".{_name(run)}"
        with open_own(written, "wb") as file:
            file.write(json.dumps(run._asdict(), ensure_ascii=False).encode("utf-8", "backslashreplace"))
        written.replace(folder / _name(run))
        same = sorted((one for one in _in_folder(folder) if one.kind == run.kind), key=lambda one: one.order)[::-1]
        kept = {run.run, *_kept(same)}
        for one in same:
            if one.run not in kept:
                (folder / _name(one)).unlink(missing_ok=True)
    except (OSError, ValueError) as problem:
        if not no_trace and run.finished_at is not None:
            logger.warning("ratings: the outcome of this run is kept nowhere: %s", problem)


def _name(run: Run) -> str:
    return f"{run.kind}-{run.run}.json"


def _in_folder(folder: Path | None) -> list[Run]:
    """Return the runs in a state folder; other files are left alone."""
    if folder is None or not is_own_folder(folder):
        return []
    found = []
    with suppress(OSError):
        for name in islice((name for name in os.listdir(folder) if _FILE.fullmatch(name)), READ_MAX):
            with suppress(OSError, ValueError, RecursionError), open_own(folder / name, "rb") as file:
                values = json.loads(file.read(FILE_BYTES_MAX))
                run = _run(values) if isinstance(values, dict) else None
                found += [run] if run is not None and _name(run) == name else []
    return found
