"""Verify the log and everything computed from it, record the run, and find the last verified head."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.records import ZERO
from ratings_ledger.ledger.rejections import count
from ratings_ledger.ledger.store.exports import ChainHead, parse_chain_head
from ratings_ledger.ledger.store.log import read_chain_hash
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import DONE, RUNNING, list_runs, record_run
from ratings_ledger.ledger.verification import Finding, VerifiedCounts, verify_log
from ratings_ledger.projections.queries.results import HIDDEN, Result
from ratings_ledger.projections.stored.projection_checks import ProjectionChecks
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS
from ratings_ledger.projections.stored.work import WorkAt


@dataclass(frozen=True, slots=True)
class Verification(Result):
    """The findings of a verification, and the numbers of checked objects.

    With `since`, only data recorded or computed after that head was checked.
    """

    findings: tuple[Finding, ...]
    checked: VerifiedCounts
    since: ChainHead | None = field(metadata=HIDDEN)


# the codes of findings with which a log can still be replayed
REPLAYABLE_CODES = ("guard", "schema", "head", "meaning", "not-a-record")
T = TypeVar("T")


def verify_all(
    ledger: Ledger,
    expected: ChainHead | None = None,
    rule_seconds: float = RULE_SECONDS,
    on_finding: Callable[[Finding], None] = lambda finding: None,
    work_at: WorkAt | None = None,
    since: ChainHead | None = None,
    only_new: bool = False,
) -> Verification:
    """Verify the log and everything computed from it, and report each finding immediately. The run is recorded.

    Args:
        ledger: The opened ledger.
        expected: A head that the log must contain.
        rule_seconds: The processor time that a third-party rule may take for a ladder, in a separate process.
        on_finding: Receives each finding.
        work_at: Provides the work of replaying the stored standings at a position; by default, this machine does it.
        since: A head that was verified before; only data recorded or computed after it is checked.
        only_new: Whether to use the last verified head as `since`. Unless the last verification succeeded, everything
            is checked instead, and the log must contain that head. `expected` and `since` are then ignored.

    Raises:
        StoreUnavailable: The store could not be read.
    """
    findings: list[Finding] = []

    def collect(check: Generator[Finding, None, T]) -> T:
        while True:
            try:
                finding = next(check)
            except StopIteration as end:
                result: T = end.value
                return result
            findings.append(finding)
            on_finding(finding)

    with record_run(ledger, "verify", clock.now, only_after_success=True) as run:
        with ledger.reading() as connection:
            last_head, is_clean = LastVerification(None, False)
            if only_new or since:
                last_head, is_clean = find_last_verification(ledger, connection)
            if only_new:
                expected, since = (None, last_head) if is_clean else (last_head, None)
            after = 0 if since is None else since.position
            checked = collect(verify_log(ledger, connection, expected, since))
            # an unreadable or incomplete log cannot confirm or refute the data computed from it
            if checked.guards and all(finding.code in REPLAYABLE_CODES for finding in findings):
                computed = ProjectionChecks(ledger, connection, rule_seconds, work_at, after)
                checked = collect(computed.verify(checked, findings))
            run.position = after + checked.events
            # record the verified head only if no unverified gap precedes this part
            if not findings and (since is None or (last_head is not None and after <= last_head.position)):
                run.details["head"] = str(ChainHead(run.position, read_chain_hash(connection, run.position) or ZERO))
        run.details |= {"checked": checked._asdict(), "findings": len(findings)}
        run.details |= {"without_cache": work_at is None} if since is None else {"since": str(since)}
        if findings:
            run.fail(f"{count(len(findings), 'finding')}; the first is {findings[0]}")
    return Verification(tuple(findings), checked, since)


class LastVerification(NamedTuple):
    """The last head up to which a verification had no findings, and whether the latest verification succeeded."""

    head: ChainHead | None
    is_clean: bool


def find_last_verification(ledger: Ledger, connection: Connection) -> LastVerification:
    """Return the last verified head from the recorded runs; it is None if there is none, or the runs cannot be read."""
    try:
        runs_by_time = list_runs(ledger, connection, clock.now())
    except DBAPIError:
        return LastVerification(None, False)
    runs = [run for run in runs_by_time if run.kind == "verify" and run.result != RUNNING]
    texts = [run.details.get("head") for run in runs if run.result == DONE]
    heads = (parse_chain_head(text) for text in texts if isinstance(text, str))
    return LastVerification(next(filter(None, heads), None), bool(runs) and runs[0].result == DONE)
