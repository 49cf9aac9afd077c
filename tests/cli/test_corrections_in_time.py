"""Corrections and time: `--known-at` and `--as-of`, corrected dates, and the order of replay."""

from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NEXT_DAY,
    NOON,
    REASON_OPTION,
    THIRD_DAY,
    Ratings,
    append_lines,
    build_catan_line,
    build_event_line,
    build_galactic_line,
    create_ledger,
    read_all_points,
    read_digests,
    read_json,
    read_points,
    run_correction,
    run_json_command,
)

pytestmark = pytest.mark.ledger(make=create_ledger, store="sqlite")


def list_replay_order(ratings: Ratings, db: str, player: str = "anna", ladder: str = GALACTIC) -> list[str]:
    """Return the games and adjustments (by their reason) of a player in replay order."""
    rows = read_json(ratings, db, "history", player, ladder)["rows"]
    return [row["game_id"] or row["reason"] for row in rows]


def build_adjustment(
    points: str, at: str = NOON, player: str = "anna", ladder: str = GALACTIC, reason: str = "gift"
) -> str:
    """Return an adjustment as a line of JSON."""
    return build_event_line("points.adjusted", at, ladder=ladder, player=player, points=points, reason=reason)


def test_known_at_shows_the_earlier_knowledge(db: str, ratings: Ratings) -> None:
    """With `--known-at` before a correction, every command repeats its answer from that position."""
    append_lines(
        ratings, db, build_galactic_line("g-1", "anna", "ben"), build_galactic_line("g-2", "cleo", "anna", at=NEXT_DAY)
    )
    commands = [
        ("standings", GALACTIC),
        ("history", "anna", GALACTIC),
        ("explain", "g-1", GALACTIC),
        ("games",),
        ("ladders",),
        ("log",),
        ("log", "g-1"),
        ("games", "--player", "anna"),
        ("books", GALACTIC),
    ]
    earlier_answers = {command: read_json(ratings, db, *command, "--known-at", "4") for command in commands}
    run_json_command(ratings, db, "correct", "g-1", "ben", "anna", "--at", THIRD_DAY, *REASON_OPTION)
    run_json_command(ratings, db, "void", "g-2", *REASON_OPTION)
    run_json_command(ratings, db, "player", "rename", "anna", "anne")

    for command in commands:
        assert read_json(ratings, db, *command, "--known-at", "4") == earlier_answers[command], command
        if "anna" not in command:  # anna is anne now
            assert read_json(ratings, db, *command) != earlier_answers[command], command
    assert read_points(ratings, db, GALACTIC) == {"ben": "1160", "anne": "840"}


def test_as_of_includes_decisions_made_later(db: str, ratings: Ratings) -> None:
    """With `--as-of`, decisions about earlier games apply no matter when they were made."""
    append_lines(
        ratings,
        db,
        build_galactic_line("g-1", "anna", "ben"),
        build_galactic_line("g-2", "anna", "ben", at=NEXT_DAY),
        build_galactic_line("g-3", "cleo", "dora"),
    )
    run_json_command(ratings, db, "correct", "g-1", "ben", "anna", *REASON_OPTION)
    run_json_command(ratings, db, "void", "g-3", *REASON_OPTION)
    run_json_command(ratings, db, "void", "g-2", *REASON_OPTION)
    run_json_command(ratings, db, "reinstate", "g-2", *REASON_OPTION)
    run_json_command(ratings, db, "player", "rename", "anna", "anne")

    assert read_points(ratings, db, GALACTIC, "--as-of", "2010-03-05") == {"anne": "840", "ben": "1160"}
    assert read_points(ratings, db, GALACTIC, "--as-of", "2010-03-06") == {"anne": "1025", "ben": "975"}
    explanation = read_json(ratings, db, "explain", "g-2", GALACTIC, "--as-of", "2010-03-05")
    assert (explanation["counted"], explanation["why_not"]) == (False, "it was played after the as-of time")


def test_as_of_uses_effective_times(db: str, ratings: Ratings) -> None:
    """With `--as-of`, adjustments and account changes apply by their own effective time."""
    append_lines(
        ratings, db, build_catan_line("c-1", "anna", "ben"), build_catan_line("c-2", "anna", "ben", at=THIRD_DAY)
    )
    run_json_command(ratings, db, "adjust", BASIC, "anna", "100", "--at", NEXT_DAY, *REASON_OPTION)
    run_json_command(ratings, db, "player", "account", "ben", "free", "--at", NEXT_DAY)

    assert read_points(ratings, db, BASIC, "--as-of", "2010-03-05") == {"anna": "1004", "ben": "996"}
    assert read_points(ratings, db, BASIC) == {"anna": "1104", "ben": "996"}


@pytest.mark.slow
def test_corrected_date_moves_game_for_good(db: str, ratings: Ratings) -> None:
    """Correcting a date moves the game, and later corrections and voids keep the corrected date."""
    append_lines(
        ratings,
        db,
        *(build_galactic_line(f"g-{n}", "anna", "ben", at=at) for n, at in ((1, NOON), (2, NEXT_DAY), (3, THIRD_DAY))),
    )
    run_correction(ratings, db, "correct", "g-1", "anna", "ben", "cleo", *REASON_OPTION)
    assert list_replay_order(ratings, db) == ["g-1", "g-2", "g-3"]
    run_correction(ratings, db, "correct", "g-1", "--at", "2010-03-06T13:00:00Z", *REASON_OPTION)
    assert list_replay_order(ratings, db) == ["g-2", "g-1", "g-3"]
    run_correction(ratings, db, "correct", "g-1", "anna", "ben", *REASON_OPTION)
    assert list_replay_order(ratings, db) == ["g-2", "g-1", "g-3"]
    run_json_command(ratings, db, "void", "g-1", *REASON_OPTION)
    run_json_command(ratings, db, "reinstate", "g-1", *REASON_OPTION)
    assert list_replay_order(ratings, db) == ["g-2", "g-1", "g-3"]
    run_correction(ratings, db, "correct", "g-1", "--at", "2010-03-05 13:00", "--zone", "Europe/Berlin", *REASON_OPTION)
    assert list_replay_order(ratings, db) == ["g-1", "g-2", "g-3"]

    first = read_json(ratings, db, "history", "anna", GALACTIC)["rows"][0]
    last = read_json(ratings, db, "log", "--limit", "1")["rows"][0]
    assert (first["game_id"], first["occurred_at"]) == ("g-1", "2010-03-05T12:00:00.000000Z")
    # the row names the event that decided the game's current data
    assert (first["position"], first["event_id"]) == (last["position"], last["id"])


def test_corrected_date_can_make_game_count(db: str, ratings: Ratings) -> None:
    """Correcting a game's date to after its ruleset's start makes it count; correcting it back excludes it again."""
    append_lines(ratings, db, build_catan_line("c-1", "anna", "ben", at="2009-01-30T22:59:59Z"))
    assert read_json(ratings, db, "explain", "c-1", BASIC)["counted"] is False
    counted = run_correction(ratings, db, "correct", "c-1", "--at", "2009-01-30T23:00:00Z", *REASON_OPTION)
    assert counted["changes"] == {(BASIC, "anna"): (None, None, "1004"), (BASIC, "ben"): (None, None, "996")}
    run_correction(ratings, db, "correct", "c-1", "--at", "2009-01-30T22:59:59.999999Z", *REASON_OPTION)
    assert read_all_points(ratings, db) == {}


@pytest.mark.slow_cases
@pytest.mark.parametrize("corrected", [["g-1"], ["g-2"], ["g-3", "g-1"], ["g-3", "g-2", "g-1", "g-2"]])
def test_simultaneous_games_keep_their_order(corrected: list[str], db: str, ratings: Ratings) -> None:
    """Games at equal times keep their order when they are corrected, voided and reinstated."""
    append_lines(ratings, db, *(build_galactic_line(f"g-{number}", "anna", "ben", "cleo") for number in (1, 2, 3)))
    orders = (["ben", "cleo", "anna"], ["cleo", "anna", "ben"], ["cleo", "ben", "anna"])
    for index, game_id in enumerate(corrected):
        run_json_command(ratings, db, "correct", game_id, *orders[index % 3], *REASON_OPTION)
        run_json_command(ratings, db, "void", game_id, *REASON_OPTION)
        run_json_command(ratings, db, "reinstate", game_id, *REASON_OPTION)
        run_json_command(ratings, db, "correct", game_id, "--at", NEXT_DAY, *REASON_OPTION)
        run_json_command(ratings, db, "correct", game_id, "--at", NOON, *REASON_OPTION)

    assert list_replay_order(ratings, db) == ["g-1", "g-2", "g-3"]
    assert [row["game_id"] for row in read_json(ratings, db, "games")["rows"]] == ["g-1", "g-2", "g-3"]


REVERSED_DECISIONS: dict[str, list[list[Any]]] = {
    "a game voided and reinstated": [["void", "g-1", *REASON_OPTION], ["reinstate", "g-1", *REASON_OPTION]],
    "a game corrected and corrected back": [
        ["correct", "g-1", "ben", "anna", *REASON_OPTION],
        ["correct", "g-1", "anna", "ben", *REASON_OPTION],
    ],
    "a date corrected and corrected back": [
        ["correct", "g-1", "--at", THIRD_DAY, *REASON_OPTION],
        ["correct", "g-1", "--at", NOON, *REASON_OPTION],
    ],
    "points given and taken": [
        ["adjust", GALACTIC, "anna", "50", "--at", THIRD_DAY, *REASON_OPTION],
        ["adjust", GALACTIC, "anna", "-50", "--at", THIRD_DAY, *REASON_OPTION],
    ],
    "an adjustment withdrawn": [
        ["adjust", GALACTIC, "anna", "5", "--at", NOON, *REASON_OPTION],
        ["void", "--event", "6", *REASON_OPTION],
    ],
    "a rename withdrawn": [["player", "rename", "anna", "cleo"], ["void", "--event", "6", *REASON_OPTION]],
    "an account withdrawn": [
        ["player", "account", "anna", "free", "--at", NOON],
        ["void", "--event", "6", *REASON_OPTION],
    ],
    "a ruleset withdrawn and brought back": [
        ["void", "--event", "1", *REASON_OPTION],
        ["void", "--event", "6", *REASON_OPTION],
    ],
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("commands", REVERSED_DECISIONS.values(), ids=REVERSED_DECISIONS)
def test_reversed_decision_restores_every_digest(commands: list[list[Any]], db: str, ratings: Ratings) -> None:
    """A decision and its reversal restore the digest of every ladder."""
    append_lines(
        ratings,
        db,
        build_galactic_line("g-1", "anna", "ben"),
        build_galactic_line("g-2", "cleo", "ben", at=NEXT_DAY),
        build_catan_line("c-1", "anna", "ben"),
    )
    before = read_digests(ratings, db)
    first = run_correction(ratings, db, *commands[0])
    second = run_correction(ratings, db, *commands[1])

    assert first["changes"]
    assert first["changes"].keys() <= second["changes"].keys()
    assert read_digests(ratings, db) == before
    assert ratings("verify", db=db) == (0, "", "")


def test_adjustments_replay_by_time_and_position(db: str, ratings: Ratings) -> None:
    """Adjustments around a game are replayed by time and, at equal times, by log position."""
    append_lines(
        ratings,
        db,
        build_adjustment("1", reason="same time, recorded before"),
        build_galactic_line("g-1", "anna", "ben"),
        build_adjustment("10", reason="same time, recorded after"),
        build_adjustment("100", "2010-03-05T11:59:59.999999Z", reason="before"),
        build_adjustment("1000", "2010-03-05T12:00:00.000001Z", reason="after"),
    )
    expected = ["before", "same time, recorded before", "g-1", "same time, recorded after", "after"]

    assert list_replay_order(ratings, db) == expected
    assert [row["before"] for row in read_json(ratings, db, "history", "anna", GALACTIC)["rows"]] == [
        "1000",
        "1100",
        "1101",
        "1261",
        "1271",
    ]
    # a corrected game keeps the position of its first record in the order of replay
    report = run_correction(ratings, db, "correct", "g-1", "ben", "anna", *REASON_OPTION)
    assert report["changes"][(GALACTIC, "anna")] == ("2271", "-336", "1935")  # 160 are not won, 16 % of 1101 are lost
    assert list_replay_order(ratings, db) == expected
    explained_players = read_json(ratings, db, "explain", "g-1", GALACTIC)["players"]
    assert {player["player"]: player["before"] for player in explained_players} == {"anna": "1101", "ben": "1000"}


@pytest.mark.parametrize(
    ("at", "counted"),
    [(NOON, False), ("2010-03-05T11:59:59.999999Z", False), ("2010-03-05T12:00:00.000001Z", True)],
)
def test_account_change_takes_effect_exactly(at: str, counted: bool, db: str, ratings: Ratings) -> None:
    """An account change takes effect to the microsecond; of changes at the same time, the one recorded last counts."""
    append_lines(ratings, db, build_catan_line("c-1", "anna", "ben"))
    run_correction(ratings, db, "player", "account", "anna", "free", "--at", at)
    explanation = read_json(ratings, db, "explain", "c-1", BASIC)

    assert explanation["counted"] is counted
    assert ("why_not" in explanation["players"][0]) is not counted
    # of two changes at the same time, the one recorded last counts
    run_json_command(ratings, db, "player", "account", "anna", "premium", "--at", at)
    assert read_json(ratings, db, "explain", "c-1", BASIC)["counted"] is True


def test_corrected_date_decides_the_account(db: str, ratings: Ratings) -> None:
    """After a date correction, the account that the player had at the corrected date decides."""
    append_lines(ratings, db, build_catan_line("c-1", "anna", "ben", "cleo", at=NEXT_DAY))
    run_json_command(ratings, db, "player", "account", "anna", "free", "--at", NEXT_DAY)
    assert read_points(ratings, db, BASIC) == {"ben": "1004", "cleo": "996"}
    run_correction(ratings, db, "correct", "c-1", "--at", NOON, *REASON_OPTION)
    assert read_points(ratings, db, BASIC) == {"anna": "1008", "ben": "1000", "cleo": "992"}
