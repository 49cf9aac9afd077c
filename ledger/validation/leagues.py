"""Leagues: eight players subscribe, the last subscription draws the schedule, and then only its games are played.

The live events of a league define it. A label on games without a `league.created` is not a league.
"""

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import EventLookup, KnownEvent, is_live, live_games
from ratings_ledger.ledger.rejections import Refused, csv_item, quote
from ratings_ledger.ledger.store.log import read_live

PLAYERS = 8
LISTED_MAX = 10  # leagues in a message
SIZES = range(2, PLAYERS + 1)
TYPES = frozenset({"league.created", "league.joined", "league.scheduled"})


@dataclass
class League:
    """A league after its live events. `players` are ids in order of subscription; `games` are the seats by game_id."""

    name: str
    game: str
    size: int
    created: KnownEvent
    version: str | None = None
    players: list[str] = field(default_factory=list)
    joined: list[KnownEvent] = field(default_factory=list)
    scheduled: KnownEvent | None = None
    games: dict[str, list[str]] = field(default_factory=dict)


def scheduled_games(connection: Connection, until: int | None = None) -> dict[str, str]:
    """Return the league of each game in a schedule that is live at a position (default: the head), by game_id."""
    schedules = read_live(connection, until=until, type_name="league.scheduled")
    return {game["game_id"]: event.data["league"] for event in schedules for game in event.data["games"]}


def find_league(events: EventLookup, name: str) -> League | None:
    """Find the live league of this name; None if there is none."""
    league: League | None = None
    for event in events.about(f"league:{name}"):
        if event.type not in TYPES or not is_live(events, event):
            continue
        data = event.data
        if event.type == "league.created":
            league = League(name, data["game"], data["players_per_game"], event, data.get("version"))
        elif league is not None and event.type == "league.joined":
            league.players.append(data["player"])
            league.joined.append(event)
        elif league is not None:
            league.scheduled = event
            league.games = {game["game_id"]: game["seats"] for game in data["games"]}
    return league


def require_league(events: EventLookup, name: str) -> League:
    """Return the live league of this name. Raises `Refused` (league-unknown)."""
    league = find_league(events, name)
    if league is None:
        hint = events.similar("league", name)
        raise Refused("league-unknown", f"there is no league {quote(name)} ({_list_leagues(events)}){hint}")
    return league


def _list_leagues(events: EventLookup) -> str:
    """Name the live leagues, or the last of many."""
    if not (names := events.league_names()):
        return "none was created"
    more = f"{len(names):,}, the last of them " if len(names) > LISTED_MAX else ""
    return f"there are {more}{', '.join(names[-LISTED_MAX:])}"


def refuse_created(events: EventLookup, name: str, candidates: Iterable[KnownEvent]) -> None:
    """Raise `Refused` (league-exists) if the league exists, or if recorded games have its name as a label.

    `candidates` are all events that may concern it.
    """
    if (league := find_league(events, name)) is not None:
        raise Refused("league-exists", f"the league {quote(name)} already exists, created by {league.created.event_id}")
    for game in live_games(candidates, events):
        if game.data.get("league") == name:
            raise Refused(
                "league-exists", f"games such as {quote(game.data['game_id'])} are already recorded for {quote(name)}"
            )


def refuse_one_person(events: EventLookup, player_events: Iterable[KnownEvent], other_ids: set[str]) -> None:
    """Raise `Refused` (players-met) if the player of some events is in a league with one of the other ids."""
    for event in player_events:
        if event.type == "league.joined" and is_live(events, event):
            league = require_league(events, event.data["league"])
            if opponents := other_ids.intersection(league.players):
                message = (
                    f"{quote(event.data['player'])} and {quote(min(opponents))} are in the league {quote(league.name)}"
                )
                raise Refused("players-met", f"{message}, so they are two people")


def refuse_joined(league: League, player: str, current: Callable[[str], str]) -> None:
    """Raise `Refused` (league-joined, league-full) if a player cannot subscribe; `current` returns the current id."""
    for subscriber in league.players:
        if current(subscriber) == current(player):
            note = "" if subscriber == player else f", as {quote(subscriber)}"
            raise Refused("league-joined", f"{quote(player)} is already in the league {quote(league.name)}{note}")
    if len(league.players) >= PLAYERS:
        raise Refused("league-full", f"the league {quote(league.name)} already has its {PLAYERS} players")


def refuse_schedule(events: EventLookup, league: League, games: Sequence[Mapping[str, Any]]) -> None:
    """Raise `Refused` (league-not-full, league-scheduled, bad-schedule) if a league cannot get this schedule."""
    name = quote(league.name)
    if league.scheduled is not None:
        raise Refused("league-scheduled", f"the league {name} already has a schedule, from {league.scheduled.event_id}")
    if len(league.players) < PLAYERS:
        raise Refused("league-not-full", f"the league {name} has {len(league.players)} of {PLAYERS} players")
    seats_of_games = [game["seats"] for game in games]
    game_count = len(league_schedule(league.size))
    if len(seats_of_games) != game_count:
        raise Refused("bad-schedule", f"the league {name} has {game_count} games, not {len(seats_of_games)}")
    if len({game["game_id"] for game in games}) < game_count:
        raise Refused("bad-schedule", f"two games of the league {name} have one game_id")
    for game in games:
        if events.about(f"game:{game['game_id']}"):
            raise Refused("bad-schedule", f"a game {quote(game['game_id'])} is recorded already")
    for seats in seats_of_games:
        if len(seats) != league.size or len({*seats}) < len(seats) or not {*seats} <= {*league.players}:
            listed = ", ".join(map(csv_item, seats))
            raise Refused("bad-schedule", f"{league.size} different players of {name} play in each game, not {listed}")
    for player in league.players:
        if (own_count := sum(player in seats for seats in seats_of_games)) != game_count * league.size // PLAYERS:
            raise Refused(
                "bad-schedule", f"all players of {name} play equally often; {quote(player)} plays {own_count} times"
            )


def refuse_game(league: League, data: Mapping[str, Any], current: Callable[[str], str]) -> None:
    """Raise `Refused` (not-scheduled, not-as-scheduled) unless a game and its players are on the league's schedule."""
    name, game_id = quote(league.name), quote(data["game_id"])
    if data["game"] != league.game:
        raise Refused("not-as-scheduled", f"the league {name} plays {league.game}, not {data['game']}")
    if data["game_id"] not in league.games:
        player_note = f", which has {len(league.players)} of {PLAYERS} players" if league.scheduled is None else ""
        raise Refused(
            "not-scheduled",
            f"{game_id} is not a game of the league {name}{player_note}; see: ratings league show "
            f"{shlex.quote(league.name)}",
        )
    seats = [current(player) for player in league.games[data["game_id"]]]
    # the players at the start; a substitute takes over a seat later
    starting_seats = {current(p["player"]): p.get("seat") for p in data["participants"] if "replaces" not in p}
    if {*starting_seats} != {*seats}:
        expected, actual = (", ".join(map(csv_item, names)) for names in (seats, sorted(starting_seats)))
        raise Refused("not-as-scheduled", f"{game_id} is scheduled for {expected}, not {actual}")
    for player, seat in starting_seats.items():
        if seat not in (None, seats.index(player) + 1):
            raise Refused(
                "not-as-scheduled", f"{quote(player)} has seat {seats.index(player) + 1} in {game_id}, not {seat}"
            )


def refuse_withdrawn(events: EventLookup, event: KnownEvent) -> None:
    """Raise `Refused` (still-needed) if a live event depends on a step of a league."""
    league = find_league(events, event.data["league"])
    if league is None or event.type not in TYPES:
        return
    name = quote(league.name)
    if event.type == "league.scheduled":
        for game_id in league.games:
            history = events.about(f"game:{game_id}")
            if history and history[-1].type != "game.voided":
                raise Refused("still-needed", f"{quote(game_id)} of the league {name} is played; void that game first")
    elif league.scheduled is not None:
        raise Refused("still-needed", f"the league {name} has a schedule; void {league.scheduled.event_id} first")
    elif event.type == "league.created" and league.players:
        raise Refused("still-needed", f"{len(league.players)} players are in the league {name}; void that first")


# The schedule of a league is balanced for its number of players per game, and a seed draws the players.
# `scripts/find_schedules.py` computed `schedules.json`, the games of players 0 to 7 for 2 to 8 players per game: each
# player takes every seat equally often, and meets every other player equally often or, if that is not a whole number,
# one of the two nearest whole numbers of times. A league relabels the players.


@cache
def league_schedule(size: int) -> list[list[int]]:
    """Return the games of `size` players each, as lists of the players 0 to 7 by seat."""
    text = resources.files("ratings_ledger.ledger.validation").joinpath("schedules.json").read_text(encoding="utf-8")
    return [list(game) for game in json.loads(text)[str(size)]]


def draw_schedule(players: list[str], size: int, seed: str) -> list[list[str]]:
    """Draw the games of eight players, by seat; a seed always draws the same, in any order of the players.

    The seed makes the drawing reproducible: players are sorted by SHA-256 of the seed, a zero byte and the id in UTF-8.
    """
    drawn = sorted(players, key=lambda player: hashlib.sha256(f"{seed}\0{player}".encode()).digest())
    return [[drawn[number] for number in game] for game in league_schedule(size)]
