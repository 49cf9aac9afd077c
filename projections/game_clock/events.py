"""What each event does to a game clock, and why a clock cannot take it: logs that contradict themselves."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from ratings_ledger.ledger.events.game_clocks import Choice, ClockTimers
from ratings_ledger.ledger.rejections import Rejection, shown
from ratings_ledger.projections.game_clock.state import (
    GameClock,
    PauseQuestion,
    PlayerClock,
    count_yes,
    deny_pause,
    remove,
    resume,
    settle_clock,
)

Data = Mapping[str, Any]
CHOICES = get_args(Choice)


class ClockProblem(NamedTuple):
    """Why an event cannot be taken: a code, what is wrong, and what would be right."""

    code: str
    message: str


def replay_clock(
    events: Sequence[Mapping[str, Any]], current: Callable[[str], str] = str
) -> GameClock | Rejection | None:
    """Return the clock after the events of one game, in order, or what is wrong with the first bad one (lines count
    from 1).

    None without events. Each event is a mapping with `type` and `data`, already validated by the ledger's models;
    `current` gives the id that a player now has.
    """
    clock: GameClock | None = None
    for number, event in enumerate(events, 1):
        found = _apply(clock, event["type"], event["data"], current)
        if isinstance(found, ClockProblem):
            return Rejection(*found, line=number)
        clock = found
    return clock


def take_event(
    clock: GameClock | None, type_name: str, data: Data, current: Callable[[str], str] = str
) -> GameClock | Rejection:
    """Return the clock after one more event, or why the event cannot be taken; the given clock is left as it is."""
    found = _apply(None if clock is None else clock.copy(), type_name, data, current)
    return Rejection(*found) if isinstance(found, ClockProblem) else found


def _apply(
    clock: GameClock | None, type_name: str, data: Data, current: Callable[[str], str]
) -> GameClock | ClockProblem:
    """Return the same clock with the event applied. After a problem it must not be used."""
    if clock is None:
        if type_name == "clock.started":
            return _start(data, current)
        return ClockProblem("clock-not-started", f"a {type_name} without a clock; clock.started comes first")
    problem = _refuse_moment(clock, type_name, data["at"])
    if problem is not None:
        return problem
    settle_clock(clock, data["at"])
    clock.recorded_until = data["at"]
    if type_name in PLAYER_EVENTS:
        return _of_player(clock, type_name, data) or clock
    GAME_EVENTS[type_name](clock)
    return clock


def _start(data: Data, current: Callable[[str], str]) -> GameClock:
    timers, at = ClockTimers(**data.get("timers", {})), data["at"]
    players = {}
    for seat, name in enumerate(data["players"]):
        players[name] = PlayerClock(name, seat == 0, 0)
        players[name].tell(at, "started", "the main timer is set", timers.main_ms)
    return GameClock(data["game_id"], timers, at, at, at, players, current=current)


def _refuse_moment(clock: GameClock, type_name: str, at: int) -> ClockProblem | None:
    """Return why nothing of this type can happen then, or None."""
    if type_name not in (*PLAYER_EVENTS, *GAME_EVENTS, "clock.started"):
        return ClockProblem("unknown-type", f"{shown(type_name)} is not an event of a clock")
    if type_name == "clock.started":
        return ClockProblem(
            "clock-started-twice",
            f"the clock of {shown(clock.game_id)} was already started at {clock.started_at}; a clock is started once",
        )
    if clock.stopped_at is not None:
        return ClockProblem("clock-stopped", f"the clock was stopped at {clock.stopped_at}; nothing comes after that")
    if at < clock.recorded_until:
        return ClockProblem(
            "clock-time-backwards",
            f"at {at} is before the last event, at {clock.recorded_until}; the server's time never decreases",
        )
    if clock.paused_at is not None and type_name not in IN_A_PAUSE:
        return ClockProblem(
            "clock-paused",
            f"a {type_name} at {at}, but the game has been paused since {clock.paused_at}; clock.resume_asked ends it",
        )
    return None


def _of_player(clock: GameClock, type_name: str, data: Data) -> ClockProblem | None:
    one = clock.find(data["player"])
    if one is None:
        return unknown_player(clock, data["player"])
    if not one.plays:
        how = (
            f"left at {one.left_at}" if one.removed_at is None else f"was removed at {one.removed_at}: main timer at 0"
        )
        message = f"{shown(one.player)} {how}; a {type_name} at {clock.now} is too late"
        return ClockProblem("clock-player-out", message)
    if type_name in SIGNS_OF_LIFE:
        _hear(clock, one)
    return PLAYER_EVENTS[type_name](clock, one, data)


def unknown_player(clock: GameClock, player: str) -> ClockProblem:
    """Return nobody of this name is playing."""
    known = ", ".join(shown(name) for name in clock.players)
    return ClockProblem("clock-player-unknown", f"{shown(player)} is not playing; the clock was started for {known}")


def _hear(clock: GameClock, one: PlayerClock) -> None:
    one.silent_ms = 0
    if one.disconnected_at is not None:
        one.tell(clock.now, "connected", f"a sign of life; was disconnected since {one.disconnected_at}")
        one.disconnected_at = None


def _offered(clock: GameClock, one: PlayerClock, data: Data) -> ClockProblem | None:
    choice = data["choice"]
    if choice not in CHOICES:
        return ClockProblem("bad-value", f"{shown(choice)} is not a choice ({', '.join(CHOICES)})")
    if one.choice is not None:
        return ClockProblem(
            "clock-choice-open",
            f"{shown(one.player)} still has to choose: {one.choice}; clock.decided comes before the next offer",
        )
    one.choice, one.auxiliary_ms = choice, clock.timers.auxiliary_ms(choice, one.is_first)
    one.tell(clock.now, "offered", f"{choice}: {one.auxiliary_ms} ms until the main timer runs")
    return None


def _decided(clock: GameClock, one: PlayerClock, data: Data) -> ClockProblem | None:
    decided = data.get("choice") or one.choice
    if one.choice is None:
        return ClockProblem(
            "clock-choice-missing", f"{shown(one.player)} has nothing to choose; clock.offered comes first"
        )
    if decided != one.choice:
        return ClockProblem(
            "clock-choice-missing", f"{shown(one.player)} was offered {one.choice}, not {shown(decided)}"
        )
    left, percent = one.auxiliary_ms, clock.timers.reward_percent
    in_time = f"{left} ms were left; {percent} % of them are added"
    one.tell(clock.now, "decided", f"{decided}: {in_time if left else 'no time was left'}", left * percent // 100)
    one.choice, one.auxiliary_ms = None, 0
    return None


def _auction_started(clock: GameClock, one: PlayerClock, data: Data) -> ClockProblem | None:
    cost = clock.timers.auction_cost_ms
    if one.main_ms < cost:
        return ClockProblem(
            "clock-time-short",
            f"{shown(one.player)} has {one.main_ms} ms left on the main timer at {clock.now}; starting an auction "
            f"costs {cost} ms",
        )
    one.tell(clock.now, "auction", "started a player auction", -cost)
    if one.main_ms == 0:
        remove(clock, one)
    return None


def _heartbeat(clock: GameClock, one: PlayerClock, data: Data) -> ClockProblem | None:
    return None


def _pause_asked(clock: GameClock, one: PlayerClock, data: Data) -> ClockProblem | None:
    if clock.question is not None:
        who, left = shown(clock.question.asked_by), clock.question.left_ms
        message = f"{who} has already asked for a pause, {left} ms are left to answer; answer with clock.pause_answered"
        return ClockProblem("clock-pause-open", message)
    if clock.pause_granted_at is not None:
        message = f"a pause was already granted at {clock.pause_granted_at}; it begins at the next clock.turn_ended"
        return ClockProblem("clock-pause-open", message)
    clock.question = PauseQuestion(one.player, clock.timers.pause_answer_ms, frozenset({one.player}))
    count_yes(clock)
    return None


def _pause_answered(clock: GameClock, one: PlayerClock, data: Data) -> ClockProblem | None:
    answer = data["answer"]
    if answer not in ("yes", "no"):
        return ClockProblem("bad-value", f"{shown(answer)} is not an answer (yes, no)")
    if clock.question is None:
        return ClockProblem("clock-no-question", f"nobody is asking for a pause at {clock.now} ({clock.pause_told})")
    if answer == "no":
        deny_pause(clock, f"{shown(one.player)} said no")
        return None
    clock.question = clock.question._replace(yes=clock.question.yes | {one.player})
    count_yes(clock)
    return None


def _resume_asked(clock: GameClock, one: PlayerClock, data: Data) -> ClockProblem | None:
    if clock.paused_at is None:
        told = (
            "a granted one begins at the next clock.turn_ended"
            if clock.pause_granted_at is not None
            else clock.pause_told
        )
        return ClockProblem(
            "clock-not-paused", f"the game is not paused at {clock.now}, so it cannot be resumed ({told})"
        )
    clock.resume_asked |= {one.player}
    if clock.now - clock.paused_at >= clock.timers.pause_ms:
        resume(clock)
    else:
        _resume_if_all_ask(clock)
    return None


def _player_left(clock: GameClock, one: PlayerClock, data: Data) -> ClockProblem | None:
    one.tell(clock.now, "left", "is out of the game")
    one.choice, one.auxiliary_ms, one.left_at = None, 0, clock.now
    count_yes(clock)
    _resume_if_all_ask(clock)
    return None


def _resume_if_all_ask(clock: GameClock) -> None:
    if clock.paused_at is not None and {one.player for one in clock.playing} <= clock.resume_asked:
        resume(clock)


def _turn_ended(clock: GameClock) -> None:
    if clock.pause_granted_at is not None:
        clock.paused_at, clock.pause_granted_at = clock.now, None
        _tell_all(clock, "paused", "the turn ended; no timer runs")


def _stopped(clock: GameClock) -> None:
    _tell_all(clock, "stopped", "the clock is stopped")
    clock.stopped_at = clock.now


def _tell_all(clock: GameClock, what: str, detail: str) -> None:
    for one in clock.playing:
        one.tell(clock.now, what, detail)


PLAYER_EVENTS: dict[str, Callable[[GameClock, PlayerClock, Data], ClockProblem | None]] = {
    "clock.offered": _offered,
    "clock.decided": _decided,
    "clock.auction_started": _auction_started,
    "clock.heartbeat": _heartbeat,
    "clock.pause_asked": _pause_asked,
    "clock.pause_answered": _pause_answered,
    "clock.resume_asked": _resume_asked,
    "clock.player_left": _player_left,
}
GAME_EVENTS: dict[str, Callable[[GameClock], None]] = {"clock.turn_ended": _turn_ended, "clock.stopped": _stopped}
# an offer comes from the server, and a player may leave by bankruptcy
SIGNS_OF_LIFE = PLAYER_EVENTS.keys() - {"clock.offered", "clock.player_left"}
IN_A_PAUSE = ("clock.heartbeat", "clock.resume_asked", "clock.player_left", "clock.stopped")
