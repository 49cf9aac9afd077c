"""Proposals: events of any kind of writing, checked against the log and the ladders, and what they would change.

Nothing is written before `append`, or `commit`, which raises what is refused.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from threading import RLock
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.types import TYPES, Draft
from ratings_ledger.ledger.intake.files import Entry, Item
from ratings_ledger.ledger.intake.importing import FileIntake
from ratings_ledger.ledger.intake.intake import GamesOfReason, Imported, ImportPolicy, Intake
from ratings_ledger.ledger.intake.spool import Spool
from ratings_ledger.ledger.rejections import ChangedMeanwhile, Refused, Rejection
from ratings_ledger.ledger.store.log import Head, head, positions_of, read_known_events, read_records
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.new_names import CloseName, Newcomers
from ratings_ledger.projections.admission.equal_games import describe_equal_games
from ratings_ledger.projections.admission.events import Admission
from ratings_ledger.projections.admission.notes import LeagueNotes, NewLadders
from ratings_ledger.projections.admission.voided_games import voided_told
from ratings_ledger.projections.diff.impact import Impact, compute_impact
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.facts.players import Players, games_played, is_of_clubs, knows_club
from ratings_ledger.projections.queries.ladders_at import Ladders

# with this many games or more, what an event changes takes longer to work out than somebody wants to wait unasked
SMALL_GAMES = 20_000
# more events wait on disk
IN_MEMORY = 5_000


def _newest(connection: Connection) -> Ladders:
    """Return the ladders at the head of the log."""
    return Ladders(decode(connection))


class Known:
    """The players and ladders that a ledger has: it is read once, and then only what was recorded since.

    A player whose only game is voided in the meantime is not reported as new a second time.
    """

    def __init__(self, strict: bool = False, newest: Callable[[Connection], Ladders] = _newest) -> None:
        """With `strict`, a game that begins a ladder is refused."""
        self._newest = newest
        self._ladders: Ladders | None = None
        self._names: set[str] | Players | None = None
        self._position = 0
        self.new_ladders = NewLadders(self.facts, strict)

    def ladders(self, connection: Connection) -> Ladders:
        """Return the ladders at the head of the log when they were asked for first."""
        if self._ladders is None:
            self._ladders = self._newest(connection)
        return self._ladders

    def facts(self, connection: Connection) -> Facts:
        """Return the facts of these."""
        return self.ladders(connection).facts

    @property
    def decoded(self) -> Facts | None:
        """Return the facts, if somebody asked for them."""
        return None if self._ladders is None else self._ladders.facts

    @property
    def games(self) -> int:
        """Return how many games there were when the facts were asked for."""
        return 0 if self._ladders is None else len(self._ladders.facts.start)

    def games_played(self, connection: Connection, names: Collection[str]) -> dict[str, int]:
        """Return how many games some of the players took part in, as far as the facts have them."""
        return games_played(self.facts(connection), names)

    def ranks_club(self, connection: Connection, ladder: str, name: str) -> bool:
        """Tell whether a ladder ranks clubs, and somebody has played for one of this name."""
        facts = self.facts(connection)
        return is_of_clubs(facts, ladder) and knows_club(facts, name)

    def players(self, connection: Connection) -> Collection[str]:
        """Return the players that the ledger knows."""
        if self._names is None:
            there = self.ladders(connection)
            is_long = there.facts.cache is not None
            self._names = Players(there.facts, lambda: there.players) if is_long else {*there.players}
            self._position = there.facts.position
        elif (newest := head(connection).position) > self._position:
            for page in read_records(connection, self._position, newest):
                for event in read_known_events(page):
                    self._names.update(TYPES[event.type].brings(event.data))
            self._position = newest
        return self._names


def whole_event(given: dict[str, Any]) -> dict[str, Any]:
    """Return an event as it was given, or a game alone, which may have its time, as the event that records it.

    Without a time it is now.
    """
    event = given
    if "type" not in given and "game_id" in given:
        data = {name: value for name, value in given.items() if name != "occurred_at"}
        timed = {"occurred_at": given["occurred_at"]} if "occurred_at" in given else {}
        event = {"type": "game.recorded", "data": data, **timed}
    return {"occurred_at": format_instant(clock.now()), **event}


def head_after(result: Imported) -> Head:
    """Return the head of the log after an intake. Raises `Refused` with the first refusal, or `ChangedMeanwhile`."""
    for one in result.rejected:
        raise (ChangedMeanwhile if one.code == "changed-meanwhile" else Refused)(one.code, one.message)
    assert result.head is not None
    return result.head


class CommittedEvent(NamedTuple):
    """Where an event of a commit is in the log, and whether it is new there or was there before."""

    id: str
    position: int
    appended: bool


class Committed(Head):
    """The head of the log after a commit, with its `events` in the order in which they were proposed."""

    events: tuple[CommittedEvent, ...] = ()


class Proposal:
    """Events that were checked: what is refused, who is new, which ladders begin, and what they would change."""

    def __init__(
        self,
        check: Callable[..., Intake],
        policy: ImportPolicy,
        known: Known,
        league_notes: LeagueNotes | None = None,
        stored: Mapping[int, tuple[str, bool]] = MappingProxyType({}),
    ) -> None:
        """Check the events.

        Args:
            check: makes the intake that checks them, given what the ladders say and who is new.
            policy: who records them, and which checks are waived.
            known: the players and ladders that the ledger has.
            league_notes: collects what there is to note about leagues, if that is of interest.
            stored: gets by number the id of each event that ends up in the log, and whether it is new there.

        Raises:
            ClockBehind, StoreUnavailable.
        """
        self.known = known
        self._stored = stored
        self._impact: Impact | None = None
        self._one_thread = RLock()  # what waits is read and given back by one at a time
        self._league_notes = league_notes
        homeless: dict[str, GamesOfReason] = {}
        begun = known.new_ladders
        begun.found = []
        ladders = partial(
            Admission,
            allow_uncounted=policy.allow_uncounted,
            homeless=homeless,
            league_notes=league_notes,
            new_ladders=begun,
            facts=known.facts,
        )
        newcomers = Newcomers(
            known.players,
            policy.refusing,
            policy.strict,
            policy.accepted,
            known.games_played,
            policy.close_told,
            known.ranks_club,
        )
        self._intake = check(policy=policy, ladders=ladders, newcomers=newcomers)
        self.ledger, result = self._intake.ledger, self._intake.result
        if result.voided or league_notes is not None:
            with self.ledger.reading() as connection:
                if result.voided:
                    result.voided_told = voided_told(connection, result.voided)
                if league_notes is not None and not self.is_refused:
                    result.leagues = league_notes.notes(connection, self._intake.waiting)
        result.homeless = {**homeless}  # games that are checked again when they are appended count once
        if begun.found:
            result.new_ladders, result.close_ladders = [one.name for one in begun.found], begun.close()

    def __repr__(self) -> str:
        """Return how much is appended, or would be, and how much is refused."""
        result = self.result
        told = f"{result.would_append:,} to append, {len(result.rejected):,} refused"
        return f"Proposal({f'{result.appended:,} appended' if result.appended else told})"

    @property
    def result(self) -> Imported:
        """Return what the events come to."""
        return self._intake.result

    @property
    def is_refused(self) -> bool:
        """Tell whether nothing will be appended, because something was refused."""
        return self._intake.is_refused

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Return what is refused; with any, nothing is appended."""
        return tuple(self.result.rejected)

    @property
    def new_players(self) -> tuple[str, ...]:
        """Return the players that the ledger does not know yet, in the order in which the events name them."""
        return tuple(self.result.new_players)

    @property
    def close_names(self) -> tuple[CloseName, ...]:
        """Return the new names that are close to others, each with those and how many games they have played."""
        return tuple(self.result.close.values())

    def drafts(self) -> Iterator[Draft]:
        """Return what would be appended, in order. Raises `BadArgument` once it is."""
        return self._intake.drafts()

    def note_equal_games(self) -> None:
        """Note which games equal recorded ones from other sources, if the games of the ledger were read anyway."""
        if not self.is_refused and self.result.would_append and self.known.decoded is not None:
            with self.ledger.reading() as connection:
                facts, waiting = self.known.facts(connection), self._intake.waiting
                self.result.notes += describe_equal_games(connection, facts, waiting)

    def refuse(self, problem: Refused, file: str = "", line: int = 0) -> None:
        """Refuse the events for a reason that the caller knows."""
        self._intake.refuse(problem, file, line)

    def close(self) -> None:
        """Release the events, which are not wanted any more."""
        self._intake.close()

    def append(self, progress: Callable[[int], None] = lambda appended: None) -> Imported:
        """Append the events, as their intake does, once, whichever thread is first; returns what became of them."""
        with self._one_thread:
            result = self._intake.append(progress)
            if result.appended and self._league_notes is not None:
                with self.ledger.reading() as connection:
                    result.leagues += self._league_notes.inactive(connection)
            return result

    def commit(self) -> Committed:
        """Append the events in one transaction; return the new head, with the position of every event.

        An event that the ledger has already, with the same content, is not appended again. Raises `Refused` with the
        first of the `rejections`, `ChangedMeanwhile`, `ClockBehind`, `StoreUnavailable`, and `BadArgument` the second
        time.
        """
        committed = Committed(*head_after(self.append()))
        with self.ledger.reading() as connection:
            positions = positions_of(connection, {event_id for event_id, _ in self._stored.values()})
        committed.events = tuple(
            CommittedEvent(event_id, positions[event_id], appended)
            for _, (event_id, appended) in sorted(self._stored.items())
        )
        return committed

    def impact(self) -> Impact:
        """Return what the events would change; it is worked out once. Raises `StoreUnavailable`."""
        with self._one_thread:
            if self._impact is None:
                with self.ledger.reading() as connection:
                    self._impact = compute_impact(connection, self.known.ladders(connection), self.drafts())
            return self._impact

    def is_small(self) -> bool:
        """Tell whether the ledger has fewer games, and the proposal fewer events, than `SMALL_GAMES`."""
        return max(self.known.games, self.result.would_append) < SMALL_GAMES


def propose(
    ledger: Ledger,
    events: Iterable[dict[str, Any] | Refused | Item | Rejection],
    policy: ImportPolicy,
    known: Known | None = None,
    *,
    league_notes: LeagueNotes | None = None,
    **hooks: Any,
) -> Proposal:
    """Check events of any kind, and write nothing yet; they will be appended in one transaction.

    Args:
        ledger: where they will be appended.
        events: the events, or what is wrong with them; as items with the place in a file where they stand.
        policy: who records them, and which checks are waived.
        known: the players and ladders of the ledger, if they were read before.
        league_notes: collects what there is to note about leagues, if that is of interest.
        hooks: those of `Intake`.

    Raises:
        ClockBehind, StoreUnavailable.
    """
    items = [
        event if isinstance(event, Item | Rejection) else Item("", number, event, None)
        for number, event in enumerate(events, 1)
    ]
    if len(items) > IN_MEMORY:
        hooks["waiting"] = Spool()
    stored: dict[int, tuple[str, bool]] = {}

    def note(line: int, event_id: str, appended: bool) -> None:
        stored[line] = event_id, appended

    check = partial(Intake, ledger, items, **{"on_stored": note, **hooks})
    return Proposal(check, policy, known or Known(policy.strict), league_notes, stored)


def propose_files(
    ledger: Ledger,
    entries: Iterable[Entry],
    policy: ImportPolicy,
    known: Known | None = None,
    *,
    league_notes: LeagueNotes | None = None,
    **hooks: Any,
) -> Proposal:
    """Check what was read of files, however much it is, as `propose` does; the hooks are those of `FileIntake`."""
    check = partial(FileIntake, ledger, entries, **hooks)
    proposal = Proposal(check, policy, known or Known(policy.strict), league_notes)
    proposal.note_equal_games()
    return proposal
