"""Why a command stopped: an exit code, a message, and for who reads JSON a reason that is never renamed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, text

from ledger import errors
from ledger.errors import REASONS, LedgerError, NoLedger, NotALedger, StoreUnavailable
from ledger.store.opening import connect, open_ledger
from ledger.store.schema import SCHEMA_REVISION
from projections.stored.rebuild_lock import only_one

Ratings = Callable[..., Any]


def stopped(ratings: Ratings, *command: object, db: str) -> tuple[int, str]:
    """The exit code and the reason of a command that is asked for JSON; the message stands before them."""
    told = ratings(*command, "--format", "json", db=db)
    *lines, last = told.stderr.splitlines()
    found = json.loads(last)
    assert (told.stdout, found["exit_code"]) == ("", told.exit_code)
    assert found["message"] in "\n".join(lines)
    assert "reason" not in ratings(*command, db=db).stderr
    return told.exit_code, found["reason"]


def test_given_no_ledger_when_asked_then_the_code_is_the_same_on_every_store(
    store: str, ratings: Ratings, tmp_path: Path
) -> None:
    """Given a file that is missing, an empty database, or one with other tables, then the exit code is 3."""
    if store.startswith("sqlite"):
        assert stopped(ratings, "status", db=store) == (3, "no-ledger")
        Path(str(make_url(store).database)).touch()
    assert stopped(ratings, "status", db=store) == (3, "no-ledger")
    assert stopped(ratings, "rebuild", db=store) == (3, "no-ledger")
    for kind in (NoLedger, StoreUnavailable, NotALedger):
        with pytest.raises(kind):
            open_ledger(store)


def test_given_a_rebuild_that_runs_when_another_one_begins_then_the_code_is_its_own(
    ledger_url: str, ratings: Ratings
) -> None:
    with only_one(open_ledger(ledger_url)):
        assert stopped(ratings, "rebuild", db=ledger_url) == (4, "already-running")
        told = ratings("rebuild", "--log", "json", db=ledger_url)
        assert [(line["reason"], line["exit_code"]) for line in map(json.loads, told.stderr.splitlines())] == [
            ("already-running", 4)
        ]
    assert json.loads(ratings("status", "--format", "json", db=ledger_url).stdout)["runs"] == {}


def test_given_other_ways_to_stop_when_asked_then_each_has_its_reason(
    ledger_url: str, ratings: Ratings, tmp_path: Path
) -> None:
    assert stopped(ratings, "standings", "nope", db=ledger_url) == (2, "usage")
    assert stopped(ratings, "rebuild", "--rollback", db=ledger_url) == (1, "no-earlier-generation")
    for version, reason in (("9999", "new-schema"), ("0001", "old-schema")):
        with open_ledger(ledger_url).writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})
        assert stopped(ratings, "status", db=ledger_url) == (2, reason)
        with connect(ledger_url).writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": SCHEMA_REVISION})
    assert stopped(ratings, "status", db="postgresql://nobody@127.0.0.1:1/none") == (3, "unreachable")
    assert stopped(ratings, "status", db="mysql://x/y") == (2, "not-a-ledger")


def test_given_every_kind_of_failure_when_listed_then_its_reason_is_one_of_the_table() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LedgerError)]
    assert len(kinds) > 10
    for kind in kinds:
        assert REASONS[kind.reason][0] == kind.exit_code or kind is LedgerError


def test_given_a_bug_a_full_disk_or_too_little_memory_when_told_then_each_has_its_reason(
    ledger_url: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, reason in (
        (OSError(28, "No space left on device", "x"), (3, "no-space")),
        (OSError(13, "Permission denied", "x"), (3, "file")),
        (MemoryError(), (3, "out-of-memory")),
        (ZeroDivisionError("x"), (1, "bug")),
        (KeyboardInterrupt(), (130, "interrupted")),
    ):

        def fails(*arguments: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("cli.commands.status.state_of", fails)
        assert stopped(ratings, "status", db=ledger_url) == reason
