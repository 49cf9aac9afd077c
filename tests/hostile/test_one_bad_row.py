"""A row that no event can be, put in past the guards: it counts for nothing, every answer says so, all else goes on."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from forging import FORGED, OTHERS, WRITTEN, forge, forged, instead
from sqlalchemy import text
from test_verify import made, rename, verified

from ledger.store import connect

Ratings = Callable[..., Any]
Forge = Callable[[str], object]


@pytest.fixture
def db(store: str, ratings: Ratings) -> str:
    made(ratings, store)
    return store


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


def plain(text: str) -> Any:
    """What a result says but how long the log is, and what is left out."""
    return without([json.loads(line) for line in text.splitlines()] if text.startswith('{"') else json.loads(text))


def without(told: Any) -> Any:
    if isinstance(told, list):
        return [without(one) for one in told]
    if isinstance(told, dict):
        return {name: without(value) for name, value in told.items() if name not in ("known_at", "left_out")}
    return told


@pytest.mark.parametrize("what", [*FORGED, *OTHERS, *WRITTEN])
def test_given_a_row_that_no_event_can_be_when_asked_then_every_answer_is_as_without_it_and_says_so(
    what: str, db: str, ratings: Ratings, at_length: bool
) -> None:
    if not at_length and what not in SHORT:
        pytest.skip("at length")
    before = answers(ratings, db)
    position = forged(what, db)
    for command, now in answers(ratings, db).items():
        told = f"the event at position {position} does not count: "
        assert now.stderr.count(told) == 1, (command, now.stderr)
        assert plain(now.stdout) == plain(before[command].stdout), command
        if command not in ("explain anna elo-chess/all",):
            assert "left_out" in now.stdout, command
    assert json.loads(ratings("standings", "elo-chess/all", "--format", "json", db=db).stdout)["left_out"] == [position]


@pytest.mark.parametrize("what", [*FORGED, *OTHERS, *WRITTEN])
def test_given_a_row_that_no_event_can_be_when_the_club_goes_on_then_it_can(
    what: str, db: str, ratings: Ratings, at_length: bool
) -> None:
    """Games are recorded, corrected and voided, lists published, generations built; `verify` names the row alone."""
    if not at_length and what not in SHORT:
        pytest.skip("at length")
    forged(what, db)
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


def test_given_a_forged_end_of_a_games_line_when_the_game_is_corrected_then_the_correction_takes_its_place(
    db: str, ratings: Ratings
) -> None:
    forge(db, {"game_id": "g-1"}, "game:g-1", id="x", type="game.corrected", supersedes="game:g-1")
    assert ratings("correct", "g-1", "ben", "anna", "cleo", "--reason", "the sheet was wrong", db=db).exit_code == 0
    shown = json.loads(ratings("games", "g-1", "--format", "json", db=db).stdout)["rows"][0]
    assert next(one["player"] for one in shown["participants"] if one["place"] == 1) == "ben"


def test_given_a_list_in_a_form_in_which_no_record_is_written_when_asked_then_it_does_not_count_and_all_goes_on(
    db: str, ratings: Ratings
) -> None:
    """Who reads lists reads their records again."""
    with connect(db).reading() as connection:
        query = text("SELECT record FROM events WHERE type = 'list.published'")
        data = json.loads(connection.execute(query).scalar_one())["data"] | {"known_at": 1}
    forge(db, data, "ladder:elo-chess/all", id="x", type="list.published",
          rewrite=instead('"known_at":1', '"known_at":1,"known_at":1'))  # fmt: skip
    for command in (
        *ANSWERING, ("standings", "elo-chess/all", "--as-published"),
        ("record", "--game", "chess", "--game-id", "new", "--at", "2024-03-01T20:00Z", "anna", "cleo"),
    ):  # fmt: skip
        assert ratings(*command, db=db).exit_code == 0, command
    assert [one.partition(":")[0] for one in verified(ratings, db)] == ["not-a-record"]


def test_given_renames_in_a_circle_when_asked_then_the_one_that_closes_it_does_not_count(
    db: str, ratings: Ratings
) -> None:
    rename(db, 0, "anna", "xa")
    rename(db, 1, "xa", "anna")
    for command in ANSWERING:
        done = ratings(*(name.replace("anna", "xa") for name in command), db=db)
        assert done.exit_code == 0, (command, done)
        assert "is renamed in a circle" in done.stderr, command
    rows = json.loads(ratings("standings", "elo-chess/all", "--format", "json", db=db).stdout)["rows"]
    assert [row["player"] for row in rows] == ["xa", "ben", "cleo"]


def test_given_many_bad_rows_when_asked_then_a_few_are_named_and_all_are_counted(db: str, ratings: Ratings) -> None:
    for number in range(5):
        forge(db, {}, id=f"x-{number}", type="player.exiled")
    told = ratings("standings", "elo-chess/all", db=db).stderr
    assert told.count("does not count: ") == 3
    assert "2 more events do not count" in told
