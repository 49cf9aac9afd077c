"""What the tests of `import --follow -` share: the program as another one starts it, with pipes to both sides."""

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
        """Write lines as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line.encode() if isinstance(line, str) else line for line in lines))
        self.process.stdin.flush()

    def answer(self) -> Any:
        """The next answer."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> tuple[int, list[Any], str]:
        """End its input: the exit code, the answers that were still to come, and what it said on standard error."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


@contextmanager
def following(db: str, *options: str) -> Iterator[Follower]:
    """A follower that is gone in the end."""
    follower = Follower(db, *options)
    try:
        yield follower
    finally:
        follower.process.kill()
        follower.process.communicate()
