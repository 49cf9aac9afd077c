"""`ratings serve` as a process of its own."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path


@contextmanager
def serving(url: str, folder: Path, *options: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """A server of its own, by its port, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-m", "ratings_ledger"]
    command = [*program, "--db", url, "serve", "--port", str(port), *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment) as process:
        try:
            assert process.stderr is not None
            assert f"http://127.0.0.1:{port}/" in process.stderr.readline()
            yield port, process
        finally:
            process.kill()


def fetched(port: int, address: str) -> tuple[int, bytes]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", address)
        told = connection.getresponse()
        return told.status, told.read()
