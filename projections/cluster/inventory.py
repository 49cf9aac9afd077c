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
from ratings_ledger.projections.cluster.object_store import LASTING, DamagedObject, Objects, OpenedObject
from ratings_ledger.projections.cluster.prepared_log import (
    list_segment_names,
    read_segment_records,
    retry_on_damage,
    seal,
)
from ratings_ledger.projections.cluster.resources import (
    SHORT_LIVED,
    ReportProgress,
    is_old,
    open_cluster,
    open_ledger_objects,
)
from ratings_ledger.projections.cluster.segments import (
    FORMAT,
    Numbering,
    SegmentName,
    parse_segment_name,
    to_numbers_name,
    to_segment_name,
)
from ratings_ledger.projections.cluster.tasks import build_segment, has_different_bytes
from ratings_ledger.projections.facts.stored_columns import Bytes
from ratings_ledger.projections.queries.results import Result

# the states of a segment
SEALED, MISSING, DAMAGED, OTHER_HISTORY = "sealed", "not sealed", "damaged", "of another history"


@dataclass(frozen=True, slots=True)
class SegmentState(Result):
    """A segment of the events at `first` < position <= `last`, and its state.

    `games` is 0 unless the segment was read, and `bytes` is 0 if it does not exist. `problem` describes the damage.
    """

    first: int
    last: int
    state: str
    games: int
    bytes: int
    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class AllSegments(Result):
    """The segments in the store at `segments`, in log order. Events after position `sealed` are read from the log."""

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
    """Compare all segments with the log, and list them. A damaged or different one is deleted, to be sealed again.

    Raises `StoreUnavailable`, `StoreDamaged`.
    """
    objects, numbering, numbered_until = open_ledger_objects(ledger, url), Numbering([]), 0
    with ledger.reading() as connection:

        def check(name: SegmentName) -> SegmentState:
            nonlocal numbered_until
            state = _read_state(objects, name)
            if state.state != SEALED:
                return state
            previous_chain = read_chain_hash(connection, name.first) or b""
            records = b"".join(read_segment_records(connection, name))
            segment_bytes = _join(build_segment(records, previous_chain, name, ledger_id(connection)))
            if has_different_bytes(objects, str(name), segment_bytes):
                return replace(state, state=DAMAGED, problem="differs from the log")
            numbers_name = to_numbers_name(str(name))
            # the numbers of a segment continue those of the previous segment, so check them only without a gap
            if numbered_until == name.first and objects.size(numbers_name) is not None:
                numbered_until = name.last
                numbers_bytes = _join(numbering.number_segment(OpenedObject(objects, str(name))))
                if has_different_bytes(objects, numbers_name, numbers_bytes):
                    objects.delete(numbers_name)
                    return replace(state, state=DAMAGED, problem="has wrong numbers of players or cells")
            return state

        inventory = _build_inventory(connection, objects, check)
    for row in inventory.rows:
        if row.state == DAMAGED:
            objects.delete(row.name)
    return inventory


def _join(parts: Iterable[Bytes]) -> bytes:
    return b"".join(map(bytes, parts))


def _build_inventory(
    connection: Connection, objects: Objects, find_state: Callable[[SegmentName], SegmentState]
) -> AllSegments:
    """List the segments in a store; `find_state` returns the state of a segment of this ledger's history."""
    position = head(connection).position
    needed = list_segment_names(connection, position)
    rows = [find_state(name) for name in needed]
    for name in objects.names("segment-"):
        segment = parse_segment_name(name)
        if segment is not None and segment not in needed and not name.startswith("segment-head"):
            rows.append(SegmentState(segment.first, segment.last, OTHER_HISTORY, 0, objects.size(name) or 0, name, ""))
    sealed = 0
    for row in rows:
        sealed = row.last if row.state == SEALED and row.first == sealed else sealed
    rows.sort(key=lambda row: (row.last, row.first, row.name))
    return AllSegments(objects.url, sealed, position, tuple(rows))


def _read_state(objects: Objects, name: SegmentName) -> SegmentState:
    """Return the state of a segment without comparing it with the log."""
    size = objects.size(str(name))
    if size is None:
        return SegmentState(name.first, name.last, MISSING, 0, 0, str(name), "")
    try:
        segment = OpenedObject(objects, str(name))
    except DamagedObject as problem:
        return SegmentState(name.first, name.last, DAMAGED, 0, size, str(name), problem.problem)
    return SegmentState(name.first, name.last, SEALED, segment.about["games"], size, str(name), "")


def seal_all(ledger: Ledger, on: str, url: str | None, report_progress: ReportProgress) -> AllSegments:
    """Seal all unsealed events on the workers of an engine. Raises the errors of `open_cluster` and `seal`."""
    with open_cluster(ledger, on, url, report_progress) as cluster:
        retry_on_damage(ledger, cluster, lambda connection: seal(connection, cluster, head(connection).position))
        cluster.sweep()
    return list_segments(ledger, url)


# the reasons why an object is unused, in addition to `OTHER_HISTORY`
OTHER_FORMAT, LEFT_BEHIND = "of another format", "left behind"


@dataclass(frozen=True, slots=True)
class UnusedObject(Result):
    """An unused object, the reason why it is unused, and its length in bytes."""

    name: str
    why: str
    bytes: int


@dataclass(frozen=True, slots=True)
class PruneResult(Result):
    """The objects that were deleted or, with `dry_run`, would be deleted.

    `young` is the number of unused objects that were kept, because an object written within the last day may belong to
    a running computation on another machine.
    """

    segments: str
    dry_run: bool
    young: int
    rows: tuple[UnusedObject, ...]


def prune_segments(ledger: Ledger, url: str | None, dry_run: bool) -> PruneResult:
    """Delete the segments of another history or format, with their numbers, and the objects of killed computations.

    With `dry_run`, delete nothing. Raises `StoreUnavailable`. Without `dry_run`, raises `AlreadyRunning` while a
    computation is running, because it may be of another version of this program.
    """
    objects = open_ledger_objects(ledger, url)
    if not dry_run:
        _refuse_running_computation(objects)
    with ledger.reading() as connection:
        own_segments = list_segment_names(connection, head(connection).position)
    unused = list(_find_unused(objects, own_segments))
    rows = tuple(entry for entry in unused if is_old(objects, entry.name))
    for row in () if dry_run else rows:
        objects.delete(row.name)
    return PruneResult(objects.url, dry_run, len(unused) - len(rows), rows)


def _refuse_running_computation(objects: Objects) -> None:
    """Raise `AlreadyRunning` if a computation is running; each has a nonce object from its start to its end."""
    if any(_may_be_running(objects, name) for name in objects.names("nonce-")):
        message = f"a computation uses {objects.url}, or was killed on another machine less than a day ago"
        raise AlreadyRunning(f"{message}; nothing was deleted; try again when it has ended or, if killed, in a day")


def _may_be_running(objects: Objects, nonce: str) -> bool:
    """Tell whether the computation with this nonce may be running.

    This is also assumed if a young nonce does not name its process, like those of earlier versions of this program.
    """
    try:
        process = bytes(objects.read(nonce, 0, 1000)).decode(errors="replace").partition(" ")[2]
    except FileNotFoundError:  # the computation has just ended
        return False
    if is_old(objects, nonce):
        return False
    written_at, now = objects.written_at(nonce), clock.now()
    return not process or is_process_running(process, now if written_at is None else written_at * 1_000_000, now)


def _find_unused(objects: Objects, own_segments: list[SegmentName]) -> Iterator[UnusedObject]:
    """Yield the objects, of any age, that a history with these segments does not use, sorted by name."""
    needed = {name for segment in own_segments for name in (str(segment), to_numbers_name(str(segment)))}
    for name in sorted({name for prefix in (*LASTING, *SHORT_LIVED) for name in objects.names(prefix)} - needed):
        if name.startswith(SHORT_LIVED):
            yield UnusedObject(name, LEFT_BEHIND, objects.size(name) or 0)
        elif (segment := parse_segment_name(to_segment_name(name))) is not None:
            reason = OTHER_HISTORY if segment.format == FORMAT else OTHER_FORMAT
            yield UnusedObject(name, reason, objects.size(name) or 0)
