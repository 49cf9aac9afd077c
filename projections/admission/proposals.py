"""Proposals: events of any kind of writing, checked against the log and the ladders, and what they would change.

Nothing is written before `append`, or `commit`, which raises what is refused.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from threading import RLock
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import format_instant
from ratings_ledger.ledger.events.types import TYPES
from ratings_ledger.ledger.intake.files import Entry
from ratings_ledger.ledger.intake.importing import Imported, Intake, Terms
from ratings_ledger.ledger.rejections import ChangedMeanwhile, Refused, Rejection
from ratings_ledger.ledger.store.log import Head, head, known_events, read_records
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.new_names import Newcomers
from ratings_ledger.projections.admission.events import Admission
from ratings_ledger.projections.admission.league_notes import LeagueNotes
from ratings_ledger.projections.admission.new_ladders import NewLadders
from ratings_ledger.projections.admission.voided_games import voided_told
from ratings_ledger.projections.diff.impact import Impact, impact_of
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.facts.players import Players, games_played
from ratings_ledger.projections.queries.ladders_at import Ladders

# with this many games or more, what an event changes takes longer to work out than somebody wants to wait unasked
SMALL_GAMES = 20_000


def _newest(connection: Connection) -> Ladders:
    """The ladders at the head of the log."""
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
        """The ladders at the head of the log when they were asked for first."""
        if self._ladders is None:
            self._ladders = self._newest(connection)
        return self._ladders

    def facts(self, connection: Connection) -> Facts:
        """The facts of these."""
        return self.ladders(connection).facts

    @property
    def decoded(self) -> Facts | None:
        """The facts, if somebody asked for them."""
        return None if self._ladders is None else self._ladders.facts

    @property
    def games(self) -> int:
        """How many games there were when the facts were asked for."""
        return 0 if self._ladders is None else len(self._ladders.facts.start)

    def games_played(self, connection: Connection, names: Collection[str]) -> dict[str, int]:
        """How many games some of the players took part in, as far as the facts have them."""
        return games_played(self.facts(connection), names)

    def players(self, connection: Connection) -> Collection[str]:
        """The players that the ledger knows."""
        if self._names is None:
            there = self.ladders(connection)
            is_long = there.facts.cache is not None
            self._names = Players(there.facts, lambda: there.players) if is_long else {*there.players}
            self._position = there.facts.position
        if (newest := head(connection).position) > self._position:
            for page in read_records(connection, self._position, newest):
                for event in known_events(page):
                    self._names.update(TYPES[event.type].brings(event.data))
            self._position = newest
        return self._names


def whole_event(given: dict[str, Any]) -> dict[str, Any]:
    """An event as it was given, or a game alone as the event that records it; without a time it is now."""
    event = {"type": "game.recorded", "data": given} if "type" not in given and "game_id" in given else given
    return {"occurred_at": format_instant(clock.now()), **event}


def head_after(result: Imported) -> Head:
    """The head of the log after an intake. Raises `Refused` with the first refusal, or `ChangedMeanwhile`."""
    for one in result.rejected:
        raise (ChangedMeanwhile if one.code == "changed-meanwhile" else Refused)(one.code, one.message)
    assert result.head is not None
    return result.head


class Proposal(Intake):
    """Events that were checked; `result` tells what is refused, who is new and which ladders begin."""

    def __init__(
        self, ledger: Ledger, items: Iterable[Entry], terms: Terms, known: Known | None = None,
        league_notes: LeagueNotes | None = None, **hooks: Any,
    ) -> None:  # fmt: skip
        """Check the events of some items; the hooks are those of `Intake`.

        `league_notes` collects what there is to note about leagues, if that is of interest. Raises `ClockBehind`,
        `StoreUnavailable`.
        """
        self.known = known or Known(terms.strict)
        self._impact: Impact | None = None
        self._one_thread = RLock()  # what waits is read and given back by one at a time
        homeless: dict[str, str] = {}
        begun = self.known.new_ladders
        begun.found = []
        ladders = partial(
            Admission, allow_uncounted=terms.allow_uncounted, homeless=homeless, league_notes=league_notes,
            new_ladders=begun,
        )  # fmt: skip
        newcomers = Newcomers(
            self.known.players, terms.refusing, terms.strict, terms.accepted, self.known.games_played, terms.close_told
        )  # fmt: skip
        super().__init__(ledger, items, terms, ladders=ladders, newcomers=newcomers, **hooks)
        if self.result.voided:
            with ledger.reading() as connection:
                self.result.voided_told = voided_told(connection, self.result.voided)
        self.result.homeless = homeless
        self._league_notes = league_notes
        if league_notes is not None and not self.is_refused:
            with ledger.reading() as connection:
                self.result.leagues = league_notes.notes(connection, self._spool)
        if begun.found:
            self.result.new_ladders, self.result.close_ladders = [one.name for one in begun.found], begun.close()

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """What is refused; with any, nothing is appended."""
        return tuple(self.result.rejected)

    def append(self, progress: Callable[[int], None] = lambda appended: None) -> Imported:
        """Append what was proposed, as `Intake.append` does, once, whichever thread is first."""
        with self._one_thread:
            result = super().append(progress)
            if result.appended and self._league_notes is not None:
                with self.ledger.reading() as connection:
                    result.leagues += self._league_notes.inactive(connection)
            return result

    def commit(self) -> Head:
        """Append what was proposed, in one transaction unless there are 50,000 events and more; returns the new head.

        Raises `Refused` with the first of the `rejections`, `ChangedMeanwhile`, `ClockBehind`, `StoreUnavailable`, and
        `BadArgument` the second time.
        """
        return head_after(self.append())

    def impact(self) -> Impact:
        """What the events would change; it is worked out once. Raises `StoreUnavailable`."""
        with self._one_thread:
            if self._impact is None:
                with self.ledger.reading() as connection:
                    self._impact = impact_of(connection, self.known.ladders(connection), self.drafts())
            return self._impact

    def is_small(self) -> bool:
        """Whether the ledger has fewer games, and the proposal fewer events, than `SMALL_GAMES`."""
        return max(self.known.games, self.result.would_append) < SMALL_GAMES
