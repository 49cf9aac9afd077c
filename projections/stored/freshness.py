"""How old the stored standings are: which ladders a rebuild left as they were, and why.

A full rebuild that fails for one ladder promotes all others; the failed one keeps serving its old standings. So the
standings are as old as the oldest of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.store.log import head, read_live
from ratings_ledger.ledger.store.runs import Run
from ratings_ledger.projections.queries.results import HIDDEN, Result
from ratings_ledger.projections.rulesets.registry import rule_names
from ratings_ledger.projections.stored.computing import is_named
from ratings_ledger.projections.stored.generations import age_seconds, ages_of, live, whole_second

FAILED, NOT_ASKED = "failed", "not-asked"


@dataclass(frozen=True, slots=True)
class Stale(Result):
    """A ladder older than the live position, or one that a rebuild could not build at all (then without a position).

    It lacks the last `behind` events, and was `built` then, in whole seconds. `why` is `failed` (its rule) or
    `not-asked` (a rebuild was for other ladders); the message is the rule's.
    """

    ladder: str
    position: int | None
    behind: int
    built: str | None
    age_seconds: int | None
    why: str
    message: str | None
    built_at: int | None = field(metadata=HIDDEN)


class Missing(NamedTuple):
    """A published version of a ruleset whose rule is not installed here, and the games that it scores."""

    ruleset: str
    rule: str
    games: list[str]


def stale_ladders(connection: Connection, runs: Sequence[Run], now: int) -> list[Stale]:
    """Return the ladders of the live generation that are older than it, by name; `runs` come newest first."""
    latest = head(connection).position

    def stale(ladder: str, position: int | None, built_at: int | None, why: str, message: str | None) -> Stale:
        built, age = (None, None) if built_at is None else (whole_second(built_at), age_seconds(built_at, now))
        return Stale(ladder, position, latest - (position or 0), built, age, why, message, built_at)

    generation = live(connection)
    failures = _failures(runs, None if generation is None else generation.generation)
    rows = [] if generation is None else ages_of(connection, generation.generation)
    newest = max([row.position for row in rows] + ([] if generation is None else [generation.position]), default=0)
    stale_ladders, named = list[Stale](), set[str]()
    for row in rows:
        failed = next((name for name in failures if is_named(row.ladder, [name])), None) if failures else None
        named |= {failed} if failed else set()
        if failed:
            stale_ladders.append(stale(row.ladder, row.position, row.built_at, FAILED, failures[failed]))
        elif row.position < newest:
            assert generation is not None
            why = FAILED if row.position < generation.position else NOT_ASKED
            stale_ladders.append(stale(row.ladder, row.position, row.built_at, why, None))
    stale_ladders += [
        stale(name, None, None, FAILED, message) for name, message in failures.items() if name not in named
    ]
    return sorted(stale_ladders, key=lambda entry: entry.ladder)


def _failures(runs: Sequence[Run], live_generation: int | None) -> dict[str, str]:
    """Return why ladders or rulesets failed when they were last built, by name, as far as the rebuild runs show."""
    failed: dict[str, str] = {}
    for run in reversed(runs):
        number, asked, now = (run.details.get(name) for name in ("generation", "asked", "failed"))
        if run.kind != "rebuild" or type(number) is not int or live_generation is None or number > live_generation:
            continue
        names = [name for name in asked if isinstance(name, str)] if isinstance(asked, list) else []
        failed = {name: why for name, why in failed.items() if names and not is_named(name, names)}
        for failure in now if isinstance(now, list) else ():
            if isinstance(failure, dict) and isinstance(failure.get("ladder"), str):
                failed[failure["ladder"]] = str(failure.get("message"))
    return failed


def missing_rules(connection: Connection) -> list[Missing]:
    """Return the rulesets of the ledger whose rules are not installed here; this loads no rules."""
    installed = set(rule_names())
    published = read_live(connection, until=head(connection).position, type_name="ruleset.published")
    rulesets = [Ruleset.model_validate(event.data) for event in published]
    return [
        Missing(ruleset.name, ruleset.rule, ruleset.scope.game) for ruleset in rulesets if ruleset.rule not in installed
    ]
