"""`explain PLAYER LADDER`: a player's start, every game, and the terms of their result on a list."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from list_games import MARCH, SHIPPED, YEAR, build_list_events, build_list_game
from stores import make_ruled_ledger

Ratings = Callable[..., Any]


@pytest.fixture
def create_filled_ledger(copy_ledger_file: Callable[..., str], tmp_path: Path, ratings: Ratings) -> Callable[..., str]:
    """Return a function that creates a ledger with the shipped rulesets, further rulesets, and events."""

    def create(events: list[dict[str, Any]], *rulesets: str) -> str:
        db = copy_ledger_file(make_ruled_ledger)
        for number, text in enumerate(rulesets):
            (tmp_path / f"{number}.toml").write_text(text, encoding="utf-8")
            result = ratings("rules", "publish", tmp_path / f"{number}.toml", db=db)
            assert result.exit_code == 0, result.stderr
        import_result = ratings("import", "-", db=db, input="\n".join(map(json.dumps, events)))
        assert import_result.exit_code == 0, import_result.stderr
        return db

    return create


def read_output(ratings: Ratings, db: str, *arguments: str) -> Any:
    """Return the JSON of a command."""
    result = ratings(*arguments, "--format", "json", db=db)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def build_league_ruleset(**params: str) -> str:
    """Return the text of a version of youplay-league with other parameters, in force from 1950 on."""
    text = (SHIPPED / "youplay-league-1.toml").read_text(encoding="utf-8").partition("[params]")[0]
    text = text.replace('version = "1"', 'version = "house"').replace("1900-01-01", "1950-01-01")
    return text + "[params]\n" + "".join(f"{name} = {value}\n" for name, value in params.items())


def build_league_game(game_id: str, day: int, result: str) -> dict[str, Any]:
    """Return a game of a league."""
    return build_list_game(game_id, f"2010-05-{day:02d}T20:00:00Z", result, game="gonzaga", league="L")


def build_adjustment(ladder: str, player: str, points: str, day: int) -> dict[str, Any]:
    """Return an adjustment of a player's points."""
    data = {"ladder": ladder, "player": player, "points": points, "reason": "three evenings late"}
    return {"type": "points.adjusted", "occurred_at": f"2010-05-{day:02d}T12:00:00Z", "data": data}


def test_explained_points_add_up(ratings: Ratings, create_filled_ledger: Callable[..., str]) -> None:
    """The start, games and adjustments that `explain` lists add up to the running points."""
    db = create_filled_ledger([*build_list_events(), build_adjustment("catan-elo/basic", "anna", "-30", 2)])
    explanation = read_output(ratings, db, "explain", "anna", "catan-elo/basic")

    changes = [Fraction(entry["change"]) for entry in explanation["games"] if entry["change"] is not None]
    assert explanation["start"] == "1000"
    assert Fraction(explanation["start"]) + sum(changes) == Fraction(explanation["points"])
    (adjustment,) = [entry for entry in explanation["games"] if entry["game_id"] is None]
    assert (adjustment["change"], adjustment["reason"]) == ("-30", "three evenings late")
    table = ratings("explain", "anna", "catan-elo/basic", db=db).stdout
    assert "-30  2010-05-02, three evenings late" in table


def test_explain_marks_games_not_among_best(ratings: Ratings, create_filled_ledger: Callable[..., str]) -> None:
    """`explain` marks the games that do not count because they are not among the best."""
    db = create_filled_ledger(
        [
            build_league_game("g1", 1, "anna ben"),
            build_league_game("g2", 2, "ben anna"),
            build_league_game("g3", 3, "anna ben cleo"),
            build_adjustment("youplay-league/L", "anna", "-1", 4),
        ],
        build_league_ruleset(best_of="2"),
    )
    explanation = read_output(ratings, db, "explain", "anna", "youplay-league/L")

    assert [(entry["game_id"], entry["change"], entry["why_not"]) for entry in explanation["games"]] == [
        ("g1", "2", None),
        ("g2", "0", "not among the best"),
        ("g3", "6", None),
        (None, "-1", None),
    ]
    assert [(term["amount"], term["detail"]) for term in explanation["terms"]] == [
        ("7", "of the best 2 of 3 games, with start points and adjustments"),
    ]


@pytest.mark.parametrize(
    ("tie_break", "amount", "detail"),
    [('"more wins"', "1", "more wins; ben 0"), ('"head-to-head"', "-1", "head-to-head; ben 1")],
)
def test_explain_shows_tie_break_counts(
    tie_break: str, amount: str, detail: str, ratings: Ratings, create_filled_ledger: Callable[..., str]
) -> None:
    """`explain` shows the count of a tie-break, for the player and for those tied with them.

    Anna has one win; ben, with equal points, finished before anna whenever they met.
    """
    games = [build_league_game("g1", 1, "cleo ben anna"), build_league_game("g2", 2, "anna cleo")]
    db = create_filled_ledger(games, build_league_ruleset(tie_break=tie_break))
    explanation = read_output(ratings, db, "explain", "anna", "youplay-league/L")

    assert [(term["term"], term["amount"], term["detail"]) for term in explanation["terms"]] == [
        ("sum", "2", "of all games"),
        ("tie-break", amount, detail),
    ]


@pytest.mark.parametrize("player", ["anna", "ben"])
def test_explain_counts_missing_games(player: str, ratings: Ratings, create_filled_ledger: Callable[..., str]) -> None:
    """`explain` says how many games are missing if a list requires a minimum."""
    db = create_filled_ledger([build_league_game("g1", 1, "anna ben")], build_league_ruleset(min_games="3"))
    explanation = read_output(ratings, db, "explain", player, "youplay-league/L")

    assert (explanation["rank"], explanation["terms"][-1]["detail"]) == (None, "1 of 3 games; 2 more needed")


def test_standings_without_ranks_note_the_missing_games(
    ratings: Ratings, create_filled_ledger: Callable[..., str]
) -> None:
    """If no player has a rank, a note says how many games the player with the most games still lacks."""
    db = create_filled_ledger(
        [build_league_game("g1", 1, "anna ben"), build_league_game("g2", 2, "cleo ben")],
        build_league_ruleset(min_games="3"),
    )
    for options in ((), ("--limit", "1")):
        result = ratings("standings", "youplay-league/L", *options, db=db)
        assert (result.exit_code, result.stderr) == (
            0,
            "note: no player has a rank; 'ben' has the most games, but: 2 of 3 games; 1 more needed\n",
        )
    for options in (("--format", "json"), ("--format", "csv"), ("--player", "anna")):
        assert ratings("standings", "youplay-league/L", *options, db=db).stderr == ""
    ratings("import", "-", db=db, input=json.dumps(build_league_game("g3", 3, "anna ben")))
    assert ratings("standings", "youplay-league/L", db=db).stderr == ""


def test_empty_standings_note_the_first_game(ratings: Ratings, create_filled_ledger: Callable[..., str]) -> None:
    """An empty list at a date notes when the first game was played, and the command that explains a game."""
    db = create_filled_ledger(build_list_events())
    result = ratings("standings", "catan-elo/basic", "--as-of", "2001-01-01T00:00Z", db=db)
    assert (result.exit_code, result.stderr) == (
        0,
        "note: the first game on catan-elo/basic was at 2010-01-01 21:00:00 Europe/Berlin\n"
        "No player is on this ladder: no game played up to 2001-01-01 01:00 Europe/Berlin counts on it "
        "(to see why: ratings explain GAME catan-elo/basic).\n",
    )


def test_explain_justifies_uncounted_games(ratings: Ratings, create_filled_ledger: Callable[..., str]) -> None:
    """`explain` lists each game that does not count for a player, with the reason.

    In feb-1 dora took over cleo's seat, and neither of them gets points on a monthly list.
    """
    db = create_filled_ledger(build_list_events())
    february = "catan-monthly/7/basic/2010-02"

    for player in ("cleo", "dora"):
        explanation = read_output(ratings, db, "explain", player, february)
        assert (explanation["rank"], explanation["points"], explanation["terms"]) == (None, None, [])
        (game,) = explanation["games"]
        assert (game["game_id"], game["change"]) == ("feb-1", None)
        assert game["why_not"] == "catan-monthly@2008-03 counts neither player of a seat that changed hands"
    assert "not counted: catan-monthly@2008-03 counts neither" in ratings("explain", "dora", february, db=db).stdout


def test_explain_uses_the_account_at_that_time(ratings: Ratings, create_filled_ledger: Callable[..., str]) -> None:
    """`explain` of an annual list names the account that the player had at the end of the year, or at --as-of."""
    account = {"player": "cleo", "account": "free"}
    account_change = {"type": "player.account_changed", "occurred_at": "2010-03-20T12:00:00Z", "data": account}
    games = [
        build_list_game(f"c{day}", f"2010-03-{day:02d}T20:00:00Z", "cleo ben", group="cities-knights")
        for day in range(1, 8)
    ]
    db = create_filled_ledger([*games, account_change])

    def read_last_detail(*axes: str) -> Any:
        return read_output(ratings, db, "explain", "cleo", "catan-annual/7/cities-knights/2010", *axes)["terms"][-1][
            "detail"
        ]

    assert read_last_detail() == "a free account at the end of the year, not a premium one"
    assert read_last_detail("--as-of", "2010-03-31") == "a free account at that time, not a premium one"


def test_player_option_resolves_an_ambiguous_id(ratings: Ratings, create_filled_ledger: Callable[..., str]) -> None:
    """For an id of both a game and a player, `explain` shows the game, or with --player the player."""
    db = create_filled_ledger([build_league_game("anna", 1, "anna ben"), build_league_game("g-1", 2, "cleo dora")])

    assert read_output(ratings, db, "explain", "anna", "youplay-league/L")["game_id"] == "anna"
    assert read_output(ratings, db, "explain", "anna", "youplay-league/L", "--player")["points"] == "2"
    for name in ("nobody", "g-1"):
        result = ratings("explain", name, "youplay-league/L", "--player", db=db)
        expected = (1, "", f"Error: player-unknown: nothing is recorded about '{name}'\n")
        assert (result.exit_code, result.stdout, result.stderr) == expected


def test_annual_history_refers_to_months(ratings: Ratings, create_filled_ledger: Callable[..., str]) -> None:
    """The history of an annual list has no rows and refers to `explain`."""
    db = create_filled_ledger(build_list_events())

    assert read_output(ratings, db, "history", "cleo", YEAR)["rows"] == []
    assert ratings("history", "cleo", YEAR, db=db).stderr == (
        f"{YEAR} sums the places on monthly lists, so it has no changes of points; run: ratings explain cleo {YEAR}\n"
    )
    assert f"ratings explain cleo {MARCH}" in ratings("history", "cleo", MARCH, db=db).stdout
    assert ratings("player", "rename", "cleo", "María José", db=db).exit_code == 0
    assert ratings("history", "María José", YEAR, db=db).stderr.endswith(f"run: ratings explain 'María José' {YEAR}\n")


def test_account_change_shows_moved_ranks(ratings: Ratings, create_filled_ledger: Callable[..., str]) -> None:
    """Changing an account shows the moved ranks, although no points change.

    In Cities & Knights ben is ahead of anna, but has a free account at the end of the year.
    """
    db = create_filled_ledger(build_list_events())
    options = ("--at", "2010-12-30T12:00:00Z", "--dry-run")
    rank_changes = read_output(ratings, db, "player", "account", "ben", "premium", *options)["changes"]

    assert [(row["player"], row["change"], row["rank"]) for row in rank_changes] == [
        ("anna", "0", [1, 2]),
        ("ben", "0", [None, 1]),
    ]
    table = ratings("player", "account", "ben", "premium", *options, db=db).stdout.splitlines()
    assert [line.split() for line in table[-3:]] == [
        ["player", "before", "change", "after", "rank"],
        ["anna", "452", "0", "452", "1", "→", "2"],
        ["ben", "451", "0", "451", "-", "→", "1"],
    ]
