"""Engines: their valid addresses, and the number of tasks that they get at once."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from stores import make_ruled_ledger

from ratings_ledger import BadArgument, StoreUnavailable
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.cluster import coordinating
from ratings_ledger.projections.cluster.engines import UnfitWorker, open_engine


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("processes:0", "is not a number of processes; write 1 to 1000"),
        ("processes:many", "is not a number of processes; write 1 to 1000"),
        ("http://127.0.0.1:8786", "is not an engine; pass tcp://HOST:PORT"),
        ("tcp:127.0.0.1:8786", "is not an engine; pass tcp://HOST:PORT"),
        ("tcp://10.0.0.7:8786", "is on another machine"),
    ],
)
def test_bad_addresses_are_rejected(address: str, problem: str) -> None:
    """An address that is no engine, or on another machine without protection, is rejected with the alternative."""
    with ExitStack() as stack, pytest.raises(BadArgument, match=problem):
        stack.enter_context(open_engine(address))


def test_engine_capacity_is_the_number_of_processes() -> None:
    """An engine of three processes gets three tasks at once."""
    with open_engine("processes:3") as engine:
        assert engine.capacity() == 3


def test_machine_with_different_points_is_refused(
    copied_file: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If compiled and interpreted code give different points on the coordinator, the error says so, without a crash."""
    problem = "compiled code and the interpreter compute different points here"

    def refuse() -> str:
        raise UnfitWorker(problem)

    monkeypatch.setattr(coordinating, "compute_golden_digest", refuse)
    ledger = open_ledger(copied_file(make_ruled_ledger))
    with ExitStack() as stack, pytest.raises(StoreUnavailable, match=problem):
        stack.enter_context(coordinating.open_cluster(ledger, "processes:1", str(tmp_path)))


def test_tls_needs_certificates(tmp_path: Path) -> None:
    """Without certificates, or with missing files, the error names where they belong."""
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    import dask

    def find_problem() -> str:
        with ExitStack() as stack, pytest.raises(BadArgument) as error:
            stack.enter_context(open_engine("tls://127.0.0.1:8786"))
        return str(error.value)

    def build_settings(path: str | None) -> dict[str, Any]:
        tls = "distributed.comm.tls"
        return {f"{tls}.ca-file": path, f"{tls}.client.cert": path, f"{tls}.client.key": path}

    with dask.config.set(build_settings(None)):
        assert "~/.config/dask or the folder DASK_CONFIG, names no certificates: see docs/scale.md" in find_problem()
    with dask.config.set(build_settings(str(tmp_path / "lost.pem"))):
        assert "cannot be read: No such file or directory: see docs/scale.md" in find_problem()


def test_segments_need_an_engine(
    copied_file: Callable[..., str], ratings: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`--segments` is rejected without an engine; the same folder from the environment is accepted, as it is for all
    commands.
    """
    ledger, place = copied_file(make_ruled_ledger), str(tmp_path / "sealed")
    commands = [("rebuild",), ("verify",), ("nightly",), ("whatif", "catan-elo")]
    for command in commands:
        result = ratings(*command, "--segments", place, db=ledger)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--segments works only with --on; add --on, such as --on processes:4" in result.stderr
    monkeypatch.setenv("RATINGS_SEGMENTS", place)
    assert [ratings(*command, db=ledger).exit_code for command in commands] == [0] * len(commands)
    # an engine in the environment is used
    monkeypatch.setenv("RATINGS_ENGINE", "processes:none")
    assert "processes" in ratings("verify", "--segments", place, db=ledger).stderr
    assert not Path(place).exists()


def test_verify_checks_the_engine_before_the_log(
    copied: Callable[..., str], ratings: Callable[..., Any], tmp_path: Path
) -> None:
    """A bad engine or a bad place for segments is rejected before the log is read and a wrong head is reported."""
    ledger = copied(make_ruled_ledger)
    (tmp_path / "file").touch()
    options_by_problem = {"is not a number of processes": ["processes:none"],
                 "cannot be used for segments": ["processes:1", "--segments", tmp_path / "file"]}  # fmt: skip
    for problem, options in options_by_problem.items():
        result = ratings("verify", "--head", f"1:{'00' * 32}", "--on", *options, db=ledger)
        assert (result.stdout, problem in result.stderr) == ("", True), result
