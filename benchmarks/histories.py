"""Describe the games to draw: a history by size and seed. This module is small, so that importing it is cheap."""

from math import gcd
from typing import NamedTuple

CHUNK_GAMES = 50_000
GAMES_PER_PLAYER = 100
PLAYERS_MIN = 50
LADDER_PLAYERS = 12
SPAN_DAYS = 14 * 365  # the days over which games are spread


class History(NamedTuple):
    """The games to draw: `games` games with two to six players each, or `size` players, on `ladders` ladders.

    With `late`, one game in a hundred is recorded late: up to a month after games that were played after it.
    """

    games: int
    size: int | None = None
    ladders: int = 1
    late: bool = True
    seed: int = 1

    @property
    def name(self) -> str:
        """Return a name for files."""
        order = "" if self.late else "-in-order"
        return f"{self.games}-games-of-{self.size or 'any'}-on-{self.ladders}{order}-seed-{self.seed}"

    @property
    def players(self) -> int:
        """Return the number of players to draw from."""
        if self.ladders > 1:
            return self.ladders * LADDER_PLAYERS
        return max(PLAYERS_MIN, self.games // GAMES_PER_PLAYER)

    @property
    def chunks(self) -> int:
        """Return the number of chunks of games."""
        return -(-self.games // CHUNK_GAMES)

    @property
    def stride(self) -> int:
        """Return a number coprime to the number of players, to spread the active players over the ids."""
        stride = int(self.players * 0.618) | 1
        while gcd(stride, self.players) != 1:
            stride += 2
        return stride

    def player_at(self, rank: int) -> int:
        """Return the number of the player at a rank by activity, from 0, if all are on one ladder."""
        return (rank * self.stride + 7) % self.players


def game_id(number: int) -> str:
    """Return the id of a game."""
    return f"g-{number:08d}"


def player_id(number: int) -> str:
    """Return the id of a player."""
    return f"player-{number}"
