"""Restoring the lines of an export into an empty ledger, byte for byte, so that all hashes stay the same.

The files are read twice: first to check all of them, then to store all or none of them in one transaction.
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
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.intake.spool import Lines
from ratings_ledger.ledger.rejections import Refused, Rejection, quote
from ratings_ledger.ledger.store.appending import append_restored, require_empty
from ratings_ledger.ledger.store.exports import BEGINNING, ExportEnd, Place, parse_end
from ratings_ledger.ledger.store.log import Head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.identities import Identities
from ratings_ledger.ledger.validation.validator import LadderChecksAt, misfits, skip_ladder_checks

# the codes for a line that was cut off
CUT_OFF = ("bad-json", "bad-utf8")
NOT_FOLLOWING = "does not follow from the lines before it"


class BackupFiles(NamedTuple):
    """The files of a backup: one of all events, then increments in order; and the requirements on them.

    `head`: the place at which they end; with it, they need no last lines. `incomplete`: accept files that were cut off.
    """

    files: Sequence[str]
    head: Place | None = None
    incomplete: bool = False


class BackupContents(NamedTuple):
    """The content of a backup: the head after each file, and the defects that `incomplete` accepted."""

    heads: list[Place]
    accepted_defects: list[str]

    @property
    def head(self) -> Place:
        """Return the head after the last file that was read."""
        return self.heads[-1] if self.heads else BEGINNING


class RefusedFile(Exception):
    """A refused file of a backup."""

    def __init__(self, file: str, problem: Refused) -> None:
        super().__init__(problem.message)
        self.rejection: Rejection = problem.rejection(file)


def restore(
    ledger: Ledger,
    backup: BackupFiles,
    ladders: LadderChecksAt = skip_ladder_checks,
) -> IntakeResult:
    """Store the lines of a backup verbatim, or none of them. Raises `NotEmpty`, `StoreUnavailable`."""
    require_empty(ledger)

    try:
        contents = check_backup(backup)
        latest = store_backup(ledger, backup, contents, ladders)
    except RefusedFile as refused:
        return IntakeResult(rejected=[refused.rejection], rejected_count=1)
    return IntakeResult(appended=latest.position, head=latest, accepted_defects=contents.accepted_defects)


def store_backup(
    ledger: Ledger,
    backup: BackupFiles,
    contents: BackupContents,
    ladders: LadderChecksAt = skip_ladder_checks,
) -> Head:
    """Store all lines of a checked backup, or none of them. Raises `NotEmpty`, `StoreUnavailable`.

    Raises `RefusedFile` if events do not fit those before them, or the files changed meanwhile.
    """

    def refuse_misfits(connection: Connection, latest: Head) -> None:
        for position, problem in misfits(connection, latest.position, ladders):
            message = f"position {position} {NOT_FOLLOWING}: {problem.message}"
            name, line = _find_line(backup, contents, position)
            raise RefusedFile(name, Refused("restore-mismatch", message, line))

    rows = _read_rows(backup._replace(head=contents.head), lambda row: None)
    return append_restored(ledger, rows, refuse_misfits)


def _find_line(backup: BackupFiles, contents: BackupContents, position: int) -> tuple[str, int]:
    """Find the file and the line of a position in a backup."""
    ends = [place.position for place in contents.heads]
    index = bisect_left(ends, position)
    return backup.files[index], position - (ends[index - 1] if index else 0)


def check_backup(backup: BackupFiles) -> BackupContents:
    """Read a backup and check everything that needs no ledger: last lines, hashes, order, the content of each event.

    Raises `RefusedFile`; `StoreUnavailable` when the temporary folder is full.
    """
    with _check_fit() as refuse:
        rows = _read_rows(backup, refuse)
        while True:
            try:
                next(rows)
            except StopIteration as end:
                contents: BackupContents = end.value
                return contents


def _read_rows(backup: BackupFiles, refuse: Callable[[EventRow], None]) -> Generator[EventRow, None, BackupContents]:
    """Yield the rows of all files, each continuing the one before. Raises `RefusedFile`."""
    latest, contents = Head(0, ZERO, -(2**63)), BackupContents([], [])
    for name in backup.files:
        try:
            latest = yield from _read_rows_of_file(name, latest, backup, contents, refuse)
        except Refused as problem:
            raise RefusedFile(name, problem) from None
        contents.heads.append(_to_place(latest))
    if backup.head not in (None, contents.head):
        message = f"the backup ends at {contents.head}, not at {backup.head}: it is cut off, changed, or another one"
        raise RefusedFile(backup.files[-1], Refused("end-mismatch", message))
    return contents


def _read_rows_of_file(
    name: str, before: Head, backup: BackupFiles, contents: BackupContents, refuse: Callable[[EventRow], None]
) -> Generator[EventRow, None, Head]:
    latest, end, number = before, None, 0
    if before.position:
        _refuse_another_ledger(name, before, backup.incomplete)
    lines = _read_lines(name, backup.incomplete, contents.accepted_defects)
    for number, line in lines:
        try:
            if end is not None:
                raise Refused(
                    "end-mismatch",
                    "it comes after the last line of the export; name several files one by one: import --restore FULL "
                    "INCREMENT...",
                )
            end = parse_end(line)
            if end is not None:
                continue
            if latest is before:
                _refuse_another_place(line, before, contents)
            row = restore_row(line, latest.position + 1, latest.recorded_at, latest.chain_hash)
            refuse(row)
        except Refused as problem:
            if backup.incomplete and problem.code in CUT_OFF and next(lines, None) is None:
                contents.accepted_defects.append(f"{name}: line {number} is cut off; it is left out")
                break
            raise Refused(problem.code, problem.message, number) from None
        latest = Head(row.position, row.chain_hash, row.recorded_at)
        yield row
    _refuse_end(name, end, number, before, latest, backup, contents)
    return latest


def _read_lines(name: str, incomplete: bool, accepted_defects: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file; with `incomplete`, the readable ones of a compressed file that was cut off."""
    try:
        yield from read_lines(name)
    except Refused as problem:
        if not incomplete or not isinstance(problem.__cause__, EOFError):
            raise
        accepted_defects.append(f"{name} is cut off")


def _refuse_another_ledger(name: str, before: Head, incomplete: bool) -> None:
    """Raise `Refused` for an increment whose last line says it continues a different history of this length."""
    for number, line in _read_lines(name, incomplete, []):
        end = parse_end(line)
        if end is not None and end.since.position == before.position and end.since != _to_place(before):
            message = (
                f"it continues {end.since}, but the files before it end at {_to_place(before)}: it is an increment of "
                "another ledger"
            )
            raise Refused("restore-mismatch", message, number)


def _refuse_another_place(line: bytes, before: Head, contents: BackupContents) -> None:
    """Raise `Refused` if the first line of a file does not directly follow the files before it."""
    first = parse_object(line).get("position")
    if not isinstance(first, int) or first == before.position + 1:
        return
    if not contents.heads:
        message = (
            f"the file begins at position {first}: it is an increment; name the backup that it continues before it"
        )
    elif first > before.position:
        message = (
            f"the file begins at position {first}, but the files before it end at {before.position}: what is between "
            f"is missing; export events --since {before.position} writes it"
        )
    else:
        message = (
            f"the file begins at position {first}, but the files before it end at {before.position} already: they "
            "overlap, or stand in another order than they were made"
        )
    raise Refused("restore-mismatch", message)


def _refuse_end(
    name: str,
    end: ExportEnd | None,
    line: int,
    before: Head,
    latest: Head,
    backup: BackupFiles,
    contents: BackupContents,
) -> None:
    """Raise `Refused` unless a file's last line names what was read, or is allowed to be missing or wrong."""
    head = _to_place(latest)
    if end is None:
        message = f"the file ends at {head} without the last line of an export, so it may be cut off"
        if not backup.incomplete and backup.head is None:
            remedy = "; if it came from standard output or an older version, name its end by --head POSITION:CHAINHASH"
            raise Refused("end-missing", message + remedy + ", or take what there is with --incomplete")
    elif end.since != _to_place(before):
        message = f"it continues {end.since}, but the files before it end at {_to_place(before)}"
        raise Refused("restore-mismatch", message, line)
    else:
        message = f"the last line names {end.head}, but the file ends at {head}: lines are missing or changed"
        if end.head != head and not backup.incomplete:
            raise Refused("end-mismatch", message, line)
    if backup.incomplete and (end is None or end.head != head):
        contents.accepted_defects.append(f"{name}: {message}")


def _to_place(head: Head) -> Place:
    return Place(head.position, head.chain_hash)


@contextmanager
def _check_fit() -> Iterator[Callable[[EventRow], None]]:
    """Provide a check that raises `Refused` unless ids and games occur once and each row supersedes the right event."""
    renames = Renames()
    with closing(Lines()) as earlier_rows:

        def refuse(row: EventRow) -> None:
            try:
                renames.check(row)
                data = json.loads(row.record)["data"] if row.type in SUPERSEDING else {}
                supersedes, _ = find_superseded(earlier_rows, row.type, data)
            except Refused as problem:
                raise _mismatch_error(row, f"{NOT_FOLLOWING}: {problem.message}") from None
            if row.supersedes != supersedes:
                raise _mismatch_error(
                    row, f"supersedes {quote(row.supersedes)} where it can only supersede {quote(supersedes)}"
                )
            if not earlier_rows.add(row):
                raise _mismatch_error(row, "repeats the id or the game of an earlier one")

        yield refuse


class Renames:
    """The renames of a restore, which must never form a circle, nor lead one id to two others."""

    def __init__(self) -> None:
        self._renames: dict[str, tuple[str, str]] = {}
        self._live: set[str] = set()
        self._voids: dict[str, str] = {}  # events that withdraw a rename or undo its withdrawal, with that rename
        self._people = Identities()

    def check(self, row: EventRow) -> None:
        """Add a row. Raises `Refused` if the renames live after it contradict each other."""
        if row.type not in ("player.renamed", "event.voided"):
            return
        data = json.loads(row.record)["data"]
        if row.type == "player.renamed":
            self._renames[row.event_id] = (data["player"], data["new_player"])
            self._toggle(row.event_id)
        elif (rename := self._voids.get(data["id"], data["id"])) in self._renames:
            self._voids[row.event_id] = rename
            self._toggle(rename)

    def _toggle(self, rename: str) -> None:
        """Put a rename into force, or take it out of force."""
        player, new_player = self._renames[rename]
        if rename in self._live:
            self._people.remove(player)
        else:
            self._people.refuse_rename(player, new_player)
            self._people.add(player, new_player)
        self._live ^= {rename}


def _mismatch_error(row: EventRow, what: str) -> Refused:
    return Refused("restore-mismatch", f"position {row.position} {what}", row.position)
