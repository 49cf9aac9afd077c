"""A real club's published table is reproduced from its games; skipped without the data."""

import csv
import io
import json
import runpy
from fractions import Fraction
from pathlib import Path

import pytest
from stores import make_ruled_ledger

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT.parent / "shared" / "data" / "catan-league"
LADDERS = {
    "All Games": "club-catan-elo/all",
    "3-4 Player Games": "club-catan-elo/3-4",
    "5-6 Player Games": "club-catan-elo/5-6",
    "7-8 Player Games": "club-catan-elo/7-8",
}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the club's games (shared/data/catan-league) are absent")


def make_club_ledger(ratings, url):
    """Make a ledger with the club's games, converted by the script in examples."""
    convert = runpy.run_path(str(ROOT / "examples" / "convert_catan_league.py"))["convert"]
    out = io.StringIO()
    with (DATA / "games.csv").open(encoding="utf-8", newline="") as source:
        assert convert(source, out) == 242
    make_ruled_ledger(ratings, url)
    assert ratings("import", "-", "--zone", "UTC", db=url, input=out.getvalue()).exit_code == 0


@pytest.fixture
def club_db(copy_ledger_file):
    """Return the club's ledger, which tests only read."""
    return copy_ledger_file(make_club_ledger)


@pytest.fixture
def changeable_db(copy_ledger):
    """Return a ledger of the club in each kind of store, which a test may change."""
    return copy_ledger(make_club_ledger)


def read_published_ratings() -> list[dict[str, str]]:
    """Return the rows of the published table."""
    with (DATA / "published-ratings.csv").open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def load_ratings(ratings, db: str, ladder: str) -> dict[str, tuple[Fraction, int]]:
    """Return (points, games) by player."""
    result = ratings("standings", ladder, "--format", "json", db=db)
    assert result.exit_code == 0
    return {row["player"]: (Fraction(row["points"]), row["games"]) for row in json.loads(result.stdout)["rows"]}


def test_published_ratings_are_reproduced(ratings, club_db):
    """The rounded points and the numbers of games of a replay equal all 55 published rows."""
    rows = read_published_ratings()
    assert len(rows) == 55
    computed = {name: load_ratings(ratings, club_db, ladder) for name, ladder in LADDERS.items()}
    for row in rows:
        points, games = computed[row["list"]][row["player"]]
        assert (round(points), games) == (int(row["current_rating"]), int(row["games"])), row
    assert sum(map(len, computed.values())) == 55


@pytest.mark.slow
def test_published_averages_are_reproduced(ratings, club_db):
    """The histories of the players have the averages of the published table."""
    for row in read_published_ratings():
        result = ratings("history", row["player"], LADDERS[row["list"]], "--format", "json", db=club_db)
        after = [Fraction(step["after"]) for step in json.loads(result.stdout)["rows"]]
        assert abs(sum(after) / len(after) - int(row["average_rating"])) <= Fraction("0.5"), row


@pytest.mark.slow_cases
def test_textbook_rule_changes_the_table(ratings, changeable_db):
    """The textbook version, published later, changes ratings by up to 4.3 points.

    The old table can still be read as of the earlier log position (`--known-at`), or under the old version (`--rules`).
    """
    before = load_ratings(ratings, changeable_db, "club-catan-elo/all")
    head = json.loads(ratings("status", "--format", "json", db=changeable_db).stdout)["position"]
    assert ratings("rules", "publish", ROOT / "examples" / "club-catan-elo-2.toml", db=changeable_db).exit_code == 0
    differences = []
    computed = {name: load_ratings(ratings, changeable_db, ladder) for name, ladder in LADDERS.items()}
    for row in read_published_ratings():
        points, _ = computed[row["list"]][row["player"]]
        differences.append(abs(points - int(row["current_rating"])))
    assert round(max(differences), 1) == Fraction("4.3")
    assert sum(difference > Fraction("0.5") for difference in differences) == 44
    earlier_standings = ratings(
        "standings", "club-catan-elo/all", "--format", "json", "--known-at", head, db=changeable_db
    )
    rows = json.loads(earlier_standings.stdout)["rows"]
    assert {row["player"]: (Fraction(row["points"]), row["games"]) for row in rows} == before
    standings_by_rules = ratings(
        "standings", "club-catan-elo/all", "--format", "json", "--rules", "club-catan-elo@1", db=changeable_db
    )
    assert json.loads(standings_by_rules.stdout)["rows"] == json.loads(earlier_standings.stdout)["rows"]


@pytest.mark.slow_cases
def test_stored_standings_match_replay(ratings, changeable_db):
    """The stored standings of the club equal those of a replay."""
    assert ratings("rebuild", db=changeable_db).exit_code == 0
    assert ratings("verify", db=changeable_db) == (0, "", "")
