"""Store the results of a run: all times as JSON, and the tables of docs/performance.md.

Rows that are measured again replace their previous results. Every row states the machine on which it was measured.
"""

import json
import os
import platform
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT
from benchmarks.results import Bar, Line, Run, Series, Skipped
from benchmarks.tables import format_table

RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- written by make bench -->\n", "<!-- up to here -->"
PACKAGES = (
    "eventsourcing",
    "multi-elo",
    "openskill",
    "elote",
    "trueskill",
    "numba",
    "numpy",
    "pyarrow",
    "pydantic",
    "sqlalchemy",
    "psycopg",
    "datasette",
)


def describe_machine() -> dict[str, Any]:
    """Return the facts on which a measurement depends: processor, memory, system, and versions."""
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _read_processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(pages * page_bytes / 1e9, 1),
        "system": platform.platform(aliased=True, terse=True),
        "versions": {
            "ratings-ledger": _describe_commit(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            **{name: version for name in PACKAGES if (version := _find_version(name)) is not None},
        },
    }


def _read_processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _describe_commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "?"


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def build_row(lines: Iterable[Line | Skipped]) -> dict[str, Any]:
    """Return a row as JSON: the date, the machine and the lines."""
    return {
        "measured_on": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine(),
        "lines": [_line_to_json(line) for line in lines],
    }


def _line_to_json(line: Line | Skipped) -> dict[str, Any]:
    if isinstance(line, Skipped):
        return {"what": line.subject, "skipped": line.reason}
    return {
        "what": line.subject,
        "note": line.note,
        "bar": None if line.bar is None else line.bar._asdict(),
        "ours": _series_to_json(line.ours),
        "other": None if line.baseline is None else _series_to_json(line.baseline),
    }


def _series_to_json(series: Series) -> dict[str, Any]:
    return {
        "label": series.label,
        "unit": series.unit,
        "work": series.work,
        "seconds": [round(run.seconds, 6) for run in series.runs],
        "peak_bytes": [run.peak_bytes for run in series.runs],
    }


def parse_line(stored: Mapping[str, Any]) -> Line | Skipped:
    """Return the line in a row's JSON."""
    if "skipped" in stored:
        return Skipped(stored["what"], stored["skipped"])
    bar = None if stored["bar"] is None else Bar(**stored["bar"])
    baseline = None if stored["other"] is None else _parse_series(stored["other"])
    return Line(stored["what"], _parse_series(stored["ours"]), baseline, bar, stored["note"])


def _parse_series(stored: Mapping[str, Any]) -> Series:
    runs = [Run(*pair) for pair in zip(stored["seconds"], stored["peak_bytes"], strict=True)]
    return Series(stored["label"], stored["unit"], stored["work"], runs)


def build_page_section(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text between the page's markers: the usual machine, and a table with its date for each row.

    A row from another machine also names that machine.
    """
    machines = {name: _summarize_machine(row["machine"]) for name, row in rows.items()}
    usual = Counter(machines.values()).most_common(1)[0][0] if machines else ""
    parts = [f"Unless a row says otherwise: {usual}.\n"] if machines else []
    for name, row in rows.items():
        machine_note = "" if machines[name] == usual else f", {machines[name]}"
        parts.append(
            f"### {name}\n\n{format_table(map(parse_line, row['lines']))}\n{row['measured_on']}{machine_note}.\n"
        )
    return "\n".join(parts)


def _summarize_machine(machine: Mapping[str, Any]) -> str:
    versions = machine["versions"]
    system = machine["system"].partition("-")[0]
    return (
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gb']:.0f} GB, {system}, "
        f"Python {versions['python']}, SQLite {versions['sqlite']}"
    )


def write_rows(rows: Mapping[str, Mapping[str, Any]], order: Iterable[str]) -> None:
    """Add measured rows to the results and the page."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    known.update(rows)
    ordered = {name: known[name] for name in order if name in known}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(replace_section(PAGE.read_text(encoding="utf-8"), build_page_section(ordered)), encoding="utf-8")


def replace_section(page: str, section: str) -> str:
    """Return the page with the text between its markers replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"the page has no line {BEGIN.strip()}"
    assert end, f"the page has no {END}"
    return f"{before}{BEGIN}\n{section}\n{END}{after}"
