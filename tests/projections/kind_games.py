"""Games of the kinds battle and diplomacy for the tests of rules: written down shortly, or generated from a seed."""

import json
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ratings_ledger import Refused
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import read_event
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import apply

POWERS = ("Austria", "Germany", "Italy", "Turkey", "England", "Russia", "France")
# pairs of them are equal, or 15 percent or a factor of two apart, exactly and by one
SCORES = (0, 0, 0, 1, 10, 10, 20, 21, 23, 100, 115, 116, 1_000_000)


def recorded(game: str, kind: str, participants: Sequence[dict[str, Any]], **members: Any) -> dict[str, Any]:
    """A game of this kind as an event."""
    data = {"game_id": "g", "game": game, "kind": kind, "participants": list(participants), **members}
    return {"type": "game.recorded", "occurred_at": "2010-02-01T20:00:00Z", "data": data}


def battle(*sides: str, game: str = "blue-max", **members: Any) -> dict[str, Any]:
    """A battle from text, each player with units, losses, kills, score and status: `battle("W1 1 0 2 60", "D1 1 1")`.

    The players of a side stand in one text, separated by commas.
    """
    participants = [
        fighter(f"side-{number}", *player.split()) for number, side in enumerate(sides) for player in side.split(",")
    ]
    return recorded(game, "battle", participants, **members)


def fighter(side: str, player: str, *numbers: str) -> dict[str, Any]:
    """A participant of a battle; what is not said is left out."""
    *counts, status = (*numbers, "finished") if all(map(str.isdecimal, numbers)) else numbers
    named = zip(("units", "units_lost", "kills", "score"), map(int, counts), strict=False)
    return {"player": player, "side": side, "status": status, **dict(named)}


def columns_of(event: dict[str, Any], names: Sequence[str], counted: Sequence[str] | None = None) -> list[list[int]]:
    """The columns of these names for the counted players (all), in the order of their ids."""
    facts = _facts_of(json.dumps(event))
    rows = sorted(range(facts.count[0]), key=facts.name_of)
    chosen = [row for row in rows if counted is None or facts.name_of(row) in counted]
    return [facts.column(name, 0, chosen) for name in names]


@lru_cache(maxsize=2)
def _facts_of(text: str) -> Facts:
    # by its text, because the tests ask for the columns of a game several times, and change it in between
    event, facts = json.loads(text), Facts(0, b"")
    data = read_event(event)[1]
    apply(facts, 1, KnownEvent("", event["type"], 1_265_054_400_000_000, data))
    return facts


def players_of(event: dict[str, Any]) -> list[str]:
    """The players of a game, sorted."""
    return sorted(participant["player"] for participant in event["data"]["participants"])


def random_battle(chance: random.Random, players: int) -> dict[str, Any]:
    """A battle of so many players, now and then with a substitute, everything in it possible."""
    while True:
        event = _maybe_battle(chance, players)
        try:
            read_event(event)
        except Refused:
            continue
        return event


def _maybe_battle(chance: random.Random, players: int) -> dict[str, Any]:
    style = chance.choice(["any", "equal losses", "nobody left", "one side left"])
    scores = chance.choice([SCORES, SCORES, (0, 10)])
    participants: list[dict[str, Any]] = []
    for number in range(players):
        units = 1 if style == "equal losses" else chance.choice([0, 1, 1, 2, 3])
        side = chance.choice("ab")
        doomed = style == "nobody left" or (style == "one side left" and side == "a")
        lost = units if doomed else chance.randint(0, units)
        status = chance.choice(["finished", "finished", "finished", "surrendered", "abandoned", "removed"])
        participants.append({
            "player": f"p{number}", "side": side, "units": units, "units_lost": lost,
            "kills": chance.choice([0, 0, 1, 2]), "score": chance.choice(scores), "status": status,
        })  # fmt: skip
    if players > 2 and chance.random() < 0.3:
        leaver, substitute = participants[:2]
        leaver["status"] = chance.choice(["abandoned", "surrendered"])
        substitute |= {"status": "substitute", "replaces": leaver["player"], "side": leaver["side"]}
        substitute["units"] = leaver["units"]
        substitute["units_lost"] = chance.randint(0, leaver["units"] - leaver["units_lost"])
    chance.shuffle(participants)
    return recorded("blue-max", "battle", participants, ended=chance.choice(["natural", "natural", "natural", "draw"]))


def diplomacy(*years: str, substitute: str | None = None) -> dict[str, Any]:
    """A game from text: the centres of the seven powers in the order of POWERS, a year a text; players like powers."""
    participants: list[dict[str, Any]] = [{"player": power.lower(), "power": power} for power in POWERS]
    if substitute is not None:
        leaver = participants[POWERS.index(substitute)]
        leaver["status"] = "abandoned"
        taken_over = {"player": "zoe", "power": substitute, "status": "substitute", "replaces": leaver["player"]}
        participants.append(taken_over)
    held = [dict(zip(POWERS, map(int, year.split()), strict=True)) for year in years]
    centres = {str(1901 + number): centres for number, centres in enumerate(held)}
    return recorded("diplomacy", "diplomacy", participants, centres=centres)


def random_diplomacy(chance: random.Random, substituted: bool) -> dict[str, Any]:
    """A game of one to four years with ties, solos, powers without centres, and centres that nobody holds."""
    years = [_random_centres(chance) for _ in range(chance.randint(1, 4))]
    if chance.random() < 0.3:
        years = [years[0]] * len(years)  # no year before tells anybody apart
    texts = [" ".join(map(str, year)) for year in years]
    return diplomacy(*texts, substitute=chance.choice(POWERS) if substituted else None)


def _random_centres(chance: random.Random) -> list[int]:
    largest = chance.choice([3, 9, 13, 17, 18, 34])
    left, held = 34, []
    for _ in POWERS:
        held.append(min(left, chance.choice([0, 1, 2, 3, 3, 5, chance.randint(0, largest)])))
        left -= held[-1]
    if chance.random() < 0.3 and left > 0:
        held[0] += left
    chance.shuffle(held)
    return held
