"""Answers about all ladders: which there are, which lists, and what a player did on them."""

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from ratings_ledger.projections.queries.answers import Answer, LastEvent
from ratings_ledger.projections.queries.answers_beside import PublicationRow
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.results import FRACTION_ONLY, HIDDEN, Result


@dataclass(frozen=True, slots=True)
class ManyAnswers(Answer):
    """What is said of several ladders; `asked` is `as_of` as it was asked for.

    `failed` says of each that cannot be replayed, and is left out, why; `unusable` of each ruleset that does not run
    here.
    """

    asked: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    unusable: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class LadderRow(Result):
    """A ladder that has games or adjustments; `as_of` differs where a date ends in each ruleset's own zone.

    `months` has how many games were played in each of the months up to that of the last game, at most 24 and from its
    first one on; empty for lists of months and years.
    """

    ladder: str
    ruleset: str
    players: int
    games: int
    last_game: datetime | None
    as_of: datetime | None
    months: tuple[int, ...] = field(default=(), metadata=HIDDEN, kw_only=True)
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class AllLadders(ManyAnswers):
    """All ladders; `has_games` tells whether there are games at all, on ladders or not."""

    at: Coordinates
    rows: tuple[LadderRow, ...]
    has_games: bool = field(default=False, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class ListRow(Result):
    """A list of a month or a year: whether it is `open` or `closed`, and how many players and ranks it has."""

    list: str
    period: str
    state: str
    players: int
    ranked: int
    games: int
    ruleset: str
    as_of: datetime | None


@dataclass(frozen=True, slots=True)
class AllLists(ManyAnswers):
    """The lists of months and years, and those that were published, of ladders as well.

    `period` is the only one that was asked for. `has_timed` tells whether any ruleset makes lists of months or years.
    """

    at: Coordinates
    rows: tuple[ListRow, ...]
    published: tuple[PublicationRow, ...]
    period: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    has_timed: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class PersonRow(Result):
    """Where somebody stands on a ladder; `rank` is None for who is not qualified."""

    player: str
    ladder: str
    rank: int | None
    points: Fraction
    games: int


@dataclass(frozen=True, slots=True)
class Everybody(ManyAnswers):
    """Where everybody stands on every ladder, by ladder and then as they are ranked there; or where some do."""

    at: Coordinates
    rows: tuple[PersonRow, ...]


@dataclass(frozen=True, slots=True)
class PlayerStatistics(ManyAnswers):
    """What a player did; `ratio` is finished to started games among the last ones, None before the first.

    `stars` is None as long as there are too few games. Gold is that of lists whose period is over, each computed up to
    `gold_as_of`.
    """

    player: str
    game: str | None
    at: Coordinates
    started: int
    finished: int
    substituted: int
    ratio: Fraction | None = field(metadata=FRACTION_ONLY)
    stars: int | None
    golden: bool
    gold: int
    gold_by_list: dict[str, int]
    gold_as_of: dict[str, datetime | None]


@dataclass(frozen=True, slots=True)
class Person(PlayerStatistics):
    """The same of a person who is on a ladder: with the ids they had before, and where they stand everywhere; `last` is
    the last event about a game of theirs, or about who they are.
    """

    earlier: tuple[str, ...]
    rows: tuple[PersonRow, ...]
    last: LastEvent | None = field(metadata=HIDDEN, kw_only=True)
