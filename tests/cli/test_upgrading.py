"""`upgrade`: a ledger gets the schema that the program needs, and nothing else; commands that run meanwhile."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from ledgers import open_for_reading, open_for_writing
from rebuilds import keep_rebuilds_out
from roles import create_documented_roles
from sqlalchemy import make_url, text

import ratings_ledger as rl
from ratings_ledger import OldSchema
from ratings_ledger.ledger.events.types import Draft
from ratings_ledger.ledger.store import postgres, sqlite
from ratings_ledger.ledger.store.appending import append
from ratings_ledger.ledger.store.migrations import build_config
from ratings_ledger.ledger.store.opening import Ledger, connect, read_schema_revision
from ratings_ledger.ledger.store.schema import SCHEMA_REVISION

Ratings = Callable[..., Any]
PAGE = Path(__file__).parents[2] / "docs" / "upgrading.md"
OLD = "0006"


def create_old_ledger(url: str, revision: str) -> str:
    """Create a ledger as a program of an earlier schema did, with two events, and return its URL."""
    with open_for_writing(url) as connection:
        config = build_config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    with accept_older_schema():
        append_players(connect(url), 1, 2)  # in one call: the first schemas cannot take single events
    return url


@contextmanager
def accept_older_schema() -> Iterator[None]:
    """Let this program append to the tables of an earlier schema."""
    with pytest.MonkeyPatch.context() as patch:
        for store in (sqlite, postgres):
            patch.setattr(store, "refuse_unexpected_objects", lambda cursor: None)
        patch.setattr(postgres, "prepare_append", lambda connection: False)
        yield


def append_players(ledger: Ledger, *numbers: int) -> None:
    drafts = [
        Draft(f"player:{number}", "player.registered", 1, f"player:p{number}", 0, f'{{"player":"p{number}"}}')
        for number in numbers
    ]
    append(ledger, drafts, by="referee", clock=lambda: numbers[-1])


def read_revision(url: str) -> str | None:
    with open_for_reading(url) as connection:
        return read_schema_revision(connection)


def read_records(url: str) -> list[Any]:
    with open_for_reading(url) as connection:
        return list(connection.execute(text("SELECT position, record, chain_hash FROM events ORDER BY position")))


def read_head(url: str) -> str:
    position, _, chain_hash = read_records(url)[-1]
    return f"{position}:{bytes(chain_hash).hex()}"


@pytest.mark.parametrize("revision", ["0001", "0003", OLD])
def test_upgrade_preserves_history(revision: str, store: str, ratings: Ratings) -> None:
    """Upgrading an older schema leaves the history as it was and publishes nothing."""
    before = read_records(create_old_ledger(store, revision))
    output = json.loads(ratings("upgrade", "--dry-run", "--format", "json", db=store).stdout)
    steps = [step["revision"] for step in output["steps"]]
    assert (output["from"], output["to"], output["may"], output["upgraded"]) == (revision, SCHEMA_REVISION, True, False)
    assert steps == [f"{number:04d}" for number in range(int(revision) + 1, int(SCHEMA_REVISION) + 1)]
    assert all(step["does"] for step in output["steps"])
    assert (read_revision(store), read_records(store)) == (revision, before)

    report = json.loads(ratings("upgrade", "--format", "json", db=store).stdout)
    assert report == {**output, "dry_run": False, "upgraded": True}
    assert (read_revision(store), read_records(store)) == (SCHEMA_REVISION, before)
    assert ratings("verify", "--head", read_head(store), db=store) == (0, "", "")
    result = ratings("upgrade", db=store)
    assert (result.exit_code, "there is nothing to do" in result.stdout) == (0, True)


def test_older_schema_refuses_other_commands(store: str, ratings: Ratings) -> None:
    """With an older schema, every command but `upgrade` and `init` refuses and names the command to run."""
    before = read_records(create_old_ledger(store, OLD))
    for arguments in (["status"], ["verify"], ["rebuild"], ["export", "events"], ["doctor"]):
        result = ratings(*arguments, db=store)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"has schema {OLD}, but this program needs {SCHEMA_REVISION}" in result.stderr
        assert result.stderr.endswith(" upgrade\n")
    assert read_records(store) == before
    # init still upgrades and publishes missing rulesets
    assert ratings("init", "--for", "chess", db=store).exit_code == 0
    assert (read_revision(store), len(read_records(store))) == (SCHEMA_REVISION, 3)


def test_python_error_names_the_call_that_upgrades(store: str) -> None:
    """Opening an older schema raises an error that names `ratings_ledger.upgrade`, and only that call upgrades."""
    before = read_records(create_old_ledger(store, OLD))
    with pytest.raises(rl.NotALedger, match=r"or from Python: ratings_ledger\.upgrade\(") as refusal:
        rl.open(store)
    assert (refusal.value.reason, read_revision(store)) == ("old-schema", OLD)

    with rl.upgrade(store) as ledger:
        assert ledger.head.position == before[-1][0]
    assert (read_revision(store), read_records(store)) == (SCHEMA_REVISION, before)


def test_newer_schema_is_left_alone(ledger_url: str, ratings: Ratings) -> None:
    """A schema of a newer program is refused by every command and left alone."""
    with open_for_writing(ledger_url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for arguments in (
        ["upgrade"],
        ["upgrade", "--dry-run"],
        ["init"],
        ["status"],
        ["record", "--game", "go", "a", "b"],
    ):
        result = ratings(*arguments, db=ledger_url)
        assert (result.exit_code, result.stdout, "newer ratings-ledger" in result.stderr) == (2, "", True)
    assert (read_revision(ledger_url), read_records(ledger_url)) == ("9999", [])


def test_upgrade_works_in_a_process_of_its_own(tmp_path: Path) -> None:
    """A process that runs only `upgrade` has loaded all that an upgrade needs."""
    db = create_old_ledger(f"sqlite:///{tmp_path / 'old.db'}", OLD)
    command_line = [sys.executable, "-m", "ratings_ledger", "--db", db, "upgrade"]
    outputs = [subprocess.run(command_line, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert f"to {SCHEMA_REVISION}:" in outputs[0]
    assert "there is nothing to do" in outputs[1]


def test_upgrade_creates_no_ledger(store: str, ratings: Ratings) -> None:
    """`upgrade` creates no ledger where none exists."""
    result = ratings("upgrade", db=store)
    assert (result.exit_code in (2, 3), result.stdout, "init" in result.stderr) == (True, "", True)
    assert not store.startswith("sqlite") or not Path(str(make_url(store).database)).exists()


def test_recording_survives_an_upgrade(store: str, ratings: Ratings) -> None:
    """A program that records during an upgrade continues, and its later events are sound.

    The program checked the schema when it began. The new guards check each of its later rows.
    """
    create_old_ledger(store, OLD)
    ledger = connect(store, keep_open=True)
    with pytest.raises(OldSchema, match=f"the ledger has schema {OLD}, but this program needs {SCHEMA_REVISION}"):
        append_players(ledger, 3)
    with accept_older_schema():
        append_players(ledger, 3)
    assert ratings("upgrade", db=store).exit_code == 0
    append_players(ledger, 4)
    ledger.close()
    assert ratings("verify", db=store) == (0, "", "")
    assert len(read_records(store)) == 4


def test_running_rebuild_blocks_upgrade(store: str, ratings: Ratings) -> None:
    """An upgrade is refused while a rebuild is running and works afterwards."""
    create_old_ledger(store, OLD)
    with keep_rebuilds_out(store):
        result = ratings("upgrade", db=store)
        assert (result.exit_code != 0, "rebuild" in result.stderr, read_revision(store)) == (True, True, OLD)
    assert ratings("upgrade", db=store).exit_code == 0


@pytest.mark.slow_cases
def test_held_lock_makes_upgrade_give_up(store: str, ratings: Ratings) -> None:
    """An upgrade fails as a whole while another connection holds a lock, and works afterwards."""
    create_old_ledger(store, "0005")
    with open_for_writing(store) as connection:
        # as a reader's long transaction does in PostgreSQL; in SQLite the transaction is the lock
        connection.execute(text("SELECT * FROM live_generation"))
        result = ratings("upgrade", db=make_url(store).update_query_dict({"timeout": "0.2"}).render_as_string(False))
        assert (result.exit_code, result.stdout) == (3, "")
    assert read_revision(store) == "0005"
    assert ratings("upgrade", db=store).exit_code == 0
    assert ratings("verify", db=store) == (0, "", "")


@pytest.mark.slow
def test_upgrade_names_the_owner(postgres_url: str, ratings: Ratings) -> None:
    """A role that does not own the ledger may not upgrade it, and the message names the owner."""
    with create_documented_roles(ratings, postgres_url) as roles:
        roles.execute("UPDATE alembic_version SET version_num = '0007'")
        for url in (roles.writer, roles.rebuilder, roles.reader):
            for dry_run in ([], ["--dry-run"]):
                result = ratings("upgrade", *dry_run, db=url)
                assert (result.exit_code, read_revision(roles.reader)) == (3, "0007")
                user = make_url(url).username
                message = f"The upgrade must be run by {roles.prefix}owner; you are {user}, who may not run it."
                assert message in result.stdout
        assert ratings("upgrade", "--dry-run", db=roles.owner).exit_code == 0
        assert ratings("upgrade", db=roles.owner).exit_code == 0
        for url in (roles.writer, roles.rebuilder, roles.reader):
            assert ratings("doctor", db=url).exit_code == 0


def test_unwritable_file_is_not_upgraded(tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upgrading a file that this account may not write is refused, and the schema stays."""
    url = create_old_ledger(f"sqlite:///{tmp_path / 'ratings.db'}", OLD)
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)  # tests may run as root, who has every permission
    result = ratings("upgrade", db=url)
    assert (result.exit_code, read_revision(url), "who may not" in result.stdout) == (3, OLD, True)


def test_missing_views_are_recreated(ledger_url: str, ratings: Ratings) -> None:
    """An upgrade recreates missing views, and the ledger verifies again."""
    views = ("live_ladders", "events_readable")
    with open_for_writing(ledger_url) as connection:
        for view in views:
            connection.execute(text(f"DROP VIEW {view}"))
    assert ratings("verify", db=ledger_url).exit_code == 1
    assert json.loads(ratings("upgrade", "--format", "json", db=ledger_url).stdout)["views"] == sorted(views)
    assert ratings("verify", db=ledger_url) == (0, "", "")


def test_page_shows_what_upgrade_prints(tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page on upgrading shows what `upgrade` prints."""
    monkeypatch.chdir(tmp_path)
    create_old_ledger("ratings.db", OLD)
    for arguments in (["upgrade", "--dry-run"], ["upgrade"]):
        output_lines = ratings(*arguments).stdout.splitlines()
        page = PAGE.read_text(encoding="utf-8")
        assert [line for line in output_lines if line not in page and "must be run by" not in line] == []


def test_upgrade_names_the_grants(store: str, ratings: Ratings) -> None:
    """In PostgreSQL, the output of an upgrade names a command that prints the missing grants and works as typed."""
    create_old_ledger(store, OLD)
    result = ratings("upgrade", db=store)
    owner = json.loads(ratings("upgrade", "--format", "json", db=store).stdout)["owner"]
    commands = [line.strip() for line in result.stdout.splitlines() if line.strip().startswith("ratings grants")]
    if not store.startswith("postgresql"):
        assert commands == []
        return
    assert commands == ["ratings grants --sql --as owner"]
    assert f"that {owner} runs" in result.stdout
    statements = ratings(*commands[0].split()[1:], db=store)
    assert (statements.exit_code, "GRANT" in statements.stdout) == (0, True)


def test_documented_way_back_keeps_later_events(ledger_url: str, tmp_path: Path, ratings: Ratings) -> None:
    """The documented commands for going back to an older program restore the same head.

    The documented export for a program that does not know the last line has only the events.
    """
    page = PAGE.read_text(encoding="utf-8")
    match = re.search(r"```\nratings (export events -o) (\S+) .*\nratings (import --restore) \2 ", page)
    assert match is not None
    export, file, restore = match[1].split(), str(tmp_path / match[2]), match[3].split()
    append_players(connect(ledger_url), 1, 2)
    assert ratings(*export, file, db=ledger_url).exit_code == 0
    copy = str(tmp_path / "copy.db")
    assert ratings("init", "--no-rules", db=copy).exit_code == 0
    assert ratings(*restore, file, db=copy).exit_code == 0
    assert read_head(copy) == read_head(ledger_url)

    assert "`ratings export events > since.jsonl`" in page
    events_text = ratings("export", "events", db=ledger_url).stdout
    assert [json.loads(line)["position"] for line in events_text.splitlines()] == [1, 2]
