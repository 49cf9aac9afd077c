"""Prediction quality: compiled loops have the measures of the interpreter."""

from pathlib import Path

import pytest
from ledgers import create_ledger
from paths import set_paths
from time_histories import draw_history
from time_ledgers import enter

from ratings_ledger import Quality
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.diff import predictions
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders

pytestmark = pytest.mark.slow

LADDERS = ("catan-elo/basic", "catan-elo/seafarers")


def list_measures(quality: Quality) -> tuple[float | None, ...]:
    """Return log loss, Brier score and accuracy."""
    return quality.log_loss, quality.brier, quality.accuracy


def test_compiled_measures_equal_interpreted_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In histories with ties, corrections and rule changes, both count the same pairs and have equal sums."""
    pytest.importorskip("numba")
    pair_count = 0
    for seed in range(6):
        url = str(tmp_path / f"{seed}.db")
        create_ledger(url)
        enter(open_ledger(url), draw_history(seed, 120))
        with open_ledger(url).reading() as connection:
            facts = decode(connection, cached=False)
        for ladder in LADDERS:
            stream = Ladders(facts).stream(ladder)
            if not len(stream.rows):
                continue
            set_paths(monkeypatch, scanned=False, compiled=False)
            interpreted = predictions.measure_quality(facts, stream)
            set_paths(monkeypatch, scanned=False, compiled=True)
            compiled = predictions._measure_compiled(stream, Ladders(facts).trace(ladder).points_before)
            assert interpreted is not None
            assert compiled is not None
            assert (compiled.pairs, compiled.decided, compiled.unplaced) == (
                interpreted.pairs,
                interpreted.decided,
                interpreted.unplaced,
            )
            for left, right in zip(list_measures(compiled), list_measures(interpreted), strict=True):
                assert left == pytest.approx(right, rel=1e-14)
            pair_count += interpreted.pairs
    assert pair_count > 100
