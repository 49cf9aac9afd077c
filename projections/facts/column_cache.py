"""Cache the decoded log in segments, which are files of columns.

Each segment holds the decoded events after the position AFTER, up to LAST:

    ~/.cache/ratings-ledger/LEDGER-ID-LOCATION/columns/AFTER-LAST-CHAINHASH-FORMAT

A copy of a ledger keeps the id, but its history soon diverges. Each location therefore has its own cache. LOCATION is a
hash of the location.

The segments cover the log from the first event up to a position without gaps. Corrections are stored separately from
the games that they change, so the facts at any earlier position can be read. New events form a new segment. The last
segments are then merged, so that few remain; see `Cache.merge`. A process can continue to read files that a merge
deletes. The lock only prevents two processes from doing the same work.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import re
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection

from ratings_ledger.ledger.events.fields import NUMBER_NAME
from ratings_ledger.ledger.events.game_types import GAME_TYPES
from ratings_ledger.ledger.events.games import STATUSES
from ratings_ledger.ledger.own_files import find_cache_folder, is_own_folder, open_own, refuse_other_accounts
from ratings_ledger.ledger.store.dialect import dialect_of
from ratings_ledger.ledger.store.log import ledger_id, read_chain_hash
from ratings_ledger.projections import arrays
from ratings_ledger.projections.contract import NUMBERS, PLAYERS_MAX
from ratings_ledger.projections.facts.column_files import (
    ColumnFile,
    DamagedFile,
    UnreadableFile,
    delete_file,
    encode_columns,
    encode_lines,
    list_files,
    open_file,
    prune_files,
    read_about,
    write_file,
)
from ratings_ledger.projections.facts.columns import (
    NONE,
    OPTIONAL,
    ROW_COLUMNS,
    SLOT_COLUMNS,
    TOO_FINE,
    CacheSizes,
    Cell,
    Column,
    Facts,
    GameChange,
    find_optional_column,
    find_row_at,
)
from ratings_ledger.projections.facts.stored_columns import ANY, LayeredColumn, check_all, list_pieces
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF

LOCK_TRIES, LOCK_PAUSE_S = 400, 0.05
# the ratio for `Cache.merge` once the cache covers the log; while the cache grows, it merges with the ratio 1 whenever
# it has SEGMENTS_MAX segments
MERGE_RATIO, SEGMENTS_MAX = 8, 16
ROW_CODES = {"first_position": "q", "occurred_at": "q", "start": "q", "count": "i", "cell": "i", "kind_start": "q"}
SLOT_CODES = {"player": "i", "place": "i", "status": "b", "replaced": "b"}
KIND_CODES = {name: "q" for columns in COLUMNS_OF.values() for name in columns}
CHANGE_CODES = {
    "position": "q",
    "row": "q",
    "voided": "b",
    "occurred_at": "q",
    "start": "q",
    "size": "i",
    "cell": "i",
    "kind_start": "q",
}
# columns of JSON, one value per line; "others" has invalid records, and those of types outside `GAME_EVENTS`
TEXT_COLUMNS = ("players", "texts", "cells", "others")
COLUMN_CODES = {
    **ROW_CODES,
    **SLOT_CODES,
    **{name: column.code for name, column in OPTIONAL.items()},
    **{f"kind.{name}": code for name, code in KIND_CODES.items()},
    **{f"change.{name}": code for name, code in CHANGE_CODES.items()},
    **dict.fromkeys(TEXT_COLUMNS, "B"),
    "players_at": "q",
    "others_at": "q",
}
# the number of the file format; files with another number belong to another version of the program
FORMAT = "6"
# a segment also has a column for each custom number of its games
_CUSTOM = re.compile(re.escape(NUMBERS) + NUMBER_NAME)
logger = logging.getLogger(__name__)


class Cache:
    """The open cache of a ledger: consecutive valid segments from the first event on."""

    def __init__(self, root: Path, ledger: str) -> None:
        self.root, self.folder = root, root / "columns"
        self.ledger = ledger
        self.segments: list[ColumnFile] = []
        self._values: dict[tuple[str, str], list[Any]] = {}  # parsed JSON lines, by segment and column

    @property
    def position(self) -> int:
        """Return the last position that the segments cover."""
        return _parse_positions(self.segments[-1])[1] if self.segments else 0

    def open_next(self, name: str) -> bool:
        """Open the next segment. Return whether it exists. Raises `DamagedFile`, `UnreadableFile`."""
        segment = open_file(self.folder / name)
        if segment is not None:
            if not _has_expected_columns(segment.codes):
                raise DamagedFile(f"{name} has unexpected columns", self.folder / name)
            if (segment.about.get("ledger"), segment.about.get("after")) != (self.ledger, self._digest_dictionaries()):
                raise DamagedFile(f"{name} does not continue the previous segment", self.folder / name)
            self.segments.append(segment)
        return segment is not None

    def _digest_dictionaries(self) -> str:
        """Return the digest of the texts and column lengths on which the next segment depends."""
        return str(self.segments[-1].about.get("numbered")) if self.segments else ""

    def _count_items(self, name: str) -> int:
        return sum(len(segment.columns[name]) for segment in self.segments if name in segment.columns)

    def _list_optional(self) -> list[str]:
        """Return the names of the optional columns, including columns of custom numbers."""
        custom = {name for segment in self.segments for name in segment.columns if name not in COLUMN_CODES}
        return [*OPTIONAL, *sorted(custom)]

    # -- reading

    def _read_column(self, name: str, items: int | None = None, limits: tuple[int, int] = ANY) -> LayeredColumn:
        """Return the first `items` numbers of a column; each is checked when read: limits[0] <= number < limits[1].

        Raises `ValueError` if the column is shorter.
        """
        available = self._count_items(name)
        if items is not None and not 0 <= items <= available:
            raise ValueError(f"{name} has {available} numbers instead of {items}")
        parts = [segment.columns[name] for segment in self.segments if name in segment.columns]
        return LayeredColumn([part.limit_to(*limits) for part in parts], items)

    def _read_lines(self, name: str, count: int | None = None) -> list[Any]:
        """Return the first `count` values of a column of JSON lines. Raises `DamagedFile`."""
        values = list[Any]()
        for segment in self.segments:
            if (segment.name, name) not in self._values:
                self._values[segment.name, name] = segment.lines(name)
            values += self._values[segment.name, name]
        return values[:count]

    def _fill_dictionaries(self, facts: Facts, players: int | None = None) -> None:
        facts.players = self._read_lines("players", players)
        facts.texts = self._read_lines("texts")
        facts.cells = [Cell(*cell) for cell in self._read_lines("cells")]
        facts.player_numbers = dict(zip(facts.players, range(len(facts.players)), strict=True))
        facts.text_numbers = dict(zip(facts.texts, range(len(facts.texts)), strict=True))
        facts.cell_numbers = dict(zip(facts.cells, range(len(facts.cells)), strict=True))
        facts.person = array("i", range(len(facts.players)))

    def read_facts(self, position: int) -> Facts:
        """Return the facts up to a position above 0. The caller must apply their `other_records` and `changes`.

        Columns are checked when they are read. Raises `DamagedFile`.
        """
        with self._translate_errors():
            facts = self._map_facts(position)
            check_texts(facts)
            check_changes(facts)
        return facts

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise DamagedFile(f"its columns are invalid: {error}", self.folder) from None

    def _map_facts(self, position: int) -> Facts:
        facts = Facts(position, b"", pending_check=check_columns)
        player_count = self._count_items("players_at")
        known_players = bisect_right(self._read_column("players_at"), position)
        self._fill_dictionaries(facts, known_players)
        if len(facts.players) < known_players:
            raise ValueError("players are missing")
        facts.players_at = self._read_column("players_at", known_players)
        others_at = self._read_column("others_at")
        other_count = bisect_right(others_at, position)
        facts.other_records = list(zip(others_at[:other_count], self._read_lines("others", other_count), strict=True))
        changes = [self._read_column(f"change.{name}") for name in CHANGE_CODES]
        change_count = bisect_right(changes[0], position)
        facts.changes = [
            GameChange(change[0], change[1], bool(change[2]), *change[3:])
            for change in zip(*(column[:change_count] for column in changes), strict=True)
        ]
        row_count = bisect_right(self._read_column("first_position"), position)
        limits = {
            "start": (0, self._count_items("player") + 1),
            "count": (0, PLAYERS_MAX + 1),
            "cell": (0, len(facts.cells)),
            "player": (0, player_count),
            "status": (0, len(STATUSES)),
            "replaced": (0, 2),
            "team": (NONE, PLAYERS_MAX),
            "club": (NONE, len(facts.texts)),
            "home": (-1, 2),
            "score_decimals": (0, TOO_FINE + 1),
        }
        for name in ROW_CODES:
            setattr(facts, name, self._read_column(name, row_count, limits.get(name, ANY)))
        facts.live_position = copy(facts.first_position)
        # participants are in the order of events, so the last game or change has the last slot
        slot_count = max(
            [facts.start[row] + facts.count[row] for row in range(max(row_count - 1, 0), row_count)]
            + [change.start + change.size for change in facts.changes],
            default=0,
        )
        for name in SLOT_CODES:
            setattr(facts, name, self._read_column(name, slot_count, limits.get(name, ANY)))
        facts.optional = {
            name: self._read_column(name, min(slot_count, self._count_items(name)), limits.get(name, ANY))
            for name in self._list_optional()
        }
        facts.of_kind = {name: self._read_column(f"kind.{name}") for name in KIND_CODES}
        return facts

    def row_of(self, first_position: int) -> int:
        """Return the row of the game first recorded at a position; NONE without such a game."""
        return find_row_at(self._read_column("first_position"), first_position)

    # -- growing

    def start_delta(self) -> Facts:
        """Return facts without games, to which the events after the cache can be applied. Raises `DamagedFile`."""
        facts = Facts(self.position, b"")
        with self._translate_errors():
            self._fill_dictionaries(facts)
        facts.base = CacheSizes(
            rows=self._count_items("first_position"),
            slots=self._count_items("player"),
            players=len(facts.players),
            texts=len(facts.texts),
            cells=len(facts.cells),
            of_kind={name: self._count_items(f"kind.{name}") for name in KIND_CODES},
        )
        facts.players_at = array("q", bytes(8 * len(facts.players)))
        return facts

    def append(self, delta: Facts) -> bool:
        """Write a delta as a new segment. Return whether it was written. Raises `DamagedFile`, `UnreadableFile`."""
        base = delta.base
        assert base is not None
        lines = {
            "players": encode_lines(delta.players[base.players :]),
            "texts": encode_lines(delta.texts[base.texts :]),
            "cells": encode_lines(delta.cells[base.cells :]),
            "others": encode_lines(record for _, record in delta.other_records),
        }
        new_columns: dict[str, Column] = {
            **{name: getattr(delta, name) for name in (*ROW_CODES, *SLOT_CODES)},
            **{f"kind.{name}": delta.of_kind[name] for name in KIND_CODES},
            **{
                f"change.{name}": array(code, [getattr(change, name) for change in delta.changes])
                for name, code in CHANGE_CODES.items()
            },
            **lines,
            "players_at": delta.players_at[base.players :],
            "others_at": array("q", [position for position, _ in delta.other_records]),
        }
        for name, column in delta.optional.items():
            code, default = find_optional_column(name)
            is_used = column.count(default) < len(column)
            new_columns[name] = (
                array(code, [default]) * (base.slots - self._count_items(name)) + column if is_used else array(code)
            )
        dictionary_digest = hashlib.sha256(self._digest_dictionaries().encode())
        for name in TEXT_COLUMNS:
            dictionary_digest.update(f"{name} {len(lines[name])} ".encode() + lines[name])
        for name in sorted(delta.optional):
            # the next segment depends on the length of each optional column
            dictionary_digest.update(f"{name} {self._count_items(name) + len(new_columns[name])} ".encode())
        is_written = self._replace_segments(
            len(self.segments),
            _make_name_suffix(delta.position, delta.chain_hash),
            {name: [column] for name, column in new_columns.items()},
            dictionary_digest.hexdigest(),
        )
        if len(self.segments) >= SEGMENTS_MAX:
            self.merge(1)
        return is_written

    def merge(self, ratio: int) -> None:
        """Find the first segment that is at most `ratio` times as long as all later ones together; merge it with them.

        Raises `DamagedFile`, `UnreadableFile`.
        """
        for index, segment in enumerate(self.segments[:-1]):
            after, last = _parse_positions(segment)
            if last - after <= ratio * (self.position - last):
                merged = self.segments[index:]
                names = {name for segment in merged for name in segment.columns}
                columns = {
                    name: [segment.columns[name] for segment in merged if name in segment.columns] for name in names
                }
                self._replace_segments(index, merged[-1].name.partition("-")[2], columns, self._digest_dictionaries())
                return

    def _replace_segments(
        self, index: int, suffix: str, columns: Mapping[str, Iterable[Column]], dictionary_digest: str
    ) -> bool:
        """Replace the segments from an index on by a new segment. Return whether it was written."""
        replaced = self.segments[index:]
        del self.segments[index:]
        new_name = f"{self.position}-{suffix}"
        about = {"name": new_name, "ledger": self.ledger, "after": self._digest_dictionaries()}
        # the next segment has this digest as its "after"; AFTER in the name of a file is a position
        about["numbered"] = dictionary_digest
        custom = {name: find_optional_column(name).code for name in sorted(columns.keys() - COLUMN_CODES.keys())}
        column_parts = {name: (code, columns[name]) for name, code in (COLUMN_CODES | custom).items()}
        try:
            prune_files(self.folder, FORMAT)
            write_file(self.folder / new_name, encode_columns(column_parts, about))
            if self.open_next(new_name):
                for segment in replaced:
                    delete_file(self.folder / segment.name)
                return True
        except OSError as error:
            logger.warning("ratings: cannot write to the cache in %s: %s", self.root, error.strerror)
        self.segments += replaced
        return False


def _has_expected_columns(codes: Mapping[str, str]) -> bool:
    """Tell whether a segment has all standard columns and, apart from these, only columns of custom numbers."""
    custom = {name: code for name, code in codes.items() if name not in COLUMN_CODES}
    return codes == COLUMN_CODES | custom and all(
        _CUSTOM.fullmatch(name) and code == find_optional_column(name).code for name, code in custom.items()
    )


def _parse_positions(segment: ColumnFile) -> tuple[int, int]:
    """Return the position before the first event of a segment, and the position of its last event."""
    after, last, *_ = segment.name.split("-")
    return int(after), int(last)


def _make_name_suffix(last: int, chain_hash: bytes | None) -> str:
    """Return the file name of a segment without AFTER, its first part."""
    return f"{last}-{(chain_hash or b'').hex()}-{FORMAT}"


def name_cache_folder(connection: Connection) -> str:
    """Return the name of a ledger's cache folder: the ledger's id (a UUID) and a hash of its location."""
    location = json.dumps(dialect_of(connection).identify_database(connection)).encode()
    return f"{ledger_id(connection)}-{hashlib.sha256(location).hexdigest()[:16]}"


def refuse_shared_cache(connection: Connection) -> None:
    """Raise `StoreUnavailable` if other accounts have any rights in the cache of a ledger."""
    if (folder := find_cache_folder()) is not None:
        refuse_other_accounts(Path(folder) / name_cache_folder(connection))


def find_cache(connection: Connection, head_position: int, locked: bool = False) -> Cache | None:
    """Return the part of a ledger's cache that matches the log; None if it can have none, or a file cannot be read.

    Args:
        head_position: the last position of the log
        locked: whether the caller holds the lock; then delete segments that do not match, which the caller rebuilds
    """
    ledger, folder = ledger_id(connection), find_cache_folder()
    if folder is None or connection.get_execution_options().get("in_memory"):
        return None
    cache = Cache(Path(folder) / name_cache_folder(connection), ledger)
    longest_first = sorted(list_files(cache.folder, f"-{FORMAT}"), reverse=True)
    last_by_name = {path.name: last for last, path in longest_first}
    suffixes = {last: _make_name_suffix(last, read_chain_hash(connection, last)) for last in last_by_name.values()}
    try:
        while next_names := [
            name for name, last in last_by_name.items() if name == f"{cache.position}-{suffixes[last]}"
        ]:
            del last_by_name[next_names[0]]
            try:
                cache.open_next(next_names[0])
            except DamagedFile as error:
                if locked:
                    error.discard()
    except UnreadableFile as error:
        logger.warning("ratings: the cache in %s is not used: %s", cache.root, error)
        return None
    if locked:
        _delete_unused(cache, head_position, suffixes)
    return cache


def _delete_unused(cache: Cache, head_position: int, suffixes: Mapping[int, str]) -> None:
    """Delete the segments that are not part of the cache.

    Write a warning with the reason if they were built from another ledger or another history.
    """
    used, reason = {segment.name for segment in cache.segments}, ""
    for last, path in [*list_files(cache.folder, f"-{FORMAT}")]:
        if path.name in used:
            continue
        if read_about(path).get("ledger", cache.ledger) != cache.ledger:
            reason = "it belongs to another ledger"
        elif last > head_position:
            reason = f"it is at position {last}, but the log ends at {head_position}"
        elif path.name.partition("-")[2] != suffixes.get(last):
            reason = "it was built from another history"
        delete_file(path)
    if reason:
        logger.warning("ratings: the cache in %s is rebuilt: %s", cache.root, reason)


@contextmanager
def lock_cache(root: Path) -> Iterator[bool]:
    """Hold the lock of a cache within the context. Yield whether the lock was obtained."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock_file = open_own(root / "lock", "ab") if is_own_folder(root) else None
    except OSError:
        lock_file = None
    if lock_file is None:
        yield False
        return
    with lock_file:
        yield _try_lock(lock_file)


def _try_lock(lock_file: IO[bytes]) -> bool:
    for _ in range(LOCK_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(LOCK_PAUSE_S)
    return False


def check_columns(facts: Facts) -> None:
    """Raise `DamagedFile` if a column is damaged, or a number in it is not a valid index.

    Later changes are checked by `check_changes`. Columns are checked piece by piece, without copying them.
    """
    rows = [getattr(facts, name) for name in ROW_COLUMNS]
    slots = [getattr(facts, name) for name in SLOT_COLUMNS]
    check_all([*rows, *slots, *facts.optional.values(), *facts.of_kind.values()])
    if len({*map(len, rows)}) > 1 or len({*map(len, slots)}) > 1:
        raise _make_index_error(facts)
    spans = [*zip(*map(list_pieces, (facts.start, facts.count)), strict=True)]
    slot_count = max((arrays.largest(_find_ends(*span)) for span in spans), default=0)
    if slot_count > len(facts.player):
        raise _make_index_error(facts)
    for piece in list_pieces(facts.player):
        if not arrays.is_within(piece[: max(slot_count, 0)], 0, len(facts.players)):
            raise _make_index_error(facts)
        slot_count -= len(piece)
    for game_type, names in ((game_type, names) for game_type, names in COLUMNS_OF.items() if names):
        is_of_type = array("b", [facts.texts[cell.kind] == game_type for cell in facts.cells])
        if any(is_of_type):
            lengths = {len(facts.of_kind[name]) for name in names}
            spans = [*zip(*map(list_pieces, (facts.cell, facts.kind_start, facts.count)), strict=True)]
            end = max((arrays.largest(_find_ends_of_kind(is_of_type, *span)) for span in spans), default=0)
            if len(lengths) > 1 or end > min(lengths):
                raise _make_index_error(facts)


def _make_index_error(facts: Facts) -> Exception:
    problem: Exception = facts.start.make_damage_error("has an index out of range")
    return problem


def check_changes(facts: Facts) -> None:
    """Raise `ValueError` if a change of a game has an index out of range."""
    slot_count, corrections = len(facts.player), [change for change in facts.changes if change.start != NONE]
    if not (
        arrays.is_within(array("q", [change.row for change in facts.changes]), 0, len(facts.first_position))
        and arrays.is_within(array("q", [change.start for change in corrections]), 0, slot_count + 1)
        and arrays.is_within(array("q", [change.size for change in corrections]), 0, PLAYERS_MAX + 1)
        and arrays.is_within(array("q", [change.start + change.size for change in corrections]), 0, slot_count + 1)
        and arrays.is_within(array("q", [change.cell for change in corrections]), 0, len(facts.cells))
    ):
        raise ValueError("a change of a game has an index out of range")


def check_texts(facts: Facts) -> None:
    """Raise `ValueError` for names that are not strings and for impossible cells."""
    if not {*map(type, facts.players), *map(type, facts.texts)} <= {str}:
        raise ValueError("a name is not a string")
    for cell in facts.cells:
        if not all(isinstance(number, int) for number in cell):
            raise ValueError("a cell contains a value that is not a number")
        if not all(NONE <= number < len(facts.texts) for number in cell[:6]) or not 0 <= cell.seats <= PLAYERS_MAX:
            raise ValueError("a cell refers to a text that does not exist, or has an impossible number of seats")
        if NONE in (cell.game, cell.kind) or facts.texts[cell.kind] not in GAME_TYPES:
            raise ValueError("a cell has no game, or an unknown game type")


def _find_ends(start: Column, count: Column) -> Column:
    """Return the ends of spans, given their starts and lengths."""
    return arrays.as_column(arrays.as_numpy(start) + arrays.as_numpy(count))


def _find_ends_of_kind(is_of_type: Column, cell: Column, start: Column, count: Column) -> Column:
    """Return the ends of the spans of the games of a game type; -1 for a negative start."""
    selected = arrays.as_numpy(is_of_type).astype(bool)[arrays.as_numpy(cell)]
    starts = arrays.as_numpy(start)[selected]
    return arrays.as_column((starts + arrays.as_numpy(count)[selected]) * (starts >= 0) - (starts < 0))
