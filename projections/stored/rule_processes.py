"""Run third-party rules in separate processes, so that a rule that hangs or crashes stops only its own ladder.

A process announces each ladder before the computation. A process that takes too much processor time is killed, and a
new process continues with the next ladder.
"""

from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing
from typing import Any

from ratings_ledger.ledger.errors import WorkerLost
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.processes.forking import TimeLimitExceeded, run_ahead
from ratings_ledger.ledger.store.log import head, read_live
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.rulesets.registry import BUILT_IN, give_up_rule
from ratings_ledger.projections.rulesets.versions import bind
from ratings_ledger.projections.stored.computing import (
    Build,
    BuiltLadder,
    LadderFailure,
    build_ladder,
    list_package_rulesets,
    parse_results,
    plan,
    serialise_results,
    to_ladder_failure,
)

# the processor time that a rule may take to load, or to score all games of a ladder
RULE_SECONDS = 60
# the beginning of a message that announces a ladder
STARTED = b">"


def describe_lost_process(error: TimeLimitExceeded | WorkerLost) -> str:
    """Describe why the process of a rule returned no result."""
    if isinstance(error, TimeLimitExceeded):
        return f"the rule gave no result in {error}; --rule-seconds N allows more time"
    return f"the rule ended its process: {error}"


def preload_rules(ledger: Ledger, seconds: float) -> None:
    """Load each third-party rule of published rulesets in another process; disable rules that hang or crash there."""
    with ledger.reading() as connection:
        published = read_live(connection, until=head(connection).position, type_name="ruleset.published")
        rulesets = [Ruleset.model_validate(event.data) for event in published]
    for ruleset in rulesets:
        if ruleset.rule in BUILT_IN:
            continue

        def load(ruleset: Ruleset = ruleset) -> Iterator[bytes]:
            bind(ruleset)
            yield from ()

        try:
            for _ in run_ahead(load(), seconds, closes_files=True):
                pass
        except (TimeLimitExceeded, WorkerLost) as error:
            give_up_rule(ruleset.rule, f"{ruleset.rule}: {describe_lost_process(error)}")


def compute_ladder(ladders: Ladders, name: str, seconds: float) -> BuiltLadder | LadderFailure:
    """Compute a single ladder, in a separate process if the rule is third-party.

    Raises `UnknownLadder`, `RulesetUnusable`, and `TimeLimitExceeded` or `WorkerLost` if the rule returns no result.
    """
    ladders.versions(name)
    if parse_name(name).ruleset_id not in list_package_rulesets(ladders.facts):
        return _build_by_name(ladders, name)

    def work() -> Iterator[bytes]:
        yield serialise_results([_build_by_name(ladders, name)])

    with closing(run_ahead(work(), seconds, closes_files=True)) as messages:
        return next(parse_results(next(messages)))


def _build_by_name(ladders: Ladders, name: str) -> BuiltLadder | LadderFailure:
    try:
        return build_ladder(ladders, ladders.stream(name))
    except RuleFailure as error:
        return to_ladder_failure(name, ladders, error)


def isolate(
    ladders: Ladders, requested: Collection[str], stored: Collection[str], build: Build, seconds: float
) -> Callable[[str], Generator[BuiltLadder | LadderFailure]]:
    """Return a function that builds a ruleset's requested ladders (all if none is requested) in separate processes."""
    return lambda ruleset_id: _compute_isolated(ladders, ruleset_id, requested, stored, build, seconds)


def _compute_isolated(
    ladders: Ladders, ruleset_id: str, requested: Collection[str], stored: Collection[str], build: Build, seconds: float
) -> Generator[BuiltLadder | LadderFailure]:
    finished: set[str] = set()
    is_batched = True

    def work() -> Iterator[bytes]:
        names = [name for name in requested if parse_name(name).ruleset_id == ruleset_id] or [ruleset_id]
        stored_names = [name for name in stored if parse_name(name).ruleset_id == ruleset_id]
        for name, stream in plan(ladders, names, stored_names).streams.items():
            if name in finished:
                continue
            if not is_batched:
                stream.batch = None
            yield STARTED + name.encode()
            yield serialise_results([build(ladders, stream)])

    while True:
        current: str | None = None
        try:
            with closing(run_ahead(work(), seconds, closes_files=True)) as messages:
                for message in messages:
                    if message.startswith(STARTED):
                        current = message[1:].decode()
                        continue
                    assert current is not None
                    finished.add(current)
                    current = None
                    yield from parse_results(message)
            return
        except (TimeLimitExceeded, WorkerLost) as error:
            if current is None and not (finished and is_batched):
                yield _build_failure(ladders, ruleset_id, ruleset_id, describe_lost_process(error))
                return
            # the ladders of a ruleset may be replayed in one batch; replay each by itself to find the ladder that fails
            if is_batched:
                is_batched = False
            elif current is not None:
                finished.add(current)
                yield _build_failure(ladders, ruleset_id, current, describe_lost_process(error))


def _build_failure(ladders: Ladders, ruleset_id: str, name: str, message: str) -> LadderFailure:
    versions: list[Any] = ladders.facts.rulesets[ruleset_id]
    return LadderFailure(name, max(version.position for version in versions), message)
