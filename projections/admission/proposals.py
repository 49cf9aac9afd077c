"""Proposals: events of any kind of writing, checked against the log and the ladders, and what they would change.

Nothing is written before `append`, or `commit`, which raises what is refused.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from sqlalchemy import Connection

from ledger import clock
from ledger.events.canonical import format_instant
from ledger.events.types import TYPES
from ledger.intake.files import Far, Item
from ledger.intake.importing import Intake, Terms
from ledger.rejections import ChangedMeanwhile, Refused, Rejection
from ledger.store.log import Head, head, known_events, read_records
from ledger.store.opening import Ledger
from ledger.validation.new_names import Newcomers
from projections.admission.events import Admission
from projections.admission.new_ladders import NewLadders
from projections.facts.columns import Facts
from projections.facts.decoding import decode
from projections.facts.players import known_players
from projections.queries.answers_compared import Impact
from projections.queries.impact import impact_of

# with this many games or more, what an event changes takes longer to work out than somebody wants to wait unasked
SMALL_GAMES = 20_000


class Known:
    """The players and ladders that a ledger has: it is read once, and then only what was recorded since.

    A player whose only game is voided in the meantime is not reported as new a second time.
    """

    def __init__(self, strict: bool = False, decode: Callable[[Connection], Facts] = decode) -> None:
        """With `strict`, a game that begins a ladder is refused."""
        self._decode = decode
        self._facts: Facts | None = None
        self._names: set[str] | None = None
        self._position = 0
        self.new_ladders = NewLadders(self.facts, strict)

    def facts(self, connection: Connection) -> Facts:
        """The facts up to the head of the log when they were asked for first."""
        if self._facts is None:
            self._facts = self._decode(connection)
        return self._facts

    @property
    def games(self) -> int:
        """How many games there were when the facts were asked for."""
        return 0 if self._facts is None else len(self._facts.start)

    def players(self, connection: Connection) -> set[str]:
        """The players that the ledger knows."""
        if self._names is None:
            facts = self.facts(connection)
            self._names, self._position = known_players(facts), facts.position
        if (newest := head(connection).position) > self._position:
            for page in read_records(connection, self._position, newest):
                for event in known_events(page):
                    renamed = event.type == "player.renamed"
                    self._names.update([event.data["new_player"]] if renamed else TYPES[event.type].brings(event.data))
            self._position = newest
        return self._names


def whole_event(given: dict[str, Any]) -> dict[str, Any]:
    """An event as it was given, or a game alone as the event that records it; without a time it is now."""
    event = {"type": "game.recorded", "data": given} if "type" not in given and "game_id" in given else given
    return {"occurred_at": format_instant(clock.now()), **event}


class Proposal(Intake):
    """Events that were checked; `result` tells what is refused, who is new and which ladders begin."""

    def __init__(
        self, ledger: Ledger, items: Iterable[Item | Rejection | Far], terms: Terms, known: Known | None = None,
        leagueless: dict[str, str] | None = None, **hooks: Any,
    ) -> None:  # fmt: skip
        """Check the events of some items; the hooks are those of `Intake`.

        `leagueless` is filled with a game for each league whose scheduled games do not name it, if that is of interest.
        Raises `ClockBehind`, `StoreUnavailable`.
        """
        self.known = known or Known(terms.strict)
        self._impact: Impact | None = None
        homeless: dict[str, str] = {}
        begun = self.known.new_ladders.found = []
        ladders = partial(
            Admission, allow_uncounted=terms.allow_uncounted, homeless=homeless, leagueless=leagueless,
            new_ladders=self.known.new_ladders,
        )  # fmt: skip
        newcomers = Newcomers(self.known.players, terms.refusing, terms.strict)
        super().__init__(ledger, items, terms, ladders=ladders, newcomers=newcomers, **hooks)
        self.result.homeless, self.result.leagueless = homeless, leagueless or {}
        self.result.new_ladders = [one.ladder for one in begun]
        self.result.close_ladders = {one.ladder: one.like for one in begun if one.like}

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """What is refused; with any, nothing is appended."""
        return tuple(self.result.rejected)

    def commit(self) -> Head:
        """Append what was proposed, in one transaction unless there are 50,000 events and more; returns the new head.

        Raises `Refused` with the first of the `rejections`, `ChangedMeanwhile`, `ClockBehind`, `StoreUnavailable`, and
        `BadArgument` the second time.
        """
        result = self.append()
        for one in result.rejected:
            kind = ChangedMeanwhile if one.code == "changed-meanwhile" else Refused
            raise kind(one.code, one.message)
        assert result.head is not None
        return result.head

    def impact(self) -> Impact:
        """What the events would change; it is worked out once. Raises `StoreUnavailable`."""
        if self._impact is None:
            with self.ledger.reading() as connection:
                self._impact = impact_of(connection, self.known.facts(connection), self.drafts())
        return self._impact

    def is_small(self) -> bool:
        """Whether the ledger has fewer games, and the proposal fewer events, than `SMALL_GAMES`."""
        return max(self.known.games, self.result.would_append) < SMALL_GAMES
