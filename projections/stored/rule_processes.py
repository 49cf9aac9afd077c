"""Rules of packages in processes of their own, so that a hanging or crashing rule stops only its own ladder.

A process announces each ladder before it starts on it; one that takes too much processor time is killed, and another
continues with the next ladder.
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
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.rulesets.registry import BUILT_IN, give_up_rule
from ratings_ledger.projections.rulesets.versions import bind
from ratings_ledger.projections.stored.computing import (
    Build,
    Built,
    LadderFailure,
    build_ladder,
    ladder_failure,
    of_packages,
    packed,
    plan,
    unpacked,
)

# the processor time that a rule may take to load, or for all games of a ladder
RULE_SECONDS = 60
BEGUN = b">"


def why_lost(error: TimeLimitExceeded | WorkerLost) -> str:
    """Say why the process of a rule gave no result."""
    if isinstance(error, TimeLimitExceeded):
        return f"the rule gave no result in {error}; --rule-seconds N allows it more"
    return f"the rule ended its process: {error}"


def try_to_load(ledger: Ledger, seconds: float) -> None:
    """First load the package rules that published rulesets name in another process; give up those that do not come
    back."""
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
            give_up_rule(ruleset.rule, f"{ruleset.rule}: {why_lost(error)}")


def one_ladder(ladders: Ladders, name: str, seconds: float) -> Built | LadderFailure:
    """Return a single ladder; with the rule of a package, in a process of its own.

    Raises `UnknownLadder`, `RulesetUnusable`, and `TimeLimitExceeded` or `WorkerLost` for a rule that gives no result.
    """
    ladders.versions(name)
    if parse_name(name).ruleset_id not in of_packages(ladders.facts):
        return _one(ladders, name)
    with closing(run_ahead((packed([_one(ladders, name)]) for _ in range(1)), seconds, closes_files=True)) as messages:
        return next(unpacked(next(messages)))


def _one(ladders: Ladders, name: str) -> Built | LadderFailure:
    try:
        return build_ladder(ladders, ladders.stream(name))
    except RuleFailure as error:
        return ladder_failure(name, ladders, error)


def guarded(
    ladders: Ladders, asked: Collection[str], stored: Collection[str], build: Build, seconds: float
) -> Callable[[str], Generator[Built | LadderFailure]]:
    """Return a function that yields what `build` makes of every ladder of a ruleset, in processes of their own."""
    return lambda ruleset_id: _guarded(ladders, ruleset_id, asked, stored, build, seconds)


def _guarded(
    ladders: Ladders, ruleset_id: str, asked: Collection[str], stored: Collection[str], build: Build, seconds: float
) -> Generator[Built | LadderFailure]:
    done: set[str] = set()
    together = True

    def work() -> Iterator[bytes]:
        names = [name for name in asked if parse_name(name).ruleset_id == ruleset_id] or [ruleset_id]
        own = [name for name in stored if parse_name(name).ruleset_id == ruleset_id]
        for name, stream in plan(ladders, names, own).streams.items():
            if name in done:
                continue
            if not together:
                stream.batch = None
            yield BEGUN + name.encode()
            yield packed([build(ladders, stream)])

    while True:
        current: str | None = None
        try:
            with closing(run_ahead(work(), seconds, closes_files=True)) as messages:
                for message in messages:
                    if message.startswith(BEGUN):
                        current = message[1:].decode()
                        continue
                    assert current is not None
                    done.add(current)
                    current = None
                    yield from unpacked(message)
            return
        except (TimeLimitExceeded, WorkerLost) as error:
            if current is None and not (done and together):
                yield _lost(ladders, ruleset_id, ruleset_id, why_lost(error))
                return
            # the ladders of a ruleset may be replayed all at once: only one at a time shows whose fault it was
            if together:
                together = False
            elif current is not None:
                done.add(current)
                yield _lost(ladders, ruleset_id, current, why_lost(error))


def _lost(ladders: Ladders, ruleset_id: str, name: str, message: str) -> LadderFailure:
    versions: list[Any] = ladders.facts.rulesets[ruleset_id]
    return LadderFailure(name, max(version.position for version in versions), message)
