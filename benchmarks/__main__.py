"""Run `python -m benchmarks`: measure rows, print their table, and with `--write` store it."""

import argparse
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.measuring import keep_caches_in
from benchmarks.results import Line, Skipped
from benchmarks.rows import ROWS
from benchmarks.setting import Setting
from benchmarks.tables import format_table

FOLDER = Path(__file__).parent / "data"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--rows", metavar="NAME,...", default=",".join(ROWS), help=f"the rows to measure, out of: {', '.join(ROWS)}"
    )
    parser.add_argument("--games", metavar="N", type=int, help="the maximum number of games; default: the full sizes")
    parser.add_argument("--repetitions", metavar="N", type=int, default=5, help="runs of each measurement; default: 5")
    parser.add_argument("--data", metavar="FOLDER", type=Path, default=FOLDER, help="the folder for drawn games")
    parser.add_argument("--write", action="store_true", help="write to benchmarks/results.json and docs/performance.md")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Measure the requested rows."""
    parser = build_parser()
    chosen = parser.parse_args(arguments)
    names = chosen.rows.split(",")
    if unknown := [name for name in names if name not in ROWS]:
        parser.error(f"there is no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    setting = Setting(chosen.data.absolute(), chosen.repetitions, chosen.games)
    with keep_caches_in(setting.folder / "cache"):
        for name in names:
            sys.stderr.write(f"{name} ...\n")
            lines: list[Line | Skipped] = list(ROWS[name](setting))
            sys.stdout.write(f"\n{name}\n\n{format_table(lines)}")
            sys.stdout.flush()
            if chosen.write:
                report.write_rows({name: report.build_row(lines)}, ROWS)


if __name__ == "__main__":
    main()
