"""Measurements, each in a fresh process, so that neither memory nor caches carry over from one to the next.

What is measured is a function by name, `module:function`; it returns JSON with `seconds` and whatever else it finds.
This module is light, since a child's memory peak starts from what its parent held.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.results import Run

ROOT = Path(__file__).parent.parent
CACHES = "XDG_CACHE_HOME"
PROGRAM = (sys.executable, "-m", "ratings_ledger")
NAME_MAX = 1_000
READ_MAX = 2_000_000_000


class Call(NamedTuple):
    """A function to be called in a child, with its arguments or a callable that makes them right before.

    `needs` are packages it cannot run without.
    """

    function: str
    arguments: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """Return the packages that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]


class ChildFailed(Exception):
    """A measured function raised; the message is what it wrote on standard error."""


def measure(call: Call) -> Run:
    """Call a function in a fresh process. Raises `ChildFailed`."""
    command = [sys.executable, "-m", "benchmarks.child", call.function]
    arguments = call.arguments() if callable(call.arguments) else call.arguments
    _into_memory(arguments)
    given = json.dumps(arguments).encode()
    # with the compiled modules that an installed program has
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, input=given, capture_output=True, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise ChildFailed(f"{call.function}: {done.stderr.decode(errors='replace')[-4_000:]}")
    details = json.loads(done.stdout.splitlines()[-1])
    return Run(details.pop("seconds"), details.pop("peak_bytes"), details)


def _into_memory(arguments: Mapping[str, Any]) -> None:
    """Read the named files, and what children cached, so that the system has them in memory for everyone alike.

    Files of many gigabytes are skipped: a question to a long log reads little of it.
    """
    values = [*arguments.values(), *(arguments.get("env") or {}).values(), *(arguments.get("command") or ())]
    named = [Path(value) for value in values if isinstance(value, str) and len(value) < NAME_MAX]
    cached = Path(os.environ[CACHES], "ratings-ledger").rglob("*") if CACHES in os.environ else ()
    for path in (*named, *cached):
        if path.is_file() and path.stat().st_size < READ_MAX:
            with open(path, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def in_turn(calls: Mapping[str, Call], repetitions: int, warm_up: int = 0) -> dict[str, list[Run]]:
    """Return the calls one after another, in rounds, so that a slow minute of the machine hits all of them.

    Calls whose packages are not installed are left out; so are the first `warm_up` rounds.
    """
    runs: dict[str, list[Run]] = {name: [] for name, call in calls.items() if not call.missing}
    for _ in range(warm_up + repetitions):
        for name, measured in runs.items():
            measured.append(measure(calls[name]))
    return {name: measured[warm_up:] for name, measured in runs.items()}


@contextmanager
def caches_in(folder: Path) -> Iterator[None]:
    """Let children keep their caches in a folder, apart from the user's own."""
    before = os.environ.get(CACHES)
    os.environ[CACHES] = str(folder)
    try:
        yield
    finally:
        del os.environ[CACHES]
        if before is not None:
            os.environ[CACHES] = before


def forget_caches() -> None:
    """Delete everything children have cached: a ledger made again has the id of the previous one."""
    if folder := os.environ.get(CACHES):
        shutil.rmtree(Path(folder) / "ratings-ledger", ignore_errors=True)


def fastest(variants: Mapping[str, Call]) -> str:
    """Return the name of the variant that took the least time in one run each."""
    return min(variants, key=lambda name: measure(variants[name]).seconds if not variants[name].missing else 0.0)


def cold_command(command: list[str]) -> dict[str, Any]:
    """Run a command in a process of its own, from start to end; it must succeed. For use in a child."""
    started = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{command[-1]}: {done.stderr.decode(errors='replace')}")
    return {"seconds": seconds, "of_children": True}
