"""Answers about what is recorded: games as they stand, events as they were written, rulesets, leagues, and clocks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.projections.game_clock.state import ClockLine
from ratings_ledger.projections.queries.answers import Answer, Standing
from ratings_ledger.projections.queries.results import ABSENT, FROM, HIDDEN, SPREAD, Absent, Result, Rows
from ratings_ledger.projections.rulesets.assumptions import assumptions_of


@dataclass(frozen=True, slots=True)
class RecordedGame(Result):
    """A game as it now stands: the position of its first record, when it was played, its members, whether voided."""

    position: int
    occurred_at: datetime
    data: dict[str, Any] = field(metadata=SPREAD)
    voided: bool | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class RecordedGames(Answer):
    """Games by the time they were played; there are so many `older` ones that match.

    `game_id` is the one game that was asked for, `hint` whom else may be meant if there is none of a player; `left_out`
    are the records that no event can have, by position, with the reason.
    """

    rows: tuple[RecordedGame, ...]
    older: int = field(default=0, metadata=HIDDEN, kw_only=True)
    game_id: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    hint: str = field(default="", metadata=HIDDEN, kw_only=True)
    left_out: dict[int, str] = field(default_factory=dict, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecordedEvent(Result):
    """An event as in its record; of an invalid record only its names, its text as `record`, and in `unreadable` why.

    `withdrawn` tells whether it is, `target` is the event that an `event.voided` names.
    """

    event: dict[str, Any] = field(metadata=SPREAD)
    withdrawn: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    target: KnownEvent | None = field(default=None, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class RecordedEvents(Answer):
    """Events in the order of the log; there are so many `older` ones that match.

    `subject` is what they are about, `narrowed` tells whether anything else was asked of them, `hint` what else may be
    meant if there is none.
    """

    rows: tuple[RecordedEvent, ...]
    older: int = field(default=0, metadata=HIDDEN, kw_only=True)
    subject: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    narrowed: bool = field(default=False, metadata=HIDDEN, kw_only=True)
    hint: str = field(default="", metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class RulesetRow(Result):
    """A published version, how many of its values are assumed, and its event.

    `in_force` is yes or no; `withdrawn` is the position of the event that withdraws the version, or None.
    """

    version: str
    rule: str
    effective_from: str
    in_force: str
    assumed: int
    position: int
    by: str
    withdrawn: int | None = None


@dataclass(frozen=True, slots=True)
class AllRulesets(Rows):
    """The published versions, as they were recorded."""

    rows: tuple[RulesetRow, ...]


@dataclass(frozen=True, slots=True)
class ScoringDays(Result):
    """From which day until before which other day a version scores, or `why` it never does; and its event."""

    version: str
    since: str | Absent = field(metadata=FROM)
    until: str | Absent | None
    position: int
    recorded_at: str
    by: str
    why: str | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class RulesetState(Answer):
    """What a version says, which versions its ruleset has, and when each of them scores.

    `ruleset` is the version itself, published at `position` by `by`; `between` tells what becomes of points and ranks
    between versions, None if the version does not run here. `in_words` are the paragraphs of what its rule does, and
    `earlier` is the version that was published before it. `withdrawn` says at which position the version was
    withdrawn and where it can still be queried; it is empty for a live version.
    """

    data: dict[str, Any] = field(metadata=SPREAD)
    versions: tuple[str, ...]
    known_at: int
    timeline: tuple[ScoringDays, ...]
    never_in_force: tuple[ScoringDays, ...]
    ruleset: Ruleset = field(metadata=HIDDEN, kw_only=True)
    position: int = field(metadata=HIDDEN, kw_only=True)
    by: str = field(metadata=HIDDEN, kw_only=True)
    between: str | None = field(metadata=HIDDEN, kw_only=True)
    in_words: tuple[str, ...] = field(metadata=HIDDEN, kw_only=True)
    earlier: Ruleset | None = field(metadata=HIDDEN, kw_only=True)
    withdrawn: str = field(metadata=HIDDEN, kw_only=True)

    @property
    def differences(self) -> list[tuple[str, str | None, str | None]]:
        """Every key that says something else than in the earlier version: there, and here; None for nothing."""
        if self.earlier is None:
            return []
        there, here = (
            {
                key: value
                for key, value in _keys_in(one.model_dump(mode="json", exclude={"version"}, exclude_none=True))
                if value
            }
            for one in (self.earlier, self.ruleset)
        )
        return [(key, there.get(key), here.get(key)) for key in there | here if there.get(key) != here.get(key)]

    @property
    def keys(self) -> list[tuple[str, str, str]]:
        """Every key with its value and, if that is assumed, why; those in tables, as TABLE.KEY, come last."""
        rows = sorted(_keys_in(self.data), key=lambda row: ("." in row[0], row[0]))
        return [(key, value, _assumption(assumptions_of(self.ruleset), key)) for key, value in rows]


def _keys_in(data: dict[str, Any], table: str = "") -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        if isinstance(value, dict) and key != "assumed":
            yield from _keys_in(value, f"{table}{key}.")
        elif key != "assumed":
            yield table + key, ", ".join(map(_written, value)) if isinstance(value, list) else _written(value)


def _written(value: object) -> str:
    """A value as it stands in TOML, without quotation marks."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _assumption(assumed: dict[str, str], key: str) -> str:
    """Why a value is assumed: its own key or that of a table it stands in, such as points of params.points.4."""
    return next((assumed[part] for part in reversed(key.split(".")) if part in assumed), "")


@dataclass(frozen=True, slots=True)
class LeagueGame(Result):
    """A game of a league's schedule: the players by seat, and when it was played, None if it is open."""

    game_id: str
    seats: tuple[str, ...]
    played: datetime | None


@dataclass(frozen=True, slots=True)
class LeagueState(Answer):
    """A league: what it waits for, who won, its players as they subscribed, its schedule and its table.

    `ladder` is that of its table, None if no ruleset scores it; `failed` tells why it cannot be replayed, if so.
    """

    league: str
    game: str
    players_per_game: int
    version: str | None
    state: str
    winners: tuple[str, ...]
    seed: str | None
    players: tuple[str, ...]
    games: tuple[LeagueGame, ...]
    table: tuple[Standing, ...]
    ladder: str | None = field(default=None, metadata=HIDDEN, kw_only=True)
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class LeagueRow(Result):
    """A league, with how many players, games and played games it has."""

    league: str
    game: str
    players_per_game: int
    players: int
    games: int
    played: int
    state: str
    winners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllLeagues(Answer):
    """The leagues by name; `failed` tells of each table that cannot be replayed why."""

    rows: tuple[LeagueRow, ...]
    failed: tuple[str, ...] = field(default=(), metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class Entrant(Result):
    """Somebody who entered a ruleset's ladders, with their league id (LID)."""

    lid: int | None
    player: str


@dataclass(frozen=True, slots=True)
class Unmet(Answer):
    """Whom a player has not met yet on a ladder, of so many `others`; `has_ids` where people know their league ids."""

    ladder: str
    player: str
    lid: int | None
    rows: tuple[Entrant, ...]
    others: int = field(default=0, metadata=HIDDEN, kw_only=True)
    has_ids: bool = field(default=False, metadata=HIDDEN, kw_only=True)


@dataclass(frozen=True, slots=True)
class PlayerTimers(Result):
    """A player's timers, in milliseconds; `running` is `main`, `auxiliary` or None, which without a choice all are."""

    player: str
    main_ms: int
    choice: str | None
    auxiliary_ms: int | None
    running: str | None
    removed_at: int | None
    left_at: int | None
    disconnected_at: int | None


@dataclass(frozen=True, slots=True)
class PauseAsked(Result):
    """Should the game be paused? The time left for answers, who has said yes, and how many must."""

    asked_by: str
    left_ms: int
    yes: tuple[str, ...]
    yes_needed: int


@dataclass(frozen=True, slots=True)
class ClockState(Answer):
    """Every timer of a game at an instant; times are the server's, in milliseconds."""

    game_id: str
    at: int
    started_at: int
    recorded_until: int
    stopped_at: int | None
    pause_asked: PauseAsked | None
    pause_granted_at: int | None
    paused_at: int | None
    pause_left_ms: int | None
    resume_asked: tuple[str, ...]
    players: tuple[PlayerTimers, ...]


@dataclass(frozen=True, slots=True)
class ClockExplanation(Answer):
    """How a player's main timer came about, line by line, ending with their removal if there is one.

    The changes of all lines sum to the main timer. Lines after `recorded_until` are what falls due if no more comes.
    """

    game_id: str
    player: str
    at: int
    recorded_until: int
    main_ms: int
    removed_at: int | None
    lines: tuple[ClockLine, ...]
