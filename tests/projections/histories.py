"""Histories for the tests of projections: built from short texts or drawn from a seed, and put into ledgers."""

import json
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import builders
import pytest
from ledgers import open_for_reading
from own_rules import find_shipped_text, read_ruleset
from sqlalchemy import Connection

from ratings_ledger.ledger import clock
from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.types import Draft, read_event
from ratings_ledger.ledger.intake.files import Item
from ratings_ledger.ledger.intake.intake import ImportPolicy, Intake, IntakeResult
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.projections.admission.ladder_checks import Admission
from ratings_ledger.projections.compiling import force_interpreted
from ratings_ledger.projections.diff.affected import apply_drafts
from ratings_ledger.projections.diff.attribution import Attribution, attribute_difference
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.coordinates import Coordinates
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.snapshot_reader import LadderCache
from ratings_ledger.projections.replay.streams import Stream
from ratings_ledger.projections.replay.trace import Trace

START_MICROSECONDS = 1_500_000_000_000_000
Source = Ledger | Connection | str  # an open ledger, a connection to one, or its location
Axes = tuple[int | None, int, str | None]  # as_of in microseconds since 1970, known_at, and rules


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
    ticking_clock = build_ticking_clock()
    for start in range(0, len(drafts), batch):
        assert not append(ledger, drafts[start : start + batch], by="test", clock=ticking_clock).refused
    return ledger


def enter(
    ledger: Ledger | str,
    events: Iterable[dict[str, Any]],
    now: clock.Clock = clock.now,
    *,
    allow_uncounted: bool = True,
) -> IntakeResult:
    """Import events through every step of the intake, without those that are refused.

    Games that no ladder counts are accepted with `allow_uncounted`.
    """
    if isinstance(ledger, str):
        opened = open_ledger(ledger)
        try:
            return enter(opened, events, now, allow_uncounted=allow_uncounted)
        finally:
            opened.close()
    members = [{name: value for name, value in event.items() if name != "position"} for event in events]
    items = [
        Item("steps", number, parse_object(json.dumps(event).encode()), None) for number, event in enumerate(members, 1)
    ]
    ladders = partial(Admission, allow_uncounted=allow_uncounted)
    return Intake(ledger, items, ImportPolicy("test", keep_going=True), clock=now, ladders=ladders).append()


def load_facts(source: Source, known_at: int | None = None, *, cached: bool = True, lazily: bool = False) -> Facts:
    """Return the facts of a ledger as known at a position, from the cache of columns or from the log alone."""
    with _read(source) as connection:
        return decode(connection, known_at, cached=cached, lazily=lazily)


def load_ladders(
    source: Source | Facts,
    as_of: int | None = None,
    rules: str | None = None,
    *,
    known_at: int | None = None,
    cached: bool = True,
    close_now: bool = False,
) -> Ladders:
    """Return all ladders of a ledger, or of its facts, at the given coordinates."""
    facts = source if isinstance(source, Facts) else load_facts(source, known_at, cached=cached)
    return Ladders(facts, as_of, rules, close_now=close_now)


def load_facts_with_drafts(source: Source, drafts: Iterable[Draft]) -> tuple[Facts, set[str], dict[str, str]]:
    """Return the facts of a ledger with drafts, the groups of ladders that these affect, and the renames."""
    with _read(source) as connection:
        after, groups, renames = apply_drafts(connection, Ladders(decode(connection, cached=False)), drafts)
        return after.facts, groups, renames


def list_decoded_positions(patch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by the position whenever a ledger that is opened from now on decodes the whole log."""
    positions: list[int] = []

    def decode_and_note(connection: Connection, position: int, lazily: bool) -> Facts:
        positions.append(position)
        return decode(connection, position, lazily=lazily)

    patch.setattr(LadderCache.__init__, "__defaults__", (decode_and_note,))
    return positions


def load_interpreted_trace(source: Source, ladder: str) -> Trace:
    """Return the trace of a ladder that is replayed without compiled code."""
    with force_interpreted():
        return load_ladders(source).trace(ladder)


def attribute_change(source: Source, ladder: str, player: str, before: Axes, after: Axes) -> Attribution:
    """Return the causes of a player's change between two sets of coordinates, with exact own parts and ripples."""
    with _read(source) as connection:
        return attribute_difference(connection, ladder, player, Coordinates(*before), Coordinates(*after))


def _read(source: Source) -> AbstractContextManager[Connection]:
    if isinstance(source, Connection):
        return nullcontext(source)
    return open_for_reading(source) if isinstance(source, str) else source.reading()


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
    ledger: Ledger,
    ladder: str,
    known_at: int | None = None,
    as_of: int | None = None,
    rules: str | None = None,
    *,
    cached: bool = True,
) -> Ranking:
    """Return the standings of one ladder at the given coordinates."""
    return load_ladders(ledger, as_of, rules, known_at=known_at, cached=cached).standings(ladder)


def build_stream(facts: Facts, ladder: str, as_of: int | None = None, rules: str | None = None) -> Stream:
    """Return the stream of one ladder at the given coordinates."""
    return Ladders(facts, as_of, rules).stream(ladder)


def rank_stream(stream: Stream) -> Ranking:
    """Return the standings of a stream that depends on no other ladder."""
    return Ladders(Facts(0, b"")).rank_stream(stream)
