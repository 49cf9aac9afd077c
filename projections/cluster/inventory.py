"""Which sealed segments a ledger has, which it lacks, and whether they are as they were written."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.store.log import head
from ledger.store.opening import Ledger
from projections.cluster.columnar import DamagedObject, OpenedObject
from projections.cluster.coordinating import cluster_for, seal, segment_names, segments_at
from projections.cluster.farm import Tell
from projections.cluster.numbers import numbers_name
from projections.cluster.objects import Objects
from projections.cluster.segments import check_parts, segment_name
from projections.queries.results import Result

SEALED, MISSING, DAMAGED, STRANGE = "sealed", "missing", "damaged", "of another history"


@dataclass(frozen=True, slots=True)
class SegmentState(Result):
    """A segment of the events after `first` up to `last`, and its state; games and bytes are 0 if it is not sealed."""

    first: int
    last: int
    state: str
    games: int
    bytes: int
    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class AllSegments(Result):
    """The segments at a place, in the order of the log; what is behind `sealed` is read from the log itself."""

    segments: str
    sealed: int
    position: int
    rows: tuple[SegmentState, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """What is damaged."""
        return tuple(f"{row.name} {row.problem}" for row in self.rows if row.state == DAMAGED)


def inventory(ledger: Ledger, url: str | None, whole: bool = False) -> AllSegments:
    """The segments of a ledger. With `whole` all of them is read, and what is damaged is deleted, to be made again.

    Raises `StoreUnavailable`.
    """
    objects = segments_at(ledger, url)
    with ledger.reading() as connection:
        position = head(connection).position
        wanted = segment_names(connection, position)
    rows = [_state(objects, str(name), name.first, name.last, whole) for name in wanted]
    for name in objects.names("segment-"):
        found = segment_name(name)
        if found is not None and found not in wanted and not name.startswith("segment-head"):
            rows.append(SegmentState(found.first, found.last, STRANGE, 0, objects.size(name) or 0, name, ""))
    if whole:
        for row in rows:
            if row.state == DAMAGED:
                objects.delete(row.name)
    sealed = 0
    for row in rows:
        sealed = row.last if row.state == SEALED and row.first == sealed else sealed
    rows.sort(key=lambda row: (row.last, row.first, row.name))
    return AllSegments(objects.url, sealed, position, tuple(rows))


def _state(objects: Objects, name: str, first: int, last: int, whole: bool) -> SegmentState:
    size = objects.size(name)
    if size is None:
        return SegmentState(first, last, MISSING, 0, 0, name, "")
    try:
        segment = OpenedObject(objects, name)
        if whole:
            segment.check()
            check_parts(segment)
            OpenedObject(objects, numbers_name(name)).check()
    except DamagedObject as problem:
        if problem.name != name:
            objects.delete(problem.name)  # made again in no time
        else:
            return SegmentState(first, last, DAMAGED, 0, size, name, problem.problem)
    return SegmentState(first, last, SEALED, segment.about["games"], size, name, "")


def seal_all(ledger: Ledger, on: str, url: str | None, tell: Tell) -> AllSegments:
    """Seal what is not sealed, on the workers of an engine. Raises as `cluster_for` and `seal` do."""
    with cluster_for(ledger, on, url) as cluster, ledger.reading() as connection:
        seal(connection, cluster, head(connection).position, tell)
    return inventory(ledger, url)
