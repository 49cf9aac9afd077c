"""Files that need more memory than there is are refused by name, with what would be right; no import waits for ever.

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
from test_tables_as_they_are import made

pytestmark = pytest.mark.slow

SECONDS = 120
HEAD = b"Date,1st,2nd\n2024-11-22,anna,"
USUAL = b"game_id,occurred_at,player,place\n"


class Large(NamedTuple):
    """A file that is too large: how it is called, what makes it, and the refusal as `LINE CODE` with its message."""

    name: str
    content: Callable[[], bytes]
    refused: tuple[str, str]


def members(start: bytes, again: bytes, times: int) -> bytes:
    """A file of gzip that expands to a start and many times the same."""
    return gzip.compress(start) + gzip.compress(again, 1) * times


def with_long_text(length: int) -> bytes:
    """A spreadsheet whose shared texts are one of that many characters, in the cell B2."""
    found = io.BytesIO()
    with ZipFile(io.BytesIO(xlsx([["Date", "1st", "2nd"], ["2024-11-22", 7, "ben"]]))) as plain:
        parts = {name: plain.read(name) for name in plain.namelist()}
    relation = f'<Relationship Id="rIdT" Type="{RELATIONS}/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
    links, sheet = "xl/_rels/workbook.xml.rels", "xl/worksheets/sheet1.xml"
    parts[links] = parts[links].replace(b"</Relationships>", relation.encode())
    parts[sheet] = parts[sheet].replace(b'<c r="B2"><v>7</v></c>', b'<c r="B2" t="s"><v>0</v></c>')
    with ZipFile(found, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        with archive.open("xl/sharedStrings.xml", "w") as file:
            file.write(f'<sst xmlns="{MAIN}"><si><t>'.encode())
            for _ in range(length >> 20):
                file.write(b"x" * (1 << 20))
            file.write(b"</t></si></sst>")
    return found.getvalue()


LARGE = {
    "a line of 1 GB": Large(
        "line.csv.gz", partial(members, HEAD, b"x" * 10_000_000, 100),
        ("2 line-too-long", "line 2 has more than 1,048,576 bytes; write each row on a line of its own"),
    ),
    "a cell of 1 GB in quotation marks": Large(
        "cell.csv.gz", partial(members, HEAD + b'"', b"x\n" * 5_000_000, 100),
        ("2 bad-csv", "a cell has more than 131,072 characters; check its quotation marks; the rest was"),
    ),
    "a table of another form": Large(
        "table.csv.gz", partial(members, HEAD + b"ben\n", b"2024-11-22,anna,ben\n" * 20_000, 200),
        ("None file-too-large", "it needs more memory than is available; import it in parts, or with the"),
    ),
    "rows of one game": Large(
        "game.csv.gz", partial(members, USUAL, b"g-1,2024-11-22,anna,1\n" * 20_000, 15),
        ("2 record-too-large", "more than 4,096 rows have the game_id 'g-1'; give each game an id of its own"),
    ),
    "a text of 1 GB in a spreadsheet": Large(
        "text.xlsx", partial(with_long_text, 1_000 << 20),
        ("None bad-spreadsheet", "takes more than 1 GB of memory or 60 s, or crashes the reader; save the table"),
    ),
    "a spreadsheet of more than 1 GB": Large(
        "texts.xlsx", partial(with_long_text, 1_025 << 20),
        ("None bad-spreadsheet", "it expands to more than 1 GB; save only the table as .xlsx or as CSV UTF-8"),
    ),
}  # fmt: skip


@pytest.fixture
def db(copied_file: Callable[..., str]) -> Path:
    return Path(copied_file(made))


def imported(db: Path, file: Path, megabytes: int) -> subprocess.CompletedProcess[str]:
    """An import by a process with a limit of memory."""

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    command = [sys.executable, "-m", "ratings_ledger", "--db", str(db), "import", str(file), "--set", "game=catan"]
    return subprocess.run(
        [*command, "--format", "json"], preexec_fn=little, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def games_in(db: Path) -> int:
    with closing(sqlite3.connect(db)) as connection:
        return int(connection.execute("SELECT count(*) FROM events WHERE type = 'game.recorded'").fetchone()[0])


@pytest.mark.parametrize("what", mark_long_values(["a line of 1 GB", "a table of another form"], LARGE))
def test_too_large_file_is_refused(what: str, db: Path, tmp_path: Path) -> None:
    """A file that needs too much is refused in time, by name, with what is too large and what would be right."""
    name, content, refused = LARGE[what]
    (tmp_path / name).write_bytes(content())
    done = imported(db, tmp_path / name, 260)
    assert done.returncode == 1, done
    (found,) = json.loads(done.stdout)["rejected"]
    assert (f"{found['line']} {found['code']}", found["file"]) == (refused[0], str(tmp_path / name))
    assert refused[1] in found["message"]
    assert ("Traceback" in done.stderr, games_in(db)) == (False, 0)


@pytest.mark.parametrize("megabytes", mark_long_values([76], range(56, 140, 2)))
def test_any_lack_of_memory_is_told(megabytes: int, db: Path, tmp_path: Path) -> None:
    """However little memory there is, an import ends: with all its games, or with none and a reason, never silently, as
    a bug, or with a traceback; also where there is none for a process, for a thread or for a library."""
    long = tmp_path / "long.csv"
    rows = (f"g-{number},2024-11-22,{name},{place}\n" for number in range(6_000)
            for place, name in enumerate(("anna", "ben"), 1))  # fmt: skip
    long.write_bytes(USUAL + "".join(rows).encode())
    for file, number in ((FOLDER / "moments.xlsx", 2), (long, 6_000)):
        here = Path(shutil.copyfile(db, tmp_path / "here.db"))
        done = imported(here, file, megabytes)
        assert (done.returncode, games_in(here)) in {(0, number), (1, 0), (3, 0)}, done
        assert done.returncode == 0 or done.stdout or done.stderr
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr
