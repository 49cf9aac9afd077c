"""Trace a command's path through the code: the files that it enters, and its moves between files.

    python scripts/trace.py standings elo-chess/all
    python scripts/trace.py --way explain g-1

The command runs on a new ledger with one game of chess, or on the ledger of `--db`. A move is a call of a function in a
different file from the previous call. Calls while Python imports a module do not count. `--way` lists every move. The
command's own output is left out.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "ratings_ledger/"
GAME = ("record", "--game", "chess", "--game-id", "g-1", "--at", "2024-03-01T12:00:00Z", "--quiet", "anna", "ben")


class Move(NamedTuple):
    """A move from a file to the next function called in another file; files are relative to the package."""

    source: str
    target: str
    function: str


def find_file(frame: FrameType | None) -> str | None:
    """Return the product's file of a frame, or None."""
    if frame is None:
        return None
    name = frame.f_code.co_filename
    if not name.startswith(f"{ROOT}{os.sep}"):
        return None
    file = name[len(str(ROOT)) + 1 :].replace(os.sep, "/")
    return file.removeprefix(PACKAGE) if file.startswith(PACKAGE) else None


def record_moves(work: Callable[[], object]) -> list[Move]:
    """Run a function and return its moves, in order."""
    moves: list[Move] = []
    here, importing = "", 0

    def note_call(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal here, importing
        if frame.f_code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
        if event != "call" or importing or (entered := find_file(frame)) is None:
            return
        if here and entered != here:
            moves.append(Move(here, entered, frame.f_code.co_qualname))
        here = entered

    sys.setprofile(note_call)
    try:
        work()
    finally:
        sys.setprofile(None)
    return moves


@contextmanager
def capture_output() -> Iterator[StringIO]:
    """Suppress standard output, and provide the captured standard error."""
    errors = StringIO()
    with open(os.devnull, "w") as null, redirect_stdout(null), redirect_stderr(errors):
        yield errors


def main() -> int:
    """Run the script; return the exit code of the command."""
    parser = argparse.ArgumentParser(description="Count the files that a command enters, and its moves between files.")
    parser.add_argument("--way", action="store_true", help="list every move")
    parser.add_argument("--db", help="an existing ledger; by default a new one with one game")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="a ratings command with its arguments")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from ratings_ledger.cli.main import invoke

    with tempfile.TemporaryDirectory() as folder, capture_output() as errors:
        os.environ["XDG_CACHE_HOME"] = folder
        db = arguments.db or f"{folder}/ratings.db"
        if arguments.db is None:
            for preparation in (["init", "--for", "chess"], [*GAME]):
                assert invoke(["--db", db, *preparation]) == 0, errors.getvalue()
        codes: list[int] = []
        moves = record_moves(lambda: codes.append(invoke(["--db", db, *arguments.command])))
    sys.stderr.write(errors.getvalue())
    files = {move.source for move in moves} | {move.target for move in moves}
    if arguments.way:
        for number, move in enumerate(moves, 1):
            sys.stdout.write(f"{number:5} {move.source} -> {move.target}: {move.function}\n")
    sys.stdout.write(f"{len(files)} files, {len(moves)} moves between files, exit code {codes[0]}\n")
    return codes[0]


if __name__ == "__main__":
    sys.exit(main())
