"""Processes that die by `kill -9` while they write the cache: whoever comes next gets the facts of the log."""

import logging
import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from fault_helpers import append_games, build_numbered_game, fork_child
from ledgers import create_ledger
from thresholds import set_thresholds

from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.facts import column_cache, decoding
from ratings_ledger.projections.facts.column_files import TRACES
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import trace_cache

pytestmark = pytest.mark.slow

GAMES = 120
LADDER = "club-catan-elo/all"


def test_killed_cache_writes_leave_right_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at_length: bool
) -> None:
    """However often writers of the cache are killed, readers get the facts of the log.

    The cache grows by a few events at a time, so that most of the time is spent writing it.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, cached_events=1, delta_events=5, scanned_events=10**9)
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    create_ledger(url)
    append_games(url, [build_numbered_game(number) for number in range(GAMES)])
    chance, killed, positions = random.Random(7), 0, set()
    kills = 2_000 if at_length else 20
    started = time.monotonic()
    os.waitpid(fork_child(lambda: grow(url)), 0)
    whole_s = time.monotonic() - started
    shutil.rmtree(tmp_path / "caches")
    ledger = open_ledger(url)
    with ledger.reading() as connection:
        expected = decoding.decode(connection, cached=False)
        while killed < kills or len(positions) <= 10:
            if chance.random() < 0.1:
                for path in (tmp_path / "caches").rglob("columns/*-*-*"):
                    path.unlink()
            child = fork_child(lambda: grow(url))
            time.sleep(chance.random() * whole_s / 3)
            os.kill(child, signal.SIGKILL)
            killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            with caplog.at_level(logging.WARNING):
                cache = column_cache.find_cache(connection, GAMES)
                assert cache is not None
                positions.add(cache.position)
                if cache.position:
                    found = cache.read_facts(cache.position)
                    assert [*found.first_position] == [*expected.first_position[: cache.position]]
                    assert [found.players[p] for p in found.player[: 4 * cache.position]] == [
                        expected.players[p] for p in expected.player[: 4 * cache.position]
                    ]
        found = decoding.decode(connection)
    assert not caplog.records  # a cache that was being written is no damaged one
    assert [*found.first_position] == [*expected.first_position]
    assert [*found.place] == [*expected.place]


def grow(url: str) -> None:
    with open_ledger(url).reading() as connection:
        decoding.decode(connection)


def test_killed_trace_writes_leave_whole_traces_or_none(
    ruled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at_length: bool
) -> None:
    """However often writers of traces are killed, a trace is there whole or not at all, and nobody is told of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, cached_events=1, scanned_events=10**9, traced_games=1)
    append_games(ruled_url, [build_numbered_game(number) for number in range(GAMES)])
    chance, killed, met = random.Random(8), 0, Counter[bool]()
    ledger = open_ledger(ruled_url)
    with ledger.reading() as connection:
        facts = decoding.decode(connection)
        assert facts.cache is not None
        expected = Ladders(facts).trace(LADDER)
        shutil.rmtree(facts.cache / TRACES)
        started = time.monotonic()
        os.waitpid(fork_child(lambda: Ladders(facts).trace(LADDER) and None), 0)
        whole_s = time.monotonic() - started
        while killed < (2_000 if at_length else 15) or min(met[True], met[False]) <= 3:
            shutil.rmtree(facts.cache / TRACES, ignore_errors=True)
            facts.segments.clear()
            child = fork_child(lambda: Ladders(facts).trace(LADDER) and None)
            time.sleep(chance.random() * whole_s)
            os.kill(child, signal.SIGKILL)
            killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            with caplog.at_level(logging.WARNING):
                found = trace_cache.find_trace(facts, LADDER, expected.stream.versions)
            met[found is None] += 1
            if found is not None:
                assert ([*found.points_before], [*found.points]) == ([*expected.points_before], [*expected.points])
                assert found.stream.names == expected.stream.names
    assert not caplog.records
