"""The ratings ledger for programs: the questions that the command line asks, with exact results.

    import ratings_ledger as rl

    with rl.open("ratings.db") as ledger:
        view = ledger.at(as_of="2024-12-31")
        for row in view.standings("club-catan-elo/all").rows:
            print(row.rank, row.player, float(row.points))

This package is the public interface; what is behind it may change. A result is frozen, its points are fractions, and
`model_dump()` gives what the command prints with `--format json`. Failures are a few exceptions, each with `.reason`, a
word that is never renamed, and `.exit_code`, that of the command.
"""

from types import TracebackType

from ledger.errors import (
    AlreadyRunning,
    BadArgument,
    LedgerError,
    NoLedger,
    NotALedger,
    RuleFailed,
    RulesetUnusable,
    StoreDamaged,
    StoreUnavailable,
    Unknown,
)
from ledger.store import log as _log
from ledger.store import opening as _opening
from ledger.store.log import Head
from projections.queries.answers import (
    Account,
    AllLadders,
    AllLists,
    Balance,
    Change,
    Explained,
    ExplainedTerm,
    GameExplanation,
    History,
    LadderRow,
    ListRow,
    PlayedGame,
    PlayerExplanation,
    PlayerStatistics,
    Publication,
    Shown,
    Standing,
    Standings,
)
from projections.queries.answers_recorded import (
    AllLeagues,
    Entrant,
    LeagueGame,
    LeagueRow,
    LeagueState,
    RecordedEvent,
    RecordedEvents,
    RecordedGame,
    RecordedGames,
    Unmet,
)
from projections.queries.results import ABSENT, Absent, Result
from projections.queries.view import View

__all__ = [
    "ABSENT", "Absent", "Account", "AllLadders", "AllLeagues", "AllLists", "AlreadyRunning", "BadArgument", "Balance",
    "Change", "Entrant", "Explained", "ExplainedTerm", "GameExplanation", "Head", "History", "LadderRow", "LeagueGame",
    "LeagueRow", "LeagueState", "Ledger", "LedgerError", "ListRow", "NoLedger", "NotALedger", "PlayedGame",
    "PlayerExplanation", "PlayerStatistics", "Publication", "RecordedEvent", "RecordedEvents", "RecordedGame",
    "RecordedGames", "Result", "RuleFailed", "RulesetUnusable", "Shown", "Standing", "Standings", "StoreDamaged",
    "StoreUnavailable", "Unknown", "Unmet", "View", "open",
]  # fmt: skip


class Ledger:
    """An open ledger. Threads may share it; a process that is forked opens its own."""

    def __init__(self, store: _opening.Ledger) -> None:
        self._store: _opening.Ledger | None = store

    @property
    def location(self) -> str:
        """Where it is, without anything secret."""
        return self._open.location

    @property
    def head(self) -> Head:
        """The last position of the log with its chain hash and its time in microseconds since 1970."""
        with self._open.reading() as connection:
            return _log.head(connection)

    def at(
        self, as_of: str | None = None, known_at: str | int | None = None, rules: str | None = None
    ) -> View:  # fmt: skip
        """The ledger at coordinates: what was played up to `as_of`, as known at `known_at`, under `rules`.

        `as_of` and `known_at` are dates, which mean their ends, or times; `known_at` may be a position. `rules` is a
        version, ID@VERSION, that scores all games of its ruleset. None means now, or the rulesets' own timelines. Wrong
        ones are told when something is asked: `BadArgument`.
        """
        for name, value in (("as_of", as_of), ("rules", rules)):
            if value is not None and not isinstance(value, str):
                raise BadArgument(f"{name} is text, such as 2024-12-31, not {type(value).__name__}", name)
        if known_at is not None and (not isinstance(known_at, str | int) or isinstance(known_at, bool)):
            raise BadArgument(f"known_at is text or a position, not {type(known_at).__name__}", "known_at")
        return View(self._open, as_of, known_at, rules)

    def close(self) -> None:
        """Give back the connections. What is asked of the ledger afterwards is refused; closing again does nothing."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self.close()

    @property
    def _open(self) -> _opening.Ledger:
        if self._store is None:
            raise BadArgument("the ledger is closed; open it again")
        return self._store


def open(name: str) -> Ledger:  # noqa: A001
    """A ledger: a file path, sqlite:///ratings.db or postgresql://...

    Raises `NotALedger`, `NoLedger` where there is none, `StoreUnavailable`.
    """
    if not isinstance(name, str):
        raise BadArgument(f"a ledger is named by text, a path or a URL, not by {type(name).__name__}", "name")
    return Ledger(_opening.open_ledger(name))
