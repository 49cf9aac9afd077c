"""Write the files of `benchmarks.data`. Each function runs in its own process."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ledgers
from benchmarks.games import chunks
from benchmarks.histories import History
from benchmarks.stores import build_sqlite_environment

Measurement = dict[str, Any]


def write_ledger(path: str, history: list[Any]) -> Measurement:
    """Write a SQLite ledger."""
    ledgers.write_ledger(path, History(*history))
    return {}


def write_unguarded(url: str, history: list[Any]) -> Measurement:
    """Write a ledger in PostgreSQL, with its guards disabled until the end."""
    import psycopg

    def set_guards(state: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER TABLE events {state} TRIGGER USER")

    ledgers.write_ledger(url, History(*history), lambda: set_guards("DISABLE"))
    set_guards("ENABLE")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE events")
    return {}


def write_arrays(path: str, history: list[Any]) -> Measurement:
    """Write `offsets`, `players` and `places` of all games in replay order: by time, then as recorded."""
    drawn = list(chunks(History(*history)))
    sizes = np.concatenate([np.diff(chunk.offsets) for chunk in drawn])
    occurred_at = np.concatenate([chunk.occurred_at for chunk in drawn])
    order = np.argsort(occurred_at, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1][order]
    offsets = np.concatenate([[0], np.cumsum(sizes[order])])
    # the old index of each participant, in the new order
    old_indices = np.repeat(starts - offsets[:-1], sizes[order]) + np.arange(offsets[-1])
    players = np.concatenate([chunk.players for chunk in drawn])[old_indices].astype(np.int32)
    places = np.concatenate([chunk.places for chunk in drawn])[old_indices].astype(np.int32)
    with open(path, "wb") as file:
        np.savez(file, offsets=offsets, players=players, places=places)
    return {}


def write_json_lines(path: str, history: list[Any]) -> Measurement:
    """Write events as JSON Lines."""
    return _write_lines(path, ledgers.json_lines(History(*history)))


def write_csv(path: str, history: list[Any]) -> Measurement:
    """Write games as CSV, one row per participant."""
    return _write_lines(path, ledgers.csv_lines(History(*history)))


def write_domain_events(path: str, history: list[Any]) -> Measurement:
    """Write a store of the package `eventsourcing`, in one file."""
    from benchmarks.baselines import event_sourcing

    event_sourcing.save(build_sqlite_environment(path), history)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        Path(path + suffix).unlink(missing_ok=True)
    return {}


def _write_lines(path: str, lines: Iterable[str]) -> Measurement:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return {}
