"""The tasks of a worker. Each is pure: it reads objects and creates one object, named by its inputs.

perform(url, proof, place) -> nothing     performs the plan at a place, which names the object to create

A plan is JSON; plans of tasks that are handed out together are in one object. A worker that creates an object a second
time compares it, because the same plan gives the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import json
import marshal
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
from ratings_ledger.projections.cluster.base import SharedBase, Window, base_of
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject, object_at, object_bytes
from ratings_ledger.projections.cluster.engines import NotTheSame, Unfit
from ratings_ledger.projections.cluster.objects import Objects, objects_at
from ratings_ledger.projections.cluster.packs import Pack, family_of
from ratings_ledger.projections.cluster.proofs import (
    CODE,
    Proof,
    golden_digest,
)
from ratings_ledger.projections.cluster.segments import NamedCell, SegmentName, sealed, segment_name
from ratings_ledger.projections.diff.comparison import DifferingList, Effect, ImpactSummary, PointsChange
from ratings_ledger.projections.diff.impact import LogLookups
from ratings_ledger.projections.diff.predictions import Quality, QualityPair
from ratings_ledger.projections.diff.what_if import SimulatedLadder, apply_ruleset, compare_simulated_ladders
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.facts.bulk import pages_of
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode_text
from ratings_ledger.projections.facts.stored_columns import Bytes
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.queries.results import ABSENT
from ratings_ledger.projections.replay.continuation import number_players_after
from ratings_ledger.projections.replay.ladders import build_streams, parse_name
from ratings_ledger.projections.replay.replay import replay
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.stored.computing import (
    REPEATABLE,
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

COMPARED_BYTES, CRC_BYTES = 1 << 22, 4
ONE_PLACE = "--segments must lead all workers and this machine to one place"


class PlanRange(NamedTuple):
    """The place of a plan: an object with several plans, the plan's bytes in it, and their SHA-256."""

    plans: str
    first: int
    length: int
    digest: str


@lru_cache(64)
def _is_fit(url: str, proof: Proof) -> None:
    """Raise `Unfit` if this worker may not work. Objects read for an earlier computation are read and checked again."""
    object_at.cache_clear()
    base_of.cache_clear()
    if proof.code != CODE:
        raise Unfit("a worker runs another version of the program, of Python, numpy or numba; install the same there")
    try:
        content = bytes(objects_at(url).read(proof.nonce, 0, 1000))
    except OSError:
        content = b""
    if content.partition(b" ")[0] != proof.nonce.encode():
        raise Unfit(f"a worker does not see what is written to {url}; {ONE_PLACE}")
    if golden_digest() != proof.golden:
        raise Unfit("a worker computes other points for the same games than this machine does")


def perform(url: str, proof: Proof, place: PlanRange) -> None:
    """Perform the plan at a place.

    Raises `Unfit`, `NotTheSame`, `DamagedObject`, `OSError`, `StoreDamaged`.
    """
    _is_fit(url, Proof(*proof))
    objects = objects_at(url)
    text = plan_at(objects, PlanRange(*place))
    plan, name = json.loads(text), output_name(text)
    if plan["task"] == "seal":
        keep(objects, plan["makes"], _sealed(objects, plan))
        return
    base = base_of(url, plan["base"])
    plan["cells"] = [(number, tuple(cell)) for number, cell in plan["cells"]]
    plan["families"] = {*map(tuple, plan["families"])}
    result = compared_pack(base, plan) if plan["task"] == "compare" else replayed_pack(base, plan)
    keep(objects, name, object_bytes({"results": result}, {"name": name}))


def places_of(plans: Sequence[str]) -> list[PlanRange]:
    """Return the places of plans in the object that has them one after the other."""
    texts = [plan.encode() for plan in plans]
    name = f"plans-{hashlib.sha256(b''.join(texts)).hexdigest()}"
    ends = accumulate(map(len, texts))
    return [
        PlanRange(name, end - len(text), len(text), hashlib.sha256(text).hexdigest())
        for text, end in zip(texts, ends, strict=True)
    ]


def plan_at(objects: Objects, place: PlanRange) -> str:
    """Return the plan at a place. Raises `DamagedObject`."""
    text = bytes(objects.read(place.plans, place.first, place.length))
    if hashlib.sha256(text).hexdigest() != place.digest:
        raise DamagedObject(place.plans, "does not have the plan that was put there")
    return text.decode()


def output_name(plan_text: str) -> str:
    """Return the name of the object that a plan creates."""
    return f"out-{hashlib.sha256(plan_text.encode()).hexdigest()}"


def result_in(objects: Objects, name: str) -> bytes:
    """Return the results of a pack from the object that its plan created. Raises `DamagedObject`."""
    return bytes(OpenedObject(objects, name).column("results").tobytes())


def keep(objects: Objects, name: str, parts: Iterable[Bytes]) -> None:
    """Create an object. An existing one must be equal, or damaged: then it is replaced. Raises `NotTheSame`."""
    content = b"".join(map(bytes, parts))
    for _ in range(3):
        if objects.create(name, [content]):
            return
        try:
            OpenedObject(objects, name).check()
        except DamagedObject:
            objects.delete(name)
            continue
        if differs(objects, name, content):
            raise NotTheSame(f"{name} was made twice and is not the same")
        return
    raise DamagedObject(name, "cannot be made again")


def differs(objects: Objects, name: str, content: bytes) -> bool:
    """Tell whether an existing object has other bytes than these."""
    return bool(objects.size(name) != len(content) or objects.read(name, 0, len(content)) != content)


def raw_content(texts: Iterable[bytes]) -> Iterator[Bytes]:
    """Yield the bytes of an object with the records of a range, one per line, followed by a checksum."""
    crc = 0
    for text in texts:
        crc = zlib.crc32(text, crc)
        yield text
    yield crc.to_bytes(CRC_BYTES, "big")


def _sealed(objects: Objects, plan: dict[str, Any]) -> Iterator[Bytes]:
    """Seal a range of records."""
    name, records = segment_name(plan["makes"]), plan["records"]
    assert name is not None
    content = memoryview(objects.read(records, 0, objects.size(records) or 0))
    if zlib.crc32(content[:-CRC_BYTES]).to_bytes(CRC_BYTES, "big") != bytes(content[-CRC_BYTES:]):
        raise DamagedObject(records, "has another checksum")
    return segment_of(content[:-CRC_BYTES], bytes.fromhex(plan["behind"]), name, plan["ledger"])


def segment_of(records: Any, behind: bytes, name: SegmentName, ledger: str) -> Iterator[Bytes]:
    """Return the bytes of the segment of this name, given its records, one a line, and the chain hash behind which they
    are.

    Raises `StoreDamaged` unless they lead from that to the one in the name.
    """
    chain = behind
    for page in pages_of(records):
        for record in page.split(b"\n")[:-1]:
            chain = chain_hash(chain, leaf_hash(record))
    if chain.hex() != name.chain_hash:
        changed = f"the events from {name.first + 1:,} to {name.last:,} are not as they were recorded"
        raise StoreDamaged(f"{changed}, so they are not sealed; see: ratings verify")
    return sealed(decode_text(records, name.first, name.last), {"ledger": ledger, "name": str(name)})


def pack_plan(task: str, base: str, pack: Pack, cells: Iterable[tuple[int, NamedCell]], **options: Any) -> str:
    """Return the plan of a task for a pack, whose cells have these numbers in the ledger and labels."""
    shared = {
        "task": task,
        "code": CODE,
        "base": base,
        "ruleset": pack.ruleset_id,
        "families": pack.families,
        "cells": [*cells],
        "games": pack.games,
    }
    return json.dumps({**shared, **options}, sort_keys=True)


def replayed_pack(base: SharedBase, plan: dict[str, Any]) -> bytes:
    """Replay the ladders of a pack. Raises `DamagedObject` if their games are not those of the plan."""
    if plan["streamed"] is not None:
        ladder = streamed(base, plan["cells"], plan["games"], plan["ruleset"], tuple(plan["streamed"]))
        return pack([] if ladder is None else [ladder])
    ladders = Ladders(base.facts(plan["cells"], plan["games"]))
    planned, versions = (
        plan_ladders(ladders, [plan["ruleset"]], plan["stored"]),
        ladders.facts.rulesets[plan["ruleset"]],
    )
    streams = {
        name: stream
        for name, stream in planned.streams.items()
        if family_of(versions, parse_name(name).values) in plan["families"]
        and (not plan["asked"] or name in plan["asked"])
    }
    build = partial(build_ladder, changes=plan["changes"])
    results = compute(ladders, planned._replace(streams=streams), build, cores=1, changes=plan["changes"])
    return pack(sorted(results, key=lambda result: (result.ladder, isinstance(result, BuiltLadder))))


# The number of games in a window, approximately.
WINDOW_GAMES = 1_000_000


def windows(base: SharedBase, cells: Sequence[tuple[int, NamedCell]], games: int) -> Iterator[Window]:
    """Yield windows of time with about `games` games of some cells each, from the first game to the last."""
    size, cuts = 0.0, list[int | None]([None])
    for moment, count in sorted(base.moments(cells)):
        if size >= games and moment != cuts[-1]:
            cuts.append(moment)
            size = 0.0
        size += count
    yield from pairwise([*cuts, None])


def streamed(
    base: SharedBase, cells: Sequence[tuple[int, NamedCell]], games: int, ruleset_id: str, values: tuple[str, ...]
) -> BuiltLadder | LadderFailure | None:
    """Return a ladder as `built` gives it; None if no game counts there.

    Raises `DamagedObject` if the segments have other than so many games.
    """
    ladder, earlier, read, names = "/".join([ruleset_id, *values]), None, 0, list[str]()
    for window in windows(base, cells, WINDOW_GAMES):
        facts, rows = base.facts_within(cells, window, names)
        read, names = read + rows, facts.players
        ladders = Ladders(facts)
        try:
            earlier = _continued(facts, ladder, ruleset_id, values, window, earlier)
        except RuleFailure as error:
            return to_ladder_failure(ladder, ladders, error)
    if read != games:
        raise DamagedObject(base.name, f"leads to {read:,} games instead of {games:,}")
    if earlier is None:
        return None
    ranked = ladders.rank(earlier)[0]
    return BuiltLadder(
        ranked.ladder,
        ranked.ruleset,
        ranked.digest,
        ranked.scale,
        ranked.games,
        [to_stored_row(row) for row in ranked.rows],
    )


def _continued(
    facts: Facts, ladder: str, ruleset_id: str, values: tuple[str, ...], window: Window, earlier: Trace | None
) -> Trace | None:
    """Return the trace at the end of a window, given that at the end of the last one; None before the ladder begins.

    Raises `RuleFailure`.
    """
    versions, (since, until) = facts.rulesets[ruleset_id], window
    own_streams = build_streams(
        facts,
        versions,
        only=values,
        as_of=None if until is None else until - 1,
        after=None if since is None else (since, -1),
    ).get(ladder)
    if own_streams is None:
        return earlier
    # A version that takes effect after the last game is applied by the window of the next game.
    own_streams = replace(own_streams, batch=None, until=None)
    stream = own_streams if earlier is None else number_players_after(earlier.stream, own_streams)
    return _light(replay(stream, keep=False, earlier=earlier))


def _light(trace: Trace) -> Trace:
    """Return a trace without its games, for another trace to continue or a list to rank."""
    stream, none = trace.stream, array("q")
    last = trace.last_version
    version: Any = np.broadcast_to(np.int16(0 if last is None else stream.versions.index(last)), trace.count)
    return replace(
        trace,
        earlier=None,
        states_before=[none] * len(trace.states),
        mints=none,
        adjusted_before=[none] * len(trace.states),
        stream=replace(
            stream,
            offsets=array("q", [0]),
            players=array("i"),
            columns=(),
            adjustments=[],
            row=range(trace.count),
            version=version,
            entered=trace.entered,
        ),
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (DifferingList, Effect, PointsChange, QualityPair, Quality, ImpactSummary, SimulatedLadder)
}


def compared_pack(base: SharedBase, plan: dict[str, Any]) -> bytes:
    """Compare the ladders of a pack with those under another ruleset. Raises `DamagedObject`."""
    ruleset, as_of, of = Ruleset.model_validate(plan["under"]), plan["as_of"], plan["ruleset"]
    now = Ladders(base.facts(plan["cells"], plan["games"]), as_of)
    then, failed = apply_ruleset(now.facts, ruleset, as_of), list[str]()
    every = [ladders.streams(of) if of in ladders.facts.rulesets else {} for ladders in (now, then)]
    versions = [version for ladders in (now, then) for version in ladders.facts.rulesets.get(of, ())]
    here = {
        name
        for streams in every
        for name in streams
        if family_of(versions, parse_name(name).values) in plan["families"]
    }
    names = {name for name in here if not plan["asked"] or name in plan["asked"]}
    compared, published = (
        compare_simulated_ladders(_recorded(plan["lists"]), now, then, ruleset.id, names, failed) if names else ([], ())
    )
    there = [sorted(here & streams.keys()) for streams in every]
    return marshal.dumps([as_plain(tuple(compared)), as_plain(published), failed, *there], REPEATABLE)


def _recorded(lists: Sequence[Sequence[Any]]) -> LogLookups:
    """Return what a plan says of published lists."""
    rows: dict[int, list[RankedRow]] = {position: [*map(_row, listed)] for position, *_, listed in lists}

    def as_listed(published: PublishedList) -> Ranking:
        return Ranking(published.ladder, published.ruleset, 1, rows[published.position], published.games, 0, 0, 0, 0, 0)

    lists_published = [PublishedList(*fields[:-1]) for fields in lists]
    return LogLookups(lambda: lists_published, as_listed, lambda failure, facts: failure.describe(facts))


def _row(fields: Sequence[Any]) -> RankedRow:
    row = RankedRow(*fields)
    return row if row.places is None else row._replace(places=tuple(row.places))


def comparison_in(result: bytes) -> list[Any]:
    """Return what `compared_pack` gave: ladders, lists, failures, the ladders now, and those then."""
    compared, published, *others = marshal.loads(result)
    return [from_plain(compared), from_plain(published), *others]


def as_plain(value: Any) -> Any:
    """Return a part of an answer as plain values; `from_plain` gives it back."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [as_plain(getattr(value, member.name)) for member in fields(value)]
    if isinstance(value, Fraction):
        return "Fraction", [value.numerator, value.denominator]
    if isinstance(value, datetime):
        return "datetime", [(value - _EPOCH) // timedelta(microseconds=1)]
    if isinstance(value, tuple):
        return "tuple", [*map(as_plain, value)]
    return ("ABSENT", []) if value is ABSENT else value


def from_plain(value: Any) -> Any:
    """Return what `as_plain` was given."""
    if not isinstance(value, tuple):
        return value
    kind, parts = value[0], [*map(from_plain, value[1])]
    if kind == "tuple":
        return tuple(parts)
    if kind == "datetime":
        return _EPOCH + timedelta(microseconds=parts[0])
    return ABSENT if kind == "ABSENT" else ExactNumber(*parts) if kind == "Fraction" else _KINDS[kind](*parts)
