"""Prepare a log for a computation on a cluster: seal old events, create the base that all packs share, and run packs.

Only the coordinator reads the log. Workers read objects: first ranges of records to seal, then segments and bases.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.store.log import (
    find_first_positions,
    ledger_id,
    read_chain_hash,
    read_matching_records,
    read_page,
)
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.base import RELEVANT_TYPES, create_base, list_cells, load_base, name_by_content
from ratings_ledger.projections.cluster.object_store import DamagedObject, Objects, OpenedObject, open_object
from ratings_ledger.projections.cluster.packs import Pack
from ratings_ledger.projections.cluster.resources import Cluster
from ratings_ledger.projections.cluster.segments import (
    FORMAT,
    NamedCell,
    Numbering,
    SegmentName,
    encode_segment,
    number_head_segment,
    parse_segment_name,
    to_numbers_name,
)
from ratings_ledger.projections.cluster.task_runner import Task, run_tasks
from ratings_ledger.projections.cluster.tasks import (
    create_or_compare,
    encode_records,
    name_output,
    read_result,
    write_pack_plan,
)
from ratings_ledger.projections.facts.applying import number_cell
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode_changes_after

# the number of events in a segment, and the number of events that are read at once
SEGMENT_EVENTS, PAGE_EVENTS = 1_000_000, 25_000
logger = logging.getLogger(__name__)
T = TypeVar("T")


class SealedLog(NamedTuple):
    """The segments of a log, in order and without gaps, their numbers objects, and the last sealed position."""

    segments: list[OpenedObject]
    numbers: list[OpenedObject]
    position: int

    @property
    def games(self) -> int:
        """Return the number of sealed games."""
        return sum(segment.about["games"] for segment in self.segments)


def list_segment_names(connection: Connection, until: int) -> list[SegmentName]:
    """Return the names that the segments of a log up to a position must have."""
    names = []
    for last in range(SEGMENT_EVENTS, until + 1, SEGMENT_EVENTS):
        chain_hash = read_chain_hash(connection, last) or b""
        names.append(SegmentName(last - SEGMENT_EVENTS, last, chain_hash.hex(), FORMAT))
    return names


def seal(connection: Connection, cluster: Cluster, until: int) -> SealedLog:
    """Create missing or damaged segments up to a position, and return all of them.

    Raises the errors of `run_tasks`, and `DamagedObject`.
    """
    objects, names = cluster.objects, list_segment_names(connection, until)
    tasks, ledger = [], ledger_id(connection)
    for name in names:
        plan = {
            "task": "seal",
            "makes": str(name),
            "records": f"records-{name.first}-{name.last}-{name.chain_hash}",
            "ledger": ledger,
            "chain_before": (read_chain_hash(connection, name.first) or b"").hex(),
        }
        tasks.append(Task(json.dumps(plan), str(name), f"the events from {name.first + 1:,} to {name.last:,}"))
    for task in run_tasks(cluster, "sealing", tasks, partial(_copy_records, connection, objects)):
        objects.delete(json.loads(task.plan)["records"])
    segments = [_open(objects, str(name)) for name in names]
    return SealedLog(segments, _load_numbers(objects, segments), names[-1].last if names else 0)


def _copy_records(connection: Connection, objects: Objects, task: Task) -> None:
    """Copy the records that a task seals to the object store, where the worker can read them."""
    plan, name = json.loads(task.plan), parse_segment_name(task.output)
    assert name is not None
    if objects.size(plan["records"]) is None:
        objects.create(plan["records"], encode_records(read_segment_records(connection, name)))


def read_segment_records(connection: Connection, name: SegmentName) -> Iterator[bytes]:
    """Yield the records of a segment, one per line, page by page.

    Raises `StoreDamaged` if a record is missing or contains a line break.
    """
    for after in range(name.first, name.last, PAGE_EVENTS):
        until = min(after + PAGE_EVENTS, name.last)
        text = read_page(connection, after, until)
        if text.count(b"\n") != until - after:
            message = f"some of the events from {after + 1:,} to {until:,} are missing, or contain line breaks"
            raise StoreDamaged(f"{message}; run: ratings verify")
        yield text


def _open(objects: Objects, name: str) -> OpenedObject:
    return open_object(objects.url, name)


def _load_numbers(objects: Objects, segments: Sequence[OpenedObject]) -> list[OpenedObject]:
    """Open the numbers objects of the segments, in order; create missing ones."""
    opened: list[OpenedObject] = []
    numbering: Numbering | None = None
    for segment in segments:
        name = to_numbers_name(segment.name)
        if objects.size(name) is None:
            numbering = numbering or Numbering(opened)
            create_or_compare(objects, name, numbering.number_segment(segment))
        else:
            numbering = None
        opened.append(_open(objects, name))
    return opened


class PreparedLog(NamedTuple):
    """A log prepared for a computation on a cluster.

    base:   the name of the base object
    facts:  the facts, without the sealed games that no event changed
    cells:  (number in the ledger, cell) for each cell, by its number in the facts
    counts: the number of games in each cell, by its number in the facts
    games:  the number of all games
    """

    base: str
    facts: Facts
    cells: dict[int, tuple[int, NamedCell]]
    counts: dict[int, int]
    games: int


def prepare(connection: Connection, cluster: Cluster, position: int, accounts: bool) -> PreparedLog:
    """Prepare a computation at a position; with `accounts`, include accounts even if no ruleset reads them.

    Raises the errors of `run_tasks`, and `DamagedObject`.
    """
    sealed_log = seal(connection, cluster, position)
    # all sealed events except the first records of games
    other_records = [
        (other_position, record)
        for segment in sealed_log.segments
        for other_position, record in zip(segment.column("others_at").tolist(), segment.lines("others"), strict=True)
    ]
    facts = decode_changes_after(connection, other_records, sealed_log.position, position)
    changed_positions = [first for first in facts.first_position if first <= sealed_log.position]
    recent_events = [
        row
        for name in RELEVANT_TYPES
        for row in read_matching_records(connection, after=sealed_log.position, until=position, type_name=name)
    ]
    clock_game_positions = find_first_positions(connection, facts.recorded.clocks)
    head_segment, numbers = _create_head_segment(cluster.objects, facts, sealed_log)
    segments = [*sealed_log.segments, head_segment]
    cluster.own_objects.update((head_segment.name, to_numbers_name(head_segment.name)))
    base = create_base(
        cluster.objects,
        facts,
        segments=[segment.name for segment in segments],
        changed=changed_positions,
        records=[*other_records, *sorted(recent_events)],
        clock_game_positions={name: first for name, first in clock_game_positions.items() if first <= position},
        needs_accounts=accounts,
    )
    cluster.own_objects.add(base)
    cells = {
        number_cell(facts, cell[:-2], *cell[-2:]): (number, cell) for number, cell in enumerate(list_cells(numbers))
    }
    counts = _count_games(segments, numbers, [*cells])
    return PreparedLog(
        base, facts, cells, counts, sealed_log.games + len(facts.first_position) - len(changed_positions)
    )


def _create_head_segment(
    objects: Objects, facts: Facts, sealed_log: SealedLog
) -> tuple[OpenedObject, list[OpenedObject]]:
    """Create the segment of unsealed events and its numbers object; return the segment, and all numbers objects."""
    # the name depends on the previous segment, because the numbers do
    previous_name = sealed_log.segments[-1].name if sealed_log.segments else ""
    name, content = name_by_content("segment-head", encode_segment(facts, {"previous": previous_name}))
    objects.create(name, content)
    head_segment = _open(objects, name)
    objects.create(to_numbers_name(name), number_head_segment(head_segment, sealed_log.numbers))
    return head_segment, [*sealed_log.numbers, _open(objects, to_numbers_name(name))]


def _count_games(
    segments: Sequence[OpenedObject], numbers: Sequence[OpenedObject], cells: Sequence[int]
) -> dict[int, int]:
    """Count the games of each cell in all segments, by its number in the facts.

    `cells` are these numbers, in the order of the cells' numbers in the ledger.
    """
    total = np.zeros(len(cells), dtype=np.int64)
    for segment, segment_numbers in zip(segments, numbers, strict=True):
        np.add.at(total, segment_numbers.column("cell"), np.diff(segment.column("cell_from")))
    return dict(zip(cells, total.tolist(), strict=True))


def create_pack_task(task: str, prepared: PreparedLog, pack: Pack, **options: Any) -> Task:
    """Create the task of a pack; its label names the pack's first family."""
    plan = write_pack_plan(task, prepared.base, pack, [prepared.cells[cell] for cell in pack.cells], **options)
    label = "/".join([pack.ruleset_id, *(member.partition(" ")[2] for member in pack.families[0])])
    more = len(pack.families) - 1
    return Task(plan, name_output(plan), f"{label} and {more:,} more" if more else label)


def run_pack_tasks(
    ledger: Ledger, cluster: Cluster, prepared: PreparedLog, stage: str, tasks: Iterable[Task], accounts: bool = False
) -> Generator[bytes]:
    """Run the tasks of packs, and yield their results as they finish. Damaged objects are created again.

    Raises the errors of `run_tasks`.
    """
    remaining, deleted = {task.output: task for task in tasks}, set[str]()
    while True:
        try:
            for task in run_tasks(cluster, stage, [*remaining.values()]):
                result = read_result(cluster.objects, task.output)
                del remaining[task.output]
                yield result
            return
        except DamagedObject as problem:
            delete_damaged(cluster, problem, deleted)
            prepare_with_retries(ledger, cluster, prepared.facts.position, accounts)


def delete_damaged(cluster: Cluster, problem: DamagedObject, already_deleted: set[str]) -> None:
    """Log and delete a damaged object, so that it is created again. Raises `StoreDamaged` the second time."""
    if problem.name in already_deleted:
        raise StoreDamaged(
            f"{problem} in {cluster.objects.url}, although it was just created again; check the disk or the store"
        ) from None
    already_deleted.add(problem.name)
    logger.warning("ratings: %s in %s; it is created again", problem, cluster.objects.url)
    open_object.cache_clear()
    load_base.cache_clear()
    cluster.objects.delete(problem.name)


def retry_on_damage(ledger: Ledger, cluster: Cluster, make: Callable[[Connection], T]) -> T:
    """Call `make` until it meets no damaged object, and return its result.

    Raises `StoreDamaged` for an object that is damaged again, and all other errors of `make`.
    """
    already_deleted = set[str]()
    while True:
        try:
            with ledger.reading() as connection:
                return make(connection)
        except DamagedObject as problem:
            delete_damaged(cluster, problem, already_deleted)


def prepare_with_retries(ledger: Ledger, cluster: Cluster, position: int, accounts: bool = False) -> PreparedLog:
    """Return the result of `prepare`. Damaged objects are created again. Raises the errors of `run_tasks`."""
    return retry_on_damage(ledger, cluster, lambda connection: prepare(connection, cluster, position, accounts))
