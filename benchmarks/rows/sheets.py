"""Compare imports of spreadsheets with imports of the same rows as CSV."""

from collections.abc import Iterator

from benchmarks import data
from benchmarks.histories import History
from benchmarks.measuring import Call, run_in_turn
from benchmarks.results import Bar, Line, Skipped, build_checked_series
from benchmarks.setting import Setting
from benchmarks.stores import Store

# about 50,000 rows, because a game has four players on average
GAMES = 12_800
FORMS = {"usual": "of the usual form", "club": "as clubs keep them"}


def measure_sheets(setting: Setting, store: Store) -> Iterator[Line | Skipped]:
    """Compare imports of 50,000 rows as .xlsx, in the usual form and as clubs keep them, with CSV."""
    history = History(games=setting.games(GAMES), late=False)
    for form, description in FORMS.items():
        files = {suffix: data.table(setting.folder, history, form, suffix) for suffix in (".xlsx", ".csv")}
        with open(files[".csv"], encoding="utf-8") as file:
            rows = sum(1 for _ in file) - 1
        calls = {suffix: _import(store, path, form) for suffix, path in files.items()}
        runs = run_in_turn(calls, setting.repetitions)
        if not runs:
            yield Skipped(f"import of {rows:,} rows as .xlsx", "python-calamine is not installed")
            continue
        reader = max(run.details["reader_bytes"] for run in runs[".xlsx"])
        yield Line(
            f"import of {rows:,} rows {description}, {store.name}, .xlsx against CSV",
            build_checked_series("xlsx", "rows", rows, runs[".xlsx"]),
            build_checked_series("CSV", "rows", rows, runs[".csv"]),
            Bar("times as fast", 0.5),
            note=f"its reader at most {reader / 1e6:,.0f} MB besides",
        )


def _import(store: Store, path: str, form: str) -> Call:
    options = ["--zone", "UTC", *(["--set", "game=bench"] if form == "club" else [])]
    return Call(
        "benchmarks.ours:import_table",
        lambda: {"url": store.empty_ledger(), "arguments": ["import", path, *options]},
        needs=("python_calamine",),
    )
