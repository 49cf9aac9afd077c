"""Commands run as somebody runs them at a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def on_terminal(*arguments: str, columns: int = 80, piped: bool = False) -> tuple[str, str]:
    """What a command that succeeds writes to stdout if that is `piped`, and to a terminal of so many columns."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from cli.main import program; program()", *arguments],
        stdout=subprocess.PIPE if piped else terminal, stderr=terminal, stdin=subprocess.DEVNULL, cwd=ROOT,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    os.close(terminal)
    written = b""
    try:
        while piece := os.read(controller, 65_536):
            written += piece
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(controller)
    stdout, _ = process.communicate()
    assert process.returncode == 0
    return (stdout or b"").decode(), written.decode()
