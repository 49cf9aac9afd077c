"""The import of any damaged file ends as documented, and a refused file changes nothing.

This process imports the files one after another, each into a fresh ledger; only spreadsheets are read in processes of
their own. Some files are also imported by a new process, which must give the same result.
"""

import json
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from corpus import CASES
from damages import BYTE_DAMAGES, DAMAGES, TABLE_DAMAGES, XML_DAMAGES, read_parts
from real_files import FILES
from season_sheets import KINDS, SHEETS
from test_tables_as_they_are import list_games, make_berlin_ledger

from ratings_ledger.ledger.intake.tables.sheets import MEMORY_BYTES_MAX
from ratings_ledger.ledger.rejections import CODES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7_200)]

Ratings = Callable[..., Any]
# the limit of an import; the process that reads a spreadsheet has a limit of a minute
IMPORT_SECONDS = 150
FILES_SHORT_RUN, FILES_LONG_RUN = 60, 10_000
# one in this many files is also imported by a new process
FILES_PER_NEW_PROCESS = 100
OUTCOMES: Counter[str] = Counter()
BYTE_DAMAGE_NAMES = {damage_function.__name__ for damage_function in BYTE_DAMAGES}
# outcomes that must have occurred in the end: each damage, and rejections with many codes
REQUIRED_OUTCOMES = BYTE_DAMAGE_NAMES | {f"gzip {damage_function.__name__}" for damage_function in BYTE_DAMAGES} | {
    f"a part bad XML: {damage_name}" for damage_name in XML_DAMAGES
} | {f"a part {damage_name}" for damage_name in ("missing", "twice", "renamed", "empty", "in another's place")} | {
    f"a table: {damage_name}" for damage_name in (*TABLE_DAMAGES, "other separators", "another encoding",
                                                  "rows cut off")
} | {
    "bad-spreadsheet", "bad-gzip", "bad-utf8", "bad-csv", "bad-time", "bad-cell", "bad-identifier", "empty-file",
    "is-a-spreadsheet", "unknown-column", "missing-column", "which-sheet", "unclear-dates", "line-too-long",
    "row-length", "accepted", "refused", "an archive accepted",
}  # fmt: skip


class ImportTimeout(BaseException):
    """An import took too long. It is not an `Exception`, which the program would catch."""


@contextmanager
def limit_time() -> Iterator[None]:
    """Raise `ImportTimeout` in a block that takes too long."""

    def raise_timeout(*_: Any) -> None:
        raise ImportTimeout

    earlier_handler = signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(IMPORT_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier_handler)


def list_originals() -> list[Any]:
    """Return the real files, the sheets of clubs, and the short files of the corpus that give games.

    Files that are imported with `--keep-going` are left out.
    """
    seasons = [sheet.build_case(kind) for sheet in SHEETS.values() for kind in KINDS]
    cases = [*FILES.values(), *seasons, *(case for case in CASES.values() if case.games and len(case.content) < 20_000)]
    whole_imports = [case for case in cases if "--keep-going" not in case.options]
    return list({(case.content, case.options): case for case in whole_imports}.values())


def count_events(db: Path) -> int:
    with closing(sqlite3.connect(db)) as connection:
        return int(connection.execute("SELECT count(*) FROM events").fetchone()[0])


def check_outcome(result: Any, events_before: int, events_after: int) -> None:
    """Check that an import recorded a whole file, or refused it with documented codes and changed nothing."""
    summary = json.loads(result.stdout)
    assert "Traceback" not in result.stderr
    assert "bug" not in result.stderr
    if result.exit_code == 0:
        assert (summary["rejected"], events_after > events_before) == ([], True)
        OUTCOMES["accepted"] += 1
        return
    assert (result.exit_code, events_after) == (1, events_before)
    assert summary["rejected"]
    for rejection in summary["rejected"]:
        assert rejection["code"] in CODES
        assert len(rejection["message"]) > 10
        assert rejection["file"]
    OUTCOMES.update({"refused", *(rejection["code"] for rejection in summary["rejected"])})


def import_in_new_process(db: Path, file: Path, *options: str) -> tuple[int, Any]:
    """Import a file in a new process, and return its exit code and its printed result."""
    command = [
        sys.executable,
        "-m",
        "ratings_ledger",
        "--db",
        str(db),
        "import",
        str(file),
        *options,
        "--format",
        "json",
    ]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False)
    assert "Traceback" not in completed.stderr
    return completed.returncode, json.loads(completed.stdout)


def measure_peak_kilobytes(who: int) -> int:
    return resource.getrusage(who).ru_maxrss


def test_import_of_a_damaged_file_ends_as_documented(
    copy_ledger_file: Callable[..., str], ratings: Ratings, tmp_path: Path, at_length: bool
) -> None:
    """The import of a damaged file exits with 0 or 1, in time, without a traceback, and within the memory limit.

    A refused file appends nothing. An archive has checksums: if one with damaged bytes is accepted, its games are those
    of the original, which are compared where the case lists them.
    """
    template, db, files = (
        Path(copy_ledger_file(make_berlin_ledger, name="template.db")),
        tmp_path / "ratings.db",
        list_originals(),
    )
    events_before, kilobytes_before = count_events(template), measure_peak_kilobytes(resource.RUSAGE_SELF)
    OUTCOMES.clear()
    for number in range(FILES_LONG_RUN if at_length else FILES_SHORT_RUN):
        chance = Random(number)
        original = chance.choice(files)
        damage_name, content = chance.choice(DAMAGES)(chance, original.content)
        OUTCOMES[damage_name] += 1
        file = tmp_path / f"{number}-{original.name}"
        file.write_bytes(content)
        shutil.copyfile(template, db)
        with limit_time():
            result = ratings("import", file, *original.options, "--format", "json", db=str(db))
        try:
            check_outcome(result, events_before, count_events(db))
            if result.exit_code == 0 and damage_name in BYTE_DAMAGE_NAMES and read_parts(original.content):
                assert not original.games or list_games(ratings, str(db)) == original.games
                OUTCOMES["an archive accepted"] += 1
            if number % FILES_PER_NEW_PROCESS == 1:
                shutil.copyfile(template, db)
                code, summary = import_in_new_process(db, file, *original.options)
                assert (code, summary["rejected"]) == (result.exit_code, json.loads(result.stdout)["rejected"])
        except (AssertionError, ValueError) as problem:
            raise AssertionError(f"{number}: {damage_name} in {original.name}: {result}") from problem
        file.unlink()
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        assert measure_peak_kilobytes(who) - kilobytes_before < MEMORY_BYTES_MAX >> 10
    if at_length:
        assert REQUIRED_OUTCOMES - OUTCOMES.keys() == set()
    assert OUTCOMES["refused"] > OUTCOMES["accepted"] > 0
