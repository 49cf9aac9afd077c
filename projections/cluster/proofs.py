"""What a worker must show before it works: the same code, the same place for objects, and the same points."""

from __future__ import annotations

import hashlib
import secrets
from functools import lru_cache
from typing import NamedTuple

from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.ledger.processes.identity import name_this_process
from ratings_ledger.projections.cluster.engines import Unfit
from ratings_ledger.projections.cluster.objects import (
    Objects,
    why,
)
from ratings_ledger.projections.program import program_digest
from ratings_ledger.projections.replay.ladders import Stream
from ratings_ledger.projections.replay.replay import replay_compiled, replay_interpreted
from ratings_ledger.projections.rulesets.versions import Version, bind, read_shipped_elo, read_toml

GOLDEN_GAMES, GOLDEN_PLAYERS = 400, 23


class Proof(NamedTuple):
    """What a worker must be able to show before it works: the code it runs, that it reads what the coordinator wrote,
    and that it computes a small ladder to the same points."""

    code: str
    nonce: str
    golden: str


# of the code as it was loaded
CODE = program_digest()


@lru_cache(1)
def golden_digest() -> str:
    """Return a digest of what becomes of a small ladder, compiled and interpreted: another processor must round the
    same way.

    Raises `Unfit` if these two differ.
    """
    ruleset, _ = read_toml(read_shipped_elo("golden"))
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


def prove(objects: Objects) -> str:
    """Write something that only its reader can know, and try whether a second object of a name is refused.

    Returns the name of the object, which holds this name and, behind a space, that of this process. Raises
    `StoreUnavailable` if the place is not fit for objects.
    """
    name = f"nonce-{secrets.token_hex(16)}"
    try:
        written = f"{name} {name_this_process()}".encode()
        first, second = (objects.create(name, [content]) for content in (written, b"another"))
        stored = bytes(objects.read(name, 0, len(written)))
    except OSError as problem:
        raise StoreUnavailable(f"{objects.url} cannot be used for segments: {why(problem)}", "file") from None
    if not first or second or stored != written:
        raise StoreUnavailable(f"{objects.url} cannot be used for segments: it replaces what is there", "file")
    return name
