"""Storms: many write and two rebuild while connections, processes, servers and locks are taken away from them.

Nothing that was acknowledged is lost, the log has no gap, the live pointer is on a whole generation at every moment,
and nobody is told of a bug or of damage. What happened is written to standard output; `pytest -s` shows it.
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
# what a batch came to: how many were appended, and the position of the last
Came = tuple[int, int]
RULESET = Path(__file__).parents[2] / "projections" / "shipped" / "club-catan-elo-1.toml"
BATCH_SIZES = {"one by one": 1, "in batches": 7, "record": 1, "import": 20}
UNFINISHED = "SELECT count(*) FROM live_generation JOIN generations USING (generation) WHERE finished_at IS NULL"
# a backend of some name, in the middle of something if wanted
BACKEND = """SELECT pid, state FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s
AND (state <> 'idle' OR %s) ORDER BY random() LIMIT 1"""


def note(path: Path, **said: Any) -> None:
    """Add a line to a file, in one step, so that a process that is killed leaves no half of one."""
    with open(path, "ab", buffering=0) as file:
        file.write(json.dumps(said).encode() + b"\n")


def noted(folder: Path, role: str) -> list[dict[str, Any]]:
    """What the processes of a role wrote down."""
    return [json.loads(line) for path in folder.glob(f"{role} *") for line in path.read_text().splitlines()]


def sizes(number: int, count: int) -> list[int]:
    """How many play each game of a batch."""
    return [3 + (number + place) % 6 for place in range(count)]


def write(url: str, kind: str, life: int, folder: Path, ratings: Ratings) -> None:
    """Append batch after batch until told to stop, each until it is acknowledged, and note what was."""
    path, number = folder / f"writer {kind} {life}", 0
    url = named(url, "writer")
    send: Callable[[dict[str, int]], Came | None]
    if kind in ("record", "import"):
        send = partial(by_command, ratings, url, path)
    else:
        send = partial(by_library, {}, url, path)
    while not (folder / "stop").exists():
        games = {
            f"{kind}-{life}-{number}-{place}".replace(" ", ""): size
            for place, size in enumerate(sizes(number, BATCH_SIZES[kind]))
        }
        came = send(games)
        if came is None:
            time.sleep(0.05)
            continue
        note(path, games=games, appended=came[0], last=came[1])
        number += 1
        time.sleep(0.01)


def by_library(opened: dict[str, Ledger], url: str, path: Path, games: dict[str, int]) -> Came | None:
    """As a program does that keeps its connection; None if it failed as it may."""
    try:
        if url not in opened:
            opened[url] = open_ledger(url, keep_open=True)
        drafts = [build_numbered_game(name, size) for name, size in games.items()]
        done = append(opened[url], drafts, by="test", clock=clock.now)
    except LedgerError as problem:
        note(path, failed=str(problem), exit_code=problem.exit_code)
        return None
    assert not done.refused
    return done.appended, done.head.position


def by_command(ratings: Ratings, url: str, path: Path, games: dict[str, int]) -> Came | None:
    """As somebody does on a terminal; None if it failed as it may."""
    events = [build_game_event(name, size) for name, size in games.items()]
    command = ("record", "--format", "json") if len(events) == 1 else ("import", "-", "--format", "json")
    told = ratings(*command, "--by", "test", db=url, input="\n".join(map(json.dumps, events)))
    if told.exit_code != 0:
        note(path, failed=told.stderr, exit_code=told.exit_code)
        return None
    found = json.loads(told.stdout)
    assert found["appended"] + found["existing"] == len(games), told
    # an import ends with the record of its batch
    return found["appended"], found["head"] - (found["appended"] > 0 and len(events) > 1)


def rebuild_again_and_again(url: str, number: int, life: int, folder: Path, ratings: Ratings) -> None:
    """`ratings rebuild` until told to stop; SIGUSR1 takes the lock on a file away from it."""
    path = folder / f"rebuilder {number} {life}"
    url = named(url, "rebuilder")
    signal.signal(signal.SIGUSR1, lambda *_: note(folder / f"lock {number} {life}", taken=take_rebuild_lock(url)))
    while not (folder / "stop").exists():
        note(path, begun=True)
        told = ratings("rebuild", db=url)
        note(path, exit_code=told.exit_code, **({"failed": told.stderr} if told.exit_code else {}))
        if told.exit_code:
            time.sleep(0.05)


def finished_rebuilds(folder: Path) -> int:
    """How many rebuilds were promoted."""
    return sum(done.get("exit_code") == 0 for done in noted(folder, "rebuilder"))


def watch(url: str, folder: Path) -> None:
    """Look at the standings as another program does, until told to stop; fail at anything but a whole generation."""
    last = looks = 0
    while not (folder / "stop").exists():
        try:
            with closing(open_plain_connection(named(url, "watcher"))) as connection:
                while not (folder / "stop").exists():
                    position = check_generation(connection.execute(STANDINGS_QUERY).fetchall()) or 0
                    assert position >= last
                    last = position
                    assert connection.execute(UNFINISHED).fetchone() == (0,)
                    looks += 1
                    time.sleep(0.005)
        except (sqlite3.OperationalError, psycopg.OperationalError):  # the server is gone, or a commit is under way
            time.sleep(0.02)
    note(folder / "watcher 1", looks=looks, last=last)


def named(url: str, name: str) -> str:
    """The URL of a connection that has a name, where connections can have one."""
    return f"{url}&application_name={name}" if url.startswith("postgresql") else url


class Storm:
    """What strikes: the processes that write and rebuild, and how often each thing happened to them."""

    def __init__(self, url: str, folder: Path, ratings: Ratings, server: OwnServer | None) -> None:
        self.url, self.folder, self.ratings, self.server = url, folder, ratings, server
        self.chance, self.struck, self.lives = random.Random(7), Counter[str](), Counter[tuple[str, str]]()
        self.children = {role: self.born(role) for role in [("writer", kind) for kind in BATCH_SIZES]}
        self.children |= {role: self.born(role) for role in (("rebuilder", "1"), ("rebuilder", "2"))}
        self.watcher = fork_child(watch, url, folder)

    def born(self, role: tuple[str, str]) -> int:
        """Start a process anew."""
        self.lives[role] += 1
        work = write if role[0] == "writer" else rebuild_again_and_again
        return fork_child(work, self.url, role[1], self.lives[role], self.folder, self.ratings)

    def end_one(self, number: int) -> None:
        """Take somebody's connection, or his life where there are no connections."""
        name = ("writer", "rebuilder")[number % 2]
        if self.server is None:
            role = self.chance.choice([role for role in self.children if role[0] == name])
            os.kill(self.children[role], signal.SIGKILL)
            assert wait_for_exits([self.children[role]]) == [-signal.SIGKILL]
            self.children[role] = self.born(role)
            self.struck[f"{name}s killed"] += 1
            return
        with psycopg.connect(self.url, autocommit=True) as connection:
            wait_until(lambda: self.terminated(connection, name, number % 10 == 0))

    def terminated(self, connection: psycopg.Connection, name: str, idle_too: bool) -> bool:
        found = connection.execute(BACKEND, (name, idle_too)).fetchone()
        if found is None:
            return False
        if connection.execute("SELECT pg_terminate_backend(%s)", found[:1]).fetchone() != (True,):
            return False
        self.struck[f"{name}s terminated, {found[1]}"] += 1
        return True

    def kill_server(self, number: int) -> None:
        """End all of the server's processes, start it again, and see that everybody goes on."""
        if self.server is None:
            return
        self.server.kill()
        time.sleep(self.chance.uniform(0, 0.5))
        self.server.start()
        self.struck["servers killed"] += 1
        before = len(noted(self.folder, "writer"))
        wait_until(lambda: len(noted(self.folder, "writer")) > before + len(BATCH_SIZES))

    def take_lock(self, number: int) -> None:
        """Take the lock of rebuilds from whoever holds it."""
        if self.server is None:
            before = self.locks_taken()
            wait_until(lambda: self.asked_to_lose() and self.locks_taken() > before)
        else:
            wait_until(lambda: take_rebuild_lock(self.url) > 0)
        self.struck["locks taken"] += 1

    def asked_to_lose(self) -> bool:
        for role, child in self.children.items():
            if role[0] == "rebuilder":
                os.kill(child, signal.SIGUSR1)
        time.sleep(self.chance.uniform(0.01, 0.05))
        return True

    def locks_taken(self) -> int:
        return sum(one["taken"] for one in noted(self.folder, "lock"))

    def lull(self) -> None:
        """Wait until a rebuild has come to its end."""
        before = finished_rebuilds(self.folder)
        wait_until(lambda: finished_rebuilds(self.folder) > before, 60)

    def calm(self) -> None:
        """Let all come to their end by themselves, and see that they do."""
        (self.folder / "stop").touch()
        children, self.children = [*self.children.values(), self.watcher], {}
        assert wait_for_exits(children) == [0] * len(children)

    def end(self) -> None:
        """Kill whoever is left."""
        for child in [*self.children.values(), self.watcher] if self.children else []:
            os.kill(child, signal.SIGKILL)


@pytest.fixture
def struck_url(store_kind: str, tmp_path: Path, ratings: Ratings) -> Iterator[tuple[str, OwnServer | None]]:
    """A ledger with a ruleset, of each kind, and the server if there is one."""
    if store_kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'ratings.db'}"
        make(ratings, url)
        yield url, None
        return
    with start_own_server() as server:
        make(ratings, server.url)
        yield server.url, server


def make(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    assert ratings("rules", "publish", RULESET, db=url).exit_code == 0


def assert_kept(url: str, folder: Path) -> int:
    """That the log has everything that was acknowledged, where it was said to be; gives how many events that are."""
    stored = read_all_records(url)
    assert list(stored) == list(range(1, len(stored) + 1))
    places = {json.loads(record)["id"]: position for position, record in stored.items()}
    assert len(places) == len(stored)
    count = 0
    for batch in noted(folder, "writer"):
        games = batch.get("games", {})
        drafts = [build_numbered_game(name, size) for name, size in games.items()]
        assert all(has_same_content(stored[places[draft.event_id]], draft) for draft in drafts)
        found = [places[draft.event_id] for draft in drafts]
        assert found == sorted(found)
        # those that were there already had been appended without that anybody could be told
        if games and batch["appended"] == len(games):
            assert found == list(range(batch["last"] - len(games) + 1, batch["last"] + 1))
        count += len(games)
    return count


@pytest.mark.timeout(1_800)
def test_storm_loses_no_event(
    struck_url: tuple[str, OwnServer | None], tmp_path: Path, ratings: Ratings, at_length: bool
) -> None:
    """Writes and rebuilds under constant kills lose no event and show only whole generations."""
    url, server = struck_url
    folder = tmp_path / "notes"
    folder.mkdir()
    strikes = {Storm.end_one: 100 if at_length else 6, Storm.kill_server: 10 if at_length else 1}
    strikes[Storm.take_lock] = 20 if at_length else 2
    # until a rebuilder has said what to do then
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    storm = Storm(url, folder, ratings, server)
    try:
        storm.lull()
        order = [strike for strike, times in strikes.items() for _ in range(times)]
        storm.chance.shuffle(order)
        for number, strike in enumerate(order):
            time.sleep(storm.chance.uniform(0, 0.3 if at_length else 0.15))
            strike(storm, number)
            if number % 8 == 7:
                storm.lull()
        storm.calm()
    finally:
        storm.end()
        signal.signal(signal.SIGUSR1, before)
    acknowledged = assert_kept(url, folder)
    assert ratings("rebuild", db=url).exit_code == 0
    assert ratings("verify", db=url) == (0, "", "")
    refusals = told_plainly(folder)
    rebuilds = noted(folder, "rebuilder")
    finished = finished_rebuilds(folder)
    told = [
        f"{dict(storm.struck)}", f"{acknowledged:,} events acknowledged, {len(read_all_records(url)):,} stored",
        f"rebuilds: {sum('begun' in done for done in rebuilds)} begun, {finished} finished",
        *(f"{times} x {text}" for text, times in refusals.most_common()), f"{noted(folder, 'watcher')}",
    ]  # fmt: skip
    sys.stdout.write("\n".join(["", *told, ""]))
    assert acknowledged > 10 * len(order)
    assert finished > len(order) // 10
    in_the_middle = {name: times for name, times in storm.struck.items() if "idle" not in name.split(", ")}
    for name in ("writers", "rebuilders", "locks"):
        assert sum(times for struck, times in in_the_middle.items() if struck.startswith(name)) >= len(order) // 8


def told_plainly(folder: Path) -> Counter[str]:
    """What refusals said, with how often, after a look that each of them is of a kind that is documented."""
    refusals: Counter[str] = Counter()
    for role in ("writer", "rebuilder"):
        for done in noted(folder, role):
            if text := done.get("failed"):
                assert "bug" not in text, text
                assert "Traceback" not in text, text
                assert done["exit_code"] == 3 or (role, "another rebuild of" in text) == ("rebuilder", True), done
                text = re.sub(r"postgresql://\S+|sqlite:///\S+|/\S+/\S+", "...", text.strip().removeprefix("ratings: "))
                refusals[f"{role}: {re.sub('[0-9]+', 'N', text)[:150]}"] += 1
    return refusals
