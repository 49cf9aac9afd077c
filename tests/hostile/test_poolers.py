"""A ledger works through PgBouncer with pooling by session; pooling by transaction or statement is refused."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from fault_helpers import build_game_event, wait_until
from ledgers import open_for_writing
from lengths import mark_long_values
from rebuilds import act_before_promotion
from sqlalchemy import make_url, text
from thresholds import set_thresholds

from ratings_ledger.ledger.events.canonical import dump

pytestmark = [
    pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="PgBouncer is not installed"),
    pytest.mark.timeout(120),
]
Ratings = Callable[..., Any]
CHESS = ("--game", "chess", "--at", "2024-01-01T20:00Z")
COMMANDS = [
    ("init", "--for", "chess"),
    ("record", *CHESS, "--game-id", "first", "anna", "ben"),
    ("rebuild",),
    ("verify",),
    ("status",),
    ("doctor",),
    ("standings", "elo-chess/all"),
    ("export", "events"),
]


@contextmanager
def run_pooler(direct: str, mode: str, connections: int = 20) -> Iterator[str]:
    """Yield the URL of a database through a PgBouncer with this `pool_mode` and number of server connections."""
    url = make_url(direct)
    host = str(url.query.get("host") or url.host)
    # PgBouncer does not run as root, and has to reach the socket of the server
    user = (os.stat(host).st_uid if host.startswith("/") else 65_534) if os.geteuid() == 0 else None
    with TemporaryDirectory(prefix="ratings-pooler-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if user is not None:
            os.chown(folder, user, -1)
        password = f"password='{url.password}'" if url.password else ""
        server = f"host={host} port={url.port or 5432} user={url.username} {password}"
        (folder / "settings").write_text(
            f"[databases]\n{url.database} = {server}\n[pgbouncer]\nlisten_port = 6432\nunix_socket_dir = {folder}\n"
            f"auth_type = any\npool_mode = {mode}\ndefault_pool_size = {connections}\nlogfile = {folder}/log\n"
        )
        with subprocess.Popen(["pgbouncer", "-q", str(folder / "settings")], user=user) as process:
            try:
                pooled_url = f"postgresql://{url.username}@/{url.database}?host={folder}&port=6432"
                wait_until(lambda: is_answering(pooled_url))
                yield pooled_url
            finally:
                process.terminate()


def is_answering(url: str) -> bool:
    with suppress(psycopg.OperationalError), psycopg.connect(url):
        return True
    return False


def build_lines(numbers: range) -> str:
    return "\n".join(dump(build_game_event(number)) for number in numbers)


def test_session_pooling_changes_nothing(ratings: Ratings, postgres_url: str) -> None:
    """Through a pooler in session mode, everything works as without it.

    This covers every main command, and imports of sizes that are appended in different ways.
    """
    with run_pooler(postgres_url, "session") as db:
        for command in COMMANDS:
            result = ratings(*command, db=db)
            # the tests' role has more rights than it should, which `doctor` reports
            assert result.exit_code == 0 or command == ("doctor",), result
            assert "bug" not in result.stderr
        for numbers in (range(1), range(3), range(300)):
            assert ratings("import", "-", db=db, input=build_lines(numbers)).exit_code == 0
        assert ratings("rebuild", db=db).exit_code == 0
        assert ratings("verify", db=db) == (0, "", "")
        exported = ratings("export", "events", db=db)
    assert ratings("export", "events", db=postgres_url) == exported
    assert ratings("verify", db=postgres_url) == (0, "", "")


def test_session_pooling_keeps_locks(ratings: Ratings, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a pooler in session mode, settings and the lock of rebuilds are kept.

    A second rebuild while the first promotes, and a record while the table is locked, report that they are kept out.
    """
    with run_pooler(postgres_url, "session") as db:
        assert ratings("init", "--for", "chess", db=db).exit_code == 0
        second_results: list[Any] = []
        act_before_promotion(monkeypatch, lambda: second_results.append(ratings("rebuild", db=db)))
        first_result = ratings("rebuild", db=db)
        assert (first_result.exit_code, first_result.stderr) == (0, "")
        assert [(result.exit_code, "another rebuild" in result.stderr) for result in second_results] == [(4, True)]
        with open_for_writing(postgres_url) as connection:
            connection.execute(text("LOCK TABLE events IN ACCESS EXCLUSIVE MODE"))
            busy = ratings("record", *CHESS, "--game-id", "g-2", "anna", "ben", db=f"{db}&timeout=0.2")
        assert (busy.exit_code, "is busy" in busy.stderr) == (3, True), busy


@pytest.mark.parametrize("mode", mark_long_values(["transaction"], ["transaction", "statement"]))
def test_pooling_without_sessions_is_refused(
    mode: str, ratings: Ratings, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler that keeps no session is refused by every command, and nothing is changed."""
    set_thresholds(monkeypatch, notify_seconds=1)
    with run_pooler(postgres_url, mode) as db:
        for has_ledger in (False, True):
            if has_ledger:
                assert ratings("init", "--for", "chess", db=postgres_url).exit_code == 0
            before = ratings("log", db=postgres_url)
            for command in COMMANDS if has_ledger else COMMANDS[:1]:
                result = ratings(*command, db=db)
                output = result.stdout + result.stderr
                assert (result.exit_code, "pool_mode = session" in output) == (2, True), (command, result)
            assert ratings("log", db=postgres_url) == before
    assert ratings("verify", db=postgres_url) == (0, "", "")


def test_single_pooled_connection_suffices(
    ratings: Ratings, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler that claims session mode is trusted when it has only one connection to check it with."""
    set_thresholds(monkeypatch, notify_seconds=1)
    assert ratings("init", "--for", "chess", db=postgres_url).exit_code == 0
    with run_pooler(postgres_url, "session", connections=1) as db:
        result = ratings("status", db=db)
        assert (result.exit_code, result.stderr) == (0, ""), result
