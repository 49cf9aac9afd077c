"""Published lists: which there are, the events that hold them, and the rows that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from math import lcm
from typing import Any

from sqlalchemy import Connection

from ratings_ledger.ledger.errors import StoreDamaged
from ratings_ledger.ledger.events.canonical import parse_record_instant
from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.rejections import Refused
from ratings_ledger.ledger.store.log import Log
from ratings_ledger.ledger.validation.published_lists import (
    PublishedList,
    latest_lists,
    published_lists,
    published_rows,
)
from ratings_ledger.projections.contract import State
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.coordinates import Times, moment
from ratings_ledger.projections.queries.ladders_at import Ranking
from ratings_ledger.projections.queries.results import (
    Answer,
    Result,
    RowSequence,
)
from ratings_ledger.projections.queries.shown_states import ShownState, exact_states, show_state_after
from ratings_ledger.projections.replay.ladders import find_seeds, parse_name
from ratings_ledger.projections.rulesets.versions import Version, find_period


@dataclass(frozen=True, slots=True)
class Publication(Result):
    """The event that published a list, and who recorded it when."""

    position: int
    event_id: str
    recorded_at: str
    by: str


def as_published(connection: Connection, one: PublishedList) -> Ranking:
    """Return a list as recorded in its events. Raises `StoreDamaged` if they do not hold all of it."""
    try:
        rows = published_rows(Log(connection), one.digest, one.parts, one.position)
    except Refused as problem:
        raise StoreDamaged(f"the list published at position {one.position}: {problem.message}") from None
    columns = _find_columns(rows)
    ranked = [_standing(row, columns) for row in rows]
    return Ranking(one.ladder, one.ruleset, 1, ranked, one.games, 0, 0, 0, 0, 0, columns)


def _find_columns(rows: Sequence[Mapping[str, Any]]) -> list[State]:
    """Return the columns of the states in the rows of a list, by name; each has the scale that its numbers need."""
    names = sorted({name for row in rows for name in row.get("state", ())})
    return [State(name, lcm(*(Fraction(row["state"][name]).denominator for row in rows))) for name in names]


class PublishedStates:
    """What people see of the states of a published list, under the version that ranked it."""

    def __init__(self, found: Ranking, version: Version, facts: Facts) -> None:
        self._found, self._version, self._facts = found, version, facts
        self._rows = {row.player: row for row in found.rows}

    def of(self, player: str) -> ShownState:
        """Return what people see of a player. Raises `RuleFailure`."""
        row, ladder, facts = self._rows[player], self._found.ladder, self._facts
        exact = exact_states(self._found.columns, row.state or ())
        state = tuple(int(Fraction(exact[column.name]) * column.scale) for column in self._version.rule.state)
        seed = find_seeds(facts, ladder).get(facts.person[facts.player_numbers[player]])
        return show_state_after(self._version, ladder, state, row.games + (seed.games if seed else 0))


def show_published(found: Ranking, facts: Facts) -> Ranking:
    """Return a published list with what people see of its states, if the facts know the version that ranked it."""
    recorded = facts.recorded.versions
    version = next((version for version in recorded if version.ruleset.name == found.ruleset), None)
    names = {column.name for column in found.columns}
    if version is None or not names or names != {column.name for column in version.rule.state}:
        return found
    return replace(found, shown=PublishedStates(found, version, facts))


def _standing(row: dict[str, Any], columns: Sequence[State]) -> RankedRow:
    points = Fraction(row["points"])
    places = tuple(row["places"]) if "places" in row else None
    return RankedRow(
        row["rank"],
        row["player"],
        points.numerator,
        row["games"],
        row["qualified"],
        points.denominator,
        row.get("gold"),
        places,
        tuple(int(Fraction(row["state"][column.name]) * column.scale) for column in columns) if columns else None,
    )


def compared_at(one: PublishedList, ruleset: Ruleset) -> int | None:
    """Up to when a list is compared with what would come out today, or None for all of its month or year.

    A list of running points from before lists had an instant of their own is compared at the time it was recorded.
    """
    if one.as_of is not None or find_period(ruleset, parse_name(one.ladder).values) is not None:
        return one.as_of
    return parse_record_instant(one.recorded_at)


@dataclass(frozen=True, slots=True)
class PublicationRow(Result):
    """A list that was published: what was played and known for it, its version, players and games; and its event."""

    ladder: str
    as_of: datetime | None
    known_at: int
    ruleset: str
    players: int
    games: int
    position: int
    recorded_at: str
    by: str


@dataclass(frozen=True, slots=True)
class Schedule(Result):
    """A ladder that is published again and again, how often, and the months that are due, as YYYY-MM."""

    ladder: str
    every: str
    due: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Publications(Answer, RowSequence[PublicationRow]):
    """The published lists that count, by ladder and time."""

    rows: tuple[PublicationRow, ...]


def publications(connection: Connection, until: int, times: Times) -> Publications:
    """Return the lists published up to a position, the last one of each ladder and time."""
    return Publications(publication_rows(connection, until), times=times)


def publication_rows(connection: Connection, until: int) -> tuple[PublicationRow, ...]:
    """Return the same without how times are shown."""
    return tuple(
        PublicationRow(
            one.ladder,
            None if one.as_of is None else moment(one.as_of),
            one.known_at,
            one.ruleset,
            one.row_count,
            one.games,
            one.position,
            one.recorded_at,
            one.by,
        )
        for one in latest_lists(published_lists(connection, until))
    )
