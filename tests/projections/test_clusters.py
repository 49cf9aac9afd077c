"""What a cluster makes of a log is what one process makes of it, whatever the log says and however it is divided."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest
from clusters import cluster_here, in_one_process, on_cluster, small_pieces
from ledgers import create_ledger
from time_histories import history
from time_ledgers import enter

from ratings_ledger import Ruleset, Snapshot
from ratings_ledger.ledger.clock import now
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.cluster import coordinating
from ratings_ledger.projections.cluster.coordinating import create_cluster_work_at
from ratings_ledger.projections.cluster.simulating import simulate_on_cluster
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.rulesets.versions import newest
from ratings_ledger.projections.stored import generations
from ratings_ledger.projections.stored.rebuilding import RebuildOptions, rebuild
from ratings_ledger.projections.stored.rule_processes import RULE_SECONDS
from ratings_ledger.projections.stored.verification import verify_all

Ratings = Callable[..., Any]
PUBLISHED = ("galactic-points", "catan-elo/basic", "catan-monthly/7/basic/2010-03", "catan-annual/7/basic/2010")

pytestmark = pytest.mark.slow


def test_clusters_give_the_same_standings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool, store: str, store_kind: str
) -> None:
    """As a random history grows, with late games, corrections, renames and rule changes, a cluster that has sealed what
    was there before gives the same rows of every ladder as one process, at the head and at earlier positions."""
    segments = 0
    # the first is in each kind of store, and the others are in files
    seeds = 60 if at_length else 3 if store_kind == "sqlite" else 1
    for seed in range(seeds):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        create_ledger(url)
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
    assert segments > min(2 * seeds, 10)


def test_clusters_simulate_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool, store: str, store_kind: str, ratings: Ratings
) -> None:
    """What another ruleset would change is the same on a cluster: effects, qualities, and published lists, of rulesets
    with an annual list that sums another's places, and of those with carried points."""
    changed = differing = 0
    for seed in range(40 if at_length else 2 if store_kind == "sqlite" else 1):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        create_ledger(url)
        ledger = open_ledger(url)
        enter(ledger, history(seed, 90))
        for ladder in PUBLISHED:
            ratings("publish", ladder, "--by", "mira", db=url)
        small_pieces(monkeypatch, chance.choice((7, 20, 35)), chance.choice((1, 4)), chance.choice((1, 10, 200)))
        for ruleset in _altered(ledger):
            asked = [({}, ruleset)]
            with cluster_here(tmp_path / f"objects-{seed}") as cluster:
                given = asked, (), None, None
                there = simulate_on_cluster(ledger, nullcontext(cluster), *given, lambda _: None)
            here = Snapshot(ledger).simulate(asked)
            assert there == here, (seed, ruleset.id)
            changed += any(one.changes for variant in here.variants for one in variant.ladders)
            differing += any(variant.published for variant in here.variants)
    assert changed
    assert differing


def _altered(ledger: Ledger) -> Iterator[Ruleset]:
    """The newest versions of all rulesets with other numbers."""
    with ledger.reading() as connection:
        known = [newest(versions).ruleset for versions in decode(connection).rulesets.values()]
    for data in (ruleset.model_dump(mode="json", exclude_unset=True) for ruleset in known):
        params = {name: value + 1 if type(value) is int else value for name, value in data["params"].items()}
        yield Ruleset.model_validate({**data, "version": "other", "params": params})


def test_rebuilds_on_clusters_store_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    """What a rebuild stores is the same on a cluster: all ladders or one, those that have lost their games, with every
    change kept for SQL or not; `--check` and `verify` find nothing."""
    create_ledger(store)
    ledger, log = open_ledger(store), history(11, 110)
    small_pieces(monkeypatch, 20, 4, 10, 7)
    with cluster_here(tmp_path / "objects") as cluster:
        monkeypatch.setattr(coordinating, "open_cluster", lambda *_: nullcontext(cluster))
        at = create_cluster_work_at(ledger, "", None, RULE_SECONDS)
        for part, kept, asked in ((log[:60], False, ()), (log[60:80], True, ()), (log[80:], None, PUBLISHED)):
            enter(ledger, part)
            stored = []
            for elsewhere in (None, at):
                done = rebuild(ledger, now, asked, RebuildOptions(keep_history=kept), work_at=elsewhere)
                with ledger.reading() as connection:
                    rows = generations.list_ladder_rows(connection, done.generation)
                    stored.append([
                        (row.ladder, row.ruleset, row.digest, row.games, generations.read_standings(connection, *key))
                        for row in rows
                        for key in [(row.build, row.ladder)]
                    ])  # fmt: skip
                assert verify_all(ledger, work_at=at).findings == ()
            assert stored[0] == stored[1] != []
        assert rebuild(ledger, now, options=RebuildOptions(check=True), work_at=at).promoted
        # no object is of use any more but the segments and their numbers
        assert {name.partition("-")[0] for name in cluster.objects.names("")} <= {"segment", "numbers", "nonce"}
