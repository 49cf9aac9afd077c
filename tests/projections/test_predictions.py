"""How well ratings predict: compiled loops measure what the interpreter does."""

from pathlib import Path

import pytest
from ledgers import create_ledger
from paths import set_paths
from time_histories import history
from time_ledgers import enter

from ratings_ledger import Quality
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.diff import predictions
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders

pytestmark = pytest.mark.slow

LADDERS = ("catan-elo/basic", "catan-elo/seafarers")


def measures(found: Quality) -> tuple[float | None, ...]:
    return found.log_loss, found.brier, found.accuracy


def test_compiled_measures_are_the_interpreted_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given histories with ties, corrections and rules that change, both count the same pairs, and sum to the same."""
    pytest.importorskip("numba")
    measured = 0
    for seed in range(6):
        url = str(tmp_path / f"{seed}.db")
        create_ledger(url)
        enter(open_ledger(url), history(seed, 120))
        with open_ledger(url).reading() as connection:
            facts = decode(connection, cached=False)
        for ladder in LADDERS:
            stream = Ladders(facts).stream(ladder)
            if not len(stream.rows):
                continue
            set_paths(monkeypatch, scanned=False, compiled=False)
            wanted = predictions.measure_quality(facts, stream)
            set_paths(monkeypatch, scanned=False, compiled=True)
            found = predictions._measure_compiled(stream, Ladders(facts).trace(ladder).points_before)
            assert wanted is not None
            assert found is not None
            assert (found.pairs, found.decided, found.unplaced) == (wanted.pairs, wanted.decided, wanted.unplaced)
            for one, other in zip(measures(found), measures(wanted), strict=True):
                assert one == pytest.approx(other, rel=1e-14)
            measured += wanted.pairs
    assert measured > 100
