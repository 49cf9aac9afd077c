"""Hostile ledger files and cache files: nothing outside the cache is touched, no command hangs or crashes, and the
answer is that of the log."""

import json
import os
import shutil
import sqlite3
from array import array
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cache_files import read_file, rewrite_file, rewrite_footer
from thresholds import set_thresholds

Ratings = Callable[..., Any]
LADDER = "elo-chess/all"
RECORD_LATER = ("record", "-q", "--game", "chess", "--game-id", "later", "--at", "2024-05-01T20:00Z", "ben", "anna")


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of all caches, which are written from the first event on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    set_thresholds(monkeypatch, cached_events=1, scanned_events=10**9)
    return tmp_path / "cache" / "ratings-ledger"


@pytest.fixture
def db(copy_ledger_file: Callable[..., str], ratings: Ratings, caches: Path) -> str:
    """Return the URL of a ledger with games and a cache."""
    url = f"sqlite:///{copy_ledger_file(create_with_games)}"
    shutil.rmtree(caches, ignore_errors=True)  # the cache of the original, if it has just been created
    read_standings(ratings, url)
    return url


def create_with_games(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number in range(4):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number + 1}T20:00Z")
        assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=url).exit_code == 0


def read_standings(ratings: Ratings, db: str) -> Any:
    result = ratings("standings", LADDER, "--format", "json", db=db)
    assert result.exit_code == 0, result
    return json.loads(result.stdout)["rows"]


def find_cache(caches: Path) -> Path:
    """Return the only cache folder."""
    (folder,) = (path for path in caches.iterdir() if path.name != "names")
    return folder


def find_segment(root: Path) -> Path:
    """Return the only segment of columns."""
    (path,) = (root / "columns").glob("*-*-*")
    return path


@pytest.mark.parametrize("name", ["../../victim", "/VICTIM", "..", "", "a/b", "no-uuid", "x" * 5_000, "é" * 36])
def test_ledger_id_that_is_no_uuid_is_refused(
    name: str, ratings: Ratings, db: str, caches: Path, tmp_path: Path
) -> None:
    """A file whose ledger id is a path, or no UUID for another reason, is refused, and no folder is touched.

    Folders with files beside the cache are still there afterwards.
    """
    read_standings(ratings, db)
    victim = tmp_path / "victim"
    (victim / "photos").mkdir(parents=True)
    (victim / "photos" / "one.jpg").write_bytes(b"of the summer")
    with closing(sqlite3.connect(tmp_path / "ratings.db")) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("UPDATE ledger_identity SET ledger_id = ?", (name.replace("/VICTIM", str(victim)),))
        connection.commit()
    before = sorted(tmp_path.rglob("*"))
    result = ratings("standings", LADDER, db=db)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "not one UUID" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("how", ["segment", "next", "old", "columns", "lock", "all"])
def test_links_in_cache_are_not_followed(how: str, ratings: Ratings, db: str, caches: Path, tmp_path: Path) -> None:
    """A growing cache writes nothing through links and deletes nothing behind them."""
    before = read_standings(ratings, db)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "diary.txt").write_text("dear diary")
    root = find_cache(caches)
    path = find_segment(root)
    if how in ("columns", "all"):
        folder = path.parent if how == "columns" else root
        shutil.rmtree(folder)
        folder.symlink_to(victim)
    elif how == "old":
        for link in (path.with_name("0123abcd"), path.with_name("0123abcd.part")):
            link.symlink_to(victim)
            os.utime(link, (0, 0), follow_symlinks=False)
    elif how == "next":
        shutil.copytree(root, tmp_path / "before", symlinks=True)
        assert ratings(*RECORD_LATER, db=db).exit_code == 0
        read_standings(ratings, db)
        (name,) = {segment.name for segment in path.parent.iterdir()} - {path.name}
        shutil.rmtree(root)
        shutil.copytree(tmp_path / "before", root, symlinks=True)
        (path.parent / name).symlink_to(victim / "diary.txt")
        assert read_standings(ratings, db) != before
    else:
        link = root / how if how == "lock" else path
        link.unlink(missing_ok=True)
        link.symlink_to(victim / "diary.txt")
    assert ratings(*RECORD_LATER, db=db).exit_code == 0
    assert read_standings(ratings, db) != before
    assert [path.name for path in victim.iterdir()] == ["diary.txt"]
    assert (victim / "diary.txt").read_text() == "dear diary"


@pytest.mark.parametrize("how", ["lock", "columns", "segment"])
def test_pipes_in_cache_block_no_command(how: str, ratings: Ratings, db: str, caches: Path) -> None:
    """No command blocks on a pipe in the cache."""
    read_standings(ratings, db)
    root = find_cache(caches)
    path = find_segment(root)
    pipe = {"lock": root / "lock", "columns": path.parent, "segment": path}[how]
    if how == "columns":
        shutil.rmtree(pipe)
    else:
        pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    assert ratings(*RECORD_LATER, db=db).exit_code == 0
    assert len(read_standings(ratings, db)) == 3


def change_column(name: str, *entry: Any) -> Callable[[Any], Any]:
    """Return a function that replaces the entry of a column in a footer."""
    return lambda footer: {**footer, "columns": {**footer["columns"], name: entry}}


def change_columns(change: Callable[[str, Any, int, Any], Any]) -> Callable[[Any], Any]:
    """Return a function that changes the entry of every column in a footer."""
    return lambda footer: {**footer, "columns": {name: change(*entry) for name, entry in footer["columns"].items()}}


def change_about(**about: Any) -> Callable[[Any], Any]:
    """Return a function that changes the description of a segment in its footer."""
    return lambda footer: {**footer, "about": {**footer["about"], **about}}


FOOTER_CHANGES: dict[str, Callable[[Any], Any]] = {
    "no object": lambda footer: [],
    "a number for the name": change_about(name=5),
    "another name": change_about(name="../.."),
    "another order of bytes": lambda footer: {**footer, "order": "middle"},
    "nothing about it": lambda footer: {**footer, "about": {}},
    "a list about it": lambda footer: {**footer, "about": []},
    "another ledger": change_about(ledger="b425ae48-5805-4007-8c4a-5241658290ee"),
    "a number for the ledger": change_about(ledger=5),
    "another hash before it": change_about(after="0" * 64),
    "lengths of texts": change_columns(lambda code, shape, begin, crcs: [code, ["1"], begin, crcs]),
    "lengths below 0": change_columns(lambda code, shape, begin, crcs: [code, [-8], begin, crcs]),
    "lengths below 0 without checksums": change_columns(lambda code, shape, begin, crcs: [code, [-8], begin, []]),
    "lengths with a fraction": change_column("start", "q", [3.5], 0, [5]),
    "true for a length": change_column("start", "q", [True], 0, [5]),
    "no lengths": change_columns(lambda code, shape, begin, crcs: [code, [], begin, crcs]),
    "a number for the lengths": change_columns(lambda code, shape, begin, crcs: [code, 4, begin, crcs]),
    "rows": change_columns(lambda code, shape, begin, crcs: [code, [*shape, 1], begin, crcs]),
    "too long": change_column("start", "q", [2**62], 0, [5]),
    "too long for any file": change_column("start", "q", [2**80], 0, [5]),
    "before the file": change_columns(lambda code, shape, begin, crcs: [code, shape, begin - 2**40, crcs]),
    "behind the file": change_columns(lambda code, shape, begin, crcs: [code, shape, begin + 2**40, crcs]),
    "at another offset": change_columns(lambda code, shape, begin, crcs: [code, shape, max(0, begin - 8), crcs]),
    "other types": change_columns(lambda code, shape, begin, crcs: ["d", shape, begin, crcs]),
    "a number for a type": change_columns(lambda code, shape, begin, crcs: [5, shape, begin, crcs]),
    "no types": change_column("start"),
    "no columns": lambda footer: {**footer, "columns": {}},
    "a list of columns": lambda footer: {**footer, "columns": []},
    "other columns": change_column("../../x", "q", [1], 0, [5]),
    "no checksums": change_columns(lambda code, shape, begin, crcs: [code, shape, begin, []]),
    "a number for the checksums": change_column("start", "q", [4], 0, 5),
    "a checksum too many": change_column("start", "q", [4], 0, [5, 6]),
    "texts for checksums": change_column("start", "q", [4], 0, ["5"]),
}


@pytest.mark.parametrize("what", FOOTER_CHANGES)
def test_invalid_footer_gives_the_answer_of_the_log(what: str, ratings: Ratings, db: str, caches: Path) -> None:
    """With an invalid footer under a valid checksum, the answer is that of the log."""
    before = read_standings(ratings, db)
    rewrite_footer(find_segment(find_cache(caches)), FOOTER_CHANGES[what])
    assert read_standings(ratings, db) == before
    assert read_standings(ratings, db) == before


UNUSUAL_NAMES = [
    "0-99999999999999999999-x", "0-18446744073709551615-x", "0-\N{ARABIC-INDIC DIGIT FOUR}-x", "{}-1-x", "{}-{}-x",
    "x-{}-x", "00-{}-x", "--", "0--1-x", "-1-{}-x", "0-{}-", "0-0-0", "99-999999-x",
]  # fmt: skip


@pytest.mark.parametrize("name", UNUSUAL_NAMES)
def test_unusual_file_names_give_the_answer_of_the_log(name: str, ratings: Ratings, db: str, caches: Path) -> None:
    """Files with names like those of segments or traces do not change the answer."""
    before = read_standings(ratings, db)
    path = find_segment(find_cache(caches))
    _, last, rest = path.name.split("-", 2)
    unusual_path = path.with_name(name.format(last, last).replace("x", rest))
    traces = find_cache(caches) / "traces"
    traces.mkdir()
    shutil.copy(path, traces / unusual_path.name)
    if unusual_path != path:
        shutil.copy(path, unusual_path)
    assert read_standings(ratings, db) == before
    assert ratings(*RECORD_LATER, db=db).exit_code == 0
    assert read_standings(ratings, db) != before
    assert ratings("verify", db=db).exit_code == 0


def test_files_of_another_format_are_kept_for_a_week(ratings: Ratings, db: str, caches: Path) -> None:
    """Files of another format are neither read nor deleted until they are a week old."""
    before = read_standings(ratings, db)
    own_segment, root = find_segment(find_cache(caches)), find_cache(caches)
    stem, _, own_format = own_segment.name.rpartition("-")
    other_files = [root / "columns" / f"{stem}-{name}" for name in ("old", "new")]
    for path in other_files:
        path.write_bytes(b"of another program")
    (root / "columns" / "0-1-folder-of-files").mkdir()
    assert read_standings(ratings, db) == before
    assert all(path.read_bytes() == b"of another program" for path in other_files)
    for path in (other_files[0], root / "columns" / "0-1-folder-of-files"):
        os.utime(path, (0, 0))
    assert ratings(*RECORD_LATER, db=db).exit_code == 0
    assert read_standings(ratings, db) != before
    remaining = {path for path in (root / "columns").iterdir() if not path.name.endswith(f"-{own_format}")}
    assert remaining == {other_files[1]}


INVALID_NUMBERS = {
    "player": [-1, 2**30, 3],
    "cell": [-1, 99],
    "start": [-5, 2**40],
    "count": [-1, 2**30],
    "status": [-1, 99],
    "replaced": [5],
    "kind_start": [-(2**40)],
    "first_position": [0],
    "occurred_at": [-(2**62)],
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in INVALID_NUMBERS.items() for value in values]
)
def test_invalid_numbers_crash_no_command(
    name: str, value: int, compiled: bool, ratings: Ratings, db: str, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invalid numbers in the cache under a valid checksum crash no command.

    No number in a column causes a traceback or a signal; if it is impossible, the log answers.
    """
    before = read_standings(ratings, db)
    if compiled:
        set_thresholds(monkeypatch, compiled_games=1)
    root = find_cache(caches)
    columns, about = read_file(find_segment(root))
    columns[name][1] = value
    rewrite_file(find_segment(root), columns, about)
    result = ratings("standings", LADDER, "--format", "json", db=db)
    assert result.exit_code == 0, result
    assert "bug" not in result.stderr
    if name not in ("kind_start", "first_position", "occurred_at"):
        assert json.loads(result.stdout)["rows"] == before


@pytest.mark.parametrize(("name", "line"), [
    ("players", b"5\n"), ("players", b"{\n"), ("texts", b"null\n"), ("cells", b"[1,2]\n"),
    ("cells", b"[0,0,99,0,0,0,3,0]\n"), ("cells", b'["a",0,0,0,0,0,3,0]\n'), ("others", b"not json\n"),
    ("others", b'{"type":"no.such"}\n'), ("players", b"\xff\n"),
])  # fmt: skip
def test_invalid_lines_give_the_answer_of_the_log(
    name: str, line: bytes, ratings: Ratings, db: str, caches: Path
) -> None:
    """With invalid lines in a cache file under a valid checksum, the answer is that of the log."""
    before = read_standings(ratings, db)
    root = find_cache(caches)
    columns, about = read_file(find_segment(root))
    lines = columns[name].tobytes().splitlines(keepends=True)
    columns[name] = array("B", line + b"".join(lines[1:]))
    rewrite_file(find_segment(root), columns, about)
    assert read_standings(ratings, db) == before


def test_missing_file_handles_keep_the_cache(
    ratings: Ratings, db: str, caches: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A command that can open no column works without the cache and does not recreate it."""
    before = read_standings(ratings, db)
    opened_paths = []

    def fail_to_open(path: Path, mode: str) -> Any:
        opened_paths.append(path)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("ratings_ledger.projections.facts.column_files.open_own", fail_to_open)
    segment = find_segment(find_cache(caches))
    content = segment.read_bytes()
    result = ratings("standings", LADDER, "--format", "json", db=db)
    assert (result.exit_code, json.loads(result.stdout)["rows"]) == (0, before)
    assert len(opened_paths) < 10
    assert (find_segment(find_cache(caches)), segment.read_bytes()) == (segment, content)
    (record,) = caplog.records
    assert record.message.endswith(f"is not used: {segment.name} cannot be read: Too many open files")


def alter_cache(ratings: Ratings, db: str, caches: Path) -> Path:
    """Swap the first two players of a game in the cache, with valid checksums, and return the cache's folder."""
    before, root = read_standings(ratings, db), find_cache(caches)
    columns, about = read_file(find_segment(root))
    columns["player"][0], columns["player"][1] = columns["player"][1], columns["player"][0]
    rewrite_file(find_segment(root), columns, about)
    assert read_standings(ratings, db) != before
    return root


def test_published_lists_are_computed_from_records(ratings: Ratings, db: str, caches: Path) -> None:
    """A list is published as the records give it despite an altered cache, and `verify` confirms it."""
    alter_cache(ratings, db, caches)
    for arguments in ((LADDER,), ("--due",)):
        result = ratings("publish", *arguments, db=db)
        assert result.exit_code == 0, result
    result_of_verify = ratings("verify", db=db)
    assert result_of_verify.exit_code == 0, result_of_verify


def test_checked_rebuild_detects_an_altered_cache(
    ratings: Ratings, db: str, caches: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`rebuild --check` detects an altered cache, names it and promotes nothing; without the cache it succeeds."""
    root = alter_cache(ratings, db, caches)
    refused = ratings("rebuild", "--check", db=db)
    assert refused.exit_code == 1
    assert "nothing was promoted" in refused.stderr
    assert f"rm -r {root}" in caplog.text
    shutil.rmtree(root)
    assert ratings("rebuild", "--check", db=db).exit_code == 0
    assert ratings("verify", db=db).exit_code == 0


def test_verify_detects_standings_from_an_altered_cache(ratings: Ratings, db: str, caches: Path) -> None:
    """`verify` compares the stored standings with a replay without the cache."""
    alter_cache(ratings, db, caches)
    assert ratings("rebuild", db=db).exit_code == 0
    result = ratings("verify", db=db)
    assert result.exit_code == 1
    assert "the stored standings differ from a replay" in result.stdout


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o750])
def test_rebuild_refuses_a_shared_cache(mode: int, ratings: Ratings, db: str, caches: Path) -> None:
    """A rebuild refuses a cache that other accounts can access, and accepts it after the command in its message."""
    root = find_cache(caches)
    assert root.stat().st_mode & 0o777 == 0o700
    root.chmod(mode)
    read_standings(ratings, db)
    for options in ((), ("--check",)):
        refused = ratings("rebuild", *options, db=db)
        assert refused.exit_code == 3, refused
        right = "write into" if mode & 0o022 else "open"
        assert f"other accounts can {right} {root} (mode {mode:04o})" in refused.stderr
        assert f"run: chmod 0700 {root} " in refused.stderr
    root.chmod(0o700)
    assert ratings("rebuild", db=db).exit_code == 0


def test_workers_refuse_a_folder_that_all_can_write(ratings: Ratings, db: str, caches: Path, tmp_path: Path) -> None:
    """A folder for segments that every account can write is refused; a folder shared with a group is accepted.

    In the cache of the account, even a folder shared with a group is refused.
    """
    ledger_id = find_cache(caches).name[:36]
    folder = tmp_path / "sealed" / ledger_id
    folder.mkdir(parents=True)
    rebuild = ("rebuild", "--on", "processes:1")
    folder.chmod(0o777)
    refused = ratings(*rebuild, "--segments", folder.parent, db=db)
    assert refused.exit_code == 3, refused
    assert f"run: chmod 0775 {folder} " in refused.stderr
    folder.chmod(0o770)
    assert ratings(*rebuild, "--segments", folder.parent, db=db).exit_code == 0
    assert ratings(*rebuild, db=db).exit_code == 0
    (find_cache(caches) / "sealed").chmod(0o770)
    assert "run: chmod 0700" in ratings(*rebuild, db=db).stderr
