"""Rebuilds that are killed, and rebuilds that meet: readers see one whole generation, the old or the new."""

import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import (
    STANDINGS_QUERY,
    append_games,
    build_numbered_game,
    check_generation,
    fork_child,
    open_plain_connection,
    wait_for_exits,
    wait_until,
)
from ledgers import run_command
from sqlalchemy import select
from thresholds import set_thresholds

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.verification import Finding
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.generations import list_ladder_rows
from ratings_ledger.projections.stored.rebuilding import RebuildOptions, rebuild
from ratings_ledger.projections.stored.schema import generation_ladders, generation_standings
from ratings_ledger.projections.stored.verification import verify_standings

RULESET = Path(__file__).parents[2] / "projections" / "shipped" / "club-catan-elo-1.toml"


@pytest.fixture
def rated_url(ledger_url: str, ratings: Callable[..., Any]) -> str:
    """A ledger with a ruleset and some games on all of its ladders; a rebuild takes a moment."""
    assert ratings("rules", "publish", RULESET, db=ledger_url).exit_code == 0
    append_games(ledger_url, [build_numbered_game(number, size=3 + number % 6) for number in range(60)])
    return ledger_url


def number_from(url: str, query: str) -> int | None:
    """What a plain reader's query of one number gives."""
    with closing(open_plain_connection(url)) as connection:
        row = connection.execute(query).fetchone()
    return None if row is None else int(row[0])


def live_position(url: str) -> int | None:
    """The log position of the generation that readers see."""
    live = "(SELECT generation FROM live_generation)"
    return number_from(url, f"SELECT position FROM generations WHERE generation = {live}")


def differences(url: str) -> list[Finding]:
    """Where the live generation differs from a replay."""
    with open_ledger(url).reading() as connection:
        return list(verify_standings(connection))


def head_position(url: str) -> int:
    return number_from(url, "SELECT max(position) FROM events") or 0


def rebuild_and_wait(url: str) -> None:
    """A rebuild that stops in its middle for as long as it lives."""
    generations.promote = lambda *_: time.sleep(600)  # in a forked process, so for it alone
    rebuild(open_ledger(url), clock.now)


@contextmanager
def rebuild_under_way(url: str) -> Iterator[None]:
    """Another process is in the middle of a rebuild; it is killed in the end."""
    newest = "SELECT coalesce(max(generation), 0) FROM generations"
    before = number_from(url, newest)
    child = fork_child(rebuild_and_wait, url)
    try:
        wait_until(lambda: number_from(url, newest) != before)
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        assert wait_for_exits([child]) == [-signal.SIGKILL]


@pytest.mark.slow_cases
def test_second_rebuild_does_nothing(rated_url: str, ratings: Callable[..., Any]) -> None:
    """A second rebuild says that another one is running and does nothing."""
    assert ratings("rebuild", db=rated_url).exit_code == 0
    before = live_position(rated_url)
    append_games(rated_url, [build_numbered_game("later")])
    with rebuild_under_way(rated_url):
        result = ratings("rebuild", db=rated_url)
        assert (result.exit_code, result.stdout) == (4, "")
        assert "another rebuild" in result.stderr
        assert live_position(rated_url) == before
        # appends and readers do not wait for a rebuild
        append_games(rated_url, [build_numbered_game("meanwhile")])
        assert ratings("standings", "club-catan-elo/all", db=rated_url).exit_code == 0
    # the lock died with its holder
    wait_until(lambda: ratings("rebuild", db=rated_url).exit_code == 0)
    assert live_position(rated_url) == head_position(rated_url)


@pytest.mark.slow_cases
def test_killed_first_rebuild_leaves_nothing(rated_url: str, ratings: Callable[..., Any]) -> None:
    """A first rebuild that is killed leaves no generation, and the next one succeeds."""
    with rebuild_under_way(rated_url):
        pass
    assert live_position(rated_url) is None
    assert ratings("verify", db=rated_url) == (0, "", "")
    wait_until(lambda: ratings("rebuild", db=rated_url).exit_code == 0)
    assert live_position(rated_url) == head_position(rated_url)


def rebuild_quietly(url: str) -> None:
    rebuild(open_ledger(url), clock.now)


def rebuild_in_processes(url: str) -> None:
    rebuild(open_ledger(url), clock.now, options=RebuildOptions(cores=2))


def watch(url: str) -> None:
    """Look at the views again and again, as another program does; fail at anything but a whole generation."""
    last = 0
    with closing(open_plain_connection(url)) as connection:
        while True:
            try:
                rows = connection.execute(STANDINGS_QUERY).fetchall()
            except sqlite3.OperationalError:  # a commit is under way
                continue
            position = check_generation(rows) or 0
            assert position >= last
            last = position
            time.sleep(0.01)


@contextmanager
def watched(url: str) -> Iterator[None]:
    """Somebody is watching, who must not see anything odd."""
    child = fork_child(watch, url)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        assert wait_for_exits([child]) == [-signal.SIGKILL]


def duration(url: str, work: Callable[[str], object]) -> float:
    """How many seconds some work takes in a process of its own, the longest of three times."""
    found = []
    for _ in range(3):
        started = time.monotonic()
        assert wait_for_exits([fork_child(work, url)]) == [0]
        found.append(time.monotonic() - started)
    return max(found)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("work", "in_file", "in_server"), [(rebuild_quietly, 36, 16), (rebuild_in_processes, 18, 10)],
    ids=["alone", "with workers"],
)  # fmt: skip
def test_killed_rebuild_leaves_old_or_new(
    work: Callable[[str], None], in_file: int, in_server: int, rated_url: str, monkeypatch: pytest.MonkeyPatch,
    at_length: bool,
) -> None:  # fmt: skip
    # many small transactions: many places to be killed at
    """A rebuild killed at any moment leaves readers the whole old generation or the whole new one."""
    set_thresholds(monkeypatch, stored_rows=10, forking_cost=0)
    kills = (in_server if rated_url.startswith("postgres") else in_file) * (25 if at_length else 1)
    chance = random.Random(kills)
    seconds = duration(rated_url, work)
    survived = 0
    with watched(rated_url):
        for number in range(kills):
            before = live_position(rated_url) or 0
            append_games(rated_url, [build_numbered_game(f"more-{number}", size=3 + number % 6)])
            child = fork_child(work, rated_url)
            time.sleep(chance.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
            wait_for_exits([child])
            after = live_position(rated_url)
            # a server may finish a commit that was under way when its client died, so the new may come a moment later
            assert after is not None
            assert before <= after <= head_position(rated_url)
            survived += after == before
            if number % 20 == 19:
                # the next one that is left alone succeeds, and is right
                wait_until(lambda: wait_for_exits([fork_child(work, rated_url)]) == [0])
                assert live_position(rated_url) == head_position(rated_url)
                assert differences(rated_url) == []
    assert survived > kills // 4
    # the next rebuild sweeps up: what is left belongs to the two newest finished generations, and to their builds
    wait_until(lambda: wait_for_exits([fork_child(work, rated_url)]) == [0])
    with open_ledger(rated_url).reading() as connection:
        kept = set(connection.execute(select(generation_ladders.c.generation)).scalars())
        builds = set(connection.execute(select(generation_ladders.c.build)).scalars())
        assert len(kept) == 2
        assert set(connection.execute(select(generations.generations.c.generation)).scalars()) == kept | builds
        assert set(connection.execute(select(generation_standings.c.build)).scalars()) == builds


def appending(url: str) -> None:
    """Append one game after the other, forever."""
    for number in range(1_000_000):
        append_games(url, [build_numbered_game(f"busy-{number}", size=3 + number % 6)])


@pytest.mark.slow
def test_rebuild_ends_while_others_append(rated_url: str) -> None:
    """A rebuild ends while others append, and its standings are of the position that it states."""
    child = fork_child(appending, rated_url)
    try:
        begun = head_position(rated_url)
        for _ in range(3):
            done = rebuild(open_ledger(rated_url), clock.now)
            assert live_position(rated_url) == done.position
            assert begun <= done.position <= head_position(rated_url)
            assert differences(rated_url) == []
            begun = done.position
        # it goes on while nobody rebuilds, and went on while somebody did
        wait_until(lambda: head_position(rated_url) > begun)
    finally:
        os.kill(child, signal.SIGKILL)
        wait_for_exits([child])
    with open_ledger(rated_url).reading() as connection:
        replayed = Ladders(decode(connection, done.position)).streams("club-catan-elo")
        stored = {row.ladder: row.digest for row in list_ladder_rows(connection, done.generation)}
        assert stored == {name: Ladders(decode(connection, done.position)).standings(name).digest for name in replayed}


def rebuild_by_command(url: str) -> int:
    """`ratings rebuild` as a shell starts it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    return run_command("rebuild", db=url)


def interrupted(child: int, seconds: float = 2) -> int:
    """The exit code of a process that gets Ctrl-C, or -SIGKILL if it has not ended in time."""
    os.kill(child, signal.SIGINT)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return wait_for_exits([child])[0]


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_ctrl_c_ends_rebuild_cleanly(
    cores: int, rated_url: str, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """Ctrl-C ends a rebuild within two seconds with exit code 130 and leaves nothing half done."""
    set_thresholds(monkeypatch, stored_rows=10, forking_cost=0)
    monkeypatch.setattr("ratings_ledger.ledger.processes.forking.available_cores", lambda: cores)
    seconds = duration(rated_url, rebuild_by_command)
    chance = random.Random(cores)
    codes = []
    for number in range(100 if at_length else 5):
        before = live_position(rated_url)
        append_games(rated_url, [build_numbered_game(f"more-{number}")])
        child = fork_child(rebuild_by_command, rated_url)
        time.sleep(chance.uniform(seconds / 10, seconds))
        codes.append(interrupted(child))
        assert live_position(rated_url) in (before, head_position(rated_url))
        assert codes[-1] != 0 or live_position(rated_url) == head_position(rated_url)
    assert set(codes) <= {0, 130}
    assert 130 in codes
    assert wait_for_exits([fork_child(rebuild_by_command, rated_url)]) == [0]
    assert differences(rated_url) == []


@contextmanager
def store_locked(url: str) -> Iterator[None]:
    """Another program holds the lock that every writer needs, for longer than anybody waits."""
    with closing(open_plain_connection(url)) as connection:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("BEGIN IMMEDIATE")
        else:
            connection.execute("BEGIN")
            connection.execute("LOCK TABLE generations IN ACCESS EXCLUSIVE MODE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.slow
def test_ctrl_c_ends_waiting_rebuild(rated_url: str) -> None:
    """Ctrl-C ends a rebuild that is waiting for a lock."""
    rebuild_quietly(rated_url)
    with store_locked(rated_url):
        child = fork_child(rebuild_by_command, rated_url)
        time.sleep(0.3)
        assert interrupted(child) == 130
    assert differences(rated_url) == []
    rebuild_quietly(rated_url)


def forever(self: Ladders, stream: Any) -> Any:
    """A replay that takes its time, and lets nothing else run in its process meanwhile."""
    with open(os.environ["WORKERS"], "a") as file:
        file.write(f"{os.getpid()}\n")
    return sum(range(10**9))


@pytest.fixture
def workers_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replays in workers never end; this file says which processes they are."""
    path = tmp_path / "workers"
    path.touch()
    monkeypatch.setenv("WORKERS", str(path))
    set_thresholds(monkeypatch, forking_cost=0)
    monkeypatch.setattr("ratings_ledger.ledger.processes.forking.available_cores", lambda: 2)
    monkeypatch.setattr(Ladders, "rank_stream", forever)
    return path


def are_gone(processes: list[str]) -> bool:
    """Whether these processes have ended, even if nobody has asked how."""
    states = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(processes)], capture_output=True, text=True)
    return all(state.startswith("Z") for state in states.stdout.split())


@pytest.mark.slow_cases
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_die_with_their_parent(
    end: signal.Signals, rated_url: str, workers_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers die with their parent however it ends, and hold none of its locks."""
    child = fork_child(rebuild_by_command, rated_url)
    wait_until(lambda: len(workers_file.read_text().split()) == 2)
    workers = workers_file.read_text().split()
    assert not are_gone(workers)
    if end == signal.SIGINT:
        assert interrupted(child) == 130
    else:
        os.kill(child, end)
        assert wait_for_exits([child]) == [-end]
    monkeypatch.undo()
    # the lock is free at once, whatever becomes of the workers
    wait_until(lambda: wait_for_exits([fork_child(rebuild_by_command, rated_url)]) == [0])
    wait_until(lambda: are_gone(workers))
    assert differences(rated_url) == []
