"""Kill processes by `kill -9` while they write the cache: every later answer equals that of the log."""

import logging
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import append_games, build_numbered_game, fork_child
from stores import make_ruled_ledger
from thresholds import set_thresholds

import ratings_ledger as rl

pytestmark = pytest.mark.slow

GAMES = 120
NEVER = 10**9
LADDER = "club-catan-elo/all"


def ask(url: str, known_at: int | None = None) -> Any:
    """Return the standings of a ladder, and a player's games on it, as a newly opened ledger knows them."""
    with rl.open(url) as ledger:
        view = ledger.at(known_at=known_at)
        return view.standings(LADDER).model_dump(), view.history(LADDER, "anna").model_dump()


def ask_the_log(url: str, known_at: int | None = None) -> Any:
    """Return the same answers, from the log alone."""
    with pytest.MonkeyPatch.context() as patch:
        set_thresholds(patch, cached_events=NEVER)
        return ask(url, known_at)


def kill_during(work: Callable[[], object], seconds: float, has_begun: Callable[[], bool] = lambda: True) -> bool:
    """Kill a child process this many seconds after its work has begun; return False if it had already ended."""
    child = fork_child(work)
    wait_for(has_begun)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def wait_for(condition: Callable[[], bool]) -> None:
    """Return within microseconds after a condition becomes true."""
    while not condition():
        time.sleep(0)


def measure(work: Callable[[], object]) -> float:
    """Return how many seconds a child process takes for some work."""
    started = time.monotonic()
    assert os.waitpid(fork_child(work), 0)[1] == 0
    return time.monotonic() - started


def find_cached_position(caches: Path) -> int:
    """Return the last position up to which the cached columns cover the log without a gap."""
    spans = [tuple(map(int, path.name.split("-")[:2])) for path in caches.rglob("columns/*-*-*")]
    position = 0
    while later := [last for first, last in spans if first == position]:
        position = max(later)
    return position


def test_killed_cache_writes_leave_right_answers(
    copy_ledger_file: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    at_length: bool,
) -> None:
    """However often writers of the cache are killed, readers get the answers of the log.

    The cache grows by a few events at a time, so that most of the time is spent writing it.
    """
    url, caches = copy_ledger_file(make_ruled_ledger), tmp_path / "caches"
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
    set_thresholds(monkeypatch, cached_events=1, delta_events=5, scanned_events=NEVER)
    append_games(url, [build_numbered_game(number) for number in range(GAMES)])
    with rl.open(url) as ledger:
        rulesets = ledger.head.position - GAMES
    rng, killed, positions, expected = random.Random(7), 0, set[int](), dict[int, Any]()
    kills = 2_000 if at_length else 20
    undisturbed_s = measure(lambda: ask(url))
    assert find_cached_position(caches) > rulesets + GAMES // 2
    shutil.rmtree(caches)
    while killed < kills or len(positions) <= 10:
        if rng.random() < 0.1:
            for path in caches.rglob("columns/*-*-*"):
                path.unlink()
        killed += kill_during(lambda: ask(url), rng.random() * undisturbed_s / 3)
        position = find_cached_position(caches)
        positions.add(position)
        if position > rulesets:
            if position not in expected:
                expected[position] = ask_the_log(url, position)
            with caplog.at_level(logging.WARNING):
                assert ask(url, position) == expected[position]
    assert ask(url) == ask_the_log(url)
    assert not caplog.records  # an interrupted write damages no file


def test_killed_trace_writes_leave_complete_traces_or_none(
    ruled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, at_length: bool
) -> None:
    """However often writers of traces are killed, each trace is complete or absent, and no warning is logged."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, cached_events=1, scanned_events=NEVER, traced_games=1)
    append_games(ruled_url, [build_numbered_game(number) for number in range(GAMES)])
    rng, killed, outcomes = random.Random(8), 0, Counter[bool]()
    expected = ask_the_log(ruled_url)
    assert ask(ruled_url) == expected
    (folder,) = (tmp_path / "caches").rglob("traces")
    (trace_file,) = folder.iterdir()
    content = trace_file.read_bytes()
    shutil.rmtree(folder)
    delay_s = 0.001
    while killed < (2_000 if at_length else 15) or min(outcomes[True], outcomes[False]) <= 3:
        shutil.rmtree(folder, ignore_errors=True)
        # the folder is made just before the trace is written
        killed += kill_during(lambda: ask(ruled_url), delay_s * (0.5 + rng.random()), folder.exists)
        outcomes[trace_file.exists()] += 1
        delay_s *= 0.8 if trace_file.exists() else 1.25  # about half of the kills come before the trace is written
        assert not trace_file.exists() or trace_file.read_bytes() == content
        with caplog.at_level(logging.WARNING):
            assert ask(ruled_url) == expected
    assert not caplog.records
