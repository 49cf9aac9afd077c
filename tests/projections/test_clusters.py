"""Computations on a cluster equal those of one process, for any log and any division of it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from clusters import open_local_cluster, rank_in_one_process, rank_on_cluster, shrink_pieces, use_local_cluster
from fault_helpers import read_stored_rows
from histories import enter
from ledgers import create_ledger
from time_histories import draw_history

from ratings_ledger import Snapshot
from ratings_ledger.ledger.store.log import head
from ratings_ledger.ledger.store.opening import Ledger, open_ledger

Ratings = Callable[..., Any]
PUBLISHED = ("galactic-points", "catan-elo/basic", "catan-monthly/7/basic/2010-03", "catan-annual/7/basic/2010")
ON_CLUSTER = ("--on", "processes:1")

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
                assert rank_on_cluster(ledger, cluster, known_at) == rank_in_one_process(ledger, known_at), (
                    seed,
                    known_at,
                )
            segments += len([*(tmp_path / f"objects-{seed}").glob("segment-[!h]*")])
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
        for number, ruleset in enumerate(_iterate_altered_rulesets(ledger)):
            (path := tmp_path / f"{seed}-{number}.json").write_text(json.dumps(ruleset))
            with use_local_cluster(tmp_path / f"objects-{seed}"):
                cluster_result = ratings("whatif", path, *ON_CLUSTER, "--format", "json", db=url)
            local_result = ratings("whatif", path, "--format", "json", db=url)
            assert cluster_result == local_result, (seed, ruleset["id"])
            variants = json.loads(local_result.stdout)["variants"]
            changed += any(ladder["changes"] for variant in variants for ladder in variant["ladders"])
            differing += any(variant["published"] for variant in variants)
    assert changed
    assert differing


def _iterate_altered_rulesets(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield the newest version of each ruleset with every whole number of its parameters increased by 1."""
    view = Snapshot(ledger)
    newest = {row.version.partition("@")[0]: row.version for row in view.rulesets().rows}
    for data in (view.ruleset(version).data for version in newest.values()):
        params = {name: value + 1 if type(value) is int else value for name, value in data["params"].items()}
        yield {**data, "version": "other", "params": params}


def test_rebuilds_on_clusters_store_the_rows_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, ratings: Ratings
) -> None:
    """A rebuild on a cluster stores the rows of a local one, for all ladders or some, with history or without, and
    `verify` accepts them.
    """
    create_ledger(store)
    log = draw_history(11, 110)
    shrink_pieces(monkeypatch, 20, 4, 10, 7)
    with use_local_cluster(tmp_path / "objects"):
        for part, options in (
            (log[:60], ["--no-history"]), (log[60:80], ["--history"]), (log[80:], [*PUBLISHED])
        ):  # fmt: skip
            enter(store, part)
            stored = []
            for engine in (ON_CLUSTER, ()):
                assert ratings("rebuild", *options, *engine, db=store).exit_code == 0
                stored.append(read_stored_rows(store))
                # rows from the cluster are verified by one process, and the other way round
                assert ratings("verify", *([] if engine else ON_CLUSTER), db=store).exit_code == 0
            assert stored[0] == stored[1] != []
        assert ratings("rebuild", "--check", *ON_CLUSTER, db=store).exit_code == 0
    # only segments and their numbers are still of use
    assert {path.name.partition("-")[0] for path in (tmp_path / "objects").iterdir()} <= {
        "segment", "numbers", "nonce",
    }  # fmt: skip
