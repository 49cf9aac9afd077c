"""Read and check the files of a backup, and restore their lines byte for byte, so that all hashes stay the same.

To restore, the files are read twice: first to check all of them, then to store all lines or none in one transaction.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.events.canonical import parse_object
from ratings_ledger.ledger.events.records import ZERO, EventRow, restore_row
from ratings_ledger.ledger.events.revisions import SUPERSEDING, describe_wrong_supersedes, find_superseded
from ratings_ledger.ledger.intake.files import read_lines
from ratings_ledger.ledger.intake.intake import IntakeResult
from ratings_ledger.ledger.intake.spool import RestoredEvents
from ratings_ledger.ledger.rejections import Refused, Rejection
from ratings_ledger.ledger.store.appending import append_restored, require_empty
from ratings_ledger.ledger.store.exports import BEGINNING, ChainHead, ExportEnd, parse_end
from ratings_ledger.ledger.store.log import Head
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.validation.identities import Identities
from ratings_ledger.ledger.validation.validator import LadderChecksAt, find_misfits, skip_ladder_checks

# the codes of refusals for a truncated line
TRUNCATION_CODES = ("bad-json", "bad-utf8")
NOT_FOLLOWING = "does not follow from the lines before it"
# the whole command, because `ratings backup check` has no such option
SALVAGE_REMEDY = "or restore the readable events: ratings import --restore --incomplete FILES"


class BackupFiles(NamedTuple):
    """The files of a backup, a full export and then increments in order, and the requirements on them.

    files:      the paths
    head:       the head at which the files must end; if it is given, the files need not name their own ends
    incomplete: whether to accept files that are cut off, and last lines that do not match the lines before them
    """

    files: Sequence[str]
    head: ChainHead | None = None
    incomplete: bool = False


class BackupContents(NamedTuple):
    """The content of a backup: the head after each file, and the defects accepted because of `incomplete`."""

    heads: list[ChainHead]
    accepted_defects: list[str]

    @property
    def head(self) -> ChainHead:
        """Return the head after the last file."""
        return self.heads[-1] if self.heads else BEGINNING


class RefusedFile(Exception):
    """A file of a backup is refused; `rejection` names the file."""

    def __init__(self, file: str, problem: Refused) -> None:
        super().__init__(problem.message)
        self.rejection: Rejection = problem.to_rejection(file)


def restore(
    ledger: Ledger,
    backup: BackupFiles,
    ladders: LadderChecksAt = skip_ladder_checks,
) -> IntakeResult:
    """Check a backup and store all of its lines, or none of them.

    The result holds the rejection of a refused backup. Raises `NotEmpty`, `StoreDamaged`, `StoreUnavailable`.
    """
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
    """Store all lines of a checked backup, or none of them.

    Raises `RefusedFile` if an event contradicts earlier events, or a file has changed meanwhile; `NotEmpty`,
    `StoreDamaged`, `StoreUnavailable`.
    """

    def refuse_misfits(connection: Connection, latest: Head) -> None:
        for position, problem in find_misfits(connection, latest.position, ladders):
            message = f"the event at position {position} {NOT_FOLLOWING}: {problem.message}"
            name, line = _find_line(backup, contents, position)
            raise RefusedFile(name, Refused("restore-mismatch", message, line))

    rows = _read_rows(backup._replace(head=contents.head), lambda row: None)
    return append_restored(ledger, rows, refuse_misfits)


def _find_line(backup: BackupFiles, contents: BackupContents, position: int) -> tuple[str, int]:
    """Return the file and the line of a position in a backup."""
    ends = [head.position for head in contents.heads]
    index = bisect_left(ends, position)
    return backup.files[index], position - (ends[index - 1] if index else 0)


def check_backup(backup: BackupFiles) -> BackupContents:
    """Read a backup and check everything that needs no ledger: last lines, hashes, order, the content of each event.

    Raises `RefusedFile`, and `StoreUnavailable` if the temporary folder is full.
    """
    with _open_row_check() as check:
        rows = _read_rows(backup, check)
        while True:
            try:
                next(rows)
            except StopIteration as end:
                contents: BackupContents = end.value
                return contents


def _read_rows(backup: BackupFiles, check: Callable[[EventRow], None]) -> Generator[EventRow, None, BackupContents]:
    """Yield the rows of all files; each file must continue the previous one. Raises `RefusedFile`.

    `check` raises `Refused` for a row that contradicts the rows before it.
    """
    # the first event may have any time
    latest, contents = Head(0, ZERO, -(2**63)), BackupContents([], [])
    for name in backup.files:
        try:
            latest = yield from _read_rows_of_file(name, latest, backup=backup, contents=contents, check=check)
        except Refused as problem:
            raise RefusedFile(name, problem) from None
        contents.heads.append(_to_chain_head(latest))
    if backup.head not in (None, contents.head):
        message = (
            f"the backup ends at {contents.head}, not at {backup.head}: it is cut off, changed, or another backup; use "
            "complete, unchanged files that end there"
        )
        raise RefusedFile(backup.files[-1], Refused("end-mismatch", message))
    return contents


def _read_rows_of_file(
    name: str, before: Head, *, backup: BackupFiles, contents: BackupContents, check: Callable[[EventRow], None]
) -> Generator[EventRow, None, Head]:
    """Yield the rows of a file that continues the head `before`; return the head after them. Raises `Refused`."""
    latest, end, number = before, None, 0
    if before.position:
        _refuse_another_ledger(name, before, backup.incomplete)
    lines = _read_lines(name, backup.incomplete, contents.accepted_defects)
    for number, line in lines:
        try:
            if end is not None:
                raise Refused(
                    "end-mismatch",
                    "this line comes after the last line of an export; name several files one by one: ratings import "
                    "--restore FULL INCREMENT...",
                )
            end = parse_end(line)
            if end is not None:
                continue
            if latest is before:
                _refuse_wrong_start(line, before, contents)
            row = restore_row(line, latest.position + 1, latest.recorded_at, latest.chain_hash)
            check(row)
        except Refused as problem:
            if backup.incomplete and problem.code in TRUNCATION_CODES and next(lines, None) is None:
                contents.accepted_defects.append(f"{name}: left out line {number}, which is cut off")
                break
            raise Refused(problem.code, problem.message, number) from None
        latest = Head(row.position, row.chain_hash, row.recorded_at)
        yield row
    if (defect := _check_end(end, number, before=before, latest=latest, backup=backup)) is not None:
        contents.accepted_defects.append(f"{name}: {defect}")
    return latest


def _read_lines(name: str, incomplete: bool, accepted_defects: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a file; with `incomplete` accept a truncated compressed file."""
    try:
        yield from read_lines(name)
    except Refused as problem:
        if not incomplete or not isinstance(problem.__cause__, EOFError):
            raise
        accepted_defects.append(f"{name} is cut off")


def _refuse_another_ledger(name: str, before: Head, incomplete: bool) -> None:
    """Raise `Refused` if the last line of an increment names another history of the same length."""
    for number, line in _read_lines(name, incomplete, []):
        end = parse_end(line)
        if end is not None and end.since.position == before.position and end.since != _to_chain_head(before):
            message = (
                f"the file continues {end.since}, but the files before it end at {_to_chain_head(before)}: it is an "
                "increment of another ledger"
            )
            raise Refused("restore-mismatch", message, number)


def _refuse_wrong_start(line: bytes, before: Head, contents: BackupContents) -> None:
    """Raise `Refused` if the first line of a file does not follow the last line of the files before it."""
    first = parse_object(line).get("position")
    if not isinstance(first, int) or first == before.position + 1:
        return
    if not contents.heads:
        message = f"the file begins at position {first}: it is an increment; name the files that it continues before it"
    elif first > before.position:
        message = (
            f"the file begins at position {first}, but the files before it end at {before.position}; export the "
            f"missing events with: ratings export events --since {before.position}"
        )
    else:
        message = (
            f"the file begins at position {first}, but the files before it end at {before.position}: they overlap, or "
            "are in the wrong order; name the files in the order in which they were made, or replace this one: ratings "
            f"export events --since {before.position}"
        )
    raise Refused("restore-mismatch", message)


def _check_end(end: ExportEnd | None, line: int, *, before: Head, latest: Head, backup: BackupFiles) -> str | None:
    """Return the defect at the end of a file, if the requirements accept it, or None. Raises `Refused` for others.

    Args:
        end: The last line of the export, if the file has one.
        line: The number of the file's last line.
        before: The head before the file.
        latest: The head after the file.
        backup: The files and the requirements on them.
    """
    head = _to_chain_head(latest)
    if end is None:
        message = f"the file ends at {head} without the last line of an export, so it may be cut off"
        if not backup.incomplete and backup.head is None:
            remedy = "if it came from standard output or an older version, pass its end with --head POSITION:CHAINHASH"
            raise Refused("end-missing", f"{message}; {remedy}; {SALVAGE_REMEDY}")
    elif end.since != _to_chain_head(before):
        problem = (
            f", but the files before it end at {_to_chain_head(before)}" if before.position else ": it is an increment"
        )
        remedy = "name the files that it continues before it"
        raise Refused("restore-mismatch", f"the file continues {end.since}{problem}; {remedy}", line)
    else:
        message = f"the last line names {end.head}, but the file ends at {head}: lines are missing or changed"
        if end.head != head and not backup.incomplete:
            raise Refused("end-mismatch", f"{message}; use an unchanged file, {SALVAGE_REMEDY}", line)
    return message if backup.incomplete and (end is None or end.head != head) else None


def _to_chain_head(head: Head) -> ChainHead:
    return ChainHead(head.position, head.chain_hash)


@contextmanager
def _open_row_check() -> Iterator[Callable[[EventRow], None]]:
    """Provide a check that raises `Refused` for a row that contradicts earlier rows.

    Ids and games must occur once, renames must not contradict each other, and each row must supersede the right event.
    """
    renames = Renames()
    with closing(RestoredEvents()) as earlier_rows:

        def check(row: EventRow) -> None:
            try:
                renames.check(row)
                data = json.loads(row.record)["data"] if row.type in SUPERSEDING else {}
                supersedes, _ = find_superseded(earlier_rows, row.type, data)
            except Refused as problem:
                raise _build_mismatch_error(row, f"{NOT_FOLLOWING}: {problem.message}") from None
            if row.supersedes != supersedes:
                raise _build_mismatch_error(row, describe_wrong_supersedes(row.supersedes, supersedes))
            if not earlier_rows.add(row):
                raise _build_mismatch_error(row, "repeats the id or the game of an earlier event")

        yield check


class Renames:
    """The renames of a log. Those in force must not form a circle or rename an id twice."""

    def __init__(self) -> None:
        # by event id, the old and the new id of each rename
        self._renames: dict[str, tuple[str, str]] = {}
        self._live: set[str] = set()
        # by event id of each void in a chain of voids, the rename at the end of the chain
        self._voids: dict[str, str] = {}
        self._people = Identities()

    def check(self, row: EventRow) -> None:
        """Add a row. Raises `Refused` if the live renames then contradict each other."""
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
        """Make a rename live, or withdraw it if it is live."""
        player, new_player = self._renames[rename]
        if rename in self._live:
            self._people.remove(player)
        else:
            self._people.refuse_rename(player, new_player)
            self._people.add(player, new_player)
        self._live ^= {rename}


def _build_mismatch_error(row: EventRow, problem: str) -> Refused:
    return Refused("restore-mismatch", f"the event at position {row.position} {problem}", row.position)
