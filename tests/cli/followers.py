"""Shared helpers for the tests of `import --follow -`: the program as a child process with pipes on both sides."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PROGRAM = (sys.executable, "-m", "ratings_ledger")


class Follower:
    """A running `import --follow -`."""

    def __init__(self, db: str, *options: str) -> None:
        command = [*PROGRAM, "--db", db, "import", "--follow", "-", *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)

    def send(self, *lines: str | bytes) -> None:
        """Write lines unchanged."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line.encode() if isinstance(line, str) else line for line in lines))
        self.process.stdin.flush()

    def read_answer(self) -> Any:
        """Return the next answer."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> tuple[int, list[Any], str]:
        """Close the input and return the exit code, the remaining answers and the standard error."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


@contextmanager
def start_follower(db: str, *options: str) -> Iterator[Follower]:
    """Start a follower and kill it at the end."""
    follower = Follower(db, *options)
    try:
        yield follower
    finally:
        follower.process.kill()
        follower.process.communicate()
