"""What a program asks wrongly through the public interface: a documented exception, in words that help."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from test_views import LADDER, with_games

import ratings_ledger as rl

TOO_LONG = 10**5_000  # Python writes no such number
DEEP: list[Any] = []
for _ in range(2_000):
    DEEP = [DEEP]
LOOP: list[Any] = []
LOOP.append(LOOP)
RULESET = {
    "id": "x",
    "version": "1",
    "rule": "pairwise-elo/1",
    "effective_from": "2010-01-01",
    "scope": {"game": ["x"]},
}


@pytest.fixture
def ledger(copied_file: Callable[..., str]) -> Any:
    """The ledger of `with_games`."""
    with rl.open(Path(copied_file(with_games))) as opened:
        yield opened


TOLD: dict[str, tuple[Callable[[Any], object], str]] = {
    "a day": (
        lambda ledger: ledger.at().games(since=date(2024, 12, 31)), "since is text, such as '2024-12-31', not date",
    ),
    "a number as text": (
        lambda ledger: ledger.at().standings(LADDER, limit="3"), "limit is a whole number, not the text '3'",
    ),
    "places as text": (
        lambda ledger: ledger.at().other_result("g-1", "123"), "places is a list of whole numbers, not the text '123'",
    ),
    "one in place of a list": (
        lambda ledger: ledger.at().standings(LADDER, "ben"), "players is a list, such as ['ben'], not the text 'ben'",
    ),
    "no as text": (
        lambda ledger: ledger.propose({}, "mira", strict="no"), "strict is True or False, not the text 'no'",
    ),
    "no number": (
        lambda ledger: ledger.compare(ledger.at(), ledger.at(), predictions=float("nan")),
        "predictions is True or False, not float",
    ),
    "nobody": (lambda ledger: ledger.propose({}, None), "by is text, not NoneType"),
    "a word beyond words": (
        lambda ledger: ledger.propose({}, "mira", new_names=TOO_LONG), "new_names is refuse or accept, not <int>",
    ),
    "a ruleset of numbers": (
        lambda ledger: ledger.simulate({TOO_LONG: 1}, ledger.at()), "the keys of a ruleset are texts",
    ),
    "a date beyond dates": (
        lambda ledger: ledger.simulate({**RULESET, "effective_from": TOO_LONG}, ledger.at()),
        'effective_from: a text in quotes is needed, such as "24" (it is <int>)',
    ),
    "a number beyond numbers": (
        lambda ledger: ledger.simulate(f"start = {'9' * 5_000}", ledger.at()),
        "a number has more digits than any that a ruleset holds",
    ),
    "hidden characters": (
        lambda ledger: ledger.at().ruleset("\x1b[31m"),
        r"no ruleset '\x1b[31m' is published at position 24; see: ratings rules list",
    ),
    "more hidden characters": (
        lambda ledger: ledger.at().statistics("\x1b", "\x1b"), r"'\x1b' has not played '\x1b'; see: ratings games",
    ),
    "and more": (lambda ledger: ledger.at().unmet(LADDER, "\x1b"), rf"'\x1b' has no game on {LADDER}"),
}  # fmt: skip


@pytest.mark.parametrize("what", TOLD)
def test_what_is_wrong_is_told(what: str, ledger: Any) -> None:
    """A wrong argument is refused with what it should be."""
    ask, told = TOLD[what]
    with pytest.raises(rl.LedgerError) as refused:
        ask(ledger)
    assert str(refused.value) == told


@pytest.mark.parametrize("key", [*RULESET, "params"])
@pytest.mark.parametrize("value", [DEEP, LOOP, TOO_LONG], ids=["deep", "endless", "long"])
def test_ruleset_beyond_measure_is_refused(key: str, value: object, ledger: Any) -> None:
    """A ruleset of tables within tables without end, or of endless numbers, is refused like any wrong one."""
    with pytest.raises(rl.BadArgument):
        ledger.simulate({**RULESET, key: value}, ledger.at())


@pytest.mark.slow
def test_proposal_is_committed_by_one_thread(ledger: Any) -> None:
    """Of threads that commit one proposal, or ask what it changes, one commits it, and the others are told."""
    for number in range(20):
        plan = ledger.propose(
            {"type": "player.registered", "data": {"player": f"p-{number}"}}, "mira", new_names="accept"
        )
        before, outcomes, ready = ledger.head.position, list[object](), Barrier(4)

        def tried(ask: Callable[[], object], outcomes: list[object] = outcomes, ready: Barrier = ready) -> None:
            ready.wait()
            try:
                outcomes.append(ask())
            except BaseException as problem:
                outcomes.append(problem)

        threads = [Thread(target=tried, args=(ask,)) for ask in (plan.commit, plan.commit, plan.commit, plan.impact)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(one, rl.Head) for one in outcomes) == 1, outcomes
        assert {type(one).__name__ for one in outcomes} <= {"Head", "BadArgument", "Impact"}, outcomes
        assert ledger.head.position == before + 1


def test_thread_that_stays_keeps_its_connection_alone(ledger: Any) -> None:
    """What another thread asks of a view while one stays, it asks on a connection of its own, which stays open."""
    view, here, gone = ledger.at(), Barrier(2), Barrier(2)

    def stay() -> None:
        with view.staying():
            view.standings(LADDER)
            here.wait()
            here.wait()
        gone.wait()

    thread = Thread(target=stay)
    thread.start()
    here.wait()
    with view.query(LADDER, lazily=True) as question:
        here.wait()
        gone.wait()
        closed = question.connection.closed
    thread.join()
    assert not closed
