"""Read the clock logs of games from the ledger, and validate events as they are appended."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import is_live
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.log import Log, head, read_live
from ratings_ledger.ledger.validation.identities import Identities, read_identities
from ratings_ledger.projections.game_clock.events import apply_clock_event, replay_clock
from ratings_ledger.projections.game_clock.state import GameClock
from ratings_ledger.projections.rulesets.versions import Version, in_force

Rulesets = Mapping[str, Sequence[Version]]


def complete_timers(rulesets: Rulesets, type_name: str, occurred_at: int, data: dict[str, Any]) -> dict[str, Any]:
    """Complete the data of a clock event for replay: add to `clock.started` the timers that it lacks, from a ruleset.

    The timers come from the first ruleset whose version in force at the time has timers. Without one, the defaults
    apply.
    """
    if type_name != "clock.started":
        return data
    for versions in rulesets.values():
        version = in_force(versions, occurred_at)
        timers = None if version is None else getattr(version.params, "timers", None)
        if timers is not None:
            return {**data, "timers": {**timers.model_dump(), **data.get("timers", {})}}
    return data


def load_clock_events(
    connection: Connection, rulesets: Rulesets, game_id: str, until: int | None = None
) -> list[dict[str, Any]]:
    """Load the live events of a game's clock up to a position, in order, each with its `type` and `data`."""
    log = Log(connection) if until is None else Log(connection, until)
    events = [event for event in log.about(f"clock:{game_id}") if is_live(log, event)]
    return [{"type": e.type, "data": complete_timers(rulesets, e.type, e.occurred_at, e.data)} for e in events]


class Clocks:
    """The states of game clocks, given the recorded events and the pending events added so far."""

    def __init__(self, connection: Connection, rulesets: Rulesets, until: int | None = None) -> None:
        self._until = until
        self._connection = connection
        self._rulesets = rulesets
        self._events: dict[str, list[dict[str, Any]]] = {}
        self._clocks: dict[str, GameClock | None] = {}

    def add_event(self, type_name: str, occurred_at: int, data: dict[str, Any]) -> None:
        """Add an event to its clock. Raises `Refused` if it contradicts earlier events."""
        self._load(data["game_id"])
        data = complete_timers(self._rulesets, type_name, occurred_at, data)
        outcome = apply_clock_event(self._clocks[data["game_id"]], type_name, data, self._people.current)
        if isinstance(outcome, Rejection):
            raise Refused(outcome.code, outcome.message)
        self._clocks[data["game_id"]] = outcome
        self._events[data["game_id"]].append({"type": type_name, "data": data})

    def withdraw_event(self, type_name: str, data: dict[str, Any]) -> None:
        """Withdraw the last event of a clock. Raises `Refused` (still-needed) if the event is not the last."""
        self._load(data["game_id"])
        events = self._events[data["game_id"]]
        if not events or (events[-1]["type"], events[-1]["data"]["at"]) != (type_name, data["at"]):
            message = f"later events of the clock of {quote(data['game_id'])} depend on this event"
            raise Refused("still-needed", f"{message}; void those first, beginning with the last")
        events.pop()
        clock = replay_clock(events, self._people.current)
        assert not isinstance(clock, Rejection)
        self._clocks[data["game_id"]] = clock

    def rename(self, player: str, new_player: str) -> None:
        """Apply a rename.

        Raises `Refused` (players-met) if an event of a clock could then belong to either of two players.
        """
        valid_games = self._list_valid_games(self._people.ids(player) | self._people.ids(new_player))
        self._people.add(player, new_player)
        if (game_id := self._find_invalid_game(valid_games)) is not None:
            self._people.remove(player)
            message = f"{quote(player)} and {quote(new_player)} are both on the clock of {quote(game_id)}"
            remedy = "if that clock is wrong, void its events first, beginning with the last"
            raise Refused("players-met", f"{message}, so they cannot be one person; {remedy}")

    def rename_back(self, player: str, new_player: str) -> None:
        """Withdraw a rename. Raises `Refused` (still-needed) if events of a clock would then name an unknown player."""
        valid_games = self._list_valid_games(self._people.ids(player))
        self._people.remove(player)
        if (game_id := self._find_invalid_game(valid_games)) is not None:
            self._people.add(player, new_player)
            message = f"events of the clock of {quote(game_id)} name a player by the id from this rename"
            raise Refused("still-needed", f"{message}; void these events first, beginning with the last")

    def _list_valid_games(self, ids: set[str]) -> list[str]:
        """Load the clocks of these players' games; return all loaded games whose clocks are valid."""
        until = head(self._connection).position if self._until is None else self._until
        started = read_live(self._connection, until=until, type_name="clock.started")
        for event in started:
            if not ids.isdisjoint(event.data["players"]):
                self._load(event.data["game_id"])
        return [game_id for game_id, clock in self._clocks.items() if clock is not None]

    def _find_invalid_game(self, games: list[str]) -> str | None:
        """Return the first of some games whose clock is invalid, or None."""
        for game_id in games:
            if isinstance(replay_clock(self._events[game_id], self._people.current), Rejection):
                return game_id
        return None

    @cached_property
    def _people(self) -> Identities:
        return read_identities(self._connection, self._until)

    def _load(self, game_id: str) -> None:
        if game_id not in self._events:
            self._events[game_id] = load_clock_events(self._connection, self._rulesets, game_id, self._until)
            clock = replay_clock(self._events[game_id], self._people.current)
            # if another program appended invalid events, validate further events as those of a new clock
            self._clocks[game_id] = None if isinstance(clock, Rejection) else clock
