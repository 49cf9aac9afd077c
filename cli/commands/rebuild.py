"""Implement `rebuild`: store the standings of all ladders, or of the named ones, for other programs."""

from typing import Any

import click
from click.core import ParameterSource

from ratings_ledger.cli.arguments.command import NO_GAME_LOST, OneOf, command
from ratings_ledger.cli.arguments.engines import choose_work_at, rule_seconds_option, workers_options
from ratings_ledger.cli.arguments.options import result_format
from ratings_ledger.cli.arguments.views import report_ignored_events
from ratings_ledger.cli.interrupts import INTERRUPTED, end_soon_after_interrupt
from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.maintenance import print_rollback
from ratings_ledger.cli.output.progress import ProgressLog, show_progress
from ratings_ledger.cli.output.render import emit
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.events.fields import to_nfc
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.results import ABSENT, Result
from ratings_ledger.projections.stored.generations import read_previous_generation, roll_back
from ratings_ledger.projections.stored.rebuild_plan import GENERATIONS_KEPT, HistoryMissing, RebuildOptions
from ratings_ledger.projections.stored.rebuilding import RebuildResult, rebuild
from ratings_ledger.projections.stored.rule_processes import preload_rules
from ratings_ledger.projections.stored.standings_checks import verify_standings

LINES_SHOWN_MAX = 20


@command(name="rebuild")
@click.argument("names", metavar="[LADDER|RULESET]...", nargs=-1)
@click.option(
    "--check", is_flag=True, help="Replay everything twice, the second time without shortcuts, before promoting."
)
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=GENERATIONS_KEPT),
    default=GENERATIONS_KEPT,
    show_default=True,
    help="Generations to keep, including the live one.",
)
@rule_seconds_option
@click.option(
    "--history/--no-history",
    "keep_history",
    default=None,
    help="Store every change and the current games, for SQL.  [default: as last time]",
)
@workers_options
@click.option("--rollback", is_flag=True, help="Promote the previous generation instead, and drop the live one.")
@click.option("--log", type=OneOf(["plain", "json"]), help="Report every step on standard error, one per line.")
@result_format
@click.pass_context
def rebuild_(
    context: click.Context,
    names: tuple[str, ...],
    check: bool,
    keep: int,
    rule_seconds: float,
    keep_history: bool | None,
    on: str | None,
    segments: str | None,
    rollback: bool,
    log: str | None,
    output_format: str,
) -> int:
    """Replay all ladders, or the named ones, into stored standings. They are promoted in one step.

    Ladders that are not named stay as they are. So do ladders whose rule failed; then the exit code is 1. With --check,
    exit 1 and promote nothing if the second replay gives different standings.
    """
    has_keep_options = context.get_parameter_source("keep") != ParameterSource.DEFAULT or keep_history is not None
    if rollback and (names or check or has_keep_options):
        raise click.UsageError(
            "--rollback promotes the previous generation as it is; leave out names, --check, --keep and --[no-]history"
        )
    options = RebuildOptions(check=check, keep=keep, keep_history=keep_history, rule_seconds=rule_seconds)
    progress_log = ProgressLog(log or "plain")
    ladders = list(dict.fromkeys(map(to_nfc, names)))

    def format_interrupt() -> str:
        return progress_log.format_line("interrupted", {}) if log == "json" else "\nratings: interrupted"

    try:
        with end_soon_after_interrupt(format_interrupt):
            ledger = open_ledger(context.obj)
            if rollback:
                return _verify_and_roll_back(ledger, progress_log if log else None, output_format, rule_seconds)
            with show_progress(progress_log if log else None) as report_progress:
                work_at = choose_work_at(ledger, on, segments, rule_seconds, report_progress)
                result = rebuild(ledger, clock.now, ladders, options, report_progress=report_progress, work_at=work_at)
    except (UnknownLadder, HistoryMissing) as problem:
        raise click.UsageError(str(problem)) from None
    except LedgerError as problem:
        if log != "json":
            raise
        members = {"message": str(problem), "exit_code": problem.exit_code, "reason": problem.reason}
        progress_log.write("stopped", members)
        return problem.exit_code
    except KeyboardInterrupt:
        if log != "json":
            raise
        render.note(format_interrupt())
        return INTERRUPTED
    report_ignored_events(result.why_left_out)
    _print_report(result, progress_log, log, output_format, check)
    return int(bool(result.failures or result.differing))


def _verify_and_roll_back(ledger: Ledger, log: ProgressLog | None, output_format: str, rule_seconds: float) -> int:
    preload_rules(ledger, rule_seconds)
    with ledger.reading() as connection:
        previous = read_previous_generation(connection)
        findings = list(verify_standings(connection, previous, rule_seconds)) if previous is not None else []
    if findings:
        for finding in findings[:LINES_SHOWN_MAX]:
            render.note(f"ratings: {render.plain(str(finding))}")
        is_unclear = all(finding.code == "rule" for finding in findings)
        state_text, remedy = (
            ("cannot be compared with a replay", "once the rules work, run the same command again")
            if is_unclear
            else ("differs from a replay", "to store correct standings: ratings rebuild")
        )
        render.note(f"ratings: the previous generation {state_text}; nothing was rolled back; {remedy}")
        return 1
    rolled_back = roll_back(ledger)
    if log is not None:
        log.write("rolled back", _list_log_members(rolled_back))
    return emit(rolled_back, output_format, print_rollback)


def _print_report(
    result: RebuildResult, log: ProgressLog, log_format: str | None, output_format: str, checked: bool
) -> None:
    """Print the results of a rebuild to stdout, and the failures to stderr."""
    if output_format == "json":
        emit(result, output_format)
    elif result.promoted:
        render.echo(_summarize(result, log.seconds, checked))
    if log_format == "json":
        for failure in result.failures:
            log.write("failed", failure._asdict())
        for ladder in result.differing:
            log.write("differs", {"ladder": ladder})
    else:
        note_failures(result)
    if log_format is not None:
        log.write(
            "done", _list_log_members(result) | {"failures": len(result.failures), "differing": len(result.differing)}
        )


def _list_log_members(result: Result) -> dict[str, Any]:
    return {name: value for name, value in result.model_dump().items() if name != "chain_hash"}


def note_failures(result: RebuildResult) -> None:
    """Note the ladders that failed, with the game, and the ladders whose second replay differed."""
    games = {position: f" (game {render.plain(game_id)})" for position, game_id in result.failed_games.items()}
    consequences = {failure.ladder: "the ladder's previous standings stay live" for failure in result.failures}
    consequences |= dict.fromkeys(result.not_stored, "no standings of the ladder are stored yet")
    failed = [
        f"ratings: {failure.ladder}: the rule failed at position {failure.position}"
        f"{games.get(failure.position, '')}: {failure.message}; {consequences[failure.ladder]}"
        for failure in result.failures
    ]
    differing = [f"ratings: {ladder}: a second replay gives different standings" for ladder in result.differing]
    for lines in (failed, differing):
        for line in lines[:LINES_SHOWN_MAX]:
            render.note(line)
        if (more := len(lines) - LINES_SHOWN_MAX) > 0:
            render.note(f"ratings: ... and {render.count(more, 'more ladder')} (--format json lists them)")
    if failed:
        render.note(f"ratings: {NO_GAME_LOST}; once the rule works again, run: ratings rebuild")
    if result.differing:
        render.note("ratings: nothing was promoted; the live standings stay as they were")


def _summarize(result: RebuildResult, seconds: float, checked: bool) -> str:
    return (
        f"generation {result.generation}: {render.count(result.ladders, 'ladder')}, "
        f"{render.count(result.rows, 'standing')} from {render.count(result.games, 'game')} "
        f"at position {result.position}, {'checked, ' * checked}"
        f"in {seconds:.1f} s"
        + (f"; {render.count(result.unchanged, 'ladder')} unchanged" if result.unchanged else "")
        + (f"; {render.count(result.changes, 'change')} kept for SQL" if result.changes is not ABSENT else "")
    )
