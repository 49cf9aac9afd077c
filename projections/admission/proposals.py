"""Propose events: check them without writing, and return the rejections and the impact.

`append` or `commit` writes them; `commit` raises the first rejection.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from threading import RLock
from types import MappingProxyType
from typing import Any, NamedTuple

from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.intake.files import Entry, Item
from ratings_ledger.ledger.intake.importing import FileIntake
from ratings_ledger.ledger.intake.intake import ImportPolicy, Intake, IntakeResult, UnrankedGames
from ratings_ledger.ledger.intake.spool import Spool
from ratings_ledger.ledger.rejections import ChangedMeanwhile, Refused, Rejection
from ratings_ledger.ledger.store.log import Head, find_positions
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.new_names import CloseName, NameCollector
from ratings_ledger.projections.admission.game_checks import GameNotes
from ratings_ledger.projections.admission.known_ladders import KnownLadders
from ratings_ledger.projections.admission.ladder_checks import Admission
from ratings_ledger.projections.admission.league_checks import LeagueNotes
from ratings_ledger.projections.admission.repeated_games import describe_equal_games, describe_voided_games
from ratings_ledger.projections.diff.impact import Impact, compute_impact

# with more games or events than this, an impact that the user did not request would take too long
SMALL_GAMES = 20_000
# more pending events than this wait on disk
MEMORY_EVENTS_MAX = 5_000


def require_head(result: IntakeResult) -> Head:
    """Return the head of the log after an intake. Raises `Refused` or `ChangedMeanwhile` for the first rejection."""
    for rejection in result.rejected:
        error = ChangedMeanwhile if rejection.code == "changed-meanwhile" else Refused
        raise error(rejection.code, rejection.message)
    assert result.head is not None
    return result.head


class CommittedEvent(NamedTuple):
    """An event of a commit: its position in the log, and whether it was appended or already existed."""

    id: str
    position: int
    appended: bool


class Committed(Head):
    """The head of the log after a commit, with its `events` in the order in which they were proposed."""

    events: tuple[CommittedEvent, ...] = ()


class Proposal:
    """Checked events: their rejections, new players, new ladders and impact."""

    def __init__(
        self,
        check: Callable[..., Intake],
        policy: ImportPolicy,
        known: KnownLadders,
        league_notes: LeagueNotes | None = None,
        stored: Mapping[int, tuple[str, bool]] = MappingProxyType({}),
    ) -> None:
        """Check the events.

        Args:
            check: the function that builds the intake, given the policy, the ladders' checks and the check of names.
            policy: the recorder of the events, and the checks that are waived.
            known: the players and ladders of the ledger.
            league_notes: the collector of notes about leagues, if they are to be reported.
            stored: after `append`, the id of each event that is in the log, and whether it is new, by number.

        Raises:
            ClockBehind, StoreUnavailable.
        """
        self.known = known
        self._stored = stored
        self._impact: Impact | None = None
        self._lock = RLock()  # lets only one thread at a time read or release the pending events
        self._league_notes = league_notes
        unranked: dict[str, UnrankedGames] = {}
        new_ladders = known.new_ladders
        new_ladders.ladders = []
        build_admission = partial(
            Admission,
            allow_uncounted=policy.allow_uncounted,
            notes=GameNotes(unranked, league_notes, new_ladders),
            facts=known.facts,
        )
        name_collector = NameCollector(
            read_known_names=known.players,
            refusal_scope=policy.refusal_scope,
            strict=policy.strict,
            accepted=policy.accepted,
            count_games=known.games_played,
            report_close=policy.report_close,
            ranks_club=known.ranks_club,
        )
        self._intake = check(policy=policy, ladders=build_admission, newcomers=name_collector)
        self.ledger, result = self._intake.ledger, self._intake.result
        if result.voided or league_notes is not None:
            with self.ledger.reading() as connection:
                if result.voided:
                    result.voided_notes = describe_voided_games(connection, result.voided)
                if league_notes is not None and not self._intake.is_refused:
                    result.leagues = league_notes.describe(connection, self._intake.waiting)
        result.unranked = {**unranked}  # a copy, because `append` checks the games again and would count them twice
        if new_ladders.ladders:
            result.new_ladders = [ladder.name for ladder in new_ladders.ladders]
            result.close_ladders = new_ladders.find_similar()

    def __repr__(self) -> str:
        """Return the number of appended events, or the numbers of pending and refused events."""
        result = self.result
        if result.appended:
            return f"Proposal({result.appended:,} appended)"
        return f"Proposal({result.would_append:,} to append, {len(result.rejected):,} refused)"

    @property
    def result(self) -> IntakeResult:
        """Return the outcome of the check or, after `append`, of the import."""
        return self._intake.result

    @property
    def is_refused(self) -> bool:
        """Tell whether a rejection prevents the import."""
        return self._intake.is_refused

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Return the rejections; if there are any, nothing is appended unless `policy.keep_going` is set."""
        return tuple(self.result.rejected)

    @property
    def new_players(self) -> tuple[str, ...]:
        """Return the players that are not in the ledger yet, in order of appearance."""
        return tuple(self.result.new_players)

    @property
    def close_names(self) -> tuple[CloseName, ...]:
        """Return the new names that are close to other names, each with those names and their numbers of games."""
        return tuple(self.result.close.values())

    def drafts(self) -> Iterator[Draft]:
        """Return the events to append, in order. Raises `BadArgument` after they were appended."""
        return self._intake.drafts()

    def note_equal_games(self) -> None:
        """If the log has been decoded, add notes about games that equal recorded games from other sources."""
        if not self.is_refused and self.result.would_append and self.known.decoded is not None:
            with self.ledger.reading() as connection:
                facts, waiting = self.known.facts(connection), self._intake.waiting
                self.result.notes += describe_equal_games(connection, facts, waiting)

    def refuse(self, problem: Refused, file: str = "", line: int = 0) -> None:
        """Add a rejection by the caller."""
        self._intake.refuse(problem, file, line)

    def close(self) -> None:
        """Discard the events."""
        self._intake.close()

    def append(self, progress: Callable[[int], None] = lambda appended: None) -> IntakeResult:
        """Append the events, and return their outcome.

        `progress` is called with the number of appended events. Raises `BadArgument` if the events were appended
        before, `ClockBehind`, `StoreUnavailable`.
        """
        with self._lock:
            result = self._intake.append(progress)
            if result.appended and self._league_notes is not None and self._league_notes.has_games:
                with self.ledger.reading() as connection:
                    result.leagues += self._league_notes.describe_inactive_players(connection)
            return result

    def commit(self) -> Committed:
        """Append the events in one transaction; return the new head, with the position of every event.

        An event that is already in the ledger with the same content is not appended again.

        Raises:
            Refused: for the first of the `rejections`.
            BadArgument: the events were appended before.
            ChangedMeanwhile, ClockBehind, StoreUnavailable.
        """
        committed = Committed(*require_head(self.append()))
        with self.ledger.reading() as connection:
            positions = find_positions(connection, {event_id for event_id, _ in self._stored.values()})
        committed.events = tuple(
            CommittedEvent(event_id, positions[event_id], appended)
            for _, (event_id, appended) in sorted(self._stored.items())
        )
        return committed

    def impact(self) -> Impact:
        """Return the changes that the events would make, computed at the first call.

        Raises `StoreUnavailable`, and `BadArgument` if the first call comes after the events were appended.
        """
        with self._lock:
            if self._impact is None:
                with self.ledger.reading() as connection:
                    self._impact = compute_impact(connection, self.known.ladders(connection), self._intake.drafts())
            return self._impact

    def is_small(self) -> bool:
        """Tell whether both the games that were read and the events of the proposal are fewer than 20,000."""
        return max(self.result.would_append, self.known.games) < SMALL_GAMES


def propose(
    ledger: Ledger,
    events: Iterable[dict[str, Any] | Refused | Item | Rejection],
    policy: ImportPolicy,
    known: KnownLadders | None = None,
    *,
    league_notes: LeagueNotes | None = None,
    **hooks: Any,
) -> Proposal:
    """Check events without writing anything; `append` will append them in one transaction.

    Args:
        ledger: the ledger to append to.
        events: the events, or the errors of events; an `Item` also has the file and line of its event.
        policy: the recorder of the events, and the checks that are waived.
        known: the players and ladders of the ledger, if they were read before.
        league_notes: the collector of notes about leagues, if they are to be reported.
        hooks: further arguments of `Intake`.

    Raises:
        ClockBehind, StoreUnavailable.
    """
    items = [
        event if isinstance(event, Item | Rejection) else Item("", number, event, None)
        for number, event in enumerate(events, 1)
    ]
    if len(items) > MEMORY_EVENTS_MAX:
        hooks["waiting"] = Spool()
    stored: dict[int, tuple[str, bool]] = {}

    def on_stored(line: int, event_id: str, appended: bool) -> None:
        stored[line] = event_id, appended

    check = partial(Intake, ledger, items, **{"on_stored": on_stored, **hooks})
    return Proposal(
        check=check, policy=policy, known=known or KnownLadders(policy.strict), league_notes=league_notes, stored=stored
    )


def propose_files(
    ledger: Ledger,
    entries: Iterable[Entry],
    policy: ImportPolicy,
    known: KnownLadders | None = None,
    *,
    league_notes: LeagueNotes | None = None,
    **hooks: Any,
) -> Proposal:
    """Check the contents of files of any size without writing anything; `append` will append them.

    The arguments are those of `propose`, except that `entries` are the contents of the files, and `hooks` are further
    arguments of `FileIntake`.
    """
    check = partial(FileIntake, ledger, entries, **hooks)
    proposal = Proposal(check, policy=policy, known=known or KnownLadders(policy.strict), league_notes=league_notes)
    proposal.note_equal_games()
    return proposal
