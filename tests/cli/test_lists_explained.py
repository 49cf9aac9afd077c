"""`explain` on lists: what a game gave, how somebody's score comes about, why he has no rank; and `statistics`."""

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
from list_games import KNIGHTS_MARCH, KNIGHTS_YEAR, MARCH, OPEN_MARCH, SHIPPED, YEAR, list_games, played
from output_filters import strip_decimals
from own_rules import load_built_in_rule, substitute_rule, withdraw_rule
from stores import make_ruled_ledger

Ratings = Callable[..., Any]

FEBRUARY = "catan-monthly/7/basic/2010-02"


pytestmark = pytest.mark.ledger(make=list_games, store="sqlite")


def read(ratings: Ratings, db: str, *arguments: str) -> dict[str, Any]:
    result = ratings(*arguments, "--format", "json", db=db)
    assert (result.exit_code, result.stderr) == (0, "")
    return dict(strip_decimals(json.loads(result.stdout)))


@pytest.mark.parametrize("ladder", [MARCH, OPEN_MARCH])
def test_explained_month_games_form_a_chain(ladder: str, db: str, ratings: Ratings) -> None:
    """Explained one by one, each game of a month starts where the previous one ended.

    Points before and after are sums over the month; what a game gave is minted, term by term.
    """
    sums: dict[str, Fraction] = {}
    for game_id in ("late", *(f"mar-{day}" for day in range(1, 8))):
        found = read(ratings, db, "explain", game_id, ladder)
        given = Fraction(0)
        for row in found["players"]:
            before, change, after = (Fraction(row[member]) for member in ("before", "change", "after"))
            assert (before, before + change) == (sums.get(row["player"], 0), after)
            assert sum(Fraction(term["amount"]) for term in row["terms"]) == change
            sums[row["player"]] = after
            given += change
        assert found["accounts"] == [{"account": "minted", "amount": str(-given)}, {"account": "burned", "amount": "0"}]
    standings = read(ratings, db, "standings", ladder)["rows"]
    assert {row["player"]: Fraction(row["points"]) * row["games"] for row in standings} == sums


def test_tie_explanation_names_shared_places(db: str, ratings: Ratings) -> None:
    """Explaining a game with a tie names the places that are shared."""
    found = read(ratings, db, "explain", "mar-7", MARCH)["players"]

    assert [(row["player"], row["place"], row["before"], row["change"], row["after"]) for row in found] == [
        ("anna", 1, "24", "3", "27"), ("ben", 1, "24", "3", "27"), ("cleo", 3, "12", "1", "13"),
    ]  # fmt: skip
    assert found[0]["terms"][0]["detail"] == "tied: 4 + 2, the points of places 1 and 2 of 3, divided by 2"


def test_seat_that_changed_hands_scores_nothing(db: str, ratings: Ratings) -> None:
    """Neither player of a seat that changed hands gets points, and the explanation says why."""
    found = read(ratings, db, "explain", "feb-1", FEBRUARY)["players"]

    assert [(row["player"], row["change"]) for row in found] == [
        ("anna", "4"), ("ben", "2"), ("cleo", "0"), ("dora", "0"),
    ]  # fmt: skip
    assert ["neither player of a seat that changed hands" in row.get("why_not", "") for row in found] == [
        False, False, True, True,
    ]  # fmt: skip


UNCOUNTED = {
    "unrated": ("unrated", MARCH, "the game was not rated"),
    "the card game": ("card", "catan-monthly/7/card-game/2010-03", "leaves out the group card-game"),
    "another month": ("mar-7", "catan-monthly/7/basic/2010-04", "it belongs to catan-monthly/7/basic/2010-03"),
    "another city": ("mar-7", "catan-monthly/8/basic/2010-03", "it belongs to catan-monthly/7/basic/2010-03"),
    "the month of UTC": ("late", FEBRUARY, "it belongs to catan-monthly/7/basic/2010-03"),
    "later than asked for": ("mar-7", MARCH, "the game was played later than --as-of", "--as-of", "2010-03-06"),
    "an annual list": ("mar-7", YEAR, f"it sums the places of months; see {MARCH}"),
    "an annual list, the month of Berlin": ("late", YEAR, f"see {MARCH}"),
    "an annual list of another year": ("mar-7", "catan-annual/7/basic/2011", "it belongs to catan-annual/7/basic/2010"),
}


@pytest.mark.parametrize("case", UNCOUNTED.values(), ids=UNCOUNTED)
def test_uncounted_game_gets_a_reason(case: tuple[str, ...], db: str, ratings: Ratings) -> None:
    """Explaining a game that does not count on a list gives the reason."""
    game_id, ladder, reason, *axes = case
    found = read(ratings, db, "explain", game_id, ladder, *axes)

    assert (found["counted"], {row["change"] for row in found["players"]}) == (False, {"0"})
    assert reason in found["why_not"]
    assert f"Not counted: {found['why_not']}." in ratings("explain", game_id, ladder, *axes, db=db).stdout


def test_score_explanation_shows_its_parts(db: str, ratings: Ratings) -> None:
    """Explaining a player's score shows each of their games, the sum and the mean."""
    found = read(ratings, db, "explain", "anna", MARCH)

    assert (found["player"], found["rank"], found["points"]) == ("anna", 1, "27/7")
    assert [(row["game_id"], row["change"]) for row in found["games"]] == [
        ("mar-1", "5"), ("mar-2", "3"), ("mar-3", "5"), ("mar-4", "3"), ("mar-5", "5"), ("mar-6", "3"), ("mar-7", "3"),
        ("unrated", None),
    ]  # fmt: skip
    assert found["games"][-1]["why_not"] == "the game was not rated"
    assert [(term["term"], term["amount"]) for term in found["terms"]] == [("sum", "27"), ("mean", "27/7")]
    table = ratings("explain", "anna", MARCH, db=db).stdout
    assert table.startswith(f"anna on {MARCH}: rank 1, 3.86 points, 2 gold\nunder catan-monthly@2008-03, times")
    assert "27/7 = 3.8571" in table
    assert "mean,27/7,27 divided by 7" in ratings("explain", "anna", MARCH, "--format", "csv", db=db).stdout


def test_too_few_games_are_explained(db: str, ratings: Ratings) -> None:
    """Explaining a player with too few games says how many of the required number they have."""
    found = read(ratings, db, "explain", "dora", MARCH)

    assert (found["rank"], found["points"], len(found["games"])) == (None, "1", 6)
    assert found["terms"][-1] == {"term": "no rank", "amount": None, "detail": "6 of 7 games; 1 is missing"}
    assert "no rank" in ratings("explain", "dora", MARCH, db=db).stdout


def test_yearly_score_shows_its_four_months(db: str, ratings: Ratings) -> None:
    """Explaining a player on an annual list shows the four months that make up their score."""
    found = read(ratings, db, "explain", "cleo", YEAR)

    assert (found["rank"], found["points"], found["games"]) == (1, "304", [])
    assert [(term["term"], term["amount"]) for term in found["terms"]] == [
        ("2010-01", "1"), ("2010-03", "3"), ("missing", "150"), ("missing", "150"), ("sum", "304"),
    ]  # fmt: skip
    ben = read(ratings, db, "explain", "ben", KNIGHTS_YEAR)
    assert (ben["rank"], ben["points"], ben["terms"][-1]["term"]) == (None, "451", "no rank")
    assert "a free account at the end of the year" in ben["terms"][-1]["detail"]


@pytest.mark.parametrize("ladder", [MARCH, YEAR, "catan-monthly/7/basic/2999-12"])
def test_explaining_an_absent_player_is_refused(ladder: str, db: str, ratings: Ratings) -> None:
    """Explaining a player who is not on a list is refused."""
    result = ratings("explain", "zoe", ladder, db=db)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "zoe" in result.stderr


def test_game_uncounted_by_months_misses_year(db: str, tmp_path: Path, ratings: Ratings) -> None:
    """A game that no month counts does not count for the year either.

    The game has seven players, for which there are no points, and is recorded all the same.
    """
    copy = str(shutil.copy(db, tmp_path / "copy.db"))
    seven = played("seven", "2010-05-01T20:00:00Z", "anna ben cleo dora emil fay gus")
    assert ratings("import", "-", "--allow-uncounted", db=copy, input=json.dumps(seven)).exit_code == 0

    assert read(ratings, copy, "standings", YEAR)["games"] == read(ratings, db, "standings", YEAR)["games"]
    assert "see catan-monthly" not in read(ratings, copy, "explain", "seven", YEAR)["why_not"]


def test_annual_list_explains_substitute(copied_file: Callable[..., str], tmp_path: Path, ratings: Ratings) -> None:
    """If months count substitutes, a player who only substituted is on the annual list and explained."""
    name = copied_file(make_ruled_ledger)
    changed = (
        (SHIPPED / "catan-monthly-2008-03.toml")
        .read_text(encoding="utf-8")
        .replace('"none"            #', '"substitute"      #')
    )
    changed = changed.replace('version = "2008-03"', 'version = "counting"')
    (tmp_path / "counting.toml").write_text(changed, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "counting.toml", db=name).exit_code == 0
    taken = [played(f"g{day}", f"2010-03-{day:02d}T20:00:00Z", "anna ben") for day in range(1, 8)]
    for one in taken:
        one["data"]["participants"][0]["status"] = "abandoned"
        one["data"]["participants"].append({"player": "sub", "place": 1, "status": "substitute", "replaces": "anna"})
    ratings("import", "-", db=name, input="\n".join(map(json.dumps, taken)))

    assert [row["player"] for row in read(ratings, name, "standings", YEAR)["rows"]] == ["sub", "ben"]
    assert read(ratings, name, "explain", "sub", YEAR)["points"] == "451"


STARS = {
    # finished of started, from 20 games on: stars, and whether they are golden
    (19, 20): (3, True), (94, 99): (3, False), (95, 99): (3, True), (16, 20): (3, False), (79, 99): (2, False),
    (13, 20): (2, False), (64, 99): (1, False), (10, 20): (1, False), (49, 99): (0, False), (0, 20): (0, False),
    (20, 20): (3, True), (19, 19): (None, False), (1, 1): (None, False),
}  # fmt: skip


def chess(game_id: str, number: int, player: str, status: str = "finished", **members: Any) -> dict[str, Any]:
    """A game against some computer, an hour after the one before."""
    moment = datetime(2020, 1, 1) + timedelta(hours=number)
    participants = [{"player": player, "place": 1, "status": status}, {"player": "computer", "place": 2}]
    data = {"game_id": game_id, "game": "chess", "participants": participants, **members}
    return {"type": "game.recorded", "occurred_at": f"{moment.isoformat()}Z", "data": data}


@pytest.fixture(scope="module")
def starred(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger with somebody for each of the stars, who left his last games; and some whose games do not count."""
    folder = tmp_path_factory.mktemp("stars")
    facts = [
        chess(f"{done}-{started}-{n}", n, f"{done} of {started}", "finished" if n < done else "abandoned")
        for done, started in STARS
        for n in range(started)
    ]
    facts += [chess(f"old {n}", n, "reformed", "removed" if n < 30 else "finished") for n in range(129)]
    facts += [chess(f"new {n}", n, "relapsed", "surrendered" if n == 128 else "finished") for n in range(129)]
    facts += [chess(f"helped {n}", n, "helper") for n in range(19)]
    for n in range(30):
        helped = chess(f"help {n}", n, "leaver", "abandoned")
        helped["data"]["participants"].append(
            {"player": "helper", "place": 1, "status": "substitute", "replaces": "leaver"}
        )
        facts.append(helped)
    facts += [chess(f"agreed {n}", n, "even", "abandoned", aborted=True) for n in range(9)]
    facts += [chess(f"even {n}", 20 + n, "even", rated=n > 9) for n in range(20)]
    facts += [chess(f"void {n}", 50 + n, "even", "abandoned") for n in range(2)]
    facts += [
        {"type": "game.voided", "occurred_at": "2021-01-01T00:00:00Z", "data": {"game_id": f"void {n}", "reason": "x"}}
        for n in range(2)
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts), encoding="utf-8")
    name = str(folder / "ratings.db")
    assert run_command("init", "--no-rules", db=name) == 0
    assert run_command("import", str(folder / "events.jsonl"), db=name) == 0
    return name


@pytest.mark.parametrize(("done", "started"), STARS)
def test_stars_have_inclusive_thresholds(done: int, started: int, starred: str, ratings: Ratings) -> None:
    """The thresholds for stars are inclusive, and no stars are given before 20 games."""
    player = f"{done} of {started}"
    found = read(ratings, starred, "statistics", player)

    assert (found["started"], found["finished"], found["ratio"]) == (started, done, str(Fraction(done, started)))
    assert (found["stars"], found["golden"]) == STARS[done, started]
    line = next(line for line in ratings("statistics", player, db=starred).stdout.splitlines() if "stars" in line)
    stars, golden = STARS[done, started]
    assert line.split("stars")[1].strip() == ("after 20 games" if stars is None else f"{stars}{' golden' * golden}")


OTHERS = {
    "the last 99 games, all finished": ("reformed", 129, 99, 0, "1", 3),
    "the last 99 games, the last one left": ("relapsed", 129, 128, 0, "98/99", 3),
    "games taken over count neither way": ("helper", 19, 19, 30, "1", None),
    "games left to a substitute are not finished": ("leaver", 30, 0, 0, "0", 0),
    "aborted and voided games count neither way, unrated ones do": ("even", 20, 20, 0, "1", 3),
}


@pytest.mark.parametrize("case", OTHERS.values(), ids=OTHERS)
def test_statistics_count_the_right_games(case: tuple[Any, ...], starred: str, ratings: Ratings) -> None:
    """Statistics leave out games taken over, aborted or voided, and rate only the last 99 games."""
    found = read(ratings, starred, "statistics", case[0])

    told = tuple(found[name] for name in ("player", "started", "finished", "substituted", "ratio", "stars"))
    assert told == case


def test_statistics_respect_as_of_and_game(starred: str, ratings: Ratings) -> None:
    """Statistics with `--as-of` or `--game` count only the matching games."""
    early = read(ratings, starred, "statistics", "reformed", "--as-of", "2020-01-02T23:00:00Z")

    # 48 games in two days, the first 30 of them left
    assert (early["started"], early["finished"], early["ratio"], early["stars"]) == (48, 18, "3/8", 0)
    assert read(ratings, starred, "statistics", "reformed", "--game", "chess")["started"] == 129
    assert ratings("statistics", "reformed", "--game", "catan", db=starred).exit_code == 1


def test_gold_sums_closed_lists_only(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gold in the statistics sums only the lists that are closed at the moment asked about."""

    def gold(player: str, *options: str) -> dict[str, int]:
        found = read(ratings, db, "statistics", player, *options)
        assert found["gold"] == sum(found["gold_by_list"].values())
        return dict(found["gold_by_list"])

    january = "catan-monthly/7/basic/2010-01"
    assert gold("anna") == {MARCH: 2, KNIGHTS_MARCH: 1}
    assert gold("cleo") == {january: 2, MARCH: 1}
    assert gold("dora") == {}
    assert gold("cleo", "--game", "catan") == {january: 2, MARCH: 1}
    assert gold("cleo", "--as-of", "2010-03-15") == {january: 2}
    for moment, closed in (("2010-03-31T21:59:59Z", {january: 2}), ("2010-03-31T22:00:00Z", {january: 2, MARCH: 1})):
        since_1970 = datetime.fromisoformat(moment) - datetime.fromisoformat("1970-01-01T00:00:00Z")
        with monkeypatch.context() as patch:
            patch.setattr(
                "ratings_ledger.ledger.clock.now", lambda since=since_1970: since // timedelta(microseconds=1)
            )
            assert gold("cleo") == closed


def test_statistics_without_games_are_refused(db: str, ratings: Ratings) -> None:
    """Statistics of a player who has no matching games are refused."""
    result = ratings("statistics", "zoe", db=db)

    assert (result.exit_code, result.stdout, "'zoe' has not played" in result.stderr) == (1, "", True)
    assert ratings("statistics", "anna", "--game", "chess", db=db).exit_code == 1


def broken(*arguments: Any) -> int:
    """A rule that cannot score."""
    raise ZeroDivisionError("no points today")


def test_failing_rule_is_no_program_bug(db: str, ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a rule fails while gold is computed, its error is reported and not called a program bug."""
    substitute_rule(monkeypatch, load_built_in_rule("catan-points/1")._replace(score=broken))
    result = ratings("statistics", "anna", db=db)

    assert "this is a bug" not in result.stderr
    assert "no points today" in result.stderr


def test_years_survive_a_missing_month_rule(
    db: str, tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the rule of the months is missing, a rebuild keeps the previous annual standings.

    A year without its months is unknown; it is not empty.
    """
    copy = str(shutil.copy(db, tmp_path / "copy.db"))

    def stored() -> list[Any]:
        with closing(sqlite3.connect(copy)) as connection:
            query = "SELECT rank, player, places FROM live_standings WHERE ladder = ? ORDER BY ordinal"
            return connection.execute(query, [YEAR]).fetchall()

    assert ratings("rebuild", db=copy).exit_code == 0
    before = stored()
    withdraw_rule(monkeypatch, "catan-points/1")

    assert ratings("standings", YEAR, db=copy).exit_code != 0
    assert ratings("rebuild", db=copy).exit_code == 1
    assert stored() == before
