"""Measure engines: how long workers take to seal a history, and to rebuild a sealed one.

A Dask cluster is a scheduler and workers, each in its own process; the time to start them does not count.
"""

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

from sqlalchemy import select

from benchmarks.measuring import ROOT
from benchmarks.ours import list_rulesets
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.cluster import cluster_work
from ratings_ledger.projections.cluster.cluster_work import create_cluster_work_at
from ratings_ledger.projections.cluster.inventory import list_segments, seal_all
from ratings_ledger.projections.cluster.packs import PACK_GAMES
from ratings_ledger.projections.cluster.worker_checks import compute_golden_digest
from ratings_ledger.projections.stored.generations import read_live_generation
from ratings_ledger.projections.stored.rebuilding import rebuild as rebuild_ladders
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS
from ratings_ledger.projections.stored.schema import generation_ladders

Measurement = dict[str, Any]

START_SECONDS = 60


def seal(url: str, on: str, segments: str) -> Measurement:
    """Seal the events of a history that are not sealed yet."""
    ledger = open_ledger(url)
    started = perf_counter()
    seal_all(ledger, on, segments, lambda stage, numbers: None)
    seconds = perf_counter() - started
    inventory = list_segments(ledger, segments)
    return {
        "seconds": seconds,
        "count": inventory.sealed,
        "games": sum(row.games for row in inventory.rows),
        "bytes": sum(row.bytes for row in inventory.rows),
        **_measure_children(),
        "processor_here": process_time(),
    }


def rebuild(url: str, on: str | None, segments: str, pack_games: int = PACK_GAMES) -> Measurement:
    """Rebuild the ladders by `dask:N`, by `processes:N`, or without an engine.

    The time is that from the opened ledger to the promoted standings. The result also has a digest of all standings,
    the number of tasks, the memory of the largest worker, and the processor seconds of this process and of all workers.
    """
    ledger, progress = open_ledger(url), dict[str, int]()
    with _open_engine(on) as (address, measure_workers), patch.object(cluster_work, "PACK_GAMES", pack_games):
        work_at = address and create_cluster_work_at(
            ledger, address, segments, RULE_SECONDS, lambda stage, numbers: progress.update(numbers)
        )
        started, processor = perf_counter(), process_time()
        result = rebuild_ladders(ledger, clock.now, list_rulesets(ledger), work_at=work_at or None)
        seconds, processor = perf_counter() - started, process_time() - processor
        workers = measure_workers()
    if result.failures:
        raise SystemExit(f"a rule failed: {result.failures[0]}")
    return {
        "seconds": seconds,
        "count": result.games,
        "ladders": result.ladders,
        "tasks": progress.get("tasks", 0),
        **workers,
        "processor_here": processor,
        "digest": _compute_live_digest(url),
    }


def _measure_children() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"worker_bytes": used.ru_maxrss * 1_024, "processor": used.ru_utime + used.ru_stime}


def measure_this_worker() -> tuple[int, float]:
    """Return the peak memory of a worker in bytes, and its processor seconds."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024, process_time()


def _compute_live_digest(url: str) -> str:
    """Return a digest of the digests of all ladders in the live generation."""
    with open_ledger(url).reading() as connection:
        generation = read_live_generation(connection)
        assert generation is not None
        columns = generation_ladders.c
        rows = connection.execute(
            select(columns.ladder, columns.digest).where(columns.generation == generation.generation)
        )
        return sha256(repr(sorted(map(tuple, rows))).encode()).hexdigest()


@contextmanager
def _open_engine(on: str | None) -> Iterator[tuple[str | None, Callable[[], dict[str, float]]]]:
    """Provide the address of an engine, started if it is `dask:N`, and a function that measures its workers."""
    kind, _, count = (on or "").partition(":")
    if kind != "dask":
        yield on, _measure_children
        return
    scheduler = _start_dask("scheduler", "--host", "127.0.0.1", "--port", "0")
    processes = [scheduler]
    try:
        address = _read_announcement(scheduler, "Scheduler at:")
        processes += [_start_dask("worker", address, "--nthreads", "1", "--no-nanny") for _ in range(int(count))]
        distributed: Any = import_module("distributed")
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(int(count), START_SECONDS)
            client.run(compute_golden_digest)  # loads the modules that every worker of a running cluster has loaded
            before = client.run(measure_this_worker)

            def measure_workers() -> dict[str, float]:
                after = client.run(measure_this_worker)
                seconds = sum(after[worker][1] - before[worker][1] for worker in after)
                return {"worker_bytes": max(peak_bytes for peak_bytes, _ in after.values()), "processor": seconds}

            yield address, measure_workers
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()


def _start_dask(role: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", f"distributed.cli.dask_{role}", *arguments, "--no-dashboard"]
    quiet = subprocess.DEVNULL
    watched = subprocess.PIPE if role == "scheduler" else quiet
    return subprocess.Popen(command, cwd=ROOT, text=True, stdin=quiet, stdout=quiet, stderr=watched)


def _read_announcement(process: "subprocess.Popen[str]", label: str) -> str:
    """Return the text after a label on a process's standard error. If the process ends first, exit with its output."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        if label in line:
            return line.partition(label)[2].strip()
        lines.append(line)
    raise SystemExit(f"a process ended without announcing {label!r}; its output:\n{''.join(lines)}")
