"""Rankings: ranks, digests, stored rows and comparisons follow their definitions, in rows, in columns, and at any time
of a replay.
"""

from collections import Counter
from contextlib import suppress
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from histories import enter
from hypothesis import event, example, given
from hypothesis import strategies as st
from ledgers import create_ledger
from paths import NEVER, set_paths
from test_trace_cache import UNBOUNDED_LADDERS
from thresholds import set_thresholds
from time_histories import INSTANTS, LADDERS, World, draw_history, draw_question

from ratings_ledger import DifferingRow, Effect
from ratings_ledger.ledger.events.canonical import parse_record_instant, to_microseconds
from ratings_ledger.ledger.events.published_lists import compute_digest
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.diff.affected import have_same_points
from ratings_ledger.projections.diff.comparison import (
    TOP_RANKS,
    RankedPoints,
    RankedState,
    compare_states,
    count_swapped,
)
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.lists import monthly, points
from ratings_ledger.projections.lists.contract import RankedColumns, RankedRow, RankingInput, rank_rows
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.standings import build_standings
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.projections.stored.computing import from_stored_row, to_stored_row
from ratings_ledger.rules import Params, PeriodParams, State

ANY_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8) | st.sampled_from(
    ['"', "\\", "a b", "é", "\u2028"]
)
WHOLE = st.integers(-(10**17), 10**17)
ROWS = st.builds(
    RankedRow,
    st.none() | st.integers(1, 10**6),
    ANY_NAMES,
    WHOLE | st.integers(-50, 50).map(lambda points: points * 10**6),
    st.integers(0, 10**6),
    st.booleans(),
    st.integers(1, 40),
    st.none() | st.integers(0, 1_000),
    st.none() | st.lists(st.integers(1, 999), min_size=1, max_size=12).map(tuple),
    st.none() | st.lists(WHOLE, min_size=2, max_size=2).map(tuple),
)
STATE = (State("rating", 10**6), State("deviation", 10**6))


@given(st.lists(ROWS, max_size=5), st.sampled_from([1, 2, 840, 10**6]), ANY_NAMES)
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


SMALL = st.builds(
    RankedRow, st.none(), ANY_NAMES, st.integers(-3, 3), st.integers(0, 3), st.booleans(), st.integers(1, 4)
)


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


# -- rankings in columns, of long ladders

PlayerTotals = dict[str, tuple[int, int]]
NAMES = [*(f"p{number}" for number in range(24)), "é", 'a "b"', "\u2028"]
# (points, games); points are in hundredths, with many ties
DRAWN_TOTALS: st.SearchStrategy[PlayerTotals] = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.integers(-20, 20) | st.integers(-(10**16), 10**16), st.integers(0, 3)),
    min_size=1,
)  # fmt: skip


def build_ranking(totals: PlayerTotals, min_games: int, long: bool) -> Ranking:
    """Return the standings of players with these points and games."""
    names = [*totals]
    ids = [sorted(names).index(name) for name in names] if long else None
    columns = [points for points, _ in totals.values()], [games for _, games in totals.values()]
    rows = points.rank(RankingInput(names, *columns, [0], [], [], 100, Params(min_games=min_games), ids=ids))
    assert isinstance(rows, RankedColumns) == long
    return Ranking("x", "x@1", 100, rows, 1, 0, 0, 0, 0, 0)


@given(DRAWN_TOTALS, st.integers(0, 2), st.integers(-30, 30), st.integers(-30, 30))
def test_ranked_columns_equal_ranked_rows(totals: PlayerTotals, min_games: int, low: int, high: int) -> None:
    """Ranked columns equal ranked rows: any slice of rows, the JSON and the digest."""
    plain, long = (build_ranking(totals, min_games, is_long) for is_long in (False, True))
    assert long == plain
    assert plain == long
    assert (len(long.rows), long.rows[low:high], long.rows[-1]) == (len(totals), plain.rows[low:high], plain.rows[-1])
    assert [[*map(type, row)] for row in long.rows] == [[*map(type, row)] for row in plain.rows]
    assert (long.digest, long.json_rows()) == (plain.digest, plain.json_rows())
    with pytest.raises(IndexError):
        long.rows[len(totals)]


@pytest.mark.slow
@given(DRAWN_TOTALS, DRAWN_TOTALS, st.integers(0, 2), st.booleans(), st.booleans())
def test_compared_columns_equal_compared_rows(
    old: PlayerTotals, new: PlayerTotals, min_games: int, alike: bool, ranks: bool
) -> None:
    """A comparison of columns has the differences and the summary of a comparison of rows."""
    new = old | dict([*new.items()][:3]) if alike else new
    facts = Facts(1, b"")
    states = [
        [RankedState(facts, ranking) for ranking in (build_ranking(old, 0, long), build_ranking(new, min_games, long))]
        for long in (False, True)
    ]
    plain, long = (compare_states(DifferingRow, "x", *state, ranks=ranks) for state in states)
    event(f"swapped: {min(plain[1].swapped, 3)}")
    assert long == plain
    assert compare_states(DifferingRow, "x", states[0][0], states[1][1], ranks=ranks) == plain


@pytest.mark.slow
def test_digest_is_computed_only_when_read() -> None:
    """Standings do not compute a digest until it is read; their plain data have it in its usual place."""
    ranking = build_ranking({"anna": (1, 1), "ben": (2, 2)}, 0, long=True)
    answer = build_standings(ranking, ranking.rows[:1], Coordinates(None, 1, None), UTC_TIMES)
    assert (answer.rows[0].player, "digest" in vars(ranking), "sha256" in repr(answer)) == ("ben", False, False)
    assert [*answer.model_dump()] == ["ladder", "ruleset", "as_of", "known_at", "rules", "games", "digest", "rows"]
    assert (
        answer.model_dump()["digest"]
        == answer.digest
        == build_ranking({"ben": (2, 2), "anna": (1, 1)}, 0, False).digest
    )


@pytest.mark.slow
def test_random_histories_rank_and_compare_equally_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two states of a random history, ranking and comparison by columns equal those by rows."""
    cases: Counter[str] = Counter()
    for seed in range(6):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db")
        create_ledger(url)
        ledger, log = open_ledger(url), draw_history(seed, 100)
        enter(ledger, log)
        with ledger.reading() as connection:
            facts = [decode(connection, at, cached=False) for at in (chance.randint(10, len(log)), len(log))]
        as_of = [chance.choice([None, *map(parse_record_instant, INSTANTS)]) for _ in facts]
        for ladder in dict.fromkeys(UNBOUNDED_LADDERS):
            if not all(ladder.partition("/")[0] in known.rulesets for known in facts):
                continue
            results = []
            for threshold in (NEVER, 1):
                set_paths(monkeypatch, scanned=False, compiled=False)
                ladders = [Ladders(known) for known in facts]
                with suppress(RuleFailure):
                    traces = [ladders_at.trace(ladder) for ladders_at in ladders]
                    set_thresholds(monkeypatch, compiled_games=threshold)
                    rankings = [
                        ladders_at.rank_at(*trace_and_time)
                        for ladders_at, *trace_and_time in zip(ladders, traces, as_of, strict=True)
                    ]
                    states = [*map(RankedState, facts, rankings)]
                    results.append(
                        (
                            rankings,
                            [compare_states(DifferingRow, ladder, *states, ranks=ranks) for ranks in (True, False)],
                        )
                    )
                    cases["long"] += all(isinstance(ranking.rows, RankedColumns) for ranking in rankings)
                    cases["differing"] += bool(results[-1][1][0][0])
                    cases["renamed"] += facts[1].renamed
            assert results[:1] == results[1:]
    assert len(cases) == 3
    assert min(cases.values()) > 5, cases


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_cut_replay_matches_partial_replay(tmp_path: Path, at_length: bool) -> None:
    """A trace cut at any time equals a replay up to that time: standings, books, streams and all steps.

    Published lists of many days, and repeated queries of a view, are computed from one replay.
    """
    compared = 0
    for seed in range(100 if at_length else 8):
        chance, path = Random(seed), str(tmp_path / f"{seed}.db")
        create_ledger(path)
        ledger, log = open_ledger(path), draw_history(seed, 80)
        enter(ledger, log)
        with ledger.reading() as connection:
            facts = decode(connection)
        for ladder in (name for name in dict.fromkeys(LADDERS) if name.partition("/")[0] in facts.rulesets):
            upto = draw_question(World(chance, log), len(log)).upto
            as_of = None if upto is None else to_microseconds(upto)
            ladders_now, ladders_at = Ladders(facts), Ladders(facts, as_of)
            whole = ladders_now.trace(ladder)
            assert ladders_now.rank_at(whole, as_of) == ladders_at.standings(ladder)
            cut, partial = ladders_now.at(as_of).trace(ladder), ladders_at.trace(ladder)
            assert have_same_points(cut.stream, partial.stream) or cut.stream.ranking.sums_lists
            assert [*cut.points] == [*partial.points]
            assert [*cut.games] == [*partial.games]
            assert [*cut.every_step()] == [*partial.every_step()]
            for player in range(len(cut.stream.names)):
                steps_of_player = [step for number, step in partial.every_step() if number == player]
                assert cut.steps(player) == partial.steps(player) == steps_of_player
            compared += bool(cut.stream.rows and len(cut.stream.rows) < len(whole.stream.rows))
    assert compared > 5


# -- comparisons, against counts over all pairs

Ranks = dict[str, int | None]
COMPARED_NAMES = [f"p{number}" for number in range(16)]
RANKS = st.dictionaries(
    st.sampled_from(COMPARED_NAMES), st.one_of(st.none(), st.integers(1, 14)), max_size=len(COMPARED_NAMES)
)


def build_points(ranks: Ranks) -> dict[str, RankedPoints]:
    """Return points that follow from these ranks."""
    return {player: RankedPoints(1000 - (rank or 900), 1, rank, None) for player, rank in ranks.items()}


def build_ranking_by_ranks(ranks: Ranks) -> Ranking:
    """Return the ranking of a ladder with these ranks."""
    rows = [
        RankedRow(row.rank, name, row.numerator, 1, row.rank is not None) for name, row in build_points(ranks).items()
    ]
    return Ranking("x", "x@1", 1, rows, 1, 0, 0, 0, 0, 0)


@given(RANKS, RANKS)
@example({"a": 1, "b": 2}, {"a": 2, "b": 1})
@example({"a": 1, "b": 1}, {"a": 2, "b": 1})
def test_swapped_pairs_are_counted_once(old: Ranks, new: Ranks) -> None:
    """Each pair of players in reversed order counts once as swapped."""
    ranks_of_common = [
        (old_rank, new_rank)
        for name, old_rank in old.items()
        if old_rank is not None and (new_rank := new.get(name)) is not None
    ]
    count = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(ranks_of_common, 2))
    event(f"swapped: {min(count, 3)}")

    assert (
        count_swapped(build_points(old), build_points(new))
        == count_swapped(build_points(new), build_points(old))
        == count
    )


@given(RANKS, RANKS)
def test_summary_of_a_comparison_matches_naive_count(old: Ranks, new: Ranks) -> None:
    """The effects and the summary of a comparison equal those counted player by player."""
    facts, old_points, new_points = Facts(1, b""), build_points(old), build_points(new)
    effects, summary = compare_states(
        Effect, "x", RankedState(facts, build_ranking_by_ranks(old)), RankedState(facts, build_ranking_by_ranks(new))
    )

    names = old.keys() | new.keys()
    assert {effect.player for effect in effects} == {
        name for name in names if old_points.get(name) != new_points.get(name)
    }
    assert summary.ranks == sum(old.get(name) != new.get(name) for name in names)
    moved = {name: new_points[name].points - old_points[name].points for name in old.keys() & new.keys()}
    largest, smallest = max(moved.values(), default=0), min(moved.values(), default=0)
    assert (summary.up.change if summary.up else 0, summary.down.change if summary.down else 0) == (
        max(largest, 0), min(smallest, 0),
    )  # fmt: skip
    top = [{name for name, rank in ranks.items() if rank is not None and rank <= TOP_RANKS} for ranks in (old, new)]
    assert (summary.entering, summary.leaving) == (tuple(sorted(top[1] - top[0])), tuple(sorted(top[0] - top[1])))
