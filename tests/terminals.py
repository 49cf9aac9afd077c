"""Run commands at a terminal, as users do."""

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


def run_on_terminal(*arguments: str, columns: int = 80, piped: bool = False) -> tuple[str, str]:
    """Run a command that must succeed, and return its stdout, if that is `piped`, and the text on its terminal."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        stdout=subprocess.PIPE if piped else terminal,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
        env=_build_environment(columns),
    )
    os.close(terminal)
    screen = _read_screen(controller)
    os.close(controller)
    stdout, _ = process.communicate()
    assert process.returncode == 0
    return (stdout or b"").decode(), screen


def type_answers(
    command: Sequence[str],
    answers: Sequence[tuple[str, str]],
    columns: int = 80,
    folder: Path = ROOT,
    piped: bool = True,
) -> tuple[int, str, str]:
    """Run a command and type answers; return its exit code, its stdout, if that is `piped`, and the terminal's text.

    Each answer is typed when its question appears; it contains line ends, `CTRL_C` and `CTRL_D` as a keyboard sends
    them. A command whose question does not appear is killed.
    """
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *command],
        stdin=terminal,
        stdout=subprocess.PIPE if piped else terminal,
        stderr=terminal,
        cwd=folder,
        env=_build_environment(columns) | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    screen = ""
    with process:
        try:
            for question, answer in answers:
                screen += _read_screen(controller, question)
                if not screen.endswith(question):
                    process.kill()
                    break
                os.write(controller, answer.encode(errors="surrogateescape"))
                if answer == CTRL_C:
                    _press_until_ended(process, controller)
            screen += _read_screen(controller)
            os.close(controller)
            stdout, _ = process.communicate(timeout=SILENT_SECONDS)
        except BaseException:
            process.kill()  # the context manager waits for it
            raise
    return process.returncode, (stdout or b"").decode(), screen


def _press_until_ended(process: subprocess.Popen[bytes], controller: int) -> None:
    """Press Ctrl-C again until a command ends, as people do.

    Python misses a signal between a question and the wait for its answer; people are not quick enough for that.
    """
    for _ in range(SILENT_SECONDS // PRESSED_SECONDS):
        try:
            process.wait(PRESSED_SECONDS)
            return
        except subprocess.TimeoutExpired:
            os.write(controller, CTRL_C.encode())


def _build_environment(columns: int) -> dict[str, str]:
    return {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}


def _read_screen(controller: int, until: str | None = None) -> str:
    """Return the text on a terminal up to `until`, the end of all its processes, or a long silence."""
    output = b""
    try:
        while (
            (until is None or not output.endswith(until.encode()))
            and select([controller], [], [], SILENT_SECONDS)[0]
            and (piece := os.read(controller, 65_536 if until is None else 1))
        ):
            output += piece
    except OSError:  # Linux raises it when the other end is closed
        pass
    return output.decode(errors="replace")
