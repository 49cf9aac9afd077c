"""Bulk lookups of numbers equal single ones, with numpy and without it."""

from array import array
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from paths import set_paths
from time_histories import LADDERS, draw_history
from time_ledgers import enter

from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections import arrays
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.facts.lookups import look_up_games
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import continuation, trace_cache


@pytest.fixture(params=["by numpy", "one by one"])
def lookup_method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look numbers up by numpy, or as if numpy were not loaded."""
    monkeypatch.setattr(arrays, "should_use_numpy", lambda count, worth_loading=0: request.param == "by numpy")


@pytest.mark.usefixtures("lookup_method")
def test_spans_equal_those_of_a_bisection() -> None:
    """For ascending starts, each number is in the span that a bisection finds, also at the ends."""
    chance = Random(1)
    for count in (1, 2, 7, 1_000):
        starts = array("q", [0, *sorted(chance.sample(range(1, 5 * count), count - 1))])
        numbers = array("q", [*starts, *(chance.randrange(6 * count) for _ in range(50))])
        spans = arrays.find_spans(starts, numbers)
        assert [*spans] == [bisect_right(starts, number) - 1 for number in numbers]
    assert [*arrays.find_spans(array("q", [0, 3]), array("q"))] == []


@pytest.mark.usefixtures("lookup_method")
def test_column_lookups_equal_plain_loops() -> None:
    """Indices of spans, the numbers there, and shifted numbers equal those of plain loops, and limits are checked."""
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
@pytest.mark.usefixtures("lookup_method")
@pytest.mark.parametrize("compiled", [True, False])
def test_looked_up_games_equal_the_facts(compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Games looked up at once equal the facts of each, and a continued trace has the players of many games like of
    each.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(trace_cache, "TRACED_GAMES", 1)
    monkeypatch.setattr(continuation, "GAMES_PER_REPLAYED_GAME", 0)
    url, log = str(tmp_path / "ratings.db"), draw_history(101, 90)
    upgrade(url)
    set_paths(monkeypatch, scanned=False, compiled=compiled)
    compared = continued = 0
    for first, last in pairwise((0, *range(60, 91, 5))):
        enter(open_ledger(url), log[first:last])
        with open_ledger(url).reading() as connection:
            facts = decode(connection, last, lazily=True)
            ladders = Ladders(facts)
            for name in (ladder for ladder in dict.fromkeys(LADDERS) if ladder.startswith("catan-elo")):
                trace = ladders.trace(name)
                games = range(trace.game_count)
                players_by_game = [[*trace.players_of(game)] for game in games]
                assert [[*players] for players in trace.players_by_game(games)] == players_by_game
                continued += trace.earlier is not None
        rows = range(len(facts.first_position))
        for row, game in zip(rows, look_up_games(facts, rows), strict=True):
            seats = range(facts.start[row], facts.start[row] + facts.count[row])
            assert game[:3] == (facts.first_position[row], facts.live_position[row], facts.occurred_at[row])
            assert game.persons == [facts.person_of(seat) for seat in seats]
            assert game.places == [facts.place[seat] for seat in seats]
            assert game.replaced == [facts.replaced[seat] for seat in seats]
            compared += 1
    assert compared > 50
    assert continued > 0
