"""Describe new backups, and check that a backup is complete and gives the same ladders as the ledger."""

import tempfile
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ratings_ledger.ledger.backups.backup_files import (
    BackupContents,
    BackupFiles,
    RefusedFile,
    check_backup,
    store_backup,
)
from ratings_ledger.ledger.backups.backup_folder import BackupResult, read_head_file, to_list_entry
from ratings_ledger.ledger.rejections import Refused, Rejection
from ratings_ledger.ledger.store.exports import BEGINNING, ChainHead
from ratings_ledger.ledger.store.log import read_chain_hash
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.ledger.verification import Finding
from ratings_ledger.projections.admission.ladder_checks import RecordedChecks
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, INLINE, Absent, Result
from ratings_ledger.projections.stored.computing import LadderFailure, compute, plan


@dataclass(frozen=True, slots=True)
class NewBackup(Result):
    """A new backup.

    backup:   the backup as an entry of the folder's list
    position: the position of its last event
    dropped:  the files of deleted backups
    kept:     the number of this ledger's intact backups that remain
    lost:     earlier backups whose history the ledger does not contain
    ahead:    backups dated in the future
    """

    backup: dict[str, Any] = field(metadata=INLINE)
    position: int
    dropped: tuple[str, ...]
    kept: int
    lost: tuple[dict[str, Any], ...]
    ahead: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class BackupFile(Result):
    """A file of a backup: its number of events, and the head after its last event."""

    file: str
    events: int
    head: str
    position: int = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class BackupCheck(Result):
    """The result of checking a backup. `whole` tells whether it is complete; `ladders` counts the compared ladders.

    A backup that is not complete has a finding, no `head` and no `files`.
    """

    whole: bool
    head: str | None
    files: tuple[BackupFile, ...]
    findings: tuple[Rejection | Finding, ...]
    ladders: int | Absent = ABSENT


def describe_new_backup(folder: Path, result: BackupResult) -> NewBackup:
    """Describe a new backup for output, with file paths that include the folder."""
    backup = result.backup
    return NewBackup(
        backup=to_list_entry(backup) | {"file": str(folder / backup.file)},
        position=backup.head.position,
        dropped=tuple(str(folder / name) for name in result.deleted),
        kept=result.kept,
        lost=tuple(map(to_list_entry, result.diverged)),
        ahead=tuple(map(to_list_entry, result.ahead)),
    )


def check_backup_files(files_to_check: BackupFiles, live: str | None = None) -> BackupCheck:
    """Check that a backup is complete. With the name of a live ledger, restore the backup and compare all ladders.

    Raises `StoreUnavailable`, `NotALedger`, and the errors of `find_differing_ladders`.
    """
    try:
        contents = check_backup(files_to_check)
        _check_head_files(files_to_check, contents)
    except RefusedFile as refused:
        return BackupCheck(whole=False, head=None, files=(), findings=(refused.rejection,))
    files = tuple(
        BackupFile(file=name, events=end.position - start.position, head=str(end), position=end.position)
        for name, (start, end) in zip(files_to_check.files, pairwise([BEGINNING, *contents.heads]), strict=True)
    )
    findings: list[Finding] = []
    ladders = ABSENT if live is None else _compare_with_live(open_ledger(live), files_to_check, contents, findings)
    return BackupCheck(whole=True, head=str(contents.head), files=files, findings=tuple(findings), ladders=ladders)


def _check_head_files(files_to_check: BackupFiles, contents: BackupContents) -> None:
    """Raise `RefusedFile` if a head file of a backup is not valid or names a different head than the file ends at."""
    for name, head in zip(files_to_check.files, contents.heads, strict=True):
        try:
            if (expected_head := read_head_file(name)) not in (None, head):
                raise Refused(
                    "end-mismatch",
                    f"{name}.head names {expected_head}, but {name} ends at {head}; replace the changed file with its "
                    "original, or use another backup",
                )
        except Refused as problem:
            raise RefusedFile(name, problem) from None


def _compare_with_live(
    live: Ledger, files_to_check: BackupFiles, contents: BackupContents, findings: list[Finding]
) -> int:
    """Restore a backup into a temporary ledger, compare it with the live ledger, and return the backup's ladder count.

    The differences are appended to `findings`.
    """
    with tempfile.TemporaryDirectory(prefix="ratings-check-") as folder:
        restored = upgrade(f"{folder}/ratings.db")
        store_backup(restored, files_to_check, contents, RecordedChecks)
        differences = find_differing_ladders(restored, live, contents.head)
        while True:
            try:
                findings.append(next(differences))
            except StopIteration as end:
                return int(end.value)


def find_differing_ladders(restored: Ledger, live: Ledger, head: ChainHead) -> Generator[Finding, None, int]:
    """Replay a restored and the live ledger at a head; yield a finding for each ladder that differs or fails.

    Return the number of ladders of the restored ledger; 0 if the live ledger has another history. Raises
    `StoreDamaged`, `WorkerLost`.
    """
    with live.reading() as connection:
        if read_chain_hash(connection, head.position) != head.chain_hash:
            yield Finding("head", head.position, f"{live.location} does not contain the history of this backup")
            return 0
    live_digests, restored_digests = _compute_digests(live, head.position), _compute_digests(restored, head.position)
    for ladder in sorted(live_digests.keys() | restored_digests.keys()):
        live_digest, restored_digest = live_digests.get(ladder), restored_digests.get(ladder)
        for failure in {digest for digest in (live_digest, restored_digest) if isinstance(digest, LadderFailure)}:
            yield Finding("rule", failure.position, f"{failure.ladder}: {failure.message}")
        if (
            live_digest != restored_digest
            and not isinstance(live_digest, LadderFailure)
            and not isinstance(restored_digest, LadderFailure)
        ):
            message = f"{ladder}: the standings of the backup differ from those of the ledger"
            yield Finding("standings", head.position, message)
    return len(restored_digests)


def _compute_digests(ledger: Ledger, position: int) -> dict[str, str | LadderFailure]:
    """Return the digest of each ladder at a position, or the failure of its replay."""
    with ledger.reading() as connection:
        ladders = Ladders(decode(connection, position, cached=False))
    with closing(compute(ladders, plan(ladders))) as results:
        return {result.ladder: result if isinstance(result, LadderFailure) else result.digest for result in results}
