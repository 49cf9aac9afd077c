"""Print the state of a ledger, as tables, as CSV and as metrics."""

from collections.abc import Iterator

from ratings_ledger.cli.output import render
from ratings_ledger.cli.output.survey import describe_due
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.ladder_names import short_name
from ratings_ledger.projections.stored.generations import Generation
from ratings_ledger.projections.stored.status import LedgerStatus

SECOND, MINUTE, HOUR, DAY = 1, 60, 3_600, 86_400
LADDERS_SHOWN_MAX = 20


def print_status_prometheus(state: LedgerStatus) -> None:
    """Print the metrics for Prometheus."""
    from ratings_ledger.cli.output.prometheus import format_metrics

    render.echo(format_metrics(state.model_dump()), nl=False)


def print_status_csv(state: LedgerStatus) -> None:
    """Print one line per number, with the exact time of the last event, and with the hash of the head."""
    render.print_csv(("what", "value"), list(_build_status_rows(state, csv=True)))


def print_status(state: LedgerStatus) -> None:
    """Print a table with rounded numbers, and then the head."""
    render.print_table(("what", "value"), list(_build_status_rows(state, csv=False)))
    render.echo(
        f"\nThe head, with the hash of the whole log; keep it to prove later that the log is unchanged:\n{state.head}"
    )


def format_age(seconds: int) -> str:
    """Return an age in words, rounded down.

    >>> format_age(7), format_age(60), format_age(95_000), format_age(400_000)
    ('less than a minute', '1 minute', '26 hours', '4 days')
    """
    for unit, size, seconds_min in (("day", DAY, 3 * DAY), ("hour", HOUR, 2 * HOUR), ("minute", MINUTE, MINUTE)):
        if seconds >= seconds_min:
            return render.count(seconds // size, unit)
    return "less than a minute"


def format_age_exactly(seconds: int) -> str:
    """Return an age in words, in seconds if it is below two minutes."""
    return format_age(seconds) if seconds >= 2 * MINUTE else render.count(seconds, "second")


def _build_status_rows(state: LedgerStatus, csv: bool) -> Iterator[tuple[str, str | int]]:
    times, live = state.times, state.generation
    recorded: str | None = None
    if state.recorded_at is not None:
        recorded = state.recorded_at if csv else times.format_second(state.recorded_at)
    yield from (("ledger", state.ledger), ("id", state.ledger_id))
    yield "head", state.head if csv else f"{state.position}"
    if state.zone:
        yield "home zone", state.zone
    yield "last recorded", recorded or "nothing yet"
    yield from sorted(state.events.items())
    yield (
        "stored standings",
        "none yet: ratings rebuild"
        if live is None
        else (f"generation {live.generation}, {render.count(live.behind, 'event')} behind"),
    )
    if state.age_seconds is not None:
        yield "age", format_age(state.age_seconds)
    for schedule in () if state.schedules is ABSENT else state.schedules:
        due = f"{describe_due(schedule.due)} due"
        remedy = ": ratings publish --due" if schedule.due else ""
        yield "scheduled", f"{short_name(schedule.ladder)} every {schedule.every}, {due}{remedy}"
    for kind, runs in state.runs.items():
        yield f"last {kind}", ": ".join(filter(None, runs.last.describe(times)))
        if runs.last_failure is not None and not runs.last.has_failed:
            yield f"last failed {kind}", ": ".join(filter(None, runs.last_failure.describe(times)))
    for ahead in state.dated_ahead:
        remedy = f"correct the clock, or if it is right: {ahead.remedy}"
        yield "dated after now", f"{ahead.name}: {times.format_second(ahead.dated)}; {remedy}"
    for missing in state.rules_missing:
        remedy = "install its package, or run ratings doctor"
        yield "rule missing", f"{missing.ruleset} needs the rule {missing.rule}, which is not installed; {remedy}"
    yield from _build_stale_rows(state)
    for generation in state.generations:
        yield f"generation {generation.generation}", _describe_generation(generation, times)


def _build_stale_rows(state: LedgerStatus) -> Iterator[tuple[str, str]]:
    reasons = {"failed": "its rule failed", "not-asked": "not requested"}
    for ladder in state.stale[:LADDERS_SHOWN_MAX]:
        reason = reasons[ladder.why] + (f": {ladder.message}" if ladder.message else "")
        behind = render.count(ladder.behind, "event")
        yield (
            "stale",
            f"{short_name(ladder.ladder)}: "
            + (
                f"never built, {reason}"
                if ladder.position is None
                else f"position {ladder.position}, {behind} behind, {reason}"
            ),
        )
    if (more := len(state.stale) - LADDERS_SHOWN_MAX) > 0:
        yield "stale", f"... and {render.count(more, 'more ladder')} (--format json lists them)"


def _describe_generation(generation: Generation, times: TimeFormat) -> str:
    built = "" if generation.built == generation.ladders else f", {generation.built:,} of them built"
    ladders = render.count(generation.ladders, "ladder")
    return (
        f"{'live, ' * generation.live}position {generation.position}, {ladders}{built}, "
        f"{times.format_second(generation.finished_at)}"
    )
