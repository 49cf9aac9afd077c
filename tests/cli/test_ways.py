"""The paths of daily commands through the code: how many files they enter, and how often they move between files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# The most files and moves of a command on a ledger of one game; a path should not get longer. Each command ends by
# storing the names that a shell completes. Each write compares the catalogue, checks whether a name is that of a club,
# and finds out in one file whether a game has partners; each connection checks its search path. Each explanation reads
# the assumptions of the ruleset and the opponents of a player. Numbers, however few, are in arrays, and tables align
# their decimals. Each replay asks the rule for its state, and whether versions differ in their numbers. Games of open
# periods are named, and ladders have short names. Standings name what ranks them. A connection that was idle finds out
# whether its file was replaced.
LIMITS = {
    "standings elo-chess/all": (51, 215),
    "explain anna elo-chess/all": (56, 319),
    "correct g-1 ben anna --reason wrong": (70, 760),
    "record --game chess --game-id g-2 anna ben": (71, 651),
}


def run_trace(*arguments: str) -> str:
    """Return what scripts/trace.py prints."""
    process = subprocess.run(
        [sys.executable, "scripts/trace.py", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return process.stdout


@pytest.mark.parametrize("command", LIMITS)
def test_paths_do_not_get_longer(command: str) -> None:
    """A daily command enters no more files, and moves no more often between them, than its limits allow."""
    match = re.fullmatch(r"(\d+) files, (\d+) moves between files, exit code 0\n", run_trace(*command.split()))
    assert match is not None
    files, moves = map(int, match.groups())
    assert (files <= LIMITS[command][0], moves <= LIMITS[command][1]) == (True, True), (files, moves)


def test_trace_lists_the_moves() -> None:
    """With --way, the trace names for each move the file that was left, the file that was entered and its function."""
    *moves, last = run_trace("--way", "standings", "elo-chess/all").splitlines()
    assert last.startswith(f"{len({name for move in moves for name in re.findall('[a-z_/]+[.]py', move)})} files, ")
    assert any("cli/commands/standings.py" in move and ": standings_" in move for move in moves)
    assert re.fullmatch(r" *1 cli/main\.py -> \S+\.py: \S+", moves[0])
