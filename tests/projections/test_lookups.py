"""Numbers that are looked up all at once are those that are found one by one, by numpy and without it."""

from array import array
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from paths import set_paths
from time_histories import LADDERS, history
from time_ledgers import enter

from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections import arrays
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.facts.lookups import look_up_games
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import continuation, trace_cache


@pytest.fixture(params=["by numpy", "one by one"])
def one_by_one(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look numbers up by numpy, or as if it were not loaded yet."""
    monkeypatch.setattr(arrays, "should_use_numpy", lambda count, worth_loading=0: request.param == "by numpy")


@pytest.mark.usefixtures("one_by_one")
def test_spans_are_those_of_a_bisection() -> None:
    """Given ascending starts, each number is in the span that a bisection finds, also at its ends."""
    chance = Random(1)
    for count in (1, 2, 7, 1_000):
        starts = array("q", [0, *sorted(chance.sample(range(1, 5 * count), count - 1))])
        numbers = array("q", [*starts, *(chance.randrange(6 * count) for _ in range(50))])
        found = arrays.find_spans(starts, numbers)
        assert [*found] == [bisect_right(starts, number) - 1 for number in numbers]
    assert [*arrays.find_spans(array("q", [0, 3]), array("q"))] == []


@pytest.mark.usefixtures("one_by_one")
def test_columns_are_looked_up_as_by_hand() -> None:
    """Indices in spans, the numbers there and shifted ones are those of plain loops, and limits hold."""
    numbers, starts, counts = array("i", range(10, 30)), array("q", [3, 0, 9]), array("q", [2, 0, 4])
    indices = arrays.span_indices(starts, counts)
    assert [*indices] == [3, 4, 9, 10, 11, 12]
    for column in (numbers, memoryview(numbers)):
        assert arrays.take(column, indices).tolist() == [13, 14, 19, 20, 21, 22]
    assert arrays.take(numbers, array("q")).tolist() == arrays.span_indices(array("q"), array("q")).tolist() == []
    assert arrays.shift(starts, -1).tolist() == [2, -1, 8]
    assert arrays.is_within(starts, 0, 10)
    assert not arrays.is_within(starts, 0, 9)
    assert not arrays.is_within(starts, 1, 10)
    assert arrays.is_within(array("q"), 0, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("compiled", [True, False])
def test_games_are_as_the_facts_have_them(compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a history with corrections and renames, in files and with events since, games say what the facts say of
    each, and a trace that was continued tells who counts in many games as it does for each."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(trace_cache, "TRACED_GAMES", 1)
    monkeypatch.setattr(continuation, "GAMES_PER_REPLAYED_GAME", 0)
    url, log = str(tmp_path / "ratings.db"), history(101, 90)
    upgrade(url)
    set_paths(monkeypatch, scanned=False, compiled=compiled)
    seen = earlier = 0
    for first, last in pairwise((0, *range(60, 91, 5))):
        enter(open_ledger(url), log[first:last])
        with open_ledger(url).reading() as connection:
            facts = decode(connection, last, lazily=True)
            ladders = Ladders(facts)
            for name in (one for one in dict.fromkeys(LADDERS) if one.startswith("catan-elo")):
                trace = ladders.trace(name)
                games = range(trace.game_count)
                assert [[*one] for one in trace.players_by_game(games)] == [[*trace.players_of(one)] for one in games]
                earlier += trace.earlier is not None
        rows = range(len(facts.first_position))
        for row, found in zip(rows, look_up_games(facts, rows), strict=True):
            seats = range(facts.start[row], facts.start[row] + facts.count[row])
            assert found[:3] == (facts.first_position[row], facts.live_position[row], facts.occurred_at[row])
            assert found.persons == [facts.person_of(seat) for seat in seats]
            assert found.places == [facts.place[seat] for seat in seats]
            assert found.replaced == [facts.replaced[seat] for seat in seats]
            seen += 1
    assert seen > 50
    assert earlier > 0
