"""Read the live records of games: the data of games that changed points, with their players' current ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Connection

from ratings_ledger.ledger.events.game_types import places
from ratings_ledger.ledger.events.revisions import GAME_EVENTS, apply_revisions
from ratings_ledger.ledger.events.types import read_corrected_game
from ratings_ledger.ledger.store.log import Log, read_records_at
from ratings_ledger.ledger.validation.identities import read_identities
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.lookups import GameFacts, look_up_games
from ratings_ledger.projections.replay.trace import Step

# the member `type`, as canonical JSON, of game events that do not contain the game's data
VOID_OR_REINSTATEMENT = ('"type":"game.voided"', '"type":"game.reinstated"')


def load_games(facts: Facts, steps: Sequence[Step]) -> list[GameFacts]:
    """Return the game of each step; for an adjustment or a version, a `GameFacts` without participants.

    The step of a new season has the player's first game in the season, and that of a rating period their last in it.
    """
    games = look_up_games(facts, [step.row for step in steps if step.row is not None])
    return [
        next(games)
        if step.row is not None
        else GameFacts(step.position, step.position, step.occurred_at, persons=[], places=[], replaced=[], sides=[])
        for step in steps
    ]


def read_game_records(connection: Connection, games: Iterable[GameFacts]) -> dict[int, str]:
    """Return the live records of games, and the records of the steps without a game, by position."""
    return read_records_at(connection, sorted({game.live_position for game in games}))


class LiveGames:
    """The live data of games, given their records by position. Players have their current ids.

    On a ladder of clubs, the participants are clubs.
    """

    def __init__(self, connection: Connection, facts: Facts, records: dict[int, str]) -> None:
        until = facts.position
        self._club_facts = facts if facts.club_games is not None else None
        self._identities = read_identities(connection, until)
        game_ids = [
            from_json(record)["data"]["game_id"]
            for record in records.values()
            if any(type_member in record for type_member in VOID_OR_REINSTATEMENT)
        ]
        events = Log(connection, until)
        live_games = (apply_revisions(events.about(f"game:{game_id}")) for game_id in game_ids)
        self._games = {
            game_id: game.data for game_id, game in zip(game_ids, live_games, strict=True) if game is not None
        }

    def find_game(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return a game's data as it stands after an event; the event's record must be one of `records`.

        Return None if the event is not about a game.
        """
        if event["type"] not in GAME_EVENTS:
            return None
        data: dict[str, Any] = event["data"]
        if event["type"] == "game.corrected":
            data = read_corrected_game(data, 0)[0]
        elif event["type"] != "game.recorded":
            data = self._games[data["game_id"]]
        if self._club_facts is not None:
            return _replace_players_by_clubs(self._club_facts, data)
        return self._identities.use_current_ids(data)


def _replace_players_by_clubs(facts: Facts, data: dict[str, Any]) -> dict[str, Any]:
    """Return a game with clubs as participants, each with the place of its best player."""
    best_places: dict[str, int] = {}
    for place, participant in zip(places(data), data["participants"], strict=True):
        if (label := participant.get("club")) is not None:
            club = facts.current(label)
            best_places[club] = min(place, best_places.get(club, place))
    return {"participants": [{"player": club, "place": place} for club, place in best_places.items()]}


def read_live_game(connection: Connection, facts: Facts, game_id: str) -> dict[str, Any]:
    """Return the data of a game as recorded or last corrected; empty for an unknown game."""
    game = apply_revisions(Log(connection, facts.position).about(f"game:{game_id}"))
    return {} if game is None else game.data


def load_game_ids(connection: Connection | None, facts: Facts, rows: set[int]) -> dict[int, str]:
    """Return the ids of games by their rows in the facts; empty without a connection."""
    if connection is None:
        return {}
    positions = {row: facts.live_position[row] for row in rows}
    records = read_records_at(connection, sorted({*positions.values()}))
    return {row: json.loads(records[position])["data"]["game_id"] for row, position in positions.items()}
