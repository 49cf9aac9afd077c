"""An open ledger that follows the log answers like a newly opened one after every write of random histories."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from oracle.log import list_named_players
from time_histories import LADDERS, build_base_log, draw_history
from time_ledgers import enter

import ratings_ledger
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.queries import ladders_at, snapshot_reader
from ratings_ledger.projections.replay import continuation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

REQUIRED_CASES = {"after the end", "from within", "followed", "decoded"}


@pytest.fixture
def case_counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts of traces continued after their end or from within, and of facts followed or decoded."""
    counts: Counter[str] = Counter()
    continue_trace, follow_log, decode = ladders_at.continue_trace, snapshot_reader.follow_log, snapshot_reader.decode

    def count_continuations(trace: Any, *arguments: Any) -> Any:
        result = continue_trace(trace, *arguments)
        if result is not None and result is not trace:
            counts[
                "after the end" if result.earlier and result.earlier.game_count >= trace.game_count else "from within"
            ] += 1
        return result

    def count_following(*arguments: Any) -> Any:
        counts["followed"] += 1
        return follow_log(*arguments)

    def count_decoding(*arguments: Any, **options: Any) -> Any:
        counts["decoded"] += 1
        return decode(*arguments, **options)

    monkeypatch.setattr(continuation, "GAMES_PER_REPLAYED_GAME", 1)  # short ladders are continued as well
    monkeypatch.setattr(snapshot_reader, "FOLLOWED_EVENTS", 12)
    monkeypatch.setattr(ladders_at, "continue_trace", count_continuations)
    monkeypatch.setattr(snapshot_reader, "follow_log", count_following)
    monkeypatch.setattr(snapshot_reader.LadderCache.__init__, "__defaults__", (count_decoding,))
    return counts


def test_open_ledger_answers_like_a_new_one(tmp_path: Path, at_length: bool, case_counts: Counter[str]) -> None:
    """After each write, ladders, histories and accounts equal those of a newly opened ledger."""
    upgrade(str(tmp_path / "template.db"))
    template = (tmp_path / "template.db").read_bytes()
    for seed in range(100) if at_length else range(4):
        chance = Random(f"followed {seed}")
        log = draw_history(seed, 60)
        path = tmp_path / "ratings.db"
        path.write_bytes(template)
        begun = len(build_base_log(0)) + chance.randint(5, 20)
        writer = open_ledger(str(path))
        assert enter(writer, log[:begun]).appended == begun
        with ratings_ledger.open(path) as followed:
            for at, event in enumerate(log[begun:], begun + 1):
                assert enter(writer, [event]).appended == 1
                if chance.random() < 0.3:  # let several events accumulate
                    continue
                queries = [*iterate_queries(chance, log[:at], at)]
                with ratings_ledger.open(path) as new:
                    for name, arguments, known_at in queries:
                        assert get_result(followed, name, arguments, known_at) == get_result(
                            new, name, arguments, known_at
                        )
        writer.engine.dispose()
    assert case_counts.keys() >= REQUIRED_CASES, case_counts


def iterate_queries(chance: Random, log: list[Any], position: int) -> Any:
    """Yield queries of ladders, histories and accounts now, and of one ladder as known at an earlier position."""
    players = sorted(set().union(*map(list_named_players, log)))
    for ladder in chance.sample(LADDERS, 3):
        yield "standings", (ladder,), None
        for name in ("history", "account"):
            yield name, (ladder, chance.choice(players)), None
    yield "standings", (chance.choice(LADDERS),), chance.randint(1, position)


def get_result(ledger: Any, name: str, arguments: tuple[str, ...], known_at: int | None) -> Any:
    try:
        return getattr(ledger.at(known_at=known_at), name)(*arguments).model_dump()
    except ratings_ledger.LedgerError as problem:
        return problem.reason, str(problem)
