"""Rebuilds on a Dask cluster whose workers, scheduler, objects or coordinator fail: the right rows, or one clear line."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_ledgers import many_ladders, rows, small_pieces
from dask_clusters import LocalCluster, digests, fault, local_cluster

pytest.importorskip("distributed")
pytest.importorskip("fsspec")


def test_trial(copied_file, ratings, tmp_path):
    import time
    t=time.time()
    url = "sqlite:///" + copied_file(many_ladders, 2000)
    print("made", time.time()-t); t=time.time()
    with small_pieces(2000), local_cluster(tmp_path / "cluster") as cluster:
        print("cluster", time.time()-t); t=time.time()
        r = ratings("rebuild", "--on", cluster.address, "--segments", tmp_path / "objects", "--log", "plain", db=url)
        print(r, time.time()-t); t=time.time()
        print(len(rows(url)), digests(next((tmp_path/"objects").iterdir())))
        print(cluster.folder.joinpath("log-worker").read_text()[-3000:])
    print("closed", time.time()-t); t=time.time()
