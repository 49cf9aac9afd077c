"""Storms: several processes write and rebuild while connections, processes, servers and locks are taken away.

No acknowledged event is lost, the log has no gap, the live pointer is on a complete generation at every moment, and
no message reports a bug or damage. The summary is written to standard output; `pytest -s` shows it.
"""

import json
import os
import random
import re
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fault_helpers import (
    STANDINGS_QUERY,
    build_game_event,
    build_numbered_game,
    check_generation,
    fork_child,
    open_plain_connection,
    take_rebuild_lock,
    wait_for_exits,
    wait_until,
)
from ledgers import read_all_records
from stores import OwnServer, start_own_server

from ratings_ledger import LedgerError
from ratings_ledger.ledger import clock
from ratings_ledger.ledger.store.appending import append, has_same_content
from ratings_ledger.ledger.store.opening import Ledger, open_ledger

pytestmark = pytest.mark.slow

Ratings = Callable[..., Any]
# the outcome of a batch: the number of appended events and the last position
BatchOutcome = tuple[int, int]
RULESET = Path(__file__).parents[2] / "projections" / "shipped" / "club-catan-elo-1.toml"
BATCH_SIZES = {"one by one": 1, "in batches": 7, "record": 1, "import": 20}
UNFINISHED = "SELECT count(*) FROM live_generation JOIN generations USING (generation) WHERE finished_at IS NULL"
# a random backend with this application name, busy unless idle ones are allowed
RANDOM_BACKEND = """SELECT pid, state FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s
AND (state <> 'idle' OR %s) ORDER BY random() LIMIT 1"""


def add_note(path: Path, **members: Any) -> None:
    """Add a line to a file in one write, so that a killed process leaves no partial line."""
    with open(path, "ab", buffering=0) as file:
        file.write(json.dumps(members).encode() + b"\n")


def read_notes(folder: Path, role: str) -> list[dict[str, Any]]:
    """Return the notes of all processes of a role."""
    return [json.loads(line) for path in folder.glob(f"{role} *") for line in path.read_text().splitlines()]


def list_sizes(number: int, count: int) -> list[int]:
    """Return the number of players of each game of a batch."""
    return [3 + (number + place) % 6 for place in range(count)]


def write_batches(url: str, kind: str, life: int, folder: Path, ratings: Ratings) -> None:
    """Append batch after batch until the stop file exists, repeat each until it is acknowledged, and note the
    outcome."""
    path, number = folder / f"writer {kind} {life}", 0
    url = add_application_name(url, "writer")
    send_batch: Callable[[dict[str, int]], BatchOutcome | None]
    if kind in ("record", "import"):
        send_batch = partial(append_by_command, ratings, url, path)
    else:
        send_batch = partial(append_by_library, {}, url, path)
    while not (folder / "stop").exists():
        games = {
            f"{kind}-{life}-{number}-{place}".replace(" ", ""): size
            for place, size in enumerate(list_sizes(number, BATCH_SIZES[kind]))
        }
        outcome = send_batch(games)
        if outcome is None:
            time.sleep(0.05)
            continue
        add_note(path, games=games, appended=outcome[0], last=outcome[1])
        number += 1
        time.sleep(0.01)


def append_by_library(opened: dict[str, Ledger], url: str, path: Path, games: dict[str, int]) -> BatchOutcome | None:
    """Append games like a program that keeps its connection open; return None after an allowed failure."""
    try:
        if url not in opened:
            opened[url] = open_ledger(url, keep_open=True)
        drafts = [build_numbered_game(name, size) for name, size in games.items()]
        result = append(opened[url], drafts, by="test", clock=clock.now)
    except LedgerError as problem:
        add_note(path, failed=str(problem), exit_code=problem.exit_code)
        return None
    assert not result.refused
    return result.appended, result.head.position


def append_by_command(ratings: Ratings, url: str, path: Path, games: dict[str, int]) -> BatchOutcome | None:
    """Append games by the command line; return None after an allowed failure."""
    events = [build_game_event(name, size) for name, size in games.items()]
    command = ("record", "--format", "json") if len(events) == 1 else ("import", "-", "--format", "json")
    result = ratings(*command, "--by", "test", db=url, input="\n".join(map(json.dumps, events)))
    if result.exit_code != 0:
        add_note(path, failed=result.stderr, exit_code=result.exit_code)
        return None
    output = json.loads(result.stdout)
    assert output["appended"] + output["existing"] == len(games), result
    # an import ends with the record of its batch
    return output["appended"], output["head"] - (output["appended"] > 0 and len(events) > 1)


def rebuild_repeatedly(url: str, name: str, life: int, folder: Path, ratings: Ratings) -> None:
    """Run `ratings rebuild` until the stop file exists; SIGUSR1 takes the process's own file lock away."""
    path = folder / f"rebuilder {name} {life}"
    url = add_application_name(url, "rebuilder")
    signal.signal(signal.SIGUSR1, lambda *_: add_note(folder / f"lock {name} {life}", taken=take_rebuild_lock(url)))
    while not (folder / "stop").exists():
        add_note(path, begun=True)
        result = ratings("rebuild", db=url)
        add_note(path, exit_code=result.exit_code, **({"failed": result.stderr} if result.exit_code else {}))
        if result.exit_code:
            time.sleep(0.05)


def count_finished_rebuilds(folder: Path) -> int:
    """Return the number of rebuilds that ended with exit code 0."""
    return sum(note.get("exit_code") == 0 for note in read_notes(folder, "rebuilder"))


def watch_standings(url: str, folder: Path) -> None:
    """Read the standings as another program until the stop file exists; fail at anything but a complete generation."""
    last = looks = 0
    while not (folder / "stop").exists():
        try:
            with closing(open_plain_connection(add_application_name(url, "watcher"))) as connection:
                while not (folder / "stop").exists():
                    position = check_generation(connection.execute(STANDINGS_QUERY).fetchall()) or 0
                    assert position >= last
                    last = position
                    assert connection.execute(UNFINISHED).fetchone() == (0,)
                    looks += 1
                    time.sleep(0.005)
        except (sqlite3.OperationalError, psycopg.OperationalError):  # the server is gone, or a commit is under way
            time.sleep(0.02)
    add_note(folder / "watcher 1", looks=looks, last=last)


def add_application_name(url: str, name: str) -> str:
    """Return the URL with an application name, if it is one of PostgreSQL."""
    return f"{url}&application_name={name}" if url.startswith("postgresql") else url


class Storm:
    """The processes that write and rebuild, and the number of times that each fault has struck them."""

    def __init__(self, url: str, folder: Path, ratings: Ratings, server: OwnServer | None) -> None:
        self.url, self.folder, self.ratings, self.server = url, folder, ratings, server
        self.random, self.strikes, self.lives = random.Random(7), Counter[str](), Counter[tuple[str, str]]()
        self.children = {role: self.start_process(role) for role in [("writer", kind) for kind in BATCH_SIZES]}
        self.children |= {role: self.start_process(role) for role in (("rebuilder", "1"), ("rebuilder", "2"))}
        self.watcher = fork_child(watch_standings, url, folder)

    def start_process(self, role: tuple[str, str]) -> int:
        """Start a process of a role."""
        self.lives[role] += 1
        work = write_batches if role[0] == "writer" else rebuild_repeatedly
        return fork_child(work, self.url, role[1], self.lives[role], self.folder, self.ratings)

    def interrupt_process(self, number: int) -> None:
        """Terminate the connection of a random writer or rebuilder; with SQLite, kill its process."""
        name = ("writer", "rebuilder")[number % 2]
        if self.server is None:
            role = self.random.choice([role for role in self.children if role[0] == name])
            os.kill(self.children[role], signal.SIGKILL)
            assert wait_for_exits([self.children[role]]) == [-signal.SIGKILL]
            self.children[role] = self.start_process(role)
            self.strikes[f"{name}s killed"] += 1
            return
        with psycopg.connect(self.url, autocommit=True) as connection:
            wait_until(lambda: self.terminate_backend(connection, name, number % 10 == 0))

    def terminate_backend(self, connection: psycopg.Connection, name: str, idle_too: bool) -> bool:
        backend = connection.execute(RANDOM_BACKEND, (name, idle_too)).fetchone()
        if backend is None:
            return False
        if connection.execute("SELECT pg_terminate_backend(%s)", backend[:1]).fetchone() != (True,):
            return False
        self.strikes[f"{name}s terminated, {backend[1]}"] += 1
        return True

    def kill_server(self, number: int) -> None:
        """Kill all of the server's processes and restart it.

        Wait until there are more new notes of writers than writers.
        """
        if self.server is None:
            return
        self.server.kill()
        time.sleep(self.random.uniform(0, 0.5))
        self.server.start()
        self.strikes["servers killed"] += 1
        before = len(read_notes(self.folder, "writer"))
        wait_until(lambda: len(read_notes(self.folder, "writer")) > before + len(BATCH_SIZES))

    def take_lock(self, number: int) -> None:
        """Take the rebuild lock from its holder."""
        if self.server is None:
            before = self.count_taken_locks()
            wait_until(lambda: self.ask_to_lose_locks() and self.count_taken_locks() > before)
        else:
            wait_until(lambda: take_rebuild_lock(self.url) > 0)
        self.strikes["locks taken"] += 1

    def ask_to_lose_locks(self) -> bool:
        for role, child in self.children.items():
            if role[0] == "rebuilder":
                os.kill(child, signal.SIGUSR1)
        time.sleep(self.random.uniform(0.01, 0.05))
        return True

    def count_taken_locks(self) -> int:
        return sum(note["taken"] for note in read_notes(self.folder, "lock"))

    def wait_for_rebuild(self) -> None:
        """Wait until a rebuild has finished."""
        before = count_finished_rebuilds(self.folder)
        wait_until(lambda: count_finished_rebuilds(self.folder) > before, 60)

    def stop_all(self) -> None:
        """Stop all processes and assert that each ends successfully."""
        (self.folder / "stop").touch()
        children, self.children = [*self.children.values(), self.watcher], {}
        assert wait_for_exits(children) == [0] * len(children)

    def kill_all(self) -> None:
        """Kill the processes that are left."""
        for child in [*self.children.values(), self.watcher] if self.children else []:
            os.kill(child, signal.SIGKILL)


@pytest.fixture
def storm_target(store_kind: str, tmp_path: Path, ratings: Ratings) -> Iterator[tuple[str, OwnServer | None]]:
    """Yield the URL of a ledger with a ruleset, in each kind of store in turn, and the server if there is one."""
    if store_kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'ratings.db'}"
        create_with_ruleset(ratings, url)
        yield url, None
        return
    with start_own_server() as server:
        create_with_ruleset(ratings, server.url)
        yield server.url, server


def create_with_ruleset(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    assert ratings("rules", "publish", RULESET, db=url).exit_code == 0


def assert_acknowledged_events_kept(url: str, folder: Path) -> int:
    """Assert that the log has every acknowledged event at its acknowledged position, and return their number."""
    stored = read_all_records(url)
    assert list(stored) == list(range(1, len(stored) + 1))
    position_by_id = {json.loads(record)["id"]: position for position, record in stored.items()}
    assert len(position_by_id) == len(stored)
    count = 0
    for batch in read_notes(folder, "writer"):
        games = batch.get("games", {})
        drafts = [build_numbered_game(name, size) for name, size in games.items()]
        assert all(has_same_content(stored[position_by_id[draft.event_id]], draft) for draft in drafts)
        positions = [position_by_id[draft.event_id] for draft in drafts]
        assert positions == sorted(positions)
        # events that already existed come from an attempt whose acknowledgement was lost
        if games and batch["appended"] == len(games):
            assert positions == list(range(batch["last"] - len(games) + 1, batch["last"] + 1))
        count += len(games)
    return count


@pytest.mark.timeout(1_800)
def test_storm_loses_no_event(
    storm_target: tuple[str, OwnServer | None], tmp_path: Path, ratings: Ratings, at_length: bool
) -> None:
    """Writes and rebuilds under constant faults lose no event and show only complete generations."""
    url, server = storm_target
    folder = tmp_path / "notes"
    folder.mkdir()
    strikes = {Storm.interrupt_process: 100 if at_length else 6, Storm.kill_server: 10 if at_length else 1}
    strikes[Storm.take_lock] = 20 if at_length else 2
    # forked rebuilders inherit this, so that they ignore the signal until they have installed their handler
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    storm = Storm(url, folder, ratings, server)
    try:
        storm.wait_for_rebuild()
        order = [strike for strike, times in strikes.items() for _ in range(times)]
        storm.random.shuffle(order)
        for number, strike in enumerate(order):
            time.sleep(storm.random.uniform(0, 0.3 if at_length else 0.15))
            strike(storm, number)
            if number % 8 == 7:
                storm.wait_for_rebuild()
        storm.stop_all()
    finally:
        storm.kill_all()
        signal.signal(signal.SIGUSR1, before)
    acknowledged = assert_acknowledged_events_kept(url, folder)
    assert ratings("rebuild", db=url).exit_code == 0
    assert ratings("verify", db=url) == (0, "", "")
    failures = count_failures(folder)
    rebuilds = read_notes(folder, "rebuilder")
    finished = count_finished_rebuilds(folder)
    summary = [
        f"{dict(storm.strikes)}",
        f"{acknowledged:,} events acknowledged, {len(read_all_records(url)):,} stored",
        f"rebuilds: {sum('begun' in done for done in rebuilds)} begun, {finished} finished",
        *(f"{times} x {text}" for text, times in failures.most_common()),
        f"{read_notes(folder, 'watcher')}",
    ]
    sys.stdout.write("\n".join(["", *summary, ""]))
    assert acknowledged > 10 * len(order)
    assert finished > len(order) // 10
    busy_strikes = {name: times for name, times in storm.strikes.items() if "idle" not in name.split(", ")}
    for name in ("writers", "rebuilders", "locks"):
        assert sum(times for struck, times in busy_strikes.items() if struck.startswith(name)) >= len(order) // 8


def count_failures(folder: Path) -> Counter[str]:
    """Return the messages of failures with their frequency, and assert that each is of a documented kind."""
    refusals: Counter[str] = Counter()
    for role in ("writer", "rebuilder"):
        for note in read_notes(folder, role):
            if text := note.get("failed"):
                assert "bug" not in text, text
                assert "Traceback" not in text, text
                assert note["exit_code"] == 3 or (role, "another rebuild, rollback or upgrade of" in text) == (
                    "rebuilder",
                    True,
                ), note
                text = re.sub(r"postgresql://\S+|sqlite:///\S+|/\S+/\S+", "...", text.strip().removeprefix("ratings: "))
                refusals[f"{role}: {re.sub('[0-9]+', 'N', text)[:150]}"] += 1
    return refusals
