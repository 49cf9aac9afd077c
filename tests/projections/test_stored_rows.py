"""Rows for the store and for digests: the fast functions have the results of the plain ones."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratings_ledger.ledger.events.published_lists import compute_digest
from ratings_ledger.projections.lists import monthly
from ratings_ledger.projections.lists.contract import RankedRow, RankingInput, rank_rows
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.stored.computing import from_stored_row, to_stored_row
from ratings_ledger.rules import PeriodParams, State

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8) | st.sampled_from(
    ['"', "\\", "a b", "é", "\u2028"]
)
WHOLE = st.integers(-(10**17), 10**17)
ROWS = st.builds(
    RankedRow,
    st.none() | st.integers(1, 10**6),
    NAMES,
    WHOLE | st.integers(-50, 50).map(lambda points: points * 10**6),
    st.integers(0, 10**6),
    st.booleans(),
    st.integers(1, 40),
    st.none() | st.integers(0, 1_000),
    st.none() | st.lists(st.integers(1, 999), min_size=1, max_size=12).map(tuple),
    st.none() | st.lists(WHOLE, min_size=2, max_size=2).map(tuple),
)
STATE = (State("rating", 10**6), State("deviation", 10**6))


@given(st.lists(ROWS, max_size=5), st.sampled_from([1, 2, 840, 10**6]), NAMES)
def test_digest_equals_that_of_json_rows(rows: list[RankedRow], scale: int, ruleset: str) -> None:
    """The digest of standings equals that of their rows as JSON."""
    ranking = Ranking("ladder", ruleset, scale, rows, 0, 0, 0, 0, 0, 0, STATE)
    assert ranking.digest == compute_digest(ruleset, ranking.json_rows())


@given(ROWS)
def test_stored_row_reads_back_the_same(row: RankedRow) -> None:
    """A stored row has only plain values, and is read back as the same standing."""
    values = to_stored_row(row)
    assert {type(value) for value in values} <= {int, str, type(None)}
    *leading, gold, places, state = (*values, None, None, None)[:9]
    assert from_stored_row((*leading[:4], bool(leading[4]), *leading[5:], gold, places, state)) == row


def rank_by_definition(rows: list[RankedRow], key: Any) -> list[RankedRow]:
    """Return the rows with ranks: one more than the number of qualified players ahead."""
    ordered = sorted(rows, key=lambda row: (not row.qualified, key(row), row.player))
    before = [sum(rival.qualified and key(rival) < key(row) for rival in rows) for row in ordered]
    return [
        row._replace(rank=number + 1 if row.qualified else None) for row, number in zip(ordered, before, strict=True)
    ]


SMALL = st.builds(RankedRow, st.none(), NAMES, st.integers(-3, 3), st.integers(0, 3), st.booleans(), st.integers(1, 4))


@pytest.mark.slow
@given(st.lists(SMALL, max_size=8, unique_by=lambda row: row.player))
def test_ranks_follow_the_definition(rows: list[RankedRow]) -> None:
    """Ranks are one more than the number of qualified players ahead."""
    assert rank_rows(rows, lambda row: -row.points) == rank_by_definition(rows, lambda row: -row.points)
    assert rank_rows(rows, lambda row: (row.games, -row.points)) == rank_by_definition(
        rows, lambda row: (row.games, -row.points)
    )


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 12)), max_size=8))
def test_monthly_means_compare_as_fractions(played: list[tuple[int, int]]) -> None:
    """The means of a month are compared as exact fractions."""
    names = [f"p{number}" for number in range(len(played))]
    points, games = [units for units, _ in played], [count for _, count in played]
    ranked = monthly.rank(RankingInput(names, points, games, [0], [], [], 1, PeriodParams(min_games=1)))
    rows = [RankedRow(None, *row, row[2] >= 1, max(row[2], 1)) for row in zip(names, points, games, strict=True)]
    assert ranked == rank_by_definition(rows, lambda row: -Fraction(row.points, row.divisor))
