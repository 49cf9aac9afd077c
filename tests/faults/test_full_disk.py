"""A disk that is full in the middle of an import: whole chunks are left, and a rerun completes them."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_helpers import findings, records
from sqlalchemy import event

from ledger import clock, importing
from ledger.cells import TableOptions
from ledger.errors import StoreUnavailable
from ledger.importing import import_items
from ledger.migrate import upgrade
from ledger.sources import read_items
from ledger.store import open_ledger

GAMES = 2_000
CHUNK_EVENTS = 250


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "CHUNK_EVENTS", CHUNK_EVENTS)


@pytest.fixture
def games(tmp_path: Path) -> Path:
    """A file of games, about a megabyte in the ledger."""
    rows = [f"g-{number},2010-03-05T19:30Z,catan,anna,ben,cleo,dora" for number in range(GAMES)]
    path = tmp_path / "games.csv"
    path.write_text("\n".join(["game_id,occurred_at,game,1st,2nd,3rd,4th", *rows, ""]))
    return path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of a file system that has room for a part of the import."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1000k", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def assert_whole_chunks(url: str) -> int:
    """That the ledger holds some of the chunks, not all, and each of them completely; gives how many events."""
    stored = records(url)
    assert 0 < len(stored) < GAMES
    assert len(stored) % CHUNK_EVENTS == 0
    assert [json.loads(record)["id"] for record in stored.values()] == [f"game:g-{n}" for n in range(len(stored))]
    assert findings(url) == []
    return len(stored)


def test_a_file_that_may_not_grow_keeps_whole_chunks(tmp_path: Path, games: Path, ratings: Callable[..., Any]) -> None:
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    upgrade(url)
    ledger = open_ledger(url)

    @event.listens_for(ledger.engine, "connect")
    def limit(connection: Any, record: object) -> None:
        connection.execute("PRAGMA max_page_count = 250")

    with pytest.raises(StoreUnavailable, match="no space left"):
        import_items(ledger, read_items(str(games), TableOptions()), by="test", clock=clock.now)
    held = assert_whole_chunks(url)
    result = ratings("import", games, "--format", "json", db=url)
    assert result.exit_code == 0
    assert (json.loads(result.stdout)["appended"], json.loads(result.stdout)["existing"]) == (GAMES - held, held)
    assert len(records(url)) == GAMES
    assert findings(url) == []


def test_a_full_disk_keeps_whole_chunks(small_disk: Path, games: Path, ratings: Callable[..., Any]) -> None:
    url = f"sqlite:///{small_disk / 'ratings.db'}"
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    result = ratings("import", games, db=url)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no space left" in result.stderr
    assert_whole_chunks(url)
    # on a full disk the ledger can still be read, and an import refuses again without harm
    assert ratings("verify", db=url).exit_code == 0
    assert ratings("import", games, db=url).exit_code == 3
    held = assert_whole_chunks(url)
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    result = ratings("import", games, "--format", "json", db=url)
    assert (result.exit_code, json.loads(result.stdout)["existing"]) == (0, held)
    assert len(records(url)) == GAMES
    assert findings(url) == []
