"""Running points published without --as-of are a list as of the time of publication: later games do not change it."""

import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, append_lines, build_event_line, build_game_data, read_json, read_position
from ledgers import set_clock

ALL = "elo-chess/all"
PUBLISHED_AT = "2024-05-01T12:00:00.000000Z"


def build_chess_line(game_id: str, at: str, *players: str) -> str:
    """Return a game of chess as a line of JSON."""
    return build_event_line("game.recorded", at, **build_game_data(game_id, *players, game="chess"))


class FakeClock:
    """The clock of the program, which a test sets."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.set("2024-04-01T12:00:00Z")

    def set(self, text: str) -> None:
        """Set the clock."""
        set_clock(self._patch, text)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Return the clock of the program."""
    return FakeClock(monkeypatch)


@pytest.fixture(params=["with as_of", "without as_of"])
def db(request: pytest.FixtureRequest, time: FakeClock, ratings: Ratings, store: str) -> str:
    """Return a ledger with two games and a list, as `publish` makes it, or without `as_of`, as earlier versions did."""
    assert ratings("init", "--for", "chess", db=store).exit_code == 0
    append_lines(ratings, store, build_chess_line("g-1", "2024-03-01T12:00:00Z", "anna", "ben"))
    append_lines(ratings, store, build_chess_line("g-2", "2024-04-01T12:00:00Z", "ben", "anna"))
    time.set(PUBLISHED_AT)
    if request.param == "with as_of":
        assert ratings("publish", ALL, db=store).exit_code == 0
    else:
        for data in build_old_list(ratings, store):
            append_lines(ratings, store, data)
    return store


def build_old_list(ratings: Ratings, db: str) -> list[str]:
    """Return the events of a list as earlier versions published it, without `as_of`."""
    standings = read_json(ratings, db, "standings", ALL)
    rows = [{name: value for name, value in row.items() if value is not None} for row in standings["rows"]]
    shared = {"ladder": ALL, "digest": standings["digest"], "parts": 1}
    listed = {"known_at": standings["known_at"], "ruleset": standings["ruleset"], "row_count": len(rows)}
    return [
        build_event_line("list.rows", PUBLISHED_AT, **shared, part=1, rows=rows),
        build_event_line("list.published", PUBLISHED_AT, **shared, **listed, games=standings["games"]),
    ]


def list_differing_players(ratings: Ratings, db: str) -> list[str]:
    """Return the players whose rows differ between the published list and today's standings."""
    (ladder,) = read_json(ratings, db, "diff", "published", "now", ALL)["ladders"]
    assert ladder["b"]["as_of"] == PUBLISHED_AT
    return sorted(row["player"] for row in ladder["rows"])


@pytest.mark.slow_cases
def test_later_game_does_not_change_the_list(db: str, time: FakeClock, ratings: Ratings) -> None:
    """A game played after a published list is not reported as a difference of the list."""
    time.set("2024-06-01T12:00:00Z")
    later = build_chess_line("g-3", "2024-05-20T12:00:00Z", "anna", "cleo")
    preview = json.loads(ratings("import", "-", "--dry-run", "--format", "json", db=db, input=later).stdout)
    assert preview["changes"]
    assert preview["published"] == []
    append_lines(ratings, db, later)
    assert list_differing_players(ratings, db) == []
    assert not any("published" in row for row in read_json(ratings, db, "history", "anna", ALL)["rows"])
    explanation = read_json(ratings, db, "explain", "--change", ALL, "anna", "--from", "published")
    assert (explanation["causes"], explanation["change"]) == ([], "0")
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_game_recorded_late_changes_the_list(db: str, time: FakeClock, ratings: Ratings) -> None:
    """A game played before a list was published but recorded later makes the list differ from now, and is the cause."""
    time.set("2024-06-01T12:00:00Z")
    late = build_chess_line("g-0", "2024-03-02T12:00:00Z", "ben", "cleo")
    preview = json.loads(ratings("import", "-", "--dry-run", "--format", "json", db=db, input=late).stdout)
    assert [entry["ladder"] for entry in preview["published"]] == [ALL]
    append_lines(ratings, db, late, build_chess_line("g-3", "2024-05-20T12:00:00Z", "anna", "cleo"))
    assert list_differing_players(ratings, db) == ["anna", "ben", "cleo"]
    last = read_json(ratings, db, "history", "ben", ALL)["rows"][-1]
    assert (last["game_id"], [entry["position"] for entry in last["published"]]) == ("g-2", [5])
    explanation = read_json(ratings, db, "explain", "--change", ALL, "ben", "--from", "published")
    assert [cause["game_id"] for cause in explanation["causes"]] == ["g-0"]
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_unchanged_rows_are_not_published_again(db: str, time: FakeClock, ratings: Ratings) -> None:
    """Without new games, publishing a list again is refused at any later time.

    A list as of a day is a list of its own, and cannot be published twice either.
    """
    time.set("2024-06-01T12:00:00Z")
    before = read_position(ratings, db)
    report = json.loads(ratings("publish", ALL, "--format", "json", db=db).stdout)
    assert [rejection["code"] for rejection in report["rejected"]] == ["list-exists"]
    assert read_position(ratings, db) == before
    # a list as of a day is a list of its own
    assert ratings("publish", ALL, "--as-of", "2024-05-01", db=db).exit_code == 0
    assert ratings("publish", ALL, "--as-of", "2024-05-01", db=db).exit_code == 1
    append_lines(ratings, db, build_chess_line("g-3", "2024-05-20T12:00:00Z", "anna", "cleo"))
    assert ratings("publish", ALL, db=db).exit_code == 0


def test_list_states_its_time_of_publication(ratings: Ratings, time: FakeClock, tmp_path: Path) -> None:
    """A list states its time of publication, and games that end later are not on it."""
    url = str(tmp_path / "one.db")
    ratings("init", "--for", "chess", db=url)
    games = [
        build_chess_line("g-1", "2024-03-01T12:00:00Z", "anna", "ben"),
        build_chess_line("g-2", "2024-05-02T11:00:00Z", "ben", "anna"),
    ]
    time.set(PUBLISHED_AT)
    append_lines(ratings, url, *games)
    report = json.loads(ratings("publish", ALL, "--format", "json", db=url).stdout)
    # g-2 ends after the publication
    assert (report["as_of"], report["games"]) == (PUBLISHED_AT, 1)
    assert read_json(ratings, url, "standings", ALL, "--as-published")["as_of"] == PUBLISHED_AT
    assert "played up to 2024-05-01 12:00:00 UTC" in ratings("standings", ALL, "--as-published", db=url).stdout
    assert ratings("verify", db=url) == (0, "", "")


def test_only_the_newest_list_without_date_is_compared(ratings: Ratings, time: FakeClock, tmp_path: Path) -> None:
    """Of two lists without --as-of, only the newer is compared with now.

    A list as of a day is compared as well.
    """
    url = str(tmp_path / "two.db")
    ratings("init", "--for", "chess", db=url)
    time.set("2024-04-01T12:00:00Z")
    append_lines(ratings, url, build_chess_line("g-1", "2024-03-01T12:00:00Z", "anna", "ben"))
    for at, game in (("2024-04-10T12:00:00Z", "g-2"), ("2024-04-20T12:00:00Z", "g-3")):
        time.set(at)
        assert ratings("publish", ALL, db=url).exit_code == 0
        append_lines(ratings, url, build_chess_line(game, at, "anna", "ben"))
    assert ratings("publish", ALL, "--as-of", "2024-03-31", db=url).exit_code == 0
    ladders = read_json(ratings, url, "diff", "published", "now")["ladders"]
    assert [ladder["a"]["as_of"] for ladder in ladders] == [
        "2024-03-31T23:59:59.999999Z",
        "2024-04-20T12:00:00.000000Z",
    ]
    pairs: list[dict[str, Any]] = read_json(ratings, url, "diff", "published,known-at=5", "published", ALL)["ladders"]
    assert [(pair["a"].get("published"), pair["b"].get("published")) for pair in pairs if pair["a"]] == [(4, 7)]


@pytest.mark.slow_cases
def test_import_names_lists_it_changes(db: str, time: FakeClock, ratings: Ratings) -> None:
    """An import names the published lists that it changes, and only those."""
    time.set("2024-06-01T12:00:00Z")
    ratings("publish", ALL, "--as-of", "2024-04-30", db=db)
    later = build_chess_line("new", "2024-05-20T12:00:00Z", "ben", "anna")
    late = build_chess_line("late", "2024-04-20T12:00:00Z", "ben", "anna")

    assert "Published" not in ratings("import", "-", db=db, input=later).stdout
    stdout = ratings("import", "-", db=db, input=late).stdout
    assert "Published, and would come out differently today:\n  elo-chess as of 2024-04-30" in stdout
    assert "change" not in stdout
    second_late = build_chess_line("late2", "2024-04-21T12:00:00Z", "ben", "anna")
    report = json.loads(ratings("import", "-", "--format", "json", db=db, input=second_late).stdout)
    assert [entry["ladder"] for entry in report["published"]] == [ALL, ALL]
    assert "changes" not in report


@pytest.mark.slow_cases
def test_report_separates_lists_that_differed_already(db: str, time: FakeClock, ratings: Ratings) -> None:
    """A report of changes separates the published lists that differ because of the changes from those that differed
    already.
    """
    time.set("2024-06-01T12:00:00Z")
    ratings("publish", ALL, "--as-of", "2024-04-30", db=db)
    late = build_chess_line("late", "2024-04-20T12:00:00Z", "ben", "anna")
    assert "already did" not in ratings("import", "-", db=db, input=late).stdout
    ratings("publish", ALL, "--as-of", "2024-05-31", db=db)
    later = build_chess_line("later", "2024-04-21T12:00:00Z", "ben", "anna")

    stdout = ratings("import", "-", "--dry-run", db=db, input=later).stdout
    _, newly_differing, already_differing = stdout.split("\nPublished, and would come out differently today")
    assert newly_differing.startswith(":\n  elo-chess as of 2024-05-31 23:59 UTC, published at position ")
    assert len(newly_differing.splitlines()) == 2
    assert already_differing.startswith(", as they already did before this change:\n")
    assert "\n  elo-chess as of 2024-04-30 23:59 UTC, published at position " in already_differing
    published = json.loads(ratings("import", "-", "--dry-run", "--format", "json", db=db, input=later).stdout)[
        "published"
    ]
    assert [entry["as_of"] for entry in published if not entry["already"]] == ["2024-05-31T23:59:59.999999Z"]
    assert "2024-04-30T23:59:59.999999Z" in [entry["as_of"] for entry in published if entry["already"]]
