"""Kill, interrupt and overlap rebuilds: readers see one complete generation, the old or the new."""

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
from rebuilds import act_before_promotion, rebuild_standings, replace_stage
from sqlalchemy import text
from thresholds import set_thresholds

import ratings_ledger as rl
from ratings_ledger.ledger.store.opening import open_ledger

RULESET = Path(__file__).parents[2] / "projections" / "shipped" / "club-catan-elo-1.toml"


@pytest.fixture
def rated_url(ledger_url: str, ratings: Callable[..., Any]) -> str:
    """Return the URL of a ledger with a ruleset and games on all of its ladders; a rebuild takes a moment."""
    assert ratings("rules", "publish", RULESET, db=ledger_url).exit_code == 0
    append_games(ledger_url, [build_numbered_game(number, size=3 + number % 6) for number in range(60)])
    return ledger_url


def read_number(url: str, query: str) -> int | None:
    """Return the number that a query gives on a plain connection; None if it gives no row."""
    with closing(open_plain_connection(url)) as connection:
        row = connection.execute(query).fetchone()
    return None if row is None else int(row[0])


def read_live_position(url: str) -> int | None:
    """Return the log position of the live generation."""
    live = "(SELECT generation FROM live_generation)"
    return read_number(url, f"SELECT position FROM generations WHERE generation = {live}")


def read_head_position(url: str) -> int:
    return read_number(url, "SELECT max(position) FROM events") or 0


def rebuild_without_end(url: str) -> None:
    """Rebuild, and wait without end before the promotion."""
    act_before_promotion(pytest.MonkeyPatch(), lambda: time.sleep(600))  # only in this forked process
    rebuild_standings(url)


@contextmanager
def run_unfinished_rebuild(url: str) -> Iterator[None]:
    """Run a rebuild in another process, which waits before its promotion and is killed at the end of the block."""
    newest = "SELECT coalesce(max(generation), 0) FROM generations"
    before = read_number(url, newest)
    child = fork_child(rebuild_without_end, url)
    try:
        wait_until(lambda: read_number(url, newest) != before)
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        assert wait_for_exits([child]) == [-signal.SIGKILL]


@pytest.mark.slow_cases
def test_second_rebuild_does_nothing(rated_url: str, ratings: Callable[..., Any]) -> None:
    """A second rebuild says that another one is running and does nothing."""
    assert ratings("rebuild", db=rated_url).exit_code == 0
    before = read_live_position(rated_url)
    append_games(rated_url, [build_numbered_game("later")])
    with run_unfinished_rebuild(rated_url):
        result = ratings("rebuild", db=rated_url)
        assert (result.exit_code, result.stdout) == (4, "")
        assert "another rebuild" in result.stderr
        assert read_live_position(rated_url) == before
        # appends and readers do not wait for a rebuild
        append_games(rated_url, [build_numbered_game("meanwhile")])
        assert ratings("standings", "club-catan-elo/all", db=rated_url).exit_code == 0
    # the lock ended with its holder
    wait_until(lambda: ratings("rebuild", db=rated_url).exit_code == 0)
    assert read_live_position(rated_url) == read_head_position(rated_url)


@pytest.mark.slow_cases
def test_killed_first_rebuild_leaves_no_live_generation(rated_url: str, ratings: Callable[..., Any]) -> None:
    """A killed first rebuild leaves no live generation, and the next one succeeds."""
    with run_unfinished_rebuild(rated_url):
        pass
    assert read_live_position(rated_url) is None
    assert ratings("verify", db=rated_url) == (0, "", "")
    wait_until(lambda: ratings("rebuild", db=rated_url).exit_code == 0)
    assert read_live_position(rated_url) == read_head_position(rated_url)


def rebuild_alone(url: str) -> None:
    rebuild_standings(url)


def rebuild_in_processes(url: str) -> None:
    rebuild_standings(url, cores=2)


def watch_standings(url: str) -> None:
    """Read the views repeatedly as another program; fail at anything but a complete generation."""
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
def run_watcher(url: str) -> Iterator[None]:
    """Run a watcher in another process, which must not fail."""
    child = fork_child(watch_standings, url)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        assert wait_for_exits([child]) == [-signal.SIGKILL]


def measure_seconds(url: str, work: Callable[[str], object]) -> float:
    """Return the longest duration of three runs of some work in a process of its own, in seconds."""
    durations = []
    for _ in range(3):
        started = time.monotonic()
        assert wait_for_exits([fork_child(work, url)]) == [0]
        durations.append(time.monotonic() - started)
    return max(durations)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("work", "file_kills", "server_kills"), [(rebuild_alone, 36, 16), (rebuild_in_processes, 18, 10)],
    ids=["alone", "with workers"],
)  # fmt: skip
def test_killed_rebuild_leaves_old_or_new_generation(
    work: Callable[[str], None], file_kills: int, server_kills: int, rated_url: str, monkeypatch: pytest.MonkeyPatch,
    ratings: Callable[..., Any], at_length: bool,
) -> None:  # fmt: skip
    """A rebuild killed at any moment leaves readers the complete old generation or the complete new one."""
    # many small transactions give many moments to be killed
    set_thresholds(monkeypatch, stored_rows=10, forking_cost=0)
    kills = (server_kills if rated_url.startswith("postgres") else file_kills) * (25 if at_length else 1)
    rng = random.Random(kills)
    seconds = measure_seconds(rated_url, work)
    old_stayed_live = 0
    with run_watcher(rated_url):
        for number in range(kills):
            before = read_live_position(rated_url) or 0
            append_games(rated_url, [build_numbered_game(f"more-{number}", size=3 + number % 6)])
            child = fork_child(work, rated_url)
            time.sleep(rng.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
            wait_for_exits([child])
            after = read_live_position(rated_url)
            # a server may finish a running commit after its client died, so the new generation may come a moment later
            assert after is not None
            assert before <= after <= read_head_position(rated_url)
            old_stayed_live += after == before
            if number % 20 == 19:
                # the next undisturbed rebuild succeeds with the right standings
                wait_until(lambda: wait_for_exits([fork_child(work, rated_url)]) == [0])
                assert read_live_position(rated_url) == read_head_position(rated_url)
                assert ratings("verify", db=rated_url) == (0, "", "")
    assert old_stayed_live > kills // 4
    # the next rebuild deletes all rows but those of the two newest finished generations and their builds
    wait_until(lambda: wait_for_exits([fork_child(work, rated_url)]) == [0])
    with open_ledger(rated_url).reading() as connection:
        kept_generations, builds, generations, stored_builds = (
            set(connection.execute(text(f"SELECT {column} FROM {table}")).scalars())
            for column, table in (
                ("generation", "generation_ladders"), ("build", "generation_ladders"),
                ("generation", "generations"), ("build", "generation_standings"),
            )
        )  # fmt: skip
    assert len(kept_generations) == 2
    assert generations == kept_generations | builds
    assert sorted(generations)[-2:] == sorted(kept_generations)
    assert stored_builds == builds


def check_standings(url: str, position: int) -> None:
    """Check that the stored standings are complete and equal to those of a replay up to a position."""
    with open_ledger(url).reading() as connection:
        rows = [tuple(row) for row in connection.execute(text(STANDINGS_QUERY))]
    assert check_generation(rows) == position
    with rl.open(url) as ledger:
        view = ledger.at(known_at=position)
        digests = {ladder: digest for ladder, _, _, digest, *_ in rows}
        assert digests == {row.ladder: view.standings(row.ladder).digest for row in view.ladders().rows}


def append_without_end(url: str) -> None:
    """Append one game after the other without end."""
    for number in range(1_000_000):
        append_games(url, [build_numbered_game(f"busy-{number}", size=3 + number % 6)])


@pytest.mark.slow
def test_rebuild_ends_while_games_are_appended(rated_url: str) -> None:
    """A rebuild ends while games are appended, and its standings are those of its stated position."""
    child = fork_child(append_without_end, rated_url)
    try:
        position = read_head_position(rated_url)
        wait_until(lambda: read_head_position(rated_url) > position)
        for _ in range(3):
            rebuilt = rebuild_standings(rated_url)
            assert read_live_position(rated_url) == rebuilt.position
            assert position <= rebuilt.position <= read_head_position(rated_url)
            check_standings(rated_url, rebuilt.position)
            position = rebuilt.position
        # appending goes on after the rebuilds, as it did during them
        wait_until(lambda: read_head_position(rated_url) > position)
    finally:
        os.kill(child, signal.SIGKILL)
        wait_for_exits([child])
    check_standings(rated_url, rebuilt.position)


def rebuild_by_command(url: str) -> int:
    """Run `ratings rebuild` like a shell and return its exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    return run_command("rebuild", db=url)


def interrupt(child: int, seconds: float = 2) -> int:
    """Send Ctrl-C to a process and return its exit code, or -SIGKILL if it has not ended in time."""
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
def test_ctrl_c_ends_rebuild_within_two_seconds(
    cores: int, rated_url: str, monkeypatch: pytest.MonkeyPatch, ratings: Callable[..., Any], at_length: bool
) -> None:
    """Ctrl-C ends a rebuild within two seconds with exit code 130 and leaves no partial generation."""
    set_thresholds(monkeypatch, stored_rows=10, forking_cost=0)
    monkeypatch.setattr("ratings_ledger.ledger.processes.forking.available_cores", lambda: cores)
    seconds = measure_seconds(rated_url, rebuild_by_command)
    rng = random.Random(cores)
    codes = []
    for number in range(100 if at_length else 5):
        before = read_live_position(rated_url)
        append_games(rated_url, [build_numbered_game(f"more-{number}")])
        child = fork_child(rebuild_by_command, rated_url)
        time.sleep(rng.uniform(seconds / 10, seconds))
        codes.append(interrupt(child))
        assert read_live_position(rated_url) in (before, read_head_position(rated_url))
        assert codes[-1] != 0 or read_live_position(rated_url) == read_head_position(rated_url)
    assert set(codes) <= {0, 130}
    assert 130 in codes
    assert wait_for_exits([fork_child(rebuild_by_command, rated_url)]) == [0]
    assert ratings("verify", db=rated_url) == (0, "", "")


@contextmanager
def lock_store(url: str) -> Iterator[None]:
    """Hold a lock that every rebuild needs, until the end of the block."""
    with closing(open_plain_connection(url)) as connection:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("BEGIN IMMEDIATE")
        else:
            connection.execute("BEGIN")
            connection.execute("LOCK TABLE generations IN ACCESS EXCLUSIVE MODE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.slow
def test_ctrl_c_ends_waiting_rebuild(rated_url: str, ratings: Callable[..., Any]) -> None:
    """Ctrl-C ends a rebuild that is waiting for a lock."""
    rebuild_alone(rated_url)
    with lock_store(rated_url):
        child = fork_child(rebuild_by_command, rated_url)
        time.sleep(0.3)
        assert interrupt(child) == 130
    assert ratings("verify", db=rated_url) == (0, "", "")
    rebuild_alone(rated_url)


def replay_without_end(*_: Any) -> Any:
    """Compute for a long time without letting anything else run in the process."""
    with open(os.environ["WORKERS"], "a") as file:
        file.write(f"{os.getpid()}\n")
    return sum(range(10**9))


@pytest.fixture
def workers_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file with the ids of worker processes, whose replays never end."""
    path = tmp_path / "workers"
    path.touch()
    monkeypatch.setenv("WORKERS", str(path))
    set_thresholds(monkeypatch, forking_cost=0)
    monkeypatch.setattr("ratings_ledger.ledger.processes.forking.available_cores", lambda: 2)
    replace_stage(monkeypatch, "replay", replay_without_end)
    return path


def have_ended(processes: list[str]) -> bool:
    """Return whether these processes have ended, even if their parent has not waited for them."""
    states = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(processes)], capture_output=True, text=True)
    return all(state.startswith("Z") for state in states.stdout.split())


@pytest.mark.slow_cases
@pytest.mark.parametrize("ending_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_die_with_their_parent(
    ending_signal: signal.Signals,
    rated_url: str,
    workers_file: Path,
    ratings: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers end with their parent, however it ends, and do not keep the next rebuild out."""
    child = fork_child(rebuild_by_command, rated_url)
    wait_until(lambda: len(workers_file.read_text().split()) == 2)
    workers = workers_file.read_text().split()
    assert not have_ended(workers)
    if ending_signal == signal.SIGINT:
        assert interrupt(child) == 130
    else:
        os.kill(child, ending_signal)
        assert wait_for_exits([child]) == [-ending_signal]
    monkeypatch.undo()
    wait_until(lambda: wait_for_exits([fork_child(rebuild_by_command, rated_url)]) == [0])
    wait_until(lambda: have_ended(workers))
    assert ratings("verify", db=rated_url) == (0, "", "")
