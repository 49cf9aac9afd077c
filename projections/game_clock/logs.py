"""The clock logs of games: read from the ledger, and validated event by event as they are appended."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from ledger.events.revisions import is_live
from ledger.rejections import Refused, Rejection, shown
from ledger.store.log import Log
from projections.game_clock.events import replay_clock, take_event
from projections.game_clock.state import GameClock
from projections.rulesets.versions import Version, in_force

Rulesets = Mapping[str, Sequence[Version]]


def timed(rulesets: Rulesets, type_name: str, occurred_at: int, data: dict[str, Any]) -> dict[str, Any]:
    """A clock event as it is replayed: a start has all timers, those it does not state from the ruleset.

    That is the first ruleset with timers, in its version in force then; without one the defaults hold.
    """
    if type_name != "clock.started":
        return data
    for versions in rulesets.values():
        version = in_force(versions, occurred_at)
        timers = None if version is None else getattr(version.params, "timers", None)
        if timers is not None:
            return {**data, "timers": {**timers.model_dump(), **data.get("timers", {})}}
    return data


def clock_events(
    connection: Connection, rulesets: Rulesets, game_id: str, until: int | None = None
) -> list[dict[str, Any]]:
    """The live events of a game's clock up to a position, in order, each with its `type` and `data`."""
    log = Log(connection) if until is None else Log(connection, until)
    events = [event for event in log.about(f"clock:{game_id}") if is_live(log, event)]
    return [{"type": e.type, "data": timed(rulesets, e.type, e.occurred_at, e.data)} for e in events]


class Clocks:
    """The clocks of the requested games, as the ledger and the pending events before an event leave them."""

    def __init__(self, connection: Connection, rulesets: Rulesets, until: int | None = None) -> None:
        self._until = until
        self._connection = connection
        self._rulesets = rulesets
        self._events: dict[str, list[dict[str, Any]]] = {}
        self._clocks: dict[str, GameClock | None] = {}

    def take(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Take one more event of a clock. Raises `Refused` if it contradicts those before it."""
        self._load(data["game_id"])
        data = timed(self._rulesets, type_name, occurred_at, data)
        found = take_event(self._clocks[data["game_id"]], type_name, data)
        if isinstance(found, Rejection):
            raise Refused(found.code, found.message)
        self._clocks[data["game_id"]] = found
        self._events[data["game_id"]].append({"type": type_name, "data": data})

    def release(self, type_name: str, data: dict[str, Any]) -> None:
        """Withdraw the last event of a clock. Raises `Refused` (still-needed) if it is not the last."""
        self._load(data["game_id"])
        events = self._events[data["game_id"]]
        if not events or (events[-1]["type"], events[-1]["data"]["at"]) != (type_name, data["at"]):
            raise Refused("still-needed", f"later events of the clock of {shown(data['game_id'])} depend on it")
        events.pop()
        clock = replay_clock(events)
        assert not isinstance(clock, Rejection)
        self._clocks[data["game_id"]] = clock

    def _load(self, game_id: str) -> None:
        if game_id not in self._events:
            self._events[game_id] = clock_events(self._connection, self._rulesets, game_id, self._until)
            clock = replay_clock(self._events[game_id])
            # a log that contradicts itself was appended by another program: what follows it is validated from scratch
            self._clocks[game_id] = None if isinstance(clock, Rejection) else clock
