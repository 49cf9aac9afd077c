"""Open what a computation on a cluster needs: an engine, an object store, and the requirements for workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.errors import StoreUnavailable
from ratings_ledger.ledger.own_files import find_cache_folder, refuse_other_accounts
from ratings_ledger.ledger.store.log import ledger_id
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.projections import compiling
from ratings_ledger.projections.cluster.engines import Engine, UnfitWorker, open_engine
from ratings_ledger.projections.cluster.object_store import Folder, Objects, open_object_store
from ratings_ledger.projections.cluster.worker_checks import (
    CODE_DIGEST,
    WorkerRequirements,
    compute_golden_digest,
    create_nonce,
)
from ratings_ledger.projections.facts.column_cache import name_cache_folder

ReportProgress = Callable[[str, dict[str, Any]], None]
ANY_RIGHTS_OF_OTHERS, WORLD_WRITABLE = 0o077, 0o002  # bits of a folder's mode that must not be set
LEFTOVER_SECONDS = 86_400  # a short-lived object of this age was left by a killed computation
# the beginnings of the names of objects that only one computation uses
SHORT_LIVED = ("base-", "segment-head-", "numbers-head-", "out-", "plans-", "records-", "nonce-")


class Cluster(NamedTuple):
    """The resources of one computation.

    requirements:    what a worker must match before it runs tasks
    own_objects:     the names of the objects that only this computation uses
    report_progress: a function to call with the stage of the computation and its numbers
    """

    engine: Engine
    objects: Objects
    requirements: WorkerRequirements
    own_objects: set[str]
    report_progress: ReportProgress = lambda stage, progress: None

    def sweep(self) -> None:
        """Delete the objects that only this computation used, and leftovers of earlier computations."""
        for prefix in SHORT_LIVED:
            for name in self.objects.names(prefix):
                if name in self.own_objects or is_old(self.objects, name):
                    self.objects.delete(name)


def is_old(objects: Objects, name: str) -> bool:
    """Tell whether an object is older than any running computation; False if its age is unknown."""
    now = clock.now() // 1_000_000
    return now - (objects.written_at(name) or now) > LEFTOVER_SECONDS


@contextmanager
def open_cluster(
    ledger: Ledger, on: str, url: str | None, report_progress: ReportProgress = lambda stage, numbers: None
) -> Iterator[Cluster]:
    """Provide the engine at the address `on`, with an object store below a URL or in the cache folder.

    Raises `BadArgument`, `StoreUnavailable`.
    """
    objects = open_ledger_objects(ledger, url)
    if isinstance(objects, Folder):
        # the group may write into a folder given by --segments, because the accounts of a cluster may share a group
        objects.refuse_other_accounts(ANY_RIGHTS_OF_OTHERS if url is None else WORLD_WRITABLE)
    with open_engine(on) as engine:
        if not compiling.is_available():
            raise StoreUnavailable(
                "a cluster needs numba, on this machine and on the workers: pip install 'ratings-ledger[fast]'", "file"
            )
        try:
            golden_digest = compute_golden_digest()
        except UnfitWorker as problem:
            raise StoreUnavailable(str(problem), "file") from None
        nonce = create_nonce(objects)
        try:
            yield Cluster(
                engine, objects, WorkerRequirements(CODE_DIGEST, nonce, golden_digest), {nonce}, report_progress
            )
        finally:
            with suppress(OSError):
                objects.delete(nonce)


def open_ledger_objects(ledger: Ledger, url: str | None) -> Objects:
    """Open the store of a ledger's objects, below a URL or in the cache folder. Raises `StoreUnavailable`."""
    with ledger.reading() as connection:
        if url is not None:
            return open_object_store(f"{url.rstrip('/')}/{ledger_id(connection)}")
        folder = find_cache_folder()
        if folder is None:
            raise StoreUnavailable("this account has no cache folder; pass --segments URL", "file")
        root = Path(folder) / name_cache_folder(connection)
        with suppress(OSError):  # the first write to the folder reports the error
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_other_accounts(root)
        return open_object_store(str(root / "sealed"))
