"""Perform the tasks of a worker. Each task reads objects and creates one object.

perform(url, requirements, plan_range)     performs the plan at a location

A plan is JSON, and determines the name of the object to create. The plans of tasks that are submitted together are in
one object. A worker that finds its object already created compares it with its own bytes, because the same plan gives
the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import json
import platform
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.records import chain_hash, leaf_hash
from ratings_ledger.projections.cluster.base import load_base
from ratings_ledger.projections.cluster.engines import ConflictingOutput, UnfitWorker
from ratings_ledger.projections.cluster.object_store import (
    DamagedObject,
    Objects,
    OpenedObject,
    encode_object,
    open_object,
    open_object_store,
)
from ratings_ledger.projections.cluster.pack_comparisons import compare_pack
from ratings_ledger.projections.cluster.pack_replays import replay_pack
from ratings_ledger.projections.cluster.packs import Pack
from ratings_ledger.projections.cluster.segments import NamedCell, SegmentName, encode_segment, parse_segment_name
from ratings_ledger.projections.cluster.worker_checks import CODE_DIGEST, WorkerRequirements, compute_golden_digest
from ratings_ledger.projections.facts.bulk_decoding import split_into_pages
from ratings_ledger.projections.facts.decoding import decode_text
from ratings_ledger.projections.facts.stored_columns import Bytes

CRC_BYTES = 4
SAME_LOCATION = "pass --segments with a location that all workers share with this machine"


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
def _check_fitness(url: str, requirements: WorkerRequirements) -> None:
    """Raise `UnfitWorker` unless this worker passes the checks. First clear the caches of earlier computations."""
    open_object.cache_clear()
    load_base.cache_clear()
    worker = f"the worker on {platform.node()}"
    if requirements.code_digest != CODE_DIGEST:
        raise UnfitWorker(
            f"{worker} runs another version of this program, Python, numpy or numba than this machine; install the "
            "same versions there"
        )
    try:
        content = bytes(open_object_store(url).read(requirements.nonce, 0, 1000))
    except OSError:
        content = b""
    if content.partition(b" ")[0] != requirements.nonce.encode():
        raise UnfitWorker(f"{worker} cannot read the objects in {url}; {SAME_LOCATION}")
    try:
        golden_digest = compute_golden_digest()
    except UnfitWorker as problem:
        raise UnfitWorker(f"{worker} is unfit: {problem}") from None
    if golden_digest != requirements.golden_digest:
        raise UnfitWorker(
            f"{worker} computes different points than this machine for the same games; leave this worker out, because "
            "its processor rounds differently"
        )


def perform(url: str, requirements: WorkerRequirements, plan_range: PlanRange) -> None:
    """Perform the plan at a location.

    Raises `UnfitWorker`, `ConflictingOutput`, `DamagedObject`, `OSError`, `StoreDamaged`.
    """
    _check_fitness(url, WorkerRequirements(*requirements))
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
    """Return the name of the object that the plan of a pack creates."""
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
    return build_segment(content[:-CRC_BYTES], bytes.fromhex(plan["chain_before"]), name, plan["ledger"])


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
        "code": CODE_DIGEST,
        "base": base,
        "ruleset": pack.ruleset_id,
        "families": pack.families,
        "cells": [*cells],
        "games": pack.games,
    }
    return json.dumps({**members, **options}, sort_keys=True)
