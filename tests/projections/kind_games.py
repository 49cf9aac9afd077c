"""Games of the kinds battle and diplomacy for the tests of rules: built from short texts, or drawn from a seed."""

import json
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ratings_ledger import Refused
from ratings_ledger.ledger.events.revisions import KnownEvent
from ratings_ledger.ledger.events.types import read_event
from ratings_ledger.projections.facts.applying import apply
from ratings_ledger.projections.facts.columns import Facts

POWERS = ("Austria", "Germany", "Italy", "Turkey", "England", "Russia", "France")
# pairs of scores are equal, or differ by 15 percent or a factor of two, exactly or up to one point
SCORES = (0, 0, 0, 1, 10, 10, 20, 21, 23, 100, 115, 116, 1_000_000)


def build_recorded_game(game: str, kind: str, participants: Sequence[dict[str, Any]], **members: Any) -> dict[str, Any]:
    """Return a game of this kind as an event."""
    data = {"game_id": "g", "game": game, "kind": kind, "participants": list(participants), **members}
    return {"type": "game.recorded", "occurred_at": "2010-02-01T20:00:00Z", "data": data}


def build_battle(*sides: str, game: str = "blue-max", **members: Any) -> dict[str, Any]:
    """Return a battle from a text for each side: `build_battle("W1 1 0 2 60", "D1 1 1 abandoned")`.

    The players of a side are separated by commas. After the name come units, losses, kills, score and status; the
    last numbers and the status may be missing.
    """
    participants = [
        build_fighter(f"side-{number}", *player.split())
        for number, side in enumerate(sides)
        for player in side.split(",")
    ]
    return build_recorded_game(game, "battle", participants, **members)


def build_fighter(side: str, player: str, *numbers: str) -> dict[str, Any]:
    """Return a participant of a battle; missing numbers are left out."""
    *counts, status = (*numbers, "finished") if all(map(str.isdecimal, numbers)) else numbers
    named = zip(("units", "units_lost", "kills", "score"), map(int, counts), strict=False)
    return {"player": player, "side": side, "status": status, **dict(named)}


def list_columns(event: dict[str, Any], names: Sequence[str], counted: Sequence[str] | None = None) -> list[list[int]]:
    """Return these columns for the counted players (all by default), in the order of the players' ids."""
    facts = _load_facts(json.dumps(event))
    rows = sorted(range(facts.count[0]), key=facts.name_of)
    chosen = [row for row in rows if counted is None or facts.name_of(row) in counted]
    return [facts.column(name, 0, chosen) for name in names]


@lru_cache(maxsize=2)
def _load_facts(text: str) -> Facts:
    # cached by text, because tests read the columns of one game several times, and change the game in between
    event, facts = json.loads(text), Facts(0, b"")
    data = read_event(event)[1]
    apply(facts, 1, KnownEvent("", event["type"], 1_265_054_400_000_000, data))
    return facts


def list_players(event: dict[str, Any]) -> list[str]:
    """Return the players of a game, sorted."""
    return sorted(participant["player"] for participant in event["data"]["participants"])


def draw_battle(chance: random.Random, players: int) -> dict[str, Any]:
    """Draw a valid battle of `players` players, now and then with a substitute."""
    while True:
        event = _propose_battle(chance, players)
        try:
            read_event(event)
        except Refused:
            continue
        return event


def _propose_battle(chance: random.Random, players: int) -> dict[str, Any]:
    style = chance.choice(["any", "equal losses", "all units lost", "one side lost"])
    scores = chance.choice([SCORES, SCORES, (0, 10)])
    participants: list[dict[str, Any]] = []
    for number in range(players):
        units = 1 if style == "equal losses" else chance.choice([0, 1, 1, 2, 3])
        side = chance.choice("ab")
        doomed = style == "all units lost" or (style == "one side lost" and side == "a")
        units_lost = units if doomed else chance.randint(0, units)
        status = chance.choice(["finished", "finished", "finished", "surrendered", "abandoned", "removed"])
        participants.append({
            "player": f"p{number}", "side": side, "units": units, "units_lost": units_lost,
            "kills": chance.choice([0, 0, 1, 2]), "score": chance.choice(scores), "status": status,
        })  # fmt: skip
    if players > 2 and chance.random() < 0.3:
        leaver, substitute = participants[:2]
        leaver["status"] = chance.choice(["abandoned", "surrendered"])
        substitute |= {"status": "substitute", "replaces": leaver["player"], "side": leaver["side"]}
        substitute["units"] = leaver["units"]
        substitute["units_lost"] = chance.randint(0, leaver["units"] - leaver["units_lost"])
    chance.shuffle(participants)
    return build_recorded_game(
        "blue-max", "battle", participants, ended=chance.choice(["natural", "natural", "natural", "draw"])
    )


def build_diplomacy(*years: str, substitute: str | None = None) -> dict[str, Any]:
    """Return a game of Diplomacy; each text has the centres of the seven powers in one year, in the order of POWERS."""
    participants: list[dict[str, Any]] = [{"player": power.lower(), "power": power} for power in POWERS]
    if substitute is not None:
        leaver = participants[POWERS.index(substitute)]
        leaver["status"] = "abandoned"
        replacement = {"player": "zoe", "power": substitute, "status": "substitute", "replaces": leaver["player"]}
        participants.append(replacement)
    yearly_centres = [dict(zip(POWERS, map(int, year.split()), strict=True)) for year in years]
    centres = {str(1901 + number): centres for number, centres in enumerate(yearly_centres)}
    return build_recorded_game("diplomacy", "diplomacy", participants, centres=centres)


def draw_diplomacy(chance: random.Random, substituted: bool) -> dict[str, Any]:
    """Draw a game of one to four years with ties, solos, powers without centres, and neutral centres."""
    years = [_draw_centres(chance) for _ in range(chance.randint(1, 4))]
    if chance.random() < 0.3:
        years = [years[0]] * len(years)  # no earlier year breaks a tie
    texts = [" ".join(map(str, year)) for year in years]
    return build_diplomacy(*texts, substitute=chance.choice(POWERS) if substituted else None)


def _draw_centres(chance: random.Random) -> list[int]:
    largest = chance.choice([3, 9, 13, 17, 18, 34])
    remaining, centres = 34, []
    for _ in POWERS:
        centres.append(min(remaining, chance.choice([0, 1, 2, 3, 3, 5, chance.randint(0, largest)])))
        remaining -= centres[-1]
    if chance.random() < 0.3 and remaining > 0:
        centres[0] += remaining
    chance.shuffle(centres)
    return centres
