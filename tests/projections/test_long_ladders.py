"""Long ladders: ranking, digests and comparisons of columns equal those of plain rows."""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from ledgers import create_ledger
from paths import NEVER, set_paths
from test_trace_cache import UNBOUNDED_LADDERS
from thresholds import set_thresholds
from time_histories import INSTANTS, draw_history
from time_ledgers import enter

from ratings_ledger import DifferingRow
from ratings_ledger.ledger.events.canonical import parse_record_instant
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.diff.comparison import RankedState, compare_states
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.lists import points
from ratings_ledger.projections.lists.contract import RankedColumns, RankingInput
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.standings import build_standings
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.rules import Params

pytest.importorskip("numpy")

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
            for length in (NEVER, 1):
                set_paths(monkeypatch, scanned=False, compiled=False)
                ladders = [Ladders(known) for known in facts]
                with suppress(RuleFailure):
                    traces = [each.trace(ladder) for each in ladders]
                    set_thresholds(monkeypatch, compiled_games=length)
                    rankings = [
                        each.rank_at(*trace_and_time)
                        for each, *trace_and_time in zip(ladders, traces, as_of, strict=True)
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
