"""Commands run as somebody runs them at a terminal."""

import fcntl
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from select import select

ROOT = Path(__file__).parents[1]
PROGRAM = (sys.executable, "-m", "ratings_ledger")
CTRL_C, CTRL_D = "\x03", "\x04"
SILENT_SECONDS, PRESSED_SECONDS = 60, 3


def on_terminal(*arguments: str, columns: int = 80, piped: bool = False) -> tuple[str, str]:
    """What a command that succeeds writes to stdout if that is `piped`, and to a terminal of so many columns."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdout=subprocess.PIPE if piped else terminal, stderr=terminal,
        stdin=subprocess.DEVNULL, cwd=ROOT, env=_environment(columns),
    )  # fmt: skip
    os.close(terminal)
    written = _written(controller)
    os.close(controller)
    stdout, _ = process.communicate()
    assert process.returncode == 0
    return (stdout or b"").decode(), written


def typed(
    command: Sequence[str], answers: Sequence[tuple[str, str]], columns: int = 80, folder: Path = ROOT,
    piped: bool = True,
) -> tuple[int, str, str]:  # fmt: skip
    """The exit code of a command, what it writes to stdout if that is `piped`, and what its terminal shows, typed text
    included.

    Each answer is typed once its question is there; it holds line ends, `CTRL_C` and `CTRL_D` as a keyboard sends them.
    A command that then still waits for something is killed.
    """
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *command], stdin=terminal, stdout=subprocess.PIPE if piped else terminal, stderr=terminal,
        cwd=folder, env=_environment(columns) | {"PYTHONPATH": str(ROOT)}, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(terminal)
    shown = ""
    with process:
        try:
            for question, answer in answers:
                shown += _written(controller, question)
                if not shown.endswith(question):
                    process.kill()
                    break
                os.write(controller, answer.encode(errors="surrogateescape"))
                if answer == CTRL_C:
                    _press_until_heard(process, controller)
            shown += _written(controller)
            os.close(controller)
            stdout, _ = process.communicate(timeout=SILENT_SECONDS)
        except BaseException:
            process.kill()  # what is left is waited for
            raise
    return process.returncode, (stdout or b"").decode(), shown


def _press_until_heard(process: subprocess.Popen[bytes], controller: int) -> None:
    """Press Ctrl-C again until a command ends, as people do: Python misses a signal between a question and the wait for
    its answer, which nobody else is quick enough for."""
    for _ in range(SILENT_SECONDS // PRESSED_SECONDS):
        try:
            process.wait(PRESSED_SECONDS)
            return
        except subprocess.TimeoutExpired:
            os.write(controller, CTRL_C.encode())


def _environment(columns: int) -> dict[str, str]:
    return {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}


def _written(controller: int, until: str | None = None) -> str:
    """What a terminal shows, up to a text, until everybody has left it, or until nothing comes for a long time."""
    written = b""
    try:
        while (
            (until is None or not written.endswith(until.encode()))
            and select([controller], [], [], SILENT_SECONDS)[0]
            and (piece := os.read(controller, 65_536 if until is None else 1))
        ):
            written += piece
    except OSError:  # Linux says so when the other end is closed
        pass
    return written.decode(errors="replace")
