"""The cache of decoded columns: the decoded log in segments, which are files of columns.

    ~/.cache/ratings-ledger/LEDGER-ID-LOCATION/columns/FIRST-LAST-CHAINHASH-FORMAT     decoded events FIRST+1 to LAST

A copy of a ledger has the same id, and soon a different history. Each location therefore has its own cache; the path
contains only a hash of the location.

The segments follow each other from the first event on, and hold the log up to a position. Corrections are
stored apart from the games that they change, so the facts at any earlier position can be read. New events become a
segment, which is merged with earlier ones that are not much longer. A process can go on reading files that a merge
deletes. The lock only keeps two processes from doing the same work.
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
from ratings_ledger.ledger.own_files import cache_folder, is_own_folder, open_own, refuse_other_accounts
from ratings_ledger.ledger.store.dialect import dialect_of
from ratings_ledger.ledger.store.log import chain_hash_at, ledger_id
from ratings_ledger.projections import arrays
from ratings_ledger.projections.contract import NUMBERS, PLAYERS_MAX
from ratings_ledger.projections.facts.column_files import (
    ColumnFile,
    Damaged,
    Unreadable,
    about_file,
    delete_file,
    encode_columns,
    encode_lines,
    files_in,
    open_file,
    prune_files,
    write_file,
)
from ratings_ledger.projections.facts.columns import (
    NONE,
    OPTIONAL,
    ROW_COLUMNS,
    SLOT_COLUMNS,
    TOO_FINE,
    Base,
    Cell,
    Column,
    Facts,
    GameChange,
    find_optional_column,
    find_row_at,
)
from ratings_ledger.projections.facts.stored_columns import ANY, LayeredColumn, check_all, pieces
from ratings_ledger.projections.rulesets.columns import COLUMNS_OF

LOCK_TRIES, LOCK_PAUSE_S = 400, 0.05
# A segment is merged with all later ones if it is at most MERGE_RATIO times as long as these together; with more than
# SEGMENTS_MAX segments, if it is no longer than they are.
MERGE_RATIO, SEGMENTS_MAX = 8, 16
ROWS = {"first_position": "q", "occurred_at": "q", "start": "q", "count": "i", "cell": "i", "kind_start": "q"}
SLOTS = {"player": "i", "place": "i", "status": "b", "replaced": "b"}
OF_KIND = {name: "q" for columns in COLUMNS_OF.values() for name in columns}
CHANGES = {
    "position": "q",
    "row": "q",
    "voided": "b",
    "occurred_at": "q",
    "start": "q",
    "size": "i",
    "cell": "i",
    "kind_start": "q",
}
TEXTS = ("players", "texts", "cells", "others")  # JSON, one value per line
FILES = {
    **ROWS,
    **SLOTS,
    **{name: column.code for name, column in OPTIONAL.items()},
    **{f"kind.{name}": code for name, code in OF_KIND.items()},
    **{f"change.{name}": code for name, code in CHANGES.items()},
    **dict.fromkeys(TEXTS, "B"),
    "players_at": "q",
    "others_at": "q",
}
# The number of the file format. Files with another number belong to another version of the program.
FORMAT = "6"
# A segment also has a column for each custom number of its games.
_CUSTOM = re.compile(re.escape(NUMBERS) + NUMBER_NAME)
logger = logging.getLogger(__name__)


class Cache:
    """The open cache of one ledger: its longest run of consecutive valid segments."""

    def __init__(self, root: Path, ledger: str) -> None:
        self.root, self.folder = root, root / "columns"
        self.ledger = ledger
        self.segments: list[ColumnFile] = []
        self._values: dict[tuple[str, str], list[Any]] = {}  # parsed JSON lines, by segment and column

    @property
    def position(self) -> int:
        """Return the last position of the segments."""
        return _span(self.segments[-1])[1] if self.segments else 0

    def open_next(self, name: str) -> bool:
        """Open the next segment. Return whether it exists. Raises `Damaged`, `Unreadable`."""
        segment = open_file(self.folder / name)
        if segment is not None:
            if not _are_expected(segment.codes):
                raise Damaged(f"{name} has unexpected columns", self.folder / name)
            if (segment.about.get("ledger"), segment.about.get("after")) != (self.ledger, self._dictionary_hash()):
                raise Damaged(f"{name} does not continue the segment before it", self.folder / name)
            self.segments.append(segment)
        return segment is not None

    def _dictionary_hash(self) -> str:
        """Return the hash of the numbered texts and the ends of columns that the next segment builds on."""
        return str(self.segments[-1].about.get("numbered")) if self.segments else ""

    def _count_items(self, name: str) -> int:
        return sum(len(segment.columns[name]) for segment in self.segments if name in segment.columns)

    def _list_optional(self) -> list[str]:
        """Return the names of the columns that may end early."""
        custom = {name for segment in self.segments for name in segment.columns if name not in FILES}
        return [*OPTIONAL, *sorted(custom)]

    # -- reading

    def _column(self, name: str, items: int | None = None, limits: tuple[int, int] = ANY) -> LayeredColumn:
        """Return the first items of a column, whose numbers are within limits. Raises `ValueError` for fewer."""
        available = self._count_items(name)
        if items is not None and not 0 <= items <= available:
            raise ValueError(f"{name} has {available} numbers; {items} are expected")
        parts = [segment.columns[name] for segment in self.segments if name in segment.columns]
        return LayeredColumn([part.within(*limits) for part in parts], items)

    def _lines(self, name: str, count: int | None = None) -> list[Any]:
        """Return the first values of a file of JSON lines. Raises `Damaged`."""
        values = list[Any]()
        for segment in self.segments:
            if (segment.name, name) not in self._values:
                self._values[segment.name, name] = segment.lines(name)
            values += self._values[segment.name, name]
        return values[:count]

    def _fill_dictionaries(self, facts: Facts, players: int | None = None) -> None:
        facts.players = self._lines("players", players)
        facts.texts = self._lines("texts")
        facts.cells = [Cell(*cell) for cell in self._lines("cells")]
        facts.player_numbers = dict(zip(facts.players, range(len(facts.players)), strict=True))
        facts.text_numbers = dict(zip(facts.texts, range(len(facts.texts)), strict=True))
        facts.cell_numbers = dict(zip(facts.cells, range(len(facts.cells)), strict=True))
        facts.person = array("i", range(len(facts.players)))

    def facts(self, position: int) -> Facts:
        """Return the facts up to a position above 0. The caller applies their `others` and `changes`.

        Columns are checked when they are read. Raises `Damaged`.
        """
        with self._translate_errors():
            facts = self._facts(position)
            check_texts(facts)
            check_changes(facts)
        return facts

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Damaged(f"it contains something other than columns: {error}", self.folder) from None

    def _facts(self, position: int) -> Facts:
        facts = Facts(position, b"", unchecked=check)
        player_count = self._count_items("players_at")
        known_players = bisect_right(self._column("players_at"), position)
        self._fill_dictionaries(facts, known_players)
        if len(facts.players) < known_players:
            raise ValueError("names are missing")
        facts.players_at = self._column("players_at", known_players)
        others_at = self._column("others_at")
        other_count = bisect_right(others_at, position)
        facts.others = list(zip(others_at[:other_count], self._lines("others", other_count), strict=True))
        changes = [self._column(f"change.{name}") for name in CHANGES]
        change_count = bisect_right(changes[0], position)
        facts.changes = [
            GameChange(change[0], change[1], bool(change[2]), *change[3:])
            for change in zip(*(column[:change_count] for column in changes), strict=True)
        ]
        rows = bisect_right(self._column("first_position"), position)
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
        for name in ROWS:
            setattr(facts, name, self._column(name, rows, limits.get(name, ANY)))
        facts.live_position = copy(facts.first_position)
        # participants are in the order of the events that name them
        slots = max(
            [facts.start[row] + facts.count[row] for row in range(max(rows - 1, 0), rows)]
            + [change.start + change.size for change in facts.changes],
            default=0,
        )
        for name in SLOTS:
            setattr(facts, name, self._column(name, slots, limits.get(name, ANY)))
        facts.optional = {
            name: self._column(name, min(slots, self._count_items(name)), limits.get(name, ANY))
            for name in self._list_optional()
        }
        facts.of_kind = {name: self._column(f"kind.{name}") for name in OF_KIND}
        return facts

    def row_of(self, first_position: int) -> int:
        """Return the row of the game first recorded at a position; NONE if there is no such game."""
        return find_row_at(self._column("first_position"), first_position)

    # -- growing

    def delta(self) -> Facts:
        """Return facts to which the events after the cache can be applied. Raises `Damaged`."""
        facts = Facts(self.position, b"")
        with self._translate_errors():
            self._fill_dictionaries(facts)
        facts.base = Base(
            self._count_items("first_position"),
            self._count_items("player"),
            len(facts.players),
            len(facts.texts),
            len(facts.cells),
            {name: self._count_items(f"kind.{name}") for name in OF_KIND},
        )
        facts.players_at = array("q", bytes(8 * len(facts.players)))
        return facts

    def append(self, delta: Facts) -> bool:
        """Write a delta as a segment. Return whether that worked. Raises `Damaged`, `Unreadable`."""
        base = delta.base
        assert base is not None
        lines = {
            "players": encode_lines(delta.players[base.players :]),
            "texts": encode_lines(delta.texts[base.texts :]),
            "cells": encode_lines(delta.cells[base.cells :]),
            "others": encode_lines(record for _, record in delta.others),
        }
        new_columns: dict[str, Column] = {
            **{name: getattr(delta, name) for name in (*ROWS, *SLOTS)},
            **{f"kind.{name}": delta.of_kind[name] for name in OF_KIND},
            **{
                f"change.{name}": array(code, [getattr(change, name) for change in delta.changes])
                for name, code in CHANGES.items()
            },
            **lines,
            "players_at": delta.players_at[base.players :],
            "others_at": array("q", [position for position, _ in delta.others]),
        }
        for name, column in delta.optional.items():
            code, usual = find_optional_column(name)
            is_used = column.count(usual) < len(column)
            new_columns[name] = (
                array(code, [usual]) * (base.slots - self._count_items(name)) + column if is_used else array(code)
            )
        dictionaries = hashlib.sha256(self._dictionary_hash().encode())
        for name in TEXTS:
            dictionaries.update(f"{name} {len(lines[name])} ".encode() + lines[name])
        for name in sorted(delta.optional):
            # the next segment starts where this column ends
            dictionaries.update(f"{name} {self._count_items(name) + len(new_columns[name])} ".encode())
        written = self._write(
            len(self.segments),
            _name_suffix(delta.position, delta.chain_hash),
            {name: [column] for name, column in new_columns.items()},
            dictionaries.hexdigest(),
        )
        if len(self.segments) >= SEGMENTS_MAX:
            self.merge(1)
        return written

    def merge(self, ratio: int) -> None:
        """Merge the first segment that is at most `ratio` times as long as all later ones with those.

        Raises `Damaged`, `Unreadable`.
        """
        for number, segment in enumerate(self.segments[:-1]):
            first, last = _span(segment)
            if last - first <= ratio * (self.position - last):
                old = self.segments[number:]
                names = {name for segment in old for name in segment.columns}
                columns = {
                    name: [segment.columns[name] for segment in old if name in segment.columns] for name in names
                }
                self._write(number, old[-1].name.partition("-")[2], columns, self._dictionary_hash())
                return

    def _write(self, number: int, suffix: str, columns: Mapping[str, Iterable[Column]], dictionaries: str) -> bool:
        """Replace the segments from a number on by one. Return whether that worked."""
        old = self.segments[number:]
        del self.segments[number:]
        name = f"{self.position}-{suffix}"
        about = {"name": name, "ledger": self.ledger, "after": self._dictionary_hash(), "numbered": dictionaries}
        custom = {name: find_optional_column(name).code for name in sorted(columns.keys() - FILES.keys())}
        parts = {column: (code, columns[column]) for column, code in (FILES | custom).items()}
        try:
            prune_files(self.folder, FORMAT)
            write_file(self.folder / name, encode_columns(parts, about))
            if self.open_next(name):
                for segment in old:
                    delete_file(self.folder / segment.name)
                return True
        except OSError as error:
            logger.warning("ratings: the cache in %s cannot be written: %s", self.root, error.strerror)
        self.segments += old
        return False


def _are_expected(codes: Mapping[str, str]) -> bool:
    """Tell whether a segment has the usual columns, and otherwise only custom numbers."""
    custom = {name: code for name, code in codes.items() if name not in FILES}
    return codes == FILES | custom and all(
        _CUSTOM.fullmatch(name) and code == find_optional_column(name).code for name, code in custom.items()
    )


def _span(segment: ColumnFile) -> tuple[int, int]:
    first, last, *_ = segment.name.split("-")
    return int(first), int(last)


def _name_suffix(last: int, chain_hash: bytes | None) -> str:
    """Return the name of a segment without its first position."""
    return f"{last}-{(chain_hash or b'').hex()}-{FORMAT}"


def folder_of(connection: Connection) -> str:
    """Return the name of a ledger's cache: its id, which is a UUID, and a hash of its location."""
    location = json.dumps(dialect_of(connection).identify_database(connection)).encode()
    return f"{ledger_id(connection)}-{hashlib.sha256(location).hexdigest()[:16]}"


def refuse_shared_cache(connection: Connection) -> None:
    """Raise `StoreUnavailable` if accounts other than this one have any right in the cache of a ledger."""
    if (folder := cache_folder()) is not None:
        refuse_other_accounts(Path(folder) / folder_of(connection))


def find_cache(connection: Connection, newest: int, locked: bool = False) -> Cache | None:
    """Return the part of a ledger's cache that matches the log; None if the ledger has no cache, or it is unreadable.

    With `locked`, segments that do not match are deleted with a message, because the caller rebuilds them.
    """
    ledger, folder = ledger_id(connection), cache_folder()
    if folder is None or connection.get_execution_options().get("in_memory"):
        return None
    cache = Cache(Path(folder) / folder_of(connection), ledger)
    longest_first = sorted(files_in(cache.folder, f"-{FORMAT}"), reverse=True)
    names = {path.name: last for last, path in longest_first}
    suffixes = {last: _name_suffix(last, chain_hash_at(connection, last)) for last in names.values()}
    try:
        while following := [name for name, last in names.items() if name == f"{cache.position}-{suffixes[last]}"]:
            del names[following[0]]
            try:
                cache.open_next(following[0])
            except Damaged as problem:
                if locked:
                    problem.discard()
    except Unreadable as problem:
        logger.warning("ratings: the cache in %s is not used: %s", cache.root, problem)
        return None
    if locked:
        _delete_unused(cache, newest, suffixes)
    return cache


def _delete_unused(cache: Cache, newest: int, suffixes: Mapping[int, str]) -> None:
    """Delete the segments that are not in the cache, and log why if they belong to another log."""
    used, why = {segment.name for segment in cache.segments}, ""
    for last, path in [*files_in(cache.folder, f"-{FORMAT}")]:
        if path.name in used:
            continue
        if about_file(path).get("ledger", cache.ledger) != cache.ledger:
            why = "it belongs to another ledger"
        elif last > newest:
            why = f"it is at position {last}, the log ends at {newest}"
        elif path.name.partition("-")[2] != suffixes.get(last):
            why = "it was built from another history"
        delete_file(path)
    if why:
        logger.warning("ratings: the cache in %s is rebuilt: %s", cache.root, why)


@contextmanager
def lock_cache(root: Path) -> Iterator[bool]:
    """Hold the lock of a cache. Yields whether it could be obtained."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = open_own(root / "lock", "ab") if is_own_folder(root) else None
    except OSError:
        lock = None
    if lock is None:
        yield False
        return
    with lock:
        yield _locked(lock)


def _locked(lock: IO[bytes]) -> bool:
    for _ in range(LOCK_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(LOCK_PAUSE_S)
    return False


def check(facts: Facts) -> None:
    """Raise `Damaged` if a number in the columns is not a valid index.

    `check_changes` covers the changes by later events. Columns are checked piece by piece, without a copy.
    """
    rows = [getattr(facts, name) for name in ROW_COLUMNS]
    slots = [getattr(facts, name) for name in SLOT_COLUMNS]
    check_all([*rows, *slots, *facts.optional.values(), *facts.of_kind.values()])
    if len({*map(len, rows)}) > 1 or len({*map(len, slots)}) > 1:
        raise _index_error(facts)
    spans = [*zip(*map(pieces, (facts.start, facts.count)), strict=True)]
    used = max((arrays.largest(_ends(*span)) for span in spans), default=0)
    if used > len(facts.player):
        raise _index_error(facts)
    for piece in pieces(facts.player):
        if not arrays.is_within(piece[: max(used, 0)], 0, len(facts.players)):
            raise _index_error(facts)
        used -= len(piece)
    for kind, names in ((kind, names) for kind, names in COLUMNS_OF.items() if names):
        is_kind = array("b", [facts.texts[cell.kind] == kind for cell in facts.cells])
        if any(is_kind):
            lengths = {len(facts.of_kind[name]) for name in names}
            spans = [*zip(*map(pieces, (facts.cell, facts.kind_start, facts.count)), strict=True)]
            last = max((arrays.largest(_ends_of_kind(is_kind, *span)) for span in spans), default=0)
            if len(lengths) > 1 or last > min(lengths):
                raise _index_error(facts)


def _index_error(facts: Facts) -> Exception:
    problem: Exception = facts.start.damaged("has an index out of range")
    return problem


def check_changes(facts: Facts) -> None:
    """Raise `ValueError` if a change to a game has an index out of range."""
    slots, changed = len(facts.player), [change for change in facts.changes if change.start != NONE]
    if not (
        arrays.is_within(array("q", [change.row for change in facts.changes]), 0, len(facts.first_position))
        and arrays.is_within(array("q", [change.start for change in changed]), 0, slots + 1)
        and arrays.is_within(array("q", [change.size for change in changed]), 0, PLAYERS_MAX + 1)
        and arrays.is_within(array("q", [change.start + change.size for change in changed]), 0, slots + 1)
        and arrays.is_within(array("q", [change.cell for change in changed]), 0, len(facts.cells))
    ):
        raise ValueError("a correction has an index out of range")


def check_texts(facts: Facts) -> None:
    """Raise `ValueError` for names that are not text, and for impossible cells."""
    if not {*map(type, facts.players), *map(type, facts.texts)} <= {str}:
        raise ValueError("a name is not text")
    for cell in facts.cells:
        if not all(isinstance(number, int) for number in cell):
            raise ValueError("a cell contains something other than numbers")
        if not all(NONE <= number < len(facts.texts) for number in cell[:6]) or not 0 <= cell.seats <= PLAYERS_MAX:
            raise ValueError("a cell names a missing text")
        if NONE in (cell.game, cell.kind) or facts.texts[cell.kind] not in GAME_TYPES:
            raise ValueError("a cell has no known game type")


def _ends(start: Column, count: Column) -> Column:
    """Return where spans end."""
    return arrays.as_column(arrays.as_numpy(start) + arrays.as_numpy(count))


def _ends_of_kind(is_kind: Column, cell: Column, start: Column, count: Column) -> Column:
    """Return where the spans end, for the games of a kind."""
    selected = arrays.as_numpy(is_kind).astype(bool)[arrays.as_numpy(cell)]
    first = arrays.as_numpy(start)[selected]
    return arrays.as_column((first + arrays.as_numpy(count)[selected]) * (first >= 0) - (first < 0))
