"""The output of the correcting commands, and what `log` and `games` show afterwards."""

import json
from itertools import groupby

import pytest
from correction_helpers import (
    GALACTIC,
    NEXT_DAY,
    NOON,
    REASON_OPTION,
    Ratings,
    create_small_ledger,
    read_head,
    read_json,
    read_position,
    run_json_command,
)
from output_filters import strip_decimals

pytestmark = pytest.mark.ledger(make=create_small_ledger, store="sqlite")


USAGE = {
    "no reason": ["correct", "g-1", "ben", "anna", "cleo"],
    "nothing to void": ["void", *REASON_OPTION],
    "a game and an event to void": ["void", "g-1", "--event", "1", *REASON_OPTION],
    "no game": ["reinstate", *REASON_OPTION],
    "a local time without zone": ["correct", "g-1", "--at", "2010-03-05 12:00", *REASON_OPTION],
    "no time": ["correct", "g-1", "--at", "soon", *REASON_OPTION],
    "an unknown zone": ["correct", "g-1", "--at", "2010-03-05 12:00", "--zone", "Mars/Base", *REASON_OPTION],
    "an expected position 0": ["void", "g-1", "--expect", "0", *REASON_OPTION],
    "an unknown option": ["void", "g-1", "--force", *REASON_OPTION],
    "CSV": ["void", "g-1", "--format", "csv", *REASON_OPTION],
    "an unknown account": ["player", "account", "anna", "gold"],
    "no points": ["adjust", GALACTIC, "anna", *REASON_OPTION],
}


@pytest.mark.parametrize("arguments", USAGE.values(), ids=USAGE)
def test_wrong_usage_exits_with_2(arguments: list[str], db: str, ratings: Ratings) -> None:
    """A correcting command that is used wrongly exits with code 2 and changes nothing."""
    before = read_head(ratings, db)
    result = ratings(*arguments, db=db)

    assert (result.exit_code, result.stdout, bool(result.stderr)) == (2, "", True)
    assert read_head(ratings, db) == before


COMMANDS = {
    "game.corrected": ["correct", "g-1", "ben", "anna", "cleo", *REASON_OPTION],
    "game.voided": ["void", "g-1", *REASON_OPTION],
    "points.adjusted": ["adjust", GALACTIC, "anna", "-5", *REASON_OPTION],
    "player.renamed": ["player", "rename", "anna", "anne"],
    "player.account_changed": ["player", "account", "anna", "free", "--at", NOON],
    "event.voided": ["void", "--event", "1", *REASON_OPTION],
}


@pytest.mark.parametrize("type_name", COMMANDS)
def test_commands_share_one_json_shape(type_name: str, db: str, ratings: Ratings) -> None:
    """All correcting commands print JSON of one shape, and their tables say the same."""
    command = COMMANDS[type_name]
    result = ratings(*command, "--dry-run", db=db)
    raw = strip_decimals(json.loads(ratings(*command, "--by", "secretary", "--format", "json", db=db).stdout))

    members = (
        "type event_id position appended existing dry_run rejected new_players close_names new_ladders close_ladders "
        "changes ladders published"
    )
    assert list(raw) == members.split()
    for ladder_summary in raw["ladders"]:
        assert list(ladder_summary) == ["ladder", "players", "ranks", "up", "down", "swapped", "entering", "leaving"]
    assert (raw["type"], raw["position"], raw["appended"]) == (type_name, read_position(ratings, db), 1)
    (last,) = read_json(ratings, db, "log", "--limit", "1")["rows"]
    assert (last["id"], last["type"], last["by"]) == (raw["event_id"], type_name, "secretary")
    for change in raw["changes"]:
        assert list(change) == ["ladder", "player", "before", "change", "after", "rank", "gold"]
        assert all(value is None or isinstance(value, str) for value in list(change.values())[:5])
    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert lines[0] == f"Nothing was recorded; this is what {type_name} would do."
    if raw["changes"]:
        rows = [line for line in lines[1:] if line and not line.endswith("in another order")]
        printed_names = [line.split()[0] for line in rows if not line.startswith("player ")]
        expected = [
            [ladder, *(c["player"] for c in of_ladder)]
            for ladder, of_ladder in groupby(raw["changes"], key=lambda change: change["ladder"])
        ]
        assert printed_names == [name for names in expected for name in names]
    else:
        assert lines[1:] == ["No points change."]


def test_game_log_shows_every_step(db: str, ratings: Ratings) -> None:
    """The log of a game shows every correction, void and reinstatement, with who made it and why."""
    steps = [
        (
            "game.corrected",
            ["correct", "g-1", "ben", "anna", "cleo", "--reason", "scores were swapped", "--by", "dora"],
        ),
        ("game.voided", ["void", "g-1", "--reason", "never played", "--by", "emil"]),
        ("game.reinstated", ["reinstate", "g-1", "--reason", "it was", "--by", "frida"]),
        ("game.corrected", ["correct", "g-1", "--at", NEXT_DAY, "--reason", "a day later", "--by", "gero"]),
    ]
    for _, command in steps:
        run_json_command(ratings, db, *command)
    rows = read_json(ratings, db, "log", "g-1")["rows"]

    assert [(row["type"], row["by"], row["data"].get("reason")) for row in rows[1:]] == [
        (type_name, command[-1], command[-3]) for type_name, command in steps
    ]
    assert [row.get("supersedes") for row in rows] == [None, *(row["id"] for row in rows[:-1])]
    table = ratings("log", "g-1", db=db).stdout.splitlines()
    assert len(table) == 6
    for line, (type_name, command) in zip(table[2:], steps, strict=True):
        assert all(word in line for word in (type_name, command[-1], command[-3]))


def test_every_format_shows_current_games(db: str, ratings: Ratings) -> None:
    """`games` shows corrected and voided games as they now stand, in every output format."""
    run_json_command(
        ratings, db, "correct", "g-1", "dora", "ben", "cleo", "--at", "2010-03-07T12:00:00Z", *REASON_OPTION
    )
    run_json_command(ratings, db, "void", "g-2", *REASON_OPTION)

    assert [(row["game_id"], row["position"]) for row in read_json(ratings, db, "games")["rows"]] == [
        ("c-1", 4),
        ("g-2", 5),
        ("g-1", 3),
    ]
    for form in ("table", "csv"):
        lines = ratings("games", "--format", form, db=db).stdout.splitlines()
        assert "1 dora, 2 ben, 3 cleo" in lines[3]
        assert ("2010-03-07" in lines[3], "2010-03-05" in lines[3]) == (True, False)
        assert "1 ben, 2 anna (voided)" in lines[2]
    assert [row["game_id"] for row in read_json(ratings, db, "games", "--player", "anna")["rows"]] == ["c-1", "g-2"]
    assert [row["game_id"] for row in read_json(ratings, db, "games", "--player", "dora")["rows"]] == ["g-1"]
    assert [row["game_id"] for row in read_json(ratings, db, "games", "--as-of", "2010-03-06")["rows"]] == [
        "c-1",
        "g-2",
    ]


def test_player_log_marks_withdrawn_events(db: str, ratings: Ratings) -> None:
    """A player's log marks withdrawn events and says which event withdrew them."""
    report = run_json_command(ratings, db, "adjust", GALACTIC, "anna", "5", "--reason", "gift")
    run_json_command(ratings, db, "player", "account", "anna", "free", "--at", NOON)
    run_json_command(ratings, db, "void", "--event", report["event_id"], "--reason", "not deserved")

    assert [row["position"] for row in read_json(ratings, db, "log", "anna")["rows"]] == [3, 4, 5, 6, 7, 8]
    table = ratings("log", "anna", db=db).stdout.splitlines()
    assert ["(withdrawn)" in line for line in table[1:]] == [False, False, False, True, False, False]
    assert table[-1].endswith("withdraws points.adjusted at position 6: not deserved")
    run_json_command(ratings, db, "void", "--event", 8, "--reason", "deserved after all")
    table = ratings("log", "anna", db=db).stdout.splitlines()
    assert not any("(withdrawn)" in line for line in table)
    assert table[-1].endswith("withdraws event.voided at position 8: deserved after all")


def test_single_game_shows_current_state(db: str, ratings: Ratings) -> None:
    """`games` with one game ID shows that game as it stands, and nothing if it was not yet known."""
    run_json_command(ratings, db, "correct", "g-1", "ben", "anna", *REASON_OPTION)

    (row,) = read_json(ratings, db, "games", "g-1")["rows"]
    assert (row["game_id"], row["position"], len(row["participants"])) == ("g-1", 3, 2)
    assert read_json(ratings, db, "games", "c-1", "--known-at", "3")["rows"] == []
