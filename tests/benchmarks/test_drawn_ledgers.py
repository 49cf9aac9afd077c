"""Check that generated ledgers equal imported ones, so that benchmarks measure nothing cheaper than a real ledger."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks import data
from benchmarks.histories import History

np = pytest.importorskip("numpy", reason="the extra fast is not installed")

SMALL = History(games=1_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drawn")


@pytest.mark.slow
def test_generated_ledger_equals_an_imported_one(ratings: Callable[..., Any], folder: Path) -> None:
    """A generated ledger rebuilds and verifies, and importing its games again appends nothing."""
    url = data.ledger(folder, SMALL)

    assert ratings("rebuild", db=url).exit_code == 0
    assert ratings("verify", db=url) == (0, "", "")
    for path in (data.json_lines(folder, SMALL), data.csv(folder, SMALL)):
        result = ratings("import", path, db=url)
        assert (result.exit_code, result.stdout) == (0, "0 appended, 1,000 already there; the head is 1020.\n"), result


@pytest.mark.slow
def test_existing_history_file_is_reused(folder: Path) -> None:
    """A ledger file that already exists for a history is used as it is and not written again."""
    path = Path(data.ledger(folder, SMALL))
    modified_at = path.stat().st_mtime_ns

    assert data.ledger(folder, SMALL) == str(path)
    assert path.stat().st_mtime_ns == modified_at


def test_generated_games_are_reproducible() -> None:
    """Games generated from the same seed are identical, with ties, competition places and few late games."""
    from benchmarks.games import draw

    drawn = draw(SMALL, 0)
    games = [slice(low, high) for low, high in pairwise(drawn.offsets.tolist())]

    assert all((left == right).all() for left, right in zip(drawn[1:], draw(SMALL, 0)[1:], strict=True))
    assert not np.array_equal(drawn.players, draw(SMALL._replace(seed=2), 0).players)
    assert {game.stop - game.start for game in games} == {2, 3, 4, 5, 6}
    assert all(len(set(drawn.players[game].tolist())) == game.stop - game.start for game in games)
    assert all(is_competition(sorted(drawn.places[game].tolist())) for game in games)
    tied = sum(len(set(drawn.places[game].tolist())) < game.stop - game.start for game in games)
    assert 200 < tied < 400
    assert 0 < (np.diff(drawn.occurred_at) < 0).sum() < 30
    assert (np.diff(draw(SMALL._replace(late=False), 0).occurred_at) > 0).all()


def is_competition(places: list[int]) -> bool:
    """Tell whether sorted places are competition places: each is 1 plus the number of better places."""
    return all(place == 1 + sum(rival < place for rival in places) for place in places)


@pytest.mark.slow
def test_arrays_replay_like_their_ledger(
    folder: Path,
) -> None:
    """The arrays of a history and its ledger replay to the same points."""
    from benchmarks import ours

    pytest.importorskip("numba", reason="the extra fast is not installed")
    from benchmarks.baselines import numba_loop

    small = History(games=300, seed=5)
    loop_result = numba_loop.run(data.arrays(folder, small), small.players)

    assert loop_result["digest"] == ours.replay(data.ledger(folder, small))["digest"]
