"""Define the public interface that `ratings_ledger` exports: an open ledger and its results."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, datetime
from types import TracebackType
from typing import Any, Literal

from ratings_ledger.argument_names import name_arguments as _name_arguments
from ratings_ledger.arguments import CheckedSnapshot as _CheckedSnapshot
from ratings_ledger.arguments import check_arguments as _check_arguments
from ratings_ledger.arguments import format_date as _format_date
from ratings_ledger.arguments import is_storable as _is_storable
from ratings_ledger.ledger import clock as _clock
from ratings_ledger.ledger.errors import (
    AlreadyRunning,
    BadArgument,
    CannotPredict,
    ClockBehind,
    LedgerError,
    LedgerExists,
    NoLedger,
    NotALedger,
    OldSchema,
    RuleFailed,
    RulesetRefused,
    RulesetUnusable,
    StoreDamaged,
    StoreUnavailable,
    Unknown,
)
from ratings_ledger.ledger.events.canonical import format_instant as _format_instant
from ratings_ledger.ledger.events.canonical import parse_object as _parse_object
from ratings_ledger.ledger.events.fields import read_by as _read_by
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.types import complete_event as _complete_event
from ratings_ledger.ledger.intake.intake import ImportPolicy, IntakeResult, Precondition
from ratings_ledger.ledger.rejections import ChangedMeanwhile, Refused, Rejection
from ratings_ledger.ledger.rejections import quote as _quote
from ratings_ledger.ledger.store import log as _log
from ratings_ledger.ledger.store import opening as _opening
from ratings_ledger.ledger.store.locations import redact_password as _redact_password
from ratings_ledger.ledger.store.log import Head
from ratings_ledger.ledger.validation.new_names import CloseName, RefusalScope
from ratings_ledger.projections.admission.known_ladders import KnownLadders as _KnownLadders
from ratings_ledger.projections.admission.leagues import subscribe as _subscribe
from ratings_ledger.projections.admission.new_ledgers import create_ledger as _create_ledger
from ratings_ledger.projections.admission.new_ledgers import publish_source as _publish_source
from ratings_ledger.projections.admission.proposals import Committed, CommittedEvent, Proposal
from ratings_ledger.projections.admission.proposals import propose as _propose
from ratings_ledger.projections.admission.proposals import require_head as _require_head
from ratings_ledger.projections.admission.publishing_rulesets import load_shipped_texts as _load_shipped_texts
from ratings_ledger.projections.admission.publishing_rulesets import publish_missing as _publish_missing
from ratings_ledger.projections.diff.change_explanations import (
    AttributedCause,
    AttributedEnd,
    PointsAttributed,
    attribute_points,
)
from ratings_ledger.projections.diff.comparison import DifferingList, DifferingRow, Effect, ImpactSummary, PointsChange
from ratings_ledger.projections.diff.decisions import Decision, Decisions, Share
from ratings_ledger.projections.diff.differences import ComparedSide, Difference, Differences, compare_ladders
from ratings_ledger.projections.diff.event_impacts import EventImpact, LadderImpact
from ratings_ledger.projections.diff.impact import Impact
from ratings_ledger.projections.diff.other_results import HypotheticalResult, OtherResult
from ratings_ledger.projections.diff.predictions import Quality, QualityPair
from ratings_ledger.projections.diff.published_lists import ListCause, PublishedListDiff, PublishedRowDiff
from ratings_ledger.projections.diff.statements import Statement, StatementLine
from ratings_ledger.projections.diff.what_if import (
    SimulatedLadder,
    Simulation,
    Variant,
)
from ratings_ledger.projections.exact_numbers import ExactNumber
from ratings_ledger.projections.game_clock.state import ClockLine
from ratings_ledger.projections.queries.clocks import ClockExplanation, ClockState, PauseRequest, PlayerTimers
from ratings_ledger.projections.queries.coordinates import CoordinateSpec
from ratings_ledger.projections.queries.forecast import PartnerStakes, PredictedPair, PredictedSide, Prediction, Stakes
from ratings_ledger.projections.queries.game_explanations import (
    ExplainedParticipant,
    ExplainedTerm,
    GameExplanation,
    RatingPeriod,
    StateChange,
)
from ratings_ledger.projections.queries.game_timelines import GameTimeline, TimelineEntry
from ratings_ledger.projections.queries.history import Change, History, PlayerChange, ShownPoints
from ratings_ledger.projections.queries.leagues import (
    AllLeagues,
    Entrant,
    LeagueGame,
    LeagueRow,
    LeagueState,
    UnmetOpponents,
)
from ratings_ledger.projections.queries.player_explanations import PlayedGame, PlayerExplanation
from ratings_ledger.projections.queries.players import Opponent, Person, PlaceCount, PlayerStatistics, Profile, Streak
from ratings_ledger.projections.queries.published_lists import PublicationRow, Publications
from ratings_ledger.projections.queries.rank_history import RankChange, Ranks
from ratings_ledger.projections.queries.recorded_events import (
    RecordedEvent,
    RecordedEvents,
    RecordedGame,
    RecordedGames,
)
from ratings_ledger.projections.queries.recorded_events import read_forward as _read_forward
from ratings_ledger.projections.queries.recorded_events import refuse_unknown_types as _refuse_unknown_types
from ratings_ledger.projections.queries.results import ABSENT, Absent, LastEvent, ReplayFailure, Result, RowSequence
from ratings_ledger.projections.queries.ruleset_states import AllRulesets, RulesetRow, RulesetState, ScoringDays
from ratings_ledger.projections.queries.snapshot_reader import LadderCache as _LadderCache
from ratings_ledger.projections.queries.standings import (
    Account,
    Balance,
    Overview,
    OverviewRow,
    PeriodState,
    Publication,
    Standing,
    Standings,
)
from ratings_ledger.projections.queries.survey import AllLadders, AllLists, Everybody, LadderRow, ListRow, PersonRow
from ratings_ledger.projections.rulesets.ruleset_sources import RulesetSource
from ratings_ledger.projections.rulesets.ruleset_sources import read_source as _read_source
from ratings_ledger.projections.snapshot import Snapshot
from ratings_ledger.projections.stored.schema_upgrades import upgrade_ledger as _upgrade_ledger
from ratings_ledger.projections.stored.status import LedgerStatus
from ratings_ledger.projections.stored.status import read_ledger_status as _read_ledger_status

__all__ = [
    "ABSENT",
    "Absent",
    "Account",
    "AllLadders",
    "AllLeagues",
    "AllLists",
    "AllRulesets",
    "AlreadyRunning",
    "AttributedCause",
    "AttributedEnd",
    "BadArgument",
    "Balance",
    "CannotPredict",
    "Change",
    "ChangedMeanwhile",
    "ClockBehind",
    "ClockExplanation",
    "ClockLine",
    "ClockState",
    "CloseName",
    "Committed",
    "CommittedEvent",
    "ComparedSide",
    "CoordinateSpec",
    "Decision",
    "Decisions",
    "Difference",
    "Differences",
    "DifferingList",
    "DifferingRow",
    "Effect",
    "Entrant",
    "EventImpact",
    "Everybody",
    "ExactNumber",
    "ExplainedParticipant",
    "ExplainedTerm",
    "GameExplanation",
    "GameTimeline",
    "Head",
    "History",
    "HypotheticalResult",
    "Impact",
    "ImpactSummary",
    "LadderImpact",
    "LadderRow",
    "LastEvent",
    "LeagueGame",
    "LeagueRow",
    "LeagueState",
    "Ledger",
    "LedgerError",
    "LedgerExists",
    "LedgerStatus",
    "ListCause",
    "ListRow",
    "NoLedger",
    "NotALedger",
    "OldSchema",
    "Opponent",
    "OtherResult",
    "Overview",
    "OverviewRow",
    "PartnerStakes",
    "PauseRequest",
    "PeriodState",
    "Person",
    "PersonRow",
    "PlaceCount",
    "PlayedGame",
    "PlayerChange",
    "PlayerExplanation",
    "PlayerStatistics",
    "PlayerTimers",
    "PointsAttributed",
    "PointsChange",
    "PredictedPair",
    "PredictedSide",
    "Prediction",
    "Profile",
    "Proposal",
    "Publication",
    "PublicationRow",
    "Publications",
    "PublishedListDiff",
    "PublishedRowDiff",
    "Quality",
    "QualityPair",
    "RankChange",
    "Ranks",
    "RatingPeriod",
    "RecordedEvent",
    "RecordedEvents",
    "RecordedGame",
    "RecordedGames",
    "Refused",
    "Rejection",
    "ReplayFailure",
    "Result",
    "RowSequence",
    "RuleFailed",
    "Ruleset",
    "RulesetRefused",
    "RulesetRow",
    "RulesetSource",
    "RulesetState",
    "RulesetUnusable",
    "ScoringDays",
    "Share",
    "ShownPoints",
    "SimulatedLadder",
    "Simulation",
    "Snapshot",
    "Stakes",
    "Standing",
    "Standings",
    "StateChange",
    "Statement",
    "StatementLine",
    "StoreDamaged",
    "StoreUnavailable",
    "Streak",
    "TimelineEntry",
    "Unknown",
    "UnmetOpponents",
    "Variant",
    "View",
    "create",
    "example",
    "open",
    "upgrade",
]

View = Snapshot  # an alias, because `Ledger.at` returns what the documentation calls a view
FOLLOW_PAGE_EVENTS = 1_000  # the maximum number of events that `Ledger.follow` reads at once
DEFAULT_CREATOR = "ratings-ledger"  # the default recorder of a ledger's first events


class Ledger:
    """An open ledger. Threads may share it; a forked process must open its own."""

    def __init__(self, store: _opening.Ledger) -> None:
        self._store = store
        self._cache = _LadderCache()

    def __repr__(self) -> str:
        return f"Ledger({self.location!r})"

    @property
    def location(self) -> str:
        """Return the path or the URL without its password."""
        return self._store.location

    @property
    def head(self) -> Head:
        """Return the last position of the log with its chain hash and its time, in microseconds since 1970.

        Raises:
            StoreUnavailable: The ledger cannot be read.
        """
        with self._store.reading() as connection:
            return _log.head(connection)

    @_check_arguments
    def at(
        self,
        as_of: str | date | None = None,
        known_at: str | int | date | None = None,
        rules: str | None = None,
        *,
        close_now: bool = False,
    ) -> Snapshot:
        """Return a view of the ledger: games played up to `as_of`, as known at `known_at`, under `rules`.

        Args:
            as_of: A date, which includes the whole day, or a time. Pass text, a `date`, or a `datetime` with a time
                zone. None means no limit.
            known_at: A date or a time, as for `as_of`, or a position of the log. None means the head.
            rules: A version, ID@VERSION, that scores all games of its ruleset. None means each ruleset's own timeline.
            close_now: Score open rating periods as if they closed now. Publications, simulations, decisions and the
                effect of an event ignore this; a comparison refuses such a view.

        Returns:
            A view. Its first query checks the coordinates against the ledger, and raises `BadArgument` if they are
            invalid.

        Raises:
            BadArgument: An argument has the wrong type, or a `datetime` has no time zone.
        """
        as_of_text, known_at_text = _format_date("as_of", as_of), _format_date("known_at", known_at)
        return _CheckedSnapshot(self._store, as_of_text, known_at_text, rules, close_now=close_now, cache=self._cache)

    @_check_arguments
    def propose(
        self,
        events: Mapping[str, object] | Iterable[Mapping[str, object]],
        by: str,
        *,
        strict: bool = False,
        new_names: Literal["refuse", "accept"] = "refuse",
        any_date: bool = False,
        allow_uncounted: bool = False,
        based_on: Mapping[str, str | int] | None = None,
    ) -> Proposal:
        """Check events of any kind without writing them; `Proposal.commit` writes them.

        An event has `type`, `data` and `occurred_at` (default: now), or is a game's data with or without `occurred_at`.

        Args:
            events: An event, or several.
            by: The recorder.
            strict: Refuse all new names, and games that begin a ladder.
            new_names: `refuse` or `accept` new names that are close to known names.
            any_date: Accept games dated more than a day ahead, or before 1900.
            allow_uncounted: Accept games that the rule of a ladder cannot score.
            based_on: The last event that you read of each subject, such as game:wl-09, as an id or a position (see
                `Snapshot.timeline`). The events are refused if the ledger has a later event about such a subject.

        Returns:
            A proposal with `rejections` for errors. If `events` is a list, the `line` of a rejection is the number of
            the refused event, from 1.

        Raises:
            BadArgument: An argument is invalid, or `based_on` names a subject that none of the events is about.
            ClockBehind: This machine's clock is behind the last event.
            StoreUnavailable: The ledger cannot be read.
        """
        event_list = [events] if isinstance(events, Mapping) else events
        if isinstance(event_list, str | bytes) or not isinstance(event_list, Iterable):
            raise BadArgument(f"events must be a dictionary or a list of them, not {type(events).__name__}", "events")
        if new_names not in ("refuse", "accept"):
            raise BadArgument(f"new_names must be refuse or accept, not {_quote(new_names)}", "new_names")
        _check_based_on(based_on)
        by = _read_recorder(by)
        refusal_scope: RefusalScope = "all" if strict or new_names == "refuse" else ""
        policy = ImportPolicy(
            by, any_date=any_date, allow_uncounted=allow_uncounted, refusal_scope=refusal_scope, strict=strict
        )
        proposal = _propose(
            self._store,
            [_complete_event(_to_json(event), _clock.now()) for event in event_list],
            policy,
            _KnownLadders(strict, self._cache.load_newest),
            based_on=based_on,
            has_event_numbers=not isinstance(events, Mapping),
            phrase=_name_arguments,
        )
        is_new = not proposal.is_refused and not proposal.result.existing
        if based_on and is_new and (unknown := based_on.keys() - {draft.subject for draft in proposal.drafts()}):
            proposal.close()
            message = f"based_on names {_quote(min(unknown))}, but none of the events is about it"
            raise BadArgument(f"{message}; write subjects like game:wl-09", "based_on")
        return proposal

    @_check_arguments
    def publish(self, ruleset: RulesetSource, by: str) -> list[str]:
        """Publish the versions of a ruleset now; return the new ones, such as `["elo-chess@1"]`.

        A version scores games from its `effective_from` on. Versions that are already published with the same content
        are skipped.

        Args:
            ruleset: TOML text, the path of a file (.toml, .json), a dictionary of the file's tables, a `Ruleset`, or
                the name of a shipped ruleset, followed by the game if the ruleset leaves it open: "b5-league",
                "elo-chess".
            by: The recorder.

        Raises:
            BadArgument: The ruleset is invalid.
            Refused: A version conflicts with published ones.
            ClockBehind: This machine's clock is behind the last event.
            StoreUnavailable: The ledger cannot be written.
        """
        return _publish_source(self._store, ruleset, self._read_zone(), _read_recorder(by))

    def _read_zone(self) -> str:
        with self._store.reading() as connection:
            return _log.home_zone(connection) or "UTC"

    @_check_arguments
    def publish_shipped(
        self, by: str, ruleset_id: str = "all", games: Collection[str] = (), *, zone: str | None = None
    ) -> list[str]:
        """Publish the shipped rulesets that the ledger lacks; return the new versions.

        Args:
            by: The recorder.
            ruleset_id: The id of a shipped ruleset, or `all` for those that `ratings init` publishes.
            games: The games for which to publish a ruleset that leaves its game open, such as glicko. With `all` and
                games, only Elo for these games is published.
            zone: The time zone of a ruleset that leaves its zone open, by default the home zone.

        Raises:
            BadArgument: No shipped ruleset has this id, or a game or a zone is missing or does not apply to it.
            Refused: The name of a game is invalid, or a ruleset conflicts with published ones.
            ClockBehind: This machine's clock is behind the last event.
            StoreUnavailable: The ledger cannot be written.
        """
        texts = _load_shipped_texts(self._store, ruleset_id, games, zone)
        return _publish_missing(self._store, _read_recorder(by), texts)

    @_check_arguments
    def join_league(self, league: str, player: str, by: str, *, seed: str | None = None) -> Head:
        """Subscribe a player to a league now; return the new head. The eighth player triggers the draw of the schedule.

        Several programs may subscribe players at the same time.

        Args:
            league: The name of the league.
            player: The player's id.
            by: The recorder.
            seed: The text that determines the draw, by default random.

        Raises:
            BadArgument: An argument is invalid.
            Refused: The player cannot join, for example because the league is unknown or full.
            ClockBehind: This machine's clock is behind the last event.
            StoreUnavailable: The ledger cannot be written.
        """
        policy, occurred_at = ImportPolicy(_read_recorder(by)), _format_instant(_clock.now())

        def append(events: list[dict[str, Any]], precondition: Precondition) -> IntakeResult:
            return _propose(self._store, events, policy, precondition=precondition).append()

        return _require_head(_subscribe(self._store, league, player, occurred_at, seed, append).result)

    @_check_arguments
    def published(self, as_of: str | None = None, known_at: str | int | None = None) -> CoordinateSpec:
        """Return coordinates for `compare` and `attribute`: the latest published lists, or those for one `as_of`.

        Args:
            as_of: The date or time for which the lists were published; by default, the latest of each ladder.
            known_at: Use only lists that were published up to a date, a time or a position.
        """
        return CoordinateSpec("published", published=True, as_of=as_of, known_at=known_at)

    @_check_arguments
    def compare(
        self,
        before: Snapshot | CoordinateSpec,
        after: Snapshot | CoordinateSpec,
        ladders: Collection[str] = (),
        *,
        predictions: bool = False,
    ) -> Differences:
        """Return the differences of ladders between two sets of coordinates.

        Args:
            before: The first set of coordinates: a view, or published lists (see `published`).
            after: The second set of coordinates.
            ladders: The ladders to compare, by default all that differ.
            predictions: Also measure how well the points at each set of coordinates predict who places better.

        Raises:
            BadArgument: An argument is invalid.
            Unknown: A requested list is not published, or no list is.
            RulesetUnusable: A ruleset cannot be used.
        """
        view = Snapshot(self._store, note=_find_note_handler(after, before), cache=self._cache)
        names = [*map(view.full_name, ladders)]
        with view.side_loader() as loader:
            return compare_ladders(loader, _to_spec(before), _to_spec(after), names, predictions)

    @_check_arguments
    def attribute(
        self, ladder: str, player: str, before: Snapshot | CoordinateSpec, after: Snapshot | CoordinateSpec
    ) -> PointsAttributed:
        """Return the causes of the change in a player's points between two sets of coordinates; they add up exactly.

        Args:
            ladder: The name of the ladder.
            player: The player's id.
            before: The first set of coordinates: a view, or published lists (see `published`).
            after: The second set of coordinates.

        Raises:
            BadArgument: An argument is invalid.
            Unknown: The player is unknown, or the ladder has no such published list.
            RulesetUnusable: The ladder's ruleset cannot be used.
            RuleFailed: The rule failed, so the ladder cannot be replayed.
        """
        view = Snapshot(self._store, note=_find_note_handler(after, before), cache=self._cache)
        ladder = view.full_name(ladder)
        with view.side_loader() as loader:
            return attribute_points(loader, ladder, player, _to_spec(before), _to_spec(after))

    @_check_arguments
    def simulate(self, ruleset: RulesetSource, view: Snapshot, ladders: Collection[str] = ()) -> Simulation:
        """Score all games of a ruleset with a candidate version, and compare the standings with the current ones.

        Args:
            ruleset: The candidate, in any form that `publish` accepts; of several versions, the last one.
            view: The view with the games to score; its `rules` are ignored.
            ladders: The ladders to score, by default all of the ruleset.

        Raises:
            BadArgument: An argument is invalid, for example the ruleset.
            Unknown: A ladder has no games.
            RulesetRefused: The candidate conflicts with other versions.
            RulesetUnusable: The published ruleset of a ladder cannot be used.
        """
        return view.simulate([({}, _read_source(ruleset, self._read_zone())[-1].ruleset)], ladders)

    @_check_arguments
    def log(self, after: int = 0, limit: int = 0, *, types: Collection[str] = ()) -> RecordedEvents:
        """Return the events after a position as they were written, oldest first.

        Voided events and the events that void them are included. The next page begins after
        `rows[-1].event["position"]`.

        Args:
            after: The position after which the events come.
            limit: The maximum number of events (0: all).
            types: Return only events of these types.

        Raises:
            BadArgument: An argument is invalid.
            StoreUnavailable: The ledger cannot be read.
        """
        with self._store.reading() as connection:
            return _read_forward(connection, after, limit, types)

    @_check_arguments
    def follow(
        self,
        after: int | None = None,
        *,
        types: Collection[str] = (),
        poll_seconds: float = 1.0,
        timeout_seconds: float | None = None,
    ) -> Iterator[RecordedEvent]:
        """Yield the events after a position, and then each new event when it is committed.

        No event is missed or yielded twice, because positions have no gaps. To resume later, store the position of the
        last event.

        Args:
            after: The position after which the events come, by default the head.
            types: Return only events of these types.
            poll_seconds: The time between two searches for new events.
            timeout_seconds: End after this time without a new event of any type. By default, end only at `close`.

        Raises:
            BadArgument: An argument is invalid.
            StoreUnavailable: The ledger cannot be read.
        """
        if not 0 < poll_seconds <= 3_600:
            raise BadArgument(f"poll_seconds must be more than 0 and at most 3600, not {poll_seconds}", "poll_seconds")
        _refuse_unknown_types(types)
        start = self.head.position if after is None else after
        return self._follow(start, frozenset(types), poll_seconds, timeout_seconds)

    def _follow(
        self, after: int, types: frozenset[str], poll_seconds: float, timeout_seconds: float | None
    ) -> Iterator[RecordedEvent]:
        idle_seconds = 0.0
        while True:
            try:
                page = self.log(after, FOLLOW_PAGE_EVENTS)
            except LedgerError:
                if self._store.wait_closed(0):
                    return
                raise
            for row in page.rows:
                after = row.event["position"]
                if not types or row.event["type"] in types:
                    yield row
            if page.rows:
                idle_seconds = 0.0
                continue
            if timeout_seconds is not None and idle_seconds >= timeout_seconds:
                return
            wait = poll_seconds if timeout_seconds is None else min(poll_seconds, timeout_seconds - idle_seconds)
            if self._store.wait_closed(wait):
                return
            idle_seconds += wait

    def status(self) -> LedgerStatus:
        """Return the status of the ledger: its head, the age of stored standings, and the last runs of jobs.

        Raises:
            StoreDamaged: The last event is invalid.
            StoreUnavailable: The ledger cannot be read.
        """
        with self._store.reading() as connection:
            return _read_ledger_status(self._store, connection)

    def close(self) -> None:
        """Close the ledger. Later queries of the ledger or its views raise `BadArgument`.

        A ledger in memory is deleted. Closing a ledger twice is harmless.
        """
        self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _to_json(event: object) -> dict[str, Any]:
    """Convert an event to plain JSON data; times may be `datetime` objects. Raises `BadArgument`."""
    if not isinstance(event, Mapping):
        raise BadArgument(f"an event must be a dictionary, not {type(event).__name__}", "events")
    try:
        return _parse_object(json.dumps(dict(event), default=_encode_time).encode())
    except (Refused, TypeError, ValueError, RecursionError) as error:
        raise BadArgument(f"an event must be valid JSON: {error}", "events") from None


def _check_based_on(based_on: object) -> None:
    """Raise `BadArgument` unless `based_on` maps subjects to ids or positions of events, or is None."""
    if based_on is None:
        return
    if not isinstance(based_on, Mapping):
        raise BadArgument(f"based_on must be a dictionary, not {type(based_on).__name__}", "based_on")
    for subject, last in based_on.items():
        if isinstance(last, bool) or not isinstance(last, str | int):
            raise BadArgument(f"based_on[{subject!r}] must be an event's id or position, not {last!r}", "based_on")


def _read_recorder(by: str) -> str:
    """Return the name of the recorder in its normal form. Raises `BadArgument`."""
    try:
        return _read_by(by)
    except Refused as error:
        raise BadArgument(error.message, "by") from None


def _encode_time(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form; pass text, a number, a list, a dictionary or a datetime")


def _to_spec(side: Snapshot | CoordinateSpec) -> CoordinateSpec:
    if isinstance(side, CoordinateSpec):
        return side
    if side.close_now:
        raise BadArgument(
            "a view with close_now cannot be compared; pass a view that was created without close_now",
            "close_now",
        )
    return CoordinateSpec("", published=False, as_of=side.as_of, known_at=side.known_at, rules=side.rules)


def _find_note_handler(*sides: Snapshot | CoordinateSpec) -> Callable[[str], None]:
    """Return the function that receives notes for the first view; without a view, notes are dropped."""
    return next((side.note for side in sides if isinstance(side, Snapshot)), lambda _: None)


def open(name: str | os.PathLike[str], *, create: bool = False) -> Ledger:  # noqa: A001
    """Open the ledger at a file path or a URL.

    Args:
        name: The path of a file, or a URL such as sqlite:///ratings.db or postgresql://host/database.
        create: Create an empty ledger if none exists there.

    Raises:
        BadArgument: The name is neither text nor a path, or it has a forbidden character.
        NoLedger: The ledger does not exist.
        OldSchema: The ledger must be upgraded first (`upgrade`).
        NotALedger: The URL is invalid, the file or database is not a ledger, or a newer program made it.
        StoreUnavailable: The ledger cannot be reached.
    """
    path = _read_location(name)
    if create:
        try:
            return _create(path, zone=None, rulesets=(), by=DEFAULT_CREATOR)
        except LedgerExists:
            pass
    return Ledger(_open_store(path))


def _open_store(path: str) -> _opening.Ledger:
    """Open a ledger. Errors suggest the Python call as well as the command. Raises as `open` does."""
    if path == _opening.IN_MEMORY:
        raise NoLedger(
            "a ledger in memory cannot be opened again; create a new one with ratings_ledger.create(':memory:')"
        )
    try:
        # a file has no server that would end idle connections
        return _opening.open_ledger(path, keep_open=_opening.is_file(path))
    except OldSchema as error:
        raise OldSchema(f"{error}; or from Python: ratings_ledger.upgrade({_redact_password(path)!r})") from None
    except NoLedger as error:
        raise NoLedger(f"{error}; or from Python: ratings_ledger.create({_redact_password(path)!r})") from None


def create(
    name: str | os.PathLike[str] = _opening.IN_MEMORY,
    *,
    zone: str | None = None,
    rulesets: Collection[RulesetSource] = (),
    by: str = DEFAULT_CREATOR,
) -> Ledger:
    """Create a ledger and return it.

    Args:
        name: A path or a URL, as for `open`, or ":memory:" for a ledger that exists until it is closed.
        zone: The home time zone, such as "Europe/Berlin", in which times are shown and read.
        rulesets: The rulesets that score its games, in any form that `Ledger.publish` accepts.
        by: The recorder of the zone and the rulesets.

    Raises:
        LedgerExists: The ledger already exists.
        BadArgument: An argument is invalid, for example the zone or a ruleset. Nothing is created.
        Refused: The rulesets conflict with each other. No file is left.
        NotALedger: The URL is invalid, or the file or database belongs to another program.
        StoreUnavailable: The file or database cannot be reached.
    """
    if zone is not None and not isinstance(zone, str):
        raise BadArgument(f"zone must be a string, such as 'Europe/Berlin', not {type(zone).__name__}", "zone")
    return _create(_read_location(name), zone=zone, rulesets=rulesets, by=_read_recorder(by))


def _create(path: str, *, zone: str | None, rulesets: Collection[RulesetSource], by: str) -> Ledger:
    """Create a ledger and open it as `open` does, unless it is in memory. Raises as `create` does."""
    store = _create_ledger(path, zone=zone, rulesets=rulesets, by=by)
    return Ledger(store if path == _opening.IN_MEMORY else _open_store(path))


def example() -> Ledger:
    """Return a ledger in memory with the sample season of an invented club in Berlin.

    It contains 91 games of Catan (elo-catan), an evening of Galactic Magnate (galactic-points) with a corrected game
    and an adjustment, a Babylon 5 season (b5-league), a running league of Cartagena (youplay-league), and a published
    list, all recorded by mira. The games and standings are the same each time; the ledger's id and the times of
    recording and publishing are not.
    """
    from ratings_ledger.example_club import create_example  # imported late, because few programs need it

    return Ledger(create_example())


def upgrade(name: str | os.PathLike[str]) -> Ledger:
    """Upgrade a ledger from an older program to the current schema, and return it. Make a backup first.

    Args:
        name: A path or a URL, as for `open`.

    Raises:
        AlreadyRunning: A rebuild, a rollback or another upgrade is running.
        BadArgument: The name is neither text nor a path, or it has a forbidden character.
        NoLedger: The ledger does not exist.
        NotALedger: The URL is invalid, the file or database is not a ledger, or a newer program made it.
        StoreUnavailable: The ledger cannot be written. If the `reason` is `no-right`, another user must upgrade it.
    """
    path = _read_location(name)
    result = _upgrade_ledger(path)
    if result.is_needed and not result.may:
        message = f"{result.user} may not upgrade {result.ledger}; run the upgrade as {result.owner}"
        raise StoreUnavailable(message, "no-right")
    return Ledger(_open_store(path))


def _read_location(name: str | os.PathLike[str]) -> str:
    """Return the path or URL of a ledger. Raises `BadArgument`."""
    path = os.fspath(name) if isinstance(name, os.PathLike) else name
    if not isinstance(path, str):
        raise BadArgument(f"a ledger must be a path or a URL, not {type(name).__name__}", "name")
    if not _is_storable(path):
        raise BadArgument("the path or URL of a ledger cannot contain a lone surrogate or a null character", "name")
    return path
