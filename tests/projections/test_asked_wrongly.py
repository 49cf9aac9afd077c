"""Bad calls of the public interface raise a documented exception with a helpful message."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from test_views import LADDER, make_ledger_with_games

import ratings_ledger as rl

TOO_LONG = 10**5_000  # more digits than Python converts to text
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
def ledger(copy_ledger_file: Callable[..., str]) -> Any:
    """Return the ledger of `make_ledger_with_games`."""
    with rl.open(Path(copy_ledger_file(make_ledger_with_games))) as opened:
        yield opened


BAD_CALLS: dict[str, tuple[Callable[[Any], object], str]] = {
    "a day": (
        lambda ledger: ledger.at().games(since=date(2024, 12, 31)),
        "since must be a string, such as '2024-12-31', not date",
    ),
    "a day as a number": (
        lambda ledger: ledger.at().standings(LADDER, limit=date(2024, 12, 31)),
        "limit must be a whole number, not date",
    ),
    "a number as text": (
        lambda ledger: ledger.at().standings(LADDER, limit="3"),
        "limit must be a whole number, not the string '3'",
    ),
    "places as text": (
        lambda ledger: ledger.at().other_result("g-1", "123"),
        "places must be a list of whole numbers, not the string '123'",
    ),
    "a player in place of a list": (
        lambda ledger: ledger.at().standings(LADDER, "ben"),
        "players must be a list, such as ['ben'], not the string 'ben'",
    ),
    "False as text": (
        lambda ledger: ledger.propose({}, "mira", strict="no"),
        "strict must be True or False, not the string 'no'",
    ),
    "a NaN": (
        lambda ledger: ledger.compare(ledger.at(), ledger.at(), predictions=float("nan")),
        "predictions must be True or False, not float",
    ),
    "None": (lambda ledger: ledger.propose({}, None), "by must be a string, not NoneType"),
    "a huge number as a choice": (
        lambda ledger: ledger.propose({}, "mira", new_names=TOO_LONG),
        "new_names must be refuse or accept, not <int>",
    ),
    "a ruleset of numbers": (
        lambda ledger: ledger.simulate({TOO_LONG: 1}, ledger.at()),
        "the keys of a ruleset must be strings, not int",
    ),
    "a huge number as a date": (
        lambda ledger: ledger.simulate({**RULESET, "effective_from": TOO_LONG}, ledger.at()),
        'effective_from: text in quotes is needed, such as "24" (it is <int>)',
    ),
    "a number with too many digits": (
        lambda ledger: ledger.simulate(f"start = {'9' * 5_000}", ledger.at()),
        "a number has too many digits; shorten it",
    ),
    "hidden characters": (
        lambda ledger: ledger.at().ruleset("\x1b[31m"),
        r"no ruleset '\x1b[31m' is published at position 24; see: ratings rules list",
    ),
    "hidden characters of two names": (
        lambda ledger: ledger.at().statistics("\x1b", "\x1b"),
        r"'\x1b' has not played '\x1b'; see: ratings games",
    ),
    "hidden characters of an opponent": (
        lambda ledger: ledger.at().unmet(LADDER, "\x1b"),
        rf"'\x1b' has not played on {LADDER}; see: ratings standings {LADDER}",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_argument_is_rejected_with_message(name: str, ledger: Any) -> None:
    """A bad argument raises an error with exactly the expected message, also if the value cannot be printed."""
    call, message = BAD_CALLS[name]
    with pytest.raises(rl.LedgerError) as error:
        call(ledger)
    assert str(error.value) == message


@pytest.mark.parametrize("key", [*RULESET, "params"])
@pytest.mark.parametrize("value", [DEEP, LOOP, TOO_LONG], ids=["deep", "endless", "long"])
def test_excessive_ruleset_is_rejected(key: str, value: object, ledger: Any) -> None:
    """A ruleset with very deep, endless or huge values is rejected like any bad one."""
    with pytest.raises(rl.BadArgument):
        ledger.simulate({**RULESET, key: value}, ledger.at())


@pytest.mark.slow
def test_proposal_is_committed_by_one_thread(ledger: Any) -> None:
    """Of threads that commit one proposal or ask for its impact, exactly one commits it, and the others get an error or
    an answer.
    """
    for number in range(20):
        plan = ledger.propose(
            {"type": "player.registered", "data": {"player": f"p-{number}"}}, "mira", new_names="accept"
        )
        before, outcomes, ready = ledger.head.position, list[object](), Barrier(4)

        def call_and_record(
            call: Callable[[], object], outcomes: list[object] = outcomes, ready: Barrier = ready
        ) -> None:
            ready.wait()
            try:
                outcomes.append(call())
            except BaseException as problem:
                outcomes.append(problem)

        threads = [
            Thread(target=call_and_record, args=(call,))
            for call in (plan.commit, plan.commit, plan.commit, plan.impact)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(outcome, rl.Head) for outcome in outcomes) == 1, outcomes
        assert {type(outcome).__name__ for outcome in outcomes} <= {"Committed", "BadArgument", "Impact"}, outcomes
        assert ledger.head.position == before + 1


def test_thread_does_not_use_a_connection_held_by_another(ledger: Any) -> None:
    """While one thread holds a connection, a query of another thread has its own, which stays open after the first."""
    view, holding, released = ledger.at(), Barrier(2), Barrier(2)

    def hold_view() -> None:
        with view.hold_connection():
            view.standings(LADDER)
            holding.wait()
            holding.wait()
        released.wait()

    thread = Thread(target=hold_view)
    thread.start()
    holding.wait()
    with view.query(LADDER, lazily=True) as question:
        holding.wait()
        released.wait()
        closed = question.connection.closed
    thread.join()
    assert not closed


MIXED_UP_CALLS: dict[str, tuple[Callable[[Any], object], type[rl.LedgerError], str]] = {
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


@pytest.mark.parametrize("name", MIXED_UP_CALLS)
def test_mixed_up_names_get_the_right_call(name: str, ledger: Any) -> None:
    """A name of the wrong kind raises an error with its kind and, if there is one, the right call."""
    call, exception, message = MIXED_UP_CALLS[name]
    with pytest.raises(exception) as error:
        call(ledger)
    assert str(error.value) == message
    assert type(error.value) is exception


def test_unknown_names_are_reported_as_unknown(ledger: Any) -> None:
    """An unknown name is reported as unknown, also beside a name in the wrong place; it has no kind."""
    view = ledger.at()
    with pytest.raises(rl.Unknown, match="no game 'g-9' is recorded"):
        view.explain(LADDER, "g-9")
    with pytest.raises(rl.BadArgument, match="no ruleset is called 'no-such'"):
        view.history("no-such", "anna")
    with pytest.raises(rl.BadArgument, match="no ruleset is called 'no-such'"):
        view.history("no-such", LADDER)
    with pytest.raises(rl.Unknown, match="did you mean anna"):
        view.history(LADDER, "ana")
    assert view.kinds_of("anna") == {"player"}
    assert (view.kinds_of("g-1"), view.kinds_of(LADDER), view.kinds_of("no-such")) == ({"game"}, {"ladder"}, set())
