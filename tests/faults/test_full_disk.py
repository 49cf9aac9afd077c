"""Full disks: an import keeps whole chunks, which a rerun completes, and a failed rebuild frees its space at once.

Messages about output or other files that do not fit on the disk name the file and the fix.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from fault_helpers import list_findings
from ledgers import create_ledger, read_all_records
from small_disks import mount_small_disk, resize_disk
from sqlalchemy import event, text
from thresholds import set_thresholds

from ratings_ledger import StoreUnavailable
from ratings_ledger.ledger.intake.files import read_items
from ratings_ledger.ledger.intake.importing import FileIntake
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.store.opening import open_ledger

GAMES = 2_000
CHUNK_EVENTS = 250
DISK_KIB = 1_000
# a rebuild leaves this space on the disk of a SQLite file
RESERVED_BYTES = 1 << 20


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    set_thresholds(monkeypatch, imported_chunk=CHUNK_EVENTS, stored_rows=CHUNK_EVENTS)


@pytest.fixture
def games(tmp_path: Path) -> Path:
    """Return a file of games that takes about a megabyte in the ledger."""
    rows = [f"g-{number},2010-03-05T19:30Z,catan,anna,ben,cleo,dora" for number in range(GAMES)]
    path = tmp_path / "games.csv"
    path.write_text("\n".join(["game_id,occurred_at,game,1st,2nd,3rd,4th", *rows, ""]))
    return path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of a file system with space for a part of the import."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with mount_small_disk(folder, f"{DISK_KIB}k"):
        yield folder


def count_whole_chunks(url: str) -> int:
    """Check that the ledger has some of the chunks, each of them whole, and return the number of its events."""
    stored = read_all_records(url)
    assert 0 < len(stored) < GAMES
    assert len(stored) % CHUNK_EVENTS == 0
    assert [json.loads(record)["id"] for record in stored.values()] == [f"game:g-{n}" for n in range(len(stored))]
    assert list_findings(url) == []
    return len(stored)


@pytest.mark.slow
def test_size_limit_keeps_whole_chunks(tmp_path: Path, games: Path, ratings: Callable[..., Any]) -> None:
    """An import into a file of limited size keeps whole chunks, and a rerun completes it."""
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    create_ledger(url)
    ledger = open_ledger(url)

    @event.listens_for(ledger.engine, "connect")
    def limit_size(connection: Any, record: object) -> None:
        connection.execute("PRAGMA max_page_count = 250")

    with pytest.raises(StoreUnavailable, match="no space left"):
        FileIntake(ledger, read_items(str(games), TableOptions()), ImportPolicy("test")).append()
    stored_count = count_whole_chunks(url)
    result = ratings("import", games, "--format", "json", db=url)
    assert result.exit_code == 0
    assert (json.loads(result.stdout)["appended"], json.loads(result.stdout)["existing"]) == (
        GAMES - stored_count,
        stored_count,
    )
    assert len(read_all_records(url)) == GAMES + 1  # and the record of the finished import
    assert list_findings(url) == []


@pytest.mark.slow
def test_full_disk_keeps_whole_chunks(small_disk: Path, games: Path, ratings: Callable[..., Any]) -> None:
    """An import onto a full disk keeps whole, readable chunks, and a rerun completes it once there is space."""
    url = f"sqlite:///{small_disk / 'ratings.db'}"
    assert ratings("init", "--no-rules", db=url).exit_code == 0
    result = ratings("import", games, db=url)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no space left" in result.stderr
    count_whole_chunks(url)
    # on a full disk the ledger can still be read, and another import fails without damage
    assert ratings("verify", db=url).exit_code == 0
    assert ratings("import", games, db=url).exit_code == 3
    stored_count = count_whole_chunks(url)
    resize_disk(small_disk, "8m")
    result = ratings("import", games, "--format", "json", db=url)
    assert (result.exit_code, json.loads(result.stdout)["existing"]) == (0, stored_count)
    assert len(read_all_records(url)) == GAMES + 1  # and the record of the finished import
    assert list_findings(url) == []


# a rebuild

LADDERS = 600


def create_many_ladders(ratings: Callable[..., Any], url: str) -> None:
    """Create a ledger with many ladders of six players each, without stored standings."""
    assert ratings("init", db=url).exit_code == 0
    players = [f"{number}-{'x' * 50}" for number in range(6)]
    rows = [",".join([f"g-{n}", "2010-03-05T19:30Z", "catan", f"group-{n}", *players]) for n in range(LADDERS)]
    header = "game_id,occurred_at,game,group,1st,2nd,3rd,4th,5th,6th"
    result = ratings("import", "--new-names", "accept", "-", db=url, input="\n".join([header, *rows, ""]))
    assert result.exit_code == 0, result


def check_failed_rebuild(ratings: Callable[..., Any], url: str) -> None:
    """Check that a rebuild fails for lack of space and leaves no rows, and that games can be recorded afterwards."""
    result = ratings("rebuild", "--format", "json", db=url)
    assert (result.exit_code, result.stdout) == (3, ""), result
    assert "no space left" in result.stderr
    assert json.loads(result.stderr.splitlines()[-1])["reason"] == "no-space"
    with open_ledger(url).reading() as connection:
        for table in ("generation_standings", "generation_ladders", "live_generation"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() == 0
    for number in range(20):
        record = ("record", "-q", "--game", "catan", "--group", "basic", "--game-id", f"later-{number}", "anna", "ben")
        assert ratings(*record, db=url).exit_code == 0
    status = json.loads(ratings("status", "--format", "json", db=url).stdout)
    assert status["runs"]["rebuild"]["last"]["result"] == "failed"
    assert "no space left" in status["runs"]["rebuild"]["last"]["message"]
    assert ratings("status", "--no-failures", db=url).exit_code == 1


@pytest.mark.slow
def test_rebuild_on_full_disk_frees_its_space(small_disk: Path, ratings: Callable[..., Any]) -> None:
    """A rebuild that fills the disk frees its space at once, so that games can still be recorded."""
    resize_disk(small_disk, 32 << 20)
    path = small_disk / "ratings.db"
    create_many_ladders(ratings, f"sqlite:///{path}")
    resize_disk(small_disk, path.stat().st_size + RESERVED_BYTES + (300 << 10))
    check_failed_rebuild(ratings, f"sqlite:///{path}")
    resize_disk(small_disk, 32 << 20)
    assert ratings("rebuild", db=path).exit_code == 0
    assert ratings("status", "--no-failures", db=path).exit_code == 0


@pytest.fixture
def small_tablespace(postgres_url: str) -> Iterator[str]:
    """Yield the name of a tablespace on a file system with space for a part of a rebuild."""
    with TemporaryDirectory(prefix="ratings-disk-") as name, psycopg.connect(postgres_url, autocommit=True) as server:
        owner = os.stat(str(server.execute("SHOW data_directory").fetchone()[0])).st_uid  # type: ignore[index]
        os.chmod(name, 0o755)
        with mount_small_disk(name, "512k", "mode=700", f"uid={owner}"):
            server.execute(f"CREATE TABLESPACE small LOCATION '{name}'")
            yield "small"
            for table in ("TABLE generation_standings", "INDEX generation_standings_pk"):
                server.execute(f"ALTER {table} SET TABLESPACE pg_default")
            server.execute("CHECKPOINT")
            server.execute("DROP TABLESPACE small")


@pytest.mark.slow
def test_rebuild_on_full_server_disk_frees_its_space(
    small_tablespace: str, postgres_url: str, ratings: Callable[..., Any]
) -> None:
    """A rebuild that fills the disk of the PostgreSQL server frees its space at once."""
    create_many_ladders(ratings, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as server:
        for table in ("TABLE generation_standings", "INDEX generation_standings_pk"):
            server.execute(f"ALTER {table} SET TABLESPACE {small_tablespace}")
    check_failed_rebuild(ratings, postgres_url)


# output and files outside the ledger

DISK_FULL = "No space left on device; free some space"


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "command", ["--help", "status", "export events", "export standings --format csv", "standings elo-catan/all"]
)
def test_output_on_full_disk_is_reported(command: str, copy_ledger_file: Callable[..., str]) -> None:
    """A command whose output does not fit on the disk says so, and names the command that lists the recorded events."""
    db = copy_ledger_file(create_small_ledger)
    program = [sys.executable, "-m", "ratings_ledger", "--db", db, *command.split()]
    with open("/dev/full", "w") as full:
        process = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    message = (
        f"ratings: standard output: {DISK_FULL}, or send the output elsewhere; "
        "to list the events recorded so far: ratings log\n"
    )
    assert (process.returncode, process.stderr) == (3, message)


@pytest.mark.slow_cases
@pytest.mark.parametrize(("command", "code"), [("nothing", 2), ("standings none/none", 2)])
def test_wrong_command_on_full_disk_keeps_its_exit_code(
    command: str, code: int, copy_ledger_file: Callable[..., str]
) -> None:
    """A wrong command has its exit code even if its message does not fit on the disk."""
    db = copy_ledger_file(create_small_ledger)
    program = [sys.executable, "-m", "ratings_ledger", "--db", db, *command.split()]
    with open("/dev/full", "w") as full:
        assert subprocess.run(program, stdout=subprocess.PIPE, stderr=full, check=False).returncode == code


def create_small_ledger(ratings: Callable[..., Any], url: str) -> None:
    """Create a ledger with one game and few rulesets, so that its site fits on a small disk."""
    assert ratings("init", "--for", "catan", db=url).exit_code == 0
    record = ("record", "--game", "catan", "--group", "basic", "--game-id", "g-1", "anna", "ben")
    assert ratings(*record, "--new-names", "accept", db=url).exit_code == 0


@pytest.mark.slow_cases
@pytest.mark.parametrize("free_bytes", [0, 40 << 10])
def test_site_on_full_disk_is_finished_later(
    free_bytes: int, small_disk: Path, tmp_path: Path, copy_ledger_file: Callable[..., str], ratings: Callable[..., Any]
) -> None:
    """`site` on a full disk names the file that does not fit; a rerun with space gives the same files as elsewhere."""
    db, folder, filler = copy_ledger_file(create_small_ledger), small_disk / "site", small_disk / "filler"
    filler.write_bytes(bytes((DISK_KIB << 10) - free_bytes))
    result = ratings("site", folder, db=db)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(f"ratings: {folder}/")
    assert result.stderr.endswith(f": {DISK_FULL} and run the same command again\n")
    assert free_bytes or os.listdir(folder) == []
    filler.unlink()
    assert ratings("site", folder, db=db).exit_code == 0
    assert ratings("site", tmp_path / "site", db=db).exit_code == 0
    finished, whole = (
        {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
        for site in (folder, tmp_path / "site")
    )
    assert finished == whole


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", ["refused lines", "a ruleset"])
def test_file_on_full_disk_is_named(
    kind: str, small_disk: Path, copy_ledger_file: Callable[..., str], ratings: Callable[..., Any]
) -> None:
    """A file of rejects or a ruleset file that does not fit is named, and no part of a ruleset file is left."""
    db = copy_ledger_file(create_small_ledger)
    games, ruleset = small_disk / "games.csv", small_disk / "new.toml"
    games.write_text("game_id,occurred_at,game,1st,2nd\ng-2,yesterday,catan,anna,ben\n")
    with open(small_disk / "filler", "wb", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(4_096)):
            pass
    if kind == "a ruleset":
        result, file = ratings("rules", "new", ruleset, db=db), ruleset
    else:
        result, file = ratings("import", games, "--keep-going", db=db), Path(f"{games}.rejects.jsonl")
    assert (result.exit_code, f"ratings: {file}: {DISK_FULL}" in result.stderr) == (3, True), result
    assert not ruleset.exists()
