"""Coordinate a computation on a cluster: seal old events, create the base that all packs share, and collect results.

Only the coordinator reads the log. Workers read objects: first ranges of records to seal, then segments and packs.
"""

from __future__ import annotations

import json
import logging
from array import array
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import StoreDamaged, StoreUnavailable
from ratings_ledger.ledger.own_files import cache_folder, refuse_other_accounts
from ratings_ledger.ledger.store.log import (
    find_first_positions,
    ledger_id,
    read_chain_hash,
    read_matching_records,
    read_page,
)
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections import compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.base import RELEVANT_TYPES, create_base, list_cells, load_base, name_by_content
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject, open_object
from ratings_ledger.projections.cluster.engines import open_engine
from ratings_ledger.projections.cluster.object_store import Folder, Objects, open_object_store
from ratings_ledger.projections.cluster.packs import PACK_GAMES, Pack, build_packs, find_streamed_ladder
from ratings_ledger.projections.cluster.segments import (
    FORMAT,
    NamedCell,
    Numbering,
    SegmentName,
    encode_segment,
    number_head,
    parse_segment_name,
    to_numbers_name,
)
from ratings_ledger.projections.cluster.task_runner import Cluster, ReportProgress, Task, run_tasks
from ratings_ledger.projections.cluster.tasks import (
    create_or_compare,
    encode_records,
    name_output,
    read_result,
    write_pack_plan,
)
from ratings_ledger.projections.cluster.worker_checks import CODE, Proof, compute_golden_digest, prove
from ratings_ledger.projections.facts.column_cache import folder_of
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, decode_changes_after
from ratings_ledger.projections.facts.games import number_cell
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay.ladders import parse_name
from ratings_ledger.projections.stored.computing import (
    BuiltLadder,
    ComputePlan,
    LadderFailure,
    build_ladder,
    compute,
    list_package_rulesets,
    plan,
    unpack,
)
from ratings_ledger.projections.stored.rule_processes import isolate
from ratings_ledger.projections.stored.work import Results, Work, WorkAt

# the events in a segment, and the number of them read at once
SEGMENT_EVENTS, PAGE_EVENTS = 1_000_000, 25_000
OTHER_ACCOUNTS, WORLD_WRITABLE = 0o077, 0o002  # rights that other accounts must not have
LEFTOVER_SECONDS = 86_400  # only a killed computation leaves objects of this age
SHORT_LIVED = ("base-", "segment-head-", "numbers-head-", "out-", "plans-", "records-", "nonce-")
logger = logging.getLogger(__name__)
T = TypeVar("T")


@contextmanager
def open_cluster(
    ledger: Ledger, on: str, url: str | None, tell: ReportProgress = lambda stage, numbers: None
) -> Iterator[Cluster]:
    """Provide the engine at an address, with a suitable object store below a URL or in the cache folder.

    Raises `BadArgument`, `StoreUnavailable`.
    """
    objects = open_ledger_objects(ledger, url)
    if isinstance(objects, Folder):
        # accounts that share a cluster may share a group, too
        objects.refuse_other_accounts(OTHER_ACCOUNTS if url is None else WORLD_WRITABLE)
    with open_engine(on) as engine:
        if not compiling.is_available():
            raise StoreUnavailable("workers need numpy and numba here, too: pip install 'ratings-ledger[fast]'", "file")
        nonce = prove(objects)
        try:
            yield Cluster(engine, objects, Proof(CODE, nonce, compute_golden_digest()), {nonce}, tell)
        finally:
            with suppress(OSError):
                objects.delete(nonce)


def open_ledger_objects(ledger: Ledger, url: str | None) -> Objects:
    """Open the store of a ledger's objects, below a URL or in the cache folder. Raises `StoreUnavailable`."""
    with ledger.reading() as connection:
        if url is not None:
            return open_object_store(f"{url.rstrip('/')}/{ledger_id(connection)}")
        folder = cache_folder()
        if folder is None:
            raise StoreUnavailable("there is no cache folder here; say --segments URL", "file")
        root = Path(folder) / folder_of(connection)
        with suppress(OSError):  # the first write to the folder reports the error
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_other_accounts(root)
        return open_object_store(str(root / "sealed"))


class SealedLog(NamedTuple):
    """The segments of a log from its first event on, their numbers objects, and the last sealed position."""

    segments: list[OpenedObject]
    numbers: list[OpenedObject]
    position: int

    @property
    def games(self) -> int:
        """Return the number of sealed games."""
        return sum(segment.about["games"] for segment in self.segments)


def list_segment_names(connection: Connection, until: int) -> list[SegmentName]:
    """Return the names of the segments of a log up to a position."""
    names = []
    for last in range(SEGMENT_EVENTS, until + 1, SEGMENT_EVENTS):
        chain_hash = read_chain_hash(connection, last) or b""
        names.append(SegmentName(last - SEGMENT_EVENTS, last, chain_hash.hex(), FORMAT))
    return names


def seal(connection: Connection, cluster: Cluster, until: int) -> SealedLog:
    """Return the segments up to a position after creating missing or damaged ones. Raises the errors of `run_tasks`."""
    objects, names = cluster.objects, list_segment_names(connection, until)
    tasks, ledger = [], ledger_id(connection)
    for name in names:
        plan = {
            "task": "seal",
            "makes": str(name),
            "records": f"records-{name.first}-{name.last}-{name.chain_hash}",
            "ledger": ledger,
            "behind": (read_chain_hash(connection, name.first) or b"").hex(),
        }
        tasks.append(Task(json.dumps(plan), str(name), f"the events from {name.first + 1:,} to {name.last:,}"))
    for task in run_tasks(cluster, "sealing", tasks, partial(_copy_records, connection, objects)):
        objects.delete(json.loads(task.plan)["records"])
    segments = [_open(objects, str(name)) for name in names]
    return SealedLog(segments, _load_numbers(objects, segments), names[-1].last if names else 0)


def _copy_records(connection: Connection, objects: Objects, task: Task) -> None:
    """Copy the records that a task seals to the object store, where its worker can read them."""
    plan, name = json.loads(task.plan), parse_segment_name(task.output)
    assert name is not None
    if objects.size(plan["records"]) is None:
        objects.create(plan["records"], encode_records(read_segment_records(connection, name)))


def read_segment_records(connection: Connection, name: SegmentName) -> Iterator[bytes]:
    """Yield the records of a segment, one per line, page by page. Raises `StoreDamaged` if one is missing."""
    for after in range(name.first, name.last, PAGE_EVENTS):
        upto = min(after + PAGE_EVENTS, name.last)
        text = read_page(connection, after, upto)
        if text.count(b"\n") != upto - after:
            message = f"events between {after + 1:,} and {upto:,} are missing, or hold line breaks"
            raise StoreDamaged(f"{message}; see: ratings verify")
        yield text


def _open(objects: Objects, name: str) -> OpenedObject:
    return open_object(objects.url, name)


def _load_numbers(objects: Objects, segments: Sequence[OpenedObject]) -> list[OpenedObject]:
    """Load the numbers objects of the segments, in order, and create missing ones."""
    opened: list[OpenedObject] = []
    numbering: Numbering | None = None
    for segment in segments:
        name = to_numbers_name(segment.name)
        if objects.size(name) is None:
            numbering = numbering or Numbering(opened)
            create_or_compare(objects, name, numbering.number(segment))
        else:
            numbering = None
        opened.append(_open(objects, name))
    return opened


class PreparedLog(NamedTuple):
    """A log prepared for a computation on a cluster.

    base:   the name of the base object
    facts:  the facts of unsealed events, with all rulesets
    cells:  by number in the facts: each cell's number in the ledger, and the cell
    counts: by number in the facts: the number of games in each cell
    games:  the number of games
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
    other_records = [
        (at, record)
        for segment in sealed_log.segments
        for at, record in zip(segment.column("others_at").tolist(), segment.lines("others"), strict=True)
    ]
    facts = decode_changes_after(connection, other_records, sealed_log.position, position)
    changed_positions = [at for at in facts.first_position if at <= sealed_log.position]
    recent_events = [
        row
        for name in RELEVANT_TYPES
        for row in read_matching_records(connection, after=sealed_log.position, until=position, type_name=name)
    ]
    games_at = find_first_positions(connection, facts.recorded.clocks)
    newest, numbers = _create_head(cluster.objects, facts, sealed_log)
    segments = [*sealed_log.segments, newest]
    cluster.own_objects.update((newest.name, to_numbers_name(newest.name)))
    base = create_base(
        cluster.objects,
        facts,
        [segment.name for segment in segments],
        changed_positions,
        [*other_records, *sorted(recent_events)],
        {name: at for name, at in games_at.items() if at <= position},
        accounts,
    )
    cluster.own_objects.add(base)
    cells = {
        number_cell(facts, cell[:-2], *cell[-2:]): (number, cell) for number, cell in enumerate(list_cells(numbers))
    }
    counts = _count_games(segments, numbers, [*cells])
    return PreparedLog(
        base, facts, cells, counts, sealed_log.games + len(facts.first_position) - len(changed_positions)
    )


def _create_head(objects: Objects, facts: Facts, sealed_log: SealedLog) -> tuple[OpenedObject, list[OpenedObject]]:
    """Create the segment of unsealed events and its numbers object; return it, and all numbers objects."""
    # its numbers depend on the segment before it, so its name must, too
    behind = sealed_log.segments[-1].name if sealed_log.segments else ""
    name, content = name_by_content("segment-head", encode_segment(facts, {"behind": behind}))
    objects.create(name, content)
    newest = _open(objects, name)
    objects.create(to_numbers_name(name), number_head(newest, sealed_log.numbers))
    return newest, [*sealed_log.numbers, _open(objects, to_numbers_name(name))]


def _count_games(
    segments: Sequence[OpenedObject], numbers: Sequence[OpenedObject], cells: Sequence[int]
) -> dict[int, int]:
    """Count the games of each cell in all segments, by its number in the facts."""
    total = np.zeros(len(cells), dtype=np.int64)
    for segment, numbered in zip(segments, numbers, strict=True):
        np.add.at(total, numbered.column("cell"), np.diff(segment.column("cell_from")))
    return dict(zip(cells, total.tolist(), strict=True))


def create_pack_task(task: str, prepared: PreparedLog, pack: Pack, **options: Any) -> Task:
    """Create the task of a pack, labelled with its first family."""
    plan = write_pack_plan(task, prepared.base, pack, [prepared.cells[cell] for cell in pack.cells], **options)
    label = "/".join([pack.ruleset_id, *(member.partition(" ")[2] for member in pack.families[0])])
    more = len(pack.families) - 1
    return Task(plan, name_output(plan), f"{label} and {more:,} more" if more else label)


def run_pack_tasks(
    ledger: Ledger, cluster: Cluster, prepared: PreparedLog, stage: str, tasks: Iterable[Task], accounts: bool = False
) -> Generator[bytes]:
    """Run the tasks of packs, and yield their results as they finish; damaged objects are created again.

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
        raise StoreDamaged(f"{problem} in {cluster.objects.url} again, after it was created anew") from None
    already_deleted.add(problem.name)
    logger.warning("ratings: %s in %s; it is made again", problem, cluster.objects.url)
    open_object.cache_clear()
    load_base.cache_clear()
    cluster.objects.delete(problem.name)


def retry_on_damage(ledger: Ledger, cluster: Cluster, make: Callable[[Connection], T]) -> T:
    """Call `make` until it meets no damaged object, and return its result. Raises the errors of `delete_damaged`."""
    already_deleted = set[str]()
    while True:
        try:
            with ledger.reading() as connection:
                return make(connection)
        except DamagedObject as problem:
            delete_damaged(cluster, problem, already_deleted)


def prepare_with_retries(ledger: Ledger, cluster: Cluster, position: int, accounts: bool = False) -> PreparedLog:
    """Return the result of `prepare`; damaged objects are created again. Raises the errors of `run_tasks`."""
    return retry_on_damage(ledger, cluster, lambda connection: prepare(connection, cluster, position, accounts))


def compute_on_cluster(
    ledger: Ledger,
    cluster: Cluster,
    prepared: PreparedLog,
    requested: Collection[str],
    stored: Collection[str],
    changes: bool,
    isolated: Collection[str],
) -> Generator[BuiltLadder | LadderFailure]:
    """Compute the ladders of a log on a cluster, like `computing.compute`, except for the rulesets in `isolated`.

    Raises the errors of `run_tasks`.
    """
    facts = prepared.facts
    planned = plan(Ladders(facts.select_rows(array("q"))), requested, (), [*facts.rulesets])
    yield from planned.failures
    tasks = [
        create_pack_task(
            "replay",
            prepared,
            pack,
            asked=pack.requested,
            stored=pack.stored,
            changes=changes,
            streamed=find_streamed_ladder(pack, facts.rulesets[ruleset_id], changes),
        )
        for ruleset_id in planned.isolated
        if ruleset_id not in isolated
        for pack in build_packs(facts, ruleset_id, requested, stored, prepared.counts, PACK_GAMES)
    ]
    for result in run_pack_tasks(ledger, cluster, prepared, "replaying", tasks):
        yield from unpack(result)


def sweep(cluster: Cluster) -> None:
    """Delete the objects that only this computation used, and leftovers of earlier computations."""
    objects = cluster.objects
    for prefix in SHORT_LIVED:
        for name in objects.names(prefix):
            if name in cluster.own_objects or is_old(objects, name):
                objects.delete(name)


def is_old(objects: Objects, name: str) -> bool:
    """Tell whether an object is older than any running computation; False if its age is unknown."""
    now = clock.now() // 1_000_000
    return now - (objects.written_at(name) or now) > LEFTOVER_SECONDS


def create_cluster_work_at(
    ledger: Ledger,
    on: str,
    segments: str | None,
    rule_seconds: float,
    tell: ReportProgress = lambda what, numbers: None,
) -> WorkAt:
    """Return a function that opens cluster work at a position; see `open_cluster_work`."""
    return lambda connection, position: open_cluster_work(ledger, on, segments, position, rule_seconds, tell)


@contextmanager
def open_cluster_work(
    ledger: Ledger, on: str, segments: str | None, position: int, rule_seconds: float, tell: ReportProgress
) -> Iterator[Work]:
    """Provide the work at a position, done by the workers of an engine, which share the object store at `segments`.

    Third-party rules run on this machine, in separate processes.

    Raises `BadArgument`, `StoreUnavailable`, `TasksFailed`, `WorkerLost`, `StoreDamaged`, as `compute` does.
    """
    with open_cluster(ledger, on, segments, tell) as cluster:
        prepared = prepare_with_retries(ledger, cluster, position)
        isolated = list_package_rulesets(prepared.facts)

        def results(requested: Collection[str], stored: Collection[str], changes: bool) -> Results:
            with closing(
                compute_on_cluster(ledger, cluster, prepared, requested, stored, changes, isolated)
            ) as ladders_of_packs:
                yield from ladders_of_packs
            if isolated:
                with ledger.reading() as connection:
                    ladders = Ladders(decode(connection, position, cached=False))
                build = partial(build_ladder, changes=changes)
                requested_rulesets = {parse_name(name).ruleset_id for name in requested}
                isolated_plan = ComputePlan(
                    {}, [], [name for name in isolated if not requested or name in requested_rulesets]
                )
                guard = isolate(ladders, requested, stored, build, rule_seconds)
                with closing(
                    compute(ladders, isolated_plan, build, compute_isolated=guard, changes=changes)
                ) as packages:
                    yield from packages

        def compute_ladders(requested: Collection[str], stored: Collection[str], changes: bool) -> tuple[int, Results]:
            return 0, results(requested, stored, changes)

        yield Work(prepared.facts, prepared.games, compute_ladders)
        # only after success: after a failure, the next try reuses the objects
        sweep(cluster)
