"""Standard streams that are closed before the program starts: no traceback, and no ledger under a stream's number."""

import subprocess
import sys
from pathlib import Path

import pytest

from ledger.migrate import upgrade


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["status", "verify", "export events", "import -", "record"])
def test_a_closed_stream_is_no_bug(tmp_path: Path, command: str, closed: str) -> None:
    upgrade(str(tmp_path / "ratings.db"))
    line = f"exec {sys.executable} -c 'from cli.main import run; run()' --db {tmp_path}/ratings.db {command} {closed}"
    done = subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert b"bug" not in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2)
