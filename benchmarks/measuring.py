"""Measure functions, each in a fresh process, so that neither memory nor caches carry over to the next measurement.

A function is named `module:function`; it returns JSON with `seconds` and other details. This module imports little,
because the memory peak of a child starts from the memory of its parent.
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
    """A function to call in a child, with its arguments or a callable that builds them just before the call.

    `needs` are the packages that the function imports.
    """

    function: str
    arguments: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """Return the packages that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]


class ChildFailed(Exception):
    """A measured function failed; the message is its output on standard error."""


def measure(call: Call) -> Run:
    """Call a function in a fresh process. Raises `ChildFailed`."""
    command = [sys.executable, "-m", "benchmarks.child", call.function]
    arguments = call.arguments() if callable(call.arguments) else call.arguments
    _load_into_memory(arguments)
    argument_json = json.dumps(arguments).encode()
    # an installed program has compiled modules, too
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, input=argument_json, capture_output=True, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise ChildFailed(f"{call.function}: {done.stderr.decode(errors='replace')[-4_000:]}")
    details = json.loads(done.stdout.splitlines()[-1])
    return Run(details.pop("seconds"), details.pop("peak_bytes"), details)


def _load_into_memory(arguments: Mapping[str, Any]) -> None:
    """Read the files among the arguments, and the caches of children, so that the system holds them in memory.

    Skip files of many gigabytes, because a query reads little of a long log.
    """
    values = [*arguments.values(), *(arguments.get("env") or {}).values(), *(arguments.get("command") or ())]
    named = [Path(value) for value in values if isinstance(value, str) and len(value) < NAME_MAX]
    cached = Path(os.environ[CACHES], "ratings-ledger").rglob("*") if CACHES in os.environ else ()
    for path in (*named, *cached):
        if path.is_file() and path.stat().st_size < READ_MAX:
            with open(path, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def run_in_turn(calls: Mapping[str, Call], repetitions: int, warm_up: int = 0) -> dict[str, list[Run]]:
    """Measure the calls in rounds, so that a slow minute of the machine affects all of them.

    Leave out calls whose packages are not installed, and the results of the first `warm_up` rounds.
    """
    runs: dict[str, list[Run]] = {name: [] for name, call in calls.items() if not call.missing}
    for _ in range(warm_up + repetitions):
        for name, measured in runs.items():
            measured.append(measure(calls[name]))
    return {name: measured[warm_up:] for name, measured in runs.items()}


@contextmanager
def keep_caches_in(folder: Path) -> Iterator[None]:
    """Let children keep their caches in a folder, apart from the user's caches."""
    before = os.environ.get(CACHES)
    os.environ[CACHES] = str(folder)
    try:
        yield
    finally:
        del os.environ[CACHES]
        if before is not None:
            os.environ[CACHES] = before


def delete_caches() -> None:
    """Delete the caches of children, because a recreated ledger has the id of the previous one."""
    if folder := os.environ.get(CACHES):
        shutil.rmtree(Path(folder) / "ratings-ledger", ignore_errors=True)


def find_fastest(variants: Mapping[str, Call]) -> str:
    """Return the name of the fastest variant, after one run of each."""
    return min(variants, key=lambda name: measure(variants[name]).seconds)


def run_cold_command(command: list[str]) -> dict[str, Any]:
    """Measure a command in its own process, from start to end, and require success. For use in a child."""
    started = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{command[-1]}: {done.stderr.decode(errors='replace')}")
    return {"seconds": seconds, "of_children": True}
