"""Load published lists: a row about each list, and the rows of one list as published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import partial
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
    find_listed_id,
    read_entrants,
    read_published_lists,
    read_published_rows,
    refuse_unequal_states,
    select_latest_lists,
)
from ratings_ledger.projections.contract import State
from ratings_ledger.projections.facts.columns import Facts
from ratings_ledger.projections.lists.contract import RankedRow
from ratings_ledger.projections.queries.coordinates import TimeFormat, to_datetime
from ratings_ledger.projections.queries.rankings import Ranking
from ratings_ledger.projections.queries.results import Answer, Result, RowSequence
from ratings_ledger.projections.queries.visible_states import (
    VisibleState,
    build_visible_state_after,
    format_exact_state,
)
from ratings_ledger.projections.replay.streams import find_seeds
from ratings_ledger.projections.rulesets.versions import Version, find_period


def load_published_list(connection: Connection, published: PublishedList) -> Ranking:
    """Return a list as recorded in its events.

    Raises `StoreDamaged` if rows are missing, or if rows have states with different numbers.
    """
    try:
        rows = read_published_rows(Log(connection), published.digest, published.parts, published.position)
        refuse_unequal_states(published.ladder, rows)
    except Refused as problem:
        message = f"the list published at position {published.position} is damaged: {problem.message}"
        raise StoreDamaged(f"{message}; run: ratings verify") from None
    columns = _find_columns(rows)
    return build_published_ranking(published, [_build_row(row, columns) for row in rows], columns)


def load_published_points(
    connection: Connection, published: PublishedList, player: str, entrant: str, until: int
) -> Fraction | None:
    """Return the points that a list shows for an entrant, a "player" or a "club"; None if it is not on the list.

    `player` is an id as known at the position `until`. Raises `StoreDamaged`.
    """
    ranking = load_published_list(connection, published)
    rows = {row.player: row for row in ranking.rows}
    listed_id = find_listed_id(partial(read_entrants, connection, entrant), published, rows, player, until)
    return None if listed_id is None else rows[listed_id].exact_points(ranking.scale)


def build_published_ranking(
    published: PublishedList, rows: Sequence[RankedRow], columns: Sequence[State] = ()
) -> Ranking:
    """Build the ranking of a published list from its rows."""
    return Ranking(
        ladder=published.ladder,
        ruleset=published.ruleset,
        scale=1,
        rows=rows,
        games=published.games,
        # a published list does not record the trial balance
        held=0,
        start_total=0,
        minted=0,
        burned=0,
        adjusted=0,
        columns=columns,
    )


def _find_columns(rows: Sequence[Mapping[str, Any]]) -> list[State]:
    """Return the state columns of the rows of a list, by name, each with the smallest scale that is exact."""
    names = sorted(rows[0].get("state", ())) if rows else []
    return [State(name, lcm(*(Fraction(row["state"][name]).denominator for row in rows))) for name in names]


class PublishedStates:
    """The visible states of the players on a published list, under the version that ranked it."""

    def __init__(self, ranking: Ranking, version: Version, facts: Facts) -> None:
        self._ranking, self._version, self._facts = ranking, version, facts
        self._rows = {row.player: row for row in ranking.rows}

    def of(self, player: str) -> VisibleState:
        """Return the visible state of a player. Raises `RuleFailure`."""
        row, ladder, facts = self._rows[player], self._ranking.ladder, self._facts
        exact_values = format_exact_state(self._ranking.columns, row.state or ())
        state = tuple(int(Fraction(exact_values[column.name]) * column.scale) for column in self._version.rule.state)
        seed = find_seeds(facts, ladder).get(facts.person[facts.player_numbers[player]])
        return build_visible_state_after(self._version, ladder, state, row.games + (seed.games if seed else 0))


def add_visible_states(ranking: Ranking, facts: Facts) -> Ranking:
    """Return a published list with its visible states, if it has states and the facts have the version of the list."""
    versions = facts.recorded.versions
    version = next((version for version in versions if version.ruleset.name == ranking.ruleset), None)
    names = {column.name for column in ranking.columns}
    if version is None or not names or names != {column.name for column in version.rule.state}:
        return ranking
    states = PublishedStates(ranking, version, facts)
    return replace(ranking, visible_states=states, ranked_by=version.ranked_by)


def _build_row(row: dict[str, Any], columns: Sequence[State]) -> RankedRow:
    """Convert a published row to a row of a ranking, with its state in units of the state columns."""
    points = Fraction(row["points"])
    return RankedRow(
        rank=row["rank"],
        player=row["player"],
        points=points.numerator,
        games=row["games"],
        qualified=row["qualified"],
        divisor=points.denominator,
        gold=row.get("gold"),
        places=tuple(row["places"]) if "places" in row else None,
        state=tuple(int(Fraction(row["state"][column.name]) * column.scale) for column in columns) or None,
    )


def find_comparison_time(published: PublishedList, ruleset: Ruleset) -> int | None:
    """Return the `as_of` at which a published list is compared with recomputed standings.

    It is None if the list covers a whole month or year. Old lists of other ladders have no `as_of`; these are compared
    at the time when they were recorded.
    """
    if published.as_of is not None or find_period(ruleset, published.ladder) is not None:
        return published.as_of
    return parse_record_instant(published.recorded_at)


@dataclass(frozen=True, slots=True)
class PublicationRow(Result):
    """A published list: its coordinates and version, its numbers of players and games, and the publishing event."""

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
    """A ladder with a publication schedule: the interval, and the months that are due, as YYYY-MM."""

    ladder: str
    every: str
    due: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Publications(Answer, RowSequence[PublicationRow]):
    """The published lists: for each ladder and time, the list that was published last."""

    rows: tuple[PublicationRow, ...]


def load_publications(connection: Connection, until_position: int, times: TimeFormat) -> Publications:
    """Return the published lists up to a position."""
    return Publications(load_publication_rows(connection, until_position), times=times)


def load_publication_rows(connection: Connection, until_position: int) -> tuple[PublicationRow, ...]:
    """Return a row for the list that was published last for each ladder and time, up to a position."""
    return tuple(
        PublicationRow(
            ladder=published.ladder,
            as_of=None if published.as_of is None else to_datetime(published.as_of),
            known_at=published.known_at,
            ruleset=published.ruleset,
            players=published.row_count,
            games=published.games,
            position=published.position,
            recorded_at=published.recorded_at,
            by=published.by,
        )
        for published in select_latest_lists(read_published_lists(connection, until_position))
    )
