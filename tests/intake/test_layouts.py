"""Each layout recognises and reads its own examples, and fast ways of reading rows give the same games."""

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
    """Return a game in the notation of the examples."""
    if isinstance(event, Refused):
        return f"{event.code}: {event.message}"
    participants = event["data"]["participants"]  # type: ignore[index]
    return " ".join(
        f"{seat['player']} {seat['place']}" if "place" in seat else f"{seat['player']} ={seat['score']}"
        for seat in participants
    )


@pytest.mark.parametrize(("layout", "example"), EXAMPLES)
def test_layout_reads_its_examples(layout: str, example: Example) -> None:
    """An example is recognised as its layout without a `layout` option, and gives its games, or its refusals."""
    options = TableOptions("UTC", fixed={"game": "catan"})
    entries = list(read_csv_table(io.BytesIO(example.table.encode()), options, LINE_BYTES_MAX))
    assert [entry.layout for entry in entries if isinstance(entry, TableRead)] == [layout]
    games = [describe_game(entry[1]) for entry in entries if isinstance(entry, tuple) and len(entry) == 4]
    assert len(games) == len(example.games)
    for game, expected in zip(games, example.games, strict=True):
        # a refusal in an example has only the beginning of its message
        assert game.startswith(expected) if ": " in expected else game == expected


def read_table(rows: list[list[str]], delimiter: str, options: TableOptions) -> list[Any]:
    """Return copies of all entries of a table, with refusals as code, message and names.

    Each event is changed after it has been copied, as a consumer may do.
    """
    text = "\n".join(map(delimiter.join, rows)).encode()
    entries: list[Any] = []
    for entry in read_csv_table(io.BytesIO(text), options, LINE_BYTES_MAX):
        if type(entry) is not tuple:
            entries.append(entry)
            continue
        line, event, *rest = entry
        refused = (event.code, event.message, event.names) if isinstance(event, Refused) else None
        entries.append((line, refused or deepcopy(event), *rest))
        if isinstance(event, dict):
            event["data"]["game"] = "changed by the consumer"
    return entries


def test_others_than_the_winner_may_be_tied() -> None:
    """If only the winner of three players is known, the others are tied with the option `others="tied"`."""
    rows = [["Date", "Player 1", "Player 2", "Player 3", "Winner"], ["2024-11-22", "anna", "ben", "cleo", "ben"]]
    options = TableOptions("UTC", fixed={"game": "catan"}, others="tied")
    (game,) = (entry[1] for entry in read_table(rows, ",", options) if isinstance(entry, tuple) and len(entry) == 4)
    assert describe_game(game) == "anna 2 ben 1 cleo 2"


def test_rows_of_winners_and_losers_without_a_date_are_checked_too() -> None:
    """The rows of a table of winners and losers are checked even if its date is missing."""
    rows = [["Winner", "Loser"], ["anna", "ben"]]
    options = TableOptions("UTC", fixed={"game": "catan"}, layout="winner-loser", checks_all=True)
    entries = read_table(rows, ",", options)
    outcomes = [entry[:2] for entry in entries if isinstance(entry, tuple) and len(entry) == 4]
    assert [(line, event[0] if isinstance(event, tuple) else describe_game(event)) for line, event in outcomes] == [
        (1, "missing-column"),
        (2, "anna 1 ben 2"),
    ]


def test_similar_rows_give_the_same_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are read like an earlier similar row give the same games as rows that are read one by one."""
    repeated_rows = 0
    for seed in range(50):
        chance = Random(seed)
        _, example = chance.choice(EXAMPLES)
        delimiter = max(",;\t", key=example.table.count)
        header, *example_rows = [line.split(delimiter) for line in example.table.splitlines()]
        rows = [[*chance.choice(example_rows)] for _ in range(chance.randrange(1, 12))]
        replacements = {"anna": "ben", "ben": chance.choice(["anna", "Cleo & Dora", "ben / anna", ""])}
        rows = [[replacements.get(cell, cell) if chance.random() < 0.3 else cell for cell in row] for row in rows]
        if chance.random() < 0.5:
            chance.choice([*TABLE_DAMAGES.values()])(chance, rows)
        partners = chance.choice([(), (), ("&",), ("/",)])
        options = TableOptions("UTC", fixed={"game": "catan"}, partners=partners, others=chance.choice([None, "tied"]))
        monkeypatch.undo()
        entries = read_table([header, *rows], delimiter, options)
        monkeypatch.setattr(similar_rows, "TEMPLATES_MAX", 0)
        assert entries == read_table([header, *rows], delimiter, options), (seed, rows)
        repeated_rows += len(rows) - len({*map(tuple, rows)})
    assert repeated_rows > 0


def test_rows_read_together_give_the_same_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are read together give the same games as rows that are read one by one, with any odd cells."""
    odd_cells = ("", " ", "-", " anna", "ben ", "#REF!", "Err:502", "a\x0bb", "é", "?", "0", "a b")
    plain_tables, other_tables = 0, 0
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
        expected = read_table(table, ",", options)
        monkeypatch.setattr(csv_files, "ROWS_AT_ONCE", 5)
        assert read_table(table, ",", options) == expected, (seed, rows)
        is_plain = table_games.read_plain_cells(rows, [*table[0]]) is not None
        plain_tables, other_tables = plain_tables + is_plain, other_tables + (not is_plain)
    assert plain_tables > 20
    assert other_tables > 20


def test_all_layouts_have_examples() -> None:
    """Every layout has examples."""
    assert [name for name, layout in LAYOUTS.items() if not layout.examples] == []
