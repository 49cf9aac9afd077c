"""Files of drawn games, made on first use and kept: ledgers, arrays, files to import."""

import os
from pathlib import Path

from benchmarks.histories import History
from benchmarks.measuring import Call, measure

# bump this when what is written changes, so that kept files are written again
FORMAT = 1


def kept(folder: Path, name: str, function: str, history: History, **more: str) -> str:
    """Return the path of a file made from a history by a function of `benchmarks`, if it does not exist yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{FORMAT}-{history.name}{name}"
    if not path.exists():
        unfinished = path.with_name(f"unfinished-{path.name}")
        for left in folder.glob(f"{unfinished.name}*"):
            left.unlink()
        measure(Call(f"benchmarks.{function}", {"path": str(unfinished), "history": history, **more}))
        os.replace(unfinished, path)
        for left in folder.glob(f"{unfinished.name}*"):  # an empty journal
            left.unlink()
    return str(path)


def ledger(folder: Path, history: History) -> str:
    """Return a SQLite ledger."""
    return kept(folder, ".db", "writing:write_ledger", history)


def arrays(folder: Path, history: History) -> str:
    """Return the games in replay order as numpy arrays."""
    return kept(folder, ".npz", "writing:write_arrays", history)


def json_lines(folder: Path, history: History) -> str:
    """Return a file for `ratings import`."""
    return kept(folder, ".jsonl", "writing:write_json_lines", history)


def csv(folder: Path, history: History) -> str:
    """Return a file for `ratings import`, in long form."""
    return kept(folder, ".csv", "writing:write_csv", history)


def table(folder: Path, history: History, form: str, kind: str) -> str:
    """Return a spreadsheet or a file of CSV, in the usual form or as clubs keep their games."""
    return kept(folder, f"-{form}{kind}", "spreadsheets:write_table", history, form=form)


def domain_events(folder: Path, history: History) -> str:
    """Return the store of an application of the package `eventsourcing`."""
    return kept(folder, ".events.db", "writing:write_domain_events", history)
