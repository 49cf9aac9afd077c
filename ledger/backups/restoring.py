"""Restore the lines of an export into an empty ledger, byte for byte, so that every hash is what it was.

The files are read twice: first to check all of them, then to store them, all or nothing, in one transaction.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.records import ZERO, EventRow, restore_row
from ratings_ledger.ledger.events.revisions import SUPERSEDING, find_superseded
from ratings_ledger.ledger.intake.files import read_lines
from ratings_ledger.ledger.intake.intake import Imported
from ratings_ledger.ledger.intake.spool import Lines
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.appending import append_restored, require_empty
from ratings_ledger.ledger.store.exports import BEGINNING, ExportEnd, Place, read_end
from ratings_ledger.ledger.store.log import Head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.identities import Identities
from ratings_ledger.ledger.validation.validator import LadderChecksAt, misfits, skip_ladder_checks

# what is found wrong with a line that was cut off
CUT_OFF = ("bad-json", "bad-utf8")
NOT_FOLLOWING = "does not follow from the lines before it"


class BackupFiles(NamedTuple):
    """The files of a backup: one of all events, then increments in order; and what is required of them.

    `head`: where they end; if given, they need no last lines. `incomplete`: files that were cut off will do.
    """

    files: Sequence[str]
    head: Place | None = None
    incomplete: bool = False


class BackupContents(NamedTuple):
    """What a backup holds: the head after each of its files, and what `incomplete` let pass."""

    heads: list[Place]
    passed: list[str]

    @property
    def head(self) -> Place:
        """Return the head after the last file that was read."""
        return self.heads[-1] if self.heads else BEGINNING


class RefusedFile(Exception):
    """A file of a backup is refused."""

    def __init__(self, file: str, problem: Refused) -> None:
        super().__init__(problem.message)
        self.rejection: Rejection = problem.rejection(file)


def restore(
    ledger: Ledger,
    backup: BackupFiles,
    ladders: LadderChecksAt = skip_ladder_checks,
) -> Imported:
    """Store the lines of a backup verbatim, or none of them. Raises `NotEmpty`, `StoreUnavailable`."""
    require_empty(ledger)

    try:
        whole = check_backup(backup)
        latest = store_backup(ledger, backup, whole, ladders)
    except RefusedFile as refused:
        return Imported(rejected=[refused.rejection], rejected_count=1)
    return Imported(appended=latest.position, head=latest, passed=whole.passed)


def store_backup(
    ledger: Ledger,
    backup: BackupFiles,
    whole: BackupContents,
    ladders: LadderChecksAt = skip_ladder_checks,
) -> Head:
    """Store the lines of a checked backup, or none of them. Raises `NotEmpty`, `StoreUnavailable`; `RefusedFile` if
    events do not fit those before them, or somebody wrote to the files in the meantime."""

    def refuse_misfits(connection: Connection, latest: Head) -> None:
        for position, problem in misfits(connection, latest.position, ladders):
            told = f"position {position} {NOT_FOLLOWING}: {problem.message}"
            name, line = _line_of(backup, whole, position)
            raise RefusedFile(name, Refused("restore-mismatch", told, line))

    rows = _rows(backup._replace(head=whole.head), lambda row: None)
    return append_restored(ledger, rows, refuse_misfits)


def _line_of(backup: BackupFiles, whole: BackupContents, position: int) -> tuple[str, int]:
    """Return which file of a backup holds a position, and on which line."""
    ends = [place.position for place in whole.heads]
    index = bisect_left(ends, position)
    return backup.files[index], position - (ends[index - 1] if index else 0)


def check_backup(backup: BackupFiles) -> BackupContents:
    """Read a backup and check everything that needs no ledger: last lines, hashes, order, what each event says.

    Raises `RefusedFile`; `StoreUnavailable` when the temporary folder is full.
    """
    with _fitting() as refuse:
        rows = _rows(backup, refuse)
        while True:
            try:
                next(rows)
            except StopIteration as end:
                whole: BackupContents = end.value
                return whole


def _rows(backup: BackupFiles, refuse: Callable[[EventRow], None]) -> Generator[EventRow, None, BackupContents]:
    """Yield the rows of all files, each continuing the one before. Raises `RefusedFile`."""
    latest, whole = Head(0, ZERO, -(2**63)), BackupContents([], [])
    for name in backup.files:
        try:
            latest = yield from _rows_of_file(name, latest, backup, whole, refuse)
        except Refused as problem:
            raise RefusedFile(name, problem) from None
        whole.heads.append(_place(latest))
    if backup.head not in (None, whole.head):
        told = f"the backup ends at {whole.head}, not at {backup.head}: it is cut off, changed, or another one"
        raise RefusedFile(backup.files[-1], Refused("end-mismatch", told))
    return whole


def _rows_of_file(
    name: str, before: Head, backup: BackupFiles, whole: BackupContents, refuse: Callable[[EventRow], None]
) -> Generator[EventRow, None, Head]:
    latest, end, number = before, None, 0
    if before.position:
        _refuse_another_ledger(name, before, backup.incomplete)
    lines = _lines(name, backup.incomplete, whole.passed)
    for number, line in lines:
        try:
            if end is not None:
                raise Refused("end-mismatch", "it comes after the last line of the export; more files are named one "
                              "by one: import --restore FULL INCREMENT...")  # fmt: skip
            end = read_end(line)
            if end is not None:
                continue
            if latest is before:
                _refuse_another_place(line, before, whole)
            row = restore_row(line, latest.position + 1, latest.recorded_at, latest.chain_hash)
            refuse(row)
        except Refused as problem:
            if backup.incomplete and problem.code in CUT_OFF and next(lines, None) is None:
                whole.passed.append(f"{name}: line {number} is cut off; it is left out")
                break
            raise Refused(problem.code, problem.message, number) from None
        latest = Head(row.position, row.chain_hash, row.recorded_at)
        yield row
    _refuse_end(name, end, number, before, latest, backup, whole)
    return latest


def _lines(name: str, incomplete: bool, passed: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file; if it may be `incomplete`, as many as can be read of a compressed one that was cut
    off.
    """
    try:
        yield from read_lines(name)
    except Refused as problem:
        if not incomplete or not isinstance(problem.__cause__, EOFError):
            raise
        passed.append(f"{name} is cut off")


def _refuse_another_ledger(name: str, before: Head, incomplete: bool) -> None:
    """Raises `Refused` for an increment whose last line says it continues a different history of this length."""
    for number, line in _lines(name, incomplete, []):
        end = read_end(line)
        if end is not None and end.since.position == before.position and end.since != _place(before):
            message = (
                f"it continues {end.since}, but the files before it end at {_place(before)}: it is an increment of "
                "another ledger"
            )
            raise Refused("restore-mismatch", message, number)


def _refuse_another_place(line: bytes, before: Head, whole: BackupContents) -> None:
    """Raises `Refused` if the first line of a file does not directly follow the files before it."""
    first = parse_object(line).get("position")
    if not isinstance(first, int) or first == before.position + 1:
        return
    if not whole.heads:
        told = f"the file begins at position {first}: it is an increment; name the backup that it continues before it"
    elif first > before.position:
        told = (
            f"the file begins at position {first}, but the files before it end at {before.position}: what is between "
            f"is missing; export events --since {before.position} writes it"
        )
    else:
        told = (
            f"the file begins at position {first}, but the files before it end at {before.position} already: they "
            "overlap, or stand in another order than they were made"
        )
    raise Refused("restore-mismatch", told)


def _refuse_end(
    name: str, end: ExportEnd | None, line: int, before: Head, latest: Head, backup: BackupFiles, whole: BackupContents
) -> None:
    """Raises `Refused` unless a file's last line names what was read, or is allowed to be missing or wrong."""
    head = _place(latest)
    if end is None:
        told = f"the file ends at {head} without the last line of an export, so it may be cut off"
        if not backup.incomplete and backup.head is None:
            more = "; if it came from standard output or an older version, name its end by --head POSITION:CHAINHASH"
            raise Refused("end-missing", told + more + ", or take what there is with --incomplete")
    elif end.since != _place(before):
        told = f"it continues {end.since}, but the files before it end at {_place(before)}"
        raise Refused("restore-mismatch", told, line)
    else:
        told = f"the last line names {end.head}, but the file ends at {head}: lines are missing or changed"
        if end.head != head and not backup.incomplete:
            raise Refused("end-mismatch", told, line)
    if backup.incomplete and (end is None or end.head != head):
        whole.passed.append(f"{name}: {told}")


def _place(head: Head) -> Place:
    return Place(head.position, head.chain_hash)


@contextmanager
def _fitting() -> Iterator[Callable[[EventRow], None]]:
    """Provide a check that raises `Refused` unless ids and games occur once and each row supersedes the right event."""
    renames = Renames()
    with closing(Lines()) as seen:

        def refuse(row: EventRow) -> None:
            try:
                renames.check(row)
                data = json.loads(row.record)["data"] if row.type in SUPERSEDING else {}
                supersedes, _ = find_superseded(seen, row.type, data)
            except Refused as problem:
                raise _mismatch(row, f"{NOT_FOLLOWING}: {problem.message}") from None
            if row.supersedes != supersedes:
                raise _mismatch(
                    row, f"supersedes {quote(row.supersedes)} where it can only supersede {quote(supersedes)}"
                )
            if not seen.add(row):
                raise _mismatch(row, "repeats the id or the game of an earlier one")

        yield refuse


class Renames:
    """The renames of a restore, which must never form a circle, nor lead one id to two others."""

    def __init__(self) -> None:
        self._renames: dict[str, tuple[str, str]] = {}
        self._live: set[str] = set()
        self._voids: dict[str, str] = {}  # events that withdraw a rename or undo its withdrawal, with that rename
        self._people = Identities()

    def check(self, row: EventRow) -> None:
        """Take a row in. Raises `Refused` if the renames live after it contradict each other."""
        if row.type not in ("player.renamed", "event.voided"):
            return
        data = json.loads(row.record)["data"]
        if row.type == "player.renamed":
            self._renames[row.event_id] = (data["player"], data["new_player"])
            self._turn(row.event_id)
        elif (rename := self._voids.get(data["id"], data["id"])) in self._renames:
            self._voids[row.event_id] = rename
            self._turn(rename)

    def _turn(self, rename: str) -> None:
        """Put a rename into force, or out of it."""
        player, new_player = self._renames[rename]
        if rename in self._live:
            self._people.remove(player)
        else:
            self._people.refuse_rename(player, new_player)
            self._people.add(player, new_player)
        self._live ^= {rename}


def _mismatch(row: EventRow, what: str) -> Refused:
    return Refused("restore-mismatch", f"position {row.position} {what}", row.position)
