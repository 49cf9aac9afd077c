"""Steps of a league: creating it, subscribing, and the schedule that the last who subscribes draws."""

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.intake.intake import Imported, Precondition
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import Log, head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.leagues import PLAYERS, League, draw_schedule, find_league, require_league
from ratings_ledger.projections.admission.events import Admission

# of those who subscribe at the same moment one succeeds each time, so nobody tries more often than there are seats
ATTEMPTS = PLAYERS + 2
# checks events and appends them in one transaction, if they are still wanted then
Take = Callable[[list[dict[str, Any]], Precondition], Imported]


class Subscription(NamedTuple):
    """What became of it, how many players the league had before, and whether the schedule was to be drawn."""

    result: Imported
    players: int
    is_last: bool


def refuse_unscored(connection: Connection, game: str) -> None:
    """Raises `Refused` (league-unscored) if no ruleset makes tables for leagues of a game, with the remedy."""
    scored = {
        slug: ruleset_id
        for ruleset_id, versions in Admission(connection, head(connection).position).versions.items()
        if versions[0].ruleset.partition.by == ["league"]
        for slug in versions[0].ruleset.scope.game
    }
    if game not in scored:
        there = ", ".join(f"{slug} ({ruleset_id})" for slug, ruleset_id in sorted(scored.items())) or "no game"
        raise Refused(
            "league-unscored",
            f"no ruleset scores leagues of {game}; there are leagues of {there}. Publish a ruleset partitioned by "
            "league first: docs/leagues.md",
        )


def subscribe(ledger: Ledger, name: str, player: str, at: str, seed: str | None, take: Take) -> Subscription:
    """Subscribe a player to a league, again while others do so at the same time; the last draws the schedule.

    Raises `Refused` (league-unknown).
    """
    for _ in range(ATTEMPTS):
        with ledger.reading() as connection:
            there = require_league(Log(connection), name)
        players, is_last = len(there.players), len(there.players) == PLAYERS - 1
        events = [{"type": "league.joined", "occurred_at": at, "data": {"league": name, "player": player}}]
        if is_last:
            there.players.append(player)
            events.append(schedule_event(there, at, seed))
        result = take(events, partial(_refuse_changed, there))
        if [rejection.code for rejection in result.rejected[:1]] != ["changed-meanwhile"]:
            break
    return Subscription(result, players, is_last)


def schedule_event(there: League, at: str, seed: str | None) -> dict[str, Any]:
    """Return the event that schedules the games of a league with all its players, drawn by a seed, by default a new
    one.
    """
    seed = seed or secrets.token_hex(8)
    drawn = draw_schedule(there.players, there.size, seed)
    width = len(str(len(drawn)))
    games = [{"game_id": f"{there.name}-{number:0{width}d}", "seats": seats} for number, seats in enumerate(drawn, 1)]
    data = {"league": there.name, "seed": seed, "games": games}
    return {"type": "league.scheduled", "occurred_at": at, "data": data}


def _refuse_changed(seen: League, connection: Connection) -> None:
    """Raises `Refused` (changed-meanwhile) if somebody has subscribed since a league was looked at."""
    now = find_league(Log(connection), seen.name)
    if now is None or now.joined != seen.joined or now.created != seen.created:
        raise Refused("changed-meanwhile", f"others subscribed to {seen.name} at the same time; try again")
