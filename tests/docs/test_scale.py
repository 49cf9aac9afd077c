"""The page about clusters: its certificates, its configuration and its commands are tried on this machine."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from make_docs import FOLDER

pytestmark = pytest.mark.slow

PAGE = (FOLDER / "scale.md").read_text(encoding="utf-8")
SCRIPTS = Path(sys.executable).parent


def read_section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


COMMANDS = re.findall(r"```sh\n(.*?)```", read_section("Three machines"), re.DOTALL)


def find_free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def create_games_ledger(ratings: Callable[..., Any], url: str) -> None:
    assert ratings("init", "--for", "catan", "--by", "mira", db=url).exit_code == 0
    for number, winner in enumerate(("mira", "ben", "mira")):
        loser = "ben" if winner == "mira" else "mira"
        result = ratings("record", "-q", "--game", "catan", "--game-id", f"g{number}", "--by", "mira", "--new-names",
                       "accept", "--at", f"2025-01-0{number + 1}T20:00Z", winner, loser, db=url)  # fmt: skip
        assert result.exit_code == 0, result


@pytest.fixture
def start_commands(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Yield a function that starts the commands of the page in a shell; what was started ends with the test."""
    with ExitStack() as stack:

        def start(commands: str, **environment: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                ["/bin/sh", "-ec", commands],
                env={**os.environ, **environment},
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            stack.callback(end_process, process)
            return process

        yield start


def end_process(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, 15)
    process.communicate(timeout=20)


def test_cluster_with_certificates_rebuilds(
    copy_ledger_file: Callable[..., str], start_commands: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """With the page's certificates and configuration, its scheduler, worker and rebuild work together; without a
    configuration, the rebuild is refused."""
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    certificates, scheduler, worker, rebuild = COMMANDS
    configuration = re.findall(r"```yaml\n(.*?)```", read_section("Three machines"), re.DOTALL)[0]
    (tmp_path / "distributed.yaml").write_text(configuration.replace("/etc/ratings/dask", str(tmp_path)))
    subprocess.run(["/bin/sh", "-ec", certificates], cwd=tmp_path, check=True, capture_output=True)
    port = find_free_port()

    def adapt_commands(commands: str) -> str:
        replacements = {
            "/etc/ratings/dask": str(tmp_path),
            "scheduler.example": "127.0.0.1",
            "8786": port,
            "8787": "0",
            "--nworkers 4": "--nworkers 1",
            "/srv/ratings": str(tmp_path),
        }
        for what, instead in replacements.items():
            commands = commands.replace(what, instead)
        return commands

    path = {"PATH": f"{SCRIPTS}:{os.environ['PATH']}", "RATINGS_DB": copy_ledger_file(create_games_ledger)}
    start_commands(adapt_commands(scheduler).replace("--port", "--host 127.0.0.1 --port"), **path)
    start_commands(adapt_commands(worker), **path)
    rebuilding = start_commands(adapt_commands(rebuild), **path)
    output = rebuilding.communicate(timeout=60)[0].decode()
    assert (rebuilding.returncode, "from 3 games at position" in output) == (0, True), output
    unconfigured = start_commands(adapt_commands(rebuild).replace("export", ": "), HOME=str(tmp_path), **path)
    output = unconfigured.communicate(timeout=60)[0].decode()
    assert (unconfigured.returncode, "names no certificates: see docs/scale.md" in output) == (2, True), output
