"""Test worker processes that stall or die in the middle of a message: the parent does not wait for the rest."""

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

# `multiprocessing` sends a message of this size in a separate write after the length header
LONG_BYTES = 100_000
PATIENCE_SECONDS = 30


@pytest.fixture
def sent_mark(tmp_path: Path) -> Path:
    """Return the path of a file with the id of the worker that has sent half of a long message."""
    return tmp_path / "sent"


@pytest.fixture
def act_after_half(monkeypatch: pytest.MonkeyPatch, sent_mark: Path) -> Callable[[Callable[[], object]], None]:
    """Return a function that has workers do something once they have sent half of a long message."""
    send = Connection._send  # type: ignore[attr-defined]

    def patch_send(action: Callable[[], object]) -> None:
        def send_half(connection: Any, content: memoryview, *rest: Any) -> None:
            if len(content) < LONG_BYTES:
                return send(connection, content, *rest)
            send(connection, content[: LONG_BYTES // 2], *rest)
            unfinished = sent_mark.with_suffix(".unfinished")
            unfinished.write_text(str(os.getpid()))
            unfinished.rename(sent_mark)
            return action()

        monkeypatch.setattr(Connection, "_send", send_half)

    return patch_send


def run_reader(work: Callable[[Generator[bytes]], object], folder: Path) -> int:
    """Run a process that reads one short message from its workers and then calls `work` on the long ones.

    Return its exit code. It is a process of its own because the pool's thread could also keep it from exiting.
    """

    def build_message(number: int) -> bytes:
        if number == 0:
            return b"short"
        wait_until((folder / "read").exists)
        return bytes(LONG_BYTES)

    def read_with_time_limit() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE_SECONDS)
        with closing(run_forked(build_message, 4, cores=2)) as messages:
            assert next(messages) == b"short"
            (folder / "read").touch()
            work(messages)

    return wait_for_exits([fork_child(read_with_time_limit)])[0]


def test_closing_early_does_not_wait_for_workers(
    act_after_half: Callable[..., None], sent_mark: Path, tmp_path: Path
) -> None:
    """If the reader stops while a worker sends, for example because the disk is full, all processes end."""
    act_after_half(lambda: time.sleep(600))
    assert run_reader(lambda messages: wait_until(sent_mark.exists), tmp_path) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(sent_mark.read_text()), 0)


@pytest.mark.slow
def test_worker_killed_while_it_sends_is_lost(
    act_after_half: Callable[..., None], sent_mark: Path, tmp_path: Path
) -> None:
    """If a worker is killed while sending and another waits to send, the reader raises `WorkerLost` with the signal."""
    act_after_half(lambda: os.kill(os.getpid(), signal.SIGKILL))

    def read_on(messages: Generator[bytes]) -> None:
        with pytest.raises(WorkerLost, match="killed by signal 9"):
            next(messages)

    assert run_reader(read_on, tmp_path) == 0
    assert sent_mark.exists()
