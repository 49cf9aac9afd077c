"""A folder of backups: full exports, each with a head file, and a list of the backups made there.

    ratings-backups.json                              the list
    ratings-2026-11-22T031700Z-50577.jsonl.gz         an export of that time, up to that position
    ratings-2026-11-22T031700Z-50577.jsonl.gz.head    50577:9f86d0...

A policy such as 14d,8w,12m keeps the last backup of each of the latest 14 days, 8 weeks and 12 months (UTC) that
have one. The others are deleted if they are listed and unchanged. So are head files without a backup, which a killed
process left.
"""

import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.clock import Clock, is_ahead
from ratings_ledger.ledger.errors import AlreadyRunning, BadBackupList
from ratings_ledger.ledger.events.canonical import EPOCH, format_instant, parse_instant
from ratings_ledger.ledger.own_files import create_file, open_own, replace_file
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.exports import Place, export_lines, open_compressed, parse_place, place_at
from ratings_ledger.ledger.store.log import chain_hash_at, head, ledger_id
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import record_run

LIST_NAME, LOCK_NAME, HEAD_SUFFIX = "ratings-backups.json", ".ratings-backups.lock", ".head"
LIST_BYTES_MAX = 1 << 24
_FILE = re.compile(r"ratings-\d{4}-\d\d-\d\dT\d{6}Z-\d{1,16}(-\d{1,6})?\.jsonl\.gz", re.ASCII)
_POLICY_PART = re.compile(r"([1-9]\d{0,3})([dwm])", re.ASCII)


class Backup(NamedTuple):
    """A backup as the list names it; `made_at` in microseconds since 1970 UTC, `size` in bytes."""

    file: str
    ledger_id: str
    head: Place
    made_at: int
    size: int


class BackupResult(NamedTuple):
    """The result of `make_backup`: the new backup, the names of dropped ones, and the number of this ledger's backups.

    `lost` are earlier backups whose history the ledger no longer contains, `ahead` those dated after now: if there are
    any, no backup is deleted. `mismatched` are missing or changed files, each with a description.
    """

    backup: Backup
    dropped: list[str]
    kept: int
    lost: list[Backup]
    mismatched: list[tuple[str, str]]
    ahead: list[Backup]

    def problems(self, folder: Path) -> list[str]:
        """Describe why no backup was deleted, one sentence per backup."""
        lost = (
            "{} ends at {}, which is not in this ledger's history; no backup was deleted: move the file to another "
            "folder"
        )
        ahead = (
            "{} is dated {}, after this machine's time; no backup was deleted: set the clock, or if it is right, "
            "move the file to another folder"
        )
        return [lost.format(folder / backup.file, backup.head) for backup in self.lost] + [
            ahead.format(folder / backup.file, f"{format_instant(backup.made_at)[:19]}Z") for backup in self.ahead
        ]


def parse_policy(text: str) -> dict[str, int]:
    """Parse a policy such as 14d,8w,12m: the numbers of days, weeks and months by unit. Raises `ValueError`."""
    numbers: dict[str, int] = {}
    for part in text.split(","):
        match = _POLICY_PART.fullmatch(part.strip())
        if match is None or match.group(2) in numbers:
            raise ValueError("give numbers of days, weeks and months to keep, each at most once, such as 14d,8w,12m")
        numbers[match.group(2)] = int(match.group(1))
    return numbers


_PERIODS: Mapping[str, Callable[[date], tuple[int, ...]]] = {
    "d": lambda day: (day.year, day.month, day.day),
    "w": lambda day: day.isocalendar()[:2],
    "m": lambda day: (day.year, day.month),
}


def select_expired(backups: Sequence[Backup], policy: Mapping[str, int]) -> list[Backup]:
    """Select the backups that a policy does not keep, from all of a ledger's in the order they were made.

    For each day, week or month, the policy keeps the backup with the highest position. The last backup, and the one
    with the highest position of all, are always kept.
    """

    def by_position(number: int) -> tuple[int, int]:
        return backups[number].head.position, number

    kept = {len(backups) - 1, max(range(len(backups)), key=by_position)} if backups else set()
    for unit, limit in policy.items():
        best: dict[tuple[int, ...], int] = {}
        for number in sorted(range(len(backups)), key=by_position):
            day = (EPOCH + timedelta(microseconds=backups[number].made_at)).date()
            best[_PERIODS[unit](day)] = number
        kept.update(best[period] for period in sorted(best)[-limit:])
    return [backup for number, backup in enumerate(backups) if number not in kept]


def make_backup(ledger: Ledger, folder: Path, clock: Clock, policy: Mapping[str, int] | None = None) -> BackupResult:
    """Make a full backup in a folder, creating it if need be, then drop the backups that a policy does not keep.

    Records a run. Raises `OSError`, `BadBackupList`, `AlreadyRunning`, and `StoreDamaged` if the log is damaged.
    """
    with record_run(ledger, "backup", clock) as run:
        make_folder(folder)
        result = _make_locked(ledger, folder, clock, policy)
        run.position, run.details = (
            result.backup.head.position,
            {
                "file": result.backup.file,
                "dropped": len(result.dropped),
            },
        )
        if problems := result.problems(folder):
            run.fail(problems[0])
    return result


def make_folder(folder: Path) -> None:
    """Create a folder for backups unless it exists. Raises `OSError` if no backup can be written there."""
    if not os.path.lexists(folder):
        folder.mkdir(mode=0o700)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _make_locked(ledger: Ledger, folder: Path, clock: Clock, policy: Mapping[str, int] | None) -> BackupResult:
    with _lock_folder(folder), ledger.reading() as connection:
        backups = read_list(folder)
        own_id = ledger_id(connection)
        lost = [
            backup
            for backup in backups
            if backup.ledger_id == own_id and chain_hash_at(connection, backup.head.position) != backup.head.chain_hash
        ]
        _drop_orphans(folder)
        new_backup = _write_backup(connection, folder, own_id, now := clock())
        backups.append(new_backup)
        _write_list(folder, backups)
        mismatched = [
            (backup.file, text) for backup in backups if (text := _describe_mismatch(folder, backup)) is not None
        ]
        mismatched_files = {file for file, _ in mismatched}
        intact = [backup for backup in backups if backup.ledger_id == own_id and backup.file not in mismatched_files]
        ahead = [backup for backup in intact if is_ahead(backup.made_at, now)]
        dropped = [] if lost or ahead or policy is None else select_expired(intact, policy)
        for backup in dropped:
            _delete_backup(folder, backup)
        if mismatched or dropped:
            _write_list(folder, [backup for backup in backups if os.path.lexists(folder / backup.file)])
    return BackupResult(
        backup=new_backup,
        dropped=[backup.file for backup in dropped],
        kept=len(intact) - len(dropped),
        lost=lost,
        mismatched=mismatched,
        ahead=ahead,
    )


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, which is released when the process ends. Raises `AlreadyRunning`."""
    with open_own(folder / LOCK_NAME, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(f"another backup into {folder} is running; this one did nothing") from None
        yield


def _write_backup(connection: Connection, folder: Path, own_id: str, now: int) -> Backup:
    """Write a new backup of all events to disk. The head file gets its final name first, so every backup has one."""
    place = place_at(connection, head(connection).position)
    stem = f"ratings-{format_instant(now)[:19].replace(':', '')}Z-{place.position}"
    paths = (folder / f"{stem}{f'-{number}' if number > 1 else ''}.jsonl.gz" for number in count(1))
    path = next(path for path in paths if not os.path.lexists(path) and not os.path.lexists(f"{path}{HEAD_SUFFIX}"))
    try:
        with create_file(str(path), 0o600) as file:
            with open_compressed(file) as lines:
                lines.writelines(export_lines(connection, 0, place.position))
            file.flush()
            size = os.fstat(file.fileno()).st_size
            with create_file(f"{path}{HEAD_SUFFIX}", 0o600) as head_file:
                head_file.write(_head_text(place))
    except BaseException:
        _drop_orphans(folder)
        raise
    return Backup(path.name, own_id, place, now, size)


def _drop_orphans(folder: Path) -> None:
    """Delete this account's head files whose backup is missing; a killed process leaves them."""
    for name in os.listdir(folder):
        backup = name.removesuffix(HEAD_SUFFIX)
        if backup != name and _FILE.fullmatch(backup) and not os.path.lexists(folder / backup):
            with suppress(OSError):
                with open_own(folder / name, "rb") as file:
                    is_head = parse_place(file.read(200).decode("ascii", "replace").strip()) is not None
                if is_head:
                    (folder / name).unlink()


def _head_text(place: Place) -> bytes:
    return f"{place}\n".encode()


def read_head_file(file: str) -> Place | None:
    """Read the head file of a backup; None if it has none. Raises `Refused` for bad content."""
    if not os.path.isfile(f"{file}{HEAD_SUFFIX}"):
        return None
    with open(f"{file}{HEAD_SUFFIX}", "rb") as head_file:
        place = parse_place(head_file.read(200).decode("ascii", "replace").strip())
    if place is None:
        raise Refused("end-mismatch", f"{file}{HEAD_SUFFIX} contains no head of the form POSITION:CHAINHASH")
    return place


def _describe_mismatch(folder: Path, backup: Backup) -> str | None:
    """Describe how a file differs from the recorded backup; None if it does not."""
    try:
        status = os.lstat(folder / backup.file)
    except OSError as error:
        return "is gone" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return "no longer belongs to this account"
    return None if status.st_size == backup.size else f"has {status.st_size:,} bytes instead of {backup.size:,}"


def _delete_backup(folder: Path, backup: Backup) -> None:
    """Delete a backup, then its head file if that still contains the backup's head."""
    (folder / backup.file).unlink()
    head_file = folder / f"{backup.file}{HEAD_SUFFIX}"
    with suppress(OSError):
        with open_own(head_file, "rb") as file:
            is_ours = file.read(200) == _head_text(backup.head)
        if is_ours:
            head_file.unlink()


def read_list(folder: Path) -> list[Backup]:
    """Read the list of the backups in a folder, in order. Raises `BadBackupList`, `OSError`."""
    path = folder / LIST_NAME
    try:
        with open_own(path, "rb") as file:
            text = file.read(LIST_BYTES_MAX)
    except FileNotFoundError:
        return []
    try:
        return [_parse_entry(**member) for member in json.loads(text)["backups"]]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BadBackupList(
            f"{path} is not a list of backups: {quote(str(error))}; move the file elsewhere to start a new list; "
            "the backups in the old list will then never be deleted"
        ) from None


def _parse_entry(file: Any, ledger_id: Any, head: Any, made_at: Any, bytes: Any) -> Backup:  # noqa: A002
    place = parse_place(head)
    if not _FILE.fullmatch(file) or place is None or not isinstance(ledger_id, str) or type(bytes) is not int:
        raise ValueError(f"{quote(file)} is not a backup that this program made")
    return Backup(file, ledger_id, place, parse_instant(made_at), bytes)


def backup_json(backup: Backup) -> dict[str, Any]:
    """Return a backup as an entry of the list."""
    return {
        "file": backup.file,
        "ledger_id": backup.ledger_id,
        "head": str(backup.head),
        "made_at": format_instant(backup.made_at),
        "bytes": backup.size,
    }


def _write_list(folder: Path, backups: Sequence[Backup]) -> None:
    text = json.dumps({"backups": [backup_json(backup) for backup in backups]}, indent=1)
    replace_file(str(folder / LIST_NAME), f"{text}\n".encode())
