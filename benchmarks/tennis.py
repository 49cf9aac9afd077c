"""Import the matches of a tennis tour from `MATCHES_FILE`, and keep the ledger for later runs."""

import csv
import gzip
import os
from itertools import islice
from pathlib import Path

from benchmarks import data
from benchmarks.histories import History
from benchmarks.measuring import ROOT, Call, measure

MATCHES_FILE = ROOT.parent / "shared" / "data" / "atp" / "matches.csv.gz"


def ledger(folder: Path, matches_max: int | None) -> str:
    """Return the path of a SQLite ledger of the matches, or of the first `matches_max`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{data.FORMAT}-tennis-{matches_max or 'all'}.db"
    if not path.exists():
        unfinished = path.with_name(f"unfinished-{path.name}")
        unfinished.unlink(missing_ok=True)
        measure(Call("benchmarks.writing:write_ledger", {"path": str(unfinished), "history": History(games=0)}))
        table = folder / "tennis.csv"
        _unpack(table, matches_max)
        arguments = ["import", str(table), "--set", "game=bench"]
        measure(Call("benchmarks.ours:import_table", {"url": str(unfinished), "arguments": arguments}))
        table.unlink()
        os.replace(unfinished, path)
    return str(path)


def _unpack(path: Path, matches_max: int | None) -> None:
    """Write the matches in order as a table of games, except matches of a name against itself."""
    with (
        gzip.open(MATCHES_FILE, "rt", encoding="utf-8", newline="") as packed,
        open(path, "w", encoding="utf-8") as file,
    ):
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["game_id", "occurred_at", "player", "place"])
        for number, match in enumerate(islice(csv.DictReader(packed), matches_max), 1):
            if match["winner"] != match["loser"]:
                for place, side in enumerate(("winner", "loser"), 1):
                    table.writerow([f"m-{number:06d}", f"{match['date']}T12:00:00Z", match[side], place])
