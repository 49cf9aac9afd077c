"""Work in forked processes, which know what this one knows, hold none of its locks, and never outlive it.

    for result in forked(work, 100, cores=2): ...     # work(0) to work(99), each as soon as it is done

Whichever worker is free takes the next number.
"""

import os
import signal
import traceback
from collections.abc import Callable, Generator
from multiprocessing.connection import Connection, wait
from typing import NoReturn

from ledger.errors import WorkerLost
from ledger.processes.forking import available_cores as available_cores
from ledger.processes.forking import begin_work, close_all_but, ended, fork, uninterrupted

# their numbers fit into the buffer of a pipe, so that writing them never waits
UNITS_MAX = 1_000
NUMBER_BYTES = 4
DONE, RAISED = b"+", b"!"


def forked(work: Callable[[int], bytes], units: int, cores: int) -> Generator[bytes]:
    """`work(number)` for every number below `units`, computed by `cores` processes, in the order they finish.

    Close the iterator if it is not read to the end: that ends the processes. Raises `WorkerLost` when one of them is
    killed, `RuntimeError` when `work` raises.
    """
    assert 0 < units <= UNITS_MAX
    processes: dict[Connection, int] = {}
    # the numbers still to do; a pipe that closes when this process is gone, however it ended
    (tasks, numbers), (life, alive) = os.pipe(), os.pipe()
    received = 0
    try:
        os.write(numbers, b"".join(number.to_bytes(NUMBER_BYTES, "big") for number in range(units)))
        os.close(numbers)
        with uninterrupted():
            for _ in range(min(cores, units)):
                reading, writing = os.pipe()
                if (process := fork()) == 0:
                    _work_and_exit(work, tasks, writing, life)
                os.close(writing)
                processes[Connection(reading, writable=False)] = process
        while processes:
            for results in wait(list(processes)):
                assert isinstance(results, Connection)
                try:
                    message = results.recv_bytes()
                except (EOFError, OSError):
                    ended(processes.pop(results))
                    results.close()
                    continue
                if message[:1] == RAISED:
                    raise RuntimeError(f"a worker process failed: {message[1:].decode()}")
                received += 1
                yield message[1:]
        if received != units:
            raise WorkerLost(f"the worker processes ended after {received} of {units} parts of their work")
    finally:
        for results, process in processes.items():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            results.close()
        for pipe in (tasks, life, alive):
            os.close(pipe)


def _work_and_exit(work: Callable[[int], bytes], tasks: int, writing: int, life: int) -> NoReturn:
    status = 1
    try:
        close_all_but(tasks, writing, life)
        begin_work(life)
        results = Connection(writing, readable=False)
        try:
            while number := os.read(tasks, NUMBER_BYTES):
                results.send_bytes(DONE + work(int.from_bytes(number, "big")))
            status = 0
        except MemoryError:  # the parent reports it, like a process killed for lack of memory
            pass
        except Exception:
            results.send_bytes(RAISED + traceback.format_exc().encode())
    finally:
        # nothing of the parent's may be cleaned up here: no connection closed, no buffer written twice
        os._exit(status)
