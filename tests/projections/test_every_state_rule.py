"""Every rule with state gives the same digests in every way: interpreted, compiled, from files of columns, continued,
cut, by one or two processes, on a cluster, and in both kinds of store.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import cluster_here, in_one_process, on_cluster, small_pieces
from paths import digests, set_paths
from state_systems import SYSTEMS, draw_history
from thresholds import set_thresholds
from time_ledgers import enter

import ratings_ledger as rl
from ratings_ledger.ledger.events.canonical import parse_instant
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.replay import continuation, trace_cache
from ratings_ledger.projections.replay.trace import Trace
from ratings_ledger.projections.replay.trace_cache import find_trace
from ratings_ledger.projections.stored.computing import compute, plan
from tests.builders import Event
from tests.ledgers import run_command

ROUNDS = 18
# by periods or by lists, every ladder is replayed from its beginning
CONTINUABLE = {"glicko", "glicko-2", "weng-lin", "weng-lin-bt", "club-elo", "doubles-elo", "fide-games"}
Answers = dict[str, str]


@pytest.fixture(scope="module")
def rounds(at_length: bool) -> int:
    """How many rounds of games there are."""
    return 150 if at_length else ROUNDS


@pytest.fixture(scope="module")
def ledger(rounds: int, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """A ledger with all systems; every event of its history is taken."""
    return fill(str(tmp_path_factory.mktemp("systems") / "ratings.db"), draw_history(1, rounds))


@pytest.fixture(scope="module")
def plain(ledger: Ledger) -> Facts:
    """Its facts, as they are read from the log."""
    return facts_of(ledger, cached=False)


@pytest.fixture(scope="module")
def expected(plain: Facts) -> Answers:
    """The digests of all ladders, interpreted; of every rule there is one, and none of them fails."""
    with compiling.force_interpreted():
        found = digests(plain)
    assert {ladder.split("/")[0] for ladder in found} == {*SYSTEMS}
    assert all(digest.startswith("sha256:") for digest in found.values()), found
    by_period = {name for name, (_, _, more) in SYSTEMS.items() if more.get("period", "event") != "event"}
    every = {name: Ladders(plain).streams(name).values() for name in by_period}
    open_games = {name: sum(len(stream.open_rows) for stream in streams) for name, streams in every.items()}
    assert all(open_games.values()), open_games
    return found


def fill(url: str, log: list[Event]) -> Ledger:
    """Create a ledger with a history."""
    upgrade(url)
    filled = open_ledger(url)
    record(filled, log)
    return filled


def record(ledger: Ledger, log: list[Event]) -> None:
    """Record events a second after the last of them happened, so that rating periods are open then."""
    now = max(parse_instant(one["occurred_at"]) for one in log) + 1_000_000
    assert enter(ledger, log, lambda: now).rejected == []


def facts_of(ledger: Ledger, position: int | None = None, **options: Any) -> Facts:
    """Return the facts of a ledger."""
    with ledger.reading() as connection:
        return decode(connection, position, **options)


def own(name: str, answers: Answers) -> Answers:
    """Return the digests of the ladders of one ruleset."""
    return {ladder: digest for ladder, digest in answers.items() if ladder.split("/")[0] == name}


def digests_of(name: str, ladders: Ladders) -> Answers:
    """Return the same, replayed anew."""
    return {ladder: ladders.rank_stream(stream).digest for ladder, stream in ladders.streams(name).items()}


def instants_of(plain: Facts, count: int) -> list[int]:
    """Return so many instants over the whole history: of games, and just before them."""
    played = sorted(plain.occurred_at)
    step = max(1, len(played) // count)
    return [at - early for early, at in enumerate(played[::step])]


def traces_of(name: str, ladders: Ladders) -> Iterator[Trace]:
    """Yield the traces of the ladders of one ruleset."""
    for ladder in ladders.streams(name):
        yield ladders.trace(ladder)


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", SYSTEMS)
def test_compiled_rules_leave_the_same_states(
    name: str, plain: Facts, expected: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digests and the states before all games are those of the interpreter."""
    pytest.importorskip("numba")
    with compiling.force_interpreted():
        interpreted = [*traces_of(name, Ladders(plain))]
    set_paths(monkeypatch, scanned=False, compiled=True)
    monkeypatch.setattr(compiling, "can_compile", lambda rule: True)
    assert digests_of(name, Ladders(plain)) == own(name, expected)
    for compiled, trace in zip(traces_of(name, Ladders(plain)), interpreted, strict=True):
        assert compiled.has_same_results(trace)


@pytest.mark.parametrize("name", SYSTEMS)
def test_cuts_at_any_position_are_replays_to_it(name: str, plain: Facts, ledger: Ledger, rounds: int) -> None:
    """At many instants, and known at many positions, what a longer replay is cut to is what a shorter one leaves."""
    whole, differing = Ladders(plain), set[str]()
    whole.streams(name)
    for at in instants_of(plain, 12 if rounds == ROUNDS else 60):
        anew = digests_of(name, Ladders(plain, at))
        assert digests_of(name, whole.at(at)) == anew
        for ladder, trace in ((ladder, whole.trace(ladder)) for ladder in anew):
            cut = trace.truncate(*trace.count_before(plain, (at + 1, 0))).apply_versions_until(at)
            assert [*map(list, cut.states)] == [*map(list, Ladders(plain, at).trace(ladder).states)], (ladder, at)
        differing |= {*anew.values()}
    assert len(differing) > 4


@pytest.mark.slow_cases
@pytest.mark.parametrize("scanned", [False, True], ids=["read", "scanned"])
def test_columns_in_files_say_the_same(
    scanned: bool, ledger: Ledger, expected: Answers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is decoded and kept, and then read from its files alone, gives the digests that the log gives."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    set_paths(monkeypatch, scanned=scanned, compiled=False)
    assert digests(facts_of(ledger)) == expected
    assert list(tmp_path.rglob("*")) != []
    assert digests(facts_of(ledger, lazily=True)) == expected


@pytest.mark.slow_cases
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_open_and_kept_ladders_are_continued(
    seed: int, rounds: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While a history grows piece by piece, an open ledger, kept traces, and a replay from the beginning agree."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(trace_cache, "TRACED_GAMES", 1)
    monkeypatch.setattr(continuation, "GAMES_PER_REPLAYED_GAME", 0)
    set_paths(monkeypatch, scanned=False, compiled=False)
    url, log = str(tmp_path / "ratings.db"), draw_history(seed, rounds)
    begin = next(number for number, one in enumerate(log) if one["type"] == "game.recorded") + 60
    written = fill(url, log[:begin])
    continued = set[str]()
    with rl.open(url) as ledger:
        for low in range(begin, len(log), 17):
            record(written, log[low : low + 17])
            snapshot, kept = ledger.at(), facts_of(written)
            plain = Ladders(facts_of(written, cached=False))
            for name in SYSTEMS:
                anew = digests_of(name, plain)
                assert {ladder: snapshot.standings(ladder).digest for ladder in anew} == anew
                for ladder in anew:
                    trace = find_trace(kept, ladder, kept.rulesets[name])
                    assert trace is None or trace.join_parts().has_same_results(plain.trace(ladder)), ladder
                    continued |= {name} if trace is not None and trace.earlier is not None else set()
                    assert Ladders(kept).trace(ladder).join_parts().has_same_results(plain.trace(ladder)), ladder
    assert continued == CONTINUABLE


@pytest.mark.slow_cases
def test_past_knowledge_is_a_replay_of_what_was_known(ledger: Ledger, plain: Facts, expected: Answers) -> None:
    """At earlier positions of the log every ladder is what a ledger with that log alone says; later ones differ."""
    differing = set[str]()
    with rl.open(ledger.location) as opened:
        for position in range(plain.position, 60, -plain.position // 8):
            anew = digests(facts_of(ledger, position, cached=False))
            snapshot = opened.at(known_at=position)
            assert {ladder: snapshot.standings(ladder).digest for ladder in anew} == anew
            differing |= {ladder.split("/")[0] for ladder, digest in anew.items() if digest != expected.get(ladder)}
    assert differing == {*SYSTEMS}


@pytest.mark.slow_cases
def test_processes_and_clusters_compute_the_same(
    ledger: Ledger, plain: Facts, expected: Answers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One process, two, and a cluster that divides the log into small pieces, store the same standings."""
    alone = in_one_process(plain)
    assert {ladder: built.digest for ladder, built in alone.items()} == expected
    set_thresholds(monkeypatch, forking_cost=0)
    ladders = Ladders(plain)
    assert {built.ladder: built for built in compute(ladders, plan(ladders), cores=2)} == alone
    for window in (None, 3):
        small_pieces(monkeypatch, 40, 5, 20, window)
        with cluster_here(tmp_path / f"objects-{window}") as cluster:
            assert on_cluster(ledger, cluster, plain.position) == alone


@pytest.mark.slow_cases
def test_stores_and_rebuilds_agree(
    store: str, store_kind: str, rounds: int, expected: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each kind of store the digests are the same, live and rebuilt by one process or two, and verify agrees."""
    fill(store, draw_history(1, rounds))
    with rl.open(store) as opened:
        assert {ladder: opened.at().standings(ladder).digest for ladder in expected} == expected
    set_thresholds(monkeypatch, forking_cost=0)
    assert run_command("rebuild", "--check", db=store) == 0
    assert run_command("verify", db=store) == 0
