"""Define what a worker must match to be fit: the same code, the same objects, and the same computed points."""

from __future__ import annotations

import hashlib
import secrets
from functools import lru_cache
from typing import NamedTuple

from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.ledger.processes.identity import name_this_process
from ratings_ledger.projections.cluster.engines import UnfitWorker
from ratings_ledger.projections.cluster.object_store import Objects, describe_os_error
from ratings_ledger.projections.program import program_digest
from ratings_ledger.projections.replay.replay import replay_compiled, replay_interpreted
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.rulesets.shipped_rulesets import find_shipped
from ratings_ledger.projections.rulesets.versions import Version, bind, read_toml

GOLDEN_GAMES, GOLDEN_PLAYERS = 400, 23


class WorkerRequirements(NamedTuple):
    """What a worker must match: the digest of the code, a nonce to read, and a digest of a small ladder's points."""

    code_digest: str
    nonce: str
    golden_digest: str


# computed at import, because it must be the digest of the code as it was loaded
CODE_DIGEST = program_digest()


@lru_cache(1)
def compute_golden_digest() -> str:
    """Return a digest of the points of a small ladder; it differs on a processor that rounds differently.

    Raises `UnfitWorker` if nothing can be compiled, or if compiled and interpreted code give different points.
    """
    ruleset, _ = read_toml(find_shipped("elo").fill_in("golden")[-1])
    assert ruleset is not None
    version, _ = bind(ruleset)
    assert version is not None
    stream = _build_golden_stream(version)
    compiled, interpreted = replay_compiled(stream, {}), replay_interpreted(stream, {})
    if compiled is None:
        raise UnfitWorker("numba cannot compile the scoring of games here; check the versions of numpy and numba")
    if [*compiled.points] != [*interpreted.points]:
        raise UnfitWorker(
            "compiled code and the interpreter compute different points here; check the versions of numpy and numba"
        )
    return hashlib.sha256(repr([*interpreted.points]).encode()).hexdigest()


def _build_golden_stream(version: Version) -> Stream:
    """Build a ladder of four-player games with pseudo-random players and a tie in every third game."""
    from array import array

    state, players, place = 12345, array("i"), array("q")
    for game in range(GOLDEN_GAMES):
        state = (state * 1_103_515_245 + 12_345) % 2**31
        first = state >> 8
        players.extend(sorted((first + step * step) % GOLDEN_PLAYERS for step in range(4)))
        place.extend([1, 2, 2 if game % 3 == 0 else 3, 4])
    columns = [
        place if name == "place" else array("q", [4 if name == "seats" else 1]) * len(players)
        for name in version.rule.columns
    ]
    names = [f"golden-{number:02d}" for number in range(GOLDEN_PLAYERS)]
    return Stream(
        "golden",
        version.rule,
        [version],
        names,
        array("q", range(0, 4 * GOLDEN_GAMES + 1, 4)),
        players,
        [memoryview(column) for column in columns],
        array("h", bytes(2 * GOLDEN_GAMES)),
        array("q", range(GOLDEN_GAMES)),
        persons=[*range(GOLDEN_PLAYERS)],
    )


def create_nonce(objects: Objects) -> str:
    """Create an object with an unpredictable name for workers to read, and check that the store never overwrites it.

    Return the name of the object; its content is this name, a space, and the name of this process. Raises
    `StoreUnavailable` if the store cannot be used.
    """
    name = f"nonce-{secrets.token_hex(16)}"
    try:
        written = f"{name} {name_this_process()}".encode()
        is_created, is_overwritten = (objects.create(name, [content]) for content in (written, b"another"))
        stored = bytes(objects.read(name, 0, len(written)))
    except OSError as problem:
        raise StoreUnavailable(
            f"{objects.url} cannot be used for segments: {describe_os_error(problem)}", "file"
        ) from None
    if not is_created or is_overwritten or stored != written:
        raise StoreUnavailable(
            f"{objects.url} cannot be used for segments: it overwrites existing objects; pass --segments with the URL "
            "of a store that does not",
            "file",
        )
    return name
