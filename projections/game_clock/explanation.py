"""A game clock for people: every timer at an instant, and how a player's timer came about."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from ledger.rejections import Rejection
from projections.game_clock.events import replay_clock, unknown_player
from projections.game_clock.state import GameClock, PlayerClock, run_out, settle_clock


def clock_at(events: Sequence[Mapping[str, Any]], at: int | None = None) -> GameClock | Rejection:
    """The clock of a game's events after everything up to and in this millisecond; None: at the last event.

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


def show_clock(events: Sequence[Mapping[str, Any]], at: int | None = None) -> dict[str, Any] | Rejection:
    """Every timer of a game at an instant, by default the last event, ready for JSON; times in milliseconds.

    For a player, `running` is the running timer: `main`, `auxiliary` or None; `auxiliary_ms` is None without a choice.
    """
    clock = clock_at(events, at)
    if isinstance(clock, Rejection):
        return clock
    paused = clock.paused_at
    return {
        "game_id": clock.game_id,
        "at": clock.now,
        "started_at": clock.started_at,
        "recorded_until": clock.recorded_until,
        "stopped_at": clock.stopped_at,
        "pause_asked": _question(clock),
        "pause_granted_at": clock.pause_granted_at,
        "paused_at": paused,
        "pause_left_ms": None if paused is None else max(paused + clock.timers.pause_ms - clock.now, 0),
        "resume_asked": [name for name in clock.players if name in clock.resume_asked],
        "players": [_player(clock, one) for one in clock.players.values()],
    }


def _question(clock: GameClock) -> dict[str, Any] | None:
    if clock.question is None:
        return None
    said_yes = [one.player for one in clock.playing if one.player in clock.question.yes]
    asked_by, left_ms = clock.question.asked_by, clock.question.left_ms
    return {"asked_by": asked_by, "left_ms": left_ms, "yes": said_yes, "yes_needed": clock.yes_needed}


def _player(clock: GameClock, one: PlayerClock) -> dict[str, Any]:
    runs = clock.is_running and one.choice is not None
    return {
        "player": one.player,
        "main_ms": one.main_ms,
        "choice": one.choice,
        "auxiliary_ms": None if one.choice is None else one.auxiliary_ms,
        "running": ("auxiliary" if one.auxiliary_ms else "main") if runs else None,
        "removed_at": one.removed_at,
        "left_at": one.left_at,
        "disconnected_at": one.disconnected_at,
    }


def explain_clock(
    events: Sequence[Mapping[str, Any]], player: str, at: int | None = None
) -> dict[str, Any] | Rejection:
    """How a player's main timer came about, line by line, ready for JSON; it ends with their removal if there is one.

    Up to an instant, by default as far as the events lead if no more come: lines after `recorded_until` are what falls
    due then. The changes of all lines sum to the main timer; if it is running at the end, the last line says "so far".
    """
    clock = clock_at(events, at)
    if isinstance(clock, Rejection):
        return clock
    if at is None:
        run_out(clock)
    one = clock.players.get(player)
    if one is None:
        return Rejection(*unknown_player(clock, player))
    one.tell(clock.now, "", "")
    return {
        "game_id": clock.game_id,
        "player": player,
        "at": clock.now,
        "recorded_until": clock.recorded_until,
        "main_ms": one.main_ms,
        "removed_at": one.removed_at,
        "lines": [line._asdict() for line in one.lines],
    }
