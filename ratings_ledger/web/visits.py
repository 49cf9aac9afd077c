"""A visit: the ledger at the coordinates that somebody asked for. Pages are made of what it is asked."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from ratings_ledger import Ledger
from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.events.types import DECISIONS
from ratings_ledger.projections.queries.results import LastEvent
from ratings_ledger.projections.queries.survey import AllLadders, Everybody, PersonRow, group_rows
from ratings_ledger.projections.snapshot import Snapshot

AXES = ("as_of", "known_at", "rules")


class Visit:
    """The ledger at coordinates, by name; the pages of one visit share what many of them need.

    `asked` has what else is asked of a page, by name.
    """

    def __init__(
        self, ledger: Ledger, query: Mapping[str, str] | None = None, asked: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.ledger = ledger
        self.query = dict(query or {})
        self.asked = dict(asked or {})
        self._lasts: dict[str, LastEvent] = {}
        self.view: Snapshot = ledger.at(*(self.query.get(name) for name in AXES))

    def one(self, name: str) -> str | None:
        """Return what is asked for once, if it is asked for."""
        return next(iter(self.asked.get(name, ())), None)

    @cached_property
    def head(self) -> int:
        """Return the last position that is known at the coordinates."""
        return self.ladders.at.known_at

    @cached_property
    def ladders(self) -> AllLadders:
        """Return all ladders at the coordinates."""
        return self.view.ladders()

    @cached_property
    def everybody(self) -> Everybody:
        """Return where everybody stands."""
        return self.view.everybody()

    @cached_property
    def published(self) -> dict[str, int]:
        """Return the ladders that were published and can be asked for, with the last event that each depends on."""
        found = {}
        for ladder in dict.fromkeys(row.ladder for row in self.view.publications().rows):
            with suppress(LedgerError):
                found[ladder] = self.last_event(ladder).position
        return found

    @cached_property
    def lists(self) -> dict[int, str]:
        """Return the published lists that have a page of their own, as the ladder of each position."""
        rows = self.view.publications().rows
        return {row.position: row.ladder for row in rows if row.ladder in self.published}

    @cached_property
    def telling(self) -> frozenset[int]:
        """Return the events that have a page of what they did."""
        return self.view.telling_positions()

    @cached_property
    def clocks(self) -> frozenset[str]:
        """Return the games whose clock was started."""
        return self.view.games_with_clock()

    @cached_property
    def decided(self) -> int:
        """Return the position of the last decision; 0 without one."""
        rows = self.view.events(types=DECISIONS, limit=1).rows
        return rows[-1].event["position"] if rows else 0

    @cached_property
    def standing(self) -> frozenset[tuple[str, str]]:
        """Return who stands on which ladder, as (player, ladder): the pages that there are."""
        return frozenset((row.player, row.ladder) for row in self.everybody.rows)

    @cached_property
    def people(self) -> dict[str, list[PersonRow]]:
        """Return the same by player."""
        return group_rows(self.everybody.rows, "player")

    @cached_property
    def by_ladder(self) -> dict[str, list[PersonRow]]:
        """Return the same by ladder."""
        return group_rows(self.everybody.rows, "ladder")

    def last_event(self, ladder: str) -> LastEvent:
        """Return the last event that a ladder depends on."""
        if ladder not in self._lasts:
            self._lasts[ladder] = self.view.last_event(ladder)
        return self._lasts[ladder]
