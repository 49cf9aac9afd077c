"""Why a command stopped: an exit code, a message, and in JSON a reason that is never renamed."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ledgers import open_for_writing
from rebuilds import keep_rebuilds_out
from sqlalchemy import make_url, text

from ratings_ledger import BadArgument, LedgerError, NoLedger, NotALedger, RuleFailed, StoreUnavailable, Unknown
from ratings_ledger.ledger import errors
from ratings_ledger.ledger.errors import REASONS
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION

Ratings = Callable[..., Any]


def read_stop(ratings: Ratings, *command: object, db: str) -> tuple[int, str]:
    """Return (exit code, reason) of a command with JSON output; its message must precede the JSON, as text."""
    result = ratings(*command, "--format", "json", db=db)
    *lines, last = result.stderr.splitlines()
    output = json.loads(last)
    assert (result.stdout, output["exit_code"]) == ("", result.exit_code)
    assert output["message"] in "\n".join(lines)
    assert "reason" not in ratings(*command, db=db).stderr
    return result.exit_code, output["reason"]


def test_missing_ledger_exits_with_3(store: str, ratings: Ratings) -> None:
    """For a missing file, an empty file and an empty database, a command stops with exit code 3 and `no-ledger`."""
    if store.startswith("sqlite"):
        assert read_stop(ratings, "status", db=store) == (3, "no-ledger")
        Path(str(make_url(store).database)).touch()
    assert read_stop(ratings, "status", db=store) == (3, "no-ledger")
    assert read_stop(ratings, "rebuild", db=store) == (3, "no-ledger")
    # in Python, the error belongs to all of these types
    for error_type in (NoLedger, StoreUnavailable, NotALedger):
        with pytest.raises(error_type):
            open_ledger(store)


def test_second_rebuild_exits_with_4(ledger_url: str, ratings: Ratings) -> None:
    """A rebuild during another one exits with 4 and `already-running`, and leaves no run."""
    with keep_rebuilds_out(ledger_url):
        assert read_stop(ratings, "rebuild", db=ledger_url) == (4, "already-running")
        result = ratings("rebuild", "--log", "json", db=ledger_url)
        assert [(line["reason"], line["exit_code"]) for line in map(json.loads, result.stderr.splitlines())] == [
            ("already-running", 4)
        ]
    assert json.loads(ratings("status", "--format", "json", db=ledger_url).stdout)["runs"] == {}


def test_each_stop_names_its_cause(ledger_url: str, ratings: Ratings) -> None:
    """A command that stops gives the exit code and the reason of its cause, such as an old schema."""
    assert read_stop(ratings, "standings", "nope", db=ledger_url) == (2, "usage")
    assert read_stop(ratings, "rebuild", "--rollback", db=ledger_url) == (1, "no-earlier-generation")
    for version, reason in (("9999", "new-schema"), ("0001", "old-schema")):
        with open_ledger(ledger_url).writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})
        assert read_stop(ratings, "status", db=ledger_url) == (2, reason)
        with open_for_writing(ledger_url) as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": SCHEMA_REVISION})
    assert read_stop(ratings, "status", db="postgresql://nobody@127.0.0.1:1/none") == (3, "unreachable")
    assert read_stop(ratings, "status", db="mysql://x/y") == (2, "not-a-ledger")


def test_every_error_has_a_known_reason() -> None:
    """Every kind of error has a reason in the table, with the same exit code."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LedgerError)]
    assert len(kinds) > 10
    for kind in kinds:
        assert REASONS[kind.reason][0] == kind.exit_code or kind is LedgerError


def test_every_error_survives_pickling() -> None:
    """Every kind of error keeps its type, message and attributes when it is pickled, as for a worker process."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LedgerError)]
    for error in [kind("here", "there") for kind in kinds if kind not in (Unknown, RuleFailed)] + [
        Unknown("player-unknown", "nobody"),
        RuleFailed("it failed", "elo/all"),
        BadArgument("wrong", "since"),
    ]:
        unpickled_error = pickle.loads(pickle.dumps(error))
        assert (type(unpickled_error), str(unpickled_error), vars(unpickled_error)) == (
            type(error),
            str(error),
            vars(error),
        )


def test_system_failures_have_reasons(ledger_url: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug, a full disk, a forbidden file, lack of memory and an interruption each have a reason of their own."""
    for error, expected in (
        (OSError(28, "No space left on device", "x"), (3, "no-space")),
        (OSError(13, "Permission denied", "x"), (3, "file")),
        (MemoryError(), (3, "out-of-memory")),
        (OSError(12, "Cannot allocate memory"), (3, "out-of-memory")),
        (RuntimeError("can't start new thread"), (3, "out-of-memory")),
        (ImportError("x.so: failed to map segment from shared object"), (3, "out-of-memory")),
        (RuntimeError("x"), (1, "bug")),
        (SystemError("error return without exception set"), (1, "bug")),
        (ZeroDivisionError("x"), (1, "bug")),
        (KeyboardInterrupt(), (130, "interrupted")),
    ):

        def fail(*arguments: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("ratings_ledger.cli.commands.status.read_ledger_status", fail)
        assert read_stop(ratings, "status", db=ledger_url) == expected
