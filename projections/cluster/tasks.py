"""What a worker does: one pure task after another, from objects to one object, named by what it is made from.

perform(url, proof, place) -> nothing     the place of the plan, which names the object that is made

A plan is JSON; those of tasks that are handed out together are one object. Whoever makes an object second compares: the
same plan gives the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.records import chain_hash, leaf_hash
from ratings_ledger.projections.cluster.base import SharedBase, base_of
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject, as_bytes, object_at, object_bytes
from ratings_ledger.projections.cluster.comparing import compared_pack
from ratings_ledger.projections.cluster.engines import NotTheSame, Unfit
from ratings_ledger.projections.cluster.objects import Bytes, Objects, objects_at
from ratings_ledger.projections.cluster.packs import Family, Pack, family_of
from ratings_ledger.projections.cluster.segments import NamedCell, SegmentName, sealed, segment_name
from ratings_ledger.projections.cluster.streaming import streamed
from ratings_ledger.projections.facts.bulk import pages_of
from ratings_ledger.projections.facts.decoding import decode_text
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.replay.replay import replay_compiled, replay_interpreted
from ratings_ledger.projections.rulesets.versions import Version, bind, read_toml, shipped_elo
from ratings_ledger.projections.stored.computing import (
    Built,
    LadderFailure,
    built,
    built_with_changes,
    compute,
    is_named,
    packed,
    plan,
    unpacked,
)

COMPARED_BYTES, CRC_BYTES = 1 << 22, 4
ONE_PLACE = "--segments must lead all workers and this machine to one place"
GOLDEN_GAMES, GOLDEN_PLAYERS = 400, 23


class Proof(NamedTuple):
    """What a worker must be able to show before it works: the code it runs, that it reads what the coordinator wrote,
    and that it computes a small ladder to the same points."""

    code: str
    nonce: str
    golden: str


class PlanRange(NamedTuple):
    """Where a plan is: an object with several, its bytes in it, and their SHA-256."""

    plans: str
    first: int
    length: int
    digest: str


def _code_digest() -> str:
    """Return a digest of what a result depends on besides its plan: this program, Python, numpy and numba."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {sys.byteorder}".encode())
    for name in ("numpy", "numba", "llvmlite"):
        digest.update(f"{name} {metadata.version(name)}".encode())
    root = Path(__file__).parents[2]
    for layer in ("ledger", "projections"):
        for path in sorted((root / layer).rglob("*")):
            if path.suffix in (".py", ".toml", ".bin"):
                digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


# of the code as it was loaded
CODE = _code_digest()


@lru_cache(1)
def golden_digest() -> str:
    """Return a digest of what becomes of a small ladder, compiled and interpreted: another processor must round the
    same way.

    Raises `Unfit` if these two differ.
    """
    ruleset, _ = read_toml(shipped_elo("golden"))
    assert ruleset is not None
    version, _ = bind(ruleset)
    assert version is not None
    stream = _golden_stream(version)
    compiled, plain = replay_compiled(stream, {}), replay_interpreted(stream, {})
    if compiled is None or [*compiled.points] != [*plain.points]:
        raise Unfit("compiled code comes to other points than the interpreter")
    return hashlib.sha256(repr([*plain.points]).encode()).hexdigest()


def _golden_stream(version: Version) -> Stream:
    """Return a ladder of games of four, two of them equal in every third, between pseudo-random players."""
    from array import array

    state, players, place = 12345, array("i"), array("q")
    for game in range(GOLDEN_GAMES):
        state = (state * 1_103_515_245 + 12_345) % 2**31
        first = state >> 8
        players.extend(sorted((first + step * step) % GOLDEN_PLAYERS for step in range(4)))
        place.extend([1, 2, 2 if game % 3 == 0 else 3, 4])
    columns = [place if name == "place" else array("q", [4 if name == "seats" else 1]) * len(players)
               for name in version.rule.columns]  # fmt: skip
    names = [f"golden-{number:02d}" for number in range(GOLDEN_PLAYERS)]
    return Stream(
        "golden", version.rule, [version], names, array("q", range(0, 4 * GOLDEN_GAMES + 1, 4)), players,
        [memoryview(column) for column in columns], array("h", bytes(2 * GOLDEN_GAMES)),
        array("q", range(GOLDEN_GAMES)), persons=[*range(GOLDEN_PLAYERS)],
    )  # fmt: skip


@lru_cache(64)
def _is_fit(url: str, proof: Proof) -> None:
    """Raises `Unfit` if this worker may not work. What it read for another computation is read and checked again."""
    object_at.cache_clear()
    base_of.cache_clear()
    if proof.code != CODE:
        raise Unfit("a worker runs another version of the program, of Python, numpy or numba; install the same there")
    try:
        seen = bytes(objects_at(url).read(proof.nonce, 0, 1000))
    except OSError:
        seen = b""
    if seen.partition(b" ")[0] != proof.nonce.encode():
        raise Unfit(f"a worker does not see what is written to {url}; {ONE_PLACE}")
    if golden_digest() != proof.golden:
        raise Unfit("a worker computes other points for the same games than this machine does")


def perform(url: str, proof: Proof, place: PlanRange) -> None:
    """Do what the plan at a place says.

    Raises `Unfit`, `NotTheSame`, `DamagedObject`, `OSError`, `StoreDamaged`.
    """
    _is_fit(url, Proof(*proof))
    objects = objects_at(url)
    plan_text = plan_at(objects, PlanRange(*place))
    told = json.loads(plan_text)
    makes = told.get("makes") or output_name(plan_text)
    if told["task"] == "seal":
        content = _sealed(url, told)
    else:
        base = base_of(url, told["base"])
        content = compared_pack(base, told, makes) if told["task"] == "compare" else _replayed(base, told, makes)
    keep(objects, makes, content)


def places_of(plans: Sequence[str]) -> list[PlanRange]:
    """Return where some plans are in the object that has them one behind another."""
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
    """Return the name of the object that a plan leads to."""
    return f"out-{hashlib.sha256(plan_text.encode()).hexdigest()}"


def keep(objects: Objects, name: str, content: Iterable[Bytes]) -> None:
    """Create an object; one that is there must be the same, or damaged, and is then replaced. Raises `NotTheSame`."""
    parts = [bytes(part) for part in content]
    for _ in range(3):
        if objects.create(name, parts):
            return
        try:
            OpenedObject(objects, name).check()
        except DamagedObject:
            objects.delete(name)
            continue
        if differs(objects, name, parts):
            raise NotTheSame(f"{name} was made twice and is not the same")
        return
    raise DamagedObject(name, "cannot be made again")


def differs(objects: Objects, name: str, parts: Sequence[Bytes]) -> bool:
    """Tell whether an object that is there has other bytes than these."""
    return objects.size(name) != sum(map(len, parts)) or any(_parts_differ(objects, name, parts))


def _parts_differ(objects: Objects, name: str, parts: Sequence[Bytes]) -> Iterator[bool]:
    at = 0
    for part in parts:
        for first in range(0, len(part), COMPARED_BYTES):
            some = part[first : first + COMPARED_BYTES]
            yield bytes(objects.read(name, at, len(some))) != some
            at += len(some)


def raw_content(texts: Iterable[bytes]) -> Iterator[Bytes]:
    """Yield the bytes of an object with the records of a range, one a line, and a checksum behind them."""
    crc = 0
    for text in texts:
        crc = zlib.crc32(text, crc)
        yield text
    yield crc.to_bytes(CRC_BYTES, "big")


def _sealed(url: str, told: dict[str, Any]) -> Iterator[Bytes]:
    """Seal a range of records."""
    name, objects = segment_name(told["makes"]), objects_at(url)
    assert name is not None
    raw = memoryview(objects.read(told["records"], 0, objects.size(told["records"]) or 0))
    if zlib.crc32(raw[:-CRC_BYTES]).to_bytes(CRC_BYTES, "big") != bytes(raw[-CRC_BYTES:]):
        raise DamagedObject(told["records"], "has another checksum")
    return segment_of(raw[:-CRC_BYTES], bytes.fromhex(told["behind"]), name, told["ledger"])


def segment_of(records: Any, behind: bytes, name: SegmentName, ledger: str) -> Iterator[Bytes]:
    """Return the bytes of the segment of this name, given its records, one a line, and the chain hash behind which they
    are.

    Raises `StoreDamaged` unless they lead from that to the one in the name.
    """
    _refuse_changed(records, behind, name)
    return sealed(decode_text(records, name.first, name.last), {"ledger": ledger, "name": str(name)})


def _refuse_changed(records: Any, behind: bytes, name: SegmentName) -> None:
    """Raises `StoreDamaged` unless records, one a line, lead from a chain hash to that of a segment."""
    chain = behind
    for page in pages_of(records):
        for record in page.split(b"\n")[:-1]:
            chain = chain_hash(chain, leaf_hash(record))
    if chain.hex() != name.chain_hash:
        told = f"the events from {name.first + 1:,} to {name.last:,} are not as they were recorded"
        raise StoreDamaged(f"{told}, so they are not sealed; see: ratings verify")


def pack_plan(
    base: str, pack: Pack, cells: Iterable[NamedCell], asked: Collection[str], stored: Collection[str], changes: bool,
    ladder: tuple[str, ...] | None = None,
) -> str:  # fmt: skip
    """Return the plan to replay a pack; window by window, if it is one `ladder` with these values."""
    return json.dumps({
        "task": "replay", "code": CODE, "base": base, "ruleset": pack.ruleset_id, "families": pack.families,
        "cells": [[number, cell] for number, cell in zip(pack.cells, cells, strict=True)], "games": pack.games,
        "asked": sorted(asked), "stored": sorted(stored), "changes": changes, "streamed": ladder,
    }, sort_keys=True)  # fmt: skip


def _replayed(base: SharedBase, told: dict[str, Any], makes: str) -> Iterator[Bytes]:
    """Replay the ladders of a pack. Raises `DamagedObject` if their games are not those of the plan."""
    cells = [(number, tuple(cell)) for number, cell in told["cells"]]
    if told["streamed"] is None:
        ladders = Ladders(base.facts(cells, told["games"]))
        families = {tuple(family) for family in told["families"]}
        results = replayed(ladders, told["ruleset"], families, {*told["asked"]}, told["stored"], told["changes"])
    else:
        found = streamed(base, cells, told["games"], told["ruleset"], tuple(told["streamed"]))
        results = [] if found is None else [found]
    message = packed(sorted(results, key=lambda one: (one.ladder, isinstance(one, Built))))
    return object_bytes([], {"results": as_bytes(message)}, {"name": makes})


def replayed(
    ladders: Ladders, ruleset_id: str, families: set[Family], asked: Collection[str], stored: Collection[str],
    changes: bool,
) -> list[Built | LadderFailure]:  # fmt: skip
    """Return the ladders of some families of a ruleset, of which only those that are asked for, and those that are
    stored.
    """
    planned = plan(ladders, [ruleset_id], stored)
    versions = ladders.facts.rulesets[ruleset_id]
    streams = {
        name: stream for name, stream in planned.streams.items()
        if family_of(versions, parse_name(name).values) in families and (not asked or is_named(name, asked))
    }  # fmt: skip
    one = built_with_changes if changes else built
    return [*compute(ladders, planned._replace(streams=streams), one, cores=1, changes=changes)]


def results_of(url: str, name: str) -> list[Built | LadderFailure]:
    """Return the results in an object that a plan led to. Raises `DamagedObject`."""
    return [*unpacked(OpenedObject(objects_at(url), name).column("results").tobytes())]
