"""Check the events of leagues, and draw their schedules.

Eight players subscribe to a league, the last subscription draws the schedule, and then only the games on the schedule
are played. The live events of a league define its state. A game may have a league label without a `league.created`
event; such a label is not a league.
"""

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import EventLookup, KnownEvent, apply_revisions, is_live, live_games
from ratings_ledger.ledger.rejections import Refused, count, csv_item, quote
from ratings_ledger.ledger.store.log import read_live

PLAYERS_PER_LEAGUE = 8
LISTED_LEAGUES_MAX = 10  # in a message
TYPES = frozenset({"league.created", "league.joined", "league.scheduled"})


@dataclass
class League:
    """The state of a league after its live events.

    `players` are ids in the order of subscription; `games` maps a game_id to the players in the order of their seats.
    """

    name: str
    game: str
    players_per_game: int
    created_event: KnownEvent
    version: str | None = None
    players: list[str] = field(default_factory=list)
    join_events: list[KnownEvent] = field(default_factory=list)
    schedule_event: KnownEvent | None = None
    games: dict[str, list[str]] = field(default_factory=dict)


def find_leagues_of_scheduled_games(connection: Connection, until: int | None = None) -> dict[str, str]:
    """Return the league of each scheduled game by game_id, for the schedules live at a position (default: the head)."""
    schedules = read_live(connection, until=until, type_name="league.scheduled")
    return {game["game_id"]: event.data["league"] for event in schedules for game in event.data["games"]}


def find_league(events: EventLookup, name: str) -> League | None:
    """Return the live league of this name, or None."""
    league: League | None = None
    for event in events.about(f"league:{name}"):
        if event.type not in TYPES or not is_live(events, event):
            continue
        data = event.data
        if event.type == "league.created":
            league = League(name, data["game"], data["players_per_game"], event, data.get("version"))
        elif league is not None and event.type == "league.joined":
            league.players.append(data["player"])
            league.join_events.append(event)
        elif league is not None:
            league.schedule_event = event
            league.games = {game["game_id"]: game["seats"] for game in data["games"]}
    return league


def require_league(events: EventLookup, name: str) -> League:
    """Return the live league of this name. Raises `Refused` (league-unknown)."""
    league = find_league(events, name)
    if league is None:
        hint = events.suggest_similar("league", name)
        raise Refused("league-unknown", f"no league is called {quote(name)} ({_describe_leagues(events)}){hint}")
    return league


def _describe_leagues(events: EventLookup) -> str:
    """Describe the live leagues by their names; only the latest if there are more than `LISTED_LEAGUES_MAX`."""
    if not (names := events.list_league_names()):
        return "none was created; see: ratings league create --help"
    start = "there is" if len(names) == 1 else "there are"
    if len(names) > LISTED_LEAGUES_MAX:
        start = f"the latest of {len(names):,} leagues are"
    return f"{start} {', '.join(names[-LISTED_LEAGUES_MAX:])}"


def refuse_creation(events: EventLookup, name: str, candidates: Iterable[KnownEvent]) -> None:
    """Raise `Refused` (league-exists) if the league exists, or if recorded games have its name as a label.

    `candidates` are all events that may concern a game with this label.
    """
    if (league := find_league(events, name)) is not None:
        raise Refused(
            "league-exists",
            f"the league {quote(name)} already exists, created by the event {quote(league.created_event.event_id)}; "
            "choose another name",
        )
    for game in live_games(candidates, events):
        if game.data.get("league") == name:
            raise Refused(
                "league-exists",
                f"games such as {quote(game.data['game_id'])} are already recorded for the league {quote(name)}; "
                "choose another name",
            )


def refuse_merge_of_league_players(
    events: EventLookup, player_events: Iterable[KnownEvent], other_ids: set[str]
) -> None:
    """Raise `Refused` (players-met) if a merge would make two players of one league the same person.

    Args:
        events: Looks up events of the ledger.
        player_events: The events about the player who is merged.
        other_ids: The ids of the person with whom the player is merged.
    """
    for event in player_events:
        if event.type == "league.joined" and is_live(events, event):
            league = require_league(events, event.data["league"])
            if opponents := other_ids.intersection(league.players):
                message = (
                    f"{quote(event.data['player'])} and {quote(min(opponents))} are in the league {quote(league.name)}"
                )
                raise Refused(
                    "players-met", f"{message}, so they cannot be merged; a league's players are different people"
                )


def refuse_subscription(league: League, player: str, to_current_id: Callable[[str], str]) -> None:
    """Raise `Refused` (league-joined, league-full) if a player cannot subscribe.

    `to_current_id` maps a player's id to their id after renames and merges.
    """
    for subscriber in league.players:
        if to_current_id(subscriber) == to_current_id(player):
            note = "" if subscriber == player else f", as {quote(subscriber)}"
            raise Refused("league-joined", f"{quote(player)} is already in the league {quote(league.name)}{note}")
    if len(league.players) >= PLAYERS_PER_LEAGUE:
        raise Refused(
            "league-full", f"the league {quote(league.name)} already has its {PLAYERS_PER_LEAGUE} players; join another"
        )


def is_recorded(events: EventLookup, game_id: str) -> bool:
    """Tell whether a game is recorded, and not voided."""
    history = events.about(f"game:{game_id}")
    return bool(history) and history[-1].type != "game.voided"


def _has_seats(history: Sequence[KnownEvent], seats: Sequence[str]) -> bool:
    """Tell whether the players of a game, without substitutes, are those of some seats."""
    game = apply_revisions(history)
    participants = [] if game is None else game.data["participants"]
    return {entry["player"] for entry in participants if "replaces" not in entry} == {*seats}


def refuse_schedule(events: EventLookup, league: League, games: Sequence[Mapping[str, Any]]) -> None:
    """Raise `Refused` (league-not-full, league-scheduled, bad-schedule) unless a schedule is valid for the league."""
    name = quote(league.name)
    if league.schedule_event is not None:
        raise Refused(
            "league-scheduled",
            f"the league {name} already has a schedule, from the event {quote(league.schedule_event.event_id)}",
        )
    if len(league.players) < PLAYERS_PER_LEAGUE:
        raise Refused(
            "league-not-full",
            f"the league {name} has only {len(league.players)} of {PLAYERS_PER_LEAGUE} players; it can be scheduled "
            "when all have joined",
        )
    seats_of_games = [game["seats"] for game in games]
    game_count = len(load_league_schedule(league.players_per_game))
    if len(seats_of_games) != game_count:
        raise Refused(
            "bad-schedule",
            f"the schedule has {count(len(seats_of_games), 'game')}, but the league {name} needs {game_count}",
        )
    if len({game["game_id"] for game in games}) < game_count:
        (shared_id, _), *_ = Counter(game["game_id"] for game in games).most_common()
        raise Refused(
            "bad-schedule", f"two games of the league {name} have the game_id {quote(shared_id)}; give each its own"
        )
    for game in games:
        history = events.about(f"game:{game['game_id']}")
        # the schedule of a voided game may be restored
        if history and (is_recorded(events, game["game_id"]) or not _has_seats(history, game["seats"])):
            raise Refused(
                "bad-schedule", f"a game {quote(game['game_id'])} is already recorded; choose another game_id"
            )
    for game in games:
        seats = game["seats"]
        if len(seats) != league.players_per_game or len({*seats}) < len(seats) or not {*seats} <= {*league.players}:
            listed = ", ".join(map(csv_item, seats))
            raise Refused(
                "bad-schedule",
                f"the game {quote(game['game_id'])} lists {listed}, but each game of the league {name} needs "
                f"{league.players_per_game} different players of the league",
            )
    expected_count = game_count * league.players_per_game // PLAYERS_PER_LEAGUE
    for player in league.players:
        if (own_count := sum(player in seats for seats in seats_of_games)) != expected_count:
            raise Refused(
                "bad-schedule",
                f"{quote(player)} plays {count(own_count, 'game')}, but every player of the league {name} must play "
                f"{expected_count}",
            )


def refuse_game(league: League, data: Mapping[str, Any], to_current_id: Callable[[str], str]) -> None:
    """Raise `Refused` (not-scheduled, not-as-scheduled) unless a game and its players are on the league's schedule.

    `to_current_id` maps a player's id to their id after renames and merges.
    """
    name, game_id = quote(league.name), quote(data["game_id"])
    if data["game"] != league.game:
        message = f"the league {name} plays {league.game}, not {data['game']}; correct the game or the league"
        raise Refused("not-as-scheduled", message)
    if data["game_id"] not in league.games:
        player_note = f"only {len(league.players)} of {PLAYERS_PER_LEAGUE} players and "
        reason = f"{player_note if len(league.players) < PLAYERS_PER_LEAGUE else ''}no schedule yet"
        schedule_note = f", which has {reason}" if league.schedule_event is None else ""
        raise Refused(
            "not-scheduled",
            f"{game_id} is not a game of the league {name}{schedule_note}; see: ratings league show "
            f"{shlex.quote(league.name)}",
        )
    seats = [to_current_id(player) for player in league.games[data["game_id"]]]
    # the players at the start; a substitute takes over a seat later
    starting_seats = {to_current_id(p["player"]): p.get("seat") for p in data["participants"] if "replaces" not in p}
    if {*starting_seats} != {*seats}:
        expected, actual = (", ".join(map(csv_item, names)) for names in (seats, sorted(starting_seats)))
        message = f"{game_id} is scheduled for {expected}, not {actual}; correct the players or the game_id"
        raise Refused("not-as-scheduled", message)
    for player, seat in starting_seats.items():
        if seat not in (None, seats.index(player) + 1):
            raise Refused(
                "not-as-scheduled",
                f"{quote(player)} is scheduled for seat {seats.index(player) + 1} in {game_id}, not for seat {seat}; "
                "correct the seat, or leave it out",
            )


def refuse_withdrawal(events: EventLookup, event: KnownEvent) -> None:
    """Raise `Refused` (still-needed) if another live event depends on this event of a league."""
    league = find_league(events, event.data["league"])
    if league is None or event.type not in TYPES:
        return
    name = quote(league.name)
    if event.type == "league.scheduled":
        for game_id in league.games:
            if is_recorded(events, game_id):
                raise Refused(
                    "still-needed", f"the game {quote(game_id)} of the league {name} is recorded; void that game first"
                )
    elif league.schedule_event is not None:
        raise Refused(
            "still-needed",
            f"the league {name} has a schedule; void the event {quote(league.schedule_event.event_id)} first",
        )
    elif event.type == "league.created" and league.players:
        raise Refused(
            "still-needed",
            f"the league {name} has {count(len(league.players), 'player')}; void all subscriptions first",
        )


# The schedule of a league is balanced; a seed assigns the numbers 0 to 7 to the players. `scripts/find_schedules.py`
# computed `schedules.json`, the games of these numbers for 2 to 8 players per game: each player takes every seat
# equally often, and meets every other player equally often. If the number of meetings would not be whole, it is one of
# the two nearest whole numbers.


@cache
def load_league_schedule(players_per_game: int) -> list[list[int]]:
    """Return the schedule for a number of players per game: for each game the numbers (0 to 7) of its players.

    The players of a game are in the order of their seats.
    """
    text = resources.files("ratings_ledger.ledger.validation").joinpath("schedules.json").read_text(encoding="utf-8")
    return [list(game) for game in json.loads(text)[str(players_per_game)]]


def draw_schedule(players: list[str], players_per_game: int, seed: str) -> list[list[str]]:
    """Draw the games of eight players: for each game the players in the order of their seats.

    The same seed gives the same schedule, whatever the order of `players` is: they are sorted by the SHA-256 of the
    seed, a zero byte and the id in UTF-8.
    """
    shuffled = sorted(players, key=lambda player: hashlib.sha256(f"{seed}\0{player}".encode()).digest())
    return [[shuffled[number] for number in game] for game in load_league_schedule(players_per_game)]
