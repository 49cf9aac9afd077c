"""The simulation of a large cluster gives the expected times for few tasks, and docs/scale.md shows its table."""

from itertools import islice
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
    """Make all simulated cores equally fast."""
    monkeypatch.setattr(simulation, "SPEED_SPREAD", 0.0)


@pytest.mark.usefixtures("_even_cores")
def test_tasks_are_shared_by_cores() -> None:
    """Four tasks of ten seconds take twenty on two cores, plus five before them and one after each of the last two."""
    outcome = simulate_tasks([Task(0, 10, 1)] * 4, cores=2, before=5)
    assert (outcome.seconds, outcome.here * 27, outcome.cores * 27) == (27, 9, 20)


@pytest.mark.usefixtures("_even_cores")
def test_coordinator_does_one_thing_at_a_time() -> None:
    """However many cores there are, tasks are handed out one after another."""
    outcome = simulate_tasks([Task(2, 3, 0)] * 10, cores=1_000)
    assert (outcome.seconds, find_bottleneck(outcome, 0)) == (23, "the coordinator")


@pytest.mark.usefixtures("_even_cores")
def test_largest_ladder_is_replayed_by_one_core() -> None:
    """A task that takes longer than all others together determines the time, and is named as the limit."""
    outcome = simulate_tasks([Task(0, 100, 0), *[Task(0, 1, 0)] * 10], cores=100)
    assert (outcome.seconds, find_bottleneck(outcome, 100)) == (100, "the largest ladder")
    assert find_bottleneck(simulate_tasks([Task(0, 10, 0)] * 100, cores=2), 10) == "the workers"


def test_ladders_and_packs_have_all_games() -> None:
    """Sizes are inversely proportional to ranks. Packs take ladders in order; only a single ladder exceeds a budget."""
    sizes = list_ladder_sizes(1_000_000, 10_000)
    assert (sizes[0] // sizes[1], sizes[0] // sizes[9], round(sum(sizes) / 1e6, 2)) == (2, 10, 1.0)
    packs = [*fill_packs(sizes, 50_000)]
    remaining_sizes = iter(sizes)
    assert all(games == sum(islice(remaining_sizes, ladders)) for games, ladders in packs)
    assert sum(ladders for _, ladders in packs) == 10_000
    assert all(games <= 50_000 or ladders == 1 for games, ladders in packs)


def test_same_seed_gives_the_same_times() -> None:
    """The same seed gives the same times, and more cores never take longer."""
    sizes = list_ladder_sizes(10_000_000, 1_000)
    times = [simulate_night(MEASURED, cores, sizes, interpreted=True).seconds for cores in (1, 2, 10)]
    assert times == sorted(times, reverse=True)
    assert times == [simulate_night(MEASURED, cores, sizes, interpreted=True).seconds for cores in (1, 2, 10)]
    assert simulate_sealing(MEASURED, 1, 10_000_000).seconds > simulate_sealing(MEASURED, 2, 10_000_000).seconds


@pytest.mark.slow
def test_page_shows_the_printed_table() -> None:
    """The table on the page is the one that the simulation prints, with its seed and its costs."""
    begin, end = "<!-- written by python -m benchmarks.simulation -->\n", "<!-- up to here -->"
    assert PAGE.partition(begin)[2].partition(end)[0].strip() == simulation.format_table().strip()
