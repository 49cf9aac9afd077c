"""Partition the selected games of a ruleset into its ladders, and number the players of each ladder.

Values that depend only on a game's cell are computed once per cell. The loops over games are in
`projections.replay.loops`.
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

Values = tuple[str, ...]  # of a ladder: its value for each member of the partition, such as ("7", "all")
BEFORE_ALL = -(2**63)  # an instant before every game


class LadderGames(NamedTuple):
    """The games of all ladders, sorted by ladder.

    ladders:     by ladder, its partition values
    ladder_from: the games of ladder L are entries ladder_from[L] to ladder_from[L + 1] - 1 of the columns by game
    row, version: by game, the row in the facts, and the index of the version that scores it
    size:        by game, the number of counted participants
    offset:      ladder by ladder, the bounds of each game's slots, counted from the ladder's first slot: one entry more
                 than the ladder has games; see `loops.gather`
    slot:        by counted participant, its index in the facts
    slot_from:   the slots of ladder L are slot[slot_from[L]:slot_from[L + 1]]
    compiled:    whether compiled loops are allowed and pay off for these games
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
    """The numbers of the players on each ladder.

    number:     by slot of `LadderGames`, the number of the player on the ladder
    persons:    the persons of all ladders, sorted by ladder and then by number
    persons_from: the persons of ladder L are persons[persons_from[L]:persons_from[L + 1]]
    """

    number: Column
    persons: Column
    persons_from: Column


def list_cell_values(facts: Facts, cell: Cell, ruleset: Ruleset) -> list[Values]:
    """Return the partition values of a cell's games: a tuple for each ladder, in which months and years are empty."""
    choices: list[Sequence[str]] = []
    for member in ruleset.partition.by:
        if member == "players":
            bands = ruleset.partition.bands
            matching_bands = [band for band in bands if parse_band(band)[0] <= cell.seats <= parse_band(band)[1]]
            choices.append(matching_bands if bands else [str(cell.seats)])
        elif member in LABELS:
            text_number = getattr(cell, member)
            choices.append([] if text_number == NONE else [facts.texts[text_number]])
        else:
            choices.append([""])
    return list(product(*choices))


def list_values_at(facts: Facts, cell: Cell, occurred_at: int, ruleset: Ruleset) -> list[tuple[str, ...]]:
    """Return the partition values of a cell's game that ended at an instant: a tuple for each ladder."""
    values = list_cell_values(facts, cell, ruleset)
    if not ruleset.partition.is_by_time:
        return values
    month = _name_month(*_find_month(occurred_at, ruleset.time_zone))
    return [fill_in_month(cell_values, ruleset.partition.by, month) for cell_values in values]


def partition_games(facts: Facts, ruleset: Ruleset, selected: SelectedGames, only: Values | None) -> LadderGames:
    """Return the selected games by ladder; with `only`, return only the ladder with these partition values."""
    keys, values_of_keys = _key_games(facts, ruleset, selected, only)
    ladders = sorted({values for ladders_of_key in values_of_keys for values in ladders_of_key})
    if len(ladders) == 1 and all(values_of_keys):
        columns_by_name = _place_on_one_ladder(selected)
    else:
        number_of_ladder = {values: index for index, values in enumerate(ladders)}
        ladders_of_keys = [[number_of_ladder[values] for values in ladders_of_key] for ladders_of_key in values_of_keys]
        columns_by_name = _place_on_ladders(selected, keys, ladders_of_keys, len(ladders))
    columns = {name: memoryview(column) for name, column in columns_by_name.items()}
    return LadderGames(ladders, **columns, compiled=compiling.is_worthwhile(len(selected.row)))


def number_players(facts: Facts, ladder_games: LadderGames) -> PlayerNumbers:
    """Number the players of each ladder in the order of their first games on it."""
    slot_count, ladder_count = len(ladder_games.slot), len(ladder_games.ladders)
    columns = (
        arrays.zeros("i", slot_count),
        arrays.zeros("i", min(slot_count, len(facts.person) * ladder_count)),
        arrays.zeros("q", ladder_count + 1),
    )
    compiling.run_loop(
        loops.number_persons,
        ladder_games.slot,
        ladder_games.slot_from,
        facts.player,
        facts.person,
        array("i", [-1]) * len(facts.person),
        *columns,
        as_compiled=ladder_games.compiled,
    )
    number, persons, persons_from = columns
    return PlayerNumbers(memoryview(number), memoryview(persons), memoryview(persons_from))


def _place_on_one_ladder(selected: SelectedGames) -> dict[str, Column]:
    """Return the columns of `LadderGames` if all games are on the same ladder. Copies nothing."""
    sizes = arrays.as_column(np.diff(arrays.as_numpy(selected.offset)).astype(np.int32))
    game_bounds, slot_bounds = (array("q", [0, len(column)]) for column in (selected.row, selected.slot))
    return {"ladder_from": game_bounds, **selected._asdict(), "size": sizes, "slot_from": slot_bounds}


def _place_on_ladders(
    selected: SelectedGames, keys: Column, ladders_of_keys: Sequence[Sequence[int]], ladder_count: int
) -> dict[str, Column]:
    """Return the columns of `LadderGames`, given the key of every game and the ladders of every key."""
    key_from, key_ladders = array("q", [0]), array("q")
    for ladders_of_key in ladders_of_keys:
        key_ladders.extend(ladders_of_key)
        key_from.append(len(key_ladders))
    ladders_max = max((len(ladders_of_key) for ladders_of_key in ladders_of_keys), default=0)  # the most for one game
    ladder_from, ladder_games = array("q", [0]) * (ladder_count + 1), arrays.zeros("q", len(selected.row) * ladders_max)
    run_loop = partial(compiling.run_loop, as_compiled=compiling.is_worthwhile(len(selected.row)))
    total = run_loop(loops.assign_games, keys, key_from, key_ladders, ladder_from, ladder_games)
    columns = {
        "row": arrays.zeros("q", total),
        "version": arrays.zeros("h", total),
        "size": arrays.zeros("i", total),
        "offset": arrays.zeros("q", total + ladder_count),
        "slot": arrays.zeros(memoryview(selected.slot).format, len(selected.slot) * ladders_max),
        "slot_from": arrays.zeros("q", ladder_count + 1),
    }
    run_loop(loops.gather, ladder_from, ladder_games, *selected, *columns.values())
    columns["slot"] = memoryview(columns["slot"])[: columns["slot_from"][ladder_count]]
    return {"ladder_from": ladder_from, **columns}


def _key_games(
    facts: Facts, ruleset: Ruleset, selected: SelectedGames, only: Values | None
) -> tuple[Column, list[list[Values]]]:
    """Return a key for each selected game, and the partition values of each key's ladders.

    Games share a key if they have the same cell and, for monthly or annual ladders, the same month.
    """
    months = _list_months(facts, ruleset, selected) if ruleset.partition.is_by_time else [(BEFORE_ALL, "")]
    keys, distinct_keys = _number_keys(facts, selected, months)
    ladders = []
    for key in distinct_keys:
        cell, index = divmod(key, len(months))
        _, month = months[index]
        values_of_key = [
            fill_in_month(values, ruleset.partition.by, month)
            for values in list_cell_values(facts, facts.cells[cell], ruleset)
        ]
        ladders.append([values for values in values_of_key if only in (None, values)])
    return keys, ladders


def _number_keys(facts: Facts, selected: SelectedGames, months: Sequence[tuple[int, str]]) -> tuple[Column, list[int]]:
    """Number the distinct keys of games. Return the number of every game's key, and the keys by number."""
    rows = arrays.as_numpy(selected.row)
    keys = arrays.as_numpy(facts.cell)[rows].astype(np.int64)
    if len(months) > 1:
        starts = np.array([start for start, _ in months], dtype=np.int64)
        keys = keys * len(months) + np.searchsorted(starts, arrays.as_numpy(facts.occurred_at)[rows], "right") - 1
    key_count = len(facts.cells) * len(months)
    if key_count > 1_000_000 + len(keys):  # too many possible keys for an array with an entry for each
        distinct_keys, numbers = np.unique(keys, return_inverse=True)
    else:
        distinct_keys = np.flatnonzero(np.bincount(keys, minlength=key_count))
        number_of_key = np.zeros(key_count, dtype=np.int64)
        number_of_key[distinct_keys] = np.arange(len(distinct_keys))
        numbers = number_of_key[keys]
    return arrays.as_column(np.ascontiguousarray(numbers, dtype=np.int64)), distinct_keys.tolist()


def fill_in_month(values: Values, by: Sequence[str], month: str) -> Values:
    """Return partition values with the month or year of a game filled in."""
    return tuple(
        month if member == "month" else month[:4] if member == "year" else value
        for member, value in zip(by, values, strict=True)
    )


def _list_months(facts: Facts, ruleset: Ruleset, selected: SelectedGames) -> list[tuple[int, str]]:
    """Return the (first instant, name) of each month from the first game to the last, in the ruleset's zone.

    The first month begins at `BEFORE_ALL`.
    """
    if not len(selected.row):
        return []
    zone = ruleset.time_zone
    times = arrays.as_numpy(facts.occurred_at)[arrays.as_numpy(selected.row)]
    first, last = _find_month(int(times.min()), zone), _find_month(int(times.max()), zone)
    months = [(BEFORE_ALL, _name_month(*first))]
    while first < last:
        first = _find_next_month(*first)
        months.append((month_start(*first, zone), _name_month(*first)))
    return months


def _find_month(instant: int, zone: str) -> tuple[int, int]:
    """Return the year and month that an instant is in.

    A month goes on to the start of the next one, even if clocks go back over that midnight: the hour of October that
    St. John's repeated on 2009-11-01 is in November.
    """
    local = local_time(instant, zone)
    following = _find_next_month(local.year, local.month)
    return following if month_start(*following, zone) <= instant else (local.year, local.month)


def _find_next_month(year: int, month: int) -> tuple[int, int]:
    """Return the year and month after a month."""
    return year + month // 12, month % 12 + 1


def _name_month(year: int, month: int) -> str:
    """Return the name of a month: `YYYY-MM`."""
    return f"{year:04d}-{month:02d}"
