"""`explain` on lists: the points of a game, the parts of a score, the reason for a missing rank; and `statistics`."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledgers import run_command
from list_games import (
    KNIGHTS_MARCH,
    KNIGHTS_YEAR,
    MARCH,
    OPEN_MARCH,
    SHIPPED,
    YEAR,
    build_list_game,
    create_list_ledger,
)
from output_filters import strip_decimals
from own_rules import load_built_in_rule, substitute_rule, withdraw_rule
from stores import make_ruled_ledger

Ratings = Callable[..., Any]

FEBRUARY = "catan-monthly/7/basic/2010-02"


pytestmark = pytest.mark.ledger(make=create_list_ledger, store="sqlite")


def read_output(ratings: Ratings, db: str, *arguments: str) -> dict[str, Any]:
    result = ratings(*arguments, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    return dict(strip_decimals(json.loads(result.stdout)))


@pytest.mark.parametrize("ladder", [MARCH, OPEN_MARCH])
def test_explained_month_games_form_a_chain(ladder: str, db: str, ratings: Ratings) -> None:
    """Each game of a month is explained from the sum after the previous game.

    Points before and after are sums over the month; the points of a game are minted, term by term.
    """
    sums: dict[str, Fraction] = {}
    for game_id in ("late", *(f"mar-{day}" for day in range(1, 8))):
        explanation = read_output(ratings, db, "explain", game_id, ladder)
        total_change = Fraction(0)
        for row in explanation["players"]:
            before, change, after = (Fraction(row[member]) for member in ("before", "change", "after"))
            assert (before, before + change) == (sums.get(row["player"], 0), after)
            assert sum(Fraction(term["amount"]) for term in row["terms"]) == change
            sums[row["player"]] = after
            total_change += change
        assert explanation["accounts"] == [
            {"account": "minted", "amount": str(-total_change)},
            {"account": "burned", "amount": "0"},
        ]
    standings = read_output(ratings, db, "standings", ladder)["rows"]
    assert {row["player"]: Fraction(row["points"]) * row["games"] for row in standings} == sums


def test_tie_explanation_names_shared_places(db: str, ratings: Ratings) -> None:
    """The explanation of a game with a tie names the shared places."""
    players = read_output(ratings, db, "explain", "mar-7", MARCH)["players"]

    assert [(row["player"], row["place"], row["before"], row["change"], row["after"]) for row in players] == [
        ("anna", 1, "24", "3", "27"),
        ("ben", 1, "24", "3", "27"),
        ("cleo", 3, "12", "1", "13"),
    ]
    assert players[0]["terms"][0]["detail"] == "tied: 4 + 2, the points of places 1 and 2 of 3, divided by 2"


def test_seat_that_changed_hands_scores_nothing(db: str, ratings: Ratings) -> None:
    """Neither player of a seat that changed hands gets points, and the explanation gives the reason."""
    players = read_output(ratings, db, "explain", "feb-1", FEBRUARY)["players"]

    assert [(row["player"], row["change"]) for row in players] == [
        ("anna", "4"),
        ("ben", "2"),
        ("cleo", "0"),
        ("dora", "0"),
    ]
    assert ["neither player of a seat that changed hands" in row.get("why_not", "") for row in players] == [
        False,
        False,
        True,
        True,
    ]


UNCOUNTED = {
    "unrated": ("unrated", MARCH, "the game was not rated"),
    "the card game": ("card", "catan-monthly/7/card-game/2010-03", "leaves out the group card-game"),
    "another month": ("mar-7", "catan-monthly/7/basic/2010-04", "it belongs to catan-monthly/7/basic/2010-03"),
    "another city": ("mar-7", "catan-monthly/8/basic/2010-03", "it belongs to catan-monthly/7/basic/2010-03"),
    "the month of UTC": ("late", FEBRUARY, "it belongs to catan-monthly/7/basic/2010-03"),
    "later than asked for": ("mar-7", MARCH, "it was played after the as-of time", "--as-of", "2010-03-06"),
    "an annual list": ("mar-7", YEAR, f"the ladder sums the places on monthly lists; see {MARCH}"),
    "an annual list, the month of Berlin": ("late", YEAR, f"see {MARCH}"),
    "an annual list of another year": ("mar-7", "catan-annual/7/basic/2011", "it belongs to catan-annual/7/basic/2010"),
}


@pytest.mark.parametrize("case", UNCOUNTED.values(), ids=UNCOUNTED)
def test_uncounted_game_gets_a_reason(case: tuple[str, ...], db: str, ratings: Ratings) -> None:
    """The explanation of a game that does not count on a list gives the reason."""
    game_id, ladder, reason, *axes = case
    explanation = read_output(ratings, db, "explain", game_id, ladder, *axes)

    assert (explanation["counted"], {row["change"] for row in explanation["players"]}) == (False, {"0"})
    assert reason in explanation["why_not"]
    assert f"Not counted: {explanation['why_not']}." in ratings("explain", game_id, ladder, *axes, db=db).stdout


def test_score_explanation_shows_its_parts(db: str, ratings: Ratings) -> None:
    """The explanation of a player's score shows each of their games, the sum and the mean."""
    explanation = read_output(ratings, db, "explain", "anna", MARCH)

    assert (explanation["player"], explanation["rank"], explanation["points"]) == ("anna", 1, "27/7")
    assert [(row["game_id"], row["change"]) for row in explanation["games"]] == [
        ("mar-1", "5"),
        ("mar-2", "3"),
        ("mar-3", "5"),
        ("mar-4", "3"),
        ("mar-5", "5"),
        ("mar-6", "3"),
        ("mar-7", "3"),
        ("unrated", None),
    ]
    assert explanation["games"][-1]["why_not"] == "the game was not rated"
    assert [(term["term"], term["amount"]) for term in explanation["terms"]] == [("sum", "27"), ("mean", "27/7")]
    table = ratings("explain", "anna", MARCH, db=db).stdout
    assert table.startswith(f"anna on {MARCH}: rank 1, 3.86 points, 2 gold\nunder catan-monthly@2008-03, times")
    assert "27/7 = 3.8571" in table
    assert "mean,27/7,27 divided by 7" in ratings("explain", "anna", MARCH, "--format", "csv", db=db).stdout


def test_too_few_games_are_explained(db: str, ratings: Ratings) -> None:
    """The explanation of a player with too few games says how many of the required number they have."""
    explanation = read_output(ratings, db, "explain", "dora", MARCH)

    assert (explanation["rank"], explanation["points"], len(explanation["games"])) == (None, "1", 6)
    assert explanation["terms"][-1] == {"term": "no rank", "amount": None, "detail": "6 of 7 games; 1 more needed"}
    assert "no rank" in ratings("explain", "dora", MARCH, db=db).stdout


def test_yearly_score_shows_its_four_months(db: str, ratings: Ratings) -> None:
    """The explanation of a player on an annual list shows the four months of their score, and why they have no rank."""
    explanation = read_output(ratings, db, "explain", "cleo", YEAR)

    assert (explanation["rank"], explanation["points"], explanation["games"]) == (1, "304", [])
    assert [(term["term"], term["amount"]) for term in explanation["terms"]] == [
        ("2010-01", "1"),
        ("2010-03", "3"),
        ("missing", "150"),
        ("missing", "150"),
        ("sum", "304"),
    ]
    ben = read_output(ratings, db, "explain", "ben", KNIGHTS_YEAR)
    assert (ben["rank"], ben["points"], ben["terms"][-1]["term"]) == (None, "451", "no rank")
    assert "a free account at the end of the year" in ben["terms"][-1]["detail"]


@pytest.mark.parametrize("ladder", [MARCH, YEAR, "catan-monthly/7/basic/2999-12"])
def test_explaining_absent_player_is_refused(ladder: str, db: str, ratings: Ratings) -> None:
    """Explaining a player who is not on a list is refused."""
    result = ratings("explain", "zoe", ladder, db=db)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "zoe" in result.stderr


def test_game_uncounted_by_months_misses_year(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A game that no month counts does not count for the year either.

    The game has seven players, for which there are no points, and is recorded with --allow-uncounted.
    """
    copy = str(shutil.copy(db, tmp_path / "copy.db"))
    seven = build_list_game("seven", "2010-05-01T20:00:00Z", "anna ben cleo dora emil fay gus")
    assert ratings("import", "-", "--allow-uncounted", db=copy, input=json.dumps(seven)).exit_code == 0

    assert (
        read_output(ratings, copy, "standings", YEAR)["games"] == read_output(ratings, db, "standings", YEAR)["games"]
    )
    assert "see catan-monthly" not in read_output(ratings, copy, "explain", "seven", YEAR)["why_not"]


def test_annual_list_explains_a_substitute(
    copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings
) -> None:
    """If months count substitutes, a player who only substituted is on the annual list and explained."""
    name = copy_ledger_file(make_ruled_ledger)
    ruleset_text = (
        (SHIPPED / "catan-monthly-2008-03.toml")
        .read_text(encoding="utf-8")
        .replace('"none"            #', '"substitute"      #')
    )
    ruleset_text = ruleset_text.replace('version = "2008-03"', 'version = "counting"')
    (tmp_path / "counting.toml").write_text(ruleset_text, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "counting.toml", db=name).exit_code == 0
    games = [build_list_game(f"g{day}", f"2010-03-{day:02d}T20:00:00Z", "anna ben") for day in range(1, 8)]
    for game in games:
        game["data"]["participants"][0]["status"] = "abandoned"
        game["data"]["participants"].append({"player": "sub", "place": 1, "status": "substitute", "replaces": "anna"})
    ratings("import", "-", db=name, input="\n".join(map(json.dumps, games)))

    assert [row["player"] for row in read_output(ratings, name, "standings", YEAR)["rows"]] == ["sub", "ben"]
    assert read_output(ratings, name, "explain", "sub", YEAR)["points"] == "451"


STARS = {
    # by finished and started games: the stars (None below 20 games), and whether they are golden
    (19, 20): (3, True), (94, 99): (3, False), (95, 99): (3, True), (16, 20): (3, False), (79, 99): (2, False),
    (13, 20): (2, False), (64, 99): (1, False), (10, 20): (1, False), (49, 99): (0, False), (0, 20): (0, False),
    (20, 20): (3, True), (19, 19): (None, False), (1, 1): (None, False),
}  # fmt: skip


def build_chess_game(
    game_id: str, number: int, player: str, status: str = "finished", **members: Any
) -> dict[str, Any]:
    """Return a game against a computer, an hour after the one before."""
    moment = datetime(2020, 1, 1) + timedelta(hours=number)
    participants = [{"player": player, "place": 1, "status": status}, {"player": "computer", "place": 2}]
    data = {"game_id": game_id, "game": "chess", "participants": participants, **members}
    return {"type": "game.recorded", "occurred_at": f"{moment.isoformat()}Z", "data": data}


@pytest.fixture(scope="module")
def starred_db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a ledger with a player for each case of `STARS`, whose unfinished games are the last, and a player for
    each of `STATISTICS_CASES`."""
    folder = tmp_path_factory.mktemp("stars")
    events = [
        build_chess_game(
            f"{finished_count}-{started}-{n}",
            n,
            f"{finished_count} of {started}",
            "finished" if n < finished_count else "abandoned",
        )
        for finished_count, started in STARS
        for n in range(started)
    ]
    events += [build_chess_game(f"old {n}", n, "reformed", "removed" if n < 30 else "finished") for n in range(129)]
    events += [
        build_chess_game(f"new {n}", n, "relapsed", "surrendered" if n == 128 else "finished") for n in range(129)
    ]
    events += [build_chess_game(f"helped {n}", n, "helper") for n in range(19)]
    for n in range(30):
        game = build_chess_game(f"help {n}", n, "leaver", "abandoned")
        game["data"]["participants"].append(
            {"player": "helper", "place": 1, "status": "substitute", "replaces": "leaver"}
        )
        events.append(game)
    events += [build_chess_game(f"agreed {n}", n, "even", "abandoned", aborted=True) for n in range(9)]
    events += [build_chess_game(f"even {n}", 20 + n, "even", rated=n > 9) for n in range(20)]
    events += [build_chess_game(f"void {n}", 50 + n, "even", "abandoned") for n in range(2)]
    events += [
        {"type": "game.voided", "occurred_at": "2021-01-01T00:00:00Z", "data": {"game_id": f"void {n}", "reason": "x"}}
        for n in range(2)
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    name = str(folder / "ratings.db")
    assert run_command("init", "--no-rules", db=name) == 0
    assert run_command("import", str(folder / "events.jsonl"), db=name) == 0
    return name


@pytest.mark.parametrize(("finished", "started"), STARS)
def test_stars_have_inclusive_thresholds(finished: int, started: int, starred_db: str, ratings: Ratings) -> None:
    """The thresholds for stars are inclusive, and no stars are given before 20 games."""
    player = f"{finished} of {started}"
    statistics = read_output(ratings, starred_db, "statistics", player)

    assert (statistics["started"], statistics["finished"], statistics["ratio"]) == (
        started,
        finished,
        str(Fraction(finished, started)),
    )
    assert (statistics["stars"], statistics["golden"]) == STARS[finished, started]
    line = next(line for line in ratings("statistics", player, db=starred_db).stdout.splitlines() if "stars" in line)
    stars, golden = STARS[finished, started]
    assert line.split("stars")[1].strip() == ("after 20 games" if stars is None else f"{stars}{' golden' * golden}")


STATISTICS_CASES = {
    "the last 99 games, all finished": ("reformed", 129, 99, 0, "1", 3),
    "the last 99 games, the last one left": ("relapsed", 129, 128, 0, "98/99", 3),
    "games taken over count neither way": ("helper", 19, 19, 30, "1", None),
    "games left to a substitute are not finished": ("leaver", 30, 0, 0, "0", 0),
    "aborted and voided games count neither way, unrated ones do": ("even", 20, 20, 0, "1", 3),
}


@pytest.mark.parametrize("case", STATISTICS_CASES.values(), ids=STATISTICS_CASES)
def test_statistics_rate_the_last_99_games(case: tuple[Any, ...], starred_db: str, ratings: Ratings) -> None:
    """Statistics leave out games taken over, aborted or voided; their ratio and stars are of the last 99 games."""
    statistics = read_output(ratings, starred_db, "statistics", case[0])

    values = tuple(statistics[name] for name in ("player", "started", "finished", "substituted", "ratio", "stars"))
    assert values == case


def test_statistics_respect_as_of_and_game(starred_db: str, ratings: Ratings) -> None:
    """Statistics with --as-of or --game count only the matching games."""
    early_statistics = read_output(ratings, starred_db, "statistics", "reformed", "--as-of", "2020-01-02T23:00:00Z")

    # 48 games in two days, the first 30 of them left
    assert (
        early_statistics["started"],
        early_statistics["finished"],
        early_statistics["ratio"],
        early_statistics["stars"],
    ) == (48, 18, "3/8", 0)
    assert read_output(ratings, starred_db, "statistics", "reformed", "--game", "chess")["started"] == 129
    assert ratings("statistics", "reformed", "--game", "catan", db=starred_db).exit_code == 1


def test_gold_sums_closed_lists_only(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gold in the statistics is only that of lists that are closed, now or at `--as-of`."""

    def read_gold(player: str, *options: str) -> dict[str, int]:
        statistics = read_output(ratings, db, "statistics", player, *options)
        assert statistics["gold"] == sum(statistics["gold_by_list"].values())
        return dict(statistics["gold_by_list"])

    january = "catan-monthly/7/basic/2010-01"
    assert read_gold("anna") == {MARCH: 2, KNIGHTS_MARCH: 1}
    assert read_gold("cleo") == {january: 2, MARCH: 1}
    assert read_gold("dora") == {}
    assert read_gold("cleo", "--game", "catan") == {january: 2, MARCH: 1}
    assert read_gold("cleo", "--as-of", "2010-03-15") == {january: 2}
    for moment, gold in (("2010-03-31T21:59:59Z", {january: 2}), ("2010-03-31T22:00:00Z", {january: 2, MARCH: 1})):
        since_1970 = datetime.fromisoformat(moment) - datetime.fromisoformat("1970-01-01T00:00:00Z")
        with monkeypatch.context() as patch:
            patch.setattr(
                "ratings_ledger.ledger.clock.now", lambda since=since_1970: since // timedelta(microseconds=1)
            )
            assert read_gold("cleo") == gold


def test_statistics_without_games_are_refused(db: str, ratings: Ratings) -> None:
    """Statistics of a player without matching games are refused."""
    result = ratings("statistics", "zoe", db=db)

    assert (result.exit_code, result.stdout, "'zoe' has not played" in result.stderr) == (1, "", True)
    assert ratings("statistics", "anna", "--game", "chess", db=db).exit_code == 1


def fail_to_score(*arguments: Any) -> int:
    """Fail as a rule that cannot score."""
    raise ZeroDivisionError("no points today")


def test_failing_rule_is_not_called_a_bug(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a rule fails while gold is computed, its error is reported and not called a bug of the program."""
    substitute_rule(monkeypatch, load_built_in_rule("catan-points/1")._replace(score=fail_to_score))
    result = ratings("statistics", "anna", db=db)

    assert "this is a bug" not in result.stderr
    assert "no points today" in result.stderr


def test_year_keeps_its_standings_without_the_rule_of_its_months(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the rule of the months is missing, a rebuild keeps the previous annual standings.

    A year without its months is unknown, not empty.
    """
    copy = str(shutil.copy(db, tmp_path / "copy.db"))

    def read_stored_year() -> list[Any]:
        with closing(sqlite3.connect(copy)) as connection:
            query = "SELECT rank, player, places FROM live_standings WHERE ladder = ? ORDER BY ordinal"
            return connection.execute(query, [YEAR]).fetchall()

    assert ratings("rebuild", db=copy).exit_code == 0
    before = read_stored_year()
    withdraw_rule(monkeypatch, "catan-points/1")

    assert ratings("standings", YEAR, db=copy).exit_code != 0
    assert ratings("rebuild", db=copy).exit_code == 1
    assert read_stored_year() == before
