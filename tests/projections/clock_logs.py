"""Clock logs from text, one event a line: `5000 anna offered roll-dice`, `9000 turn_ended`; and the clock's answers.

The tests of the clock use its engine only through this module.
"""

from typing import Any

from ratings_ledger import ClockExplanation, ClockState, Rejection
from ratings_ledger.projections.game_clock import GameClock, apply_clock_event, replay_clock
from ratings_ledger.projections.queries.clocks import build_clock_state, explain_clock

GRANTED_PAUSE = "1000 anna offered sell-houses\n2000 ben pause_asked\n2500 anna pause_answered yes"
Event = dict[str, Any]
MEMBERS = {"offered": "choice", "decided": "choice", "pause_answered": "answer"}


def build_log(text: str, players: str = "anna ben cleo dora", **timers: int) -> list[Event]:
    """Return the events of a game that these players start at 0; `timers` are those that differ from the defaults."""
    started = build_event("clock.started", at=0, players=players.split(), **({"timers": timers} if timers else {}))
    return [started, *(read_line(line) for line in text.splitlines() if line.strip())]


def read_line(line: str) -> Event:
    """Return the event that a line describes."""
    at, *words = line.split()
    if len(words) == 1:
        return build_event(f"clock.{words[0]}", at=int(at))
    player, name, *more = words
    members = {MEMBERS[name]: more[0]} if more else {}
    return build_event(f"clock.{name}", at=int(at), player=player, **members)


def build_event(type_name: str, **data: Any) -> Event:
    """Return an event of game g-1."""
    return {"type": type_name, "data": {"game_id": "g-1", **data}}


def replay(events: list[Event]) -> GameClock:
    """Return the clock after these events, which must be valid."""
    clock = replay_clock(events)
    assert isinstance(clock, GameClock), clock
    return clock


def apply_event(clock: GameClock, event: Event) -> GameClock | Rejection:
    """Return the clock after one more event, or the rejection of this event."""
    return apply_clock_event(clock, event["type"], event["data"])


def load_state(events: list[Event], at: int | None = None) -> ClockState:
    """Return the state of the clock at an instant, by default at the last event."""
    return build_clock_state(events, at)


def describe_state(text, at=None, **options):
    """Return the state of the clock as JSON; here and below, `options` are those of `build_log`."""
    return load_state(build_log(text, **options), at).model_dump()


def describe_player(text, at=None, name="anna", **options):
    """Return a player's part of the state of the clock."""
    return next(row for row in describe_state(text, at, **options)["players"] if row["player"] == name)


def read_timers(text, at=None, name="anna", **options):
    """Return a player's timers: (main timer, auxiliary timer, which of them runs)."""
    row = describe_player(text, at, name, **options)
    return row["main_ms"], row["auxiliary_ms"], row["running"]


def find_refusal(text, **options):
    """Return the first bad event as (line, code, message)."""
    return find_refusal_in(build_log(text, **options))


def find_refusal_in(events: list[Event]) -> tuple[int, str, str]:
    """Return the first bad event of a log as (line, code, message)."""
    outcome = replay_clock(events)
    assert isinstance(outcome, Rejection)
    return outcome.line, outcome.code, outcome.message


def explain(events: list[Event], name: str, at: int | None = None) -> ClockExplanation:
    """Return the clock's explanation for a player."""
    return explain_clock(events, name, at)


def list_lines(text, at=None, name="anna", **options):
    """Return the lines of an explanation as (at, what, change, main timer afterwards), and check their sum."""
    explanation = explain(build_log(text, **options), name, at).model_dump()
    assert sum(line["change_ms"] for line in explanation["lines"]) == explanation["main_ms"]
    return [(line["at"], line["what"], line["change_ms"], line["main_ms"]) for line in explanation["lines"]]


def read_pause(text, at=None, **options):
    """Return (whether a pause is requested, when it was granted, when it began)."""
    clock = describe_state(text, at, **options)
    return clock["pause_asked"] is not None, clock["pause_granted_at"], clock["paused_at"]
