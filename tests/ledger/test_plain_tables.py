"""Rows read many at once say what they say one by one, whatever stands in them and wherever the lines are cut."""

import io
import random
from collections.abc import Generator
from typing import Any

import pytest

from ratings_ledger.ledger.events.types import NormalisedGame
from ratings_ledger.ledger.intake import csv_files, plain_tables
from ratings_ledger.ledger.intake.columns import TableOptions
from ratings_ledger.ledger.intake.csv_files import table_events
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.parsing import parsed
from ratings_ledger.ledger.intake.plain_tables import Rest, plain_games
from ratings_ledger.ledger.intake.tables_read import TableRead
from ratings_ledger.ledger.rejections import Refused

pytestmark = pytest.mark.slow

LINE_BYTES_MAX = 300
HEADERS = (
    "game_id,occurred_at,game,player,place", "game_id,occurred_at,game,group,player,place,status,score",
    "player,place,Game,rated,game_id,occurred_at,notes", "game_id,occurred_at,game,player,,place",
)  # fmt: skip
PIECES = (
    '"', '"a"', '"a b"', " ", "  ", "\t", "\r", "\n", "\n\n", "\x0b", "\u2028", "\u00a0", "ü", "e\u0301", "\x00", "x",
    "-1", "1e3", "007", "true", "no", "2", ",", ",,", ",,,,,,,", "Z", "2010-03-05 19:30", "x" * 301,
)  # fmt: skip
USUAL = (TableOptions(), TableOptions("Europe/Berlin", {"notes": ""}, {}), TableOptions(fixed={"rated": "yes"}))
# what only the long way takes or refuses
OPTIONS = (*USUAL, *USUAL, *USUAL, TableOptions(fixed={"group": ""}), TableOptions(fixed={"kind": "b5"}))


def drawn(chance: random.Random) -> bytes:
    """A table, in most cases with something odd in it."""
    header = chance.choice(HEADERS)
    names = header.lower().split(",")
    lines = [header]
    title = chance.choice(("catan", "catan", "catan", "Catan", "-"))
    called = chance.choice(("p-", "p-", "p-", "e\u0301 ", "p/"))
    has_dashes = chance.random() < 0.05
    for game in range(chance.randrange(9)):
        of_game = {"game_id": f"g-{game}", "occurred_at": f"2010-03-0{game + 1}T19:30:00Z", "game": title}
        of_game["rated"] = chance.choice(("", "yes", "0"))
        of_game["group"] = chance.choice(("", "basic", "seafarers, b"[:9]))
        for place in range(chance.choice((1, 2, 3, 4, 9))):
            player = "-" if has_dashes and chance.random() < 0.2 else f"{called}{place}"
            own = {"player": player, "place": str(place + 1), "score": chance.choice(("", "7", "1.5"))}
            lines.append(",".join({**of_game, **own}.get(name, "") for name in names))
    text = "\n".join(lines) + chance.choice(("", "\n", "\n\n"))
    for _ in range(chance.choice((0, 0, 1, 2))):
        at = chance.randrange(len(header), len(text) + 1)
        text = text[:at] + chance.choice(PIECES) + text[at + chance.choice((0, 0, 1, 12)) :]
    if chance.random() < 0.3:
        text = text.replace("\n", "\r\n")
    if chance.random() < 0.3:
        text = text.replace(",", chance.choice(";\t|"))
    found = text.encode()
    if chance.random() < 0.03:
        at = chance.randrange(len(header), len(found) + 1)
        found = found[:at] + bytes([chance.randrange(128, 256)]) + found[at:]
    return found


def told(table: bytes, options: TableOptions) -> list[Any]:
    """What becomes of each event of a table, with its place and its rows."""
    return [
        (line, said(event), rows, game_id)
        for found in table_events(io.BytesIO(table), options, LINE_BYTES_MAX)
        for line, event, source, game_id in [
            (0, found, None, None) if isinstance(found, TableRead | TableOptions | str) else found
        ]
        for rows in [source() if callable(source) else source]
    ]


def said(event: Any) -> Any:
    """A draft with its data, or a refusal's code and message."""
    if isinstance(event, TableRead | TableOptions | str):
        return repr(event)
    outcome = parsed(Item("table.csv", 1, event, None), False).outcome  # type: ignore[union-attr]
    return (outcome.code, outcome.message) if isinstance(outcome, Refused) else repr(outcome)


def one_by_one(lines: Any, first: int, *table: Any) -> Generator[Any, None, Rest]:
    yield from ()
    return lines, first, None


def test_bulk_and_single_rows_agree(monkeypatch: pytest.MonkeyPatch, at_length: bool) -> None:
    """Any table gives the same events whether its rows are read in bulk or one by one."""
    chance = random.Random(1)
    ends: list[str | None] = []
    ways = {"at once": 0, "then one by one": 0, "one by one": 0}
    codes: set[str] = set()
    plain = {True: 0, False: 0}  # games that nobody looks at again, and others

    def noted(*table: Any) -> Generator[Any, None, Rest]:
        games = plain_games(*table)
        while True:
            try:
                game = next(games)
            except StopIteration as end:
                ends.append(end.value[2])
                return end.value  # type: ignore[no-any-return]
            plain[isinstance(game[1], NormalisedGame)] += 1
            yield game

    tables = 6_000 if at_length else 900
    for _ in range(tables):
        table, options = drawn(chance), chance.choice(OPTIONS)
        monkeypatch.setattr(plain_tables, "LINES", chance.choice((1, 2, 5, 1_000)))
        ends.clear()
        monkeypatch.setattr(csv_files, "plain_games", noted)
        short = told(table, options)
        monkeypatch.setattr(csv_files, "plain_games", one_by_one)
        assert short == told(table, options), table
        codes.update(event[0] for _, event, _, _ in short if isinstance(event, tuple))
        if short and ends:
            end = ends[0]
            ways["one by one" if end is None else "at once" if end == short[-1][3] else "then one by one"] += 1
    assert min(ways.values()) > tables / 12, ways
    assert min(plain.values()) > tables / 12, plain
    assert {"bad-csv", "bad-utf8", "rows-disagree", "row-length", "not-an-integer", "line-too-long"} <= codes
