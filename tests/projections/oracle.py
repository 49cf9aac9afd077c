"""What a log says, and which new events it takes: the pages on formats and rules, word by word.

Naive on purpose: everything is worked out anew from the list of events at every question. Shares no code with the
program, so that an agreement of the two means something. A log here is a list of plain events with `position` and `id`.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple

Event = dict[str, Any]
Log = list[Event]

GAME_EVENTS = ("game.recorded", "game.corrected", "game.voided", "game.reinstated")
# values of a ladder's name behind the ruleset's id, and the steps that its points are counted in
LADDER_VALUES = {"galactic-points": 0, "b5-league": 1, "catan-elo": 1}
UNITS = {"galactic-points": 1, "b5-league": 1, "catan-elo": 1_000_000}
RESULTS = ("place", "score", "power", "influence", "victory")
LEFT = ("abandoned", "surrendered", "removed")
SEASON_STARTS = {1: "01-01T00:00:00+01:00", 2: "05-01T00:00:00+02:00", 3: "09-01T00:00:00+02:00"}
DEFAULTS = {
    "account": "premium", "kind": "placing", "score_order": "high", "within_time": False, "rated": True,
    "aborted": False, "status": "finished", "vp": 0,
}  # fmt: skip


class Game(NamedTuple):
    """A game as its events leave it; `first` is the position of its first record."""

    data: Event
    at: datetime
    first: int
    voided: bool

    @property
    def players(self) -> list[str]:
        return [participant["player"] for participant in self.data["participants"]]


class Verdict(NamedTuple):
    """Whether a new event is there already; else every code that it may be refused with, none if it is taken."""

    existing: bool
    codes: frozenset[str]


# -- reading a log


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def games(log: Log) -> dict[str, Game]:
    """All games, as they were last corrected; a correction without a date keeps the one that the game has."""
    found: dict[str, Game] = {}
    for event in log:
        data, name = event["data"], event["data"].get("game_id")
        if event["type"] == "game.recorded":
            found[name] = Game(data, instant(event["occurred_at"]), event["position"], False)
        elif event["type"] == "game.corrected":
            new, at = redated(data["game"], found[name].at)
            found[name] = found[name]._replace(data=new, at=at)
        elif event["type"] in GAME_EVENTS:
            found[name] = found[name]._replace(voided=event["type"] == "game.voided")
    return found


def redated(game: Event, at: datetime) -> tuple[Event, datetime]:
    """The game of a correction without its date, and when it ended."""
    dated = game.get("occurred_at")
    return {key: value for key, value in game.items() if key != "occurred_at"}, instant(dated) if dated else at


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
    gone = {event_id for event_id, those in voids(log).items() if len(those) % 2}
    return [event for event in log if event["type"] in types and event["id"] not in gone]


def identities(log: Log) -> Callable[[str], str]:
    """The id that a player has now, along the chain of renames."""
    following = {event["data"]["player"]: event["data"]["new_player"] for event in live(log, "player.renamed")}

    def current(player: str) -> str:
        while player in following:
            player = following[player]
        return player

    return current


def seats(game: Event) -> list[Event]:
    """For every seat the participant who says its result: the substitute where there is one."""
    substitutes = {p["replaces"]: p for p in game["participants"] if p.get("replaces")}
    return [substitutes.get(p["player"], p) for p in game["participants"] if not p.get("replaces")]


def merit(game: Event, seat: Event) -> tuple[Fraction, ...]:
    """What orders the seats, the less the better: place, else score; or victory, then power, then influence."""
    if game.get("kind") == "b5":
        victory = ["major", "standard", None].index(seat.get("victory"))
        return Fraction(victory), Fraction(-seat["power"]), Fraction(-seat["influence"])
    if seat.get("place") is not None:
        return (Fraction(seat["place"]),)
    return (Fraction(seat["score"]) * (1 if game.get("score_order") == "low" else -1),)


def places(game: Event) -> dict[str, int]:
    """The competition place of every participant; a leaver and his substitute both have their seat's."""
    results = {seat["player"]: merit(game, seat) for seat in seats(game)}
    found = {player: 1 + sum(other < mine for other in results.values()) for player, mine in results.items()}
    return found | {p["replaces"]: found[p["player"]] for p in game["participants"] if p.get("replaces")}


def ladder_of(game: Event) -> str | None:
    """The ladder that a game belongs to by its name, kind and partition."""
    match game["game"], game.get("kind") or "placing":
        case "galactic-magnate", "placing":
            return "galactic-points"
        case "babylon5", "b5":
            return f"b5-league/{game['season']}" if game.get("season") else None
        case "catan", "placing":
            return f"catan-elo/{game['group']}" if game.get("group") else None
    return None


def season_bounds(season: str) -> tuple[datetime, datetime] | None:
    """First instant of a Babylon 5 season and of the next one, in Berlin; None for an id without dates."""
    if not re.fullmatch(r"[0-9]{4}-[123]", season):
        return None
    year, part = int(season[:4]), int(season[5])
    following = (year + 1, 1) if part == 3 else (year, part + 1)
    first, last = (instant(f"{y:04d}-{SEASON_STARTS[p]}") for y, p in ((year, part), following))
    return first, last


def uncountable(game: Event, at: datetime) -> bool:
    """Whether the rule of the game's ladder cannot score it, although it is in its scope."""
    name = ladder_of(game)
    if game.get("aborted") or game.get("rated") is False or name is None or game["game"] == "catan":
        return False
    # the pages on the two pools know one player a seat
    if any(participant.get("replaces") for participant in game["participants"]):
        return True
    if name == "galactic-points":
        return not 2 <= len(seats(game)) <= 5
    bounds = season_bounds(game["season"])
    return bounds is not None and not bounds[0] <= at < bounds[1]


# -- judging a new event


def judge(log: Log, event: Event, allow_uncounted: bool = False) -> Verdict:
    """What an import says of one event."""
    there = next((known for known in log if known["id"] == identity(event)), None)
    if there is not None and meaning(there) == meaning(event):
        return Verdict(True, frozenset())
    codes = FAULTS[event["type"]](log, event) | ({"id-conflict"} if there else set())
    return Verdict(False, frozenset(codes - {"uncounted"} if allow_uncounted else codes))


def identity(event: Event) -> str:
    """An event's id. Without one a game has its own name, and any other event what it says, here in full."""
    if event.get("id"):
        return str(event["id"])
    return f"game:{event['data']['game_id']}" if event["type"] == "game.recorded" else meaning(event)


def meaning(event: Event) -> str:
    """What an event says: defaults, order and the zone of a time make no difference."""
    said = {"type": event["type"], "at": instant(event["occurred_at"]).isoformat(), "data": normal(event["data"])}
    return json.dumps(said, sort_keys=True)


def normal(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: normal(part, key) for key, part in value.items() if part is not None and DEFAULTS.get(key) != part}
    if isinstance(value, list):
        return [normal(part) for part in value]
    if name == "occurred_at":
        return instant(value).isoformat()
    return str(Fraction(value)) if name in ("points", "score") and decimal_string(value) else value


def decimal_string(value: Any) -> bool:
    return isinstance(value, int) or re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", value) is not None


def recorded_faults(log: Log, event: Event) -> set[str]:
    exists = event["data"]["game_id"] in games(log) and identity(event) not in [known["id"] for known in log]
    return game_faults(log, event["data"], instant(event["occurred_at"])) | ({"game-exists"} if exists else set())


def corrected_faults(log: Log, event: Event) -> set[str]:
    new, game = event["data"]["game"], games(log).get(event["data"]["game_id"])
    if new["game_id"] != event["data"]["game_id"]:
        return {"game-id-changed"} | own_faults(new)
    if game is None or game.voided:
        return {"game-unknown" if game is None else "game-voided"} | own_faults(new)
    return game_faults(log, *redated(new, game.at))


def voided_faults(log: Log, event: Event) -> set[str]:
    game = games(log).get(event["data"]["game_id"])
    return {"game-unknown"} if game is None else {"game-voided"} if game.voided else set()


def reinstated_faults(log: Log, event: Event) -> set[str]:
    game = games(log).get(event["data"]["game_id"])
    if game is None or not game.voided:
        return {"game-unknown" if game is None else "game-live"}
    return meeting_faults(log, game.data)


def game_faults(log: Log, game: Event, at: datetime) -> set[str]:
    """What is wrong with a game: by itself, else among the identities and on its ladder."""
    if found := own_faults(game):
        return found
    admitted = (ladder_of(game) or "").split("/")[0] in [e["data"]["id"] for e in live(log, "ruleset.published")]
    return meeting_faults(log, game) | ({"uncounted"} if admitted and uncountable(game, at) else set())


def own_faults(game: Event) -> set[str]:
    """What is wrong with a game by itself."""
    return seat_faults(game) or (b5_faults(game) if game.get("kind") == "b5" else placing_faults(game))


def meeting_faults(log: Log, game: Event) -> set[str]:
    current = identities(log)
    people = [current(participant["player"]) for participant in game["participants"]]
    return {"player-twice"} if len(set(people)) < len(people) else set()


def seat_faults(game: Event) -> set[str]:
    participants = game["participants"]
    by_player = {participant["player"]: participant for participant in participants}
    found = {"player-twice"} if len(by_player) < len(participants) else set()
    replaced = [p["replaces"] for p in participants if p.get("replaces")]
    if len(set(replaced)) < len(replaced):
        found.add("leaver-replaced-twice")
    for participant in participants:
        leaver_name = participant.get("replaces")
        leaver = by_player.get(leaver_name, {}) if leaver_name else {}
        substitutes = participant.get("status") == "substitute"
        if substitutes != bool(leaver_name) or (substitutes and leaver.get("status") not in LEFT):
            found.add("substitute-without-leaver")
        if any(leaver.get(name) not in (None, participant.get(name)) for name in RESULTS):
            found.add("seat-disagrees")
    return found | ({"too-few-participants"} if len(participants) - len(replaced) < 2 else set())


def placing_faults(game: Event) -> set[str]:
    results = seats(game)
    placed = [seat["place"] for seat in results if seat.get("place") is not None]
    scored = [seat for seat in results if seat.get("score") is not None]
    if len(placed) < len(results):
        return {"place-missing"} if placed or len(scored) < len(results) else set()
    competition = all(place == 1 + sum(other < place for other in placed) for place in placed)
    dense = all(place == 1 + len({other for other in placed if other < place}) for place in placed)
    found = set() if competition or dense else {"place-gap"}
    sign = 1 if game.get("score_order") == "low" else -1
    for one in scored:
        for other in scored:
            if one["place"] < other["place"] and Fraction(other["score"]) * sign < Fraction(one["score"]) * sign:
                found.add("score-contradicts-place")
    return found


def b5_faults(game: Event) -> set[str]:
    if (n := len(seats(game))) < 3:
        return {"b5-too-few-players"}
    given = {participant["player"]: participant.get("vp") or 0 for participant in game["participants"]}
    major = any(participant.get("victory") == "major" for participant in game["participants"])
    placed = places(game)
    total = n - 2 + major + bool(game.get("within_time"))
    found = {"victory-points-total"} if sum(given.values()) != total else set()
    losers = [player for player, place in placed.items() if place > 1]
    return found | ({"victory-points-all-kept"} if losers and not sum(given[player] for player in losers) else set())


def adjusted_faults(log: Log, event: Event) -> set[str]:
    ruleset, *values = event["data"]["ladder"].split("/")
    if ruleset not in [known["data"]["id"] for known in live(log, "ruleset.published")]:
        return {"unknown-ladder"}
    if len(values) != LADDER_VALUES[ruleset] or not all(values):
        return {"unknown-ladder"}
    return {"finer-than-scale"} if (Fraction(event["data"]["points"]) * UNITS[ruleset]).denominator > 1 else set()


def renamed_faults(log: Log, event: Event) -> set[str]:
    player, new_player = event["data"]["player"], event["data"]["new_player"]
    current = identities(log)
    found = {"renamed-already"} if current(player) != player else set()
    if current(new_player) == player:
        found.add("rename-loop")
    if not any(player in named(known) for known in log):
        found.add("player-unknown")
    if current(player) != current(new_player) and met(log, current(player), current(new_player)):
        found.add("players-met")
    return found


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


def withdrawn_faults(log: Log, event: Event) -> set[str]:
    by_id = {known["id"]: known for known in log}
    target = root = by_id.get(event["data"]["id"])
    if target is None:
        return {"event-unknown"}
    if target["type"] in GAME_EVENTS:
        return {"event-of-game"}
    while root["type"] == "event.voided":
        root = by_id[root["data"]["id"]]
    those = voids(log).get(root["id"], [])
    undone = those[-1] != target["id"] if target is not root else len(those) % 2
    if undone:
        return {"event-voided"}
    if target is not root and len(those) % 2:
        # the root stands again, as far as it fits what is live now
        return FAULTS[root["type"]](log, root)
    if root["type"] == "ruleset.published":
        ladders = [known["data"]["ladder"] for known in live(log, "points.adjusted")]
        return {"still-needed"} if root["data"]["id"] in [name.split("/")[0] for name in ladders] else set()
    return set()


FAULTS: dict[str, Callable[[Log, Event], set[str]]] = {
    "game.recorded": recorded_faults,
    "game.corrected": corrected_faults,
    "game.voided": voided_faults,
    "game.reinstated": reinstated_faults,
    "points.adjusted": adjusted_faults,
    "player.renamed": renamed_faults,
    "event.voided": withdrawn_faults,
    "player.registered": lambda log, event: set(),
    "player.account_changed": lambda log, event: set(),
    "ruleset.published": lambda log, event: set(),
}
