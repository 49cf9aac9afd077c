"""Interactive shells in which a test types lines and presses Tab."""

import fcntl
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
# the lines that load completion, as in the command's help; for zsh, with the setup that the help presupposes
LOADING_LINES = {
    "bash": 'eval "$(ratings completion bash)"',
    "zsh": 'bindkey -e; autoload -Uz compinit; compinit -D -u; eval "$(ratings completion zsh)"',
    "fish": "ratings completion fish | source",
}
TAB, BEGINNING_OF_LINE, ENTER = "\t", "\x01", "\r"
SECONDS_MAX = 120


class Typist:
    """A user at a shell in a folder, where the program `save-arguments` writes its arguments to a file."""

    def __init__(self, controller: int, arguments_file: Path) -> None:
        self._controller, self._arguments_file = controller, arguments_file
        self._output = b""

    def complete(self, typed: str) -> list[str]:
        """Type text and Tab, and return the words of the resulting line: the shell passes them to `save-arguments`."""
        self._arguments_file.unlink(missing_ok=True)
        os.write(self._controller, f"{typed}{TAB}{BEGINNING_OF_LINE}save-arguments {ENTER}".encode())
        end = time.monotonic() + SECONDS_MAX
        while not self._arguments_file.exists():
            assert time.monotonic() < end, self._output.decode(errors="replace")
            if select.select([self._controller], [], [], 0.05)[0]:
                self._output += os.read(self._controller, 65_536)
        return [str(word) for word in json.loads(self._arguments_file.read_text(encoding="utf-8"))]


@contextmanager
def open_shell(name: str, folder: Path, ledger: str) -> Iterator[Typist]:
    """Open a shell in which `ratings` commands are completed with the names of a ledger."""
    programs, arguments_file = folder / "programs", folder / "arguments.json"
    programs.mkdir()
    _make_program(programs / "ratings", "from ratings_ledger.cli.start import run; run()")
    saving_code = (
        "import json, os, sys; json.dump(sys.argv[1:], open('arguments.new', 'w')); "
        "os.rename('arguments.new', 'arguments.json')"
    )
    _make_program(programs / "save-arguments", saving_code)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm",
        "RATINGS_DB": ledger,
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "80",
        "XDG_CONFIG_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
    }
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        SHELLS[name],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=folder,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    try:
        os.write(controller, f"{LOADING_LINES[name]}{ENTER}".encode())
        yield Typist(controller, arguments_file)
    finally:
        process.kill()
        process.wait()
        os.close(controller)


def _make_program(path: Path, code: str) -> None:
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n', encoding="utf-8")
    path.chmod(0o755)


def is_installed(shell: str) -> bool:
    """Return whether this machine has the shell."""
    return shutil.which(shell) is not None
