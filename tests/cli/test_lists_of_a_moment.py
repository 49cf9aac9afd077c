"""Running points published without --as-of stand as of their own instant: what is played later is no change."""

import json
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import Ratings, event, placing, position, read, take_in
from ledgers import set_clock

ALL = "elo-chess/all"
PUBLISHED = "2024-05-01T12:00:00.000000Z"


def chess(game_id: str, at: str, *players: str) -> str:
    """A game of chess as a line of JSON."""
    return event("game.recorded", at, **placing(game_id, *players, game="chess"))


class Time:
    """The present time, which tests set."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.set("2024-04-01T12:00:00Z")

    def set(self, text: str) -> None:
        """It is then."""
        set_clock(self._patch, text)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The present time."""
    return Time(monkeypatch)


@pytest.fixture(params=["of its instant", "from before"])
def db(request: pytest.FixtureRequest, time: Time, ratings: Ratings, store: str) -> str:
    """A ledger with two games and a list, which is as `publish` makes it, or without an instant, as it once made it."""
    assert ratings("init", "--for", "chess", db=store).exit_code == 0
    take_in(ratings, store, chess("g-1", "2024-03-01T12:00:00Z", "anna", "ben"))
    take_in(ratings, store, chess("g-2", "2024-04-01T12:00:00Z", "ben", "anna"))
    time.set(PUBLISHED)
    if request.param == "of its instant":
        assert ratings("publish", ALL, db=store).exit_code == 0
    else:
        for data in old_list(ratings, store):
            take_in(ratings, store, data)
    return store


def old_list(ratings: Ratings, db: str) -> list[str]:
    """The lines of the list that was published before lists had an instant of their own."""
    standings = read(ratings, db, "standings", ALL)
    rows = [{name: value for name, value in row.items() if value is not None} for row in standings["rows"]]
    shared = {"ladder": ALL, "digest": standings["digest"], "parts": 1}
    listed = {"known_at": standings["known_at"], "ruleset": standings["ruleset"], "row_count": len(rows)}
    return [
        event("list.rows", PUBLISHED, **shared, part=1, rows=rows),
        event("list.published", PUBLISHED, **shared, **listed, games=standings["games"]),
    ]


def rows_that_differ(ratings: Ratings, db: str) -> list[str]:
    """The players in whose rows the published list differs from today's."""
    (one,) = read(ratings, db, "diff", "published", "now", ALL)["ladders"]
    assert one["b"]["as_of"] == PUBLISHED
    return sorted(row["player"] for row in one["rows"])


@pytest.mark.slow_cases
def test_later_game_is_no_change(db: str, time: Time, ratings: Ratings) -> None:
    """A game played after a published list causes no report that the list would differ."""
    time.set("2024-06-01T12:00:00Z")
    later = chess("g-3", "2024-05-20T12:00:00Z", "anna", "cleo")
    tried = json.loads(ratings("import", "-", "--dry-run", "--format", "json", db=db, input=later).stdout)
    assert tried["changes"]
    assert tried["published"] == []
    take_in(ratings, db, later)
    assert rows_that_differ(ratings, db) == []
    assert not any("published" in row for row in read(ratings, db, "history", "anna", ALL)["rows"])
    told = read(ratings, db, "explain", "--change", ALL, "anna", "--from", "published")
    assert (told["causes"], told["change"]) == ([], "0")
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_late_recorded_game_is_a_change(db: str, time: Time, ratings: Ratings) -> None:
    """A game played before a list but recorded after it changes the list and is the cause."""
    time.set("2024-06-01T12:00:00Z")
    late = chess("g-0", "2024-03-02T12:00:00Z", "ben", "cleo")
    tried = json.loads(ratings("import", "-", "--dry-run", "--format", "json", db=db, input=late).stdout)
    assert [one["ladder"] for one in tried["published"]] == [ALL]
    take_in(ratings, db, late, chess("g-3", "2024-05-20T12:00:00Z", "anna", "cleo"))
    assert rows_that_differ(ratings, db) == ["anna", "ben", "cleo"]
    last = read(ratings, db, "history", "ben", ALL)["rows"][-1]
    assert (last["game_id"], [one["position"] for one in last["published"]]) == ("g-2", [5])
    told = read(ratings, db, "explain", "--change", ALL, "ben", "--from", "published")
    assert [cause["game_id"] for cause in told["causes"]] == ["g-0"]
    assert ratings("verify", db=db) == (0, "", "")


@pytest.mark.slow_cases
def test_same_rows_are_not_published_again(db: str, time: Time, ratings: Ratings) -> None:
    """With nothing new played, publishing a list again is refused, however much later.

    A list as of a day is a list of its own, and it cannot be published twice either.
    """
    time.set("2024-06-01T12:00:00Z")
    before = position(ratings, db)
    refused = json.loads(ratings("publish", ALL, "--format", "json", db=db).stdout)
    assert [one["code"] for one in refused["rejected"]] == ["list-exists"]
    assert position(ratings, db) == before
    # as of a day it is a list of its own, and the same one twice is not
    assert ratings("publish", ALL, "--as-of", "2024-05-01", db=db).exit_code == 0
    assert ratings("publish", ALL, "--as-of", "2024-05-01", db=db).exit_code == 1
    take_in(ratings, db, chess("g-3", "2024-05-20T12:00:00Z", "anna", "cleo"))
    assert ratings("publish", ALL, db=db).exit_code == 0


def test_list_says_when_it_was_published(ratings: Ratings, time: Time, tmp_path: Path) -> None:
    """A list states its time of publication, and games that end later are not on it."""
    url = str(tmp_path / "one.db")
    ratings("init", "--for", "chess", db=url)
    games = [chess("g-1", "2024-03-01T12:00:00Z", "anna", "ben"), chess("g-2", "2024-05-02T11:00:00Z", "ben", "anna")]
    time.set(PUBLISHED)
    take_in(ratings, url, *games)
    told = json.loads(ratings("publish", ALL, "--format", "json", db=url).stdout)
    # the game of tomorrow is not on it
    assert (told["as_of"], told["games"]) == (PUBLISHED, 1)
    assert read(ratings, url, "standings", ALL, "--as-published")["as_of"] == PUBLISHED
    assert "played up to 2024-05-01 12:00:00 UTC" in ratings("standings", ALL, "--as-published", db=url).stdout
    assert ratings("verify", db=url) == (0, "", "")


def test_newest_list_of_a_moment_counts(ratings: Ratings, time: Time, tmp_path: Path) -> None:
    """Of two lists without `--as-of`, only the newer is compared with now.

    A list as of a day is compared as well.
    """
    url = str(tmp_path / "two.db")
    ratings("init", "--for", "chess", db=url)
    time.set("2024-04-01T12:00:00Z")
    take_in(ratings, url, chess("g-1", "2024-03-01T12:00:00Z", "anna", "ben"))
    for at, game in (("2024-04-10T12:00:00Z", "g-2"), ("2024-04-20T12:00:00Z", "g-3")):
        time.set(at)
        assert ratings("publish", ALL, db=url).exit_code == 0
        take_in(ratings, url, chess(game, at, "anna", "ben"))
    assert ratings("publish", ALL, "--as-of", "2024-03-31", db=url).exit_code == 0
    told = read(ratings, url, "diff", "published", "now")["ladders"]
    assert [one["a"]["as_of"] for one in told] == ["2024-03-31T23:59:59.999999Z", "2024-04-20T12:00:00.000000Z"]
    pairs: list[dict[str, Any]] = read(ratings, url, "diff", "published,known-at=5", "published", ALL)["ladders"]
    assert [(one["a"].get("published"), one["b"].get("published")) for one in pairs if one["a"]] == [(4, 7)]


@pytest.mark.slow_cases
def test_import_names_lists_it_changes(db: str, time: Time, ratings: Ratings) -> None:
    """An import names the published lists that it changes, and only those."""
    time.set("2024-06-01T12:00:00Z")
    ratings("publish", ALL, "--as-of", "2024-04-30", db=db)
    later = chess("new", "2024-05-20T12:00:00Z", "ben", "anna")
    late = chess("late", "2024-04-20T12:00:00Z", "ben", "anna")

    assert "Published" not in ratings("import", "-", db=db, input=later).stdout
    told = ratings("import", "-", db=db, input=late).stdout
    assert "Published, and would come out differently today:\n  elo-chess as of 2024-04-30" in told
    assert "change" not in told
    even_later = chess("late2", "2024-04-21T12:00:00Z", "ben", "anna")
    told = json.loads(ratings("import", "-", "--format", "json", db=db, input=even_later).stdout)
    assert [one["ladder"] for one in told["published"]] == [ALL, ALL]
    assert "changes" not in told


@pytest.mark.slow_cases
def test_report_separates_lists_that_differed_before(db: str, time: Time, ratings: Ratings) -> None:
    """A report of changes names the lists that differ because of them apart from those that differed already."""
    time.set("2024-06-01T12:00:00Z")
    ratings("publish", ALL, "--as-of", "2024-04-30", db=db)
    late = chess("late", "2024-04-20T12:00:00Z", "ben", "anna")
    assert "already did" not in ratings("import", "-", db=db, input=late).stdout
    ratings("publish", ALL, "--as-of", "2024-05-31", db=db)
    later = chess("later", "2024-04-21T12:00:00Z", "ben", "anna")

    told = ratings("import", "-", "--dry-run", db=db, input=later).stdout
    _, because, before = told.split("\nPublished, and would come out differently today")
    assert because.startswith(":\n  elo-chess as of 2024-05-31 23:59 UTC, published at position ")
    assert len(because.splitlines()) == 2
    assert before.startswith(", as they already did before this change:\n")
    assert "\n  elo-chess as of 2024-04-30 23:59 UTC, published at position " in before
    listed = json.loads(ratings("import", "-", "--dry-run", "--format", "json", db=db, input=later).stdout)["published"]
    assert [one["as_of"] for one in listed if not one["already"]] == ["2024-05-31T23:59:59.999999Z"]
    assert "2024-04-30T23:59:59.999999Z" in [one["as_of"] for one in listed if one["already"]]
