"""Which games a ruleset counts, on which of its ladders, and with whom: the work before any scoring, in bulk.

What depends on a game's cell alone is asked once a cell; the rest are the loops of `projections.loops`, compiled for
long histories.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from ledger.events import Ruleset
from ledger.games import STATUSES
from projections import compiling, loops
from projections.facts import LABELS, NONE, SAME, Cell, Column, Facts
from projections.inputs import Games, bulk_columns
from projections.periods import local_time, month_start
from projections.rulesets import Version, band_range, in_force
from projections.scope import league_starts, needs_a_look, why_cell_out_of_scope, why_not_scored

ACCOUNTS = ("premium", "free")
SUBSTITUTIONS = ("both", "leaver", "substitute", "none")

Values = tuple[str, ...]


class Selected(NamedTuple):
    """Games with their counted participants: those of game g are `slot[offset[g]:offset[g + 1]]`, sorted by id."""

    row: Column
    version: Column
    offset: Column
    slot: Column


class Shared(NamedTuple):
    """The games of all ladders, one ladder behind the other, as `loops.gather` leaves them.

    `compiled` says whether there are so many that all this is numpy's, and worth compiled replays.
    """

    ladders: list[Values]
    ladder_from: Column
    row: Column
    version: Column
    size: Column
    offset: Column
    slot: Column
    number: Column
    slot_from: Column
    names: Column
    names_from: Column
    compiled: bool


class _Arrays(NamedTuple):
    """How the loops run: as they stand over arrays, or compiled over numpy's."""

    compiled: bool

    def run(self, loop: Callable[..., Any], *arguments: Any) -> Any:
        if not self.compiled:
            return loop(*arguments)
        seen = [argument if isinstance(argument, int) else compiling.as_numpy(argument) for argument in arguments]
        return compiling.compiled(loop)(*seen)


def rows_in_order(facts: Facts, as_of: int | None = None, since: int | None = None) -> Column:
    """The rows of the games between two instants, in replay order: by time, then by first position."""
    if compiling.pays(len(facts.occurred_at)):
        import numpy as np

        times = compiling.as_numpy(facts.occurred_at)
        in_order = bool((times[1:] >= times[:-1]).all())
        rows = np.arange(len(times)) if in_order else np.argsort(times, kind="stable")
        if as_of is not None or since is not None:
            ordered = times[rows]
            low = 0 if since is None else int(np.searchsorted(ordered, since, "left"))
            high = len(rows) if as_of is None else int(np.searchsorted(ordered, as_of, "right"))
            rows = rows[low:high]
        return compiling.as_column(rows.astype(np.int64, copy=False))
    some = range(len(facts.occurred_at))
    inside = [
        row for row in some
        if (as_of is None or facts.occurred_at[row] <= as_of) and (since is None or facts.occurred_at[row] >= since)
    ]  # fmt: skip
    # rows stand in the order of their first positions, and sorting is stable
    return array("q", sorted(inside, key=facts.occurred_at.__getitem__))


def select(facts: Facts, versions: Sequence[Version], rows: Column, ladders: Callable[[Cell], bool]) -> Selected:
    """The games of a ruleset among `rows`, of those cells that are on some ladder. Raises `RuleFailure`."""
    admitted = _admitted(facts, versions, ladders)
    if not any(admitted) or not len(rows):
        return Selected(array("q"), array("h"), array("q", [0]), array("i"))
    arrays = _Arrays(compiling.pays(len(rows)))
    since, version_since = timeline(versions)
    frozen = versions[0].ruleset.freeze != "none"
    starts = league_starts(facts, versions) if frozen else {}
    slots = sum(facts.count) if len(rows) < 1_000 else len(facts.player)
    room = [
        compiling.zeros("q", len(rows)), compiling.zeros("h", len(rows)), compiling.zeros("q", len(rows) + 1),
        compiling.zeros("i" if len(facts.player) < 2**31 else "q", slots),
    ]  # fmt: skip
    games = arrays.run(
        loops.select, _live(facts, rows), facts.cell, facts.occurred_at, facts.start, facts.count, facts.player,
        facts.person, facts.status, facts.replaced, facts.ranks(), int(facts.renamed),
        array("q", since), array("h", version_since),
        array("q", [starts.get(cell.league, SAME) for cell in facts.cells]), int(frozen),
        admitted, len(facts.cells),
        array("q", [_bits(STATUSES, version.ruleset.scope.exclude_status) for version in versions]),
        array("q", [SUBSTITUTIONS.index(version.params.substitution) for version in versions]),
        array("q", [version.rule.counted_min for version in versions]),
        array("q", [_bits(ACCOUNTS, version.ruleset.scope.exclude_accounts) for version in versions]),
        *_accounts(facts, versions), *room,
    )  # fmt: skip
    row, version, offset, slot = (memoryview(column) for column in room)
    found = Selected(row[:games], version[:games], offset[: games + 1], slot[: offset[games]])
    return _scorable(facts, versions, found)


def _live(facts: Facts, rows: Column) -> Column:
    """The rows without those of voided games."""
    if not facts.voided:
        return rows
    if compiling.pays(len(rows)):
        import numpy as np

        live = np.ones(len(facts.cell), dtype=bool)
        live[list(facts.voided)] = False
        seen = compiling.as_numpy(rows)
        return compiling.as_column(seen[live[seen]])
    return array("q", [row for row in rows if row not in facts.voided])


def _admitted(facts: Facts, versions: Sequence[Version], ladders: Callable[[Cell], bool]) -> Column:
    """For every version and cell whether its games are in scope and on a ladder."""
    slugs = {facts.text_numbers.get(name) for version in versions for name in version.ruleset.scope.game}
    asked = [cell.game in slugs and ladders(cell) for cell in facts.cells]
    return array("b", [
        on_a_ladder and why_cell_out_of_scope(facts, cell, version.ruleset) is None
        for version in versions
        for cell, on_a_ladder in zip(facts.cells, asked, strict=True)
    ])  # fmt: skip


def _bits(names: Sequence[str], excluded: Sequence[str]) -> int:
    return sum(1 << names.index(name) for name in set(excluded))


def _accounts(facts: Facts, versions: Sequence[Version]) -> tuple[Column, Column, Column]:
    """Where every person's accounts begin among all, from when each is his, and which it is."""
    first, since, code = array("q", [0]), array("q"), array("q")
    if not any(version.ruleset.scope.exclude_accounts for version in versions):
        return first, since, code
    for person in range(len(facts.person)):
        for entry in sorted(facts.accounts.get(person, ())):
            since.append(entry.occurred_at)
            code.append(ACCOUNTS.index(entry.account))
        first.append(len(since))
    return first, since, code


def timeline(versions: Sequence[Version]) -> tuple[list[int], list[int]]:
    """Instants in order, and the index of the version in force from each on; NONE before the first."""
    instants = sorted({version.effective_from for version in versions if version.effective_from is not None})
    chosen = [in_force(versions, instant) for instant in instants]
    indices = {id(version): index for index, version in enumerate(versions)}
    return [-(2**63), *instants], [NONE, *(indices[id(version)] for version in chosen)]


def _scorable(facts: Facts, versions: Sequence[Version], found: Selected) -> Selected:
    """The games without those that their rule cannot score. Raises `RuleFailure`."""
    looked_at = [needs_a_look(version) for version in versions]
    if not any(looked_at):
        return found
    alike = _alike(facts, versions, found)
    known: dict[Any, bool] = {}
    gone: list[int] = []
    for game, key in enumerate(alike):
        if not looked_at[found.version[game]]:
            continue
        out = known.get(key) if key is not None else None
        if out is None:
            participants = found.slot[found.offset[game] : found.offset[game + 1]]
            reason = why_not_scored(facts, found.row[game], versions[found.version[game]], participants)
            out = known[key] = reason is not None
        if out:
            gone.append(game)
    return _without(found, gone) if gone else found


def _alike(facts: Facts, versions: Sequence[Version], found: Selected) -> Iterable[Any]:
    """A key for every game, the same for games of which a rule's check says the same; None where nothing is known."""
    seasonal = any(getattr(version.params, "season_months", []) for version in versions)
    if seasonal or len({version.rule.columns for version in versions}) > 1 or not compiling.pays(len(found.row)):
        return [None] * len(found.row)
    import numpy as np

    offset = compiling.as_numpy(found.offset)
    games = Games(found.row, compiling.as_column(np.diff(offset)), found.slot)
    read = np.ascontiguousarray(bulk_columns(facts, versions[0].rule.columns, games).T)
    width, raw = read.itemsize * len(versions[0].rule.columns), read.tobytes()
    ends = (offset * width).tolist()
    return ((version, raw[first:last]) for version, (first, last) in zip(found.version, pairwise(ends), strict=True))


def _without(found: Selected, gone: list[int]) -> Selected:
    row, version, offset, slot = array("q"), array("h"), array("q", [0]), array(memoryview(found.slot).format)
    for first, last in pairwise([-1, *gone, len(found.row)]):
        row.extend(found.row[first + 1 : last])
        version.extend(found.version[first + 1 : last])
        shift = len(slot) - found.offset[first + 1]
        offset.extend(found.offset[game + 1] + shift for game in range(first + 1, last))
        slot.extend(found.slot[found.offset[first + 1] : found.offset[last]])
    return Selected(row, version, offset, slot)


# -- which ladders


def cell_values(facts: Facts, cell: Cell, ruleset: Ruleset) -> list[Values]:
    """The values of a partition that a cell's games have, a choice for each member; an empty one where time decides."""
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


def by_time(ruleset: Ruleset) -> bool:
    """Whether the ladders of a ruleset are those of months or years."""
    return any(part in ("month", "year") for part in ruleset.partition.by)


def share(facts: Facts, ruleset: Ruleset, found: Selected, only: Values | None) -> Shared:
    """The selected games on the ladders of their partition, or on the one with the values `only`."""
    arrays = _Arrays(compiling.pays(len(found.row)))
    keys, ladders = _keys(facts, ruleset, found, only)
    names = sorted({values for key in ladders for values in key})
    if len(names) == 1 and all(ladders):
        placed = _on_one_ladder(found)
    else:
        number = {values: index for index, values in enumerate(names)}
        placed = _on_ladders(arrays, found, keys, [[number[values] for values in key] for key in ladders], len(names))
    zeros, slots = compiling.zeros, len(placed["slot"])
    numbered = {
        "number": zeros("i", slots), "names": zeros("i", min(slots, len(facts.person) * len(names))),
        "names_from": zeros("q", len(names) + 1),
    }  # fmt: skip
    arrays.run(
        loops.number_players, placed["slot"], placed["slot_from"], facts.player, facts.person,
        array("i", [loops.NOWHERE]) * len(facts.person), *numbered.values(),
    )  # fmt: skip
    columns = {name: memoryview(column) for name, column in (placed | numbered).items()}
    return Shared(names, **columns, compiled=arrays.compiled)


def _on_one_ladder(found: Selected) -> dict[str, Column]:
    """The selected games as they stand, where one ladder has them all: long histories are not copied."""
    sizes = compiling.differences(found.offset)
    games, slots = (array("q", [0, len(column)]) for column in (found.row, found.slot))
    return {"ladder_from": games, **found._asdict(), "size": sizes, "slot_from": slots}


def _on_ladders(
    arrays: _Arrays, found: Selected, keys: Column, ladders: Sequence[Sequence[int]], count: int
) -> dict[str, Column]:
    """The selected games by ladder, given the ladders, by number, of every key."""
    key_from, key_ladders = array("q", [0]), array("q")
    for key in ladders:
        key_ladders.extend(key)
        key_from.append(len(key_ladders))
    widest = max((len(key) for key in ladders), default=0)
    ladder_from, ladder_games = array("q", [0]) * (count + 1), compiling.zeros("q", len(found.row) * widest)
    total = arrays.run(loops.spread, keys, key_from, key_ladders, ladder_from, ladder_games)
    zeros = compiling.zeros
    room = {
        "row": zeros("q", total), "version": zeros("h", total), "size": zeros("i", total),
        "offset": zeros("q", total + count),
        "slot": zeros(memoryview(found.slot).format, len(found.slot) * widest), "slot_from": zeros("q", count + 1),
    }  # fmt: skip
    arrays.run(loops.gather, ladder_from, ladder_games, *found, *room.values())
    room["slot"] = memoryview(room["slot"])[: room["slot_from"][count]]
    return {"ladder_from": ladder_from, **room}


def _keys(facts: Facts, ruleset: Ruleset, found: Selected, only: Values | None) -> tuple[Column, list[list[Values]]]:
    """A key for every selected game, and for every key the ladders that its games are on.

    The key stands for the game's cell, and its month where time decides.
    """
    periods = _periods(facts, ruleset, found) if by_time(ruleset) else [(-(2**63), "")]
    if compiling.pays(len(found.row)):
        keys, distinct = _bulk_keys(facts, found, periods)
    else:
        starts = [start for start, _ in periods]
        numbers: dict[int, int] = {}
        keys = array("q")
        for row in found.row:
            key = facts.cell[row] * len(periods) + bisect_right(starts, facts.occurred_at[row]) - 1
            keys.append(numbers.setdefault(key, len(numbers)))
        distinct = list(numbers)
    ladders = []
    for key in distinct:
        cell, period = divmod(key, len(periods))
        every = [
            dated(values, ruleset.partition.by, periods[period][1])
            for values in cell_values(facts, facts.cells[cell], ruleset)
        ]
        ladders.append([values for values in every if only in (None, values)])
    return keys, ladders


def _bulk_keys(facts: Facts, found: Selected, periods: Sequence[tuple[int, str]]) -> tuple[Column, list[int]]:
    """The same for many games: their keys, numbered, and what the numbers stand for."""
    import numpy as np

    rows = compiling.as_numpy(found.row)
    keys = compiling.as_numpy(facts.cell)[rows].astype(np.int64)
    if len(periods) > 1:
        starts = np.array([start for start, _ in periods], dtype=np.int64)
        keys = keys * len(periods) + np.searchsorted(starts, compiling.as_numpy(facts.occurred_at)[rows], "right") - 1
    space = len(facts.cells) * len(periods)
    if space > 1_000_000 + len(keys):
        distinct, numbers = np.unique(keys, return_inverse=True)
    else:
        distinct = np.flatnonzero(np.bincount(keys, minlength=space))
        number = np.zeros(space, dtype=np.int64)
        number[distinct] = np.arange(len(distinct))
        numbers = number[keys]
    return compiling.as_column(np.ascontiguousarray(numbers, dtype=np.int64)), distinct.tolist()


def dated(values: Values, by: Sequence[str], month: str) -> Values:
    """Partition values with the month, or the year, of a game."""
    return tuple(
        month if part == "month" else month[:4] if part == "year" else value
        for part, value in zip(by, values, strict=True)
    )


def _periods(facts: Facts, ruleset: Ruleset, found: Selected) -> list[tuple[int, str]]:
    """The months, as people of the ruleset see them, in which the games were played: when each starts, and its name."""
    if not len(found.row):
        return []
    zone = ruleset.time_zone
    if compiling.pays(len(found.row)):
        times = compiling.as_numpy(facts.occurred_at)[compiling.as_numpy(found.row)]
        low, high = int(times.min()), int(times.max())
    else:
        low, high = (least(facts.occurred_at[row] for row in found.row) for least in (min, max))
    local, last = local_time(low, zone), local_time(high, zone)
    year, month = local.year, local.month
    months = [(-(2**63), f"{year:04d}-{month:02d}")]
    while (year, month) < (last.year, last.month):
        year, month = year + month // 12, month % 12 + 1
        months.append((month_start(year, month, zone), f"{year:04d}-{month:02d}"))
    return months
