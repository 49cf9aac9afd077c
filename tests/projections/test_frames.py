"""The rows of answers as frames: the same numbers as the plain data of the rows, with types that columns have."""

import sys
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

import ratings_ledger
from ratings_ledger import BadArgument
from ratings_ledger.projections.queries.results import Result, members

GAMES = """game_id,occurred_at,game,1st,2nd,3rd
g-1,2024-03-01T20:00:00Z,catan,anna,ben,cleo
g-2,2024-03-02T20:00:00Z,catan,ben,anna=cleo,
"""
ASKED: dict[str, Callable[[ratings_ledger.View], Any]] = {
    "standings": lambda view: view.standings("elo-catan/all"),
    "history": lambda view: view.history("elo-catan/all", "anna"),
    "ladders": lambda view: view.ladders(),
    "rulesets": lambda view: view.rulesets(),
}


@pytest.fixture
def view(copied_file: Callable[..., str], ratings: Callable[..., Any]) -> ratings_ledger.View:
    def make(ratings: Callable[..., Any], url: str) -> None:
        assert ratings("init", "--for", "catan", db=url).exit_code == 0
        assert ratings("import", "-", "--new-names", "accept", db=url, input=GAMES).exit_code == 0

    return ratings_ledger.open(copied_file(make)).at()


@pytest.mark.parametrize("what", ASKED)
def test_frame_says_what_the_plain_data_say(what: str, view: ratings_ledger.View) -> None:
    """Each column holds what the rows' plain data have under its name; moments are times, decimals are decimals."""
    pytest.importorskip("pyarrow", reason="the extra frames is not installed")
    found = ASKED[what](view)
    frame = found.arrow()
    plain = [row.model_dump() for row in found.rows]
    assert frame.num_rows == len(plain)
    assert [*frame.column_names] == [*plain[0]]
    for name, column in zip(frame.column_names, frame.columns, strict=True):
        expected = [Decimal(row[name]) if isinstance(row[name], str) and name.endswith("_decimal") else row[name]
                    for row in plain]  # fmt: skip
        told = [f"{one:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(one, datetime) else one for one in column.to_pylist()]
        assert told == expected, name


def test_columns_have_types_without_rows(view: ratings_ledger.View) -> None:
    """A frame without rows has the columns that every row has, of the same types."""
    pytest.importorskip("pyarrow", reason="the extra frames is not installed")
    full = view.standings("elo-catan/all").arrow()
    assert view.standings("elo-catan/all", limit=0).arrow().schema == full.schema
    assert (str(full.schema.field("points_decimal").type), str(full.schema.field("rank").type)) == (
        "decimal128(38, 6)", "int64",
    )  # fmt: skip


def test_missing_library_is_named(view: ratings_ledger.View, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra a program is told what to install, and an answer without rows says so."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadArgument, match=r"pip install 'ratings-ledger\[frames\]'"):
        view.standings("elo-catan/all").arrow()
    with pytest.raises(BadArgument, match="Balance has no rows"):
        view.balance("elo-catan/all").arrow()


def test_every_answer_with_rows_has_their_kind() -> None:
    """The kind of the rows is known of every public answer that has some, so that none fails when it is empty."""
    public = [getattr(ratings_ledger, name) for name in ratings_ledger.__all__]
    answers = [one for one in public if isinstance(one, type) and issubclass(one, Result)]
    with_rows = [one for one in answers if hasattr(one, "rows") or "rows" in {name for name, *_ in members(one)}]
    assert len(with_rows) > 5
    assert all(issubclass(one.row_kind(), Result) for one in with_rows)
