"""Messages of the library name its arguments, not the options of the command line."""

from collections.abc import Callable
from typing import Any

import pytest

import ratings_ledger as rl


@pytest.fixture(scope="module")
def ledger() -> rl.Ledger:
    """Return a ledger with one game of Catan and a withdrawn ruleset."""
    ledger = rl.create(rulesets=["elo-catan", "glicko-catan"])
    ledger.propose(build_game("anna", "bento"), by="mira").commit()
    void = {"type": "event.voided", "data": {"id": "ruleset:glicko-catan@1", "reason": "a test"}}
    ledger.propose(void, by="mira").commit()
    return ledger


def build_game(*players: str, **members: str) -> dict[str, Any]:
    """Return a game of Catan between these players in the order of their places."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players, 1)]
    return {
        "game_id": "-".join(players),
        "game": "catan",
        "participants": participants,
        "occurred_at": "2026-01-01T10:00:00Z",
        **members,
    }


@pytest.mark.parametrize(
    ("event", "options", "message"),
    [
        (build_game("anna", "bentoo"), {}, 'pass new_names="accept"'),
        (build_game("anna", "bye"), {}, 'pass new_names="accept"'),
        (build_game("anna", "zoe"), {"strict": True}, "'zoe' is new; to accept it, omit strict=True"),
        (build_game("anna", "zoe", occurred_at="2999-01-01T10:00:00Z"), {}, "pass any_date=True"),
    ],
)
def test_rejections_name_arguments(
    event: dict[str, Any], options: dict[str, Any], message: str, ledger: rl.Ledger
) -> None:
    """A rejection suggests an argument of `propose`, and `commit` raises it with the same message."""
    plan = ledger.propose(event, by="mira", **options)

    assert message in plan.rejections[0].message
    with pytest.raises(rl.Refused) as refusal:
        plan.commit()
    assert str(refusal.value) == plan.rejections[0].message


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda ledger: ledger.at(rules="glicko-catan@1").standings("glicko-catan"), r"to use it, add known_at=\d+$"),
        (lambda ledger: ledger.at().standings("elo-catan/2026-01"), "add as_of='2026-01-31'$"),
        (lambda ledger: ledger.at().standings("elo-chess"), "ratings rules publish --shipped elo --game chess$"),
    ],
)
def test_errors_name_arguments(query: Callable[[rl.Ledger], object], message: str, ledger: rl.Ledger) -> None:
    """The error of a query suggests an argument of the library, or a command."""
    with pytest.raises(rl.BadArgument, match=message):
        query(ledger)


def test_wrong_places_name_their_argument(ledger: rl.Ledger) -> None:
    """A wrong number of places raises `BadArgument` with the name of the argument."""
    with pytest.raises(rl.BadArgument) as refusal:
        ledger.at().other_result("anna-bento", [1])

    assert refusal.value.argument == "places"
