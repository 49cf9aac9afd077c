"""The rows of answers as frames: the same numbers as the plain data of the rows, with types that columns have."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from test_display import SEQUENCES
from test_views import LADDER, with_games

import ratings_ledger
from ratings_ledger import BadArgument, Result, RowSequence
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import list_members

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
    with_rows = [one for one in answers if hasattr(one, "rows") or "rows" in {name for name, *_ in list_members(one)}]
    assert len(with_rows) > 5
    assert all(issubclass(one.row_kind(), Result) for one in with_rows)


EXTRA = "the extra frames is not installed"
LIBRARIES = ("pandas", "polars", "pyarrow")
NOWHERE = Coordinates(None, 0, None)


@pytest.fixture
def ledger(copied_file: Callable[..., str]) -> Any:
    """The ledger of `with_games`, with a published list and an adjustment."""
    with ratings_ledger.open(Path(copied_file(with_games))) as opened:
        yield opened


@pytest.mark.parametrize("what", SEQUENCES)
def test_every_sequence_is_a_frame(what: str, ledger: ratings_ledger.Ledger) -> None:
    """Each result of rows is a frame of each library, exactly and with floats, with the same columns in all three."""
    pandas, polars, pa = (pytest.importorskip(library, reason=EXTRA) for library in LIBRARIES)
    result = SEQUENCES[what](ledger, ledger.at())
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
    """Numbers are floats unless exact ones are asked for: these are texts that `Fraction` takes, beside decimals."""
    for library in LIBRARIES:
        pytest.importorskip(library, reason=EXTRA)
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
    """Times are timestamps in UTC, also where the log has them as text; what is missing leaves whole numbers whole."""
    pandas, polars, pa = (pytest.importorskip(library, reason=EXTRA) for library in LIBRARIES)
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


def test_recorded_games_and_events_are_columns_of_their_members(ledger: ratings_ledger.Ledger) -> None:
    """What is recorded as JSON is a column for each member; what is no text, number or truth value is JSON again."""
    pytest.importorskip("pyarrow", reason=EXTRA)
    games, events = ledger.at().games(), ledger.at().events()
    frame = games.arrow()
    assert frame["game_id"].to_pylist() == [row.data["game_id"] for row in games]
    assert [*map(json.loads, frame["participants"].to_pylist())] == [row.data["participants"] for row in games]
    frame = events.arrow()
    assert frame["position"].to_pylist() == [row.event["position"] for row in events]
    assert frame["occurred_at"].to_pylist() == [datetime.fromisoformat(row.event["occurred_at"]) for row in events]


def test_frames_without_rows_have_the_same_types(ledger: ratings_ledger.Ledger) -> None:
    """A frame of an answer without rows has the columns of one with rows."""
    pytest.importorskip("pyarrow", reason=EXTRA)
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
class _Table(RowSequence[ratings_ledger.Standing]):
    """Rows of standings alone."""

    rows: tuple[ratings_ledger.Standing, ...]


def test_what_a_rule_keeps_is_numbers() -> None:
    """The numbers of a rating with several are columns of floats, from the exact ones; exactly they are structures."""
    pytest.importorskip("pyarrow", reason=EXTRA)
    import pyarrow as pa

    states = [("1638", "4914/3", "110", "221/2"), ("1500", "1500", "350", "350")]
    rows = tuple(
        ratings_ledger.Standing(
            place, f"player-{place}", Fraction(exact), 9, True, provisional=place == 2,
            state={"rating": rating, "deviation": deviation}, state_exact={"rating": exact, "deviation": width},
        )
        for place, (rating, exact, deviation, width) in enumerate(states, 1)
    )  # fmt: skip
    frame = pa.table(_Table(rows))
    assert frame["state_rating"].to_pylist() == [1638.0, 1500.0]
    assert frame["state_deviation"].to_pylist() == [110.5, 350.0]
    assert frame["provisional"].to_pylist() == [False, True]
    assert _Table(rows).arrow()["state"].to_pylist() == [row.state for row in rows]


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_missing_library_is_named(
    library: str, ledger: ratings_ledger.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a library of the extra, a program is told which one is missing, and what to install."""
    monkeypatch.setitem(sys.modules, library, None)
    standings = ledger.at().standings(LADDER)
    asked: dict[str, list[Callable[[], object]]] = {
        "pandas": [standings.to_pandas],
        "polars": [standings.to_polars],
        "pyarrow": [standings.__arrow_c_stream__, standings.arrow],
    }
    for ask in asked[library]:
        with pytest.raises(BadArgument, match=rf"needs {library}, .*: pip install 'ratings-ledger\[frames\]'") as told:
            ask()
        assert told.value.argument is None


def test_times_of_every_year_are_timestamps() -> None:
    """The first and the last time that a ledger holds are timestamps in each library."""
    for library in LIBRARIES:
        pytest.importorskip(library, reason=EXTRA)
    ends = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
    rows = tuple(ratings_ledger.RankChange(None, when, None, 0) for when in ends)
    ranks = ratings_ledger.Ranks("anna", LADDER, NOWHERE, "day", rows)
    assert ranks.to_polars()["occurred_at"].to_list() == ends
    assert [when.to_pydatetime() for when in ranks.to_pandas()["occurred_at"]] == ends
