"""A command's path through the code: which files it enters, and how often it moves from one file to another.

    python scripts/trace.py standings elo-chess/all
    python scripts/trace.py --way explain g-1

The command runs on a new ledger with one game of chess, or on the one given by `--db`. A move is when the next function
called is in a different file from the previous one. What modules do while they are imported does not count. With
`--way` every move is listed, too. The command's own output is left out.
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
    """From a file to the next function called in another file; files are relative to the checkout."""

    left: str
    entered: str
    function: str


def file_of(frame: FrameType | None) -> str | None:
    """The product's file that a frame belongs to, or None."""
    if frame is None:
        return None
    name = frame.f_code.co_filename
    if not name.startswith(f"{ROOT}{os.sep}"):
        return None
    found = name[len(str(ROOT)) + 1 :].replace(os.sep, "/")
    return found.removeprefix(PACKAGE) if found.startswith(PACKAGE) else None


def moves_of(work: Callable[[], object]) -> list[Move]:
    """Run something, and return its moves in order."""
    found: list[Move] = []
    here, importing = "", 0

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal here, importing
        if frame.f_code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
        if event != "call" or importing or (entered := file_of(frame)) is None:
            return
        if here and entered != here:
            found.append(Move(here, entered, frame.f_code.co_qualname))
        here = entered

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@contextmanager
def quiet() -> Iterator[StringIO]:
    """Capture what is printed."""
    errors = StringIO()
    with open(os.devnull, "w") as told, redirect_stdout(told), redirect_stderr(errors):
        yield errors


def main() -> int:
    """The program; returns the exit code of the command."""
    parser = argparse.ArgumentParser(description="Which files a command enters, and how often it moves between them.")
    parser.add_argument("--way", action="store_true", help="list every move")
    parser.add_argument("--db", help="an existing ledger; otherwise a new one with one game")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="a ratings command with its arguments")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from ratings_ledger.cli.main import invoke

    with tempfile.TemporaryDirectory() as folder, quiet() as errors:
        os.environ["XDG_CACHE_HOME"] = folder
        db = given.db or f"{folder}/ratings.db"
        if given.db is None:
            for prepared in (["init", "--for", "chess"], [*GAME]):
                assert invoke(["--db", db, *prepared]) == 0, errors.getvalue()
        codes: list[int] = []
        found = moves_of(lambda: codes.append(invoke(["--db", db, *given.command])))
    sys.stderr.write(errors.getvalue())
    entered = {move.entered for move in found} | {move.left for move in found}
    if given.way:
        for number, move in enumerate(found, 1):
            sys.stdout.write(f"{number:5} {move.left} -> {move.entered}: {move.function}\n")
    sys.stdout.write(f"{len(entered)} files, {len(found)} moves between files, exit code {codes[0]}\n")
    return codes[0]


if __name__ == "__main__":
    sys.exit(main())
