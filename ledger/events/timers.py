"""The timers of a game clock: their names, their default values, and which of them a choice starts."""

from typing import Literal, NamedTuple

Choice = Literal["roll-dice", "auction-or-pass", "fortune", "sell-houses", "choose-character"]


class Timers(NamedTuple):
    """The values of a clock, in milliseconds where the name says so.

    All are from the page on the points of rated games of Galactic Magnate, but `pause_ms`, which it does not tell:
    that is assumed.
    """

    main_ms: int = 120_000
    roll_dice_ms: int = 4_000
    auction_or_pass_ms: int = 7_000
    fortune_ms: int = 6_000
    sell_houses_ms: int = 12_000
    choose_character_first_ms: int = 15_000  # for the first player
    choose_character_ms: int = 7_000  # for the others
    reward_percent: int = 50  # of what is left of the auxiliary timer
    auction_cost_ms: int = 20_000
    unresponsive_ms: int = 40_000
    pause_answer_ms: int = 15_000
    pause_yes: int = 3  # players, or all if fewer are in the game
    pause_ms: int = 600_000

    def auxiliary_ms(self, choice: str, is_first: bool) -> int:
        """What the auxiliary timer of a choice is set to, for the first player or another one."""
        if choice == "choose-character" and is_first:
            return self.choose_character_first_ms
        found: int = getattr(self, f"{choice.replace('-', '_')}_ms")
        return found
