"""Objects beside the segments of a ledger that no computation will use any more, and their deletion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import AlreadyRunning
from ratings_ledger.ledger.processes.identity import is_there
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.cluster.coordinating import SHORT_LIVED, is_old, segment_names, segments_at
from ratings_ledger.projections.cluster.inventory import STRANGE
from ratings_ledger.projections.cluster.numbers import numbers_name, segment_of_numbers
from ratings_ledger.projections.cluster.objects import LASTING, Objects
from ratings_ledger.projections.cluster.segments import FORMAT, SegmentName, segment_name
from ratings_ledger.projections.queries.results import Result

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
    found = [(is_old(objects, one.name), one) for one in _disused(objects, own)]
    rows = tuple(one for old, one in found if old)
    for row in () if dry_run else rows:
        objects.delete(row.name)
    return Pruned(objects.url, dry_run, len(found) - len(rows), rows)


def _refuse_in_use(objects: Objects) -> None:
    """Raises `AlreadyRunning` if a computation goes on; each has a nonce from its beginning to its end."""
    if any(_goes_on(objects, name) for name in objects.names("nonce-")):
        told = f"a computation uses {objects.url}, or was killed elsewhere less than a day ago; nothing was deleted"
        raise AlreadyRunning(f"{told}; try again when it has ended")


def _goes_on(objects: Objects, nonce: str) -> bool:
    """Tell whether the computation of a nonce may go on. One of an earlier version does not say whose it is."""
    try:
        process = bytes(objects.read(nonce, 0, 1000)).decode(errors="replace").partition(" ")[2]
    except FileNotFoundError:  # it has just ended
        return False
    if is_old(objects, nonce):
        return False
    written_at, now = objects.written_at(nonce), clock.now()
    return not process or is_there(process, now if written_at is None else written_at * 1_000_000, now)


def _disused(objects: Objects, own: list[SegmentName]) -> Iterator[DisusedObject]:
    """Yield what is of no use to the history with these segments, whatever its age, in the order of its names."""
    wanted = {name for one in own for name in (str(one), numbers_name(str(one)))}
    for name in sorted({name for prefix in (*LASTING, *SHORT_LIVED) for name in objects.names(prefix)} - wanted):
        if name.startswith(SHORT_LIVED):
            yield DisusedObject(name, LEFT, objects.size(name) or 0)
        elif (one := segment_name(segment_of_numbers(name))) is not None:
            yield DisusedObject(name, STRANGE if one.format == FORMAT else OTHER_FORMAT, objects.size(name) or 0)
