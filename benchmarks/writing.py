"""Writes the files of `benchmarks.data`, each function in a process of its own."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ledgers
from benchmarks.games import chunks
from benchmarks.histories import History
from benchmarks.stores import sqlite_environment

Found = dict[str, Any]


def write_ledger(path: str, history: list[Any]) -> Found:
    """Return a SQLite ledger."""
    ledgers.write_ledger(path, History(*history))
    return {}


def write_unguarded(url: str, history: list[Any]) -> Found:
    """Return a ledger in PostgreSQL, whose guards are off until all is written."""
    import psycopg

    def guards(state: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER TABLE events {state} TRIGGER USER")

    ledgers.write_ledger(url, History(*history), lambda: guards("DISABLE"))
    guards("ENABLE")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE events")
    return {}


def write_arrays(path: str, history: list[Any]) -> Found:
    """`offsets`, `players` and `places` of all games in replay order: by time, ties as recorded."""
    drawn = list(chunks(History(*history)))
    sizes = np.concatenate([np.diff(chunk.offsets) for chunk in drawn])
    occurred_at = np.concatenate([chunk.occurred_at for chunk in drawn])
    order = np.argsort(occurred_at, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1][order]
    offsets = np.concatenate([[0], np.cumsum(sizes[order])])
    # each game's participants, end to end, at their new places
    takes = np.repeat(starts - offsets[:-1], sizes[order]) + np.arange(offsets[-1])
    players = np.concatenate([chunk.players for chunk in drawn])[takes].astype(np.int32)
    places = np.concatenate([chunk.places for chunk in drawn])[takes].astype(np.int32)
    with open(path, "wb") as file:
        np.savez(file, offsets=offsets, players=players, places=places)
    return {}


def write_json_lines(path: str, history: list[Any]) -> Found:
    """Events as JSON Lines."""
    return _write_lines(path, ledgers.json_lines(History(*history)))


def write_csv(path: str, history: list[Any]) -> Found:
    """Games as CSV, one row per participant."""
    return _write_lines(path, ledgers.csv_lines(History(*history)))


def write_domain_events(path: str, history: list[Any]) -> Found:
    """Return a store of the package `eventsourcing`, all in one file."""
    from benchmarks.baselines import event_sourcing

    event_sourcing.save(sqlite_environment(path), history)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for left in ("-wal", "-shm"):
        Path(path + left).unlink(missing_ok=True)
    return {}


def _write_lines(path: str, lines: Iterable[str]) -> Found:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return {}
