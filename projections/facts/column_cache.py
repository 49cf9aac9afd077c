"""The cache of decoded columns: the content of the log as mapped files, all of which may be deleted at any time.

    ~/.cache/ratings-ledger/LEDGER-ID-PLACE/meta.json     position, chain hash, and length and CRC-32 of every file
    ~/.cache/ratings-ledger/LEDGER-ID-PLACE/FOLDER/*      one file per column

A copy of a ledger has the same id, and soon a different history. So each place has a cache of its own; only a hash of
the place appears in the path.

A cache is a copy of the log up to its position, and no more: corrections come after the games they change, so the
facts at any earlier position can be read from it, too. It grows by appending to its files and replacing `meta.json`,
which says how much of each file counts: a process that is killed leaves the previous state. A file is never shortened
to less than what may be mapped; a bad one is left to its readers, and the cache is rebuilt in another folder.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import mmap
import os
import re
import secrets
import sys
import time
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection

from ledger.events.game_types import GAME_TYPES
from ledger.events.games import STATUSES
from ledger.new_files import is_own_folder, open_own
from ledger.store.dialect import dialect_of
from ledger.store.log import chain_hash_at, ledger_id
from projections import compiling
from projections.contract import OPTIONAL_COLUMNS, PLAYERS_MAX
from projections.facts.columns import NONE, Base, Cell, Column, Facts, GameChange, row_at
from projections.rulesets.columns import COLUMNS_OF

LOCK_TRIES, LOCK_PAUSE_S = 400, 0.05
CHUNK_BYTES = 1 << 20

ROWS = {"first_position": "q", "occurred_at": "q", "start": "q", "count": "i", "cell": "i", "kind_start": "q"}
SLOTS = {"player": "i", "place": "i", "status": "b", "replaced": "b"}
# such a file may end early: the rest is -1
OPTIONAL = dict.fromkeys(OPTIONAL_COLUMNS, "i")
OF_KIND = {name: "q" for columns in COLUMNS_OF.values() for name in columns}
CHANGES = {"position": "q", "row": "q", "voided": "b", "occurred_at": "q", "start": "q", "size": "i", "cell": "i",
           "kind_start": "q"}  # fmt: skip
TEXTS = ("players", "texts", "cells", "others")  # JSON, one value per line
FILES = {
    **ROWS, **SLOTS, **OPTIONAL, **{f"kind.{name}": code for name, code in OF_KIND.items()},
    **{f"change.{name}": code for name, code in CHANGES.items()}, **dict.fromkeys(TEXTS, "B"),
    "players_at": "q", "others_at": "q",
}  # fmt: skip


def cache_format(files: Mapping[str, str], meaning: int = 2) -> str:
    """Identifies the format of a cache: its files and their types, and a number that grows when a value changes its
    meaning."""
    return f"{meaning}-{zlib.crc32(json.dumps(files, sort_keys=True).encode()):08x}"


FORMAT = cache_format(FILES)

# what `start_anew` calls a folder
_FOLDER = re.compile(r"[0-9a-f]{8}", re.ASCII)
META_BYTES_MAX = 1 << 20

logger = logging.getLogger(__name__)


class Damaged(Exception):
    """A file of the cache is not as it was written."""


class CacheUnusable(Exception):
    """The cache cannot be used now, which says nothing about its content."""


def cache_place() -> Path | None:
    """The folder of all caches; None if the account has no home."""
    if home := os.environ.get("XDG_CACHE_HOME"):
        return Path(home) / "ratings-ledger"
    try:
        return Path.home() / ".cache" / "ratings-ledger"
    except RuntimeError:
        return None


class Cache:
    """The opened cache of one ledger. `position` and `chain_hash` identify the history it holds."""

    def __init__(self, root: Path, ledger: str) -> None:
        self.root = root
        self.ledger = ledger
        self.start_anew()

    def start_anew(self) -> None:
        """Start empty; what is appended next goes into a new folder."""
        self.position, self.chain_hash = 0, bytes(32).hex()
        self.folder = secrets.token_hex(4)
        self.lengths = dict.fromkeys(FILES, 0)
        self.crcs = dict.fromkeys(FILES, 0)

    def read_meta(self) -> None:
        """Load what `meta.json` says; nothing if it is missing or of another format. Raises `Damaged`."""
        self.start_anew()
        try:
            with open_own(self.root / "meta.json", "rb") as file:
                crc, _, body = file.read(META_BYTES_MAX).partition(b"\n")
        except FileNotFoundError:
            return
        except OSError as error:
            raise _why_unread("meta.json", error) from None
        if f"{zlib.crc32(body):08x}".encode() != crc:
            raise Damaged("meta.json is damaged")
        meta = json.loads(body)
        if (meta["format"], meta["order"]) != (FORMAT, sys.byteorder):
            return
        if meta["ledger"] != self.ledger:
            raise Damaged("it belongs to another ledger")
        if wrong := _why_no_meta(meta):
            raise Damaged(f"meta.json has {wrong}")
        self.position, self.chain_hash, self.folder = meta["position"], meta["chain_hash"], meta["folder"]
        self.lengths, self.crcs = meta["lengths"], meta["crcs"]
        if any(self.lengths.values()) and not is_own_folder(self.root / self.folder):
            raise Damaged(f"{self.folder} is not a folder of this account")
        for name, length in self.lengths.items():
            path = self._path(name)
            if length and (not path.exists() or path.lstat().st_size < length):
                raise Damaged(f"{path.name} is too short")

    def _path(self, name: str) -> Path:
        return self.root / self.folder / name

    def _items(self, name: str) -> int:
        return self.lengths[name] // array(FILES[name]).itemsize

    # -- reading

    def _column(self, name: str, items: int | None = None) -> Column:
        """The first items of a column, mapped; writes to them stay in this process. Raises `Damaged`."""
        length = self.lengths[name]
        if not length:
            return array(FILES[name])
        try:
            with open_own(self._path(name), "rb") as file:
                if _crc(file, length) != self.crcs[name]:
                    raise Damaged(f"{name} is damaged")
                pages = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY)
        except OSError as error:
            raise _why_unread(name, error) from None
        kind: Any = FILES[name]
        return memoryview(pages).cast(kind)[:items]

    def _lines(self, name: str, count: int | None = None) -> list[Any]:
        """The first values of a file of JSON lines. Raises `Damaged`."""
        found: list[Any] = json.loads(b"[" + b",".join(self._raw(name)[:count]) + b"]")
        return found

    def _raw(self, name: str) -> list[bytes]:
        return bytes(self._column(name)).split(b"\n")[:-1]

    def _tables(self, facts: Facts, players: int | None = None) -> None:
        facts.players = self._lines("players", players)
        facts.texts = self._lines("texts")
        facts.cells = [Cell(*cell) for cell in self._lines("cells")]
        facts.player_numbers = dict(zip(facts.players, range(len(facts.players)), strict=True))
        facts.text_numbers = dict(zip(facts.texts, range(len(facts.texts)), strict=True))
        facts.cell_numbers = dict(zip(facts.cells, range(len(facts.cells)), strict=True))
        facts.person = array("i", range(len(facts.players)))

    def facts(self, position: int) -> Facts:
        """The facts up to a position; their `others` and `changes` are still to be applied.

        Raises `Damaged`, also for wrong numbers under a right checksum; `CacheUnusable`.
        """
        try:
            facts = self._facts(position)
            _look_at(facts)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Damaged(f"it holds something other than columns: {error}") from None
        return facts

    def _facts(self, position: int) -> Facts:
        facts = Facts(position, b"", mapped=True)
        names = [*ROWS, *SLOTS, *OPTIONAL, *(f"kind.{name}" for name in OF_KIND)]
        with ThreadPoolExecutor() as threads:  # each reads and checks a file
            of_name = dict(zip(names, threads.map(self._column, names), strict=True))
        rows = bisect_right(of_name["first_position"], position)
        facts.live_position = self._column("first_position", rows)  # mapped again, as corrections change it
        for name in ROWS:
            setattr(facts, name, of_name[name][:rows])
        for name in SLOTS:
            setattr(facts, name, of_name[name])
        facts.optional = {name: of_name[name] for name in OPTIONAL}
        facts.of_kind = {name: of_name[f"kind.{name}"] for name in OF_KIND}
        self._tables(facts, bisect_right(self._column("players_at"), position))
        at = self._column("others_at")
        known = bisect_right(at, position)
        facts.others = list(zip(at[:known], self._lines("others", known), strict=True))
        changes = [self._column(f"change.{name}") for name in CHANGES]
        known = bisect_right(changes[0], position)
        facts.changes = [
            GameChange(change[0], change[1], bool(change[2]), *change[3:])
            for change in zip(*(column[:known] for column in changes), strict=True)
        ]
        return facts

    def row_of(self, first_position: int) -> int:
        """The row of the game first recorded at a position; NONE if there is none that counts."""
        return row_at(self._column("first_position"), first_position)

    # -- growing

    def delta(self) -> Facts:
        """Facts to take in what was recorded after the cache. Raises `Damaged`."""
        facts = Facts(self.position, bytes.fromhex(self.chain_hash))
        facts.base = Base(
            self._items("first_position"),
            self._items("player"),
            {name: self._items(f"kind.{name}") for name in OF_KIND},
        )
        self._tables(facts)
        facts.players_at = array("q", bytes(8 * len(facts.players)))
        return facts

    def append(self, delta: Facts) -> bool:
        """Store what a delta took in; returns whether that worked. The lock is held."""
        known = {name: self._items(name) for name in ("players_at", "others_at")}
        lines = {name: len(self._raw(name)) for name in ("texts", "cells")}
        told = {
            "players": "".join(f"{json.dumps(name)}\n" for name in delta.players[known["players_at"] :]),
            "texts": "".join(f"{json.dumps(text)}\n" for text in delta.texts[lines["texts"] :]),
            "cells": "".join(f"{json.dumps(cell)}\n" for cell in delta.cells[lines["cells"] :]),
            "others": "".join(f"{json.dumps(record)}\n" for _, record in delta.others),
        }
        grown: dict[str, Any] = {
            **{name: getattr(delta, name) for name in (*ROWS, *SLOTS)},
            **{f"kind.{name}": delta.of_kind[name] for name in OF_KIND},
            **{
                f"change.{name}": array(code, [getattr(change, name) for change in delta.changes])
                for name, code in CHANGES.items()
            },
            **{name: text.encode() for name, text in told.items()},
            "players_at": delta.players_at[known["players_at"] :],
            "others_at": array("q", [position for position, _ in delta.others]),
        }
        assert delta.base is not None
        for name in OPTIONAL:
            column = delta.optional[name]
            if column.count(NONE) < len(column):
                grown[name] = array("i", [NONE]) * (delta.base.slots - self._items(name)) + column
        try:
            self._write(grown)
            self.position, self.chain_hash = delta.position, delta.chain_hash.hex()
            self._write_meta()
        except OSError as error:
            logger.warning("ratings: the cache in %s cannot be written: %s", self.root, error.strerror)
            return False
        return True

    def _write(self, grown: dict[str, Any]) -> None:
        (self.root / self.folder).mkdir(mode=0o700, exist_ok=True)
        for name, column in grown.items():
            data = memoryview(column).cast("B")
            if not data:
                continue
            with open_own(self._path(name), "ab") as file:
                # anything past the length that counts was written by a process that was killed
                file.truncate(self.lengths[name])
                file.write(data)
            self.lengths[name] += len(data)
            self.crcs[name] = zlib.crc32(data, self.crcs[name])

    def _write_meta(self) -> None:
        body = json.dumps(
            {"format": FORMAT, "order": sys.byteorder, "ledger": self.ledger, "position": self.position,
             "chain_hash": self.chain_hash, "folder": self.folder, "lengths": self.lengths, "crcs": self.crcs}
        ).encode()  # fmt: skip
        new = self.root / "meta.json.new"
        with open_own(new, "wb") as file:
            file.write(f"{zlib.crc32(body):08x}\n".encode() + body)
        new.replace(self.root / "meta.json")
        for other in self.root.iterdir():
            if _FOLDER.fullmatch(other.name) and other.name != self.folder and is_own_folder(other):
                _delete(other)

    def discard(self, why: str) -> None:
        """Drop everything, and say why."""
        logger.warning("ratings: the cache in %s is rebuilt: %s", self.root, why)
        self.start_anew()


def _why_unread(name: str, error: OSError) -> Exception:
    """What it means when a file cannot be opened or read."""
    damaged = error.errno in (errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.EPERM, errno.EIO, errno.ENXIO)
    return (Damaged if damaged else CacheUnusable)(f"{name} cannot be read: {error.strerror}")


def _look_at(facts: Facts) -> None:
    """Raises `Damaged` unless every number refers to something that exists: loops do not check again."""
    _look_at_texts(facts)
    rows, slots = len(facts.first_position), len(facts.player)
    changed = [change for change in facts.changes if change.start != NONE]
    starts = [facts.start, array("q", [change.start for change in changed])]
    counts = [facts.count, array("q", [change.size for change in changed])]
    cells = [facts.cell, array("q", [change.cell for change in changed])]
    kinds = [facts.kind_start, array("q", [change.kind_start for change in changed])]
    sound = (
        all(len(getattr(facts, name)) == rows for name in ROWS)
        and all(len(getattr(facts, name)) == slots for name in SLOTS)
        and all(_within(column, 0, len(facts.cells)) for column in cells)
        and all(_within(column, 0, slots + 1) for column in starts)
        and all(_within(column, 0, PLAYERS_MAX + 1) for column in counts)
        and all(_within(_ends(*span), 0, slots + 1) for span in zip(starts, counts, strict=True))
        and _within(array("q", [change.row for change in facts.changes]), 0, rows)
        and _within(facts.status, 0, len(STATUSES))
        and _within(facts.replaced, 0, 2)
    )
    if not sound:
        raise Damaged("a number leads nowhere")
    used = max((int(max(_ends(*span), default=0)) for span in zip(starts, counts, strict=True)), default=0)
    if not _within(facts.player[:used], 0, len(facts.players)):
        raise Damaged("a participant is nobody")
    for kind, names in ((kind, names) for kind, names in COLUMNS_OF.items() if names):
        lengths = {len(facts.of_kind[name]) for name in names}
        own = array("b", [facts.texts[cell.kind] == kind for cell in facts.cells])
        ends = [_ends_of(own, *columns) for columns in zip(cells, kinds, counts, strict=True)]
        if len(lengths) > 1 or not all(_within(column, 0, min(lengths) + 1) for column in ends):
            raise Damaged(f"a game of type {kind} has no numbers")


def _look_at_texts(facts: Facts) -> None:
    """Raises `Damaged` for names that are not text, and cells that no game can have."""
    if not all(isinstance(text, str) for text in (*facts.players, *facts.texts)):
        raise Damaged("a name is not text")
    for cell in facts.cells:
        if not all(isinstance(number, int) for number in cell):
            raise Damaged("a cell holds something other than numbers")
        if not all(NONE <= number < len(facts.texts) for number in cell[:6]) or not 0 <= cell.seats <= PLAYERS_MAX:
            raise Damaged("a cell names a text that is not there")
        if NONE in (cell.game, cell.kind) or facts.texts[cell.kind] not in GAME_TYPES:
            raise Damaged("a cell has no known game type")


def _within(column: Column, low: int, high: int) -> bool:
    """Whether all numbers of a column are at least `low` and below `high`."""
    if not len(column):
        return True
    if compiling.available():
        seen = compiling.as_numpy(column)
        return bool(low <= seen.min() and seen.max() < high)
    return bool(low <= min(column) and max(column) < high)


def _ends(start: Column, count: Column) -> Column:
    """Where spans end."""
    if compiling.available() and len(start):
        return compiling.as_column(compiling.as_numpy(start) + compiling.as_numpy(count))
    return array("q", [first + size for first, size in zip(start, count, strict=True)])


def _ends_of(own: Column, cell: Column, start: Column, count: Column) -> Column:
    """Where the spans end, for the games whose cells are `own`."""
    if compiling.available() and len(start) and len(own):
        mine = compiling.as_numpy(own).astype(bool)[compiling.as_numpy(cell)]
        first = compiling.as_numpy(start)[mine]
        return compiling.as_column((first + compiling.as_numpy(count)[mine]) * (first >= 0) - (first < 0))
    spans = zip(cell, start, count, strict=True)
    return array("q", [first + size if first >= 0 else -1 for at, first, size in spans if own[at]])


def _delete(folder: Path) -> None:
    """Delete a folder of columns: the files such a folder has, by name, and nothing else."""
    with suppress(OSError):
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _why_no_meta(meta: dict[str, Any]) -> str | None:
    """What is wrong with the types, names and ranges in meta.json, or None."""
    numbers = {"position": meta["position"], **meta["lengths"], **meta["crcs"]}
    if wrong := [name for name, value in numbers.items() if not isinstance(value, int) or not 0 <= value < 2**63]:
        return f"no number for {wrong[0]}"
    if {*meta["lengths"]} != {*FILES} or {*meta["crcs"]} != {*FILES}:
        return "different files from those expected"
    if odd := [name for name, length in meta["lengths"].items() if length % array(FILES[name]).itemsize]:
        return f"a length of {odd[0]} that does not fit whole numbers"
    if not (isinstance(meta["folder"], str) and _FOLDER.fullmatch(meta["folder"])):
        return "no name for its folder"
    if not (isinstance(meta["chain_hash"], str) and re.fullmatch(r"[0-9a-f]{64}", meta["chain_hash"], re.ASCII)):
        return "no chain hash"
    return None


def _crc(file: IO[bytes], length: int) -> int:
    """The CRC-32 of a file's first bytes, read rather than mapped: pages that are not used stay out of memory."""
    crc, buffer = 0, bytearray(min(length, CHUNK_BYTES))
    while length:
        view = memoryview(buffer)[: min(length, CHUNK_BYTES)]
        got = file.readinto(view)  # type: ignore[attr-defined]
        if not got:
            raise Damaged(f"{Path(file.name).name} is too short")
        crc, length = zlib.crc32(view[:got], crc), length - got
    return crc


def folder_of(connection: Connection) -> str:
    """The name of a ledger's cache: its id, which is a UUID, and a hash of where it is."""
    where = json.dumps(dialect_of(connection).place(connection)).encode()
    return f"{ledger_id(connection)}-{hashlib.sha256(where).hexdigest()[:16]}"


def found(connection: Connection, newest: int, locked: bool = False) -> Cache | None:
    """The cache of a ledger, empty if it does not match the log; None if none can be kept.

    The holder of the lock is told why one is not used, since they rebuild it.
    """
    ledger, root = ledger_id(connection), cache_place()
    if root is None:
        return None
    cache, why = Cache(root / folder_of(connection), ledger), ""
    try:
        cache.read_meta()
    except (Damaged, ValueError, LookupError, TypeError, AttributeError) as problem:
        why = str(problem)
    except CacheUnusable as problem:
        logger.warning("ratings: the cache in %s is not used: %s", cache.root, problem)
        return None
    if cache.position > newest:
        why = f"it is at position {cache.position}, the log ends at {newest}"
    elif cache.position and chain_hash_at(connection, cache.position) != bytes.fromhex(cache.chain_hash):
        why = "it comes from another history"
    if why and locked:
        cache.discard(why)
    elif why:
        cache.start_anew()
    return cache


@contextmanager
def growing(root: Path) -> Iterator[bool]:
    """Hold the lock of a cache; yields whether it could be obtained."""
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
