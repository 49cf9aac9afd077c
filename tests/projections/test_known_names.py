"""Whom a ledger knows: a question about a few names looks only where they came in first, and is right."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from ledgers import create_ledger
from thresholds import set_thresholds
from time_histories import history
from time_ledgers import enter

from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.facts.players import Players, known_players

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("cached", [False, True])
def test_names_are_known_by_their_first_game(
    cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool
) -> None:
    """After random games, corrections that change who played, voids and renames, a name is among the players if it is
    among all that are looked for one by one, at every position; most are found without looking for all."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, cached_events=1 if cached else 10**9)
    met: Counter[tuple[bool, bool]] = Counter()
    for seed in range(60 if at_length else 6):
        url = str(tmp_path / f"{seed}.db")
        create_ledger(url)
        ledger = open_ledger(url)
        enter(ledger, history(seed, 60))
        with ledger.reading() as connection:
            last = head(connection).position
            for position in sorted(Random(seed).sample(range(1, last + 1), min(last, 12))):
                facts = decode(connection, position)
                every = known_players(facts)
                asked = list[str]()
                found = Players(facts, lambda every=every, asked=asked: asked.append("all") or every)  # type: ignore[misc]
                for name in [*facts.players, "nobody"]:
                    asked.clear()
                    assert (name in found) == (name in every), (seed, position, name)
                    met[name in every, bool(asked)] += 1
                found.update(["nobody"])
                assert "nobody" in found
                assert {*found} == every | {"nobody"}
                assert len(found) == len(every) + 1
    assert met[True, False] > met[True, True] > 0, met
    assert met[False, True] > 0
