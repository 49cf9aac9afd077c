"""Every rule with state has the same digests on every code path.

The paths: interpreted, compiled, from files of columns, continued, cut, by one or two processes, on a cluster, and in
both kinds of store.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import (
    open_local_cluster,
    rank_in_one_process,
    rank_in_processes,
    rank_on_cluster,
    shrink_pieces,
)
from histories import enter, load_facts, load_ladders
from own_rules import compile_every_rule, forbid_compiling
from paths import compute_digests, find_cached_trace, set_paths
from state_systems import SYSTEMS, draw_history
from thresholds import set_thresholds

import ratings_ledger as rl
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from tests.builders import Event
from tests.ledgers import run_command

ROUNDS = 18
# ladders by period, and lists, are always replayed from the beginning
CONTINUABLE = {"glicko", "glicko-2", "weng-lin", "weng-lin-bt", "club-elo", "doubles-elo", "fide-games"}
Answers = dict[str, str]


@pytest.fixture(scope="module")
def rounds(at_length: bool) -> int:
    """Return the number of rounds of games."""
    return 150 if at_length else ROUNDS


@pytest.fixture(scope="module")
def ledger(rounds: int, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Return a ledger with all systems; every event of its history is accepted."""
    return fill(str(tmp_path_factory.mktemp("systems") / "ratings.db"), draw_history(1, rounds))


@pytest.fixture(scope="module")
def plain_facts(ledger: Ledger) -> Any:
    """Return the facts of the ledger as decoded from the log."""
    return load_facts(ledger, cached=False)


@pytest.fixture(scope="module")
def expected(plain_facts: Any) -> Answers:
    """Return the digests of all ladders, interpreted; every rule has some, and none of them fails."""
    with pytest.MonkeyPatch.context() as patch:
        forbid_compiling(patch)
        digests = compute_digests(plain_facts)
    assert {ladder.split("/")[0] for ladder in digests} == {*SYSTEMS}
    assert all(digest.startswith("sha256:") for digest in digests.values()), digests
    by_period = {name for name, (_, _, more) in SYSTEMS.items() if more.get("period", "event") != "event"}
    streams_by_ruleset = {name: load_ladders(plain_facts).streams(name).values() for name in by_period}
    open_games = {
        name: sum(len(stream.open_rows) for stream in streams) for name, streams in streams_by_ruleset.items()
    }
    assert all(open_games.values()), open_games
    return digests


def fill(url: str, log: list[Event]) -> Ledger:
    """Create a ledger with a history."""
    upgrade(url)
    ledger = open_ledger(url)
    record(ledger, log)
    return ledger


def record(ledger: Ledger, log: list[Event]) -> None:
    """Record events a second after the last of them, so that rating periods are still open."""
    now = max(parse_instant(event["occurred_at"]) for event in log) + 1_000_000
    assert enter(ledger, log, lambda: now).rejected == []


def filter_digests(name: str, answers: Answers) -> Answers:
    """Return the digests of the ladders of one ruleset."""
    return {ladder: digest for ladder, digest in answers.items() if ladder.split("/")[0] == name}


def replay_digests(name: str, ladders: Any) -> Answers:
    """Return the digests of the ladders of one ruleset from a new replay."""
    return {ladder: ladders.rank_stream(stream).digest for ladder, stream in ladders.streams(name).items()}


def choose_instants(facts: Any, count: int) -> list[int]:
    """Return about `count` instants over the whole history: those of games, or a few microseconds before them."""
    played = sorted(facts.occurred_at)
    step = max(1, len(played) // count)
    return [at - early for early, at in enumerate(played[::step])]


def iterate_traces(name: str, ladders: Any) -> Iterator[Any]:
    """Yield the traces of the ladders of one ruleset."""
    for ladder in ladders.streams(name):
        yield ladders.trace(ladder)


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", SYSTEMS)
def test_last_points_are_those_after_the_last_steps(name: str, plain_facts: Any) -> None:
    """The last points and the last steps of every player are the end of all their steps, also with rating periods."""
    for trace in iterate_traces(name, load_ladders(plain_facts)):
        for player in range(len(trace.points)):
            steps = [*trace.steps(player)]
            for limit in (1, 3, len(steps), len(steps) + 1):
                assert trace.steps(player, limit) == steps[-limit:]
                assert trace.last_points(player, limit) == [step.points_before + step.change for step in steps[-limit:]]


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", SYSTEMS)
def test_compiled_rules_have_the_same_states(
    name: str, plain_facts: Any, expected: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled rules have the digests, and the states before all games, of the interpreter."""
    pytest.importorskip("numba")
    with monkeypatch.context() as patch:
        forbid_compiling(patch)
        interpreted = [*iterate_traces(name, load_ladders(plain_facts))]
    compile_every_rule(monkeypatch)
    assert replay_digests(name, load_ladders(plain_facts)) == filter_digests(name, expected)
    for compiled, trace in zip(iterate_traces(name, load_ladders(plain_facts)), interpreted, strict=True):
        assert compiled.has_same_results(trace)


@pytest.mark.parametrize("name", SYSTEMS)
def test_cuts_at_any_instant_equal_replays_to_it(name: str, plain_facts: Any, ledger: Ledger, rounds: int) -> None:
    """At many instants, a longer replay that is cut equals a shorter replay."""
    whole, distinct_digests = load_ladders(plain_facts), set[str]()
    whole.streams(name)
    for at in choose_instants(plain_facts, 12 if rounds == ROUNDS else 60):
        digests_at = replay_digests(name, load_ladders(plain_facts, at))
        assert replay_digests(name, whole.at(at)) == digests_at
        for ladder, trace in ((ladder, whole.trace(ladder)) for ladder in digests_at):
            cut = trace.truncate(*trace.count_before(plain_facts, (at + 1, 0))).apply_versions_until(at)
            states = load_ladders(plain_facts, at).trace(ladder).states
            assert [*map(list, cut.states)] == [*map(list, states)], (ladder, at)
        distinct_digests |= {*digests_at.values()}
    assert len(distinct_digests) > 4


@pytest.mark.slow_cases
@pytest.mark.parametrize("scanned", [False, True], ids=["read", "scanned"])
def test_cached_columns_give_the_same_digests(
    scanned: bool, ledger: Ledger, expected: Answers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Facts that are decoded and cached, and facts read from the files alone, have the digests of the log."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    set_paths(monkeypatch, scanned=scanned, compiled=False)
    assert compute_digests(load_facts(ledger)) == expected
    assert list(tmp_path.rglob("*")) != []
    assert compute_digests(load_facts(ledger, lazily=True)) == expected


@pytest.mark.slow_cases
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_open_ledgers_and_cached_traces_are_continued(
    seed: int, rounds: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a history grows piece by piece, an open ledger, cached traces and a replay from the beginning agree."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    set_thresholds(monkeypatch, traced_games=1, games_per_replayed_game=0)
    set_paths(monkeypatch, scanned=False, compiled=False)
    url, log = str(tmp_path / "ratings.db"), draw_history(seed, rounds)
    begin = next(number for number, event in enumerate(log) if event["type"] == "game.recorded") + 60
    writer = fill(url, log[:begin])
    continued = set[str]()
    with rl.open(url) as ledger:
        for low in range(begin, len(log), 17):
            record(writer, log[low : low + 17])
            snapshot, cached = ledger.at(), load_facts(writer)
            plain_ladders = load_ladders(writer, cached=False)
            for name in SYSTEMS:
                replayed = replay_digests(name, plain_ladders)
                assert {ladder: snapshot.standings(ladder).digest for ladder in replayed} == replayed
                for ladder in replayed:
                    plain_trace, trace = plain_ladders.trace(ladder), find_cached_trace(cached, ladder)
                    assert trace is None or trace.join_parts().has_same_results(plain_trace), ladder
                    continued |= {name} if trace is not None and trace.earlier is not None else set()
                    assert load_ladders(cached).trace(ladder).join_parts().has_same_results(plain_trace), ladder
    assert continued == CONTINUABLE


@pytest.mark.slow_cases
def test_earlier_positions_equal_replays_of_the_log_until_then(
    ledger: Ledger, plain_facts: Any, expected: Answers
) -> None:
    """At earlier positions every ladder equals a replay of the log until then, and each ruleset has a ladder that
    differs from the present one.
    """
    differing_rulesets = set[str]()
    with rl.open(ledger.location) as opened:
        for position in range(plain_facts.position, 60, -plain_facts.position // 8):
            replayed = compute_digests(load_facts(ledger, position, cached=False))
            snapshot = opened.at(known_at=position)
            assert {ladder: snapshot.standings(ladder).digest for ladder in replayed} == replayed
            differing_rulesets |= {
                ladder.split("/")[0] for ladder, digest in replayed.items() if digest != expected.get(ladder)
            }
    assert differing_rulesets == {*SYSTEMS}


@pytest.mark.slow_cases
def test_processes_and_clusters_compute_the_same(
    ledger: Ledger, expected: Answers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One process, two processes, and a cluster with small pieces of the log compute the same standings."""
    alone = rank_in_one_process(ledger)
    assert {ladder: built.digest for ladder, built in alone.items()} == expected
    set_thresholds(monkeypatch, forking_cost=0)
    assert rank_in_processes(ledger, 2) == alone
    for window in (None, 3):
        shrink_pieces(monkeypatch, 40, 5, 20, window)
        with open_local_cluster(tmp_path / f"objects-{window}") as cluster:
            assert rank_on_cluster(ledger, cluster) == alone


@pytest.mark.slow_cases
def test_stores_and_rebuilds_agree(
    store: str, store_kind: str, rounds: int, expected: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each kind of store the digests are the same, and a checked rebuild by two processes verifies."""
    fill(store, draw_history(1, rounds))
    with rl.open(store) as opened:
        assert {ladder: opened.at().standings(ladder).digest for ladder in expected} == expected
    set_thresholds(monkeypatch, forking_cost=0)
    assert run_command("rebuild", "--check", db=store) == 0
    assert run_command("verify", db=store) == 0
