"""The cache of decoded columns: what the log says, as files that are mapped, beside nothing that cannot be deleted.

    ~/.cache/ratings-ledger/LEDGER-ID/meta.json     position, chain hash, and length and CRC-32 of every file
    ~/.cache/ratings-ledger/LEDGER-ID/FOLDER/*      one file a column

A cache is a copy of the log up to its position, and no more: corrections stand behind the games that they change, so
the facts at any earlier position come out of it, too. It grows by appending to its files and replacing `meta.json`,
which names how much of each file counts: whoever is killed leaves what was there before. A file is never shortened to
less than what may be mapped; one that turns out wrong is left to those who read it, and made anew in another folder.
"""

from __future__ import annotations

import fcntl
import json
import logging
import mmap
import os
import secrets
import shutil
import sys
import time
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection

from ledger.kinds import KINDS
from ledger.store import chain_hash_at, ledger_id
from projections.contract import OPTIONAL_COLUMNS
from projections.facts import NONE, Base, Cell, Change, Column, Facts

FORMAT = 1
LOCK_TRIES, LOCK_PAUSE_S = 400, 0.05
CHUNK_BYTES = 1 << 20

ROWS = {"first_position": "q", "occurred_at": "q", "start": "q", "count": "i", "cell": "i", "kind_start": "q"}
SLOTS = {"player": "i", "place": "i", "status": "b", "replaced": "b"}
# such a file may end early: the rest is all -1
OPTIONAL = dict.fromkeys(OPTIONAL_COLUMNS, "i")
OF_KIND = {name: "q" for kind in KINDS.values() for name in kind.columns}
CHANGES = {"position": "q", "row": "q", "voided": "b", "occurred_at": "q", "start": "q", "size": "i", "cell": "i",
           "kind_start": "q"}  # fmt: skip
TEXTS = ("players", "texts", "cells", "others")  # JSON, one value a line
FILES = {
    **ROWS, **SLOTS, **OPTIONAL, **{f"kind.{name}": code for name, code in OF_KIND.items()},
    **{f"change.{name}": code for name, code in CHANGES.items()}, **dict.fromkeys(TEXTS, "B"),
    "players_at": "q", "others_at": "q",
}  # fmt: skip

logger = logging.getLogger(__name__)


class Damaged(Exception):
    """A file of the cache is not as it was written."""


def place() -> Path | None:
    """The folder of all caches; None where the account has no home."""
    if home := os.environ.get("XDG_CACHE_HOME"):
        return Path(home) / "ratings-ledger"
    try:
        return Path.home() / ".cache" / "ratings-ledger"
    except RuntimeError:
        return None


class Cache:
    """The cache of one ledger, opened. `position` and `chain_hash` name the history that it holds."""

    def __init__(self, root: Path, ledger: str) -> None:
        self.root = root
        self.ledger = ledger
        self.start_anew()

    def start_anew(self) -> None:
        """Hold nothing; what is appended next goes into a new folder."""
        self.position, self.chain_hash = 0, bytes(32).hex()
        self.folder = secrets.token_hex(4)
        self.lengths = dict.fromkeys(FILES, 0)
        self.crcs = dict.fromkeys(FILES, 0)

    def read_meta(self) -> None:
        """Hold what `meta.json` says, nothing if there is none or it is of another format. Raises `Damaged`."""
        self.start_anew()
        try:
            crc, _, body = (self.root / "meta.json").read_bytes().partition(b"\n")
        except OSError:
            return
        if f"{zlib.crc32(body):08x}".encode() != crc:
            raise Damaged("meta.json is damaged")
        meta = json.loads(body)
        if (meta["format"], meta["order"]) != (FORMAT, sys.byteorder):
            return
        if meta["ledger"] != self.ledger:
            raise Damaged("it belongs to another ledger")
        self.position, self.chain_hash, self.folder = meta["position"], meta["chain_hash"], meta["folder"]
        self.lengths, self.crcs = meta["lengths"], meta["crcs"]
        for name, length in self.lengths.items():
            path = self._path(name)
            if length and (not path.exists() or path.stat().st_size < length):
                raise Damaged(f"{path.name} is too short")

    def _path(self, name: str) -> Path:
        return self.root / self.folder / name

    def _items(self, name: str) -> int:
        return self.lengths[name] // array(FILES[name]).itemsize

    # -- reading

    def _column(self, name: str, items: int | None = None) -> Column:
        """The first items of a column, mapped; what is written to them stays in this process. Raises `Damaged`."""
        length = self.lengths[name]
        if not length:
            return array(FILES[name])
        try:
            with open(self._path(name), "rb") as file:
                if _crc(file, length) != self.crcs[name]:
                    raise Damaged(f"{name} is damaged")
                pages = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY)
        except OSError as error:
            raise Damaged(f"{name} cannot be read: {error.strerror}") from None
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
        """The facts up to a position; their `others` and `changes` are still to be applied. Raises `Damaged`."""
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
        facts.others = list(zip(at[:known], map(bytes.decode, self._raw("others")[:known]), strict=True))
        changes = [self._column(f"change.{name}") for name in CHANGES]
        known = bisect_right(changes[0], position)
        facts.changes = [
            Change(change[0], change[1], bool(change[2]), *change[3:])
            for change in zip(*(column[:known] for column in changes), strict=True)
        ]
        return facts

    def row_of(self, first_position: int) -> int:
        """The row of the game first recorded at a position."""
        return bisect_left(self._column("first_position"), first_position)

    # -- growing

    def delta(self) -> Facts:
        """Facts that take what was recorded behind the cache. Raises `Damaged`."""
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
        """Keep what a delta took; whether that could be done. The lock is held."""
        known = {name: self._items(name) for name in ("players_at", "others_at")}
        lines = {name: len(self._raw(name)) for name in ("texts", "cells")}
        told = {
            "players": "".join(f"{json.dumps(name)}\n" for name in delta.players[known["players_at"] :]),
            "texts": "".join(f"{json.dumps(text)}\n" for text in delta.texts[lines["texts"] :]),
            "cells": "".join(f"{json.dumps(cell)}\n" for cell in delta.cells[lines["cells"] :]),
            "others": "".join(f"{record}\n" for _, record in delta.others),
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
        (self.root / self.folder).mkdir(exist_ok=True)
        for name, column in grown.items():
            data = memoryview(column).cast("B")
            if not data:
                continue
            with open(self._path(name), "ab") as file:
                # what stands behind the length that counts was written by somebody who was killed
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
        new.write_bytes(f"{zlib.crc32(body):08x}\n".encode() + body)
        new.replace(self.root / "meta.json")
        for other in self.root.iterdir():
            if other.is_dir() and other.name != self.folder:
                shutil.rmtree(other, ignore_errors=True)

    def discard(self, why: str) -> None:
        """Hold nothing any more, and say why."""
        logger.warning("ratings: the cache in %s is made anew: %s", self.root, why)
        self.start_anew()


def _crc(file: IO[bytes], length: int) -> int:
    """The CRC-32 of the first bytes of a file, read rather than mapped: pages that are not used stay out of memory."""
    crc, buffer = 0, bytearray(min(length, CHUNK_BYTES))
    while length:
        view = memoryview(buffer)[: min(length, CHUNK_BYTES)]
        got = file.readinto(view)  # type: ignore[attr-defined]
        if not got:
            raise Damaged(f"{Path(file.name).name} is too short")
        crc, length = zlib.crc32(view[:got], crc), length - got
    return crc


def found(connection: Connection, newest: int, locked: bool = False) -> Cache | None:
    """The cache of a ledger, empty if it does not fit the log; None where none can be kept.

    Who holds the lock is told why one is not used: he makes it anew.
    """
    ledger, root = ledger_id(connection), place()
    if root is None:
        return None
    cache, why = Cache(root / ledger, ledger), ""
    try:
        cache.read_meta()
    except (Damaged, ValueError, LookupError, TypeError) as problem:
        why = str(problem)
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
    """Hold the lock of a cache; whether it could be had."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = open(root / "lock", "ab")  # noqa: SIM115  (held until the end)
    except OSError:
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
