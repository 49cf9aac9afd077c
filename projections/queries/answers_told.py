"""Answers that tell what became of something: a game's story, and a player's statement."""

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from ratings_ledger.projections.queries.answers import Answer, LastEvent
from ratings_ledger.projections.queries.answers_explained import GameExplanation
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import AS_IS, HIDDEN, Result


@dataclass(frozen=True, slots=True)
class Told(Result):
    """An event about a game: what became of it, who recorded that when and why, and the result from then on."""

    position: int
    type: str
    recorded_at: str
    by: str
    reason: str | None
    result: str | None


@dataclass(frozen=True, slots=True)
class GameStory(Answer):
    """A game as it stands, with `data` as it was recorded or last corrected; its events, and on every ladder that it
    belongs to why it gave what it gave; `last` is the last event that it depends on.
    """

    game_id: str
    at: Coordinates
    occurred_at: datetime
    voided: bool
    data: dict[str, Any] = field(metadata=AS_IS)
    story: tuple[Told, ...]
    ladders: tuple[GameExplanation, ...]
    last: LastEvent = field(metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class WouldGive(Result):
    """What a game gave a player on a ladder, None if nothing, and what it would have given with another place."""

    ladder: str
    player: str
    place: int | None
    gave: Fraction | None
    would_give: Fraction
    difference: Fraction | None


@dataclass(frozen=True, slots=True)
class OtherResult(Answer):
    """A game with other `places`, in the order of its participants: what everybody would have got, by ladder.

    `data` is the game as it stands; `last` is the last event that it depends on.
    """

    game_id: str
    at: Coordinates
    places: tuple[int, ...]
    rows: tuple[WouldGive, ...]
    data: dict[str, Any] = field(metadata=HIDDEN, kw_only=True)
    last: LastEvent = field(metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class StatementLine(Result):
    """What changed a player's points: a game, or a cause that has no game of its own, and the points after it.

    `cause` is game, adjustment, or what `explain --change` calls it; then the line has the cause's event, and what it
    is about in `what`; `game` is as in `Change`. It is start where a player who was on the list joins again with other
    points, and earlier where one line sums games and adjustments, which `what` counts, up to the last of them. Its
    `own` and `ripple` sum to the change.
    """

    cause: str
    position: int | None
    game_id: str | None
    occurred_at: datetime | None
    recorded_at: datetime | None
    by: str | None
    reason: str | None
    place: int | None
    own: Fraction
    ripple: Fraction
    change: Fraction
    after: Fraction
    what: str = field(default="", metadata=HIDDEN, kw_only=True)
    game: dict[str, Any] | None = field(default=None, metadata=HIDDEN, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class Statement(Answer):
    """How a player's points on a ladder came about, since the list that was published last, or since their start.

    The `opening` and the changes of all lines sum to the `closing` points, exactly. `published` is the position of that
    list, and `since` what it was compared at; None without one.
    """

    player: str
    ladder: str
    at: Coordinates
    published: int | None
    since: datetime | None
    opening: Fraction
    lines: tuple[StatementLine, ...]
    closing: Fraction
