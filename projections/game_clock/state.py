"""Model the state of a game clock. Time advances from one due change to the next, without ticking.

A timer that reaches 0 runs out in that millisecond, before the events recorded in the same millisecond. Changes due at
the same time happen in this order: the end of a request for a pause, removals, disconnections; players in the order of
seats.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from ratings_ledger.ledger.events.game_clocks import ClockTimers


class ClockLine(NamedTuple):
    """A line of a player's clock: the instant, what happened, the main timer's change and new value, and a detail."""

    at: int
    what: str
    change_ms: int
    main_ms: int
    detail: str


@dataclass
class PlayerClock:
    """One player's timers at the clock's `now`, and the lines of the clock so far.

    A player is in the game until they are removed or leave. `ran_ms` is the time that the main timer has lost since
    `ran_since`, for which there is no line yet.
    """

    player: str
    is_first_seat: bool  # has a different time for choose-character
    main_ms: int
    choice: str | None = None
    auxiliary_ms: int = 0
    ran_ms: int = 0
    ran_since: int = 0
    silent_ms: int = 0  # since the last sign of life, without pauses
    played_ms: int = 0  # without pauses
    removed_at: int | None = None
    left_at: int | None = None
    disconnected_at: int | None = None
    lines: list[ClockLine] = field(default_factory=list)

    @property
    def is_in_game(self) -> bool:
        """Tell whether the player is still in the game; a disconnected player is."""
        return self.removed_at is None and self.left_at is None

    def run(self, now: int, ms: int) -> None:
        """Let time pass: the auxiliary timer of an open choice runs down first, then the main timer."""
        self.silent_ms += ms
        self.played_ms += ms
        if self.choice is None:
            return
        overrun = max(ms - self.auxiliary_ms, 0)
        self.auxiliary_ms -= ms - overrun
        if overrun:
            self.ran_since = self.ran_since if self.ran_ms else now + ms - overrun
            self.main_ms -= overrun
            self.ran_ms += overrun

    def add_line(self, at: int, what: str, detail: str, change_ms: int = 0) -> None:
        """Add a line, and change the main timer by `change_ms`; time already lost gets its own line first.

        If `what` is empty, add only the line for time already lost.
        """
        if self.ran_ms:
            detail_ran = f"the auxiliary timer for {self.choice} ran out; the main timer ran from {self.ran_since}"
            self.lines.append(ClockLine(at, "ran", -self.ran_ms, self.main_ms, detail_ran))
            self.ran_ms = 0
        if what:
            self.main_ms += change_ms
            self.lines.append(ClockLine(at, what, change_ms, self.main_ms, detail))


class OpenPauseRequest(NamedTuple):
    """An open request for a pause: the time left for answers, and the players who said yes, including the asker."""

    asked_by: str
    left_ms: int
    yes: frozenset[str]


@dataclass
class GameClock:
    """The clock of a game at `now`; its last event was at `recorded_until`.

    A granted pause begins when the turn ends. `pause_status` describes the result of the last request for a pause.
    `current` returns the current id of a player, because events may name any of a player's ids.
    """

    game_id: str
    timers: ClockTimers
    started_at: int
    now: int
    recorded_until: int
    players: dict[str, PlayerClock]
    pause_request: OpenPauseRequest | None = None
    pause_granted_at: int | None = None
    paused_at: int | None = None
    resume_asked_by: frozenset[str] = frozenset()
    stopped_at: int | None = None
    pause_status: str = "no player has asked for a pause yet"
    current: Callable[[str], str] = str

    @property
    def is_running(self) -> bool:
        """Tell whether timers run: the clock is neither paused nor stopped."""
        return self.paused_at is None and self.stopped_at is None

    @property
    def players_in_game(self) -> list[PlayerClock]:
        """Return the players who are still in the game."""
        return [player_clock for player_clock in self.players.values() if player_clock.is_in_game]

    @property
    def yes_needed(self) -> int:
        """Return the number of players who must agree to a pause."""
        return min(self.timers.pause_yes, len(self.players_in_game))

    def find_player(self, player: str) -> PlayerClock | None:
        """Return the clock of a player by any of their ids; None unless exactly one player has the id."""
        if player in self.players:
            return self.players[player]
        person = self.current(player)
        clocks = [player_clock for name, player_clock in self.players.items() if self.current(name) == person]
        return clocks[0] if len(clocks) == 1 else None

    def copy(self) -> "GameClock":
        """Return a copy that can be changed without changing this clock."""
        players = {
            name: replace(player_clock, lines=[*player_clock.lines]) for name, player_clock in self.players.items()
        }
        return replace(self, players=players)


class Due(NamedTuple):
    """A change that `apply` makes in `wait_ms`, unless an event comes first."""

    wait_ms: int
    apply: Callable[[], None]


def settle_clock(clock: GameClock, at: int) -> None:
    """Let time pass until `at`, and apply all changes that are due up to and including that millisecond."""
    while (due := find_next_due(clock)) is not None and due.wait_ms <= at - clock.now:
        _pass_time(clock, due.wait_ms)
        due.apply()
    if clock.is_running:
        _pass_time(clock, at - clock.now)
    clock.now = at


def settle_completely(clock: GameClock) -> None:
    """Let time pass until no more change is due."""
    while (due := find_next_due(clock)) is not None:
        settle_clock(clock, clock.now + due.wait_ms)


def find_next_due(clock: GameClock) -> Due | None:
    """Return the next change that happens without an event, or None."""
    return min(_list_due(clock), key=lambda due: due.wait_ms, default=None) if clock.is_running else None


def _list_due(clock: GameClock) -> Iterator[Due]:
    # of changes that are due at the same time, the first in this order happens first
    if clock.pause_request is not None:
        yield Due(clock.pause_request.left_ms, partial(deny_pause, clock, "the time for answers was over"))
    for player_clock in clock.players_in_game:
        if player_clock.choice is not None:
            yield Due(player_clock.auxiliary_ms + player_clock.main_ms, partial(remove_player, clock, player_clock))
    for player_clock in clock.players_in_game:
        if player_clock.disconnected_at is None:
            yield Due(clock.timers.unresponsive_ms - player_clock.silent_ms, partial(_disconnect, clock, player_clock))


def _pass_time(clock: GameClock, ms: int) -> None:
    for player_clock in clock.players_in_game:
        player_clock.run(clock.now, ms)
    if clock.pause_request is not None:
        clock.pause_request = clock.pause_request._replace(left_ms=clock.pause_request.left_ms - ms)
    clock.now += ms


def remove_player(clock: GameClock, player_clock: PlayerClock) -> None:
    """Remove a player whose main timer is at 0."""
    player_clock.add_line(clock.now, "removed", "the main timer is at 0")
    player_clock.choice, player_clock.removed_at = None, clock.now
    grant_pause_if_agreed(clock)


def _disconnect(clock: GameClock, player_clock: PlayerClock) -> None:
    player_clock.disconnected_at = clock.now
    player_clock.add_line(clock.now, "disconnected", f"no sign of life for {player_clock.silent_ms} ms")


def grant_pause_if_agreed(clock: GameClock) -> None:
    """Grant the requested pause if enough players in the game have agreed."""
    if clock.pause_request is None:
        return
    yes = sum(player_clock.player in clock.pause_request.yes for player_clock in clock.players_in_game)
    if yes >= clock.yes_needed > 0:
        clock.pause_request, clock.pause_granted_at = None, clock.now
        clock.pause_status = f"the last pause was granted at {clock.now}"


def deny_pause(clock: GameClock, reason: str) -> None:
    """End the open request for a pause without a pause."""
    clock.pause_request = None
    clock.pause_status = f"the last pause was denied at {clock.now}: {reason}"


def resume_clock(clock: GameClock) -> None:
    """End the pause; every timer continues where it stopped."""
    clock.paused_at, clock.resume_asked_by = None, frozenset()
    clock.pause_status = f"the last pause ended at {clock.now}"
    for player_clock in clock.players_in_game:
        player_clock.add_line(clock.now, "resumed", "the pause is over; the timers go on")
