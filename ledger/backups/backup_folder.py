"""A folder of backups: full exports, each with a head file, and a list of the backups made there.

    ratings-backups.json                              the list
    ratings-2026-11-22T031700Z-50577.jsonl.gz         an export of that time, up to that position
    ratings-2026-11-22T031700Z-50577.jsonl.gz.head    50577:9f86d0...

A policy such as 14d,8w,12m looks at the latest 14 days, 8 weeks and 12 months (UTC) that have backups, and keeps the
backup with the highest position in each. Other backups are deleted if they are in the list and unmodified. Orphaned
head files, left by a killed process, are deleted too.
"""

import errno
import fcntl
import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ratings_ledger.ledger.clock import Clock, is_ahead
from ratings_ledger.ledger.errors import AlreadyRunning, BadBackupList
from ratings_ledger.ledger.events.canonical import EPOCH, format_instant, parse_instant
from ratings_ledger.ledger.own_files import create_file, open_own, replace_file
from ratings_ledger.ledger.rejections import Refused, quote
from ratings_ledger.ledger.store.exports import (
    ChainHead,
    export_lines,
    open_compressed,
    parse_chain_head,
    read_chain_head,
)
from ratings_ledger.ledger.store.log import head, ledger_id, read_chain_hash
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import record_run

LIST_NAME, LOCK_NAME, HEAD_SUFFIX = "ratings-backups.json", ".ratings-backups.lock", ".head"
LIST_BYTES_MAX = 1 << 24
_FILE = re.compile(r"ratings-\d{4}-\d\d-\d\dT\d{6}Z-\d{1,16}(-\d{1,6})?\.jsonl\.gz", re.ASCII)
_POLICY_PART = re.compile(r"([1-9]\d{0,3})([dwm])", re.ASCII)


class Backup(NamedTuple):
    """An entry of the list of backups; `made_at` is in microseconds since 1970 UTC, `size` in bytes."""

    file: str
    ledger_id: str
    head: ChainHead
    made_at: int
    size: int


class BackupResult(NamedTuple):
    """The result of `make_backup`.

    backup      the new backup
    deleted     the names of the files of deleted backups
    kept        the number of this ledger's intact backups that remain
    diverged    earlier backups whose history the ledger does not contain; while there are any, none is deleted
    mismatched  (file, description) of each backup in the list whose file is missing or modified
    ahead       backups dated in the future; while there are any, none is deleted
    """

    backup: Backup
    deleted: list[str]
    kept: int
    diverged: list[Backup]
    mismatched: list[tuple[str, str]]
    ahead: list[Backup]

    def describe_problems(self, folder: Path) -> list[str]:
        """Describe why no backup was deleted: a sentence for each diverged or future backup."""
        diverged = (
            "{} ends at {}, which is not in this ledger's history; no backup was deleted: move the file to another "
            "folder"
        )
        ahead = (
            "{} is dated {}, which is in the future on this machine; no backup was deleted: correct the clock, or move "
            "the file to another folder if the clock is right"
        )
        return [diverged.format(folder / backup.file, backup.head) for backup in self.diverged] + [
            ahead.format(folder / backup.file, f"{format_instant(backup.made_at)[:19]}Z") for backup in self.ahead
        ]


def parse_policy(text: str) -> dict[str, int]:
    """Parse a policy such as 14d,8w,12m: how many days (d), weeks (w) and months (m) to keep. Raises `ValueError`."""
    limits: dict[str, int] = {}
    for part in text.split(","):
        match = _POLICY_PART.fullmatch(part.strip())
        if match is None or match.group(2) in limits:
            raise ValueError(
                f"{quote(text)} is not a policy; list how many days, weeks and months to keep (1 to 9999), each at "
                "most once, such as 14d,8w,12m"
            )
        limits[match.group(2)] = int(match.group(1))
    return limits


# functions that map a day to its day, week or month
_PERIODS: Mapping[str, Callable[[date], tuple[int, ...]]] = {
    "d": lambda day: (day.year, day.month, day.day),
    "w": lambda day: day.isocalendar()[:2],
    "m": lambda day: (day.year, day.month),
}


def select_expired(backups: Sequence[Backup], policy: Mapping[str, int]) -> list[Backup]:
    """Return the backups of one ledger that a policy does not keep; `backups` are in the order in which they were made.

    For each of the latest days, weeks and months that it covers, the policy keeps the backup with the highest position.
    It always keeps the last backup, and the backup with the highest position of all.
    """

    def get_sort_key(index: int) -> tuple[int, int]:
        return backups[index].head.position, index

    kept_indexes = {len(backups) - 1, max(range(len(backups)), key=get_sort_key)} if backups else set()
    for unit, limit in policy.items():
        best: dict[tuple[int, ...], int] = {}
        for index in sorted(range(len(backups)), key=get_sort_key):
            day = (EPOCH + timedelta(microseconds=backups[index].made_at)).date()
            best[_PERIODS[unit](day)] = index
        kept_indexes.update(best[period] for period in sorted(best)[-limit:])
    return [backup for index, backup in enumerate(backups) if index not in kept_indexes]


def make_backup(ledger: Ledger, folder: Path, clock: Clock, policy: Mapping[str, int] | None = None) -> BackupResult:
    """Make a full backup in a folder, which is created if necessary, then delete the backups that a policy drops.

    The run is recorded. Raises `OSError`, `BadBackupList`, `AlreadyRunning`, `StoreUnavailable`, and `StoreDamaged` if
    the log is damaged.
    """
    with record_run(ledger, "backup", clock) as run:
        make_folder(folder)
        with _lock_folder(folder), ledger.reading() as connection:
            result = _make_backup_in_locked_folder(connection, folder, clock, policy)
        run.position = result.backup.head.position
        run.details = {"file": result.backup.file, "dropped": len(result.deleted)}
        if problems := result.describe_problems(folder):
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


def _make_backup_in_locked_folder(
    connection: Connection, folder: Path, clock: Clock, policy: Mapping[str, int] | None
) -> BackupResult:
    backups = read_list(folder)
    own_id = ledger_id(connection)
    diverged = [
        backup
        for backup in backups
        if backup.ledger_id == own_id and read_chain_hash(connection, backup.head.position) != backup.head.chain_hash
    ]
    _delete_orphans(folder)
    now = clock()
    new_backup = _write_backup(connection, folder, own_id, now)
    backups.append(new_backup)
    _write_list(folder, backups)
    mismatched = [(backup.file, text) for backup in backups if (text := _describe_mismatch(folder, backup)) is not None]
    mismatched_files = {file for file, _ in mismatched}
    intact = [backup for backup in backups if backup.ledger_id == own_id and backup.file not in mismatched_files]
    ahead = [backup for backup in intact if is_ahead(backup.made_at, now)]
    expired = [] if diverged or ahead or policy is None else select_expired(intact, policy)
    for backup in expired:
        _delete_backup(folder, backup)
    if mismatched or expired:
        _write_list(folder, [backup for backup in backups if os.path.lexists(folder / backup.file)])
    return BackupResult(
        backup=new_backup,
        deleted=[backup.file for backup in expired],
        kept=len(intact) - len(expired),
        diverged=diverged,
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
            raise AlreadyRunning(
                f"another backup into {folder} is running, so none was made; try again when it has finished"
            ) from None
        yield


def _write_backup(connection: Connection, folder: Path, own_id: str, now: int) -> Backup:
    """Write a new backup of all events to disk.

    The head file appears in the folder before the backup does, so no backup lacks a head file.
    """
    latest = read_chain_head(connection, head(connection).position)
    stem = f"ratings-{format_instant(now)[:19].replace(':', '')}Z-{latest.position}"
    paths = (folder / f"{stem}{f'-{number}' if number > 1 else ''}.jsonl.gz" for number in count(1))
    path = next(path for path in paths if not os.path.lexists(path) and not os.path.lexists(f"{path}{HEAD_SUFFIX}"))
    try:
        with create_file(str(path), 0o600) as file:
            with open_compressed(file) as lines:
                lines.writelines(export_lines(connection, 0, latest.position))
            file.flush()
            size = os.fstat(file.fileno()).st_size
            with create_file(f"{path}{HEAD_SUFFIX}", 0o600) as head_file:
                head_file.write(_format_head(latest))
    except BaseException:
        _delete_orphans(folder)
        raise
    return Backup(path.name, own_id, latest, now, size)


def _delete_orphans(folder: Path) -> None:
    """Delete this user's orphaned head files: those without a backup, left behind by a killed process."""
    for name in os.listdir(folder):
        backup = name.removesuffix(HEAD_SUFFIX)
        if backup != name and _FILE.fullmatch(backup) and not os.path.lexists(folder / backup):
            with suppress(OSError):
                with open_own(folder / name, "rb") as file:
                    is_head = parse_chain_head(file.read(200).decode("ascii", "replace").strip()) is not None
                if is_head:
                    (folder / name).unlink()


def _format_head(head: ChainHead) -> bytes:
    return f"{head}\n".encode()


def read_head_file(file: str) -> ChainHead | None:
    """Return the head in a backup's head file; None if the backup has no head file. Raises `Refused` for bad content.

    `file` is the path of the backup.
    """
    if not os.path.isfile(f"{file}{HEAD_SUFFIX}"):
        return None
    with open(f"{file}{HEAD_SUFFIX}", "rb") as head_file:
        head = parse_chain_head(head_file.read(200).decode("ascii", "replace").strip())
    if head is None:
        raise Refused(
            "end-mismatch",
            f"{file}{HEAD_SUFFIX} does not contain POSITION:CHAINHASH; restore this file, or delete it to check the "
            "backup without it",
        )
    return head


def _describe_mismatch(folder: Path, backup: Backup) -> str | None:
    """Describe how a backup's file differs from its entry in the list; None if it does not."""
    try:
        status = os.lstat(folder / backup.file)
    except OSError as error:
        return "is gone" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
    if not stat.S_ISREG(status.st_mode):
        return "is no longer a regular file"
    if status.st_uid != os.geteuid():
        return "no longer belongs to this user"
    return None if status.st_size == backup.size else f"has {status.st_size:,} bytes instead of {backup.size:,}"


def _delete_backup(folder: Path, backup: Backup) -> None:
    """Delete a backup, then its head file if the head file still contains the backup's head."""
    (folder / backup.file).unlink()
    head_file = folder / f"{backup.file}{HEAD_SUFFIX}"
    with suppress(OSError):
        with open_own(head_file, "rb") as file:
            is_ours = file.read(200) == _format_head(backup.head)
        if is_ours:
            head_file.unlink()


def read_list(folder: Path) -> list[Backup]:
    """Read the list of a folder's backups, in the order in which they were made. Raises `BadBackupList`, `OSError`."""
    path = folder / LIST_NAME
    try:
        with open_own(path, "rb") as file:
            text = file.read(LIST_BYTES_MAX)
    except FileNotFoundError:
        return []
    try:
        return _parse_list(text)
    except ValueError as error:
        quoted_path = shlex.quote(str(path))
        raise BadBackupList(
            f"{path} is not a list of backups: {error}; to start a new list: mv {quoted_path} "
            f"{shlex.quote(f'{path}.old')}; policies will then never delete the backups in the old list"
        ) from None


def _parse_list(text: bytes) -> list[Backup]:
    """Parse a list of backups. Raises `ValueError`, whose message names the error and its entry."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    entries = content.get("backups") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise ValueError('it has no list called "backups"')
    return [_parse_entry(entry, number) for number, entry in enumerate(entries, 1)]


def _parse_entry(entry: Any, number: int) -> Backup:
    """Parse an entry of the list; `number` counts from 1. Raises `ValueError`."""
    if not isinstance(entry, dict) or entry.keys() != _PARSERS.keys():
        raise ValueError(f"entry {number} needs exactly these members: {', '.join(_PARSERS)}")
    values = {}
    for name, parse in _PARSERS.items():
        try:
            values[name] = parse(entry[name])
        except (ValueError, TypeError):
            value = json.dumps(entry[name], ensure_ascii=False)
            raise ValueError(f"entry {number} has an invalid {name}: {quote(value)}") from None
    return Backup(values["file"], values["ledger_id"], values["head"], values["made_at"], values["bytes"])


def _parse_file_name(value: Any) -> str:
    if not _FILE.fullmatch(value):
        raise ValueError
    return str(value)


def _parse_head(value: Any) -> ChainHead:
    if (head := parse_chain_head(value)) is None:
        raise ValueError
    return head


def _check_type(expected_type: type, value: Any) -> Any:
    # bool is a subclass of int, but True is not a valid size
    if type(value) is not expected_type:
        raise TypeError
    return value


# a parser for each member of an entry; it raises `ValueError` or `TypeError` for a value that the program never writes
_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "file": _parse_file_name,
    "ledger_id": partial(_check_type, str),
    "head": _parse_head,
    "made_at": parse_instant,
    "bytes": partial(_check_type, int),
}


def to_list_entry(backup: Backup) -> dict[str, Any]:
    """Convert a backup to an entry of the list."""
    return {
        "file": backup.file,
        "ledger_id": backup.ledger_id,
        "head": str(backup.head),
        "made_at": format_instant(backup.made_at),
        "bytes": backup.size,
    }


def _write_list(folder: Path, backups: Sequence[Backup]) -> None:
    text = json.dumps({"backups": [to_list_entry(backup) for backup in backups]}, indent=1)
    replace_file(str(folder / LIST_NAME), f"{text}\n".encode())
