"""Who entered a ruleset's ladders, under which league id (LID), and whom they have not met there yet."""

from typing import Any

from sqlalchemy import Connection

from ledger.store.log import known_events, read_records
from projections.facts.columns import Facts
from projections.replay.ladders import Stream
from projections.rulesets.versions import Version


def league_ids(connection: Connection, facts: Facts, versions: list[Version]) -> dict[str, int]:
    """The league ids by player (current id): 1, 2, 3 ... in the order in which the log first names people.

    They are permanent: a game that is voided or corrected later keeps the ids it gave, and none is given twice. If
    somebody has several ids, the first counts.
    """
    games = {game for version in versions for game in version.ruleset.scope.game}
    kinds = {kind for version in versions for kind in version.ruleset.scope.kind}
    found: dict[str, int] = {}
    for page in read_records(connection, until=facts.position):
        for position, record in page:
            data = _game(position, record)
            if data is not None and data["game"] in games and data.get("kind", "placing") in kinds:
                for participant in data["participants"]:
                    found.setdefault(participant["player"], len(found) + 1)
    people: dict[str, int] = {}
    for player, number in found.items():
        people.setdefault(facts.current(player), number)
    return people


def _game(position: int, record: str) -> dict[str, Any] | None:
    """The game in a record, as it was then; None for other events."""
    event = next(known_events([(position, record)]), None) if '"participants"' in record else None
    if event is None:
        return None
    return event.data if event.type == "game.recorded" else event.data.get("game")


def met(stream: Stream, player: str) -> set[str]:
    """Everybody with whom somebody has a counted game on a ladder."""
    number = stream.names.index(player) if player in stream.names else -1
    found: set[str] = set()
    for game in range(len(stream.row)):
        there = stream.players[stream.offsets[game] : stream.offsets[game + 1]]
        if number in there:
            found.update(stream.names[other] for other in there)
    return found - {player}


def unmet(stream: Stream, player: str) -> list[str]:
    """The players of a ladder with whom somebody has no counted game on it yet, by id."""
    return sorted({*stream.names} - met(stream, player) - {player})
