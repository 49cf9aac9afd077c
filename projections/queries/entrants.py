"""Who entered a ruleset's ladders, under which league id (LID), and whom they have not met there yet."""

from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import Unknown
from ratings_ledger.ledger.rejections import shown
from ratings_ledger.ledger.store.log import Log, known_events, read_records
from ratings_ledger.ledger.validation.leagues import league_of
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.queries.answers_recorded import Entrant, Unmet
from ratings_ledger.projections.queries.coordinates import Times
from ratings_ledger.projections.queries.standings import Ladders
from ratings_ledger.projections.replay.ladders import Stream, parse_name
from ratings_ledger.projections.rulesets.versions import Version, games_of


def league_ids(connection: Connection, facts: Facts, versions: list[Version]) -> dict[str, int]:
    """The league ids by player (current id): 1, 2, 3 ... in the order in which the log first names people.

    They are permanent: a game that is voided or corrected later keeps the ids it gave, and none is given twice. If
    somebody has several ids, the first counts.
    """
    games = games_of(versions)
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


def unmet(connection: Connection, ladders: Ladders, ladder: str, player: str, times: Times) -> Unmet:
    """The players of a ladder with whom somebody has no counted game on it yet, by id.

    In a league they are those who subscribed, whether they have played or not, and no substitutes. Raises `Unknown` for
    somebody who has neither subscribed nor played.
    """
    stream = ladders.stream(ladder)
    everybody = _subscribers(connection, ladders.facts, stream) or {*stream.names}
    if player not in everybody and player not in stream.names:
        raise Unknown(None, f"{shown(player)} has no game on {ladder}")
    others = everybody - {player}
    has_ids = any("b5" in version.ruleset.scope.kind for version in stream.versions)
    ids = league_ids(connection, ladders.facts, stream.versions) if has_ids else {}
    rows = tuple(Entrant(ids.get(name), name) for name in sorted(others - _met(stream, player)))
    return Unmet(ladder, player, ids.get(player), rows, others=len(others), has_ids=has_ids, times=times)


def _subscribers(connection: Connection, facts: Facts, stream: Stream) -> set[str]:
    """Who subscribed to the league that a ladder is of (current ids); nobody if it is of none."""
    ruleset = stream.versions[0].ruleset
    values = parse_name(stream.ladder).values if ruleset.partition.by == ["league"] else ()
    found = [league_of(Log(connection, facts.position), name) for name in values]
    leagues = [league for league in found if league is not None and league.game in ruleset.scope.game]
    return {facts.current(player) for league in leagues for player in league.players}


def _met(stream: Stream, player: str) -> set[str]:
    """Who was in a counted game of a ladder with somebody."""
    if player not in stream.names:
        return set()
    number, met = stream.names.index(player), set[int]()
    for game in range(len(stream.row)):
        there = stream.players[stream.offsets[game] : stream.offsets[game + 1]]
        if number in there:
            met.update(there)
    return {stream.names[other] for other in met}
