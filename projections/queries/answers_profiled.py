"""Answers that follow players on a ladder: profiles, ranks over time, and standings with what has moved."""

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from ratings_ledger.projections.queries.answers import Answer, Standing, Standings
from ratings_ledger.projections.queries.answers_explained import Change
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import COURSE, HIDDEN, LAST_POINTS, Result


@dataclass(frozen=True, slots=True)
class Streak(Result):
    """Games in a row, from the first to the last of them."""

    games: int
    first_game_id: str
    began_at: datetime
    last_game_id: str
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class PlaceCount(Result):
    """In how many games somebody had a place."""

    place: int
    games: int


@dataclass(frozen=True, slots=True)
class Opponent(Result):
    """Somebody met: in how many games, and in how many of them with a better, an equal or a worse place than theirs.

    Games without places are among `games` alone.
    """

    player: str
    games: int
    better: int
    equal: int
    worse: int


@dataclass(frozen=True, slots=True)
class Profile(Answer):
    """What a ladder says of a player, in games that count there.

    standing:  their row, None if they have none; `ranked` is how many have a rank, of all `players`
    course:    every game and adjustment, as `history` has them; on lists points are sums over games
    highest:   where their points were highest, and `lowest` where they were lowest, for the first time
    wins:      games that they won: with place 1, which nobody shared
    longest_without_win: of games with places, as all streaks; a current streak is one that the last of them is in
    places:    the places that they had, best first
    opponents: everybody they met, most often met first
    """

    player: str
    ladder: str
    ruleset: str
    at: Coordinates
    standing: Standing | None
    ranked: int
    players: int
    steps: Any = field(metadata=COURSE, repr=False, hash=False)
    highest: Change | None
    lowest: Change | None
    first_game: Change | None
    last_game: Change | None
    wins: int
    longest_wins: Streak | None
    current_wins: Streak | None
    longest_without_win: Streak | None
    current_without_win: Streak | None
    places: tuple[PlaceCount, ...]
    opponents: tuple[Opponent, ...]
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)

    @property
    def course(self) -> tuple[Change, ...]:
        """Every change, made of the `steps` of the course."""
        found: tuple[Change, ...] = self.steps.rows
        return found


@dataclass(frozen=True, slots=True)
class RankChange(Result):
    """A player's rank from a moment on, None while they have none, and how many games they had played by then.

    `position` is that of the game or adjustment; None at the end of a day, month or year.
    """

    position: int | None
    occurred_at: datetime
    rank: int | None
    games: int


@dataclass(frozen=True, slots=True)
class Ranks(Answer):
    """A player's rank on a ladder over time, where it changed: looked up after `every` step (a game or an adjustment of
    the ladder, in the order of replay), or at the end of every day, month or year in which there was one.

    Before the first row they have none. `rows` are None for a ladder that is too long.
    """

    player: str
    ladder: str
    at: Coordinates
    every: Literal["step", "day", "month", "year"]
    rows: tuple[RankChange, ...] | None


class LastUnits(NamedTuple):
    """Somebody's last points, in units of 1/`scale`, of which fractions are made only when somebody reads them."""

    units: tuple[int, ...]
    scale: int


@dataclass(frozen=True, slots=True)
class OverviewRow(Standing):
    """A row of the standings with what has moved: by how much the points and the rank changed since `Overview.since`
    (a rank that got better is a change above 0), None for who had none then or has none now; when they last played; and
    their points after each of their last games and adjustments, at most 40.
    """

    change: Fraction | None = field(kw_only=True)
    rank_change: int | None = field(kw_only=True)
    last_played: datetime | None = field(kw_only=True)
    last_units: LastUnits = field(metadata=LAST_POINTS, kw_only=True)

    @property
    def last_points(self) -> tuple[Fraction, ...]:
        """The points, exactly."""
        return tuple(Fraction(units, self.last_units.scale) for units in self.last_units.units)


@dataclass(frozen=True, slots=True)
class Overview(Standings):
    """Standings with what has moved since the end of a day or month, None on a ladder without games.

    `players` is how many rows there are of what was asked for, of which `rows` may be a part.
    """

    rows: tuple[OverviewRow, ...]
    since: datetime | None = field(kw_only=True)
    players: int = field(kw_only=True)
