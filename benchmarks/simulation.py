"""A cluster that nobody has here, simulated: 10^9 games on 10^6 ladders, with costs that were measured.

    python -m benchmarks.simulation          # prints the table of docs/scale.md

The sizes of ladders follow a power law, so the largest has some 7 % of all games. The coordinator does one thing at a
time: it copies records or hands out tasks, and writes the rows of those that are done; each core does one task at a
time, and is as fast as a draw from the seed says. What is not simulated: a network or a store that is slower than the
disk here, and workers that are lost.
"""

import heapq
import sys
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from benchmarks.tables import markdown

SEED = 1
GAMES, LADDERS = 1_000_000_000, 1_000_000
CORES = (10, 100, 1_000)
NEW_GAMES = 500_000  # not sealed yet, on an average night
GAMES_PER_ROW = 20
SPREAD = 0.2  # of how fast a core is, around 1
SEGMENT_EVENTS, PACK_GAMES, FAMILY_COST = 1_000_000, 400_000, 20
AHEAD = 16


class Costs(NamedTuple):
    """Microseconds of one core; those `here` are of the coordinator."""

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
    """What a task costs, in seconds: before it is handed out, a worker, and when its result is there."""

    before: float
    work: float
    behind: float


class Outcome(NamedTuple):
    """How long it took, in seconds, and what shares of it the coordinator and the cores were busy."""

    seconds: float
    here: float
    cores: float


def sizes(games: int = GAMES, ladders: int = LADDERS) -> list[int]:
    """Return how many games each ladder has, the largest first: as many as is inverse to its rank."""
    share = games / sum(1 / rank for rank in range(1, ladders + 1))
    return [max(1, round(share / rank)) for rank in range(1, ladders + 1)]


def packs(ladder_sizes: Sequence[int], budget: int = PACK_GAMES) -> Iterator[tuple[int, int]]:
    """Yield the games and ladders of each pack, as `projections.cluster.packs` fills them."""
    games, ladders, cost = 0, 0, 0
    for size in ladder_sizes:
        if ladders and cost + size + FAMILY_COST > budget:
            yield games, ladders
            games, ladders, cost = 0, 0, 0
        games, ladders, cost = games + size, ladders + 1, cost + size + FAMILY_COST
    if ladders:
        yield games, ladders


def farm(tasks: Sequence[Task], cores: int, before: float = 0.0, seed: int = SEED) -> Outcome:
    """Tasks in their order on some cores, handed out by one coordinator that was busy `before`."""
    chance = Random(seed)
    free = [(before, 1 + SPREAD * (2 * chance.random() - 1)) for _ in range(cores)]
    heapq.heapify(free)
    waiting, running = list(reversed(tasks)), list[tuple[float, float]]()
    now, busy, worked = before, before, 0.0
    while waiting or running:
        if waiting and len(running) < AHEAD * cores:
            task = waiting.pop()
            now, busy = now + task.before, busy + task.before
            since, speed = heapq.heappop(free)
            took = task.work / speed
            ends, worked = max(since, now) + took, worked + took
            heapq.heappush(free, (ends, speed))
            heapq.heappush(running, (ends, task.behind))
        else:
            ends, behind = heapq.heappop(running)
            now, busy = max(now, ends) + behind, busy + behind
    return Outcome(now, busy / now, worked / (cores * now))


def sealing(costs: Costs, cores: int, games: int = GAMES) -> Outcome:
    """Everything sealed, from nothing."""
    each = SEGMENT_EVENTS / 1e6
    task = Task(each * costs.copied_event_here, each * costs.sealed_event, costs.segment_here / 1e6)
    return farm([task] * (games // SEGMENT_EVENTS), cores)


def night(costs: Costs, cores: int, ladder_sizes: Sequence[int], interpreted: bool = False) -> Outcome:
    """Return a rebuild of what is sealed already."""
    games = sum(ladder_sizes)
    segments, each = games // SEGMENT_EVENTS, costs.interpreted_game if interpreted else costs.game
    before = (
        NEW_GAMES * costs.decoded_event_here + segments * costs.segment_here + len(ladder_sizes) * costs.ladder_here
    )
    tasks = [
        Task(
            costs.task_here / 1e6,
            (some * each + costs.pack + segments * costs.read_part) / 1e6,
            some / GAMES_PER_ROW * costs.row_here / 1e6,
        )
        for some, _ in packs(ladder_sizes)
    ]
    return farm(tasks, cores, before / 1e6)


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
    """Seconds, minutes or hours, as people say them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"


def limit(outcome: Outcome, largest: float) -> str:
    """Return what would have to be faster."""
    if largest > 0.7 * outcome.seconds:
        return "the largest ladder"
    return "the coordinator" if outcome.here > outcome.cores else "the workers"


def table(costs: Costs = MEASURED) -> str:
    """Return the table, and what it was made from."""
    ladder_sizes, rows = sizes(), list[tuple[str, ...]]()
    for cores in CORES:
        done = sealing(costs, cores)
        rows.append(
            (
                "sealing from nothing",
                f"{cores:,}",
                format_duration(done.seconds),
                limit(done, 0),
                f"{done.cores:.0%}",
                "",
            )
        )
    for name, interpreted in (("a night", False), ("a night, interpreted", True)):
        largest = ladder_sizes[0] * (costs.interpreted_game if interpreted else costs.game) / 1e6
        for cores in CORES:
            done = night(costs, cores, ladder_sizes, interpreted)
            rows.append(
                (
                    name,
                    f"{cores:,}",
                    format_duration(done.seconds),
                    limit(done, largest),
                    f"{done.cores:.0%}",
                    format_duration(largest),
                )
            )
    headings = ("what", "cores", "time", "limited by", "workers busy", "largest ladder alone")
    named = ", ".join(f"{name.replace('_', ' ')} {value:,g}" for name, value in costs._asdict().items())
    return (
        f"{markdown(headings, rows)}\n{GAMES:,} games on {LADDERS:,} ladders, "
        f"{ladder_sizes[0] / sum(ladder_sizes):.0%} of them on the largest; "
        f"{len([*packs(ladder_sizes)]):,} packs; a row of standings for every {GAMES_PER_ROW} games; "
        f"seed {SEED}.\n"
        f"Microseconds: {named}.\n"
    )


if __name__ == "__main__":
    sys.stdout.write(table())
