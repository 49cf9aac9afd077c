"""What a log says: its games as they stand, which events are withdrawn, and who is who. A log is a list of plain
events, each with its `position` and `id`.
"""

from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from oracle.times import instant

Event = dict[str, Any]
Log = list[Event]

GAME_EVENTS = ("game.recorded", "game.corrected", "game.voided", "game.reinstated")


class Game(NamedTuple):
    """A game as its events leave it; `first` is the position of its first record."""

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
        """Whether nothing is said against it that holds for every ladder."""
        return self.rated and not self.voided


class Seat(NamedTuple):
    """A seat of a game: the participant who sat down first, and the one who says its result, a substitute if any."""

    first: Event
    last: Event

    @property
    def changed_hands(self) -> bool:
        return self.first is not self.last


# -- events


def numbered(events: list[Event]) -> Log:
    """Events in the order of recording, as a log."""
    return [{**event, "position": position} for position, event in enumerate(events, 1)]


def games(log: Log) -> dict[str, Game]:
    """All games, as they were last corrected; a correction without a date keeps the one that the game has."""
    found: dict[str, Game] = {}
    for event in log:
        data, name = event["data"], event["data"].get("game_id")
        if event["type"] == "game.recorded":
            found[name] = Game(data, instant(event["occurred_at"]), event["position"], False)
        elif event["type"] == "game.corrected":
            found[name] = corrected(found[name], data["game"])
        elif event["type"] in GAME_EVENTS:
            found[name] = found[name]._replace(voided=event["type"] == "game.voided")
    return found


def corrected(game: Game, new: Event) -> Game:
    """A game after a correction."""
    data = {key: value for key, value in new.items() if key != "occurred_at"}
    dated = new.get("occurred_at")
    return game._replace(data=data, at=instant(dated) if dated else game.at)


def voids(log: Log) -> dict[str, list[str]]:
    """The ids of the voids about each event, in order: the second undoes the first, and so on."""
    about: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for event in log:
        if event["type"] == "event.voided":
            target = event["data"]["id"]
            about[event["id"]] = about.get(target, target)
            found.setdefault(about[event["id"]], []).append(event["id"])
    return found


def live(log: Log, *types: str) -> Log:
    """The events of these types that are not withdrawn."""
    withdrawn = {event_id for event_id, those in voids(log).items() if len(those) % 2}
    return [event for event in log if event["type"] in types and event["id"] not in withdrawn]


# -- people


def identities(log: Log) -> Callable[[str], str]:
    """The id that a player has now, along the chain of renames."""
    following = {event["data"]["player"]: event["data"]["new_player"] for event in live(log, "player.renamed")}

    def current(player: str) -> str:
        while player in following:
            player = following[player]
        return player

    return current


def named(event: Event) -> set[str]:
    """The players whom an event tells about."""
    data = event["data"]
    game = data["game"] if event["type"] == "game.corrected" else data
    return {p["player"] for p in game.get("participants", ())} | {data.get("player"), data.get("new_player")} - {None}


def met(log: Log, one: str, other: str) -> bool:
    """Whether two people took part in a game that is not voided."""
    current = identities(log)
    people = [{current(player) for player in game.players} for game in games(log).values() if not game.voided]
    return any({one, other} <= those for those in people)


# -- results


def seats(game: Event) -> list[Seat]:
    """The seats of a game."""
    substitutes = {p["replaces"]: p for p in game["participants"] if p.get("replaces")}
    return [Seat(p, substitutes.get(p["player"], p)) for p in game["participants"] if not p.get("replaces")]


def merit(game: Event, result: Event) -> tuple[Fraction, ...]:
    """What orders the results, the less the better: place, else score; or victory, then power, then influence."""
    if game.get("kind") == "b5":
        victory = ["major", "standard", None].index(result.get("victory"))
        return Fraction(victory), Fraction(-result["power"]), Fraction(-result["influence"])
    if result.get("place") is not None:
        return (Fraction(result["place"]),)
    return (Fraction(result["score"]) * (1 if game.get("score_order") == "low" else -1),)


def places(game: Event) -> dict[str, int]:
    """The competition place of every participant; a leaver and the substitute both have that of their seat."""
    merits = [(seat, merit(game, seat.last)) for seat in seats(game)]
    found: dict[str, int] = {}
    for seat, mine in merits:
        place = 1 + sum(other < mine for _, other in merits)
        found |= {seat.first["player"]: place, seat.last["player"]: place}
    return found
