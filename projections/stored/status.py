"""Report the status of a ledger: its head, the age of its stored standings, and the last runs of its jobs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant, parse_instant
from ratings_ledger.ledger.store.log import count_by_type, head, ledger_id
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import DONE, FAILED, LOST, Run, find_latest_runs, find_runs_ahead, list_runs
from ratings_ledger.ledger.validation.published_lists import read_scheduled_ladders
from ratings_ledger.projections.queries.coordinates import TimeFormat, load_times
from ratings_ledger.projections.queries.published_lists import Schedule
from ratings_ledger.projections.queries.results import ABSENT, AS_IS, HIDDEN, Absent, Answer, Result
from ratings_ledger.projections.stored.freshness import (
    RulesetWithoutRule,
    StaleLadder,
    find_missing_rules,
    find_stale_ladders,
)
from ratings_ledger.projections.stored.generations import (
    Generation,
    count_seconds_since,
    format_whole_second,
    list_generations,
)


@dataclass(frozen=True, slots=True)
class LiveGeneration(Result):
    """The generation that readers see. It lacks the last `behind` events; `finished` is `finished_at` to the second."""

    generation: int
    position: int
    finished_at: datetime
    behind: int
    finished: str
    age_seconds: int


@dataclass(frozen=True, slots=True)
class RunState(Result):
    """A run of a job; `result` is `done`, `failed`, `lost` or `running`.

    The age counts from the end of the run, or from its start if the end is unknown.
    """

    result: str | None
    started: str
    finished: str | None
    age_seconds: int
    message: str | None
    position: int | None
    by: str
    details: dict[str, Any] = field(metadata=AS_IS)

    @property
    def has_failed(self) -> bool:
        """Tell whether the run failed or was lost."""
        return self.result in (FAILED, LOST)

    def describe(self, times: TimeFormat) -> tuple[str, str]:
        """Return the result and time of the run, with its author unless it is done; and why it failed, or "".

        A lost run is described as failed.
        """
        time_text = times.format_second(self.finished or self.started)
        if self.has_failed:
            return f"failed, {time_text}, by {self.by}", self.message or "no reason was recorded"
        if self.finished:
            return f"{self.result}, {time_text}", ""
        return f"{self.result} since {time_text}, by {self.by}", ""


@dataclass(frozen=True, slots=True)
class LastRuns(Result):
    """The last runs of a job: the last run, the last success, the last failure, and the last run that has ended."""

    last: RunState
    last_success: RunState | None
    last_failure: RunState | None
    ended: RunState | None = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class NightlyPart(Result):
    """The result of a part of a nightly run; `reason` is a code for why the part did not finish."""

    part: str
    exit_code: int
    message: str
    seconds: float = field(metadata=AS_IS)
    reason: str | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class NightlyResult(Result):
    """The result of a nightly run; `exit_code` is the lowest exit code of the failed parts, or 0.

    `compared_without_cache` is the start of the last successful comparison of all stored data with an uncached replay.
    """

    started: str
    seconds: float = field(metadata=AS_IS)
    exit_code: int
    head: str | None
    parts: tuple[NightlyPart, ...]
    compared_without_cache: str | None


# the commands that start a new run of a kind, where they differ from `ratings KIND`
RUN_COMMANDS = {"backup": "ratings backup make DIR", "publish": "ratings publish --due"}


def find_run_command(kind: str) -> str:
    """Return the command that starts a new run of a kind."""
    return RUN_COMMANDS.get(kind, f"ratings {kind}")


@dataclass(frozen=True, slots=True)
class FutureDatedItem(Result):
    """A `run`, a `generation` or a stored `ladder` dated in the future; if the clock is right, run `remedy`."""

    kind: str
    name: str
    dated: str
    remedy: str

    @property
    def message(self) -> str:
        """Describe the error and the fix."""
        return (
            f"{self.name} is dated {self.dated}, in the future by this machine's clock; correct the clock, or if it is "
            f"right, run: {self.remedy}"
        )


@dataclass(frozen=True, slots=True)
class HealthProblem(Result):
    """A problem that a health check found; `reason` is a stable code."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class LedgerStatus(Answer):
    """The status of a ledger; generations are sorted newest first.

    `age_seconds` and `behind` describe the oldest stored standings; they are None if nothing is stored. A failed ladder
    without stored standings counts as behind by all events. `problems` are the results of a health check, if requested.
    `recorded` is `recorded_at`, the time of the last event, to the second. `schedules` has the ladders that are
    published every month, if any.
    """

    ledger: str
    ledger_id: str
    zone: str | None
    head: str
    position: int
    recorded_at: str | None
    recorded: str | None
    events: dict[str, int]
    generation: LiveGeneration | None
    generations: tuple[Generation, ...]
    age_seconds: int | None
    behind: int | None
    stale: tuple[StaleLadder, ...]
    rules_missing: tuple[RulesetWithoutRule, ...]
    runs: dict[str, LastRuns]
    dated_ahead: tuple[FutureDatedItem, ...]
    problems: tuple[HealthProblem, ...] | Absent = ABSENT
    schedules: tuple[Schedule, ...] | Absent = ABSENT


def find_last_comparison(ledger: Ledger, connection: Connection) -> str | None:
    """Return when the last successful comparison of all stored data with a replay of the records began, or None.

    `rebuild --check` and a full `verify` make this comparison; `verify --on` does not, because workers read sealed
    segments.
    """
    for run in list_runs(ledger, connection, clock.now()):
        details = run.details
        is_full = details.get("without_cache") is True or (details.get("check") is True and details.get("asked") == [])
        if run.result == DONE and is_full:
            return format_whole_second(run.started_at)
    return None


def read_ledger_status(ledger: Ledger, connection: Connection) -> LedgerStatus:
    """Return the current status of a ledger. Raises `StoreDamaged`."""
    now = clock.now()
    runs, times, latest = list_runs(ledger, connection, now), load_times(connection), head(connection)
    generations, stale = list_generations(connection, now), find_stale_ladders(connection, runs, now)
    live, age, behind = None, None, None
    if generations:
        newest = generations[0]
        behind = latest.position - newest.position
        live = LiveGeneration(
            generation=newest.generation,
            position=newest.position,
            finished_at=newest.finished_at,
            behind=behind,
            finished=newest.finished,
            age_seconds=newest.age_seconds,
        )
        behind = max(behind, *(entry.behind for entry in stale)) if stale else behind
        age = max([newest.age_seconds, *(entry.age_seconds for entry in stale if entry.age_seconds is not None)])
    recorded = None if not latest.position else latest.recorded_at
    return LedgerStatus(
        ledger=ledger.location,
        ledger_id=ledger_id(connection),
        zone=times.home,
        head=str(latest),
        position=latest.position,
        recorded_at=None if recorded is None else format_instant(recorded),
        recorded=None if recorded is None else format_whole_second(recorded),
        events=count_by_type(connection),
        generation=live,
        generations=tuple(generations),
        age_seconds=age,
        behind=behind,
        stale=tuple(stale),
        rules_missing=tuple(find_missing_rules(connection)),
        runs={
            kind: LastRuns(
                last=_build_run_state(last_runs.last, now),
                last_success=last_runs.done and _build_run_state(last_runs.done, now),
                last_failure=last_runs.failed and _build_run_state(last_runs.failed, now),
                ended=last_runs.ended and _build_run_state(last_runs.ended, now),
            )
            for kind, last_runs in find_latest_runs(runs).items()
        },
        dated_ahead=tuple(_find_dated_ahead(runs, generations, stale, now)),
        schedules=_load_schedules(connection, latest.position, times, now) or ABSENT,
        times=times,
    )


def _load_schedules(connection: Connection, position: int, times: TimeFormat, now: int) -> tuple[Schedule, ...]:
    """Return the scheduled ladders with their due lists. The log is decoded only if there is a schedule."""
    if not read_scheduled_ladders(connection, position):
        return ()
    from ratings_ledger.projections.facts.decoding import decode
    from ratings_ledger.projections.queries.ladders_at import Ladders
    from ratings_ledger.projections.queries.survey import Survey, find_schedules

    return find_schedules(Survey(connection, Ladders(decode(connection, position)), None, times), now)


def _find_dated_ahead(
    runs: Sequence[Run], generations: Sequence[Generation], stale: Sequence[StaleLadder], now: int
) -> Iterator[FutureDatedItem]:
    for run in find_runs_ahead(runs, now):
        dated = format_whole_second(run.latest_instant)
        yield FutureDatedItem("run", f"a run of {run.kind}", dated, find_run_command(run.kind))
    for generation in generations:
        if clock.is_ahead(parse_instant(generation.finished), now):
            name = f"generation {generation.generation} of the stored standings"
            yield FutureDatedItem(
                "generation", name, generation.finished, "ratings rebuild (repeat until this generation is dropped)"
            )
    for ladder in stale:
        if ladder.built is not None and clock.is_ahead(ladder.built_at or 0, now):
            name = f"the stored ladder {ladder.ladder}"
            yield FutureDatedItem("ladder", name, ladder.built, "ratings rebuild")


def _build_run_state(run: Run, now: int) -> RunState:
    return RunState(
        result=run.result,
        started=format_whole_second(run.started_at),
        finished=None if run.finished_at is None else format_whole_second(run.finished_at),
        age_seconds=count_seconds_since(run.finished_at or run.started_at, now),
        message=run.message,
        position=run.position,
        by=run.run_by,
        details=run.details,
    )
