"""Long ladders: ranked, digested and compared as columns, they say what the plain way says."""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from ledgers import create_ledger
from paths import NEVER, set_paths
from test_trace_cache import RUNNING
from thresholds import set_thresholds
from time_histories import INSTANTS, history
from time_ledgers import enter

from ratings_ledger import DifferingRow
from ratings_ledger.ledger.events.canonical import parse_record_instant
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.diff.comparison import RankedState, compare_states
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.lists import points
from ratings_ledger.projections.lists.contract import RankedColumns, Results
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.queries.standings import build_standings
from ratings_ledger.projections.replay.rule_calls import RuleFailure
from ratings_ledger.rules import Params

pytest.importorskip("numpy")

Held = dict[str, tuple[int, int]]
NAMES = [*(f"p{number}" for number in range(24)), "é", 'a "b"', "\u2028"]
# points with many ties, in hundredths, and games
HELD: st.SearchStrategy[Held] = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.integers(-20, 20) | st.integers(-(10**16), 10**16), st.integers(0, 3)),
    min_size=1,
)  # fmt: skip


def ranking(held: Held, min_games: int, long: bool) -> Ranking:
    """The standings of those who have these points and games."""
    names = [*held]
    ids = [sorted(names).index(name) for name in names] if long else None
    found = [points for points, _ in held.values()], [games for _, games in held.values()]
    rows = points.rank(Results(names, *found, [0], [], [], 100, Params(min_games=min_games), ids=ids))
    assert isinstance(rows, RankedColumns) == long
    return Ranking("x", "x@1", 100, rows, 1, 0, 0, 0, 0, 0)


@given(HELD, st.integers(0, 2), st.integers(-30, 30), st.integers(-30, 30))
def test_columns_are_ranked_as_rows_are(held: Held, min_games: int, low: int, high: int) -> None:
    """Columns give the rows of the plain way, whichever are asked for, their JSON and their digest."""
    plain, long = (ranking(held, min_games, one) for one in (False, True))
    assert long == plain
    assert plain == long
    assert (len(long.rows), long.rows[low:high], long.rows[-1]) == (len(held), plain.rows[low:high], plain.rows[-1])
    assert [[*map(type, row)] for row in long.rows] == [[*map(type, row)] for row in plain.rows]
    assert (long.digest, long.json_rows()) == (plain.digest, plain.json_rows())
    with pytest.raises(IndexError):
        long.rows[len(held)]


@pytest.mark.slow
@given(HELD, HELD, st.integers(0, 2), st.booleans(), st.booleans())
def test_columns_are_compared_as_rows_are(old: Held, new: Held, min_games: int, alike: bool, ranks: bool) -> None:
    """What differs, and how far that reaches, is the same: some come and go, some have other points, many are tied."""
    new = old | dict([*new.items()][:3]) if alike else new
    facts = Facts(1, b"")
    states = [
        [RankedState(facts, one) for one in (ranking(old, 0, long), ranking(new, min_games, long))]
        for long in (False, True)
    ]
    plain, long = (compare_states(DifferingRow, "x", *state, ranks) for state in states)
    event(f"swapped: {min(plain[1].swapped, 3)}")
    assert long == plain
    assert compare_states(DifferingRow, "x", states[0][0], states[1][1], ranks) == plain


@pytest.mark.slow
def test_digest_is_worked_out_when_it_is_read() -> None:
    """Standings that are only looked at do not hash all rows; their plain data do, in the same place as ever."""
    found = ranking({"anna": (1, 1), "ben": (2, 2)}, 0, long=True)
    answer = build_standings(found, found.rows[:1], Coordinates(None, 1, None), UTC_TIMES)
    assert (answer.rows[0].player, "digest" in vars(found), "sha256" in repr(answer)) == ("ben", False, False)
    assert [*answer.model_dump()] == ["ladder", "ruleset", "as_of", "known_at", "rules", "games", "digest", "rows"]
    assert answer.model_dump()["digest"] == answer.digest == ranking({"ben": (2, 2), "anna": (1, 1)}, 0, False).digest


@pytest.mark.slow
def test_histories_are_ranked_and_compared_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two states of a random history, with renames, merges, voids and adjustments, both ways agree."""
    met: Counter[str] = Counter()
    for seed in range(6):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db")
        create_ledger(url)
        ledger, log = open_ledger(url), history(seed, 100)
        enter(ledger, log)
        with ledger.reading() as connection:
            facts = [decode(connection, at, cached=False) for at in (chance.randint(10, len(log)), len(log))]
        as_of = [chance.choice([None, *map(parse_record_instant, INSTANTS)]) for _ in facts]
        for ladder in dict.fromkeys(RUNNING):
            if not all(ladder.partition("/")[0] in one.rulesets for one in facts):
                continue
            told = []
            for length in (NEVER, 1):
                set_paths(monkeypatch, scanned=False, compiled=False)
                ladders = [Ladders(one) for one in facts]
                with suppress(RuleFailure):
                    traces = [one.trace(ladder) for one in ladders]
                    set_thresholds(monkeypatch, compiled_games=length)
                    both = [one.rank_at(*asked) for one, *asked in zip(ladders, traces, as_of, strict=True)]
                    states = [*map(RankedState, facts, both)]
                    told.append(
                        (both, [compare_states(DifferingRow, ladder, *states, ranks) for ranks in (True, False)])
                    )
                    met["long"] += all(isinstance(one.rows, RankedColumns) for one in both)
                    met["differing"] += bool(told[-1][1][0][0])
                    met["renamed"] += facts[1].renamed
            assert told[:1] == told[1:]
    assert len(met) == 3
    assert min(met.values()) > 5, met
