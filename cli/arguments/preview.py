"""What events would change, worked out before they are appended."""

from collections.abc import Iterator
from itertools import islice

from sqlalchemy import Connection

from cli.arguments.facts import decoded
from ledger.events.types import Draft
from ledger.store.log import head
from ledger.store.opening import Ledger
from ledger.validation.published_lists import published_lists
from projections.facts.columns import Facts
from projections.facts.players import known_players
from projections.queries.answers_compared import Impact
from projections.queries.impact import impact_of


class Preview:
    """Works out what checked drafts would change, before they are appended; `found` holds it.

    It reads the facts once, for this and for who is known. With `games_max` nothing is worked out for a ledger of more
    games, or for that many drafts; with `if_published` only if a list is published.
    """

    def __init__(
        self, ledger: Ledger, wanted: bool = True, games_max: int | None = None, if_published: bool = False
    ) -> None:
        self.ledger = ledger
        self.wanted = wanted
        self.games_max = games_max
        self.if_published = if_published
        self.found: Impact | None = None
        self._facts: Facts | None = None

    def facts(self, connection: Connection) -> Facts:
        """The facts up to the head of the log."""
        if self._facts is None:
            self._facts = decoded(connection)
        return self._facts

    def known(self, connection: Connection) -> set[str]:
        """The players that the ledger knows."""
        return known_players(self.facts(connection))

    def __call__(self, drafts: Iterator[Draft]) -> None:
        """Look at the drafts that `import_items` offers."""
        if not self.wanted:
            return
        with self.ledger.reading() as connection:
            if self.if_published and not published_lists(connection, head(connection).position):
                return
            facts = self.facts(connection)
            if self.games_max is None:
                self.found = impact_of(connection, facts, drafts)
            elif len(facts.start) < self.games_max:
                few = list(islice(drafts, self.games_max))
                if len(few) < self.games_max:
                    self.found = impact_of(connection, facts, few)
