"""Read the columns that rules use, for many games at once: the input of their checks and scoring functions."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import local_days, np
from ratings_ledger.projections.contract import HISTORY_COLUMNS, MISSING, NUMBERS, STATE_RULE_COLUMNS
from ratings_ledger.projections.facts.columns import NONE, TOO_LARGE, Column, Facts, find_optional_column
from ratings_ledger.projections.rulesets.versions import Reading, Version

NARROW_COLUMNS = {"place", "status", "seats", "tied"}  # their values fit into 16 bits
CHUNK_SIZE = 1_000_000  # convert only this many values at a time, to limit memory


class GameSlots(NamedTuple):
    """The games to read columns for.

    row:  by game, its row in the facts
    size: by game, the number of counted participants
    slot: the counted participants of all games, game by game, as indices into the facts
    """

    row: Column
    size: Column
    slot: Column


def read_columns_of_rules(
    facts: Facts, versions: Sequence[Version], games: GameSlots, version_indices: Column
) -> Sequence[Column]:
    """Return the columns that the rules of several versions read, each with a value for each slot.

    For each game, the columns of the rule that scores it come first, in the order of the rule; all others are -1.
    `version_indices` has the index of each game's version.
    """
    readings = [version.reading for version in versions]
    distinct_readings = sorted(set(readings), key=lambda reading: len(reading.columns))
    if len(distinct_readings) == 1:
        return read_columns(facts, distinct_readings[0], games)  # type: ignore[no-any-return]
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    reading_of_version = np.array([distinct_readings.index(reading) for reading in readings])
    reading_of_game = reading_of_version[arrays.as_numpy(version_indices)]
    columns: Any = np.full((len(distinct_readings[-1].columns), len(slot)), NONE, dtype=np.int64)
    for index, reading in enumerate(distinct_readings):
        is_game_of_reading = reading_of_game == index
        is_slot_of_reading = np.repeat(is_game_of_reading, size)
        games_of_reading = GameSlots(
            *map(arrays.as_column, (row[is_game_of_reading], size[is_game_of_reading], slot[is_slot_of_reading]))
        )
        columns[: len(reading.columns), is_slot_of_reading] = read_columns(facts, reading, games_of_reading)
    result: Sequence[Column] = columns
    return result


def read_columns(facts: Facts, reading: Reading, games: GameSlots) -> Any:
    """Return the columns that a rule reads, as the rows of a numpy array with the narrowest type that fits."""
    names = reading.columns
    needs_64_bits = any(
        name in facts.of_kind or name in STATE_RULE_COLUMNS or name.startswith(NUMBERS) for name in names
    )
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    dtype: Any = np.int64 if needs_64_bits else np.int16 if set(names) <= NARROW_COLUMNS else np.int32
    matrix = np.empty((len(names), len(slot)), dtype=dtype)
    for column, name in zip(matrix, names, strict=True):
        if name == "seats":
            seats = np.array([cell.seats for cell in facts.cells], dtype=dtype)
            cell, end = arrays.as_numpy(facts.cell), 0
            for begin in range(0, len(row), CHUNK_SIZE):
                chunk = np.repeat(seats[cell[row[begin : begin + CHUNK_SIZE]]], size[begin : begin + CHUNK_SIZE])
                column[end : end + len(chunk)] = chunk
                end += len(chunk)
        elif name == "tied":
            tied = arrays.zeros("q", len(slot))
            arguments = (games.slot, games.row, games.size, facts.start, facts.count, facts.place, facts.replaced, tied)
            compiling.run_loop(count_tied, *arguments, as_compiled=compiling.is_worthwhile(len(row)))
            column[:] = arrays.as_numpy(tied)
        elif name in facts.of_kind:
            # the columns of a game type have values only for participants in its games, so their indices are shifted
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
                for begin in range(0, len(slot), CHUNK_SIZE):
                    column[begin : begin + CHUNK_SIZE] = source[slot[begin : begin + CHUNK_SIZE]]
                    if len(slot) > CHUNK_SIZE:
                        facts.release_pages()
            if name == "seconds_played":
                for index in np.flatnonzero(column == NONE).tolist() if facts.clock_seconds else ():
                    column[index] = facts.clock_seconds.get(int(slot[index]), NONE)
    return matrix


def read_optional_column(facts: Facts, name: str, slot: Any) -> Any:
    """Return the values of an optional column at some slots. Slots past the end of the column have the default."""
    default = find_optional_column(name).default
    source = arrays.as_numpy(facts.optional.get(name, array("q")))
    if len(source) == 0:
        return np.full(len(slot), default, dtype=np.int64)
    is_stored = slot < len(source)
    return source[slot] if is_stored.all() else np.where(is_stored, source[np.where(is_stored, slot, 0)], default)


def find_battles(facts: Facts, row: Any) -> Any:
    """Return a mask by game: True for battles, whose sides have scores of their own."""
    is_battle = np.array([facts.texts[cell.kind] == "battle" for cell in facts.cells], dtype=bool)
    return is_battle[arrays.as_numpy(facts.cell)[row]]


def _read_battle_column(facts: Facts, name: str, games: GameSlots) -> tuple[Any, Any]:
    """Return a mask by slot, True in battles, and the values of a battle column at the slots in battles."""
    row, size, slot = map(arrays.as_numpy, (games.row, games.size, games.slot))
    is_battle = find_battles(facts, row)
    in_battle = np.repeat(is_battle, size)
    shifts = (arrays.as_numpy(facts.kind_start)[row] - arrays.as_numpy(facts.start)[row])[is_battle]
    indices = slot[in_battle] + np.repeat(shifts, size[is_battle])
    return in_battle, arrays.as_numpy(facts.of_kind[name])[indices] if len(indices) else indices


def _read_teams(facts: Facts, games: GameSlots) -> Any:
    """Return the side of each slot, numbered from 0 in the order of the participants; `MISSING` without sides."""
    teams = read_optional_column(facts, "team", arrays.as_numpy(games.slot)).astype(np.int64)
    teams[teams == NONE] = MISSING
    in_battle, sides = _read_battle_column(facts, "side", games)
    if len(sides):
        row, size = map(arrays.as_numpy, (games.row, games.size))
        is_battle = find_battles(facts, row)
        first_side = arrays.as_numpy(facts.of_kind["side"])[arrays.as_numpy(facts.kind_start)[row[is_battle]]]
        teams[in_battle] = sides != np.repeat(first_side, size[is_battle])
    return teams


def _read_scores(facts: Facts, name: str, games: GameSlots, reading: Reading) -> Any:
    """Return the `score` or `side_score` of each slot in units. The two differ only in battles.

    Only games that `eligibility` excludes have scores that are too fine or too large for these units.
    """
    slot = arrays.as_numpy(games.slot)
    raw_scores = read_optional_column(facts, "score", slot).astype(np.int64)
    decimals = read_optional_column(facts, "score_decimals", slot)
    is_exact = (raw_scores != MISSING) & (decimals < TOO_LARGE)
    scores = np.full(len(slot), MISSING, dtype=np.int64)
    scores[is_exact] = (
        reading.score_sign * raw_scores[is_exact] * (reading.score_unit // 10 ** decimals[is_exact].astype(np.int64))
    )
    in_battle, points = _read_battle_column(facts, "game_points" if name == "score" else "side_points", games)
    scores[in_battle] = reading.score_sign * points * reading.score_unit
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
    """Fill in `tied`: for each slot, the number of seats in its game with the same place.

    A replaced participant is not counted, because the substitute has the same seat. `slot` has the slots of all games,
    game by game; game g has `sizes[g]` slots.
    """
    first_slot = 0
    for game in range(len(row)):
        first_participant = start[row[game]]
        for slot_index in range(first_slot, first_slot + sizes[game]):
            seats_at_place = 0
            for participant in range(first_participant, first_participant + count[row[game]]):
                if not replaced[participant] and place[participant] == place[slot[slot_index]]:
                    seats_at_place += 1
            tied[slot_index] = seats_at_place
        first_slot += sizes[game]
