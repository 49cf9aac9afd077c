"""Use the package `eventsourcing`: save games as domain events, and compute Elo in a projection.

A game is a frozen dataclass with as few members as possible, without a timestamp that would have to be converted. The
projection uses floats, which are cheaper than exact integers. This was the fastest way to use the package that we
found; `replay` has variants for the ways of reading events that we tried.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any

from eventsourcing.application import Application

from benchmarks.games import Drawn, chunks
from benchmarks.histories import History, game_id, player_id

Environment = dict[str, str]

K_TOTAL = 32
START = 1000.0
SECTION_EVENTS = 10_000
BATCH_EVENTS = 5_000


@dataclass(frozen=True)
class GameRecorded:
    """A game was played. Each game has a sequence of events of its own, with the game's id."""

    originator_id: str
    originator_version: int
    game: str
    group: str
    occurred_at: int
    players: list[str]
    places: list[int]


class Games(Application[str]):
    """All games, each with its own sequence of events."""

    log_section_size = SECTION_EVENTS


def events(drawn: Drawn) -> list[GameRecorded]:
    """Return a chunk of games as domain events."""
    players, places = [player_id(number) for number in drawn.players], drawn.places.tolist()
    return [
        GameRecorded(
            game_id(drawn.first + number),
            1,
            "bench",
            "0",
            int(drawn.occurred_at[number]),
            players[low:high],
            places[low:high],
        )
        for number, (low, high) in enumerate(pairwise(drawn.offsets.tolist()))
    ]


def save(env: Environment, history: list[Any], batch: int = BATCH_EVENTS) -> dict[str, Any]:
    """Save a history, `batch` events per transaction. The time to create the events does not count."""
    seconds, count = 0.0, 0
    with Games(env) as games:
        for drawn in chunks(History(*history)):
            domain_events = events(drawn)
            started = perf_counter()
            for first in range(0, len(domain_events), batch):
                games.save(*domain_events[first : first + batch])
            seconds += perf_counter() - started
            count += len(domain_events)
    return {"seconds": seconds, "count": count}


def replay(env: Environment, variant: str) -> dict[str, Any]:
    """Read all events in log order, compute the Elo of all players, and store the standings in a table.

    `_games` describes the variants.
    """
    started = perf_counter()
    points: dict[str, float] = {}
    count = 0
    with Games(env) as games:
        for players, places in _games(games, variant):
            _score(points, players, places)
            count += 1
        _publish(env, points)
    return {"seconds": perf_counter() - started, "count": count, "points": points}


def _games(games: Games, variant: str) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the players and places of every game.

    notifications: read sections of the notification log, and map them to domain events, like the package's projections
    stored:        read the same sections, and decode them with the package's transcoder, without creating domain events
    """
    to_event, decode = games.mapper.to_domain_event, games.mapper.transcoder.decode
    start: int | None = 1
    while start is not None:
        section = games.notification_log.select(start, SECTION_EVENTS)
        if variant == "stored":
            for notification in section:
                state = decode(notification.state)
                yield state["players"], state["places"]
        else:
            for notification in section:
                event: Any = to_event(notification)
                yield event.players, event.places
        start = section[-1].id + 1 if section else None


def _score(points: dict[str, float], players: list[str], places: list[int]) -> None:
    """Update the points by textbook Elo between every two players of a game."""
    before = [points.get(player, START) for player in players]
    k, n = K_TOTAL / (len(players) - 1), len(players)
    change = [0.0] * n
    for i in range(n):
        mine, place = before[i], places[i]
        for j in range(i + 1, n):
            scored = 1.0 if place < places[j] else 0.0 if place > places[j] else 0.5
            amount = k * (scored - 1.0 / (1.0 + 10.0 ** ((before[j] - mine) / 400.0)))
            change[i] += amount
            change[j] -= amount
    for i in range(n):
        points[players[i]] = before[i] + change[i]


def _publish(env: Environment, points: dict[str, float]) -> None:
    """Store the standings in a table beside the events."""
    ranked = sorted(points.items(), key=lambda entry: (-entry[1], entry[0]))
    mark = "?" if "SQLITE_DBNAME" in env else "%s"
    with closing(_connect(env)) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE IF NOT EXISTS standings (player TEXT PRIMARY KEY, points DOUBLE PRECISION)")
        cursor.execute("DELETE FROM standings")
        cursor.executemany(f"INSERT INTO standings VALUES ({mark}, {mark})", ranked)
        connection.commit()


def _connect(env: Environment) -> Any:
    if "SQLITE_DBNAME" in env:
        return sqlite3.connect(env["SQLITE_DBNAME"])
    import psycopg

    return psycopg.connect(host=env["POSTGRES_HOST"], user=env["POSTGRES_USER"], dbname=env["POSTGRES_DBNAME"])
