"""A Dask cluster of two workers for the fault tests, with faults that a test chooses for each stage of a task."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fault_helpers import wait_until

PRELOAD = Path(__file__).with_name("dask_preload.py")
PART_GAMES, WINDOW_GAMES = 64, 150
ENVIRONMENT = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "info", "PYTHONWARNINGS": "ignore"}


class LocalCluster:
    """A scheduler and some workers on loopback; `folder` has their logs and the faults to come."""

    def __init__(self, folder: Path, failures: int) -> None:
        folder.mkdir()
        self.folder, self.workers = folder, list[subprocess.Popen[bytes]]()
        self._env = (
            os.environ
            | ENVIRONMENT
            | {
                "RATINGS_TEST_FAULTS": str(folder),
                "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(failures),
            }
        )
        self.arm()
        self.configure()
        self._file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--scheduler-file",
            str(self._file),
            "--dashboard-address",
            "127.0.0.1:0",
        )
        wait_until(lambda: self._file.exists() and self._file.read_bytes().endswith(b"}"))
        self.address = str(json.loads(self._file.read_text())["address"])

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"log-{arguments[0]}", "ab") as log:
            return subprocess.Popen(
                [str(Path(sys.executable).with_name("dask")), *arguments, "--no-dashboard"],
                stdout=log,
                stderr=log,
                env=self._env,
                start_new_session=True,
            )

    def start_worker(self, nanny: bool = False) -> subprocess.Popen[bytes]:
        """Start a worker, and wait until the log says that it is registered."""
        log = self.folder / "log-worker"
        before = log.read_bytes().count(b"Registered to") if log.exists() else 0
        worker = self._start(
            "worker", "--scheduler-file", str(self._file), "--nanny" if nanny else "--no-nanny", "--nthreads", "1",
            "--memory-limit", "0", "--preload", str(PRELOAD), "--local-directory", str(self.folder / "scratch"),
        )  # fmt: skip
        self.workers.append(worker)
        wait_until(lambda: log.read_bytes().count(b"Registered to") > before)
        return worker

    def heal(self) -> None:
        """Replace lost or stopped workers until two undisturbed ones run."""
        stopped = [*self.list_struck("stop"), *self.list_struck("hold")]
        self.arm()
        self.configure()
        for worker in [*self.workers]:
            if worker.pid in stopped:
                worker.kill()
                worker.wait()
            if worker.poll() is not None:
                self.workers.remove(worker)
        for _ in range(2 - len(self.workers)):
            self.start_worker()

    def configure(self, **settings: Any) -> None:
        """Set the sizes and options of workers that start from now on."""
        (self.folder / "settings.json").write_text(
            json.dumps({"part_games": PART_GAMES, "window_games": WINDOW_GAMES, **settings})
        )

    def arm(self, *faults: dict[str, Any]) -> None:
        """Set the faults to come, and forget those that have happened."""
        actions = ("kill", "stop", "hold", "exhaust", "fail", "break", "differ")
        for name in ("turn-*", *(f"{action}-*" for action in actions), "journal", "go"):
            for path in self.folder.glob(name):
                path.unlink()
        path = self.folder / "faults.json"
        path.with_suffix(".new").write_text(json.dumps(faults))
        path.with_suffix(".new").rename(path)

    def list_struck(self, action: str) -> list[int]:
        """Return the processes that an action struck."""
        return [int(path.name.rpartition("-")[2]) for path in sorted(self.folder.glob(f"{action}-*"))]

    def list_reached(self, stage: str) -> list[str]:
        """Return the objects whose tasks have reached a stage, one for each time."""
        journal = self.folder / "journal"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return [line.split()[2] for line in lines if line.split()[0] == stage]

    def close(self) -> None:
        """End all processes of the cluster and their children."""
        for process in [*self.workers, self.scheduler]:
            for number in (signal.SIGCONT, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            process.wait()


def build_fault(at: str, do: str, says: str = "", first: int = 1, times: int = 1) -> dict[str, Any]:
    """Return a fault of a worker, for `LocalCluster.arm`."""
    return {"at": at, "do": do, "says": says, "first": first, "times": times}


@contextmanager
def run_cluster(folder: Path, workers: int = 2, nanny: bool = False, failures: int = 3) -> Iterator[LocalCluster]:
    """Start a cluster and end all of its processes afterwards; Dask gives a task up after `failures` lost workers."""
    cluster = LocalCluster(folder, failures)
    try:
        for _ in range(workers):
            cluster.start_worker(nanny)
        yield cluster
    finally:
        cluster.close()
