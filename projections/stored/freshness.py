"""Find stale standings: the ladders that a rebuild did not update, and why.

If a full rebuild fails for one ladder, it promotes all other ladders; the failed ladder keeps its old standings. The
stored standings are therefore as old as the oldest ladder.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.store.log import head, read_live
from ratings_ledger.ledger.store.runs import Run
from ratings_ledger.projections.queries.results import HIDDEN, Result
from ratings_ledger.projections.rulesets.registry import rule_names
from ratings_ledger.projections.stored.computing import is_named
from ratings_ledger.projections.stored.generations import (
    count_seconds_since,
    format_whole_second,
    list_ladder_ages,
    read_live_generation,
)

# the reasons why a ladder is stale
FAILED, NOT_REQUESTED = "failed", "not-asked"


@dataclass(frozen=True, slots=True)
class StaleLadder(Result):
    """A ladder whose rule failed, or whose stored standings are missing or older than the newest stored ones.

    position: the position of the stored standings
    behind:   the number of events that the stored standings lack
    built:    when the standings were built, as text, to the second
    why:      `failed` (the rule failed) or `not-asked` (the rebuild did not include the ladder)
    message:  why the rule failed, if a run recorded it
    """

    ladder: str
    position: int | None
    behind: int
    built: str | None
    age_seconds: int | None
    why: str
    message: str | None
    built_at: int | None = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class RulesetWithoutRule(Result):
    """A published version whose rule is not installed, the games that it scores, and the position of its event."""

    ruleset: str
    rule: str
    games: list[str]
    position: int = field(metadata=HIDDEN)


def find_stale_ladders(connection: Connection, runs: Sequence[Run], now: int) -> list[StaleLadder]:
    """Return the stale ladders of the live generation, sorted by name; `runs` must be sorted newest first."""
    latest = head(connection).position

    def make_entry(
        ladder: str, why: str, message: str | None, position: int | None = None, built_at: int | None = None
    ) -> StaleLadder:
        built, age = (
            (None, None) if built_at is None else (format_whole_second(built_at), count_seconds_since(built_at, now))
        )
        return StaleLadder(
            ladder=ladder,
            position=position,
            behind=latest - (position or 0),
            built=built,
            age_seconds=age,
            why=why,
            message=message,
            built_at=built_at,
        )

    generation = read_live_generation(connection)
    failures = _find_failures(runs, None if generation is None else generation.generation)
    rows = [] if generation is None else list_ladder_ages(connection, generation.generation)
    newest = max([row.position for row in rows] + ([] if generation is None else [generation.position]), default=0)
    stale_ladders, matched_names = list[StaleLadder](), set[str]()
    for row in rows:
        # the ladder itself, its ruleset, or both failed
        if failed_names := [name for name in failures if is_named(row.ladder, [name])]:
            matched_names.update(failed_names)
            message = failures[row.ladder if row.ladder in failed_names else failed_names[0]]
            stale_ladders.append(make_entry(row.ladder, FAILED, message, row.position, row.built_at))
        elif row.position < newest:
            assert generation is not None
            why = FAILED if row.position < generation.position else NOT_REQUESTED
            stale_ladders.append(make_entry(row.ladder, why, None, row.position, row.built_at))
    stale_ladders += [
        make_entry(name, FAILED, message) for name, message in failures.items() if name not in matched_names
    ]
    return sorted(stale_ladders, key=lambda entry: entry.ladder)


def _find_failures(runs: Sequence[Run], live_generation: int | None) -> dict[str, str]:
    """Return the build failures of ladders and rulesets that no later rebuild resolved, by name.

    They come from the recorded runs, without rebuilds that promoted nothing or were rolled back.
    """
    failure_by_name: dict[str, str] = {}
    for run in reversed(runs):
        generation, requested, failures = (run.details.get(name) for name in ("generation", "asked", "failed"))
        if (
            run.kind != "rebuild"
            or type(generation) is not int
            or live_generation is None
            or generation > live_generation
        ):
            continue
        names = [name for name in requested if isinstance(name, str)] if isinstance(requested, list) else []
        failure_by_name = {name: text for name, text in failure_by_name.items() if names and not is_named(name, names)}
        for failure in failures if isinstance(failures, list) else ():
            if isinstance(failure, dict) and isinstance(failure.get("ladder"), str):
                failure_by_name[failure["ladder"]] = str(failure.get("message"))
    return failure_by_name


def find_missing_rules(connection: Connection) -> list[RulesetWithoutRule]:
    """Return the published versions whose rules are not installed, without loading any rule."""
    installed = set(rule_names())
    published = read_live(connection, until=head(connection).position, type_name="ruleset.published")
    versions = [(Ruleset.model_validate(event.data), event.position or 0) for event in published]
    return [
        RulesetWithoutRule(ruleset.name, ruleset.rule, ruleset.scope.game, position)
        for ruleset, position in versions
        if ruleset.rule not in installed
    ]
