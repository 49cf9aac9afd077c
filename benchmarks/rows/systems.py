"""Compare our rules with state to other implementations, and measure a replay of a tennis tour."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks import tennis
from benchmarks.histories import History
from benchmarks.measuring import ROOT, Call, measure, run_in_turn
from benchmarks.results import Bar, Line, Run, Skipped, build_checked_series
from benchmarks.setting import Setting

# the maximum difference from a loop that does not round ratings to millionths after every game
POINTS_DIFFERENCE_MAX = 0.01


class Peer(NamedTuple):
    """A baseline of a system: its function, its games, how many times as fast our replay must be, and its package.

    A baseline without a package has to compute the same ratings.
    """

    function: str
    games: int
    bar: float
    package: str = ""


NUMBER_WORDS = {2: "two", 4: "four"}
PYTHON = "a plain Python loop"
# for each ruleset of the folder `later`: the number of players in a game, and the baselines by name
SYSTEMS: dict[str, tuple[int, dict[str, Peer]]] = {
    "bench-glicko-1": (
        2,
        {
            "elote": Peer("libraries:elote_glicko", 30_000, 20, "elote"),
            PYTHON: Peer("plain_glicko:glicko", 200_000, 50),
        },
    ),
    "bench-glicko-2-1": (
        2,
        {
            "elote": Peer("libraries:elote_glicko_2", 10_000, 20, "elote"),
            PYTHON: Peer("plain_glicko:glicko_2", 100_000, 50),
        },
    ),
    "bench-weng-lin-1": (4, {"openskill": Peer("libraries:openskill", 30_000, 20, "openskill")}),
}
MATCHES_SECONDS = 1


def measure_systems(setting: Setting) -> Iterator[Line | Skipped]:
    """Measure every system, then all matches of the tour."""
    for name, (size, peers) in SYSTEMS.items():
        yield from _compare_system(setting, name, size, peers)
    yield from _replay_matches(setting)


def _compare_system(setting: Setting, name: str, size: int, peers: dict[str, Peer]) -> Iterator[Line | Skipped]:
    """Compare a rule with state to its baselines."""
    games = setting.games(1_000_000)
    history = History(games=games, size=size, late=False)
    system = name.removeprefix("bench-").removesuffix("-1")
    what = f"replay of {games:,} games of {NUMBER_WORDS[size]} in memory by {system}"
    counts = {label: min(peer.games, games) for label, peer in peers.items()}
    arguments = {"url": setting.sqlite.ledger(history), "name": name, "compared": counts.get(PYTHON, 0)}
    calls = {"ours": Call("benchmarks.ours:replay_in_memory", arguments)}
    for label, peer in peers.items():
        arguments = {"history": history, "count": counts[label]}
        needs = (peer.package,) if peer.package else ()
        calls[label] = Call(f"benchmarks.baselines.{peer.function}", arguments, needs=needs)
    runs = run_in_turn(calls, setting.repetitions)
    measured = runs.pop("ours")
    if PYTHON in runs:
        _check_points(measured, runs[PYTHON])
    ours = build_checked_series("replay", "games", games, measured)
    for label, baseline_runs in runs.items():
        baseline = build_checked_series(label, "games", counts[label], baseline_runs)
        yield Line(f"{what}, against {label}", ours, baseline, Bar("times as fast", peers[label].bar))
    for label in peers.keys() - runs.keys():
        yield Skipped(f"{what}, against {label}", f"{peers[label].package} is not installed")


def _check_points(ours: Sequence[Run], plain_loop: Sequence[Run]) -> None:
    """Check that two programs computed the same ratings. Raises `AssertionError`."""
    points, plain_points = ours[0].details["points"], plain_loop[0].details["points"]
    assert points.keys() == plain_points.keys(), "the plain loop rates different players"
    furthest = max(abs(points[player] - plain_points[player]) for player in points)
    assert furthest < POINTS_DIFFERENCE_MAX, (
        f"our ratings differ from the plain loop's by up to {furthest}; the limit is {POINTS_DIFFERENCE_MAX}"
    )


def _replay_matches(setting: Setting) -> Iterator[Line | Skipped]:
    """Measure a replay of all matches of a tour under Glicko, from decoded columns."""
    if not (file := tennis.MATCHES_FILE).exists():
        yield Skipped("tennis matches", f"../{file.relative_to(ROOT.parent)} is missing; add it to measure this line")
        return
    url = tennis.ledger(setting.folder, setting.games_max)
    call = Call("benchmarks.ours:replay_decoded", {"url": url, "name": "bench-glicko-1"})
    measure(call)  # after it, everything cacheable is cached
    runs = run_in_turn({"ours": call}, setting.repetitions)["ours"]
    games = runs[0].details["count"]
    quickest = min(runs).details
    parts = [f"{part} {quickest[part]:.2f} s" for part in ("stream", "replay")]
    note = ", ".join([*parts, f"decoding before it {quickest['decode']:.2f} s"])
    what = f"{games:,} tennis matches by glicko, from decoded columns to points, one core"
    yield Line(
        what, build_checked_series("replay", "games", games, runs), bar=Bar("seconds", MATCHES_SECONDS), note=note
    )
