"""The start of a process: a short answer from a small ledger, against importing the program's dependencies."""

import sys
from collections.abc import Iterator

from benchmarks.measuring import ROOT, Call, in_turn, measure
from benchmarks.results import Bar, Line, series
from benchmarks.setting import Setting

IMPORTS = "import sqlalchemy, pydantic"
# a single one is short, and the machine is not quiet
REPETITIONS = 4


def start(setting: Setting) -> Iterator[Line]:
    """`ratings standings` on a club's season, from the start of the process to its end."""
    url = setting.sqlite.empty_ledger()
    season = str(ROOT / "examples" / "winter-league.csv")
    arguments = ["import", season, "--set", "game=club-catan", "--zone", "Europe/Berlin"]
    measure(Call("benchmarks.ours:command", {"url": url, "arguments": arguments}))
    shown = {"url": url, "arguments": ["standings", "club-catan-elo/all"]}
    calls = {
        "ours": Call("benchmarks.ours:cold_command", shown),
        "imports": Call("benchmarks.measuring:cold_command", {"command": [sys.executable, "-c", IMPORTS]}),
    }
    runs = in_turn(calls, REPETITIONS * setting.repetitions, warm_up=1)
    yield Line(
        "ratings standings on a small ledger, cold process",
        series("ratings standings", "answers", 1, runs["ours"]),
        series(f"python -c '{IMPORTS}'", "imports", 1, runs["imports"]),
        Bar("times the time", 2.5),
    )
