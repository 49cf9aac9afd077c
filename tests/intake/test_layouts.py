"""Each layout reads its own examples, and is the one that they are recognised as."""

import io
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from damages import TABLE_DAMAGES

from ratings_ledger import Refused
from ratings_ledger.ledger.intake.json_lines import LINE_BYTES_MAX
from ratings_ledger.ledger.intake.tables import csv_files, similar_rows, table_games
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.csv_files import read_csv_table
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.layouts.layout import Example
from ratings_ledger.ledger.intake.tables.recognition import TableRead

EXAMPLES = [(name, example) for name, layout in LAYOUTS.items() for example in layout.examples]


def describe_game(event: dict[str, object] | Refused) -> str:
    """Return a game as the examples write it."""
    if isinstance(event, Refused):
        return f"{event.code}: {event.message}"
    participants = event["data"]["participants"]  # type: ignore[index]
    return " ".join(
        f"{one['player']} {one['place']}" if "place" in one else f"{one['player']} ={one['score']}"
        for one in participants
    )


@pytest.mark.parametrize(("layout", "example"), EXAMPLES)
def test_layout_reads_its_examples(layout: str, example: Example) -> None:
    """A table without options is taken for the layout whose example it is, and gives the games beside it."""
    options = TableOptions("UTC", fixed={"game": "catan"})
    entries = list(read_csv_table(io.BytesIO(example.table.encode()), options, LINE_BYTES_MAX))
    assert [entry.layout for entry in entries if isinstance(entry, TableRead)] == [layout]
    games = [describe_game(entry[1]) for entry in entries if isinstance(entry, tuple) and len(entry) == 4]
    assert len(games) == len(example.games)
    assert [game for game, wanted in zip(games, example.games, strict=True) if not game.startswith(wanted)] == []


def read_table(rows: list[list[str]], delimiter: str, options: TableOptions) -> list[Any]:
    """Return all entries of a table, with refusals as what they say."""
    text = "\n".join(map(delimiter.join, rows)).encode()
    found: list[Any] = []
    for entry in read_csv_table(io.BytesIO(text), options, LINE_BYTES_MAX):
        if type(entry) is not tuple:
            found.append(entry)
            continue
        line, event, *rest = entry
        refused = (event.code, event.message, event.names) if isinstance(event, Refused) else None
        found.append((line, refused or deepcopy(event), *rest))
        if isinstance(event, dict):
            event["data"]["game"] = "changed by whoever takes it"
    return found


def test_losers_of_a_winner_share_the_second_place() -> None:
    """Of three players of whom only the winner is known the others are tied, if that is said."""
    rows = [["Date", "Player 1", "Player 2", "Player 3", "Winner"], ["2024-11-22", "anna", "ben", "cleo", "ben"]]
    options = TableOptions("UTC", fixed={"game": "catan"}, others="tied")
    (game,) = (entry[1] for entry in read_table(rows, ",", options) if isinstance(entry, tuple) and len(entry) == 4)
    assert describe_game(game) == "anna 2 ben 1 cleo 2"


def test_rows_of_winners_and_losers_without_a_date_are_checked_too() -> None:
    """The missing date of a table that names winners and losers alone does not hide what is wrong with its rows."""
    rows = [["Winner", "Loser"], ["anna", "ben"]]
    options = TableOptions("UTC", fixed={"game": "catan"}, layout="winner-loser", checks_all=True)
    entries = read_table(rows, ",", options)
    found = [entry[:2] for entry in entries if isinstance(entry, tuple) and len(entry) == 4]
    assert [(line, event[0] if isinstance(event, tuple) else describe_game(event)) for line, event in found] == [
        (1, "missing-column"), (2, "anna 1 ben 2"),
    ]  # fmt: skip


def test_rows_that_are_alike_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Games composed as an earlier row of their kind are those that come out if every row is read by itself."""
    composed = 0
    for seed in range(50):
        chance = Random(seed)
        _, example = chance.choice(EXAMPLES)
        delimiter = max(",;\t", key=example.table.count)
        header, *some = [line.split(delimiter) for line in example.table.splitlines()]
        rows = [[*chance.choice(some)] for _ in range(chance.randrange(1, 12))]
        swapped = {"anna": "ben", "ben": chance.choice(["anna", "Cleo & Dora", "ben / anna", ""])}
        rows = [[swapped.get(cell, cell) if chance.random() < 0.3 else cell for cell in row] for row in rows]
        if chance.random() < 0.5:
            chance.choice([*TABLE_DAMAGES.values()])(chance, rows)
        partners = chance.choice([(), (), ("&",), ("/",)])
        options = TableOptions("UTC", fixed={"game": "catan"}, partners=partners, others=chance.choice([None, "tied"]))
        monkeypatch.undo()
        found = read_table([header, *rows], delimiter, options)
        monkeypatch.setattr(similar_rows, "TEMPLATES_MAX", 0)
        assert found == read_table([header, *rows], delimiter, options), (seed, rows)
        composed += len(rows) - len({*map(tuple, rows)})
    assert composed > 0


def test_rows_that_are_read_together_are_read_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows at once give what each of them gives by itself, whatever one of them holds."""
    odd_cells = ("", " ", "-", " anna", "ben ", "#REF!", "Err:502", "a\x0bb", "é", "?", "0", "a b")
    together, apart = 0, 0
    for seed in range(200):
        chance = Random(seed)
        rows = [[f"g{number // 2}", "2024-11-22", f"p{number}", str(number % 2 + 1)] for number in range(12)]
        for _ in range(chance.randrange(3)):
            row = chance.choice(rows)
            row[chance.randrange(4)] = chance.choice(odd_cells)
        if chance.random() < 0.1:
            chance.choice(rows).append("more")
        table = [["game_id", "occurred_at", "player", "place"], *rows]
        options = TableOptions("UTC", fixed={"game": "catan"})
        monkeypatch.setattr(csv_files, "ROWS_AT_ONCE", 1)
        wanted = read_table(table, ",", options)
        monkeypatch.setattr(csv_files, "ROWS_AT_ONCE", 5)
        assert read_table(table, ",", options) == wanted, (seed, rows)
        is_plain = table_games.read_plain_cells(rows, [*table[0]]) is not None
        together, apart = together + is_plain, apart + (not is_plain)
    assert together > 20
    assert apart > 20


def test_all_layouts_have_examples() -> None:
    """No layout is without an example."""
    assert [name for name, layout in LAYOUTS.items() if not layout.examples] == []
