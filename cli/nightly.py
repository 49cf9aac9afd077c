"""`rebuild` and `verify`: what cron runs, and what an auditor runs."""

import json
import os
import sys
from collections.abc import Generator
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from sqlalchemy.exc import DBAPIError

from cli import render
from cli.interrupts import ending_soon
from cli.left_out import note_left_out
from cli.options import composed, head_value
from cli.progress import Log, progress
from cli.start import INTERRUPTED
from cli.trying import rule_seconds_option
from ledger import clock
from ledger.errors import LedgerError, RulesetUnusable, StoreDamaged
from ledger.integrity import Finding, verify_log, verify_order
from ledger.runs import running
from ledger.store import Ledger, open_ledger, read_records_at
from projections.admission import Recorded
from projections.generations import before_live, roll_back
from projections.guarding import try_to_load
from projections.integrity import verify_clocks, verify_published, verify_standings
from projections.rebuilding import KEPT, HistoryMissing, Rebuilt, rebuild
from projections.standings import UnknownLadder

SHOWN_LADDERS = 20
# with these findings in the log it can be replayed all the same
REPLAYED = ("guard", "schema", "head", "meaning", "not-a-record")
T = TypeVar("T")


@click.command(name="rebuild")
@click.argument("names", metavar="[LADDER|RULESET]...", nargs=-1)
@click.option("--check", is_flag=True, help="Replay everything a second time, the plainest way, before it is promoted.")
@click.option(
    "--keep", metavar="N", type=click.IntRange(min=KEPT), default=KEPT, show_default=True,
    help="Generations to keep, the live one among them.",
)  # fmt: skip
@rule_seconds_option
@click.option(
    "--history/--no-history", "keep_history", default=None,
    help="Keep every change and the games as they stand, for SQL.  [default: as the last time]",
)  # fmt: skip
@click.option("--rollback", is_flag=True, help="Promote the generation before instead, and give up the live one.")
@click.option("--log", type=click.Choice(["plain", "json"]), help="Tell every step on standard error, one a line.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
@click.pass_context
def rebuild_(
    context: click.Context,
    names: tuple[str, ...],
    check: bool,
    keep: int,
    rule_seconds: float,
    keep_history: bool | None,
    rollback: bool,
    log: str | None,
    form: str,
) -> int:
    """Replay every ladder, or those named, into stored standings. They are promoted in one step.

    Ladders that are not named stay as they are. Exit 1 if a rule failed, or if a second replay came to other standings;
    then nothing is promoted.
    """
    keeps = context.get_parameter_source("keep") != ParameterSource.DEFAULT or keep_history is not None
    if rollback and (names or check or keeps):
        raise click.UsageError("--rollback computes nothing; it takes neither names nor --check, --keep or --history")
    written = Log(log or "plain")
    asked = list(dict.fromkeys(map(composed, names)))

    def last_words() -> str:
        return written.line("interrupted", {}) if log == "json" else "\nratings: interrupted"

    try:
        with ending_soon(last_words):
            ledger = open_ledger(context.obj)
            if rollback:
                return _roll_back(ledger, written if log else None, form, rule_seconds)
            with progress(written if log else None) as tell:
                done = rebuild(
                    ledger, clock.now, asked, keep=keep, check=check, rule_seconds=rule_seconds,
                    keep_history=keep_history, tell=tell,
                )  # fmt: skip
    except (UnknownLadder, HistoryMissing) as problem:
        raise click.UsageError(str(problem)) from None
    except LedgerError as problem:
        if log != "json":
            raise
        numbers = {"message": str(problem), "exit_code": problem.exit_code, "reason": problem.reason}
        written.write("stopped", numbers)
        return problem.exit_code
    except KeyboardInterrupt:
        if log != "json":
            raise
        render.note(last_words())
        return INTERRUPTED
    note_left_out(done.left_out)
    _report(done, _games_of(ledger, done), written, log, form, check)
    return int(bool(done.failures or done.differing))


def _roll_back(ledger: Ledger, log: Log | None, form: str, rule_seconds: float) -> int:
    try_to_load(ledger, rule_seconds)
    with ledger.reading() as connection:
        kept = before_live(connection)
        wrong = list(verify_standings(connection, kept, rule_seconds)) if kept is not None else []
    if wrong:
        for finding in wrong[:SHOWN_LADDERS]:
            render.note(f"ratings: {_line(finding)}")
        render.note("ratings: the generation before is not as it was built; nothing was rolled back")
        return 1
    before, given_up = roll_back(ledger)
    numbers = {"generation": before.generation, "position": before.position, "given_up": given_up}
    if log is not None:
        log.write("rolled back", numbers)
    if form == "json":
        render.print_json({**numbers, "chain_hash": bytes(before.chain_hash).hex()})
    else:
        render.echo(f"generation {before.generation} of position {before.position:,} is live again; "
                   f"generation {given_up} is given up")  # fmt: skip
    return 0


def _games_of(ledger: Ledger, done: Rebuilt) -> dict[int, str]:
    """The games at which rules failed, by position."""
    with ledger.reading() as connection:
        records = read_records_at(connection, [failure.position for failure in done.failures])
    found = {position: json.loads(record)["data"].get("game_id") for position, record in records.items()}
    return {position: game_id for position, game_id in found.items() if game_id}


def _report(done: Rebuilt, games: dict[int, str], log: Log, wanted: str | None, form: str, checked: bool) -> None:
    """What a rebuild made to stdout, what went wrong to stderr."""
    if form == "json":
        failures = [failure._asdict() for failure in done.failures]
        render.print_json({**_numbers(done), "chain_hash": done.chain_hash.hex(), "failures": failures})
    elif done.promoted:
        render.echo(_summary(done, log.seconds, checked))
    at = {position: f" (game {render.plain(game_id)})" for position, game_id in games.items()}
    failed = [
        f"ratings: {failure.ladder}: the rule failed at position {failure.position}"
        f"{at.get(failure.position, '')}: {failure.message}; "
        "its standings of before keep serving"
        for failure in done.failures
    ]
    differing = [f"ratings: {ladder}: a second replay comes to other standings" for ladder in done.differing]
    if wanted == "json":
        for failure in done.failures:
            log.write("failed", failure._asdict())
        for ladder in done.differing:
            log.write("differs", {"ladder": ladder})
    else:
        for lines in (failed, differing):
            for line in lines[:SHOWN_LADDERS]:
                render.note(line)
            if (more := len(lines) - SHOWN_LADDERS) > 0:
                render.note(f"ratings: ... and {render.count(more, 'more ladder')} (--format json lists them)")
        if done.differing:
            render.note("ratings: nothing was promoted; the generation of before keeps serving")
    if wanted is not None:
        numbers = _numbers(done) | {"failures": len(failed), "differing": len(differing)}
        log.write("done", {name: value for name, value in numbers.items() if name != "chain_hash"})


def _numbers(done: Rebuilt) -> dict[str, Any]:
    """What a rebuild made, with the positions that it left out if there are any, and the changes that it kept."""
    numbers = done._asdict()
    left_out, kept, changes = list(numbers.pop("left_out")), numbers.pop("history"), numbers.pop("changes")
    return {**numbers, **({"changes": changes} if kept else {}), **({"left_out": left_out} if left_out else {})}


def _summary(done: Rebuilt, seconds: float, checked: bool) -> str:
    return (
        f"generation {done.generation}: {render.count(done.ladders, 'ladder')}, {render.count(done.rows, 'standing')} "
        f"from {render.count(done.games, 'game')} at position {done.position:,}, {'checked, ' * checked}"
        f"in {seconds:.1f} s"
        + (f"; {render.count(done.unchanged, 'ladder')} unchanged" if done.unchanged else "")
        + (f"; {render.count(done.changes, 'change')} kept for SQL" if done.history else "")
    )  # fmt: skip


@click.command()
@click.option(
    "--head", "expected", metavar="POSITION:CHAINHASH", callback=head_value, help="A history that must be contained."
)
@rule_seconds_option
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
@click.pass_obj
def verify(db: str, expected: tuple[int, bytes] | None, rule_seconds: float, form: str) -> int:
    """Recompute every hash from the records. Everything stored is compared with them. Silent when all is well.

    On a terminal it says how much it looked at. Exit 3 where something kept it from looking, such as a lock.
    """
    ledger = open_ledger(db)
    findings: list[Finding] = []

    def take(found: Generator[Finding, None, T]) -> T:
        while True:
            try:
                finding = next(found)
            except StopIteration as end:
                result: T = end.value
                return result
            findings.append(finding)
            if form == "table":
                _tell(_line(finding))

    with running(ledger, "verify", clock.now, only_if_well=True) as run:
        with ledger.reading() as connection:
            checked = take(verify_log(ledger, connection, expected))
            # a log that cannot be read, or is not all there, says nothing of what is computed from it
            if checked.guards and all(finding.code in REPLAYED for finding in findings):
                try:
                    try_to_load(ledger, rule_seconds)
                    take(verify_clocks(connection))
                    checked = checked._replace(lists=take(verify_published(connection, rule_seconds)))
                    take(verify_order(connection, Recorded, {finding.position for finding in findings}))
                    checked = checked._replace(ladders=take(verify_standings(connection, rule_seconds=rule_seconds)))
                except (StoreDamaged, RulesetUnusable) as problem:
                    take(_single("rule", f"the log cannot be replayed: {problem}"))
                except DBAPIError as error:
                    if not ledger.dialect.is_damage(error.orig or error):
                        raise
                    take(_single("standings", f"what is stored cannot be read: {str(error.orig).splitlines()[0]}"))
        run.position, run.details = checked.events, {"checked": checked._asdict(), "findings": len(findings)}
        if findings:
            run.fail(f"{render.count(len(findings), 'finding')}; the first is {_line(findings[0])}")
    if form == "json":
        render.print_json({"findings": [finding._asdict() for finding in findings], "checked": checked._asdict()})
    elif not findings and sys.stdout.isatty():
        render.hanging(
            f"All is well: {render.count(checked.events, 'event')}, {checked.hashes:,} hashes, "
            f"{checked.guards} guards, {checked.objects} tables and other objects, "
            f"{render.count(checked.lists, 'published list')}, {render.count(checked.ladders, 'stored ladder')}.",
            2,
        )
    return int(bool(findings))


def _single(code: str, message: str) -> Generator[Finding, None, None]:
    yield Finding(code, None, message)


def _tell(line: str) -> None:
    """Print a finding; with nobody reading any more the exit code tells all the same."""
    try:
        render.echo(line)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _line(finding: Finding) -> str:
    where = "" if finding.position is None else f"position {finding.position}: "
    return render.plain(f"{finding.code}: {where}{finding.message}")
