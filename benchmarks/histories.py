"""Which games are drawn: a history by size and seed. Light, so that a process that only names one stays small."""

from math import gcd
from typing import NamedTuple

CHUNK_GAMES = 50_000
GAMES_PER_PLAYER = 100
PLAYERS_MIN = 50
LADDER_PLAYERS = 12
SPAN_DAYS = 14 * 365  # over which games are spread


class History(NamedTuple):
    """What is drawn: `games` games, of two to six players or all of `size`, spread over `ladders` ladders.

    With `late`, one game in a hundred is recorded up to a month after games that were played later.
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
        """Return how many players there are to draw from."""
        if self.ladders > 1:
            return self.ladders * LADDER_PLAYERS
        return max(PLAYERS_MIN, self.games // GAMES_PER_PLAYER)

    @property
    def chunks(self) -> int:
        """Return how many chunks the games come in."""
        return -(-self.games // CHUNK_GAMES)

    @property
    def stride(self) -> int:
        """Return a number coprime to the number of players, to spread the active ones over the ids."""
        stride = int(self.players * 0.618) | 1
        while gcd(stride, self.players) != 1:
            stride += 2
        return stride

    def player_at(self, rank: int) -> int:
        """Return the number of the player with `rank` more active players ahead, where all are on one ladder."""
        return (rank * self.stride + 7) % self.players


def game_id(number: int) -> str:
    """Return the id of a game."""
    return f"g-{number:08d}"


def player_id(number: int) -> str:
    """Return the id of a player."""
    return f"player-{number}"
