"""The simulation of a large cluster: what it does with few tasks, and that the page shows what it prints."""

from pathlib import Path

import pytest

from benchmarks import simulation
from benchmarks.simulation import (
    MEASURED,
    Task,
    fill_packs,
    find_bottleneck,
    list_ladder_sizes,
    simulate_night,
    simulate_sealing,
    simulate_tasks,
)

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")


@pytest.fixture
def _even_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return cores that are all equally fast."""
    monkeypatch.setattr(simulation, "SPEED_SPREAD", 0.0)


@pytest.mark.usefixtures("_even_cores")
def test_tasks_are_shared_by_cores() -> None:
    """Four tasks of ten seconds take twenty on two cores, after what comes before, and what is done with the last."""
    simulation = simulate_tasks([Task(0, 10, 1)] * 4, cores=2, before=5)
    assert (simulation.seconds, simulation.here * 27, simulation.cores * 27) == (27, 9, 20)


@pytest.mark.usefixtures("_even_cores")
def test_coordinator_does_one_thing_at_a_time() -> None:
    """However many cores there are, tasks are handed out one after another."""
    simulation = simulate_tasks([Task(2, 3, 0)] * 10, cores=1_000)
    assert (simulation.seconds, find_bottleneck(simulation, 0)) == (23, "the coordinator")


@pytest.mark.usefixtures("_even_cores")
def test_largest_ladder_is_replayed_by_one_core() -> None:
    """A task that takes longer than all others together is what is left, and is named as the limit."""
    simulation = simulate_tasks([Task(0, 100, 0), *[Task(0, 1, 0)] * 10], cores=100)
    assert (simulation.seconds, find_bottleneck(simulation, 100)) == (100, "the largest ladder")
    assert find_bottleneck(simulate_tasks([Task(0, 10, 0)] * 100, cores=2), 10) == "the workers"


def test_ladders_and_packs_have_all_games() -> None:
    """Sizes are inverse to ranks; packs take them in order, none above the budget but for a ladder that is."""
    sizes = list_ladder_sizes(1_000_000, 10_000)
    assert (sizes[0] // sizes[1], sizes[0] // sizes[9], round(sum(sizes) / 1e6, 2)) == (2, 10, 1.0)
    divided = [*fill_packs(sizes, 50_000)]
    assert sum(games for games, _ in divided) == sum(sizes)
    assert sum(ladders for _, ladders in divided) == 10_000
    assert all(games <= 50_000 or ladders == 1 for games, ladders in divided)


def test_small_simulation_comes_out_again() -> None:
    """The same seed gives the same times, and more cores never take longer."""
    sizes = list_ladder_sizes(10_000_000, 1_000)
    times = [simulate_night(MEASURED, cores, sizes, interpreted=True).seconds for cores in (1, 2, 10)]
    assert times == sorted(times, reverse=True)
    assert times == [simulate_night(MEASURED, cores, sizes, interpreted=True).seconds for cores in (1, 2, 10)]
    assert simulate_sealing(MEASURED, 1, 10_000_000).seconds > simulate_sealing(MEASURED, 2, 10_000_000).seconds


@pytest.mark.slow
def test_page_shows_what_it_prints() -> None:
    """The table on the page is what the program gives, with its seed and its costs."""
    begin, end = "<!-- written by python -m benchmarks.simulation -->\n", "<!-- up to here -->"
    assert PAGE.partition(begin)[2].partition(end)[0].strip() == simulation.format_table().strip()
