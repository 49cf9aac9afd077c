"""Standard streams that are closed before the program starts: no traceback, and no ledger under a stream's number."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from stores import make_empty_ledger


@pytest.mark.slow_cases
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["status", "verify", "export events", "import -", "record"])
def test_closed_streams_are_no_bug(copy_ledger_file: Callable[..., str], command: str, closed: str) -> None:
    """A command started with closed standard streams ends without a traceback or a bug report."""
    db = copy_ledger_file(make_empty_ledger)
    line = f"exec {sys.executable} -m ratings_ledger --db {db} {command} {closed}"
    process = subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert b"bug" not in process.stderr
    assert b"Traceback" not in process.stderr
    assert process.returncode in (0, 1, 2)
