"""A game's clock at an instant."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from ratings_ledger.ledger.rejections import Rejection
from ratings_ledger.projections.game_clock.events import replay_clock
from ratings_ledger.projections.game_clock.state import GameClock, settle_clock


def clock_at(events: Sequence[Mapping[str, Any]], at: int | None = None) -> GameClock | Rejection:
    """Return the clock of a game's events after everything up to and in this millisecond; None: at the last event.

    A problem anywhere in the events is returned, whatever the instant.
    """
    clock = replay_clock(events)
    if at is not None and isinstance(clock, GameClock):
        if at < clock.started_at:
            return Rejection(
                "clock-not-started", f"at {at} the clock had not been started yet; it was started at {clock.started_at}"
            )
        clock = replay_clock(list(takewhile(lambda event: event["data"]["at"] <= at, events)))
        assert isinstance(clock, GameClock)
        settle_clock(clock, at)
    return clock or Rejection("clock-not-started", "this game's clock has no events")
