"""A real club's published table, reproduced from its games; skipped where the data is absent."""

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


def club_ledger(ratings, url):
    """Make a ledger with the club's games, converted by the script in examples."""
    convert = runpy.run_path(str(ROOT / "examples" / "convert_catan_league.py"))["convert"]
    out = io.StringIO()
    with (DATA / "games.csv").open(encoding="utf-8", newline="") as source:
        assert convert(source, out) == 242
    make_ruled_ledger(ratings, url)
    assert ratings("import", "-", "--zone", "UTC", db=url, input=out.getvalue()).exit_code == 0


@pytest.fixture
def club(copied_file):
    """The club's ledger, which is only read."""
    return copied_file(club_ledger)


@pytest.fixture
def own_club(copied):
    """A ledger of the club on each store, to be changed."""
    return copied(club_ledger)


def published() -> list[dict[str, str]]:
    with (DATA / "published-ratings.csv").open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def ratings_of(ratings, db: str, ladder: str) -> dict[str, tuple[Fraction, int]]:
    result = ratings("standings", ladder, "--format", "json", db=db)
    assert result.exit_code == 0
    return {row["player"]: (Fraction(row["points"]), row["games"]) for row in json.loads(result.stdout)["rows"]}


def test_published_ratings_are_reproduced(ratings, club):
    """All 55 published ratings come out of a replay after rounding."""
    rows = published()
    assert len(rows) == 55
    computed = {name: ratings_of(ratings, club, ladder) for name, ladder in LADDERS.items()}
    for row in rows:
        points, games = computed[row["list"]][row["player"]]
        assert (round(points), games) == (int(row["current_rating"]), int(row["games"])), row
    assert sum(map(len, computed.values())) == 55


@pytest.mark.slow
def test_published_averages_are_reproduced(ratings, club):
    """The averages of the published table come out of the players' histories."""
    for row in published():
        result = ratings("history", row["player"], LADDERS[row["list"]], "--format", "json", db=club)
        after = [Fraction(step["after"]) for step in json.loads(result.stdout)["rows"]]
        assert abs(sum(after) / len(after) - int(row["average_rating"])) <= Fraction("0.5"), row


@pytest.mark.slow_cases
def test_textbook_rule_changes_the_table(ratings, own_club):
    """The textbook version, published later, moves ratings by up to 4.3 points.

    The old table stays readable as known before and under the old version.
    """
    before = ratings_of(ratings, own_club, "club-catan-elo/all")
    head = json.loads(ratings("status", "--format", "json", db=own_club).stdout)["position"]
    assert ratings("rules", "publish", ROOT / "examples" / "club-catan-elo-2.toml", db=own_club).exit_code == 0
    differences = []
    computed = {name: ratings_of(ratings, own_club, ladder) for name, ladder in LADDERS.items()}
    for row in published():
        points, _ = computed[row["list"]][row["player"]]
        differences.append(abs(points - int(row["current_rating"])))
    assert round(max(differences), 1) == Fraction("4.3")
    assert sum(difference > Fraction("0.5") for difference in differences) == 44
    told = ratings("standings", "club-catan-elo/all", "--format", "json", "--known-at", head, db=own_club)
    rows = json.loads(told.stdout)["rows"]
    assert {row["player"]: (Fraction(row["points"]), row["games"]) for row in rows} == before
    one = ratings("standings", "club-catan-elo/all", "--format", "json", "--rules", "club-catan-elo@1", db=own_club)
    assert json.loads(one.stdout)["rows"] == json.loads(told.stdout)["rows"]


@pytest.mark.slow_cases
def test_stored_standings_match_replay(ratings, own_club):
    """The stored standings of the club are what a replay gives."""
    assert ratings("rebuild", db=own_club).exit_code == 0
    assert ratings("verify", db=own_club) == (0, "", "")
