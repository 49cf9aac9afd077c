"""`publish LADDER --every month` records a schedule, and `publish --due` publishes every month that was missed."""

from datetime import UTC, datetime

import pytest
from correction_helpers import Ratings, append_lines, build_event_line, build_game_data, get_refusal_code, read_json

from ratings_ledger import BadArgument
from ratings_ledger.cli.commands import publish


def make_chess_ledger(ratings: Ratings, url: str) -> None:
    """Make a ledger for chess with a game in March 2024, none in April, and one in May."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    for month, players in ((3, ("anna", "ben")), (5, ("ben", "anna"))):
        game = build_game_data(f"g-{month}", *players, game="chess")
        append_lines(ratings, url, build_event_line("game.recorded", f"2024-0{month}-15T12:00:00Z", **game))


def fail_to_publish(*_: object) -> None:
    """Fail as a list that cannot be published does."""
    raise BadArgument("no list can be published")


pytestmark = pytest.mark.ledger(make=make_chess_ledger)


def list_published_ends(ratings: Ratings, db: str) -> list[str]:
    """Return the end of each published list of the ladder, in the order of the log."""
    rows = read_json(ratings, db, "log", "--type", "list.published", "--limit", "0")["rows"]
    return [row["data"]["as_of"] for row in rows]


def test_missed_months_are_published_once(db: str, ratings: Ratings) -> None:
    """All months since the first game are published as of their ends, oldest first; then nothing is due."""
    before = read_json(ratings, db, "standings", "elo-chess")["digest"]
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
    assert ratings("publish", "--due", "--dry-run", db=db).exit_code == 0
    assert list_published_ends(ratings, db) == []
    assert ratings("publish", "--due", db=db).exit_code == 0
    ends = list_published_ends(ratings, db)
    assert ends[:3] == ["2024-03-31T23:59:59.999999Z", "2024-04-30T23:59:59.999999Z", "2024-05-31T23:59:59.999999Z"]
    assert ends == sorted({*ends})
    today = datetime.now(UTC)
    assert len(ends) == 12 * (today.year - 2024) + today.month - 3
    result = ratings("publish", "--due", db=db)
    assert (result.exit_code, result.stdout) == (0, "No list is due.\n")
    assert list_published_ends(ratings, db) == ends
    assert read_json(ratings, db, "standings", "elo-chess")["digest"] == before
    assert ratings("verify", db=db).exit_code == 0


@pytest.mark.ledger(make=make_chess_ledger, store="sqlite")
def test_schedule_is_withdrawn(db: str, ratings: Ratings) -> None:
    """A second schedule of a ladder is refused; once the first is undone, nothing is due."""
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
    assert get_refusal_code(ratings, db, "publish", "elo-chess", "--every", "month") == "schedule-exists"
    assert ratings("undo", "--yes", db=db).exit_code == 0
    assert ratings("publish", "--due", db=db).stdout.startswith("No list is due.")
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0


@pytest.mark.ledger(make=make_chess_ledger, store="sqlite")
def test_month_is_published_by_its_name(db: str, ratings: Ratings) -> None:
    """`publish --as-of` reads a month or a year as its end; a month published in this way is no longer due.

    A month or year without a game before its end is refused, and so is one that is not over.
    """
    for text in ("2024-03", "2023"):
        result = ratings("publish", "elo-chess", "--as-of", text, db=db)
        assert (result.exit_code, "list-empty" in result.stderr) == ((0, False) if text == "2024-03" else (1, True)), (
            result
        )
    assert list_published_ends(ratings, db) == ["2024-03-31T23:59:59.999999Z"]
    running = ratings("publish", "elo-chess", "--as-of", "9999", db=db)
    assert (running.exit_code, "list-running: 9999-12-31T23:59:59Z is in the future" in running.stderr) == (1, True)
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
    assert ratings("publish", "--due", db=db).exit_code == 0
    assert list_published_ends(ratings, db)[1] == "2024-04-30T23:59:59.999999Z"
    month, day = (
        ratings("standings", "elo-chess", "--as-published", "--as-of", text, db=db)
        for text in ("2024-04", "2024-04-30")
    )
    assert month == day


@pytest.mark.ledger(make=make_chess_ledger, store="sqlite")
def test_list_of_the_latest_month_is_shown(db: str, ratings: Ratings) -> None:
    """An older month that is published again is not shown as the latest list; `--as-of` its end shows it."""
    for text in ("2024-03", "2024-05"):
        assert ratings("publish", "elo-chess", "--as-of", text, db=db).exit_code == 0
    latest = ratings("standings", "elo-chess", "--as-published", db=db)
    assert (latest.stderr, "played up to 2024-05-31" in latest.stdout) == ("", True), latest
    assert ratings("correct", "g-3", "ben", "anna", "--reason", "wrong way round", db=db).exit_code == 0
    assert ratings("publish", "elo-chess", "--as-of", "2024-03", db=db).exit_code == 0
    result = ratings("standings", "elo-chess", "--as-published", db=db)
    assert result.stdout == latest.stdout
    march = ratings("standings", "elo-chess", "--as-published", "--as-of", "2024-03-31", db=db)
    assert (march.stderr, march.stdout.index("ben") < march.stdout.index("anna")) == ("", True)


@pytest.mark.ledger(make=make_chess_ledger, store="sqlite")
def test_schedules_and_what_is_due_are_shown(db: str, ratings: Ratings) -> None:
    """`lists` and `status` show each schedule, with the months that are due until they are published."""
    assert "scheduled  " not in ratings("status", db=db).stdout
    assert "1 schedule" not in ratings("lists", db=db).stdout
    assert all("schedules" not in read_json(ratings, db, command) for command in ("lists", "status"))
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
    lists, status = (ratings(command, db=db).stdout for command in ("lists", "status"))
    assert lists.startswith("1 schedule\n\n")
    assert lists.endswith("\nPublish the due months: ratings publish --due\n")
    for stdout in (lists, status):
        assert " months, 2024-03 to 2" in stdout, stdout
    for command in ("lists", "status"):
        (schedule,) = read_json(ratings, db, command)["schedules"]
        assert (schedule["ladder"], schedule["every"], schedule["due"][0]) == ("elo-chess/all", "month", "2024-03")
    assert ratings("publish", "--due", db=db).exit_code == 0
    lists, status = (ratings(command, db=db).stdout for command in ("lists", "status"))
    assert " published lists\n" in lists.partition("\n")[0] + "\n"
    assert "elo-chess  month  nothing\n" in lists
    assert "elo-chess every month, nothing due\n" in status


@pytest.mark.ledger(make=make_chess_ledger, store="sqlite")
def test_due_months_are_those_of_the_present(db: str, ratings: Ratings) -> None:
    """`lists` does not show schedules for a period, or at an earlier `--known-at` or `--as-of`."""
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
    for options in (["--period", "2024"], ["--known-at", "3"], ["--as-of", "2024-03-31"]):
        assert "schedule" not in ratings("lists", *options, db=db).stdout, options
        assert "schedules" not in read_json(ratings, db, "lists", *options), options


@pytest.mark.ledger(make=make_chess_ledger, store="sqlite")
def test_publishing_by_hand_ends_the_alarm_of_a_failed_night(
    db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a nightly run that failed to publish, `publish --due` leaves a successful run; a dry run leaves none."""
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(publish, "list_due_streams", fail_to_publish)
        assert ratings("nightly", "--publish-due", db=db).exit_code == 2
    assert "the last publish failed" in ratings("status", "--no-failures", db=db).stderr
    assert ratings("publish", "--due", "--dry-run", db=db).exit_code == 0
    assert ratings("status", "--no-failures", db=db).exit_code == 1
    assert ratings("publish", "--due", db=db).exit_code == 0
    assert ratings("status", "--no-failures", db=db).exit_code == 0


@pytest.mark.ledger(make=make_chess_ledger, store="sqlite")
def test_night_publishes_what_is_due(db: str, ratings: Ratings) -> None:
    """`nightly --publish-due` publishes before it stores standings; without the option nothing is published."""
    assert ratings("publish", "elo-chess", "--every", "month", db=db).exit_code == 0
    assert ratings("nightly", db=db).exit_code == 0
    assert list_published_ends(ratings, db) == []
    night = ratings("nightly", "--publish-due", "--by", "night", db=db)
    assert (night.exit_code, night.stderr) == (0, ""), night
    count = len(list_published_ends(ratings, db))
    assert f" publish done: {count} lists; rebuild done: " in night.stdout
    (first, *_) = read_json(ratings, db, "log", "--type", "list.published", "--limit", "0")["rows"]
    assert first["by"] == "night"
    status = read_json(ratings, db, "status")
    assert (status["runs"]["publish"]["last"]["result"], status["generation"]["behind"]) == ("done", 0)
    result = ratings("nightly", "--publish-due", db=db)
    assert " publish done: nothing was due; rebuild done: " in result.stdout
    assert len(list_published_ends(ratings, db)) == count
