"""The coordinator: it seals what is old, makes the base that all packs share, and collects what comes of them.

It alone reads the log. Workers get objects: ranges of records to seal, then segments and packs to replay.
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
from ratings_ledger.ledger.store.log import chain_hash_at, first_positions, ledger_id, read_page, read_where
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections import compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.base import RELEVANT_TYPES, all_cells, base_of, named_by_content, put_base
from ratings_ledger.projections.cluster.columnar import DamagedObject, OpenedObject, object_at
from ratings_ledger.projections.cluster.engines import engine_at
from ratings_ledger.projections.cluster.farm import Cluster, ReportProgress, Task, farm
from ratings_ledger.projections.cluster.objects import Folder, Objects, objects_at
from ratings_ledger.projections.cluster.packs import PACK_GAMES, Pack, packs, streamed_ladder
from ratings_ledger.projections.cluster.proofs import CODE, Proof, golden_digest, prove
from ratings_ledger.projections.cluster.segments import (
    FORMAT,
    NamedCell,
    Numbering,
    SegmentName,
    numbers_name,
    numbers_of_head,
    sealed,
    segment_name,
)
from ratings_ledger.projections.cluster.tasks import keep, output_name, pack_plan, raw_content, result_in
from ratings_ledger.projections.facts.column_cache import folder_of
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode, decode_behind
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

# events in a segment, and how many of them are read at once
SEGMENT_EVENTS, PAGE_EVENTS = 1_000_000, 25_000
ONLY_OWN, NOT_ALL = 0o077, 0o002  # rights that other accounts must not have
LEFT_SECONDS = 86_400  # so old is only what a computation left that was killed
SHORT_LIVED = ("base-", "segment-head-", "numbers-head-", "out-", "plans-", "records-", "nonce-")
logger = logging.getLogger(__name__)
T = TypeVar("T")


@contextmanager
def cluster_for(
    ledger: Ledger, on: str, url: str | None, tell: ReportProgress = lambda stage, numbers: None
) -> Iterator[Cluster]:
    """Provide the engine at an address, with a place for objects that is fit for it: below a URL, or in the cache
    folder.

    Raises `BadArgument`, `StoreUnavailable`.
    """
    objects = segments_at(ledger, url)
    if isinstance(objects, Folder):
        # accounts that share a cluster may share a group, too
        objects.refuse_other_accounts(ONLY_OWN if url is None else NOT_ALL)
    with engine_at(on) as engine:
        if not compiling.is_available():
            raise StoreUnavailable("workers need numpy and numba here, too: pip install 'ratings-ledger[fast]'", "file")
        nonce = prove(objects)
        try:
            yield Cluster(engine, objects, Proof(CODE, nonce, golden_digest()), {nonce}, tell)
        finally:
            with suppress(OSError):
                objects.delete(nonce)


def segments_at(ledger: Ledger, url: str | None) -> Objects:
    """Return the place of a ledger's objects, below a URL or in the cache folder. Raises `StoreUnavailable`."""
    with ledger.reading() as connection:
        if url is not None:
            return objects_at(f"{url.rstrip('/')}/{ledger_id(connection)}")
        folder = cache_folder()
        if folder is None:
            raise StoreUnavailable("there is no cache folder here; say --segments URL", "file")
        root = Path(folder) / folder_of(connection)
        with suppress(OSError):  # whoever writes there says so
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_other_accounts(root)
        return objects_at(str(root / "sealed"))


class Sealed(NamedTuple):
    """The segments of a log from its first event on, the numbers of each, and how far they reach."""

    segments: list[OpenedObject]
    numbers: list[OpenedObject]
    position: int

    @property
    def games(self) -> int:
        """Return how many games they have."""
        return sum(segment.about["games"] for segment in self.segments)


def segment_names(connection: Connection, until: int) -> list[SegmentName]:
    """Return the segments that a log may have up to a position."""
    names = []
    for last in range(SEGMENT_EVENTS, until + 1, SEGMENT_EVENTS):
        chain_hash = chain_hash_at(connection, last) or b""
        names.append(SegmentName(last - SEGMENT_EVENTS, last, chain_hash.hex(), FORMAT))
    return names


def seal(connection: Connection, cluster: Cluster, until: int) -> Sealed:
    """Return the segments up to a position; missing or damaged ones are made, with their numbers. Raises as `farm`."""
    objects, names = cluster.objects, segment_names(connection, until)
    tasks, ledger = [], ledger_id(connection)
    for name in names:
        plan = {
            "task": "seal",
            "makes": str(name),
            "records": f"records-{name.first}-{name.last}-{name.chain_hash}",
            "ledger": ledger,
            "behind": (chain_hash_at(connection, name.first) or b"").hex(),
        }
        tasks.append(Task(json.dumps(plan), str(name), f"the events from {name.first + 1:,} to {name.last:,}"))
    for task in farm(cluster, "sealing", tasks, partial(_copy_records, connection, objects)):
        objects.delete(json.loads(task.plan)["records"])
    segments = [_opened(objects, str(name)) for name in names]
    return Sealed(segments, _numbered(objects, segments), names[-1].last if names else 0)


def _copy_records(connection: Connection, objects: Objects, task: Task) -> None:
    """Copy the records that a task seals to where its worker can read them."""
    plan, name = json.loads(task.plan), segment_name(task.makes)
    assert name is not None
    if objects.size(plan["records"]) is None:
        objects.create(plan["records"], raw_content(segment_records(connection, name)))


def segment_records(connection: Connection, name: SegmentName) -> Iterator[bytes]:
    """Yield the records of a segment, one a line, page by page. Raises `StoreDamaged` if one is missing."""
    for after in range(name.first, name.last, PAGE_EVENTS):
        upto = min(after + PAGE_EVENTS, name.last)
        text = read_page(connection, after, upto)
        if text.count(b"\n") != upto - after:
            message = f"events between {after + 1:,} and {upto:,} are missing, or hold line breaks"
            raise StoreDamaged(f"{message}; see: ratings verify")
        yield text


def _opened(objects: Objects, name: str) -> OpenedObject:
    return object_at(objects.url, name)


def _numbered(objects: Objects, segments: Sequence[OpenedObject]) -> list[OpenedObject]:
    """Return the numbers of some segments, from the first on; missing ones are made."""
    opened: list[OpenedObject] = []
    numbering: Numbering | None = None
    for segment in segments:
        name = numbers_name(segment.name)
        if objects.size(name) is None:
            numbering = numbering or Numbering(opened)
            keep(objects, name, numbering.number(segment))
        else:
            numbering = None
        opened.append(_opened(objects, name))
    return opened


class Prepared(NamedTuple):
    """What a computation on a cluster knows of a log.

    base:   the name of its base
    facts:  those of what is not sealed, with all rulesets
    cells:  the numbers that the ledger's cells have in the facts: what each is in the ledger
    counts: how many games each of them has
    games:  how many there are
    """

    base: str
    facts: Facts
    cells: dict[int, tuple[int, NamedCell]]
    counts: dict[int, int]
    games: int


def prepare(connection: Connection, cluster: Cluster, position: int, accounts: bool) -> Prepared:
    """Make the base of a computation at a position, with all accounts or only if a ruleset looks at them. Raises as
    `farm` does, `DamagedObject`."""
    done = seal(connection, cluster, position)
    other_names = [
        (at, record)
        for segment in done.segments
        for at, record in zip(segment.column("others_at").tolist(), segment.lines("others"), strict=True)
    ]
    facts = decode_behind(connection, other_names, done.position, position)
    gone = [at for at in facts.first_position if at <= done.position]
    behind = [
        row
        for name in RELEVANT_TYPES
        for row in read_where(connection, after=done.position, until=position, type_name=name)
    ]
    games_at = first_positions(connection, facts.recorded.clocks)
    newest, numbers = _put_head(cluster.objects, facts, done)
    segments = [*done.segments, newest]
    cluster.own.update((newest.name, numbers_name(newest.name)))
    base = put_base(
        cluster.objects,
        facts,
        [segment.name for segment in segments],
        gone,
        [*other_names, *sorted(behind)],
        {name: at for name, at in games_at.items() if at <= position},
        accounts,
    )
    cluster.own.add(base)
    cells = {
        number_cell(facts, cell[:-2], *cell[-2:]): (number, cell) for number, cell in enumerate(all_cells(numbers))
    }
    counts = _counted(segments, numbers, [*cells])
    return Prepared(base, facts, cells, counts, done.games + len(facts.first_position) - len(gone))


def _put_head(objects: Objects, facts: Facts, done: Sealed) -> tuple[OpenedObject, list[OpenedObject]]:
    """Create the segment of what is not sealed and its numbers; returns it, and all numbers."""
    # its numbers follow from what is behind it
    behind = done.segments[-1].name if done.segments else ""
    name, content = named_by_content("segment-head", sealed(facts, {"behind": behind}))
    objects.create(name, content)
    newest = _opened(objects, name)
    objects.create(numbers_name(name), numbers_of_head(newest, done.numbers))
    return newest, [*done.numbers, _opened(objects, numbers_name(name))]


def _counted(segments: Sequence[OpenedObject], numbers: Sequence[OpenedObject], cells: Sequence[int]) -> dict[int, int]:
    """Return how many games the cells have in all segments, by their numbers in the facts."""
    total = np.zeros(len(cells), dtype=np.int64)
    for segment, numbered in zip(segments, numbers, strict=True):
        np.add.at(total, numbered.column("cell"), np.diff(segment.column("cell_from")))
    return dict(zip(cells, total.tolist(), strict=True))


def pack_task(task: str, prepared: Prepared, pack: Pack, **options: Any) -> Task:
    """Return the task of a pack, which is called by its first family."""
    plan = pack_plan(task, prepared.base, pack, [prepared.cells[cell] for cell in pack.cells], **options)
    called = "/".join([pack.ruleset_id, *(member.partition(" ")[2] for member in pack.families[0])])
    more = len(pack.families) - 1
    return Task(plan, output_name(plan), f"{called} and {more:,} more" if more else called)


def pack_results(
    ledger: Ledger, cluster: Cluster, prepared: Prepared, stage: str, tasks: Iterable[Task], accounts: bool = False
) -> Generator[bytes]:
    """Yield what the tasks of packs come to, in the order in which they are done. What is damaged is made again.

    Raises as `farm` does.
    """
    left, mended = {task.makes: task for task in tasks}, set[str]()
    while True:
        try:
            for task in farm(cluster, stage, [*left.values()]):
                result = result_in(cluster.objects, task.makes)
                del left[task.makes]
                yield result
            return
        except DamagedObject as problem:
            mend(cluster, problem, mended)
            prepared_for(ledger, cluster, prepared.facts.position, accounts)


def mend(cluster: Cluster, problem: DamagedObject, before: set[str]) -> None:
    """Delete a damaged object, so that it is made again, and say so. Raises `StoreDamaged` if it was `before`."""
    if problem.name in before:
        raise StoreDamaged(f"{problem} in {cluster.objects.url}, and was so before it was made again") from None
    before.add(problem.name)
    logger.warning("ratings: %s in %s; it is made again", problem, cluster.objects.url)
    object_at.cache_clear()
    base_of.cache_clear()
    cluster.objects.delete(problem.name)


def made_whole(ledger: Ledger, cluster: Cluster, make: Callable[[Connection], T]) -> T:
    """Return what is made of a ledger, again after each damaged object that it meets. Raises as `mend` does."""
    before = set[str]()
    while True:
        try:
            with ledger.reading() as connection:
                return make(connection)
        except DamagedObject as problem:
            mend(cluster, problem, before)


def prepared_for(ledger: Ledger, cluster: Cluster, position: int, accounts: bool = False) -> Prepared:
    """Return what `prepare` gives, with what is damaged made again. Raises as `farm` does."""
    return made_whole(ledger, cluster, lambda connection: prepare(connection, cluster, position, accounts))


def computed(
    ledger: Ledger,
    cluster: Cluster,
    prepared: Prepared,
    asked: Collection[str],
    stored: Collection[str],
    changes: bool,
    apart: Collection[str],
) -> Generator[BuiltLadder | LadderFailure]:
    """Yield what `computing.compute` yields for the ladders of a log, but for the rulesets in `apart`.

    Raises as `farm` does.
    """
    facts = prepared.facts
    planned = plan(Ladders(facts.only(array("q"))), asked, (), [*facts.rulesets])
    yield from planned.failures
    tasks = [
        pack_task(
            "replay",
            prepared,
            pack,
            asked=pack.asked,
            stored=pack.stored,
            changes=changes,
            streamed=streamed_ladder(pack, facts.rulesets[ruleset_id], changes),
        )
        for ruleset_id in planned.isolated
        if ruleset_id not in apart
        for pack in packs(facts, ruleset_id, asked, stored, prepared.counts, PACK_GAMES)
    ]
    for result in pack_results(ledger, cluster, prepared, "replaying", tasks):
        yield from unpack(result)


def sweep(cluster: Cluster) -> None:
    """Delete what was of use for this computation only, and what others left behind that are long over."""
    objects = cluster.objects
    for prefix in SHORT_LIVED:
        for name in objects.names(prefix):
            if name in cluster.own or is_old(objects, name):
                objects.delete(name)


def is_old(objects: Objects, name: str) -> bool:
    """Tell whether an object was written before any computation that still goes on; no, if the place does not know
    when.
    """
    now = clock.now() // 1_000_000
    return now - (objects.written_at(name) or now) > LEFT_SECONDS


def work_on_at(
    ledger: Ledger,
    on: str,
    segments: str | None,
    rule_seconds: float,
    tell: ReportProgress = lambda what, numbers: None,
) -> WorkAt:
    """Return the work at a position, as `work_on` has it."""
    return lambda connection, position: work_on(ledger, on, segments, position, rule_seconds, tell)


@contextmanager
def work_on(
    ledger: Ledger, on: str, segments: str | None, position: int, rule_seconds: float, tell: ReportProgress
) -> Iterator[Work]:
    """Provide the work up to a position as the workers of an engine do it, who share the place `segments`.

    The rules of packages run here, in processes of their own.

    Raises `BadArgument`, `StoreUnavailable`, `TasksFailed`, `WorkerLost`, `StoreDamaged`, as `compute` does.
    """
    with cluster_for(ledger, on, segments, tell) as cluster:
        prepared = prepared_for(ledger, cluster, position)
        apart = list_package_rulesets(prepared.facts)

        def results(asked: Collection[str], stored: Collection[str], changes: bool) -> Results:
            with closing(computed(ledger, cluster, prepared, asked, stored, changes, apart)) as ladders_of_packs:
                yield from ladders_of_packs
            if apart:
                with ledger.reading() as connection:
                    ladders = Ladders(decode(connection, position, cached=False))
                build = partial(build_ladder, changes=changes)
                named = {parse_name(name).ruleset_id for name in asked}
                own = ComputePlan({}, [], [name for name in apart if not asked or name in named])
                guard = isolate(ladders, asked, stored, build, rule_seconds)
                with closing(compute(ladders, own, build, compute_isolated=guard, changes=changes)) as packages:
                    yield from packages

        def list_ladder_rows(asked: Collection[str], stored: Collection[str], changes: bool) -> tuple[int, Results]:
            return 0, results(asked, stored, changes)

        yield Work(prepared.facts, prepared.games, list_ladder_rows)
        # now that it is promoted: after a failure the next try goes on from here
        sweep(cluster)
