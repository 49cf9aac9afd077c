"""Rebuilds on a Dask cluster where workers, scheduler, objects or coordinator fail: the right rows, or a clear line."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cluster_ledgers import Ended, Rebuilding, Wanted, digests, place, rows
from dask_clusters import LocalCluster, fault, local_cluster
from fault_helpers import take_rebuild_lock, wait_until
from lengths import mark_long_values

from ratings_ledger.projections.cluster import coordinating, engines, task_runner
from ratings_ledger.projections.stored import generations

pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="the extra cluster is not installed"),
    pytest.mark.slow,
]

GIANT = '"city giant"'
GIANT_KILLS = fault("reading", "kill", GIANT, first=5)
SEAL, REPLAY = '"task": "seal"', '"task": "replay"'


@pytest.mark.parametrize(
    "killed",
    mark_long_values([GIANT_KILLS], [
        fault("sealing", "kill", SEAL), fault("written", "kill", SEAL), fault("writing", "kill", SEAL),
        fault("begun", "kill", REPLAY), fault("written", "kill", REPLAY), fault("writing", "kill", REPLAY),
        GIANT_KILLS, fault("replaying", "kill", REPLAY, first=50),
    ]),
    ids=lambda killed: f"{killed['at']} {killed['says'].split()[-1]}",
)  # fmt: skip
def test_killed_worker(killed: dict[str, Any], cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """A worker that is killed at any stage of a task leaves its work to the other one."""
    cluster.arm(killed)
    ended = rebuilding.run(cluster.address)
    assert len(cluster.happened("kill")) == 1
    assert rebuilding.is_right(ended)


def impatient(patch: pytest.MonkeyPatch) -> None:
    """Let a coordinator give a task to a second worker soon."""
    patch.setattr(task_runner, "SLOW_SECONDS", 1)
    patch.setattr(task_runner, "WAIT_SECONDS", 0.2)


@pytest.mark.at_length
@pytest.mark.parametrize(
    "stopped",
    [
        fault("sealing", "stop", SEAL), fault("writing", "stop", SEAL), fault("reading", "stop", GIANT, first=5),
        fault("keeping", "stop", GIANT), fault("writing", "stop", GIANT), fault("written", "stop", REPLAY),
    ],
    ids=lambda stopped: f"{stopped['at']} {stopped['says'].split()[-1]}",
)  # fmt: skip
def test_stopped_worker_comes_too_late(
    stopped: dict[str, Any], cluster: LocalCluster, rebuilding: Rebuilding
) -> None:  # fmt: skip
    """A worker that is stopped for longer than a task may take is not waited for; when it is woken another has done its
    work, and it changes nothing."""
    cluster.arm(stopped)
    ended = rebuilding.run(cluster.address, patch=impatient)
    assert rebuilding.is_right(ended)
    (late,) = cluster.happened("stop")
    before = cluster.reached("written")
    os.kill(late, signal.SIGCONT)
    if stopped["at"] != "written":
        wait_until(lambda: len(cluster.reached("written")) > len(before))
        assert cluster.reached("written")[-1] in before
    assert rebuilding.is_right(ended)


def test_stopped_worker_is_woken_before_the_end(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """One that is woken while the others still work may end the same task a second time."""
    cluster.arm(fault("writing", "stop", GIANT), fault("begun", "hold", GIANT, first=2))
    coordinator = rebuilding.start(cluster.address, patch=impatient)
    wait_until(lambda: bool(cluster.happened("stop") and cluster.happened("hold")))
    os.kill(*cluster.happened("stop"), signal.SIGCONT)
    (cluster.folder / "go").touch()
    assert rebuilding.is_right(coordinator.ended())
    wait_until(lambda: len(cluster.reached("ended")) == len(cluster.reached("begun")))
    assert rebuilding.is_right(Ended(0, "", "", 0))


@pytest.mark.at_length
def test_pack_that_always_kills(rebuilding: Rebuilding, wanted: Wanted, tmp_path: Path) -> None:
    """A pack that kills whoever has it is named after three tries; the others are done, and nothing is promoted."""
    with local_cluster(tmp_path / "cluster", nanny=True, failures=0) as cluster:
        cluster.arm(fault("reading", "kill", GIANT, times=1_000))
        ended = rebuilding.run(cluster.address)
        assert len(cluster.happened("kill")) == task_runner.TRIES
        assert (ended.exit_code, ended.stdout) == (3, "")
        assert ended.stderr == (
            "ratings: 3 tries were not enough for elo-chess/giant (the workers that had it are gone); the others are "
            "done and kept for the next try\n"
        )
        assert rows(rebuilding.url) == []
        missing = wanted.objects.keys() - digests(rebuilding.objects).keys()
        assert len(missing) == 1
        cluster.arm()
        ended = rebuilding.run(cluster.address)
        assert rebuilding.is_right(ended)
        assert ended.submitted == 1


def killing(module: Any, name: str, after: bool, nth: int = 1) -> Callable[[pytest.MonkeyPatch], None]:
    """Let a coordinator kill itself at the nth call of a function, before or after it."""

    def change(patch: pytest.MonkeyPatch) -> None:
        whole, calls = getattr(module, name), []

        def killed(*arguments: Any, **options: Any) -> Any:
            calls.append(None)
            result = whole(*arguments, **options) if after or len(calls) < nth else None
            if len(calls) == nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        patch.setattr(module, name, killed)

    return change


LAST = 0
# the last look before the commit
INSIDE = (generations, "read_live_generation", True, 3, 0)


@pytest.mark.parametrize(
    "moment",
    mark_long_values([INSIDE], [
        (coordinating, "read_result", False, 5, 9), (coordinating, "read_result", True, LAST, 0),
        (generations, "promote", False, 1, 0), INSIDE, (generations, "promote", True, 1, 0),
    ]),
)  # fmt: skip
def test_killed_coordinator(
    moment: tuple[Any, str, bool, int, int], cluster: LocalCluster, rebuilding: Rebuilding
) -> None:  # fmt: skip
    """Whenever the coordinator is killed, before the last result or before, inside or after the promotion, the next one
    hands out only what is not done."""
    module, name, after, nth, left = moment
    nth = nth or len([made for made in rebuilding.wanted.objects if made.startswith("out-")])
    ended = rebuilding.run(cluster.address, patch=killing(module, name, after, nth))
    assert ended.exit_code == -signal.SIGKILL
    wait_until(lambda: len(cluster.reached("written")) == len(cluster.reached("begun")))
    done = len({*cluster.reached("written")})
    again = rebuilding.run(cluster.address)
    assert rebuilding.is_right(again)
    assert again.submitted <= left
    assert ended.submitted + again.submitted >= done


@pytest.mark.at_length
@pytest.mark.parametrize("nanny", [True, False])
def test_both_workers_at_once(nanny: bool, rebuilding: Rebuilding, tmp_path: Path) -> None:
    """Both workers are killed at once: they come back with their nannies, or others are started."""
    with local_cluster(tmp_path / "cluster", nanny=nanny) as cluster:
        cluster.arm(fault("reading", "kill", REPLAY, first=3, times=2))
        coordinator = rebuilding.start(cluster.address)
        wait_until(lambda: len(cluster.happened("kill")) == 2)
        if not nanny:
            cluster.start_worker()
        assert rebuilding.is_right(coordinator.ended())


@pytest.mark.at_length
def test_workers_that_come_late(rebuilding: Rebuilding, tmp_path: Path) -> None:
    """A cluster without workers is waited for; if none come, that is said."""
    with local_cluster(tmp_path / "cluster", workers=0) as cluster:
        lonely = rebuilding.run(
            cluster.address, patch=lambda patch: patch.setattr(task_runner, "NO_WORKERS_SECONDS", 2)
        )
        assert (lonely.exit_code, lonely.stderr) == (
            3, "ratings: the engine has had no workers for 2 s; they end at once where this program is not "
            "installed; finished tasks are kept\n",
        )  # fmt: skip
        coordinator = rebuilding.start(cluster.address)
        cluster.start_worker()
        assert rebuilding.is_right(coordinator.ended())


@pytest.mark.at_length
def test_killed_scheduler(rebuilding: Rebuilding, tmp_path: Path) -> None:
    """When the scheduler is killed nothing is promoted; the next rebuild goes on elsewhere with what is done."""
    with local_cluster(tmp_path / "cluster") as cluster:
        cluster.arm(fault("begun", "hold", REPLAY, first=4, times=2))
        coordinator = rebuilding.start(cluster.address)
        wait_until(lambda: len(cluster.happened("hold")) == 2)
        os.kill(cluster.scheduler.pid, signal.SIGKILL)
        ended = coordinator.ended()
        assert (ended.exit_code, ended.stdout) == (3, "")
        assert (
            ended.stderr == "ratings: the scheduler of the cluster is gone; finished tasks are kept for the next try\n"
        )
    assert rows(rebuilding.url) == []
    done = len([name for name in digests(rebuilding.objects) if name.startswith("out-")])
    assert done > 0
    with local_cluster(tmp_path / "another") as cluster:
        ended = rebuilding.run(cluster.address)
    assert rebuilding.is_right(ended)
    assert ended.submitted == len([name for name in rebuilding.wanted.objects if name.startswith("out-")]) - done


@pytest.mark.at_length
def test_no_scheduler(rebuilding: Rebuilding) -> None:
    """Where no scheduler is, that is said."""
    ended = rebuilding.run("tcp://127.0.0.1:9", patch=lambda patch: patch.setattr(engines, "START_SECONDS", 1))
    assert (ended.exit_code, ended.stderr) == (
        3, "ratings: no Dask scheduler answers at tcp://127.0.0.1:9 within 1 s; is one running there?\n"
    )  # fmt: skip


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"code": "another"},
            "runs another version of the program, of Python, numpy or numba; install the same there",
        ),
        (
            {"elsewhere": True},
            "cannot read the objects in PLACE; --segments must lead all workers and this machine to one place",
        ),
    ],
)  # fmt: skip
def test_unfit_worker(settings: dict[str, Any], told: str, rebuilding: Rebuilding, tmp_path: Path) -> None:
    """A worker with another version of the program, or none, or without the folder is refused, and nothing is made."""
    with local_cluster(tmp_path / "cluster", workers=0) as cluster:
        cluster.settings(**settings)
        cluster.start_worker()
        ended = rebuilding.run(cluster.address)
    where = str(place(rebuilding.objects))
    assert (ended.exit_code, ended.stderr) == (3, f"ratings: a worker {told.replace('PLACE', where)}\n")
    assert rows(rebuilding.url) == []
    assert not [name for name in digests(rebuilding.objects) if name.startswith(("segment-", "out-"))]


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("exhaust", "its worker ran out of memory"), ("fail", "there: No space left on device"),
        ("break", "ZeroDivisionError: division by zero"),
    ],
)  # fmt: skip
def test_pack_that_always_fails(
    action: str, told: str, cluster: LocalCluster, rebuilding: Rebuilding
) -> None:  # fmt: skip
    """A pack that is too large for its worker's memory, or fails otherwise, is named; the others are done."""
    cluster.arm(fault("reading", action, GIANT, times=1_000))
    ended = rebuilding.run(cluster.address)
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert ended.stderr == (
        f"ratings: 3 tries were not enough for elo-chess/giant ({told}); the others are done and kept for the next "
        "try\n"
    )
    assert len(cluster.happened(action)) >= 1
    assert rows(rebuilding.url) == []
    cluster.arm()
    again = rebuilding.run(cluster.address)
    assert rebuilding.is_right(again)
    assert again.submitted == 1


@pytest.mark.at_length
def test_worker_that_differs(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """What comes out differently when it is made twice is a fault of a machine: nothing is promoted."""
    cluster.arm(
        fault("keeping", "differ", GIANT), fault("written", "stop", GIANT), fault("begun", "hold", REPLAY, first=14)
    )
    ended = rebuilding.run(cluster.address, patch=twice)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr.startswith("ratings: out-")
    assert ended.stderr.endswith(
        "was created twice with different bytes: a worker's memory or processor is at fault; nothing was promoted\n"
    )
    assert rows(rebuilding.url) == []


def twice(patch: pytest.MonkeyPatch) -> None:
    """Let a coordinator submit everything twice."""
    submit = task_runner._TaskQueue._submit

    def both(*arguments: Any) -> None:
        submit(*arguments)
        submit(*arguments)

    patch.setattr(task_runner._TaskQueue, "_submit", both)


@pytest.mark.at_length
def test_everything_twice(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """An engine may do everything twice."""
    assert rebuilding.is_right(rebuilding.run(cluster.address, patch=twice))
    assert len(cluster.reached("begun")) > len({*cluster.reached("begun")})


@pytest.mark.at_length
def test_two_coordinators(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """A second coordinator is refused while the first is at work; one that lost its lock promotes nothing."""
    cluster.arm(fault("begun", "hold", REPLAY, first=4, times=2))
    first = rebuilding.start(cluster.address)
    wait_until(lambda: len(cluster.happened("hold")) == 2)
    second = rebuilding.run(cluster.address)
    assert (second.exit_code, second.submitted) == (4, 0)
    (cluster.folder / "go").touch()
    assert rebuilding.is_right(first.ended())


@pytest.mark.at_length
def test_coordinator_that_lost_its_lock(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """A coordinator that lost its lock while another rebuilt promotes nothing."""

    def outrun(patch: pytest.MonkeyPatch) -> None:
        promote = generations.promote

        def late(*arguments: Any) -> None:
            take_rebuild_lock(rebuilding.url)
            command = [Path(sys.executable).with_name("ratings"), "--db", rebuilding.url, "rebuild"]
            subprocess.run(command, check=True, capture_output=True)
            promote(*arguments)

        patch.setattr(generations, "promote", late)

    ended = rebuilding.run(cluster.address, patch=outrun)
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert "nothing was promoted" in ended.stderr
    assert rebuilding.is_right(Ended(0, "", "", 0))


@pytest.mark.at_length
def test_folder_that_cannot_be_written(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """A place that cannot be written is named before anything is handed out."""
    rebuilding.objects.write_text("a file")
    ended = rebuilding.run(cluster.address)
    assert (ended.exit_code, ended.submitted) == (3, 0)
    assert ended.stderr.startswith(f"ratings: {rebuilding.objects}/")
    assert ended.stderr.endswith("cannot be used for segments: Not a directory\n")
    assert rows(rebuilding.url) == []


@pytest.mark.at_length
def test_store_that_is_gone(cluster: LocalCluster, rebuilding: Rebuilding, tmp_path: Path) -> None:
    """If the store is gone meanwhile nothing is promoted; once it is back the next rebuild goes on."""
    path, away = Path(rebuilding.url.removeprefix("sqlite:///")), tmp_path / "away"
    cluster.arm(fault("begun", "hold", REPLAY, first=4, times=2))
    coordinator = rebuilding.start(cluster.address)
    wait_until(lambda: len(cluster.happened("hold")) == 2)
    path.rename(away)
    (cluster.folder / "go").touch()
    ended = coordinator.ended()
    assert (ended.exit_code, ended.stdout) == (3, "")
    # the last line says why it ended; another may say that its run could not be recorded
    *before, last = ended.stderr.splitlines()
    assert last.startswith(f"ratings: {path} cannot be read or written")
    assert [line.partition(": /")[0] for line in before] in (
        [],
        ["ratings: the outcome of this run could not be recorded"],
    )
    path.unlink(missing_ok=True)
    away.rename(path)
    assert rows(rebuilding.url) == []
    again = rebuilding.run(cluster.address)
    assert rebuilding.is_right(again)
    assert again.submitted < ended.submitted


@pytest.mark.at_length
def test_other_computations_keep_their_objects(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """Who ends first sweeps only its own objects, and what somebody left behind long ago."""
    assert rebuilding.is_right(rebuilding.run(cluster.address))
    folder = place(rebuilding.objects)
    for name in ("base-1", "out-1", "out-2", "nonce-1", "records-1"):
        (folder / name).write_text(name)
    os.utime(folder / "out-2", (1, 1))
    sweep = coordinating.sweep  # which the coordinator of these tests does without
    ended = rebuilding.run(cluster.address, patch=lambda patch: patch.setattr(coordinating, "sweep", sweep))
    assert ended.exit_code == 0
    left = {path.name for path in folder.iterdir() if not path.name.startswith(("segment-", "numbers-"))}
    assert left == {"base-1", "out-1", "nonce-1", "records-1"}


@pytest.mark.at_length
def test_workers_killed_at_random_points(
    cluster: LocalCluster, ratings: Callable[..., Any], wanted: Wanted, tmp_path: Path
) -> None:
    """Wherever a worker is killed, the other one ends its work: twenty points, drawn from all stages of all tasks."""
    chance, killed = Random(1), 0
    for number in range(20):
        cluster.heal()
        stage, says, last = chance.choice([
            ("begun", SEAL, 4), ("sealing", SEAL, 4), ("writing", SEAL, 4), ("written", SEAL, 4), ("begun", REPLAY, 4),
            ("reading", GIANT, 20), ("replaying", REPLAY, 60), ("writing", REPLAY, 4), ("written", REPLAY, 4),
        ])  # fmt: skip
        rebuilding = Rebuilding(ratings, wanted, tmp_path / str(number))
        cluster.arm(fault(stage, "kill", says, first=chance.randint(1, last)))
        assert rebuilding.is_right(rebuilding.run(cluster.address)), (number, stage, says)
        killed += len(cluster.happened("kill"))
    assert killed >= 12


@pytest.mark.at_length
def test_coordinators_killed_at_random_moments(
    cluster: LocalCluster, ratings: Callable[..., Any], wanted: Wanted, tmp_path: Path
) -> None:
    """Whenever a coordinator is killed, the next one ends its work: ten moments of a rebuild."""
    chance, killed = Random(2), 0
    started = time.monotonic()
    undisturbed = Rebuilding(ratings, wanted, tmp_path / "undisturbed")
    assert undisturbed.is_right(undisturbed.run(cluster.address))
    seconds = time.monotonic() - started
    for number in range(10):
        rebuilding = Rebuilding(ratings, wanted, tmp_path / str(number))
        coordinator = rebuilding.start(cluster.address)
        time.sleep(chance.random() * seconds)
        with suppress(ProcessLookupError):
            os.kill(coordinator.process, signal.SIGKILL)
        ended = coordinator.ended()
        killed += ended.exit_code == -signal.SIGKILL
        assert rows(rebuilding.url) in ([], wanted.rows)
        assert rebuilding.is_right(rebuilding.run(cluster.address)), number
    assert killed >= 5
