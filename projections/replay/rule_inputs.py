"""Read the columns of rules in bulk: the input of their checks and scoring functions."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, NUMBERS, STATE_RULE_COLUMNS
from ratings_ledger.projections.facts.columns import NONE, TOO_LARGE, Column, Facts, find_optional_column
from ratings_ledger.projections.facts.local_days import local_days
from ratings_ledger.projections.rulesets.columns import Reading, find_reading
from ratings_ledger.projections.rulesets.versions import Version

SMALL = {"place", "status", "seats", "tied"}
CHUNK_SIZE = 1_000_000  # values that are converted from one type to another at once


class GameSlots:
    """Consecutive games: their rows, their numbers of participants, and the slots of all participants."""

    def __init__(self, row: Column, size: Column, slot: Column) -> None:
        self.row, self.size, self.slot = row, size, slot


def read_columns_of_rules(
    facts: Facts, versions: Sequence[Version], games: GameSlots, version: Column
) -> Sequence[Column]:
    """Return the columns that the rules read, in the order of the rule that reads the most.

    `version` indexes the versions that score the games.
    """
    readings = [find_reading(version.rule.columns, version.ruleset) for version in versions]
    distinct_readings = sorted(set(readings), key=lambda reading: len(reading.columns))
    if len(distinct_readings) == 1:
        return read_columns(facts, distinct_readings[0], games)  # type: ignore[no-any-return]
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    read_by = np.array([distinct_readings.index(reading) for reading in readings])[arrays.as_numpy(version)]
    columns: Any = np.full((len(distinct_readings[-1].columns), len(slot)), NONE, dtype=np.int64)
    for index, reading in enumerate(distinct_readings):
        is_own = read_by == index
        slots = np.repeat(is_own, size)
        own_games = GameSlots(*map(arrays.as_column, (row[is_own], size[is_own], slot[slots])))
        columns[: len(reading.columns), slots] = read_columns(facts, reading, own_games)
    stacked: Sequence[Column] = columns
    return stacked


def read_columns(facts: Facts, reading: Reading, games: GameSlots) -> Any:
    """Return the columns that a rule reads as rows of one numpy array, of the narrowest type."""
    names = reading.columns
    wide = any(name in facts.of_kind or name in STATE_RULE_COLUMNS or name.startswith(NUMBERS) for name in names)
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    kind: Any = np.int64 if wide else np.int16 if set(names) <= SMALL else np.int32
    matrix = np.empty((len(names), len(slot)), dtype=kind)
    for column, name in zip(matrix, names, strict=True):
        if name == "seats":
            seats = np.array([cell.seats for cell in facts.cells], dtype=kind)
            cell, end = arrays.as_numpy(facts.cell), 0
            for first in range(0, len(row), CHUNK_SIZE):
                part = np.repeat(seats[cell[row[first : first + CHUNK_SIZE]]], size[first : first + CHUNK_SIZE])
                column[end : end + len(part)] = part
                end += len(part)
        elif name == "tied":
            counted = arrays.zeros("q", len(slot))
            about = (games.slot, games.row, games.size, facts.start, facts.count, facts.place, facts.replaced, counted)
            compiling.run_loop(count_tied, *about, as_compiled=compiling.is_worthwhile(len(row)))
            column[:] = arrays.as_numpy(counted)
        elif name in facts.of_kind:
            shift = arrays.as_numpy(facts.kind_start)[row] - arrays.as_numpy(facts.start)[row]
            column[:] = arrays.as_numpy(facts.of_kind[name])[slot + np.repeat(shift, size)]
        elif name in HISTORY_COLUMNS:
            column[:] = 0  # the replay fills it in
        elif name == "league":
            leagues = np.array([cell.league for cell in facts.cells], dtype=np.int64)
            leagues[leagues == NONE] = MISSING
            column[:] = np.repeat(leagues[arrays.as_numpy(facts.cell)[row]], size)
        elif name == "year":
            days = local_days(arrays.as_numpy(facts.occurred_at)[row], reading.zone).astype("datetime64[D]")
            column[:] = np.repeat(days.astype("datetime64[Y]").astype(np.int64) + 1970, size)
        elif name in ("score", "side_score"):
            column[:] = _read_scores(facts, name, games, reading)
        elif name == "team":
            column[:] = _read_teams(facts, games)
        elif name.startswith(NUMBERS):
            column[:] = read_optional_column(facts, name, slot)
            column[column == MISSING] = dict(reading.absent).get(name, MISSING)
        else:
            if name in facts.optional:
                column[:] = read_optional_column(facts, name, slot)
            else:
                source = arrays.as_numpy(getattr(facts, name))
                for first in range(0, len(slot), CHUNK_SIZE):
                    column[first : first + CHUNK_SIZE] = source[slot[first : first + CHUNK_SIZE]]
                    if len(slot) > CHUNK_SIZE:
                        facts.release_pages()
            if name == "seconds_played":
                for at in np.flatnonzero(column == NONE).tolist() if facts.clock_seconds else ():
                    column[at] = facts.clock_seconds.get(int(slot[at]), NONE)
    return matrix


def read_optional_column(facts: Facts, name: str, slot: Any) -> Any:
    """Return the values at some slots of a column that may end early or be missing."""
    usual = find_optional_column(name).default
    source = arrays.as_numpy(facts.optional.get(name, array("q")))
    if len(source) == 0:
        return np.full(len(slot), usual, dtype=np.int64)
    inside = slot < len(source)
    return source[slot] if inside.all() else np.where(inside, source[np.where(inside, slot, 0)], usual)


def find_battles(facts: Facts, row: Any) -> Any:
    """Return for some games whether they are battles, in which sides have their own scores."""
    kinds = np.array([facts.texts[cell.kind] == "battle" for cell in facts.cells], dtype=bool)
    return kinds[arrays.as_numpy(facts.cell)[row]]


def _read_battle_column(facts: Facts, name: str, games: GameSlots) -> tuple[Any, Any]:
    """Return which participants are in battles, and their values of a column."""
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    battles = find_battles(facts, row)
    inside = np.repeat(battles, size)
    shift = (arrays.as_numpy(facts.kind_start)[row] - arrays.as_numpy(facts.start)[row])[battles]
    at = slot[inside] + np.repeat(shift, size[battles])
    return inside, arrays.as_numpy(facts.of_kind[name])[at] if len(at) else at


def _read_teams(facts: Facts, games: GameSlots) -> Any:
    """Return the numbers of the participants' sides, from 0 on in the order of their participants."""
    teams = read_optional_column(facts, "team", arrays.as_numpy(games.slot)).astype(np.int64)
    teams[teams == NONE] = MISSING
    inside, side = _read_battle_column(facts, "side", games)
    if len(side):
        row, size = map(arrays.as_numpy, (games.row, games.size))
        battles = find_battles(facts, row)
        first = arrays.as_numpy(facts.of_kind["side"])[arrays.as_numpy(facts.kind_start)[row[battles]]]
        teams[inside] = side != np.repeat(first, size[battles])
    return teams


def _read_scores(facts: Facts, name: str, games: GameSlots, reading: Reading) -> Any:
    """Return the scores in units, of players or of sides; members share their side's score except in battles.

    Scores that are finer than these units, or too large, occur only in games that do not count for that reason.
    """
    slot = arrays.as_numpy(games.slot)
    score, decimals = (
        read_optional_column(facts, "score", slot).astype(np.int64),
        read_optional_column(facts, "score_decimals", slot),
    )
    is_exact = (score != MISSING) & (decimals < TOO_LARGE)
    scores = np.full(len(slot), MISSING, dtype=np.int64)
    scores[is_exact] = (
        reading.score_sign * score[is_exact] * (reading.score_unit // 10 ** decimals[is_exact].astype(np.int64))
    )
    inside, points = _read_battle_column(facts, "game_points" if name == "score" else "side_points", games)
    scores[inside] = reading.score_sign * points * reading.score_unit
    return scores


# compiled: numba takes flat arrays, so every array is an argument
def count_tied(
    slot: Any,
    row: Any,
    sizes: Any,
    start: Any,
    count: Any,
    place: Any,
    replaced: Any,
    tied: Any,
) -> None:
    """Fill in for every slot the number of seats at its place in its game; a seat that changed hands counts once.

    The slots of all games follow each other; game g has `sizes[g]` of them.
    """
    at = 0
    for g in range(len(row)):
        first = start[row[g]]
        for k in range(at, at + sizes[g]):
            seats = 0
            for participant in range(first, first + count[row[g]]):
                if not replaced[participant] and place[participant] == place[slot[k]]:
                    seats += 1
            tied[k] = seats
        at += sizes[g]
