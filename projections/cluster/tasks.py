"""Perform the tasks of a worker. Each task reads objects and creates one object.

perform(url, proof, plan_range)     performs the plan at a location

A plan is JSON, and determines the name of the object to create. The plans of tasks that are submitted together are in
one object. A worker that finds its object already created compares the two, because the same plan gives the same bytes
everywhere.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import platform
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.records import chain_hash, leaf_hash
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.validation.published_lists import PublishedList
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.base import SharedBase, Window, load_base
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject, encode_object, open_object
from ratings_ledger.projections.cluster.engines import ConflictingOutput, UnfitWorker
from ratings_ledger.projections.cluster.object_store import Objects, open_object_store
from ratings_ledger.projections.cluster.packs import Pack, find_family
from ratings_ledger.projections.cluster.segments import NamedCell, SegmentName, encode_segment, parse_segment_name
from ratings_ledger.projections.cluster.worker_checks import (
    CODE,
    Proof,
    compute_golden_digest,
)
from ratings_ledger.projections.diff.comparison import DifferingList, Effect, ImpactSummary, PointsChange
from ratings_ledger.projections.diff.impact import LogLookups
from ratings_ledger.projections.diff.predictions import Quality, QualityPair
from ratings_ledger.projections.diff.what_if import SimulatedLadder, apply_ruleset, compare_simulated_ladders
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.bulk_decoding import split_into_pages
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode_text
from ratings_ledger.projections.facts.stored_columns import Bytes
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.published_lists import rank_published_list
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.continuation import number_players_after
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.streams import build_streams
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.stored.computing import (
    MARSHAL_VERSION,
    BuiltLadder,
    LadderFailure,
    build_ladder,
    compute,
    pack,
    to_ladder_failure,
    to_stored_row,
)
from ratings_ledger.projections.stored.computing import (
    plan as plan_ladders,
)

CRC_BYTES = 4
SAME_LOCATION = "all workers and this machine must reach the same location by --segments"


class PlanRange(NamedTuple):
    """The location of a plan in an object with several plans.

    plans    the name of the object
    first    the index of the plan's first byte
    length   the number of its bytes
    digest   their SHA-256
    """

    plans: str
    first: int
    length: int
    digest: str


@lru_cache(64)
def _check_fitness(url: str, proof: Proof) -> None:
    """Raise `UnfitWorker` unless this worker passes the checks. First clear the caches of earlier computations."""
    open_object.cache_clear()
    load_base.cache_clear()
    worker = f"the worker on {platform.node()}"
    if proof.code != CODE:
        raise UnfitWorker(
            f"{worker} runs another version of this program, Python, numpy or numba than this machine; install the "
            "same versions there"
        )
    try:
        content = bytes(open_object_store(url).read(proof.nonce, 0, 1000))
    except OSError:
        content = b""
    if content.partition(b" ")[0] != proof.nonce.encode():
        raise UnfitWorker(f"{worker} cannot read the objects in {url}; {SAME_LOCATION}")
    if compute_golden_digest() != proof.golden:
        raise UnfitWorker(
            f"{worker} computes different points than this machine for the same games; leave this worker out, because "
            "its processor rounds differently"
        )


def perform(url: str, proof: Proof, plan_range: PlanRange) -> None:
    """Perform the plan at a location.

    Raises `UnfitWorker`, `ConflictingOutput`, `DamagedObject`, `OSError`, `StoreDamaged`.
    """
    _check_fitness(url, Proof(*proof))
    objects = open_object_store(url)
    text = read_plan(objects, PlanRange(*plan_range))
    plan, name = json.loads(text), name_output(text)
    if plan["task"] == "seal":
        create_or_compare(objects, plan["makes"], _seal(objects, plan))
        return
    base = load_base(url, plan["base"])
    plan["cells"] = [(number, tuple(cell)) for number, cell in plan["cells"]]
    plan["families"] = {*map(tuple, plan["families"])}
    result = compare_pack(base, plan) if plan["task"] == "compare" else replay_pack(base, plan)
    create_or_compare(objects, name, encode_object({"results": result}, {"name": name}))


def locate_plans(plans: Sequence[str]) -> list[PlanRange]:
    """Return the locations of plans in the object that contains all of them."""
    texts = [plan.encode() for plan in plans]
    name = f"plans-{hashlib.sha256(b''.join(texts)).hexdigest()}"
    ends = accumulate(map(len, texts))
    return [
        PlanRange(name, end - len(text), len(text), hashlib.sha256(text).hexdigest())
        for text, end in zip(texts, ends, strict=True)
    ]


def read_plan(objects: Objects, plan_range: PlanRange) -> str:
    """Return the plan at a location. Raises `DamagedObject`."""
    text = bytes(objects.read(plan_range.plans, plan_range.first, plan_range.length))
    if hashlib.sha256(text).hexdigest() != plan_range.digest:
        raise DamagedObject(plan_range.plans, "does not contain the plan that was written")
    return text.decode()


def name_output(plan_text: str) -> str:
    """Return the name of the object that a plan creates."""
    return f"out-{hashlib.sha256(plan_text.encode()).hexdigest()}"


def read_result(objects: Objects, name: str) -> bytes:
    """Return the results of a pack from the object that its plan created. Raises `DamagedObject`."""
    return bytes(OpenedObject(objects, name).column("results").tobytes())


def create_or_compare(objects: Objects, name: str, parts: Iterable[Bytes]) -> None:
    """Create an object, or check that an existing one is equal. A damaged one is replaced.

    Raises `ConflictingOutput` if it is not equal, `DamagedObject` if it cannot be replaced.
    """
    content = b"".join(map(bytes, parts))
    for _ in range(3):
        if objects.create(name, [content]):
            return
        try:
            OpenedObject(objects, name).check()
        except DamagedObject:
            objects.delete(name)
            continue
        if has_different_bytes(objects, name, content):
            raise ConflictingOutput(f"{name} was created twice with different bytes")
        return
    raise DamagedObject(name, "is damaged, and cannot be created again")


def has_different_bytes(objects: Objects, name: str, content: bytes) -> bool:
    """Tell whether the bytes of an existing object differ from these bytes."""
    return bool(objects.size(name) != len(content) or objects.read(name, 0, len(content)) != content)


def encode_records(texts: Iterable[bytes]) -> Iterator[Bytes]:
    """Yield the bytes of an object with these texts of records, one record per line, and a checksum at the end."""
    crc = 0
    for text in texts:
        crc = zlib.crc32(text, crc)
        yield text
    yield crc.to_bytes(CRC_BYTES, "big")


def _seal(objects: Objects, plan: dict[str, Any]) -> Iterator[Bytes]:
    """Yield the bytes of the segment that a plan seals, from an object with its records."""
    name, records = parse_segment_name(plan["makes"]), plan["records"]
    assert name is not None
    content = memoryview(objects.read(records, 0, objects.size(records) or 0))
    if zlib.crc32(content[:-CRC_BYTES]).to_bytes(CRC_BYTES, "big") != bytes(content[-CRC_BYTES:]):
        raise DamagedObject(records, "has a wrong checksum")
    return build_segment(content[:-CRC_BYTES], bytes.fromhex(plan["behind"]), name, plan["ledger"])


def build_segment(records: Any, previous_chain: bytes, name: SegmentName, ledger: str) -> Iterator[Bytes]:
    """Build the segment with this name from its records, one per line, and the chain hash before the first of them.

    Raises `StoreDamaged` if the records do not have the chain hash in the name.
    """
    chain = previous_chain
    for page in split_into_pages(records):
        for record in page.split(b"\n")[:-1]:
            chain = chain_hash(chain, leaf_hash(record))
    if chain.hex() != name.chain_hash:
        problem = f"the events from {name.first + 1:,} to {name.last:,} do not have the recorded chain hash"
        raise StoreDamaged(f"{problem}, so they are not sealed; run: ratings verify")
    return encode_segment(decode_text(records, name.first, name.last), {"ledger": ledger, "name": str(name)})


def write_pack_plan(task: str, base: str, pack: Pack, cells: Iterable[tuple[int, NamedCell]], **options: Any) -> str:
    """Write the plan of a task for a pack; `cells` are (number in the ledger, cell) for each cell of the pack."""
    members = {
        "task": task,
        "code": CODE,
        "base": base,
        "ruleset": pack.ruleset_id,
        "families": pack.families,
        "cells": [*cells],
        "games": pack.games,
    }
    return json.dumps({**members, **options}, sort_keys=True)


def replay_pack(base: SharedBase, plan: dict[str, Any]) -> bytes:
    """Replay the ladders of a pack; return the packed results. Raises `DamagedObject` if games are missing."""
    if plan["streamed"] is not None:
        ladder = stream_ladder(base, plan["cells"], plan["games"], plan["ruleset"], tuple(plan["streamed"]))
        return pack([] if ladder is None else [ladder])
    ladders = Ladders(base.load_facts(plan["cells"], plan["games"]))
    planned, versions = (
        plan_ladders(ladders, [plan["ruleset"]], plan["stored"]),
        ladders.facts.rulesets[plan["ruleset"]],
    )
    streams = {
        name: stream
        for name, stream in planned.streams.items()
        if find_family(versions, parse_name(name).values) in plan["families"]
        and (not plan["asked"] or name in plan["asked"])
    }
    build = partial(build_ladder, changes=plan["changes"])
    results = compute(ladders, planned._replace(streams=streams), build, cores=1, changes=plan["changes"])
    return pack(sorted(results, key=lambda result: (result.ladder, isinstance(result, BuiltLadder))))


# the approximate number of games in a window
WINDOW_GAMES = 1_000_000


def split_into_windows(base: SharedBase, cells: Sequence[tuple[int, NamedCell]], games: int) -> Iterator[Window]:
    """Yield windows of time that each contain about `games` games of the cells, from the first game to the last."""
    games_in_window, bounds = 0.0, list[int | None]([None])
    for sample_time, count in sorted(base.list_sample_times(cells)):
        if games_in_window >= games and sample_time != bounds[-1]:
            bounds.append(sample_time)
            games_in_window = 0.0
        games_in_window += count
    yield from pairwise([*bounds, None])


def stream_ladder(
    base: SharedBase, cells: Sequence[tuple[int, NamedCell]], games: int, ruleset_id: str, values: tuple[str, ...]
) -> BuiltLadder | LadderFailure | None:
    """Build a ladder window by window, with less memory than `build_ladder`; None if no game counts on it.

    `values` are the ladder's partition values. Raises `DamagedObject` unless the segments have exactly `games` games.
    """
    ladder = "/".join([ruleset_id, *values])
    trace: Trace | None = None
    games_read, names = 0, list[str]()
    for window in split_into_windows(base, cells, WINDOW_GAMES):
        facts, game_count = base.load_facts_within(cells, window, names)
        games_read, names = games_read + game_count, facts.players
        ladders = Ladders(facts)
        try:
            trace = _continue_trace(facts, ladder, ruleset_id, values, window, trace)
        except RuleFailure as error:
            return to_ladder_failure(ladder, ladders, error)
    if games_read != games:
        raise DamagedObject(base.name, f"contains {games_read:,} games instead of {games:,}")
    if trace is None:
        return None
    ranked = ladders.rank(trace)[0]
    return BuiltLadder(
        ranked.ladder,
        ranked.ruleset,
        ranked.digest,
        ranked.scale,
        ranked.games,
        [to_stored_row(row) for row in ranked.rows],
    )


def _continue_trace(
    facts: Facts, ladder: str, ruleset_id: str, values: tuple[str, ...], window: Window, earlier: Trace | None
) -> Trace | None:
    """Return the trace at the end of a window, given the trace at its start; None before the ladder's first game.

    Raises `RuleFailure`.
    """
    versions, (since, until) = facts.rulesets[ruleset_id], window
    own_stream = build_streams(
        facts,
        versions,
        only=values,
        as_of=None if until is None else until - 1,
        after=None if since is None else (since, -1),
    ).get(ladder)
    if own_stream is None:
        return earlier
    # a version that takes effect after the last game is applied in the window of the next game
    own_stream = replace(own_stream, batch=None, until=None)
    stream = own_stream if earlier is None else number_players_after(earlier.stream, own_stream)
    return _drop_games(replay(stream, keep_history=False, earlier=earlier))


def _drop_games(trace: Trace) -> Trace:
    """Return a trace without its games; such a trace can still be continued and ranked."""
    stream, empty = trace.stream, array("q")
    last = trace.last_version
    version: Any = np.broadcast_to(np.int16(0 if last is None else stream.versions.index(last)), trace.game_count)
    return replace(
        trace,
        earlier=None,
        states_before=[empty] * len(trace.states),
        mints=empty,
        states_before_adjustments=[empty] * len(trace.states),
        stream=replace(
            stream,
            offsets=array("q", [0]),
            players=array("i"),
            columns=(),
            adjustments=[],
            rows=range(trace.game_count),
            version_indices=version,
            latest_version_start=trace.latest_version_start,
        ),
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# the dataclasses that `from_plain` restores, by name
_RESULT_TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (DifferingList, Effect, PointsChange, QualityPair, Quality, ImpactSummary, SimulatedLadder)
}


def compare_pack(base: SharedBase, plan: dict[str, Any]) -> bytes:
    """Compare the ladders of a pack with the same ladders under another ruleset. Raises `DamagedObject`.

    The results are in the form that `parse_comparison` reads.
    """
    ruleset, as_of, ruleset_id = Ruleset.model_validate(plan["under"]), plan["as_of"], plan["ruleset"]
    current = Ladders(base.load_facts(plan["cells"], plan["games"]), as_of)
    hypothetical, failed = apply_ruleset(current.facts, ruleset, as_of), list[str]()
    streams_by_side = [
        ladders.streams(ruleset_id) if ruleset_id in ladders.facts.rulesets else {}
        for ladders in (current, hypothetical)
    ]
    versions = [
        version for ladders in (current, hypothetical) for version in ladders.facts.rulesets.get(ruleset_id, ())
    ]
    members = {
        name
        for streams in streams_by_side
        for name in streams
        if find_family(versions, parse_name(name).values) in plan["families"]
    }
    names = {name for name in members if not plan["asked"] or name in plan["asked"]}
    compared, published = (
        compare_simulated_ladders(_build_lookups(plan["lists"]), current, hypothetical, ruleset.id, names, failed)
        if names
        else ([], ())
    )
    members_by_side = [sorted(members & streams.keys()) for streams in streams_by_side]
    return marshal.dumps([to_plain(tuple(compared)), to_plain(published), failed, *members_by_side], MARSHAL_VERSION)


def _build_lookups(lists: Sequence[Sequence[Any]]) -> LogLookups:
    """Build lookups from the published lists in a plan."""
    rows_by_position: dict[int, list[RankedRow]] = {position: [*map(_parse_row, rows)] for position, *_, rows in lists}

    def rank_list(published: PublishedList) -> Ranking:
        return rank_published_list(published, rows_by_position[published.position])

    published_lists = [PublishedList(*values[:-1]) for values in lists]
    return LogLookups(lambda: published_lists, rank_list, lambda failure, facts: failure.describe(facts))


def _parse_row(values: Sequence[Any]) -> RankedRow:
    row = RankedRow(*values)
    return row if row.places is None else row._replace(places=tuple(row.places))


def parse_comparison(result: bytes) -> list[Any]:
    """Parse the result of `compare_pack`: ladders, lists, failures, and the names of the ladders before and after."""
    compared, published, *ladder_names = marshal.loads(result)
    return [from_plain(compared), from_plain(published), *ladder_names]


def to_plain(value: Any) -> Any:
    """Convert a part of an answer to plain values for `from_plain`."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [to_plain(getattr(value, member.name)) for member in fields(value)]
    if isinstance(value, Fraction):
        return "Fraction", [value.numerator, value.denominator]
    if isinstance(value, datetime):
        return "datetime", [(value - _EPOCH) // timedelta(microseconds=1)]
    if isinstance(value, tuple):
        return "tuple", [*map(to_plain, value)]
    return ("ABSENT", []) if value is ABSENT else value


def from_plain(value: Any) -> Any:
    """Restore a value from the plain values of `to_plain`."""
    if not isinstance(value, tuple):
        return value
    kind, parts = value[0], [*map(from_plain, value[1])]
    if kind == "tuple":
        return tuple(parts)
    if kind == "datetime":
        return _EPOCH + timedelta(microseconds=parts[0])
    return ABSENT if kind == "ABSENT" else ExactNumber(*parts) if kind == "Fraction" else _RESULT_TYPES[kind](*parts)
