"""Ledgers that the benchmarks measure are true ledgers: nothing about them is cheaper than an import would leave it."""

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


def test_given_a_drawn_ledger_when_verified_and_imported_again_then_it_is_what_an_import_leaves(
    ratings: Callable[..., Any], folder: Path
) -> None:
    url = data.ledger(folder, SMALL)

    assert ratings("rebuild", db=url).exit_code == 0
    assert ratings("verify", db=url) == (0, "", "")
    for path in (data.json_lines(folder, SMALL), data.csv(folder, SMALL)):
        done = ratings("import", path, db=url)
        assert (done.exit_code, done.stdout) == (0, "0 appended, 1,000 already there; the head is 1,018.\n"), done


def test_given_a_history_when_its_file_is_there_then_it_is_taken(folder: Path) -> None:
    path = Path(data.ledger(folder, SMALL))
    written = path.stat().st_mtime_ns

    assert data.ledger(folder, SMALL) == str(path)
    assert path.stat().st_mtime_ns == written


def test_given_a_seed_when_games_are_drawn_then_they_are_the_same_again_and_as_described() -> None:
    from benchmarks.games import draw

    drawn = draw(SMALL, 0)
    games = [slice(low, high) for low, high in pairwise(drawn.offsets.tolist())]

    assert all((one == other).all() for one, other in zip(drawn[1:], draw(SMALL, 0)[1:], strict=True))
    assert not np.array_equal(drawn.players, draw(SMALL._replace(seed=2), 0).players)
    assert {game.stop - game.start for game in games} == {2, 3, 4, 5, 6}
    assert all(len(set(drawn.players[game].tolist())) == game.stop - game.start for game in games)
    assert all(is_competition(sorted(drawn.places[game].tolist())) for game in games)
    tied = sum(len(set(drawn.places[game].tolist())) < game.stop - game.start for game in games)
    assert 200 < tied < 400
    assert 0 < (np.diff(drawn.occurred_at) < 0).sum() < 30
    assert (np.diff(draw(SMALL._replace(late=False), 0).occurred_at) > 0).all()


def is_competition(places: list[int]) -> bool:
    """Whether sorted places are 1 and up, each behind as many as are better."""
    return all(place == 1 + sum(other < place for other in places) for place in places)


def test_given_arrays_of_a_history_when_compared_with_its_ledger_then_both_replay_to_the_same_points(
    folder: Path,
) -> None:
    from benchmarks import ours

    pytest.importorskip("numba", reason="the extra fast is not installed")
    from benchmarks.baselines import numba_loop

    small = History(games=300, seed=5)
    by_hand = numba_loop.run(data.arrays(folder, small), small.players)

    assert by_hand["digest"] == ours.replay(data.ledger(folder, small))["digest"]
