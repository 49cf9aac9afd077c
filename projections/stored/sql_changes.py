"""What games and adjustments did to everybody's points on a ladder, as it is kept for SQL: in blocks of a few thousand.

A block is the same after a later rebuild as long as nothing in it or before it changed, so that a night writes what is
new. It is plain data, compact enough that a long ladder goes from one process to another in one piece.
"""

import sys
from array import array
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, TypeAlias

from projections.facts.columns import Facts
from projections.replay.ladders import Stream
from projections.replay.replay import Outcome, steps_of_all

BLOCK_CHANGES = 5_000
# of each change: position, occurred_at, place (0: none), units before, units of the change
NUMBERS = 5

# digest, players, names of rulesets (empty for adjustments), and the numbers of all changes, one behind the other
Block: TypeAlias = tuple[str, list[str], list[str], bytes]


def blocks_of(facts: Facts, stream: Stream, outcome: Outcome) -> list[Block]:
    """The changes of a stream that was replayed to its end, with all of its changes, in order.

    An annual list has none, as no games are its own.
    """
    if stream.rule.ranking == "annual":
        return []
    rows = _rows(facts, stream, outcome)
    found = []
    while some := list(islice(rows, BLOCK_CHANGES)):
        players, rulesets = [row[0] for row in some], [row[1] for row in some]
        numbers = array("q", [number for row in some for number in row[2:]])
        found.append((_digest(stream.rule.scale, players, rulesets, numbers), players, rulesets, numbers.tobytes()))
    return found


def _rows(facts: Facts, stream: Stream, outcome: Outcome) -> Iterator[tuple[Any, ...]]:
    names = [version.ruleset.name for version in stream.versions]
    adjusted = {one.position: one.occurred_at for one in stream.adjustments}
    last = row = -1
    places: dict[int, int] = {}
    for player, step in steps_of_all(stream, outcome):
        if step.game is None:
            position = step.position or 0
            yield stream.names[player], "", position, adjusted[position], 0, step.before, step.change
            continue
        if step.game != last:
            last, row = step.game, stream.row[step.game]
            slots = range(facts.start[row], facts.start[row] + facts.count[row])
            places = {facts.person_of(slot): facts.place[slot] for slot in reversed(slots)}
        yield (
            stream.names[player], names[stream.version[last]], facts.live_position[row], facts.occurred_at[row],
            places[stream.persons[player]], step.before, step.change,
        )  # fmt: skip


def _digest(scale: int, players: Sequence[str], rulesets: Sequence[str], numbers: "array[int]") -> str:
    # neither ids nor names hold a line break
    text = "\n".join([str(scale), *players, *rulesets])
    return sha256(text.encode() + b"\n" + portable(numbers)).hexdigest()


def portable(numbers: "array[int]") -> bytes:
    """Numbers as bytes that are the same on every machine."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def rows_of(number: int, block: Block) -> Iterator[tuple[Any, ...]]:
    """The rows of a ladder's block of this number, from 0: ordinal, and the columns of a change behind it."""
    _, players, rulesets, packed = block
    numbers = array("q", packed)
    columns = [numbers[first::NUMBERS] for first in range(NUMBERS)]
    ordinal = number * BLOCK_CHANGES
    for player, ruleset, position, occurred_at, place, before, change in zip(players, rulesets, *columns, strict=True):
        ordinal += 1
        yield ordinal, player, position, occurred_at, place or None, before, change, ruleset or None
