"""`status`: the head of the log, how old the stored standings are, and how the last runs of the jobs ended."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import click
from sqlalchemy import Connection

from cli.arguments.command import command
from cli.arguments.options import format_of
from cli.output import render
from cli.output.prometheus import exposition
from ledger import clock
from ledger.events.canonical import format_instant
from ledger.store.log import Head, count_by_type, head, ledger_id
from ledger.store.opening import Ledger, open_ledger
from ledger.store.runs import LOST, Latest, Run, all_runs, latest_runs
from projections.queries.coordinates import Times, times_of
from projections.stored.freshness import Missing, Stale, missing_rules, stale_ladders
from projections.stored.generations import Generation, kept_generations

SECOND, MINUTE, HOUR, DAY = 1, 60, 3_600, 86_400
SHOWN_LADDERS = 20


class State(NamedTuple):
    """What there is to say about a ledger at an instant, in microseconds; generations and runs newest first."""

    ledger: str
    ledger_id: str
    times: Times
    now: int
    head: Head
    events: dict[str, int]
    generations: list[Generation]
    stale: list[Stale]
    missing: list[Missing]
    runs: dict[str, Latest]

    @property
    def behind(self) -> int | None:
        """How many events the oldest stored standings do not know; None if nothing is stored."""
        if not self.generations:
            return None
        known = [one.position or 0 for one in self.stale]
        return self.head.position - min([self.generations[0].position, *known])

    @property
    def age_seconds(self) -> int | None:
        """How long ago the oldest stored standings were built; None if nothing is stored."""
        built = [one.built_at for one in self.stale if one.built_at is not None]
        return self.since(min([self.generations[0].finished_at, *built])) if self.generations else None

    def since(self, instant: int) -> int:
        """The whole seconds since an instant."""
        return max(0, (self.now - instant) // 1_000_000)


def state_of(ledger: Ledger, connection: Connection) -> State:
    """The state of a ledger now."""
    now = clock.now()
    runs = all_runs(ledger, connection, now)
    return State(
        ledger.location, ledger_id(connection), times_of(connection), now, head(connection), count_by_type(connection),
        kept_generations(connection), stale_ladders(connection, runs), missing_rules(connection), latest_runs(runs),
    )  # fmt: skip


def _age(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """An age as seconds."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,6})([smhd])", value, re.ASCII)
    if match is None:
        raise click.BadParameter("write a whole number with s, m, h or d, such as 26h")
    return int(match.group(1)) * {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}[match.group(2)]


@command()
@click.option(
    "--max-age", metavar="AGE", callback=_age, help="Exit 1 if the stored standings are older than that, such as 26h."
)
@click.option(
    "--max-behind", metavar="N", type=click.IntRange(min=0), help="Exit 1 if they lack more events than that."
)
@click.option("--no-failures", is_flag=True, help="Exit 1 if the last run of a job failed: rebuild, verify, backup.")
@format_of("table", "json", "csv", "prometheus", meaning="Output format; prometheus is the text that collectors read.")
@click.pass_obj
def status(db: str, max_age: int | None, max_behind: int | None, no_failures: bool, form: str) -> int:
    """Show the head of the log and the age of the stored standings.

    It also shows how the last runs of rebuild, verify and backup ended. With --max-age, --max-behind or --no-failures
    it is a health check: exit 1 with the reason. The standings are as old as the oldest of them.
    """
    ledger = open_ledger(db)
    with ledger.reading() as connection:
        state = state_of(ledger, connection)
    problems = list(_problems(state, max_age, max_behind, no_failures))
    if form == "json":
        asked = max_age is not None or max_behind is not None or no_failures
        told = [{"reason": reason, "message": message} for reason, message in problems]
        render.print_json({**_as_json(state), **({"problems": told} if asked else {})})
    elif form == "prometheus":
        render.echo(exposition(_as_json(state)), nl=False)
    elif form == "csv":
        render.print_csv(("what", "value"), _rows(state, csv=True))
    else:
        render.print_table(("what", "value"), _rows(state, csv=False))
        render.echo(f"\nThe head, with the hash of everything before it; keep it to prove the log:\n{state.head}")
    for _, message in problems:
        render.note(render.plain(f"ratings: {message}"))
    return int(bool(problems))


def _problems(
    state: State, max_age: int | None, max_behind: int | None, no_failures: bool
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """What is wrong, each as a stable reason and a message."""
    age, behind = state.age_seconds, state.behind
    if (max_age is not None or max_behind is not None) and age is None:
        yield "nothing-stored", "no standings are stored yet; store them with: ratings rebuild"
    if max_age is not None and age is not None and age > max_age:
        oldest = min((one for one in state.stale if one.built_at is not None), key=lambda one: one.built_at or 0,
                     default=None)  # fmt: skip
        what = "the stored standings are" if oldest is None else f"{oldest.ladder}: its stored standings are"
        yield "too-old", f"{what} {_exactly(age)} old; --max-age allows {_exactly(max_age)}"
    if max_behind is not None and behind is not None and behind > max_behind:
        last = min((one for one in state.stale), key=lambda one: one.position or 0, default=None)
        what = "the stored standings are" if last is None else f"{last.ladder}: its stored standings are"
        yield "too-far-behind", f"{what} {render.count(behind, 'event')} behind; --max-behind allows {max_behind:,}"
    for kind, known in state.runs.items() if no_failures else ():
        ended = known.ended
        # a night leaves the outcome of its parts to them, so that redoing a part by hand ends the alarm
        if ended is not None and ended.has_failed and (kind != "nightly" or ended.result == LOST):
            at = state.times.second(ended.finished_at or ended.started_at)
            yield "failed", f"the last {kind} failed ({at}): {ended.message}"


def told_age(seconds: int) -> str:
    """An age in words, rounded down.

    >>> told_age(7), told_age(60), told_age(95_000), told_age(400_000)
    ('less than a minute', '1 minute', '26 hours', '4 days')
    """
    for unit, size, from_ in (("day", DAY, 3 * DAY), ("hour", HOUR, 2 * HOUR), ("minute", MINUTE, MINUTE)):
        if seconds >= from_:
            return render.count(seconds // size, unit)
    return "less than a minute"


def _exactly(seconds: int) -> str:
    return told_age(seconds) if seconds >= 2 * MINUTE else render.count(seconds, "second")


def _as_json(state: State) -> dict[str, Any]:
    latest_, generation = state.head, state.generations[0] if state.generations else None
    return {
        "ledger": state.ledger,
        "ledger_id": state.ledger_id,
        "zone": state.times.home,
        "head": str(latest_),
        "position": latest_.position,
        "recorded_at": format_instant(latest_.recorded_at) if latest_.position else None,
        "recorded": _second(latest_.recorded_at) if latest_.position else None,
        "events": state.events,
        "generation": None
        if generation is None
        else {
            "generation": generation.generation,
            "position": generation.position,
            "finished_at": format_instant(generation.finished_at),
            "behind": latest_.position - generation.position,
            "finished": _second(generation.finished_at),
            "age_seconds": state.since(generation.finished_at),
        },
        "generations": [
            {**one._asdict(), "chain_hash": one.chain_hash.hex(), "finished_at": format_instant(one.finished_at),
             "finished": _second(one.finished_at), "age_seconds": state.since(one.finished_at)}
            for one in state.generations
        ],
        "age_seconds": state.age_seconds,
        "behind": state.behind,
        "stale": [
            {"ladder": one.ladder, "position": one.position, "behind": latest_.position - (one.position or 0),
             "built": _second(one.built_at), "age_seconds": None if one.built_at is None else state.since(one.built_at),
             "why": one.why, "message": one.message}
            for one in state.stale
        ],
        "rules_missing": [one._asdict() for one in state.missing],
        "runs": {
            kind: {"last": _run(state, one.last), "last_success": _run(state, one.done),
                   "last_failure": _run(state, one.failed)}
            for kind, one in state.runs.items()
        },
    }  # fmt: skip


def _second(instant: int | None) -> str | None:
    """An instant in whole seconds, rounded down, such as 2026-11-22T15:14:56Z."""
    return None if instant is None else f"{format_instant(instant)[:19]}Z"


def _run(state: State, run: Run | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "result": run.result,
        "started": _second(run.started_at),
        "finished": _second(run.finished_at),
        "age_seconds": state.since(run.finished_at or run.started_at),
        "message": run.message,
        "position": run.position,
        "by": run.run_by,
        "details": run.details,
    }


def _rows(state: State, csv: bool) -> Sequence[tuple[str, str | int]]:
    times, newest = state.times, state.head
    recorded: str | None = None
    if newest.position:
        recorded = format_instant(newest.recorded_at) if csv else times.second(newest.recorded_at)
    generation = state.generations[0] if state.generations else None
    return [
        ("ledger", state.ledger), ("id", state.ledger_id),
        ("head", str(newest) if csv else f"{newest.position:,}"),
        *([("home zone", times.home)] if times.home else []),
        ("last recorded", recorded or "nothing yet"),
        *sorted(state.events.items()),
        ("stored standings", "none yet: ratings rebuild" if generation is None else
         f"generation {generation.generation}, {render.count(newest.position - generation.position, 'event')} behind"),
        *([] if state.age_seconds is None else [("age", told_age(state.age_seconds))]),
        *_of_runs(state),
        *(("rule missing", f"{one.ruleset} needs the rule {one.rule}, which is not installed")
          for one in state.missing),
        *_of_stale(state),
        *((f"generation {one.generation}", _told(one, times)) for one in state.generations),
    ]  # fmt: skip


def _of_runs(state: State) -> Iterator[tuple[str, str]]:
    """The last run of each kind, and the last that failed."""
    for kind, known in state.runs.items():
        yield f"last {kind}", ": ".join(filter(None, told_run(known.last, state.times)))
        if known.failed is not None and known.failed is not known.last:
            yield f"last failed {kind}", ": ".join(filter(None, told_run(known.failed, state.times)))


def told_run(run: Run, times: Times) -> tuple[str, str]:
    """How a run ended, when, and if it failed by whom; and why it failed."""
    moment = times.second(run.finished_at or run.started_at)
    if not run.has_failed:
        return (f"{run.result}, {moment}" if run.finished_at else f"{run.result} since {moment}, by {run.run_by}"), ""
    return f"failed, {moment}, by {run.run_by}", run.message or "nobody said why"


def _of_stale(state: State) -> Iterator[tuple[str, str]]:
    whys = {"failed": "its rule failed", "not-asked": "not asked for"}
    for one in state.stale[:SHOWN_LADDERS]:
        why = whys[one.why] + (f": {one.message}" if one.message else "")
        behind = render.count(state.head.position - (one.position or 0), "event")
        yield (
            "stale",
            f"{one.ladder}: "
            + (f"never built, {why}" if one.position is None else f"position {one.position:,}, {behind} behind, {why}"),
        )
    if (more := len(state.stale) - SHOWN_LADDERS) > 0:
        yield "stale", f"... and {render.count(more, 'more ladder')} (--format json lists them)"


def _told(one: Generation, times: Times) -> str:
    built = "" if one.built == one.ladders else f", {one.built:,} of them built"
    return (
        f"{'live, ' * one.live}position {one.position:,}, {render.count(one.ladders, 'ladder')}{built}, "
        f"{times.second(one.finished_at)}"
    )
