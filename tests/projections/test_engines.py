"""Engines: their valid addresses, and the number of tasks that they get at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clusters import make_machine_unfit, open_local_cluster, read_capacity
from stores import make_ruled_ledger

from ratings_ledger.projections.cluster import tasks
from ratings_ledger.projections.cluster.engines import UnfitWorker
from ratings_ledger.projections.cluster.task_runner import Task, _TaskQueue

Ratings = Callable[..., Any]
pytestmark = pytest.mark.ledger(make=make_ruled_ledger)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("processes:0", "is not a number of processes; write 1 to 1000"),
        ("processes:many", "is not a number of processes; write 1 to 1000"),
        ("http://127.0.0.1:8786", "is not an engine; pass tcp://HOST:PORT"),
        ("tcp:127.0.0.1:8786", "is not an engine; pass tcp://HOST:PORT"),
        ("tcp://10.0.0.7:8786", "is not a loopback address"),
    ],
)
def test_bad_addresses_are_rejected(address: str, problem: str, one_db: str, ratings: Ratings) -> None:
    """An address that is no engine, or on another machine without protection, is rejected with the alternative."""
    result = ratings("rebuild", "--on", address, db=one_db)
    assert (result.exit_code, result.stdout, problem in result.stderr) == (2, "", True), result.stderr


def test_engine_capacity_is_the_number_of_processes() -> None:
    """An engine of three processes gets three tasks at once."""
    assert read_capacity("processes:3") == 3


def test_machine_with_different_points_is_refused(
    one_db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If compiled and interpreted code give different points on the coordinator, the error says so, without a crash."""
    problem = "compiled code and the interpreter compute different points here"
    make_machine_unfit(monkeypatch, problem)
    result = ratings("rebuild", "--on", "processes:1", "--segments", tmp_path / "sealed", db=one_db)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "", f"ratings: {problem}\n")


def test_unfit_worker_names_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If a worker cannot compute points, the error names the worker, because it is shown on the coordinator."""

    def refuse() -> str:
        raise UnfitWorker("numba cannot compile here")

    with open_local_cluster(tmp_path) as cluster:
        monkeypatch.setattr(tasks, "compute_golden_digest", refuse)
        with pytest.raises(UnfitWorker, match=r"^the worker on \S+ is unfit: numba cannot compile here$"):
            tasks._check_fitness(cluster.objects.url, cluster.requirements)


def test_damaged_output_is_computed_again(tmp_path: Path) -> None:
    """A task whose output was damaged is waiting again; the error does not claim that the output is elsewhere."""
    with open_local_cluster(tmp_path) as cluster:
        task = Task("{}", "out-1", "a task")
        queue = _TaskQueue(cluster, [task], lambda task: None)
        queue.running[1], queue._started_at[1] = task, 0.0
        cluster.objects.create("out-1", [b"damaged"])

        assert queue.finish(1, None) is None
        assert (queue._waiting, cluster.objects.size("out-1")) == ([task], None)
        assert queue._failures == {task: ["its output was damaged"]}


def test_tls_needs_certificates(tmp_path: Path, one_db: str, ratings: Ratings) -> None:
    """Without certificates, the error names where they belong; with missing files, it says that they cannot be read."""
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    import dask

    def find_problem() -> str:
        result = ratings("rebuild", "--on", "tls://127.0.0.1:8786", db=one_db)
        assert result.exit_code == 2
        return str(result.stderr)

    def build_settings(path: str | None) -> dict[str, Any]:
        tls = "distributed.comm.tls"
        return {f"{tls}.ca-file": path, f"{tls}.client.cert": path, f"{tls}.client.key": path}

    with dask.config.set(build_settings(None)):
        assert "~/.config/dask or the folder DASK_CONFIG, names no certificates: see docs/scale.md" in find_problem()
    with dask.config.set(build_settings(str(tmp_path / "lost.pem"))):
        assert "cannot be read: No such file or directory: see docs/scale.md" in find_problem()


def test_segments_need_an_engine(
    one_db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`--segments` is rejected without an engine; the same folder from the environment is accepted, as it is for all
    commands.
    """
    folder = str(tmp_path / "sealed")
    commands = [("rebuild",), ("verify",), ("nightly",), ("whatif", "catan-elo")]
    for command in commands:
        result = ratings(*command, "--segments", folder, db=one_db)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--segments works only with --on; add --on, such as --on processes:4" in result.stderr
    monkeypatch.setenv("RATINGS_SEGMENTS", folder)
    assert [ratings(*command, db=one_db).exit_code for command in commands] == [0] * len(commands)
    # an engine in the environment is used
    monkeypatch.setenv("RATINGS_ENGINE", "processes:none")
    assert "processes" in ratings("verify", "--segments", folder, db=one_db).stderr
    assert not Path(folder).exists()


def test_verify_checks_the_engine_before_the_log(db: str, ratings: Ratings, tmp_path: Path) -> None:
    """A bad engine or a bad folder for segments is rejected before the log is read, so no wrong head is reported."""
    (tmp_path / "file").touch()
    options_by_problem = {"is not a number of processes": ["processes:none"],
                 "cannot be used for segments": ["processes:1", "--segments", tmp_path / "file"]}  # fmt: skip
    for problem, options in options_by_problem.items():
        result = ratings("verify", "--head", f"1:{'00' * 32}", "--on", *options, db=db)
        assert (result.stdout, problem in result.stderr) == ("", True), result
