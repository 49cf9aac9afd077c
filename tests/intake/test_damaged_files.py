"""Files that came to harm end an import as it is documented, whatever is in them, and a refused one leaves nothing.

They are imported by this process, one after another into a fresh ledger; every spreadsheet is read in a process of its
own anyway. Some are imported by a process from its start, too, which has to say the same.
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
from test_tables_as_they_are import games, made

from ratings_ledger.ledger.intake.tables.sheets import MEMORY_BYTES
from ratings_ledger.ledger.rejections import CODES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7_200)]

Ratings = Callable[..., Any]
# what a file may take: a spreadsheet has a minute in its own process
SECONDS = 150
SHORT, LONG = 60, 10_000
# of so many files one is imported by a process from its start
STARTED_EVERY = 100
DONE: Counter[str] = Counter()
BYTES = {made.__name__ for made in BYTE_DAMAGES}
# what must have occurred in the end: each damage, and refusals for many reasons
WANTED = BYTES | {f"gzip {made.__name__}" for made in BYTE_DAMAGES} | {
    f"a part bad XML: {how}" for how in XML_DAMAGES
} | {f"a part {what}" for what in ("missing", "twice", "renamed", "empty", "in another's place")} | {
    f"a table: {what}" for what in (*TABLE_DAMAGES, "other separators", "another encoding", "rows cut off")
} | {
    "bad-spreadsheet", "bad-gzip", "bad-utf8", "bad-csv", "bad-time", "bad-cell", "bad-identifier", "empty-file",
    "is-a-spreadsheet", "unknown-column", "missing-column", "which-sheet", "unclear-dates", "line-too-long",
    "row-length", "taken", "refused", "an archive taken",
}  # fmt: skip


class Hung(BaseException):
    """An import took too long; no Exception, which the program would tell as its own."""


@contextmanager
def no_hang() -> Iterator[None]:
    """Raises `Hung` in what takes too long."""

    def hung(*_: Any) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def originals() -> list[Any]:
    """Real files, sheets of clubs, and what of the corpus can be read whole and is not longer than a page or two."""
    seasons = [sheet.build_case(kind) for sheet in SHEETS.values() for kind in KINDS]
    cases = [*FILES.values(), *seasons, *(case for case in CASES.values() if case.games and len(case.content) < 20_000)]
    whole = [case for case in cases if "--keep-going" not in case.options]
    return list({(case.content, case.options): case for case in whole}.values())


def events_in(db: Path) -> int:
    with closing(sqlite3.connect(db)) as connection:
        return int(connection.execute("SELECT count(*) FROM events").fetchone()[0])


def check(told: Any, before: int, after: int) -> None:
    """An import ended well: all of it is taken, or nothing, and each refusal has one of the codes and a message."""
    found = json.loads(told.stdout)
    assert "Traceback" not in told.stderr
    assert "bug" not in told.stderr
    if told.exit_code == 0:
        assert (found["rejected"], after > before) == ([], True)
        DONE["taken"] += 1
        return
    assert (told.exit_code, after) == (1, before)
    assert found["rejected"]
    for one in found["rejected"]:
        assert one["code"] in CODES
        assert len(one["message"]) > 10
        assert one["file"]
    DONE.update({"refused", *(one["code"] for one in found["rejected"])})


def started(db: Path, file: Path, *options: str) -> tuple[int, Any]:
    """The exit code and the result of an import by a process from its start."""
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
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def kilobytes(who: int) -> int:
    return resource.getrusage(who).ru_maxrss


def test_damaged_files_end_well(
    copied_file: Callable[..., str], ratings: Ratings, tmp_path: Path, at_length: bool
) -> None:
    """Whatever came to harm in a file, its import ends with 0 or 1, in time, without a traceback; if it is refused,
    nothing is appended; and no process takes more memory than one that reads a spreadsheet may. An archive knows its
    bytes: if one with others is taken, it gives what it gave before."""
    template, db, files = Path(copied_file(made, name="template.db")), tmp_path / "ratings.db", originals()
    before, own = events_in(template), kilobytes(resource.RUSAGE_SELF)
    DONE.clear()
    for number in range(LONG if at_length else SHORT):
        chance = Random(number)
        original = chance.choice(files)
        what, content = chance.choice(DAMAGES)(chance, original.content)
        DONE[what] += 1
        file = tmp_path / f"{number}-{original.name}"
        file.write_bytes(content)
        shutil.copyfile(template, db)
        with no_hang():
            told = ratings("import", file, *original.options, "--format", "json", db=str(db))
        try:
            check(told, before, events_in(db))
            if told.exit_code == 0 and what in BYTES and read_parts(original.content):
                assert not original.games or games(ratings, str(db)) == original.games
                DONE["an archive taken"] += 1
            if number % STARTED_EVERY == 1:
                shutil.copyfile(template, db)
                code, found = started(db, file, *original.options)
                assert (code, found["rejected"]) == (told.exit_code, json.loads(told.stdout)["rejected"])
        except (AssertionError, ValueError) as problem:
            raise AssertionError(f"{number}: {what} in {original.name}: {told}") from problem
        file.unlink()
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        assert kilobytes(who) - own < MEMORY_BYTES >> 10
    if at_length:
        assert WANTED - DONE.keys() == set()
    assert DONE["refused"] > DONE["taken"] > 0
