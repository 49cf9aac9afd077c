"""The bytes of cached files: a change of them needs a new format number, or programs misread each other's files."""

import hashlib
import sys
from array import array
from pathlib import Path

import numpy as np
import pytest
from time_histories import draw_history
from time_ledgers import enter

from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.cluster import segments
from ratings_ledger.projections.facts import column_cache, decoding
from ratings_ledger.projections.facts.column_files import encode_columns, open_file

pytestmark = pytest.mark.skipif(sys.byteorder == "big", reason="columns are as the machine has them in memory")


def test_file_with_columns_has_these_bytes(tmp_path: Path) -> None:
    """A file with columns of each shape has these bytes, and is read as it was written."""
    states = np.arange(6, dtype="i4").reshape(3, 2)
    numbers = [array("q", [1, -2]), array("q", [3])]
    columns = {"numbers": ("q", numbers), "states": ("i", [states]), "empty": ("b", [])}
    content = b"".join(map(bytes, encode_columns(columns, {"name": "a-1-b"})))
    footer = (
        b'{"about": {"name": "a-1-b"}, "columns": {"empty": ["b", [0], 48, []], '
        b'"numbers": ["q", [3], 0, [2506994767]], '
        b'"states": ["i", [3, 2], 24, [2232219709]]}, "order": "little"}'
    )
    assert content[48 : 48 + len(footer)] == footer
    assert content[:48] == array("q", [1, -2, 3]).tobytes() + array("i", range(6)).tobytes()
    assert content[48 + len(footer) :] == len(footer).to_bytes(8, "little") + bytes.fromhex("19112d33") + b"ratings2"
    (tmp_path / "a-1-b").write_bytes(content)
    file = open_file(tmp_path / "a-1-b")
    assert file is not None
    assert ([*file.columns["numbers"]], len(file.columns["empty"])) == ([1, -2, 3], 0)
    state_column = file.columns["states"]
    assert (state_column.shape, state_column[1].tolist(), state_column[1:].tolist()) == (
        (3, 2),
        [2, 3],
        [[2, 3], [4, 5]],
    )
    assert state_column.take(np.array([2, 0])).tolist() == [[4, 5], [0, 1]]
    assert state_column.read_whole().tolist() == [[0, 1], [2, 3], [4, 5]]


def test_columns_and_sealed_segment_of_a_history_have_these_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns and the sealed segment of a history have these digests under these format numbers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(decoding, "CACHED_EVENTS", 1)
    monkeypatch.setattr(decoding, "BULK_EVENTS", 10**9)
    upgrade(str(tmp_path / "ratings.db"))
    ledger = open_ledger(str(tmp_path / "ratings.db"))
    enter(ledger, draw_history(3, 60))
    with ledger.reading() as connection:
        decoding.decode(connection)
        facts = decoding.decode(connection, cached=False)
    (path,) = (tmp_path / "caches").rglob("columns/*-*-*")
    file = open_file(path)
    assert file is not None
    assert path.name.endswith(f"-{column_cache.FORMAT}")
    digest = hashlib.sha256()
    for name, column in sorted(file.columns.items()):
        if name == "others":  # records contain the time of recording
            continue
        digest.update(f"{name} {column.typecode} {column.shape}".encode() + bytes(column.read_uncached()))
    assert (column_cache.FORMAT, digest.hexdigest()[:16]) == ("6", "69c1543b09314e01")
    sealed = hashlib.sha256(b"".join(map(bytes, segments.encode_segment(facts, {})))).hexdigest()
    assert (segments.FORMAT, sealed[:16]) == ("7", "068f99a6921097c2")
