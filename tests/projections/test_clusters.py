"""Computations on a cluster equal those of one process, for any log and any division of it."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest
from clusters import open_local_cluster, rank_in_one_process, rank_on_cluster, shrink_pieces
from ledgers import create_ledger
from time_histories import draw_history
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


def test_clusters_compute_the_standings_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool, store: str, store_kind: str
) -> None:
    """As a random history grows, a cluster with sealed segments has the same rows of every ladder as one process."""
    segments = 0
    # the first history is in each kind of store, the others are in files
    seeds = 60 if at_length else 3 if store_kind == "sqlite" else 1
    for seed in range(seeds):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        create_ledger(url)
        ledger, rest = open_ledger(url), draw_history(seed, 90)
        shrink_pieces(monkeypatch, chance.choice((7, 20, 35)), chance.choice((1, 4)), chance.choice((1, 10, 200)),
                     chance.choice((None, 1, 7)))  # fmt: skip
        with open_local_cluster(tmp_path / f"objects-{seed}") as cluster:
            while rest:
                size = chance.randint(10, 40)
                part, rest = rest[:size], rest[size:]
                enter(ledger, part)
                with ledger.reading() as connection:
                    last_position = head(connection).position
                    known_at = chance.choice((last_position, chance.randint(1, last_position)))
                    plain = decode(connection, known_at, cached=False)
                assert rank_on_cluster(ledger, cluster, known_at) == rank_in_one_process(plain), (seed, known_at)
            segments += len(cluster.objects.names("segment-")) - len(cluster.objects.names("segment-head"))
    assert segments > min(2 * seeds, 10)


def test_clusters_simulate_like_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_length: bool, store: str, store_kind: str, ratings: Ratings
) -> None:
    """A simulation on a cluster has the same effects, qualities and published lists, also with annual lists and carried
    points.
    """
    changed = differing = 0
    for seed in range(40 if at_length else 2 if store_kind == "sqlite" else 1):
        chance, url = Random(seed), str(tmp_path / f"{seed}.db") if seed else store
        create_ledger(url)
        ledger = open_ledger(url)
        enter(ledger, draw_history(seed, 90))
        for ladder in PUBLISHED:
            ratings("publish", ladder, "--by", "mira", db=url)
        shrink_pieces(monkeypatch, chance.choice((7, 20, 35)), chance.choice((1, 4)), chance.choice((1, 10, 200)))
        for ruleset in _iterate_altered_rulesets(ledger):
            variants = [({}, ruleset)]
            with open_local_cluster(tmp_path / f"objects-{seed}") as cluster:
                options = variants, (), None, None
                cluster_result = simulate_on_cluster(ledger, nullcontext(cluster), *options, lambda _: None)
            local_result = Snapshot(ledger).simulate(variants)
            assert cluster_result == local_result, (seed, ruleset.id)
            changed += any(ladder.changes for variant in local_result.variants for ladder in variant.ladders)
            differing += any(variant.published for variant in local_result.variants)
    assert changed
    assert differing


def _iterate_altered_rulesets(ledger: Ledger) -> Iterator[Ruleset]:
    """Yield the newest versions of all rulesets with other numbers."""
    with ledger.reading() as connection:
        known = [newest(versions).ruleset for versions in decode(connection).rulesets.values()]
    for data in (ruleset.model_dump(mode="json", exclude_unset=True) for ruleset in known):
        params = {name: value + 1 if type(value) is int else value for name, value in data["params"].items()}
        yield Ruleset.model_validate({**data, "version": "other", "params": params})


def test_rebuilds_on_clusters_store_the_rows_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """A rebuild on a cluster stores the rows of a local one, of all ladders or some, with history or without, and
    verifies.
    """
    create_ledger(store)
    ledger, log = open_ledger(store), draw_history(11, 110)
    shrink_pieces(monkeypatch, 20, 4, 10, 7)
    with open_local_cluster(tmp_path / "objects") as cluster:
        monkeypatch.setattr(coordinating, "open_cluster", lambda *_: nullcontext(cluster))
        cluster_work = create_cluster_work_at(ledger, "", None, RULE_SECONDS)
        for part, keep_history, ladders in ((log[:60], False, ()), (log[60:80], True, ()), (log[80:], None, PUBLISHED)):
            enter(ledger, part)
            stored = []
            for work_at in (None, cluster_work):
                result = rebuild(ledger, now, ladders, RebuildOptions(keep_history=keep_history), work_at=work_at)
                with ledger.reading() as connection:
                    rows = generations.list_ladder_rows(connection, result.generation)
                    stored.append([
                        (row.ladder, row.ruleset, row.digest, row.games, generations.read_standings(connection, *key))
                        for row in rows
                        for key in [(row.build, row.ladder)]
                    ])  # fmt: skip
                assert verify_all(ledger, work_at=cluster_work).findings == ()
            assert stored[0] == stored[1] != []
        assert rebuild(ledger, now, options=RebuildOptions(check=True), work_at=cluster_work).promoted
        # only segments and their numbers are still of use
        assert {name.partition("-")[0] for name in cluster.objects.names("")} <= {"segment", "numbers", "nonce"}
