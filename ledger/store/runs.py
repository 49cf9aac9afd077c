"""Runs of the maintenance jobs of a ledger, such as `rebuild`, `verify` and `backup`: each leaves a row.

    with record_run(ledger, "backup", clock) as run:
        ...
        run.position = 50_577            # how far it got
        run.fail("two of 14 old backups could not be deleted")    # if it fails without an error

The row exists from the start. A killed run leaves it without an end, and the next reader reports that. Runs are
operational state, not part of the log. A user who may not write them, such as a role that only reads or the user of a
read-only file, leaves them in the account's state folder:

    ~/.local/state/ratings-ledger/LEDGER-ID-DATABASE/verify-4177382.json

A run that cannot reach its ledger is left in this folder, too, under `unreached-DATABASE`. It counts as the last of its
kind until the next run that reaches the ledger stores it there.

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

# how many runs of each kind are kept, besides the last success and the last failure
KEPT_RUNS = 50
# a run's number is this bit, then a counter, then a random part for simultaneous runs; earlier programs gave random
# numbers without the bit
ORDERED, COUNTER_BITS, RANDOM_BITS = 1 << 62, 40, 22
# the first number of runs that could not reach their ledger: they come last until they get a number there
UNREACHED = ORDERED | 1 << 61
# the values of `result`: `failed` and `lost` are failures, `running` is never stored
DONE, FAILED, LOST, RUNNING = "done", "failed", "lost", "running"
NO_EXIT_STATUS = "no exit status was recorded: the process was killed or the machine crashed"
# how long a job waits to record its start and its end; after Ctrl-C users do not want to wait
BEGIN_SECONDS, END_SECONDS, INTERRUPTED_SECONDS = 2.0, 30.0, 0.3
TEXT_MAX, READ_MAX, FILE_BYTES_MAX = 4_000, 2_000, 1 << 20
_KIND = re.compile(r"[a-z][a-z-]{0,30}", re.ASCII)
_FILE = re.compile(r"[a-z][a-z-]{0,30}-\d{1,19}\.json", re.ASCII)

logger = logging.getLogger(__name__)


class Run(NamedTuple):
    """A stored run, with instants in microseconds. `details` depend on the kind.

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
        """Tell whether the run failed or was lost."""
        return self.result in (FAILED, LOST)

    @property
    def order(self) -> tuple[int, int, int]:
        """Return the sort key of a run: its number; runs numbered by an earlier program come first, by date."""
        return self.run if self.run >= ORDERED else 0, self.started_at, self.run

    @property
    def dated(self) -> int:
        """Return the latest instant in the run."""
        return max(self.started_at, self.finished_at or 0)


@dataclass
class RunOutcome:
    """The outcome of a run so far, which the job fills in; with `no_trace` the run is not recorded at all."""

    position: int | None = None
    message: str = ""
    failed: bool = False
    no_trace: bool = False
    details: dict[str, Any] = field(default_factory=dict)

    def fail(self, message: str) -> None:
        """Mark the run as failed, with the reason."""
        self.failed, self.message = True, message


class LatestRuns(NamedTuple):
    """The latest run of a kind, its latest success and its latest failure."""

    last: Run
    done: Run | None
    failed: Run | None

    @property
    def ended(self) -> Run | None:
        """Return the latest run that has ended."""
        return max(filter(None, (self.done, self.failed)), key=lambda run: run.order, default=None)


@contextmanager
def record_run(
    ledger: Ledger,
    kind: str,
    clock: own_clock.Clock = own_clock.now,
    *,
    by: str | None = None,
    only_if_well: bool = False,
    only_one: bool = False,
) -> Iterator[RunOutcome]:
    """Record the start and the outcome of a run of a kind (a word in lower case).

    An exception passes through and makes the run a failure; `AlreadyRunning` leaves no trace. No job stops because its
    run cannot be recorded. With `only_if_well` the ledger's file is not written before the run has succeeded: it may be
    damaged, and a write might destroy sound data. With `only_one` it raises `AlreadyRunning` if another run of the kind
    is visibly in progress.
    """
    assert _KIND.fullmatch(kind)
    keeps_out_of_ledger = only_if_well and ledger.file is not None
    folder, number = _prepare_run(ledger, keeps_out_of_ledger)
    run = Run(number, kind, clock(), None, None, None, None, (by or os_account())[:TEXT_MAX], name_this_process(), {})
    outcome, seconds, is_unreached = RunOutcome(), END_SECONDS, number >= UNREACHED
    with ledger.dialect.mark_running(ledger, run.run):
        is_in_ledger = not (keeps_out_of_ledger or is_unreached) and _store_run(
            ledger, run, BEGIN_SECONDS, only_one=only_one
        )
        if not is_in_ledger:
            _write_to_folder(folder, run)
        try:
            with ledger.translate_errors():
                yield outcome
        except BaseException as error:
            outcome.no_trace |= isinstance(error, AlreadyRunning)
            outcome.fail(_describe_outcome(error))
            seconds = END_SECONDS if isinstance(error, Exception) else INTERRUPTED_SECONDS
            raise
        finally:
            ended = run._replace(
                finished_at=clock(),
                result=FAILED if outcome.failed else DONE,
                message=outcome.message[:TEXT_MAX] or None,
                position=outcome.position,
                details=outcome.details,
            )
            belongs_in_folder = is_unreached or (keeps_out_of_ledger and outcome.failed)
            if belongs_in_folder or not _store_run(ledger, ended, seconds, outcome.no_trace):
                _write_to_folder(folder, ended, outcome.no_trace)
            elif not is_in_ledger:
                _write_to_folder(folder, ended, no_trace=True)


def leave_unreached(ledger: Ledger, kind: str, message: str, clock: own_clock.Clock = own_clock.now) -> None:
    """Record a failed run of a kind in the state folder, without another try to reach the ledger."""
    folder, now = _unreached_folder(ledger), clock()
    run = Run(
        run=_next_number(_read_folder(folder), UNREACHED),
        kind=kind,
        started_at=now,
        finished_at=now,
        result=FAILED,
        message=message[:TEXT_MAX],
        position=None,
        run_by=os_account(),
        process=name_this_process(),
        details={},
    )
    _write_to_folder(folder, run)


def os_account() -> str:
    """Return the operating system's user name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _describe_outcome(error: BaseException) -> str:
    """Return the message that the command also prints."""
    return describe_failure(error).message if isinstance(error, Exception) else "it was interrupted"


def all_runs(ledger: Ledger, connection: Connection, now: int) -> list[Run]:
    """Return the runs known to this account, newest first: those in the ledger and those in its state folder.

    A row that this program did not write is left out.
    """
    unreached = _read_folder(_unreached_folder(ledger))
    runs = sorted(unreached, key=lambda run: run.order, reverse=True) + _read_runs(ledger, connection)
    return [_update_result(connection, run, now) for run in runs]


def _read_runs(ledger: Ledger, connection: Connection) -> list[Run]:
    """Read the stored runs, newest first."""
    query = select(job_runs).order_by(job_runs.c.run.desc()).limit(READ_MAX)
    runs = {run.run: run for row in connection.execute(query) if (run := _parse_run(row._mapping))}
    for run in _read_folder(_folder(ledger, connection)):
        if run.run not in runs or runs[run.run].finished_at is None:
            runs[run.run] = run
    return sorted(runs.values(), key=lambda run: run.order, reverse=True)


def _prepare_run(ledger: Ledger, keeps_out_of_ledger: bool) -> tuple[Path | None, int]:
    """Move runs that did not reach the ledger into it; return the state folder and the number of a new run.

    With `keeps_out_of_ledger` the runs move to the ledger's state folder instead.
    """
    unreached = _unreached_folder(ledger)
    try:
        with ledger.reading() as connection:
            folder, recorded = _folder(ledger, connection), _read_runs(ledger, connection)
    except _store_errors(ledger):
        return unreached, _next_number(_read_folder(unreached), UNREACHED)
    number = _next_number(recorded)
    for run in sorted(_read_folder(unreached), key=lambda run: run.order):
        if run.result is None and is_process_running(run.process, run.started_at, own_clock.now()):
            continue
        numbered_run = run._replace(run=number)
        if keeps_out_of_ledger or not _store_run(ledger, numbered_run, BEGIN_SECONDS):
            _write_to_folder(folder, numbered_run)
        _write_to_folder(unreached, run, no_trace=True)
        number = _next_number([numbered_run])
    return folder, number


def _next_number(runs: Iterable[Run], least: int = ORDERED) -> int:
    """Return a number for a new run, above those of all these runs."""
    counter = max(max((run.run for run in runs), default=0) - least, 0) >> RANDOM_BITS
    return least + (min(counter + 1, (1 << COUNTER_BITS - 1) - 1) << RANDOM_BITS) + secrets.randbits(RANDOM_BITS)


def latest_runs(runs: Iterable[Run]) -> dict[str, LatestRuns]:
    """Return the latest runs of each kind; `runs` come newest first."""
    return {
        kind: LatestRuns(
            every[0],
            next((run for run in every if run.result == DONE), None),
            next((run for run in every if run.has_failed), None),
        )
        for kind, every in sorted(_group_by_kind(runs).items())
    }


def runs_ahead(runs: Iterable[Run], now: int) -> list[Run]:
    """Return the runs dated after now, except those before a run of their kind that ended well at a credible time.

    Args:
        runs: All runs, newest first.
        now: In microseconds.
    """
    return [
        run
        for every in _group_by_kind(runs).values()
        for run in takewhile(lambda run: run.result != DONE or own_clock.is_ahead(run.dated, now), every)
        if own_clock.is_ahead(run.dated, now)
    ]


def _group_by_kind(runs: Iterable[Run]) -> dict[str, list[Run]]:
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        kinds.setdefault(run.kind, []).append(run)
    return kinds


def _update_result(connection: Connection, run: Run, now: int) -> Run:
    """Return a run with its current result: a run without an end is either running or lost."""
    if run.result is not None:
        return run
    if dialect_of(connection).is_running(connection, run.run, run.process, run.started_at, now):
        return run._replace(result=RUNNING)
    return run._replace(result=LOST, message=NO_EXIT_STATUS)


# in the ledger


def _store_run(ledger: Ledger, run: Run, seconds: float, no_trace: bool = False, only_one: bool = False) -> bool:
    """Store a run in place of its earlier row, and delete old runs; return whether the ledger now holds it."""
    try:
        milliseconds = max(int(min(seconds, busy_seconds(ledger.url)) * 1_000), 1)
        with ledger.reading() as connection, ledger.dialect.begin_on_runs(connection, milliseconds, only_one):
            # another process may have marked this run's row as lost
            connection.execute(delete(job_runs).where(job_runs.c.run == run.run))
            if no_trace:
                return True
            same = select(job_runs).where(job_runs.c.kind == run.kind)
            stored = [other for row in connection.execute(same) if (other := _parse_run(row._mapping))]
            stored.sort(key=lambda other: other.order, reverse=True)
            others = [_update_result(connection, other, run.started_at) for other in stored]
            in_progress = [other for other in others if other.result == RUNNING]
            if only_one and in_progress:
                blocking, since = in_progress[0], format_instant(in_progress[0].started_at)[:19]
                raise AlreadyRunning(
                    f"the {blocking.kind} run of {ledger.location} that began at {since}Z, by {blocking.run_by}, is "
                    "still going on; this one did nothing"
                )
            lost = [other.run for other in others if other.result == LOST]
            settled = update(job_runs).where(job_runs.c.run.in_(lost), job_runs.c.result.is_(None))
            connection.execute(settled.values(result=LOST, message=NO_EXIT_STATUS))
            details = json.dumps(run.details, ensure_ascii=False) if run.details else None
            connection.execute(insert(job_runs), {**run._asdict(), "details": details})
            old = delete(job_runs).where(
                job_runs.c.kind == run.kind, job_runs.c.run.not_in(bindparam("kept", expanding=True))
            )
            known = sorted([run, *others], key=lambda other: other.order, reverse=True)
            connection.execute(old, {"kept": sorted({run.run, *_select_kept(known)})})
    except AlreadyRunning:
        raise
    except _store_errors(ledger):
        return False
    return True


def _select_kept(runs: Iterable[Run]) -> set[int]:
    """Return the numbers of a kind's runs to keep; `runs` come newest first."""
    every = list(runs)
    ended = (run for latest in latest_runs(every).values() for run in (latest.done, latest.failed))
    return {run.run for run in (*every[:KEPT_RUNS], *ended) if run is not None}


def _store_errors(ledger: Ledger) -> tuple[type[Exception], ...]:
    """Return the errors of a store, which concern the job and not its row."""
    return (LedgerError, SQLAlchemyError, ValueError, OSError, ledger.engine.dialect.loaded_dbapi.Error)


def _parse_run(values: Any) -> Run | None:
    """Parse a run from its columns or members; None if their types are wrong."""
    members = {name: values.get(name) for name in Run._fields}
    details = members.pop("details")
    if isinstance(details, str):
        with suppress(ValueError, RecursionError):
            details = json.loads(details)
    if not all(_has_type_of(name, value) for name, value in members.items()) or not _KIND.fullmatch(members["kind"]):
        return None
    is_valid = members["result"] in (None, DONE, FAILED, LOST) and (members["result"] or members["finished_at"] is None)
    return Run(**members, details=details if isinstance(details, dict) else {}) if is_valid else None


def _has_type_of(name: str, value: Any) -> bool:
    """Tell whether a value has the type of this member of a run."""
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
    mark = hashlib.sha256(_identify_database(ledger).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return Path(home) / "ratings-ledger" / f"{name}-{mark}"


def _identify_database(ledger: Ledger) -> str:
    """Return the identity of the database, the same for all users."""
    if ledger.file is not None:
        return os.path.realpath(ledger.file)
    parameters = {
        name: ledger.url.query[name] for name in ("host", "port", "service", "options") if name in ledger.url.query
    }
    return json.dumps([ledger.url.host, ledger.url.port, ledger.url.database, sorted(parameters.items())])


def _write_to_folder(folder: Path | None, run: Run, no_trace: bool = False) -> None:
    """Write or delete a run's file, and delete files that are too old."""
    try:
        if no_trace:
            if folder is not None:
                (folder / _file_name(run)).unlink(missing_ok=True)
            return
        if folder is None:
            raise OSError("this account has no home folder; name a place with XDG_STATE_HOME")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not is_own_folder(folder):
            raise OSError(f"{folder} is not a folder of this account")
        draft_path = folder / f".{_file_name(run)}"
        with open_own(draft_path, "wb") as file:
            file.write(json.dumps(run._asdict(), ensure_ascii=False).encode("utf-8", "backslashreplace"))
        draft_path.replace(folder / _file_name(run))
        same_kind = sorted(
            (other for other in _read_folder(folder) if other.kind == run.kind), key=lambda other: other.order
        )[::-1]
        kept = {run.run, *_select_kept(same_kind)}
        for one in same_kind:
            if one.run not in kept:
                (folder / _file_name(one)).unlink(missing_ok=True)
    except (OSError, ValueError) as problem:
        if not no_trace and run.finished_at is not None:
            logger.warning("ratings: the outcome of this run is kept nowhere: %s", problem)


def _file_name(run: Run) -> str:
    return f"{run.kind}-{run.run}.json"


def _read_folder(folder: Path | None) -> list[Run]:
    """Read the runs in a state folder, ignoring other files."""
    if folder is None or not is_own_folder(folder):
        return []
    runs = []
    with suppress(OSError):
        for name in islice((name for name in os.listdir(folder) if _FILE.fullmatch(name)), READ_MAX):
            with suppress(OSError, ValueError, RecursionError), open_own(folder / name, "rb") as file:
                values = json.loads(file.read(FILE_BYTES_MAX))
                run = _parse_run(values) if isinstance(values, dict) else None
                runs += [run] if run is not None and _file_name(run) == name else []
    return runs
