"""Replay a game's clock up to an instant."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.projections.game_clock.events import replay_clock
from ratings_ledger.projections.game_clock.state import GameClock, settle_clock


def clock_at(events: Sequence[Mapping[str, Any]], at: int | None = None) -> GameClock | Rejection:
    """Return the clock at an instant, after all events in that millisecond; by default, at the last event.

    If an event is invalid, return its rejection, even if the event is later than the instant. Before the start of the
    clock, or without events, return a rejection, too.
    """
    clock = replay_clock(events)
    if at is not None and isinstance(clock, GameClock):
        if at < clock.started_at:
            return Rejection(
                "clock-not-started", f"the clock was not running at {at}; it was started at {clock.started_at}"
            )
        clock = replay_clock(list(takewhile(lambda event: event["data"]["at"] <= at, events)))
        assert isinstance(clock, GameClock)
        settle_clock(clock, at)
    return clock or Rejection("clock-not-started", "this game's clock has no events")
