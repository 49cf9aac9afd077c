"""Monthly, open and annual lists on the command line: their rows, periods and ranks, and the effects of corrections."""

import csv
import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from list_games import (
    KNIGHTS_MARCH,
    KNIGHTS_YEAR,
    MARCH,
    OPEN_MARCH,
    YEAR,
    build_list_events,
    create_list_ledger,
)
from sqlalchemy import create_engine, make_url, text

Ratings = Callable[..., Any]

# the last microsecond of March 2010 in Berlin, and the first of April
LAST_OF_MARCH, FIRST_OF_APRIL = "2010-03-31T21:59:59.999999Z", "2010-03-31T22:00:00Z"


pytestmark = pytest.mark.ledger(make=create_list_ledger, store="sqlite")


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that sets the clock."""

    def set_time(moment: str) -> None:
        since_1970 = datetime.fromisoformat(moment) - datetime.fromisoformat("1970-01-01T00:00:00Z")
        monkeypatch.setattr("ratings_ledger.ledger.clock.now", lambda: since_1970 // timedelta(microseconds=1))

    return set_time


def read_output(ratings: Ratings, db: str, *arguments: str) -> dict[str, Any]:
    result = ratings(*arguments, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    return dict(json.loads(result.stdout))


def list_row_values(
    ratings: Ratings, db: str, ladder: str, *members: str, axes: tuple[str, ...] = ()
) -> list[tuple[Any, ...]]:
    """Return some members of each row of a list."""
    list_rows = read_output(ratings, db, "standings", ladder, *axes)["rows"]
    return [tuple(row[member] for member in members) for row in list_rows]


def list_names(ratings: Ratings, db: str, *options: str) -> list[str]:
    return [row["list"] for row in read_output(ratings, db, "lists", *options)["rows"]]


def test_lists_cover_every_group_and_period(db: str, ratings: Ratings) -> None:
    """`lists` shows one list for each city, group, month and year in which games were played."""
    assert list_names(ratings, db) == [
        YEAR,
        KNIGHTS_YEAR,
        "catan-monthly/7/basic/2010-01",
        "catan-monthly/7/basic/2010-02",
        MARCH,
        KNIGHTS_MARCH,
        "catan-open/basic/2010-01",
        "catan-open/basic/2010-02",
        OPEN_MARCH,
        "catan-open/cities-knights/2010-03",
    ]


def test_lists_filter_by_period_and_time(db: str, ratings: Ratings) -> None:
    """`lists` filters by period, by the games played so far, and by position."""
    last_position = read_output(ratings, db, "lists")["known_at"]

    assert list_names(ratings, db, "--period", "2010") == list_names(ratings, db)
    assert list_names(ratings, db, "--period", "2011") == []
    assert list_names(ratings, db, "--period", "2010-03") == [
        MARCH,
        KNIGHTS_MARCH,
        OPEN_MARCH,
        "catan-open/cities-knights/2010-03",
    ]
    assert list_names(ratings, db, "--period", "2010-04") == []
    assert list_names(ratings, db, "--as-of", "2010-01-31") == [
        YEAR,
        "catan-monthly/7/basic/2010-01",
        "catan-open/basic/2010-01",
    ]
    assert list_names(ratings, db, "--known-at", str(last_position - len(build_list_events()))) == []


def test_lists_show_player_and_rank_counts(db: str, ratings: Ratings) -> None:
    """Each row of `lists` shows the number of players and of ranked players on the list."""
    rows_by_list = {row["list"]: row for row in read_output(ratings, db, "lists")["rows"]}

    assert rows_by_list[MARCH] == {
        "list": MARCH,
        "period": "2010-03",
        "state": "closed",
        "players": 6,
        "ranked": 3,
        "games": 8,
        "ruleset": "catan-monthly@2008-03",
        "as_of": None,
    }
    assert (rows_by_list[KNIGHTS_YEAR]["players"], rows_by_list[KNIGHTS_YEAR]["ranked"]) == (2, 1)
    table = ratings("lists", db=db).stdout.splitlines()
    assert table[0] == f"10 lists, known at position {read_output(ratings, db, 'lists')['known_at']}"
    assert table[2].split() == ["list", "state", "players", "ranked", "games"]
    assert [line.split() for line in table if line.startswith(MARCH)] == [[MARCH, "closed", "6", "3", "8"]]
    assert list(csv.DictReader(io.StringIO(ratings("lists", "--format", "csv", db=db).stdout)))[4]["list"] == MARCH


@pytest.mark.parametrize(("moment", "state"), [(LAST_OF_MARCH, "open"), (FIRST_OF_APRIL, "closed")])
def test_month_closes_at_midnight_in_berlin(
    moment: str, state: str, db: str, ratings: Ratings, set_clock: Callable[[str], None]
) -> None:
    """A monthly list closes at midnight Berlin time at the end of its month."""
    set_clock(moment)

    states = {row["list"]: row["state"] for row in read_output(ratings, db, "lists")["rows"]}
    assert (states["catan-monthly/7/basic/2010-02"], states[MARCH], states[OPEN_MARCH]) == ("closed", state, state)
    assert states[YEAR] == "open"


@pytest.mark.parametrize(
    ("moment", "note"),
    [
        ("2010-02-28T22:59:59.999999Z", "The period of this list has not begun."),
        ("2010-02-28T23:00:00Z", "The period of this list is still running."),
        (LAST_OF_MARCH, "The period of this list is still running."),
        (FIRST_OF_APRIL, None),
    ],
)
@pytest.mark.parametrize("ladder", [MARCH, OPEN_MARCH])
def test_month_standings_state_the_period(
    ladder: str, moment: str, note: str | None, db: str, ratings: Ratings, set_clock: Callable[[str], None]
) -> None:
    """The standings of a month say whether its period has yet to begin, is running, or is over."""
    set_clock(moment)

    standings = read_output(ratings, db, "standings", ladder)
    assert standings.get("open") is (True if note else None)
    assert [row["rank"] for row in standings["rows"]] == [1, 1, 3, None, None, None]
    lines = ratings("standings", ladder, db=db).stdout.splitlines()
    assert [line for line in lines if "period of this list" in line] == ([note] if note else [])


@pytest.mark.parametrize(
    ("as_of", "note"),
    [
        ("2010-02-27", "The period of this list had not begun then."),
        ("2010-03-15", "The period of this list was still running then."),
    ],
)
def test_past_standings_state_the_period_then(as_of: str, note: str, db: str, ratings: Ratings) -> None:
    """The standings of a month that is over say whether its period had begun or was still running at `--as-of`."""
    lines = ratings("standings", MARCH, "--as-of", as_of, db=db).stdout.splitlines()
    assert [line for line in lines if "period of this list" in line] == [note]


@pytest.mark.parametrize("ladder", ["catan-monthly/7/basic/2999-12", "catan-annual/9/new/9999", "catan-open/x/2999-01"])
def test_future_period_has_not_begun(ladder: str, db: str, ratings: Ratings) -> None:
    """The standings of a future period are empty and say that it has not begun."""
    standings = read_output(ratings, db, "standings", ladder)
    table = ratings("standings", ladder, db=db)

    assert (standings["open"], standings["games"], standings["rows"]) == (True, 0, [])
    note = f"No player is on this ladder: no game counts on it (to see why: ratings explain GAME {ladder}).\n"
    assert (table.exit_code, table.stderr) == (0, note)
    assert "The period of this list has not begun." in table.stdout


def test_month_json_shows_gold_and_means(db: str, ratings: Ratings) -> None:
    """As JSON, the standings of a month show gold beside exact mean scores."""
    members = ("rank", "player", "points", "games", "qualified", "gold")

    assert list_row_values(ratings, db, MARCH, *members) == [
        (1, "anna", "27/7", 7, True, 2),
        (1, "ben", "27/7", 7, True, 2),
        (3, "cleo", "13/7", 7, True, 1),
        (None, "fay", "3", 1, False, 0),
        (None, "dora", "1", 6, False, 0),
        (None, "gus", "1", 1, False, 0),
    ]
    assert all("gold" not in row for row in read_output(ratings, db, "standings", OPEN_MARCH)["rows"])
    assert list_row_values(ratings, db, OPEN_MARCH, *members[:5]) == list_row_values(ratings, db, MARCH, *members[:5])


def test_year_json_shows_places_and_sum(db: str, ratings: Ratings) -> None:
    """As JSON, the standings of a year show the places beside their sum.

    Cleo has a place only in January and March: 1 + 3 + 150 + 150 = 304. In the basic game every player is ranked, with
    any account.
    """
    members = ("rank", "player", "points", "places")

    assert list_row_values(ratings, db, YEAR, *members) == [
        (1, "cleo", "304", [1, 3, 150, 150]),
        (2, "anna", "451", [1, 150, 150, 150]),
        (2, "ben", "451", [1, 150, 150, 150]),
        (4, "emil", "452", [2, 150, 150, 150]),
    ]
    assert list_row_values(ratings, db, KNIGHTS_YEAR, *members) == [
        (1, "anna", "452", [2, 150, 150, 150]),
        (None, "ben", "451", [1, 150, 150, 150]),
    ]
    before = ("--as-of", "2010-11-30")
    assert list_row_values(ratings, db, KNIGHTS_YEAR, "rank", "player", axes=before) == [(1, "ben"), (2, "anna")]


def test_csv_has_gold_and_place_columns(db: str, ratings: Ratings) -> None:
    """As CSV, lists have columns for gold and places, and a missing rank is empty."""
    month = ratings("standings", MARCH, "--format", "csv", db=db).stdout.splitlines()
    year = ratings("standings", KNIGHTS_YEAR, "--format", "csv", db=db).stdout.splitlines()

    assert month[:2] == [
        "rank,player,points,games,qualified,points_exact,gold,as_of,known_at,rules",
        "1,anna,3.857143,7,True,27/7,2,,45,",
    ]
    assert ",dora,1,6,False,1,0,,45," in month
    assert year == [
        "rank,player,points,games,qualified,places,as_of,known_at,rules",
        "1,anna,452,7,True,2 150 150 150,,45,",
        ",ben,451,7,False,1 150 150 150,,45,",
    ]
    assert "gold" not in ratings("standings", OPEN_MARCH, "--format", "csv", db=db).stdout


def test_tables_round_means_and_dash_ranks(db: str, ratings: Ratings) -> None:
    """As tables, lists round the means and show a dash for players without a rank."""
    month = [line.split() for line in ratings("standings", MARCH, db=db).stdout.splitlines()]
    year = [line.split() for line in ratings("standings", KNIGHTS_YEAR, db=db).stdout.splitlines()]

    assert month[3:9] == [
        ["rank", "player", "points", "games", "gold"],
        ["1", "anna", "3.86", "7", "2"],
        ["1", "ben", "3.86", "7", "2"],
        ["3", "cleo", "1.86", "7", "1"],
        ["-", "fay", "3.00", "1"],
        ["-", "dora", "1.00", "6"],
    ]
    assert year[3:6] == [
        ["rank", "player", "points", "games", "places"],
        ["1", "anna", "452", "7", "2", "150", "150", "150"],
        ["-", "ben", "451", "7", "1", "150", "150", "150"],
    ]
    assert " ".join(year[-1]) == f"Why a player has no rank (-): ratings explain PLAYER {KNIGHTS_YEAR}"


def test_as_of_day_ends_in_berlin(db: str, ratings: Ratings) -> None:
    """With --as-of and a date, a list includes games up to midnight Berlin time of that day.

    The game of 2010-02-28T23:30:00Z belongs to March, the one a microsecond before midnight to February.
    """

    def count_games(ladder: str, day: str) -> int:
        stdout = ratings("standings", ladder, "--as-of", day, "--format", "json", db=db).stdout
        return int(json.loads(stdout)["games"])

    february = "catan-monthly/7/basic/2010-02"
    assert (count_games(february, "2010-02-28"), count_games(MARCH, "2010-02-28")) == (2, 0)
    assert (count_games(february, "2010-03-01"), count_games(MARCH, "2010-03-01")) == (2, 2)
    assert (count_games(MARCH, "2010-03-07"), count_games(MARCH, "2010-12-31")) == (8, 8)


@pytest.mark.parametrize("ladder", [MARCH, OPEN_MARCH, YEAR])
def test_lists_cannot_be_adjusted(ladder: str, db: str, ratings: Ratings) -> None:
    """Adjusting points on a list is refused with `ladder-not-adjustable`."""
    result = ratings("adjust", ladder, "anna", "5", "--reason", "a gift", "--format", "json", db=db)

    rejected = json.loads(result.stdout)["rejected"]
    assert (result.exit_code, [problem["code"] for problem in rejected]) == (1, ["ladder-not-adjustable"])


@pytest.mark.parametrize("ladder", [MARCH, OPEN_MARCH, YEAR, KNIGHTS_MARCH, "catan-monthly/7/basic/2999-12"])
def test_books_of_lists_sum_to_zero(ladder: str, db: str, ratings: Ratings) -> None:
    """The books of every list sum to zero and match the points in its standings."""
    books = read_output(ratings, db, "books", ladder)
    amounts = {row["account"]: Fraction(row["amount"]) for row in books["accounts"]}

    assert (books["sum"], sum(amounts.values())) == ("0", 0)
    points = [Fraction(row["points"]) * row["games"] for row in read_output(ratings, db, "standings", ladder)["rows"]]
    assert amounts["players"] == (0 if ladder == YEAR else sum(points))
    assert amounts["minted"] == -amounts["players"]


def index_changes(result: Any, ladder: str) -> dict[str, tuple[str | None, str | None]]:
    """Return points before and after by player from a command's changes of one list."""
    assert result.exit_code == 0, result.stderr
    all_changes = json.loads(result.stdout)["changes"]
    return {row["player"]: (row["before"], row["after"]) for row in all_changes if row["ladder"] == ladder}


def test_voiding_reports_effects_on_all_lists(db: str, ratings: Ratings) -> None:
    """Voiding a game reports its effects on all lists, and these become the standings.

    With six games each, no player has a place in March any more, and so none in the year for that month. Reinstating
    the game reverses the effects.
    """
    result = ratings("void", "mar-7", "--reason", "unfair", "--format", "json", db=db)

    month = {"anna": ("27/7", "4"), "ben": ("27/7", "4"), "cleo": ("13/7", "2")}
    assert index_changes(result, MARCH) == index_changes(result, OPEN_MARCH) == month
    assert index_changes(result, YEAR) == {
        "cleo": ("304", "451"),
        "anna": ("451", None),
        "ben": ("451", None),
        "emil": ("452", "452"),
    }
    assert {
        player: points for player, points in list_row_values(ratings, db, MARCH, "player", "points") if player in month
    } == {player: after for player, (_, after) in month.items()}
    assert list_row_values(ratings, db, YEAR, "player", "points") == [("cleo", "451"), ("emil", "452")]
    reinstate_result = ratings("reinstate", "mar-7", "--reason", "fair", "--format", "json", db=db)
    assert index_changes(reinstate_result, YEAR) == {
        "cleo": ("451", "304"),
        "anna": (None, "451"),
        "ben": (None, "451"),
        "emil": ("452", "452"),
    }


def test_corrected_date_moves_game_between_months(db: str, ratings: Ratings) -> None:
    """Correcting a game's date moves its points from one month to another, as its dry run says."""
    options = ("--at", "2010-04-07T20:00Z", "--reason", "wrong month", "--format", "json")
    preview = ratings("correct", "mar-7", *options, "--dry-run", db=db)
    result = ratings("correct", "mar-7", *options, db=db)

    april = "catan-monthly/7/basic/2010-04"
    assert (
        index_changes(result, april)
        == index_changes(preview, april)
        == {
            "anna": (None, "3"),
            "ben": (None, "3"),
            "cleo": (None, "1"),
        }
    )
    assert index_changes(result, MARCH) == {"anna": ("27/7", "4"), "ben": ("27/7", "4"), "cleo": ("13/7", "2")}
    assert list_row_values(ratings, db, april, "player", "points") == [("anna", "3"), ("ben", "3"), ("cleo", "1")]


STORED_CHANGES = {"gold": "gold + 1", "places": "'1,1,1,1'", "divisor": "divisor * 2", "rank": "2"}


@pytest.mark.slow
def test_rebuild_stores_list_values_for_verify(copy_ledger: Callable[..., str], ratings: Ratings) -> None:
    """A rebuild stores ranks, means, gold and places, and `verify` finds a change to any of them."""
    store = copy_ledger(create_list_ledger)
    assert ratings("rebuild", db=store).exit_code == 0
    assert ratings("verify", db=store) == (0, "", "")
    url = make_url(store)
    engine = create_engine(url if url.drivername == "sqlite" else url.set(drivername="postgresql+psycopg"))
    query = text(
        "SELECT rank, player, points, points_units, scale, gold, places FROM live_standings "
        "WHERE ladder = :ladder ORDER BY ordinal"
    )
    with engine.begin() as connection:
        month = connection.execute(query, {"ladder": MARCH}).all()
        year = connection.execute(query, {"ladder": YEAR}).all()

        assert [(row.rank, row.player, row.points_units, row.scale, row.gold) for row in month][:3] == [
            (1, "anna", 27 * 60, 7 * 60, 2),
            (1, "ben", 27 * 60, 7 * 60, 2),
            (3, "cleo", 13 * 60, 7 * 60, 1),
        ]
        assert [float(row.points) for row in month][:3] == pytest.approx([27 / 7, 27 / 7, 13 / 7], rel=1e-12)
        assert (year[0].rank, year[0].player, float(year[0].points), year[0].places) == (1, "cleo", 304, "1,3,150,150")
    for column, value in STORED_CHANGES.items():
        ladder = YEAR if column == "places" else MARCH
        with engine.begin() as connection:
            where = f"WHERE ladder = '{ladder}' AND ordinal = 1"
            old = connection.execute(text(f"SELECT {column} FROM generation_standings {where}")).scalar()
            connection.execute(text(f"UPDATE generation_standings SET {column} = {value} {where}"))
        findings = json.loads(ratings("verify", "--format", "json", db=store).stdout)["findings"]
        assert [ladder in finding["message"] for finding in findings] == [True], column
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE generation_standings SET {column} = :old {where}"), {"old": old})
    engine.dispose()
    assert ratings("verify", db=store) == (0, "", "")
