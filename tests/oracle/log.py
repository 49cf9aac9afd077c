"""Derive games, withdrawals and identities from a log, which is a list of plain events with `position` and `id`."""

from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from oracle.times import parse_instant

Event = dict[str, Any]
Log = list[Event]

GAME_EVENTS = ("game.recorded", "game.corrected", "game.voided", "game.reinstated")


class Game(NamedTuple):
    """The state of a game after all its events; `first` is the position of its first record."""

    data: Event
    at: datetime
    first: int
    voided: bool

    @property
    def players(self) -> list[str]:
        return [participant["player"] for participant in self.data["participants"]]

    @property
    def rated(self) -> bool:
        return not self.data.get("aborted") and self.data.get("rated") is not False

    @property
    def may_count(self) -> bool:
        """True unless the game is unrated, aborted or voided, which excludes it from every ladder."""
        return self.rated and not self.voided


class Seat(NamedTuple):
    """A seat of a game: its first participant, and the one with its result, who may be a substitute."""

    first: Event
    last: Event

    @property
    def changed_hands(self) -> bool:
        return self.first is not self.last


# -- events


def number_events(events: list[Event]) -> Log:
    """Return events in the order of recording as a log."""
    return [{**event, "position": position} for position, event in enumerate(events, 1)]


def derive_games(log: Log) -> dict[str, Game]:
    """Return all games, as last corrected, by id; a correction without a date keeps the game's date."""
    games_by_id: dict[str, Game] = {}
    for event in log:
        data, name = event["data"], event["data"].get("game_id")
        if event["type"] == "game.recorded":
            games_by_id[name] = Game(data, parse_instant(event["occurred_at"]), event["position"], False)
        elif event["type"] == "game.corrected":
            games_by_id[name] = apply_correction(games_by_id[name], data["game"])
        elif event["type"] in GAME_EVENTS:
            games_by_id[name] = games_by_id[name]._replace(voided=event["type"] == "game.voided")
    return games_by_id


def apply_correction(game: Game, corrected_data: Event) -> Game:
    """Return a game after a correction."""
    data = {key: value for key, value in corrected_data.items() if key != "occurred_at"}
    occurred_at = corrected_data.get("occurred_at")
    return game._replace(data=data, at=parse_instant(occurred_at) if occurred_at else game.at)


def group_voids(log: Log) -> dict[str, list[str]]:
    """Return the ids of the voids of each event, in order: the second undoes the first, and so on."""
    root_by_void: dict[str, str] = {}
    voids_by_event: dict[str, list[str]] = {}
    for event in log:
        if event["type"] == "event.voided":
            target = event["data"]["id"]
            root_by_void[event["id"]] = root_by_void.get(target, target)
            voids_by_event.setdefault(root_by_void[event["id"]], []).append(event["id"])
    return voids_by_event


def select_live(log: Log, *types: str) -> Log:
    """Return the events of these types that are not withdrawn."""
    withdrawn_ids = {event_id for event_id, void_ids in group_voids(log).items() if len(void_ids) % 2}
    return [event for event in log if event["type"] in types and event["id"] not in withdrawn_ids]


# -- people


def build_id_lookup(log: Log) -> Callable[[str], str]:
    """Return a function that follows the chain of renames from an id to the current one."""
    next_id = {event["data"]["player"]: event["data"]["new_player"] for event in select_live(log, "player.renamed")}

    def current(player: str) -> str:
        while player in next_id:
            player = next_id[player]
        return player

    return current


def list_named_players(event: Event) -> set[str]:
    """Return the ids of the players that an event names."""
    data = event["data"]
    game = data["game"] if event["type"] == "game.corrected" else data
    return {p["player"] for p in game.get("participants", ())} | {data.get("player"), data.get("new_player")} - {None}


def have_met(log: Log, left: str, right: str) -> bool:
    """Tell whether two people took part in the same game that is not voided."""
    current = build_id_lookup(log)
    people = [{current(player) for player in game.players} for game in derive_games(log).values() if not game.voided]
    return any({left, right} <= participants for participants in people)


# -- results


def list_seats(game: Event) -> list[Seat]:
    """Return the seats of a game."""
    substitutes = {p["replaces"]: p for p in game["participants"] if p.get("replaces")}
    return [Seat(p, substitutes.get(p["player"], p)) for p in game["participants"] if not p.get("replaces")]


def compute_merit(game: Event, result: Event) -> tuple[Fraction, ...]:
    """Return the sort key of a result, best first: its place or else its score; in b5, victory, power and influence."""
    if game.get("kind") == "b5":
        victory = ["major", "standard", None].index(result.get("victory"))
        return Fraction(victory), Fraction(-result["power"]), Fraction(-result["influence"])
    if result.get("place") is not None:
        return (Fraction(result["place"]),)
    return (Fraction(result["score"]) * (1 if game.get("score_order") == "low" else -1),)


def compute_places(game: Event) -> dict[str, int]:
    """Return the competition place of every participant; a leaver and their substitute both have that of their seat."""
    merits = [(seat, compute_merit(game, seat.last)) for seat in list_seats(game)]
    place_by_player: dict[str, int] = {}
    for seat, seat_merit in merits:
        place = 1 + sum(other_merit < seat_merit for _, other_merit in merits)
        place_by_player |= {seat.first["player"]: place, seat.last["player"]: place}
    return place_by_player
