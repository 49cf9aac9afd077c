"""The replay alone against rating packages, all over the same games in memory."""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.histories import History
from benchmarks.measuring import Call, in_turn
from benchmarks.results import Bar, Line, Skipped, rate, series
from benchmarks.setting import Setting

# how many of the games each gets, for a run of a second or two
PACKAGES = {"multi_elo": 100_000, "openskill": 30_000, "elote": 30_000, "trueskill": 2_000}


class Peer(NamedTuple):
    """What a system is compared with: a function of `baselines.libraries`, its games, how much faster we have to be,
    and the package that it needs, if it does.
    """

    function: str
    games: int
    bar: float
    package: str = ""


NUMBERS = {2: "two", 4: "four"}
# rules with state: by ruleset of the folder `later`, how many play a game, and the same system elsewhere
SYSTEMS: dict[str, tuple[int, dict[str, Peer]]] = {
    "bench-weng-lin-1": (4, {"openskill": Peer("openskill", 30_000, 20, "openskill")}),
    "bench-glicko-1": (
        2,
        {
            "elote": Peer("elote_glicko", 30_000, 20, "elote"),
            "a plain loop of Python": Peer("plain_glicko", 200_000, 50),
        },
    ),
}


def libraries(setting: Setting) -> Iterator[Line | Skipped]:
    """Games of four by Elo, of which only the fastest package counts; then rules with state, each on its own."""
    games = setting.games(1_000_000)
    history = History(games=games, size=4, late=False)
    what = f"replay of {games:,} games of four in memory"
    calls = {"ours": Call("benchmarks.ours:replay_in_memory", {"url": setting.sqlite.ledger(history)})}
    for name, count in PACKAGES.items():
        arguments = {"history": history, "count": min(count, games)}
        calls[name] = Call(f"benchmarks.baselines.libraries:{name}", arguments, needs=(name,))
    runs = in_turn(calls, setting.repetitions)
    ours = series("replay", "games", games, runs.pop("ours"))
    others = [series(name, "games", min(PACKAGES[name], games), found) for name, found in runs.items()]
    for other in sorted(others, key=rate, reverse=True):
        bar = Bar("times as fast", 50) if other is max(others, key=rate) else None
        yield Line(f"{what}, against {other.label}", ours, other, bar)
    for name in PACKAGES.keys() - runs.keys():
        yield Skipped(f"{what}, against {name}", f"{name} is not installed")
    for name, (size, peers) in SYSTEMS.items():
        yield from _compare_system(setting, name, size, peers)


def _compare_system(setting: Setting, name: str, size: int, peers: dict[str, Peer]) -> Iterator[Line | Skipped]:
    """Yield the lines of a rule with state against the same system elsewhere."""
    games = setting.games(1_000_000)
    history = History(games=games, size=size, late=False)
    system = name.removeprefix("bench-").removesuffix("-1")
    what = f"replay of {games:,} games of {NUMBERS[size]} in memory by {system}"
    arguments = {"url": setting.sqlite.ledger(history), "name": name}
    calls = {"ours": Call("benchmarks.ours:replay_in_memory", arguments)}
    for label, peer in peers.items():
        given = {"history": history, "count": min(peer.games, games)}
        needs = (peer.package,) if peer.package else ()
        calls[label] = Call(f"benchmarks.baselines.libraries:{peer.function}", given, needs=needs)
    runs = in_turn(calls, setting.repetitions)
    ours = series("replay", "games", games, runs.pop("ours"))
    for label, found in runs.items():
        other = series(label, "games", min(peers[label].games, games), found)
        yield Line(f"{what}, against {label}", ours, other, Bar("times as fast", peers[label].bar))
    for label in peers.keys() - runs.keys():
        yield Skipped(f"{what}, against {label}", f"{peers[label].package} is not installed")
