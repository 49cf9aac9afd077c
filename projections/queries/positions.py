"""The questions of a view about positions: on which event an answer depends last, and which have something to tell."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ratings_ledger.ledger.store.log import recorded_at
from ratings_ledger.projections.queries import answers
from ratings_ledger.projections.queries.asking import Asking, asked_again, known_ones, refuse_unknown
from ratings_ledger.projections.queries.coordinates import moment, position_known
from ratings_ledger.projections.queries.standings import check_version

if TYPE_CHECKING:
    from ratings_ledger.projections.queries.answers_profiled import Ranks


class Positions(Asking):
    """The questions about positions that can be asked of the ledger at coordinates."""

    @asked_again
    def telling_positions(self) -> frozenset[int]:
        """The positions of the events that may have moved somebody who did not play: decisions, and games played before
        a list that had been published. Of the coordinates only `known_at` matters. Raises as `publications` does.
        """
        from ratings_ledger.projections.queries.event_impacts import telling_positions

        with self._reading() as connection:
            position = position_known(connection, self.known_at, None, self.note)
            every = self._known(connection, position, lazily=True).at(None)
            if ("telling",) not in every.worked_out:
                every.worked_out["telling",] = telling_positions(connection, every.facts)
            found: frozenset[int] = every.worked_out["telling",]
            return found

    @asked_again
    def last_event(self, ladder: str, player: str | None = None) -> answers.LastEvent:
        """The last event that a ladder depends on, or a player there: with `known_at` there, the answers are the same.

        Except for the ranks, and gold, of a player, which depend on everybody. Raises as `asking` does, `Unknown` for
        somebody who is not recorded.
        """
        from ratings_ledger.projections.queries.last_events import last_event

        with self.asking(ladder, lazily=True) as asked:
            if player is not None:
                refuse_unknown(asked.ladders.facts, player)
            position = last_event(asked.connection, asked.ladders, ladder, player)
            return answers.LastEvent(position, moment(recorded_at(asked.connection, position)))

    @asked_again
    def last_event_of_ranks(self, found: Ranks) -> answers.LastEvent:
        """The last event that a player's ranks over time depend on: with `known_at` there, they are the same.

        A game of others that left the rank as it was is none. Raises as `asking` does.
        """
        from ratings_ledger.projections.queries.last_events import last_event

        with self.asking(found.ladder, lazily=True) as asked:
            moved = [row.position for row in found.rows or () if row.position is not None]
            player = found.player if found.every == "step" and found.rows is not None else None
            position = last_event(asked.connection, asked.ladders, found.ladder, player, max(moved, default=0))
            return answers.LastEvent(position, moment(recorded_at(asked.connection, position)))

    def last_positions(self, ladder: str, players: Collection[str]) -> dict[str, int]:
        """By player, the positions of the last events that some players on a ladder depend on.

        Raises as `last_event` does, which tells one player's.
        """
        from ratings_ledger.projections.queries.last_events import last_event

        with self.asking(ladder, lazily=True) as asked:
            wanted = known_ones(asked.ladders.facts, players)
            return {player: last_event(asked.connection, asked.ladders, ladder, player) for player in wanted}

    @asked_again
    def last_event_of_game(self, game_id: str) -> answers.LastEvent:
        """The last event that a game and its explanations on its ladders depend on; `as_of` does not matter.

        Raises `BadArgument`, `RulesetUnusable`, `StoreUnavailable`, `Unknown` for a game that is not recorded.
        """
        from ratings_ledger.projections.queries.explanation import row_of_game
        from ratings_ledger.projections.queries.last_events import last_event_of_game

        with self._reading() as connection:
            every = self._known(connection, position_known(connection, self.known_at, None, self.note), lazily=True)
            check_version(every.facts, self.rules)
            position = last_event_of_game(connection, every, row_of_game(connection, every.facts, game_id))
            return answers.LastEvent(position, moment(recorded_at(connection, position)))

    def games_recorded(self) -> int:
        """How many games are recorded, voided ones included. Raises as `surveying` does."""
        with self.surveying() as seen:
            return len(seen.facts.first_position)

    def last_positions_of_games(self) -> dict[str, int]:
        """The positions of the last events that games depend on, by their ids, in the order of their first records.

        Raises as `surveying` does; see `last_event_of_game`.
        """
        from ratings_ledger.projections.queries.stories import last_positions_of_games

        with self.surveying() as seen:
            return last_positions_of_games(seen)

    def last_positions_of_people(self) -> dict[str, int]:
        """The position of the last event about a game of each person, on a ladder or not, or about who they are.

        Raises as `surveying` does.
        """
        from ratings_ledger.projections.queries.last_events import last_positions_of_people

        with self.surveying() as seen:
            return last_positions_of_people(seen.connection, seen.everything)
