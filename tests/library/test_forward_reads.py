"""Read the log forward, follow it while it grows, and read the events of a commit."""

from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

import ratings_ledger as rl


def build_game(game_id: str, *players: str) -> dict[str, Any]:
    """Return a game of chess at a fixed time, with the players in the order of their places."""
    participants = [{"player": player, "place": place} for place, player in enumerate(players or ("anna", "ben"), 1)]
    data = {"game_id": game_id, "game": "chess", "participants": participants}
    return {"type": "game.recorded", "occurred_at": "2024-01-01T12:00:00Z", "data": data}


@pytest.fixture
def ledger() -> Iterator[rl.Ledger]:
    """Yield a ledger with three games, at positions 2 to 4."""
    with rl.create(rulesets=["elo-chess"]) as opened:
        opened.propose([build_game("g-1"), build_game("g-2"), build_game("g-3")], by="mira").commit()
        yield opened


def list_positions(events: Any) -> list[int]:
    """Return the positions of events."""
    return [row.event["position"] for row in events]


def test_pages_of_the_log_join(ledger: rl.Ledger) -> None:
    """Consecutive pages of the log have all its events once."""
    first = ledger.log(limit=2)
    second = ledger.log(after=first.rows[-1].event["position"])

    assert list_positions(first.rows) + list_positions(second.rows) == [1, 2, 3, 4]
    assert first.rows + second.rows == ledger.log().rows
    assert ledger.log(after=4).rows == ()


def test_log_of_a_type_includes_voided_games(ledger: rl.Ledger) -> None:
    """The log of the type `game.recorded` includes a voided game."""
    ledger.propose({"type": "game.voided", "data": {"game_id": "g-2", "reason": "twice"}}, by="mira").commit()

    assert list_positions(ledger.log(types=["game.recorded"]).rows) == [2, 3, 4]
    assert list_positions(ledger.log(after=2, limit=1, types=["game.recorded"]).rows) == [3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": ["game.recoded"]}, "'game.recoded' is not a type of event; did you mean game.recorded?"),
        ({"after": -1}, "after must be 0 or more, not -1"),
        ({"after": "2024"}, "after must be a whole number, not the string '2024'"),
    ],
)
def test_wrong_arguments_of_log_and_follow_are_named(ledger: rl.Ledger, options: dict[str, Any], message: str) -> None:
    """A wrong argument of `log` and of `follow` is named with its value."""
    for read in (ledger.log, ledger.follow):
        with pytest.raises(rl.BadArgument, match=message.replace("?", r"\?")):
            read(**options)


@pytest.mark.parametrize("seconds", [0, -1, 10_000, float("nan"), "1"])
def test_poll_seconds_have_limits(ledger: rl.Ledger, seconds: Any) -> None:
    """A poll interval that is too short, too long or not a number is refused."""
    with pytest.raises(rl.BadArgument, match="poll_seconds must be"):
        ledger.follow(poll_seconds=seconds)


def test_follower_gets_each_event_once_while_others_record(ledger: rl.Ledger) -> None:
    """A follower reads each event once and in order while two threads record."""
    positions = list[int]()

    def follow() -> None:
        for row in ledger.follow(after=2, poll_seconds=0.01):
            positions.append(row.event["position"])
            if row.event["data"].get("game_id") == "last":
                return

    follower = Thread(target=follow)
    follower.start()
    writers = [Thread(target=lambda first=first: record(first)) for first in (10, 20)]

    def record(first: int) -> None:
        for number in range(first, first + 5):
            ledger.propose(build_game(f"g-{number}"), by="ben").commit()

    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    ledger.propose(build_game("last"), by="mira").commit()
    follower.join(timeout=60)

    assert positions == [*range(3, 16)]


def test_follower_begins_at_the_head_and_ends_after_silence(ledger: rl.Ledger) -> None:
    """A follower begins after the head or after a position, and ends after `timeout_seconds` without events."""
    events = ledger.follow(poll_seconds=0.01, timeout_seconds=0.02)
    ledger.propose([build_game("g-4"), {"type": "player.registered", "data": {"player": "cleo"}}], by="mira").commit()

    assert list_positions(events) == [5, 6]
    assert list_positions(ledger.follow(0, types=["ruleset.published"], poll_seconds=0.01, timeout_seconds=0)) == [1]


def test_follower_ends_when_the_ledger_is_closed(ledger: rl.Ledger) -> None:
    """Closing a ledger ends its followers, even in the middle of a long poll interval."""
    has_read, positions = Event(), list[int]()

    def follow() -> None:
        for row in ledger.follow(after=3, poll_seconds=3_600):
            positions.append(row.event["position"])
            has_read.set()

    follower = Thread(target=follow)
    follower.start()
    assert has_read.wait(60)
    ledger.close()
    follower.join(timeout=60)

    assert (positions, follower.is_alive()) == ([4], False)


def test_commit_has_the_position_of_each_event(ledger: rl.Ledger) -> None:
    """A commit has the id and the position of each proposed event, and whether it was appended."""
    committed = ledger.propose([build_game("g-4"), build_game("g-2"), build_game("g-4")], by="mira").commit()

    assert committed == ledger.head
    assert committed.events == (
        rl.CommittedEvent("game:g-4", 5, True),
        rl.CommittedEvent("game:g-2", 3, False),
        rl.CommittedEvent("game:g-4", 5, False),
    )


def test_proposal_names_new_players_and_close_names(ledger: rl.Ledger) -> None:
    """A proposal has the new players, and the known players with close names."""
    ledger.propose(build_game("g-4", "hannah", "ben"), by="mira").commit()

    plan = ledger.propose(build_game("g-5", "hanah", "zoe"), by="mira")

    assert plan.new_players == ("hanah", "zoe")
    assert [(close.name, close.others) for close in plan.close_names] == [("hanah", {"hannah": 1})]


def test_game_data_may_include_the_time(ledger: rl.Ledger) -> None:
    """The data of a game with `occurred_at` are recorded once, with that time."""
    data = {**build_game("g-9")["data"], "occurred_at": "2024-01-01T12:00:00Z"}

    first, again = (ledger.propose(data, by="mira").commit().events[0] for _ in range(2))

    assert (first.appended, again) == (True, rl.CommittedEvent("game:g-9", first.position, False))
    assert ledger.at().games("g-9").rows[0].occurred_at.isoformat() == "2024-01-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("based_on", "message"),
    [
        ({"gaem:g-1": 2}, "based_on names 'gaem:g-1', but none of the events is about it"),
        ({"game:g-2": 3}, "based_on names 'game:g-2'"),
        ({"game:g-1": None}, "must be an event's id or position, not None"),
        ({"game:g-1": 1.5}, "must be an event's id or position, not 1.5"),
    ],
)
def test_based_on_must_name_the_changed_events(ledger: rl.Ledger, based_on: Any, message: str) -> None:
    """`based_on` is refused unless it names events of the change with their ids or positions."""
    void = {"type": "game.voided", "data": {"game_id": "g-1", "reason": "twice"}}

    with pytest.raises(rl.BadArgument, match=message) as refusal:
        ledger.propose(void, by="mira", based_on=based_on)

    assert (refusal.value.argument, ledger.head.position) == ("based_on", 4)
    assert ledger.propose(void, by="mira", based_on={"game:g-1": 2}).commit().position == 5
