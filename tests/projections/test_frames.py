"""The rows of answers as frames: the values of the rows' plain data, with column types."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from test_display import SEQUENCES
from test_views import LADDER, make_ledger_with_games

import ratings_ledger
from ratings_ledger import BadArgument, Result, RowSequence

GAMES = """game_id,occurred_at,game,1st,2nd,3rd
g-1,2024-03-01T20:00:00Z,catan,anna,ben,cleo
g-2,2024-03-02T20:00:00Z,catan,ben,anna=cleo,
"""
QUERIES: dict[str, Callable[[ratings_ledger.View], Any]] = {
    "standings": lambda view: view.standings("elo-catan/all"),
    "history": lambda view: view.history("elo-catan/all", "anna"),
    "ladders": lambda view: view.ladders(),
    "rulesets": lambda view: view.rulesets(),
}


@pytest.fixture
def view(copy_ledger_file: Callable[..., str], ratings: Callable[..., Any]) -> ratings_ledger.View:
    """Return a view of a ledger with two games of Catan."""

    def make_catan_ledger(ratings: Callable[..., Any], url: str) -> None:
        assert ratings("init", "--for", "catan", db=url).exit_code == 0
        assert ratings("import", "-", "--new-names", "accept", db=url, input=GAMES).exit_code == 0

    return ratings_ledger.open(copy_ledger_file(make_catan_ledger)).at()


@pytest.mark.parametrize("query", QUERIES)
def test_frame_has_the_plain_data_of_rows(query: str, view: ratings_ledger.View) -> None:
    """Each column has the plain data of the rows under its name; instants are timestamps, decimals are decimals."""
    pytest.importorskip("pyarrow", reason="the extra frames is not installed")
    answer = QUERIES[query](view)
    frame = answer.arrow()
    plain = [row.model_dump() for row in answer.rows]
    assert frame.num_rows == len(plain)
    assert [*frame.column_names] == [*plain[0]]
    for name, column in zip(frame.column_names, frame.columns, strict=True):
        expected = [
            Decimal(row[name]) if isinstance(row[name], str) and name.endswith("_decimal") else row[name]
            for row in plain
        ]
        values = [
            f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else value for value in column.to_pylist()
        ]
        assert values == expected, name


def test_columns_have_types_without_rows(view: ratings_ledger.View) -> None:
    """A frame without rows has the columns and types of one with rows."""
    pytest.importorskip("pyarrow", reason="the extra frames is not installed")
    full = view.standings("elo-catan/all").arrow()
    assert view.standings("elo-catan/all", limit=0).arrow().schema == full.schema
    assert (str(full.schema.field("points_decimal").type), str(full.schema.field("rank").type)) == (
        "decimal128(38, 6)",
        "int64",
    )


def test_missing_library_is_named(view: ratings_ledger.View, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the error says what to install; an answer without rows says so."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadArgument, match=r"pip install 'ratings-ledger\[frames\]'"):
        view.standings("elo-catan/all").arrow()
    with pytest.raises(BadArgument, match="Balance has no rows"):
        view.balance("elo-catan/all").arrow()


def test_every_answer_knows_the_type_of_its_rows() -> None:
    """Every public answer with rows knows their type, also when it is empty."""
    public = [getattr(ratings_ledger, name) for name in ratings_ledger.__all__]
    answers = [kind for kind in public if isinstance(kind, type) and issubclass(kind, Result)]
    with_rows = [kind for kind in answers if hasattr(kind, "rows") or "rows" in {field.name for field in fields(kind)}]
    assert len(with_rows) > 5
    assert all(issubclass(kind.row_kind(), Result) for kind in with_rows)


NOT_INSTALLED = "the extra frames is not installed"
LIBRARIES = ("pandas", "polars", "pyarrow")


@pytest.fixture
def ledger(copy_ledger_file: Callable[..., str]) -> Any:
    """Yield the ledger of `make_ledger_with_games`."""
    with ratings_ledger.open(Path(copy_ledger_file(make_ledger_with_games))) as opened:
        yield opened


@pytest.mark.parametrize("name", SEQUENCES)
def test_every_sequence_becomes_a_frame(name: str, ledger: ratings_ledger.Ledger) -> None:
    """Each result with rows becomes a frame of each library, exact and with floats, with the same columns in all."""
    pandas, polars, pa = (pytest.importorskip(library, reason=NOT_INSTALLED) for library in LIBRARIES)
    result = SEQUENCES[name](ledger, ledger.at())
    streamed = pa.table(result)
    assert streamed.num_rows == len(result)
    for exact in (False, True):
        with_pandas, with_polars = result.to_pandas(exact=exact), result.to_polars(exact=exact)
        assert len(with_pandas) == len(with_polars) == len(result)
        assert [*with_pandas.columns] == with_polars.columns
    assert [*result.to_pandas().columns] == streamed.column_names
    assert polars.DataFrame(result).equals(result.to_polars())
    assert not any(str(kind) in ("null", "object") for kind in streamed.schema.types)
    if isinstance(getattr(result, "ladder", None), str):
        assert "ladder" in streamed.column_names
    if isinstance(getattr(result, "player", None), str):
        assert "player" in streamed.column_names
    assert isinstance(result.to_pandas(), pandas.DataFrame)


def test_floats_and_exact_numbers(ledger: ratings_ledger.Ledger) -> None:
    """Numbers are floats by default; exact numbers are texts for `Fraction`, beside decimals."""
    for library in LIBRARIES:
        pytest.importorskip(library, reason=NOT_INSTALLED)
    history = ledger.at().history(LADDER, "anna")
    frame, exact = history.to_pandas(), history.to_pandas(exact=True)
    assert [*frame.columns[:2]] == ["ladder", "player"]
    assert {*frame["ladder"]} == {LADDER}
    assert {*frame["player"]} == {"anna"}
    assert frame["after"].tolist() == [float(row.after) for row in history]
    assert frame["after"].dtype == "float64"
    assert [*map(Fraction, exact["after"])] == [row.after for row in history]
    assert exact["after_decimal"].tolist() == [Decimal(f"{row.after:.6f}") for row in history]
    with_polars = history.to_polars(exact=True)
    assert [*map(Fraction, with_polars["after"])] == [row.after for row in history]
    assert history.to_polars()["change"].to_list() == [float(row.change) for row in history]


def test_times_and_missing_values_have_their_types(ledger: ratings_ledger.Ledger) -> None:
    """Times are timestamps in UTC, also if the log has them as text; missing values keep integer columns."""
    pandas, polars, pa = (pytest.importorskip(library, reason=NOT_INSTALLED) for library in LIBRARIES)
    view = ledger.at()
    history = view.history(LADDER, "anna")
    frame = history.to_pandas()
    assert str(frame["occurred_at"].dtype) == "datetime64[us, UTC]"
    assert frame["occurred_at"].iloc[0].to_pydatetime() == history[0].occurred_at
    assert str(frame["place"].dtype) == "Int64"
    assert frame["place"].isna().tolist() == [row.place is None for row in history]
    assert True in frame["place"].isna().tolist()
    assert history.to_polars()["place"].to_list() == [row.place for row in history]
    assert history.to_polars().schema["occurred_at"] == polars.Datetime("us", "UTC")
    for result in (view.publications(), view.events()):
        assert pa.table(result).schema.field("recorded_at").type == pa.timestamp("us", tz="UTC")
        assert result.to_polars()["recorded_at"].null_count() == 0
    assert pandas.isna(history.to_pandas()["reason"].iloc[0])


def test_games_and_events_have_columns_of_their_members(ledger: ratings_ledger.Ledger) -> None:
    """A recorded game or event has a column for each member; members that are objects or lists are JSON."""
    pytest.importorskip("pyarrow", reason=NOT_INSTALLED)
    games, events = ledger.at().games(), ledger.at().events()
    frame = games.arrow()
    assert frame["game_id"].to_pylist() == [row.data["game_id"] for row in games]
    assert [*map(json.loads, frame["participants"].to_pylist())] == [row.data["participants"] for row in games]
    frame = events.arrow()
    assert frame["position"].to_pylist() == [row.event["position"] for row in events]
    assert frame["occurred_at"].to_pylist() == [datetime.fromisoformat(row.event["occurred_at"]) for row in events]


def test_frames_without_rows_have_the_same_types(ledger: ratings_ledger.Ledger) -> None:
    """A frame without rows has the columns and types of one with rows, for several kinds of answers."""
    pytest.importorskip("pyarrow", reason=NOT_INSTALLED)
    import pyarrow as pa

    view, before = ledger.at(), ledger.at(as_of="2023-12-31")
    pairs: list[tuple[RowSequence[Any], RowSequence[Any]]] = [
        (view.standings(LADDER), before.standings(LADDER)),
        (view.ranks(LADDER, "anna"), before.ranks(LADDER, "anna")),
        (view.ladders(), before.ladders()),
        (view.everybody(), before.everybody()),
        (view.publications(), ledger.at(known_at=20).publications()),
    ]
    for full, empty in pairs:
        assert (bool(full), bool(empty)) == (True, False)
        assert pa.table(empty).schema == pa.table(full).schema
    empty_games = pa.table(view.games("nothing-like-that"))
    assert empty_games.column_names == ["position", "occurred_at", "game_id", "game"]
    assert [*view.games("nothing-like-that").arrow().schema.types] == [*empty_games.schema.types]


@dataclass(frozen=True, slots=True)
class _StandingRows(RowSequence[ratings_ledger.Standing]):
    """Standings that consist of rows only."""

    rows: tuple[ratings_ledger.Standing, ...]


def test_states_become_columns_of_floats() -> None:
    """The numbers of a state are columns of floats, from exact numbers; an arrow table has them as structures."""
    pytest.importorskip("pyarrow", reason=NOT_INSTALLED)
    import pyarrow as pa

    states = [("1638", "4914/3", "110", "221/2"), ("1500", "1500", "350", "350")]
    rows = tuple(
        ratings_ledger.Standing(
            rank,
            f"player-{rank}",
            Fraction(exact),
            9,
            True,
            provisional=rank == 2,
            state={"rating": rating, "deviation": deviation},
            state_exact={"rating": exact, "deviation": width},
        )
        for rank, (rating, exact, deviation, width) in enumerate(states, 1)
    )
    frame = pa.table(_StandingRows(rows))
    assert frame["state_rating"].to_pylist() == [1638.0, 1500.0]
    assert frame["state_deviation"].to_pylist() == [110.5, 350.0]
    assert frame["provisional"].to_pylist() == [False, True]
    assert _StandingRows(rows).arrow()["state"].to_pylist() == [row.state for row in rows]


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_missing_library_is_named(
    library: str, ledger: ratings_ledger.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a library of the extra, the error names the library and the command that installs it."""
    monkeypatch.setitem(sys.modules, library, None)
    standings = ledger.at().standings(LADDER)
    conversions: dict[str, list[Callable[[], object]]] = {
        "pandas": [standings.to_pandas],
        "polars": [standings.to_polars],
        "pyarrow": [standings.__arrow_c_stream__, standings.arrow],
    }
    for convert in conversions[library]:
        with pytest.raises(BadArgument, match=rf"needs {library}, .*: pip install 'ratings-ledger\[frames\]'") as error:
            convert()
        assert error.value.argument is None


def test_times_of_every_year_are_timestamps(ledger: ratings_ledger.Ledger) -> None:
    """The first and the last possible instant are timestamps in each library."""
    for library in LIBRARIES:
        pytest.importorskip(library, reason=NOT_INSTALLED)
    ends = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
    rows = tuple(ratings_ledger.RankChange(None, instant, None, 0) for instant in ends)
    ranks = ratings_ledger.Ranks("anna", LADDER, ledger.at().ranks(LADDER, "anna").at, "day", rows)
    assert ranks.to_polars()["occurred_at"].to_list() == ends
    assert [instant.to_pydatetime() for instant in ranks.to_pandas()["occurred_at"]] == ends
