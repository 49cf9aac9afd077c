"""List, check and create the segments of a ledger, and delete unused objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import AlreadyRunning
from ratings_ledger.ledger.processes.identity import is_process_running
from ratings_ledger.ledger.store.log import head, ledger_id, read_chain_hash
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject
from ratings_ledger.projections.cluster.coordinating import (
    SHORT_LIVED,
    is_old,
    list_segment_names,
    open_cluster,
    open_ledger_objects,
    read_segment_records,
    retry_on_damage,
    seal,
    sweep,
)
from ratings_ledger.projections.cluster.object_store import LASTING, Objects
from ratings_ledger.projections.cluster.segments import (
    FORMAT,
    Numbering,
    SegmentName,
    parse_segment_name,
    to_numbers_name,
    to_segment_name,
)
from ratings_ledger.projections.cluster.task_runner import ReportProgress
from ratings_ledger.projections.cluster.tasks import build_segment, has_different_bytes
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
    """The segments in a store, in the order of the log; events after position `sealed` are read from the log."""

    segments: str
    sealed: int
    position: int
    rows: tuple[SegmentState, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """Describe each damaged segment."""
        return tuple(f"{row.name} {row.problem}" for row in self.rows if row.state == DAMAGED)


def list_segments(ledger: Ledger, url: str | None) -> AllSegments:
    """List the segments of a ledger. Raises `StoreUnavailable`."""
    objects = open_ledger_objects(ledger, url)
    with ledger.reading() as connection:
        return _build_inventory(connection, objects, partial(_read_state, objects))


def check_segments(ledger: Ledger, url: str | None) -> AllSegments:
    """Compare all segments with the log, delete those that differ, so that they are sealed again, and list them.

    Raises `StoreUnavailable`, `StoreDamaged`.
    """
    objects, numbering, numbered = open_ledger_objects(ledger, url), Numbering([]), 0
    with ledger.reading() as connection:

        def check(name: SegmentName) -> SegmentState:
            nonlocal numbered
            state = _read_state(objects, name)
            if state.state != SEALED:
                return state
            behind, records = (
                read_chain_hash(connection, name.first) or b"",
                b"".join(read_segment_records(connection, name)),
            )
            if has_different_bytes(
                objects, str(name), _join(build_segment(records, behind, name, ledger_id(connection)))
            ):
                return replace(state, state=DAMAGED, problem="says something else than the log")
            numbers = to_numbers_name(str(name))
            # the numbers of a segment continue those of the previous one, so check them only without a gap
            if numbered == name.first and objects.size(numbers) is not None:
                numbered = name.last
                if has_different_bytes(objects, numbers, _join(numbering.number(OpenedObject(objects, str(name))))):
                    objects.delete(numbers)
                    return replace(state, state=DAMAGED, problem="has numbers that lead to other names")
            return state

        inventory = _build_inventory(connection, objects, check)
    for row in inventory.rows:
        if row.state == DAMAGED:
            objects.delete(row.name)
    return inventory


def _join(parts: Iterable[Bytes]) -> bytes:
    return b"".join(map(bytes, parts))


def _build_inventory(
    connection: Connection, objects: Objects, state: Callable[[SegmentName], SegmentState]
) -> AllSegments:
    position = head(connection).position
    needed = list_segment_names(connection, position)
    rows = [state(name) for name in needed]
    for name in objects.names("segment-"):
        segment = parse_segment_name(name)
        if segment is not None and segment not in needed and not name.startswith("segment-head"):
            rows.append(SegmentState(segment.first, segment.last, STRANGE, 0, objects.size(name) or 0, name, ""))
    sealed = 0
    for row in rows:
        sealed = row.last if row.state == SEALED and row.first == sealed else sealed
    rows.sort(key=lambda row: (row.last, row.first, row.name))
    return AllSegments(objects.url, sealed, position, tuple(rows))


def _read_state(objects: Objects, name: SegmentName) -> SegmentState:
    size = objects.size(str(name))
    if size is None:
        return SegmentState(name.first, name.last, MISSING, 0, 0, str(name), "")
    try:
        segment = OpenedObject(objects, str(name))
    except DamagedObject as problem:
        return SegmentState(name.first, name.last, DAMAGED, 0, size, str(name), problem.problem)
    return SegmentState(name.first, name.last, SEALED, segment.about["games"], size, str(name), "")


def seal_all(ledger: Ledger, on: str, url: str | None, tell: ReportProgress) -> AllSegments:
    """Seal all unsealed events on the workers of an engine. Raises the errors of `open_cluster` and `seal`."""
    with open_cluster(ledger, on, url, tell) as cluster:
        retry_on_damage(ledger, cluster, lambda connection: seal(connection, cluster, head(connection).position))
        sweep(cluster)
    return list_segments(ledger, url)


OTHER_FORMAT, LEFT = "of another format", "left behind"


@dataclass(frozen=True, slots=True)
class DisusedObject(Result):
    """An unused object, the reason, and its length in bytes."""

    name: str
    why: str
    bytes: int


@dataclass(frozen=True, slots=True)
class PruneResult(Result):
    """The objects that were deleted or, with `dry_run`, would be deleted.

    `young` counts the unused objects that were kept: an object written within the last day may belong to a running
    computation on another machine.
    """

    segments: str
    dry_run: bool
    young: int
    rows: tuple[DisusedObject, ...]


def prune_segments(ledger: Ledger, url: str | None, dry_run: bool) -> PruneResult:
    """Delete the segments of another history or format, with their numbers, and the objects of killed computations.

    Raises `AlreadyRunning` while a computation is running, which may use another version; `StoreUnavailable`.
    """
    objects = open_ledger_objects(ledger, url)
    if not dry_run:
        _check_unused(objects)
    with ledger.reading() as connection:
        own = list_segment_names(connection, head(connection).position)
    disused = [(is_old(objects, entry.name), entry) for entry in _find_disused(objects, own)]
    rows = tuple(entry for old, entry in disused if old)
    for row in () if dry_run else rows:
        objects.delete(row.name)
    return PruneResult(objects.url, dry_run, len(disused) - len(rows), rows)


def _check_unused(objects: Objects) -> None:
    """Raise `AlreadyRunning` if a computation is running; each one has a nonce object from its start to its end."""
    if any(_may_be_running(objects, name) for name in objects.names("nonce-")):
        message = f"a computation uses {objects.url}, or was killed elsewhere less than a day ago; nothing was deleted"
        raise AlreadyRunning(f"{message}; try again when it has ended")


def _may_be_running(objects: Objects, nonce: str) -> bool:
    """Tell whether the computation of a nonce may be running. Nonces of earlier versions do not name their process."""
    try:
        process = bytes(objects.read(nonce, 0, 1000)).decode(errors="replace").partition(" ")[2]
    except FileNotFoundError:  # it has just ended
        return False
    if is_old(objects, nonce):
        return False
    written_at, now = objects.written_at(nonce), clock.now()
    return not process or is_process_running(process, now if written_at is None else written_at * 1_000_000, now)


def _find_disused(objects: Objects, own: list[SegmentName]) -> Iterator[DisusedObject]:
    """Yield the objects, of any age, that the history with these segments does not use, by name."""
    needed = {name for segment in own for name in (str(segment), to_numbers_name(str(segment)))}
    for name in sorted({name for prefix in (*LASTING, *SHORT_LIVED) for name in objects.names(prefix)} - needed):
        if name.startswith(SHORT_LIVED):
            yield DisusedObject(name, LEFT, objects.size(name) or 0)
        elif (segment := parse_segment_name(to_segment_name(name))) is not None:
            yield DisusedObject(name, STRANGE if segment.format == FORMAT else OTHER_FORMAT, objects.size(name) or 0)
