"""The log read forward, followed while it grows, and what a commit says of each of its events."""

from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

import ratings_ledger as rl


def game(game_id: str, *players: str) -> dict[str, Any]:
    """A game of chess at a fixed time, the players in the order of their places."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players or ("anna", "ben"), 1)]
    data = {"game_id": game_id, "game": "chess", "participants": participants}
    return {"type": "game.recorded", "occurred_at": "2024-01-01T12:00:00Z", "data": data}


@pytest.fixture
def ledger() -> Iterator[rl.Ledger]:
    """A ledger with three games, at positions 2 to 4."""
    with rl.create(rulesets=["elo-chess"]) as opened:
        opened.propose([game("g-1"), game("g-2"), game("g-3")], by="mira").commit()
        yield opened


def positions(events: Any) -> list[int]:
    """The positions of some events."""
    return [row.event["position"] for row in events]


def test_pages_of_the_log_join(ledger: rl.Ledger) -> None:
    first = ledger.log(limit=2)
    rest = ledger.log(after=first.rows[-1].event["position"])

    assert positions(first.rows) + positions(rest.rows) == [1, 2, 3, 4]
    assert first.rows + rest.rows == ledger.log().rows
    assert ledger.log(after=4).rows == ()


def test_log_of_some_types_has_what_was_voided(ledger: rl.Ledger) -> None:
    ledger.propose({"type": "game.voided", "data": {"game_id": "g-2", "reason": "twice"}}, by="mira").commit()

    assert positions(ledger.log(types=["game.recorded"]).rows) == [2, 3, 4]
    assert positions(ledger.log(after=2, limit=1, types=["game.recorded"]).rows) == [3]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"types": ["game.recoded"]}, "'game.recoded' is not a type of event; did you mean game.recorded?"),
        ({"after": -1}, "after must be 0 or more, not -1"),
        ({"after": "2024"}, "after must be a whole number, not the string '2024'"),
    ],
)
def test_wrong_arguments_of_log_and_follow_are_named(ledger: rl.Ledger, options: dict[str, Any], told: str) -> None:
    for ask in (ledger.log, ledger.follow):
        with pytest.raises(rl.BadArgument, match=told.replace("?", r"\?")):
            ask(**options)


@pytest.mark.parametrize("seconds", [0, -1, 10_000, float("nan"), "1"])
def test_polls_are_some_time_apart(ledger: rl.Ledger, seconds: Any) -> None:
    with pytest.raises(rl.BadArgument, match="poll_seconds must be"):
        ledger.follow(poll_seconds=seconds)


def test_follower_gets_each_event_once_while_others_record(ledger: rl.Ledger) -> None:
    read = list[int]()

    def follow() -> None:
        for row in ledger.follow(after=2, poll_seconds=0.01):
            read.append(row.event["position"])
            if row.event["data"].get("game_id") == "last":
                return

    follower = Thread(target=follow)
    follower.start()
    writers = [Thread(target=lambda first=first: record(first)) for first in (10, 20)]

    def record(first: int) -> None:
        for number in range(first, first + 5):
            ledger.propose(game(f"g-{number}"), by="ben").commit()

    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    ledger.propose(game("last"), by="mira").commit()
    follower.join(timeout=60)

    assert read == [*range(3, 16)]


def test_follower_begins_at_the_head_and_ends_after_silence(ledger: rl.Ledger) -> None:
    events = ledger.follow(poll_seconds=0.01, timeout_seconds=0.02)
    ledger.propose([game("g-4"), {"type": "player.registered", "data": {"player": "cleo"}}], by="mira").commit()

    assert positions(events) == [5, 6]
    assert positions(ledger.follow(0, types=["ruleset.published"], poll_seconds=0.01, timeout_seconds=0)) == [1]


def test_follower_ends_when_the_ledger_is_closed(ledger: rl.Ledger) -> None:
    waits, read = Event(), list[int]()

    def follow() -> None:
        for row in ledger.follow(after=3, poll_seconds=3_600):
            read.append(row.event["position"])
            waits.set()

    follower = Thread(target=follow)
    follower.start()
    assert waits.wait(60)
    ledger.close()
    follower.join(timeout=60)

    assert (read, follower.is_alive()) == ([4], False)


def test_commit_says_where_each_event_is(ledger: rl.Ledger) -> None:
    committed = ledger.propose([game("g-4"), game("g-2"), game("g-4")], by="mira").commit()

    assert committed == ledger.head
    assert committed.events == (
        rl.CommittedEvent("game:g-4", 5, True),
        rl.CommittedEvent("game:g-2", 3, False),
        rl.CommittedEvent("game:g-4", 5, False),
    )


def test_proposal_names_new_players_and_whom_they_may_be(ledger: rl.Ledger) -> None:
    ledger.propose(game("g-4", "hannah", "ben"), by="mira").commit()

    plan = ledger.propose(game("g-5", "hanah", "zoe"), by="mira")

    assert plan.new_players == ("hanah", "zoe")
    assert [(close.name, close.others) for close in plan.close_names] == [("hanah", {"hannah": 1})]


def test_game_alone_may_have_its_time(ledger: rl.Ledger) -> None:
    alone = {**game("g-9")["data"], "occurred_at": "2024-01-01T12:00:00Z"}

    first, again = (ledger.propose(alone, by="mira").commit().events[0] for _ in range(2))

    assert (first.appended, again) == (True, rl.CommittedEvent("game:g-9", first.position, False))
    assert ledger.at().games("g-9").rows[0].occurred_at.isoformat() == "2024-01-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("based_on", "told"),
    [
        ({"gaem:g-1": 2}, "based_on names 'gaem:g-1', but no event is about it"),
        ({"game:g-2": 3}, "based_on names 'game:g-2'"),
        ({"game:g-1": None}, "must be an event's id or position, not None"),
        ({"game:g-1": 1.5}, "must be an event's id or position, not 1.5"),
    ],
)
def test_what_a_change_is_based_on_is_about_its_events(ledger: rl.Ledger, based_on: Any, told: str) -> None:
    void = {"type": "game.voided", "data": {"game_id": "g-1", "reason": "twice"}}

    with pytest.raises(rl.BadArgument, match=told) as refusal:
        ledger.propose(void, by="mira", based_on=based_on)

    assert (refusal.value.argument, ledger.head.position) == ("based_on", 4)
    assert ledger.propose(void, by="mira", based_on={"game:g-1": 2}).commit().position == 5
