"""Measure real results at scale: contest standings divided into tables, if their file is next to the checkout."""

import gzip
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import ROOT, Call, measure, run_in_turn
from benchmarks.results import Line, Run, Skipped, build_checked_series
from benchmarks.setting import Setting

GAMES_FILE = ROOT.parent / "shared" / "data" / "codeforces-pods" / "games.csv.gz"


def measure_codeforces(setting: Setting) -> Iterator[Line | Skipped]:
    """Measure an import, a rebuild and a verification. The import runs only once, because it takes longest."""
    if not GAMES_FILE.exists():
        yield Skipped(
            "real contest results", f"../{GAMES_FILE.relative_to(ROOT.parent)} is missing; add it to measure this row"
        )
        return
    setting.folder.mkdir(parents=True, exist_ok=True)
    path = setting.folder / "codeforces-pods.csv"
    games = _unpack(path, setting.games_max)
    url = setting.sqlite.empty_ledger()
    imported = _run_once(url, ["import", str(path), "--set", "game=bench"])
    yield Line(f"import of {games:,} real games, CSV", build_checked_series("import", "games", games, imported))
    rebuilt = run_in_turn({"rebuild": Call("benchmarks.ours:rebuild", {"url": url})}, setting.repetitions)["rebuild"]
    yield Line(
        f"rebuild of {games:,} real games, nothing cached", build_checked_series("rebuild", "games", games, rebuilt)
    )
    yield Line(
        f"verify of {games:,} real games", build_checked_series("verify", "games", games, _run_once(url, ["verify"]))
    )


def _run_once(url: str, command: list[str]) -> list[Run]:
    return [measure(Call("benchmarks.ours:run_command", {"url": url, "arguments": command}))]


def _unpack(path: Path, games_max: int | None) -> int:
    """Write the games, or the first `games_max`, as a CSV file; return the number of games."""
    count = 0  # the heading is line 0
    with gzip.open(GAMES_FILE, "rt", encoding="utf-8") as packed, open(path, "w", encoding="utf-8") as file:
        for number, line in enumerate(packed):
            if games_max is not None and number > games_max:
                break
            count = number
            file.write(line)
    return count
