"""The answers of a view, each a frozen result that says at which coordinates it was computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from ledger.events.canonical import EPOCH
from projections.lists import contract
from projections.queries import standings as ladders_
from projections.queries.results import ABSENT, HIDDEN, Absent, Result
from projections.queries.standings import Coordinates, Ladders
from projections.queries.times import Times
from projections.replay.ladders import parse_name
from projections.rulesets.periods import is_running, period_of

NOW, UTC_TIMES = Coordinates(None, 0, None), Times()


def moment(instant: int | None) -> datetime | None:
    """An instant, in microseconds since 1970, as a time in UTC."""
    return None if instant is None else EPOCH + timedelta(microseconds=instant)


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
class LadderAnswer(Result):
    """What is said of a whole ladder: the version that ranks it, the coordinates, how many games count."""

    ladder: str
    ruleset: str
    as_of: datetime | None
    known_at: int
    rules: str | None
    left_out: tuple[int, ...] | Absent
    games: int
    at: Coordinates = field(default=NOW, metadata=HIDDEN, kw_only=True)
    times: Times = field(default=UTC_TIMES, metadata=HIDDEN, kw_only=True)


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
class History(Result):
    """Every change of a player's points on a ladder, in the order of replay."""

    player: str
    ladder: str
    as_of: datetime | None
    known_at: int
    rules: str | None
    left_out: tuple[int, ...] | Absent
    rows: tuple[Change, ...]
    ranking: str = field(default="points", metadata=HIDDEN)
    at: Coordinates = field(default=NOW, metadata=HIDDEN)
    times: Times = field(default=UTC_TIMES, metadata=HIDDEN)


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
class GameExplanation(Result):
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
    as_of: datetime | None
    known_at: int
    rules: str | None
    left_out: tuple[int, ...] | Absent
    ranking: str = field(default="points", metadata=HIDDEN)
    at: Coordinates = field(default=NOW, metadata=HIDDEN)
    times: Times = field(default=UTC_TIMES, metadata=HIDDEN)


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
class PlayerExplanation(Result):
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
    as_of: datetime | None
    known_at: int
    rules: str | None
    left_out: tuple[int, ...] | Absent
    at: Coordinates = field(default=NOW, metadata=HIDDEN)
    times: Times = field(default=UTC_TIMES, metadata=HIDDEN)


def standings_answer(
    found: ladders_.Ranking, rows: Sequence[contract.RankedRow], at: Coordinates, times: Times, unfinished: str | None,
    published: Publication | Absent = ABSENT,
) -> Standings:  # fmt: skip
    """Standings with some of their rows, or all."""
    shown = rows_of_list(found, rows)
    is_open = True if unfinished and published is ABSENT else ABSENT
    return Standings(
        *_stated(found, at), found.digest, is_open, published, shown, remark=unfinished, at=at, times=times
    )


Stated = tuple[str, str, datetime | None, int, str | None, tuple[int, ...] | Absent, int]


def _stated(found: ladders_.Ranking, at: Coordinates) -> Stated:
    """The members of a `LadderAnswer`."""
    left_out: tuple[int, ...] | Absent = at.left_out or ABSENT
    return found.ladder, found.ruleset, moment(at.as_of), at.known_at, at.rules, left_out, found.games


def rows_of_list(found: ladders_.Ranking, rows: Sequence[contract.RankedRow]) -> tuple[Standing, ...]:
    """Rows of some standings as results."""
    return tuple(
        Standing(
            row.rank, row.player, row.value(found.scale), row.games, row.qualified,
            ABSENT if row.gold is None else row.gold, ABSENT if row.places is None else row.places,
        )
        for row in rows
    )  # fmt: skip


def history_answer(
    player: str, ladder: str, rows: Sequence[Mapping[str, Any]], ranking: str, at: Coordinates, times: Times
) -> History:  # fmt: skip
    """The changes that `explanation.history` gives, as a result."""
    return History(
        player, ladder, moment(at.as_of), at.known_at, at.rules, at.left_out or ABSENT, tuple(map(_change, rows)),
        ranking, at, times,
    )  # fmt: skip


def _change(row: Mapping[str, Any]) -> Change:
    points = (Fraction(row["before"]), Fraction(row["change"]), Fraction(row["after"]))
    lists = ABSENT if "published" not in row else tuple(
        Shown(one["position"], _time(one["as_of"]), _fraction(one["points"]))
        for one in row["published"]
    )  # fmt: skip
    occurred_at = datetime.fromisoformat(row["occurred_at"])
    return Change(
        row["position"], row["event_id"], row["game_id"], occurred_at, row["place"], *points, row["ruleset"],
        row.get("reason", ABSENT), lists,
    )  # fmt: skip


def game_answer(told: Mapping[str, Any], ranking: str, at: Coordinates, times: Times) -> GameExplanation:
    """What `explanation.explain_game` says, as a result."""
    players = tuple(
        Explained(
            one["player"], Fraction(one["before"]), Fraction(one["change"]), Fraction(one["after"]),
            tuple(map(_term, one["terms"])), one.get("why_not", ABSENT), one["place"],
        )
        for one in told["players"]
    )  # fmt: skip
    accounts = tuple(Account(one["account"], Fraction(one["amount"])) for one in told["accounts"])
    return GameExplanation(
        told["game_id"], told["ladder"], told["ruleset"], told["counted"], told["why_not"],
        told.get("remark", ABSENT), datetime.fromisoformat(told["occurred_at"]), players, accounts, moment(at.as_of),
        at.known_at, at.rules, at.left_out or ABSENT, ranking, at, times,
    )  # fmt: skip


def player_answer(told: Mapping[str, Any], at: Coordinates, times: Times) -> PlayerExplanation:
    """What `explanation.explain_player` says, as a result."""
    games = tuple(
        PlayedGame(
            one["game_id"], datetime.fromisoformat(one["occurred_at"]), one["local"], _fraction(one["change"]),
            one["why_not"], one.get("reason", ABSENT),
        )
        for one in told["games"]
    )  # fmt: skip
    return PlayerExplanation(
        told["player"], told["ladder"], told["ruleset"], told["rank"], _fraction(told["points"]),
        told.get("gold", ABSENT), _fraction(told["start"]), told["time_zone"], games, tuple(map(_term, told["terms"])),
        moment(at.as_of), at.known_at, at.rules, at.left_out or ABSENT, at, times,
    )  # fmt: skip


def _term(told: Mapping[str, Any]) -> ExplainedTerm:
    return ExplainedTerm(told["term"], _fraction(told["amount"]), told["detail"], told.get("note", ABSENT))


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def balance_answer(found: ladders_.Ranking, at: Coordinates, times: Times) -> Balance:
    """The trial balance of some standings."""
    accounts = tuple(Account(name, Fraction(amount, found.scale)) for name, amount in ladders_.books(found))
    total = sum((one.amount for one in accounts), Fraction(0))
    return Balance(*_stated(found, at), len(found.rows), accounts, total, at=at, times=times)


def why_unfinished(ladders: Ladders, ladder: str, now: int) -> str | None:
    """A sentence if a list's period still runs or has not begun, else None."""
    period = period_of(ladders.versions(ladder)[0].ruleset, parse_name(ladder).values)
    if period is None:
        return None
    if now < period.start:
        return "The period of this list has not begun."
    if now <= period.end:
        return "The period of this list still runs."
    return "The period of this list still ran then." if is_running(period, now, ladders.as_of) else None
