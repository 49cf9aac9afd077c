"""The events of a game clock. `at` is the time of the game's server in whole milliseconds; it never decreases.

The server may count the time from any instant, such as its start or 1970, but from the same instant within a game.
Consequences of the times have no events of their own: a timer that runs out, a removal, a disconnection, a pause that
is denied or begins.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ratings_ledger.ledger.events.fields import GameId, Members, PlayerId, build_error
from ratings_ledger.ledger.rejections import quote

Choice = Literal["roll-dice", "auction-or-pass", "fortune", "sell-houses", "choose-character"]


DAY_MS = 86_400_000

Instant = Annotated[int, Field(ge=0, le=2**53 - 1)]
Duration = Annotated[int, Field(ge=0, le=DAY_MS)]
PositiveDuration = Annotated[int, Field(ge=1, le=DAY_MS)]


class ClockTimers(Members):
    """The settings of a clock. An event states only the settings that differ from the default values below.

    The default values are from Galactic Magnate's page on the points of rated games, except `pause_ms`, which that page
    does not state; it is assumed.
    """

    main_ms: PositiveDuration = 120_000
    roll_dice_ms: Duration = 4_000
    auction_or_pass_ms: Duration = 7_000
    fortune_ms: Duration = 6_000
    sell_houses_ms: Duration = 12_000
    choose_character_first_ms: Duration = 15_000  # for the first player
    choose_character_ms: Duration = 7_000  # for the other players
    reward_percent: Annotated[int, Field(ge=0, le=100)] = 50  # of the time left on the auxiliary timer
    auction_cost_ms: Duration = 20_000
    unresponsive_ms: PositiveDuration = 40_000
    pause_answer_ms: PositiveDuration = 15_000
    pause_yes: Annotated[int, Field(ge=1, le=64)] = 3  # how many players must agree; all if fewer are in the game
    pause_ms: Duration = 600_000

    def get_auxiliary_ms(self, choice: str, is_first_seat: bool) -> int:
        """Return the initial value of the auxiliary timer for a choice, for the first player or any other."""
        if choice == "choose-character" and is_first_seat:
            return self.choose_character_first_ms
        milliseconds: int = getattr(self, f"{choice.replace('-', '_')}_ms")
        return milliseconds


def _refuse_repeated_players(players: list[str]) -> list[str]:
    for player in players:
        if players.count(player) > 1:
            raise build_error("player-twice", f"{quote(player)} takes part twice; name each player once")
    return players


class ClockEvent(Members):
    """The members of every event of a clock."""

    game_id: GameId
    at: Instant


class ClockPlayerEvent(ClockEvent):
    """An event of one player without other members, such as a heartbeat, an auction or a request for a pause."""

    player: PlayerId


class ClockStarted(ClockEvent):
    """The start of a game's clock; `players` are in the order of their seats, and the first is the first to choose."""

    players: Annotated[list[PlayerId], Field(min_length=2, max_length=64), AfterValidator(_refuse_repeated_players)]
    timers: ClockTimers = ClockTimers()


class ClockOffered(ClockPlayerEvent):
    """The offer of a choice to a player; it starts their auxiliary timer."""

    choice: Choice


class ClockDecided(ClockPlayerEvent):
    """A player's decision; `choice` may state the offered choice again."""

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
# the events that change a timer; a repeated one in the same millisecond would change it twice
TIMER_CHANGING_TYPES = frozenset({"clock.offered", "clock.decided", "clock.auction_started"})
