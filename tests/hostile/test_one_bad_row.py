"""A row that no event can be, put in past the guards: it counts for nothing, every answer says so, all else goes on."""

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
from test_verify import do, made, rename, verified
from thresholds import set_thresholds

Ratings = Callable[..., Any]
Forge = Callable[[str], object]


pytestmark = pytest.mark.ledger(make=made)


# what is tried short; `projections/test_paths.py` decodes all of them
SHORT = (
    "nobody", "a long name", "an unknown type", "a correction without a game", "a void of itself", "a member twice",
)  # fmt: skip
ANSWERING = [
    ("standings", "elo-chess/all"), ("history", "anna", "elo-chess/all"), ("explain", "g-1", "elo-chess/all"),
    ("explain", "anna", "elo-chess/all"), ("ladders",), ("lists",), ("statistics", "anna"),
    ("books", "elo-chess/all"), ("diff", "published", "now"),
    ("export", "standings"),
]  # fmt: skip
GOING_ON = [
    ("games",), ("games", "--player", "anna"), ("log",), ("log", "anna"), ("log", "forged"), ("status",), ("doctor",),
    ("rules", "list"), ("league", "list"), ("export", "events"), ("rebuild",), ("rebuild", "--check"),
    ("standings", "elo-chess/all", "--as-published"),
]  # fmt: skip


def answers(ratings: Ratings, url: str) -> dict[str, Any]:
    """What the commands say as JSON, without where the log ends; each ends well."""
    found = {}
    for command in ANSWERING:
        done = ratings(*command, "--format", "json", db=url)
        assert done.exit_code == 0, (command, done)
        found[" ".join(command)] = done
    return found


@pytest.fixture(scope="module")
def answers_before(ratings: Ratings) -> Callable[[str], dict[str, Any]]:
    """What is answered before anything is done, which is the same for every copy of a ledger in a store."""
    found: dict[bool, dict[str, Any]] = {}

    def answered(url: str) -> dict[str, Any]:
        kind = url.startswith("sqlite")
        if kind not in found:
            found[kind] = answers(ratings, url)
        return found[kind]

    return answered


def plain(text: str) -> Any:
    """What a result says but how long the log is, and what is left out."""
    return without([json.loads(line) for line in text.splitlines()] if text.startswith('{"') else json.loads(text))


def without(told: Any) -> Any:
    if isinstance(told, list):
        return [without(one) for one in told]
    if isinstance(told, dict):
        return {name: without(value) for name, value in told.items() if name not in ("known_at", "left_out")}
    return told


@pytest.mark.parametrize("what", mark_long_values(SHORT, [*INVALID_GAMES, *INVALID_EVENTS, *UNCANONICAL_RECORDS]))
def test_impossible_row_changes_no_answer(
    what: str, db: str, ratings: Ratings, answers_before: Callable[[str], dict[str, Any]]
) -> None:
    """A row that cannot be an event changes no answer, and every answer says that it does not count."""
    before = answers_before(db)
    position = append_named_forgery(what, db)
    for command, now in answers(ratings, db).items():
        told = f"the event at position {position} does not count: "
        assert now.stderr.count(told) == 1, (command, now.stderr)
        assert plain(now.stdout) == plain(before[command].stdout), command
        if command not in ("explain anna elo-chess/all",):
            assert "left_out" in now.stdout, command
    assert json.loads(ratings("standings", "elo-chess/all", "--format", "json", db=db).stdout)["left_out"] == [position]


@pytest.mark.slow
@pytest.mark.parametrize("what", mark_long_values(SHORT, [*INVALID_GAMES, *INVALID_EVENTS, *UNCANONICAL_RECORDS]))
def test_ledger_works_on_with_impossible_row(what: str, db: str, ratings: Ratings) -> None:
    """A ledger with a row that cannot be an event still accepts every change.

    Games are recorded, corrected and voided, lists published and generations built; `verify` names
    that row alone.
    """
    append_named_forgery(what, db)
    for command in GOING_ON:
        done = ratings(*command, db=db)
        # the role of the tests may more than it should, which `doctor` says
        assert done.exit_code == 0 or command == ("doctor",), (command, done)
        assert "bug" not in done.stderr
    for command in (
        ("record", "--game", "chess", "--game-id", "new", "--at", "2024-03-01T20:00Z", "anna", "cleo"),
        ("correct", "g-1", "ben", "anna", "cleo", "--reason", "the sheet was wrong"),
        ("void", "g-2", "--reason", "not played"), ("reinstate", "g-2", "--reason", "it was"),
        ("player", "rename", "cleo", "cleopatra"), ("adjust", "elo-chess/all", "anna", "5", "--reason", "a prize"),
        ("publish", "elo-chess/all"),
    ):  # fmt: skip
        done = ratings(*command, db=db)
        assert done.exit_code == 0, (command, done)
    again = ratings("record", "--game", "chess", "--game-id", "forged", "--at", "2024-03-01T20:00Z", "anna", "ben",
                    db=db)  # fmt: skip
    assert again.exit_code in (0, 1)
    assert "bug" not in again.stderr
    assert ratings("rebuild", db=db).exit_code == 0
    found = verified(ratings, db)
    assert len({one.partition(": ")[0] for one in found}) <= 2, found
    assert found
    assert not [one for one in found if one.startswith(("standings", "published"))]


def test_correction_replaces_forged_end(db: str, ratings: Ratings) -> None:
    """A correction takes the place of a forged last event in a game's line."""
    append_forged(db, {"game_id": "g-1"}, "game:g-1", id="x", type="game.corrected", supersedes="game:g-1")
    assert ratings("correct", "g-1", "ben", "anna", "cleo", "--reason", "the sheet was wrong", db=db).exit_code == 0
    shown = json.loads(ratings("games", "g-1", "--format", "json", db=db).stdout)["rows"][0]
    assert next(one["player"] for one in shown["participants"] if one["place"] == 1) == "ben"


@pytest.mark.slow_cases
def test_malformed_list_does_not_count(db: str, ratings: Ratings) -> None:
    """A published list whose record is malformed does not count, and everything else goes on.

    Whatever reads lists reads their records again.
    """
    with open_for_reading(db) as connection:
        query = text("SELECT record FROM events WHERE type = 'list.published'")
        data = json.loads(connection.execute(query).scalar_one())["data"] | {"known_at": 1}
    append_forged(db, data, "ladder:elo-chess/all", id="x", type="list.published",
          rewrite=replace_once('"known_at":1', '"known_at":1,"known_at":1'))  # fmt: skip
    for command in (
        *ANSWERING, ("standings", "elo-chess/all", "--as-published"),
        ("record", "--game", "chess", "--game-id", "new", "--at", "2024-03-01T20:00Z", "anna", "cleo"),
    ):  # fmt: skip
        assert ratings(*command, db=db).exit_code == 0, command
    assert [one.partition(":")[0] for one in verified(ratings, db)] == ["not-a-record"]


@pytest.mark.slow_cases
def test_rename_closing_a_circle_is_ignored(db: str, ratings: Ratings) -> None:
    """Of renames in a circle, the one that closes it does not count."""
    rename(db, 0, "anna", "xa")
    rename(db, 1, "xa", "anna")
    for command in ANSWERING:
        done = ratings(*(name.replace("anna", "xa") for name in command), db=db)
        assert done.exit_code == 0, (command, done)
        assert "is renamed in a circle" in done.stderr, command
    rows = json.loads(ratings("standings", "elo-chess/all", "--format", "json", db=db).stdout)["rows"]
    assert [row["player"] for row in rows] == ["xa", "ben", "cleo"]


def test_many_bad_rows_are_counted(db: str, ratings: Ratings) -> None:
    """Of many bad rows, a few are named and the rest are counted."""
    for number in range(5):
        append_forged(db, {}, id=f"x-{number}", type="player.exiled")
    told = ratings("standings", "elo-chess/all", db=db).stderr
    assert told.count("does not count: ") == 3
    assert "2 more events do not count" in told


VOIDS = {
    "of nothing": {"v": "no"}, "of itself": {"v": "v"}, "of each other": {"w": "v", "v": "w"},
    "of a void of nothing": {"w": "no", "v": "w"}, "of a game's event": {"v": "game:g-1"},
}  # fmt: skip


@pytest.mark.parametrize("what", VOIDS)
def test_void_of_nothing_cannot_be_voided(what: str, db: str, ratings: Ratings) -> None:
    """A void that voids nothing before it cannot itself be voided."""
    for event_id, target in VOIDS[what].items():
        append_forged(db, {"id": target, "reason": "x"}, f"event:{target}", id=event_id, type="event.voided")
    done = ratings("void", "--event", "v", "--reason", "x", db=db)
    assert (done.exit_code, "'v' does not count: it withdraws nothing" in done.stderr) == (1, True), done
    assert ratings("log", "v", db=db).exit_code == 0


def test_self_superseding_event_hangs_nothing(db: str, ratings: Ratings) -> None:
    """An event that supersedes itself makes no command hang, and voiding it is refused."""
    data = {"ladder": "elo-chess/all", "player": "anna", "points": "5", "reason": "x"}
    append_forged(db, data, "player:anna", id="a", type="points.adjusted", columns={"supersedes": "a"})
    for command in (("log", "anna"), ("explain", "anna", "elo-chess/all")):
        assert ratings(*command, db=db).exit_code == 0
    told = ratings("void", "--event", "a", "--reason", "x", db=db)
    assert (told.exit_code, "changed-meanwhile" in told.stderr) == (1, True), told


def test_uncounted_void_leaves_event_standing(db: str, ratings: Ratings) -> None:
    """An event stands despite a void that does not count, and can be voided exactly once."""
    assert ratings("adjust", "elo-chess/all", "anna", "5", "--reason", "a prize", db=db).exit_code == 0
    adjusted = json.loads(ratings("log", "--limit", "1", "--format", "json", db=db).stdout)["rows"][0]["id"]
    append_forged(db, {"id": "no", "reason": "x"}, "event:no", id="v", type="event.voided", supersedes=adjusted)
    assert ratings("void", "--event", adjusted, "--reason", "no prize", db=db).exit_code == 0
    again = ratings("void", "--event", adjusted, "--reason", "no prize", db=db)
    assert (again.exit_code, "event-voided" in again.stderr) == (1, True), again


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
    """Every command ends well if a row's type column differs from the type in its record."""
    data = {"ladder": "elo-chess/all", "player": "anna", "points": "5", "reason": "x"}
    append_forged(db, data, "ruleset:elo-chess", id="a", type="points.adjusted", columns={"type": column})
    for command in (*ANSWERING, *GOING_ON):
        done = ratings(*command, db=db)
        # the role of the tests may more than it should, which `doctor` says
        assert done.exit_code == 0 or command == ("doctor",), (command, done)
        assert "bug" not in done.stderr, (command, done)
    done = ratings("standings", "elo-go/all", db=db)
    assert "no ruleset is called 'elo-go'" in done.stderr


@pytest.mark.slow
def test_impossible_generation_is_reported(tmp_path: Path, ratings: Ratings) -> None:
    """`status` reports a generation stored as no rebuild stores it, until the next rebuild."""
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    made(ratings, url)
    assert ratings("rebuild", db=url).exit_code == 0
    for column, value in (("finished_at", "'x'"), ("finished_at", 2**62), ("position", "'x'"), ("chain_hash", -1)):
        with closing(sqlite3.connect(tmp_path / "ratings.db", isolation_level=None)) as database:
            database.execute("PRAGMA ignore_check_constraints = 1")
            database.execute(f"UPDATE generations SET {column} = {value}")
        told = ratings("status", db=url)
        assert (told.exit_code, "is not as a rebuild stores it" in told.stderr) == (1, True), told
        assert ratings("rebuild", db=url).exit_code == 0


def test_uncounted_game_is_not_explained(db: str, ratings: Ratings) -> None:
    """`explain` finds no game where the recorded one does not count."""
    append_named_forgery("a gap", db)
    done = ratings("explain", "forged", "elo-chess/all", db=db)
    assert (done.exit_code, "game-unknown: no game 'forged' is recorded\n" in done.stderr) == (1, True), done


def test_cache_ignores_fix_of_uncounted_game(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A correction by SQL of a game that does not count changes no other game in the cache."""
    set_thresholds(monkeypatch, cached_events=1)
    command = ("standings", "elo-chess/all", "--format", "json")
    append_named_forgery("a gap", db)
    assert ratings("record", db=db, input=json.dumps({**GAME, "game_id": "behind"})).exit_code == 0
    before = json.loads(ratings(*command, db=db).stdout)
    turned = {**GAME, "participants": [{"player": "ben", "place": 1}, {"player": "anna", "place": 2}]}
    append_forged(db, {"game_id": "forged", "game": turned, "reason": "x"}, id="c", type="game.corrected",
          supersedes="game:forged")  # fmt: skip
    after = ratings(*command, db=db)
    assert "cache" not in after.stderr
    assert json.loads(after.stdout)["rows"] == before["rows"]


@pytest.mark.slow_cases
@pytest.mark.timeout(60)
@pytest.mark.parametrize("position", [10**8, 10**10])
def test_far_position_is_answered_as_fast(position: int, db: str, ratings: Ratings) -> None:
    """Billions of absent positions take no longer than none, and `verify` names them."""
    append_forged(db, {**GAME, "game_id": "forged"}, position=position, columns={"position": position})
    for command in (
        ("standings", "elo-chess/all"), ("standings", "elo-chess/all", "--known-at", "2999-01-01T00:00Z"),
        ("history", "anna", "elo-chess/all"), ("log", "anna"), ("diff", "2", "now"), ("rebuild", "--check"),
        ("void", "g-1", "--reason", "twice"),
    ):  # fmt: skip
        done = ratings(*command, db=db)
        assert done.exit_code == 0, (command, done)
    assert any(message.startswith("missing: positions ") for message in verified(ratings, db))


SQLITE_HEADS = {
    "no chain hash": "chain_hash = NULL", "a chain hash that is a text": "chain_hash = 'abc'",
    "a short chain hash": "chain_hash = x'00'", "a time that is a text": "recorded_at = 'x'",
    "a time with a fraction": "recorded_at = 9e30", "a time after all times": "recorded_at = 4611686018427387904",
}  # fmt: skip


def damage_head(path: str, change: str) -> None:
    """Change the last row of a file, which has the same schema before and after."""
    schema = "SELECT name, sql FROM sqlite_master WHERE name IN ('events', 'events_refuse_update')"
    by_hand = "PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = ? WHERE name = 'events'"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        definitions = dict(connection.execute(schema).fetchall())
        connection.execute("DROP TRIGGER events_refuse_update")
        connection.execute(by_hand[0])
        connection.execute(by_hand[1], (definitions["events"].replace("chain_hash BLOB NOT NULL", "chain_hash BLOB"),))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE events SET {change} {HEAD}")
        connection.execute(definitions["events_refuse_update"])
        connection.execute(by_hand[0])
        connection.execute(by_hand[1], (definitions["events"],))


HEAD = "WHERE position = (SELECT max(position) FROM events)"


@pytest.mark.parametrize("what", [*SQLITE_HEADS, "postgres"])
def test_damaged_head_is_named(what: str, ratings: Ratings, request: pytest.FixtureRequest) -> None:
    """A last row with values that nothing writes ends every command with a message, and `verify` goes on past it."""
    if what == "postgres":
        db = str(request.getfixturevalue("postgres_db"))
        trigger = "ALTER TABLE events {} TRIGGER events_refuse_update"
        after_all_times = f"UPDATE events SET recorded_at = 4611686018427387904 {HEAD}"
        do(db, trigger.format("DISABLE"), after_all_times, trigger.format("ENABLE"))
    else:
        db = f"sqlite:///{request.getfixturevalue('copied_file')(made)}"
        damage_head(db.removeprefix("sqlite:///"), SQLITE_HEADS[what])
    for command in (
        ("standings", "elo-chess/all"), ("status",), ("log",), ("doctor",), ("rebuild",), ("publish", "elo-chess/all"),
        ("record", "-q", "--game", "chess", "--game-id", "g-9", "--at", "2024-02-01T20:00Z", "anna", "ben"),
    ):  # fmt: skip
        done = ratings(*command, db=db)
        assert (done.exit_code, "bug" in done.stderr) == (1, False), (command, done)
        assert "the last event, at position 6, is invalid; run: ratings verify" in done.stderr, command
    assert verified(ratings, db) != []
