"""Rebuilds on a Dask cluster where workers, scheduler, objects or coordinator fail: the right rows, or a clear line."""

import os
import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from cluster_ledgers import Coordinator, Ended, Wanted, digests, many_ladders, rows, small_pieces
from dask_clusters import LocalCluster, fault, local_cluster
from fault_helpers import wait_until
from lengths import at_length_but

from projections.cluster import coordinating, farm
from projections.stored import generations

pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="the extra cluster is not installed"),
    pytest.mark.slow,
]

GIANT = '"city giant"'
GIANT_KILLS = fault("reading", "kill", GIANT, first=5)
SEAL, REPLAY = '"task": "seal"', '"task": "replay"'


@pytest.fixture(scope="module")
def wanted(
    ratings: Callable[..., Any], original_files: Callable[..., str], tmp_path_factory: pytest.TempPathFactory,
    at_length: bool,
) -> Wanted:  # fmt: skip
    """The ledger, with what comes of it here, and what objects come of it in one process that nothing happens to."""
    games = 20_000 if at_length else 2_000
    folder = tmp_path_factory.mktemp("undisturbed")
    original = Path(original_files(many_ladders, games).removeprefix("sqlite:///"))
    unknown = Wanted(original, games, [], {})
    here, there = unknown.copied(folder / "here"), unknown.copied(folder / "there")
    assert ratings("rebuild", db=here).exit_code == 0
    with small_pieces(games):
        assert ratings("rebuild", "--on", "processes:1", "--segments", folder / "objects", db=there).exit_code == 0
    assert rows(there) == rows(here)
    assert len({row[0] for row in rows(here)}) > 200
    return Wanted(original, games, rows(here), digests(folder / "objects"))


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with local_cluster(tmp_path_factory.mktemp("clusters") / "cluster") as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: LocalCluster) -> LocalCluster:
    """A cluster of two workers to which nothing has happened yet."""
    shared_cluster.heal()
    return shared_cluster


class Rebuilding:
    """Rebuilds of one ledger with one place for objects."""

    def __init__(self, ratings: Callable[..., Any], wanted: Wanted, folder: Path) -> None:
        self._ratings, self._wanted = ratings, wanted
        self.url, self.objects = wanted.copied(folder), folder / "objects"

    def start(self, on: str, *also: str, **patch: Callable[[pytest.MonkeyPatch], None]) -> Coordinator:
        return Coordinator(self._ratings, self.url, self._wanted.games, self.objects, on, *also, **patch)

    def run(self, on: str, *also: str, **patch: Callable[[pytest.MonkeyPatch], None]) -> Ended:
        return self.start(on, *also, **patch).ended()

    def is_right(self, ended: Ended) -> bool:
        """Whether it ended well: the rows of one machine, and the objects of workers to which nothing happens."""
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert rows(self.url) == self._wanted.rows
        assert digests(self.objects) == self._wanted.objects
        return True


@pytest.fixture
def rebuilding(ratings: Callable[..., Any], wanted: Wanted, tmp_path: Path) -> Rebuilding:
    return Rebuilding(ratings, wanted, tmp_path / "ledger")


@pytest.mark.parametrize(
    "killed",
    at_length_but([GIANT_KILLS], [
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
    patch.setattr(farm, "SLOW_SECONDS", 1)
    patch.setattr(farm, "WAITED_SECONDS", 0.2)


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
    wait_until(lambda: len(cluster.reached("written")) == len(cluster.reached("begun")))
    assert rebuilding.is_right(Ended(0, "", "", 0))


@pytest.mark.at_length
def test_pack_that_always_kills(rebuilding: Rebuilding, wanted: Wanted, tmp_path: Path) -> None:
    """A pack that kills whoever has it is named after three tries; the others are done, and nothing is promoted."""
    with local_cluster(tmp_path / "cluster", nanny=True, failures=0) as cluster:
        cluster.arm(fault("reading", "kill", GIANT, times=1_000))
        ended = rebuilding.run(cluster.address)
        assert len(cluster.happened("kill")) == farm.TRIES
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


# the last look before the commit
INSIDE = (generations, "live", True, 3, 0)


@pytest.mark.parametrize(
    "moment",
    at_length_but([INSIDE], [
        (coordinating, "results_of", False, 5, 9), (coordinating, "results_of", True, 14, 0),
        (generations, "promote", False, 1, 0), INSIDE, (generations, "promote", True, 1, 0),
    ]),
)  # fmt: skip
def test_killed_coordinator(
    moment: tuple[Any, str, bool, int, int], cluster: LocalCluster, rebuilding: Rebuilding
) -> None:  # fmt: skip
    """Whenever the coordinator is killed, before the last result or before, inside or after the promotion, the next one
    hands out only what is not done."""
    *where, left = moment
    ended = rebuilding.run(cluster.address, patch=killing(*where))
    assert ended.exit_code == -signal.SIGKILL
    wait_until(lambda: len(cluster.reached("written")) == len(cluster.reached("begun")))
    done = len({*cluster.reached("written")})
    again = rebuilding.run(cluster.address)
    assert rebuilding.is_right(again)
    assert again.submitted <= left
    assert ended.submitted + again.submitted >= done
