"""An interrupt at any time ends a command silently or with one line, never with a traceback.

The exit code is 130, that of a finished command, or Python's own before the program handles interrupts.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Ratings = Callable[..., Any]
ROOT = Path(__file__).parents[2]
SHORT_MS = (20, 60, 120, 250)
LONG_MS = (5, 10, 20, 30, 45, 60, 80, 100, 125, 150, 175, 200, 225, 250, 275, 300, 400)
ROUNDS = 8
GAME = ("--game", "chess", "--at", "2024-01-01T20:00Z", "anna", "ben")


def make_ledger(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    assert ratings("record", "-q", "--game-id", "g-0", *GAME, db=url).exit_code == 0


def run_interrupted(db: str, command: tuple[str, ...], signal_number: int, after_ms: int) -> tuple[int, str, str]:
    """Return the exit code and output of a command that gets a signal some time after it began."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ratings_ledger", "--db", db, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    time.sleep(after_ms / 1000)
    process.send_signal(signal_number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def is_before_handler(err: str) -> bool:
    """Return whether a traceback is from before the program handled interrupts."""
    ours = re.findall(rf'File "{re.escape(str(ROOT))}/(?!\.venv/)([^"]+)", line \d+, in (\S+)', err)
    return {*ours} <= MODULES_BEFORE_HANDLER


# the modules that run before the handler of interrupts is set
MODULES_BEFORE_HANDLER = {
    (f"ratings_ledger/{name}.py", "<module>") for name in ("__init__", "__main__", "cli/__init__", "cli/start")
}
COMMANDS = {
    "version": ("--version",),
    "standings": ("standings", "elo-chess/all"),
    "log": ("log", "--format", "json"),
    "record": ("record", "-q", "--game-id", "new", *GAME),
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("command", COMMANDS)
def test_interrupt_leaves_no_traceback(
    command: str, copy_ledger: Callable[..., str], ratings: Ratings, at_length: bool
) -> None:
    """A command interrupted after its handler is set leaves no traceback, and its exit code says how it ended."""
    db = copy_ledger(make_ledger)
    for number in range(ROUNDS if at_length else 1):
        for after_ms in LONG_MS if at_length else SHORT_MS:
            code, _, err = run_interrupted(db, COMMANDS[command], signal.SIGINT, after_ms + number)
            if "Traceback" in err and is_before_handler(err):
                continue
            assert "Traceback" not in err, (after_ms, err)
            assert "bug" not in err
            assert code in (0, 130, -signal.SIGINT), (after_ms, code, err)
            messages = [line for line in err.splitlines() if line and not line.startswith('{"reason": "interrupted"')]
            assert code == 0 or messages in ([], ["ratings: interrupted"]), err
            if command == "record" and code == 0:
                assert "new" in ratings("games", "--format", "json", db=db).stdout
    assert ratings("verify", db=db) == (0, "", "")
    games = json.loads(ratings("games", "--format", "json", db=db).stdout)["rows"]
    assert len(games) <= 2


@pytest.mark.parametrize("command", COMMANDS)
def test_terminated_command_is_silent(command: str, copy_ledger_file: Callable[..., str], at_length: bool) -> None:
    """A command that is terminated prints nothing on stderr."""
    db = copy_ledger_file(make_ledger)
    for after_ms in LONG_MS if at_length else SHORT_MS[:2]:
        code, _, err = run_interrupted(db, COMMANDS[command], signal.SIGTERM, after_ms)
        assert code in (0, 143, -signal.SIGTERM), (after_ms, code, err)
        assert err == ""


@pytest.mark.slow
def test_ignored_interrupts_stay_ignored(
    copy_ledger_file: Callable[..., str],
) -> None:
    """A command started in the background with SIGINT ignored goes on when interrupted."""
    db = copy_ledger_file(make_ledger)
    command = f"{sys.executable} -m ratings_ledger --db {db} standings elo-chess/all"
    line = f"trap '' INT; {command} & sleep 0.1; kill -INT $!; wait $!"
    process = subprocess.run(["sh", "-c", line], capture_output=True, cwd=ROOT, text=True, check=False)
    assert (process.returncode, process.stderr, "anna" in process.stdout) == (0, "", True)


@pytest.mark.parametrize("error", ["RuntimeError('__set_name__')", "KeyboardInterrupt", "SystemError"])
def test_disguised_interrupt_is_an_interrupt(
    error: str,
) -> None:
    """An interrupt that a module turns into another error still counts as an interrupt."""
    script = (
        "import os, signal\n"
        "from ratings_ledger.cli import main, start\n"
        "def disguise_interrupt(*_, **__):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        for _ in range(10**6): pass\n"
        "    except KeyboardInterrupt:\n"
        f"        raise {error}\n"
        "main.ratings.main = disguise_interrupt\n"
        "start.run()\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=ROOT, text=True, check=False)
    assert (process.returncode, process.stderr) == (130, "ratings: interrupted\n")


@pytest.mark.slow
def test_interrupt_while_a_connection_closes_is_one_line(copy_ledger: Callable[..., str]) -> None:
    """After Ctrl-C while the pool closes a connection, the command prints its one line, and the pool no traceback.

    The connection closes at the end of the command, after all of its output.
    """
    script = (
        "import os, signal\n"
        "from ratings_ledger.cli import start\n"
        "from sqlalchemy.engine.default import DefaultDialect\n"
        "def interrupt(*_):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    for _ in range(10**6): pass\n"
        "DefaultDialect.do_close = interrupt\n"
        "start.run()\n"
    )
    arguments = ["--db", copy_ledger(make_ledger), "standings", "elo-chess/all"]
    command = [sys.executable, "-m", "ratings_ledger", *arguments]
    expected = subprocess.run(command, capture_output=True, cwd=ROOT, text=True, check=True).stdout
    command = [sys.executable, "-c", script, *arguments]
    process = subprocess.run(command, capture_output=True, cwd=ROOT, text=True, check=False)
    assert "anna" in expected
    assert (process.returncode, process.stdout, process.stderr) == (130, expected, "\nratings: interrupted\n")


def test_interrupt_during_cleanup_is_kept() -> None:
    """An interrupt that comes while an object is deleted is not lost."""
    script = (
        "import os, signal\n"
        "from ratings_ledger.cli import main, start\n"
        "class InterruptedCleanup:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        for _ in range(10**6): pass\n"
        "def delete_object(*_, **__):\n"
        "    garbage = InterruptedCleanup()\n"
        "    del garbage\n"
        "main.ratings.main = delete_object\n"
        "start.run()\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=ROOT, text=True, check=False)
    assert (process.returncode, process.stderr) == (130, "")
