"""A table of clubs beside that of persons, through the command line: drawn seasons against an oracle, in all answers,
stored rows and SQL; corrections, adjustments, and what is refused."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from sqlalchemy import text

from tests.ledgers import open_for_reading
from tests.projections import club_seasons
from tests.projections.club_seasons import Race

Ratings = Callable[..., Any]
TAKES = ("sum", "best")
LABELS = [("Beta Racing", "Beta"), ("Delta", "Gamma")]


@pytest.fixture
def races() -> list[Race]:
    """Two seasons of six races."""
    return club_seasons.draw_races(seed=11, rounds=6)


@pytest.fixture
def raced(ratings: Ratings, store: str, races: list[Race], tmp_path: Any) -> str:
    """A ledger with the races, the rulesets of drivers and of clubs, and clubs that were renamed."""
    assert ratings("init", "--zone", "UTC", db=store).exit_code == 0
    for name in ("drivers", *TAKES):
        members = "" if name == "drivers" else f'entrant = "club"\ntakes = "{name}"'
        file = tmp_path / f"{name}.toml"
        file.write_text(club_seasons.write_ruleset(name, members), encoding="utf-8")
        result = ratings("rules", "publish", str(file), db=store)
        assert result.exit_code == 0, result.stderr
    lines = "\n".join(json.dumps(race.write()) for race in races)
    assert ratings("import", "-", "--new-names", "accept", db=store, input=lines).exit_code == 0
    for names in LABELS:
        assert ratings("club", "rename", *names, "--reason", "new name", db=store).exit_code == 0
    return store


def ask(ratings: Ratings, store: str, *arguments: str) -> Any:
    """The JSON of an answer."""
    result = ratings(*arguments, "--format", "json", db=store)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def table(ratings: Ratings, store: str, ladder: str) -> list[club_seasons.Row]:
    """Rank, club, points and races of every row of a ladder."""
    rows = ask(ratings, store, "standings", ladder)["rows"]
    return [(row["rank"], row["player"], Fraction(row["points"]), row["games"]) for row in rows]


def expected(races: list[Race], ladder: str) -> list[club_seasons.Row]:
    """The same by the oracle."""
    takes, season = ladder.split("/")
    return club_seasons.rank_clubs([race for race in races if race.season == season], takes, LABELS)


def test_tables_of_clubs_are_those_of_the_oracle(ratings: Ratings, raced: str, races: list[Race]) -> None:
    """Standings, CSV, stored rows, SQL and published lists have the clubs; a whole verify finds all equal."""
    assert ratings("rebuild", db=raced).exit_code == 0
    assert ratings("publish", "sum/2001", db=raced).exit_code == 0
    for ladder in (f"{takes}/{season}" for takes in TAKES for season in (2001, 2002)):
        rows = expected(races, ladder)
        assert table(ratings, raced, ladder) == rows
        csv = ratings("standings", ladder, "--format", "csv", db=raced).stdout.splitlines()
        assert len(csv) == len(rows) + 1
        with open_for_reading(raced) as connection:
            found = connection.execute(
                text("SELECT rank, player, games FROM live_standings WHERE ladder = :ladder"), {"ladder": ladder}
            ).all()
        assert sorted(map(tuple, found)) == sorted((rank, club, games) for rank, club, _, games in rows)
    assert ratings("verify", db=raced).exit_code == 0


def test_history_and_explanations_tell_whose_points_a_club_has(ratings: Ratings, raced: str, races: list[Race]) -> None:
    """A club and a driver of one id have each their own; every game is explained by drivers, exactly."""
    for takes in TAKES:
        for race in races[:6]:
            found = ask(ratings, raced, "explain", race.game_id, f"{takes}/2001")
            results = club_seasons.score_clubs(race, takes, LABELS)
            assert {one["player"]: Fraction(one["change"]) for one in found["players"]} == {
                club: result.points for club, result in results.items()
            }
            for one in found["players"]:
                assert sum(Fraction(term["amount"]) for term in one["terms"]) == Fraction(one["change"])
    club, driver = (ask(ratings, raced, "history", "d03", f"{name}/2001")["rows"] for name in ("sum", "drivers"))
    points = [club_seasons.score_clubs(race, "sum", LABELS).get("d03") for race in races[:6]]
    assert [Fraction(row["change"]) for row in club] == [one.points for one in points if one]
    assert [row["game_id"] for row in driver] == [
        race.game_id for race in races[:6] if any(seat.driver == "d03" for seat in race.seats)
    ]
    assert "Gamma" in ratings("explain", "Delta", "sum/2001", db=raced).stdout


def test_corrections_move_points_between_clubs(ratings: Ratings, raced: str, races: list[Race]) -> None:
    """Another club of a driver moves points of clubs alone; every difference has causes that sum to it."""
    before = {ladder: table(ratings, raced, ladder) for ladder in ("drivers/2001", "best/2002")}
    race = races[2]
    seat = next(seat for seat in race.seats if seat.club and club_seasons.score_race(race)[seat.driver][0] > 0)
    old, seat.club = str(seat.club), "Newcomers"
    game = race.write()["data"]
    result = ratings("correct", race.game_id, "--reason", "wrong club", db=raced, input=json.dumps(game))
    assert result.exit_code == 0, result.stderr
    assert "Newcomers" in result.stdout
    assert "drivers/2001" not in result.stdout
    for ladder in ("sum/2001", "best/2001"):
        assert table(ratings, raced, ladder) == expected(races, ladder)
    assert {ladder: table(ratings, raced, ladder) for ladder in before} == before
    head = ask(ratings, raced, "standings", "sum/2001")["known_at"]
    for club in (club_seasons.find_current_name(old, LABELS), "Newcomers"):
        found = ask(
            ratings, raced, "explain", "--change", club, "sum/2001", "--from", f"known-at={head - 1}", "--to", "now"
        )
        assert [cause["position"] for cause in found["causes"]] in ([head], [])
        assert sum(Fraction(cause["amount"]) for cause in found["causes"]) == Fraction(found["change"])
    assert ratings("undo", "--yes", db=raced).exit_code == 0
    seat.club = old
    assert table(ratings, raced, "sum/2001") == expected(races, "sum/2001")


def test_clubs_are_adjusted_by_their_ids_and_not_seeded(ratings: Ratings, raced: str) -> None:
    """An adjustment follows a club under its new name, leaves the player of that id alone, and makes no player."""
    drivers, clubs = table(ratings, raced, "drivers/2001"), table(ratings, raced, "sum/2001")
    for club in ("d03", "Beta Racing"):
        at = ("--at", "2001-12-01T00:00Z")
        result = ratings("adjust", "sum/2001", club, "-4", "--reason", "fuel", *at, db=raced)
        assert result.exit_code == 0, result.stderr
        assert "new player" not in result.stderr
    assert (
        "1 new player: Bta"
        in ratings("adjust", "sum/2001", "Bta", "-4", "--reason", "fuel", "--dry-run", db=raced).stderr
    )
    had = {club: points for _, club, points, _ in clubs}
    has = {club: points for _, club, points, _ in table(ratings, raced, "sum/2001")}
    assert has == {**had, "d03": had["d03"] - 4, "Beta": had["Beta"] - 4}
    assert table(ratings, raced, "drivers/2001") == drivers
    refused = ratings("seed", "sum/2001", "d03", "points=5", "--reason", "old points", db=raced)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("seed-of-club: ")
    assert ratings("verify", db=raced).exit_code == 0


def test_rules_that_compare_refuse_clubs(ratings: Ratings, store: str, tmp_path: Any) -> None:
    """Ratings of persons sum to no rating of a club: the ruleset is refused by its key, with a rule that can do it."""
    assert ratings("init", db=store).exit_code == 0
    file = tmp_path / "elo.toml"
    file.write_text(
        'id = "elo-clubs"\nversion = "1"\nrule = "pairwise-elo/2"\nentrant = "club"\n[scope]\ngame = ["chess"]\n'
        "[params]\nk = 20\n"
    )
    refused = ratings("rules", "publish", str(file), db=store)
    assert refused.exit_code == 1
    assert "entrant" in refused.stderr
    assert "placement-points/2" in refused.stderr


def test_pages_show_clubs_where_their_ladders_lead(ratings: Ratings, raced: str, tmp_path: Any) -> None:
    """Every club of a ladder has its pages, also one that is called like a driver who has another id by now."""
    data = {"player": "d03", "new_player": "Dave"}
    renamed = {"type": "player.renamed", "occurred_at": "2010-01-01T00:00:00Z", "data": data}
    assert ratings("import", "-", "--new-names", "accept", db=raced, input=json.dumps(renamed)).exit_code == 0
    assert ratings("site", str(tmp_path / "site"), db=raced).exit_code == 0
    ladder = (tmp_path / "site/ladders/sum/2001.html").read_text(encoding="utf-8")
    pages = {path.stem for path in (tmp_path / "site/players").glob("*.html")}
    for _, club, _, _ in table(ratings, raced, "sum/2001"):
        assert club in ladder
    assert {"d03", "~44ave", "~47amma"} <= pages
    rows = json.loads((tmp_path / "site/players/d03.json").read_text(encoding="utf-8"))["rows"]
    assert {row["ladder"].partition("/")[0] for row in rows} == {*TAKES}
