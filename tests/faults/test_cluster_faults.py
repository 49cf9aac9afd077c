"""Rebuilds on a Dask cluster in which workers, scheduler, objects or coordinator fail: right rows, or a clear
message."""

import os
import platform
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
from cluster_ledgers import (
    ExpectedRebuild,
    Rebuilding,
    RebuildResult,
    digest_objects,
    find_objects_folder,
)
from clusters import kill_at_call, submit_twice, sweep_after_rebuild
from dask_clusters import LocalCluster, build_fault, run_cluster
from fault_helpers import read_stored_rows, take_rebuild_lock, wait_until
from lengths import mark_long_values
from rebuilds import act_before_promotion
from thresholds import set_thresholds

pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="the extra cluster is not installed"),
    pytest.mark.slow,
]

GIANT = '"city giant"'
GIANT_KILL = build_fault("reading", "kill", GIANT, first=5)
SEAL, REPLAY = '"task": "seal"', '"task": "replay"'


@pytest.mark.parametrize(
    "kill_fault",
    mark_long_values(
        [GIANT_KILL],
        [
            build_fault("sealing", "kill", SEAL),
            build_fault("written", "kill", SEAL),
            build_fault("writing", "kill", SEAL),
            build_fault("begun", "kill", REPLAY),
            build_fault("written", "kill", REPLAY),
            build_fault("writing", "kill", REPLAY),
            GIANT_KILL,
            build_fault("replaying", "kill", REPLAY, first=50),
        ],
    ),
    ids=lambda kill_fault: f"{kill_fault['at']} {kill_fault['says'].split()[-1]}",
)
def test_killed_worker_leaves_its_task_to_another(
    kill_fault: dict[str, Any], cluster: LocalCluster, rebuilding: Rebuilding
) -> None:
    """The task of a worker killed at any stage is done by the other worker."""
    cluster.arm(kill_fault)
    result = rebuilding.run(cluster.address)
    assert len(cluster.list_struck("kill")) == 1
    assert rebuilding.is_right(result)


def shorten_waits(patch: pytest.MonkeyPatch) -> None:
    """Make a coordinator give a slow task to a second worker soon."""
    set_thresholds(patch, slow_task_seconds=1, task_wait_seconds=0.2)


@pytest.mark.at_length
@pytest.mark.parametrize(
    "stop_fault",
    [
        build_fault("sealing", "stop", SEAL),
        build_fault("writing", "stop", SEAL),
        build_fault("reading", "stop", GIANT, first=5),
        build_fault("keeping", "stop", GIANT),
        build_fault("writing", "stop", GIANT),
        build_fault("written", "stop", REPLAY),
    ],
    ids=lambda stop_fault: f"{stop_fault['at']} {stop_fault['says'].split()[-1]}",
)
def test_task_of_a_stopped_worker_is_repeated(
    stop_fault: dict[str, Any], cluster: LocalCluster, rebuilding: Rebuilding
) -> None:
    """A task that a stopped worker keeps for too long is done by another; if the worker continues, nothing changes."""
    cluster.arm(stop_fault)
    result = rebuilding.run(cluster.address, patch=shorten_waits)
    assert rebuilding.is_right(result)
    (stopped_process,) = cluster.list_struck("stop")
    before = cluster.list_reached("written")
    os.kill(stopped_process, signal.SIGCONT)
    if stop_fault["at"] != "written":
        wait_until(lambda: len(cluster.list_reached("written")) > len(before))
        assert cluster.list_reached("written")[-1] in before
    assert rebuilding.is_right(result)


def test_task_that_two_workers_finish_is_harmless(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """A stopped worker that continues during the rebuild may finish a task a second time without any effect."""
    cluster.arm(build_fault("writing", "stop", GIANT), build_fault("begun", "hold", GIANT, first=2))
    coordinator = rebuilding.start(cluster.address, patch=shorten_waits)
    wait_until(lambda: bool(cluster.list_struck("stop") and cluster.list_struck("hold")))
    os.kill(*cluster.list_struck("stop"), signal.SIGCONT)
    (cluster.folder / "go").touch()
    assert rebuilding.is_right(coordinator.wait())
    wait_until(lambda: len(cluster.list_reached("ended")) == len(cluster.list_reached("begun")))
    assert rebuilding.is_right(RebuildResult(0, "", "", 0))


@pytest.mark.at_length
def test_pack_that_always_kills_is_named(rebuilding: Rebuilding, expected: ExpectedRebuild, tmp_path: Path) -> None:
    """A pack that kills every worker is named after three tries; the other packs are done, and nothing is promoted."""
    with run_cluster(tmp_path / "cluster", nanny=True, failures=0) as cluster:
        cluster.arm(build_fault("reading", "kill", GIANT, times=1_000))
        result = rebuilding.run(cluster.address)
        assert len(cluster.list_struck("kill")) == 3
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr == (
            "ratings: 3 tries failed for elo-chess/giant (the workers that had the task are gone); the other tasks are "
            "done and kept; run the same command again\n"
        )
        assert read_stored_rows(rebuilding.url) == []
        missing = expected.objects.keys() - digest_objects(rebuilding.objects).keys()
        assert len(missing) == 1
        cluster.arm()
        result = rebuilding.run(cluster.address)
        assert rebuilding.is_right(result)
        assert result.submitted == 1


# stands for the number of the last call
LAST_CALL = 0
# the third read of the live generation is the last one before the commit
INSIDE_PROMOTION = ("the live generation", True, 3, 0)


@pytest.mark.parametrize(
    "moment",
    mark_long_values(
        [INSIDE_PROMOTION],
        [
            ("a result", False, 5, 9),
            ("a result", True, LAST_CALL, 0),
            ("the promotion", False, 1, 0),
            INSIDE_PROMOTION,
            ("the promotion", True, 1, 0),
        ],
    ),
)
def test_rebuild_continues_after_killed_coordinator(
    moment: tuple[str, bool, int, int], cluster: LocalCluster, rebuilding: Rebuilding
) -> None:
    """After a coordinator was killed at any moment, the next one hands out only the tasks that are not done."""
    call, after, nth, missing_tasks = moment
    nth = nth or len([output for output in rebuilding.expected.objects if output.startswith("out-")])
    killed_result = rebuilding.run(cluster.address, patch=kill_at_call(call, after, nth))
    assert killed_result.exit_code == -signal.SIGKILL
    wait_until(lambda: len(cluster.list_reached("written")) == len(cluster.list_reached("begun")))
    done_tasks = len({*cluster.list_reached("written")})
    result = rebuilding.run(cluster.address)
    assert rebuilding.is_right(result)
    assert result.submitted <= missing_tasks
    assert killed_result.submitted + result.submitted >= done_tasks


@pytest.mark.at_length
@pytest.mark.parametrize("nanny", [True, False])
def test_rebuild_survives_the_loss_of_both_workers(nanny: bool, rebuilding: Rebuilding, tmp_path: Path) -> None:
    """After both workers were killed at once, the rebuild continues with restarted or further workers."""
    with run_cluster(tmp_path / "cluster", nanny=nanny) as cluster:
        cluster.arm(build_fault("reading", "kill", REPLAY, first=3, times=2))
        coordinator = rebuilding.start(cluster.address)
        wait_until(lambda: len(cluster.list_struck("kill")) == 2)
        if not nanny:
            cluster.start_worker()
        assert rebuilding.is_right(coordinator.wait())


@pytest.mark.at_length
def test_cluster_without_workers_is_waited_for(rebuilding: Rebuilding, tmp_path: Path) -> None:
    """A cluster without workers is waited for; after a limit the rebuild fails with a message."""
    with run_cluster(tmp_path / "cluster", workers=0) as cluster:
        result = rebuilding.run(cluster.address, patch=lambda patch: set_thresholds(patch, no_workers_seconds=2))
        assert (result.exit_code, result.stderr) == (
            3,
            "ratings: the engine has had no workers for 2 s; finished tasks are kept; check that this program is "
            "installed on the workers, which otherwise end immediately\n",
        )
        coordinator = rebuilding.start(cluster.address)
        cluster.start_worker()
        assert rebuilding.is_right(coordinator.wait())


@pytest.mark.at_length
def test_rebuild_continues_after_killed_scheduler(rebuilding: Rebuilding, tmp_path: Path) -> None:
    """If the scheduler is killed, nothing is promoted; the next rebuild reuses the finished tasks on another
    cluster."""
    with run_cluster(tmp_path / "cluster") as cluster:
        cluster.arm(build_fault("begun", "hold", REPLAY, first=4, times=2))
        coordinator = rebuilding.start(cluster.address)
        wait_until(lambda: len(cluster.list_struck("hold")) == 2)
        os.kill(cluster.scheduler.pid, signal.SIGKILL)
        result = coordinator.wait()
        assert (result.exit_code, result.stdout) == (3, "")
        assert (
            result.stderr
            == "ratings: the scheduler of the cluster is gone; finished tasks are kept; start it and run the same "
            "command again\n"
        )
    assert read_stored_rows(rebuilding.url) == []
    done_tasks = len([name for name in digest_objects(rebuilding.objects) if name.startswith("out-")])
    assert done_tasks > 0
    with run_cluster(tmp_path / "another") as cluster:
        result = rebuilding.run(cluster.address)
    assert rebuilding.is_right(result)
    assert (
        result.submitted == len([name for name in rebuilding.expected.objects if name.startswith("out-")]) - done_tasks
    )


@pytest.mark.at_length
def test_missing_scheduler_is_reported(rebuilding: Rebuilding) -> None:
    """A rebuild without a reachable scheduler fails with a message."""
    result = rebuilding.run("tcp://127.0.0.1:9", patch=lambda patch: set_thresholds(patch, connect_seconds=1))
    assert (result.exit_code, result.stderr) == (
        3,
        "ratings: no Dask scheduler answered at tcp://127.0.0.1:9 within 1 s; check that one is running there\n",
    )


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"code": "another"},
            "runs another version of this program, Python, numpy or numba than this machine; install the same "
            "versions there",
        ),
        (
            {"elsewhere": True},
            "cannot read the objects in FOLDER; pass --segments with a location that all workers share with this "
            "machine",
        ),
    ],
)
def test_unfit_worker_is_refused(
    settings: dict[str, Any], message: str, rebuilding: Rebuilding, tmp_path: Path
) -> None:
    """A worker with another version of the program or without access to the objects is refused, and makes no object."""
    with run_cluster(tmp_path / "cluster", workers=0) as cluster:
        cluster.configure(**settings)
        cluster.start_worker()
        result = rebuilding.run(cluster.address)
    folder = str(find_objects_folder(rebuilding.objects))
    assert (result.exit_code, result.stderr) == (
        3,
        f"ratings: the worker on {platform.node()} {message.replace('FOLDER', folder)}\n",
    )
    assert read_stored_rows(rebuilding.url) == []
    assert not [name for name in digest_objects(rebuilding.objects) if name.startswith(("segment-", "out-"))]


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("exhaust", "the worker ran out of memory"),
        ("fail", "there: No space left on device"),
        ("break", "ZeroDivisionError: division by zero"),
    ],
)
def test_pack_that_always_fails_is_named(
    action: str, message: str, cluster: LocalCluster, rebuilding: Rebuilding
) -> None:
    """A pack that exceeds its worker's memory or fails otherwise is named; the other packs are done."""
    cluster.arm(build_fault("reading", action, GIANT, times=1_000))
    result = rebuilding.run(cluster.address)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == (
        f"ratings: 3 tries failed for elo-chess/giant ({message}); the other tasks are done and kept; "
        "run the same command again\n"
    )
    assert len(cluster.list_struck(action)) >= 1
    assert read_stored_rows(rebuilding.url) == []
    cluster.arm()
    second_result = rebuilding.run(cluster.address)
    assert rebuilding.is_right(second_result)
    assert second_result.submitted == 1


@pytest.mark.at_length
def test_different_results_of_one_task_prevent_promotion(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """Different results of the same task are reported as a fault of a machine, and nothing is promoted."""
    cluster.arm(
        build_fault("keeping", "differ", GIANT),
        build_fault("written", "stop", GIANT),
        build_fault("begun", "hold", REPLAY, first=14),
    )
    result = rebuilding.run(cluster.address, patch=submit_twice)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("ratings: out-")
    assert result.stderr.endswith(
        "was created twice with different bytes: a worker's memory or processor is faulty; find that machine, and run "
        "the same command again without it\n"
    )
    assert read_stored_rows(rebuilding.url) == []


@pytest.mark.at_length
def test_repeated_tasks_are_harmless(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """A rebuild is right if the engine runs every task twice."""
    assert rebuilding.is_right(rebuilding.run(cluster.address, patch=submit_twice))
    assert len(cluster.list_reached("begun")) > len({*cluster.list_reached("begun")})


@pytest.mark.at_length
def test_second_coordinator_is_refused(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """A second coordinator is refused while the first is working."""
    cluster.arm(build_fault("begun", "hold", REPLAY, first=4, times=2))
    first = rebuilding.start(cluster.address)
    wait_until(lambda: len(cluster.list_struck("hold")) == 2)
    second = rebuilding.run(cluster.address)
    assert (second.exit_code, second.submitted) == (4, 0)
    (cluster.folder / "go").touch()
    assert rebuilding.is_right(first.wait())


@pytest.mark.at_length
def test_coordinator_without_its_lock_promotes_nothing(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """A coordinator that lost its lock while another rebuild ran promotes nothing."""

    def rebuild_meanwhile() -> None:
        take_rebuild_lock(rebuilding.url)
        command = [Path(sys.executable).with_name("ratings"), "--db", rebuilding.url, "rebuild"]
        subprocess.run(command, check=True, capture_output=True)

    result = rebuilding.run(cluster.address, patch=lambda patch: act_before_promotion(patch, rebuild_meanwhile))
    assert (result.exit_code, result.stdout) == (3, "")
    assert "nothing was promoted" in result.stderr
    assert rebuilding.is_right(RebuildResult(0, "", "", 0))


@pytest.mark.at_length
def test_unwritable_location_is_named(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """A location for segments that cannot be written is named before any task is handed out."""
    rebuilding.objects.write_text("a file")
    result = rebuilding.run(cluster.address)
    assert (result.exit_code, result.submitted) == (3, 0)
    assert result.stderr.startswith(f"ratings: {rebuilding.objects}/")
    assert result.stderr.endswith("cannot be used for segments: Not a directory\n")
    assert read_stored_rows(rebuilding.url) == []


@pytest.mark.at_length
def test_lost_store_prevents_promotion(cluster: LocalCluster, rebuilding: Rebuilding, tmp_path: Path) -> None:
    """If the store is lost during a rebuild, nothing is promoted; the next rebuild reuses the finished tasks."""
    path, moved_path = Path(rebuilding.url.removeprefix("sqlite:///")), tmp_path / "away"
    cluster.arm(build_fault("begun", "hold", REPLAY, first=4, times=2))
    coordinator = rebuilding.start(cluster.address)
    wait_until(lambda: len(cluster.list_struck("hold")) == 2)
    path.rename(moved_path)
    (cluster.folder / "go").touch()
    result = coordinator.wait()
    assert (result.exit_code, result.stdout) == (3, "")
    # the last line says why it ended; another may say that its run could not be recorded
    *before, last = result.stderr.splitlines()
    assert last.startswith(f"ratings: {path} cannot be read or written")
    assert [line.partition(": /")[0] for line in before] in (
        [],
        ["ratings: the outcome of this run could not be recorded"],
    )
    path.unlink(missing_ok=True)
    moved_path.rename(path)
    assert read_stored_rows(rebuilding.url) == []
    second_result = rebuilding.run(cluster.address)
    assert rebuilding.is_right(second_result)
    assert second_result.submitted < result.submitted


@pytest.mark.at_length
def test_sweep_keeps_objects_of_other_computations(cluster: LocalCluster, rebuilding: Rebuilding) -> None:
    """The sweep after a rebuild removes its own objects and old ones of other computations, and keeps recent ones."""
    assert rebuilding.is_right(rebuilding.run(cluster.address))
    folder = find_objects_folder(rebuilding.objects)
    for name in ("base-1", "out-1", "out-2", "nonce-1", "records-1"):
        (folder / name).write_text(name)
    os.utime(folder / "out-2", (1, 1))
    result = rebuilding.run(cluster.address, patch=sweep_after_rebuild)
    assert result.exit_code == 0
    remaining = {path.name for path in folder.iterdir() if not path.name.startswith(("segment-", "numbers-"))}
    assert remaining == {"base-1", "out-1", "nonce-1", "records-1"}


@pytest.mark.at_length
def test_rebuilds_survive_random_kills_of_workers(
    cluster: LocalCluster, ratings: Callable[..., Any], expected: ExpectedRebuild, tmp_path: Path
) -> None:
    """If a worker is killed at a random stage, the other completes the rebuild; most of twenty reach their stage."""
    rng, kill_count = Random(1), 0
    for number in range(20):
        cluster.heal()
        stage, says, last = rng.choice([
            ("begun", SEAL, 4), ("sealing", SEAL, 4), ("writing", SEAL, 4), ("written", SEAL, 4), ("begun", REPLAY, 4),
            ("reading", GIANT, 20), ("replaying", REPLAY, 60), ("writing", REPLAY, 4), ("written", REPLAY, 4),
        ])  # fmt: skip
        rebuilding = Rebuilding(ratings, expected, tmp_path / str(number))
        cluster.arm(build_fault(stage, "kill", says, first=rng.randint(1, last)))
        assert rebuilding.is_right(rebuilding.run(cluster.address)), (number, stage, says)
        kill_count += len(cluster.list_struck("kill"))
    assert kill_count >= 12


@pytest.mark.at_length
def test_rebuilds_survive_random_kills_of_coordinators(
    cluster: LocalCluster, ratings: Callable[..., Any], expected: ExpectedRebuild, tmp_path: Path
) -> None:
    """After a coordinator was killed at a random moment, the next one completes the rebuild, in each of ten cases."""
    rng, kill_count = Random(2), 0
    started = time.monotonic()
    undisturbed = Rebuilding(ratings, expected, tmp_path / "undisturbed")
    assert undisturbed.is_right(undisturbed.run(cluster.address))
    seconds = time.monotonic() - started
    for number in range(10):
        rebuilding = Rebuilding(ratings, expected, tmp_path / str(number))
        coordinator = rebuilding.start(cluster.address)
        time.sleep(rng.random() * seconds)
        with suppress(ProcessLookupError):
            os.kill(coordinator.process, signal.SIGKILL)
        result = coordinator.wait()
        kill_count += result.exit_code == -signal.SIGKILL
        assert read_stored_rows(rebuilding.url) in ([], expected.rows)
        assert rebuilding.is_right(rebuilding.run(cluster.address)), number
    assert kill_count >= 5
