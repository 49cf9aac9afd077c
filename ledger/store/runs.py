"""Record the runs of a ledger's maintenance jobs, such as `rebuild`, `verify` and `backup`: one row per run.

    with record_run(ledger, "backup", clock) as run:
        ...
        run.position = 50_577            # the last position that the job covered
        run.fail("two of 14 old backups could not be deleted")    # if the job fails without an exception

The row is stored when the run begins. If the run is killed, its row has no end, and the next reader reports the run as
lost. Runs are operational state, not part of the log. If a user may not write rows, such as a role that only reads or
the user of a read-only file, the account's state folder keeps the runs instead:

    ~/.local/state/ratings-ledger/LEDGER-ID-DATABASE/verify-4611686018432106022.json

The state folder also keeps a run that cannot reach its ledger, in `unreached-DATABASE`. Such a run counts as the last
of its kind until a later run reaches the ledger and stores the earlier run in it.

The numbers of runs give the order in which the runs began, because a clock may be wrong.
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
from ratings_ledger.ledger.store.opening import Ledger, parse_timeout
from ratings_ledger.ledger.store.schema import job_runs

# the number of runs of each kind to keep, in addition to the last success and the last failure
KEPT_RUNS = 50
# the number of a run consists of this bit, a counter and a random part, which keeps simultaneous runs apart; earlier
# versions of this program used random numbers without the bit
ORDERED_BIT, COUNTER_BITS, RANDOM_BITS = 1 << 62, 40, 22
# runs that could not reach their ledger have numbers from here on, so that they count as the last ones until the ledger
# numbers them
UNREACHED_MIN = ORDERED_BIT | 1 << 61
# the values of `result`: `failed` and `lost` are failures, `running` is never stored
DONE, FAILED, LOST, RUNNING = "done", "failed", "lost", "running"
NO_EXIT_STATUS = "no exit status was recorded: the process was killed or the machine crashed"
# how long a job waits to record its start, its end, and its end after Ctrl-C, when the user does not want to wait
BEGIN_SECONDS, END_SECONDS, INTERRUPTED_SECONDS = 2.0, 30.0, 0.3
# limits: the characters of a text, the runs that are read, and the bytes of a run's file
TEXT_MAX, READ_MAX, FILE_BYTES_MAX = 4_000, 2_000, 1 << 20
_KIND = re.compile(r"[a-z][a-z-]{0,30}", re.ASCII)
_FILE = re.compile(r"[a-z][a-z-]{0,30}-\d{1,19}\.json", re.ASCII)

logger = logging.getLogger(__name__)


class Run(NamedTuple):
    """A recorded run, with instants in microseconds. `details` depend on the kind.

    `run` is its number, `position` the last position that the job covered, and `process` a name from
    `name_this_process`. `result` is `done`, `failed`, `lost` (no exit status was recorded, so the end is unknown) or
    `running`. It is None in a stored run without an end, until `list_runs` decides between `running` and `lost`.
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
        """Return the sort key of a run: its number; runs with a random number come first, by date."""
        return self.run if self.run >= ORDERED_BIT else 0, self.started_at, self.run

    @property
    def latest_instant(self) -> int:
        """Return when the run started or ended, whichever is later by the machine's clock."""
        return max(self.started_at, self.finished_at or 0)


@dataclass
class RunOutcome:
    """The outcome of a run. The job fills it in; with `no_trace` the run is not recorded at all."""

    position: int | None = None
    message: str = ""
    failed: bool = False
    no_trace: bool = False
    details: dict[str, Any] = field(default_factory=dict)

    def fail(self, message: str) -> None:
        """Mark the run as failed; `message` says why."""
        self.failed, self.message = True, message


class LatestRuns(NamedTuple):
    """The latest run, the latest success and the latest failure of one kind."""

    last: Run
    done: Run | None
    failed: Run | None

    @property
    def ended(self) -> Run | None:
        """Return the latest run that succeeded, failed or was lost; None without one."""
        return max(filter(None, (self.done, self.failed)), key=lambda run: run.order, default=None)


@contextmanager
def record_run(
    ledger: Ledger,
    kind: str,
    clock: own_clock.Clock = own_clock.now,
    *,
    by: str | None = None,
    only_after_success: bool = False,
    exclusive: bool = False,
) -> Iterator[RunOutcome]:
    """Record the start and the outcome of a run. The `kind` is in lower case.

    `by` is who runs the job, by default the operating system's account. An exception passes through and makes the run a
    failure; `AlreadyRunning` leaves no trace. A job continues even if its run cannot be recorded. With
    `only_after_success` a SQLite file is only written to if the run succeeds: the file may be damaged, and a write
    might destroy intact data. With `exclusive` the start raises `AlreadyRunning` if another run of this kind is in
    progress.
    """
    assert _KIND.fullmatch(kind)
    keeps_out_of_ledger = only_after_success and ledger.file is not None
    folder, number = _prepare_run(ledger, keeps_out_of_ledger)
    run = _start_run(number, kind, clock(), by)
    outcome, seconds, is_unreached = RunOutcome(), END_SECONDS, number >= UNREACHED_MIN
    with ledger.dialect.mark_running(ledger, run.run):
        is_in_ledger = not (keeps_out_of_ledger or is_unreached) and _store_run(
            ledger, run, BEGIN_SECONDS, exclusive=exclusive
        )
        if not is_in_ledger:
            _write_to_folder(folder, run)
        try:
            with ledger.translate_errors():
                yield outcome
        except BaseException as error:
            outcome.no_trace |= isinstance(error, AlreadyRunning)
            outcome.fail(describe_failure(error).message if isinstance(error, Exception) else "it was interrupted")
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
            if belongs_in_folder or not _store_run(ledger, ended, seconds, no_trace=outcome.no_trace):
                _write_to_folder(folder, ended, no_trace=outcome.no_trace)
            elif not is_in_ledger:
                _write_to_folder(folder, ended, no_trace=True)


def record_unreached_run(ledger: Ledger, kind: str, message: str, clock: own_clock.Clock = own_clock.now) -> None:
    """Record in the state folder a run that failed because it could not reach its ledger."""
    folder, now = _find_unreached_folder(ledger), clock()
    run = _start_run(_choose_number(_read_folder(folder), UNREACHED_MIN), kind, now)
    _write_to_folder(folder, run._replace(finished_at=now, result=FAILED, message=message[:TEXT_MAX]))


def _start_run(number: int, kind: str, now: int, by: str | None = None) -> Run:
    """Return a run that begins now in this process; without `by` it is run by the operating system's account."""
    return Run(
        run=number,
        kind=kind,
        started_at=now,
        finished_at=None,
        result=None,
        message=None,
        position=None,
        run_by=(by or _read_account_name())[:TEXT_MAX],
        process=name_this_process(),
        details={},
    )


def _read_account_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def list_runs(ledger: Ledger, connection: Connection, now: int) -> list[Run]:
    """List the runs known to this account, newest first: those in the ledger and those in the state folder.

    Rows that this program did not write are left out.
    """
    unreached = _read_folder(_find_unreached_folder(ledger))
    runs = sorted(unreached, key=lambda run: run.order, reverse=True) + _read_runs(ledger, connection)
    return [_update_result(connection, run, now) for run in runs]


def _read_runs(ledger: Ledger, connection: Connection) -> list[Run]:
    """Read the runs stored in a ledger and in its state folder, newest first."""
    query = select(job_runs).order_by(job_runs.c.run.desc()).limit(READ_MAX)
    runs = {run.run: run for row in connection.execute(query) if (run := _parse_run(row._mapping))}
    for run in _read_folder(_find_folder(ledger, connection)):
        if run.run not in runs or runs[run.run].finished_at is None:
            runs[run.run] = run
    return sorted(runs.values(), key=lambda run: run.order, reverse=True)


def _prepare_run(ledger: Ledger, keeps_out_of_ledger: bool) -> tuple[Path | None, int]:
    """Store the runs that could not reach the ledger earlier; return the state folder and the number of a new run.

    With `keeps_out_of_ledger` the runs move to the ledger's state folder instead of the ledger. If the ledger cannot be
    reached now, the folder and the number are those of a run that could not reach it.
    """
    unreached = _find_unreached_folder(ledger)
    try:
        with ledger.reading() as connection:
            folder, recorded = _find_folder(ledger, connection), _read_runs(ledger, connection)
    except _list_store_errors(ledger):
        return unreached, _choose_number(_read_folder(unreached), UNREACHED_MIN)
    number = _choose_number(recorded)
    for run in sorted(_read_folder(unreached), key=lambda run: run.order):
        if run.result is None and is_process_running(run.process, run.started_at, own_clock.now()):
            continue
        numbered_run = run._replace(run=number)
        if keeps_out_of_ledger or not _store_run(ledger, numbered_run, BEGIN_SECONDS):
            _write_to_folder(folder, numbered_run)
        _write_to_folder(unreached, run, no_trace=True)
        number = _choose_number([numbered_run])
    return folder, number


def _choose_number(runs: Iterable[Run], base: int = ORDERED_BIT) -> int:
    """Return a number for a new run, above the numbers of all these runs and above `base`."""
    counter = max(max((run.run for run in runs), default=0) - base, 0) >> RANDOM_BITS
    return base + (min(counter + 1, (1 << COUNTER_BITS - 1) - 1) << RANDOM_BITS) + secrets.randbits(RANDOM_BITS)


def find_latest_runs(runs: Iterable[Run]) -> dict[str, LatestRuns]:
    """Return the latest runs of each kind; `runs` are sorted newest first."""
    return {
        kind: LatestRuns(
            last=runs_of_kind[0],
            done=next((run for run in runs_of_kind if run.result == DONE), None),
            failed=next((run for run in runs_of_kind if run.has_failed), None),
        )
        for kind, runs_of_kind in sorted(_group_by_kind(runs).items())
    }


def find_runs_ahead(runs: Iterable[Run], now: int) -> list[Run]:
    """Return the runs dated in the future, unless a later run of their kind succeeded at a credible time.

    Args:
        runs: All runs, newest first.
        now: The current time in microseconds.
    """
    return [
        run
        for runs_of_kind in _group_by_kind(runs).values()
        for run in takewhile(
            lambda run: run.result != DONE or own_clock.is_ahead(run.latest_instant, now), runs_of_kind
        )
        if own_clock.is_ahead(run.latest_instant, now)
    ]


def _group_by_kind(runs: Iterable[Run]) -> dict[str, list[Run]]:
    runs_by_kind: dict[str, list[Run]] = {}
    for run in runs:
        runs_by_kind.setdefault(run.kind, []).append(run)
    return runs_by_kind


def _update_result(connection: Connection, run: Run, now: int) -> Run:
    """Return a run with its current result; a run without an end is either running or lost."""
    if run.result is not None:
        return run
    if dialect_of(connection).is_running(connection, run.run, run.process, run.started_at, now):
        return run._replace(result=RUNNING)
    return run._replace(result=LOST, message=NO_EXIT_STATUS)


# in the ledger


def _store_run(ledger: Ledger, run: Run, seconds: float, *, no_trace: bool = False, exclusive: bool = False) -> bool:
    """Store a run in place of its earlier row, and delete old runs; return whether this succeeded.

    With `no_trace` only delete its row. With `exclusive` raise `AlreadyRunning` if another run of the kind is in
    progress.
    """
    try:
        milliseconds = max(int(min(seconds, parse_timeout(ledger.url)) * 1_000), 1)
        with ledger.reading() as connection, ledger.dialect.transaction_on_runs(connection, milliseconds, exclusive):
            # another process may have marked this run's row as lost
            connection.execute(delete(job_runs).where(job_runs.c.run == run.run))
            if no_trace:
                return True
            query = select(job_runs).where(job_runs.c.kind == run.kind)
            stored_runs = [stored for row in connection.execute(query) if (stored := _parse_run(row._mapping))]
            stored_runs.sort(key=lambda stored: stored.order, reverse=True)
            earlier_runs = [_update_result(connection, stored, run.started_at) for stored in stored_runs]
            blocking = next((earlier for earlier in earlier_runs if earlier.result == RUNNING), None)
            if exclusive and blocking is not None:
                since = format_instant(blocking.started_at)[:19]
                raise AlreadyRunning(
                    f"another {blocking.kind} run of {ledger.location}, begun by {blocking.run_by} at {since}Z, is "
                    "still in progress, so this one did nothing; try again when it has finished"
                )
            lost = [earlier.run for earlier in earlier_runs if earlier.result == LOST]
            lost_rows = update(job_runs).where(job_runs.c.run.in_(lost), job_runs.c.result.is_(None))
            connection.execute(lost_rows.values(result=LOST, message=NO_EXIT_STATUS))
            details = json.dumps(run.details, ensure_ascii=False) if run.details else None
            connection.execute(insert(job_runs), {**run._asdict(), "details": details})
            expired_rows = delete(job_runs).where(
                job_runs.c.kind == run.kind, job_runs.c.run.not_in(bindparam("kept", expanding=True))
            )
            newest_first = sorted([run, *earlier_runs], key=lambda known: known.order, reverse=True)
            connection.execute(expired_rows, {"kept": sorted({run.run, *_select_kept(newest_first)})})
    except AlreadyRunning:
        raise
    except _list_store_errors(ledger):
        return False
    return True


def _select_kept(runs: Iterable[Run]) -> set[int]:
    """Return the numbers of the runs to keep; `runs` are of one kind, newest first."""
    newest_first = list(runs)
    last_results = (run for latest in find_latest_runs(newest_first).values() for run in (latest.done, latest.failed))
    return {run.run for run in (*newest_first[:KEPT_RUNS], *last_results) if run is not None}


def _list_store_errors(ledger: Ledger) -> tuple[type[Exception], ...]:
    """Return the types of errors that must not stop a job while its run is recorded."""
    return (LedgerError, SQLAlchemyError, ValueError, OSError, ledger.engine.dialect.loaded_dbapi.Error)


def _parse_run(values: Any) -> Run | None:
    """Parse a run from the columns of its row or the members of its file; return None if one is invalid.

    Invalid `details` become empty instead.
    """
    members = {name: values.get(name) for name in Run._fields}
    details = members.pop("details")
    if isinstance(details, str):
        with suppress(ValueError, RecursionError):
            details = json.loads(details)
    if not all(_has_valid_type(name, value) for name, value in members.items()) or not _KIND.fullmatch(members["kind"]):
        return None
    is_valid = members["result"] in (None, DONE, FAILED, LOST) and (members["result"] or members["finished_at"] is None)
    return Run(**members, details=details if isinstance(details, dict) else {}) if is_valid else None


def _has_valid_type(name: str, value: Any) -> bool:
    """Tell whether a value has the type of this member of a run."""
    if value is None:
        return name in ("finished_at", "result", "message", "position")
    if name in ("run", "started_at", "finished_at", "position"):
        return type(value) is int and 0 <= value < 2**63
    return isinstance(value, str) and len(value) <= TEXT_MAX


# in the state folder


def _find_folder(ledger: Ledger, connection: Connection) -> Path | None:
    """Return the state folder of a ledger's runs; None if the account has no home folder."""
    return _find_state_folder(ledger, ledger_id(connection))


def _find_unreached_folder(ledger: Ledger) -> Path | None:
    """Return the state folder of the runs that could not reach the ledger; None if the account has no home folder."""
    return _find_state_folder(ledger, "unreached")


def _find_state_folder(ledger: Ledger, name: str) -> Path | None:
    if not (home := os.environ.get("XDG_STATE_HOME")):
        try:
            home = str(Path.home() / ".local" / "state")
        except RuntimeError:
            return None
    # a copy of a ledger has the same id, so the database is part of the name
    database_hash = hashlib.sha256(_identify_database(ledger).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return Path(home) / "ratings-ledger" / f"{name}-{database_hash}"


def _identify_database(ledger: Ledger) -> str:
    """Return a text that identifies the database and is the same for all its users."""
    if ledger.file is not None:
        return os.path.realpath(ledger.file)
    parameters = {
        name: ledger.url.query[name] for name in ("host", "port", "service", "options") if name in ledger.url.query
    }
    return json.dumps([ledger.url.host, ledger.url.port, ledger.url.database, sorted(parameters.items())])


def _write_to_folder(folder: Path | None, run: Run, *, no_trace: bool = False) -> None:
    """Write a run's file and delete old ones; with `no_trace` delete the run's file."""
    try:
        if no_trace:
            if folder is not None:
                (folder / _format_file_name(run)).unlink(missing_ok=True)
            return
        if folder is None:
            raise OSError("this account has no home folder; set XDG_STATE_HOME to a folder for state files")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not is_own_folder(folder):
            remedy = "remove it, or set XDG_STATE_HOME to another folder"
            raise OSError(f"{folder} is not a folder of this account; {remedy}")
        temporary_path = folder / f".{_format_file_name(run)}"
        with open_own(temporary_path, "wb") as file:
            file.write(json.dumps(run._asdict(), ensure_ascii=False).encode("utf-8", "backslashreplace"))
        temporary_path.replace(folder / _format_file_name(run))
        runs_of_kind = [saved for saved in _read_folder(folder) if saved.kind == run.kind]
        runs_of_kind.sort(key=lambda saved: saved.order, reverse=True)
        kept = {run.run, *_select_kept(runs_of_kind)}
        for saved in runs_of_kind:
            if saved.run not in kept:
                (folder / _format_file_name(saved)).unlink(missing_ok=True)
    except (OSError, ValueError) as problem:
        if not no_trace and run.finished_at is not None:
            logger.warning("ratings: the outcome of this run could not be recorded: %s", problem)


def _format_file_name(run: Run) -> str:
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
                runs += [run] if run is not None and _format_file_name(run) == name else []
    return runs
