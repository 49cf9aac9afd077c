"""What a cluster makes of a log is what one process makes of it, whatever the log says and however it is divided."""

from pathlib import Path
from random import Random

import pytest
from clusters import cluster_here, in_one_process, on_cluster, small_pieces
from time_histories import history
from time_ledgers import enter

from ledger.store.log import head
from ledger.store.opening import open_ledger
from ledger.store.upgrading import upgrade
from projections.facts.decoding import decode

pytestmark = pytest.mark.slow


def test_clusters_give_the_same_standings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool, store: str
) -> None:
    """As a random history grows, with late games, corrections, renames and rule changes, a cluster that has sealed what
    was there before gives the same rows of every ladder as one process, at the head and at earlier positions."""
    segments = 0
    for seed in range(60 if at_length else 4):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        upgrade(url)
        ledger, rest = open_ledger(url), history(seed, 90)
        small_pieces(monkeypatch, chance.choice((7, 20, 35)), chance.choice((1, 4)), chance.choice((1, 10, 200)),
                     chance.choice((None, 1, 7)))  # fmt: skip
        with cluster_here(tmp_path / f"objects-{seed}") as cluster:
            while rest:
                size = chance.randint(10, 40)
                part, rest = rest[:size], rest[size:]
                enter(ledger, part)
                with ledger.reading() as connection:
                    newest = head(connection).position
                    known_at = chance.choice((newest, chance.randint(1, newest)))
                    plain = decode(connection, known_at, cached=False)
                assert on_cluster(ledger, cluster, known_at) == in_one_process(plain), (seed, known_at)
            segments += len(cluster.objects.names("segment-")) - len(cluster.objects.names("segment-head"))
    assert segments > 10
