"""Backups that were made, and that were checked: whether they are whole, and give the same ladders as their ledger."""

import tempfile
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ratings_ledger.ledger.backups.backup_folder import BackupResult, backup_json, read_head_file
from ratings_ledger.ledger.backups.restoring import BackupContents, BackupFiles, RefusedFile, check_backup, store_backup
from ratings_ledger.ledger.rejections import Refused, Rejection
from ratings_ledger.ledger.store.exports import BEGINNING, Place
from ratings_ledger.ledger.store.log import chain_hash_at
from ratings_ledger.ledger.store.opening import Ledger, open_ledger
from ratings_ledger.ledger.store.upgrading import upgrade
from ratings_ledger.ledger.verification import Finding
from ratings_ledger.projections.admission.events import RecordedChecks
from ratings_ledger.projections.facts.decoding import decode
from ratings_ledger.projections.queries.ladders_at import Ladders
from ratings_ledger.projections.queries.results import ABSENT, HIDDEN, SPREAD, Absent, Result
from ratings_ledger.projections.stored.computing import LadderFailure, compute, plan


@dataclass(frozen=True, slots=True)
class BackupMade(Result):
    """A new backup as the list of its folder names it, which others were dropped, and how many are kept.

    `lost` are earlier ones whose history the ledger does not contain, `ahead` those dated after now.
    """

    backup: dict[str, Any] = field(metadata=SPREAD)
    position: int
    dropped: tuple[str, ...]
    kept: int
    lost: tuple[dict[str, Any], ...]
    ahead: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class BackupFile(Result):
    """A file of a backup, how many events it has, and the head after it."""

    file: str
    events: int
    head: str
    position: int = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class BackupChecked(Result):
    """Whether a backup is whole, what it holds, and what is wrong with it; `ladders` is how many were compared."""

    whole: bool
    head: str | None
    files: tuple[BackupFile, ...]
    findings: tuple[Rejection | Finding, ...]
    ladders: int | Absent = ABSENT


def backup_made(folder: Path, done: BackupResult) -> BackupMade:
    """Return what became of a backup in a folder."""
    backup, dropped = done.backup, tuple(str(folder / name) for name in done.dropped)
    named = backup_json(backup) | {"file": str(folder / backup.file)}
    lost, ahead = tuple(map(backup_json, done.lost)), tuple(map(backup_json, done.ahead))
    return BackupMade(named, backup.head.position, dropped, done.kept, lost, ahead)


def checked_backup(asked: BackupFiles, live: str | None = None) -> BackupChecked:
    """Check that a backup is whole; with the name of a live ledger, restore it and compare all ladders with that one.

    Raises `StoreUnavailable`, `NotALedger`.
    """
    try:
        whole = check_backup(asked)
        _refuse_other_heads(asked, whole)
    except RefusedFile as refused:
        return BackupChecked(False, None, (), (refused.rejection,))
    files = tuple(
        BackupFile(name, place.position - before.position, str(place), place.position)
        for name, (before, place) in zip(asked.files, pairwise([BEGINNING, *whole.heads]), strict=True)
    )
    findings: list[Finding] = []
    ladders = ABSENT if live is None else _rehearse(open_ledger(live), asked, whole, findings)
    return BackupChecked(True, str(whole.head), files, tuple(findings), ladders)


def _refuse_other_heads(asked: BackupFiles, whole: BackupContents) -> None:
    """Raises `RefusedFile` if the small file beside a backup names another head."""
    for name, place in zip(asked.files, whole.heads, strict=True):
        try:
            if (beside := read_head_file(name)) not in (None, place):
                raise Refused("end-mismatch", f"{name}.head names {beside}, but the file ends at {place}")
        except Refused as problem:
            raise RefusedFile(name, problem) from None


def _rehearse(live: Ledger, asked: BackupFiles, whole: BackupContents, findings: list[Finding]) -> int:
    """Restore a backup into a temporary ledger and compare it with the live one; returns how many ladders it has."""
    with tempfile.TemporaryDirectory(prefix="ratings-check-") as folder:
        restored = upgrade(f"{folder}/ratings.db")
        store_backup(restored, asked, whole, RecordedChecks)
        differences = ladder_differences(restored, live, whole.head)
        while True:
            try:
                findings.append(next(differences))
            except StopIteration as end:
                return int(end.value)


def ladder_differences(restored: Ledger, live: Ledger, place: Place) -> Generator[Finding, None, int]:
    """Ladders whose digests differ at a head between a restored ledger and the live one; both are replayed.

    Returns how many ladders there are. Raises `StoreDamaged`, `WorkerLost`.
    """
    with live.reading() as connection:
        if chain_hash_at(connection, place.position) != place.chain_hash:
            yield Finding("head", place.position, f"{live.location} does not contain the history of this backup")
            return 0
    expected, restored_digests = _digests(live, place.position), _digests(restored, place.position)
    for ladder in sorted(expected.keys() | restored_digests.keys()):
        live_digest, restored_digest = expected.get(ladder), restored_digests.get(ladder)
        for failure in {digest for digest in (live_digest, restored_digest) if isinstance(digest, LadderFailure)}:
            yield Finding("rule", failure.position, f"{failure.ladder}: {failure.message}")
        if (
            live_digest != restored_digest
            and not isinstance(live_digest, LadderFailure)
            and not isinstance(restored_digest, LadderFailure)
        ):
            yield Finding("standings", place.position, f"{ladder}: the backup gives other standings than the ledger")
    return len(restored_digests)


def _digests(ledger: Ledger, position: int) -> dict[str, str | LadderFailure]:
    """Return the digest of each ladder at a position, or why it cannot be replayed."""
    with ledger.reading() as connection:
        ladders = Ladders(decode(connection, position, cached=False))
    with closing(compute(ladders, plan(ladders))) as results:
        return {result.ladder: result if isinstance(result, LadderFailure) else result.digest for result in results}
