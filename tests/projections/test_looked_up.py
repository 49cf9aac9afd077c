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
from ratings_ledger.projections.facts.looked_up import games_at
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import kept_traces
from ratings_ledger.projections.replay import replay as replaying


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
def test_spans_are_those_of_a_bisection(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given ascending starts, each number is in the span that a bisection finds, also at its ends."""
    set_paths(monkeypatch, scanned=False, compiled=compiled)
    chance = Random(1)
    for count in (1, 2, 7, 1_000):
        starts = array("q", [0, *sorted(chance.sample(range(1, 5 * count), count - 1))])
        numbers = array("q", [*starts, *(chance.randrange(6 * count) for _ in range(50))])
        found = arrays.spans_of(starts, numbers)
        assert [*found] == [bisect_right(starts, number) - 1 for number in numbers]
    assert [*arrays.spans_of(array("q", [0, 3]), array("q"))] == []


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
def test_games_are_as_the_facts_have_them(compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a history with corrections and renames, in files and with events since, games say what the facts say of
    each, and a trace that was continued tells who counts in many games as it does for each."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(kept_traces, "TRACED_GAMES", 1)
    monkeypatch.setattr(replaying, "TENTH", 0)
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
                games = range(trace.count)
                assert [[*one] for one in trace.players_of_all(games)] == [[*trace.players_of(one)] for one in games]
                earlier += trace.earlier is not None
        rows = range(len(facts.first_position))
        for row, found in zip(rows, games_at(facts, rows), strict=True):
            seats = range(facts.start[row], facts.start[row] + facts.count[row])
            assert found[:3] == (facts.first_position[row], facts.live_position[row], facts.occurred_at[row])
            assert found.persons == [facts.person_of(seat) for seat in seats]
            assert found.places == [facts.place[seat] for seat in seats]
            assert found.replaced == [facts.replaced[seat] for seat in seats]
            seen += 1
    assert seen > 50
    assert earlier > 0
