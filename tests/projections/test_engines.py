"""Engines: what their addresses may be, and how much they are given at once."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from stores import make_ruled_ledger

from ratings_ledger import BadArgument
from ratings_ledger.projections.cluster.engines import open_engine


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
def test_wrong_addresses_are_refused(address: str, problem: str) -> None:
    """What is no engine, or would let anybody run programs here, is refused with what would be right."""
    with ExitStack() as stack, pytest.raises(BadArgument, match=problem):
        stack.enter_context(open_engine(address))


def test_processes_do_a_task_each() -> None:
    """No more tasks are given to processes than there are processes."""
    with open_engine("processes:3") as engine:
        assert engine.capacity() == 3


def test_tls_needs_certificates(tmp_path: Path) -> None:
    """Without certificates, or with some that are not there, the refusal says where they belong."""
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    import dask

    def refused() -> str:
        with ExitStack() as stack, pytest.raises(BadArgument) as told:
            stack.enter_context(open_engine("tls://127.0.0.1:8786"))
        return str(told.value)

    def certificates(path: str | None) -> dict[str, Any]:
        tls = "distributed.comm.tls"
        return {f"{tls}.ca-file": path, f"{tls}.client.cert": path, f"{tls}.client.key": path}

    with dask.config.set(certificates(None)):
        assert "~/.config/dask or the folder DASK_CONFIG, names no certificates: see docs/scale.md" in refused()
    with dask.config.set(certificates(str(tmp_path / "lost.pem"))):
        assert "cannot be read: No such file or directory: see docs/scale.md" in refused()


def test_segments_need_an_engine(
    copied_file: Callable[..., str], ratings: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A place for segments is refused where nobody would use it, unless it is that of the environment, which is for all
    commands."""
    ledger, place = copied_file(make_ruled_ledger), str(tmp_path / "sealed")
    commands = [("rebuild",), ("verify",), ("nightly",), ("whatif", "catan-elo")]
    for command in commands:
        told = ratings(*command, "--segments", place, db=ledger)
        assert (told.exit_code, told.stdout) == (2, "")
        assert "--segments works only with --on; add --on, such as --on processes:4" in told.stderr
    monkeypatch.setenv("RATINGS_SEGMENTS", place)
    assert [ratings(*command, db=ledger).exit_code for command in commands] == [0] * len(commands)
    # with an engine in the environment it is used
    monkeypatch.setenv("RATINGS_ENGINE", "processes:none")
    assert "processes" in ratings("verify", "--segments", place, db=ledger).stderr
    assert not Path(place).exists()


def test_verify_refuses_an_engine_before_it_reads(
    copied: Callable[..., str], ratings: Callable[..., Any], tmp_path: Path
) -> None:
    """What is no engine, and a place that is none, are refused before the log is read, which would be told of a head
    that it does not contain."""
    ledger = copied(make_ruled_ledger)
    (tmp_path / "file").touch()
    elsewhere = {"is not a number of processes": ["processes:none"],
                 "cannot be used for segments": ["processes:1", "--segments", tmp_path / "file"]}  # fmt: skip
    for problem, on in elsewhere.items():
        told = ratings("verify", "--head", f"1:{'00' * 32}", "--on", *on, db=ledger)
        assert (told.stdout, problem in told.stderr) == ("", True), told
