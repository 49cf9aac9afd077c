"""Rebuilds that are killed, and rebuilds that meet: readers see one whole generation, the old or the new."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fault_helpers import append_games, fork, game, wait_for, wait_until
from sqlalchemy import func, select

from ledger import clock
from ledger.integrity import Finding
from ledger.store import head, open_ledger
from projections import generations
from projections.generations import live, rebuild
from projections.integrity import verify_standings
from projections.schema import generation_ladders, generation_standings


@pytest.fixture
def rated_url(ledger_url: str, ratings: Callable[..., Any]) -> str:
    """A ledger with the shipped rulesets and some games."""
    assert ratings("init", db=ledger_url).exit_code == 0
    append_games(ledger_url, [game(number, size=3 + number % 6) for number in range(100)])
    return ledger_url


def live_position(url: str) -> int | None:
    """The log position of the generation that readers see."""
    with open_ledger(url).reading() as connection:
        found = live(connection)
    return None if found is None else int(found.position)


def differences(url: str) -> list[Finding]:
    """Where the live generation differs from a replay."""
    with open_ledger(url).reading() as connection:
        return list(verify_standings(connection))


def head_position(url: str) -> int:
    with open_ledger(url).reading() as connection:
        return head(connection).position


def rebuild_and_wait(url: str) -> None:
    """A rebuild that stops in its middle for as long as it lives."""
    generations._promote = lambda *_: time.sleep(600)  # in a forked process, so for it alone
    rebuild(open_ledger(url), clock.now)


@contextmanager
def rebuild_under_way(url: str) -> Iterator[None]:
    """Another process is in the middle of a rebuild; it is killed in the end."""
    child = fork(rebuild_and_wait, url)
    try:
        with open_ledger(url).reading() as connection:
            newest = select(func.max(generations.generations.c.generation))
            before = connection.execute(newest).scalar()
            wait_until(lambda: connection.execute(newest).scalar() != before)
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        assert wait_for([child]) == [-signal.SIGKILL]


def test_the_second_of_two_rebuilds_says_so_and_does_nothing(rated_url: str, ratings: Callable[..., Any]) -> None:
    assert ratings("rebuild", db=rated_url).exit_code == 0
    before = live_position(rated_url)
    append_games(rated_url, [game("later")])
    with rebuild_under_way(rated_url):
        result = ratings("rebuild", db=rated_url)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "another rebuild" in result.stderr
        assert live_position(rated_url) == before
        # appends and readers do not wait for a rebuild
        append_games(rated_url, [game("meanwhile")])
        assert ratings("standings", "club-catan-elo/all", db=rated_url).exit_code == 0
    # the lock died with its holder
    wait_until(lambda: ratings("rebuild", db=rated_url).exit_code == 0)
    assert live_position(rated_url) == head_position(rated_url)


def test_a_first_rebuild_that_is_killed_leaves_no_generation(rated_url: str, ratings: Callable[..., Any]) -> None:
    with rebuild_under_way(rated_url):
        pass
    assert live_position(rated_url) is None
    assert ratings("verify", db=rated_url) == (0, "", "")
    wait_until(lambda: ratings("rebuild", db=rated_url).exit_code == 0)
    assert live_position(rated_url) == head_position(rated_url)


def rebuild_quietly(url: str) -> None:
    rebuild(open_ledger(url), clock.now)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_kill_9_during_rebuild_leaves_the_old_generation_or_the_new(
    rated_url: str, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    # many small transactions: many places to be killed at
    monkeypatch.setattr(generations, "TRANSACTION_ROWS", 5)
    kills = 300 if at_length else 20
    chance = random.Random(kills)
    started = time.monotonic()
    assert wait_for([fork(rebuild_quietly, rated_url)]) == [0]
    seconds = time.monotonic() - started
    survived = 0
    for number in range(kills):
        before = live_position(rated_url) or 0
        append_games(rated_url, [game(f"more-{number}", size=3 + number % 6)])
        child = fork(rebuild_quietly, rated_url)
        time.sleep(chance.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)
        wait_for([child])
        after = live_position(rated_url)
        # a server may finish a commit that was under way when its client died, so the new may come a moment later
        assert after is not None
        assert before <= after <= head_position(rated_url)
        assert differences(rated_url) == []
        survived += after == before
    assert survived > kills // 4
    # the next rebuild sweeps up: what is left belongs to the two newest finished generations
    wait_until(lambda: wait_for([fork(rebuild_quietly, rated_url)]) == [0])
    assert live_position(rated_url) == head_position(rated_url)
    with open_ledger(rated_url).reading() as connection:
        kept = set(connection.execute(select(generations.generations.c.generation)).scalars())
        assert len(kept) <= 2
        assert set(connection.execute(select(generation_ladders.c.generation)).scalars()) <= kept
        assert set(connection.execute(select(generation_standings.c.build)).scalars()) <= kept
