"""Define the work of replaying all ladders at a position, which this machine or a cluster can do.

ladder_count, results = work.compute(requested, stored, with_changes)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.stored.computing import (
    BuiltLadder,
    LadderFailure,
    build_ladder,
    compute,
    list_package_rulesets,
    plan,
)
from ratings_ledger.projections.stored.rule_processes import isolate

# (connection, position) -> the work at that position, as a context
WorkAt = Callable[[Connection, int], AbstractContextManager["Work"]]
Results = Generator[BuiltLadder | LadderFailure]


class Work(NamedTuple):
    """A replay of all ladders at a position.

    facts:   the facts at the position; without most games if workers on other machines read the games
    games:   the number of games
    compute: a function that returns the approximate number of ladders, and an iterator of their results in no
             particular order. The arguments are the requested ladders and rulesets (empty: all), the stored ladders to
             include even without games, and whether changes are needed. Close the iterator if you do not read it to its
             end
    """

    facts: Facts
    games: int
    compute: Callable[[Collection[str], Collection[str], bool], tuple[int, Results]]


def create_local_work(
    facts: Facts, rule_seconds: float, cores: int | None = None, digest: Callable[[Ranking], str] = attrgetter("digest")
) -> Work:
    """Return work that this machine does in several processes. The iterator of its results may raise `WorkerLost`."""
    ladders = Ladders(facts)

    def compute_ladders(requested: Collection[str], stored: Collection[str], with_changes: bool) -> tuple[int, Results]:
        build = partial(build_ladder, with_changes=with_changes, digest=digest)
        planned = plan(ladders, requested, stored, list_package_rulesets(facts))
        compute_isolated = isolate(ladders, requested, stored, build, rule_seconds)
        return len(planned.streams), compute(ladders, planned, build, cores, compute_isolated, with_changes)

    return Work(facts, len(facts.first_position), compute_ladders)


def create_local_work_at(rule_seconds: float) -> WorkAt:
    """Return a function that creates local work at a position, from the log without the cache."""
    return lambda connection, position: nullcontext(
        create_local_work(decode(connection, position, cached=False), rule_seconds)
    )
