"""The lists as functions: given the points of games, when ranked, then these rows in this order."""

from collections import Counter

import pytest

from projections.contract import Params, PeriodParams, TableParams
from projections.lists import LISTS
from projections.lists.contract import Results, Standing
from projections.rules.annual_places import AnnualPlacesParams


def results(params, *games, adjusted=(), scale=1):
    """What a list ranks, from games such as "anna 3 ben 1"; `adjusted` are further points, in units."""
    played = [list(zip(game.split()[::2], map(int, game.split()[1::2]), strict=True)) for game in games]
    names = list(dict.fromkeys(name for game in played for name, _ in game))
    flat = [(names.index(name), change) for game in played for name, change in game]
    points = Counter(dict.fromkeys(range(len(names)), 0))
    for player, change in [*flat, *((names.index(name), units) for name, units in dict(adjusted).items())]:
        points[player] += change
    offsets = [sum(map(len, played[:index])) for index in range(len(played) + 1)]
    return Results(
        names, [points[player] for player in range(len(names))],
        [sum(mine == player for mine, _ in flat) for player in range(len(names))],
        offsets, [player for player, _ in flat], [change for _, change in flat], scale, params,
    )  # fmt: skip


def ranks(name, given):
    """(rank, player) of every row."""
    return [(row.rank, row.player) for row in LISTS[name].rank(given)]


def table(params, *games, **more):
    """(rank, player, points) of every row of a league's table."""
    return [(row.rank, row.player, row.points) for row in LISTS["table"].rank(results(params, *games, **more))]


def test_given_running_points_when_ranked_then_the_most_come_first_and_equals_share_a_rank():
    given = results(Params(), "zoe 5 anna 5 ben 7", "cleo -3")

    assert ranks("points", given) == [(1, "ben"), (2, "anna"), (2, "zoe"), (4, "cleo")]
    assert LISTS["points"].explain(given, "cleo") == [("points", "-3", "after all games and adjustments")]


def test_given_a_least_number_of_games_when_ranked_then_who_has_fewer_follows_without_a_rank():
    """Given one with the most points but too few games, when ranked, then the others' ranks are as without him."""
    games = ["anna 9 ben 1", "ben 3 cleo 3", "cleo 1 ben 0", "dora 12"]

    expected = [(1, "ben"), (1, "cleo"), (None, "dora"), (None, "anna")]
    assert ranks("points", results(Params(min_games=2), *games)) == expected
    assert ranks("table", results(TableParams(min_games=2), *games)) == expected
    assert [row.qualified for row in LISTS["table"].rank(results(TableParams(min_games=2), *games))] == [
        True, True, False, False,
    ]  # fmt: skip


LEAGUE = ["anna 6 ben 2 cleo 0", "ben 6 anna 2 cleo 0", "anna 3 cleo 3 ben 0", "cleo -2 ben 4"]


def test_given_a_league_when_ranked_then_the_points_of_all_games_are_summed():
    assert table(TableParams(), *LEAGUE) == [(1, "ben", 12), (2, "anna", 11), (3, "cleo", 1)]


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
def test_given_a_best_of_when_ranked_then_only_the_best_games_of_each_count(best_of, rows):
    assert table(TableParams(best_of=best_of), *LEAGUE) == rows


def test_given_an_adjustment_when_the_best_games_are_summed_then_it_counts_beside_them():
    params = TableParams(best_of=1)
    given = results(params, *LEAGUE, adjusted={"cleo": 4})

    assert table(params, *LEAGUE, adjusted={"cleo": 4}) == [(1, "cleo", 7), (2, "anna", 6), (2, "ben", 6)]
    assert LISTS["table"].explain(given, "cleo") == [
        ("sum", "7", "of the best 1 of 4 games, with what was adjusted"),
    ]  # fmt: skip


def test_given_a_scale_when_a_table_is_explained_then_the_sum_is_exact():
    given = results(TableParams(), "anna 5600 ben 0", scale=840)

    assert LISTS["table"].explain(given, "anna") == [("sum", "20/3", "of all games")]


TIES = {
    "shared": ("none", ["anna 3 ben 1", "ben 3 anna 1"], [(1, "anna"), (1, "ben")]),
    "more wins, one big win against two": (
        "more wins", ["anna 6 ben 0", "ben 3 anna 0", "ben 3 cleo 0"], [(1, "ben"), (2, "anna"), (3, "cleo")],
    ),
    "more wins, a shared first place is one": (
        "more wins", ["anna 2 cleo 2 dora 0", "ben 2 dora 0", "anna 1 dora 9", "ben 1 dora 9"],
        [(1, "dora"), (2, "anna"), (2, "ben"), (4, "cleo")],
    ),
    "more wins, a tie of all is none": (
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
    "head-to-head, whoever got more in the games of both": (
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
    "head-to-head, who is not tied does not matter": (
        "head-to-head", ["anna 3 cleo 0", "cleo 9 ben 3"], [(1, "cleo"), (2, "anna"), (2, "ben")],
    ),
    "head-to-head, equal in their game": (
        "head-to-head", ["anna 2 ben 2", "anna 0 cleo 9", "ben 0 cleo 9"], [(1, "cleo"), (2, "anna"), (2, "ben")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tie_break", "games", "rows"), TIES.values(), ids=TIES)
def test_given_equal_points_when_ranked_then_the_tie_break_decides_or_the_rank_is_shared(tie_break, games, rows):
    assert ranks("table", results(TableParams(tie_break=tie_break), *games)) == rows


def test_given_a_tie_with_somebody_not_qualified_when_ranked_then_games_against_him_break_no_tie():
    """Given anna and ben, who never met, and cleo, who lost to anna but has too few games, then they share a rank."""
    params = TableParams(tie_break="head-to-head", min_games=2)
    games = ["anna 3 cleo 0", "anna 0 dora 0", "ben 3 dora 0", "ben 0 dora 0"]
    given = results(params, *games, adjusted={"cleo": 3})

    assert ranks("table", given) == [(1, "anna"), (1, "ben"), (3, "dora"), (None, "cleo")]


POINTS = {"score": "mean", "min_games": 2}


def month(*games, scale=1, **params):
    """(rank, player, exact score, gold) of every row of a month."""
    given = results(PeriodParams(**(POINTS | params)), *games, scale=scale)
    return [(row.rank, row.player, str(row.value(scale)), row.gold) for row in LISTS["period"].rank(given)]


def test_given_a_month_when_ranked_then_the_mean_decides_and_who_played_too_little_has_no_place():
    games = ["anna 3 ben 1", "anna 1 ben 3", "anna 1 cleo 3"]

    assert month(*games) == [(1, "ben", "2", None), (2, "anna", "5/3", None), (None, "cleo", "3", None)]
    assert month(*games, score="sum") == [(1, "anna", "5", None), (2, "ben", "4", None), (None, "cleo", "3", None)]
    assert [row[0] for row in month(*games, min_games=4)] == [None, None, None]


def test_given_means_that_a_float_cannot_hold_when_ranked_then_equal_ones_share_a_place_and_the_next_is_skipped():
    """Given 20/60 a game over three games and over seven, then both are first and the next is third: 1, 1, 3."""
    games = ["zoe 20 anna 20"] * 3 + ["anna 20"] * 4 + ["ben 19"] * 7

    assert month(*games, scale=60, min_games=3) == [
        (1, "anna", "1/3", None), (1, "zoe", "1/3", None), (3, "ben", "19/60", None),
    ]  # fmt: skip


SHARED = {
    "nobody ties": ("a 9 b 8 c 7 d 6 e 5 f 4", [2, 1, 1, 1, 1, 0], [2, 1, 1, 1, 1, 0]),
    "two first": ("a 9 b 9 c 7", [2, 2, 1], [1, 1, 1]),
    "three first": ("a 9 b 9 c 9 d 1", [2, 2, 2, 1], [1, 1, 1, 1]),
    "five first": ("a 9 b 9 c 9 d 9 e 9 f 1", [2] * 5 + [0], [1] * 5 + [0]),
    "seven first": ("a 9 b 9 c 9 d 9 e 9 f 9 g 9", [2] * 7, [0] * 7),
    "two second": ("a 9 b 8 c 8 d 1", [2, 1, 1, 1], [2, 1, 1, 1]),
    "two fifth": ("a 9 b 8 c 7 d 6 e 5 f 5", [2, 1, 1, 1, 1, 1], [2, 1, 1, 1, 0, 0]),
    "two sixth": ("a 9 b 8 c 7 d 6 e 5 f 4 g 4", [2, 1, 1, 1, 1, 0, 0], [2, 1, 1, 1, 1, 0, 0]),
}


@pytest.mark.parametrize(("game", "by_place", "pool"), SHARED.values(), ids=SHARED)
def test_given_shared_places_when_gold_is_paid_then_it_is_that_of_the_place_or_a_part_of_the_pool(game, by_place, pool):
    gold = {"gold": [2, 1, 1, 1, 1], "min_games": 1}

    assert [row[3] for row in month(game, **gold)] == by_place
    assert [row[3] for row in month(game, **gold, gold_ties="pool")] == pool


def test_given_somebody_without_a_place_when_gold_is_paid_then_he_gets_none_and_takes_none_from_the_others():
    rows = month("anna 9 ben 1", "ben 1 cleo 0", "cleo 0", gold=[2, 1])

    assert rows == [(1, "ben", "1", 2), (2, "cleo", "0", 1), (None, "anna", "9", 0)]


def test_given_a_month_when_explained_then_sum_mean_and_missing_games_are_told():
    given = results(PeriodParams(min_games=7), *["anna 90 ben 60"] * 6, "anna 60", scale=60)
    told = LISTS["period"].explain

    assert told(given, "anna") == [("sum", "10", "the points of 7 games"), ("mean", "10/7", "10 divided by 7")]
    assert told(given, "ben")[-1] == ("no rank", None, "6 of 7 games; 1 is missing")
    summed = given._replace(params=PeriodParams(score="sum"))
    assert told(summed, "ben") == [("sum", "6", "the points of 6 games")]


def year(places, excluded=None, **params):
    """What an annual list ranks, from texts such as {"anna": "1 - 3"}, a place or none for each month."""
    months = {}
    for name, text in places.items():
        for number, place in enumerate(text.split(), 1):
            if place != "-":
                standing = Standing(int(place), name, 60 - int(place), 7, True)
                months.setdefault(f"2010-{number:02d}", {})[name] = standing
    names = list(places)
    bound = AnnualPlacesParams(of="catan-monthly", **params)
    return Results(names, [0] * len(names), [0] * len(names), [0], [], [], 1, bound, months, excluded or {})


def annual(places, excluded=None, **params):
    """(rank, player, sum, places) of every row."""
    rows = LISTS["annual"].rank(year(places, excluded, **params))
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
def test_given_the_places_of_months_when_summed_then_the_best_four_count_and_missing_ones_are_150(text, points, places):
    assert annual({"anna": text}) == [(1, "anna", points, places)]


def test_given_a_cap_when_summed_then_a_place_counts_at_most_like_a_missing_month():
    assert annual({"anna": "1 200"}, cap_at_missing=True) == [(1, "anna", 451, (1, 150, 150, 150))]
    assert annual({"anna": "1 1 1 200"}, cap_at_missing=True) == [(1, "anna", 153, (1, 1, 1, 150))]


def test_given_other_numbers_of_months_when_summed_then_so_many_count():
    assert annual({"anna": "3 1 2"}, months=1, missing=9) == [(1, "anna", 1, (1,))]
    assert annual({"anna": "3 1 2"}, months=5, missing=9) == [(1, "anna", 24, (1, 2, 3, 9, 9))]


def test_given_a_year_when_ranked_then_the_least_sum_is_first_ties_share_and_who_is_excluded_has_no_rank():
    places = {"zoe": "1 3", "anna": "3 1", "ben": "2", "cleo": "1 1 1 1", "dora": "- -"}

    assert annual(places, {"cleo": "a free account"}) == [
        (1, "anna", 304, (1, 3, 150, 150)), (1, "zoe", 304, (1, 3, 150, 150)), (3, "ben", 452, (2, 150, 150, 150)),
        (None, "cleo", 4, (1, 1, 1, 1)),
    ]  # fmt: skip


def test_given_a_year_when_explained_then_the_months_that_count_and_those_that_do_not_are_told():
    given = year({"anna": "9 1 5 2 3", "ben": "- 200"}, {"ben": "a free account"})
    told = LISTS["annual"].explain

    assert told(given, "anna") == [
        ("2010-02", "1", "place"), ("2010-04", "2", "place"), ("2010-05", "3", "place"), ("2010-03", "5", "place"),
        ("sum", "11", "of the best 4 places"), ("2010-01", None, "place 9, not among the best"),
    ]  # fmt: skip
    assert told(given, "ben") == [
        *[("missing", "150", "no place that month")] * 3, ("2010-02", "200", "place"),
        ("sum", "650", "of the best 4 places"), ("no rank", None, "a free account"),
    ]  # fmt: skip
