"""The games that imports under a name gave: as their sheet last gave them, and as the ledger has them now."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from sqlalchemy import Connection

from ratings_ledger.ledger.events.revisions import KnownEvent, live_game
from ratings_ledger.ledger.intake.matching import GivenGame, likeness_of
from ratings_ledger.ledger.store.log import (
    first_positions,
    head,
    known_events,
    known_of,
    read_records,
    read_records_at,
    read_where,
)
from ratings_ledger.ledger.validation.batches import recorded_batches
from ratings_ledger.ledger.validation.identities import Identities

DECIDING = ("game.corrected", "game.voided", "game.reinstated")


class Ranges:
    """The positions that imports of a sheet appended, import by import."""

    def __init__(self, imports: Iterable[Iterable[Iterable[int]]]) -> None:
        self.each = sorted((first, last, number) for number, ranges in enumerate(imports) for first, last in ranges)
        self._firsts = [first for first, _, _ in self.each]

    def import_of(self, position: int) -> int | None:
        """Which import appended what is at a position, or None."""
        at = bisect_right(self._firsts, position) - 1
        return self.each[at][2] if at >= 0 and position <= self.each[at][1] else None


def ranges_of(connection: Connection, name: str, sheet: str | None) -> Ranges:
    """What the imports under a name, from one sheet of it, appended."""
    return Ranges(one.ranges for one in recorded_batches(connection, name) if one.sheet == sheet)


def decisions_by_game(connection: Connection) -> dict[str, list[KnownEvent]]:
    """What was decided about games after they were recorded, in order."""
    until, found = head(connection).position, list[KnownEvent]()
    for type_name in DECIDING:
        found += known_of(type_name, read_where(connection, until=until, type_name=type_name))
    by_game: dict[str, list[KnownEvent]] = defaultdict(list)
    for event in sorted(found, key=lambda event: event.position or 0):
        by_game[event.data["game_id"]].append(event)
    return by_game


def given_games(
    connection: Connection, ranges: Ranges, decisions: Mapping[str, list[KnownEvent]], people: Identities
) -> list[GivenGame]:
    """The games that these imports recorded."""
    pages = (page for first, last, _ in ranges.each for page in read_records(connection, first - 1, last))
    return [_given(event, decisions, people, ranges) for page in pages for event in known_events(page)
            if event.type == "game.recorded"]  # fmt: skip


def recorded_games(
    connection: Connection, positions: Iterable[int], decisions: Mapping[str, list[KnownEvent]], people: Identities
) -> list[GivenGame]:
    """The games that were recorded at these positions, as they are now."""
    rows = sorted(read_records_at(connection, [*positions]).items())
    return [_given(event, decisions, people) for event in known_events(rows)]


def _given(
    event: KnownEvent, decisions: Mapping[str, list[KnownEvent]], people: Identities, ranges: Ranges | None = None
) -> GivenGame:
    """A game; with `ranges`, its base is what was decided in these alone."""
    later = decisions.get(event.data["game_id"], [])
    now = base = live_game([event, *later])
    if ranges is not None and any(ranges.import_of(one.position or 0) is None for one in later):
        base = live_game([event, *(one for one in later if ranges.import_of(one.position or 0) is not None)])
    assert now is not None
    assert base is not None
    return GivenGame(event.position or 0, base, likeness_of(base.data, base.occurred_at, people), now)


def numbers_taken(
    connection: Connection, days: Mapping[str, int], wanted: Counter[str]
) -> tuple[dict[str, int], dict[str, Iterator[str]]]:
    """The ids of games that are numbered by day, with their positions, and by day ids that are not taken.

    `days` says how many numbers a sheet has given on each, `wanted` how many new ones are needed.
    """
    taken: dict[str, int] = {}
    free: dict[str, list[str]] = {day: [] for day in wanted}
    asked = dict.fromkeys(wanted, 0)
    while short := [day for day in wanted if len(free[day]) < wanted[day]]:
        ids = {
            day: [f"{day}-{number}" for number in range(asked[day] + 1, asked[day] + days[day] + 1)] for day in short
        }
        found = first_positions(connection, [game_id for some in ids.values() for game_id in some])
        taken |= found
        for day, some in ids.items():
            asked[day] += days[day]
            free[day] += [game_id for game_id in some if game_id not in found]
    return taken, {day: iter(some) for day, some in free.items()}
