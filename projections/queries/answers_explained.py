"""Answers that say why: what changed points, how a game did, and how a place comes about."""

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from ratings_ledger.projections.queries.answers import Account, Answer
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, ROWS, SPREAD, Absent, Result


@dataclass(frozen=True, slots=True)
class Shown(Result):
    """What a published list showed instead: its position in the log, its `as_of`, the points or None if nothing."""

    position: int
    as_of: datetime | None
    points: Fraction | None


@dataclass(frozen=True, slots=True)
class Change(Result):
    """What a game or an adjustment did to a player; an adjustment has a `reason` and no game.

    `published` are lists that showed other points then; `revised_at` is when the game was corrected last, or counted
    again, None for one that stands as it was recorded. `game` is the game as it stands, with its players' current ids.
    """

    position: int
    event_id: str
    game_id: str | None
    occurred_at: datetime
    place: int | None
    before: Fraction
    change: Fraction
    after: Fraction
    ruleset: str | None
    reason: str | Absent = ABSENT
    published: tuple[Shown, ...] | Absent = ABSENT
    revised_at: datetime | None = field(default=None, metadata=HIDDEN, kw_only=True)
    game: dict[str, Any] | None = field(default=None, metadata=HIDDEN, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class PlayerChange(Result):
    """A change of somebody's points."""

    player: str
    change: Change = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True)
class History(Answer):
    """Every change of a player's points on a ladder, in the order of replay."""

    player: str
    ladder: str
    at: Coordinates
    steps: Any = field(metadata=ROWS, repr=False, hash=False)
    sums_lists: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)

    @property
    def rows(self) -> tuple[Change, ...]:
        """Every change, made of the `steps` of the course."""
        found: tuple[Change, ...] = self.steps.rows
        return found


@dataclass(frozen=True, slots=True)
class ExplainedTerm(Result):
    """A part of what a game changed, or of what a list makes of somebody; `amount` is None where a term has none."""

    term: str
    amount: Fraction | None
    detail: str
    note: str | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class Explained(Result):
    """What a game did to a player, term by term; `why_not` if the player does not count in it."""

    player: str
    before: Fraction
    change: Fraction
    after: Fraction
    terms: tuple[ExplainedTerm, ...]
    why_not: str | Absent
    place: int | None


@dataclass(frozen=True, slots=True)
class GameExplanation(Answer):
    """Why a game changed the points of a ladder as it did, or in `why_not` why it does not count there.

    `assumed` is what the ruleset assumes where its source is silent and what decided a number here, by key.
    """

    game_id: str
    ladder: str
    ruleset: str | None
    counted: bool
    why_not: str | None
    remark: str | Absent
    occurred_at: datetime
    players: tuple[Explained, ...]
    accounts: tuple[Account, ...]
    at: Coordinates
    assumed: dict[str, str] | Absent = ABSENT
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class PlayedGame(Result):
    """A game of a player on a ladder, or an adjustment with its `reason`; `change` is None if it does not count.

    `game` is as in `Change`.
    """

    game_id: str | None
    occurred_at: datetime
    local: str
    change: Fraction | None
    why_not: str | None
    reason: str | Absent
    game: dict[str, Any] | None = field(default=None, metadata=HIDDEN, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class PlayerExplanation(Answer):
    """How a player's place on a ladder comes about: the start, the games, and what the list makes of them.

    `assumed` is as in `GameExplanation`.
    """

    player: str
    ladder: str
    ruleset: str
    rank: int | None
    points: Fraction | None
    gold: int | Absent
    start: Fraction | None
    time_zone: str
    games: tuple[PlayedGame, ...]
    terms: tuple[ExplainedTerm, ...]
    at: Coordinates
    assumed: dict[str, str] | Absent = ABSENT
