"""The events of a game clock. `at` is the time of the game's server in whole milliseconds; it never decreases.

The server may count from any moment, such as its start or 1970, but from the same one within a game. What follows from
the times alone has no event: a timer that runs out, a removal, a disconnection, a pause that is denied or begins.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ratings_ledger.ledger.events.fields import GameId, Members, PlayerId, refuse
from ratings_ledger.ledger.rejections import quote

Choice = Literal["roll-dice", "auction-or-pass", "fortune", "sell-houses", "choose-character"]


DAY_MS = 86_400_000

Instant = Annotated[int, Field(ge=0, le=2**53 - 1)]
Span = Annotated[int, Field(ge=0, le=DAY_MS)]
SpanAboveZero = Annotated[int, Field(ge=1, le=DAY_MS)]


class ClockTimers(Members):
    """The settings of a clock, in milliseconds where the name says so; an event states those that differ from these.

    All are from the page on the points of rated games of Galactic Magnate, except `pause_ms`, which is assumed because
    the page does not state it.
    """

    main_ms: SpanAboveZero = 120_000
    roll_dice_ms: Span = 4_000
    auction_or_pass_ms: Span = 7_000
    fortune_ms: Span = 6_000
    sell_houses_ms: Span = 12_000
    choose_character_first_ms: Span = 15_000  # for the first player
    choose_character_ms: Span = 7_000  # for the others
    reward_percent: Annotated[int, Field(ge=0, le=100)] = 50  # of what is left of the auxiliary timer
    auction_cost_ms: Span = 20_000
    unresponsive_ms: SpanAboveZero = 40_000
    pause_answer_ms: SpanAboveZero = 15_000
    pause_yes: Annotated[int, Field(ge=1, le=64)] = 3  # players, or all if fewer are in the game
    pause_ms: Span = 600_000

    def auxiliary_ms(self, choice: str, is_first: bool) -> int:
        """Return the initial value of the auxiliary timer for a choice, for the first player or any other."""
        if choice == "choose-character" and is_first:
            return self.choose_character_first_ms
        milliseconds: int = getattr(self, f"{choice.replace('-', '_')}_ms")
        return milliseconds


def _refuse_repeated_players(players: list[str]) -> list[str]:
    for player in players:
        if players.count(player) > 1:
            raise refuse("player-twice", f"{quote(player)} takes part twice")
    return players


class ClockEvent(Members):
    """The members of every event of a clock."""

    game_id: GameId
    at: Instant


class ClockPlayerEvent(ClockEvent):
    """An event of one player without further members: a heartbeat, an auction, a question or request, leaving."""

    player: PlayerId


class ClockStarted(ClockEvent):
    """The clock of a game starts; `players` sit in this order, and the first one chooses a character first."""

    players: Annotated[list[PlayerId], Field(min_length=2, max_length=64), AfterValidator(_refuse_repeated_players)]
    timers: ClockTimers = ClockTimers()


class ClockOffered(ClockPlayerEvent):
    """A player has to choose, which starts their auxiliary timer."""

    choice: Choice


class ClockDecided(ClockPlayerEvent):
    """A player has chosen; `choice` may repeat what was offered."""

    choice: Choice | None = None


class ClockPauseAnswered(ClockPlayerEvent):
    """A player's answer to a request for a pause."""

    answer: Literal["yes", "no"]


CLOCK_TYPES: dict[str, type[ClockEvent]] = {
    "clock.started": ClockStarted,
    "clock.offered": ClockOffered,
    "clock.decided": ClockDecided,
    "clock.auction_started": ClockPlayerEvent,
    "clock.heartbeat": ClockPlayerEvent,
    "clock.pause_asked": ClockPlayerEvent,
    "clock.pause_answered": ClockPauseAnswered,
    "clock.turn_ended": ClockEvent,
    "clock.resume_asked": ClockPlayerEvent,
    "clock.player_left": ClockPlayerEvent,
    "clock.stopped": ClockEvent,
}
# two of these in one millisecond change a timer twice
COUNTED_CLOCK_TYPES = frozenset({"clock.offered", "clock.decided", "clock.auction_started"})
