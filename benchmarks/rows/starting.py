"""The start of a process: the list of commands, a short answer, and what a shell completes, against importing what
each cannot do without.
"""

import sys
from collections.abc import Iterator

from benchmarks.measuring import PROGRAM, ROOT, Call, in_turn, measure
from benchmarks.results import Bar, Line, series
from benchmarks.setting import Setting
from ratings_ledger.cli.completion.names import write_names

NAMES = 20_000  # as many of a kind as are kept
ASKED = ("env", "_RATINGS_COMPLETE=zsh_complete")  # by a shell that completes
# a single one is short, and the machine is not quiet
REPETITIONS = 4


def start(setting: Setting) -> Iterator[Line]:
    """`ratings --help`, and `ratings standings` on a club's season, from the start of the process to its end."""
    url = setting.sqlite.empty_ledger()
    season = str(ROOT / "examples" / "winter-league.csv")
    arguments = ["import", season, "--set", "game=club-catan", "--zone", "Europe/Berlin"]
    measure(Call("benchmarks.ours:command", {"url": url, "arguments": arguments}))
    for what, shown, library, times in (
        ("ratings --help", ["--help"], "click", 2.0),
        ("ratings standings on a small ledger", ["standings", "club-catan-elo/all"], "sqlalchemy", 1.4),
    ):
        imported = [sys.executable, "-c", f"import {library}"]
        calls = {
            "ours": Call("benchmarks.measuring:cold_command", {"command": [*PROGRAM, "--db", url, *shown]}),
            "imports": Call("benchmarks.measuring:cold_command", {"command": imported}),
        }
        runs = in_turn(calls, REPETITIONS * setting.repetitions, warm_up=1)
        yield Line(
            f"{what}, cold process",
            series(" ".join(what.split()[:2]), "answers", 1, runs["ours"]),
            series(f"python -c 'import {library}'", "imports", 1, runs["imports"]),
            Bar("times the time", times),
        )
    yield from _completions(setting, url)


def _completions(setting: Setting, url: str) -> Iterator[Line]:
    """Yield what a shell completes: a ladder, and one of many players."""
    crowded = str(setting.folder / "crowded.db")
    write_names(crowded, bytes(32), {"players": [f"player {number}" for number in range(NAMES)]})
    for what, of, words in (
        ("a ladder of a small ledger", url, ["standings", "club-"]),
        (f"a player among {NAMES:,}", crowded, ["history", "player 1234"]),
    ):
        calls = {
            "ours": Call("benchmarks.measuring:cold_command", {"command": [*ASKED, *PROGRAM, "--db", of, *words]}),
            "imports": Call("benchmarks.measuring:cold_command", {"command": [sys.executable, "-c", "import click"]}),
        }
        runs = in_turn(calls, REPETITIONS * setting.repetitions, warm_up=1)
        yield Line(
            f"completing {what}, cold process",
            series("ratings", "answers", 1, runs["ours"]),
            series("python -c 'import click'", "imports", 1, runs["imports"]),
            Bar("times the time", 2.0),
        )
