"""Which new events a log takes: whether one is there already, and every code that it may be refused with."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from oracle.game_faults import own_faults
from oracle.log import GAME_EVENTS, Event, Game, Log, corrected, games, identities, live, met, named, voids
from oracle.rulesets import BOOK, ladder_of, ruleset_of, uncountable, versions_of
from oracle.scores import UNITS
from oracle.times import instant

DEFAULTS = {
    "account": "premium", "kind": "placing", "score_order": "high", "within_time": False, "rated": True,
    "aborted": False, "status": "finished", "vp": 0,
}  # fmt: skip


class Verdict(NamedTuple):
    """Whether a new event is there already; else every code that it may be refused with, none if it is taken."""

    existing: bool
    codes: frozenset[str]

    @property
    def taken(self) -> bool:
        return not self.existing and not self.codes


def validate(log: Log, event: Event, allow_uncounted: bool = False) -> Verdict:
    """What an import says of one event."""
    there = next((known for known in log if known["id"] == identity(event)), None)
    if (there is not None and meaning(there) == meaning(event)) or is_published(log, event):
        return Verdict(True, frozenset())
    codes = FAULTS[event["type"]](log, event) | ({"id-conflict"} if there else set())
    return Verdict(False, frozenset(codes - {"uncounted"} if allow_uncounted else codes))


# -- what an event says


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


def is_published(log: Log, event: Event) -> bool:
    """Whether an event publishes a version that is live as it stands, under whatever id."""
    return event["type"] == "ruleset.published" and event["data"] in [
        known.data for known in versions_of(log, event["data"]["id"])
    ]


# -- games


def recorded_faults(log: Log, event: Event) -> set[str]:
    exists = event["data"]["game_id"] in games(log) and identity(event) not in [known["id"] for known in log]
    game = Game(event["data"], instant(event["occurred_at"]), 0, False)
    return game_faults(log, game) | ({"game-exists"} if exists else set())


def corrected_faults(log: Log, event: Event) -> set[str]:
    new, game = event["data"]["game"], games(log).get(event["data"]["game_id"])
    if new["game_id"] != event["data"]["game_id"]:
        return {"game-id-changed"} | own_faults(new)
    if game is None or game.voided:
        return {"game-unknown" if game is None else "game-voided"} | own_faults(new)
    return game_faults(log, corrected(game, new))


def voided_faults(log: Log, event: Event) -> set[str]:
    game = games(log).get(event["data"]["game_id"])
    return {"game-unknown"} if game is None else {"game-voided"} if game.voided else set()


def reinstated_faults(log: Log, event: Event) -> set[str]:
    game = games(log).get(event["data"]["game_id"])
    if game is None or not game.voided:
        return {"game-unknown" if game is None else "game-live"}
    return meeting_faults(log, game)


def game_faults(log: Log, game: Game) -> set[str]:
    """What is wrong with a game: by itself, else among the identities and on its ladder."""
    if found := own_faults(game.data):
        return found
    uncounted = uncountable(game) and versions_of(log, ruleset_of(ladder_of(game) or ""))
    return meeting_faults(log, game) | ({"uncounted"} if uncounted else set())


def meeting_faults(log: Log, game: Game) -> set[str]:
    people = list(map(identities(log), game.players))
    return {"player-twice"} if len(set(people)) < len(people) else set()


# -- points and people


def adjusted_faults(log: Log, event: Event) -> set[str]:
    ruleset_id, *values = event["data"]["ladder"].split("/")
    if not versions_of(log, ruleset_id):
        return {"unknown-ladder"}
    if len(values) != len(BOOK[ruleset_id]["partition"]["by"]) or not all(values):
        return {"unknown-ladder"}
    units = Fraction(event["data"]["points"]) * UNITS[BOOK[ruleset_id]["rule"]]
    return {"finer-than-scale"} if units.denominator > 1 else set()


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


# -- rulesets and withdrawals


def published_faults(log: Log, event: Event) -> set[str]:
    """What speaks against a version: a live one of its name, a year without the lists of its months."""
    data = event["data"]
    taken = data["version"] in [known.data["version"] for known in versions_of(log, data["id"])]
    missing = data["rule"] == "annual-places/1" and not versions_of(log, data["params"]["of"])
    return ({"version-exists"} if taken else set()) | ({"bad-ruleset"} if missing else set())


def withdrawn_faults(log: Log, event: Event) -> set[str]:
    """What speaks against a void; that of a void lets an event stand again, as far as it fits what is live now."""
    by_id = {known["id"]: known for known in log}
    target = by_id.get(event["data"]["id"])
    if target is None:
        return {"event-unknown"}
    if target["type"] in GAME_EVENTS:
        return {"event-of-game"}
    root = target
    while root["type"] == "event.voided":
        root = by_id[root["data"]["id"]]
    those = voids(log).get(root["id"], [])
    if those[-1:] != [target["id"]] if target is not root else len(those) % 2:
        return {"event-voided"}
    if len(those) % 2:
        return FAULTS[root["type"]](log, root)
    return {"still-needed"} if root["type"] == "ruleset.published" and is_needed(log, root["data"]["id"]) else set()


def is_needed(log: Log, ruleset_id: str) -> bool:
    """Whether a ruleset has but one version, and adjustments or the lists of a year rest on it."""
    used = [ruleset_of(known["data"]["ladder"]) for known in live(log, "points.adjusted")]
    used += [known["data"]["params"].get("of") for known in live(log, "ruleset.published")]
    return len(versions_of(log, ruleset_id)) == 1 and ruleset_id in used


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
    "ruleset.published": published_faults,
    "list.published": lambda log, event: set(),
}
