"""Partition the selected games of a ruleset into its ladders, and number the players of each ladder.

Whatever depends only on a game's cell is computed once per cell. `projections.replay.loops` does the rest.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from ratings_ledger.ledger.events.types import Ruleset
from ratings_ledger.ledger.events.zones import local_time
from ratings_ledger.projections import arrays, compiling
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.facts.columns import LABELS, NONE, Cell, Column, Facts
from ratings_ledger.projections.replay import loops
from ratings_ledger.projections.replay.eligibility import SelectedGames
from ratings_ledger.projections.rulesets.versions import month_start, parse_band

Values = tuple[str, ...]


class LadderGames(NamedTuple):
    """The games of all ladders, one ladder after another, as `loops.gather` copies them.

    `compiled` says whether there are enough games for numpy arrays and compiled replays.
    """

    ladders: list[Values]
    ladder_from: Column
    row: Column
    version: Column
    size: Column
    offset: Column
    slot: Column
    slot_from: Column
    compiled: bool


class PlayerNumbers(NamedTuple):
    """The players of the ladders by number.

    number:     by slot of `LadderGames`, the number of the player on their ladder
    names:      the persons of all ladders, one ladder after another, by number
    names_from: the persons of ladder L are names[names_from[L]:names_from[L + 1]]
    """

    number: Column
    names: Column
    names_from: Column


def list_cell_values(facts: Facts, cell: Cell, ruleset: Ruleset) -> list[Values]:
    """Return the partition values of a cell's games; values that depend on the time of a game are empty."""
    choices: list[Sequence[str]] = []
    for part in ruleset.partition.by:
        if part == "players":
            bands = ruleset.partition.bands
            within = [band for band in bands if parse_band(band)[0] <= cell.seats <= parse_band(band)[1]]
            choices.append(within if bands else [str(cell.seats)])
        elif part in LABELS:
            number = getattr(cell, part)
            choices.append([] if number == NONE else [facts.texts[number]])
        else:
            choices.append([""])
    return list(product(*choices))


def list_values_at(facts: Facts, cell: Cell, occurred_at: int, ruleset: Ruleset) -> list[tuple[str, ...]]:
    """Return the partition values of a game of this cell that ended at an instant, one tuple for each ladder."""
    values = list_cell_values(facts, cell, ruleset)
    if not is_partitioned_by_time(ruleset):
        return values
    local = local_time(occurred_at, ruleset.time_zone)
    return [
        fill_in_month(cell_value, ruleset.partition.by, f"{local.year:04d}-{local.month:02d}") for cell_value in values
    ]


def is_partitioned_by_time(ruleset: Ruleset) -> bool:
    """Tell whether the ladders of a ruleset are monthly or annual."""
    return any(part in ("month", "year") for part in ruleset.partition.by)


def partition_games(facts: Facts, ruleset: Ruleset, selected: SelectedGames, only: Values | None) -> LadderGames:
    """Return the selected games by ladder, for all ladders or only for the ladder with the values `only`."""
    keys, ladders = _find_keys(facts, ruleset, selected, only)
    names = sorted({values for key in ladders for values in key})
    if len(names) == 1 and all(ladders):
        columns_of_ladders = _place_on_one_ladder(selected)
    else:
        number = {values: index for index, values in enumerate(names)}
        numbers = [[number[values] for values in key] for key in ladders]
        columns_of_ladders = _place_on_ladders(selected, keys, numbers, len(names))
    columns = {name: memoryview(column) for name, column in columns_of_ladders.items()}
    return LadderGames(names, **columns, compiled=compiling.is_worthwhile(len(selected.row)))


def number_players(facts: Facts, shared: LadderGames) -> PlayerNumbers:
    """Number the participants of each ladder."""
    zeros, slots, ladders = arrays.zeros, len(shared.slot), len(shared.ladders)
    columns = (zeros("i", slots), zeros("i", min(slots, len(facts.person) * ladders)), zeros("q", ladders + 1))
    compiling.run_loop(
        loops.number_in_ladders,
        shared.slot,
        shared.slot_from,
        facts.player,
        facts.person,
        array("i", [-1]) * len(facts.person),
        *columns,
        as_compiled=shared.compiled,
    )
    return PlayerNumbers(*(memoryview(column) for column in columns))


def _place_on_one_ladder(selected: SelectedGames) -> dict[str, Column]:
    """Return the selected games without a copy, because they are all on one ladder."""
    sizes = arrays.as_column(np.diff(arrays.as_numpy(selected.offset)).astype(np.int32))
    games, slots = (array("q", [0, len(column)]) for column in (selected.row, selected.slot))
    return {"ladder_from": games, **selected._asdict(), "size": sizes, "slot_from": slots}


def _place_on_ladders(
    selected: SelectedGames, keys: Column, ladders: Sequence[Sequence[int]], count: int
) -> dict[str, Column]:
    """Return the selected games by ladder, given the ladders of every key."""
    key_from, key_ladders = array("q", [0]), array("q")
    for key in ladders:
        key_ladders.extend(key)
        key_from.append(len(key_ladders))
    ladders_max = max((len(key) for key in ladders), default=0)  # of one game
    ladder_from, ladder_games = array("q", [0]) * (count + 1), arrays.zeros("q", len(selected.row) * ladders_max)
    run = partial(compiling.run_loop, as_compiled=compiling.is_worthwhile(len(selected.row)))
    total = run(loops.assign_games, keys, key_from, key_ladders, ladder_from, ladder_games)
    zeros = arrays.zeros
    columns = {
        "row": zeros("q", total),
        "version": zeros("h", total),
        "size": zeros("i", total),
        "offset": zeros("q", total + count),
        "slot": zeros(memoryview(selected.slot).format, len(selected.slot) * ladders_max),
        "slot_from": zeros("q", count + 1),
    }
    run(loops.gather, ladder_from, ladder_games, *selected, *columns.values())
    columns["slot"] = memoryview(columns["slot"])[: columns["slot_from"][count]]
    return {"ladder_from": ladder_from, **columns}


def _find_keys(
    facts: Facts, ruleset: Ruleset, selected: SelectedGames, only: Values | None
) -> tuple[Column, list[list[Values]]]:
    """Return a key for every selected game, and the ladders of every key.

    A key identifies the game's cell and, for monthly or annual ladders, its month.
    """
    periods = _list_months(facts, ruleset, selected) if is_partitioned_by_time(ruleset) else [(-(2**63), "")]
    keys, distinct = _number_keys(facts, selected, periods)
    ladders = []
    for key in distinct:
        cell, period = divmod(key, len(periods))
        values_of_key = [
            fill_in_month(values, ruleset.partition.by, periods[period][1])
            for values in list_cell_values(facts, facts.cells[cell], ruleset)
        ]
        ladders.append([values for values in values_of_key if only in (None, values)])
    return keys, ladders


def _number_keys(facts: Facts, selected: SelectedGames, periods: Sequence[tuple[int, str]]) -> tuple[Column, list[int]]:
    """Number the distinct keys of games. Return the number of every game's key, and the keys by number."""
    rows = arrays.as_numpy(selected.row)
    keys = arrays.as_numpy(facts.cell)[rows].astype(np.int64)
    if len(periods) > 1:
        starts = np.array([start for start, _ in periods], dtype=np.int64)
        keys = keys * len(periods) + np.searchsorted(starts, arrays.as_numpy(facts.occurred_at)[rows], "right") - 1
    space = len(facts.cells) * len(periods)
    if space > 1_000_000 + len(keys):
        distinct, numbers = np.unique(keys, return_inverse=True)
    else:
        distinct = np.flatnonzero(np.bincount(keys, minlength=space))
        number = np.zeros(space, dtype=np.int64)
        number[distinct] = np.arange(len(distinct))
        numbers = number[keys]
    return arrays.as_column(np.ascontiguousarray(numbers, dtype=np.int64)), distinct.tolist()


def fill_in_month(values: Values, by: Sequence[str], month: str) -> Values:
    """Return partition values with the month or year of a game filled in."""
    return tuple(
        month if part == "month" else month[:4] if part == "year" else value
        for part, value in zip(by, values, strict=True)
    )


def _list_months(facts: Facts, ruleset: Ruleset, selected: SelectedGames) -> list[tuple[int, str]]:
    """Return the months of the games in the ruleset's zone, each with its first instant and its name."""
    if not len(selected.row):
        return []
    zone = ruleset.time_zone
    times = arrays.as_numpy(facts.occurred_at)[arrays.as_numpy(selected.row)]
    low, high = int(times.min()), int(times.max())
    local, last = local_time(low, zone), local_time(high, zone)
    year, month = local.year, local.month
    months = [(-(2**63), f"{year:04d}-{month:02d}")]
    while (year, month) < (last.year, last.month):
        year, month = year + month // 12, month % 12 + 1
        months.append((month_start(year, month, zone), f"{year:04d}-{month:02d}"))
    return months
