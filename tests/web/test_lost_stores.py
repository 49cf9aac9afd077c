"""Pages of a store that is locked, gone, replaced or old are 503 with the reason, and come back without a restart."""

import json
import shutil
import sqlite3
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
from small_disks import mount_small_disk
from sqlalchemy import make_url
from stores import create_postgres_database, start_own_server
from thresholds import set_thresholds

Ratings = Callable[..., Any]
STANDINGS = f"/ladders/{LADDER}.json"


@pytest.fixture(autouse=True)
def _shorten_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for a new head at every request, and wait only briefly for a lock."""
    set_thresholds(monkeypatch, head_us=0, lock_seconds=0.2)


@pytest.fixture
def file(copy_ledger_file: Callable[..., str]) -> Path:
    """Return the club's ledger in a file."""
    return Path(copy_ledger_file(create_club))


def serve_club(url: str) -> Application:
    """Return the application that serves a ledger's pages."""
    return serve(url, "The club")


def check_unavailable(pages: Application, reason: str, secret: str) -> None:
    """Check that pages and JSON are 503 with a reason that does not reveal where the ledger is."""
    for address in ("/", STANDINGS, "/games.jsonl"):
        response = get(pages, address)
        assert (response.status, response.headers["retry-after"]) == (503, "5"), (address, response.text)
        assert reason in response.text, (address, response.text)
        assert secret not in response.text
    assert json.loads(get(pages, STANDINGS).text)["error"]["status"] == 503


def list_players(response: Response) -> set[str]:
    """Return the players in the JSON of standings."""
    assert response.status == 200, response.text
    return {row["player"] for row in json.loads(response.text)["rows"]}


def test_locked_file_is_unavailable_until_unlocked(file: Path) -> None:
    """While another connection locks the file, pages give the reason soon; afterwards they are as before."""
    pages = serve_club(str(file))
    before = get(pages, STANDINGS)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        check_unavailable(pages, "the store was locked", str(file))
        connection.execute("ROLLBACK")
    assert get(pages, STANDINGS) == before


def test_missing_or_foreign_file_is_unavailable(file: Path, tmp_path: Path) -> None:
    """While the file is missing or is no ledger, pages give the reason; once the ledger is back, they are as before."""
    pages = serve_club(str(file))
    before = get(pages, STANDINGS)
    file.rename(tmp_path / "away")
    check_unavailable(pages, "no ledger exists at the location", str(file))
    file.write_bytes(b"")
    check_unavailable(pages, "no ledger exists at the location", str(file))
    file.write_bytes(b"no database, and longer than the header of one has to be" * 20)
    check_unavailable(pages, "does not name a ledger", str(file))
    (tmp_path / "away").replace(file)
    assert get(pages, STANDINGS) == before


def create_other_club(ratings: Ratings, url: str) -> None:
    """Create a ledger with other players on the same ladder, and at least as many events as the club's."""
    run_ok(ratings, "init", "--for", "catan", "--zone", "Europe/Berlin", "--by", "otto", db=url)
    for number in range(1, 30):
        run_ok(ratings, "record", "-q", "--game", "catan", "--game-id", f"g-{number}", "--by", "otto", "--at",
           f"2025-01-{number:02}T20:00Z", "--new-names", "accept", "otto", "pia", db=url)  # fmt: skip


@pytest.mark.slow
def test_replaced_file_is_another_ledger(file: Path, copy_ledger_file: Callable[..., str], tmp_path: Path) -> None:
    """After a ledger's file is replaced by another ledger's, no response at any coordinates shows the former ledger."""
    pages, other_file = serve_club(str(file)), Path(copy_ledger_file(create_other_club, name="other.db"))
    assert "anna" in list_players(get(pages, STANDINGS))
    assert list_players(get(pages, f"{STANDINGS}?known_at=4"))
    games_file = get(pages, "/games.jsonl")
    shutil.copy(file, tmp_path / "mine.db")
    other_file.replace(file)
    assert list_players(get(pages, STANDINGS)) == {"otto", "pia"}
    assert list_players(get(pages, f"{STANDINGS}?known_at=4")) <= {"otto", "pia"}
    assert get(pages, "/players/anna.json").status == 404
    assert b"anna" not in get(pages, "/games.jsonl", {"if-none-match": games_file.headers["etag"]}).body
    (tmp_path / "mine.db").replace(file)
    assert "anna" in list_players(get(pages, STANDINGS))


def test_ledger_replaced_during_a_request_is_unavailable(
    file: Path, copy_ledger_file: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the ledger is replaced during a request, the response is 503, and nothing of it is cached."""
    pages, other_file = serve_club(str(file)), Path(copy_ledger_file(create_other_club, name="other.db"))
    act_before_pages(monkeypatch, lambda: other_file.exists() and other_file.replace(file))
    response = get(pages, STANDINGS)
    assert (response.status, "replaced by a different ledger" in response.text) == (503, True)
    assert list_players(get(pages, STANDINGS)) == {"otto", "pia"}


@pytest.fixture
def older_url(store: str) -> str:
    """Return the URL of a ledger with an earlier schema, in each kind of store."""
    return create_older_store(store, "0006")


@pytest.mark.slow_cases
def test_upgraded_schema_is_seen(older_url: str, ratings: Ratings) -> None:
    """A ledger with an older schema is 503 with the reason until `init` upgrades it, without a restart."""
    pages = serve_club(older_url)
    check_unavailable(pages, "an older program made the ledger", str(make_url(older_url).database))
    run_ok(ratings, "init", "--for", "catan", "--by", "mira", db=older_url)
    assert get(pages, "/").status == 200
    run_ok(ratings, *LATE, "--new-names", "accept", "--by", "mira", db=older_url)
    assert list_players(get(pages, STANDINGS)) == {"anna", "ben"}


@pytest.fixture
def full_disk(file: Path) -> Iterator[Path]:
    """Yield a copy of the ledger on a full file system."""
    with TemporaryDirectory() as folder, mount_small_disk(folder, file.stat().st_size + 65_536):
        copy = Path(shutil.copy(file, folder))
        with suppress(OSError), (Path(folder) / "stuffing").open("wb", buffering=0) as stuffing:
            while True:
                stuffing.write(bytes(4_096))
        yield copy


def test_pages_work_on_a_full_disk(file: Path, full_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a ledger on a full disk, with no space for caches, are the same as those of its copy elsewhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(full_disk.parent / "cache"))
    pages, elsewhere = serve_club(str(full_disk)), serve_club(str(file))
    for address in ("/", STANDINGS, "/games/g-1", "/players/anna/elo-catan/all", "/games.jsonl"):
        assert get(pages, address) == get(elsewhere, address), address


@pytest.mark.slow
def test_stopped_server_is_unavailable_until_restarted(ratings: Ratings) -> None:
    """While PostgreSQL is down, pages give the reason; after it has started again, they show the ledger."""
    with start_own_server() as server, create_postgres_database(server.url) as url:
        create_club(ratings, url)
        pages = serve_club(url)
        before = get(pages, STANDINGS)
        assert before.status == 200
        server.kill()
        check_unavailable(pages, "the store cannot be reached", make_url(url).database or url)
        server.start()
        assert get(pages, STANDINGS) == before
        run_ok(ratings, *LATE, db=url)
        assert get(pages, STANDINGS) != before


@pytest.mark.slow
def test_locked_table_is_unavailable_until_unlocked(postgres_url: str, ratings: Ratings) -> None:
    """While another session locks the log in PostgreSQL, pages give the reason; afterwards they are as before."""
    create_club(ratings, postgres_url)
    pages = serve_club(postgres_url)
    before = get(pages, STANDINGS)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
        check_unavailable(pages, "the store was locked", make_url(postgres_url).database or postgres_url)
        connection.rollback()
    assert get(pages, STANDINGS) == before
