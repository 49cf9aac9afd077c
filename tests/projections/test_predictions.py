"""Prediction quality: compiled loops have the measures of the interpreter."""

from pathlib import Path

import pytest
from histories import enter
from ledgers import create_ledger
from paths import set_paths
from time_histories import draw_history

import ratings_ledger as rl
from ratings_ledger.ledger.store.opening import open_ledger

pytestmark = pytest.mark.slow

LADDERS = ("catan-elo/basic", "catan-elo/seafarers")


def measure_quality(ledger: rl.Ledger, ladder: str) -> rl.Quality:
    """Return the quality of the predictions on a ladder."""
    (difference,) = ledger.compare(ledger.at(), ledger.at(), [ladder], predictions=True)
    quality = difference.quality.after
    assert quality is not None
    return quality


def list_measures(quality: rl.Quality) -> tuple[float | None, ...]:
    """Return log loss, Brier score and accuracy."""
    return quality.log_loss, quality.brier, quality.accuracy


def test_compiled_measures_equal_interpreted_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In histories with ties, corrections and rule changes, both loops count the same pairs and have equal sums."""
    pytest.importorskip("numba")
    pair_count = 0
    for seed in range(6):
        url = str(tmp_path / f"{seed}.db")
        create_ledger(url)
        enter(open_ledger(url), draw_history(seed, 120))
        with rl.open(url) as ledger:
            ladders = {row.ladder for row in ledger.at().ladders().rows if row.games}
        for ladder in ladders.intersection(LADDERS):
            set_paths(monkeypatch, scanned=False, compiled=False)
            with rl.open(url) as ledger:
                interpreted = measure_quality(ledger, ladder)
            set_paths(monkeypatch, scanned=False, compiled=True)
            with rl.open(url) as ledger, pytest.MonkeyPatch.context() as patch:
                patch.setattr("ratings_ledger.projections.diff.predictions._measure_interpreted", None)
                compiled = measure_quality(ledger, ladder)
            assert (compiled.pairs, compiled.decided, compiled.unplaced) == (
                interpreted.pairs,
                interpreted.decided,
                interpreted.unplaced,
            )
            for left, right in zip(list_measures(compiled), list_measures(interpreted), strict=True):
                assert left == pytest.approx(right, rel=1e-14)
            pair_count += interpreted.pairs
    assert pair_count > 100
