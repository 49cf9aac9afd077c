"""Partners in tables: taken apart where that is said, refused where a rule has no teams, whole where an id is known."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import read

TABLE = "Date,Winners,Losers\n2024-11-22,anna & ben,cleo & dora\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of a game of doubles."""
    path = tmp_path / "doubles.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def ledger(ratings: Callable[..., Any], tmp_path: Path, *options: str) -> str:
    """Return a ledger for tennis."""
    url = str(tmp_path / "tennis.db")
    assert ratings("init", "--for", "tennis", *options, db=url).exit_code == 0
    return url


def test_rule_with_teams_rates_partners(table: Path, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """Under a rule with teams both winners gain the same, and no partner counts as an opponent."""
    url = ledger(ratings, tmp_path, "--system", "weng-lin")
    done = ratings("import", table, db=url)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "1 appended; the head is 3.")
    rows = read(ratings, url, "standings", "weng-lin-tennis/all")["rows"]
    points = {row["player"]: Fraction(row["points"]) for row in rows}
    assert points["anna"] == points["ben"] > points["cleo"] == points["dora"]


@pytest.mark.parametrize("options", [(), ("--ties", "&"), ("--partners", "&"), ("--layout", "places")])
def test_rule_without_teams_refuses_partners(
    options: tuple[str, ...], table: Path, tmp_path: Path, ratings: Callable[..., Any]
) -> None:
    """Elo knows no partners: under no option are they rated as opponents who drew."""
    url = ledger(ratings, tmp_path)
    done = ratings("import", table, *options, db=url)
    assert done.exit_code == 1
    assert ("tied-players: 'anna & ben' are partners" if "--ties" in options else "no-teams: ") in done.stderr
    assert ratings("import", table, "--allow-uncounted", db=url).exit_code == 0
    assert "1016" not in ratings("standings", "elo-tennis/all", db=url).stdout


def test_several_texts_join_partners(tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """`--partners` may be given several times; none of them wins in silence, and a profile keeps all."""
    url = ledger(ratings, tmp_path, "--system", "weng-lin")
    (table := tmp_path / "pairs.csv").write_text(
        "Date,Player 1,Player 2,Score\n2024-11-22,anna / ben,cleo + dora,3-1\n2024-11-23,anna,cleo + dora,1-3\n",
        "utf-8",
    )
    profile = str(tmp_path / "club.toml")
    shown = ratings("import", table, "--partners", " / ", "--partners", "+", "--save-profile", profile, db=url)
    assert shown.exit_code == 0, shown.stderr
    found = read(ratings, url, "games")["rows"]
    assert [[one["player"] for one in game["participants"]] for game in found] == [
        ["anna", "ben", "cleo", "dora"], ["anna", "cleo", "dora"],
    ]  # fmt: skip
    again = ratings("import", table, "--profile", profile, "--preview", db=url)
    assert "1 anna & ben (3), 2 cleo & dora (1)\n" in again.stdout
    assert "2 games of tennis, 2024-11-22 to 2024-11-23, 2 of teams, 4 players\n" in again.stdout
    assert "0 would be appended, 2 already there" in again.stdout


def test_advice_for_two_names_in_a_cell_of_a_side(tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """Where a cell holds a side, two names in it are partners: no row for each of them helps, and nobody ties."""
    (table := tmp_path / "pairs.csv").write_text("Date,White,Black,Result\n2024-11-22,anna & ben,cleo,1-0\n", "utf-8")
    done = ratings("import", table, db=ledger(ratings, tmp_path, "--system", "weng-lin"))
    told = "'anna & ben' looks like more than one player: if they are partners on one side, pass --partners '&'; "
    assert told in done.stderr


def test_known_id_stays_whole_and_is_told(table: Path, tmp_path: Path, ratings: Callable[..., Any]) -> None:
    """An id that the ledger knows is one player, whatever it holds."""
    url = ledger(ratings, tmp_path, "--system", "weng-lin")
    ratings("record", "--game-id", "g-1", "--new-names", "accept", "anna & ben", "zoe", db=url)
    done = ratings("import", table, "--new-names", "accept", db=url)
    assert "not taken apart, since the ledger knows them: anna & ben" in done.stderr
    found = [row for row in read(ratings, url, "games")["rows"] if row["game_id"] == "2024-11-22-1"]
    assert [one["player"] for one in found[0]["participants"]] == ["anna & ben", "cleo", "dora"]
