"""An open ledger that follows the log answers like a newly opened one after every write of random histories."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from histories import enter
from ledgers import create_ledger
from oracle.log import list_named_players
from paths import count_work
from thresholds import set_thresholds
from time_histories import LADDERS, build_base_log, draw_history

import ratings_ledger
from ratings_ledger.ledger.store.opening import open_ledger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

REQUIRED_CASES = {"after the end", "from within", "followed", "decoded"}


@pytest.fixture
def case_counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return counts of traces continued after their end or from within, and of logs followed or decoded."""
    # short ladders are continued as well
    set_thresholds(monkeypatch, games_per_replayed_game=1, followed_events=12)
    return count_work(monkeypatch)


def test_open_ledger_answers_like_a_new_one(tmp_path: Path, at_length: bool, case_counts: Counter[str]) -> None:
    """After each write, ladders, histories and accounts equal those of a newly opened ledger."""
    create_ledger(str(tmp_path / "template.db"))
    template = (tmp_path / "template.db").read_bytes()
    for seed in range(100) if at_length else range(4):
        chance = Random(f"followed {seed}")
        log = draw_history(seed, 60)
        path = tmp_path / "ratings.db"
        path.write_bytes(template)
        begin = len(build_base_log(0)) + chance.randint(5, 20)
        writer = open_ledger(str(path))
        assert enter(writer, log[:begin]).appended == begin
        with ratings_ledger.open(path) as followed:
            for position, event in enumerate(log[begin:], begin + 1):
                assert enter(writer, [event]).appended == 1
                if chance.random() < 0.3:  # let several events accumulate
                    continue
                queries = [*iterate_queries(chance, log[:position], position)]
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
