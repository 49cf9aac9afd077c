"""Files that need too much memory are refused with their name and a remedy, and no import hangs.

Each import is a process of its own with a limit of memory, as `ulimit -v` sets it.
"""

import gzip
import io
import json
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from lengths import mark_long_values
from real_files import FOLDER
from sheet_files import MAIN, RELATIONS, xlsx
from test_tables_as_they_are import make_berlin_ledger

pytestmark = pytest.mark.slow

IMPORT_SECONDS = 120
GAME_START = b"Date,1st,2nd\n2024-11-22,anna,"
ROW_HEADER = b"game_id,occurred_at,player,place\n"


class LargeFile(NamedTuple):
    """A file that is too large: its name, the function that makes it, and its rejection as (`LINE CODE`, message)."""

    name: str
    content: Callable[[], bytes]
    refused: tuple[str, str]


def compress_repeated(start: bytes, repeated: bytes, times: int) -> bytes:
    """Return a gzip file that expands to `start` and to `repeated` so many times."""
    return gzip.compress(start) + gzip.compress(repeated, 1) * times


def build_sheet_with_long_text(length: int) -> bytes:
    """Return a spreadsheet with one shared text of this many characters, in cell B2."""
    buffer = io.BytesIO()
    with ZipFile(io.BytesIO(xlsx([["Date", "1st", "2nd"], ["2024-11-22", 7, "ben"]]))) as plain:
        parts = {name: plain.read(name) for name in plain.namelist()}
    relation = f'<Relationship Id="rIdT" Type="{RELATIONS}/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
    links, sheet = "xl/_rels/workbook.xml.rels", "xl/worksheets/sheet1.xml"
    parts[links] = parts[links].replace(b"</Relationships>", relation.encode())
    parts[sheet] = parts[sheet].replace(b'<c r="B2"><v>7</v></c>', b'<c r="B2" t="s"><v>0</v></c>')
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        with archive.open("xl/sharedStrings.xml", "w") as file:
            file.write(f'<sst xmlns="{MAIN}"><si><t>'.encode())
            for _ in range(length >> 20):
                file.write(b"x" * (1 << 20))
            file.write(b"</t></si></sst>")
    return buffer.getvalue()


LARGE_FILES = {
    "a line of 1 GB": LargeFile(
        "line.csv.gz",
        partial(compress_repeated, GAME_START, b"x" * 10_000_000, 100),
        ("2 line-too-long", "line 2 has more than 1,048,576 bytes; write each row on a line of its own"),
    ),
    "a cell of 1 GB in quotation marks": LargeFile(
        "cell.csv.gz",
        partial(compress_repeated, GAME_START + b'"', b"x\n" * 5_000_000, 100),
        ("2 bad-csv", "a cell has more than 131,072 characters; check its quotation marks and line ends; the rest was"),
    ),
    "a table that is not in the usual form": LargeFile(
        "table.csv.gz",
        partial(compress_repeated, GAME_START + b"ben\n", b"2024-11-22,anna,ben\n" * 20_000, 200),
        ("None file-too-large", "it needs more memory than is available; import it in parts, or with the"),
    ),
    "rows of one game": LargeFile(
        "game.csv.gz",
        partial(compress_repeated, ROW_HEADER, b"g-1,2024-11-22,anna,1\n" * 20_000, 15),
        ("2 record-too-large", "more than 4,096 rows have the game_id 'g-1'; give each game an id of its own"),
    ),
    "a text of 1 GB in a spreadsheet": LargeFile(
        "text.xlsx",
        partial(build_sheet_with_long_text, 1_000 << 20),
        ("None bad-spreadsheet", "takes more than 1 GB of memory or 60 s, or crashes the reader; save the table"),
    ),
    "a spreadsheet of more than 1 GB": LargeFile(
        "texts.xlsx",
        partial(build_sheet_with_long_text, 1_025 << 20),
        ("None bad-spreadsheet", "it expands to more than 1 GB; save only the table as .xlsx or as CSV UTF-8"),
    ),
}


@pytest.fixture
def db(copy_ledger_file: Callable[..., str]) -> Path:
    return Path(copy_ledger_file(make_berlin_ledger))


def import_with_limit(db: Path, file: Path, megabytes: int) -> subprocess.CompletedProcess[str]:
    """Import a file in a process with a limit of memory."""

    def limit_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    command = [sys.executable, "-m", "ratings_ledger", "--db", str(db), "import", str(file), "--set", "game=catan"]
    return subprocess.run(
        [*command, "--format", "json"],
        preexec_fn=limit_memory,
        capture_output=True,
        text=True,
        timeout=IMPORT_SECONDS,
        check=False,
    )


def count_games(db: Path) -> int:
    with closing(sqlite3.connect(db)) as connection:
        return int(connection.execute("SELECT count(*) FROM events WHERE type = 'game.recorded'").fetchone()[0])


@pytest.mark.parametrize(
    "case", mark_long_values(["a line of 1 GB", "a table that is not in the usual form"], LARGE_FILES)
)
def test_too_large_file_is_refused(case: str, db: Path, tmp_path: Path) -> None:
    """A file that needs too much memory is refused in time with its name, its problem and a remedy."""
    name, content, refused = LARGE_FILES[case]
    (tmp_path / name).write_bytes(content())
    result = import_with_limit(db, tmp_path / name, 260)
    assert result.returncode == 1, result
    (rejection,) = json.loads(result.stdout)["rejected"]
    assert (f"{rejection['line']} {rejection['code']}", rejection["file"]) == (refused[0], str(tmp_path / name))
    assert refused[1] in rejection["message"]
    assert ("Traceback" in result.stderr, count_games(db)) == (False, 0)


@pytest.mark.parametrize("megabytes", mark_long_values([76], range(56, 140, 2)))
def test_import_with_little_memory_ends_with_a_reason(megabytes: int, db: Path, tmp_path: Path) -> None:
    """An import with any limit of memory records all games, or none with a reason, and never ends with a traceback.

    Some limits leave too little memory to start a process or a thread, or to load a library.
    """
    long_file = tmp_path / "long.csv"
    rows = (
        f"g-{number},2024-11-22,{name},{place}\n"
        for number in range(6_000)
        for place, name in enumerate(("anna", "ben"), 1)
    )
    long_file.write_bytes(ROW_HEADER + "".join(rows).encode())
    for file, game_count in ((FOLDER / "moments.xlsx", 2), (long_file, 6_000)):
        db_copy = Path(shutil.copyfile(db, tmp_path / "here.db"))
        result = import_with_limit(db_copy, file, megabytes)
        assert (result.returncode, count_games(db_copy)) in {(0, game_count), (1, 0), (3, 0)}, result
        assert result.returncode == 0 or result.stdout or result.stderr
        assert "Traceback" not in result.stderr
        assert "bug" not in result.stderr
