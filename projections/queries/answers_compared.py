"""Answers that set two states of the ladders beside each other: what differs, and how far it reaches."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from ratings_ledger.projections.queries.answers import Answer
from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, Times
from ratings_ledger.projections.queries.results import ABSENT, FROM, HIDDEN, SET, SPREAD, Absent, Result


@dataclass(frozen=True, slots=True)
class Effect(Result):
    """What a player has on a ladder before and after something, None where they are not on it; ranks and gold, too.

    `kind` is moved, added or removed. Somebody who joins or leaves has no `change`.
    """

    kind: str = field(metadata=HIDDEN)
    ladder: str
    player: str
    before: Fraction | None
    change: Fraction | None
    after: Fraction | None
    rank: tuple[int | None, int | None]
    gold: tuple[int | None, int | None]

    @property
    def difference(self) -> Fraction:
        """The points after minus those before; somebody not on the ladder has 0."""
        if self.change is not None:
            return self.change
        return (self.after or Fraction(0)) - (self.before or Fraction(0))


@dataclass(frozen=True, slots=True)
class DifferingRow(Effect):
    """The same as a row of one ladder."""

    kind: str
    ladder: str = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Gain(Result):
    """By how much the points of a player change."""

    player: str
    change: Fraction


@dataclass(frozen=True, slots=True)
class Radius(Result):
    """The size of the impact on a ladder: players whose points differ, players whose rank does, the largest gain and
    loss, how many pairs of players swap order, and who enters and leaves the top ten. `up` and `down` only consider
    those who stay on it.
    """

    ladder: str
    players: int
    ranks: int
    up: Gain | None
    down: Gain | None
    swapped: int
    entering: tuple[str, ...]
    leaving: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DifferingList(Result):
    """A published list that would come out differently today: its ladder, its `as_of`, its position in the log.

    `already` is whether it differed from what was published before this change, too.
    """

    ladder: str
    as_of: datetime | None
    position: int
    already: bool


@dataclass(frozen=True, slots=True)
class Impact(Result):
    """What something does: to whose points, how much on which ladders, which published lists would come out
    differently, and explanations for unexpected changes; `failed` tells which ladders cannot be replayed, and why.
    `times` knows how this ledger shows times, if a published list differs.
    """

    changes: tuple[Effect, ...] = ()
    ladders: tuple[Radius, ...] = ()
    published: tuple[DifferingList, ...] = ()
    reasons: tuple[str, ...] | Absent = ABSENT
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    times: Times = field(default=UTC_TIMES, metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class ComparedSide(Result):
    """Where on the axes one of two sides is, and which version ranks it; of a published list also its position.

    Nothing is known of a list that was not published.
    """

    at: Coordinates | Absent = ABSENT
    ruleset: str | Absent | None = ABSENT
    published: int | Absent = ABSENT

    def told(self, minute: Callable[[int], str]) -> str:
        """Where the side is, in words; `minute` writes an instant."""
        at = self.at
        if at is ABSENT:
            return "not published"
        published = "" if self.published is ABSENT else f"published at position {self.published}, "
        played = "" if at.as_of is None else f", played up to {minute(at.as_of)}"
        rules = f", all games by {at.rules}" if at.rules else ""
        under = "" if rules or self.ruleset is ABSENT else f", under {self.ruleset or 'no ruleset'}"
        return f"{published}known at position {at.known_at}{played}{rules}{under}"


@dataclass(frozen=True, slots=True)
class Quality(Result):
    """How well ratings predicted `pairs` pairs, of which `decided` did not tie; None where there are none.

    In `unplaced` games nobody has a place, so nothing could be predicted.
    """

    pairs: int
    decided: int
    log_loss: float | None
    brier: float | None
    accuracy: float | None
    unplaced: int | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class Predicted(Result):
    """How well the ledger's own version and another predict; None for one that does not."""

    before: Quality | None
    after: Quality | None


@dataclass(frozen=True, slots=True)
class Difference(Result):
    """A ladder at two coordinates: the rows that differ, largest gain first, and how far that reaches.

    `quality`, where it was asked for, is how well the points at A, `before`, and those at B predicted places.
    """

    ladder: str
    a: ComparedSide
    b: ComparedSide
    rows: tuple[DifferingRow, ...]
    radius: Radius = field(metadata=SPREAD)
    quality: Predicted | Absent = field(default=ABSENT, kw_only=True)


@dataclass(frozen=True, slots=True)
class Differences(Answer):
    """The ladders that were asked for, or all that differ; `failed` tells which cannot be replayed, and why.

    `asked` are both coordinates as they were asked for.
    """

    ladders: tuple[Difference, ...]
    asked: tuple[str, str] = field(default=("", ""), metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class AttributedEnd(Result):
    """A player's points at one of two coordinates, None where they are not on the ladder."""

    at: Coordinates
    points: Fraction | None


@dataclass(frozen=True, slots=True)
class AttributedCause(Result):
    """What made a difference, with its event; `own` and `ripple` sum to the `amount`.

    A different version for all games has no event, nor has what comes out as played between two times.
    """

    cause: str
    position: int | None
    event_id: str | None
    game_id: str | None
    occurred_at: datetime | None
    recorded_at: datetime | None
    by: str | None
    reason: str | None
    own: Fraction
    ripple: Fraction
    amount: Fraction
    what: str = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class PointsAttributed(Answer):
    """What changed a player's points on a ladder from one place on the axes to another; the causes add up exactly.

    `start` stands in for the points of somebody who is not on it. `contradicted` tells which published lists showed
    other points than a replay does, `left_out` which events do not count, by position, with the reason.
    """

    player: str
    ladder: str
    before: AttributedEnd = field(metadata=FROM)
    to: AttributedEnd
    start: Fraction
    change: Fraction
    causes: tuple[AttributedCause, ...]
    contradicted: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Decision(Result):
    """Events of one type that somebody recorded in a row for one reason, and since when; `did` is that in words.

    `told` is what each of them says, of the first ones of many.
    """

    type: str
    by: str
    reason: str | None
    recorded_at: datetime
    positions: tuple[int, ...]
    did: str = field(metadata=HIDDEN)
    told: tuple[str, ...] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Share(Result):
    """What a player has on a ladder at both ends, and what made the difference: by the index of a decision, or None for
    games that were recorded. `start` stands in for the points of somebody who is not on it.
    """

    ladder: str
    player: str
    start: Fraction
    before: Fraction | None
    after: Fraction | None
    rank: tuple[int | None, int | None]
    amounts: dict[int | None, Fraction]

    @property
    def change(self) -> Fraction:
        """The points at the end minus those at the beginning."""
        before, after = (self.start if points is None else points for points in (self.before, self.after))
        return after - before

    @property
    def is_decided(self) -> bool:
        """Whether a decision has a part in the difference."""
        return any(cause is not None for cause in self.amounts)


@dataclass(frozen=True, slots=True)
class Decisions(Answer):
    """What was decided between two positions, how many games were recorded besides, and the shares of everybody whose
    points differ.

    `head` is that at the later position. `failures` tells why a ladder cannot be replayed, `failed` where; `recorded`
    when the first and the last event was recorded; `left_out` which events do not count, by position, with the reason.
    """

    before: int = field(metadata=FROM)
    to: int
    head: str
    games: int
    decisions: tuple[Decision, ...]
    shares: tuple[Share, ...]
    failures: dict[str, str]
    recorded: tuple[datetime, datetime]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class SimulatedLadder(Result):
    """A ladder under another ruleset: how far the difference reaches, how well both predict, and who is affected."""

    radius: Radius = field(metadata=SPREAD)
    quality: Predicted
    changes: tuple[Effect, ...]

    @property
    def differs(self) -> bool:
        """Whether anybody has another rank or other points there."""
        return bool(self.changes or self.radius.ranks or self.radius.players)


@dataclass(frozen=True, slots=True)
class Variant(Result):
    """A ruleset with other values for some keys, and what it does; `published` are lists that come out differently,
    `left_out` ladders that cannot be replayed under it.
    """

    ruleset: str
    settings: dict[str, str] = field(metadata=SET)
    ladders: tuple[SimulatedLadder, ...]
    published: tuple[DifferingList, ...]
    left_out: tuple[str, ...] = field(default=(), metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class Simulation(Answer):
    """What if these rulesets had scored their games from the start; `failed` tells which ladders cannot be replayed."""

    at: Coordinates
    variants: tuple[Variant, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
