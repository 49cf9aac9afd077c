"""An impossible row, inserted past the guards: it counts for nothing, every answer says so, and everything else
works."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from forging import (
    GAME,
    INVALID_EVENTS,
    INVALID_GAMES,
    UNCANONICAL_RECORDS,
    append_forged,
    append_named_forgery,
    replace_once,
)
from ledgers import open_for_reading
from lengths import mark_long_values
from sqlalchemy import text
from test_verify import append_rename, create_published_ledger, list_findings, run_statements
from thresholds import set_thresholds

import ratings_ledger as rl

Ratings = Callable[..., Any]
Forge = Callable[[str], object]


pytestmark = pytest.mark.ledger(make=create_published_ledger)


# the cases of a short run; `projections/test_paths.py` decodes all of them
SHORT_CASES = (
    "no participant",
    "a long name",
    "an unknown type",
    "a correction without a game",
    "a void of itself",
    "a member twice",
)
ANSWERING_COMMANDS = [
    ("standings", "elo-chess/all"),
    ("history", "anna", "elo-chess/all"),
    ("explain", "g-1", "elo-chess/all"),
    ("explain", "anna", "elo-chess/all"),
    ("ladders",),
    ("lists",),
    ("statistics", "anna"),
    ("books", "elo-chess/all"),
    ("diff", "published", "now"),
    ("export", "standings"),
]
OTHER_COMMANDS = [
    ("games",), ("games", "--player", "anna"), ("log",), ("log", "anna"), ("log", "forged"), ("status",), ("doctor",),
    ("rules", "list"), ("league", "list"), ("export", "events"), ("rebuild",), ("rebuild", "--check"),
    ("standings", "elo-chess/all", "--as-published"),
]  # fmt: skip


def run_answering_commands(ratings: Ratings, url: str) -> dict[str, Any]:
    """Return the results of the commands as JSON; each must succeed."""
    results = {}
    for command in ANSWERING_COMMANDS:
        result = ratings(*command, "--format", "json", db=url)
        assert result.exit_code == 0, (command, result)
        results[" ".join(command)] = result
    return results


@pytest.fixture(scope="module")
def results_before(ratings: Ratings) -> Callable[[str], dict[str, Any]]:
    """Return a function that returns the results before any change, which are the same for every copy of a ledger in a
    kind of store."""
    results_by_kind: dict[bool, dict[str, Any]] = {}

    def find_results(url: str) -> dict[str, Any]:
        kind = url.startswith("sqlite")
        if kind not in results_by_kind:
            results_by_kind[kind] = run_answering_commands(ratings, url)
        return results_by_kind[kind]

    return find_results


def parse_comparable(text: str) -> Any:
    """Return the JSON of a result without the length of the log and the positions left out."""
    return strip_positions(
        [json.loads(line) for line in text.splitlines()] if text.startswith('{"') else json.loads(text)
    )


def strip_positions(value: Any) -> Any:
    if isinstance(value, list):
        return [strip_positions(item) for item in value]
    if isinstance(value, dict):
        return {name: strip_positions(member) for name, member in value.items() if name not in ("known_at", "left_out")}
    return value


@pytest.mark.parametrize("what", mark_long_values(SHORT_CASES, [*INVALID_GAMES, *INVALID_EVENTS, *UNCANONICAL_RECORDS]))
def test_impossible_row_changes_no_answer(
    what: str, db: str, ratings: Ratings, results_before: Callable[[str], dict[str, Any]]
) -> None:
    """An impossible row changes no answer, and every answer notes that it does not count."""
    before = results_before(db)
    position = append_named_forgery(what, db)
    for command, result in run_answering_commands(ratings, db).items():
        note = f"the event at position {position} does not count: "
        assert result.stderr.count(note) == 1, (command, result.stderr)
        assert parse_comparable(result.stdout) == parse_comparable(before[command].stdout), command
        if command != "explain anna elo-chess/all":
            assert "left_out" in result.stdout, command
    assert json.loads(ratings("standings", "elo-chess/all", "--format", "json", db=db).stdout)["left_out"] == [position]


@pytest.mark.slow
@pytest.mark.parametrize("what", mark_long_values(SHORT_CASES, [*INVALID_GAMES, *INVALID_EVENTS, *UNCANONICAL_RECORDS]))
def test_ledger_with_impossible_row_accepts_changes(what: str, db: str, ratings: Ratings) -> None:
    """A ledger with an impossible row accepts every change.

    Games are recorded, corrected and voided, lists published and generations built; `verify` names that row alone.
    """
    position = append_named_forgery(what, db)
    for command in OTHER_COMMANDS:
        command_result = ratings(*command, db=db)
        # `doctor` reports that the role of the tests has too many rights
        assert command_result.exit_code == 0 or command == ("doctor",), (command, command_result)
        assert "bug" not in command_result.stderr
    for command in (
        ("record", "--game", "chess", "--game-id", "new", "--at", "2024-03-01T20:00Z", "anna", "cleo"),
        ("correct", "g-1", "ben", "anna", "cleo", "--reason", "the sheet was wrong"),
        ("void", "g-2", "--reason", "not played"),
        ("reinstate", "g-2", "--reason", "it was"),
        ("player", "rename", "cleo", "cleopatra"),
        ("adjust", "elo-chess/all", "anna", "5", "--reason", "a prize"),
        ("publish", "elo-chess/all"),
    ):
        command_result = ratings(*command, db=db)
        assert command_result.exit_code == 0, (command, command_result)
    result = ratings(
        "record", "--game", "chess", "--game-id", "forged", "--at", "2024-03-01T20:00Z", "anna", "ben", db=db
    )
    assert result.exit_code in (0, 1)
    assert "bug" not in result.stderr
    assert ratings("rebuild", db=db).exit_code == 0
    findings = json.loads(ratings("verify", "--format", "json", db=db).stdout)["findings"]
    assert {finding["position"] for finding in findings} == {position}, findings
    codes = {finding["code"] for finding in findings}
    assert len(codes) <= 2
    assert not {"standings", "published"} & codes


def test_correction_replaces_forged_end(db: str, ratings: Ratings) -> None:
    """A correction replaces a forged last event in a game's revisions."""
    append_forged(db, {"game_id": "g-1"}, "game:g-1", id="x", type="game.corrected", supersedes="game:g-1")
    assert ratings("correct", "g-1", "ben", "anna", "cleo", "--reason", "the sheet was wrong", db=db).exit_code == 0
    game = json.loads(ratings("games", "g-1", "--format", "json", db=db).stdout)["rows"][0]
    assert next(participant["player"] for participant in game["participants"] if participant["place"] == 1) == "ben"


@pytest.mark.slow_cases
def test_malformed_list_does_not_count(db: str, ratings: Ratings) -> None:
    """A malformed published list does not count, and everything else works.

    Every reader of lists parses their records again.
    """
    with open_for_reading(db) as connection:
        query = text("SELECT record FROM events WHERE type = 'list.published'")
        data = json.loads(connection.execute(query).scalar_one())["data"] | {"known_at": 1}
    append_forged(
        db,
        data,
        "ladder:elo-chess/all",
        id="x",
        type="list.published",
        rewrite=replace_once('"known_at":1', '"known_at":1,"known_at":1'),
    )
    for command in (
        *ANSWERING_COMMANDS,
        ("standings", "elo-chess/all", "--as-published"),
        ("record", "--game", "chess", "--game-id", "new", "--at", "2024-03-01T20:00Z", "anna", "cleo"),
    ):
        assert ratings(*command, db=db).exit_code == 0, command
    assert [message.partition(":")[0] for message in list_findings(ratings, db)] == ["not-a-record"]


@pytest.mark.slow_cases
def test_rename_closing_a_circle_is_ignored(db: str, ratings: Ratings) -> None:
    """Of renames in a circle, the one that closes it does not count."""
    append_rename(db, 0, "anna", "xa")
    append_rename(db, 1, "xa", "anna")
    for command in ANSWERING_COMMANDS:
        result = ratings(*(name.replace("anna", "xa") for name in command), db=db)
        assert result.exit_code == 0, (command, result)
        assert "is renamed in a circle" in result.stderr, command
    rows = json.loads(ratings("standings", "elo-chess/all", "--format", "json", db=db).stdout)["rows"]
    assert [row["player"] for row in rows] == ["xa", "ben", "cleo"]


def test_many_bad_rows_are_counted(db: str, ratings: Ratings) -> None:
    """Of many bad rows, a few are named and the rest are counted."""
    for number in range(5):
        append_forged(db, {}, id=f"x-{number}", type="player.exiled")
    stderr = ratings("standings", "elo-chess/all", db=db).stderr
    assert stderr.count("does not count: ") == 3
    assert "2 more events do not count" in stderr
    head = json.loads(ratings("status", "--format", "json", db=db).stdout)["position"]
    assert "1 more event does not count" in ratings("ladders", "--known-at", head - 1, db=db).stderr


IMPOSSIBLE_VOIDS = {
    "of nothing": {"v": "no"},
    "of itself": {"v": "v"},
    "of each other": {"w": "v", "v": "w"},
    "of a void of nothing": {"w": "no", "v": "w"},
    "of a game's event": {"v": "game:g-1"},
}


@pytest.mark.parametrize("what", IMPOSSIBLE_VOIDS)
def test_void_of_nothing_cannot_be_voided(what: str, db: str, ratings: Ratings) -> None:
    """A void that withdraws nothing cannot itself be voided."""
    for event_id, target in IMPOSSIBLE_VOIDS[what].items():
        append_forged(db, {"id": target, "reason": "x"}, f"event:{target}", id=event_id, type="event.voided")
    result = ratings("void", "--event", "v", "--reason", "x", db=db)
    assert (result.exit_code, "'v' withdraws nothing, so it does not count" in result.stderr) == (1, True), result
    assert ratings("log", "v", db=db).exit_code == 0


def test_self_superseding_event_hangs_no_command(db: str, ratings: Ratings) -> None:
    """An event that supersedes itself makes no command hang, and voiding it is refused."""
    data = {"ladder": "elo-chess/all", "player": "anna", "points": "5", "reason": "x"}
    append_forged(db, data, "player:anna", id="a", type="points.adjusted", columns={"supersedes": "a"})
    for command in (("log", "anna"), ("explain", "anna", "elo-chess/all")):
        assert ratings(*command, db=db).exit_code == 0
    result = ratings("void", "--event", "a", "--reason", "x", db=db)
    assert (result.exit_code, "changed-meanwhile" in result.stderr) == (1, True), result


def test_uncounted_void_leaves_event_in_force(db: str, ratings: Ratings) -> None:
    """An event is in force despite a void that does not count, and can be voided exactly once."""
    assert ratings("adjust", "elo-chess/all", "anna", "5", "--reason", "a prize", db=db).exit_code == 0
    adjustment_id = json.loads(ratings("log", "--limit", "1", "--format", "json", db=db).stdout)["rows"][0]["id"]
    append_forged(db, {"id": "no", "reason": "x"}, "event:no", id="v", type="event.voided", supersedes=adjustment_id)
    assert ratings("void", "--event", adjustment_id, "--reason", "no prize", db=db).exit_code == 0
    result = ratings("void", "--event", adjustment_id, "--reason", "no prize", db=db)
    assert (result.exit_code, "event-voided" in result.stderr) == (1, True), result


def test_void_of_later_event_is_ignored(db: str, ratings: Ratings) -> None:
    """An event counts everywhere even if an earlier void names it."""
    append_forged(db, {"id": "z", "reason": "x"}, "event:z", id="v", type="event.voided")
    zone = {"type": "ledger.zone_set", "id": "z", "occurred_at": "2024-01-01T00:00:00Z", "data": {"zone": "Asia/Tokyo"}}
    assert ratings("import", "-", db=db, input=json.dumps(zone)).exit_code == 0
    assert "Asia/Tokyo" in ratings("zone", db=db).stdout
    assert "(withdrawn)" not in ratings("log", db=db).stdout


@pytest.mark.slow_cases
@pytest.mark.parametrize("column", ["player.renamed", "ruleset.published", "event.voided", "game.corrected"])
def test_wrong_type_column_breaks_no_command(column: str, db: str, ratings: Ratings) -> None:
    """Every command succeeds if a row's type column differs from the type in its record."""
    data = {"ladder": "elo-chess/all", "player": "anna", "points": "5", "reason": "x"}
    append_forged(db, data, "ruleset:elo-chess", id="a", type="points.adjusted", columns={"type": column})
    for command in (*ANSWERING_COMMANDS, *OTHER_COMMANDS):
        result = ratings(*command, db=db)
        # `doctor` reports that the role of the tests has too many rights
        assert result.exit_code == 0 or command == ("doctor",), (command, result)
        assert "bug" not in result.stderr, (command, result)
    result = ratings("standings", "elo-go/all", db=db)
    assert "no ruleset is called 'elo-go'" in result.stderr


@pytest.mark.slow
def test_impossible_generation_is_reported(tmp_path: Path, ratings: Ratings) -> None:
    """`status` reports a generation with impossible values until the next rebuild."""
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    create_published_ledger(ratings, url)
    assert ratings("rebuild", db=url).exit_code == 0
    for column, value in (("finished_at", "'x'"), ("finished_at", 2**62), ("position", "'x'"), ("chain_hash", -1)):
        with closing(sqlite3.connect(tmp_path / "ratings.db", isolation_level=None)) as database:
            database.execute("PRAGMA ignore_check_constraints = 1")
            database.execute(f"UPDATE generations SET {column} = {value}")
        result = ratings("status", db=url)
        assert (result.exit_code, "has values that no rebuild stores" in result.stderr) == (1, True), result
        assert ratings("rebuild", db=url).exit_code == 0


def test_uncounted_game_is_not_explained(db: str, ratings: Ratings) -> None:
    """`explain` says that the record of a game is invalid and does not count."""
    position = append_named_forgery("a gap", db)
    result = ratings("explain", "forged", "elo-chess/all", db=db)
    message = f"game-unknown: the record of 'forged' at position {position} is invalid, so it does not count; run: "
    assert (result.exit_code, message in result.stderr) == (1, True), result


def test_uncounted_game_has_no_timeline(db: str) -> None:
    """A game whose record is invalid is refused among several timelines, too."""
    append_named_forgery("a gap", db)
    with rl.open(db) as ledger, pytest.raises(rl.Unknown, match="is invalid, so it does not count"):
        list(ledger.at().timelines(["g-1", "forged"]))


def test_timeline_ignores_invalid_correction(db: str) -> None:
    """The timeline of a game ignores a correction that does not count."""
    with rl.open(db) as ledger:
        before = ledger.at().timeline("g-1")
    append_forged(db, {"game_id": "g-1"}, "game:g-1", id="x", type="game.corrected", supersedes="game:g-1")
    with rl.open(db) as ledger:
        timeline = ledger.at().timeline("g-1")
    assert (timeline.story, timeline.data) == (before.story, before.data)


def test_cache_ignores_correction_of_uncounted_game(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A correction by SQL of a game that does not count changes no other game in the cache."""
    set_thresholds(monkeypatch, cached_events=1)
    command = ("standings", "elo-chess/all", "--format", "json")
    append_named_forgery("a gap", db)
    assert ratings("record", db=db, input=json.dumps({**GAME, "game_id": "behind"})).exit_code == 0
    before = json.loads(ratings(*command, db=db).stdout)
    reversed_game = {**GAME, "participants": [{"player": "ben", "place": 1}, {"player": "anna", "place": 2}]}
    append_forged(
        db,
        {"game_id": "forged", "game": reversed_game, "reason": "x"},
        id="c",
        type="game.corrected",
        supersedes="game:forged",
    )
    after = ratings(*command, db=db)
    assert "cache" not in after.stderr
    assert json.loads(after.stdout)["rows"] == before["rows"]


@pytest.mark.slow_cases
@pytest.mark.timeout(60)
@pytest.mark.parametrize("position", [10**8, 10**10])
def test_gap_of_positions_costs_no_time(position: int, db: str, ratings: Ratings) -> None:
    """Millions or billions of absent positions do not slow any command, and `verify` names them."""
    append_forged(db, {**GAME, "game_id": "forged"}, position=position, columns={"position": position})
    for command in (
        ("standings", "elo-chess/all"),
        ("standings", "elo-chess/all", "--known-at", "2999-01-01T00:00Z"),
        ("history", "anna", "elo-chess/all"),
        ("log", "anna"),
        ("diff", "2", "now"),
        ("rebuild", "--check"),
        ("void", "g-1", "--reason", "twice"),
    ):
        result = ratings(*command, db=db)
        assert result.exit_code == 0, (command, result)
    assert any(
        message.startswith("missing: no event is stored at positions ") for message in list_findings(ratings, db)
    )


DAMAGED_COLUMNS = {
    "no chain hash": "chain_hash = NULL",
    "a chain hash that is a text": "chain_hash = 'abc'",
    "a short chain hash": "chain_hash = x'00'",
    "a time that is a text": "recorded_at = 'x'",
    "a time with a fraction": "recorded_at = 9e30",
    "a time after all times": "recorded_at = 4611686018427387904",
}


def damage_head(path: str, change: str) -> None:
    """Change the last row of a file and leave its schema the same."""
    schema = "SELECT name, sql FROM sqlite_master WHERE name IN ('events', 'events_refuse_update')"
    allow_edits = "PRAGMA writable_schema = ON"
    replace_table = "UPDATE sqlite_master SET sql = ? WHERE name = 'events'"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        definitions = dict(connection.execute(schema).fetchall())
        connection.execute("DROP TRIGGER events_refuse_update")
        connection.execute(allow_edits)
        connection.execute(
            replace_table, (definitions["events"].replace("chain_hash BLOB NOT NULL", "chain_hash BLOB"),)
        )
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE events SET {change} {LAST_ROW}")
        connection.execute(definitions["events_refuse_update"])
        connection.execute(allow_edits)
        connection.execute(replace_table, (definitions["events"],))


LAST_ROW = "WHERE position = (SELECT max(position) FROM events)"


@pytest.mark.parametrize("what", [*DAMAGED_COLUMNS, "postgres"])
def test_damaged_head_is_named(what: str, ratings: Ratings, request: pytest.FixtureRequest) -> None:
    """With a damaged last row, every command ends with a message that names it, and `verify` has findings."""
    if what == "postgres":
        db = str(request.getfixturevalue("postgres_db"))
        trigger = "ALTER TABLE events {} TRIGGER events_refuse_update"
        after_all_times = f"UPDATE events SET recorded_at = 4611686018427387904 {LAST_ROW}"
        run_statements(db, trigger.format("DISABLE"), after_all_times, trigger.format("ENABLE"))
    else:
        db = f"sqlite:///{request.getfixturevalue('copy_ledger_file')(create_published_ledger)}"
        damage_head(db.removeprefix("sqlite:///"), DAMAGED_COLUMNS[what])
    for command in (
        ("standings", "elo-chess/all"),
        ("status",),
        ("log",),
        ("doctor",),
        ("rebuild",),
        ("publish", "elo-chess/all"),
        ("record", "-q", "--game", "chess", "--game-id", "g-9", "--at", "2024-02-01T20:00Z", "anna", "ben"),
    ):
        result = ratings(*command, db=db)
        assert (result.exit_code, "bug" in result.stderr) == (1, False), (command, result)
        assert "the last event, at position 6, is invalid; run: ratings verify" in result.stderr, command
    assert list_findings(ratings, db) != []
