"""What was said wrongly, or not at all, of lists, names and dates that only just fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Ratings = Callable[..., Any]
LADDER = "elo-chess/all"
TOLD = "Published, and would come out differently today:"


@pytest.fixture
def db(tmp_path: Path, ratings: Ratings) -> str:
    """A ledger with one game, of which a list is published."""
    url = f"sqlite:///{tmp_path / 'ratings.db'}"
    assert ratings("init", "--for", "chess", "--zone", "Europe/Berlin", db=url).exit_code == 0
    play(ratings, url, "g-1", "2024-11-01", "Anna", "Ben")
    assert ratings("publish", LADDER, "--as-of", "2024-11-05", db=url).exit_code == 0
    return url


def play(ratings: Ratings, db: str, game_id: str, at: str, *players: str) -> Any:
    done = ratings("record", "--game", "chess", "--game-id", game_id, "--at", at, *players, db=db)
    assert done.exit_code == 0, done
    return done


def test_given_a_published_list_when_a_game_is_moved_behind_it_then_it_is_told_though_nobodys_points_change(
    ratings: Ratings, db: str
) -> None:
    moved = ratings("correct", "g-1", "--at", "2024-11-10", "--reason", "the wrong week", db=db)
    assert moved.stdout.splitlines()[1] == "No points change."
    assert TOLD in moved.stdout
    assert "2 removed" in ratings("diff", "published", "now", db=db).stdout


def test_given_a_list_that_differs_when_the_cause_is_taken_back_then_nothing_is_said_to_differ(
    ratings: Ratings, db: str
) -> None:
    late = play(ratings, db, "g-2", "2024-11-02", "Anna", "Ben")
    assert TOLD in late.stdout
    voided = ratings("void", "g-2", "--reason", "a slip", db=db)
    assert voided.exit_code == 0
    assert TOLD not in voided.stdout
    assert "No row differs." in ratings("diff", "published", "now", db=db).stdout


@pytest.mark.parametrize("form", ["table", "json"])
def test_given_somebody_unknown_when_his_changes_are_asked_for_then_it_says_who_was_meant(
    form: str, ratings: Ratings, db: str
) -> None:
    told = ratings("explain", "--change", "Anaa", LADDER, "--from", "1", "--format", form, db=db)
    assert (told.exit_code, told.stdout) == (1, "")
    assert told.stderr == "Error: player-unknown: nothing is recorded about 'Anaa'; did you mean Anna?\n"


def test_given_somebody_who_is_known_but_not_there_when_explained_then_there_are_no_rows_and_no_error(
    ratings: Ratings, db: str
) -> None:
    for command in (("explain", "--from", "1", "--change"), ("explain",), ("history",)):
        told = ratings(*command, "Anna", "elo-chess/3-4", db=db)
        assert (told.exit_code, told.stdout) == (0, ""), told
    empty = json.loads(ratings("explain", "Anna", "elo-chess/3-4", "--format", "json", db=db).stdout)
    assert (empty["rank"], empty["games"], empty["terms"]) == (None, [], [])


def test_given_a_game_before_any_version_when_recorded_then_it_is_said_to_be_on_no_ladder(
    ratings: Ratings, db: str
) -> None:
    told = ratings(
        "record", "--game", "chess", "--game-id", "old", "--at", "1850-01-01", "--any-date", "Ben", "Anna", db=db
    )
    assert told.stderr == (
        "note: on no ladder, such as old: no version of elo-chess was in force then (the first from 1900-01-01)\n"
    )


def test_given_close_and_tied_names_on_many_lines_when_refused_then_json_has_every_line(
    ratings: Ratings, db: str, tmp_path: Path
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(
        "game_id,occurred_at,1st,2nd,3rd\n"
        "a1,2024-01-01 20:00,Annaa Berta,Ben,\n"
        "a2,2024-01-02 20:00,Annaa Berta,Ben,\n"
        "a3,2024-01-03 20:00,Anna Berta=Cleo & Dora,Ben,\n"
        "a4,2024-01-03 20:00,Cleo & Dora,Anna Berta,\n",
        encoding="utf-8",
    )
    for more in ((), ("--keep-going",)):
        told = ratings("import", file, "--set", "game=chess", "--format", "json", "--dry-run", *more, db=db)
        lines = sorted({rejection["line"] for rejection in json.loads(told.stdout)["rejected"]})
        assert lines == [4, 5], told.stdout
    assert ratings("import", file, "--set", "game=chess", db=db).stdout.startswith("0 appended, 4 refused")


def test_given_times_that_are_wrong_in_several_ways_when_imported_then_each_way_is_told(
    ratings: Ratings, db: str, tmp_path: Path
) -> None:
    file = tmp_path / "t.csv"
    times = ["2024-12-31 24:00", "2024-12-30 25:00", "2024-02-30", "2024-02-31", "2024-W01-1"]
    rows = "".join(f"b{number},{time},Anna,Ben\n" for number, time in enumerate(times))
    file.write_text(f"game_id,occurred_at,1st,2nd\n{rows}", encoding="utf-8")
    told = ratings("import", file, "--set", "game=chess", db=db).stderr.splitlines()
    assert [line.split(" ")[0] for line in told] == [f"{file}:2:", f"{file}:4:", f"{file}:6:"]


def test_given_a_correction_dated_ahead_when_imported_then_it_is_refused(ratings: Ratings, db: str) -> None:
    event = {"type": "game.corrected", "occurred_at": "2040-03-13T10:00:00Z", "data": {
        "game_id": "g-1", "reason": "r", "game": {"game_id": "g-1", "game": "chess", "participants": [
            {"player": "Ben", "place": 1}, {"player": "Anna", "place": 2}]}}}  # fmt: skip
    told = ratings("import", "-", db=db, input=json.dumps(event))
    assert (told.exit_code, "unlikely-date" in told.stderr) == (1, True)
    assert ratings("import", "-", "--any-date", db=db, input=json.dumps(event)).exit_code == 0


def test_given_a_ladder_or_a_version_mistyped_when_named_then_the_right_one_is_offered(
    ratings: Ratings, db: str
) -> None:
    adjusted = ratings("adjust", "elo-ches/all", "Anna", "3", "--reason", "r", db=db)
    assert "did you mean elo-chess?" in adjusted.stderr
    ruled = ratings("standings", LADDER, "--rules", "elo-ches@1", db=db)
    assert "did you mean elo-chess@1?" in ruled.stderr


@pytest.mark.parametrize("name", ["An\u200bna", "An\u00adna", "Anna\ufeff"])
def test_given_a_name_with_something_nobody_sees_when_new_then_it_is_refused(
    name: str, ratings: Ratings, db: str
) -> None:
    told = ratings("record", "--game", "chess", "--game-id", "g-9", "--at", "2024-11-20", name, "Ben", db=db)
    assert (told.exit_code, "bad-identifier" in told.stderr) == (1, True), told
    assert "which nobody sees; leave it out" in told.stderr


@pytest.mark.parametrize(("known", "new"), [("محمد", "مُحمد"), ("שלום", "שָׁלוֹם")])
def test_given_names_that_differ_in_vowel_marks_when_new_then_they_are_close(
    known: str, new: str, ratings: Ratings, db: str
) -> None:
    play(ratings, db, "g-2", "2024-11-02", known, "Ben")
    told = ratings("record", "--game", "chess", "--game-id", "g-9", "--at", "2024-11-20", new, "Ben", db=db)
    assert (told.exit_code, "close-name" in told.stderr) == (1, True), told


def test_given_a_close_name_in_another_file_when_refused_then_that_file_is_named(
    ratings: Ratings, db: str, tmp_path: Path
) -> None:
    table, events = tmp_path / "m.csv", tmp_path / "m.jsonl"
    table.write_text("game_id,occurred_at,1st,2nd\nm2,2024-11-03 20:00,Karolina,Ben\n", encoding="utf-8")
    game = {
        "game_id": "m1",
        "game": "chess",
        "participants": [{"player": "Karoline", "place": 1}, {"player": "Ben", "place": 2}],
    }
    events.write_text(
        json.dumps({"type": "game.recorded", "occurred_at": "2024-11-02T10:00:00Z", "data": game}), encoding="utf-8"
    )
    told = ratings("import", events, table, "--set", "game=chess", db=db)
    assert f"'Karolina' is new and close to 'Karoline' (line 1 of {events})" in told.stderr
