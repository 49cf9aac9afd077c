"""Implement `status`: show the head of the log, the age of the stored standings, and the last runs of the jobs."""

from collections.abc import Iterator
from dataclasses import replace

import click

from ratings_ledger.cli.arguments.command import command
from ratings_ledger.cli.arguments.options import format_options, read_duration
from ratings_ledger.cli.arguments.views import open_for_command
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.render import emit
from ratings_ledger.cli.output.status import format_age_exactly, print_status, print_status_csv, print_status_prometheus
from ratings_ledger.ledger.store.runs import LOST
from ratings_ledger.projections.stored.status import HealthProblem, LedgerStatus, read_ledger_status


@command()
@click.option(
    "--max-age",
    metavar="AGE",
    callback=read_duration,
    help="Exit 1 if the stored standings are older than this, such as 26h.",
)
@click.option(
    "--max-behind",
    metavar="N",
    type=click.IntRange(min=0),
    help="Exit 1 if the stored standings lack more events than this.",
)
@click.option("--no-failures", is_flag=True, help="Exit 1 if the last run of a job failed, or nightly was killed.")
@format_options(
    "table", "json", "csv", "prometheus", meaning="Output format; prometheus is the text that collectors read."
)
@click.pass_obj
def status(db: str, max_age: int | None, max_behind: int | None, no_failures: bool, output_format: str) -> int:
    """Show the head of the log and the age of the stored standings.

    It also shows how the last runs of jobs ended: rebuild, verify, backup, publish, nightly. With --max-age,
    --max-behind or --no-failures, it is a health check: exit 1 with the reason if a check fails, or if something is
    dated in the future. The age of the standings is that of the oldest ladder.
    """
    ledger = open_for_command(db)
    with ledger.reading() as connection:
        state = read_ledger_status(ledger, connection)
    problems = tuple(_find_problems(state, max_age, max_behind, no_failures))
    if max_age is not None or max_behind is not None or no_failures:
        state = replace(state, problems=problems)
    emit(state, output_format, print_status, print_status_csv, prometheus=print_status_prometheus)
    for problem in problems:
        render.note(render.plain(f"ratings: {problem.message}"))
    return int(bool(problems))


def _find_problems(
    state: LedgerStatus, max_age: int | None, max_behind: int | None, no_failures: bool
) -> Iterator[HealthProblem]:
    """Yield the problems that --max-age, --max-behind and --no-failures check for."""
    # an age that is based on a date in the future is not reliable, so such a date fails every check
    if max_age is not None or max_behind is not None or no_failures:
        yield from (HealthProblem("dated-ahead", ahead.message) for ahead in state.dated_ahead)
    age, behind = state.age_seconds, state.behind
    if (max_age is not None or max_behind is not None) and age is None:
        yield HealthProblem("nothing-stored", "no standings are stored yet; store them with: ratings rebuild")
    if max_age is not None and age is not None and age > max_age:
        oldest = min(
            (ladder for ladder in state.stale if ladder.built_at is not None),
            key=lambda ladder: ladder.built_at or 0,
            default=None,
        )
        subject = "the stored standings are" if oldest is None else f"{oldest.ladder}: its stored standings are"
        problem = f"{subject} {format_age_exactly(age)} old; --max-age allows {format_age_exactly(max_age)}"
        yield HealthProblem("too-old", f"{problem}; run: ratings rebuild")
    if max_behind is not None and behind is not None and behind > max_behind:
        laggard = min(state.stale, key=lambda ladder: ladder.position or 0, default=None)
        subject = "the stored standings are" if laggard is None else f"{laggard.ladder}: its stored standings are"
        problem = f"{subject} {render.count(behind, 'event')} behind; --max-behind allows {max_behind:,}"
        yield HealthProblem("too-far-behind", f"{problem}; run: ratings rebuild")
    for kind, runs in state.runs.items() if no_failures else ():
        ended = runs.ended
        # the parts of a nightly run are checked separately, so that a rerun of a failed part ends the alarm
        if ended is not None and ended.has_failed and (kind != "nightly" or ended.result == LOST):
            at = state.times.format_second(ended.finished or ended.started)
            yield HealthProblem("failed", f"the last {kind} failed ({at}): {ended.message}")
