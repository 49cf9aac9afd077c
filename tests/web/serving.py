"""`ratings serve` in a process of its own."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path


@contextmanager
def run_server(url: str, folder: Path, *options: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Start a server, provide its port and process, and kill it at the end."""
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


def fetch_page(port: int, address: str) -> tuple[int, bytes]:
    """Return the status and the body of a page."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", address)
        response = connection.getresponse()
        return response.status, response.read()
