"""Numbers for players and cells in a whole ledger: what each sealed segment's own ones are, as objects beside them.

    numbers-FIRST-LAST-CHAINHASH-FORMAT      of the segment of the same name

Each goes on from the one before it, and is of no use without it. So they are made one after another, by one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.columnar import Array, OpenedObject, as_bytes, as_lines, object_bytes
from ratings_ledger.projections.cluster.objects import Bytes
from ratings_ledger.projections.cluster.segments import NamedCell


def numbers_name(segment: str) -> str:
    """Return the name of the numbers of a segment."""
    return f"numbers{segment.removeprefix('segment')}"


def segment_of_numbers(name: str) -> str:
    """Return the name of the segment whose numbers have a name; that of anything else is its own."""
    return f"segment{name.removeprefix('numbers')}" if name.startswith("numbers-") else name


class Numbering:
    """All players and cells of a ledger's segments, by number, to number those of the next."""

    def __init__(self, earlier: Iterable[OpenedObject]) -> None:
        self.players: dict[str, int] = {}
        self.cells: dict[NamedCell, int] = {}
        for one in earlier:
            self.take(one)

    def take(self, one: OpenedObject) -> None:
        """Go on with the numbers of another segment."""
        for name in all_names(one):
            self.players.setdefault(name, len(self.players))
        for cell in one.lines("cells"):
            self.cells.setdefault(tuple(cell), len(self.cells))

    def number(self, segment: OpenedObject) -> Iterator[Bytes]:
        """Return the bytes of the numbers of the segment that comes next."""
        players, cells = len(self.players), len(self.cells)
        told = all_names(segment), [tuple(cell) for cell in segment.lines("cells")]
        player = [self.players.setdefault(name, len(self.players)) for name in told[0]]
        cell = [self.cells.setdefault(name, len(self.cells)) for name in told[1]]
        pool = [name.encode() for name in [*self.players][players:]]
        columns = {
            "player": np.array(player, dtype=np.int32), "cell": np.array(cell, dtype=np.int32),
            "names": as_bytes(b"".join(pool)), "cells": as_lines([*self.cells][cells:]),
            "name_from": np.array([0, *accumulate(map(len, pool))], dtype=np.int64),
        }  # fmt: skip
        return object_bytes([], columns, {"name": numbers_name(segment.name), "players_before": players})


def numbers_of_head(segment: OpenedObject, earlier: Sequence[OpenedObject]) -> Iterator[Bytes]:
    """Return the bytes of the numbers of a segment of what is not sealed: all its players get new ones."""
    known: dict[NamedCell, int] = {}
    for one in earlier:
        for cell in one.lines("cells"):
            known.setdefault(tuple(cell), len(known))
    before, last = len(known), earlier[-1] if earlier else None
    cells = [known.setdefault(tuple(cell), len(known)) for cell in segment.lines("cells")]
    players = last.about["players_before"] + len(last.column("name_from")) - 1 if last else 0
    starts = segment.column("name_from")
    columns = {
        "player": np.arange(players, players + len(starts) - 1, dtype=np.int32),
        "cell": np.array(cells, dtype=np.int32), "names": segment.column("names"),
        "cells": as_lines([*known][before:]), "name_from": starts,
    }  # fmt: skip
    return object_bytes([], columns, {"players_before": players})


def all_names(one: OpenedObject) -> list[str]:
    """Return all names in an object."""
    text, starts = one.column("names").tobytes(), one.column("name_from").tolist()
    return [text[first:last].decode() for first, last in pairwise(starts)]


def names_of(numbers: Sequence[OpenedObject], wanted: Array) -> list[str]:
    """Return the players with some numbers, which ascend."""
    found: list[str] = []
    firsts = [int(one.about["players_before"]) for one in numbers]
    cuts = [*np.searchsorted(wanted, firsts).tolist(), len(wanted)]
    for one, before, (low, high) in zip(numbers, firsts, pairwise(cuts), strict=True):
        own = wanted[low:high] - before
        text, starts = one.column("names"), one.column("name_from")
        spans: Any = zip(starts[own].tolist(), starts[own + 1].tolist(), strict=True)
        whole = text.tobytes() if len(own) * 8 > len(starts) else None
        found += [
            (text[first:last].tobytes() if whole is None else whole[first:last]).decode() for first, last in spans
        ]
    return found
