"""Open rating periods: unscored games, `--close-now`, refused lists, and previews that close periods."""

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
# September and October are closed; November has two games
GAMES = {
    "c-1": ("09-05", "anna", "ben"),
    "c-2": ("09-20", "ben", "cleo"),
    "c-3": ("10-03", "anna", "cleo"),
    "c-4": ("11-02", "anna", "ben"),
    "c-5": ("11-20", "cleo", "anna"),
}
WAITING_NOTE = "2 games in open rating periods, the first of which ends 2025-11-30 23:59 Europe/Berlin."


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, NOW)


def create_monthly_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger whose games of chess are rated by Glicko, month by month."""
    with pytest.MonkeyPatch.context() as patch:
        set_clock(patch, NOW)
        assert ratings("init", "--no-rules", "--zone", "Europe/Berlin", db=url).exit_code == 0
        publish_rules(ratings, url, RULESET)
        for game_id, (day, *players) in GAMES.items():
            record_game(ratings, url, game_id, day, *players)


def publish_rules(ratings: Ratings, url: str, text: str) -> None:
    """Publish a ruleset."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rules.toml"
        file.write_text(text)
        result = ratings("rules", "publish", file, db=url)
    assert result.exit_code == 0, result


def record_game(
    ratings: Ratings, url: str, game_id: str, day: str, *players: str, options: tuple[str, ...] = ()
) -> Any:
    """Record a game of chess on a day of 2025 and return the result."""
    at = ("--game-id", game_id, "--at", f"2025-{day}T20:00Z", "--new-names", "accept")
    result = ratings("record", "--game", "chess", *at, *players, *options, db=url)
    assert result.exit_code == 0, result
    return result


def read_output(ratings: Ratings, url: str, *arguments: str) -> dict[str, Any]:
    """Return the JSON of a command."""
    result = ratings(*arguments, "--format", "json", db=url)
    assert result.exit_code == 0, result
    return dict(json.loads(result.stdout))


@pytest.mark.ledger(make=create_monthly_ledger)
def test_close_now_scores_open_periods_in_every_answer(ratings: Ratings, db: str) -> None:
    """With --close-now, standings, books, history, explanations and predictions include the games of the open
    period."""
    open_standings, closed_standings = (
        read_output(ratings, db, "standings", *options) for options in ((), ("--close-now",))
    )
    period = {"closed_to": "2025-10-31T22:59:59.999999Z", "open_games": 2, "closed_now": False}
    assert (open_standings["period"], open_standings["games"]) == (period, 3)
    assert (closed_standings["period"], closed_standings["games"]) == (period | {"closed_now": True}, 5)
    # the end of the month is in the future, and no further game is recorded
    end_standings = read_output(ratings, db, "standings", "--as-of", "2025-11-30")
    assert end_standings["period"] == {"closed_to": "2025-11-30T22:59:59.999999Z", "open_games": 0, "closed_now": False}
    assert (closed_standings["rows"], closed_standings["digest"]) == (end_standings["rows"], end_standings["digest"])
    history = read_output(ratings, db, "history", "anna", "--close-now")
    assert history["period"] == closed_standings["period"]
    assert [row["game_id"] or row["cause"] for row in history["rows"]] == [
        "c-1",
        "period",
        "c-3",
        "period",
        "c-4",
        "c-5",
        "period",
    ]
    assert history["rows"][-1]["after"] == closed_standings["rows"][0]["points"]
    books = read_output(ratings, db, "books", "--close-now")
    assert (books["period"], books["sum"]) == (closed_standings["period"], "0")
    month = {"from": "2025-10-31T23:00:00.000000Z", "to": "2025-11-30T22:59:59.999999Z", "closed": False}
    open_explanation, closed_explanation = (
        read_output(ratings, db, "explain", "c-5", *options) for options in ((), ("--close-now",))
    )
    assert (open_explanation["counted"], open_explanation["why_not"], open_explanation["period"]) == (
        False,
        "its rating period is not closed yet",
        month,
    )
    assert (closed_explanation["counted"], closed_explanation["period"]) == (True, month | {"closed_now": True})
    for player in closed_explanation["players"]:
        assert sum(Fraction(term["amount"]) for term in player["terms"]) == Fraction(player["change"])
    assert read_output(ratings, db, "explain", "anna", "--close-now")["points"] == closed_standings["rows"][0]["points"]
    sides = [
        read_output(ratings, db, "predict", LADDER, "anna", "ben", *options)["sides"]
        for options in ((), ("--close-now",), ("--as-of", "2025-11-30"))
    ]
    assert sides[0] != sides[1] == sides[2]


@pytest.mark.ledger(make=create_monthly_ledger, store="sqlite")
def test_text_names_the_command_that_closes_periods(ratings: Ratings, db: str) -> None:
    """Each reading command prints how many games wait until when, and the same command with --close-now."""

    def read_lines(*arguments: str) -> list[str]:
        return list(ratings(*arguments, db=db).stdout.splitlines())

    for command in (f"standings {LADDER}", f"history anna {LADDER}", f"explain anna {LADDER}", f"books {LADDER}"):
        note = f"Not scored yet: {WAITING_NOTE} To score the games as if closed now: ratings {command} --close-now"
        assert note in read_lines(*command.split())
        closed_lines = read_lines(*command.split(), "--close-now")
        assert (
            "As if rating periods closed now: 2 games included; the first period ends 2025-11-30 23:59 Europe/Berlin."
            in closed_lines
        )
    assert read_lines("explain", "c-5")[-2:] == [
        "Not counted: its rating period is not closed yet.",
        "The period ends 2025-11-30 23:59 Europe/Berlin. To score the game as if closed now: "
        f"ratings explain c-5 {LADDER} --close-now",
    ]
    assert read_lines("explain", "c-5", "--close-now")[2] == (
        "Scored with its rating period, from 2025-11-01 00:00 to 2025-11-30 23:59, as if the period closed now."
    )
    dated_lines = read_lines("standings", "--as-of", "2025-11-10", "--rules", "glicko-month@1")
    assert any(
        line.startswith("Not scored yet: 1 game")
        and line.endswith(f"ratings standings {LADDER} --close-now --as-of 2025-11-10 --rules glicko-month@1")
        for line in dated_lines
    )
    result = ratings("standings", "--as-of", "2025-09-10", db=db)
    assert "1 game in open rating periods" in result.stdout
    assert result.stderr.splitlines()[-1] == f"No player is on {LADDER} before its first rating period closes."


@pytest.mark.ledger(make=create_monthly_ledger, store="sqlite")
def test_period_that_is_over_closes_with_the_next_event(
    ratings: Ratings, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A period that is over closes with the next event; before that, the text names the command, and previews
    announce it."""
    set_clock(monkeypatch, "2025-12-05T12:00:00Z")
    stdout = ratings("standings", db=db).stdout
    command = f"ratings standings {LADDER} --as-of 2025-11-30"
    assert f"No later event has closed it; to score the games: {command}" in stdout
    end_standings = read_output(ratings, db, "standings", "--as-of", "2025-11-30")
    preview = record_game(ratings, db, "c-6", "12-04", "anna", "ben", options=("--dry-run", "--format", "json"))
    impact = json.loads(preview.stdout)
    assert impact["periods"] == [{"ladder": LADDER, "recomputed": 0, "closed": 1, "waiting": 0}]
    assert {row["player"]: row["after"] for row in impact["changes"]} == {
        row["player"]: row["points"] for row in end_standings["rows"]
    }
    record_game(ratings, db, "c-6", "12-04", "anna", "ben")
    assert read_output(ratings, db, "standings")["digest"] == end_standings["digest"]
    # before c-5, one game waits, and the command keeps the position
    assert (
        ratings("standings", "--known-at", 6, db=db)
        .stdout.splitlines()[1]
        .endswith(f"No later event has closed it; to score the game: {command} --known-at 6")
    )


@pytest.mark.ledger(make=create_monthly_ledger)
def test_late_games_recompute_closed_periods(ratings: Ratings, db: str) -> None:
    """A preview says how many closed periods a late event recomputes; a game of the open period waits."""

    def preview_command(*arguments: str) -> Any:
        result = ratings(*arguments, "--dry-run", "--format", "json", db=db)
        assert result.exit_code == 0, result
        return json.loads(result.stdout)

    for day, recomputed, waiting in (("08-30", 3, 0), ("09-10", 2, 0), ("10-10", 1, 0), ("11-24", 0, 1)):
        output = record_game(ratings, db, "late", day, "cleo", "ben", options=("--dry-run", "--format", "json"))
        preview = json.loads(output.stdout)
        assert preview["periods"] == [{"ladder": LADDER, "recomputed": recomputed, "closed": 0, "waiting": waiting}]
    for arguments, recomputed in (
        (("void", "c-1", "--reason", "x"), 2),
        (("void", "c-2", "--reason", "x"), 2),
        (("correct", "c-3", "cleo", "anna", "--reason", "x"), 1),
        (("adjust", LADDER, "anna", "20", "--reason", "x", "--at", "2025-09-07"), 1),
        (("seed", LADDER, "dora", "rating=1600", "--reason", "x"), 0),
    ):
        preview = preview_command(*arguments)
        periods = preview.get("periods", [{"recomputed": 0}])
        assert periods[0]["recomputed"] == recomputed, arguments
    output = record_game(ratings, db, "late", "09-10", "cleo", "ben").stdout
    assert f"{LADDER}: 2 closed rating periods recomputed." in output.splitlines()
    output = record_game(ratings, db, "late-2", "11-24", "cleo", "ben").stdout
    waits = f"{LADDER}: 1 game to be scored when the rating period ends, 2025-11-30 23:59 Europe/Berlin."
    assert waits in output.splitlines()


@pytest.mark.ledger(make=create_monthly_ledger)
def test_open_periods_are_not_published(ratings: Ratings, db: str) -> None:
    """A list with games in open periods is refused with commands that work; a published list shows all columns of
    state."""
    message = (
        f"{LADDER} has 2 games in rating periods that are not closed; "
        "the first period ends at 2025-11-30 23:59 Europe/Berlin; "
        f"to leave them out: ratings publish {LADDER} --as-of 2025-10-31"
    )
    assert_publish_refused(ratings, db, (), message)
    message = (
        f"{LADDER} has 1 game in rating periods that are not closed; "
        "the first period ended at 2025-10-31 23:59 Europe/Berlin; "
        f"to leave them out: ratings publish {LADDER} --as-of 2025-09-30; "
        f"to include that period: ratings publish {LADDER} --as-of 2025-10-31"
    )
    assert_publish_refused(ratings, db, ("--as-of", "2025-10-15"), message)
    message = (
        f"{LADDER} has 1 game in rating periods that are not closed; "
        "the first period ended at 2025-09-30 23:59 Europe/Berlin; "
        f"to include that period: ratings publish {LADDER} --as-of 2025-09-30"
    )
    assert_publish_refused(ratings, db, ("--as-of", "2025-09-10"), message)
    as_of = ("--as-of", "2025-10-31")
    assert ratings("publish", LADDER, *as_of, db=db).exit_code == 0
    published_list = read_output(ratings, db, "standings", LADDER, "--as-published")
    standings = read_output(ratings, db, "standings", LADDER, *as_of)
    assert published_list["digest"] == standings["digest"]
    # a published state is that at the end of the last closed period
    last_rows = {
        player: read_output(ratings, db, "history", player, *as_of)["rows"][-1] for player in ("anna", "ben", "cleo")
    }
    for row in published_list["rows"]:
        assert row["state"] == last_rows[row["player"]]["state"]
        assert row["state_exact"] == last_rows[row["player"]]["state_exact"]
        assert row["provisional"] is True
    assert " ± 263?" in ratings("standings", LADDER, "--as-published", db=db).stdout
    assert ratings("verify", db=db).exit_code == 0
    for options in (("--as-published", "--close-now"), ("--as-published", "--rules", "glicko-month@1")):
        assert ratings("standings", LADDER, *options, db=db).exit_code == 2


def assert_publish_refused(ratings: Ratings, db: str, options: tuple[str, ...], message: str) -> None:
    """Assert that publishing is refused with this message and writes nothing."""
    result = ratings("publish", LADDER, *options, "--format", "json", db=db)
    assert result.exit_code == 1
    output = json.loads(result.stdout)
    assert output["rejected"] == [{"code": "period-open", "message": message}]
    assert output["appended"] == 0


@pytest.mark.ledger(make=create_monthly_ledger, store="sqlite")
def test_monthly_list_waits_for_its_last_week(ratings: Ratings, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A monthly list of games that are rated by week is refused until its last week is over; then it can be published,
    also by `publish --due`."""
    publish_rules(ratings, db, WEEKLY)
    record_game(ratings, db, "w-1", "09-30", "anna", "ben")
    set_clock(monkeypatch, "2025-10-02T12:00:00Z")
    weekly = "glicko-week/2025-09"
    result = ratings("publish", weekly, "--as-of", "2025-10-01", "--dry-run", db=db)
    assert result.exit_code == 1
    assert "period-open: glicko-week/2025-09 has 1 game in rating periods" in result.stderr
    assert result.stderr.endswith(
        "ends at 2025-10-05 23:59 Europe/Berlin; publish the list when all of these periods are closed\n"
    )
    set_clock(monkeypatch, "2025-12-01T12:00:00Z")
    assert ratings("publish", weekly, "--dry-run", db=db).exit_code == 0
    # nothing was recorded after November's last week
    result = ratings("publish", "--due", "--dry-run", db=db)
    assert (result.exit_code, "glicko-week/2025-11" in result.stdout) == (0, True)


@pytest.mark.ledger(make=create_monthly_ledger, store="sqlite")
def test_close_now_applies_to_every_query_of_a_snapshot(ratings: Ratings, db: str) -> None:
    """`close_now` of a snapshot applies to every query; comparisons of coordinates refuse it."""
    with open_ledger(db) as ledger:
        open_snapshot, closed_snapshot = ledger.at(), ledger.at(close_now=True)
        assert [row.games for row in open_snapshot.ladders().rows] == [3]
        assert [row.games for row in closed_snapshot.ladders().rows] == [5]
        points = {row.player: row.points for row in closed_snapshot.standings(LADDER).rows}
        assert {row.player: row.points for row in closed_snapshot.everybody().rows} == points
        assert {row.player: row.points for row in closed_snapshot.overview(LADDER).rows} == points
        assert closed_snapshot.profile(LADDER, "anna").standing.points == points["anna"]
        assert ledger.at("2025-11-10", close_now=True).standings(LADDER).games == 4
        assert ledger.at(known_at=7, close_now=True).standings(LADDER).games == 5
        assert [row.change.cause for row in closed_snapshot.changes(LADDER) if row.player == "anna"][-1] == "period"
        with pytest.raises(BadArgument, match="close_now"):
            ledger.compare(open_snapshot, closed_snapshot)
        with pytest.raises(BadArgument, match="close_now"):
            ledger.at(close_now="yes")  # type: ignore[arg-type]


def create_elo_ledger(ratings: Ratings, url: str) -> None:
    """Create a ledger with a game of chess under Elo."""
    assert ratings("init", "--for", "chess", db=url).exit_code == 0
    record_game(ratings, url, "c-1", "09-05", "anna", "ben")


@pytest.mark.ledger(make=create_elo_ledger, store="sqlite")
def test_close_now_does_not_change_ladders_without_periods(ratings: Ratings, db: str) -> None:
    """On a ladder without rating periods, --close-now changes nothing and a note says so."""
    result = ratings("standings", "elo-chess/all", "--close-now", db=db)
    assert result.stdout == ratings("standings", "elo-chess/all", db=db).stdout
    assert result.stderr == "note: elo-chess has no rating periods: every game is scored separately\n"
    assert "period" not in read_output(ratings, db, "standings", "elo-chess/all")
    assert ratings("explain", "--change", "anna", "--from", "1", "--close-now", db=db).exit_code == 2
