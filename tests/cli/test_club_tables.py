"""Ladders of clubs beside those of drivers: random seasons match an oracle, in JSON, in CSV and in the store;
corrections, adjustments and refusals."""

import csv
import io
import json
from fractions import Fraction
from typing import Any

import pytest
from correction_helpers import Ratings, read_json
from sqlalchemy import text

from ratings_ledger.web.addresses import encode_segment
from tests.ledgers import open_for_reading
from tests.projections import club_seasons
from tests.projections.club_seasons import Race

TAKES_RULESETS = ("sum", "best")
CLUB_RENAMES = [("Beta Racing", "Beta"), ("Delta", "Gamma")]


@pytest.fixture
def races() -> list[Race]:
    """Return two seasons of six random races."""
    return club_seasons.draw_races(seed=11, rounds=6)


@pytest.fixture
def race_db(ratings: Ratings, store: str, races: list[Race], tmp_path: Any) -> str:
    """Return the store of a ledger with the races, the rulesets of drivers and of clubs, and two renames of clubs."""
    assert ratings("init", "--zone", "UTC", db=store).exit_code == 0
    for name in ("drivers", *TAKES_RULESETS):
        members = "" if name == "drivers" else f'entrant = "club"\ntakes = "{name}"'
        file = tmp_path / f"{name}.toml"
        file.write_text(club_seasons.write_ruleset(name, members), encoding="utf-8")
        result = ratings("rules", "publish", str(file), db=store)
        assert result.exit_code == 0, result.stderr
    lines = "\n".join(json.dumps(race.write()) for race in races)
    assert ratings("import", "-", "--new-names", "accept", db=store, input=lines).exit_code == 0
    for names in CLUB_RENAMES:
        assert ratings("club", "rename", *names, "--reason", "new name", db=store).exit_code == 0
    return store


def read_table(ratings: Ratings, store: str, ladder: str) -> list[club_seasons.Row]:
    """Return rank, club, points and number of races of every row of a ladder."""
    rows = read_json(ratings, store, "standings", ladder)["rows"]
    return [(row["rank"], row["player"], Fraction(row["points"]), row["games"]) for row in rows]


def compute_table(races: list[Race], ladder: str) -> list[club_seasons.Row]:
    """Return the rows of a ladder of clubs as the oracle computes them."""
    takes, season = ladder.split("/")
    return club_seasons.rank_clubs([race for race in races if race.season == season], takes, CLUB_RENAMES)


def test_club_ladders_match_the_oracle(ratings: Ratings, race_db: str, races: list[Race]) -> None:
    """Standings as JSON, as CSV and in the store match the oracle; `verify` finds no fault in them or in a list."""
    assert ratings("rebuild", db=race_db).exit_code == 0
    assert ratings("publish", "sum/2001", db=race_db).exit_code == 0
    for ladder in (f"{takes}/{season}" for takes in TAKES_RULESETS for season in (2001, 2002)):
        rows = compute_table(races, ladder)
        assert read_table(ratings, race_db, ladder) == rows
        csv_text = ratings("standings", ladder, "--format", "csv", db=race_db).stdout
        assert [
            (row["rank"], row["player"], Fraction(row.get("points_exact", row["points"])), row["games"])
            for row in csv.DictReader(io.StringIO(csv_text))
        ] == [(str(rank or ""), club, points, str(games)) for rank, club, points, games in rows]
        with open_for_reading(race_db) as connection:
            stored_rows = connection.execute(
                text("SELECT rank, player, games FROM live_standings WHERE ladder = :ladder"), {"ladder": ladder}
            ).all()
        assert sorted(map(tuple, stored_rows)) == sorted((rank, club, games) for rank, club, _, games in rows)
    assert ratings("verify", db=race_db).exit_code == 0


def test_club_points_are_explained_by_drivers(ratings: Ratings, race_db: str, races: list[Race]) -> None:
    """The terms of a race sum to each club's change; a club and a driver with the same id have separate histories."""
    for takes in TAKES_RULESETS:
        for race in races[:6]:
            explanation = read_json(ratings, race_db, "explain", race.game_id, f"{takes}/2001")
            results = club_seasons.score_clubs(race, takes, CLUB_RENAMES)
            assert {row["player"]: Fraction(row["change"]) for row in explanation["players"]} == {
                club: result.points for club, result in results.items()
            }
            for row in explanation["players"]:
                assert sum(Fraction(term["amount"]) for term in row["terms"]) == Fraction(row["change"])
    club_rows, driver_rows = (
        read_json(ratings, race_db, "history", "d03", f"{name}/2001")["rows"] for name in ("sum", "drivers")
    )
    results_of_d03 = [club_seasons.score_clubs(race, "sum", CLUB_RENAMES).get("d03") for race in races[:6]]
    assert [Fraction(row["change"]) for row in club_rows] == [result.points for result in results_of_d03 if result]
    assert [row["game_id"] for row in driver_rows] == [
        race.game_id for race in races[:6] if any(seat.driver == "d03" for seat in race.seats)
    ]
    assert "Gamma" in ratings("explain", "Delta", "sum/2001", db=race_db).stdout


def test_corrections_move_points_between_clubs(ratings: Ratings, race_db: str, races: list[Race]) -> None:
    """Correcting a driver's club changes the points of clubs only, and the causes of each difference sum to it."""
    before = {ladder: read_table(ratings, race_db, ladder) for ladder in ("drivers/2001", "best/2002")}
    race = races[2]
    seat = next(seat for seat in race.seats if seat.club and club_seasons.score_race(race)[seat.driver][0] > 0)
    old_club, seat.club = str(seat.club), "Newcomers"
    game = race.write()["data"]
    result = ratings("correct", race.game_id, "--reason", "wrong club", db=race_db, input=json.dumps(game))
    assert result.exit_code == 0, result.stderr
    assert "Newcomers" in result.stdout
    assert "drivers/2001" not in result.stdout
    for ladder in ("sum/2001", "best/2001"):
        assert read_table(ratings, race_db, ladder) == compute_table(races, ladder)
    assert {ladder: read_table(ratings, race_db, ladder) for ladder in before} == before
    head = read_json(ratings, race_db, "standings", "sum/2001")["known_at"]
    for club in (club_seasons.find_current_name(old_club, CLUB_RENAMES), "Newcomers"):
        explanation = read_json(
            ratings, race_db, "explain", "--change", club, "sum/2001", "--from", f"known-at={head - 1}", "--to", "now"
        )
        assert [cause["position"] for cause in explanation["causes"]] in ([head], [])
        assert sum(Fraction(cause["amount"]) for cause in explanation["causes"]) == Fraction(explanation["change"])
    assert ratings("undo", "--yes", db=race_db).exit_code == 0
    seat.club = old_club
    assert read_table(ratings, race_db, "sum/2001") == compute_table(races, "sum/2001")


def test_published_list_follows_the_rename_of_a_club(ratings: Ratings, race_db: str) -> None:
    """A list shows a club that is renamed later: its history and the causes since the list contradict nothing."""
    assert ratings("publish", "sum/2001", "--by", "mira", db=race_db).exit_code == 0
    assert ratings("club", "rename", "Beta", "Beta Two", "--reason", "new name", db=race_db).exit_code == 0
    rows = read_json(ratings, race_db, "history", "Beta Two", "sum/2001")["rows"]
    assert (bool(rows), [row["published"] for row in rows if "published" in row]) == (True, [])
    change = ("explain", "--change", "Beta Two", "sum/2001", "--from", "published")
    result = ratings(*change, db=race_db)
    assert (result.exit_code, "but a replay gives" in result.stdout + result.stderr) == (0, False), result


def test_clubs_can_be_adjusted_but_not_seeded(ratings: Ratings, race_db: str) -> None:
    """An adjustment of a club follows a rename and affects no driver with its id; a seed of a club is refused."""
    drivers, clubs = read_table(ratings, race_db, "drivers/2001"), read_table(ratings, race_db, "sum/2001")
    for club in ("d03", "Beta Racing"):
        at = ("--at", "2001-12-01T00:00Z")
        result = ratings("adjust", "sum/2001", club, "-4", "--reason", "fuel", *at, db=race_db)
        assert result.exit_code == 0, result.stderr
        assert "new player" not in result.stderr
    preview = ratings("adjust", "sum/2001", "Bta", "-4", "--reason", "fuel", "--dry-run", db=race_db)
    assert "1 new player: Bta" in preview.stderr
    points_before = {club: points for _, club, points, _ in clubs}
    points_after = {club: points for _, club, points, _ in read_table(ratings, race_db, "sum/2001")}
    assert points_after == {**points_before, "d03": points_before["d03"] - 4, "Beta": points_before["Beta"] - 4}
    assert read_table(ratings, race_db, "drivers/2001") == drivers
    result = ratings("seed", "sum/2001", "d03", "points=5", "--reason", "old points", db=race_db)
    assert result.exit_code == 1
    assert result.stderr.startswith("seed-of-club: ")
    assert ratings("verify", db=race_db).exit_code == 0


def test_ratings_of_clubs_are_refused(ratings: Ratings, store: str, tmp_path: Any) -> None:
    """A rule that rates players cannot rank clubs; the refusal names the key `entrant` and a rule that can."""
    assert ratings("init", db=store).exit_code == 0
    file = tmp_path / "elo.toml"
    file.write_text(
        'id = "elo-clubs"\nversion = "1"\nrule = "pairwise-elo/2"\nentrant = "club"\n[scope]\ngame = ["chess"]\n'
        "[params]\nk = 20\n"
    )
    result = ratings("rules", "publish", str(file), db=store)
    assert result.exit_code == 1
    assert "entrant" in result.stderr
    assert "placement-points/2" in result.stderr


def test_every_club_has_its_pages(ratings: Ratings, race_db: str, tmp_path: Any) -> None:
    """Every club of a ladder has a page, even one whose name is the former id of a renamed driver."""
    data = {"player": "d03", "new_player": "Dave"}
    renamed = {"type": "player.renamed", "occurred_at": "2010-01-01T00:00:00Z", "data": data}
    assert ratings("import", "-", "--new-names", "accept", db=race_db, input=json.dumps(renamed)).exit_code == 0
    assert ratings("site", str(tmp_path / "site"), db=race_db).exit_code == 0
    ladder = (tmp_path / "site/ladders/sum/2001.html").read_text(encoding="utf-8")
    pages = {path.stem for path in (tmp_path / "site/players").glob("*.html")}
    for _, club, _, _ in read_table(ratings, race_db, "sum/2001"):
        assert club in ladder
        assert encode_segment(club) in pages
    assert {"d03", "~44ave", "~47amma"} <= pages
    rows = json.loads((tmp_path / "site/players/d03.json").read_text(encoding="utf-8"))["rows"]
    assert {row["ladder"].partition("/")[0] for row in rows} == {*TAKES_RULESETS}
