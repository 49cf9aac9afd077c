"""`verify`: the log, and everything that was computed from it, against what it should be."""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ledger import clock
from ledger.errors import RulesetUnusable, StoreDamaged
from ledger.store.opening import Ledger
from ledger.store.runs import running
from ledger.verification import Checked, Finding, verify_log, verify_order
from projections.admission.events import Recorded
from projections.stored.integrity import verify_clocks, verify_published, verify_standings
from projections.stored.rule_processes import RULE_SECONDS, try_to_load

# with these findings in the log it can be replayed all the same
REPLAYED = ("guard", "schema", "head", "meaning", "not-a-record")
T = TypeVar("T")


def verify_all(
    ledger: Ledger, expected: tuple[int, bytes] | None = None, rule_seconds: float = RULE_SECONDS,
    tell: Callable[[Finding], None] = lambda finding: None,
) -> Checked:  # fmt: skip
    """Look at everything that is stored, and tell each finding; gives how much was looked at. It leaves a run.

    `expected` is a position and chain hash that the log must contain. The rules of packages run in processes of their
    own, each ladder for at most `rule_seconds`. Raises `StoreUnavailable` where something kept it from looking.
    """
    findings: list[Finding] = []

    def take(found: Generator[Finding, None, T]) -> T:
        while True:
            try:
                finding = next(found)
            except StopIteration as end:
                result: T = end.value
                return result
            findings.append(finding)
            tell(finding)

    with running(ledger, "verify", clock.now, only_if_well=True) as run:
        with ledger.reading() as connection:
            checked = take(verify_log(ledger, connection, expected))
            # a log that cannot be read, or is not all there, says nothing of what is computed from it
            if checked.guards and all(finding.code in REPLAYED for finding in findings):
                checked = take(_computed(ledger, connection, checked, findings, rule_seconds))
        run.position, run.details = checked.events, {"checked": checked._asdict(), "findings": len(findings)}
        if findings:
            told = "1 finding" if len(findings) == 1 else f"{len(findings):,} findings"
            run.fail(f"{told}; the first is {findings[0]}")
    return checked


def _computed(
    ledger: Ledger, connection: Connection, checked: Checked, findings: Sequence[Finding], rule_seconds: float
) -> Generator[Finding, None, Checked]:
    """What is wrong with what was computed from the log; `findings` are those so far, which grow by what is yielded."""
    try:
        try_to_load(ledger, rule_seconds)
        yield from verify_clocks(connection)
        checked = checked._replace(lists=(yield from verify_published(connection, rule_seconds)))
        yield from verify_order(connection, Recorded, {finding.position for finding in findings})
        checked = checked._replace(ladders=(yield from verify_standings(connection, rule_seconds=rule_seconds)))
    except (StoreDamaged, RulesetUnusable) as problem:
        yield Finding("rule", None, f"the log cannot be replayed: {problem}")
    except DBAPIError as error:
        if not ledger.dialect.is_damage(error.orig or error):
            raise
        yield Finding("standings", None, f"what is stored cannot be read: {str(error.orig).splitlines()[0]}")
    return checked
