"""Each layout reads its own examples, and is the one that they are recognised as."""

import io

import pytest

from ratings_ledger.ledger.intake.json_lines import LINE_BYTES_MAX
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.intake.tables.csv_files import table_events
from ratings_ledger.ledger.intake.tables.layouts import LAYOUTS
from ratings_ledger.ledger.intake.tables.layouts.layout import Example
from ratings_ledger.ledger.intake.tables.recognition import TableRead
from ratings_ledger.ledger.rejections import Refused

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
    entries = list(table_events(io.BytesIO(example.table.encode()), options, LINE_BYTES_MAX))
    assert [entry.layout for entry in entries if isinstance(entry, TableRead)] == [layout]
    games = [describe_game(entry[1]) for entry in entries if isinstance(entry, tuple) and len(entry) == 4]
    assert len(games) == len(example.games)
    assert [game for game, wanted in zip(games, example.games, strict=True) if not game.startswith(wanted)] == []


def test_all_layouts_have_examples() -> None:
    """No layout is without an example."""
    assert [name for name, layout in LAYOUTS.items() if not layout.examples] == []
