"""The public interface, whose names `ratings_ledger` has: a ledger that is open, and its results."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, datetime
from types import TracebackType
from typing import Any, Literal

from ratings_ledger.arguments import CheckedSnapshot as _CheckedSnapshot
from ratings_ledger.arguments import checked as _checked
from ratings_ledger.arguments import in_text as _in_text
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
from ratings_ledger.ledger.intake.intake import Imported, ImportPolicy, Precondition
from ratings_ledger.ledger.rejections import ChangedMeanwhile, Refused, Rejection
from ratings_ledger.ledger.rejections import quote as _shown
from ratings_ledger.ledger.store import log as _log
from ratings_ledger.ledger.store import opening as _opening
from ratings_ledger.ledger.store.locations import redact_password as _hidden
from ratings_ledger.ledger.store.log import Head
from ratings_ledger.ledger.validation.new_names import CloseName, Refusing
from ratings_ledger.projections.admission.leagues import subscribe as _subscribe
from ratings_ledger.projections.admission.new_ledgers import create_ledger as _create_ledger
from ratings_ledger.projections.admission.new_ledgers import publish_source as _publish_source
from ratings_ledger.projections.admission.proposals import Committed, CommittedEvent, Proposal
from ratings_ledger.projections.admission.proposals import Known as _Known
from ratings_ledger.projections.admission.proposals import head_after as _head_after
from ratings_ledger.projections.admission.proposals import propose as _propose
from ratings_ledger.projections.admission.proposals import whole_event as _whole_event
from ratings_ledger.projections.admission.publishing_rulesets import publish_missing as _publish_missing
from ratings_ledger.projections.admission.publishing_rulesets import shipped_texts as _shipped_texts
from ratings_ledger.projections.diff.attribution import (
    AttributedCause,
    AttributedEnd,
    PointsAttributed,
    attribute_points,
)
from ratings_ledger.projections.diff.comparison import (
    ComparedSide,
    Difference,
    Differences,
    DifferingList,
    DifferingRow,
    Effect,
    ImpactSummary,
    PointsChange,
    compare_ladders,
)
from ratings_ledger.projections.diff.decisions import Decision, Decisions, Share
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
from ratings_ledger.projections.queries.clocks import ClockExplanation, ClockState, PauseAsked, PlayerTimers
from ratings_ledger.projections.queries.coordinates import CoordinateSpec
from ratings_ledger.projections.queries.explain import (
    Explained,
    ExplainedTerm,
    GameExplanation,
    PlayedGame,
    PlayerExplanation,
    RatingPeriod,
    StateChange,
)
from ratings_ledger.projections.queries.forecast import PartnerStakes, PredictedPair, PredictedSide, Prediction, Stakes
from ratings_ledger.projections.queries.game_timelines import GameTimeline, TimelineEntry
from ratings_ledger.projections.queries.games_log import RecordedEvent, RecordedEvents, RecordedGame, RecordedGames
from ratings_ledger.projections.queries.games_log import read_forward as _read_forward
from ratings_ledger.projections.queries.games_log import refuse_unknown_types as _refuse_unknown_types
from ratings_ledger.projections.queries.history import Change, History, PlayerChange, RankChange, Ranks, Shown
from ratings_ledger.projections.queries.ladders_at import LadderCache as _LadderCache
from ratings_ledger.projections.queries.leagues import AllLeagues, Entrant, LeagueGame, LeagueRow, LeagueState, Unmet
from ratings_ledger.projections.queries.players import Opponent, Person, PlaceCount, PlayerStatistics, Profile, Streak
from ratings_ledger.projections.queries.published import Publication, PublicationRow, Publications
from ratings_ledger.projections.queries.results import ABSENT, Absent, Failed, LastEvent, Result, RowSequence
from ratings_ledger.projections.queries.ruleset_states import AllRulesets, RulesetRow, RulesetState, ScoringDays
from ratings_ledger.projections.queries.standings import (
    Account,
    Balance,
    Overview,
    OverviewRow,
    PeriodState,
    Standing,
    Standings,
)
from ratings_ledger.projections.queries.survey import AllLadders, AllLists, Everybody, LadderRow, ListRow, PersonRow
from ratings_ledger.projections.rulesets.ruleset_sources import RulesetSource
from ratings_ledger.projections.rulesets.ruleset_sources import read_source as _read_source
from ratings_ledger.projections.snapshot import Snapshot
from ratings_ledger.projections.stored.schema_upgrades import upgrade_ledger as _upgrade_ledger
from ratings_ledger.projections.stored.status import LedgerStatus
from ratings_ledger.projections.stored.status import read_ledger_status as _ledger_status

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
    "Explained",
    "ExplainedTerm",
    "Failed",
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
    "PauseAsked",
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
    "Shown",
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
    "Unmet",
    "Variant",
    "View",
    "create",
    "example",
    "open",
    "upgrade",
]

# the name that programs know it by
View = Snapshot
# as many events as `Ledger.follow` reads at once
FOLLOWED_EVENTS = 1_000
# who records the first events of a ledger if nobody is named
CREATOR = "ratings-ledger"


class Ledger:
    """An open ledger. Threads may share it; a process that is forked opens its own."""

    def __init__(self, store: _opening.Ledger) -> None:
        self._store = store
        self._cache = _LadderCache()

    def __repr__(self) -> str:
        return f"Ledger({self.location!r})"

    @property
    def location(self) -> str:
        """Return where it is, without anything secret."""
        return self._store.location

    @property
    def head(self) -> Head:
        """Return the last position of the log with its chain hash and its time in microseconds since 1970."""
        with self._store.reading() as connection:
            return _log.head(connection)

    @_checked
    def at(
        self,
        as_of: str | date | None = None,
        known_at: str | int | date | None = None,
        rules: str | None = None,
        *,
        close_now: bool = False,
    ) -> Snapshot:
        """Return the ledger at coordinates: what was played up to `as_of`, as known at `known_at`, under `rules`.

        `as_of` and `known_at` are dates, which mean their ends, or times, as text or Python's own, which need a zone;
        `known_at` may be a position. `rules` is a version, ID@VERSION, that scores all games of its ruleset. None means
        now, or the rulesets' own timelines. With `close_now`, games that wait in open rating periods are scored as if
        these closed now; what was published, compared, simulated or decided stays as it is. Wrong ones are told when
        something is asked: `BadArgument`.
        """
        played, known = _in_text("as_of", as_of), _in_text("known_at", known_at)
        return _CheckedSnapshot(self._store, played, known, rules, close_now=close_now, cache=self._cache)

    @_checked
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
        """Check events of any kind, which `by` records, and write nothing yet: see `Proposal.commit`.

        An event is a dictionary as a line of JSON has it: `type`, `data` and `occurred_at`, by default now; a game
        alone will do, with `occurred_at` or without. The options are those of `ratings record`. What is wrong with
        events is in `rejections`; of several events the `line` of each is the number of its event, from 1.

        Args:
            events: one or several of them.
            by: who records them.
            new_names: whether names that are close to known ones are refused.
            based_on: by subject, such as game:wl-09, the id or position of the last event about it when somebody
                looked, as `Snapshot.story` has them; what was changed since is refused.

        Raises:
            BadArgument: also for a subject of `based_on` that none of the events is about.
            ClockBehind, StoreUnavailable.
        """
        given = [events] if isinstance(events, Mapping) else events
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise BadArgument(f"events are dictionaries, not {type(events).__name__}", "events")
        if new_names not in ("refuse", "accept"):
            raise BadArgument(f"new_names is refuse or accept, not {_shown(new_names)}", "new_names")
        if based_on is not None and not isinstance(based_on, Mapping):
            raise BadArgument(f"based_on is a dictionary, not {type(based_on).__name__}", "based_on")
        for subject, last in (based_on or {}).items():
            if isinstance(last, bool) or not isinstance(last, str | int):
                raise BadArgument(f"based_on[{subject!r}] is an event's id or position, not {last!r}", "based_on")
        by = _name(by)
        refusing: Refusing = "all" if strict or new_names == "refuse" else ""
        policy = ImportPolicy(by, any_date=any_date, allow_uncounted=allow_uncounted, refusing=refusing, strict=strict)
        whole = [_whole_event(_as_json(event)) for event in given]
        numbered = not isinstance(events, Mapping)
        known = _Known(strict, self._cache.load_newest)
        plan = _propose(self._store, whole, policy, known, based_on=based_on, numbered=numbered)
        is_new = not plan.is_refused and not plan.result.existing
        if based_on and is_new and (unknown := based_on.keys() - {draft.subject for draft in plan.drafts()}):
            plan.close()
            told = f"no event is about {_shown(min(unknown))}, which based_on names; a subject is like game:wl-09"
            raise BadArgument(told, "based_on")
        return plan

    @_checked
    def publish(self, ruleset: RulesetSource, by: str) -> list[str]:
        """Publish a ruleset now; return the versions that are new, such as `["elo-chess@1"]`.

        It is TOML, the path of a file of it (.toml, .json), its tables as a dictionary, a `Ruleset`, or the name of a
        shipped one, with the game where that is open: "b5-league", "elo-chess", "glicko-darts". A version scores games
        from its `effective_from` on. What is published already, with the same content, is left alone. Raises
        `BadArgument`, `Refused` where a version does not fit the others, `ClockBehind`, `StoreUnavailable`.
        """
        return _publish_source(self._store, ruleset, self._zone(), _name(by))

    def _zone(self) -> str:
        with self._store.reading() as connection:
            return _log.home_zone(connection) or "UTC"

    @_checked
    def publish_shipped(
        self, by: str, wanted: str = "all", games: Collection[str] = (), *, zone: str | None = None
    ) -> list[str]:
        """Publish the shipped rulesets that the ledger lacks, or those of one id; or with `games` Elo for each of them.

        With an id that leaves the game open, such as glicko, it is published for each of the `games`, in the time
        zone `zone`, by default the home zone. Returns the versions that are new. Raises `BadArgument`, `Refused` for
        what cannot be a game's name, `StoreUnavailable`, `NotALedger` if one does not fit what the ledger holds.
        """
        return _publish_missing(self._store, _name(by), _shipped_texts(self._store, wanted, games, zone))

    @_checked
    def join_league(self, league: str, player: str, by: str, *, seed: str | None = None) -> Head:
        """Subscribe a player to a league now, also while others do. The eighth draws the schedule, by the seed.

        Returns the new head. Raises `BadArgument`, `Refused` for a league that is unknown or full, and so on,
        `ClockBehind`, `StoreUnavailable`.
        """
        policy, at = ImportPolicy(_name(by)), _format_instant(_clock.now())

        def take(events: list[dict[str, Any]], precondition: Precondition) -> Imported:
            return _propose(self._store, events, policy, precondition=precondition).append()

        return _head_after(_subscribe(self._store, league, player, at, seed, take).result)

    @_checked
    def published(self, as_of: str | None = None, known_at: str | int | None = None) -> CoordinateSpec:
        """Return what published lists hold, of all times or of one `as_of`, as a side of `compare` and `attribute`."""
        return CoordinateSpec("published", True, as_of, known_at)

    @_checked
    def compare(
        self,
        before: Snapshot | CoordinateSpec,
        after: Snapshot | CoordinateSpec,
        ladders: Collection[str] = (),
        *,
        predictions: bool = False,
    ) -> Differences:
        """Return how the ladders that are named differ between two places on the axes, or all that do.

        With `predictions` each says how well the points at both predicted who was placed better. Raises `BadArgument`,
        `Unknown` where nothing is published, `RulesetUnusable`.
        """
        view = Snapshot(self._store, note=_note(after, before), cache=self._cache)
        named = [*map(view.full_name, ladders)]
        with view.sides() as loader:
            return compare_ladders(loader, _asked(before), _asked(after), named, predictions)

    @_checked
    def attribute(
        self, ladder: str, player: str, before: Snapshot | CoordinateSpec, after: Snapshot | CoordinateSpec
    ) -> PointsAttributed:
        """Return what changed a player's points on a ladder between two places on the axes; the causes add up exactly.

        Raises `BadArgument`, `Unknown` for somebody not recorded and where nothing is published, `RuleFailed`.
        """
        view = Snapshot(self._store, note=_note(after, before), cache=self._cache)
        ladder = view.full_name(ladder)
        with view.sides() as loader:
            return attribute_points(loader, ladder, player, _asked(before), _asked(after))

    @_checked
    def simulate(self, ruleset: RulesetSource, view: Snapshot, ladders: Collection[str] = ()) -> Simulation:
        """What if a ruleset, named as for `publish`, had scored its games from the start? On some ladders.

        Raises `BadArgument`, also for a ruleset that is wrong, `RulesetRefused` for one that fits no other version.
        """
        return view.simulate([({}, _read_source(ruleset, self._zone())[-1].ruleset)], ladders)

    @_checked
    def log(self, after: int = 0, limit: int = 0, *, types: Collection[str] = ()) -> RecordedEvents:
        """Return the events behind a position as they were written, oldest first, at most `limit` of them (0: all).

        The next page begins behind `rows[-1].event["position"]`. `types` leaves out events of other types. Events that
        were voided later are there, as is the event that voids them. Raises `BadArgument`, `StoreUnavailable`.
        """
        with self._store.reading() as connection:
            return _read_forward(connection, after, limit, types)

    @_checked
    def follow(
        self,
        after: int | None = None,
        *,
        types: Collection[str] = (),
        poll_seconds: float = 1.0,
        timeout_seconds: float | None = None,
    ) -> Iterator[RecordedEvent]:
        """Yield the events behind a position, by default the head, and then each new one once it is committed.

        It asks every `poll_seconds` and never ends by itself, but for a `timeout_seconds` in which nothing came, or
        when the ledger is closed. No event is missed or yielded twice: their positions have no gaps. To go on later,
        keep the position of the last one. Raises `BadArgument` and `StoreUnavailable` from the iterator.
        """
        if not 0 < poll_seconds <= 3_600:
            raise BadArgument(f"poll_seconds is more than 0 and at most 3600, not {poll_seconds}", "poll_seconds")
        _refuse_unknown_types(types)
        start = self.head.position if after is None else after
        return self._follow(start, frozenset(types), poll_seconds, timeout_seconds)

    def _follow(
        self, after: int, types: frozenset[str], poll_seconds: float, timeout_seconds: float | None
    ) -> Iterator[RecordedEvent]:
        silent = 0.0  # seconds that were waited since an event came
        while True:
            try:
                page = self.log(after, FOLLOWED_EVENTS)
            except LedgerError:
                if self._store.wait_closed(0):
                    return
                raise
            for row in page.rows:
                after = row.event["position"]
                if not types or row.event["type"] in types:
                    yield row
            if page.rows:
                silent = 0.0
                continue
            if timeout_seconds is not None and silent >= timeout_seconds:
                return
            wait = poll_seconds if timeout_seconds is None else min(poll_seconds, timeout_seconds - silent)
            if self._store.wait_closed(wait):
                return
            silent += wait

    def status(self) -> LedgerStatus:
        """Return the state of the ledger now: its head, how old stored standings are, how the last runs of jobs ended.

        Raises `StoreDamaged`, `StoreUnavailable`.
        """
        with self._store.reading() as connection:
            return _ledger_status(self._store, connection)

    def close(self) -> None:
        """Give back the connections. What is asked of the ledger or a view of it afterwards is refused; closing again
        does nothing. A ledger in memory is gone then.
        """
        self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _as_json(event: object) -> dict[str, Any]:
    """Return an event as JSON would have it; times may be `datetime`s. Raises `BadArgument`."""
    if not isinstance(event, Mapping):
        raise BadArgument(f"an event is a dictionary, not {type(event).__name__}", "events")
    try:
        return _parse_object(json.dumps(dict(event), default=_time).encode())
    except (Refused, TypeError, ValueError, RecursionError) as problem:
        raise BadArgument(f"an event holds what JSON has: {problem}", "events") from None


def _name(by: str) -> str:
    """Return who records something. Raises `BadArgument`."""
    try:
        return _read_by(by)
    except Refused as problem:
        raise BadArgument(problem.message, "by") from None


def _time(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is none of it")


def _asked(side: Snapshot | CoordinateSpec) -> CoordinateSpec:
    if isinstance(side, CoordinateSpec):
        return side
    if side.close_now:
        raise BadArgument("what is compared has no close_now: open rating periods stay open", "close_now")
    return CoordinateSpec("", False, side.as_of, side.known_at, side.rules)


def _note(*sides: Snapshot | CoordinateSpec) -> Callable[[str], None]:
    """Return what is odd goes to the notes of the first view."""
    return next((side.note for side in sides if isinstance(side, Snapshot)), lambda _: None)


def open(name: str | os.PathLike[str], *, create: bool = False) -> Ledger:  # noqa: A001
    """Return a ledger: a file path, sqlite:///ratings.db or postgresql://...

    With `create`, an empty one is made where there is none. Raises `BadArgument`, `OldSchema` for a ledger that
    `upgrade` brings up first, `NotALedger`, `NoLedger` where there is none, `StoreUnavailable`.
    """
    path = _place(name)
    if create:
        try:
            return Ledger(_create_ledger(path, None, (), CREATOR))
        except LedgerExists:
            pass
    return Ledger(_open_store(path))


def _open_store(path: str) -> _opening.Ledger:
    """Open a ledger; where there is none, or one of an older schema, name the call beside the command."""
    if path == _opening.IN_MEMORY:
        raise NoLedger("nothing in memory opens again; ratings_ledger.create(':memory:') makes a new ledger")
    try:
        return _opening.open_ledger(path)
    except OldSchema as problem:
        raise OldSchema(f"{problem}; or from Python: ratings_ledger.upgrade({_hidden(path)!r})") from None
    except NoLedger as problem:
        raise NoLedger(f"{problem}; or from Python: ratings_ledger.create({_hidden(path)!r})") from None


def create(
    name: str | os.PathLike[str] = _opening.IN_MEMORY,
    *,
    zone: str | None = None,
    rulesets: Collection[RulesetSource] = (),
    by: str = CREATOR,
) -> Ledger:
    """Make a ledger, and return it.

    Args:
        name: a path, a URL as for `open`, or ":memory:" for a ledger that is gone when it is closed.
        zone: its home zone, such as "Europe/Berlin": times are shown there, and dates and times are read there.
        rulesets: what scores its games; each as for `Ledger.publish`.
        by: who records the zone and the rulesets.

    Raises:
        LedgerExists: there is one already.
        BadArgument: a zone or a ruleset is wrong; then nothing is made.
        Refused: the rulesets do not fit each other; then no file is left.
        NotALedger, StoreUnavailable: as for `open`.
    """
    if zone is not None and not isinstance(zone, str):
        raise BadArgument(f"zone is text, such as 'Europe/Berlin', not {type(zone).__name__}", "zone")
    return Ledger(_create_ledger(_place(name), zone, rulesets, _name(by)))


def example() -> Ledger:
    """Return a ledger in memory with a season to try things on: invented people of a club in Berlin.

    It has 90 games of Catan (elo-catan), an evening of Galactic Magnate (galactic-points) with a corrected game and an
    adjustment, a Babylon 5 season (b5-league), a league of Cartagena that is under way (youplay-league), and a list
    that was published; mira recorded all of it. Its answers are the same each time.
    """
    from ratings_ledger.example_club import fill_example  # which few programs need

    return Ledger(fill_example())


def upgrade(name: str | os.PathLike[str]) -> Ledger:
    """Bring a ledger that an older program made to the schema of this one, and return it; nothing else upgrades one.

    Make a copy before. Raises `AlreadyRunning` while a rebuild runs, `BadArgument`, `NoLedger`, `NotALedger` for one
    that a newer program made, `StoreUnavailable`, also (reason `no-right`) if somebody else must do it.
    """
    path = _place(name)
    result = _upgrade_ledger(path)
    if result.is_needed and not result.may:
        told = f"{result.ledger} must be upgraded by {result.owner}; you are {result.user}, who may not"
        raise StoreUnavailable(told, "no-right")
    return Ledger(_open_store(path))


def _place(name: str | os.PathLike[str]) -> str:
    """Return the path or URL of a ledger. Raises `BadArgument`."""
    path = os.fspath(name) if isinstance(name, os.PathLike) else name
    if not isinstance(path, str):
        raise BadArgument(f"a ledger is named by a path or a URL, not by {type(name).__name__}", "name")
    if not _is_storable(path):
        raise BadArgument("a path or a URL of a ledger has no lone surrogate and no null character", "name")
    return path
