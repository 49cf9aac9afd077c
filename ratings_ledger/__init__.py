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

from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Any

from ledger.errors import (
    AlreadyRunning,
    BadArgument,
    LedgerError,
    NoLedger,
    NotALedger,
    RuleFailed,
    RulesetRefused,
    RulesetUnusable,
    StoreDamaged,
    StoreUnavailable,
    Unknown,
)
from ledger.store import log as _log
from ledger.store import opening as _opening
from ledger.store.log import Head
from projections.facts.decoding import decode
from projections.game_clock.state import ClockLine
from projections.queries.answers import (
    Account,
    AllLadders,
    AllLists,
    Balance,
    Change,
    Explained,
    ExplainedTerm,
    Failed,
    GameExplanation,
    History,
    LadderRow,
    ListRow,
    PlayedGame,
    PlayerChange,
    PlayerExplanation,
    PlayerStatistics,
    Publication,
    Shown,
    Standing,
    Standings,
)
from projections.queries.answers_compared import (
    AttributedCause,
    AttributedEnd,
    ComparedSide,
    Difference,
    Differences,
    DifferingList,
    DifferingRow,
    Effect,
    Gain,
    PointsAttributed,
    Predicted,
    Quality,
    Radius,
    SimulatedLadder,
    Simulation,
    Variant,
)
from projections.queries.answers_recorded import (
    AllLeagues,
    ClockExplanation,
    ClockState,
    Entrant,
    LeagueGame,
    LeagueRow,
    LeagueState,
    PauseAsked,
    PlayerTimers,
    RecordedEvent,
    RecordedEvents,
    RecordedGame,
    RecordedGames,
    Unmet,
)
from projections.queries.asked import Asked
from projections.queries.attributed import attributed
from projections.queries.comparison import compared
from projections.queries.results import ABSENT, Absent, Result
from projections.queries.view import View
from projections.rulesets.versions import read_ruleset, read_toml

__all__ = [
    "ABSENT", "Absent", "Account", "AllLadders", "AllLeagues", "AllLists", "AlreadyRunning", "Asked", "AttributedCause",
    "AttributedEnd", "BadArgument", "Balance", "Change", "ClockExplanation", "ClockLine", "ClockState", "ComparedSide",
    "Difference", "Differences", "DifferingList", "DifferingRow", "Effect", "Entrant", "Explained", "ExplainedTerm",
    "Failed", "Gain", "GameExplanation", "Head", "History", "LadderRow", "LeagueGame", "LeagueRow", "LeagueState",
    "Ledger", "LedgerError", "ListRow", "NoLedger", "NotALedger", "PauseAsked", "PlayedGame", "PlayerChange",
    "PlayerExplanation", "PlayerStatistics", "PlayerTimers", "PointsAttributed", "Predicted", "Publication", "Quality",
    "Radius", "RecordedEvent", "RecordedEvents", "RecordedGame", "RecordedGames", "Result", "RuleFailed",
    "RulesetRefused", "RulesetUnusable", "Shown", "SimulatedLadder", "Simulation", "Standing", "Standings",
    "StoreDamaged", "StoreUnavailable", "Unknown", "Unmet", "Variant", "View", "open",
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

    def published(self, as_of: str | None = None, known_at: str | int | None = None) -> Asked:
        """What published lists hold, of all times or of one `as_of`, as a side of `compare` and `attribute`."""
        return Asked("published", True, as_of, known_at)

    def compare(self, before: View | Asked, after: View | Asked, ladders: Collection[str] = ()) -> Differences:
        """How the ladders that are named differ between two places on the axes, or all that do.

        Raises `BadArgument`, `Unknown` where nothing is published, `RulesetUnusable`.
        """
        with self._open.reading() as connection:
            return compared(connection, _asked(before), _asked(after), ladders, _note(after, before), decode)

    def attribute(
        self, ladder: str, player: str, before: View | Asked, after: View | Asked
    ) -> PointsAttributed:  # fmt: skip
        """What changed a player's points on a ladder between two places on the axes; the causes add up exactly.

        Raises `BadArgument`, `Unknown` for somebody not recorded and where nothing is published, `RuleFailed`.
        """
        with self._open.reading() as connection:
            note = _note(after, before)
            return attributed(connection, ladder, player, _asked(before), _asked(after), note, decode)

    def simulate(self, ruleset: str | Mapping[str, Any], view: View, ladders: Collection[str] = ()) -> Simulation:
        """What if a ruleset, as TOML or as the tables in it, had scored its games from the start? On some ladders.

        Raises `BadArgument`, also for a ruleset that is wrong, `RulesetRefused` for one that fits no other version.
        """
        found, problems = read_toml(ruleset) if isinstance(ruleset, str) else read_ruleset(dict(ruleset))
        if found is None:
            raise BadArgument("; ".join(f"{problem.key}: {problem.message}" for problem in problems), "ruleset")
        return view.simulate([({}, found)], ladders)

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


def _asked(side: View | Asked) -> Asked:
    return side if isinstance(side, Asked) else Asked("", False, side.as_of, side.known_at, side.rules)


def _note(*sides: View | Asked) -> Callable[[str], None]:
    """What is odd goes to the notes of the first view."""
    return next((side.note for side in sides if isinstance(side, View)), lambda _: None)


def open(name: str) -> Ledger:  # noqa: A001
    """A ledger: a file path, sqlite:///ratings.db or postgresql://...

    Raises `NotALedger`, `NoLedger` where there is none, `StoreUnavailable`.
    """
    if not isinstance(name, str):
        raise BadArgument(f"a ledger is named by text, a path or a URL, not by {type(name).__name__}", "name")
    return Ledger(_opening.open_ledger(name))
