"""The page of the ledger's state: the head of its log, and when it was last verified and rebuilt."""

from dataclasses import dataclass
from importlib.metadata import version

from ratings_ledger.ledger.errors import BadArgument
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.results import Result
from ratings_ledger.projections.stored.status import LastRuns
from ratings_ledger.web.addresses import STATUS
from ratings_ledger.web.page import Page
from ratings_ledger.web.visits import Visit


@dataclass(frozen=True, slots=True)
class LastRun(Result):
    """How a job ended last, `done`, `failed` or `lost`, and when; at which position it had looked."""

    result: str | None
    finished: str | None
    position: int | None


@dataclass(frozen=True, slots=True)
class LogState(Result):
    """What everybody may know of a ledger's state: nothing of its settings, nor where it lies.

    `behind` is how many events the stored standings lack, None where none are stored; a job that never ended is None.
    """

    head: str
    position: int
    recorded_at: str | None
    events: dict[str, int]
    program: str
    behind: int | None
    verified: LastRun | None
    rebuilt: LastRun | None


def status_page(visit: Visit) -> Page:
    """Return the state of the ledger now. Raises `BadArgument` for coordinates, `StoreDamaged`."""
    if visit.query:
        raise BadArgument("the status is that of now, at no other coordinates")
    state = visit.ledger.status()
    found = LogState(
        state.head, state.position, state.recorded_at, dict(sorted(state.events.items())), version("ratings-ledger"),
        state.behind, _last(state.runs.get("verify")), _last(state.runs.get("rebuild")),
    )  # fmt: skip
    return Page(STATUS, "status", "Status", found, Times(state.zone), {"found": found})


def _last(runs: LastRuns | None) -> LastRun | None:
    one = None if runs is None else runs.ended
    return None if one is None else LastRun(one.result, one.finished, one.position)
