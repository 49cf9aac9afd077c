"""How the state of a ledger looks, as tables, as CSV and as metrics."""

from collections.abc import Iterator

from ratings_ledger.cli.output import render
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.replay.ladders import short_name
from ratings_ledger.projections.stored.generations import Generation
from ratings_ledger.projections.stored.status import LedgerStatus

SECOND, MINUTE, HOUR, DAY = 1, 60, 3_600, 86_400
SHOWN_LADDERS = 20


def print_status_prometheus(state: LedgerStatus) -> None:
    """The text that collectors read."""
    from ratings_ledger.cli.output.prometheus import exposition

    render.echo(exposition(state.model_dump()), nl=False)


def print_status_csv(state: LedgerStatus) -> None:
    """One line per number, with exact times."""
    render.print_csv(("what", "value"), list(_rows(state, csv=True)))


def print_status(state: LedgerStatus) -> None:
    """The same for people, then the head."""
    render.print_table(("what", "value"), list(_rows(state, csv=False)))
    render.echo(f"\nThe head, with the hash of everything before it; keep it to prove the log:\n{state.head}")


def told_age(seconds: int) -> str:
    """Return an age in words, rounded down.

    >>> told_age(7), told_age(60), told_age(95_000), told_age(400_000)
    ('less than a minute', '1 minute', '26 hours', '4 days')
    """
    for unit, size, from_ in (("day", DAY, 3 * DAY), ("hour", HOUR, 2 * HOUR), ("minute", MINUTE, MINUTE)):
        if seconds >= from_:
            return render.count(seconds // size, unit)
    return "less than a minute"


def exactly(seconds: int) -> str:
    """Return the same, to the second if it is less than two minutes."""
    return told_age(seconds) if seconds >= 2 * MINUTE else render.count(seconds, "second")


def _rows(state: LedgerStatus, csv: bool) -> Iterator[tuple[str, str | int]]:
    times, live = state.times, state.generation
    recorded: str | None = None
    if state.recorded_at is not None:
        recorded = state.recorded_at if csv else times.second(state.recorded_at)
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
        yield "age", told_age(state.age_seconds)
    for kind, known in state.runs.items():
        yield f"last {kind}", ": ".join(filter(None, known.last.told(times)))
        if known.last_failure is not None and not known.last.has_failed:
            yield f"last failed {kind}", ": ".join(filter(None, known.last_failure.told(times)))
    for ahead in state.dated_ahead:
        yield "dated after now", f"{ahead.name}: {times.second(ahead.dated)}; {ahead.remedy}"
    for one in state.rules_missing:
        yield "rule missing", f"{one.ruleset} needs the rule {one.rule}, which is not installed"
    yield from _of_stale(state)
    for generation in state.generations:
        yield f"generation {generation.generation}", _told(generation, times)


def _of_stale(state: LedgerStatus) -> Iterator[tuple[str, str]]:
    whys = {"failed": "its rule failed", "not-asked": "not asked for"}
    for one in state.stale[:SHOWN_LADDERS]:
        why = whys[one.why] + (f": {one.message}" if one.message else "")
        behind = render.count(one.behind, "event")
        yield (
            "stale",
            f"{short_name(one.ladder)}: "
            + (f"never built, {why}" if one.position is None else f"position {one.position}, {behind} behind, {why}"),
        )
    if (more := len(state.stale) - SHOWN_LADDERS) > 0:
        yield "stale", f"... and {render.count(more, 'more ladder')} (--format json lists them)"


def _told(one: Generation, times: Times) -> str:
    built = "" if one.built == one.ladders else f", {one.built:,} of them built"
    return (
        f"{'live, ' * one.live}position {one.position}, {render.count(one.ladders, 'ladder')}{built}, "
        f"{times.second(one.finished_at)}"
    )
