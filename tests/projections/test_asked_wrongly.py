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
        lambda ledger: ledger.at().games(since=date(2024, 12, 31)),
        "since must be a string, such as '2024-12-31', not date",
    ),
    "a number as text": (
        lambda ledger: ledger.at().standings(LADDER, limit="3"), "limit must be a whole number, not the string '3'",
    ),
    "places as text": (
        lambda ledger: ledger.at().other_result("g-1", "123"),
        "places must be a list of whole numbers, not the string '123'",
    ),
    "one in place of a list": (
        lambda ledger: ledger.at().standings(LADDER, "ben"),
        "players must be a list, such as ['ben'], not the string 'ben'",
    ),
    "no as text": (
        lambda ledger: ledger.propose({}, "mira", strict="no"), "strict must be True or False, not the string 'no'",
    ),
    "no number": (
        lambda ledger: ledger.compare(ledger.at(), ledger.at(), predictions=float("nan")),
        "predictions must be True or False, not float",
    ),
    "nobody": (lambda ledger: ledger.propose({}, None), "by must be a string, not NoneType"),
    "a word beyond words": (
        lambda ledger: ledger.propose({}, "mira", new_names=TOO_LONG), "new_names must be refuse or accept, not <int>",
    ),
    "a ruleset of numbers": (
        lambda ledger: ledger.simulate({TOO_LONG: 1}, ledger.at()), "the keys of a ruleset must be strings",
    ),
    "a date beyond dates": (
        lambda ledger: ledger.simulate({**RULESET, "effective_from": TOO_LONG}, ledger.at()),
        'effective_from: a text in quotes is needed, such as "24" (it is <int>)',
    ),
    "a number beyond numbers": (
        lambda ledger: ledger.simulate(f"start = {'9' * 5_000}", ledger.at()),
        "a number has too many digits; shorten it",
    ),
    "hidden characters": (
        lambda ledger: ledger.at().ruleset("\x1b[31m"),
        r"no ruleset '\x1b[31m' is published at position 24; see: ratings rules list",
    ),
    "more hidden characters": (
        lambda ledger: ledger.at().statistics("\x1b", "\x1b"), r"'\x1b' has not played '\x1b'; see: ratings games",
    ),
    "and more": (
        lambda ledger: ledger.at().unmet(LADDER, "\x1b"),
        rf"'\x1b' has neither joined nor played on {LADDER}; see: ratings standings {LADDER}",
    ),
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
        assert {type(one).__name__ for one in outcomes} <= {"Committed", "BadArgument", "Impact"}, outcomes
        assert ledger.head.position == before + 1


def test_thread_that_stays_keeps_its_connection_alone(ledger: Any) -> None:
    """What another thread asks of a view while one stays, it asks on a connection of its own, which stays open."""
    view, here, gone = ledger.at(), Barrier(2), Barrier(2)

    def stay() -> None:
        with view.hold_connection():
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


MIXED_UP: dict[str, tuple[Callable[[Any], object], type[rl.LedgerError], str]] = {
    "explain": (
        lambda ledger: ledger.at().explain("g-1", LADDER), rl.BadArgument,
        f"'g-1' is a game and '{LADDER}' is a ladder; write explain('{LADDER}', 'g-1')",
    ),
    "explain, by name": (
        lambda ledger: ledger.at().explain(game_id=LADDER, ladder="g-1"), rl.BadArgument,
        f"'g-1' is a game and '{LADDER}' is a ladder; write explain('{LADDER}', 'g-1')",
    ),
    "explain to a player": (
        lambda ledger: ledger.at().explain("anna", "g-1"), rl.BadArgument,
        f"'anna' is a player, not a ladder; write explain('{LADDER}', 'g-1')",
    ),
    "explain a game to a player": (
        lambda ledger: ledger.at().explain("g-1", "anna"), rl.BadArgument,
        f"'g-1' is a game, not a ladder; write explain('{LADDER}', 'g-1')",
    ),
    "explain a player": (
        lambda ledger: ledger.at().explain(LADDER, "anna"), rl.Unknown,
        f"'anna' is a player, not a game; write account('{LADDER}', 'anna')",
    ),
    "history": (
        lambda ledger: ledger.at().history("anna", LADDER), rl.BadArgument,
        f"'anna' is a player and '{LADDER}' is a ladder; write history('{LADDER}', 'anna')",
    ),
    "history of a game": (
        lambda ledger: ledger.at().history(LADDER, "g-1"), rl.Unknown,
        f"'g-1' is a game, not a player; write explain('{LADDER}', 'g-1')",
    ),
    "account": (
        lambda ledger: ledger.at(known_at=24).account("anna", LADDER), rl.BadArgument,
        f"'anna' is a player and '{LADDER}' is a ladder; write account('{LADDER}', 'anna')",
    ),
    "unmet": (
        lambda ledger: ledger.at().unmet("anna", LADDER), rl.BadArgument,
        f"'anna' is a player and '{LADDER}' is a ladder; write unmet('{LADDER}', 'anna')",
    ),
    "last event": (
        lambda ledger: ledger.at().last_event("anna", LADDER), rl.BadArgument,
        f"'anna' is a player and '{LADDER}' is a ladder; write last_event('{LADDER}', 'anna')",
    ),
    "attribute": (
        lambda ledger: ledger.attribute("anna", LADDER, ledger.at(), ledger.at()), rl.BadArgument,
        f"'anna' is a player and '{LADDER}' is a ladder; write attribute('{LADDER}', 'anna', …)",
    ),
    "clock": (
        lambda ledger: ledger.at().clock_of("anna", "g-1"), rl.BadArgument,
        "'anna' is a player and 'g-1' is a game; write clock_of('g-1', 'anna')",
    ),
    "standings of a player": (
        lambda ledger: ledger.at().standings("anna"), rl.BadArgument,
        f"'anna' is a player, not a ladder; write standings('{LADDER}')",
    ),
    "a ladder as a game": (
        lambda ledger: ledger.at().timeline(LADDER), rl.Unknown, f"'{LADDER}' is a ladder, not a game",
    ),
    "a ladder as a league": (
        lambda ledger: ledger.at().league(LADDER), rl.LedgerError, f"'{LADDER}' is a ladder, not a league",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MIXED_UP)
def test_names_in_the_wrong_places_are_told_with_the_right_call(what: str, ledger: Any) -> None:
    """A name of another kind than a question takes is told by what it is, with the call that is right."""
    ask, kind, told = MIXED_UP[what]
    with pytest.raises(kind) as problem:
        ask(ledger)
    assert str(problem.value) == told
    assert type(problem.value) is kind


def test_names_of_no_kind_are_told_as_before(ledger: Any) -> None:
    """A name that nothing has is told as unknown, also beside one in the wrong place."""
    view = ledger.at()
    with pytest.raises(rl.Unknown, match="no game 'g-9' is recorded"):
        view.explain(LADDER, "g-9")
    with pytest.raises(rl.BadArgument, match="no ruleset is called 'nobody'"):
        view.history("nobody", "anna")
    with pytest.raises(rl.Unknown, match="did you mean anna"):
        view.history(LADDER, "ana")
    assert view.kinds_of("anna") == {"player"}
    assert (view.kinds_of("g-1"), view.kinds_of(LADDER), view.kinds_of("nobody")) == ({"game"}, {"ladder"}, set())
