"""Compare cold starts of `ratings` with imports of its libraries: help, a short answer, completion in a shell."""

import sys
from collections.abc import Iterator

from benchmarks.measuring import PROGRAM, ROOT, Call, measure, run_in_turn
from benchmarks.results import Bar, Line, build_checked_series
from benchmarks.setting import Setting
from ratings_ledger.cli.completion.stored_names import write_names

NAMES = 20_000  # the maximum number of names that the file for completion keeps of a kind
COMPLETION_REQUEST = ("env", "_RATINGS_COMPLETE=zsh_complete")
# a run is short, and the machine is not quiet
REPETITIONS = 4


def measure_start(setting: Setting) -> Iterator[Line]:
    """Measure `ratings --help` and `ratings standings` on a club's season, from the start of the process to its end."""
    url = setting.sqlite.empty_ledger()
    season = str(ROOT / "examples" / "winter-league.csv")
    arguments = ["import", season, "--set", "game=club-catan", "--zone", "Europe/Berlin"]
    measure(Call("benchmarks.ours:run_command", {"url": url, "arguments": arguments}))
    for what, arguments, library, times in (
        ("ratings --help", ["--help"], "click", 2.0),
        ("ratings standings on a small ledger", ["standings", "club-catan-elo/all"], "sqlalchemy", 1.4),
    ):
        import_command = [sys.executable, "-c", f"import {library}"]
        calls = {
            "ours": Call("benchmarks.measuring:run_cold_command", {"command": [*PROGRAM, "--db", url, *arguments]}),
            "imports": Call("benchmarks.measuring:run_cold_command", {"command": import_command}),
        }
        runs = run_in_turn(calls, REPETITIONS * setting.repetitions, warm_up=1)
        yield Line(
            f"{what}, cold process",
            build_checked_series(" ".join(what.split()[:2]), "answers", 1, runs["ours"]),
            build_checked_series(f"python -c 'import {library}'", "imports", 1, runs["imports"]),
            Bar("times the time", times),
        )
    yield from _measure_completions(setting, url)


def _measure_completions(setting: Setting, url: str) -> Iterator[Line]:
    """Measure completions in a shell: of a ladder, and of a player among many."""
    crowded = str(setting.folder / "crowded.db")
    write_names(crowded, bytes(32), {"players": [f"player {number}" for number in range(NAMES)]})
    for what, db, words in (
        ("a ladder of a small ledger", url, ["standings", "club-"]),
        (f"a player among {NAMES:,}", crowded, ["history", "player 1234"]),
    ):
        calls = {
            "ours": Call(
                "benchmarks.measuring:run_cold_command",
                {"command": [*COMPLETION_REQUEST, *PROGRAM, "--db", db, *words]},
            ),
            "imports": Call(
                "benchmarks.measuring:run_cold_command", {"command": [sys.executable, "-c", "import click"]}
            ),
        }
        runs = run_in_turn(calls, REPETITIONS * setting.repetitions, warm_up=1)
        yield Line(
            f"completing {what}, cold process",
            build_checked_series("ratings", "answers", 1, runs["ours"]),
            build_checked_series("python -c 'import click'", "imports", 1, runs["imports"]),
            Bar("times the time", 2.0),
        )
