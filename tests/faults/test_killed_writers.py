"""Kill writers by `kill -9` at random instants, and run many writers at once while a reader tails the log."""

import json
import os
import random
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256

import pytest
from fault_helpers import append_games, build_numbered_game, fork_child, list_findings, wait_for_exits
from ledgers import read_all_records

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.log import read_records
from ratings_ledger.ledger.store.opening import open_ledger

WRITERS = 4
EVENTS_BETWEEN_KILLS = 24
BATCH_EVENTS_MAX = 8


def build_batch(writer: int, number: int) -> list[Draft]:
    """Return the batch with this number of a writer; equal arguments give equal batches."""
    return [
        build_numbered_game(f"{writer}-{number}-{index}")
        for index in range(1 + (writer + number * 5) % BATCH_EVENTS_MAX)
    ]


def commit_batches(url: str, writer: int, number: int, pipe: int) -> None:
    """Append the batches from `number` on, and acknowledge each in the pipe once it is committed.

    A line of the pipe has the writer, the number of the batch, and `position:hash` for each of its records.
    """
    ledger = open_ledger(url)
    while True:
        result = append(ledger, build_batch(writer, number), by="test", clock=clock.now)
        assert not result.refused
        # nothing is appended if the writer's previous process was killed between a commit and its acknowledgement
        with ledger.reading() as connection:
            pages = list(read_records(connection, result.head.position - result.appended, result.head.position))
        digests = (f"{position}:{sha256(record.encode()).hexdigest()}" for page in pages for position, record in page)
        os.write(pipe, f"{writer} {number} {' '.join(digests)}\n".encode())
        number += 1


@contextmanager
def open_line_pipe() -> Iterator[tuple[int, Callable[[float], list[str]]]]:
    """Yield the writing end of a pipe, and a function that waits up to some seconds for lines and returns them."""
    reading, writing = os.pipe()
    rest = b""

    def read_lines(seconds: float) -> list[str]:
        nonlocal rest
        while select.select([reading], [], [], seconds)[0]:
            rest += os.read(reading, 65_536)
            seconds = 0
        *lines, rest = rest.split(b"\n")
        return [line.decode() for line in lines]

    try:
        yield writing, read_lines
    finally:
        os.close(reading)
        os.close(writing)


def kill_writers(url: str, kills: int, rng: random.Random) -> tuple[dict[int, str], list[int]]:
    """Kill this many writers; return the acknowledged hashes by position, and each writer's next batch number."""
    acknowledged: dict[int, str] = {}
    next_batches = [0] * WRITERS

    def note_acknowledgements(lines: list[str]) -> int:
        """Note these lines of the pipe, and return how many events they acknowledge."""
        for line in lines:
            writer, number, *entries = line.split()
            next_batches[int(writer)] = int(number) + 1
            for position, digest in (entry.split(":") for entry in entries):
                assert int(position) not in acknowledged, "two writers were given one position"
                acknowledged[int(position)] = digest
        return sum(line.count(":") for line in lines)

    with open_line_pipe() as (pipe, read_lines):
        for _ in range(kills // WRITERS):
            children = [
                fork_child(commit_batches, url, writer, next_batches[writer], pipe) for writer in range(WRITERS)
            ]
            rng.shuffle(children)
            new_events, end = 0, time.monotonic() + 60
            try:
                while new_events < EVENTS_BETWEEN_KILLS and time.monotonic() < end:
                    new_events += note_acknowledgements(read_lines(1))
            finally:
                for child in children:
                    # the others go on while one is dead
                    time.sleep(rng.uniform(0, 0.006))
                    os.kill(child, signal.SIGKILL)
                exit_codes = wait_for_exits(children)
            assert exit_codes == [-signal.SIGKILL] * WRITERS
            assert new_events >= EVENTS_BETWEEN_KILLS, "the writers make too little progress"
            note_acknowledgements(read_lines(0))
    return acknowledged, next_batches


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_kill_9_loses_no_acknowledged_event(ledger_url: str, at_length: bool) -> None:
    """Writers killed by `kill -9` lose no acknowledged event and leave no partial batch."""
    kills = 2_000 if at_length else 60
    acknowledged, next_batches = kill_writers(ledger_url, kills, random.Random(kills))
    stored = read_all_records(ledger_url)
    assert len(acknowledged) >= EVENTS_BETWEEN_KILLS * kills // WRITERS
    # every acknowledged event with the same bytes, no gap, no duplicate
    assert {position: sha256(stored[position].encode()).hexdigest() for position in acknowledged} == acknowledged
    assert list(stored) == list(range(1, len(stored) + 1))
    ids = [json.loads(record)["id"] for record in stored.values()]
    assert len(ids) == len(set(ids))
    assert list_findings(ledger_url) == []
    # a batch without an acknowledgement is stored completely or not at all, and is the last batch of its writer
    for writer, number in enumerate(next_batches):
        for acknowledged_number in range(number):
            assert {draft.event_id for draft in build_batch(writer, acknowledged_number)} <= set(ids)
        assert len({draft.event_id in ids for draft in build_batch(writer, number)}) == 1
    expected = sum(len(build_batch(w, number)) for w in range(WRITERS) for number in range(next_batches[w]))
    last_batches = (build_batch(writer, number) for writer, number in enumerate(next_batches))
    unacknowledged = sum(len(batch) for batch in last_batches if batch[0].event_id in ids)
    assert len(ids) == expected + unacknowledged


def append_singly(url: str, writer: int, count: int) -> None:
    ledger = open_ledger(url, keep_open=True)
    for number in range(count):
        result = append(ledger, [build_numbered_game(f"{writer}-{number}")], by="test", clock=clock.now)
        assert result.appended == 1


@pytest.mark.slow
def test_tailing_reader_misses_no_event(ledger_url: str, at_length: bool) -> None:
    """A reader that tails the log while eight processes write misses no event."""
    writer_count = 8
    events_per_writer = 500 if at_length else 100
    children = [fork_child(append_singly, ledger_url, writer, events_per_writer) for writer in range(writer_count)]
    ledger = open_ledger(ledger_url)
    tailed: list[tuple[int, str]] = []
    running = set(children)
    while running:
        # before reading, find the writers that have ended, so that everything that they wrote is read
        running -= {child for child in running if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)}
        with ledger.reading() as connection:
            for page in read_records(connection, after=len(tailed)):
                tailed += page
        time.sleep(0.02)
    assert wait_for_exits(children) == [0] * writer_count
    assert [position for position, _ in tailed] == list(range(1, writer_count * events_per_writer + 1))
    assert tailed == list(read_all_records(ledger_url).items())
    ids = {json.loads(record)["id"] for _, record in tailed}
    assert ids == {f"game:g-{writer}-{number}" for writer in range(writer_count) for number in range(events_per_writer)}
    assert list_findings(ledger_url) == []


def test_identical_batches_are_appended_once(ledger_url: str) -> None:
    """When several writers append the same batch at once, it is stored once."""
    drafts = [build_numbered_game(number) for number in range(40)]
    children = [fork_child(append_games, ledger_url, drafts) for _ in range(WRITERS)]
    assert wait_for_exits(children) == [0] * WRITERS
    assert [json.loads(record)["id"] for record in read_all_records(ledger_url).values()] == [
        d.event_id for d in drafts
    ]
