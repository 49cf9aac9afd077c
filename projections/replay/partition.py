"""Which of the selected games are on which ladder of a ruleset, ladder after ladder, with players numbered per ladder.

Whatever depends on a game's cell alone is computed once per cell; the rest is done by `projections.replay.loops`.
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
from ratings_ledger.projections.replay.eligibility import Selected
from ratings_ledger.projections.rulesets.versions import band_range, month_start

Values = tuple[str, ...]


class Partitioned(NamedTuple):
    """The games of all ladders, ladder after ladder, as `loops.gather` leaves them.

    `compiled` says whether there are enough for numpy arrays and compiled replays to pay.
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


class Numbered(NamedTuple):
    """The players of the ladders: `number` is parallel to `slot`, and ladder L has the persons `names` by number from
    `names_from[L]` on."""

    number: Column
    names: Column
    names_from: Column


def cell_values(facts: Facts, cell: Cell, ruleset: Ruleset) -> list[Values]:
    """Return the partition values of a cell's games, a choice for each member; an empty one where time decides."""
    choices: list[Sequence[str]] = []
    for part in ruleset.partition.by:
        if part == "players":
            bands = ruleset.partition.bands
            within = [band for band in bands if band_range(band)[0] <= cell.seats <= band_range(band)[1]]
            choices.append(within if bands else [str(cell.seats)])
        elif part in LABELS:
            number = getattr(cell, part)
            choices.append([] if number == NONE else [facts.texts[number]])
        else:
            choices.append([""])
    return list(product(*choices))


def values_when(facts: Facts, cell: Cell, occurred_at: int, ruleset: Ruleset) -> list[tuple[str, ...]]:
    """Return the partition values of the ladders that a game of a cell is on if it ended at an instant."""
    values = cell_values(facts, cell, ruleset)
    if not by_time(ruleset):
        return values
    local = local_time(occurred_at, ruleset.time_zone)
    return [dated(own, ruleset.partition.by, f"{local.year:04d}-{local.month:02d}") for own in values]


def by_time(ruleset: Ruleset) -> bool:
    """Tell whether the ladders of a ruleset are monthly or annual."""
    return any(part in ("month", "year") for part in ruleset.partition.by)


def partition(facts: Facts, ruleset: Ruleset, selected: Selected, only: Values | None) -> Partitioned:
    """Return the selected games on the ladders of their partition, or on the one with the values `only`."""
    keys, ladders = _keys(facts, ruleset, selected, only)
    names = sorted({values for key in ladders for values in key})
    if len(names) == 1 and all(ladders):
        placed = _on_one_ladder(selected)
    else:
        number = {values: index for index, values in enumerate(names)}
        numbers = [[number[values] for values in key] for key in ladders]
        placed = _on_ladders(selected, keys, numbers, len(names))
    columns = {name: memoryview(column) for name, column in placed.items()}
    return Partitioned(names, **columns, compiled=compiling.is_worthwhile(len(selected.row)))


def number_players(facts: Facts, shared: Partitioned) -> Numbered:
    """Return the participants, numbered per ladder."""
    zeros, slots, ladders = arrays.zeros, len(shared.slot), len(shared.ladders)
    room = (zeros("i", slots), zeros("i", min(slots, len(facts.person) * ladders)), zeros("q", ladders + 1))
    compiling.run_loop(
        loops.number_in_ladders,
        shared.slot,
        shared.slot_from,
        facts.player,
        facts.person,
        array("i", [-1]) * len(facts.person),
        *room,
        as_compiled=shared.compiled,
    )
    return Numbered(*(memoryview(column) for column in room))


def _on_one_ladder(selected: Selected) -> dict[str, Column]:
    """Return the selected games as they are, if one ladder has them all: long histories are not copied."""
    sizes = arrays.as_column(np.diff(arrays.as_numpy(selected.offset)).astype(np.int32))
    games, slots = (array("q", [0, len(column)]) for column in (selected.row, selected.slot))
    return {"ladder_from": games, **selected._asdict(), "size": sizes, "slot_from": slots}


def _on_ladders(selected: Selected, keys: Column, ladders: Sequence[Sequence[int]], count: int) -> dict[str, Column]:
    """Return the selected games by ladder, given every key's ladders by number."""
    key_from, key_ladders = array("q", [0]), array("q")
    for key in ladders:
        key_ladders.extend(key)
        key_from.append(len(key_ladders))
    widest = max((len(key) for key in ladders), default=0)
    ladder_from, ladder_games = array("q", [0]) * (count + 1), arrays.zeros("q", len(selected.row) * widest)
    run = partial(compiling.run_loop, as_compiled=compiling.is_worthwhile(len(selected.row)))
    total = run(loops.assign_games, keys, key_from, key_ladders, ladder_from, ladder_games)
    zeros = arrays.zeros
    room = {
        "row": zeros("q", total),
        "version": zeros("h", total),
        "size": zeros("i", total),
        "offset": zeros("q", total + count),
        "slot": zeros(memoryview(selected.slot).format, len(selected.slot) * widest),
        "slot_from": zeros("q", count + 1),
    }
    run(loops.gather, ladder_from, ladder_games, *selected, *room.values())
    room["slot"] = memoryview(room["slot"])[: room["slot_from"][count]]
    return {"ladder_from": ladder_from, **room}


def _keys(facts: Facts, ruleset: Ruleset, selected: Selected, only: Values | None) -> tuple[Column, list[list[Values]]]:
    """Return a key for every selected game, and for every key the ladders its games are on.

    The key stands for the game's cell, and for its month if time decides.
    """
    periods = _periods(facts, ruleset, selected) if by_time(ruleset) else [(-(2**63), "")]
    keys, distinct = _number_keys(facts, selected, periods)
    ladders = []
    for key in distinct:
        cell, period = divmod(key, len(periods))
        every = [
            dated(values, ruleset.partition.by, periods[period][1])
            for values in cell_values(facts, facts.cells[cell], ruleset)
        ]
        ladders.append([values for values in every if only in (None, values)])
    return keys, ladders


def _number_keys(facts: Facts, selected: Selected, periods: Sequence[tuple[int, str]]) -> tuple[Column, list[int]]:
    """Return the number of every game's key, and the keys by number."""
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


def dated(values: Values, by: Sequence[str], month: str) -> Values:
    """Partition values with a game's month or year filled in."""
    return tuple(
        month if part == "month" else month[:4] if part == "year" else value
        for part, value in zip(by, values, strict=True)
    )


def _periods(facts: Facts, ruleset: Ruleset, selected: Selected) -> list[tuple[int, str]]:
    """Return the months, in the ruleset's zone, in which the games were played: when each starts, and its name."""
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
