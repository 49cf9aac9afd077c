"""Compute the standings of all ladders for storage, in this process or in several processes.

Each ladder is computed from its own stream, so the results do not depend on how the work is split.
"""

import marshal
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from operator import attrgetter
from typing import Any, NamedTuple

from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.coordinates import UnknownLadder
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.replay import replay, replay_together
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.rulesets.versions import Version
from ratings_ledger.projections.stored.sql_rows import Block, split_trace_into_blocks

# the fixed cost of a ladder, in games
LADDER_COST = 20
# below this cost, in games, starting processes would take longer than the work
FORKING_COST = 20_000
# the number of units of work: this many for each core, up to a maximum
UNITS_PER_CORE, UNITS_MAX = 16, 500
# the last version of the `marshal` format without object references, so that equal results give equal bytes
MARSHAL_VERSION = 2


class LadderFailure(NamedTuple):
    """The failure to build a ladder, or all ladders of a ruleset. The previous standings stay in place.

    `position` is that of the event, or of the version, that caused the failure; 0 if none did.
    """

    ladder: str
    position: int
    message: str


class BuiltLadder(NamedTuple):
    """A ladder's standings in stored form.

    `rows` are results of `to_stored_row`. `changes`, if requested, has all changes that led to the standings.
    """

    ladder: str
    ruleset: str
    digest: str
    scale: int
    games: int
    rows: list[tuple[Any, ...]]
    changes: list[Block] | None = None


Build = Callable[[Ladders, Stream], BuiltLadder | LadderFailure]


class ComputePlan(NamedTuple):
    """The plan of a computation: streams by ladder, failed ladders, and the rulesets to compute in isolation."""

    streams: dict[str, Stream]
    failures: list[LadderFailure]
    isolated: Sequence[str] = ()


def to_stored_row(row: RankedRow) -> tuple[Any, ...]:
    """Convert a standing to plain values in the order of its members, with tuples of numbers as text.

    If the last three members are all None, they are omitted.
    """
    rank, player, points, games, qualified, divisor, gold, places, state = row
    if gold is None and places is None and state is None:
        return rank, player, points, games, int(qualified), divisor
    texts = (None if numbers is None else ",".join(map(str, numbers)) for numbers in (places, state))
    return rank, player, points, games, int(qualified), divisor, gold, *texts


def from_stored_row(values: tuple[Any, ...]) -> RankedRow:
    """Convert stored values back to a standing."""
    row = RankedRow(*values)
    places, state = (
        None if text is None else tuple(map(int, str(text).split(","))) for text in (row.places, row.state)
    )
    return row._replace(places=places, state=state)


def is_named(ladder: str, names: Collection[str]) -> bool:
    """Tell whether `names` include a ladder or the ladder's ruleset."""
    return ladder in names or parse_name(ladder).ruleset_id in names


def list_package_rulesets(facts: Facts) -> list[str]:
    """Return the usable rulesets that use third-party rules, or that sum the places of lists of such rulesets."""
    third_party = {
        name for name, versions in facts.rulesets.items() if not all(version.is_built_in for version in versions)
    }
    summing = {
        name
        for name, versions in facts.rulesets.items()
        if any(getattr(version.params, "of", None) in third_party for version in versions)
    }
    return sorted((third_party | summing) - facts.unusable.keys())


def plan(
    ladders: Ladders, requested: Collection[str] = (), stored: Collection[str] = (), isolated: Collection[str] = ()
) -> ComputePlan:
    """Plan the computation of the requested ladders and rulesets (default: all).

    The plan has streams for the ladders with games or adjustments, and for all `stored` ladders, even if they no longer
    have games. For the rulesets in `isolated` it has no streams.
    """
    facts = ladders.facts
    streams, failures, isolated_ids = dict[str, Stream](), list[LadderFailure](), list[str]()
    for ruleset_id in sorted(_list_ruleset_ids(requested) or facts.rulesets.keys() | facts.unusable.keys()):
        if unusable := facts.unusable.get(ruleset_id):
            failures.append(LadderFailure(ruleset_id, unusable.position, unusable.reason))
        elif ruleset_id in isolated:
            isolated_ids.append(ruleset_id)
        elif ruleset_id in facts.rulesets:
            ruleset_streams = ladders.streams(ruleset_id, light=True)
            if [*ruleset_streams] == [ruleset_id]:
                ladders.keep_trace_of(ruleset_id)
            streams |= {
                name: stream for name, stream in ruleset_streams.items() if not requested or is_named(name, requested)
            }
            for version in facts.rulesets[ruleset_id]:
                _load_summed_streams(ladders, version)
    failed = _list_ruleset_ids(failure.ladder for failure in failures)
    for name in stored:
        if name not in streams and parse_name(name).ruleset_id in facts.rulesets.keys() - failed - {*isolated_ids}:
            with suppress(UnknownLadder):
                streams[name] = ladders.stream(name)
    return ComputePlan(dict(sorted(streams.items())), failures, isolated_ids)


def _list_ruleset_ids(names: Iterable[str]) -> set[str]:
    return {parse_name(name).ruleset_id for name in names}


def _load_summed_streams(ladders: Ladders, version: Version) -> None:
    """Load the streams that an annual list sums, so that forked processes find them loaded."""
    source_id = getattr(version.params, "of", None)
    if source_id in ladders.facts.rulesets and source_id not in ladders.facts.unusable:
        ladders.streams(source_id)


def build_ladder(
    ladders: Ladders,
    stream: Stream,
    with_changes: bool = False,
    digest: Callable[[Ranking], str] = attrgetter("digest"),
) -> BuiltLadder | LadderFailure:
    """Build a ladder in stored form, with its changes if requested; return a failure if its rule fails."""
    ladders = ladders.for_ladder(stream.ladder)
    try:
        trace = replay(stream) if with_changes else None
        ranking = ladders.rank_stream(stream) if trace is None else ladders.rank(trace)[0]
    except RuleFailure as error:
        return to_ladder_failure(stream.ladder, ladders, error)
    blocks = None if trace is None else split_trace_into_blocks(ladders.facts, trace)
    rows = [to_stored_row(row) for row in ranking.rows]
    return BuiltLadder(ranking.ladder, ranking.ruleset, digest(ranking), ranking.scale, ranking.games, rows, blocks)


def to_ladder_failure(ladder: str, ladders: Ladders, error: RuleFailure) -> LadderFailure:
    """Convert the failure of a rule to plain data that can pass between processes."""
    return LadderFailure(ladder, int(error.find_position(ladders.facts)), str(error))


def compute(
    ladders: Ladders,
    planned: ComputePlan,
    build: Build = build_ladder,
    cores: int | None = None,
    compute_isolated: Callable[[str], Generator[BuiltLadder | LadderFailure]] | None = None,
    with_changes: bool = False,
) -> Generator[BuiltLadder | LadderFailure]:
    """Yield the failures of the plan, then the result of `build` for each stream, in no particular order.

    Close the iterator if you do not read it to its end. Raises `WorkerLost`.

    Args:
        ladders: The ladders at a position.
        planned: The plan.
        build: Builds a ladder from its stream.
        cores: The number of processes that share long work; default: the number of processors.
        compute_isolated: Computes the isolated rulesets of the plan; its results come last.
        with_changes: Whether `build` needs the changes of every game.
    """
    with closing(_compute_planned(ladders, planned, build, cores, with_changes)) as results:
        yield from results
    for ruleset_id in planned.isolated:
        assert compute_isolated is not None
        with closing(compute_isolated(ruleset_id)) as results:
            yield from results


def _compute_planned(
    ladders: Ladders, planned: ComputePlan, build: Build, cores: int | None, with_changes: bool
) -> Generator[BuiltLadder | LadderFailure]:
    # imported here, because commands that only read do not need processes
    from ratings_ledger.ledger.processes.forking import available_cores, run_forked

    yield from planned.failures
    replay_together(planned.streams.values(), with_changes)
    cores = available_cores() if cores is None else cores
    units = _split_into_units(list(planned.streams.values()), cores)
    if cores == 1 or len(units) == 1 or sum(map(_estimate_cost, planned.streams.values())) < FORKING_COST:
        for stream in planned.streams.values():
            yield build(ladders, stream)
        return

    def work(number: int) -> bytes:
        return serialise_results(build(ladders, stream) for stream in units[number])

    with closing(run_forked(work, len(units), cores)) as messages:
        for message in messages:
            yield from parse_results(message)


def serialise_results(results: Iterable[BuiltLadder | LadderFailure]) -> bytes:
    """Serialise results for `parse_results`; equal results give equal bytes."""
    return marshal.dumps([(isinstance(result, BuiltLadder), tuple(result)) for result in results], MARSHAL_VERSION)


def parse_results(message: bytes) -> Iterator[BuiltLadder | LadderFailure]:
    """Yield the results that `serialise_results` serialised."""
    for is_built, values in marshal.loads(message):
        yield BuiltLadder(*values) if is_built else LadderFailure(*values)


def _split_into_units(streams: list[Stream], cores: int) -> list[list[Stream]]:
    """Split the streams into units of similar cost, the most expensive first, so that all cores finish together.

    A ladder is never split, and ladders of equal cost stay in order.
    """
    target_cost = sum(map(_estimate_cost, streams)) / min(cores * UNITS_PER_CORE, UNITS_MAX)
    units: list[list[Stream]] = [[]]
    cost = 0
    for stream in sorted(streams, key=_estimate_cost, reverse=True):
        if cost >= target_cost:
            units.append([])
            cost = 0
        units[-1].append(stream)
        cost += _estimate_cost(stream)
    return units


def _estimate_cost(stream: Stream) -> int:
    return len(stream.rows) + LADDER_COST
