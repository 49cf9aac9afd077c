"""The work of replaying all ladders at a position, done here or elsewhere: same results.

known, results = work.compute(asked, stored, changes)
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
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.stored.computing import (
    Built,
    LadderFailure,
    build_ladder,
    compute,
    of_packages,
    plan,
)
from ratings_ledger.projections.stored.rule_processes import guarded

WorkAt = Callable[[Connection, int], AbstractContextManager["Work"]]
Results = Generator[Built | LadderFailure]


class Work(NamedTuple):
    """What there is to replay.

    facts:   of the log up to its position; without most games if workers elsewhere read these
    games:   how many there are
    compute: about how many ladders there are, and what comes of them, in no particular order, given the requested
             ladders and rulesets (default: all), those stored even if they have no games now, and whether all changes
             are needed; close the iterator if it is not read to its end
    """

    facts: Facts
    games: int
    compute: Callable[[Collection[str], Collection[str], bool], tuple[int, Results]]


def work_here(
    facts: Facts, rule_seconds: float, cores: int | None = None, digest: Callable[[Ranking], str] = attrgetter("digest")
) -> Work:
    """Return the work as this machine does it, in some processes. What `compute` gives raises `WorkerLost`."""
    ladders = Ladders(facts)

    def computed(asked: Collection[str], stored: Collection[str], changes: bool) -> tuple[int, Results]:
        build = partial(build_ladder, changes=changes, digest=digest)
        planned = plan(ladders, asked, stored, of_packages(facts))
        apart = guarded(ladders, asked, stored, build, rule_seconds)
        return len(planned.streams), compute(ladders, planned, build, cores, apart, changes)

    return Work(facts, len(facts.first_position), computed)


def work_here_at(rule_seconds: float) -> WorkAt:
    """Return the work at a position, from the log alone."""
    return lambda connection, position: nullcontext(work_here(decode(connection, position, cached=False), rule_seconds))
