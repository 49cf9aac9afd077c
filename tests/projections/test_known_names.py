"""The players that a ledger knows: a query about a few names reads only their first positions, and is right."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ledgers import create_ledger
from thresholds import set_thresholds
from time_histories import draw_history
from time_ledgers import enter

from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.facts.players import Players, known_players

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("cached", [False, True])
def test_known_names_are_found_without_reading_all(
    cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """At every position of random histories, a name is known exactly if a full search finds it; most need no full
    search.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, cached_events=1 if cached else 10**9)
    counts: Counter[tuple[bool, bool]] = Counter()
    for seed in range(60 if at_length else 6):
        url = str(tmp_path / f"{seed}.db")
        create_ledger(url)
        ledger = open_ledger(url)
        enter(ledger, draw_history(seed, 60))
        with ledger.reading() as connection:
            last = head(connection).position
            for position in sorted(Random(seed).sample(range(1, last + 1), min(last, 12))):
                facts = decode(connection, position)
                all_players = known_players(facts)
                full_searches = list[str]()

                def list_all(all_players: Any = all_players, full_searches: list[str] = full_searches) -> Any:
                    full_searches.append("all")
                    return all_players

                players = Players(facts, list_all)
                for name in [*facts.players, "zoe"]:
                    full_searches.clear()
                    assert (name in players) == (name in all_players), (seed, position, name)
                    counts[name in all_players, bool(full_searches)] += 1
                players.update(["zoe"])
                assert "zoe" in players
                assert {*players} == all_players | {"zoe"}
                assert len(players) == len(all_players) + 1
    assert counts[True, False] > counts[True, True] > 0, counts
    assert counts[False, True] > 0
