"""The answers of a view, each a frozen result that says at which coordinates it was computed."""

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from projections.queries.coordinates import UTC_TIMES, Coordinates, Times
from projections.queries.results import ABSENT, FRACTION_ONLY, HIDDEN, SPREAD, Absent, Result


@dataclass(frozen=True, slots=True)
class Answer(Result):
    """An answer with its coordinates, `at`, and `times`, which knows how this ledger shows times."""

    times: Times = field(default=UTC_TIMES, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Standing(Result):
    """A row: the rank (None: not qualified), the exact points, and how many games count. Lists that pay gold have
    `gold`, annual lists the `places` that they add up.
    """

    rank: int | None
    player: str
    points: Fraction
    games: int
    qualified: bool
    gold: int | Absent = ABSENT
    places: tuple[int, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class Publication(Result):
    """The event that published a list, and who recorded it when."""

    position: int
    event_id: str
    recorded_at: str
    by: str


@dataclass(frozen=True, slots=True)
class LadderAnswer(Answer):
    """What is said of a whole ladder: the version that ranks it, the coordinates, how many games count."""

    ladder: str
    ruleset: str
    at: Coordinates
    games: int


@dataclass(frozen=True, slots=True)
class Standings(LadderAnswer):
    """Who stands where on a ladder. `digest` covers all rows, however many are asked for; `open` is True while the
    period of a list runs, of which `remark` tells.
    """

    digest: str
    open: bool | Absent
    published: Publication | Absent
    rows: tuple[Standing, ...]
    remark: str | None = field(default=None, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Failed(Result):
    """Why a ladder cannot be replayed or, where `ladder` is None, why a ruleset does not run here."""

    ladder: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Shown(Result):
    """What a published list showed instead: its position in the log, its `as_of`, the points or None if nothing."""

    position: int
    as_of: datetime | None
    points: Fraction | None


@dataclass(frozen=True, slots=True)
class Change(Result):
    """What a game or an adjustment did to a player; an adjustment has a `reason` and no game.

    `published` are lists that showed other points then.
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
    rows: tuple[Change, ...]
    sums_lists: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Account(Result):
    """What an account of a ladder holds, in points; below 0 where points came from."""

    account: str
    amount: Fraction


@dataclass(frozen=True, slots=True)
class Balance(LadderAnswer):
    """The trial balance of a ladder: its accounts, and their `sum`, which is 0 unless something is wrong."""

    players: int
    accounts: tuple[Account, ...]
    sum: Fraction


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
    """Why a game changed the points of a ladder as it did, or in `why_not` why it does not count there."""

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
    running: bool = field(default=True, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class PlayedGame(Result):
    """A game of a player on a ladder, or an adjustment with its `reason`; `change` is None if it does not count."""

    game_id: str | None
    occurred_at: datetime
    local: str
    change: Fraction | None
    why_not: str | None
    reason: str | Absent


@dataclass(frozen=True, slots=True)
class PlayerExplanation(Answer):
    """How a player's place on a ladder comes about: the start, the games, and what the list makes of them."""

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
    """A ladder that has games or adjustments; `as_of` differs where a date ends in each ruleset's own zone."""

    ladder: str
    ruleset: str
    players: int
    games: int
    last_game: datetime | None
    as_of: datetime | None


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
    """The lists of months and years."""

    at: Coordinates
    rows: tuple[ListRow, ...]


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
