"""Files of drawn games, made on first use and kept: ledgers, arrays, files to import."""

import os
from pathlib import Path

from benchmarks.histories import History
from benchmarks.measuring import Call, measure

# bump this when what is written changes, so that kept files are written again
FORMAT = 1


def kept(folder: Path, name: str, function: str, history: History) -> str:
    """The path of a file made from a history by a function of `benchmarks.writing`, if it does not exist yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{FORMAT}-{history.name}{name}"
    if not path.exists():
        unfinished = path.with_name(f"unfinished-{path.name}")
        for left in folder.glob(f"{unfinished.name}*"):
            left.unlink()
        measure(Call(f"benchmarks.writing:{function}", {"path": str(unfinished), "history": history}))
        os.replace(unfinished, path)
        for left in folder.glob(f"{unfinished.name}*"):  # an empty journal
            left.unlink()
    return str(path)


def ledger(folder: Path, history: History) -> str:
    """A SQLite ledger."""
    return kept(folder, ".db", "write_ledger", history)


def arrays(folder: Path, history: History) -> str:
    """The games in replay order as numpy arrays."""
    return kept(folder, ".npz", "write_arrays", history)


def json_lines(folder: Path, history: History) -> str:
    """A file for `ratings import`."""
    return kept(folder, ".jsonl", "write_json_lines", history)


def csv(folder: Path, history: History) -> str:
    """A file for `ratings import`, in long form."""
    return kept(folder, ".csv", "write_csv", history)


def domain_events(folder: Path, history: History) -> str:
    """The store of an application of the package `eventsourcing`."""
    return kept(folder, ".events.db", "write_domain_events", history)
