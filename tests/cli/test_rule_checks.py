"""Examples and limits from the sources of the rules, checked through the command line: from results to points."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from correction_helpers import (
    BASIC,
    GALACTIC,
    NOON,
    SHIPPED,
    Ratings,
    append_lines,
    build_catan_line,
    build_event_line,
    build_galactic_line,
    create_ledger,
    read_json,
    read_points,
)

SEASON = "b5-league/2010-1"


def read_changes_and_accounts(
    ratings: Ratings, db: str, game_id: str, ladder: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the changes by player and the amounts by account of a counted game."""
    explanation = read_json(ratings, db, "explain", game_id, ladder)
    assert explanation["counted"] is True, explanation["why_not"]
    return (
        {player["player"]: player["change"] for player in explanation["players"]},
        {account["account"]: account["amount"] for account in explanation["accounts"]},
    )


def build_adjustments(ladder: str, start: int, **points: int) -> list[str]:
    """Return adjustments that give players these points before the games."""
    at = "2010-03-01T12:00:00Z"
    return [
        build_event_line(
            "points.adjusted", at, ladder=ladder, player=player, points=str(target - start), reason="had so many"
        )
        for player, target in points.items()
    ]


# the contribution pool: places as `a b=c`, changes in that order, and the burned amount

POOL = {
    "two": (["a", "b"], ["160", "-160"], "0"),
    "three": (["a", "b", "c"], ["230", "-30", "-200"], "0"),
    "four": (["a", "b", "c", "d"], ["275", "55", "-90", "-240"], "0"),
    # the fourth loses 220; each of three gets 73
    "five": (["a", "b", "c", "d", "e"], ["323", "123", "-17", "-150", "-280"], "1"),
    "two tied first": (["a=b", "c"], ["100", "100", "-200"], "0"),
    "two tied last": (["a", "b=c"], ["260", "-130", "-130"], "0"),
    "all tied": (["a=b=c"], ["0", "0", "0"], "0"),
}


@pytest.mark.parametrize(("places", "changes", "burned"), POOL.values(), ids=POOL)
def test_contribution_pool_pays_better_places(
    places: list[str], changes: list[str], burned: str, tmp_path: Path, ratings: Ratings
) -> None:
    """Among newcomers in a contribution pool, better places take points from worse ones."""
    db = create_ledger(ratings, tmp_path / "ratings.db")
    append_lines(ratings, db, build_galactic_line("g-1", *places))
    changes_by_player, accounts = read_changes_and_accounts(ratings, db, "g-1", GALACTIC)

    assert list(changes_by_player.values()) == changes
    assert accounts == {"minted": "0", "burned": burned}
    assert read_points(ratings, db, GALACTIC) == {
        player: str(1000 + int(change)) for player, change in changes_by_player.items()
    }


@pytest.mark.parametrize(("seconds", "bonus"), [(600, 0), (601, 100)])
def test_bonus_is_minted_after_600_seconds(seconds: int, bonus: int, tmp_path: Path, ratings: Ratings) -> None:
    """A player who plays for more than 600 seconds gets a minted bonus of 100 points."""
    db = create_ledger(ratings, tmp_path / "ratings.db")
    participants = [{"player": "a", "place": 1}, {"player": "b", "place": 2, "seconds_played": seconds}]
    append_lines(ratings, db, build_galactic_line("g-1", participants=participants))

    assert read_changes_and_accounts(ratings, db, "g-1", GALACTIC) == (
        {"a": "160", "b": str(bonus - 160)},
        {"minted": str(-bonus), "burned": "0"},
    )


def test_dust_burns_only_with_two_winners(tmp_path: Path, ratings: Ratings) -> None:
    """With a version that gives dust to the winner, dust is burned only if there are two winners."""
    db = create_ledger(ratings, tmp_path / "ratings.db")
    text = (SHIPPED / "galactic-points-1.toml").read_text(encoding="utf-8")
    text = text.replace('version = "1"', 'version = "2"').replace('dust = "burn"', 'dust = "winner"')
    (tmp_path / "second.toml").write_text(text, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "second.toml", db=db).exit_code == 0
    append_lines(
        ratings,
        db,
        build_galactic_line("g-1", "a", "b", "c", "d", "e"),
        build_galactic_line("g-2", "f=g", "h", "i", "j"),
    )

    changes, accounts = read_changes_and_accounts(ratings, db, "g-1", GALACTIC)
    assert (changes["a"], accounts["burned"]) == ("324", "0")
    changes, accounts = read_changes_and_accounts(ratings, db, "g-2", GALACTIC)
    assert changes["f"] == changes["g"]
    assert int(accounts["burned"]) == -sum(map(int, changes.values())) > 0


# the ante pool: a seat is `anna 20 1 +`, the player with power and victory points, and + or ++ for a victory


def build_b5_line(game_id: str, *seats: str, at: str = NOON, season: str = "2010-1", within_time: bool = False) -> str:
    """Return a game of the Babylon 5 league as a line."""
    participants: list[dict[str, Any]] = []
    for text in seats:
        player, power, vp, *victory = text.split()
        victory_member = {"victory": {"+": "standard", "++": "major"}[victory[0]]} if victory else {}
        participants.append({"player": player, "power": int(power), "influence": 5, "vp": int(vp), **victory_member})
    data = {"game": "babylon5", "kind": "b5", "season": season, "within_time": within_time}
    return build_event_line("game.recorded", at, game_id=game_id, **data, participants=participants)


@pytest.fixture
def league_db(copy_ledger_file: Callable[..., str]) -> str:
    """Return the path of a ledger with the Babylon 5 league."""
    return copy_ledger_file(create_ledger, "b5-league-1", name="league.db")


def test_win_in_time_ends_on_102(league_db: str, ratings: Ratings) -> None:
    """From 95 points, a win within time with one of three victory points kept ends on 102 points."""
    append_lines(
        ratings,
        league_db,
        *build_adjustments(SEASON, 100, richie=95),
        build_b5_line("g-1", "richie 20 1 +", "human 15 2", "narn 12 0", "minbari 9 0", within_time=True),
    )
    changes, accounts = read_changes_and_accounts(ratings, league_db, "g-1", SEASON)

    # antes 9 + 10 + 10 + 10 = 39; the shares are 15, 11, 7 and 3
    assert changes == {"richie": "7", "human": "3", "narn": "-3", "minbari": "-7"}
    assert accounts == {"minted": "-3", "burned": "3"}
    assert read_points(ratings, league_db, SEASON)["richie"] == "102"
    winner = read_json(ratings, league_db, "explain", "g-1", SEASON)["players"][0]
    assert sorted(int(term["amount"]) for term in winner["terms"]) == [-9, 1, 15]


def test_tied_second_and_third_get_nine(league_db: str, ratings: Ratings) -> None:
    """If second and third tie in a game with a pot of 38, each gets 9 back."""
    append_lines(
        ratings,
        league_db,
        *build_adjustments(SEASON, 100, c=95, d=95),
        build_b5_line("g-1", "a 20 0 +", "b 15 1", "c 15 1", "d 9 0"),
    )
    changes, _ = read_changes_and_accounts(ratings, league_db, "g-1", SEASON)

    # 15 of 38 for the first, floor(38 * 50 / 200) = 9 for each of the tied, 3 for the last, and the victory points
    assert changes == {"a": "5", "b": "0", "c": "1", "d": "-6"}


LOSER_POINTS = [
    100, 90, 81, 73, 66, 60, 54, 49, 45, 41, 37, 34, 31, 28, 26, 24, 22, 20, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9,
]  # fmt: skip


def test_constant_loser_falls_to_9_points(league_db: str, ratings: Ratings) -> None:
    """A player who always loses and gets nothing back falls to 9 points and no further."""
    append_lines(
        ratings, league_db,
        *(build_b5_line(f"g-{n}", f"a{n} 20 0 +", f"b{n} 15 3", f"c{n} 12 0", f"d{n} 10 0", "loser 1 0",
             at=f"2010-03-{n:02d}T12:00:00Z") for n in range(1, len(LOSER_POINTS) + 1)),
    )  # fmt: skip
    rows = read_json(ratings, league_db, "history", "loser", SEASON)["rows"]

    assert [row["before"] for row in rows] == [str(points) for points in LOSER_POINTS]
    assert (rows[-1]["change"], rows[-1]["after"]) == ("0", "9")


SHARES = {3: [50, 30, 20], 4: [40, 30, 20, 10], 5: [40, 30, 20, 10, 0], 7: [40, 30, 20, 10, 0, 0, 0]}


@pytest.mark.parametrize("size", SHARES)
def test_pot_shares_depend_on_player_count(size: int, league_db: str, ratings: Ratings) -> None:
    """A pot of 10 from each player is shared by place, with the shares for that number of players."""
    seats = [f"p{i} {20 - i} {size - 2 if i == 1 else 0}{' +' * (i == 0)}" for i in range(size)]
    append_lines(ratings, league_db, build_b5_line("g-1", *seats))
    changes, accounts = read_changes_and_accounts(ratings, league_db, "g-1", SEASON)

    shares = [share * size // 10 for share in SHARES[size]]
    without_victory_points = {**changes, "p1": int(changes["p1"]) - (size - 2)}
    assert [int(change) + 10 for change in without_victory_points.values()] == shares
    assert (accounts["minted"], accounts["burned"]) == (str(2 - size), str(10 * size - sum(shares)))


def test_major_victory_ranks_above_standard(league_db: str, ratings: Ratings) -> None:
    """A major victory is placed above a standard one, whatever the power."""
    append_lines(
        ratings, league_db, build_b5_line("g-1", "standard 30 1 +", "major 10 0 ++", "strong 40 1", "weak 1 1")
    )

    players = read_json(ratings, league_db, "explain", "g-1", SEASON)["players"]
    assert [player["player"] for player in players] == ["major", "standard", "strong", "weak"]


def test_two_standard_victories_share_two_places(copy_ledger_file: Callable[..., str], ratings: Ratings) -> None:
    """From version 2 on, winners with power 21 and 18 get equal shares of the pot; in version 1, power decides."""
    db = copy_ledger_file(create_ledger, "b5-league-1", "b5-league-2")
    append_lines(ratings, db, build_b5_line("g-1", "ian 21 1 +", "richie 18 1 +", "c 9 0", "d 8 0"))

    assert read_changes_and_accounts(ratings, db, "g-1", SEASON)[0] == {"ian": "5", "richie": "5", "c": "-2", "d": "-6"}
    players = read_json(ratings, db, "explain", "g-1", SEASON, "--rules", "b5-league@1")["players"]
    assert [player["change"] for player in players] == ["7", "3", "-2", "-6"]
    stdout = ratings("explain", "g-1", SEASON, db=db).stdout
    assert "share: 35 % of the pot of 40" in stdout
    assert "shares 40 + 30 of places 1 and 2, divided by 2" in stdout


def test_dual_race_is_recorded_as_written(league_db: str, ratings: Ratings) -> None:
    """A dual race is recorded as written."""
    game = json.loads(build_b5_line("g-1", "a 20 0 +", "b 15 1", "c 9 0"))
    game["data"]["participants"][0]["race"] = "Narn/Centauri"
    append_lines(ratings, league_db, json.dumps(game))
    assert read_json(ratings, league_db, "games")["rows"][0]["participants"][0]["race"] == "Narn/Centauri"


def test_rank_needs_five_season_games(league_db: str, ratings: Ratings) -> None:
    """A player needs five games for a rank, and a new season starts every player at 100."""
    seats = ["a 20 0 +", "b 15 1", "c 9 0"]
    append_lines(ratings, league_db, *(build_b5_line(f"g-{n}", *seats) for n in range(4)))
    rows = read_json(ratings, league_db, "standings", SEASON)["rows"]
    assert {(row["rank"], row["qualified"]) for row in rows} == {(None, False)}
    append_lines(
        ratings,
        league_db,
        build_b5_line("g-4", *seats),
        build_b5_line("g-5", *seats, at="2010-05-01T12:00:00Z", season="2010-2"),
    )
    rows = read_json(ratings, league_db, "standings", SEASON)["rows"]
    assert [(row["rank"], row["qualified"]) for row in rows] == [(1, True), (2, True), (3, True)]
    players = read_json(ratings, league_db, "explain", "g-5", "b5-league/2010-2")["players"]
    assert {player["before"] for player in players} == {"100"}


# the Catan lists


@pytest.fixture
def lists_db(copy_ledger_file: Callable[..., str]) -> str:
    """Return the path of a ledger with the Catan Elo lists."""
    return copy_ledger_file(create_ledger, "catan-elo-2009-01", name="lists.db")


def test_documented_example_scores_as_written(lists_db: str, ratings: Ratings) -> None:
    """The documented Catan example gives every pair and every sum as written."""
    append_lines(
        ratings,
        lists_db,
        *build_adjustments(BASIC, 1000, a=1200, b=1000, c=1400),
        build_catan_line("g-1", "a", "b", "c"),
    )
    players = read_json(ratings, lists_db, "explain", "g-1", BASIC)["players"]

    assert {player["player"]: player["change"] for player in players} == {"a": "8", "b": "5", "c": "-13"}
    assert {(player["player"], term["term"]): term["amount"] for player in players for term in player["terms"]} == {
        ("a", "vs b"): "2",
        ("a", "vs c"): "6",
        ("b", "vs a"): "-2",
        ("b", "vs c"): "7",
        ("c", "vs a"): "-6",
        ("c", "vs b"): "-7",
    }


LARGEST_EXCHANGES = {
    "two": (["low", "b"], {"b": 4000}, "8"),
    "four": (["low", "b", "c", "d"], {"b": 4000, "c": 4000, "d": 4000}, "24"),
    "two equals": (["low", "b"], {}, "4"),
    "a tie of equals": (["low=b"], {}, "0"),
    "a tie with the best": (["low=b"], {"b": 4000}, "4"),
}


@pytest.mark.parametrize(("places", "points", "change"), LARGEST_EXCHANGES.values(), ids=LARGEST_EXCHANGES)
def test_pair_exchanges_at_most_8_points(
    places: list[str], points: dict[str, int], change: str, lists_db: str, ratings: Ratings
) -> None:
    """At most 8 points change hands per pair, for any difference of ratings."""
    append_lines(ratings, lists_db, *build_adjustments(BASIC, 1000, **points), build_catan_line("g-1", *places))
    changes, accounts = read_changes_and_accounts(ratings, lists_db, "g-1", BASIC)

    assert changes["low"] == change
    assert (sum(map(int, changes.values())), accounts) == (0, {"minted": "0", "burned": "0"})


UNCOUNTED_PLAYERS = {
    "a leaver and their substitute": ([
        {"player": "a", "place": 1}, {"player": "b", "place": 2}, {"player": "c", "place": 3, "status": "abandoned"},
        {"player": "d", "place": 3, "status": "substitute", "replaces": "c"},
    ], {"a": "4", "b": "-4", "c": "0", "d": "0"}),
    "a player with a free account": ([
        {"player": "a", "place": 1}, {"player": "free", "place": 2}, {"player": "b", "place": 3},
    ], {"a": "4", "free": "0", "b": "-4"}),
    "all but one": ([{"player": "a", "place": 1}, {"player": "free", "place": 2}], None),
}  # fmt: skip


@pytest.mark.parametrize(("participants", "changes"), UNCOUNTED_PLAYERS.values(), ids=UNCOUNTED_PLAYERS)
def test_uncounted_players_are_in_no_pair(
    participants: list[dict[str, Any]], changes: dict[str, str] | None, lists_db: str, ratings: Ratings
) -> None:
    """Players who do not count are in no pair, and the reason is given."""
    account = build_event_line("player.account_changed", NOON, player="free", account="free")
    append_lines(ratings, lists_db, account, build_catan_line("g-1", participants=participants))
    explanation = read_json(ratings, lists_db, "explain", "g-1", BASIC)

    assert explanation["counted"] is (changes is not None)
    assert explanation["why_not"] == (None if changes else "fewer than two counted players")
    expected = changes or {"a": "0", "free": "0"}
    assert {player["player"]: player["change"] for player in explanation["players"]} == expected
    assert read_points(ratings, lists_db, BASIC).keys() == {
        player for player, change in expected.items() if change != "0"
    }


def test_aborted_and_unrated_games_score_nothing(lists_db: str, ratings: Ratings) -> None:
    """Aborted and unrated games give no points, and `explain` says that a game was aborted."""
    append_lines(
        ratings,
        lists_db,
        build_catan_line("g-1", "a", "b", aborted=True),
        build_catan_line("g-2", "a", "b", rated=False),
    )

    assert read_points(ratings, lists_db, BASIC) == {}
    why_not = json.loads(ratings("explain", "g-1", BASIC, "--format", "json", db=lists_db).stdout)["why_not"]
    assert "aborted" in why_not
