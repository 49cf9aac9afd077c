"""An open ledger that follows the log answers after every write as a ledger that is opened then: random histories."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from oracle.log import named
from time_histories import LADDERS, base_log, history
from time_ledgers import enter

import ratings_ledger
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.projections.queries import ladders_at
from ratings_ledger.projections.replay import continuation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

WANTED = {"behind the end", "a part again", "followed", "decoded anew"}


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What happened: traces that were continued behind their end or from within, facts that were followed."""
    counts: Counter[str] = Counter()
    continued, follow_log, decode = ladders_at.continue_trace, ladders_at.follow_log, ladders_at.decode

    def counting_traces(trace: Any, *arguments: Any) -> Any:
        result = continued(trace, *arguments)
        if result is not None and result is not trace:
            counts[
                "behind the end" if result.earlier and result.earlier.game_count >= trace.game_count else "a part again"
            ] += 1
        return result

    def counting_followed(*arguments: Any) -> Any:
        counts["followed"] += 1
        return follow_log(*arguments)

    def counting_decoded(*arguments: Any, **options: Any) -> Any:
        counts["decoded anew"] += 1
        return decode(*arguments, **options)

    monkeypatch.setattr(
        continuation, "GAMES_PER_REPLAYED_GAME", 1
    )  # short ladders, too, are continued wherever they can be
    monkeypatch.setattr(ladders_at, "FOLLOWED_EVENTS", 12)
    monkeypatch.setattr(ladders_at, "continue_trace", counting_traces)
    monkeypatch.setattr(ladders_at, "follow_log", counting_followed)
    monkeypatch.setattr(ladders_at.LadderCache.__init__, "__defaults__", (counting_decoded,))
    return counts


def test_open_ledger_answers_as_a_new_one(tmp_path: Path, at_length: bool, done: Counter[str]) -> None:
    """After each write every ladder, and somebody's history and explanation, is what a ledger opened then says."""
    upgrade(str(tmp_path / "template.db"))
    template = (tmp_path / "template.db").read_bytes()
    for seed in range(100) if at_length else range(4):
        chance = Random(f"followed {seed}")
        log = history(seed, 60)
        path = tmp_path / "ratings.db"
        path.write_bytes(template)
        begun = len(base_log(0)) + chance.randint(5, 20)
        writer = open_ledger(str(path))
        assert enter(writer, log[:begun]).appended == begun
        with ratings_ledger.open(path) as followed:
            for at, event in enumerate(log[begun:], begun + 1):
                assert enter(writer, [event]).appended == 1
                if chance.random() < 0.3:  # several at once
                    continue
                asked = [*_questions(chance, log[:at], at)]
                with ratings_ledger.open(path) as new:
                    for name, arguments, known_at in asked:
                        assert _answer(followed, name, arguments, known_at) == _answer(new, name, arguments, known_at)
        writer.engine.dispose()
    assert done.keys() >= WANTED, done


def _questions(chance: Random, log: list[Any], position: int) -> Any:
    """Ask for ladders, histories and explanations now, and for one ladder as it was known before."""
    players = sorted(set().union(*map(named, log)))
    for ladder in chance.sample(LADDERS, 3):
        yield "standings", (ladder,), None
        for name in ("history", "account"):
            yield name, (ladder, chance.choice(players)), None
    yield "standings", (chance.choice(LADDERS),), chance.randint(1, position)


def _answer(ledger: Any, name: str, arguments: tuple[str, ...], known_at: int | None) -> Any:
    try:
        return getattr(ledger.at(known_at=known_at), name)(*arguments).model_dump()
    except ratings_ledger.LedgerError as problem:
        return problem.reason, str(problem)
