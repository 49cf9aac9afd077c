"""Histories for the tests of projections: built from short texts, or drawn from a seed."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import builders
from own_rules import find_shipped_text, read_ruleset

from ratings_ledger.ledger.events.types import read_event
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders, Ranking
from ratings_ledger.projections.replay.streams import Stream

START_MICROSECONDS = 1_500_000_000_000_000


def build_club_game(game_id: str, players: str, day: int = 1, **members: Any) -> dict[str, Any]:
    """Return a game of the club from text: `build_club_game("g-1", "anna ben=cleo dora")`, on a day of January 2020."""
    at = f"2020-01-{day:02d}T12:00:00Z"
    return builders.build_game(game_id, *players.split(), at=at, **{"game": "club-catan", **members})


def build_adjustment(ladder: str, player: str, points: str, day: int) -> dict[str, Any]:
    """Return an adjustment at noon of a day of January 2020."""
    data = {"ladder": ladder, "player": player, "points": points, "reason": "test"}
    return {"type": "points.adjusted", "occurred_at": f"2020-01-{day:02d}T12:00:00Z", "data": data}


def build_ruleset_event(toml: str | None = None) -> dict[str, Any]:
    """Return a ruleset as an event; by default the shipped ruleset of the club."""
    data = read_ruleset(find_shipped_text("club-catan-elo") if toml is None else toml).model_dump(
        exclude_unset=True, exclude_none=True
    )
    return {"type": "ruleset.published", "occurred_at": "2000-01-01T00:00:00Z", "data": data}


def build_ticking_clock() -> Callable[[], int]:
    """Return a clock that moves ahead by a second at every reading."""
    now = START_MICROSECONDS

    def read_clock() -> int:
        nonlocal now
        now += 1_000_000
        return now

    return read_clock


def fill(url: str, events: Iterable[dict[str, Any]], batch: int = 1_000) -> Ledger:
    """Append events to a ledger in transactions of `batch` events, and return the open ledger."""
    ledger = open_ledger(url)
    drafts = [read_event(event)[0] for event in events]
    clock = build_ticking_clock()
    for start in range(0, len(drafts), batch):
        assert not append(ledger, drafts[start : start + batch], by="test", clock=clock).refused
    return ledger


def load_facts(ledger: Ledger, known_at: int | None = None) -> Facts:
    """Return the facts of a ledger."""
    with ledger.reading() as connection:
        return decode(connection, known_at)


def draw_places(chance: random.Random, n: int) -> list[int]:
    """Draw competition places of n players; about one in five ties with the player before."""
    places = [1]
    for index in range(1, n):
        places.append(places[-1] if chance.random() < 0.2 else index + 1)
    return places


def draw_games(seed: int, count: int, players: Sequence[str], players_max: int = 6) -> list[dict[str, Any]]:
    """Draw games of 2 to `players_max` players with ties; some are simultaneous, and some out of order."""
    chance = random.Random(seed)
    events = []
    for number in range(count):
        seated = chance.sample(list(players), chance.randint(2, min(players_max, len(players))))
        day = max(1, min(28, number * 28 // count + chance.randint(-2, 2)))
        event = build_club_game(f"g-{number}", " ".join(seated), day)
        for participant, place in zip(event["data"]["participants"], draw_places(chance, len(seated)), strict=True):
            participant["place"] = place
        chance.shuffle(event["data"]["participants"])
        events.append(event)
    return events


def load_ranking(
    ledger: Ledger, ladder: str, known_at: int | None = None, as_of: int | None = None, rules: str | None = None
) -> Ranking:
    """Return the standings of one ladder at the given coordinates."""
    return Ladders(load_facts(ledger, known_at), as_of, rules).standings(ladder)


def build_stream(facts: Facts, ladder: str, as_of: int | None = None, rules: str | None = None) -> Stream:
    """Return the stream of one ladder at the given coordinates."""
    return Ladders(facts, as_of, rules).stream(ladder)


def rank_stream(stream: Stream) -> Ranking:
    """Return the standings of a stream that depends on no other ladder."""
    return Ladders(Facts(0, b"")).rank_stream(stream)
