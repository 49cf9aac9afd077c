"""Monthly, open and annual lists on the command line: who is on them, why, and what a correction does to them."""

import csv
import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from list_games import KNIGHTS_MARCH, KNIGHTS_YEAR, MARCH, OPEN_MARCH, YEAR, events, list_games
from sqlalchemy import create_engine, make_url, text

Ratings = Callable[..., Any]

# the last microsecond of March 2010 in Berlin, and the first of April
LAST, FIRST = "2010-03-31T21:59:59.999999Z", "2010-03-31T22:00:00Z"


pytestmark = pytest.mark.ledger(make=list_games, store="sqlite")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that sets the clock."""

    def set_clock(moment: str) -> None:
        since_1970 = datetime.fromisoformat(moment) - datetime.fromisoformat("1970-01-01T00:00:00Z")
        monkeypatch.setattr("ratings_ledger.ledger.clock.now", lambda: since_1970 // timedelta(microseconds=1))

    return set_clock


def read(ratings: Ratings, db: str, *arguments: str) -> dict[str, Any]:
    result = ratings(*arguments, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    return dict(json.loads(result.stdout))


def rows(ratings: Ratings, db: str, ladder: str, *members: str, axes: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """Some members of each row of a list."""
    found = read(ratings, db, "standings", ladder, *axes)["rows"]
    return [tuple(row[member] for member in members) for row in found]


def names(ratings: Ratings, db: str, *options: str) -> list[str]:
    return [row["list"] for row in read(ratings, db, "lists", *options)["rows"]]


def test_lists_cover_every_group_and_period(db: str, ratings: Ratings) -> None:
    """`lists` shows one list for each city, group, month and year in which games were played."""
    assert names(ratings, db) == [
        YEAR, KNIGHTS_YEAR,
        "catan-monthly/7/basic/2010-01", "catan-monthly/7/basic/2010-02", MARCH, KNIGHTS_MARCH,
        "catan-open/basic/2010-01", "catan-open/basic/2010-02", OPEN_MARCH, "catan-open/cities-knights/2010-03",
    ]  # fmt: skip


def test_lists_filter_by_period_and_time(db: str, ratings: Ratings) -> None:
    """`lists` filters by period, by what was played so far, and by what was known."""
    known = read(ratings, db, "lists")["known_at"]

    assert names(ratings, db, "--period", "2010") == names(ratings, db)
    assert names(ratings, db, "--period", "2011") == []
    assert names(ratings, db, "--period", "2010-03") == [
        MARCH, KNIGHTS_MARCH, OPEN_MARCH, "catan-open/cities-knights/2010-03",
    ]  # fmt: skip
    assert names(ratings, db, "--period", "2010-04") == []
    assert names(ratings, db, "--as-of", "2010-01-31") == [
        YEAR, "catan-monthly/7/basic/2010-01", "catan-open/basic/2010-01",
    ]  # fmt: skip
    assert names(ratings, db, "--known-at", str(known - len(events()))) == []


def test_lists_show_player_and_rank_counts(db: str, ratings: Ratings) -> None:
    """Each row of `lists` shows how many players are on the list and how many are ranked."""
    found = {row["list"]: row for row in read(ratings, db, "lists")["rows"]}

    assert found[MARCH] == {
        "list": MARCH, "period": "2010-03", "state": "closed", "players": 6, "ranked": 3, "games": 8,
        "ruleset": "catan-monthly@2008-03", "as_of": None,
    }  # fmt: skip
    assert (found[KNIGHTS_YEAR]["players"], found[KNIGHTS_YEAR]["ranked"]) == (2, 1)
    table = ratings("lists", db=db).stdout.splitlines()
    assert table[0] == f"10 lists, known at position {read(ratings, db, 'lists')['known_at']}"
    assert table[2].split() == ["list", "state", "players", "ranked", "games"]
    assert [line.split() for line in table if line.startswith(MARCH)] == [[MARCH, "closed", "6", "3", "8"]]
    assert list(csv.DictReader(io.StringIO(ratings("lists", "--format", "csv", db=db).stdout)))[4]["list"] == MARCH


@pytest.mark.parametrize(("moment", "state"), [(LAST, "open"), (FIRST, "closed")])
def test_month_closes_at_midnight_in_berlin(
    moment: str, state: str, db: str, ratings: Ratings, at: Callable[[str], None]
) -> None:
    """A monthly list closes at midnight Berlin time at the end of its month."""
    at(moment)

    found = {row["list"]: row["state"] for row in read(ratings, db, "lists")["rows"]}
    assert (found["catan-monthly/7/basic/2010-02"], found[MARCH], found[OPEN_MARCH]) == ("closed", state, state)
    assert found[YEAR] == "open"


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        ("2010-02-28T22:59:59.999999Z", "The period of this list has not begun."),
        ("2010-02-28T23:00:00Z", "The period of this list is still running."),
        (LAST, "The period of this list is still running."),
        (FIRST, None),
    ],
)
@pytest.mark.parametrize("ladder", [MARCH, OPEN_MARCH])
def test_month_standings_tell_period_state(
    ladder: str, moment: str, told: str | None, db: str, ratings: Ratings, at: Callable[[str], None]
) -> None:
    """The standings of a month say whether its period has yet to begin, still runs, or is over."""
    at(moment)

    found = read(ratings, db, "standings", ladder)
    assert found.get("open") is (True if told else None)
    assert [row["rank"] for row in found["rows"]] == [1, 1, 3, None, None, None]
    lines = ratings("standings", ladder, db=db).stdout.splitlines()
    assert [line for line in lines if "period of this list" in line] == ([told] if told else [])


@pytest.mark.parametrize("ladder", ["catan-monthly/7/basic/2999-12", "catan-annual/9/new/9999", "catan-open/x/2999-01"])
def test_future_period_has_not_begun(ladder: str, db: str, ratings: Ratings) -> None:
    """The standings of a future period are empty and say that it has not begun."""
    found = read(ratings, db, "standings", ladder)
    table = ratings("standings", ladder, db=db)

    assert (found["open"], found["games"], found["rows"]) == (True, 0, [])
    nobody = f"No player is on this ladder: no game counts on it (to see why: ratings explain GAME {ladder}).\n"
    assert (table.exit_code, table.stderr) == (0, nobody)
    assert "The period of this list has not begun." in table.stdout


def test_month_json_shows_gold_and_means(db: str, ratings: Ratings) -> None:
    """As JSON, the standings of a month show gold beside exact mean scores."""
    members = ("rank", "player", "points", "games", "qualified", "gold")

    assert rows(ratings, db, MARCH, *members) == [
        (1, "anna", "27/7", 7, True, 2), (1, "ben", "27/7", 7, True, 2), (3, "cleo", "13/7", 7, True, 1),
        (None, "fay", "3", 1, False, 0), (None, "dora", "1", 6, False, 0), (None, "gus", "1", 1, False, 0),
    ]  # fmt: skip
    assert all("gold" not in row for row in read(ratings, db, "standings", OPEN_MARCH)["rows"])
    assert rows(ratings, db, OPEN_MARCH, *members[:5]) == rows(ratings, db, MARCH, *members[:5])


def test_year_json_shows_places_and_sum(db: str, ratings: Ratings) -> None:
    """As JSON, the standings of a year show the places beside their sum.

    Months 1 and 3 only: 1 + 3 + 150 + 150 = 304. Everybody is ranked in the basic game, whatever
    their account.
    """
    members = ("rank", "player", "points", "places")

    assert rows(ratings, db, YEAR, *members) == [
        (1, "cleo", "304", [1, 3, 150, 150]), (2, "anna", "451", [1, 150, 150, 150]),
        (2, "ben", "451", [1, 150, 150, 150]), (4, "emil", "452", [2, 150, 150, 150]),
    ]  # fmt: skip
    assert rows(ratings, db, KNIGHTS_YEAR, *members) == [
        (1, "anna", "452", [2, 150, 150, 150]), (None, "ben", "451", [1, 150, 150, 150]),
    ]  # fmt: skip
    before = ("--as-of", "2010-11-30")
    assert rows(ratings, db, KNIGHTS_YEAR, "rank", "player", axes=before) == [(1, "ben"), (2, "anna")]


def test_csv_has_gold_and_place_columns(db: str, ratings: Ratings) -> None:
    """As CSV, lists have columns for gold and places, and a missing rank is empty."""
    month = ratings("standings", MARCH, "--format", "csv", db=db).stdout.splitlines()
    year = ratings("standings", KNIGHTS_YEAR, "--format", "csv", db=db).stdout.splitlines()

    assert month[:2] == [
        "rank,player,points,games,qualified,points_exact,gold,as_of,known_at,rules",
        "1,anna,3.857143,7,True,27/7,2,,45,",
    ]  # fmt: skip
    assert ",dora,1,6,False,1,0,,45," in month
    assert year == [
        "rank,player,points,games,qualified,places,as_of,known_at,rules",
        "1,anna,452,7,True,2 150 150 150,,45,",
        ",ben,451,7,False,1 150 150 150,,45,",
    ]  # fmt: skip
    assert "gold" not in ratings("standings", OPEN_MARCH, "--format", "csv", db=db).stdout


def test_tables_round_means_and_dash_ranks(db: str, ratings: Ratings) -> None:
    """As tables, lists round the means and show a dash for players without a rank."""
    month = [line.split() for line in ratings("standings", MARCH, db=db).stdout.splitlines()]
    year = [line.split() for line in ratings("standings", KNIGHTS_YEAR, db=db).stdout.splitlines()]

    assert month[3:9] == [
        ["rank", "player", "points", "games", "gold"], ["1", "anna", "3.86", "7", "2"], ["1", "ben", "3.86", "7", "2"],
        ["3", "cleo", "1.86", "7", "1"], ["-", "fay", "3.00", "1"], ["-", "dora", "1.00", "6"],
    ]  # fmt: skip
    assert year[3:6] == [
        ["rank", "player", "points", "games", "places"], ["1", "anna", "452", "7", "2", "150", "150", "150"],
        ["-", "ben", "451", "7", "1", "150", "150", "150"],
    ]  # fmt: skip
    assert " ".join(year[-1]) == f"Why a player has no rank (-): ratings explain PLAYER {KNIGHTS_YEAR}"


def test_as_of_day_ends_in_berlin(db: str, ratings: Ratings) -> None:
    """With `--as-of` a date, a list includes games up to midnight Berlin time of that day.

    The game of 2010-02-28T23:30:00Z belongs to March, the one a microsecond before midnight to
    February.
    """

    def games(ladder: str, day: str) -> int:
        told = ratings("standings", ladder, "--as-of", day, "--format", "json", db=db).stdout
        return int(json.loads(told)["games"])

    february = "catan-monthly/7/basic/2010-02"
    assert (games(february, "2010-02-28"), games(MARCH, "2010-02-28")) == (2, 0)
    assert (games(february, "2010-03-01"), games(MARCH, "2010-03-01")) == (2, 2)
    assert (games(MARCH, "2010-03-07"), games(MARCH, "2010-12-31")) == (8, 8)


@pytest.mark.parametrize("ladder", [MARCH, OPEN_MARCH, YEAR])
def test_lists_cannot_be_adjusted(ladder: str, db: str, ratings: Ratings) -> None:
    """Adjusting points on a list is refused with `ladder-not-adjustable`."""
    result = ratings("adjust", ladder, "anna", "5", "--reason", "a gift", "--format", "json", db=db)

    rejected = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, [problem["code"] for problem in rejected]) == (1, ["ladder-not-adjustable"])


@pytest.mark.parametrize("ladder", [MARCH, OPEN_MARCH, YEAR, KNIGHTS_MARCH, "catan-monthly/7/basic/2999-12"])
def test_books_of_lists_sum_to_zero(ladder: str, db: str, ratings: Ratings) -> None:
    """The books of every list sum to zero and match the points in its standings."""
    found = read(ratings, db, "books", ladder)
    amounts = {row["account"]: Fraction(row["amount"]) for row in found["accounts"]}

    assert (found["sum"], sum(amounts.values())) == ("0", 0)
    given = [Fraction(row["points"]) * row["games"] for row in read(ratings, db, "standings", ladder)["rows"]]
    assert amounts["players"] == (0 if ladder == YEAR else sum(given))
    assert amounts["minted"] == -amounts["players"]


def changes(result: Any, ladder: str) -> dict[str, tuple[str | None, str | None]]:
    """Points before and after by player, of what a command tells of one list."""
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["changes"]
    return {row["player"]: (row["before"], row["after"]) for row in found if row["ladder"] == ladder}


def test_voiding_reports_effects_on_all_lists(db: str, ratings: Ratings) -> None:
    """Voiding a game reports its effects on all lists, and those effects come true.

    With six games each, nobody has a place in March any more, and so none in the year for that
    month. Reinstating the game reverses the effects.
    """
    told = ratings("void", "mar-7", "--reason", "unfair", "--format", "json", db=db)

    month = {"anna": ("27/7", "4"), "ben": ("27/7", "4"), "cleo": ("13/7", "2")}
    assert changes(told, MARCH) == changes(told, OPEN_MARCH) == month
    assert changes(told, YEAR) == {
        "cleo": ("304", "451"), "anna": ("451", None), "ben": ("451", None), "emil": ("452", "452"),
    }  # fmt: skip
    assert {player: points for player, points in rows(ratings, db, MARCH, "player", "points") if player in month} == {
        player: after for player, (_, after) in month.items()
    }
    assert rows(ratings, db, YEAR, "player", "points") == [("cleo", "451"), ("emil", "452")]
    back = ratings("reinstate", "mar-7", "--reason", "fair", "--format", "json", db=db)
    assert changes(back, YEAR) == {
        "cleo": ("451", "304"), "anna": (None, "451"), "ben": (None, "451"), "emil": ("452", "452"),
    }  # fmt: skip


def test_corrected_date_moves_game_between_months(db: str, ratings: Ratings) -> None:
    """Correcting a game's date moves its points from one month to another, as the dry run predicted."""
    options = ("--at", "2010-04-07T20:00Z", "--reason", "wrong month", "--format", "json")
    tried = ratings("correct", "mar-7", *options, "--dry-run", db=db)
    done = ratings("correct", "mar-7", *options, db=db)

    april = "catan-monthly/7/basic/2010-04"
    assert changes(done, april) == changes(tried, april) == {
        "anna": (None, "3"), "ben": (None, "3"), "cleo": (None, "1"),
    }  # fmt: skip
    assert changes(done, MARCH) == {"anna": ("27/7", "4"), "ben": ("27/7", "4"), "cleo": ("13/7", "2")}
    assert rows(ratings, db, april, "player", "points") == [("anna", "3"), ("ben", "3"), ("cleo", "1")]


STORED = {"gold": "gold + 1", "places": "'1,1,1,1'", "divisor": "divisor * 2", "rank": "2"}


@pytest.mark.slow
def test_rebuild_stores_list_values_for_verify(copied: Callable[..., str], ratings: Ratings) -> None:
    """A rebuild stores gold, places and means, and `verify` finds any change to them."""
    store = copied(list_games)
    assert ratings("rebuild", db=store).exit_code == 0
    assert ratings("verify", db=store) == (0, "", "")
    url = make_url(store)
    engine = create_engine(url if url.drivername == "sqlite" else url.set(drivername="postgresql+psycopg"))
    query = text("SELECT rank, player, points, points_units, scale, gold, places FROM live_standings "
                 "WHERE ladder = :ladder ORDER BY ordinal")  # fmt: skip
    with engine.begin() as connection:
        month = connection.execute(query, {"ladder": MARCH}).all()
        year = connection.execute(query, {"ladder": YEAR}).all()

        assert [(row.rank, row.player, row.points_units, row.scale, row.gold) for row in month][:3] == [
            (1, "anna", 27 * 60, 7 * 60, 2), (1, "ben", 27 * 60, 7 * 60, 2), (3, "cleo", 13 * 60, 7 * 60, 1),
        ]  # fmt: skip
        assert [float(row.points) for row in month][:3] == pytest.approx([27 / 7, 27 / 7, 13 / 7], rel=1e-12)
        assert (year[0].rank, year[0].player, float(year[0].points), year[0].places) == (1, "cleo", 304, "1,3,150,150")
    for column, value in STORED.items():
        ladder = YEAR if column == "places" else MARCH
        with engine.begin() as connection:
            where = f"WHERE ladder = '{ladder}' AND ordinal = 1"
            old = connection.execute(text(f"SELECT {column} FROM generation_standings {where}")).scalar()
            connection.execute(text(f"UPDATE generation_standings SET {column} = {value} {where}"))
        found = json.loads(ratings("verify", "--format", "json", db=store).stdout)["findings"]
        assert [ladder in finding["message"] for finding in found] == [True], column
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE generation_standings SET {column} = :old {where}"), {"old": old})
    engine.dispose()
    assert ratings("verify", db=store) == (0, "", "")
