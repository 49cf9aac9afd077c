"""Catan points: the table, ties of every shape, a comparison with a naive computation, and the shipped lists."""

import random
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from builders import build_game
from histories import build_ruleset_event, build_stream, fill, load_facts, rank_stream
from own_rules import find_ruleset_problems, find_shipped_text, load_built_in_rule, read_ruleset

from ratings_ledger.rules import PLAYERS_MAX, exact

RULE = load_built_in_rule("catan-points/1")

TABLE = {"2": [3, 1], "3": [4, 2, 1], "4": [5, 3, 2, 1], "5": [6, 4, 3, 2, 1], "6": [7, 5, 4, 3, 2, 1]}


def build_params(**params):
    """Return parameters with the source's table, with these changes."""
    return RULE.params(**{"points": TABLE, **params})


def build_columns(places, seats=None):
    """Return the columns of a game with these places."""
    n = len(places)
    return [list(places), [seats or n] * n, [list(places).count(place) for place in places]]


def score_game(places, **params):
    """Return (points of all players as exact strings, the burned points)."""
    change = [-1] * len(places)
    minted = RULE.score(
        len(places), [0] * len(places), build_columns(places), RULE.prepare(build_params(**params)), (), change
    )
    return [exact(units, RULE.scale) for units in change], minted - sum(change)


@pytest.mark.parametrize(("n", "row"), [(int(n), row) for n, row in TABLE.items()])
def test_points_follow_the_table(n, row):
    """Without ties, each place gets its points from the table."""
    assert score_game(range(1, n + 1)) == ([str(points) for points in row], 0)


TIES = {
    "second and third of three": ([1, 2, 2], ["4", "3/2", "3/2"]),
    "first and second of three": ([1, 1, 3], ["3", "3", "1"]),
    "all of three": ([1, 1, 1], ["7/3"] * 3),
    "both of two": ([1, 1], ["2", "2"]),
    "second and third of four": ([1, 2, 2, 4], ["5", "5/2", "5/2", "1"]),
    "two and two of four": ([1, 1, 3, 3], ["4", "4", "3/2", "3/2"]),
    "three first of four": ([1, 1, 1, 4], ["10/3", "10/3", "10/3", "1"]),
    "all of four": ([1] * 4, ["11/4"] * 4),
    "all of five": ([1] * 5, ["16/5"] * 5),
    "all of six": ([1] * 6, ["11/3"] * 6),
    "five behind the first of six": ([1, *[2] * 5], ["7", *["3"] * 5]),
    "four last of five": ([1, *[2] * 4], ["6", *["5/2"] * 4]),
}


@pytest.mark.parametrize(("places", "points"), TIES.values(), ids=TIES)
def test_ties_share_their_points(places, points):
    """Tied players share the points of their places equally."""
    assert score_game(places) == (points, 0)


@pytest.mark.parametrize("n", range(2, 7))
def test_points_add_up_to_the_row(n):
    """For every possible order with ties, the points of a game sum to its row."""
    orders = {tuple(1 + sum(o < r for o in ranks) for r in ranks) for ranks in product(range(n), repeat=n)}
    for places in orders:
        points, burned = score_game(places)
        assert sum(map(Fraction, points)) == sum(TABLE[str(n)])
        assert burned == 0


def test_order_of_participants_is_irrelevant():
    """The order of the participants does not change any points."""
    places = [3, 1, 3, 2, 5]
    expected = score_game(places)[0]
    for order in ([4, 3, 2, 1, 0], [1, 0, 2, 4, 3]):
        assert score_game([places[i] for i in order])[0] == [expected[i] for i in order]


def test_uncounted_seat_shares_its_place():
    """An uncounted seat still shares the points of its place.

    Of four seats, two are tied for second, and one of these two does not count.
    """
    change = [0, 0, 0]
    RULE.score(3, [0] * 3, [[1, 2, 4], [4] * 3, [1, 2, 1]], RULE.prepare(build_params()), (), change)

    assert [exact(units, RULE.scale) for units in change] == ["5", "5/2", "1"]


CHECKS = {
    "two": (TABLE, 2, None),
    "six": (TABLE, 6, None),
    "seven": (TABLE, 7, "Catan points are defined for 2 to 6 players; this game has 7"),
    "a missing row": ({"2": TABLE["2"], "4": TABLE["4"]}, 3, "for 2 or 4 players; this game has 3"),
    "beyond the last row": ({"3": TABLE["3"]}, 4, "for 3 players; this game has 4"),
}


@pytest.mark.parametrize(("table", "seats", "reason"), CHECKS.values(), ids=CHECKS)
def test_number_of_seats_needs_a_row(table, seats, reason):
    """A game can be scored only if the table has a row for its number of seats."""
    refusal = RULE.check(2, build_columns([1, 2], seats), build_params(points=table))

    assert refusal is None if reason is None else reason in (refusal or "")


BAD_TABLES = {
    "no rows": ({}, "params.points: a row for at least one number of players is needed"),
    "a word": ({"two": [3, 1]}, "params.points: 'two' is not a number of players from 2 to 6"),
    "seven": ({"7": [1] * 7}, "params.points: '7' is not a number of players from 2 to 6"),
    "ten": ({"10": [1] * 10}, "'10' is not a number of players from 2 to 6"),
    "one": ({"1": [1]}, "'1' is not a number of players"),
    "too few": ({"3": [4, 2]}, "params.points.3: 3 players need 3 numbers, one for each place, not 2"),
    "too many": ({"2": [3, 1, 0]}, "params.points.2: 2 players need 2 numbers"),
}


@pytest.mark.parametrize(("table", "reason"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_table_is_rejected(table, reason):
    """An invalid table is rejected with the key and the reason."""
    assert reason in (RULE.refuse_params(build_params(points=table), PLAYERS_MAX) or "")


@pytest.mark.parametrize(
    "params",
    [
        {"points": None},
        {"points": {"2": [3, -1]}},
        {"points": {"2": [3, 1_000_001]}},
        {"points": {"2": ["3", 1]}},
        {"points": {2: [3, 1]}},
        {"score": "median"},
        {"gold": [-1]},
        {"gold_ties": "share"},
        {"min_games": "7"},
    ],
)
def test_params_of_wrong_kind_are_rejected(params):
    """Parameters of the wrong kind are rejected."""
    with pytest.raises(ValueError):
        build_params(**params)


def test_wrong_row_is_reported_with_its_line():
    """A wrong row in a ruleset file is reported with its line."""
    text = find_shipped_text("catan-monthly")
    ((key, _, line),) = find_ruleset_problems(text.replace("[4, 2, 1]", "[4, 2]"))

    assert key == "params.points.3"
    assert line is not None
    assert text.splitlines()[line - 1].startswith("3 = ")


def explain_game(places):
    """Return each player's terms as (term, amount as exact string, detail, note)."""
    game, n = build_columns(places), len(places)
    change = [0] * n
    RULE.score(n, [0] * n, game, RULE.prepare(build_params()), (), change)
    terms = RULE.explain(n, [f"p{i}" for i in range(n)], [0] * n, game, build_params(), change)
    assert [sum(term.amount for term in player_terms) for player_terms in terms] == change
    return [[(t.term, exact(t.amount, RULE.scale), t.detail, t.note) for t in player_terms] for player_terms in terms]


def test_explanation_shows_place_and_points():
    """An explanation has each player's place and the source of its points."""
    terms = explain_game([1, 2, 2, 4])

    assert terms[0] == [("place 1", "5", "the points of place 1 of 4", "")]
    shared = "tied: 3 + 2, the points of places 2 and 3 of 4, divided by 2"
    assert terms[1] == [("place 2", "5/2", shared, "")]
    assert terms[3] == [("place 4", "1", "the points of place 4 of 4", "")]
    assert explain_game([1, 1, 1])[0][0][2] == "tied: 4 + 2 + 1, the points of places 1 to 3 of 3, divided by 3"


def test_random_games_match_naive_scores():
    """The scores of random games agree with a naive computation, and their explanations add up."""
    chance, cases = random.Random(32), Counter[str]()
    for _ in range(3_000):
        n = chance.randint(2, 6)
        ranks = [chance.randint(1, n) for _ in range(n)]
        places = [1 + sum(better < rank for better in ranks) for rank in ranks]
        points, burned = score_game(places)
        slots = sorted(range(n), key=lambda i: places[i])
        expected = []
        for place in places:
            shared = [TABLE[str(n)][slot] for slot, i in enumerate(slots) if places[i] == place]
            expected.append(Fraction(sum(shared), len(shared)))
        assert [Fraction(value) for value in points] == expected
        assert burned == 0
        explain_game(places)
        cases["tie"] += len(set(places)) < n
        cases["tied winners"] += places.count(1) > 1
        cases["all tied"] += set(places) == {1}
        cases["a fraction"] += any("/" in value for value in points)
        cases["two"] += n == 2
    assert min(cases.values()) > 100, cases


@pytest.mark.parametrize("ruleset_id", ["catan-monthly", "catan-open"])
def test_shipped_versions_differ_only_in_date(ruleset_id):
    """The two shipped versions differ only in version, date, source and assumed members."""
    old, new = (read_ruleset(find_shipped_text(ruleset_id, version)) for version in ("pre-2008-03", "2008-03"))

    assert (old.effective_from, new.effective_from) == ("1900-01-01", "2008-03-01")
    differing = {"version", "effective_from", "source", "assumed"}
    assert old.model_dump(exclude=differing) == new.model_dump(exclude=differing)
    assert old.params["points"] == TABLE
    assert "points" in new.assumed
    assert "points" not in old.assumed


def build_catan_game(game_id, instant, players, group="basic", city="7", **members):
    """Return a game of Catan, its players in the order of their places."""
    return build_game(game_id, *players.split(), at=instant, group=group, city=city, **members)


def test_berlin_month_ranks_and_pays_gold(ledger_url):
    """Seven games in a month of Berlin give ranks by mean, and gold.

    The game that is in February by UTC is without cleo, who has only six games and no rank.
    """
    events = [
        build_ruleset_event(find_shipped_text(name, version))
        for name in ("catan-monthly", "catan-open")
        for version in ("pre-2008-03", "2008-03")
    ]
    events += [build_catan_game(f"g{day}", f"2010-03-{day:02d}T20:00:00Z", "anna ben cleo") for day in range(1, 7)]
    # already March in Berlin
    events.append(build_catan_game("g7", "2010-02-28T23:30:00Z", "ben anna"))
    events.append(build_catan_game("card", "2010-03-08T20:00:00Z", "anna ben", group="card-game"))
    facts = load_facts(fill(ledger_url, events))

    ranking = rank_stream(build_stream(facts, "catan-monthly/7/basic/2010-03"))
    assert ranking.ruleset == "catan-monthly@2008-03"
    rows = [(row.rank, row.player, str(row.exact_points(ranking.scale)), row.games, row.gold) for row in ranking.rows]
    assert rows == [(1, "anna", "25/7", 7, 2), (2, "ben", "15/7", 7, 1), (None, "cleo", "1", 6, 0)]
    open_list = rank_stream(build_stream(facts, "catan-open/basic/2010-03"))
    assert [(row.rank, row.player, row.gold) for row in open_list.rows] == [
        (1, "anna", None),
        (2, "ben", None),
        (None, "cleo", None),
    ]
    assert rank_stream(build_stream(facts, "catan-monthly/7/card-game/2010-03")).rows == []


def test_seat_that_changed_hands_gets_nothing(
    ledger_url,
):
    """If a seat changes hands, neither of its players gets points, and the others keep their places.

    The third of four seats changes hands; the others get 5, 3 and 1 points.
    """
    game_with_substitute = build_catan_game("g1", "2007-05-01T20:00:00Z", "anna ben cleo dora")
    game_with_substitute["data"]["participants"][2]["status"] = "abandoned"
    game_with_substitute["data"]["participants"].append(
        {"player": "emil", "place": 3, "status": "substitute", "replaces": "cleo"}
    )
    versions = [
        build_ruleset_event(find_shipped_text("catan-monthly", version)) for version in ("pre-2008-03", "2008-03")
    ]
    ranking = rank_stream(
        build_stream(load_facts(fill(ledger_url, [*versions, game_with_substitute])), "catan-monthly/7/basic/2007-05")
    )

    assert ranking.ruleset == "catan-monthly@pre-2008-03"
    assert [(row.player, str(row.exact_points(ranking.scale))) for row in ranking.rows] == [
        ("anna", "5"),
        ("ben", "3"),
        ("dora", "1"),
    ]
