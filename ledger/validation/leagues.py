"""Leagues: eight players subscribe, the last of them draws the schedule, and then only its games are played.

A league is what its live events say. A label on games without a `league.created` is not a league.
"""

import hashlib
import json
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
SIZES = range(2, PLAYERS + 1)
TYPES = frozenset({"league.created", "league.joined", "league.scheduled"})


@dataclass
class League:
    """A league as its live events leave it. `players` are ids as they subscribed; `games` are the seats by game_id."""

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
    """Return the live league of this name, or None."""
    found: League | None = None
    for event in events.about(f"league:{name}"):
        if event.type not in TYPES or not is_live(events, event):
            continue
        data = event.data
        if event.type == "league.created":
            found = League(name, data["game"], data["players_per_game"], event, data.get("version"))
        elif found is not None and event.type == "league.joined":
            found.players.append(data["player"])
            found.joined.append(event)
        elif found is not None:
            found.scheduled = event
            found.games = {game["game_id"]: game["seats"] for game in data["games"]}
    return found


def require_league(events: EventLookup, name: str) -> League:
    """Return the live league of this name. Raises `Refused` (league-unknown)."""
    found = find_league(events, name)
    if found is None:
        hint = events.similar("league", name)
        raise Refused("league-unknown", f"there is no league {quote(name)}; see: ratings league list{hint}")
    return found


def refuse_created(events: EventLookup, name: str, candidates: Iterable[KnownEvent]) -> None:
    """Raises `Refused` (league-exists) if there is such a league, or games have its name as a mere label.

    `candidates` are all events that may be about it.
    """
    if (league := find_league(events, name)) is not None:
        raise Refused("league-exists", f"the league {quote(name)} already exists, created by {league.created.event_id}")
    for game in live_games(candidates, events):
        if game.data.get("league") == name:
            raise Refused(
                "league-exists", f"games such as {quote(game.data['game_id'])} are already recorded for {quote(name)}"
            )


def refuse_one_person(events: EventLookup, named: Iterable[KnownEvent], others: set[str]) -> None:
    """Raises `Refused` (players-met) if the person named by events is in a league with one of the ids `others`."""
    for event in named:
        if event.type == "league.joined" and is_live(events, event):
            league = require_league(events, event.data["league"])
            if there := others.intersection(league.players):
                told = f"{quote(event.data['player'])} and {quote(min(there))} are in the league {quote(league.name)}"
                raise Refused("players-met", f"{told}, so they are two people")


def refuse_joined(league: League, player: str, current: Callable[[str], str]) -> None:
    """Raises `Refused` (league-joined, league-full) if a player cannot subscribe; `current` gives a person's id."""
    for there in league.players:
        if current(there) == current(player):
            also = "" if there == player else f", as {quote(there)}"
            raise Refused("league-joined", f"{quote(player)} is already in the league {quote(league.name)}{also}")
    if len(league.players) >= PLAYERS:
        raise Refused("league-full", f"the league {quote(league.name)} already has its {PLAYERS} players")


def refuse_schedule(events: EventLookup, league: League, games: Sequence[Mapping[str, Any]]) -> None:
    """Raises `Refused` (league-not-full, league-scheduled, bad-schedule) if a league cannot get this schedule."""
    name = quote(league.name)
    if league.scheduled is not None:
        raise Refused("league-scheduled", f"the league {name} already has a schedule, from {league.scheduled.event_id}")
    if len(league.players) < PLAYERS:
        raise Refused("league-not-full", f"the league {name} has {len(league.players)} of {PLAYERS} players")
    seated = [game["seats"] for game in games]
    wanted = len(league_schedule(league.size))
    if len(seated) != wanted:
        raise Refused("bad-schedule", f"the league {name} has {wanted} games, not {len(seated)}")
    if len({game["game_id"] for game in games}) < wanted:
        raise Refused("bad-schedule", f"two games of the league {name} have one game_id")
    for game in games:
        if events.about(f"game:{game['game_id']}"):
            raise Refused("bad-schedule", f"a game {quote(game['game_id'])} is recorded already")
    for seats in seated:
        if len(seats) != league.size or len({*seats}) < len(seats) or not {*seats} <= {*league.players}:
            told = ", ".join(map(csv_item, seats))
            raise Refused("bad-schedule", f"{league.size} different players of {name} play in each game, not {told}")
    for player in league.players:
        if (games_of := sum(player in seats for seats in seated)) != wanted * league.size // PLAYERS:
            raise Refused("bad-schedule", f"everybody plays equally often in {name}; {quote(player)} {games_of} times")


def refuse_game(league: League, data: Mapping[str, Any], current: Callable[[str], str]) -> None:
    """Raises `Refused` (not-scheduled, not-as-scheduled) unless a game and its players are on the league's schedule."""
    name, game_id = quote(league.name), quote(data["game_id"])
    if data["game"] != league.game:
        raise Refused("not-as-scheduled", f"the league {name} plays {league.game}, not {data['game']}")
    if data["game_id"] not in league.games:
        waiting = f", which has {len(league.players)} of {PLAYERS} players" if league.scheduled is None else ""
        raise Refused(
            "not-scheduled",
            f"{game_id} is not a game of the league {name}{waiting}; see: ratings league show {league.name}",
        )
    seats = [current(player) for player in league.games[data["game_id"]]]
    # those who sat down first; a substitute takes over somebody's seat
    first = {current(p["player"]): p.get("seat") for p in data["participants"] if "replaces" not in p}
    if {*first} != {*seats}:
        theirs, others = (", ".join(map(csv_item, names)) for names in (seats, sorted(first)))
        raise Refused("not-as-scheduled", f"{game_id} is scheduled for {theirs}, not {others}")
    for player, seat in first.items():
        if seat not in (None, seats.index(player) + 1):
            raise Refused(
                "not-as-scheduled", f"{quote(player)} has seat {seats.index(player) + 1} in {game_id}, not {seat}"
            )


def refuse_withdrawn(events: EventLookup, event: KnownEvent) -> None:
    """Raises `Refused` (still-needed) if something live depends on a step of a league."""
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


# The schedule of a league: a balanced one for its number of players per game, with the players drawn by a seed.
# `schedules.json` has the games of the players 0 to 7 for 2 to 8 players per game, which `scripts/find_schedules.py`
# found: everybody takes every seat equally often and meets everybody else equally often or, where that is not a whole
# number of times, one of the two nearest whole numbers. A league relabels them.


@cache
def league_schedule(size: int) -> list[list[int]]:
    """Return the games of `size` players each, as lists of the players 0 to 7 by seat."""
    text = resources.files("ratings_ledger.ledger.validation").joinpath("schedules.json").read_text(encoding="utf-8")
    return [list(game) for game in json.loads(text)[str(size)]]


def draw_schedule(players: list[str], size: int, seed: str) -> list[list[str]]:
    """Return the games of eight players by seat; the same seed draws the same, whatever order the players come in.

    Anybody with the seed can repeat it: players are sorted by SHA-256 of the seed, a zero byte and the id, as UTF-8.
    """
    drawn = sorted(players, key=lambda player: hashlib.sha256(f"{seed}\0{player}".encode()).digest())
    return [[drawn[number] for number in game] for game in league_schedule(size)]
