"""Single flipped bits in a SQLite file: an altered event is found and named, and no command ends in a traceback."""

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from builders import build_draft
from fault_helpers import COLUMNS, append_games, build_numbered_game
from ledgers import create_ledger

PAGE_BYTES = 4_096
INNER_PAGE_TYPE, LEAF_PAGE_TYPE = 5, 13
GAMES = 60

Rows = dict[int, tuple[Any, ...]]


def create_long_ledger(_: object, url: str) -> None:
    """Create a ledger with over a hundred events, one of them so long that it has pages of its own."""
    create_ledger(url)
    players = [{"player": f"player-{number}", "place": number} for number in range(1, 200)]
    long_game = {"game_id": "long", "game": "catan", "group": "basic", "participants": players}
    event = {"type": "game.recorded", "occurred_at": "2010-03-06T12:00:00Z", "data": long_game}
    append_games(url, [build_numbered_game(number, size=2 + number % 6) for number in range(GAMES)])
    append_games(url, [build_draft(event), *(build_numbered_game(f"late-{number}") for number in range(GAMES))])


@pytest.fixture
def file(copy_ledger_file: Callable[..., str]) -> Path:
    """Return the path of the ledger of `create_long_ledger`."""
    return Path(copy_ledger_file(create_long_ledger))


def find_event_pages(path: Path) -> list[int]:
    """Return the offsets of the pages of the table `events`: inner pages, and pages with text of records."""
    content = path.read_bytes()
    starts = range(PAGE_BYTES, len(content), PAGE_BYTES)
    offsets = [s for s in starts if content[s] == INNER_PAGE_TYPE or b'"player"' in content[s : s + PAGE_BYTES]]
    with closing(sqlite3.connect(path)) as connection:
        try:
            pages_by_sqlite = connection.execute(
                "SELECT pageno FROM dbstat WHERE name = 'events' ORDER BY pageno"
            ).fetchall()
        except sqlite3.OperationalError:
            return offsets  # a library without dbstat
    assert [s // PAGE_BYTES + 1 for s in offsets] == [row[0] for row in pages_by_sqlite]
    return offsets


def find_structure_bytes(content: bytes, page: int) -> list[int]:
    """Return the offsets of a page's bytes that locate and describe its rows (SQLite's file format, section 1.6)."""

    def read_number(offset: int) -> int:
        return int.from_bytes(content[offset : offset + 2], "big")

    if content[page] not in (INNER_PAGE_TYPE, LEAF_PAGE_TYPE):
        return list(range(page, page + 4))  # an overflow page begins with the number of the next
    inner = content[page] == INNER_PAGE_TYPE
    pointers = page + (12 if inner else 8)
    cells = [page + read_number(pointers + 2 * cell) for cell in range(read_number(page + 3))]
    headers = [offset for cell in cells for offset in range(cell, min(cell + (9 if inner else 20), page + PAGE_BYTES))]
    return [*range(page, pointers + 2 * len(cells)), *headers]


@contextmanager
def flip_bit(path: Path, bit: int) -> Iterator[bytes]:
    """Flip one bit of a file, provide the changed content, and restore the file."""
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[bit // 8] ^= 1 << bit % 8
    path.write_bytes(flipped)
    yield bytes(flipped)
    path.write_bytes(content)


def read_plain_rows(path: Path) -> tuple[bool, Rows]:
    """Return whether SQLite considers the file intact, and the events that a plain reader gets, with texts marked."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda content: ("text", content)
        try:
            rows = {row[0]: row for row in connection.execute("SELECT * FROM events NOT INDEXED").fetchall()}
            integrity = connection.execute("PRAGMA integrity_check(1)").fetchall()
        except sqlite3.DatabaseError:
            return False, dict(_read_rows_one_by_one(connection))
        return integrity == [(("text", b"ok"),)], rows


def _read_rows_one_by_one(connection: sqlite3.Connection) -> Iterator[tuple[int, tuple[Any, ...]]]:
    for position in range(1, 2 * GAMES + 2):
        try:
            row = connection.execute("SELECT * FROM events WHERE position = ?", (position,)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            yield position, row


def is_named(position: int, findings: list[dict[str, Any]], rows: Rows) -> bool:
    """Return whether the findings name a position, or the gap that it is in."""
    gap = position not in rows and any(
        finding["code"] == "missing" and finding["position"] <= position for finding in findings
    )
    return gap or any(finding["position"] == position for finding in findings)


def check_flip(path: Path, bit: int, original: Rows, ratings: Callable[..., Any]) -> bool:
    """Flip a bit, and assert that `verify` reports the damage that a plain reader sees, and does not change the file.

    Return whether there was any damage.
    """
    with flip_bit(path, bit) as content:
        is_intact, rows = read_plain_rows(path)
        result = ratings("verify", "--format", "json", db=path)
        assert result.exit_code == 0 or path.read_bytes() == content
    description = f"bit {bit % 8} of byte {bit // 8}: {result}"
    assert "bug" not in result.stderr, description
    if is_intact and rows == original:
        findings = json.loads(result.stdout)["findings"]
        assert (result.exit_code, findings, result.stderr) == (0, [], ""), description
        return False
    assert result.exit_code == 1, description
    reported = json.loads(result.stdout)["findings"] if result.stdout else []
    assert reported or result.stderr, description
    for position in original.keys() | rows.keys():
        # a row that did not exist before may be in a malformed page, which is then reported instead
        readable = position in rows and (is_intact or position in original)
        if (readable or is_intact) and rows.get(position) != original.get(position):
            assert is_named(position, reported, rows), f"position {position} was altered; {description}"
    return True


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_flipped_bits_in_events_are_found(file: Path, ratings: Callable[..., Any], at_length: bool) -> None:
    """`verify` finds flipped bits in pages of events and names each altered position."""
    count = 10_000 if at_length else 80
    rng = random.Random(count)
    pages, content, (is_intact, original) = find_event_pages(file), file.read_bytes(), read_plain_rows(file)
    assert is_intact
    assert len(original) == 2 * GAMES + 1
    structure = [offset for page in pages for offset in find_structure_bytes(content, page)]
    damage_count = 0
    for number in range(count):
        # every fourth flip hits the structure of a page, the others any of its bytes
        offset = rng.choice(structure) if number % 4 == 0 else rng.choice(pages) + rng.randrange(PAGE_BYTES)
        damage_count += check_flip(file, offset * 8 + rng.randrange(8), original, ratings)
    # most bytes of a page belong to events, so most flips must be visible
    assert damage_count > count // 2


def test_text_changed_into_blob_is_found(file: Path, ratings: Callable[..., Any]) -> None:
    """`verify` finds a text that became a blob of the same bytes.

    In the header of a row, a text and a blob differ by one bit, and no index reveals it.
    """
    content, (_, original) = file.read_bytes(), read_plain_rows(file)
    record = original[7][COLUMNS.split(", ").index("record")][1]
    serial_type = 13 + 2 * len(record)
    header = bytes([0x80 | serial_type >> 7, serial_type & 0x7F, 76, 76])  # then two hashes of 32 bytes each
    offset = content.rindex(header, 0, content.index(record)) + 1
    assert check_flip(file, offset * 8, original, ratings)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_flipped_bits_cause_no_traceback(file: Path, ratings: Callable[..., Any], at_length: bool) -> None:
    """With a bit flipped anywhere in the file, none of these commands ends in a traceback."""
    rng = random.Random(3)
    content = file.read_bytes()
    for _ in range(1_000 if at_length else 25):
        bit = rng.randrange(len(content) * 8)
        with flip_bit(file, bit):
            for command in (("verify",), ("status",), ("doctor",), ("export", "events"), ("rebuild",)):
                result = ratings(*command, db=file)
                assert result.exit_code in (0, 1, 2, 3), (bit, command, result)
                assert "bug" not in result.stderr, (bit, command, result)


def test_unreadable_schema_is_reported_as_damage(file: Path, ratings: Callable[..., Any]) -> None:
    """A schema that is not valid text is reported as a malformed database schema."""
    file.write_bytes(file.read_bytes().replace(b"CREATE TABLE events", b"CREATE \xceABLE events"))
    for command in ("verify", "status", "init"):
        result = ratings(command, db=file)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "malformed database schema" in result.stderr
