"""`import`, `record` and `export`: exports restore to the same ledger, and rejections are reported and written."""

import getpass
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import format_game_line
from ledgers import create_ledger
from output_filters import remove_names_and_changes
from own_rules import find_shipped_texts
from stores import make_empty_ledger, record_lines


def build_game_line(game_id: str, *players: str, game: str = "club-catan", day: int = 1) -> str:
    """Return a game as a line of JSON, the players in the order of their places."""
    return format_game_line(game_id, *players, at=f"2024-01-{day:02d}T12:00:00Z", game=game)


GOOD_LINES = build_game_line("g-1", "anna", "ben", "cleo") + build_game_line("g-2", "ben", "anna", "cleo", day=2)
BAD_LINE = build_game_line("g-9", "anna")


@pytest.fixture
def db(copy_ledger_file: Callable[..., str]) -> str:
    """Return a ledger in SQLite without events."""
    return copy_ledger_file(make_empty_ledger, name="own.db")


def summarise_import(result: Any) -> dict[str, Any]:
    """Return the JSON of an import without messages, each rejection as (file, line, code)."""
    output = remove_names_and_changes(json.loads(result.stdout))
    output["rejected"] = [
        (Path(r["file"]).name if r["file"] else None, r["line"], r["code"]) for r in output["rejected"]
    ]
    return output


def read_head(ratings: Callable[..., Any], db: str) -> str:
    return str(json.loads(ratings("status", "--format", "json", db=db).stdout)["head"])


@pytest.mark.slow
def test_restored_export_is_identical(ledger_url: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """An export restored into an empty ledger has the same bytes, hashes and answers."""
    copy, backup = str(tmp_path / "copy.db"), tmp_path / "backup.jsonl"
    assert ratings("init", "--by", "secretary", db=ledger_url).exit_code == 0
    assert ratings("import", "-", "--by", "Jürgen 😀", db=ledger_url, input=GOOD_LINES).exit_code == 0
    assert (
        ratings("record", "--game", "club-catan", "--game-id", "g-3", "zoé", "ben=dora", db=ledger_url).exit_code == 0
    )
    assert ratings("export", "events", "-o", backup, db=ledger_url).exit_code == 0
    assert ratings("init", "--no-rules", db=copy).exit_code == 0

    result = ratings("import", backup, "--restore", "--format", "json", db=copy)

    events = len(find_shipped_texts()) + 4  # three games and the batch of the import
    assert summarise_import(result) == {"appended": events, "existing": 0, "rejected": [], "head": events}
    assert read_head(ratings, copy) == read_head(ratings, ledger_url)
    *lines, last = backup.read_text(encoding="utf-8").splitlines(keepends=True)
    assert ratings("export", "events", db=copy).stdout == "".join(lines)
    assert last == f'{{"end":{events},"head":"{read_head(ratings, copy)}"}}\n'
    for command in (("standings", "club-catan-elo/all"), ("games",), ("log",), ("rules", "list")):
        assert ratings(*command, "--format", "json", db=copy) == ratings(*command, "--format", "json", db=ledger_url)
    assert ratings("verify", "--head", read_head(ratings, ledger_url), db=copy) == (0, "", "")


def test_restore_between_stores_keeps_hashes(
    ledger_url: str, tmp_path: Path, db: str, ratings: Callable[..., Any]
) -> None:
    """A backup of one kind of store has the same head when restored into another."""
    ratings("import", "-", db=db, input=GOOD_LINES)
    ratings("export", "events", "-o", tmp_path / "backup.jsonl", db=db)

    assert ratings("import", tmp_path / "backup.jsonl", "--restore", db=ledger_url).exit_code == 0
    assert read_head(ratings, ledger_url) == read_head(ratings, db)


def test_plain_import_records_anew(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """An export imported without --restore is recorded anew: it keeps its recorders and batches, and is a batch
    itself."""
    ratings("import", "-", "--by", "referee", db=db, input=GOOD_LINES)
    other_ledger = create_ledger(str(tmp_path / "other.db"))
    exported = ratings("export", "events", db=db).stdout

    assert (
        summarise_import(ratings("import", "-", "--format", "json", db=other_ledger, input=exported))["appended"] == 3
    )
    rows = json.loads(ratings("log", "--format", "json", db=other_ledger).stdout)["rows"]
    assert [(row["position"], row["by"], row["id"].partition(":")[0]) for row in rows] == [
        (1, "referee", "game"),
        (2, "referee", "game"),
        (3, "referee", "import.recorded"),
        (4, getpass.getuser(), "import.recorded"),
    ]


def test_importing_twice_changes_nothing(ledger_url: str, ratings: Callable[..., Any]) -> None:
    """Importing the same lines again, each of them twice, appends nothing and leaves the head as it is."""
    first = ratings("import", "-", "--format", "json", db=ledger_url, input=GOOD_LINES)
    before = read_head(ratings, ledger_url)
    second = ratings("import", "-", "--format", "json", db=ledger_url, input=GOOD_LINES + GOOD_LINES)

    assert summarise_import(first) == {"appended": 2, "existing": 0, "rejected": [], "head": 3}
    assert summarise_import(second) == {"appended": 0, "existing": 4, "rejected": [], "head": 3}
    assert read_head(ratings, ledger_url) == before


def test_refused_line_prevents_all_appends(db: str, ratings: Callable[..., Any]) -> None:
    """If a line is refused, nothing is appended, and existing events are still counted."""
    ratings("import", "-", db=db, input=GOOD_LINES)
    result = ratings(
        "import", "-", "--format", "json", db=db, input=GOOD_LINES + build_game_line("g-3", "anna", "ben") + BAD_LINE
    )

    assert (result.exit_code, summarise_import(result)) == (
        1,
        {"appended": 0, "existing": 2, "rejected": [("-", 4, "too-few-participants")], "head": 3},
    )


def test_bad_line_prevents_appends_of_all_files(ledger_url: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """If one line of several files is bad, nothing from any of them is appended."""
    (tmp_path / "a.jsonl").write_text(GOOD_LINES)
    (tmp_path / "b.jsonl").write_text(build_game_line("g-3", "anna", "ben") + BAD_LINE)
    result = ratings("import", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--format", "json", db=ledger_url)

    assert (result.exit_code, summarise_import(result)) == (
        1,
        {"appended": 0, "existing": 0, "rejected": [("b.jsonl", 2, "too-few-participants")], "head": 0},
    )


def test_files_are_appended_in_argument_order(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """Events of several files are appended in the order of the arguments."""
    (tmp_path / "a.jsonl").write_text(GOOD_LINES)
    (tmp_path / "b.csv").write_text("game_id,occurred_at,game,1st,2nd\ng-3,2024-01-01T12:00:00Z,catan,anna,ben\n")
    ratings("import", tmp_path / "b.csv", tmp_path / "a.jsonl", db=db)

    assert list_recorded_games(ratings, db) == ["g-3", "g-1", "g-2"]


def test_keep_going_writes_a_file_of_rejects(ledger_url: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """With --keep-going, good lines are appended and bad ones are written with their line numbers."""
    lines = [
        build_game_line("g-1", "anna", "ben"),
        "not json\n",
        BAD_LINE,
        "x" * (1 << 21) + "\n",
        build_game_line("g-2", "anna", "ben"),
    ]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    result = ratings("import", tmp_path / "a.jsonl", "--keep-going", "--format", "json", db=ledger_url)

    rejections = [("a.jsonl", 2, "bad-json"), ("a.jsonl", 3, "too-few-participants"), ("a.jsonl", 4, "line-too-long")]
    assert (result.exit_code, summarise_import(result)) == (
        1,
        {"appended": 2, "existing": 0, "rejected": rejections, "head": 3},
    )
    rejects = [json.loads(line) for line in (tmp_path / "a.jsonl.rejects.jsonl").read_text().splitlines()]
    assert [(reject["line"], reject["code"], reject["input"]) for reject in rejects] == [
        (2, "bad-json", "not json"),
        (3, "too-few-participants", BAD_LINE.rstrip()),
        (4, "line-too-long", None),
    ]


def test_good_import_writes_no_file_of_rejects(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """With --keep-going and only good lines, no file of rejects is written."""
    (tmp_path / "a.jsonl").write_text(GOOD_LINES)

    assert ratings("import", tmp_path / "a.jsonl", "--keep-going", db=db).exit_code == 0
    assert not (tmp_path / "a.jsonl.rejects.jsonl").exists()


LONG_TABLE = """game_id,occurred_at,game,player,place
g-1,2024-01-01T12:00:00Z,catan,anna,1
g-1,2024-01-01T12:00:00Z,catan,ben,2
g-2,2024-01-01T12:00:00Z,catan,anna,1
g-2,2024-01-01T12:00:00Z,catan,ben,2,x
g-2,2024-01-01T12:00:00Z,catan,cleo,3
g-3,2024-01-01T12:00:00Z,catan,anna,1
g-3,2024-01-01T12:00:00Z,catan,ben,2
"""


def list_recorded_games(ratings: Callable[..., Any], db: str) -> list[str]:
    events = map(json.loads, ratings("export", "events", db=db).stdout.splitlines())
    return [event["data"]["game_id"] for event in events if event["type"] == "game.recorded"]


@pytest.mark.parametrize("game_id", ["g-2", "zo\u00e9", "zoe\u0301"])
@pytest.mark.parametrize(("bad_row", "appended"), [("ben,2", ["g-1", "g-3"]), ("cleo,3", ["g-1"])])
def test_game_with_bad_row_is_skipped(
    game_id: str, bad_row: str, appended: list[str], db: str, tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """With --keep-going, no part of a game with an unreadable row is appended."""
    content = LONG_TABLE.replace("2,x", "2").replace("g-2", game_id)
    rows = [f"{row},x" if game_id in row and bad_row in row else row for row in content.splitlines()]
    (tmp_path / "games.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    ratings("import", tmp_path / "games.csv", "--keep-going", db=db)

    # a row whose game is unknown may belong to the next game, so that game is refused, too
    assert list_recorded_games(ratings, db) == appended


def test_scattered_game_is_rejected_whole(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """With --keep-going, all rows of a game whose rows are separated are among the rejects."""
    header, *rows = LONG_TABLE.replace("2,x", "2").splitlines()
    (tmp_path / "games.csv").write_text("\n".join((header, *rows[2:], *rows[:2], *rows[3:5])) + "\n")
    ratings("import", tmp_path / "games.csv", "--keep-going", db=db)

    assert list_recorded_games(ratings, db) == ["g-3", "g-1"]
    rejects = [json.loads(line) for line in (tmp_path / "games.csv.rejects.jsonl").read_text().splitlines()]
    assert sorted(row["player"] for reject in rejects for row in reject["input"]) == [
        "anna",
        "ben",
        "ben",
        "cleo",
        "cleo",
    ]


def test_first_of_two_differing_games_is_appended(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """With --keep-going, the first record of a game is appended if two files differ on the game."""
    (tmp_path / "a.jsonl").write_text(build_game_line("g-1", "anna", "ben"))
    (tmp_path / "b.csv").write_text(LONG_TABLE.replace("anna,1", "dora,1"))
    result = ratings("import", tmp_path / "a.jsonl", tmp_path / "b.csv", "--keep-going", "--format", "json", db=db)

    assert ("b.csv", 2, "id-conflict") in summarise_import(result)["rejected"]
    assert list_recorded_games(ratings, db) == ["g-1", "g-3"]


def test_dry_run_checks_and_appends_nothing(db: str, ratings: Callable[..., Any]) -> None:
    """An import with --dry-run checks every line and appends nothing."""
    before = read_head(ratings, db)
    good = ratings("import", "-", "--dry-run", "--format", "json", db=db, input=GOOD_LINES)
    bad = ratings("import", "-", "--dry-run", "--format", "json", db=db, input=GOOD_LINES + BAD_LINE)

    assert (good.exit_code, summarise_import(good)) == (
        0,
        {"appended": 0, "existing": 0, "rejected": [], "head": 0, "dry_run": True, "would_append": 2},
    )
    assert (bad.exit_code, summarise_import(bad)["rejected"]) == (1, [("-", 3, "too-few-participants")])
    assert read_head(ratings, db) == before


@pytest.mark.parametrize("is_compressed", [True, False])
@pytest.mark.parametrize("name", ["games.jsonl.gz", "games.jsonl", "games"])
def test_compression_is_detected_by_content(
    name: str, is_compressed: bool, db: str, tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """A file is decompressed according to its content, not its name."""
    content = GOOD_LINES.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if is_compressed else content)

    assert ratings("import", tmp_path / name, db=db).exit_code == 0
    assert list_recorded_games(ratings, db) == ["g-1", "g-2"]


def test_compressed_csv_on_stdin_is_read(db: str, ratings: Callable[..., Any]) -> None:
    """Compressed CSV on standard input is imported."""
    content = gzip.compress(b"game_id,occurred_at,game,1st,2nd\ng-1,2024-01-01T12:00:00Z,catan,anna,ben\n")

    assert ratings("import", "-", db=db, input=content).exit_code == 0
    assert list_recorded_games(ratings, db) == ["g-1"]


RECORDINGS = {
    "players": (
        ("--game", "catan", "--game-id", "g-1", "--at", "2024-01-01T12:00:00Z", "--city", "7",
         "anna", "ben=cleo", "dora"),
        "",
    ),
    "an event": ((), json.dumps({
        "type": "game.recorded", "occurred_at": "2024-01-01T13:00:00+01:00", "data": {
            "game_id": "g-1", "game": "catan", "city": "7", "participants": [
                {"player": "anna", "place": 1}, {"player": "ben", "place": 2}, {"player": "cleo", "place": 2},
                {"player": "dora", "place": 4}]}}, indent=1)),
    "the data of a game": (("--at", "2024-01-01 13:00", "--zone", "Europe/Berlin"), json.dumps({
        "game_id": "g-1", "game": "catan", "city": "7", "participants": [
            {"player": "anna", "place": 1}, {"player": "ben", "place": 2}, {"player": "cleo", "place": 2},
            {"player": "dora", "place": 4}]})),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "stdin"), RECORDINGS.values(), ids=RECORDINGS)
def test_any_form_records_the_same_event(
    arguments: tuple[str, ...], stdin: str, db: str, ratings: Callable[..., Any]
) -> None:
    """A game recorded from players, from an event or from its data gives the same event."""
    result = ratings("record", *arguments, "--format", "json", db=db, input=stdin)
    (event,) = [json.loads(line) for line in ratings("export", "events", db=db).stdout.splitlines()]

    assert (result.exit_code, summarise_import(result)) == (
        0,
        {"appended": 1, "existing": 0, "rejected": [], "head": 1},
    )
    assert (event["id"], event["occurred_at"], event["data"]) == ("game:g-1", "2024-01-01T12:00:00.000000Z", {
        "game_id": "g-1", "game": "catan", "city": "7", "participants": [
            {"player": "anna", "place": 1}, {"player": "ben", "place": 2}, {"player": "cleo", "place": 2},
            {"player": "dora", "place": 4}],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["anna", "anna"], "player-twice"),
        (["anna"], "too-few-participants"),
        (["anna", ""], "bad-identifier"),
        (["a/b", "c"], "bad-identifier"),
    ],
)
def test_bad_game_is_refused_with_code(arguments: list[str], code: str, db: str, ratings: Callable[..., Any]) -> None:
    """Recording a bad game fails with its code and appends nothing."""
    result = ratings("record", "--game", "catan", "--game-id", "g-1", *arguments, db=db)

    assert (result.exit_code, read_head(ratings, db).split(":")[0]) == (1, "0")
    assert result.stderr.startswith(f"{code}: ")


@pytest.mark.parametrize("stdin", ["", " \n"])
def test_record_without_input_names_the_alternatives(stdin: str, db: str, ratings: Callable[..., Any]) -> None:
    """Without players and with empty standard input, `record` names both ways to give a game."""
    result = ratings("record", db=db, input=stdin)

    assert result.exit_code == 1
    assert result.stderr == (
        "bad-json: there is no event on standard input; name the PLAYERS, with --game and --game-id, or give an event "
        "as JSON\n"
    )


@pytest.mark.parametrize("name", ["a\nb", "a\tb"])
def test_recorder_name_with_line_break_is_refused(name: str, db: str, ratings: Callable[..., Any]) -> None:
    """A line break or a tab in --by is refused, and nothing is recorded."""
    result = ratings("record", "--game", "catan", "--game-id", "g-1", "anna", "ben", "--by", name, db=db)

    assert (result.exit_code, read_head(ratings, db).split(":")[0]) == (2, "0")
    assert f"{name!r} contains a line break or a tab; leave it out" in result.stderr


@pytest.mark.parametrize(("until", "count"), [("0", 0), ("1", 1), ("2", 2)])
def test_export_stops_at_known_at(until: str, count: int, db: str, ratings: Callable[..., Any]) -> None:
    """An export as known at a position has exactly the events up to it."""
    ratings("import", "-", db=db, input=GOOD_LINES)
    all_lines = ratings("export", "events", db=db).stdout

    assert ratings("export", "events", "--known-at", until, db=db).stdout == "".join(all_lines.splitlines(True)[:count])


def test_export_leaves_existing_file_alone(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """Exporting to an existing file is a usage error, and the file is left alone."""
    (tmp_path / "mine").write_text("precious")
    result = ratings("export", "events", "-o", tmp_path / "mine", db=db)

    assert (result.exit_code, (tmp_path / "mine").read_text()) == (2, "precious")


def test_restore_needs_empty_ledger(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """Restoring into a ledger with events is refused and appends nothing."""
    ratings("import", "-", db=db, input=GOOD_LINES)
    ratings("export", "events", "-o", tmp_path / "backup.jsonl", db=db)
    result = ratings("import", tmp_path / "backup.jsonl", "--restore", db=db)

    assert (result.exit_code, read_head(ratings, db).split(":")[0]) == (1, "3")
    assert "needs an empty ledger" in result.stderr


@pytest.mark.parametrize(
    ("content", "line", "code"),
    [
        (None, None, "is-a-directory"),
        (b"\x1f\x8b\x08\x00cut off", None, "bad-gzip"),
        (b"x" * (1 << 21), 1, "line-too-long"),
    ],
    ids=["a folder", "a damaged gzip file", "a long line"],
)
def test_restoring_another_file_is_refused(
    content: bytes | None, line: int | None, code: str, db: str, tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """Restoring what is not a backup is refused with the cause, and nothing is stored."""
    if content is None:
        (tmp_path / "backup").mkdir()
    else:
        (tmp_path / "backup").write_bytes(content)
    result = ratings("import", tmp_path / "backup", "--restore", "--format", "json", db=db)

    assert (result.exit_code, read_head(ratings, db).split(":")[0]) == (1, "0")
    assert summarise_import(result)["rejected"] == [("backup", line, code)]


def test_former_head_reveals_changed_record(db: str, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """A restored backup with a changed record is detected by `verify` with the original head."""
    ratings("import", "-", db=db, input=GOOD_LINES)
    forged_lines = ratings("export", "events", db=db).stdout.replace('"anna"', '"emil"')
    (tmp_path / "forged.jsonl").write_text(forged_lines)
    other_ledger = create_ledger(str(tmp_path / "other.db"))
    original_head = read_head(ratings, db)
    for option in ((), ("--head", original_head)):
        assert ratings("import", tmp_path / "forged.jsonl", "--restore", *option, db=other_ledger).exit_code == 1
    assert ratings("import", tmp_path / "forged.jsonl", "--restore", "--incomplete", db=other_ledger).exit_code == 0

    assert ratings("verify", db=other_ledger) == (0, "", "")
    result = ratings("verify", "--head", original_head, db=other_ledger)
    assert (result.exit_code, result.stdout.split(":")[0]) == (1, "head")


FORGED_LINES = {
    "a game recorded twice": lambda line: [
        line,
        line.replace('"position":1', '"position":2').replace("game:g-1", "other"),
    ],
    "an event id twice": lambda line: [
        line,
        line.replace('"position":1', '"position":2').replace('"game_id":"g-1"', '"game_id":"g-9"'),
    ],
    "an event that supersedes nothing": lambda line: [line.replace('"type"', '"supersedes":"nothing","type"')],
}


@pytest.mark.parametrize("forge", FORGED_LINES.values(), ids=FORGED_LINES)
def test_forged_backup_is_refused(
    forge: Callable[[str], list[str]], db: str, tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """A backup with a forged record is refused with the record's line, and nothing is stored."""
    record_lines(db, build_game_line("g-1", "anna", "ben"))
    lines = forge(ratings("export", "events", db=db).stdout.rstrip("\n"))
    (tmp_path / "forged.jsonl").write_text("\n".join(lines) + "\n")
    other_ledger = create_ledger(str(tmp_path / "other.db"))
    result = ratings("import", tmp_path / "forged.jsonl", "--restore", "--format", "json", db=other_ledger)

    assert (result.exit_code, read_head(ratings, other_ledger).split(":")[0]) == (1, "0")
    assert [rejection[:2] for rejection in summarise_import(result)["rejected"]] == [("forged.jsonl", len(lines))]
