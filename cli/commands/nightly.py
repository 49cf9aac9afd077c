"""Implement `nightly`: run the nightly jobs; a failed job does not stop the others."""

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import click
from sqlalchemy import Connection

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.engines import choose_work_at, rule_seconds_option, workers_options
from ratings_ledger.cli.arguments.options import by_option, read_duration, result_format
from ratings_ledger.cli.arguments.views import report_ignored_events
from ratings_ledger.cli.arguments.writing import WriteContext
from ratings_ledger.cli.commands.backup import keep_option, note_problems
from ratings_ledger.cli.commands.publish import describe_failures
from ratings_ledger.cli.commands.publish import publish_due as publish_due_lists
from ratings_ledger.cli.commands.rebuild import note_failures
from ratings_ledger.cli.interrupts import end_soon_after_interrupt
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.maintenance import print_nightly_run
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.backups import backup_folder
from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.ledger.failures import describe_failure
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, connect, open_ledger
from ratings_ledger.ledger.store.runs import record_run, record_unreached_run
from ratings_ledger.projections.queries.results import ABSENT, Absent
from ratings_ledger.projections.stored.generations import format_whole_second
from ratings_ledger.projections.stored.rebuild_plan import RebuildOptions
from ratings_ledger.projections.stored.rebuilding import rebuild
from ratings_ledger.projections.stored.status import NightlyPart, NightlyResult, find_last_comparison
from ratings_ledger.projections.stored.verification import verify_all
from ratings_ledger.projections.stored.work import WorkAt

FINDINGS_SHOWN_MAX = 20
# the reasons for failures that may resolve themselves, and the pause before another attempt
TRANSIENT_REASONS = ("unreachable", "busy", "server-limit", "already-running", "lock-lost")
RETRY_SECONDS = 60.0

JobResult = tuple[int, str]  # the exit code and the message


class Job(NamedTuple):
    """A part of the nightly run. `check` raises if the part cannot run, and `run` does the work."""

    name: str
    check: Callable[[], None]
    run: Callable[[], JobResult]


@command()
@click.option(
    "--backup",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Also make a backup in DIR, as `backup make` does.",
)
@keep_option
@click.option("--publish-due", is_flag=True, help="First publish the lists that are due, as `publish --due` does.")
@by_option
@click.option(
    "--retry",
    metavar="TIME",
    callback=read_duration,
    default="0s",
    help="If the ledger is locked or unreachable, retry every minute for up to TIME, such as 30m.  [default: never]",
)
@rule_seconds_option
@workers_options
@result_format
@click.pass_obj
def nightly(
    db: str,
    folder: Path | None,
    keep: dict[str, int] | None,
    publish_due: bool,
    by: str,
    retry: int,
    rule_seconds: float,
    on: str | None,
    segments: str | None,
    output_format: str,
) -> int:
    """Store standings and verify the ledger; --backup adds a backup.

    With --publish-due, first publish the lists that are due. A part that fails does not stop the others. The
    output is one line with the date; errors go to standard error. The exit code is the lowest exit code of a failed
    part. If another nightly run of the same ledger is in progress, do nothing and exit 4.
    """
    if keep is not None and folder is None:
        raise click.UsageError("--keep works only with --backup DIR; add --backup, or leave out --keep")
    started_at, monotonic_start = clock.now(), time.monotonic()
    deadline = monotonic_start + retry
    with end_soon_after_interrupt(lambda: "\nratings: interrupted"):
        kinds = ["nightly", *["publish"] * publish_due, "rebuild", "verify", *["backup"] * (folder is not None)]
        ledger = _open(db, kinds, deadline)
        with record_run(ledger, "nightly", clock.now, exclusive=True) as run:
            choose_work = cache(partial(choose_work_at, ledger, on, segments, rule_seconds))
            jobs = []
            if publish_due:
                context = WriteContext(db, ImportPolicy(by), output_format, dry_run=False)
                check = partial(_require_rights, ledger, "writer", "published")
                jobs.append(Job("publish", check, partial(_publish, context)))
            jobs += [
                Job("rebuild", partial(_require_rights, ledger), partial(_rebuild, ledger, rule_seconds, choose_work)),
                Job("verify", lambda: None, partial(_verify, ledger, rule_seconds, choose_work)),
            ]
            if folder is not None:
                jobs.append(
                    Job("backup", partial(_require_backup_folder, folder), partial(_backup, ledger, folder, keep))
                )
            parts = _run_jobs(ledger, jobs, deadline)
            failed = [part.exit_code for part in parts if part.exit_code]
            run.details = {part.part: part.exit_code for part in parts}
            if failed:
                run.fail("; ".join(f"{part.part}: {part.message}" for part in parts if part.exit_code))
    seconds = time.monotonic() - monotonic_start
    night = NightlyResult(
        started=format_whole_second(started_at),
        seconds=round(seconds, 3),
        exit_code=min(failed, default=0),
        head=_read_or_none(ledger, lambda _, connection: str(head(connection))),
        parts=tuple(parts),
        compared_without_cache=_read_or_none(ledger, find_last_comparison),
    )
    emit(night, output_format, print_nightly_run)
    return night.exit_code


def _open(db: str, kinds: Sequence[str], deadline: float) -> Ledger:
    """Open the ledger; retry until the deadline, then leave a failed run of each kind in the state folder."""
    while True:
        is_last = time.monotonic() >= deadline
        try:
            return open_ledger(db)
        except StoreUnavailable as error:
            if error.reason not in TRANSIENT_REASONS:
                raise
            if is_last:
                for kind in kinds:
                    record_unreached_run(connect(db), kind, str(error), clock.now)
                raise
        _wait(deadline)


def _wait(deadline: float) -> None:
    """Wait before another attempt, at most until the deadline, a value of the monotonic clock."""
    time.sleep(max(min(RETRY_SECONDS, deadline - time.monotonic()), 0))


def _run_jobs(ledger: Ledger, jobs: Sequence[Job], deadline: float) -> list[NightlyPart]:
    """Run the jobs one after another; until the deadline, retry jobs that fail for a transient reason.

    All checks run before the first job, so that they report their problems first. An unreachable store is
    reported only once.
    """
    parts: dict[str, NightlyPart] = {}
    pending, reported = list(jobs), set[str]()
    while True:
        is_last = time.monotonic() >= deadline

        def attempt_and_report(name: str, run: Callable[[], JobResult | None], is_last: bool = is_last) -> NightlyPart:
            part = _attempt(name, run)
            if (
                isinstance(part.reason, str)
                and part.reason not in reported
                and (is_last or part.reason not in TRANSIENT_REASONS)
            ):
                render.note(f"ratings: {name}: {part.message}")
                reported.update({part.reason} & {"unreachable"})
            return part

        checks = {job.name: attempt_and_report(job.name, job.check) for job in pending}
        for job in pending:
            parts[job.name] = checks[job.name]
            if checks[job.name].exit_code == 0:
                parts[job.name] = attempt_and_report(job.name, job.run)
                continue
            with record_run(ledger, job.name, clock.now) as run:
                run.fail(checks[job.name].message)
        pending = [job for job in jobs if parts[job.name].reason in TRANSIENT_REASONS]
        if is_last or not pending:
            return list(parts.values())
        _wait(deadline)


def _attempt(name: str, run: Callable[[], JobResult | None]) -> NightlyPart:
    """Run a part, or its check, and return the result or the failure."""
    started = time.monotonic()
    reason: str | Absent = ABSENT
    try:
        exit_code, message = run() or (0, "")
    except Exception as error:
        reason, message, exit_code = describe_failure(error)
    return NightlyPart(
        part=name, exit_code=exit_code, message=message, seconds=round(time.monotonic() - started, 3), reason=reason
    )


def _require_rights(ledger: Ledger, role: str = "rebuilder", action: str = "stored") -> None:
    with ledger.reading() as connection:
        if missing_rights := ledger.dialect.describe_missing_rights(connection, role):
            raise StoreUnavailable(f"nothing can be {action}: {missing_rights}", "no-right")


def _require_backup_folder(folder: Path) -> None:
    backup_folder.make_folder(folder)
    backup_folder.read_list(folder)


def _publish(context: WriteContext) -> JobResult:
    outcome = publish_due_lists(context)
    problems, published = describe_failures(outcome), sum(not row.is_refused for row in outcome.rows)
    for problem in problems:
        render.note(f"ratings: publish: {render.plain(problem)}")
    published_text = render.count(published, "list")
    if problems:
        return 1, f"{len(problems):,} failed, {published_text} published; {problems[0]}"
    return 0, published_text if published else "nothing was due"


def _rebuild(ledger: Ledger, rule_seconds: float, choose_work: Callable[[], WorkAt | None]) -> JobResult:
    result = rebuild(ledger, clock.now, options=RebuildOptions(rule_seconds=rule_seconds), work_at=choose_work())
    report_ignored_events(result.why_left_out)
    note_failures(result)
    rebuilt_text = f"{render.count(result.ladders, 'ladder')}, generation {result.generation}"
    failed_text = f"; {len(result.failures):,} failed" if result.failures else ""
    return int(bool(result.failures)), rebuilt_text + failed_text


def _verify(ledger: Ledger, rule_seconds: float, choose_work: Callable[[], WorkAt | None]) -> JobResult:
    verification = verify_all(ledger, rule_seconds=rule_seconds, work_at=choose_work(), only_new=True)
    findings, checked = verification.findings, verification.checked
    for finding in findings[:FINDINGS_SHOWN_MAX]:
        render.note(f"ratings: verify: {render.plain(str(finding))}")
    if (more := len(findings) - FINDINGS_SHOWN_MAX) > 0:
        render.note(f"ratings: verify: ... and {more:,} more (ratings verify lists them)")
    if findings:
        return 1, f"{render.count(len(findings), 'finding')}; the first is {render.plain(str(findings[0]))}"
    events = render.count(checked.events, "event") + (
        "" if verification.since is None else f" since position {verification.since.position}"
    )
    return 0, f"{events}, {render.count(checked.ladders, 'stored ladder')}"


def _backup(ledger: Ledger, folder: Path, keep: dict[str, int] | None) -> JobResult:
    result = backup_folder.make_backup(ledger, folder, clock.now, keep)
    failed = note_problems(folder, result)
    return int(failed), "; ".join([*result.describe_problems(folder)[:1], str(folder / result.backup.file)])


def _read_or_none(ledger: Ledger, read: Callable[[Ledger, Connection], str | None]) -> str | None:
    try:
        with ledger.reading() as connection:
            return read(ledger, connection)
    except Exception:  # the parts have reported the problem
        return None
