"""Verify everything computed from the log: game clocks, published lists, stored standings and cached traces."""

from collections.abc import Generator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ratings_ledger.ledger.errors import RulesetUnusable, StoreDamaged
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.verification import Finding, VerifiedCounts, find_contradictions
from ratings_ledger.projections.admission.ladder_checks import RecordedChecks
from ratings_ledger.projections.facts.column_files import TRACES, list_files
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.replay.trace_cache import find_wrong_traces
from ratings_ledger.projections.stored.clock_checks import verify_clocks
from ratings_ledger.projections.stored.published_list_checks import verify_published
from ratings_ledger.projections.stored.rule_processes import preload_rules
from ratings_ledger.projections.stored.standings_checks import verify_standings
from ratings_ledger.projections.stored.work import WorkAt


class ProjectionChecks(NamedTuple):
    """The checks of all data computed from a log, or only of the data after the position `after`."""

    ledger: Ledger
    connection: Connection
    rule_seconds: float
    work_at: WorkAt | None
    after: int

    def verify(self, checked: VerifiedCounts, findings: Sequence[Finding]) -> Generator[Finding, None, VerifiedCounts]:
        """Yield the findings, which the caller appends to `findings`; return the numbers of checked objects."""
        ledger, connection, rule_seconds, work_at, after = self
        try:
            preload_rules(ledger, rule_seconds)
            yield from verify_clocks(connection, after)
            checked = checked._replace(lists=(yield from verify_published(connection, rule_seconds, after)))
            if not after:
                yield from find_contradictions(connection, RecordedChecks, {finding.position for finding in findings})
            standings = verify_standings(connection, None, rule_seconds, work_at, after)
            checked = checked._replace(ladders=(yield from standings))
            if not after:
                yield from verify_traces(connection)
        except (StoreDamaged, RulesetUnusable) as problem:
            yield Finding("rule", None, f"the log cannot be replayed: {problem}")
        except DBAPIError as error:
            if not ledger.dialect.is_damage(error.orig or error):
                raise
            yield Finding("standings", None, f"the stored standings cannot be read: {str(error.orig).splitlines()[0]}")
        return checked


def verify_traces(connection: Connection) -> Generator[Finding, None, None]:
    """Yield a finding for each cached trace that differs from a replay from the first game, and delete the trace."""
    facts = decode(connection)
    if facts.cache is None or not any(list_files(facts.cache / TRACES)):
        return
    for ladder, path in find_wrong_traces(facts, decode(connection, facts.position, cached=False)):
        yield Finding("trace", None, f"the cached trace {path} differed from a replay of {ladder} and was deleted")
