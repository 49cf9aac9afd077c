"""Decide whether a log accepts a new event: it may exist already, or be refused with one of several codes."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from oracle.game_faults import find_own_faults
from oracle.log import (
    GAME_EVENTS,
    Event,
    Game,
    Log,
    apply_correction,
    build_id_lookup,
    derive_games,
    group_voids,
    have_met,
    list_named_players,
    select_live,
)
from oracle.rulesets import BOOK, find_book_ladder, get_ruleset_id, is_uncountable, list_versions
from oracle.scores import UNITS
from oracle.times import parse_instant

DEFAULTS = {
    "account": "premium",
    "kind": "placing",
    "score_order": "high",
    "within_time": False,
    "rated": True,
    "aborted": False,
    "status": "finished",
    "vp": 0,
}


class Verdict(NamedTuple):
    """Whether a new event exists already, and every code with which it may be refused; none if it is accepted."""

    existing: bool
    codes: frozenset[str]

    @property
    def is_accepted(self) -> bool:
        return not self.existing and not self.codes


def validate(log: Log, event: Event, allow_uncounted: bool = False) -> Verdict:
    """Return the verdict of an import about one event."""
    known_event = next((known for known in log if known["id"] == derive_id(event)), None)
    if (known_event is not None and derive_meaning(known_event) == derive_meaning(event)) or is_published(log, event):
        return Verdict(True, frozenset())
    codes = FAULTS[event["type"]](log, event) | ({"id-conflict"} if known_event else set())
    return Verdict(False, frozenset(codes - {"uncounted"} if allow_uncounted else codes))


# -- the meaning of an event


def derive_id(event: Event) -> str:
    """Return an event's own id, or the default: `game:GAME_ID` for a recorded game, else the event's meaning.

    The program takes a hash of the meaning instead.
    """
    if event.get("id"):
        return str(event["id"])
    return f"game:{event['data']['game_id']}" if event["type"] == "game.recorded" else derive_meaning(event)


def derive_meaning(event: Event) -> str:
    """Return the meaning of an event: defaults, order and the zone of a time make no difference."""
    content = {
        "type": event["type"],
        "at": parse_instant(event["occurred_at"]).isoformat(),
        "data": normalise(event["data"]),
    }
    return json.dumps(content, sort_keys=True)


def normalise(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {
            key: normalise(part, key) for key, part in value.items() if part is not None and DEFAULTS.get(key) != part
        }
    if isinstance(value, list):
        return [normalise(part) for part in value]
    if name == "occurred_at":
        return parse_instant(value).isoformat()
    return str(Fraction(value)) if name in ("points", "score") and is_decimal(value) else value


def is_decimal(value: Any) -> bool:
    return isinstance(value, int) or re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", value) is not None


def is_published(log: Log, event: Event) -> bool:
    """Tell whether an event publishes a version that is live with the same content, under any id."""
    return event["type"] == "ruleset.published" and event["data"] in [
        known.data for known in list_versions(log, event["data"]["id"])
    ]


# -- games


def find_recording_faults(log: Log, event: Event) -> set[str]:
    exists = event["data"]["game_id"] in derive_games(log) and derive_id(event) not in [known["id"] for known in log]
    game = Game(event["data"], parse_instant(event["occurred_at"]), 0, False)
    return find_game_faults(log, game) | ({"game-exists"} if exists else set())


def find_correction_faults(log: Log, event: Event) -> set[str]:
    corrected_data, game = event["data"]["game"], derive_games(log).get(event["data"]["game_id"])
    if corrected_data["game_id"] != event["data"]["game_id"]:
        return {"game-id-changed"} | find_own_faults(corrected_data)
    if game is None or game.voided:
        return {"game-unknown" if game is None else "game-voided"} | find_own_faults(corrected_data)
    return find_game_faults(log, apply_correction(game, corrected_data))


def find_void_faults(log: Log, event: Event) -> set[str]:
    game = derive_games(log).get(event["data"]["game_id"])
    return {"game-unknown"} if game is None else {"game-voided"} if game.voided else set()


def find_reinstatement_faults(log: Log, event: Event) -> set[str]:
    game = derive_games(log).get(event["data"]["game_id"])
    if game is None or not game.voided:
        return {"game-unknown" if game is None else "game-live"}
    return find_identity_faults(log, game)


def find_game_faults(log: Log, game: Game) -> set[str]:
    """Return the faults of a game: by itself, else those of its players' identities and of its ladder."""
    if codes := find_own_faults(game.data):
        return codes
    uncounted = is_uncountable(game) and list_versions(log, get_ruleset_id(find_book_ladder(game) or ""))
    return find_identity_faults(log, game) | ({"uncounted"} if uncounted else set())


def find_identity_faults(log: Log, game: Game) -> set[str]:
    people = list(map(build_id_lookup(log), game.players))
    return {"player-twice"} if len(set(people)) < len(people) else set()


# -- points and people


def find_adjustment_faults(log: Log, event: Event) -> set[str]:
    ruleset_id, *values = event["data"]["ladder"].split("/")
    if not list_versions(log, ruleset_id):
        return {"unknown-ladder"}
    if len(values) != len(BOOK[ruleset_id]["partition"]["by"]) or not all(values):
        return {"unknown-ladder"}
    units = Fraction(event["data"]["points"]) * UNITS[BOOK[ruleset_id]["rule"]]
    return {"finer-than-scale"} if units.denominator > 1 else set()


def find_rename_faults(log: Log, event: Event) -> set[str]:
    player, new_player = event["data"]["player"], event["data"]["new_player"]
    current = build_id_lookup(log)
    codes = {"renamed-already"} if current(player) != player else set()
    if current(new_player) == player:
        codes.add("rename-loop")
    if not any(player in list_named_players(known) for known in log):
        codes.add("player-unknown")
    if current(player) != current(new_player) and have_met(log, current(player), current(new_player)):
        codes.add("players-met")
    return codes


# -- rulesets and withdrawals


def find_publication_faults(log: Log, event: Event) -> set[str]:
    """Return the faults of a version: a live one has its name, or it ranks years of a ruleset that is not published."""
    data = event["data"]
    is_taken = data["version"] in [known.data["version"] for known in list_versions(log, data["id"])]
    lacks_months = data["rule"] == "annual-places/1" and not list_versions(log, data["params"]["of"])
    return ({"version-exists"} if is_taken else set()) | ({"bad-ruleset"} if lacks_months else set())


def find_withdrawal_faults(log: Log, event: Event) -> set[str]:
    """Return the faults of a withdrawal; withdrawing a withdrawal restores an event, which must fit the live events."""
    by_id = {known["id"]: known for known in log}
    target = by_id.get(event["data"]["id"])
    if target is None:
        return {"event-unknown"}
    if target["type"] in GAME_EVENTS:
        return {"event-of-game"}
    root = target
    while root["type"] == "event.voided":
        root = by_id[root["data"]["id"]]
    void_ids = group_voids(log).get(root["id"], [])
    if void_ids[-1:] != [target["id"]] if target is not root else len(void_ids) % 2:
        return {"event-voided"}
    if len(void_ids) % 2:
        return FAULTS[root["type"]](log, root)
    return {"still-needed"} if root["type"] == "ruleset.published" and is_needed(log, root["data"]["id"]) else set()


def is_needed(log: Log, ruleset_id: str) -> bool:
    """Tell whether a ruleset has a single version, which adjustments or the lists of a year need."""
    used = [get_ruleset_id(known["data"]["ladder"]) for known in select_live(log, "points.adjusted")]
    used += [known["data"]["params"].get("of") for known in select_live(log, "ruleset.published")]
    return len(list_versions(log, ruleset_id)) == 1 and ruleset_id in used


FAULTS: dict[str, Callable[[Log, Event], set[str]]] = {
    "game.recorded": find_recording_faults,
    "game.corrected": find_correction_faults,
    "game.voided": find_void_faults,
    "game.reinstated": find_reinstatement_faults,
    "points.adjusted": find_adjustment_faults,
    "player.renamed": find_rename_faults,
    "event.voided": find_withdrawal_faults,
    "player.registered": lambda log, event: set(),
    "player.account_changed": lambda log, event: set(),
    "ruleset.published": find_publication_faults,
    "list.published": lambda log, event: set(),
}
