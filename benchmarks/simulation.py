"""Simulate a cluster that is too large to measure: 10^9 games on 10^6 ladders, with measured costs.

    python -m benchmarks.simulation          # prints the table of docs/scale.md

The sizes of ladders follow a power law, so the largest has about 7 % of all games. The coordinator does one thing at a
time: it copies records, hands out tasks, or writes the rows of finished tasks. Each core does one task at a time; its
speed is drawn from the seed. The simulation has no slow network, no slow store and no lost workers.
"""

import heapq
import sys
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from benchmarks.tables import format_markdown

SEED = 1
GAMES, LADDERS = 1_000_000_000, 1_000_000
CORES = (10, 100, 1_000)
NEW_GAMES = 500_000  # games that are not sealed yet, on an average night
GAMES_PER_ROW = 20
SPEED_SPREAD = 0.2  # the speed of a core is 1 ± this
SEGMENT_EVENTS, PACK_GAMES, FAMILY_COST = 1_000_000, 400_000, 20
AHEAD = 16  # running and queued tasks per core


class Costs(NamedTuple):
    """Costs in microseconds of one core; the costs `..._here` are the coordinator's."""

    copied_event_here: float
    sealed_event: float
    decoded_event_here: float
    game: float
    interpreted_game: float
    pack: float
    read_part: float
    task_here: float
    ladder_here: float
    segment_here: float
    row_here: float


class Task(NamedTuple):
    """The costs of a task in seconds: of the coordinator before it, of the worker, and of the coordinator after it."""

    before: float
    work: float
    after: float


class Outcome(NamedTuple):
    """The total time in seconds, and the shares of it in which the coordinator and the cores were busy."""

    seconds: float
    here: float
    cores: float


def list_ladder_sizes(games: int = GAMES, ladders: int = LADDERS) -> list[int]:
    """Return the number of games of each ladder, largest first; it is inversely proportional to the ladder's rank."""
    share = games / sum(1 / rank for rank in range(1, ladders + 1))
    return [max(1, round(share / rank)) for rank in range(1, ladders + 1)]


def fill_packs(ladder_sizes: Sequence[int], budget: int = PACK_GAMES) -> Iterator[tuple[int, int]]:
    """Yield the numbers of games and ladders of each pack, as `projections.cluster.packs` fills packs."""
    games, ladders, cost = 0, 0, 0
    for size in ladder_sizes:
        if ladders and cost + size + FAMILY_COST > budget:
            yield games, ladders
            games, ladders, cost = 0, 0, 0
        games, ladders, cost = games + size, ladders + 1, cost + size + FAMILY_COST
    if ladders:
        yield games, ladders


def simulate_tasks(tasks: Sequence[Task], cores: int, before: float = 0.0) -> Outcome:
    """Simulate tasks in order on several cores, handed out by a coordinator that is busy for `before` seconds first."""
    chance = Random(SEED)
    free = [(before, 1 + SPEED_SPREAD * (2 * chance.random() - 1)) for _ in range(cores)]
    heapq.heapify(free)
    waiting, running = list(reversed(tasks)), list[tuple[float, float]]()
    now, busy, worked = before, before, 0.0
    while waiting or running:
        if waiting and len(running) < AHEAD * cores:
            task = waiting.pop()
            now, busy = now + task.before, busy + task.before
            since, speed = heapq.heappop(free)
            duration = task.work / speed
            ends, worked = max(since, now) + duration, worked + duration
            heapq.heappush(free, (ends, speed))
            heapq.heappush(running, (ends, task.after))
        else:
            ends, after = heapq.heappop(running)
            now, busy = max(now, ends) + after, busy + after
    return Outcome(now, busy / now, worked / (cores * now))


def simulate_sealing(costs: Costs, cores: int, games: int = GAMES) -> Outcome:
    """Simulate sealing all games."""
    each = SEGMENT_EVENTS / 1e6
    task = Task(each * costs.copied_event_here, each * costs.sealed_event, costs.segment_here / 1e6)
    return simulate_tasks([task] * (games // SEGMENT_EVENTS), cores)


def simulate_night(costs: Costs, cores: int, ladder_sizes: Sequence[int], interpreted: bool = False) -> Outcome:
    """Simulate a rebuild of sealed games."""
    games = sum(ladder_sizes)
    segments, each = games // SEGMENT_EVENTS, costs.interpreted_game if interpreted else costs.game
    before = (
        NEW_GAMES * costs.decoded_event_here + segments * costs.segment_here + len(ladder_sizes) * costs.ladder_here
    )
    tasks = [
        Task(
            costs.task_here / 1e6,
            (pack_games * each + costs.pack + segments * costs.read_part) / 1e6,
            pack_games / GAMES_PER_ROW * costs.row_here / 1e6,
        )
        for pack_games, _ in fill_packs(ladder_sizes)
    ]
    return simulate_tasks(tasks, cores, before / 1e6)


# measured by the row `cluster` of the benchmarks or on its data, in processor time, on two cores of AMD EPYC
MEASURED = Costs(
    copied_event_here=1.3,
    sealed_event=3.4,
    decoded_event_here=4.0,
    game=0.5,
    interpreted_game=11.6,
    pack=5_000.0,
    read_part=330.0,
    task_here=800.0,
    ladder_here=30.0,
    segment_here=1_000.0,
    row_here=10.0,
)


def format_duration(seconds: float) -> str:
    """Format seconds as seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"


def find_bottleneck(outcome: Outcome, largest: float) -> str:
    """Return the bottleneck: the largest ladder, the coordinator or the workers."""
    if largest > 0.7 * outcome.seconds:
        return "the largest ladder"
    return "the coordinator" if outcome.here > outcome.cores else "the workers"


def format_table(costs: Costs = MEASURED) -> str:
    """Return the table of docs/scale.md, with its inputs."""
    ladder_sizes, rows = list_ladder_sizes(), list[tuple[str, ...]]()
    for cores in CORES:
        outcome = simulate_sealing(costs, cores)
        rows.append(
            (
                "sealing from nothing",
                f"{cores:,}",
                format_duration(outcome.seconds),
                find_bottleneck(outcome, 0),
                f"{outcome.cores:.0%}",
                "",
            )
        )
    for name, interpreted in (("a night", False), ("a night, interpreted", True)):
        largest = ladder_sizes[0] * (costs.interpreted_game if interpreted else costs.game) / 1e6
        for cores in CORES:
            outcome = simulate_night(costs, cores, ladder_sizes, interpreted)
            rows.append(
                (
                    name,
                    f"{cores:,}",
                    format_duration(outcome.seconds),
                    find_bottleneck(outcome, largest),
                    f"{outcome.cores:.0%}",
                    format_duration(largest),
                )
            )
    headings = ("what", "cores", "time", "limited by", "workers busy", "largest ladder alone")
    named = ", ".join(f"{name.replace('_', ' ')} {value:,g}" for name, value in costs._asdict().items())
    return (
        f"{format_markdown(headings, rows)}\n{GAMES:,} games on {LADDERS:,} ladders, "
        f"{ladder_sizes[0] / sum(ladder_sizes):.0%} of them on the largest; "
        f"{len([*fill_packs(ladder_sizes)]):,} packs; a row of standings for every {GAMES_PER_ROW} games; "
        f"seed {SEED}.\n"
        f"Microseconds: {named}.\n"
    )


if __name__ == "__main__":
    sys.stdout.write(format_table())
