"""A worker process that ends in the middle of a message, which the pool's thread has begun to read: nobody waits for
the rest of it."""

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import fork_child, wait_for_exits, wait_until

from ratings_ledger.ledger.errors import WorkerLost
from ratings_ledger.ledger.processes.forking import run_forked

# the library sends so much in one piece, after its length
LONG_BYTES = 100_000
PATIENCE_SECONDS = 30


@pytest.fixture
def sent_mark(tmp_path: Path) -> Path:
    """Return a file that is there once half of a long message is sent."""
    return tmp_path / "sent"


@pytest.fixture
def act_after_half(monkeypatch: pytest.MonkeyPatch, sent_mark: Path) -> Callable[[Callable[[], object]], None]:
    """Return a function that has workers do something once they have sent half of a long message."""
    send = Connection._send  # type: ignore[attr-defined]

    def has(then: Callable[[], object]) -> None:
        def send_half(connection: Any, content: memoryview, *rest: Any) -> None:
            if len(content) < LONG_BYTES:
                return send(connection, content, *rest)
            send(connection, content[: LONG_BYTES // 2], *rest)
            sent_mark.touch()
            return then()

        monkeypatch.setattr(Connection, "_send", send_half)

    return has


def end_of(work: Callable[[Generator[bytes]], object], folder: Path) -> int:
    """Return the exit code of a process that reads a short message of two workers, and then works with the rest, which
    are long. The pool's thread could keep this process from ending, too."""

    def build_message(number: int) -> bytes:
        if number == 0:
            return b"short"
        wait_until((folder / "read").exists)
        return bytes(LONG_BYTES)

    def limit_time() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE_SECONDS)
        with closing(run_forked(build_message, 4, cores=2)) as messages:
            assert next(messages) == b"short"
            (folder / "read").touch()
            work(messages)

    return wait_for_exits([fork_child(limit_time)])[0]


def test_work_that_is_given_up_is_not_waited_for(
    act_after_half: Callable[..., None], sent_mark: Path, tmp_path: Path
) -> None:
    """Given a reader that has enough, say because the disk is full, while a worker sends: the processes end at once."""
    act_after_half(lambda: time.sleep(600))
    assert end_of(lambda messages: wait_until(sent_mark.exists), tmp_path) == 0


@pytest.mark.slow
def test_worker_killed_while_it_sends_is_lost(
    act_after_half: Callable[..., None], sent_mark: Path, tmp_path: Path
) -> None:
    """Given a worker that is killed while it sends, and another that waits for its turn: it is told how it ended."""
    act_after_half(lambda: os.kill(os.getpid(), signal.SIGKILL))

    def read_on(messages: Generator[bytes]) -> None:
        with pytest.raises(WorkerLost, match="killed by signal 9"):
            next(messages)

    assert end_of(read_on, tmp_path) == 0
    assert sent_mark.exists()
