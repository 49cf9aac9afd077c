"""Histories for the tests of projections: short to write down, or generated from a seed."""

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

START = 1_500_000_000_000_000


def club_game(game_id: str, players: str, day: int = 1, **members: Any) -> dict[str, Any]:
    """A game of the club from text: `club_game("g-1", "anna ben=cleo dora")`; the day is one of January 2020."""
    at = f"2020-01-{day:02d}T12:00:00Z"
    return builders.build_game(game_id, *players.split(), at=at, **{"game": "club-catan", **members})


def adjustment(ladder: str, player: str, points: str, day: int) -> dict[str, Any]:
    """An adjustment at noon of a day of January 2020."""
    data = {"ladder": ladder, "player": player, "points": points, "reason": "test"}
    return {"type": "points.adjusted", "occurred_at": f"2020-01-{day:02d}T12:00:00Z", "data": data}


def ruleset(toml: str | None = None) -> dict[str, Any]:
    """A ruleset as an event; by default the shipped one of the club."""
    data = read_ruleset(find_shipped_text("club-catan-elo") if toml is None else toml).model_dump(
        exclude_unset=True, exclude_none=True
    )
    return {"type": "ruleset.published", "occurred_at": "2000-01-01T00:00:00Z", "data": data}


def ticking() -> Callable[[], int]:
    """A clock that moves a second at every look."""
    now = START

    def look() -> int:
        nonlocal now
        now += 1_000_000
        return now

    return look


def fill(url: str, events: Iterable[dict[str, Any]], batch: int = 1_000) -> Ledger:
    """Append events to the ledger of that name, so many a transaction."""
    ledger = open_ledger(url)
    drafts = [read_event(event)[0] for event in events]
    clock = ticking()
    for start in range(0, len(drafts), batch):
        assert not append(ledger, drafts[start : start + batch], by="test", clock=clock).refused
    return ledger


def facts_of(ledger: Ledger, known_at: int | None = None) -> Facts:
    """The facts of a ledger."""
    with ledger.reading() as connection:
        return decode(connection, known_at)


def random_places(chance: random.Random, n: int) -> list[int]:
    """Competition places of n players with a tie now and then."""
    places = [1]
    for index in range(1, n):
        places.append(places[-1] if chance.random() < 0.2 else index + 1)
    return places


def random_games(seed: int, count: int, players: Sequence[str], most: int = 6) -> list[dict[str, Any]]:
    """Games from a seed: 2 to `most` players, ties, several at the same instant, some out of order."""
    chance = random.Random(seed)
    events = []
    for number in range(count):
        seated = chance.sample(list(players), chance.randint(2, min(most, len(players))))
        day = max(1, min(28, number * 28 // count + chance.randint(-2, 2)))
        event = club_game(f"g-{number}", " ".join(seated), day)
        for participant, place in zip(event["data"]["participants"], random_places(chance, len(seated)), strict=True):
            participant["place"] = place
        chance.shuffle(event["data"]["participants"])
        events.append(event)
    return events


def ranking_of(
    ledger: Ledger, ladder: str, known_at: int | None = None, as_of: int | None = None, rules: str | None = None
) -> Ranking:
    """The standings of one ladder at some coordinates."""
    return Ladders(facts_of(ledger, known_at), as_of, rules).standings(ladder)


def stream_of(facts: Facts, ladder: str, as_of: int | None = None, rules: str | None = None) -> Stream:
    """The stream of one ladder at some coordinates."""
    return Ladders(facts, as_of, rules).stream(ladder)


def standings_of(stream: Stream) -> Ranking:
    """The standings of a stream that needs no other ladder."""
    return Ladders(Facts(0, b"")).rank_stream(stream)
