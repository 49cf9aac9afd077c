"""Write files of randomly generated games on first use, and keep them: ledgers, arrays, files to import."""

import os
from pathlib import Path

from benchmarks.histories import History
from benchmarks.measuring import Call, measure

# increase this when the content of the files changes, so that kept files are written again
FORMAT = 1


def write_once(folder: Path, name: str, function: str, history: History, **more: str) -> str:
    """Return the path of a file; if it does not exist, a function of `benchmarks` writes it from a history."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{FORMAT}-{history.name}{name}"
    if not path.exists():
        unfinished = path.with_name(f"unfinished-{path.name}")
        for leftover in folder.glob(f"{unfinished.name}*"):
            leftover.unlink()
        # run the function in a fresh process; its measurement is not needed
        measure(Call(f"benchmarks.{function}", {"path": str(unfinished), "history": history, **more}))
        os.replace(unfinished, path)
        for leftover in folder.glob(f"{unfinished.name}*"):  # an empty journal
            leftover.unlink()
    return str(path)


def ledger(folder: Path, history: History) -> str:
    """Return the path of a SQLite ledger of a history."""
    return write_once(folder, ".db", "writing:write_ledger", history)


def arrays(folder: Path, history: History) -> str:
    """Return the path of a file with the games in replay order as numpy arrays."""
    return write_once(folder, ".npz", "writing:write_arrays", history)


def json_lines(folder: Path, history: History) -> str:
    """Return the path of a file of JSON Lines for `ratings import`."""
    return write_once(folder, ".jsonl", "writing:write_json_lines", history)


def csv(folder: Path, history: History) -> str:
    """Return the path of a CSV file for `ratings import`, with a row per participant."""
    return write_once(folder, ".csv", "writing:write_csv", history)


def table(folder: Path, history: History, form: str, suffix: str) -> str:
    """Return the path of a table in the form `usual` or `club`, as a file with the suffix `.xlsx` or `.csv`."""
    return write_once(folder, f"-{form}{suffix}", "spreadsheets:write_table", history, form=form)


def domain_events(folder: Path, history: History) -> str:
    """Return the path of a store of the package `eventsourcing`."""
    return write_once(folder, ".events.db", "writing:write_domain_events", history)
