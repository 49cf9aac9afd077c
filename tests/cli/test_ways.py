"""The ways of daily commands through the code: how many files they enter, and how often they move between files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# At most so many files and moves, on a ledger of one game: a way should not get longer. Each ends by keeping the names
# that a shell completes. Each write compares the catalogue, asks whether a name is that of a club and finds out in one
# file whether a game has partners; each connection checks its search path. Each explanation reads the assumptions of
# the ruleset and whom a player met. Numbers, however few, are in arrays, and tables align their decimals. A rule is
# asked for its state, and each replay whether versions differ in their numbers. Games of open periods are named, and
# ladders have short names. Standings name what ranks them. A connection that was idle finds out whether its file was
# replaced.
WAYS = {
    "standings elo-chess/all": (51, 215),
    "explain anna elo-chess/all": (56, 319),
    "correct g-1 ben anna --reason wrong": (70, 760),
    "record --game chess --game-id g-2 anna ben": (71, 651),
}


def way(*arguments: str) -> str:
    """Return what scripts/trace.py prints."""
    process = subprocess.run(
        [sys.executable, "scripts/trace.py", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return process.stdout


@pytest.mark.parametrize("command", WAYS)
def test_ways_do_not_get_longer(command: str) -> None:
    """A daily command enters no more files, and moves no more often between them, than it did."""
    found = re.fullmatch(r"(\d+) files, (\d+) moves between files, exit code 0\n", way(*command.split()))
    assert found is not None
    files, moves = map(int, found.groups())
    assert (files <= WAYS[command][0], moves <= WAYS[command][1]) == (True, True), (files, moves)


def test_way_lists_its_moves() -> None:
    """With --way each move names the file that was left, the one entered, and the function there."""
    *moves, last = way("--way", "standings", "elo-chess/all").splitlines()
    assert last.startswith(f"{len({name for move in moves for name in re.findall('[a-z_/]+[.]py', move)})} files, ")
    assert any("cli/commands/standings.py" in move and ": standings_" in move for move in moves)
    assert re.fullmatch(r" *1 cli/main\.py -> \S+\.py: \S+", moves[0])
