"""Single bits flipped in a SQLite file: what alters an event is found and named, and nothing ends in a traceback."""

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
INNER_PAGE, LEAF_PAGE = 5, 13
GAMES = 60

Rows = dict[int, tuple[Any, ...]]


def make_ledger(_: object, url: str) -> None:
    """A hundred events, one of them so long that it has pages of its own."""
    create_ledger(url)
    players = [{"player": f"player-{number}", "place": number} for number in range(1, 200)]
    long = {"game_id": "long", "game": "catan", "group": "basic", "participants": players}
    event = {"type": "game.recorded", "occurred_at": "2010-03-06T12:00:00Z", "data": long}
    append_games(url, [build_numbered_game(number, size=2 + number % 6) for number in range(GAMES)])
    append_games(url, [build_draft(event), *(build_numbered_game(f"late-{number}") for number in range(GAMES))])


@pytest.fixture
def file(copied_file: Callable[..., str]) -> Path:
    """The ledger of `make_ledger`."""
    return Path(copied_file(make_ledger))


def event_pages(path: Path) -> list[int]:
    """Where the pages of the table `events` begin: its inner pages, and those that hold text of records."""
    content = path.read_bytes()
    starts = range(PAGE_BYTES, len(content), PAGE_BYTES)
    found = [s for s in starts if content[s] == INNER_PAGE or b'"player"' in content[s : s + PAGE_BYTES]]
    with closing(sqlite3.connect(path)) as connection:
        try:
            known = connection.execute("SELECT pageno FROM dbstat WHERE name = 'events' ORDER BY pageno").fetchall()
        except sqlite3.OperationalError:
            return found  # a library without dbstat
    assert [s // PAGE_BYTES + 1 for s in found] == [row[0] for row in known]
    return found


def structure_of(content: bytes, page: int) -> list[int]:
    """The bytes of a page that say where its rows are and what they are made of (SQLite's file format, section 1.6)."""

    def number(place: int) -> int:
        return int.from_bytes(content[place : place + 2], "big")

    if content[page] not in (INNER_PAGE, LEAF_PAGE):
        return list(range(page, page + 4))  # an overflow page begins with the number of the next
    inner = content[page] == INNER_PAGE
    pointers = page + (12 if inner else 8)
    cells = [page + number(pointers + 2 * cell) for cell in range(number(page + 3))]
    headers = [place for cell in cells for place in range(cell, min(cell + (9 if inner else 20), page + PAGE_BYTES))]
    return [*range(page, pointers + 2 * len(cells)), *headers]


@contextmanager
def flipped(path: Path, bit: int) -> Iterator[bytes]:
    """The file with one bit turned over; gives what it then holds."""
    content = path.read_bytes()
    turned = bytearray(content)
    turned[bit // 8] ^= 1 << bit % 8
    path.write_bytes(turned)
    yield bytes(turned)
    path.write_bytes(content)


def plain_rows(path: Path) -> tuple[bool, Rows]:
    """Whether the file is whole for SQLite, and the events that a plain reader gets, types of values included."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda content: ("text", content)
        try:
            rows = {row[0]: row for row in connection.execute("SELECT * FROM events NOT INDEXED").fetchall()}
            found = connection.execute("PRAGMA integrity_check(1)").fetchall()
        except sqlite3.DatabaseError:
            return False, dict(_rows_one_by_one(connection))
        return found == [(("text", b"ok"),)], rows


def _rows_one_by_one(connection: sqlite3.Connection) -> Iterator[tuple[int, tuple[Any, ...]]]:
    for position in range(1, 2 * GAMES + 2):
        try:
            row = connection.execute("SELECT * FROM events WHERE position = ?", (position,)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            yield position, row


def named(position: int, found: list[dict[str, Any]], rows: Rows) -> bool:
    """Whether the findings name a position, or the gap that it is in."""
    gap = position not in rows and any(f["code"] == "missing" and f["position"] <= position for f in found)
    return gap or any(f["position"] == position for f in found)


def check_flip(path: Path, bit: int, original: Rows, ratings: Callable[..., Any]) -> bool:
    """Flip a bit and assert that `verify` says what a plain reader can see, and leaves what it finds damaged alone.

    Gives whether there was anything to see.
    """
    with flipped(path, bit) as content:
        whole, rows = plain_rows(path)
        result = ratings("verify", "--format", "json", db=path)
        assert result.exit_code == 0 or path.read_bytes() == content
    where = f"bit {bit % 8} of byte {bit // 8}: {result}"
    assert "bug" not in result.stderr, where
    if whole and rows == original:
        told = json.loads(result.stdout)["findings"]
        assert (result.exit_code, told, result.stderr) == (0, [], ""), where
        return False
    assert result.exit_code == 1, where
    found = json.loads(result.stdout)["findings"] if result.stdout else []
    assert found or result.stderr, where
    for position in original.keys() | rows.keys():
        # a row that was nowhere before may stand in a page that is malformed, which is then what is found
        readable = position in rows and (whole or position in original)
        if (readable or whole) and rows.get(position) != original.get(position):
            assert named(position, found, rows), f"position {position} was altered; {where}"
    return True


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_flipped_bits_in_events_are_found(file: Path, ratings: Callable[..., Any], at_length: bool) -> None:
    """`verify` finds flipped bits in pages of events and names each altered position."""
    count = 10_000 if at_length else 80
    chance = random.Random(count)
    pages, content, (whole, original) = event_pages(file), file.read_bytes(), plain_rows(file)
    assert whole
    assert len(original) == 2 * GAMES + 1
    structure = [place for page in pages for place in structure_of(content, page)]
    seen = 0
    for number in range(count):
        # most flips hit anywhere in a page, every fourth what the page is held together by
        place = chance.choice(structure) if number % 4 == 0 else chance.choice(pages) + chance.randrange(PAGE_BYTES)
        seen += check_flip(file, place * 8 + chance.randrange(8), original, ratings)
    # most of a page is events: a test that sees nothing would prove nothing
    assert seen > count // 2


def test_text_turned_into_blob_is_found(file: Path, ratings: Callable[..., Any]) -> None:
    """`verify` finds a text that became a blob of the same bytes.

    In the header of a row, a text and a blob differ by one bit, and no index reveals it.
    """
    content, (_, original) = file.read_bytes(), plain_rows(file)
    record = original[7][COLUMNS.split(", ").index("record")][1]
    serial_type = 13 + 2 * len(record)
    header = bytes([0x80 | serial_type >> 7, serial_type & 0x7F, 76, 76])  # then two hashes of 32 bytes each
    place = content.rindex(header, 0, content.index(record)) + 1
    assert check_flip(file, place * 8, original, ratings)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_flipped_bits_cause_no_traceback(file: Path, ratings: Callable[..., Any], at_length: bool) -> None:
    """With a bit flipped anywhere in the file, no command ends in a traceback."""
    chance = random.Random(3)
    content = file.read_bytes()
    for _ in range(1_000 if at_length else 25):
        bit = chance.randrange(len(content) * 8)
        with flipped(file, bit):
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
