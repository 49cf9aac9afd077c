"""A disk that is full in the middle of an import: whole chunks are left, and a rerun completes them.

And in the middle of a rebuild: what it wrote is swept at once, so that games can be recorded all the same. What else
finds no room is named, with what to do.
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
from sqlalchemy import event, text
from thresholds import set_thresholds

from ratings_ledger import StoreUnavailable
from ratings_ledger.ledger.intake.files import read_items
from ratings_ledger.ledger.intake.importing import FileIntake
from ratings_ledger.ledger.intake.intake import ImportPolicy
from ratings_ledger.ledger.intake.tables.columns import TableOptions
from ratings_ledger.ledger.store.opening import open_ledger
from ratings_ledger.projections.stored import generations

GAMES = 2_000
CHUNK_EVENTS = 250


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    set_thresholds(monkeypatch, imported_chunk=CHUNK_EVENTS, stored_rows=CHUNK_EVENTS)


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
    # a rebuild keeps the file open for as long as its process lives
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def assert_whole_chunks(url: str) -> int:
    """That the ledger holds some of the chunks, not all, and each of them completely; gives how many events."""
    stored = read_all_records(url)
    assert 0 < len(stored) < GAMES
    assert len(stored) % CHUNK_EVENTS == 0
    assert [json.loads(record)["id"] for record in stored.values()] == [f"game:g-{n}" for n in range(len(stored))]
    assert list_findings(url) == []
    return len(stored)


@pytest.mark.slow
def test_size_limit_keeps_whole_chunks(tmp_path: Path, games: Path, ratings: Callable[..., Any]) -> None:
    """An import into a file that may not grow keeps whole chunks, and a rerun completes it."""
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    create_ledger(url)
    ledger = open_ledger(url)

    @event.listens_for(ledger.engine, "connect")
    def limit(connection: Any, record: object) -> None:
        connection.execute("PRAGMA max_page_count = 250")

    with pytest.raises(StoreUnavailable, match="no space left"):
        FileIntake(ledger, read_items(str(games), TableOptions()), ImportPolicy("test")).append()
    held = assert_whole_chunks(url)
    result = ratings("import", games, "--format", "json", db=url)
    assert result.exit_code == 0
    assert (json.loads(result.stdout)["appended"], json.loads(result.stdout)["existing"]) == (GAMES - held, held)
    assert len(read_all_records(url)) == GAMES + 1  # and the record of the import that ended
    assert list_findings(url) == []


@pytest.mark.slow
def test_full_disk_keeps_whole_chunks(small_disk: Path, games: Path, ratings: Callable[..., Any]) -> None:
    """An import onto a full disk keeps whole chunks, stays readable, and completes once there is space."""
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
    assert len(read_all_records(url)) == GAMES + 1  # and the record of the import that ended
    assert list_findings(url) == []


# a rebuild

LADDERS = 600


def make_ladders(ratings: Callable[..., Any], url: str) -> None:
    """A ledger with many ladders of six players each, none of them stored."""
    assert ratings("init", db=url).exit_code == 0
    players = [f"{number}-{'x' * 50}" for number in range(6)]
    rows = [",".join([f"g-{n}", "2010-03-05T19:30Z", "catan", f"group-{n}", *players]) for n in range(LADDERS)]
    header = "game_id,occurred_at,game,group,1st,2nd,3rd,4th,5th,6th"
    result = ratings("import", "--new-names", "accept", "-", db=url, input="\n".join([header, *rows, ""]))
    assert result.exit_code == 0, result


def resize(disk: Path, size_bytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size_bytes}", str(disk)], check=True)


def assert_swept(ratings: Callable[..., Any], url: str) -> None:
    """That a rebuild fails for want of space, leaves nothing, and games can be recorded."""
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
def test_rebuild_filling_disk_is_swept(small_disk: Path, ratings: Callable[..., Any]) -> None:
    """A rebuild that fills the disk is swept at once, so that games can still be recorded."""
    resize(small_disk, 32 << 20)
    path = small_disk / "ratings.db"
    make_ladders(ratings, f"sqlite:///{path}")
    resize(small_disk, path.stat().st_size + generations.RESERVED_BYTES + (300 << 10))
    assert_swept(ratings, f"sqlite:///{path}")
    resize(small_disk, 32 << 20)
    assert ratings("rebuild", db=path).exit_code == 0
    assert ratings("status", "--no-failures", db=path).exit_code == 0


@pytest.fixture
def small_tablespace(postgres_url: str) -> Iterator[str]:
    """The name of a tablespace on a file system that has room for a part of a rebuild."""
    with TemporaryDirectory(prefix="ratings-disk-") as name, psycopg.connect(postgres_url, autocommit=True) as server:
        owner = os.stat(str(server.execute("SHOW data_directory").fetchone()[0])).st_uid  # type: ignore[index]
        os.chmod(name, 0o755)
        mount = ["mount", "-t", "tmpfs", "-o", f"size=512k,mode=700,uid={owner}", "none", name]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("only root can mount a small file system")
        try:
            server.execute(f"CREATE TABLESPACE small LOCATION '{name}'")
            yield "small"
            for table in ("TABLE generation_standings", "INDEX generation_standings_pk"):
                server.execute(f"ALTER {table} SET TABLESPACE pg_default")
            server.execute("CHECKPOINT")
            server.execute("DROP TABLESPACE small")
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


@pytest.mark.slow
def test_rebuild_filling_server_disk_is_swept(
    small_tablespace: str, postgres_url: str, ratings: Callable[..., Any]
) -> None:
    """A rebuild that fills the PostgreSQL server's disk is swept at once."""
    make_ladders(ratings, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as server:
        for table in ("TABLE generation_standings", "INDEX generation_standings_pk"):
            server.execute(f"ALTER {table} SET TABLESPACE {small_tablespace}")
    assert_swept(ratings, postgres_url)


# what is written elsewhere

FULL = "No space left on device; free some space"


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "command", ["--help", "status", "export events", "export standings --format csv", "standings elo-catan/all"]
)
def test_full_output_is_named(command: str, copied_file: Callable[..., str]) -> None:
    """A command whose output finds no room says so, and what is recorded all the same."""
    db = copied_file(with_a_game)
    program = [sys.executable, "-m", "ratings_ledger", "--db", db, *command.split()]
    with open("/dev/full", "w") as full:
        process = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    told = (
        f"ratings: standard output: {FULL}, or send the output elsewhere; "
        "to list the events recorded so far: ratings log\n"
    )
    assert (process.returncode, process.stderr) == (3, told)


@pytest.mark.slow_cases
@pytest.mark.parametrize(("command", "code"), [("nothing", 2), ("standings none/none", 2)])
def test_full_errors_keep_exit_code(command: str, code: int, copied_file: Callable[..., str]) -> None:
    """A wrong command has its exit code also where its message finds no room."""
    db = copied_file(with_a_game)
    program = [sys.executable, "-m", "ratings_ledger", "--db", db, *command.split()]
    with open("/dev/full", "w") as full:
        assert subprocess.run(program, stdout=subprocess.PIPE, stderr=full, check=False).returncode == code


def with_a_game(ratings: Callable[..., Any], url: str) -> None:
    """A ledger with a game, and few rulesets: a site of it fits a small disk."""
    assert ratings("init", "--for", "catan", db=url).exit_code == 0
    record = ("record", "--game", "catan", "--group", "basic", "--game-id", "g-1", "anna", "ben")
    assert ratings(*record, "--new-names", "accept", db=url).exit_code == 0


@pytest.mark.slow_cases
@pytest.mark.parametrize("room", [0, 40 << 10])
def test_site_on_full_disk_is_finished_later(
    room: int, small_disk: Path, tmp_path: Path, copied_file: Callable[..., str], ratings: Callable[..., Any]
) -> None:
    """A site that finds no room names the file, and is finished once there is some, whatever was written."""
    db, folder, stuffing = copied_file(with_a_game), small_disk / "site", small_disk / "stuffing"
    stuffing.write_bytes(bytes((1000 << 10) - room))
    result = ratings("site", folder, db=db)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(f"ratings: {folder}/")
    assert result.stderr.endswith(f": {FULL} and run the same command again\n")
    assert room or os.listdir(folder) == []
    stuffing.unlink()
    assert ratings("site", folder, db=db).exit_code == 0
    assert ratings("site", tmp_path / "site", db=db).exit_code == 0
    finished, whole = (
        {path.relative_to(made): path.read_bytes() for path in made.rglob("*") if path.is_file()}
        for made in (folder, tmp_path / "site")
    )
    assert finished == whole


@pytest.mark.slow_cases
@pytest.mark.parametrize("what", ["refused lines", "a ruleset"])
def test_file_on_full_disk_is_named(
    what: str, small_disk: Path, copied_file: Callable[..., str], ratings: Callable[..., Any]
) -> None:
    """Another file that finds no room is named, too, and a ruleset is not half written."""
    db = copied_file(with_a_game)
    games, ruleset = small_disk / "games.csv", small_disk / "new.toml"
    games.write_text("game_id,occurred_at,game,1st,2nd\ng-2,yesterday,catan,anna,ben\n")
    with open(small_disk / "stuffing", "wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4_096)):
            pass
    if what == "a ruleset":
        result, named = ratings("rules", "new", ruleset, db=db), ruleset
    else:
        result, named = ratings("import", games, "--keep-going", db=db), Path(f"{games}.rejects.jsonl")
    assert (result.exit_code, f"ratings: {named}: {FULL}" in result.stderr) == (3, True), result
    assert not ruleset.exists()
