"""Restore: the lines of an export into an empty ledger, byte for byte, so that every hash is what it was.

The file is read twice: once to check all of it, once to store it.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice

from sqlalchemy import Connection

from ledger.appending import append_restored, require_empty
from ledger.fitting import misfits
from ledger.identities import Identities
from ledger.importing import CHUNK_EVENTS, Imported
from ledger.judging import Ladders, NoLadders
from ledger.lineage import SUPERSEDING, superseded
from ledger.records import ZERO, Row, restored
from ledger.rejections import Refused, shown
from ledger.sources import read_lines
from ledger.spool import Lines
from ledger.store import Head, Ledger


def restore(
    ledger: Ledger, name: str, ladders: Callable[[Connection], Ladders] = lambda connection: NoLadders()
) -> Imported:
    """Store the lines of an export verbatim, or none of them. Raises `NotEmpty`, `StoreUnavailable`."""
    require_empty(ledger)

    def refuse_misfits(connection: Connection, latest: Head) -> None:
        for position, problem in misfits(connection, latest.position, ladders):
            raise Refused(
                "restore-mismatch",
                f"position {position} does not follow from the lines before it: {problem.message}",
                position,
            )

    try:
        for _ in _unique(_rows(name)):
            pass
        latest = append_restored(ledger, _batches(_rows(name)), refuse_misfits)
    except Refused as problem:
        return Imported(rejected=[problem.rejection(name)], rejected_count=1)
    return Imported(appended=latest.position, head=latest)


def _rows(name: str) -> Iterator[Row]:
    """The rows, each continuing the one before. Raises `Refused` with the line."""
    latest = Head(0, ZERO, -(2**63))
    for number, line in read_lines(name):
        try:
            row = restored(line, latest.position + 1, latest.recorded_at, latest.chain_hash)
        except Refused as problem:
            raise Refused(problem.code, problem.message, number) from None
        latest = Head(row.position, row.chain_hash, row.recorded_at)
        yield row


def _unique(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, as long as ids and games occur once and what supersedes stands in line. Raises `Refused`."""
    renames = Renames()
    with closing(Lines()) as seen:
        for row in rows:
            renames.check(row)
            supersedes = _end_of_line(seen, row) if row.type in SUPERSEDING else None
            if row.supersedes != supersedes:
                raise _mismatch(
                    row, f"supersedes {shown(row.supersedes)} where it can only supersede {shown(supersedes)}"
                )
            if not seen.add(row):
                raise _mismatch(row, "repeats the id or the game of an earlier one")
            yield row


class Renames:
    """The renames of a restore, which must never lead in a circle, and lead each id to one."""

    def __init__(self) -> None:
        self._renames: dict[str, tuple[str, str]] = {}
        self._live: set[str] = set()
        self._voids: dict[str, str] = {}  # what takes back a rename, or its taking-back, and that rename
        self._people = Identities()

    def check(self, row: Row) -> None:
        """Take a row in. Raises `Refused` if the renames that are live after it do not fit together."""
        if row.type not in ("player.renamed", "event.voided"):
            return
        data = json.loads(row.record)["data"]
        if row.type == "player.renamed":
            self._renames[row.event_id] = (data["player"], data["new_player"])
            self._turn(row, row.event_id)
        elif (rename := self._voids.get(data["id"], data["id"])) in self._renames:
            self._voids[row.event_id] = rename
            self._turn(row, rename)

    def _turn(self, row: Row, rename: str) -> None:
        """Let a rename come into force, or out of it."""
        player, new_player = self._renames[rename]
        if rename in self._live:
            self._people.remove(player)
        else:
            try:
                self._people.refuse_rename(player, new_player)
            except Refused as problem:
                raise _mismatch(row, f"does not follow from the lines before it: {problem.message}") from None
            self._people.add(player, new_player)
        self._live ^= {rename}


def _end_of_line(seen: Lines, row: Row) -> str | None:
    try:
        return superseded(seen, row.type, json.loads(row.record)["data"])[0]
    except Refused as problem:
        raise _mismatch(row, f"does not follow from the lines before it: {problem.message}") from None


def _mismatch(row: Row, what: str) -> Refused:
    return Refused("restore-mismatch", f"position {row.position} {what}", row.position)


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(islice(rows, CHUNK_EVENTS)):
        yield batch
