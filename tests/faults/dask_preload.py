"""The first module that the Dask workers of the tests load: stages at which they can be killed, stopped or made to
fail.

`faults.json` in the folder RATINGS_TEST_FAULTS lists the faults:

{"at": STAGE, "says": TEXT, "first": N, "times": COUNT, "do": ACTION}

A fault strikes COUNT times, from the Nth time on that any worker reaches the stage with a plan that contains the text.
`journal` in the same folder lists which worker reached which stage with the plan of which object.
"""

import json
import os
import resource
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ratings_ledger.projections.cluster import base, object_store, pack_replays, segments, tasks

FOLDER = Path(os.environ["RATINGS_TEST_FAULTS"])
_plan = ""


def reach(stage: str) -> str | None:
    """Record that a stage is reached and let its faults happen. Return an action that the caller must carry out."""
    with open(FOLDER / "journal", "a") as journal:
        journal.write(f"{stage} {os.getpid()} {tasks.name_output(_plan)}\n")
    for number, fault in enumerate(json.loads((FOLDER / "faults.json").read_text())):
        if fault["at"] == stage and fault["says"] in _plan:
            turn = _count_turn(f"turn-{number}")
            if fault["first"] <= turn < fault["first"] + fault["times"]:
                return _do(fault["do"])
    return None


def _count_turn(name: str) -> int:
    """Count one more turn of a fault, and return how many turns the workers together have had."""
    for turn in range(1, 1_000_000):
        try:
            os.close(os.open(FOLDER / f"{name}-{turn}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return turn
    raise AssertionError


def _do(action: str) -> str | None:
    (FOLDER / f"{action}-{os.getpid()}").touch()
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action == "hold":
        while not (FOLDER / "go").exists():
            time.sleep(0.01)
    elif action == "exhaust":
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 26), before[1]))
        try:
            bytearray(1 << 30)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
    elif action == "fail":
        raise OSError(28, "No space left on device", "there")
    elif action == "break":
        raise ZeroDivisionError("division by zero")
    else:
        return action
    return None


def _perform_in_stages(url: str, requirements: tasks.WorkerRequirements, plan_range: tasks.PlanRange) -> None:
    global _plan
    _plan = ""
    with suppress(FileNotFoundError, tasks.DamagedObject):
        _plan = tasks.read_plan(object_store.open_object_store(url), tasks.PlanRange(*plan_range))
    reach("begun")
    try:
        _perform(url, requirements, plan_range)
        reach("written")
    finally:  # a task that comes too late may not find the objects that it should read
        reach("ended")


def _decode_and_reach(*arguments: Any) -> Any:
    games = _decode(*arguments)
    reach("sealing")
    return games


def _read_and_reach(*arguments: Any) -> Iterator[Any]:
    for games in _games(*arguments):
        yield games
        reach("reading")


def _compute_and_reach(*arguments: Any, **options: Any) -> Iterator[Any]:
    for result in _compute(*arguments, **options):
        yield result
        reach("replaying")


def _create_in_halves(self: object_store.Folder, name: str, parts: Iterable[Any]) -> bool:
    whole = b"".join(map(bytes, parts))

    def halves() -> Iterator[bytes]:
        yield whole[: len(whole) // 2]
        reach("writing")
        yield whole[len(whole) // 2 :]

    return _create(self, name, halves())


def _keep_or_differ(objects: object_store.Objects, name: str, content: Iterable[Any]) -> None:
    if reach("keeping") == "differ":
        content = tasks.encode_object({"results": b"different"}, {"name": tasks.name_output(_plan)})
    _keep(objects, name, content)


def _open_elsewhere(self: object_store.Folder, path: Path) -> None:
    self._path = path / "elsewhere"
    self.url = str(self._path)


def _set_up() -> None:
    settings = json.loads((FOLDER / "settings.json").read_text())
    if settings.get("elsewhere"):
        object_store.Folder.__init__ = _open_elsewhere  # type: ignore[method-assign]
    segments.PART_GAMES, pack_replays.WINDOW_GAMES = settings["part_games"], settings["window_games"]
    tasks.CODE_DIGEST = settings.get("code", tasks.CODE_DIGEST)
    tasks.perform, base.read_games_of_cells = _perform_in_stages, _read_and_reach  # type: ignore[assignment]
    pack_replays.compute = _compute_and_reach  # type: ignore[assignment]
    tasks.decode_text, tasks.create_or_compare = _decode_and_reach, _keep_or_differ
    object_store.Folder.create = _create_in_halves  # type: ignore[method-assign]


if tasks.perform.__module__ == tasks.__name__:  # Dask loads this twice
    _perform, _decode, _games = tasks.perform, tasks.decode_text, base.read_games_of_cells
    _compute = pack_replays.compute
    _create, _keep = object_store.Folder.create, tasks.create_or_compare
    _set_up()
