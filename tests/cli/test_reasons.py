"""`explain PLAYER LADDER`: what somebody began with, every game, and what the list makes of them."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from list_games import MARCH, SHIPPED, YEAR, events, played
from stores import make_ruled_ledger

Ratings = Callable[..., Any]


@pytest.fixture
def filled(copied_file: Callable[..., str], tmp_path: Path, ratings: Ratings) -> Callable[..., str]:
    """A function that makes a ledger of the shipped rulesets, other ruleset files, and events."""

    def make(told: list[dict[str, Any]], *files: str) -> str:
        db = copied_file(make_ruled_ledger)
        for number, text in enumerate(files):
            (tmp_path / f"{number}.toml").write_text(text, encoding="utf-8")
            published = ratings("rules", "publish", tmp_path / f"{number}.toml", db=db)
            assert published.exit_code == 0, published.stderr
        added = ratings("import", "-", db=db, input="\n".join(map(json.dumps, told)))
        assert added.exit_code == 0, added.stderr
        return db

    return make


def read(ratings: Ratings, db: str, *arguments: str) -> Any:
    """What a command prints as JSON."""
    result = ratings(*arguments, "--format", "json", db=db)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def league(**params: str) -> str:
    """A version of youplay-league with other parameters, in force from 1950 on."""
    text = (SHIPPED / "youplay-league-1.toml").read_text(encoding="utf-8").partition("[params]")[0]
    text = text.replace('version = "1"', 'version = "house"').replace("1900-01-01", "1950-01-01")
    return text + "[params]\n" + "".join(f"{name} = {value}\n" for name, value in params.items())


def gonzaga(game_id: str, day: int, result: str) -> dict[str, Any]:
    """A game of a league."""
    return played(game_id, f"2010-05-{day:02d}T20:00:00Z", result, game="gonzaga", league="L")


def adjusted(ladder: str, player: str, points: str, day: int) -> dict[str, Any]:
    """Points by decision."""
    data = {"ladder": ladder, "player": player, "points": points, "reason": "three evenings late"}
    return {"type": "points.adjusted", "occurred_at": f"2010-05-{day:02d}T12:00:00Z", "data": data}


def test_explained_points_add_up(ratings: Ratings, filled: Callable[..., str]) -> None:
    """The start, games and adjustments that `explain` lists add up to the running points."""
    db = filled([*events(), adjusted("catan-elo/basic", "anna", "-30", 2)])
    found = read(ratings, db, "explain", "anna", "catan-elo/basic")

    counted = [Fraction(entry["change"]) for entry in found["games"] if entry["change"] is not None]
    assert found["start"] == "1000"
    assert Fraction(found["start"]) + sum(counted) == Fraction(found["points"])
    (fine,) = [entry for entry in found["games"] if entry["game_id"] is None]
    assert (fine["change"], fine["reason"]) == ("-30", "three evenings late")
    table = ratings("explain", "anna", "catan-elo/basic", db=db).stdout
    assert "-30  2010-05-02, three evenings late" in table


def test_explain_marks_games_not_among_best(ratings: Ratings, filled: Callable[..., str]) -> None:
    """`explain` marks the games that give nothing because they are not among the best."""
    db = filled([gonzaga("g1", 1, "anna ben"), gonzaga("g2", 2, "ben anna"), gonzaga("g3", 3, "anna ben cleo"),
                 adjusted("youplay-league/L", "anna", "-1", 4)], league(best_of="2"))  # fmt: skip
    found = read(ratings, db, "explain", "anna", "youplay-league/L")

    assert [(entry["game_id"], entry["change"], entry["why_not"]) for entry in found["games"]] == [
        ("g1", "2", None), ("g2", "0", "not among the best"), ("g3", "6", None), (None, "-1", None),
    ]  # fmt: skip
    assert [(term["amount"], term["detail"]) for term in found["terms"]] == [
        ("7", "of the best 2 of 3 games, with adjustments"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "mine", "others"),
    [('"more wins"', "1", "more wins; ben 0"), ('"head-to-head"', "-1", "head-to-head; ben 1")],
)
def test_explain_shows_tie_break_counts(
    rule: str, mine: str, others: str, ratings: Ratings, filled: Callable[..., str]
) -> None:
    """`explain` shows what a tie-break counted, for the player and for those tied with them.

    Anna has one win; ben, with equal points, finished before anna whenever they met.
    """
    told = [gonzaga("g1", 1, "cleo ben anna"), gonzaga("g2", 2, "anna cleo")]
    db = filled(told, league(tie_break=rule))
    found = read(ratings, db, "explain", "anna", "youplay-league/L")

    assert [(term["term"], term["amount"], term["detail"]) for term in found["terms"]] == [
        ("sum", "2", "of all games"), ("tie-break", mine, others),
    ]  # fmt: skip


@pytest.mark.parametrize("player", ["anna", "ben"])
def test_explain_counts_missing_games(player: str, ratings: Ratings, filled: Callable[..., str]) -> None:
    """`explain` says how many games are missing where a list requires a minimum."""
    db = filled([gonzaga("g1", 1, "anna ben")], league(min_games="3"))
    found = read(ratings, db, "explain", player, "youplay-league/L")

    assert (found["rank"], found["terms"][-1]["detail"]) == (None, "1 of 3 games; 2 are missing")


def test_standings_say_why_nobody_has_a_rank(ratings: Ratings, filled: Callable[..., str]) -> None:
    """Where nobody has a rank, a note says what is missing to the one who played most; none does where somebody has."""
    db = filled([gonzaga("g1", 1, "anna ben"), gonzaga("g2", 2, "cleo ben")], league(min_games="3"))
    for more in ((), ("--limit", "1")):
        told = ratings("standings", "youplay-league/L", *more, db=db)
        assert (told.exit_code, told.stderr) == (
            0, "note: no player has a rank; 'ben', who played most: 2 of 3 games; 1 is missing\n",
        )  # fmt: skip
    for more in (("--format", "json"), ("--format", "csv"), ("--player", "anna")):
        assert ratings("standings", "youplay-league/L", *more, db=db).stderr == ""
    ratings("import", "-", db=db, input=json.dumps(gonzaga("g3", 3, "anna ben")))
    assert ratings("standings", "youplay-league/L", db=db).stderr == ""


def test_standings_say_why_nobody_is_there(ratings: Ratings, filled: Callable[..., str]) -> None:
    """A list that is empty at a date says that no game was played so early, and which command explains a game."""
    db = filled(events())
    found = ratings("standings", "catan-elo/basic", "--as-of", "2001-01-01T00:00Z", db=db)
    assert (found.exit_code, found.stderr) == (
        0, "note: the first game on catan-elo/basic was at 2010-01-01 21:00:00 Europe/Berlin\n"
        "No player is on this ladder: no game played up to 2001-01-01 01:00 Europe/Berlin counts on it "
        "(to see why: ratings explain GAME catan-elo/basic).\n",
    )  # fmt: skip


def test_explain_justifies_uncounted_games(ratings: Ratings, filled: Callable[..., str]) -> None:
    """`explain` lists each game that does not count for a player, with the reason.

    In feb-1 dora took over cleo's seat, and neither of them gets points on a monthly list.
    """
    db = filled(events())
    february = "catan-monthly/7/basic/2010-02"

    for player in ("cleo", "dora"):
        found = read(ratings, db, "explain", player, february)
        assert (found["rank"], found["points"], found["terms"]) == (None, None, [])
        (only,) = found["games"]
        assert (only["game_id"], only["change"]) == ("feb-1", None)
        assert only["why_not"] == "catan-monthly@2008-03 counts neither player of a seat that changed hands"
    assert "not counted: catan-monthly@2008-03 counts neither" in ratings("explain", "dora", february, db=db).stdout


def test_explain_uses_account_at_that_time(ratings: Ratings, filled: Callable[..., str]) -> None:
    """`explain` of an annual list names the account that the player had at the time asked for."""
    free = {"player": "cleo", "account": "free"}
    change = {"type": "player.account_changed", "occurred_at": "2010-03-20T12:00:00Z", "data": free}
    ck = [played(f"c{day}", f"2010-03-{day:02d}T20:00:00Z", "cleo ben", group="cities-knights") for day in range(1, 8)]
    db = filled([*ck, change])

    def why(*axes: str) -> Any:
        return read(ratings, db, "explain", "cleo", "catan-annual/7/cities-knights/2010", *axes)["terms"][-1]["detail"]

    assert why() == "a free account at the end of the year, not a premium one"
    assert why("--as-of", "2010-03-31") == "a free account at that time, not a premium one"


def test_option_tells_player_from_game(ratings: Ratings, filled: Callable[..., str]) -> None:
    """Given an id of a game and a player, `explain` shows the game, or the player with `--player`."""
    db = filled([gonzaga("anna", 1, "anna ben")])

    assert read(ratings, db, "explain", "anna", "youplay-league/L")["game_id"] == "anna"
    assert read(ratings, db, "explain", "anna", "youplay-league/L", "--player")["points"] == "2"
    told = ratings("explain", "nobody", "youplay-league/L", "--player", db=db)
    assert (told.exit_code, told.stdout) == (1, "")


def test_annual_history_refers_to_months(ratings: Ratings, filled: Callable[..., str]) -> None:
    """The history of an annual list has no rows and refers to `explain`."""
    db = filled(events())

    assert read(ratings, db, "history", "cleo", YEAR)["rows"] == []
    assert ratings("history", "cleo", YEAR, db=db).stderr == (
        f"{YEAR} sums places of months; run: ratings explain cleo {YEAR}\n"
    )
    assert f"ratings explain cleo {MARCH}" in ratings("history", "cleo", MARCH, db=db).stdout


def test_account_change_shows_moved_ranks(ratings: Ratings, filled: Callable[..., str]) -> None:
    """Changing an account shows the ranks that move, although no points change.

    In Cities & Knights ben is ahead of anna, but has a free account at the end of the year.
    """
    db = filled(events())
    options = ("--at", "2010-12-30T12:00:00Z", "--dry-run")
    told = read(ratings, db, "player", "account", "ben", "premium", *options)["changes"]

    assert [(row["player"], row["change"], row["rank"]) for row in told] == [
        ("anna", "0", [1, 2]), ("ben", "0", [None, 1]),
    ]  # fmt: skip
    table = ratings("player", "account", "ben", "premium", *options, db=db).stdout.splitlines()
    assert [line.split() for line in table[-3:]] == [
        ["player", "before", "change", "after", "rank"],
        ["anna", "452", "0", "452", "1", "→", "2"],
        ["ben", "451", "0", "451", "-", "→", "1"],
    ]
