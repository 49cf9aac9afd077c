"""The segments that a ledger has and lacks, whether they are intact, and the deletion of objects without use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import AlreadyRunning
from ratings_ledger.ledger.processes.identity import is_process_running
from ratings_ledger.ledger.store.log import chain_hash_at, head, ledger_id
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject
from ratings_ledger.projections.cluster.coordinating import (
    SHORT_LIVED,
    cluster_for,
    is_old,
    made_whole,
    seal,
    segment_names,
    segment_records,
    segments_at,
    sweep,
)
from ratings_ledger.projections.cluster.farm import ReportProgress
from ratings_ledger.projections.cluster.objects import LASTING, Objects
from ratings_ledger.projections.cluster.segments import (
    FORMAT,
    Numbering,
    SegmentName,
    numbers_name,
    segment_name,
    segment_of_numbers,
)
from ratings_ledger.projections.cluster.tasks import differs, segment_of
from ratings_ledger.projections.facts.stored_columns import Bytes
from ratings_ledger.projections.queries.results import Result

SEALED, MISSING, DAMAGED, STRANGE = "sealed", "not sealed", "damaged", "of another history"


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
        """Return what is damaged."""
        return tuple(f"{row.name} {row.problem}" for row in self.rows if row.state == DAMAGED)


def inventory(ledger: Ledger, url: str | None) -> AllSegments:
    """Return the segments of a ledger. Raises `StoreUnavailable`."""
    objects = segments_at(ledger, url)
    with ledger.reading() as connection:
        return _inventory(connection, objects, partial(_state, objects))


def checked_segments(ledger: Ledger, url: str | None) -> AllSegments:
    """Return the same after all of it was made again from the log and compared; what differs is deleted, to be sealed
    again.

    Raises `StoreUnavailable`, `StoreDamaged`.
    """
    objects, numbering, numbered = segments_at(ledger, url), Numbering([]), 0
    with ledger.reading() as connection:

        def compare(name: SegmentName) -> SegmentState:
            nonlocal numbered
            state = _state(objects, name)
            if state.state != SEALED:
                return state
            behind, records = chain_hash_at(connection, name.first) or b"", b"".join(segment_records(connection, name))
            if differs(objects, str(name), _joined(segment_of(records, behind, name, ledger_id(connection)))):
                return replace(state, state=DAMAGED, problem="says something else than the log")
            numbers = numbers_name(str(name))
            # numbers go on from those before, as far as these are whole
            if numbered == name.first and objects.size(numbers) is not None:
                numbered = name.last
                if differs(objects, numbers, _joined(numbering.number(OpenedObject(objects, str(name))))):
                    objects.delete(numbers)
                    return replace(state, state=DAMAGED, problem="has numbers that lead to other names")
            return state

        inventory = _inventory(connection, objects, compare)
    for row in inventory.rows:
        if row.state == DAMAGED:
            objects.delete(row.name)
    return inventory


def _joined(parts: Iterable[Bytes]) -> bytes:
    return b"".join(map(bytes, parts))


def _inventory(connection: Connection, objects: Objects, state: Callable[[SegmentName], SegmentState]) -> AllSegments:
    position = head(connection).position
    needed = segment_names(connection, position)
    rows = [state(name) for name in needed]
    for name in objects.names("segment-"):
        segment = segment_name(name)
        if segment is not None and segment not in needed and not name.startswith("segment-head"):
            rows.append(SegmentState(segment.first, segment.last, STRANGE, 0, objects.size(name) or 0, name, ""))
    sealed = 0
    for row in rows:
        sealed = row.last if row.state == SEALED and row.first == sealed else sealed
    rows.sort(key=lambda row: (row.last, row.first, row.name))
    return AllSegments(objects.url, sealed, position, tuple(rows))


def _state(objects: Objects, name: SegmentName) -> SegmentState:
    size = objects.size(str(name))
    if size is None:
        return SegmentState(name.first, name.last, MISSING, 0, 0, str(name), "")
    try:
        segment = OpenedObject(objects, str(name))
    except DamagedObject as problem:
        return SegmentState(name.first, name.last, DAMAGED, 0, size, str(name), problem.problem)
    return SegmentState(name.first, name.last, SEALED, segment.about["games"], size, str(name), "")


def seal_all(ledger: Ledger, on: str, url: str | None, tell: ReportProgress) -> AllSegments:
    """Seal what is not sealed, on the workers of an engine. Raises as `cluster_for` and `seal` do."""
    with cluster_for(ledger, on, url, tell) as cluster:
        made_whole(ledger, cluster, lambda connection: seal(connection, cluster, head(connection).position))
        sweep(cluster)
    return inventory(ledger, url)


OTHER_FORMAT, LEFT = "of another format", "left behind"


@dataclass(frozen=True, slots=True)
class DisusedObject(Result):
    """An object that is of no use, why, and its length in bytes."""

    name: str
    why: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Pruned(Result):
    """What was deleted or, with `dry_run`, would be. So many others are of no use, either, but `young`: kept, because
    what was written within a day may belong to a computation that nobody here knows of."""

    segments: str
    dry_run: bool
    young: int
    rows: tuple[DisusedObject, ...]


def pruned(ledger: Ledger, url: str | None, dry_run: bool) -> Pruned:
    """Delete the segments of a ledger that are of another history or format, with their numbers, and what computations
    left that were killed.

    Raises `AlreadyRunning` while a computation goes on, which may be one of another version; `StoreUnavailable`.
    """
    objects = segments_at(ledger, url)
    if not dry_run:
        _refuse_in_use(objects)
    with ledger.reading() as connection:
        own = segment_names(connection, head(connection).position)
    disused = [(is_old(objects, entry.name), entry) for entry in _disused(objects, own)]
    rows = tuple(entry for old, entry in disused if old)
    for row in () if dry_run else rows:
        objects.delete(row.name)
    return Pruned(objects.url, dry_run, len(disused) - len(rows), rows)


def _refuse_in_use(objects: Objects) -> None:
    """Raises `AlreadyRunning` if a computation goes on; each has a nonce from its beginning to its end."""
    if any(_goes_on(objects, name) for name in objects.names("nonce-")):
        message = f"a computation uses {objects.url}, or was killed elsewhere less than a day ago; nothing was deleted"
        raise AlreadyRunning(f"{message}; try again when it has ended")


def _goes_on(objects: Objects, nonce: str) -> bool:
    """Tell whether the computation of a nonce may go on. One of an earlier version does not say whose it is."""
    try:
        process = bytes(objects.read(nonce, 0, 1000)).decode(errors="replace").partition(" ")[2]
    except FileNotFoundError:  # it has just ended
        return False
    if is_old(objects, nonce):
        return False
    written_at, now = objects.written_at(nonce), clock.now()
    return not process or is_process_running(process, now if written_at is None else written_at * 1_000_000, now)


def _disused(objects: Objects, own: list[SegmentName]) -> Iterator[DisusedObject]:
    """Yield what is of no use to the history with these segments, whatever its age, in the order of its names."""
    needed = {name for segment in own for name in (str(segment), numbers_name(str(segment)))}
    for name in sorted({name for prefix in (*LASTING, *SHORT_LIVED) for name in objects.names(prefix)} - needed):
        if name.startswith(SHORT_LIVED):
            yield DisusedObject(name, LEFT, objects.size(name) or 0)
        elif (segment := segment_name(segment_of_numbers(name))) is not None:
            yield DisusedObject(name, STRANGE if segment.format == FORMAT else OTHER_FORMAT, objects.size(name) or 0)
