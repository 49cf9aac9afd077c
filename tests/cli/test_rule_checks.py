"""The checks that the sources of the rules state themselves, through the command line: results in, points out."""

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
    catan,
    event,
    galactic,
    new_ledger,
    points,
    read,
    take_in,
)

SEASON = "b5-league/2010-1"


def explained(ratings: Ratings, db: str, game_id: str, ladder: str) -> tuple[dict[str, str], dict[str, str]]:
    """Changes by player and amounts by account."""
    found = read(ratings, db, "explain", game_id, ladder)
    assert found["counted"] is True, found["why_not"]
    return (
        {player["player"]: player["change"] for player in found["players"]},
        {account["account"]: account["amount"] for account in found["accounts"]},
    )


def starting(ladder: str, start: int, **had: int) -> list[str]:
    """Adjustments that give players so many points before the games."""
    at = "2010-03-01T12:00:00Z"
    return [
        event("points.adjusted", at, ladder=ladder, player=player, points=str(units - start), reason="had so many")
        for player, units in had.items()
    ]


# the contribution pool: places as `a b=c`, changes in that order, what was burned

POOL = {
    "two": (["a", "b"], ["160", "-160"], "0"),
    "three": (["a", "b", "c"], ["230", "-30", "-200"], "0"),
    "four": (["a", "b", "c", "d"], ["275", "55", "-90", "-240"], "0"),
    # the fourth loses 220, of which three get 73 each
    "five": (["a", "b", "c", "d", "e"], ["323", "123", "-17", "-150", "-280"], "1"),
    "two tied first": (["a=b", "c"], ["100", "100", "-200"], "0"),
    "two tied last": (["a", "b=c"], ["260", "-130", "-130"], "0"),
    "all tied": (["a=b=c"], ["0", "0", "0"], "0"),
}  # fmt: skip


@pytest.mark.parametrize(("places", "changes", "burned"), POOL.values(), ids=POOL)
def test_contribution_pool_pays_better_places(
    places: list[str], changes: list[str], burned: str, tmp_path: Path, ratings: Ratings
) -> None:
    """Among newcomers in a contribution pool, better places take points from worse ones."""
    db = new_ledger(ratings, tmp_path / "ratings.db")
    take_in(ratings, db, galactic("g-1", *places))
    found, accounts = explained(ratings, db, "g-1", GALACTIC)

    assert list(found.values()) == changes
    assert accounts == {"minted": "0", "burned": burned}
    assert points(ratings, db, GALACTIC) == {player: str(1000 + int(change)) for player, change in found.items()}


@pytest.mark.parametrize(("seconds", "bonus"), [(600, 0), (601, 100)])
def test_bonus_is_minted_after_600_seconds(seconds: int, bonus: int, tmp_path: Path, ratings: Ratings) -> None:
    """A player who plays for more than 600 seconds gets a minted bonus of 100 points."""
    db = new_ledger(ratings, tmp_path / "ratings.db")
    participants = [{"player": "a", "place": 1}, {"player": "b", "place": 2, "seconds_played": seconds}]
    take_in(ratings, db, galactic("g-1", participants=participants))

    assert explained(ratings, db, "g-1", GALACTIC) == (
        {"a": "160", "b": str(bonus - 160)}, {"minted": str(-bonus), "burned": "0"},
    )  # fmt: skip


def test_dust_burns_only_with_two_winners(tmp_path: Path, ratings: Ratings) -> None:
    """If a new version gives dust to the winner, dust is burned only when there are two winners."""
    db = new_ledger(ratings, tmp_path / "ratings.db")
    text = (SHIPPED / "galactic-points-1.toml").read_text(encoding="utf-8")
    text = text.replace('version = "1"', 'version = "2"').replace('dust = "burn"', 'dust = "winner"')
    (tmp_path / "second.toml").write_text(text, encoding="utf-8")
    assert ratings("rules", "publish", tmp_path / "second.toml", db=db).exit_code == 0
    take_in(ratings, db, galactic("g-1", "a", "b", "c", "d", "e"), galactic("g-2", "f=g", "h", "i", "j"))

    changes, accounts = explained(ratings, db, "g-1", GALACTIC)
    assert (changes["a"], accounts["burned"]) == ("324", "0")
    changes, accounts = explained(ratings, db, "g-2", GALACTIC)
    assert changes["f"] == changes["g"]
    assert int(accounts["burned"]) == -sum(map(int, changes.values())) > 0


# the ante pool: a seat is `anna 20 1 +`, the player with power and victory points, and + or ++ for a victory


def b5(game_id: str, *seats: str, at: str = NOON, season: str = "2010-1", within_time: bool = False) -> str:
    """A game of the Babylon 5 league as a line."""
    participants: list[dict[str, Any]] = []
    for text in seats:
        player, power, vp, *victory = text.split()
        won = {"victory": {"+": "standard", "++": "major"}[victory[0]]} if victory else {}
        participants.append({"player": player, "power": int(power), "influence": 5, "vp": int(vp), **won})
    data = {"game": "babylon5", "kind": "b5", "season": season, "within_time": within_time}
    return event("game.recorded", at, game_id=game_id, **data, participants=participants)


@pytest.fixture
def league(copied_file: Callable[..., str]) -> str:
    """A ledger with the Babylon 5 league."""
    return copied_file(new_ledger, "b5-league-1", name="league.db")


def test_win_in_time_ends_on_102(league: str, ratings: Ratings) -> None:
    """From 95 points, winning in time and keeping one of three victory points ends on 102 points."""
    take_in(
        ratings, league, *starting(SEASON, 100, richie=95),
        b5("g-1", "richie 20 1 +", "human 15 2", "narn 12 0", "minbari 9 0", within_time=True),
    )  # fmt: skip
    changes, accounts = explained(ratings, league, "g-1", SEASON)

    # antes 9 + 10 + 10 + 10 = 39, of which 15, 11, 7 and 3 come back
    assert changes == {"richie": "7", "human": "3", "narn": "-3", "minbari": "-7"}
    assert accounts == {"minted": "-3", "burned": "3"}
    assert points(ratings, league, SEASON)["richie"] == "102"
    winner = read(ratings, league, "explain", "g-1", SEASON)["players"][0]
    assert sorted(int(term["amount"]) for term in winner["terms"]) == [-9, 1, 15]


def test_tied_second_and_third_get_nine(league: str, ratings: Ratings) -> None:
    """When second and third tie for a pot of 38, each gets 9 back."""
    take_in(
        ratings, league, *starting(SEASON, 100, c=95, d=95), b5("g-1", "a 20 0 +", "b 15 1", "c 15 1", "d 9 0"),
    )  # fmt: skip
    changes, _ = explained(ratings, league, "g-1", SEASON)

    # 15 of 38 for the first, floor(38 * 50 / 200) = 9 for each of the tied, 3 for the last, and the victory points
    assert changes == {"a": "5", "b": "0", "c": "1", "d": "-6"}


LOSING = [
    100, 90, 81, 73, 66, 60, 54, 49, 45, 41, 37, 34, 31, 28, 26, 24, 22, 20, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9,
]  # fmt: skip


def test_constant_loser_falls_to_9_points(league: str, ratings: Ratings) -> None:
    """A player who always loses and gets nothing back falls to 9 points and no further."""
    take_in(
        ratings, league,
        *(b5(f"g-{n}", f"a{n} 20 0 +", f"b{n} 15 3", f"c{n} 12 0", f"d{n} 10 0", "loser 1 0",
             at=f"2010-03-{n:02d}T12:00:00Z") for n in range(1, len(LOSING) + 1)),
    )  # fmt: skip
    rows = read(ratings, league, "history", "loser", SEASON)["rows"]

    assert [row["before"] for row in rows] == [str(units) for units in LOSING]
    assert (rows[-1]["change"], rows[-1]["after"]) == ("0", "9")


SHARES = {3: [50, 30, 20], 4: [40, 30, 20, 10], 5: [40, 30, 20, 10, 0], 7: [40, 30, 20, 10, 0, 0, 0]}


@pytest.mark.parametrize("size", SHARES)
def test_pot_shares_depend_on_player_count(size: int, league: str, ratings: Ratings) -> None:
    """A pot of 10 from each player is shared by place, with the shares for that number of players."""
    seats = [f"p{i} {20 - i} {size - 2 if i == 1 else 0}{' +' * (i == 0)}" for i in range(size)]
    take_in(ratings, league, b5("g-1", *seats))
    changes, accounts = explained(ratings, league, "g-1", SEASON)

    back = [share * size // 10 for share in SHARES[size]]
    without_victory_points = {**changes, "p1": int(changes["p1"]) - (size - 2)}
    assert [int(change) + 10 for change in without_victory_points.values()] == back
    assert (accounts["minted"], accounts["burned"]) == (str(2 - size), str(10 * size - sum(back)))


def test_major_victory_ranks_above_standard(league: str, ratings: Ratings) -> None:
    """A major victory is placed above a standard one, whatever the power."""
    take_in(ratings, league, b5("g-1", "standard 30 1 +", "major 10 0 ++", "strong 40 1", "weak 1 1"))

    found = read(ratings, league, "explain", "g-1", SEASON)["players"]
    assert [player["player"] for player in found] == ["major", "standard", "strong", "weak"]


def test_two_standard_victories_share_the_ante(copied_file: Callable[..., str], ratings: Ratings) -> None:
    """Winners at power 21 and 18 share the ante from version 2 on; version 1 still lets power decide."""
    db = copied_file(new_ledger, "b5-league-1", "b5-league-2")
    take_in(ratings, db, b5("g-1", "ian 21 1 +", "richie 18 1 +", "c 9 0", "d 8 0"))

    assert explained(ratings, db, "g-1", SEASON)[0] == {"ian": "5", "richie": "5", "c": "-2", "d": "-6"}
    found = read(ratings, db, "explain", "g-1", SEASON, "--rules", "b5-league@1")["players"]
    assert [player["change"] for player in found] == ["7", "3", "-2", "-6"]
    told = ratings("explain", "g-1", SEASON, db=db).stdout
    assert "share: 35 % of the pot of 40" in told
    assert "shares 40 + 30 of places 1 and 2, divided by 2" in told


def test_dual_race_is_recorded_and_shown(league: str, ratings: Ratings) -> None:
    """A dual race is recorded as it is written, from JSON and from a table."""
    game = json.loads(b5("g-1", "a 20 0 +", "b 15 1", "c 9 0"))
    game["data"]["participants"][0]["race"] = "Narn/Centauri"
    take_in(ratings, league, json.dumps(game))
    assert read(ratings, league, "games")["rows"][0]["participants"][0]["race"] == "Narn/Centauri"


def test_rank_needs_five_season_games(league: str, ratings: Ratings) -> None:
    """A player needs five games for a rank, and a new season starts everybody at 100."""
    seats = ["a 20 0 +", "b 15 1", "c 9 0"]
    take_in(ratings, league, *(b5(f"g-{n}", *seats) for n in range(4)))
    rows = read(ratings, league, "standings", SEASON)["rows"]
    assert {(row["rank"], row["qualified"]) for row in rows} == {(None, False)}
    take_in(ratings, league, b5("g-4", *seats), b5("g-5", *seats, at="2010-05-01T12:00:00Z", season="2010-2"))
    rows = read(ratings, league, "standings", SEASON)["rows"]
    assert [(row["rank"], row["qualified"]) for row in rows] == [(1, True), (2, True), (3, True)]
    second = read(ratings, league, "explain", "g-5", "b5-league/2010-2")["players"]
    assert {player["before"] for player in second} == {"100"}


# the Catan lists


@pytest.fixture
def lists(copied_file: Callable[..., str]) -> str:
    """A ledger with the Catan Elo lists."""
    return copied_file(new_ledger, "catan-elo-2009-01", name="lists.db")


def test_documented_example_scores_as_written(lists: str, ratings: Ratings) -> None:
    """The documented Catan example scores every pair and every sum as written."""
    take_in(ratings, lists, *starting(BASIC, 1000, a=1200, b=1000, c=1400), catan("g-1", "a", "b", "c"))
    found = read(ratings, lists, "explain", "g-1", BASIC)["players"]

    assert {player["player"]: player["change"] for player in found} == {"a": "8", "b": "5", "c": "-13"}
    assert {(player["player"], term["term"]): term["amount"] for player in found for term in player["terms"]} == {
        ("a", "vs b"): "2", ("a", "vs c"): "6", ("b", "vs a"): "-2", ("b", "vs c"): "7", ("c", "vs a"): "-6",
        ("c", "vs b"): "-7",
    }  # fmt: skip


MOST = {
    "two": (["low", "b"], {"b": 4000}, "8"), "four": (["low", "b", "c", "d"], {"b": 4000, "c": 4000, "d": 4000}, "24"),
    "two equals": (["low", "b"], {}, "4"), "a tie of equals": (["low=b"], {}, "0"),
    "a tie with the best": (["low=b"], {"b": 4000}, "4"),
}  # fmt: skip


@pytest.mark.parametrize(("places", "had", "change"), MOST.values(), ids=MOST)
def test_pair_exchanges_at_most_8_points(
    places: list[str], had: dict[str, int], change: str, lists: str, ratings: Ratings
) -> None:
    """However far apart the ratings are, at most 8 points change hands per pair."""
    take_in(ratings, lists, *starting(BASIC, 1000, **had), catan("g-1", *places))
    changes, accounts = explained(ratings, lists, "g-1", BASIC)

    assert changes["low"] == change
    assert (sum(map(int, changes.values())), accounts) == (0, {"minted": "0", "burned": "0"})


LEFT_OUT = {
    "a leaver and his substitute": ([
        {"player": "a", "place": 1}, {"player": "b", "place": 2}, {"player": "c", "place": 3, "status": "abandoned"},
        {"player": "d", "place": 3, "status": "substitute", "replaces": "c"},
    ], {"a": "4", "b": "-4", "c": "0", "d": "0"}),
    "somebody with a free account": ([
        {"player": "a", "place": 1}, {"player": "free", "place": 2}, {"player": "b", "place": 3},
    ], {"a": "4", "free": "0", "b": "-4"}),
    "all but one": ([{"player": "a", "place": 1}, {"player": "free", "place": 2}], None),
}  # fmt: skip


@pytest.mark.parametrize(("participants", "changes"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_uncounted_players_are_in_no_pair(
    participants: list[dict[str, Any]], changes: dict[str, str] | None, lists: str, ratings: Ratings
) -> None:
    """Players who do not count are in no pair, and the reason is given."""
    account = event("player.account_changed", NOON, player="free", account="free")
    take_in(ratings, lists, account, catan("g-1", participants=participants))
    found = read(ratings, lists, "explain", "g-1", BASIC)

    assert found["counted"] is (changes is not None)
    assert found["why_not"] == (None if changes else "fewer than two counted players")
    expected = changes or {"a": "0", "free": "0"}
    assert {player["player"]: player["change"] for player in found["players"]} == expected
    assert points(ratings, lists, BASIC).keys() == {player for player, change in expected.items() if change != "0"}


def test_aborted_or_unrated_game_scores_nothing(lists: str, ratings: Ratings) -> None:
    """Aborted and unrated games give nobody points, and `explain` says if a game was aborted."""
    take_in(ratings, lists, catan("g-1", "a", "b", aborted=True), catan("g-2", "a", "b", rated=False))

    assert points(ratings, lists, BASIC) == {}
    told = json.loads(ratings("explain", "g-1", BASIC, "--format", "json", db=lists).stdout)["why_not"]
    assert "aborted" in told
