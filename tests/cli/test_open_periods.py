"""Rating periods that are not closed: what waits, `--close-now`, lists refused, and previews that close periods."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from ledgers import set_clock

from ratings_ledger import BadArgument
from ratings_ledger import open as open_ledger

Ratings = Callable[..., Any]
NOW = "2025-11-26T12:00:00Z"
LADDER = "glicko-month"
RULESET = """
id = "glicko-month"
version = "1"
rule = "glicko-1/1"
effective_from = 1900-01-01
time_zone = "Europe/Berlin"
period = "month"
scope = {game = ["chess"], kind = ["placing"]}
params = {start = 1500, start_deviation = 350, c = "45", deviation_floor = 30, provisional_deviation = 110}
"""
WEEKLY = RULESET.replace(LADDER, "glicko-week").replace('"month"', '"week"') + '[partition]\nby = ["month"]\n'
# two periods are closed; the third has two games
GAMES = {"c-1": ("09-05", "anna", "ben"), "c-2": ("09-20", "ben", "cleo"), "c-3": ("10-03", "anna", "cleo"),
         "c-4": ("11-02", "anna", "ben"), "c-5": ("11-20", "cleo", "anna")}  # fmt: skip
WAITING = "2 games in open rating periods, the first of which ends 2025-11-30 23:59 Europe/Berlin."


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, NOW)


def by_month(ratings: Ratings, url: str) -> None:
    """Make a ledger whose games of chess are rated by Glicko, month by month."""
    with pytest.MonkeyPatch.context() as patch:
        set_clock(patch, NOW)
        assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0
        publish_rules(ratings, url, RULESET)
        for game_id, (day, *players) in GAMES.items():
            record(ratings, url, game_id, day, *players)


def publish_rules(ratings: Ratings, url: str, text: str) -> None:
    """Publish a ruleset."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rules.toml"
        file.write_text(text)
        told = ratings("rules", "publish", file, db=url)
    assert told.exit_code == 0, told


def record(ratings: Ratings, url: str, game_id: str, day: str, *players: str, options: tuple[str, ...] = ()) -> Any:
    """Record a game of chess on a day of 2025, and return what is told."""
    at = ("--game-id", game_id, "--at", f"2025-{day}T20:00Z", "--new-names", "accept")
    told = ratings("record", "--game", "chess", *at, *players, *options, db=url)
    assert told.exit_code == 0, told
    return told


def read(ratings: Ratings, url: str, *arguments: str) -> dict[str, Any]:
    """Return an answer as JSON."""
    told = ratings(*arguments, "--format", "json", db=url)
    assert told.exit_code == 0, told
    return dict(json.loads(told.stdout))


@pytest.mark.ledger(make=by_month)
def test_open_period_is_scored_as_if_it_closed_now(ratings: Ratings, db: str) -> None:
    """Standings, books, history, explanations and predictions have its games, as at its end; JSON says so."""
    asked, closed = (read(ratings, db, "standings", *more) for more in ((), ("--close-now",)))
    period = {"closed_to": "2025-10-31T22:59:59.999999Z", "open_games": 2, "closed_now": False}
    assert (asked["period"], asked["games"]) == (period, 3)
    assert (closed["period"], closed["games"]) == (period | {"closed_now": True}, 5)
    # the month's end is still to come, and nothing else is known then
    later = read(ratings, db, "standings", "--as-of", "2025-11-30")
    assert later["period"] == {"closed_to": "2025-11-30T22:59:59.999999Z", "open_games": 0, "closed_now": False}
    assert (closed["rows"], closed["digest"]) == (later["rows"], later["digest"])
    history = read(ratings, db, "history", "anna", "--close-now")
    assert history["period"] == closed["period"]
    assert [row["game_id"] or row["cause"] for row in history["rows"]] == [
        "c-1", "period", "c-3", "period", "c-4", "c-5", "period",
    ]  # fmt: skip
    assert history["rows"][-1]["after"] == closed["rows"][0]["points"]
    books = read(ratings, db, "books", "--close-now")
    assert (books["period"], books["sum"]) == (closed["period"], "0")
    month = {"from": "2025-10-31T23:00:00.000000Z", "to": "2025-11-30T22:59:59.999999Z", "closed": False}
    waits, early = (read(ratings, db, "explain", "c-5", *more) for more in ((), ("--close-now",)))
    assert (waits["counted"], waits["why_not"], waits["period"]) == (
        False, "its rating period is not closed yet", month,
    )  # fmt: skip
    assert (early["counted"], early["period"]) == (True, month | {"closed_now": True})
    for player in early["players"]:
        assert sum(Fraction(term["amount"]) for term in player["terms"]) == Fraction(player["change"])
    assert read(ratings, db, "explain", "anna", "--close-now")["points"] == closed["rows"][0]["points"]
    sides = [
        read(ratings, db, "predict", LADDER, "anna", "ben", *more)["sides"]
        for more in ((), ("--close-now",), ("--as-of", "2025-11-30"))
    ]
    assert sides[0] != sides[1] == sides[2]


@pytest.mark.ledger(make=by_month, store="sqlite")
def test_text_says_what_waits_until_when_and_how_to_see_it(ratings: Ratings, db: str) -> None:
    """Every command names itself; the coordinates are those that were typed."""

    def lines(*arguments: str) -> list[str]:
        return list(ratings(*arguments, db=db).stdout.splitlines())

    for command in (f"standings {LADDER}", f"history anna {LADDER}", f"explain anna {LADDER}", f"books {LADDER}"):
        told = f"Not scored yet: {WAITING} As if they closed now: ratings {command} --close-now"
        assert told in lines(*command.split())
        shown = lines(*command.split(), "--close-now")
        assert (
            "As if rating periods closed now: 2 games included; the first period ends 2025-11-30 23:59 Europe/Berlin."
            in shown
        )
    assert lines("explain", "c-5")[-2:] == [
        "Not counted: its rating period is not closed yet.",
        "It ends 2025-11-30 23:59 Europe/Berlin. As if they closed now: "
        f"ratings explain c-5 {LADDER} --close-now",
    ]  # fmt: skip
    assert lines("explain", "c-5", "--close-now")[2] == (
        "Scored with its rating period, from 2025-11-01 00:00 to 2025-11-30 23:59, as if that closed now."
    )
    then = lines("standings", "--as-of", "2025-11-10", "--rules", "glicko-month@1")
    assert any(
        line.startswith("Not scored yet: 1 game") and
        line.endswith(f"ratings standings {LADDER} --close-now --as-of 2025-11-10 --rules glicko-month@1")
        for line in then
    )  # fmt: skip
    told = ratings("standings", "--as-of", "2025-09-10", db=db)
    assert "1 game in open rating periods" in told.stdout
    assert told.stderr.splitlines()[-1] == f"No player is on {LADDER} before its first rating period closes."


@pytest.mark.ledger(make=by_month, store="sqlite")
def test_period_that_is_over_closes_with_the_next_event(
    ratings: Ratings, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the text says how to see it closed; a preview of anything on the ladder says that it closes."""
    set_clock(monkeypatch, "2025-12-05T12:00:00Z")
    told = ratings("standings", db=db).stdout
    assert f"Nothing has been recorded since; scored: ratings standings {LADDER} --as-of 2025-11-30" in told
    closed = read(ratings, db, "standings", "--as-of", "2025-11-30")
    proposed = record(ratings, db, "c-6", "12-04", "anna", "ben", options=("--dry-run", "--format", "json"))
    impact = json.loads(proposed.stdout)
    assert impact["periods"] == [{"ladder": LADDER, "recomputed": 0, "closed": 1, "waiting": 0}]
    assert {row["player"]: row["after"] for row in impact["changes"]} == {
        row["player"]: row["points"] for row in closed["rows"]
    }
    record(ratings, db, "c-6", "12-04", "anna", "ben")
    assert read(ratings, db, "standings")["digest"] == closed["digest"]


@pytest.mark.ledger(make=by_month)
def test_late_games_recompute_closed_periods(ratings: Ratings, db: str) -> None:
    """A preview says how many: that of the game's date and all later ones; a game of the open period waits."""

    def preview(*arguments: str) -> Any:
        told = ratings(*arguments, "--dry-run", "--format", "json", db=db)
        assert told.exit_code == 0, told
        return json.loads(told.stdout)

    for day, recomputed, waiting in (("08-30", 3, 0), ("09-10", 2, 0), ("10-10", 1, 0), ("11-24", 0, 1)):
        told = record(ratings, db, "late", day, "cleo", "ben", options=("--dry-run", "--format", "json"))
        found = json.loads(told.stdout)
        assert found["periods"] == [{"ladder": LADDER, "recomputed": recomputed, "closed": 0, "waiting": waiting}]
    for arguments, recomputed in (
        (("void", "c-1", "--reason", "x"), 2),
        (("void", "c-2", "--reason", "x"), 2),
        (("correct", "c-3", "cleo", "anna", "--reason", "x"), 1),
        (("adjust", LADDER, "anna", "20", "--reason", "x", "--at", "2025-09-07"), 1),
        (("seed", LADDER, "dora", "rating=1600", "--reason", "x"), 0),
    ):
        found = preview(*arguments)
        periods = found.get("periods", [{"recomputed": 0}])
        assert periods[0]["recomputed"] == recomputed, arguments
    told = record(ratings, db, "late", "09-10", "cleo", "ben").stdout
    assert f"{LADDER}: 2 closed rating periods recomputed." in told.splitlines()
    told = record(ratings, db, "late-2", "11-24", "cleo", "ben").stdout
    waits = f"{LADDER}: 1 game to be scored when the rating period ends, 2025-11-30 23:59 Europe/Berlin."
    assert waits in told.splitlines()


@pytest.mark.ledger(make=by_month)
def test_open_periods_are_not_published(ratings: Ratings, db: str) -> None:
    """The refusal has the code and commands that work; the list holds all numbers, and is shown with them."""
    message = (
        f"2 games of {LADDER} in rating periods that are not closed; the first ends 2025-11-30 23:59 Europe/Berlin; "
        f"without them: ratings publish {LADDER} --as-of 2025-10-31"
    )
    refused(ratings, db, (), message)
    message = (
        f"1 game of {LADDER} in rating periods that are not closed; the first ended 2025-10-31 23:59 Europe/Berlin; "
        f"without them: ratings publish {LADDER} --as-of 2025-09-30; "
        f"with that period: ratings publish {LADDER} --as-of 2025-10-31"
    )
    refused(ratings, db, ("--as-of", "2025-10-15"), message)
    message = (
        f"1 game of {LADDER} in rating periods that are not closed; the first ended 2025-09-30 23:59 Europe/Berlin; "
        f"with that period: ratings publish {LADDER} --as-of 2025-09-30"
    )
    refused(ratings, db, ("--as-of", "2025-09-10"), message)
    as_of = ("--as-of", "2025-10-31")
    assert ratings("publish", LADDER, *as_of, db=db).exit_code == 0
    shown = read(ratings, db, "standings", LADDER, "--as-published")
    now = read(ratings, db, "standings", LADDER, *as_of)
    assert shown["digest"] == now["digest"]
    # a published state is that of the last closed period, not aged
    closed = {player: read(ratings, db, "history", player, *as_of)["rows"][-1] for player in ("anna", "ben", "cleo")}
    for row in shown["rows"]:
        assert row["state"] == closed[row["player"]]["state"]
        assert row["state_exact"] == closed[row["player"]]["state_exact"]
        assert row["provisional"] is True
    assert " ± 263?" in ratings("standings", LADDER, "--as-published", db=db).stdout
    assert ratings("verify", db=db).exit_code == 0
    for options in (("--as-published", "--close-now"), ("--as-published", "--rules", "glicko-month@1")):
        assert ratings("standings", LADDER, *options, db=db).exit_code == 2


def refused(ratings: Ratings, db: str, options: tuple[str, ...], message: str) -> None:
    """Publishing is refused with this message, and nothing is written."""
    told = ratings("publish", LADDER, *options, "--format", "json", db=db)
    assert told.exit_code == 1
    found = json.loads(told.stdout)
    assert found["rejected"] == [{"code": "period-open", "message": message}]
    assert found["appended"] == 0


@pytest.mark.ledger(make=by_month, store="sqlite")
def test_list_of_a_month_waits_for_the_week_that_it_ends_in(
    ratings: Ratings, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused until the week is over, also where all lists are published that are due; then it has all games."""
    publish_rules(ratings, db, WEEKLY)
    record(ratings, db, "w-1", "09-30", "anna", "ben")
    set_clock(monkeypatch, "2025-10-02T12:00:00Z")
    weekly = "glicko-week/2025-09"
    told = ratings("publish", weekly, "--as-of", "2025-10-01", "--dry-run", db=db)
    assert told.exit_code == 1
    assert "period-open: 1 game of glicko-week/2025-09" in told.stderr
    assert told.stderr.endswith("ends 2025-10-05 23:59 Europe/Berlin; publish it after that\n")
    set_clock(monkeypatch, "2025-12-01T12:00:00Z")
    assert ratings("publish", weekly, "--dry-run", db=db).exit_code == 0
    # of November's last week nothing was recorded since
    told = ratings("publish", "--due", "--dry-run", db=db)
    assert (told.exit_code, "glicko-week/2025-11" in told.stdout) == (0, True)


@pytest.mark.ledger(make=by_month, store="sqlite")
def test_library_closes_now_too(ratings: Ratings, db: str) -> None:
    """The option is one of the snapshot, so that every answer has it; what compares coordinates refuses it."""
    with open_ledger(db) as ledger:
        asked, closed = ledger.at(), ledger.at(close_now=True)
        assert [row.games for row in asked.ladders().rows] == [3]
        assert [row.games for row in closed.ladders().rows] == [5]
        points = {row.player: row.points for row in closed.standings(LADDER).rows}
        assert {row.player: row.points for row in closed.everybody().rows} == points
        assert {row.player: row.points for row in closed.overview(LADDER).rows} == points
        assert closed.profile(LADDER, "anna").standing.points == points["anna"]
        assert ledger.at("2025-11-10", close_now=True).standings(LADDER).games == 4
        assert ledger.at(known_at=7, close_now=True).standings(LADDER).games == 5
        assert [row.change.cause for row in closed.changes(LADDER) if row.player == "anna"][-1] == "period"
        with pytest.raises(BadArgument, match="close_now"):
            ledger.compare(asked, closed)
        with pytest.raises(BadArgument, match="close_now"):
            ledger.at(close_now="yes")  # type: ignore[arg-type]


def rated_by_game(ratings: Ratings, url: str) -> None:
    """Make a ledger with a game of chess under Elo."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    record(ratings, url, "c-1", "09-05", "anna", "ben")


@pytest.mark.ledger(make=rated_by_game, store="sqlite")
def test_ladders_without_rating_periods_stay_as_they_are(ratings: Ratings, db: str) -> None:
    """A note says that every game is scored by itself; JSON has no period."""
    told = ratings("standings", "elo-chess/all", "--close-now", db=db)
    assert told.stdout == ratings("standings", "elo-chess/all", db=db).stdout
    assert told.stderr == "note: elo-chess has no rating periods: every game is scored separately\n"
    assert "period" not in read(ratings, db, "standings", "elo-chess/all")
    assert ratings("explain", "--change", "anna", "--from", "1", "--close-now", db=db).exit_code == 2
