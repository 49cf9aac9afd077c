"""The answers of a view, each a frozen result that says at which coordinates it was computed: standings, and balances.

Other kinds of answers have files of their own, so that a command loads only what it asks for.
"""

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from ratings_ledger.projections.queries.coordinates import UTC_TIMES, Coordinates, Times
from ratings_ledger.projections.queries.results import ABSENT, DIGEST, HIDDEN, Absent, Result


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
    """Who stands where on a ladder, of which `ranking` has all rows, however many are asked for. `open` is True while
    the period of a list runs, of which `remark` tells.
    """

    ranking: Any = field(metadata=DIGEST, repr=False, hash=False)
    open: bool | Absent
    published: Publication | Absent
    rows: tuple[Standing, ...]
    remark: str | None = field(default=None, metadata=HIDDEN, kw_only=True)

    @property
    def digest(self) -> str:
        """The hash of the ruleset and all rows."""
        return str(self.ranking.digest)


@dataclass(frozen=True, slots=True)
class LastEvent(Result):
    """The last event of the log that what is said of something depends on."""

    position: int
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Failed(Result):
    """Why a ladder cannot be replayed or, where `ladder` is None, why a ruleset does not run here."""

    ladder: str | None
    reason: str


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
