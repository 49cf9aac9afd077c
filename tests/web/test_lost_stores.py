"""A store that is locked, full, gone, replaced or old while it is served: 503 with the reason, and back by itself."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from asking import Application, Response, act_before_pages, get, serve
from club import LADDER, LATE, create_club, run_ok
from ledgers import create_older_store
from sqlalchemy import make_url
from stores import create_postgres_database, start_own_server
from thresholds import set_thresholds

Ratings = Callable[..., Any]
STANDINGS = f"/ladders/{LADDER}.json"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for a new head at every request, and wait for no lock longer than a moment."""
    set_thresholds(monkeypatch, head_us=0, lock_seconds=0.2)


@pytest.fixture
def file(copied_file: Callable[..., str]) -> Path:
    """The club's ledger in a file."""
    return Path(copied_file(create_club))


def pages_of(url: str) -> Application:
    return serve(url, "The club")


def assert_unavailable(pages: Application, why: str, secret: str) -> None:
    """That pages and JSON are 503 with a reason that does not tell where the ledger is."""
    for address in ("/", STANDINGS, "/games.jsonl"):
        response = get(pages, address)
        assert (response.status, response.headers["retry-after"]) == (503, "5"), (address, response.text)
        assert why in response.text, (address, response.text)
        assert secret not in response.text
    assert json.loads(get(pages, STANDINGS).text)["error"]["status"] == 503


def players(told: Response) -> set[str]:
    assert told.status == 200, told.text
    return {row["player"] for row in json.loads(told.text)["rows"]}


def test_locked_file_is_told_and_comes_back(file: Path) -> None:
    """While another process has the file locked, the reason is told within the time that people wait."""
    pages = pages_of(str(file))
    before = get(pages, STANDINGS)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert_unavailable(pages, "the store was locked", str(file))
        other.execute("ROLLBACK")
    assert get(pages, STANDINGS) == before


def test_file_that_is_gone_or_damaged_comes_back(file: Path, tmp_path: Path) -> None:
    """While the file is away, or something else lies there, the reason is told; the ledger is shown once it is back."""
    pages = pages_of(str(file))
    before = get(pages, STANDINGS)
    file.rename(tmp_path / "away")
    assert_unavailable(pages, "no ledger exists at the location", str(file))
    file.write_bytes(b"")
    assert_unavailable(pages, "no ledger exists at the location", str(file))
    file.write_bytes(b"no database, and longer than the header of one has to be" * 20)
    assert_unavailable(pages, "does not name a ledger", str(file))
    (tmp_path / "away").replace(file)
    assert get(pages, STANDINGS) == before


def other_club(ratings: Ratings, url: str) -> None:
    """Another ledger that has as many events as the club's, or more: other people, the same ladder."""
    run_ok(ratings, "init", "--for", "catan", "--zone", "Europe/Berlin", "--by", "otto", db=url)
    for number in range(1, 30):
        run_ok(ratings, "record", "-q", "--game", "catan", "--game-id", f"g-{number}", "--by", "otto", "--at",
           f"2025-01-{number:02}T20:00Z", "--new-names", "accept", "otto", "pia", db=url)  # fmt: skip


@pytest.mark.slow
def test_replaced_file_is_another_ledger(file: Path, copied_file: Callable[..., str], tmp_path: Path) -> None:
    """After a file is replaced by that of another ledger, no answer of the one before is given, at no coordinates."""
    pages, other = pages_of(str(file)), Path(copied_file(other_club, name="other.db"))
    assert "anna" in players(get(pages, STANDINGS))
    assert players(get(pages, f"{STANDINGS}?known_at=4"))
    mine = get(pages, "/games.jsonl")
    shutil.copy(file, tmp_path / "mine.db")
    other.replace(file)
    assert players(get(pages, STANDINGS)) == {"otto", "pia"}
    assert players(get(pages, f"{STANDINGS}?known_at=4")) <= {"otto", "pia"}
    assert get(pages, "/players/anna.json").status == 404
    assert b"anna" not in get(pages, "/games.jsonl", {"if-none-match": mine.headers["etag"]}).body
    (tmp_path / "mine.db").replace(file)
    assert "anna" in players(get(pages, STANDINGS))


def test_answer_is_of_one_ledger(
    file: Path, copied_file: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that is replaced while an answer is worked out gives no answer, nor is one kept."""
    pages, other = pages_of(str(file)), Path(copied_file(other_club, name="other.db"))
    act_before_pages(monkeypatch, lambda: other.exists() and other.replace(file))
    response = get(pages, STANDINGS)
    assert (response.status, "replaced by a different ledger" in response.text) == (503, True)
    assert players(get(pages, STANDINGS)) == {"otto", "pia"}


@pytest.fixture
def older(store: str) -> str:
    """A ledger as an earlier program made it, in each kind of store."""
    return create_older_store(store, "0006")


@pytest.mark.slow_cases
def test_upgraded_schema_is_seen(older: str, ratings: Ratings) -> None:
    """An older ledger is refused with the reason until `init` has upgraded it; nothing has to be started again."""
    pages = pages_of(older)
    assert_unavailable(pages, "an older program made the ledger", str(make_url(older).database))
    run_ok(ratings, "init", "--for", "catan", "--by", "mira", db=older)
    assert get(pages, "/").status == 200
    run_ok(ratings, *LATE, "--new-names", "accept", "--by", "mira", db=older)
    assert players(get(pages, STANDINGS)) == {"anna", "ben"}


@pytest.fixture
def full_disk(file: Path) -> Iterator[Path]:
    """The ledger on a file system that has no room left."""
    with TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={file.stat().st_size + 65_536}", "none", folder]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("only root can mount a small file system")
        try:
            path = Path(shutil.copy(file, folder))
            with suppress(OSError), (Path(folder) / "filling").open("wb", buffering=0) as filling:
                while True:
                    filling.write(bytes(4_096))
            yield path
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def test_full_disk_does_not_matter(file: Path, full_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages only read: they are shown from a full disk, as from another, also where caches have no room."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(full_disk.parent / "cache"))
    pages, elsewhere = pages_of(str(full_disk)), pages_of(str(file))
    for address in ("/", STANDINGS, "/games/g-1", "/players/anna/elo-catan/all", "/games.jsonl"):
        assert get(pages, address) == get(elsewhere, address), address


@pytest.mark.slow
def test_restarted_server_is_found_again(ratings: Ratings) -> None:
    """While PostgreSQL is down, the reason is told; after it has started again, pages are shown."""
    with start_own_server() as started, create_postgres_database(started.url) as url:
        create_club(ratings, url)
        pages = pages_of(url)
        before = get(pages, STANDINGS)
        assert before.status == 200
        started.kill()
        assert_unavailable(pages, "the store cannot be reached", make_url(url).database or url)
        started.start()
        assert get(pages, STANDINGS) == before
        run_ok(ratings, *LATE, db=url)
        assert get(pages, STANDINGS) != before


@pytest.mark.slow
def test_locked_table_is_told_and_comes_back(postgres_url: str, ratings: Ratings) -> None:
    """While somebody has the log locked in PostgreSQL, the reason is told."""
    create_club(ratings, postgres_url)
    pages = pages_of(postgres_url)
    before = get(pages, STANDINGS)
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
        assert_unavailable(pages, "the store was locked", make_url(postgres_url).database or postgres_url)
        other.rollback()
    assert get(pages, STANDINGS) == before
