"""Rebuilds by the workers of an engine, as measured: what they make of a sealed history, and what sealing costs.

A Dask cluster is a scheduler and workers in processes of their own, which are up before the time is taken.
"""

import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

from sqlalchemy import select

from benchmarks.measuring import ROOT
from benchmarks.ours import published_rulesets
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.cluster import coordinating
from ratings_ledger.projections.cluster.coordinating import create_cluster_work_at
from ratings_ledger.projections.cluster.inventory import list_segments, seal_all
from ratings_ledger.projections.cluster.packs import PACK_GAMES
from ratings_ledger.projections.cluster.worker_checks import compute_golden_digest
from ratings_ledger.projections.stored.generations import read_live_generation
from ratings_ledger.projections.stored.rebuilding import rebuild as rebuild_ladders
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS
from ratings_ledger.projections.stored.schema import generation_ladders

Found = dict[str, Any]

START_SECONDS = 60


def seal(url: str, on: str, segments: str, again: bool = False) -> Found:
    """Seal a history; with `again` what is there is deleted first."""
    ledger = open_ledger(url)
    if again:
        with suppress(FileNotFoundError):
            shutil.rmtree(coordinating.open_ledger_objects(ledger, segments).url)
    started = perf_counter()
    seal_all(ledger, on, segments, lambda stage, numbers: None)
    seconds = perf_counter() - started
    done = list_segments(ledger, segments)
    return {
        "seconds": seconds,
        "count": done.sealed,
        "games": sum(row.games for row in done.rows),
        "bytes": sum(row.bytes for row in done.rows),
        **_of_children(),
        "processor_here": process_time(),
    }


def sealed_events(url: str) -> Found:
    """Return how many events of a history can be sealed."""
    with open_ledger(url).reading() as connection:
        position = head(connection).position
    return {"count": position - position % coordinating.SEGMENT_EVENTS}


def rebuild(url: str, on: str | None, segments: str, pack_games: int = PACK_GAMES) -> Found:
    """From an opened ledger to promoted standings: by `dask:N` workers, by `processes:N`, or as ever, columns cached.

    Also gives a digest of all standings, how many tasks there were, the memory of the largest worker, and the
    seconds of a processor that this process took and all workers.
    """
    ledger, told = open_ledger(url), dict[str, int]()
    with _address(on) as (address, of_workers), patch.object(coordinating, "PACK_GAMES", pack_games):
        elsewhere = address and create_cluster_work_at(
            ledger, address, segments, RULE_SECONDS, lambda what, numbers: told.update(numbers)
        )
        started, processor = perf_counter(), process_time()
        done = rebuild_ladders(ledger, clock.now, published_rulesets(ledger), work_at=elsewhere or None)
        seconds, processor = perf_counter() - started, process_time() - processor
        workers = of_workers()
    if done.failures:
        raise SystemExit(f"a rule failed: {done.failures[0]}")
    return {
        "seconds": seconds,
        "count": done.games,
        "ladders": done.ladders,
        "tasks": told.get("tasks", 0),
        **workers,
        "processor_here": processor,
        "digest": _digest_of_live(url),
    }


def _of_children() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"worker_bytes": used.ru_maxrss * 1_024, "processor": used.ru_utime + used.ru_stime}


def of_this_worker() -> tuple[int, float]:
    """Return the most memory that a worker has held, and the seconds of a processor that it took."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024, process_time()


def _digest_of_live(url: str) -> str:
    """Return a digest over the digests of all ladders of the live generation."""
    with open_ledger(url).reading() as connection:
        generation = read_live_generation(connection)
        assert generation is not None
        columns = generation_ladders.c
        rows = connection.execute(
            select(columns.ladder, columns.digest).where(columns.generation == generation.generation)
        )
        return sha256(repr(sorted(map(tuple, rows))).encode()).hexdigest()


@contextmanager
def _address(on: str | None) -> Iterator[tuple[str | None, Callable[[], dict[str, float]]]]:
    """Provide the address of an engine, started if it is `dask:N`, and a function that measures its workers."""
    kind, _, count = (on or "").partition(":")
    if kind != "dask":
        yield on, _of_children
        return
    scheduler = _started("scheduler", "--host", "127.0.0.1", "--port", "0")
    processes = [scheduler]
    try:
        address = _said(scheduler, "Scheduler at:")
        processes += [_started("worker", address, "--nthreads", "1", "--no-nanny") for _ in range(int(count))]
        distributed: Any = import_module("distributed")
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(int(count), START_SECONDS)
            client.run(compute_golden_digest)  # has loaded what every worker of a running cluster has
            before = client.run(of_this_worker)

            def of_workers() -> dict[str, float]:
                after = client.run(of_this_worker)
                took = sum(after[worker][1] - before[worker][1] for worker in after)
                return {"worker_bytes": max(held for held, _ in after.values()), "processor": took}

            yield address, of_workers
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()


def _started(what: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments, "--no-dashboard"]
    quiet = subprocess.DEVNULL
    watched = subprocess.PIPE if what == "scheduler" else quiet
    return subprocess.Popen(command, cwd=ROOT, text=True, stdin=quiet, stdout=quiet, stderr=watched)


def _said(process: "subprocess.Popen[str]", what: str) -> str:
    """Return what a process says behind some words on standard error."""
    assert process.stderr is not None
    for line in process.stderr:
        if what in line:
            return line.partition(what)[2].strip()
    raise SystemExit("the scheduler did not start")
