"""Clock logs as text, one event a line: `5000 anna offered roll-dice`, `9000 turn_ended`; what a clock says to it."""

from typing import Any

from ratings_ledger import Rejection
from ratings_ledger.projections.game_clock import replay_clock
from ratings_ledger.projections.queries.clocks import build_clock_state, explain_clock

GRANTED = "1000 anna offered sell-houses\n2000 ben pause_asked\n2500 anna pause_answered yes"
Event = dict[str, Any]
MEMBERS = {"offered": "choice", "decided": "choice", "pause_answered": "answer"}


def log(text: str, players: str = "anna ben cleo dora", **timers: int) -> list[Event]:
    """The events of a game, started at 0 by these players with other values of some timers."""
    started = event("clock.started", at=0, players=players.split(), **({"timers": timers} if timers else {}))
    return [started, *(read_line(line) for line in text.splitlines() if line.strip())]


def read_line(line: str) -> Event:
    """One event."""
    at, *words = line.split()
    if len(words) == 1:
        return event(f"clock.{words[0]}", at=int(at))
    player, name, *more = words
    members = {MEMBERS[name]: more[0]} if more else {}
    return event(f"clock.{name}", at=int(at), player=player, **members)


def event(type_name: str, **data: Any) -> Event:
    """An event of game g-1."""
    return {"type": type_name, "data": {"game_id": "g-1", **data}}


def state(text, at=None, **started):
    """What the clock shows."""
    return build_clock_state(log(text, **started), at).model_dump()


def player(text, at=None, name="anna", **started):
    """What the clock shows of a player."""
    return next(one for one in state(text, at, **started)["players"] if one["player"] == name)


def timers(text, at=None, name="anna", **started):
    """(main timer, auxiliary timer, which of them runs)."""
    one = player(text, at, name, **started)
    return one["main_ms"], one["auxiliary_ms"], one["running"]


def refused(text, **started):
    """(line, code, message) of the first bad event."""
    found = replay_clock(log(text, **started))
    assert isinstance(found, Rejection)
    return found.line, found.code, found.message


def explained(events, name, at=None):
    """What the clock explains of a player."""
    return explain_clock(events, name, at)


def lines(text, at=None, name="anna", **started):
    """(at, what, change, main timer after it) line by line."""
    told = explained(log(text, **started), name, at).model_dump()
    assert sum(line["change_ms"] for line in told["lines"]) == told["main_ms"]
    return [(line["at"], line["what"], line["change_ms"], line["main_ms"]) for line in told["lines"]]


def paused(text, at=None, **started):
    """(asked for, granted at, paused at)."""
    found = state(text, at, **started)
    return found["pause_asked"] is not None, found["pause_granted_at"], found["paused_at"]
