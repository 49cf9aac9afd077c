"""Lists as functions: from the points of games to ranked rows."""

from fractions import Fraction
from functools import partial

import pytest
from ranked_lists import build_ranking_input, build_year, explain, rank

from ratings_ledger.rules import Params, PeriodParams, TableParams


def list_ranks(kind, results):
    """Return (rank, player) of every row."""
    return [(row.rank, row.player) for row in rank(kind, results)]


def list_table(params, *games, **more):
    """Return (rank, player, points) of every row of a league's table."""
    return [(row.rank, row.player, row.points) for row in rank("table", build_ranking_input(params, *games, **more))]


def test_equal_points_share_a_rank():
    """Running points are ranked from highest to lowest, and equal points share a rank."""
    results = build_ranking_input(Params(), "zoe 5 anna 5 ben 7", "cleo -3")

    assert list_ranks("points", results) == [(1, "ben"), (2, "anna"), (2, "zoe"), (4, "cleo")]
    assert explain("points", results, "cleo") == [("points", -3, "after all games and adjustments")]


def test_too_few_games_means_no_rank():
    """Players with too few games come last, without a rank.

    Even if such a player has the most points, the ranks of the others are as they would be without the player.
    """
    games = ["anna 9 ben 1", "ben 3 cleo 3", "cleo 1 ben 0", "dora 12"]

    expected = [(1, "ben"), (1, "cleo"), (None, "dora"), (None, "anna")]
    assert list_ranks("points", build_ranking_input(Params(min_games=2), *games)) == expected
    assert list_ranks("table", build_ranking_input(TableParams(min_games=2), *games)) == expected
    assert [row.qualified for row in rank("table", build_ranking_input(TableParams(min_games=2), *games))] == [
        True,
        True,
        False,
        False,
    ]


LEAGUE = ["anna 6 ben 2 cleo 0", "ben 6 anna 2 cleo 0", "anna 3 cleo 3 ben 0", "cleo -2 ben 4"]


def test_league_sums_all_games():
    """A league sums the points of all games."""
    assert list_table(TableParams(), *LEAGUE) == [(1, "ben", 12), (2, "anna", 11), (3, "cleo", 1)]


@pytest.mark.parametrize(
    ("best_of", "rows"),
    [
        (1, [(1, "anna", 6), (1, "ben", 6), (3, "cleo", 3)]),
        (2, [(1, "ben", 10), (2, "anna", 9), (3, "cleo", 3)]),
        (3, [(1, "ben", 12), (2, "anna", 11), (3, "cleo", 3)]),
        (4, [(1, "ben", 12), (2, "anna", 11), (3, "cleo", 1)]),
        (9, [(1, "ben", 12), (2, "anna", 11), (3, "cleo", 1)]),
    ],
)
def test_best_of_counts_the_best_games(best_of, rows):
    """With `best_of`, only each player's best games count."""
    assert list_table(TableParams(best_of=best_of), *LEAGUE) == rows


def test_adjustment_counts_beside_best_games():
    """An adjustment counts in addition to the best games."""
    params = TableParams(best_of=1)
    results = build_ranking_input(params, *LEAGUE, adjusted={"cleo": 4})

    assert list_table(params, *LEAGUE, adjusted={"cleo": 4}) == [(1, "cleo", 7), (2, "anna", 6), (2, "ben", 6)]
    assert explain("table", results, "cleo") == [
        ("sum", 7, "of the best 1 of 4 games, with start points and adjustments"),
    ]


def test_scaled_sum_is_exact():
    """The explanation of a table with a scale gives the exact sum."""
    results = build_ranking_input(TableParams(), "anna 5600 ben 0", scale=840)

    assert explain("table", results, "anna") == [("sum", Fraction(20, 3), "of all games")]


TIES = {
    "shared": ("none", ["anna 3 ben 1", "ben 3 anna 1"], [(1, "anna"), (1, "ben")]),
    "more wins, one big win against two": (
        "more wins", ["anna 6 ben 0", "ben 3 anna 0", "ben 3 cleo 0"], [(1, "ben"), (2, "anna"), (3, "cleo")],
    ),
    "more wins, a shared first place is a win": (
        "more wins", ["anna 2 cleo 2 dora 0", "ben 2 dora 0", "anna 1 dora 9", "ben 1 dora 9"],
        [(1, "dora"), (2, "anna"), (2, "ben"), (4, "cleo")],
    ),
    "more wins, a tie of all players is no win": (
        "more wins", ["anna 1 cleo 1", "anna 1 cleo 1", "ben 2 dora 0"],
        [(1, "ben"), (2, "anna"), (2, "cleo"), (4, "dora")],
    ),
    "head-to-head, won less lost": (
        "head-to-head",
        ["anna 2 ben 0", "anna 2 ben 0", "ben 2 anna 0", "ben 2 anna 0", "cleo 2 anna 0", "cleo 2 zoe 0"],
        [(1, "cleo"), (2, "ben"), (3, "anna"), (4, "zoe")],
    ),
    "more wins, equal: shared": ("more wins", ["anna 3 ben 1", "ben 3 anna 1"], [(1, "anna"), (1, "ben")]),
    "more wins do not beat more points": (
        "more wins", ["anna 9 ben 0", "ben 1 anna 0", "ben 1 anna 0"], [(1, "anna"), (2, "ben")],
    ),
    "head-to-head, more points in their common games": (
        "head-to-head", ["zoe 3 anna 0", "anna 3 cleo 1", "cleo 1 dora 0"],
        [(1, "zoe"), (2, "anna"), (3, "cleo"), (4, "dora")],
    ),
    "head-to-head, one each: shared": ("head-to-head", ["anna 3 ben 1", "ben 3 anna 1"], [(1, "anna"), (1, "ben")]),
    "head-to-head, a circle: shared": (
        "head-to-head", ["anna 2 ben 1", "ben 2 cleo 1", "cleo 2 anna 1"], [(1, "anna"), (1, "ben"), (1, "cleo")],
    ),
    "head-to-head, they never met: shared": (
        "head-to-head", ["anna 2 cleo 1", "ben 2 cleo 0"], [(1, "anna"), (1, "ben"), (3, "cleo")],
    ),
    "head-to-head, players who are not tied do not matter": (
        "head-to-head", ["anna 3 cleo 0", "cleo 9 ben 3"], [(1, "cleo"), (2, "anna"), (2, "ben")],
    ),
    "head-to-head, equal in their game": (
        "head-to-head", ["anna 2 ben 2", "anna 0 cleo 9", "ben 0 cleo 9"], [(1, "cleo"), (2, "anna"), (2, "ben")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tie_break", "games", "rows"), TIES.values(), ids=TIES)
def test_tie_break_decides_equal_points(tie_break, games, rows):
    """The tie-break decides between equal points; if it cannot, the rank is shared."""
    assert list_ranks("table", build_ranking_input(TableParams(tie_break=tie_break), *games)) == rows


def test_unqualified_opponent_breaks_no_tie():
    """Games against an unqualified player break no tie.

    Anna and Ben never met; Cleo lost to Anna but has too few games, so Anna and Ben share a rank.
    """
    params = TableParams(tie_break="head-to-head", min_games=2)
    games = ["anna 3 cleo 0", "anna 0 dora 0", "ben 3 dora 0", "ben 0 dora 0"]
    results = build_ranking_input(params, *games, adjusted={"cleo": 3})

    assert list_ranks("table", results) == [(1, "anna"), (1, "ben"), (3, "dora"), (None, "cleo")]


MONTH_PARAMS = {"score": "mean", "min_games": 2}


def list_month(*games, scale=1, **params):
    """Return (rank, player, exact score, gold) of every row of a month."""
    results = build_ranking_input(PeriodParams(**(MONTH_PARAMS | params)), *games, scale=scale)
    return [(row.rank, row.player, str(row.exact_points(scale)), row.gold) for row in rank("period", results)]


def test_month_ranks_by_mean():
    """A month is ranked by the mean, and players with too few games have no rank."""
    games = ["anna 3 ben 1", "anna 1 ben 3", "anna 1 cleo 3"]

    assert list_month(*games) == [(1, "ben", "2", None), (2, "anna", "5/3", None), (None, "cleo", "3", None)]
    assert list_month(*games, score="sum") == [(1, "anna", "5", None), (2, "ben", "4", None), (None, "cleo", "3", None)]
    assert [row[0] for row in list_month(*games, min_games=4)] == [None, None, None]


def test_equal_means_share_a_place():
    """Equal means share a place, even if no float holds them exactly, and the next place is skipped.

    Two players with a mean of 20/60, over three games and over seven, are both first, and the next is third.
    """
    games = ["zoe 20 anna 20"] * 3 + ["anna 20"] * 4 + ["ben 19"] * 7

    assert list_month(*games, scale=60, min_games=3) == [
        (1, "anna", "1/3", None),
        (1, "zoe", "1/3", None),
        (3, "ben", "19/60", None),
    ]


SHARED_PLACES = {
    "no ties": ("a 9 b 8 c 7 d 6 e 5 f 4", [2, 1, 1, 1, 1, 0], [2, 1, 1, 1, 1, 0]),
    "two first": ("a 9 b 9 c 7", [2, 2, 1], [1, 1, 1]),
    "three first": ("a 9 b 9 c 9 d 1", [2, 2, 2, 1], [1, 1, 1, 1]),
    "five first": ("a 9 b 9 c 9 d 9 e 9 f 1", [2] * 5 + [0], [1] * 5 + [0]),
    "seven first": ("a 9 b 9 c 9 d 9 e 9 f 9 g 9", [2] * 7, [0] * 7),
    "two second": ("a 9 b 8 c 8 d 1", [2, 1, 1, 1], [2, 1, 1, 1]),
    "two fifth": ("a 9 b 8 c 7 d 6 e 5 f 5", [2, 1, 1, 1, 1, 1], [2, 1, 1, 1, 0, 0]),
    "two sixth": ("a 9 b 8 c 7 d 6 e 5 f 4 g 4", [2, 1, 1, 1, 1, 0, 0], [2, 1, 1, 1, 1, 0, 0]),
}


@pytest.mark.parametrize(("game", "by_place", "pool"), SHARED_PLACES.values(), ids=SHARED_PLACES)
def test_gold_for_shared_places(game, by_place, pool):
    """For shared places, gold is that of the place or an equal part of the pool."""
    gold = {"gold": [2, 1, 1, 1, 1], "min_games": 1}

    assert [row[3] for row in list_month(game, **gold)] == by_place
    assert [row[3] for row in list_month(game, **gold, gold_ties="pool")] == pool


def test_unplaced_player_takes_no_gold():
    """A player without a place gets no gold and takes none from the others."""
    rows = list_month("anna 9 ben 1", "ben 1 cleo 0", "cleo 0", gold=[2, 1])

    assert rows == [(1, "ben", "1", 2), (2, "cleo", "0", 1), (None, "anna", "9", 0)]


def test_month_explains_sum_and_mean():
    """The explanation of a month gives the sum, the mean and how many games are missing."""
    results = build_ranking_input(PeriodParams(min_games=7), *["anna 90 ben 60"] * 6, "anna 60", scale=60)
    explain_month = partial(explain, "period")

    assert explain_month(results, "anna") == [
        ("sum", 10, "the points of 7 games"),
        ("mean", Fraction(10, 7), "10 divided by 7"),
    ]
    assert explain_month(results, "ben")[-1] == ("no rank", None, "6 of 7 games; 1 more needed")
    results_by_sum = results._replace(params=PeriodParams(score="sum"))
    assert explain_month(results_by_sum, "ben") == [("sum", 6, "the points of 6 games")]


def list_year(places, excluded=None, **params):
    """Return (rank, player, sum, places) of every row of a year."""
    rows = rank("annual", build_year(places, excluded, **params))
    return [(row.rank, row.player, row.points, row.places) for row in rows]


ANNUAL = {
    "months 1 and 3 only": ("1 - 3", 304, (1, 3, 150, 150)),
    "one month": ("- - - - - - - - - - - 7", 457, (7, 150, 150, 150)),
    "four": ("4 3 2 1", 10, (1, 2, 3, 4)),
    "the best four of six": ("9 1 5 2 9 3", 11, (1, 2, 3, 5)),
    "a real place worse than 150": ("1 200", 501, (1, 150, 150, 200)),
    "four with one worse than 150": ("1 1 1 200", 203, (1, 1, 1, 200)),
    "equal places": ("2 2 2 2 2", 8, (2, 2, 2, 2)),
}


@pytest.mark.parametrize(("text", "points", "places"), ANNUAL.values(), ids=ANNUAL)
def test_best_four_months_count(text, points, places):
    """The best four monthly places are summed, and each missing one counts as 150."""
    assert list_year({"anna": text}) == [(1, "anna", points, places)]


def test_cap_limits_a_bad_place():
    """With a cap, a bad place counts no more than a missing month."""
    assert list_year({"anna": "1 200"}, cap_at_missing=True) == [(1, "anna", 451, (1, 150, 150, 150))]
    assert list_year({"anna": "1 1 1 200"}, cap_at_missing=True) == [(1, "anna", 153, (1, 1, 1, 150))]


def test_number_of_months_is_configurable():
    """The parameters set how many months count."""
    assert list_year({"anna": "3 1 2"}, months=1, missing=9) == [(1, "anna", 1, (1,))]
    assert list_year({"anna": "3 1 2"}, months=5, missing=9) == [(1, "anna", 24, (1, 2, 3, 9, 9))]


def test_year_ranks_by_least_sum():
    """In a year the smallest sum is first, ties share a rank, and excluded players have no rank."""
    places = {"zoe": "1 3", "anna": "3 1", "ben": "2", "cleo": "1 1 1 1", "dora": "- -"}

    assert list_year(places, {"cleo": "a free account"}) == [
        (1, "anna", 304, (1, 3, 150, 150)),
        (1, "zoe", 304, (1, 3, 150, 150)),
        (3, "ben", 452, (2, 150, 150, 150)),
        (None, "cleo", 4, (1, 1, 1, 1)),
    ]


def test_year_explains_counted_months():
    """The explanation of a year lists the months that count and those that do not."""
    results = build_year({"anna": "9 1 5 2 3", "ben": "- 200"}, {"ben": "a free account"})
    explain_year = partial(explain, "annual")

    assert explain_year(results, "anna") == [
        ("2010-02", 1, "place"),
        ("2010-04", 2, "place"),
        ("2010-05", 3, "place"),
        ("2010-03", 5, "place"),
        ("sum", 11, "of the best 4 places"),
        ("2010-01", None, "place 9, not among the best"),
    ]
    assert explain_year(results, "ben") == [
        *[("missing", 150, "a month without a place")] * 3,
        ("2010-02", 200, "place"),
        ("sum", 650, "of the best 4 places"),
        ("no rank", None, "a free account"),
    ]


def test_year_explains_a_capped_place():
    """The explanation names a player's own place if it counts as the place for a missing month."""
    results = build_year({"anna": "1 200 150 300 400"}, cap_at_missing=True)

    assert explain("annual", results, "anna") == [
        ("2010-01", 1, "place"),
        ("2010-02", 150, "place 200, which counts as 150"),
        ("2010-03", 150, "place"),
        ("2010-04", 150, "place 300, which counts as 150"),
        ("sum", 451, "of the best 4 places"),
        ("2010-05", None, "place 400, not among the best"),
    ]
