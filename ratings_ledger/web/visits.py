"""Provide the data of pages: the ledger at the requested coordinates, with results that several pages share."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from ratings_ledger import Ledger
from ratings_ledger.ledger.errors import LedgerError
from ratings_ledger.ledger.events.types import DECISIONS
from ratings_ledger.projections.queries.results import LastEvent
from ratings_ledger.projections.queries.survey import AllLadders, Everybody, PersonRow, group_rows
from ratings_ledger.projections.replay.ladder_names import parse_name
from ratings_ledger.projections.snapshot import Snapshot

AXES = ("as_of", "known_at", "rules")


class Visit:
    """The ledger at coordinates. Pages of one visit share its cached results.

    `query` holds the coordinates by name; `parameters` holds the page's other query parameters.
    """

    def __init__(
        self,
        ledger: Ledger,
        query: Mapping[str, str] | None = None,
        parameters: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.ledger = ledger
        self.query = dict(query or {})
        self.parameters = dict(parameters or {})
        self._last_events: dict[str, LastEvent] = {}
        self.view: Snapshot = ledger.at(*(self.query.get(name) for name in AXES))

    def parameter(self, name: str) -> str | None:
        """Return the first value of a query parameter; None if it is absent."""
        return next(iter(self.parameters.get(name, ())), None)

    @cached_property
    def head(self) -> int:
        """Return the last position known at the coordinates."""
        return self.ladders.at.known_at

    @cached_property
    def ladders(self) -> AllLadders:
        """Return all ladders at the coordinates."""
        return self.view.ladders()

    @cached_property
    def all_players(self) -> Everybody:
        """Return the rows of all players on all ladders."""
        return self.view.everybody()

    @cached_property
    def published_ladders(self) -> dict[str, int]:
        """Return the published ladders that still exist, each with the position of the last event that affects it."""
        positions = {}
        for ladder in dict.fromkeys(row.ladder for row in self.view.publications().rows):
            with suppress(LedgerError):
                positions[ladder] = self.last_event(ladder).position
        return positions

    @cached_property
    def list_pages(self) -> dict[int, str]:
        """Return the ladder of each published list that has a page, by position."""
        rows = self.view.publications().rows
        return {row.position: row.ladder for row in rows if row.ladder in self.published_ladders}

    @cached_property
    def impact_positions(self) -> frozenset[int]:
        """Return the positions of the events that have an impact page."""
        return self.view.retroactive_positions()

    @cached_property
    def games_with_clock(self) -> frozenset[str]:
        """Return the games whose clock was started."""
        return self.view.games_with_clock()

    @cached_property
    def last_decision(self) -> int:
        """Return the position of the last decision, or 0 without decisions."""
        rows = self.view.events(types=DECISIONS, limit=1).rows
        return rows[-1].event["position"] if rows else 0

    @cached_property
    def player_pages(self) -> frozenset[tuple[str, str]]:
        """Return the pairs (player, ladder) that have a page."""
        return frozenset((row.player, row.ladder) for row in self.all_players.rows)

    @cached_property
    def rows_by_player(self) -> dict[str, list[PersonRow]]:
        """Return the rows of each player."""
        return group_rows(self.all_players.rows, "player")

    @cached_property
    def rows_by_ladder(self) -> dict[str, list[PersonRow]]:
        """Return the rows of each ladder."""
        return group_rows(self.all_players.rows, "ladder")

    @cached_property
    def _view_of_other_rulesets(self) -> Snapshot:
        """Return the view without `rules`, which is a version of a single ruleset."""
        return self.ledger.at(self.query.get("as_of"), self.head)

    def last_event(self, ladder: str) -> LastEvent:
        """Return the last event that affects a ladder."""
        if ladder not in self._last_events:
            self._last_events[ladder] = self._view_of(ladder).last_event(ladder)
        return self._last_events[ladder]

    def last_event_of_player(self, ladder: str, player: str) -> LastEvent:
        """Return the last event that affects a player on a ladder."""
        return self._view_of(ladder).last_event(ladder, player)

    def _view_of(self, ladder: str) -> Snapshot:
        """Return the view for a ladder: `rules` counts only for the ladders of its ruleset."""
        rules = self.query.get("rules")
        is_of_ruleset = rules is None or parse_name(ladder).ruleset_id == rules.partition("@")[0]
        return self.view if is_of_ruleset else self._view_of_other_rulesets
