"""From facts to the standings of all ladders, ready to be stored: one after another, or in several processes.

Each ladder is computed on its own, from its stream, so it does not matter how many processes split the work.
"""

import marshal
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing, suppress
from operator import attrgetter
from typing import Any, NamedTuple

from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.replay.replay import replay, replay_together
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.rulesets.rule_errors import is_built_in
from ratings_ledger.projections.rulesets.versions import Version
from ratings_ledger.projections.stored.sql_rows import Block, blocks_of

# costs are counted in games; a ladder costs this much besides its own
LADDER_COST = 20
# anything cheaper is done before processes have started
FORKING_COST = 20_000
UNITS_PER_CORE, UNITS_MAX = 16, 500
REPEATABLE = 2  # the last format of `marshal` that says nothing about which values are one object


class LadderFailure(NamedTuple):
    """A ladder, or all ladders of a ruleset, that could not be built: the old standings keep serving."""

    ladder: str
    position: int
    message: str


class Built(NamedTuple):
    """A ladder's standings as they are stored; rows are `stored_row` of its standings, in order. `changes` are all
    that led to them, if requested."""

    ladder: str
    ruleset: str
    digest: str
    scale: int
    games: int
    rows: list[tuple[Any, ...]]
    changes: list[Block] | None = None


Build = Callable[[Ladders, Stream], Built | LadderFailure]


class ComputePlan(NamedTuple):
    """What there is to compute: the streams by ladder, what cannot be, and the rulesets left for `apart` to plan."""

    streams: dict[str, Stream]
    failures: list[LadderFailure]
    apart: list[str] = []


def stored_row(row: RankedRow) -> tuple[Any, ...]:
    """Return a standing as plain values in the order of its members, lists of numbers as text; most have none."""
    rank, player, points, games, qualified, divisor, gold, places, state = row
    if gold is None and places is None and state is None:
        return rank, player, points, games, int(qualified), divisor
    texts = (None if numbers is None else ",".join(map(str, numbers)) for numbers in (places, state))
    return rank, player, points, games, int(qualified), divisor, gold, *texts


def standing(values: tuple[Any, ...]) -> RankedRow:
    """Return the standing stored as these values."""
    row = RankedRow(*values)
    places, state = (
        None if text is None else tuple(map(int, str(text).split(","))) for text in (row.places, row.state)
    )
    return row._replace(places=places, state=state)


def is_named(ladder: str, names: Collection[str]) -> bool:
    """Tell whether a ladder or its ruleset is among some names."""
    return ladder in names or parse_name(ladder).ruleset_id in names


def of_packages(facts: Facts) -> list[str]:
    """Return the rulesets that run on rules of packages, and those whose lists sum their places."""
    own = {
        name for name, versions in facts.rulesets.items() if not all(is_built_in(version.rule) for version in versions)
    }
    sums = {
        name
        for name, versions in facts.rulesets.items()
        if any(getattr(version.params, "of", None) in own for version in versions)
    }
    return sorted((own | sums) - facts.unusable.keys())


def plan(
    ladders: Ladders, asked: Collection[str] = (), stored: Collection[str] = (), apart: Collection[str] = ()
) -> ComputePlan:
    """Return what is to be computed for the requested ladders and rulesets (default: all).

    These are the ladders with games or adjustments, and the `stored` ones even if they no longer have any. The rulesets
    in `apart` are left to `compute`.
    """
    facts = ladders.facts
    streams, failures, later = dict[str, Stream](), list[LadderFailure](), list[str]()
    for ruleset_id in sorted(_rulesets(asked) or facts.rulesets.keys() | facts.unusable.keys()):
        if unusable := facts.unusable.get(ruleset_id):
            failures.append(LadderFailure(ruleset_id, unusable.position, unusable.reason))
        elif ruleset_id in apart:
            later.append(ruleset_id)
        elif ruleset_id in facts.rulesets:
            every = ladders.streams(ruleset_id, light=True)
            if [*every] == [ruleset_id]:
                ladders.keep_trace_of(ruleset_id)
            streams |= {name: stream for name, stream in every.items() if not asked or is_named(name, asked)}
            for version in facts.rulesets[ruleset_id]:
                _look_at_months(ladders, version)
    failed = _rulesets(failure.ladder for failure in failures)
    for name in stored:
        if name not in streams and parse_name(name).ruleset_id in facts.rulesets.keys() - failed - {*later}:
            with suppress(UnknownLadder):
                streams[name] = ladders.stream(name)
    return ComputePlan(dict(sorted(streams.items())), failures, later)


def _rulesets(names: Iterable[str]) -> set[str]:
    return {parse_name(name).ruleset_id for name in names}


def _look_at_months(ladders: Ladders, version: Version) -> None:
    """Make the streams an annual list reads, so that they exist before processes split the work."""
    of = getattr(version.params, "of", None)
    if of in ladders.facts.rulesets and of not in ladders.facts.unusable:
        ladders.streams(of)


def build_ladder(
    ladders: Ladders, stream: Stream, changes: bool = False, digest: Callable[[Ranking], str] = attrgetter("digest")
) -> Built | LadderFailure:
    """Return a ladder as it is stored, with all `changes` that led there if requested, or why it cannot be built."""
    ladders = ladders.for_ladder(stream.ladder)
    try:
        trace = replay(stream) if changes else None
        ranking = ladders.rank_stream(stream) if trace is None else ladders.rank(trace)[0]
    except RuleFailure as error:
        return ladder_failure(stream.ladder, ladders, error)
    blocks = None if trace is None else blocks_of(ladders.facts, trace)
    rows = [stored_row(row) for row in ranking.rows]
    return Built(ranking.ladder, ranking.ruleset, digest(ranking), ranking.scale, ranking.games, rows, blocks)


def ladder_failure(ladder: str, ladders: Ladders, error: RuleFailure) -> LadderFailure:
    """Return why a ladder, or a ruleset's ladders, cannot be built, as plain data."""
    return LadderFailure(ladder, int(error.place(ladders.facts)), str(error))


def compute(
    ladders: Ladders,
    planned: ComputePlan,
    build: Build = build_ladder,
    cores: int | None = None,
    apart: Callable[[str], Generator[Built | LadderFailure]] | None = None,
    changes: bool = False,
) -> Generator[Built | LadderFailure]:
    """Yield what `build` makes of every stream, in no particular order, after the failures of the plan; then what
    `apart` yields for the rulesets left to it.

    With `changes`, `build` needs those of all games. Long work is split among `cores` processes (default: the number of
    processors). Close the iterator if it is not read to its end. Raises `WorkerLost`.
    """
    with closing(_all_of(ladders, planned, build, cores, changes)) as results:
        yield from results
    for ruleset_id in planned.apart:
        assert apart is not None
        with closing(apart(ruleset_id)) as results:
            yield from results


def _all_of(
    ladders: Ladders, planned: ComputePlan, build: Build, cores: int | None, changes: bool
) -> Generator[Built | LadderFailure]:
    # imported only here: commands that only read do not need it
    from ratings_ledger.ledger.processes.forking import available_cores, run_forked

    yield from planned.failures
    replay_together(planned.streams.values(), changes)
    cores = available_cores() if cores is None else cores
    units = _units(list(planned.streams.values()), cores)
    if cores == 1 or len(units) == 1 or sum(map(_cost, planned.streams.values())) < FORKING_COST:
        for stream in planned.streams.values():
            yield build(ladders, stream)
        return

    def work(number: int) -> bytes:
        return packed(build(ladders, stream) for stream in units[number])

    with closing(run_forked(work, len(units), cores)) as messages:
        for message in messages:
            yield from unpacked(message)


def packed(results: Iterable[Built | LadderFailure]) -> bytes:
    """Results as another process reads them with `unpacked`; the same bytes for the same results."""
    return marshal.dumps([(isinstance(result, Built), tuple(result)) for result in results], REPEATABLE)


def unpacked(message: bytes) -> Iterator[Built | LadderFailure]:
    """Yield what `packed` wrote."""
    for is_built, values in marshal.loads(message):
        yield Built(*values) if is_built else LadderFailure(*values)


def _units(streams: list[Stream], cores: int) -> list[list[Stream]]:
    """Return the streams in parts of about the same cost, enough for all cores to end together; the most expensive come
    first.

    A ladder is never split; small ones stay in order.
    """
    enough = sum(map(_cost, streams)) / min(cores * UNITS_PER_CORE, UNITS_MAX)
    units: list[list[Stream]] = [[]]
    cost = 0
    for stream in sorted(streams, key=_cost, reverse=True):
        if cost >= enough:
            units.append([])
            cost = 0
        units[-1].append(stream)
        cost += _cost(stream)
    return units


def _cost(stream: Stream) -> int:
    return len(stream.row) + LADDER_COST
