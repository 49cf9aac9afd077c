"""What rules read from games, in bulk: the columns that their checks and scoring functions get."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, NUMBERS, STATE_RULE_COLUMNS
from ratings_ledger.projections.facts.columns import NONE, TOO_LARGE, Column, Facts, optional_column
from ratings_ledger.projections.facts.local_days import local_days
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.rulesets.columns import Reading, reading_of
from ratings_ledger.projections.rulesets.versions import Version

SMALL = {"place", "status", "seats", "tied"}
AT_ONCE = 1_000_000  # values converted from one type to another at a time


class GameSlots:
    """Consecutive games: their rows, how many participants each has, and all of those (`slot`)."""

    def __init__(self, row: Column, size: Column, slot: Column) -> None:
        self.row, self.size, self.slot = row, size, slot


def rule_columns(facts: Facts, versions: Sequence[Version], games: GameSlots, version: Column) -> Sequence[Column]:
    """Return what the rules read about the participants: one column each, in the order of the rule that reads the most.

    `version` indexes the versions that score the games.
    """
    readings = [reading_of(version.rule.columns, version.ruleset) for version in versions]
    every = sorted(set(readings), key=lambda reading: len(reading.columns))
    if len(every) == 1:
        return bulk_columns(facts, every[0], games)  # type: ignore[no-any-return]
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    read_by = np.array([every.index(reading) for reading in readings])[arrays.as_numpy(version)]
    columns: Any = np.full((len(every[-1].columns), len(slot)), NONE, dtype=np.int64)
    for index, reading in enumerate(every):
        mine = read_by == index
        slots = np.repeat(mine, size)
        some = GameSlots(*map(arrays.as_column, (row[mine], size[mine], slot[slots])))
        columns[: len(reading.columns), slots] = bulk_columns(facts, reading, some)
    stacked: Sequence[Column] = columns
    return stacked


def bulk_columns(facts: Facts, reading: Reading, games: GameSlots) -> Any:
    """Return what a rule reads as the rows of one numpy array, as narrow as possible."""
    names = reading.columns
    wide = any(name in facts.of_kind or name in STATE_RULE_COLUMNS or name.startswith(NUMBERS) for name in names)
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    kind: Any = np.int64 if wide else np.int16 if set(names) <= SMALL else np.int32
    matrix = np.empty((len(names), len(slot)), dtype=kind)
    for column, name in zip(matrix, names, strict=True):
        if name == "seats":
            seats = np.array([cell.seats for cell in facts.cells], dtype=kind)
            cell, end = arrays.as_numpy(facts.cell), 0
            for first in range(0, len(row), AT_ONCE):
                part = np.repeat(seats[cell[row[first : first + AT_ONCE]]], size[first : first + AT_ONCE])
                column[end : end + len(part)] = part
                end += len(part)
        elif name == "tied":
            counted = arrays.zeros("q", len(slot))
            about = (games.slot, games.row, games.size, facts.start, facts.count, facts.place, facts.replaced, counted)
            compiling.run_loop(loops.count_tied, *about, as_compiled=compiling.is_worthwhile(len(row)))
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
            column[:] = _scores(facts, name, games, reading)
        elif name == "team":
            column[:] = _teams(facts, games)
        elif name.startswith(NUMBERS):
            column[:] = padded(facts, name, slot)
            column[column == MISSING] = dict(reading.absent).get(name, MISSING)
        else:
            if name in facts.optional:
                column[:] = padded(facts, name, slot)
            else:
                source = arrays.as_numpy(getattr(facts, name))
                for first in range(0, len(slot), AT_ONCE):
                    column[first : first + AT_ONCE] = source[slot[first : first + AT_ONCE]]
                    if len(slot) > AT_ONCE:
                        facts.let_go()
            if name == "seconds_played":
                for at in np.flatnonzero(column == NONE).tolist() if facts.clock_seconds else ():
                    column[at] = facts.clock_seconds.get(int(slot[at]), NONE)
    return matrix


def padded(facts: Facts, name: str, slot: Any) -> Any:
    """Return the values at some slots of a column that may end early, or be missing."""
    usual = optional_column(name).usual
    source = arrays.as_numpy(facts.optional.get(name, array("q")))
    if len(source) == 0:
        return np.full(len(slot), usual, dtype=np.int64)
    inside = slot < len(source)
    return source[slot] if inside.all() else np.where(inside, source[np.where(inside, slot, 0)], usual)


def are_battles(facts: Facts, row: Any) -> Any:
    """Tell of some games whether they are battles, in which sides have scores of their own."""
    kinds = np.array([facts.texts[cell.kind] == "battle" for cell in facts.cells], dtype=bool)
    return kinds[arrays.as_numpy(facts.cell)[row]]


def _of_battles(facts: Facts, name: str, games: GameSlots) -> tuple[Any, Any]:
    """Return which participants are in battles, and the numbers that these have in a column."""
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    battles = are_battles(facts, row)
    inside = np.repeat(battles, size)
    shift = (arrays.as_numpy(facts.kind_start)[row] - arrays.as_numpy(facts.start)[row])[battles]
    at = slot[inside] + np.repeat(shift, size[battles])
    return inside, arrays.as_numpy(facts.of_kind[name])[at] if len(at) else at


def _teams(facts: Facts, games: GameSlots) -> Any:
    """Return the numbers of the participants' sides, from 0 on in the order of their participants."""
    teams = padded(facts, "team", arrays.as_numpy(games.slot)).astype(np.int64)
    teams[teams == NONE] = MISSING
    inside, side = _of_battles(facts, "side", games)
    if len(side):
        row, size = map(arrays.as_numpy, (games.row, games.size))
        battles = are_battles(facts, row)
        first = arrays.as_numpy(facts.of_kind["side"])[arrays.as_numpy(facts.kind_start)[row[battles]]]
        teams[inside] = side != np.repeat(first, size[battles])
    return teams


def _scores(facts: Facts, name: str, games: GameSlots, reading: Reading) -> Any:
    """Return scores in units, or those of the sides, which their members share but in a battle.

    They are finer than these units, or too large, in games alone that do not count for that.
    """
    slot = arrays.as_numpy(games.slot)
    score, decimals = padded(facts, "score", slot).astype(np.int64), padded(facts, "score_decimals", slot)
    is_exact = (score != MISSING) & (decimals < TOO_LARGE)
    scores = np.full(len(slot), MISSING, dtype=np.int64)
    scores[is_exact] = (
        reading.score_sign * score[is_exact] * (reading.score_unit // 10 ** decimals[is_exact].astype(np.int64))
    )
    inside, points = _of_battles(facts, "game_points" if name == "score" else "side_points", games)
    scores[inside] = reading.score_sign * points * reading.score_unit
    return scores
