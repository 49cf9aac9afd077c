"""Subscribe players to leagues, and schedule the games when the last player subscribes."""

import secrets
from collections.abc import Callable
from functools import partial
from itertools import count as count_from
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.intake.intake import IntakeResult, Precondition
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import Log, head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.leagues import (
    PLAYERS_PER_LEAGUE,
    League,
    draw_schedule,
    find_league,
    find_leagues_of_scheduled_games,
    require_league,
)
from ratings_ledger.projections.admission.ladder_checks import Admission
from ratings_ledger.projections.rulesets.versions import list_games

# in each round of concurrent subscriptions one succeeds, so one attempt per player is enough; two are to spare
ATTEMPTS_MAX = PLAYERS_PER_LEAGUE + 2
# a function that checks events and appends them in one transaction, unless the precondition fails
Append = Callable[[list[dict[str, Any]], Precondition], IntakeResult]


class Subscription(NamedTuple):
    """The outcome of a subscription, the number of players before it, and whether it fills the league."""

    result: IntakeResult
    players_before: int
    is_last: bool


def refuse_unscored_league(connection: Connection, game: str) -> None:
    """Raise `Refused` (league-unscored) if no ruleset scores leagues of a game."""
    ruleset_by_game = {
        name: ruleset_id
        for ruleset_id, versions in Admission(connection, head(connection).position).versions.items()
        if versions[0].ruleset.partition.by == ["league"]
        for name in list_games(versions)
    }
    if game not in ruleset_by_game:
        listed_games = ", ".join(f"{name} ({ruleset_id})" for name, ruleset_id in sorted(ruleset_by_game.items()))
        available = f"; leagues can be played in {listed_games}" if listed_games else ""
        raise Refused(
            "league-unscored",
            f"no ruleset scores leagues of {game}; first publish a ruleset that partitions by league (see "
            f"docs/leagues.md){available}",
        )


def subscribe(ledger: Ledger, name: str, player: str, at: str, seed: str | None, append: Append) -> Subscription:
    """Subscribe a player to a league, and schedule the games if this fills the league.

    If another player subscribes at the same time, try again. Raises `Refused` (league-unknown).
    """
    for _ in range(ATTEMPTS_MAX):
        with ledger.reading() as connection:
            league = require_league(Log(connection), name)
            players_before, is_last = len(league.players), len(league.players) == PLAYERS_PER_LEAGUE - 1
            events = [{"type": "league.joined", "occurred_at": at, "data": {"league": name, "player": player}}]
            if is_last:
                league.players.append(player)
                events.append(build_schedule_event(connection, league, at, seed))
        result = append(events, partial(_refuse_changed, league))
        if [rejection.code for rejection in result.rejected[:1]] != ["changed-meanwhile"]:
            break
    return Subscription(result, players_before, is_last)


def build_schedule_event(connection: Connection, league: League, at: str, seed: str | None) -> dict[str, Any]:
    """Return the event that schedules the games of a full league, drawn with `seed` or, without it, a random seed.

    If a usual id of a game is taken by a recorded game, even if it is voided now, or by another league's schedule, all
    games get other ids.
    """
    events, scheduled_games = Log(connection), find_leagues_of_scheduled_games(connection)
    seed = seed or secrets.token_hex(8)
    schedule = draw_schedule(league.players, league.players_per_game, seed)
    width = len(str(len(schedule)))
    for attempt in count_from(1):
        prefix = league.name if attempt == 1 else f"{league.name}-{attempt}"
        game_ids = [f"{prefix}-{number:0{width}d}" for number in range(1, len(schedule) + 1)]
        if not any(game_id in scheduled_games or events.about(f"game:{game_id}") for game_id in game_ids):
            break
    games = [{"game_id": game_id, "seats": seats} for game_id, seats in zip(game_ids, schedule, strict=True)]
    data = {"league": league.name, "seed": seed, "games": games}
    return {"type": "league.scheduled", "occurred_at": at, "data": data}


def _refuse_changed(previous: League, connection: Connection) -> None:
    """Raise `Refused` (changed-meanwhile) if a league changed since it was read."""
    current = find_league(Log(connection), previous.name)
    if (
        current is None
        or current.join_events != previous.join_events
        or current.created_event != previous.created_event
    ):
        raise Refused("changed-meanwhile", f"the league {previous.name} changed at the same time; try again")
