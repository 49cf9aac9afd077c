"""A stranger's ledger file, and what a neighbour may put into the folder of the cache: nothing beside it is touched, no
command hangs or crashes, and the answer is that of the log.
"""

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

from ratings_ledger.projections import compiling
from ratings_ledger.projections.facts import column_cache, column_files, decoding

Ratings = Callable[..., Any]
LADDER = "elo-chess/all"
LATER = ("record", "-q", "--game", "chess", "--game-id", "later", "--at", "2024-05-01T20:00Z", "ben", "anna")


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all caches, which are kept from the first event on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(decoding, "CACHED_EVENTS", 1)
    monkeypatch.setattr(decoding, "BULK_EVENTS", 10**9)
    return tmp_path / "cache" / "ratings-ledger"


@pytest.fixture
def db(copied_file: Callable[..., str], ratings: Ratings, caches: Path) -> str:
    """A ledger with games, which has a cache."""
    url = f"sqlite:///{copied_file(made)}"
    shutil.rmtree(caches, ignore_errors=True)  # that of the original, if it was made just now
    standings(ratings, url)
    return url


def made(ratings: Ratings, url: str) -> None:
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for number in range(4):
        game = ("--game", "chess", "--game-id", f"g-{number}", "--at", f"2024-01-0{number + 1}T20:00Z")
        assert ratings("record", "-q", *game, "anna", "ben", "cleo", db=url).exit_code == 0


def standings(ratings: Ratings, db: str) -> Any:
    done = ratings("standings", LADDER, "--format", "json", db=db)
    assert done.exit_code == 0, done
    return json.loads(done.stdout)["rows"]


def own(caches: Path) -> Path:
    """The one cache of columns that there is."""
    (folder,) = (path for path in caches.iterdir() if path.name != "names")
    return folder


def segment(root: Path) -> Path:
    """The one segment of columns."""
    (path,) = (root / "columns").glob("*-*-*")
    return path


@pytest.mark.parametrize("name", ["../../victim", "/VICTIM", "..", "", "a/b", "no-uuid", "x" * 5_000, "é" * 36])
def test_path_as_ledger_id_is_refused(name: str, ratings: Ratings, db: str, caches: Path, tmp_path: Path) -> None:
    """A file whose ledger id is a path is refused, and no folder is touched.

    Folders with files beside the cache are all there afterwards.
    """
    standings(ratings, db)
    victim = tmp_path / "victim"
    (victim / "photos").mkdir(parents=True)
    (victim / "photos" / "one.jpg").write_bytes(b"of the summer")
    with closing(sqlite3.connect(tmp_path / "ratings.db")) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("UPDATE ledger_identity SET ledger_id = ?", (name.replace("/VICTIM", str(victim)),))
        connection.commit()
    before = sorted(tmp_path.rglob("*"))
    told = ratings("standings", LADDER, db=db)
    assert (told.exit_code, told.stdout) == (2, "")
    assert "not one UUID" in told.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("how", ["segment", "next", "old", "columns", "lock", "all"])
def test_links_in_cache_are_not_followed(how: str, ratings: Ratings, db: str, caches: Path, tmp_path: Path) -> None:
    """A growing cache writes nothing through links in it and deletes nothing behind them."""
    before = standings(ratings, db)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "diary.txt").write_text("dear diary")
    root = own(caches)
    path = segment(root)
    if how in ("columns", "all"):
        place = path.parent if how == "columns" else root
        shutil.rmtree(place)
        place.symlink_to(victim)
    elif how == "old":
        for link in (path.with_name("0123abcd"), path.with_name("0123abcd.part")):
            link.symlink_to(victim)
            os.utime(link, (0, 0), follow_symlinks=False)
    elif how == "next":
        shutil.copytree(root, tmp_path / "before", symlinks=True)
        assert ratings(*LATER, db=db).exit_code == 0
        standings(ratings, db)
        (name,) = {beside.name for beside in path.parent.iterdir()} - {path.name}
        shutil.rmtree(root)
        shutil.copytree(tmp_path / "before", root, symlinks=True)
        (path.parent / name).symlink_to(victim / "diary.txt")
        assert standings(ratings, db) != before
    else:
        place = root / how if how == "lock" else path
        place.unlink(missing_ok=True)
        place.symlink_to(victim / "diary.txt")
    assert ratings(*LATER, db=db).exit_code == 0
    assert standings(ratings, db) != before
    assert [path.name for path in victim.iterdir()] == ["diary.txt"]
    assert (victim / "diary.txt").read_text() == "dear diary"


@pytest.mark.parametrize("how", ["lock", "columns", "segment"])
def test_pipes_in_cache_block_no_command(how: str, ratings: Ratings, db: str, caches: Path) -> None:
    """No command waits for a pipe in the cache that nobody writes to."""
    standings(ratings, db)
    root = own(caches)
    path = segment(root)
    place = {"lock": root / "lock", "columns": path.parent, "segment": path}[how]
    if how == "columns":
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    os.mkfifo(place)
    assert ratings(*LATER, db=db).exit_code == 0
    assert len(standings(ratings, db)) == 3


def with_column(name: str, *place: Any) -> Callable[[Any], Any]:
    """A footer that says something else about a column."""
    return lambda footer: {**footer, "columns": {**footer["columns"], name: place}}


def with_columns(change: Callable[[str, Any, int, Any], Any]) -> Callable[[Any], Any]:
    """A footer that says something else about every column."""
    return lambda footer: {**footer, "columns": {name: change(*place) for name, place in footer["columns"].items()}}


def with_about(**about: Any) -> Callable[[Any], Any]:
    """A footer that says something else about what is in the segment."""
    return lambda footer: {**footer, "about": {**footer["about"], **about}}


FOOTERS: dict[str, Callable[[Any], Any]] = {
    "no object": lambda footer: [],
    "a number for the name": with_about(name=5),
    "another name": with_about(name="../.."),
    "another order of bytes": lambda footer: {**footer, "order": "middle"},
    "nothing about it": lambda footer: {**footer, "about": {}},
    "a list about it": lambda footer: {**footer, "about": []},
    "another ledger": with_about(ledger="b425ae48-5805-4007-8c4a-5241658290ee"),
    "a number for the ledger": with_about(ledger=5),
    "other numbers before it": with_about(after="0" * 64),
    "lengths of texts": with_columns(lambda code, shape, begin, crcs: [code, ["1"], begin, crcs]),
    "lengths below 0": with_columns(lambda code, shape, begin, crcs: [code, [-8], begin, crcs]),
    "lengths below 0 without checksums": with_columns(lambda code, shape, begin, crcs: [code, [-8], begin, []]),
    "lengths that are odd": with_column("start", "q", [3.5], 0, [5]),
    "true for a length": with_column("start", "q", [True], 0, [5]),
    "no lengths": with_columns(lambda code, shape, begin, crcs: [code, [], begin, crcs]),
    "a number for the lengths": with_columns(lambda code, shape, begin, crcs: [code, 4, begin, crcs]),
    "rows": with_columns(lambda code, shape, begin, crcs: [code, [*shape, 1], begin, crcs]),
    "too long": with_column("start", "q", [2**62], 0, [5]),
    "too long for any file": with_column("start", "q", [2**80], 0, [5]),
    "before the file": with_columns(lambda code, shape, begin, crcs: [code, shape, begin - 2**40, crcs]),
    "behind the file": with_columns(lambda code, shape, begin, crcs: [code, shape, begin + 2**40, crcs]),
    "beside its place": with_columns(lambda code, shape, begin, crcs: [code, shape, max(0, begin - 8), crcs]),
    "other types": with_columns(lambda code, shape, begin, crcs: ["d", shape, begin, crcs]),
    "a number for a type": with_columns(lambda code, shape, begin, crcs: [5, shape, begin, crcs]),
    "no types": with_column("start"),
    "no columns": lambda footer: {**footer, "columns": {}},
    "a list of columns": lambda footer: {**footer, "columns": []},
    "other columns": with_column("../../x", "q", [1], 0, [5]),
    "no checksums": with_columns(lambda code, shape, begin, crcs: [code, shape, begin, []]),
    "a checksum alone": with_column("start", "q", [4], 0, 5),
    "a checksum too many": with_column("start", "q", [4], 0, [5, 6]),
    "texts for checksums": with_column("start", "q", [4], 0, ["5"]),
}  # fmt: skip


@pytest.mark.parametrize("what", FOOTERS)
def test_odd_metadata_gives_the_logs_answer(what: str, ratings: Ratings, db: str, caches: Path) -> None:
    """With odd cache metadata under a valid checksum, the answer is still that of the log."""
    before = standings(ratings, db)
    rewrite_footer(segment(own(caches)), FOOTERS[what])
    assert standings(ratings, db) == before
    assert standings(ratings, db) == before


ODD_NAMES = [
    "0-99999999999999999999-x", "0-18446744073709551615-x", "0-\N{ARABIC-INDIC DIGIT FOUR}-x", "{}-1-x", "{}-{}-x",
    "x-{}-x", "00-{}-x", "--", "0--1-x", "-1-{}-x", "0-{}-", "0-0-0", "99-999999-x",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_of_segments_give_the_logs_answer(name: str, ratings: Ratings, db: str, caches: Path) -> None:
    """Files with names that might be those of segments of columns, and of traces, do no harm."""
    before = standings(ratings, db)
    path = segment(own(caches))
    _, last, rest = path.name.split("-", 2)
    beside = path.with_name(name.format(last, last).replace("x", rest))
    traces = own(caches) / "traces"
    traces.mkdir()
    shutil.copy(path, traces / beside.name)
    if beside != path:
        shutil.copy(path, beside)
    assert standings(ratings, db) == before
    assert ratings(*LATER, db=db).exit_code == 0
    assert standings(ratings, db) != before
    assert ratings("verify", db=db).exit_code == 0


def test_format_of_another_program_is_left_alone_until_it_is_old(ratings: Ratings, db: str, caches: Path) -> None:
    """What a program with another format wrote is neither read nor deleted, and goes once it is a week old."""
    before = standings(ratings, db)
    own_segment, root = segment(own(caches)), own(caches)
    others = [root / "columns" / f"{own_segment.name[: -len(column_cache.FORMAT)]}{name}" for name in ("old", "new")]
    for path in others:
        path.write_bytes(b"of another program")
    (root / "columns" / "0-1-folder-of-files").mkdir()
    assert standings(ratings, db) == before
    assert all(path.read_bytes() == b"of another program" for path in others)
    for path in (others[0], root / "columns" / "0-1-folder-of-files"):
        os.utime(path, (0, 0))
    assert ratings(*LATER, db=db).exit_code == 0
    assert standings(ratings, db) != before
    left = {path for path in (root / "columns").iterdir() if not path.name.endswith(f"-{column_cache.FORMAT}")}
    assert left == {others[1]}


NUMBERS = {
    "player": [-1, 2**30, 3], "cell": [-1, 99], "start": [-5, 2**40], "count": [-1, 2**30], "status": [-1, 99],
    "replaced": [5], "kind_start": [-(2**40)], "first_position": [0], "occurred_at": [-(2**62)],
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in NUMBERS.items() for value in values])
def test_odd_numbers_crash_no_command(
    name: str, value: int, compiled: bool, ratings: Ratings, db: str, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invalid numbers in the cache under a valid checksum crash no command.

    No number in a column causes a traceback or a signal; if it is impossible, the log answers.
    """
    before = standings(ratings, db)
    if compiled:
        monkeypatch.setattr(compiling, "COMPILED_GAMES", 1)
    root = own(caches)
    columns, about = read_file(segment(root))
    columns[name][1] = value
    rewrite_file(segment(root), columns, about)
    told = ratings("standings", LADDER, "--format", "json", db=db)
    assert told.exit_code == 0, told
    assert "bug" not in told.stderr
    if name not in ("kind_start", "first_position", "occurred_at"):
        assert json.loads(told.stdout)["rows"] == before


@pytest.mark.parametrize(("name", "line"), [
    ("players", b"5\n"), ("players", b"{\n"), ("texts", b"null\n"), ("cells", b"[1,2]\n"),
    ("cells", b"[0,0,99,0,0,0,3,0]\n"), ("cells", b'["a",0,0,0,0,0,3,0]\n'), ("others", b"not json\n"),
    ("others", b'{"type":"no.such"}\n'), ("players", b"\xff\n"),
])  # fmt: skip
def test_odd_lines_give_the_logs_answer(name: str, line: bytes, ratings: Ratings, db: str, caches: Path) -> None:
    """With other lines in a cache file under a valid checksum, the answer is that of the log."""
    before = standings(ratings, db)
    root = own(caches)
    columns, about = read_file(segment(root))
    lines = columns[name].tobytes().splitlines(keepends=True)
    columns[name] = array("B", line + b"".join(lines[1:]))
    rewrite_file(segment(root), columns, about)
    assert standings(ratings, db) == before


def test_few_file_handles_keep_the_cache(
    ratings: Ratings, db: str, caches: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A command that can open no column does without the cache, and does not recreate it."""
    before = standings(ratings, db)
    asked = []

    def none_left(path: Path, mode: str) -> Any:
        asked.append(path)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(column_files, "open_own", none_left)
    kept = segment(own(caches))
    content = kept.read_bytes()
    told = ratings("standings", LADDER, "--format", "json", db=db)
    assert (told.exit_code, json.loads(told.stdout)["rows"]) == (0, before)
    assert len(asked) < 10
    assert (segment(own(caches)), kept.read_bytes()) == (kept, content)
    (record,) = caplog.records
    assert record.message.endswith(f"is not used: {kept.name} cannot be read: Too many open files")


def altered(ratings: Ratings, db: str, caches: Path) -> Path:
    """Swap the winner and the second of one game in the cache, under right checksums; returns the cache's folder."""
    before, root = standings(ratings, db), own(caches)
    columns, about = read_file(segment(root))
    columns["player"][0], columns["player"][1] = columns["player"][1], columns["player"][0]
    rewrite_file(segment(root), columns, about)
    assert standings(ratings, db) != before
    return root


def test_published_lists_come_from_records(ratings: Ratings, db: str, caches: Path) -> None:
    """A list is published as the records have it, whatever the cache says, and `verify` confirms it."""
    altered(ratings, db, caches)
    for arguments in ((LADDER,), ("--due",)):
        done = ratings("publish", *arguments, db=db)
        assert done.exit_code == 0, done
    verified = ratings("verify", db=db)
    assert verified.exit_code == 0, verified


def test_checked_rebuild_promotes_nothing_from_an_altered_cache(
    ratings: Ratings, db: str, caches: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`rebuild --check` compares with a replay without the cache, and names the cache; once deleted, all is well."""
    root = altered(ratings, db, caches)
    refused = ratings("rebuild", "--check", db=db)
    assert refused.exit_code == 1
    assert "nothing was promoted" in refused.stderr
    assert f"rm -r {root}" in caplog.text
    shutil.rmtree(root)
    assert ratings("rebuild", "--check", db=db).exit_code == 0
    assert ratings("verify", db=db).exit_code == 0


def test_verify_finds_what_was_promoted_from_an_altered_cache(ratings: Ratings, db: str, caches: Path) -> None:
    """`verify` compares what is stored with a replay without the cache."""
    altered(ratings, db, caches)
    assert ratings("rebuild", db=db).exit_code == 0
    verified = ratings("verify", db=db)
    assert verified.exit_code == 1
    assert "the stored standings differ from a replay" in verified.stdout


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o750])
def test_nothing_is_promoted_from_a_shared_cache(mode: int, ratings: Ratings, db: str, caches: Path) -> None:
    """A rebuild refuses a cache that other accounts have rights in, and takes it again after the command it names."""
    root = own(caches)
    assert root.stat().st_mode & 0o777 == 0o700
    root.chmod(mode)
    standings(ratings, db)
    for more in ((), ("--check",)):
        refused = ratings("rebuild", *more, db=db)
        assert refused.exit_code == 3, refused
        assert f"type: chmod 0700 {root} " in refused.stderr
    root.chmod(0o700)
    assert ratings("rebuild", db=db).exit_code == 0


def test_workers_use_no_folder_that_all_can_write(ratings: Ratings, db: str, caches: Path, tmp_path: Path) -> None:
    """A place for segments that every account can write is refused; one that a group shares is taken."""
    ledger_id = own(caches).name[:36]
    folder = tmp_path / "sealed" / ledger_id
    folder.mkdir(parents=True)
    rebuild = ("rebuild", "--on", "processes:1")
    folder.chmod(0o777)
    refused = ratings(*rebuild, "--segments", folder.parent, db=db)
    assert refused.exit_code == 3, refused
    assert f"type: chmod 0775 {folder} " in refused.stderr
    folder.chmod(0o770)
    assert ratings(*rebuild, "--segments", folder.parent, db=db).exit_code == 0
    assert ratings(*rebuild, db=db).exit_code == 0
    (own(caches) / "sealed").chmod(0o770)
    assert "type: chmod 0700" in ratings(*rebuild, db=db).stderr
