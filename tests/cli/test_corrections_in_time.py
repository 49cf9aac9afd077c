"""Corrections and time: what was known when, dates that were wrong, and what comes before what."""

from collections.abc import Callable
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NOON,
    Ratings,
    all_points,
    carry_out,
    catan,
    digests,
    event,
    game,
    new_ledger,
    points,
    read,
    take_in,
    told,
)

WHY = ("--reason", "looked it up")
LATER, LATEST = "2010-03-06T12:00:00Z", "2010-03-07T12:00:00Z"


@pytest.fixture
def db(copied_file: Callable[..., str]) -> str:
    """Two rulesets at positions 1 and 2."""
    return copied_file(new_ledger)


def order(ratings: Ratings, db: str, player: str = "anna", ladder: str = GALACTIC) -> list[str]:
    """The games and adjustments (by their reason) of a player in replay order."""
    rows = read(ratings, db, "history", player, ladder)["rows"]
    return [row["game_id"] or row["reason"] for row in rows]


def adjustment(points: str, at: str = NOON, player: str = "anna", ladder: str = GALACTIC, reason: str = "gift") -> str:
    """An adjustment as a line."""
    return event("points.adjusted", at, ladder=ladder, player=player, points=points, reason=reason)


def test_given_a_correction_when_read_as_known_before_then_every_command_shows_what_was_the_truth_then(
    db: str, ratings: Ratings
) -> None:
    take_in(ratings, db, game("g-1", "anna", "ben"), game("g-2", "cleo", "anna", at=LATER))
    commands = [
        ("standings", GALACTIC), ("history", "anna", GALACTIC), ("explain", "g-1", GALACTIC), ("games",), ("ladders",),
        ("log",), ("log", "g-1"), ("games", "--player", "anna"), ("books", GALACTIC),
    ]  # fmt: skip
    seen = {command: read(ratings, db, *command, "--known-at", "4") for command in commands}
    told(ratings, db, "correct", "g-1", "ben", "anna", "--at", LATEST, *WHY)
    told(ratings, db, "void", "g-2", *WHY)
    told(ratings, db, "player", "rename", "anna", "anne")

    for command in commands:
        assert read(ratings, db, *command, "--known-at", "4") == seen[command], command
        if "anna" not in command:  # who is anne by now
            assert read(ratings, db, *command) != seen[command], command
    assert points(ratings, db, GALACTIC) == {"ben": "1160", "anne": "840"}


def test_given_decisions_made_long_after_the_games_when_read_as_of_then_they_apply_whenever_they_were_made(
    db: str, ratings: Ratings
) -> None:
    take_in(
        ratings, db, game("g-1", "anna", "ben"), game("g-2", "anna", "ben", at=LATER), game("g-3", "cleo", "dora"),
    )  # fmt: skip
    told(ratings, db, "correct", "g-1", "ben", "anna", *WHY)
    told(ratings, db, "void", "g-3", *WHY)
    told(ratings, db, "void", "g-2", *WHY)
    told(ratings, db, "reinstate", "g-2", *WHY)
    told(ratings, db, "player", "rename", "anna", "anne")

    assert points(ratings, db, GALACTIC, "--as-of", "2010-03-05") == {"anne": "840", "ben": "1160"}
    assert points(ratings, db, GALACTIC, "--as-of", "2010-03-06") == {"anne": "1025", "ben": "975"}
    explained = read(ratings, db, "explain", "g-2", GALACTIC, "--as-of", "2010-03-05")
    assert (explained["counted"], explained["why_not"]) == (False, "the game was played later than --as-of")


def test_given_adjustments_and_accounts_when_read_as_of_then_their_own_time_decides(db: str, ratings: Ratings) -> None:
    take_in(ratings, db, catan("c-1", "anna", "ben"), catan("c-2", "anna", "ben", at=LATEST))
    told(ratings, db, "adjust", BASIC, "anna", "100", "--at", LATER, *WHY)
    told(ratings, db, "player", "account", "ben", "free", "--at", LATER)

    assert points(ratings, db, BASIC, "--as-of", "2010-03-05") == {"anna": "1004", "ben": "996"}
    assert points(ratings, db, BASIC) == {"anna": "1104", "ben": "996"}


def test_given_a_wrong_date_when_corrected_then_the_game_moves_and_later_corrections_keep_the_right_date(
    db: str, ratings: Ratings
) -> None:
    take_in(ratings, db, *(game(f"g-{n}", "anna", "ben", at=at) for n, at in ((1, NOON), (2, LATER), (3, LATEST))))
    carry_out(ratings, db, "correct", "g-1", "anna", "ben", "cleo", *WHY)
    assert order(ratings, db) == ["g-1", "g-2", "g-3"]
    carry_out(ratings, db, "correct", "g-1", "--at", "2010-03-06T13:00:00Z", *WHY)
    assert order(ratings, db) == ["g-2", "g-1", "g-3"]
    carry_out(ratings, db, "correct", "g-1", "anna", "ben", *WHY)
    assert order(ratings, db) == ["g-2", "g-1", "g-3"]
    told(ratings, db, "void", "g-1", *WHY)
    told(ratings, db, "reinstate", "g-1", *WHY)
    assert order(ratings, db) == ["g-2", "g-1", "g-3"]
    carry_out(ratings, db, "correct", "g-1", "--at", "2010-03-05 13:00", "--zone", "Europe/Berlin", *WHY)
    assert order(ratings, db) == ["g-1", "g-2", "g-3"]

    first = read(ratings, db, "history", "anna", GALACTIC)["rows"][0]
    last = read(ratings, db, "log", "--limit", "1")["rows"][0]
    assert (first["game_id"], first["occurred_at"]) == ("g-1", "2010-03-05T12:00:00.000000Z")
    # what counts is the event that says how the game stands
    assert (first["position"], first["event_id"]) == (last["position"], last["id"])


def test_given_a_game_before_a_ruleset_came_into_force_when_its_date_is_corrected_then_it_counts_and_back(
    db: str, ratings: Ratings
) -> None:
    take_in(ratings, db, catan("c-1", "anna", "ben", at="2009-01-30T22:59:59Z"))
    assert read(ratings, db, "explain", "c-1", BASIC)["counted"] is False
    counted = carry_out(ratings, db, "correct", "c-1", "--at", "2009-01-30T23:00:00Z", *WHY)
    assert counted["changes"] == {(BASIC, "anna"): (None, None, "1004"), (BASIC, "ben"): (None, None, "996")}
    carry_out(ratings, db, "correct", "c-1", "--at", "2009-01-30T22:59:59.999999Z", *WHY)
    assert all_points(ratings, db) == {}


@pytest.mark.parametrize("corrected", [["g-1"], ["g-2"], ["g-3", "g-1"], ["g-3", "g-2", "g-1", "g-2"]])
def test_given_games_of_equal_time_when_corrected_voided_and_reinstated_then_each_keeps_its_place(
    corrected: list[str], db: str, ratings: Ratings
) -> None:
    take_in(ratings, db, *(game(f"g-{number}", "anna", "ben", "cleo") for number in (1, 2, 3)))
    orders = (["ben", "cleo", "anna"], ["cleo", "anna", "ben"], ["cleo", "ben", "anna"])
    for index, game_id in enumerate(corrected):
        told(ratings, db, "correct", game_id, *orders[index % 3], *WHY)
        told(ratings, db, "void", game_id, *WHY)
        told(ratings, db, "reinstate", game_id, *WHY)
        told(ratings, db, "correct", game_id, "--at", LATER, *WHY)
        told(ratings, db, "correct", game_id, "--at", NOON, *WHY)

    assert order(ratings, db) == ["g-1", "g-2", "g-3"]
    assert [row["game_id"] for row in read(ratings, db, "games")["rows"]] == ["g-1", "g-2", "g-3"]


UNDONE: dict[str, list[list[Any]]] = {
    "a game voided and reinstated": [["void", "g-1", *WHY], ["reinstate", "g-1", *WHY]],
    "a game corrected and corrected back": [
        ["correct", "g-1", "ben", "anna", *WHY], ["correct", "g-1", "anna", "ben", *WHY],
    ],
    "a date corrected and corrected back": [
        ["correct", "g-1", "--at", LATEST, *WHY], ["correct", "g-1", "--at", NOON, *WHY],
    ],
    "points given and taken": [
        ["adjust", GALACTIC, "anna", "50", "--at", LATEST, *WHY],
        ["adjust", GALACTIC, "anna", "-50", "--at", LATEST, *WHY],
    ],
    "an adjustment withdrawn": [["adjust", GALACTIC, "anna", "5", "--at", NOON, *WHY], ["void", "--event", "6", *WHY]],
    "a rename withdrawn": [["player", "rename", "anna", "cleo"], ["void", "--event", "6", *WHY]],
    "an account withdrawn": [["player", "account", "anna", "free", "--at", NOON], ["void", "--event", "6", *WHY]],
    "a ruleset withdrawn and brought back": [["void", "--event", "1", *WHY], ["void", "--event", "6", *WHY]],
}  # fmt: skip


@pytest.mark.parametrize("commands", UNDONE.values(), ids=UNDONE)
def test_given_something_done_and_undone_when_replayed_then_every_digest_is_what_it_was(
    commands: list[list[Any]], db: str, ratings: Ratings
) -> None:
    take_in(ratings, db, game("g-1", "anna", "ben"), game("g-2", "cleo", "ben", at=LATER), catan("c-1", "anna", "ben"))
    before = digests(ratings, db)
    first = carry_out(ratings, db, *commands[0])
    second = carry_out(ratings, db, *commands[1])

    assert first["changes"]
    assert first["changes"].keys() <= second["changes"].keys()
    assert digests(ratings, db) == before
    assert ratings("verify", db=db) == (0, "", "")


def test_given_adjustments_around_a_game_when_replayed_then_time_and_then_the_log_position_decides(
    db: str, ratings: Ratings
) -> None:
    take_in(
        ratings, db,
        adjustment("1", reason="same time, recorded before"), game("g-1", "anna", "ben"),
        adjustment("10", reason="same time, recorded after"),
        adjustment("100", "2010-03-05T11:59:59.999999Z", reason="before"),
        adjustment("1000", "2010-03-05T12:00:00.000001Z", reason="after"),
    )  # fmt: skip
    expected = ["before", "same time, recorded before", "g-1", "same time, recorded after", "after"]

    assert order(ratings, db) == expected
    assert [row["before"] for row in read(ratings, db, "history", "anna", GALACTIC)["rows"]] == [
        "1000", "1100", "1101", "1261", "1271",
    ]  # fmt: skip
    # a corrected game keeps the place of its first record, whatever was recorded between
    done = carry_out(ratings, db, "correct", "g-1", "ben", "anna", *WHY)
    assert done["changes"][(GALACTIC, "anna")] == ("2271", "-336", "1935")  # 160 are not won, 16 % of 1101 are lost
    assert order(ratings, db) == expected
    explained = read(ratings, db, "explain", "g-1", GALACTIC)["players"]
    assert {player["player"]: player["before"] for player in explained} == {"anna": "1101", "ben": "1000"}


@pytest.mark.parametrize(
    ("at", "counted"),
    [(NOON, False), ("2010-03-05T11:59:59.999999Z", False), ("2010-03-05T12:00:00.000001Z", True)],
)
def test_given_an_account_that_changes_around_a_game_when_replayed_then_the_very_instant_counts(
    at: str, counted: bool, db: str, ratings: Ratings
) -> None:
    take_in(ratings, db, catan("c-1", "anna", "ben"))
    carry_out(ratings, db, "player", "account", "anna", "free", "--at", at)
    explained = read(ratings, db, "explain", "c-1", BASIC)

    assert explained["counted"] is counted
    assert ("why_not" in explained["players"][0]) is not counted
    # at equal times the one recorded last
    told(ratings, db, "player", "account", "anna", "premium", "--at", at)
    assert read(ratings, db, "explain", "c-1", BASIC)["counted"] is True


def test_given_a_corrected_date_when_the_account_was_another_then_then_the_corrected_date_decides(
    db: str, ratings: Ratings
) -> None:
    take_in(ratings, db, catan("c-1", "anna", "ben", "cleo", at=LATER))
    told(ratings, db, "player", "account", "anna", "free", "--at", LATER)
    assert points(ratings, db, BASIC) == {"ben": "1004", "cleo": "996"}
    carry_out(ratings, db, "correct", "c-1", "--at", NOON, *WHY)
    assert points(ratings, db, BASIC) == {"anna": "1008", "ben": "1000", "cleo": "992"}
