"""Encode and read segments: a sealed segment holds a range of the log in one object, and never changes.

    segment-FIRST-LAST-CHAINHASH-FORMAT     events FIRST + 1 to LAST, with the chain hash at LAST

A head segment, `segment-head-DIGEST`, has the games that are not sealed and the new versions of sealed games. Games as
first recorded (in a head segment: as they are now) are in parts of a few thousand games, ordered by cell and then by
position, so that a task that needs some cells reads few other games. All other events are stored as records.
Each segment numbers its players and cells from 0; the object `numbers-...` maps these numbers to the ledger's numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ratings_ledger.projections import arrays
from ratings_ledger.projections.arrays import np
from ratings_ledger.projections.cluster.object_store import Array, OpenedObject, encode_object
from ratings_ledger.projections.contract import NUMBERS
from ratings_ledger.projections.facts.columns import (
    LABELS,
    NONE,
    OPTIONAL,
    ROW_COLUMNS,
    SLOT_COLUMNS,
    Facts,
    find_optional_column,
)
from ratings_ledger.projections.facts.stored_columns import Bytes
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF

# the number of games in a part, and the number of sample times that describe when these games were played
PART_GAMES = 8_192
SAMPLE_TIMES = 8
# the columns of every part: of games, then of participants
ROWS = {"first_position": "i8", "occurred_at": "i8", "count": "i2"}
SLOTS = {"player": "i4", "place": "i2"}
# optional columns with their default value; a part has such a column if any value in it differs from the default
OF_KIND = tuple(sorted({name for columns in COLUMNS_OF.values() for name in columns}))
MORE_SLOTS = {
    "status": ("i1", 0),
    "replaced": ("i1", 0),
    **{name: (f"i{array(code).itemsize}", default) for name, (code, default) in OPTIONAL.items()},
    **dict.fromkeys(OF_KIND, ("i8", 0)),
}
# the format of segments and numbers objects; it increases with each change of their bytes
FORMAT = "7"


class PartColumn(NamedTuple):
    """A column of a part.

    name:    the name of the column
    code:    the numpy type of its values
    table:   `rows` for a value per game, `slots` for a value per participant
    default: a part lacks the column if all values equal this number, or those in the column of this name; None for a
             column that every part has
    """

    name: str
    code: str
    table: str
    default: int | str | None


PART_COLUMNS = (
    *(PartColumn(name, code, "rows", None) for name, code in ROWS.items()),
    PartColumn("live_position", "i8", "rows", "first_position"),
    *(PartColumn(name, code, "slots", None) for name, code in SLOTS.items()),
    *(PartColumn(name, code, "slots", default) for name, (code, default) in MORE_SLOTS.items()),
)
Label = str | None
# a cell as segments write it: its labels as texts, its seats and its flags
NamedCell = tuple[Label, Label, Label, Label, Label, Label, int, int]


class SegmentName(NamedTuple):
    """The name of a segment of the events at `first` < position <= `last`, with the chain hash at `last`."""

    first: int
    last: int
    chain_hash: str
    format: str

    def __str__(self) -> str:
        return "-".join(["segment", *map(str, self)])


def parse_segment_name(name: str) -> SegmentName | None:
    """Parse the name of a segment; return None for another name."""
    kind, *rest = name.split("-")
    if kind != "segment" or len(rest) != 4 or not (rest[0].isdecimal() and rest[1].isdecimal()):
        return None
    return SegmentName(int(rest[0]), int(rest[1]), *rest[2:])


def name_cells(facts: Facts) -> list[NamedCell]:
    """Return the cells of the facts in the form in which segments store them."""
    texts = [*facts.texts, None]  # NONE is -1, and so selects the last item
    return [(*(texts[number] for number in cell[: len(LABELS)]), cell.seats, cell.flags) for cell in facts.cells]  # type: ignore[misc]


def _cell_sort_key(cell: NamedCell) -> tuple[Any, ...]:
    return tuple((part is not None, part if part is not None else "") for part in cell)


def encode_segment(facts: Facts, about: dict[str, Any]) -> Iterator[Bytes]:
    """Encode a segment: all games of the facts that are not voided, and the records of all other events."""
    named_cells = name_cells(facts)
    sorted_cells = sorted(range(len(named_cells)), key=lambda number: _cell_sort_key(named_cells[number]))
    # the segment's number of each cell of the facts
    cell_rank = np.zeros(len(sorted_cells) + 1, dtype=np.int64)
    cell_rank[sorted_cells] = np.arange(len(sorted_cells))
    is_live = np.ones(len(facts.cell), dtype=bool)
    is_live[list(facts.voided)] = False
    rows = np.flatnonzero(is_live)
    row_cells = cell_rank[arrays.as_numpy(facts.cell)[rows]]
    order = np.argsort(row_cells, kind="stable")
    rows, row_cells = rows[order], row_cells[order]
    columns = _load_columns(facts, rows)
    slot_from = np.concatenate(([0], np.cumsum(columns["count"], dtype=np.int64)))
    bounds = [*range(0, len(rows), PART_GAMES), len(rows)]
    game_slices = [slice(first, last) for first, last in pairwise(bounds)]
    slot_slices = [slice(int(slot_from[games.start]), int(slot_from[games.stop])) for games in game_slices]
    custom = sorted(name for name in columns if name.startswith(NUMBERS))
    clubs = np.unique(columns["club"]).tolist()
    parts = [_encode_part(columns, custom, *slices) for slices in zip(game_slices, slot_slices, strict=True)]
    times = [columns["occurred_at"][games] for games in game_slices]
    encoded_names = [name.encode() for name in facts.players]
    content = {
        **{f"part.{number}": content for number, (_, content, _) in enumerate(parts)},
        "part_says": _to_integers([present for present, _, _ in parts]),
        "part_custom": _to_integers([has for _, _, has_custom in parts for has in has_custom]),
        "custom": custom,
        "clubs": [(number, facts.texts[number]) for number in clubs if number != NONE],
        "part_slots": _to_integers([slots.stop - slots.start for slots in slot_slices]),
        "part_first_at": _to_integers([int(part.min()) for part in times]),
        "part_last_at": _to_integers([int(part.max()) for part in times]),
        "part_moments": _to_integers([_choose_sample_times(part) for part in times]).reshape(-1, SAMPLE_TIMES),
        "cell_from": np.searchsorted(row_cells, np.arange(len(sorted_cells) + 1)).astype(np.int64),
        "cells": [named_cells[number] for number in sorted_cells],
        "names": b"".join(encoded_names),
        "name_from": _to_integers(np.cumsum([0, *map(len, encoded_names)])),
        "others_at": _to_integers([position for position, _ in facts.other_records]),
        "others": [record for _, record in facts.other_records],
    }
    return encode_object(content, {**about, "games": len(rows), "part_games": PART_GAMES})


def _choose_sample_times(times: Array) -> list[int]:
    """Choose sample times that each stand for about the same number of the given times."""
    ordered = np.sort(times)
    return [int(ordered[(2 * number + 1) * len(ordered) // (2 * SAMPLE_TIMES)]) for number in range(SAMPLE_TIMES)]


def _to_integers(values: Any) -> Array:
    return np.asarray(values, dtype=np.int64)


def _load_columns(facts: Facts, rows: Array) -> dict[str, Array]:
    """Return all columns of the games in these rows, including the optional ones."""
    games = facts.select_rows(arrays.as_column(rows))
    columns = {name: getattr(games, name) for name in (*ROW_COLUMNS, *SLOT_COLUMNS)}
    return {name: arrays.as_numpy(column) for name, column in (columns | games.optional | games.of_kind).items()}


def _encode_part(
    columns: dict[str, Array], custom: Sequence[str], games: slice, slots: slice
) -> tuple[int, bytes, list[bool]]:
    """Encode a part.

    Return a bit for each of `PART_COLUMNS` that the part has, its bytes, and whether it has each custom number.
    """
    present, content = 0, []
    for bit, (name, code, table, default) in enumerate(PART_COLUMNS):
        part_slice = games if table == "rows" else slots
        values = columns[name][part_slice]
        defaults = columns[default][part_slice] if isinstance(default, str) else default
        if default is None or (values != defaults).any():
            present |= 1 << bit
            content.append(np.ascontiguousarray(values, dtype=code).tobytes())
    has_custom = [bool((columns[name][slots] != find_optional_column(name).default).any()) for name in custom]
    content += [
        columns[name][slots].astype("i8").tobytes() for name, has in zip(custom, has_custom, strict=True) if has
    ]
    return present, b"".join(content), has_custom


class Games(NamedTuple):
    """Games of a segment, as numpy columns by name: `rows` of the games, and `slots` of their participants in order.

    A column is missing if all its values are the default. `cell` holds the segment's number of each game's cell.
    """

    cell: Array
    rows: dict[str, Array]
    slots: dict[str, Array]


def read_games_of_cells(
    segment: OpenedObject, cell_mask: Array, since: int | None = None, until: int | None = None
) -> Iterator[Games]:
    """Yield the games of the cells in `cell_mask` (one boolean per cell), part by part. Raises `DamagedObject`.

    Only games played from `since` on and before `until` are included.
    """
    cell_from = segment.column("cell_from")
    runs, size = _find_runs(segment, cell_mask), segment.about["part_games"]
    for number in _list_parts(runs, size):
        first_at, last_at = (int(segment.column(f"part_{name}_at")[number]) for name in ("first", "last"))
        if (since is not None and last_at < since) or (until is not None and first_at >= until):
            continue
        low, high = number * size, min((number + 1) * size, int(cell_from[-1]))
        whole = _read_part(segment, number, high - low)
        chosen = np.concatenate([np.arange(first, last) for first, last in _clip_runs(runs, low, high)])
        if (since is not None and first_at < since) or (until is not None and last_at >= until):
            at = whole.rows["occurred_at"][chosen]
            inside = at >= (first_at if since is None else since)
            chosen = chosen[inside if until is None else inside & (at < until)]
        cell = np.searchsorted(cell_from, low + chosen, side="right") - 1
        yield whole._replace(cell=cell) if len(chosen) == high - low else extract_games(whole, chosen, cell)


def list_sample_times(segment: OpenedObject, cell_mask: Array) -> Iterator[tuple[int, float]]:
    """Yield sample times of the cells in `cell_mask`, with the number of games that each stands for."""
    runs, size = _find_runs(segment, cell_mask), segment.about["part_games"]
    sample_times = segment.column("part_moments")
    for number in _list_parts(runs, size):
        games = sum(last - first for first, last in _clip_runs(runs, number * size, (number + 1) * size))
        for sample_time in sample_times[number].tolist():
            yield sample_time, games / SAMPLE_TIMES


def _find_runs(segment: OpenedObject, cell_mask: Array) -> list[tuple[int, int]]:
    """Return the half-open ranges of games that consecutive cells in `cell_mask` have."""
    cell_from = segment.column("cell_from")
    edges = np.flatnonzero(np.diff(np.concatenate(([0], cell_mask.astype(np.int8), [0]))))
    runs = [(int(cell_from[low]), int(cell_from[high])) for low, high in edges.reshape(-1, 2)]
    return [(first, last) for first, last in runs if first < last]


def _clip_runs(runs: list[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Clip ranges to the games from `low` to before `high`, and make them relative to `low`."""
    return [(max(first, low) - low, min(last, high) - low) for first, last in runs if first < high and last > low]


def _list_parts(runs: list[tuple[int, int]], size: int) -> list[int]:
    """Return the indices of the parts (of `size` games) that contain games in these ranges."""
    return sorted({part for first, last in runs for part in range(first // size, (last - 1) // size + 1)})


def _read_part(segment: OpenedObject, number: int, games: int) -> Games:
    content, offset = segment.columns[f"part.{number}"].read_uncached(), 0
    present, slots = (int(segment.column(name)[number]) for name in ("part_says", "part_slots"))
    part: dict[str, dict[str, Array]] = {"rows": {}, "slots": {}}
    for bit, (name, code, table, _) in enumerate(PART_COLUMNS):
        if present >> bit & 1:
            count = games if table == "rows" else slots
            part[table][name] = np.frombuffer(content, dtype=code, count=count, offset=offset)
            offset += count * np.dtype(code).itemsize
    custom = segment.lines("custom")
    has_custom = segment.column("part_custom")[number * len(custom) : (number + 1) * len(custom)]
    for name, has in zip(custom, has_custom.tolist(), strict=True):
        if has:
            part["slots"][name] = np.frombuffer(content, dtype="i8", count=slots, offset=offset)
            offset += 8 * slots
    return Games(np.empty(0, dtype=np.int64), **part)


def extract_games(games: Games, chosen: Array, cell: Array) -> Games:
    """Return the games with these indices; `cell` holds their cells."""
    count = games.rows["count"].astype(np.int64)
    start = np.cumsum(count) - count
    chosen = np.ascontiguousarray(chosen)
    slots = arrays.as_numpy(arrays.span_indices(*map(arrays.as_column, (start[chosen], count[chosen]))))
    return Games(
        cell,
        {name: column[chosen] for name, column in games.rows.items()},
        {name: column[slots] for name, column in games.slots.items()},
    )


def to_numbers_name(segment: str) -> str:
    """Return the name of the numbers object of a segment."""
    return f"numbers{segment.removeprefix('segment')}"


def to_segment_name(name: str) -> str:
    """Return the name of the segment of a numbers object; return any other name unchanged."""
    return f"segment{name.removeprefix('numbers')}" if name.startswith("numbers-") else name


class Numbering:
    """The numbers of a ledger's players and cells, which are assigned segment after segment."""

    def __init__(self, earlier: Iterable[OpenedObject]) -> None:
        self.players: dict[str, int] = {}
        self.cells: dict[NamedCell, int] = {}
        for numbers in earlier:
            self.add_numbers(numbers)

    def add_numbers(self, numbers: OpenedObject) -> None:
        """Add the numbers object of a segment."""
        for name in read_player_names(numbers):
            self.players.setdefault(name, len(self.players))
        for cell in numbers.lines("cells"):
            self.cells.setdefault(tuple(cell), len(self.cells))

    def number_segment(self, segment: OpenedObject) -> Iterator[Bytes]:
        """Number the next segment, and return the bytes of its numbers object."""
        players_before, cells_before = len(self.players), len(self.cells)
        segment_cells = [tuple(cell) for cell in segment.lines("cells")]
        player = [self.players.setdefault(name, len(self.players)) for name in read_player_names(segment)]
        cell = [self.cells.setdefault(named_cell, len(self.cells)) for named_cell in segment_cells]
        new_names = [name.encode() for name in [*self.players][players_before:]]
        columns = {
            "player": np.array(player, dtype=np.int32),
            "cell": np.array(cell, dtype=np.int32),
            "names": b"".join(new_names),
            "cells": [*self.cells][cells_before:],
            "name_from": np.array([0, *accumulate(map(len, new_names))], dtype=np.int64),
        }
        return encode_object(columns, {"name": to_numbers_name(segment.name), "players_before": players_before})


def number_head_segment(segment: OpenedObject, earlier: Sequence[OpenedObject]) -> Iterator[Bytes]:
    """Number the head segment, and return the bytes of its numbers object.

    All its players get new numbers, also those with numbers in earlier segments; readers match players by name.
    `earlier` are the numbers objects of the other segments.
    """
    known_cells: dict[NamedCell, int] = {}
    for numbers in earlier:
        for cell in numbers.lines("cells"):
            known_cells.setdefault(tuple(cell), len(known_cells))
    cells_before, last = len(known_cells), earlier[-1] if earlier else None
    cells = [known_cells.setdefault(tuple(cell), len(known_cells)) for cell in segment.lines("cells")]
    players_before = last.about["players_before"] + len(last.column("name_from")) - 1 if last else 0
    name_starts = segment.column("name_from")
    columns = {
        "player": np.arange(players_before, players_before + len(name_starts) - 1, dtype=np.int32),
        "cell": np.array(cells, dtype=np.int32),
        "names": segment.column("names"),
        "cells": [*known_cells][cells_before:],
        "name_from": name_starts,
    }
    return encode_object(columns, {"players_before": players_before})


def read_player_names(opened: OpenedObject) -> list[str]:
    """Return all player names in a segment or a numbers object."""
    text, starts = opened.column("names").tobytes(), opened.column("name_from").tolist()
    return [text[first:last].decode() for first, last in pairwise(starts)]


def find_names(numbers: Sequence[OpenedObject], player_numbers: Array) -> list[str]:
    """Return the names of the players with these numbers, which must be in ascending order.

    `numbers` are the numbers objects of all segments.
    """
    names: list[str] = []
    first_numbers = [int(part.about["players_before"]) for part in numbers]
    bounds = [*np.searchsorted(player_numbers, first_numbers).tolist(), len(player_numbers)]
    for part, first_number, (low, high) in zip(numbers, first_numbers, pairwise(bounds), strict=True):
        indices = player_numbers[low:high] - first_number
        text, starts = part.column("names"), part.column("name_from")
        ranges: Any = zip(starts[indices].tolist(), starts[indices + 1].tolist(), strict=True)
        # one copy of the whole text is faster than many small copies
        whole = text.tobytes() if len(indices) * 8 > len(starts) else None
        names += [
            (text[first:last].tobytes() if whole is None else whole[first:last]).decode() for first, last in ranges
        ]
    return names
