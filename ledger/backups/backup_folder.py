"""A folder of backups: full exports, each with its head next to it, and a list of those this program made there.

    ratings-backups.json                              the list
    ratings-2026-11-22T031700Z-50577.jsonl.gz         an export, made then, up to that position
    ratings-2026-11-22T031700Z-50577.jsonl.gz.head    50577:9f86d0...

A policy such as 14d,8w,12m decides which old ones are dropped: it keeps the last of each of the latest 14 days, 8 weeks
and 12 months (UTC) that have any. Only files named in the list are ever dropped, and only if they are unchanged; and
heads whose backup never got its name, because its process was killed.
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
from ratings_ledger.ledger.store.exports import Place, export_lines, open_compressed, place_at, read_place
from ratings_ledger.ledger.store.log import chain_hash_at, head, ledger_id
from ratings_ledger.ledger.store.opening import Ledger
from ratings_ledger.ledger.store.runs import record_run

LIST, LOCK, HEAD = "ratings-backups.json", ".ratings-backups.lock", ".head"
LIST_BYTES_MAX = 1 << 24
_FILE = re.compile(r"ratings-\d{4}-\d\d-\d\dT\d{6}Z-\d{1,16}(-\d{1,6})?\.jsonl\.gz", re.ASCII)
_KEEP = re.compile(r"([1-9]\d{0,3})([dwm])", re.ASCII)


class Backup(NamedTuple):
    """A backup as the list names it; `made_at` in microseconds since 1970 UTC, `size` in bytes."""

    file: str
    ledger_id: str
    head: Place
    made_at: int
    size: int


class BackupResult(NamedTuple):
    """What `make_backup` did: the new backup, the names of those it dropped, and how many of this ledger's are kept.

    `lost` are earlier backups whose history the ledger no longer contains, `ahead` those dated after now: with any of
    these, nothing is dropped. `odd` are those that are missing or changed, with what is wrong.
    """

    backup: Backup
    dropped: list[str]
    kept: int
    lost: list[Backup]
    odd: list[tuple[str, str]]
    ahead: list[Backup]

    def problems(self, folder: Path) -> list[str]:
        """Return why nothing was dropped, one sentence per backup."""
        lost = "the ledger does not contain the history of {}, which is {}; nothing was dropped"
        ahead = (
            "{} is dated {}, after this machine's time; nothing was dropped: set the clock, or if it is right, move "
            "the file to another folder"
        )
        return [lost.format(folder / backup.file, backup.head) for backup in self.lost] + [
            ahead.format(folder / backup.file, f"{format_instant(backup.made_at)[:19]}Z") for backup in self.ahead
        ]


def read_policy(text: str) -> dict[str, int]:
    """Return how many days (d), weeks (w) and months (m) a text such as 14d,8w,12m keeps. Raises `ValueError`."""
    found: dict[str, int] = {}
    for part in text.split(","):
        match = _KEEP.fullmatch(part.strip())
        if match is None or match.group(2) in found:
            raise ValueError("write how many days, weeks and months to keep, each once, such as 14d,8w,12m")
        found[match.group(2)] = int(match.group(1))
    return found


_PERIODS: Mapping[str, Callable[[date], tuple[int, ...]]] = {
    "d": lambda day: (day.year, day.month, day.day),
    "w": lambda day: day.isocalendar()[:2],
    "m": lambda day: (day.year, day.month),
}


def select_expired(backups: Sequence[Backup], policy: Mapping[str, int]) -> list[Backup]:
    """Return the backups that a policy does not keep, given all of a ledger's in the order they were made.

    For each day, week or month the one that reaches furthest is kept. Neither the last one made nor the one that
    reaches furthest of all is ever dropped, whatever their dates say.
    """

    def reach(number: int) -> tuple[int, int]:
        return backups[number].head.position, number

    kept = {len(backups) - 1, max(range(len(backups)), key=reach)} if backups else set()
    for unit, wanted in policy.items():
        best: dict[tuple[int, ...], int] = {}
        for number in sorted(range(len(backups)), key=reach):
            day = (EPOCH + timedelta(microseconds=backups[number].made_at)).date()
            best[_PERIODS[unit](day)] = number
        kept.update(best[period] for period in sorted(best)[-wanted:])
    return [backup for number, backup in enumerate(backups) if number not in kept]


def make_backup(ledger: Ledger, folder: Path, clock: Clock, policy: Mapping[str, int] | None = None) -> BackupResult:
    """Make a full backup in a folder, creating it if need be, then drop the backups that a policy does not keep.

    It leaves a run. Raises `OSError`, `BadBackupList`, `AlreadyRunning`, and `StoreDamaged` if what would be written
    is not a backup.
    """
    with record_run(ledger, "backup", clock) as run:
        make_folder(folder)
        done = _make(ledger, folder, clock, policy)
        run.position, run.details = done.backup.head.position, {"file": done.backup.file, "dropped": len(done.dropped)}
        if problems := done.problems(folder):
            run.fail(problems[0])
    return done


def make_folder(folder: Path) -> None:
    """Create a folder for backups unless it exists. Raises `OSError` if no backup can be written there."""
    if not os.path.lexists(folder):
        folder.mkdir(mode=0o700)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _make(ledger: Ledger, folder: Path, clock: Clock, policy: Mapping[str, int] | None) -> BackupResult:
    with _only_one(folder), ledger.reading() as connection:
        listed = read_list(folder)
        own = ledger_id(connection)
        lost = [
            one
            for one in listed
            if one.ledger_id == own and chain_hash_at(connection, one.head.position) != one.head.chain_hash
        ]
        _drop_orphans(folder)
        backup = _written(connection, folder, own, now := clock())
        listed.append(backup)
        _write_list(folder, listed)
        odd = [(one.file, what) for one in listed if (what := _oddity(folder, one)) is not None]
        gone = {name for name, _ in odd}
        there = [one for one in listed if one.ledger_id == own and one.file not in gone]
        ahead = [one for one in there if is_ahead(one.made_at, now)]
        dropped = [] if lost or ahead or policy is None else select_expired(there, policy)
        for one in dropped:
            _unlink(folder, one)
        if odd or dropped:
            _write_list(folder, [one for one in listed if os.path.lexists(folder / one.file)])
    return BackupResult(backup, [one.file for one in dropped], len(there) - len(dropped), lost, odd, ahead)


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, which is released when the process ends. Raises `AlreadyRunning`."""
    with open_own(folder / LOCK, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(f"another backup into {folder} is running; this one did nothing") from None
        yield


def _written(connection: Connection, folder: Path, own: str, now: int) -> Backup:
    """Write a new backup of all events to disk. The small file is named first, so no backup is ever without it."""
    place = place_at(connection, head(connection).position)
    stem = f"ratings-{format_instant(now)[:19].replace(':', '')}Z-{place.position}"
    names = (f"{stem}{f'-{number}' if number > 1 else ''}.jsonl.gz" for number in count(1))
    name = next(name for name in names if not any(os.path.lexists(folder / f"{name}{end}") for end in ("", HEAD)))
    path = folder / name
    try:
        with create_file(str(path), 0o600) as file:
            with open_compressed(file) as lines:
                lines.writelines(export_lines(connection, 0, place.position))
            file.flush()
            size = os.fstat(file.fileno()).st_size
            with create_file(f"{path}{HEAD}", 0o600) as small:
                small.write(_head_text(place))
    except BaseException:
        _drop_orphans(folder)
        raise
    return Backup(name, own, place, now, size)


def _drop_orphans(folder: Path) -> None:
    """Delete the small files of this account whose backup never got its name, because its process was killed."""
    for name in os.listdir(folder):
        backup = name.removesuffix(HEAD)
        if backup != name and _FILE.fullmatch(backup) and not os.path.lexists(folder / backup):
            with suppress(OSError):
                with open_own(folder / name, "rb") as file:
                    is_head = read_place(file.read(200).decode("ascii", "replace").strip()) is not None
                if is_head:
                    (folder / name).unlink()


def _head_text(place: Place) -> bytes:
    return f"{place}\n".encode()


def read_head_beside(file: str) -> Place | None:
    """Return the head in the small file next to a backup, or None if there is none. Raises `Refused` for any other
    content.
    """
    if not os.path.isfile(f"{file}{HEAD}"):
        return None
    with open(f"{file}{HEAD}", "rb") as small:
        place = read_place(small.read(200).decode("ascii", "replace").strip())
    if place is None:
        raise Refused("end-mismatch", f"{file}{HEAD} holds no head, which is written POSITION:CHAINHASH")
    return place


def _oddity(folder: Path, backup: Backup) -> str | None:
    """Return how a file differs from the backup that was made, or None if it does not."""
    try:
        found = os.lstat(folder / backup.file)
    except OSError as error:
        return "is gone" if isinstance(error, FileNotFoundError) else str(error.strerror)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return "no longer belongs to this account"
    return None if found.st_size == backup.size else f"has {found.st_size:,} bytes, was made with {backup.size:,}"


def _unlink(folder: Path, backup: Backup) -> None:
    """Delete a backup, then the small file next to it unless that holds something else."""
    (folder / backup.file).unlink()
    small = folder / f"{backup.file}{HEAD}"
    with suppress(OSError):
        with open_own(small, "rb") as file:
            is_ours = file.read(200) == _head_text(backup.head)
        if is_ours:
            small.unlink()


def read_list(folder: Path) -> list[Backup]:
    """Return the backups that were made in a folder, in order. Raises `BadBackupList`, `OSError`."""
    path = folder / LIST
    try:
        with open_own(path, "rb") as file:
            text = file.read(LIST_BYTES_MAX)
    except FileNotFoundError:
        return []
    try:
        return [_listed(**member) for member in json.loads(text)["backups"]]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BadBackupList(
            f"{path} is not a list of backups: {quote(str(error))}; move it away, and what it names is never dropped"
        ) from None


def _listed(file: Any, ledger_id: Any, head: Any, made_at: Any, bytes: Any) -> Backup:  # noqa: A002
    place = read_place(head)
    if not _FILE.fullmatch(file) or place is None or not isinstance(ledger_id, str) or type(bytes) is not int:
        raise ValueError(f"{quote(file)} is not a backup that this program made")
    return Backup(file, ledger_id, place, parse_instant(made_at), bytes)


def backup_json(backup: Backup) -> dict[str, Any]:
    """Return a backup as it is written in the list."""
    return {
        "file": backup.file, "ledger_id": backup.ledger_id, "head": str(backup.head),
        "made_at": format_instant(backup.made_at), "bytes": backup.size,
    }  # fmt: skip


def _write_list(folder: Path, backups: Sequence[Backup]) -> None:
    text = json.dumps({"backups": [backup_json(backup) for backup in backups]}, indent=1)
    replace_file(str(folder / LIST), f"{text}\n".encode())
