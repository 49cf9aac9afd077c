"""Build the status page: the head of the log, and the last verification and rebuild."""

from dataclasses import dataclass
from importlib.metadata import version

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.projections.queries.coordinates import TimeFormat
from ratings_ledger.projections.queries.results import Result
from ratings_ledger.projections.stored.status import LastRuns
from ratings_ledger.web.addresses import STATUS
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit


@dataclass(frozen=True, slots=True)
class LastRun(Result):
    """The last ended run of a job: the result (`done`, `failed` or `lost`), the end, and the position reached."""

    result: str | None
    finished: str | None
    position: int | None


@dataclass(frozen=True, slots=True)
class LogState(Result):
    """The public state of a ledger, without its settings or location.

    `behind` is the number of events missing from the stored standings, None if nothing is stored. `verified` and
    `rebuilt` are None if no such run has ended.
    """

    head: str
    position: int
    recorded_at: str | None
    events: dict[str, int]
    program: str
    behind: int | None
    verified: LastRun | None
    rebuilt: LastRun | None


def build_status_page(visit: Visit) -> Page:
    """Return the status page. Raises `StoreDamaged`, and `BadArgument` if coordinates are given."""
    if visit.query:
        raise BadArgument("the status page takes no coordinates; leave out everything after the `?`")
    status = visit.ledger.status()
    state = LogState(
        head=status.head,
        position=status.position,
        recorded_at=status.recorded_at,
        events=dict(sorted(status.events.items())),
        program=version("ratings-ledger"),
        behind=status.behind,
        verified=_build_last_run(status.runs.get("verify")),
        rebuilt=_build_last_run(status.runs.get("rebuild")),
    )
    return Page(
        path=STATUS,
        template="status",
        title="Status",
        answer=state,
        times=TimeFormat(status.zone),
        variables={"state": state},
    )


def _build_last_run(runs: LastRuns | None) -> LastRun | None:
    run = None if runs is None else runs.ended
    return None if run is None else LastRun(run.result, run.finished, run.position)
