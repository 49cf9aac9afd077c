"""Answers about what an event did to the ladders, and about published lists beside the same lists as known now."""

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from ratings_ledger.projections.queries.answers import Answer, LastEvent, Publication
from ratings_ledger.projections.queries.answers_compared import Decision, DifferingList, Effect
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import HIDDEN, Result


@dataclass(frozen=True, slots=True)
class LadderImpact(Result):
    """What an event did on a ladder: to how many players it gave more points, the same, and fewer, how many it brought
    and took away, and how many have another rank.

    Of the sizes of the changes, in points, the largest, the median and the 99th percentile, which is the least size
    that 99% of them do not exceed; None where nobody's points changed. `gains` and `losses` come largest first.
    """

    ladder: str
    up: int
    stayed: int
    down: int
    joined: int
    left: int
    ranks: int
    largest: Fraction | None
    median: Fraction | None
    percentile_99: Fraction | None
    gains: tuple[Effect, ...] = field(metadata=HIDDEN)
    losses: tuple[Effect, ...] = field(metadata=HIDDEN)
    others: tuple[Effect, ...] = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class EventImpact(Answer):
    """What the event at a position did to everybody's points, and which lists published before it came out differently
    from then on; `failed` tells which ladders cannot be replayed, and why. `told` is what the event says.
    """

    position: int
    type: str
    recorded_at: str
    by: str
    reason: str | None
    game_id: str | None
    ladders: tuple[LadderImpact, ...]
    rows: tuple[Effect, ...]
    published: tuple[DifferingList, ...]
    told: str = field(metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class PublicationRow(Result):
    """A list that was published: what was played and known for it, its version, players and games; and its event."""

    ladder: str
    as_of: datetime | None
    known_at: int
    ruleset: str
    players: int
    games: int
    position: int
    recorded_at: str
    by: str


@dataclass(frozen=True, slots=True)
class Publications(Answer):
    """The published lists that count, by ladder and time."""

    rows: tuple[PublicationRow, ...]


@dataclass(frozen=True, slots=True)
class ListCause(Result):
    """A part of a difference: by the index of a decision, or None for games that were recorded later."""

    decision: int | None
    amount: Fraction


@dataclass(frozen=True, slots=True)
class RowBeside(Result):
    """What a player had on a published list and has on the same list as known now, None where they are not on it; and
    what made the difference, exactly.
    """

    player: str
    rank: tuple[int | None, int | None]
    before: Fraction | None
    change: Fraction | None
    after: Fraction | None
    causes: tuple[ListCause, ...]

    @property
    def differs(self) -> bool:
        """Whether the player has other points or another rank now."""
        return self.before != self.after or self.rank[0] != self.rank[1]


@dataclass(frozen=True, slots=True)
class ListBeside(Answer):
    """A published list beside the same list as known now: its rows as they were published, then who came since.

    `ruleset` and `ruleset_now` are the versions that rank it; `decisions` what was decided since that changed points
    on it; `differing` counts the rows that differ. `last` is the last event that it depends on.
    """

    ladder: str
    at: Coordinates
    published: Publication
    published_known_at: int
    ruleset: str
    ruleset_now: str | None
    differing: int
    decisions: tuple[Decision, ...]
    rows: tuple[RowBeside, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    last: LastEvent = field(metadata=HIDDEN, kw_only=True)
