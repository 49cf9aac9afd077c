"""Replay the events of a game clock up to an instant, and reject events that contradict it."""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, get_args

from ratings_ledger.ledger.events.game_clocks import Choice, ClockTimers
from ratings_ledger.ledger.rejections import Rejection, quote
from ratings_ledger.projections.game_clock.state import (
    GameClock,
    OpenPauseRequest,
    PlayerClock,
    deny_pause,
    grant_pause_if_agreed,
    remove_player,
    resume_clock,
    settle_clock,
)

Data = Mapping[str, Any]
CHOICES = get_args(Choice)


class ClockProblem(NamedTuple):
    """The reason why an event is rejected: a code, and a message with the error and the fix."""

    code: str
    message: str


def replay_clock(
    events: Sequence[Mapping[str, Any]], current: Callable[[str], str] = str
) -> GameClock | Rejection | None:
    """Replay the events of one game in order.

    Args:
        events: Mappings with `type` and `data`, already validated by the ledger's models.
        current: Returns the current id of a player.

    Returns:
        The clock, or None if there are no events; or the first rejection, whose line counts the events from 1.
    """
    clock: GameClock | None = None
    for number, event in enumerate(events, 1):
        outcome = _apply_in_place(clock, event["type"], event["data"], current)
        if isinstance(outcome, ClockProblem):
            return Rejection(*outcome, line=number)
        clock = outcome
    return clock


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


def apply_clock_event(
    clock: GameClock | None, type_name: str, data: Data, current: Callable[[str], str] = str
) -> GameClock | Rejection:
    """Return a copy of the clock after one more event, or the rejection of the event."""
    outcome = _apply_in_place(None if clock is None else clock.copy(), type_name, data, current)
    return Rejection(*outcome) if isinstance(outcome, ClockProblem) else outcome


def _apply_in_place(
    clock: GameClock | None, type_name: str, data: Data, current: Callable[[str], str]
) -> GameClock | ClockProblem:
    """Apply an event to the clock itself, and return the clock. After a problem, the clock must not be used."""
    if clock is None:
        if type_name == "clock.started":
            return _start(data, current)
        return ClockProblem(
            "clock-not-started", f"a {type_name}, but the game has no clock; record clock.started first"
        )
    problem = _check_time(clock, type_name, data["at"])
    if problem is not None:
        return problem
    settle_clock(clock, data["at"])
    clock.recorded_until = data["at"]
    if type_name in PLAYER_EVENTS:
        return _apply_player_event(clock, type_name, data) or clock
    GAME_WIDE_EVENTS[type_name](clock)
    return clock


def _start(data: Data, current: Callable[[str], str]) -> GameClock:
    timers, at = ClockTimers(**data.get("timers", {})), data["at"]
    players = {}
    for seat, name in enumerate(data["players"]):
        players[name] = PlayerClock(name, seat == 0, 0)
        players[name].add_line(at, "started", "the main timer is set", timers.main_ms)
    return GameClock(data["game_id"], timers, at, at, at, players, current=current)


def _check_time(clock: GameClock, type_name: str, at: int) -> ClockProblem | None:
    """Return the problem of an event of this type at this time, or None."""
    if type_name not in (*PLAYER_EVENTS, *GAME_WIDE_EVENTS, "clock.started"):
        types = ", ".join(("clock.started", *PLAYER_EVENTS, *GAME_WIDE_EVENTS))
        return ClockProblem("unknown-type", f"{quote(type_name)} is not a type of clock event ({types})")
    if type_name == "clock.started":
        return ClockProblem(
            "clock-started-twice",
            f"the clock of {quote(clock.game_id)} was already started at {clock.started_at}; a clock starts only once",
        )
    if clock.stopped_at is not None:
        message = f"a {type_name} at {at}, but the clock was stopped at {clock.stopped_at}; no event may follow"
        return ClockProblem("clock-stopped", message)
    if at < clock.recorded_until:
        return ClockProblem(
            "clock-time-backwards",
            f"a {type_name} at {at}, but the last event was at {clock.recorded_until}; "
            "record events in the order of the server's time",
        )
    if clock.paused_at is not None and type_name not in ALLOWED_IN_PAUSE:
        return ClockProblem(
            "clock-paused",
            f"a {type_name} at {at}, but the game has been paused since {clock.paused_at}; the pause ends when all "
            "players in the game send clock.resume_asked, or when one of them does at "
            f"{clock.paused_at + clock.timers.pause_ms} or later",
        )
    return None


def _apply_player_event(clock: GameClock, type_name: str, data: Data) -> ClockProblem | None:
    player_clock = clock.find_player(data["player"])
    if player_clock is None:
        return build_unknown_player_problem(clock, data["player"])
    if not player_clock.is_in_game:
        reason = (
            f"left at {player_clock.left_at}"
            if player_clock.removed_at is None
            else f"was removed at {player_clock.removed_at}: main timer at 0"
        )
        message = f"{quote(player_clock.player)} {reason}; a {type_name} at {clock.now} is too late"
        return ClockProblem("clock-player-out", message)
    if type_name in SIGNS_OF_LIFE:
        _record_sign_of_life(clock, player_clock)
    return PLAYER_EVENTS[type_name](clock, player_clock, data)


def build_unknown_player_problem(clock: GameClock, player: str) -> ClockProblem:
    """Build the problem of a player who is not in the game."""
    players = ", ".join(quote(name) for name in clock.players)
    return ClockProblem("clock-player-unknown", f"{quote(player)} is not playing; the clock was started for {players}")


def _record_sign_of_life(clock: GameClock, player_clock: PlayerClock) -> None:
    player_clock.silent_ms = 0
    if player_clock.disconnected_at is not None:
        player_clock.add_line(
            clock.now, "connected", f"a sign of life; had been disconnected since {player_clock.disconnected_at}"
        )
        player_clock.disconnected_at = None


def _offer(clock: GameClock, player_clock: PlayerClock, data: Data) -> ClockProblem | None:
    choice = data["choice"]
    if choice not in CHOICES:
        return ClockProblem("bad-value", f"{quote(choice)} is not a choice ({', '.join(CHOICES)})")
    if player_clock.choice is not None:
        return ClockProblem(
            "clock-choice-open",
            f"{quote(player_clock.player)} still has to choose: {player_clock.choice}; "
            "record clock.decided before the next offer",
        )
    player_clock.choice = choice
    player_clock.auxiliary_ms = clock.timers.get_auxiliary_ms(choice, player_clock.is_first_seat)
    player_clock.add_line(clock.now, "offered", f"{choice}: {player_clock.auxiliary_ms} ms until the main timer runs")
    return None


def _decide(clock: GameClock, player_clock: PlayerClock, data: Data) -> ClockProblem | None:
    decided = data.get("choice") or player_clock.choice
    if player_clock.choice is None:
        return ClockProblem(
            "clock-choice-missing", f"{quote(player_clock.player)} has nothing to choose; record clock.offered first"
        )
    if decided != player_clock.choice:
        return ClockProblem(
            "clock-choice-missing",
            f"{quote(player_clock.player)} decided {quote(decided)}, but was offered {player_clock.choice}; "
            "record a decision about the offered choice",
        )
    left, percent = player_clock.auxiliary_ms, clock.timers.reward_percent
    in_time = f"{left} ms were left; {percent} % of them are added"
    player_clock.add_line(
        clock.now, "decided", f"{decided}: {in_time if left else 'no time was left'}", left * percent // 100
    )
    player_clock.choice, player_clock.auxiliary_ms = None, 0
    return None


def _start_auction(clock: GameClock, player_clock: PlayerClock, data: Data) -> ClockProblem | None:
    cost = clock.timers.auction_cost_ms
    if player_clock.main_ms < cost:
        return ClockProblem(
            "clock-time-short",
            f"{quote(player_clock.player)} has {player_clock.main_ms} ms left on the main timer at {clock.now}; "
            f"starting an auction costs {cost} ms",
        )
    player_clock.add_line(clock.now, "auction", "started a player auction", -cost)
    if player_clock.main_ms == 0:
        remove_player(clock, player_clock)
    return None


def _ignore(clock: GameClock, player_clock: PlayerClock, data: Data) -> ClockProblem | None:
    return None


def _ask_for_pause(clock: GameClock, player_clock: PlayerClock, data: Data) -> ClockProblem | None:
    if clock.pause_request is not None:
        asker, left = quote(clock.pause_request.asked_by), clock.pause_request.left_ms
        message = f"{asker} has already asked for a pause; answer with clock.pause_answered within {left} ms"
        return ClockProblem("clock-pause-open", message)
    if clock.pause_granted_at is not None:
        message = f"a pause was already granted at {clock.pause_granted_at}; it begins at the next clock.turn_ended"
        return ClockProblem("clock-pause-open", message)
    clock.pause_request = OpenPauseRequest(
        player_clock.player, clock.timers.pause_answer_ms, frozenset({player_clock.player})
    )
    grant_pause_if_agreed(clock)
    return None


def _answer_pause(clock: GameClock, player_clock: PlayerClock, data: Data) -> ClockProblem | None:
    answer = data["answer"]
    if answer not in ("yes", "no"):
        return ClockProblem("bad-value", f"{quote(answer)} is not an answer (yes, no)")
    if clock.pause_request is None:
        # while a granted pause waits for the end of a turn, another request is refused
        remedy = "record clock.pause_asked first" if clock.pause_granted_at is None else "leave the answer out"
        message = f"no request for a pause is open at {clock.now} ({clock.pause_status}); {remedy}"
        return ClockProblem("clock-no-question", message)
    if answer == "no":
        deny_pause(clock, f"{quote(player_clock.player)} said no")
        return None
    clock.pause_request = clock.pause_request._replace(yes=clock.pause_request.yes | {player_clock.player})
    grant_pause_if_agreed(clock)
    return None


def _ask_to_resume(clock: GameClock, player_clock: PlayerClock, data: Data) -> ClockProblem | None:
    if clock.paused_at is None:
        message = (
            "the granted pause begins at the next clock.turn_ended"
            if clock.pause_granted_at is not None
            else clock.pause_status
        )
        return ClockProblem(
            "clock-not-paused", f"the game is not paused at {clock.now}, so it cannot be resumed ({message})"
        )
    clock.resume_asked_by |= {player_clock.player}
    if clock.now - clock.paused_at >= clock.timers.pause_ms:
        resume_clock(clock)
    else:
        _resume_if_all_ask(clock)
    return None


def _leave(clock: GameClock, player_clock: PlayerClock, data: Data) -> ClockProblem | None:
    player_clock.add_line(clock.now, "left", "is out of the game")
    player_clock.choice, player_clock.auxiliary_ms, player_clock.left_at = None, 0, clock.now
    grant_pause_if_agreed(clock)
    _resume_if_all_ask(clock)
    return None


def _resume_if_all_ask(clock: GameClock) -> None:
    if (
        clock.paused_at is not None
        and {player_clock.player for player_clock in clock.players_in_game} <= clock.resume_asked_by
    ):
        resume_clock(clock)


def _end_turn(clock: GameClock) -> None:
    if clock.pause_granted_at is not None:
        clock.paused_at, clock.pause_granted_at = clock.now, None
        _add_line_for_all(clock, "paused", "the turn ended; no timer runs")


def _stop(clock: GameClock) -> None:
    _add_line_for_all(clock, "stopped", "the clock is stopped")
    clock.stopped_at = clock.now


def _add_line_for_all(clock: GameClock, what: str, detail: str) -> None:
    for player_clock in clock.players_in_game:
        player_clock.add_line(clock.now, what, detail)


PLAYER_EVENTS: dict[str, Callable[[GameClock, PlayerClock, Data], ClockProblem | None]] = {
    "clock.offered": _offer,
    "clock.decided": _decide,
    "clock.auction_started": _start_auction,
    "clock.heartbeat": _ignore,
    "clock.pause_asked": _ask_for_pause,
    "clock.pause_answered": _answer_pause,
    "clock.resume_asked": _ask_to_resume,
    "clock.player_left": _leave,
}
GAME_WIDE_EVENTS: dict[str, Callable[[GameClock], None]] = {"clock.turn_ended": _end_turn, "clock.stopped": _stop}
# an offer is the server's event, and a player who has left needs no sign of life
SIGNS_OF_LIFE = PLAYER_EVENTS.keys() - {"clock.offered", "clock.player_left"}
ALLOWED_IN_PAUSE = ("clock.heartbeat", "clock.resume_asked", "clock.player_left", "clock.stopped")
